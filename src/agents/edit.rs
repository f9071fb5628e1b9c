//! Putting hooks into an agent's JSON settings and taking them out again, with everything else
//! in them, its order, layout and comments, left as it is.
//!
//! What is taken away is what was put there, since the text itself tells: nothing else is written anew, an item of ours
//! goes with the space before it and its comma, and a list or an object goes with the last of its items only where init
//! made it. Those have space behind the opening bracket; where the user's own was empty, our item follows the bracket
//! directly. So it holds in every clone and after every edit, and needs no memory.

use crate::agents::json::{Container, Document, Layout, on_one_line, property, value_of};
use anyhow::{Context, Result, bail, ensure};
use jsonc_parser::ast::{Array, Object, ObjectProp, Value as Node};
use jsonc_parser::common::{Range, Ranged};
use serde_json::{Value, json};

/// What init writes before a call: where oxundo is not installed, nothing is called.
pub const GUARD: &str = "command -v oxundo >/dev/null 2>&1 || exit 0; ";

/// The version that Cursor wants, spelled as nobody else does.
const VERSION: &str = "\"version\" :1";

/// A hook on an event.
#[derive(Clone, Debug)]
pub struct HookEntry {
    /// The event.
    pub event: &'static str,
    /// The hook.
    pub hook: Value,
    /// Whether it is in a group: `{"hooks": [HOOK]}`.
    pub grouped: bool,
}

/// Where in the file an agent looks for its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// In its field `hooks`.
    Hooks,
    /// In the file itself.
    Top,
}

impl Level {
    fn events<'a, 'b>(self, top: &'b Object<'a>) -> Option<&'b Object<'a>> {
        match self {
            Self::Hooks => last(top, "hooks").and_then(|hooks| hooks.value.as_object()),
            Self::Top => Some(top),
        }
    }
}

/// The text with these hooks in it. A hook with the mark is ours: it is replaced if it differs, or is at the other level.
pub fn with(text: Option<&str>, entries: &[HookEntry], mark: &str, versioned: bool, level: Level) -> Result<String> {
    let Some(text) = text else { return Ok(format!("{}\n", whole(entries, versioned, level))) };
    if text.trim().is_empty() {
        return Ok(format!("{text}{}", whole(entries, versioned, level)));
    }
    if is_current(text, entries, mark, level)? {
        return Ok(text.to_owned());
    }
    let bare = without(text, mark)?;
    if bare.as_deref() != Some(text) {
        return with(bare.as_deref(), entries, mark, versioned, level);
    }
    let mut after = with_hooks(text, entries, level)?;
    if versioned && last(Document::parse(text)?.top()?, "version").is_none() {
        let document = Document::parse(&after)?;
        after = document.with_item(&document.top()?.into(), |_| VERSION.to_owned());
    }
    ensure!(without(&after, mark)?.as_deref() == Some(text), "it is written so that uninstall could not bring it back");
    Ok(after)
}

/// The text without our hooks, and without what init made for them; nothing when init made the file, and nothing else
/// is in it.
pub fn without(text: &str, mark: &str) -> Result<Option<String>> {
    let mut text = text.to_owned();
    if is_of_first_release(&text, mark)? {
        return Ok(None);
    }
    if hits(&Document::parse(&text)?, mark)?.is_empty() {
        return Ok(Some(text));
    }
    text = without_version(&text)?;
    loop {
        let document = Document::parse(&text)?;
        // From the end, so that an item which follows a bracket directly is the last to go.
        let Some(hit) = hits(&document, mark)?.pop() else { return Ok(Some(text)) };
        match without_hit(&document, &hit)? {
            Some(rest) if !rest.trim().is_empty() => text = rest,
            rest => return Ok(rest),
        }
    }
}

/// The hooks on every event, at whichever level, that call us, the user's own too: the event, and the hook. What is there
/// twice counts once, as it does for the agents.
pub fn found(text: &str, mark: &str) -> Result<Vec<(String, Value)>> {
    let document = Document::parse(text)?;
    Ok(found_in(document.top()?, |hook| calls_us(hook, mark))
        .into_iter()
        .map(|(event, hook, _)| (event, hook))
        .collect())
}

/// A hook's event, the hook, and whether it is in a group.
type Found = (String, Value, bool);

fn found_in(top: &Object, is: impl Fn(&Node) -> bool + Copy) -> Vec<Found> {
    [Level::Hooks, Level::Top].into_iter().flat_map(|level| found_at(level, top, is)).collect()
}

fn found_at(level: Level, top: &Object, is: impl Fn(&Node) -> bool + Copy) -> Vec<Found> {
    let mut found = Vec::new();
    let Some(events) = level.events(top) else { return found };
    for event in &events.properties {
        let name = event.name.as_str();
        let is_last = last(events, name).is_some_and(|last| last.range == event.range);
        let list = event.value.as_array().filter(|_| is_last);
        let ours = list.iter().flat_map(|list| hooks_in(list, is));
        found.extend(ours.map(|(element, hook)| (name.to_owned(), value_of(hook), element.range() != hook.range())));
    }
    found
}

/// The events on which our hook is called for some tools alone, and for which: its group has a matcher.
pub fn narrowed(text: &str, mark: &str) -> Result<Vec<(String, String)>> {
    let document = Document::parse(text)?;
    let top = document.top()?;
    let mut narrowed = Vec::new();
    for events in [Level::Hooks, Level::Top].into_iter().filter_map(|level| level.events(top)) {
        for event in &events.properties {
            let hooks = event.value.as_array().into_iter().flat_map(|list| hooks_in(list, |hook| is_ours(hook, mark)));
            let matcher = |(group, _): (&Node, &Node)| Some(value_of(group)["matcher"].as_str()?.to_owned());
            let some = hooks.filter_map(matcher).filter(|matcher| !["", "*", ".*"].contains(&matcher.as_str()));
            narrowed.extend(some.map(|matcher| (event.name.as_str().to_owned(), matcher)));
        }
    }
    Ok(narrowed)
}

/// Every event that anyone has hooks on.
pub fn events(text: &str) -> Result<Vec<String>> {
    let document = Document::parse(text)?;
    let hooks = last(document.top()?, "hooks").and_then(|hooks| hooks.value.as_object());
    let names = hooks.iter().flat_map(|hooks| &hooks.properties).map(|event| event.name.as_str().to_owned());
    Ok(names.collect())
}

/// The property that counts where a name is there twice.
pub fn last<'a, 'b>(object: &'b Object<'a>, name: &str) -> Option<&'b ObjectProp<'a>> {
    object.properties.iter().rfind(|property| property.name.as_str() == name)
}

fn is_current(text: &str, entries: &[HookEntry], mark: &str, level: Level) -> Result<bool> {
    let document = Document::parse(text)?;
    let is_ours = |hook: &Node| is_ours(hook, mark);
    let here = found_at(level, document.top()?, is_ours);
    let is_there = |entry: &HookEntry| here.iter().filter(|(event, ..)| event == entry.event).eq([&entry.as_found()]);
    Ok(here.len() == found_in(document.top()?, is_ours).len() && entries.iter().all(is_there))
}

/// A file of our own.
fn whole(entries: &[HookEntry], versioned: bool, level: Level) -> String {
    let layout = Layout { line: Some("\n".to_owned()), step: "  ".to_owned() };
    let version = versioned.then(|| VERSION.to_owned());
    let properties = match level {
        Level::Hooks => vec![hooks_property(entries, &layout.inner())],
        Level::Top => entries.iter().map(HookEntry::property).collect(),
    };
    layout.object(&properties.into_iter().chain(version).collect::<Vec<_>>())
}

fn with_hooks(text: &str, entries: &[HookEntry], level: Level) -> Result<String> {
    let document = Document::parse(text)?;
    let top = document.top()?;
    if level == Level::Hooks && last(top, "hooks").is_none() {
        return Ok(document.with_item(&top.into(), |layout| hooks_property(entries, layout)));
    }
    entries.iter().try_fold(text.to_owned(), |text, entry| with_entry(&text, entry, level))
}

fn with_entry(text: &str, entry: &HookEntry, level: Level) -> Result<String> {
    let document = Document::parse(text)?;
    let events = level.events(document.top()?).context("its 'hooks' is not an object")?;
    let Some(event) = last(events, entry.event) else {
        return Ok(document.with_item(&events.into(), |_| entry.property()));
    };
    let list = event.value.as_array();
    let list = list.with_context(|| format!("its '{}' is not a list", entry.event))?;
    Ok(document.with_item(&list.into(), |_| on_one_line(&entry.element())))
}

fn hooks_property(entries: &[HookEntry], layout: &Layout) -> String {
    let events: Vec<_> = entries.iter().map(HookEntry::property).collect();
    property("hooks", &layout.object(&events))
}

impl HookEntry {
    fn element(&self) -> Value {
        if self.grouped { json!({"hooks": [self.hook]}) } else { self.hook.clone() }
    }

    fn property(&self) -> String {
        property(self.event, &on_one_line(&json!([self.element()])))
    }

    fn as_found(&self) -> Found {
        (self.event.to_owned(), self.hook.clone(), self.grouped)
    }
}

/// What is taken out of which container, and what then may go with it, from the inside out.
pub struct Hit(pub Vec<(Container, Range)>);

/// Where our hooks are, in the order of the text.
fn hits(document: &Document, mark: &str) -> Result<Vec<Hit>> {
    let top = document.top()?;
    let mut hits = Vec::new();
    for property in &top.properties {
        hits.extend(hits_of(document, top, property, &[], mark));
        let hooks = property.value.as_object().filter(|_| property.name.as_str() == "hooks");
        for (hooks, event) in hooks.iter().flat_map(|hooks| hooks.properties.iter().map(move |event| (hooks, event))) {
            hits.extend(hits_of(document, hooks, event, &[(top.into(), property.range)], mark));
        }
    }
    Ok(hits)
}

/// Those on one event.
fn hits_of(
    document: &Document,
    events: &Object,
    event: &ObjectProp,
    above: &[(Container, Range)],
    mark: &str,
) -> Vec<Hit> {
    let Some(list) = event.value.as_array() else { return Vec::new() };
    let hit = |(group, hook): (&Node, &Node)| match inner_list(document, group, hook) {
        Some(inner) => Hit(vec![(inner, hook.range())]),
        None => Hit([&[(list.into(), group.range()), (events.into(), event.range)], above].concat()),
    };
    hooks_in(list, |hook| is_ours(hook, mark)).map(hit).collect()
}

/// The list of a group that has more in it than this hook: it stays.
fn inner_list(document: &Document, group: &Node, hook: &Node) -> Option<Container> {
    let fields = &group.as_object()?.properties;
    let is_in = |list: &Array| list.range.start < hook.start() && hook.end() < list.range.end;
    let list = fields.iter().filter_map(|field| field.value.as_array()).find(|list| is_in(list))?;
    let is_bare = fields.len() == 1 && list.elements.len() == 1 && !document.has_comments(group);
    (!is_bare).then(|| list.into())
}

/// The text without a hook; nothing where all of the file was made for it.
pub fn without_hit(document: &Document, Hit(steps): &Hit) -> Result<Option<String>> {
    let stays = |(container, item): &&(Container, Range)| {
        !document.is_alone(container, *item) || !document.begins_with_space(container)
    };
    let is_inner = steps.len() == 1;
    let found = steps.iter().find(|step| is_inner || stays(step));
    if let Some((container, item)) = found {
        return Ok(Some(document.without_item(container, *item)));
    }
    let [(_, hook), .., (top, _)] = &steps[..] else { bail!("it has no containers") };
    Ok(match document.around(top) {
        ("", "\n" | "\r\n") => None,
        // The file was there, and empty. What the first release made of '{}' had a line for each word.
        (before, after) if (before.to_owned() + after).trim().is_empty() && !document.item(hook).contains('\n') => {
            Some(format!("{before}{after}"))
        }
        (before, after) => Some(format!("{before}{{}}{after}")),
    })
}

fn without_version(text: &str) -> Result<String> {
    let document = Document::parse(text)?;
    let top = document.top()?;
    let version = top.properties.iter().find(|property| document.item(*property) == VERSION);
    Ok(version.map_or_else(|| text.to_owned(), |version| document.without_item(&top.into(), version.range)))
}

/// Whether it is a file for Cursor as the first release made it: with a version that looks like the user's.
fn is_of_first_release(text: &str, mark: &str) -> Result<bool> {
    let document = Document::parse(text)?;
    let [version, hooks] = &document.top()?.properties[..] else { return Ok(false) };
    let Some(events) = hooks.value.as_object().filter(|_| hooks.name.as_str() == "hooks") else { return Ok(false) };
    let is_ours = |event: &ObjectProp| {
        let list = event.value.as_array();
        list.is_some_and(|list| !list.elements.is_empty() && list.elements.iter().all(|hook| is_ours(hook, mark)))
    };
    let ours = !events.properties.is_empty() && events.properties.iter().all(is_ours);
    let written = format!("{:#}\n", json!({"version": 1, "hooks": value_of(&hooks.value)}));
    Ok(ours && version.name.as_str() == "version" && text.replace("\r\n", "\n") == written)
}

/// Such hooks in an event's list: the element of the list, and the hook, which is the same or in it.
fn hooks_in<'a, 'b>(
    list: &'b Array<'a>,
    is: impl Fn(&Node) -> bool + Copy,
) -> impl Iterator<Item = (&'b Node<'a>, &'b Node<'a>)> {
    list.elements.iter().flat_map(move |element| {
        let inner = element.as_object().filter(|_| !is(element));
        let fields = inner.iter().flat_map(|group| &group.properties).filter(|field| field.name.as_str() == "hooks");
        let inner: Vec<_> = fields.filter_map(|field| field.value.as_array()).flat_map(|list| &list.elements).collect();
        let all = if is(element) { vec![element] } else { inner };
        all.into_iter().filter(|hook| is(hook)).map(move |hook| (element, hook)).collect::<Vec<_>>()
    })
}

/// Whether a hook is one that init wrote. A user may have our words within one of his own.
fn is_ours(hook: &Node, mark: &str) -> bool {
    texts_of(hook).any(|text| is_of_init(text, mark))
}

/// Whether a hook's own command has our words.
fn calls_us(hook: &Node, mark: &str) -> bool {
    texts_of(hook).any(|text| has_word(text, mark))
}

fn texts_of<'b>(hook: &'b Node) -> impl Iterator<Item = &'b str> {
    let fields = hook.as_object().map(|hook| &hook.properties);
    fields.into_iter().flatten().filter_map(|field| field.value.as_string_lit()).map(|text| &*text.value)
}

/// Whether init wrote this: it begins as nobody else's line does, or the mark is all that stands there, but for the name
/// of an event.
fn is_of_init(text: &str, mark: &str) -> bool {
    if let Some(call) = text.strip_prefix(GUARD) {
        return has_word(call, mark);
    }
    let Some(event) = text.strip_prefix("exec ").unwrap_or(text).strip_prefix(mark) else { return false };
    let is_event = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric());
    event.is_empty() || event.strip_prefix(' ').is_some_and(is_event)
}

/// Whether the mark stands there as whole words: another agent's name may begin with ours.
fn has_word(text: &str, mark: &str) -> bool {
    let ends = |rest: &str| rest.chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '-' && c != '_');
    text.match_indices(mark).any(|(at, _)| ends(&text[at + mark.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const MARK: &str = "oxundo hook claude";

    fn entries() -> Vec<HookEntry> {
        ["Begin", "End"]
            .into_iter()
            .map(|event| HookEntry {
                event,
                hook: json!({"type": "command", "command": MARK, "timeout": 30}),
                grouped: true,
            })
            .collect()
    }

    fn set_up(text: &str) -> String {
        with(Some(text), &entries(), MARK, false, Level::Hooks).expect("it is set up")
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        let text = r#"// my settings
{
    "z": 1, // the last letter first
    "model": "opus",
    /* hooks of mine */
    "hooks": {
        "End": [
            { "matcher": "x", "hooks": [{ "type": "command", "command": "make" }] },
        ],
    },
    "a": [1,2,   3]
}
"#;
        let after = set_up(text);
        assert_eq!(
            after,
            r#"// my settings
{
    "z": 1, // the last letter first
    "model": "opus",
    /* hooks of mine */
    "hooks": {
        "End": [
            { "matcher": "x", "hooks": [{ "type": "command", "command": "make" }] },
            { "hooks": [ { "type": "command", "command": "oxundo hook claude", "timeout": 30 } ] },
        ],
        "Begin": [ { "hooks": [ { "type": "command", "command": "oxundo hook claude", "timeout": 30 } ] } ],
    },
    "a": [1,2,   3]
}
"#
        );
        assert_eq!(set_up(&after), after, "once is enough");
        assert_eq!(without(&after, MARK).expect("it is JSON").as_deref(), Some(text), "taken away exactly");
    }

    #[test]
    fn an_old_hook_of_ours_is_replaced_and_others_beside_it_stay() {
        let text = r#"{"hooks": {"End": [{"hooks": [{"command": "mine"}, {"command": "oxundo hook claude", "timeout": 5}]}]}}"#;
        let after = set_up(text);
        let found = found(&after, MARK).expect("it is JSON");
        assert_eq!(found.len(), 2, "{after}");
        assert!(found.iter().all(|(_, hook)| hook["timeout"] == 30), "{after}");
        assert!(after.contains(r#"{"command": "mine"}"#), "{after}");
        let without = without(&after, MARK).expect("it is JSON").expect("the user's is left");
        assert_eq!(
            serde_json::from_str::<Value>(&without).expect("it is JSON"),
            json!({"hooks": {"End": [{"hooks": [{"command": "mine"}]}]}})
        );
    }

    #[test]
    fn what_is_no_settings_file_is_left_alone() {
        for bad in
            ["[]", "{", "{\"a\": }", "null", "{'a': 1}", "{\"hooks\": []}", "{\"hooks\": {\"End\": 1}}", "\u{feff}{}"]
        {
            assert!(with(Some(bad), &entries(), MARK, false, Level::Hooks).is_err(), "{bad}");
        }
        for empty in [None, Some(""), Some(" \n")] {
            let text = with(empty, &entries(), MARK, true, Level::Hooks).expect("it is set up");
            assert_eq!(serde_json::from_str::<Value>(&text).expect("it is plain JSON")["version"], 1);
            assert_eq!(without(&text, MARK).expect("it is JSON").as_deref(), empty, "as it was");
        }
    }

    #[test]
    fn another_agents_hooks_are_not_ours() {
        let text = with(None, &entries(), MARK, false, Level::Hooks).expect("it is set up");
        assert_eq!(without(&text, "oxundo hook claud").expect("it is JSON").as_deref(), Some(text.as_str()));
        assert_eq!(without("{\"hooks\": {}}", MARK).expect("it is JSON").as_deref(), Some("{\"hooks\": {}}"));
    }

    #[test]
    fn a_hook_of_the_users_that_has_our_words_is_not_ours() {
        for mine in [
            "echo oxundo hook claude",
            "oxundo hook claude; make",
            "oxundo hook claude && make",
            "FOO=1 oxundo hook claude",
            "make; exec oxundo hook claude",
            "oxundo hook claude one two",
            "/opt/oxundo hook claude",
        ] {
            let text = json!({"hooks": {"End": [{"hooks": [{"type": "command", "command": mine}]}]}}).to_string();
            assert_eq!(without(&text, MARK).expect("it is JSON").as_deref(), Some(text.as_str()), "{mine}");
            let after = set_up(&text);
            assert!(after.contains(mine), "{after}");
            assert_eq!(without(&after, MARK).expect("it is JSON").as_deref(), Some(text.as_str()), "{mine}");
            assert_eq!(found(&text, MARK).expect("it is JSON").len(), 1, "it is seen that it calls us");
        }
        for ours in [MARK.to_owned(), format!("{GUARD}exec {MARK} Stop"), format!("{GUARD}exec {MARK}")] {
            let text = json!({"hooks": {"End": [{"hooks": [{"type": "command", "command": ours}]}]}}).to_string();
            assert_ne!(without(&text, MARK).expect("it is JSON").as_deref(), Some(text.as_str()), "{ours}");
        }
    }

    /// A settings file of the first release's, made or changed: what it looked like, and what it was before.
    #[test]
    fn what_the_first_release_wrote_is_taken_away_as_well() {
        let hook = |indent: &str| {
            let text = format!("{:#}", json!([{"hooks": [{"type": "command", "command": MARK, "timeout": 30}]}]));
            text.replace('\n', &format!("\n{indent}"))
        };
        let made = format!("{{\n  \"hooks\": {{\n    \"End\": {}\n  }}\n}}", hook("    "));
        let into = |rest: &str| made.replacen("{\n", &format!("{{\n{rest}"), 1);
        for (text, before) in [
            (format!("{made}\n"), None),
            (format!("{made}\n").replace('\n', "\r\n"), None),
            (made.clone(), Some("{}".to_owned())),
            (into("  \"model\": \"opus\",\n"), Some("{\n  \"model\": \"opus\"\n}".to_owned())),
            (into("  \"version\": 1,\n"), Some("{\n  \"version\": 1\n}".to_owned())),
        ] {
            assert_eq!(without(&text, MARK).expect("it is JSON"), before, "{text}");
            let entries = &entries()[1..];
            assert_eq!(
                with(Some(&text), entries, MARK, false, Level::Hooks).expect("it is set up"),
                text,
                "not formed anew"
            );
        }
        let cursors = json!({"version": 1, "hooks": {"stop": [{"command": MARK}]}});
        assert_eq!(without(&format!("{cursors:#}\n"), MARK).expect("it is JSON"), None, "the version is init's");
        let mine = format!("{cursors}\n");
        assert_eq!(
            without(&mine, MARK).expect("it is JSON").as_deref(),
            Some("{\"version\":1,\"hooks\":{\"stop\":[]}}\n")
        );
    }

    #[test]
    fn what_the_user_writes_around_our_hooks_stays() {
        let one = on_one_line(&entries()[1].element());
        for (text, left) in [
            (format!("{{\"hooks\": {{\"End\": [{one}, {{\"a\": 1}}]}}}}"), "{\"hooks\": {\"End\": [ {\"a\": 1}]}}"),
            (
                format!("{{ \"hooks\": {{ \"End\": [ {one} /* mine */ ] }} }}\n"),
                "{ \"hooks\": { \"End\": [ /* mine */ ] } }\n",
            ),
            (
                format!("{{\"a\": [1, // mine\n2], // mine\n\"hooks\": {{ \"End\": [ {one} ] }} }}"),
                "{\"a\": [1, // mine\n2] // mine\n }",
            ),
            (format!("// mine\n{{ \"hooks\": {{ \"End\": [ {one} ] }} }}\n"), "// mine\n{}\n"),
            (
                format!(
                    "{{\"hooks\": {{\"End\": [{}]}}}}",
                    one.replace("{ \"hooks\"", "{ \"matcher\": \"x\", \"hooks\"")
                ),
                "{\"hooks\": {\"End\": [{ \"matcher\": \"x\", \"hooks\": [ ] }]}}",
            ),
            (
                format!("{{\"hooks\": {{\"End\": [{}]}}}}", one.replace("[ {", "[ {\"a\": 1}, {")),
                "{\"hooks\": {\"End\": [{ \"hooks\": [ {\"a\": 1} ] }]}}",
            ),
        ] {
            assert_eq!(without(&text, MARK).expect("it is JSON").as_deref(), Some(left), "{text}");
        }
    }

    #[test]
    fn the_hooks_that_count_are_those_of_the_last_property_of_their_name() {
        let text = "{\"hooks\": {\"End\": []}, \"hooks\": {\"End\": [1], \"End\": [2]}}";
        let after = set_up(text);
        assert_eq!(
            serde_json::from_str::<Value>(&after).expect("it is JSON")["hooks"]["End"][1],
            entries()[1].element()
        );
        assert_eq!(without(&after, MARK).expect("it is JSON").as_deref(), Some(text));
    }

    #[test]
    fn a_file_that_could_not_be_brought_back_is_left_alone() {
        let text = format!("{{{VERSION}}}");
        assert!(
            with(Some(&text), &entries(), MARK, true, Level::Hooks).is_err(),
            "the version would go with the hooks"
        );
    }

    #[test]
    fn events_at_the_top_replace_those_that_were_wrapped() {
        let mine = "{ // mine\n  \"End\": [\n    {\"hooks\": [{\"command\": \"make\"}]}\n  ]\n}\n";
        let set_up = |text: &str| with(Some(text), &entries(), MARK, false, Level::Top).expect("it is set up");
        let after = set_up(mine);
        assert_eq!(set_up(&after), after, "once is enough");
        let events = |text: &str| -> Vec<_> {
            found(text, MARK).expect("it is JSON").into_iter().map(|(event, _)| event).collect()
        };
        assert_eq!(events(&after), ["End", "Begin"], "{after}");
        assert_eq!(without(&after, MARK).expect("it is JSON").as_deref(), Some(mine), "taken away exactly");

        let wrapped = with(Some(mine), &entries(), MARK, false, Level::Hooks).expect("it is set up");
        assert_eq!(events(&wrapped), ["Begin", "End"], "an older init's are known");
        assert_eq!(set_up(&wrapped), after, "and rewritten");
        assert_eq!(without(&wrapped, MARK).expect("it is JSON").as_deref(), Some(mine), "or taken away");
        let others = set_up("{\"hooks\": {\"End\": [{\"command\": \"make\"}]}}");
        assert!(others.contains("\"hooks\": {\"End\": [{\"command\": \"make\"}]}"), "what is not ours stays: {others}");
    }

    fn settings() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            "[a-z\"\\\\ é]{0,6}".prop_map(Value::from),
            any::<i32>().prop_map(Value::from)
        ];
        let tree = leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,4}", inner, 0..4)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        });
        let other = prop::collection::vec(Just(json!({"hooks": [{"command": "mine"}]})), 1..3);
        let hooks = prop::collection::btree_map(prop_oneof![Just("End".to_owned()), "[A-Z][a-z]{1,4}"], other, 1..3);
        (prop::collection::btree_map("[a-z]{1,4}", tree, 1..5), proptest::option::of(hooks)).prop_map(
            |(fields, hooks)| {
                let mut fields: serde_json::Map<String, Value> = fields.into_iter().collect();
                if let Some(hooks) = hooks {
                    fields.insert("hooks".to_owned(), json!(hooks));
                }
                Value::Object(fields)
            },
        )
    }

    /// Writes a value with space and comments of any kind between its tokens, as the choices have it.
    fn written(value: &Value, choices: &mut impl Iterator<Item = usize>) -> String {
        const GAPS: [&str; 10] = ["", "", "", " ", "\n", "\n\t", "\r\n  ", " // c\n", " /* c */", "// c\r\n/* c\n */"];
        let mut gap = || GAPS[choices.next().unwrap_or(0) % GAPS.len()];
        let mut items = Vec::new();
        let (open, close) = match value {
            Value::Array(_) => ("[", "]"),
            Value::Object(_) => ("{", "}"),
            other => return other.to_string(),
        };
        let (first, last, comma) = (gap(), gap(), gap().contains('\n'));
        for (name, inner) in value.as_object().into_iter().flatten() {
            items.push(format!("{}:{}", Value::from(name.as_str()), written(inner, choices)));
        }
        items.extend(value.as_array().into_iter().flatten().map(|inner| written(inner, choices)));
        let mut gap = || GAPS[choices.next().unwrap_or(0) % GAPS.len()];
        let mut inner: Vec<_> = items.into_iter().map(|item| format!("{}{item}{}", gap(), gap())).collect();
        if comma && !inner.is_empty() {
            inner.push(String::new());
        }
        format!("{open}{first}{}{last}{close}", inner.join(","))
    }

    fn choices() -> impl Strategy<Value = Vec<usize>> {
        prop::collection::vec(any::<usize>(), 0..60)
    }

    proptest! {
        #[test]
        fn whatever_its_form_is_what_was_there_comes_back(
            value in prop_oneof![settings(), Just(json!({})), Just(json!({"hooks": {"End": [], "Other": {}}}))],
            choices in choices(),
            versioned in any::<bool>(),
        ) {
            let text = written(&value, &mut choices.into_iter());
            let after = with(Some(&text), &entries(), MARK, versioned, Level::Hooks).expect("it is set up");
            prop_assert_eq!(&with(Some(&after), &entries(), MARK, versioned, Level::Hooks).expect("it is JSON"), &after, "once is enough");
            prop_assert_eq!(found(&after, MARK).expect("it is JSON").len(), 2);
            prop_assert_eq!(without(&after, MARK).expect("it is JSON"), Some(text));
        }

        #[test]
        fn a_comment_of_the_users_anywhere_stays(
            value in settings(),
            choices in choices(),
            at in any::<usize>(),
            comment in prop_oneof![Just("// mine\n"), Just(" /* mine */")],
        ) {
            let after = set_up(&written(&value, &mut choices.into_iter()));
            let gaps: Vec<_> = after.match_indices([',', '[', '{']).map(|(at, _)| at + 1).collect();
            let at = gaps[at % gaps.len()];
            let edited = format!("{}{comment}{}", &after[..at], &after[at..]);
            let document = Document::parse(&edited).expect("it is JSON");
            let is_in = |Hit(steps): &Hit| steps[0].1.start < at && at < steps[0].1.end;
            let kept = usize::from(!hits(&document, MARK).expect("it is JSON").iter().any(is_in));
            let left = without(&edited, MARK).expect("it is JSON").expect("something is left");
            prop_assert_eq!(left.matches(comment.trim()).count(), kept, "{}", left);
            prop_assert_eq!(found(&left, MARK).expect("it is still JSON"), vec![]);
            let document = Document::parse(&left).expect("it is still JSON");
            let rest = |value: Value| value.as_object().into_iter().flatten().filter(|(name, _)| *name != "hooks").count();
            let back = value_of(&Node::Object(document.top().expect("an object").clone()));
            prop_assert_eq!(rest(back), rest(value));
        }
    }

    proptest! {
        #[test]
        fn setting_up_and_taking_away_leaves_what_was_there(value in settings(), pretty in any::<bool>()) {
            let text = if pretty { format!("{value:#}\n") } else { value.to_string() };
            let after = set_up(&text);
            prop_assert_eq!(&set_up(&after), &after, "once is enough");
            let mut read: Value = serde_json::from_str(&after).expect("plain JSON stays plain JSON");
            let back = without(&after, MARK).expect("it is JSON").expect("something is left");
            prop_assert_eq!(&back, &text, "taken away exactly");
            read.as_object_mut().expect("an object").remove("hooks");
            let mut rest = value.clone();
            rest.as_object_mut().expect("an object").remove("hooks");
            prop_assert_eq!(read, rest, "nothing but hooks is touched");
        }
    }
}
