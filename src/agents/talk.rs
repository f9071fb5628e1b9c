//! Which lines of an agent's transcript come before a prompt. Nothing is read or written here.

use crate::agents::adapters::TranscriptForm;
use crate::agents::lenient;
use crate::agents::payload::as_recorded;
use gix::bstr::ByteSlice;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

/// A prompt that is looked for in a transcript.
#[derive(Clone, Debug, Default)]
pub struct Sought {
    /// The agent's id of it.
    pub id: Option<String>,
    /// Its text, where it is known for certain.
    pub text: Option<String>,
    /// How long the transcript was when it began.
    pub from: u64,
    /// How long it was when it ended.
    pub to: Option<u64>,
}

/// Why a prompt, or what came before it, is not known for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The prompt is not there.
    NotThere,
    /// Another may be meant.
    Unclear,
    /// A line that cannot be read may lead to it.
    Unreadable,
}

/// A transcript that was read, or the beginning of it.
pub struct Talk<'a> {
    form: &'a TranscriptForm,
    session: &'a str,
    lines: Vec<Line>,
}

/// What a line is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    /// An object of JSON.
    Object,
    /// Nothing, or nothing that counts.
    #[default]
    Other,
    /// It is no JSON.
    Unreadable,
}

/// What counts of a line.
#[derive(Default)]
struct Line {
    at: Range<usize>,
    kind: Kind,
    is_about_end: bool,
    prompt_id: Option<String>,
    id: Option<String>,
    parent: Option<String>,
    /// What was said to the agent.
    said: Option<String>,
    /// Whether the agent says it.
    is_answer: bool,
}

/// By these any agent's own words are known.
const ANSWERS: [(&str, &str); 4] =
    [("type", "assistant"), ("type", "gemini"), ("message.role", "assistant"), ("payload.role", "assistant")];

impl Line {
    fn read(form: &TranscriptForm, at: Range<usize>, text: &[u8]) -> Self {
        let value = match lenient::parse(text) {
            Some(value @ Value::Object(_)) => value,
            Some(_) => return Self { at, ..Self::default() },
            None if text.trim_ascii().is_empty() => return Self { at, ..Self::default() },
            None => return Self { at, kind: Kind::Unreadable, ..Self::default() },
        };
        let text_of = |path: &str| field(&value, path).and_then(Value::as_str);
        let owned = |path: &str| text_of(path).map(str::to_owned);
        let is_prompt =
            !form.prompt.is_empty() && form.prompt.iter().all(|(path, wanted)| text_of(path) == Some(wanted));
        Self {
            at,
            kind: Kind::Object,
            is_about_end: text_of("type").is_some_and(|kind| form.about_end.contains(&kind)),
            prompt_id: form.prompt_id.and_then(owned),
            id: form.id.and_then(owned),
            parent: form.parent.iter().find_map(|path| owned(path)),
            is_answer: ANSWERS.iter().any(|(path, who)| text_of(path) == Some(who)),
            said: field(&value, form.text).filter(|_| is_prompt).and_then(said),
        }
    }

    /// By this the line is known in a copy, too.
    fn mark(&self) -> Option<&str> {
        self.id.as_deref().or(self.prompt_id.as_deref())
    }

    /// Whether it shows that something was said before.
    fn is_talk(&self, form: &TranscriptForm) -> bool {
        self.said.is_some() || (form.prompt.is_empty() && self.prompt_id.is_some())
    }
}

fn field<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, key| value.get(key))
}

/// The text of what was said; none where it is what a tool has answered.
fn said(content: &Value) -> Option<String> {
    let parts = match content {
        Value::String(text) => return Some(text.clone()),
        Value::Array(parts) => parts,
        _ => return None,
    };
    let is_answer =
        |part: &Value| part.get("type") == Some(&"tool_result".into()) || part.get("functionResponse").is_some();
    if parts.iter().any(is_answer) {
        return None;
    }
    Some(parts.iter().filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n"))
}

impl<'a> Talk<'a> {
    /// Reads the lines of a session's transcript.
    pub fn read(form: &'a TranscriptForm, session: &'a str, text: &[u8]) -> Self {
        let mut lines = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            lines.push(Line::read(form, at..at + line.len(), line));
            at += line.len();
        }
        Self { form, session, lines }
    }

    /// The mark of a prompt, by which it is known in copies as well.
    pub fn mark(&self, sought: &Sought) -> Result<String, Unknown> {
        let by_id = sought.id.as_ref().and_then(|id| {
            let is_its = |line: &&Line| line.prompt_id.as_ref() == Some(id);
            // What tells of a prompt before it is said has no id of its own.
            let its = || self.lines.iter().filter(is_its);
            its().find(|line| line.id.is_some()).or_else(|| its().next())
        });
        let line = by_id.map_or_else(|| self.by_place(sought), Ok)?;
        line.mark().map(str::to_owned).ok_or(Unknown::NotThere)
    }

    /// The prompt that was said while its turn was at work; or just before, where the agent writes it down first. Where its text
    /// is there, it is no other.
    fn by_place(&self, sought: &Sought) -> Result<&Line, Unknown> {
        let end = sought.to.filter(|to| *to > sought.from).unwrap_or(u64::MAX);
        let is_another = |line: &&Line| sought.id.is_some() && line.prompt_id.is_some() && line.prompt_id != sought.id;
        let prompts = || self.lines.iter().filter(|line| line.said.is_some() && !is_another(line));
        let within = || prompts().filter(|line| (sought.from..end).contains(&(line.at.start as u64)));
        let is_in_place = self.begins_at(sought.from)?;
        let Some(text) = sought.text.as_deref().map(str::trim).filter(|text| !text.is_empty()) else {
            let first = within().next().ok_or(Unknown::NotThere)?;
            let is_first = is_in_place && self.is_read(sought.from..first.at.start as u64);
            return if is_first { Ok(first) } else { Err(Unknown::Unclear) };
        };
        let says = |line: &Line, is_equal: bool| {
            let said = line.said.as_deref().map(as_recorded).unwrap_or_default();
            if is_equal { said.trim() == text } else { said.contains(text) }
        };
        let is_equal = prompts().any(|line| says(line, true));
        let has_it = |line: &&Line| says(line, is_equal);
        let mut its = prompts().filter(has_it);
        match (its.next(), its.next()) {
            // An agent may say to its model what the user has only named.
            (None, _) => self.only(within(), is_in_place, sought.from..end),
            // It was rewritten: nothing is where it was.
            (Some(line), other) if !is_in_place => self.only([line].into_iter().chain(other), true, 0..u64::MAX),
            _ => within().find(has_it).or_else(|| self.unanswered(sought.from).filter(has_it)).ok_or(Unknown::NotThere),
        }
    }

    /// Whether a line begins there, as one does where the transcript ended once, unless it was rewritten.
    fn begins_at(&self, place: u64) -> Result<bool, Unknown> {
        let end = self.lines.last().map_or(0, |line| line.at.end as u64);
        if place > end {
            return Err(Unknown::NotThere);
        }
        Ok(place == end || self.lines.binary_search_by_key(&place, |line| line.at.start as u64).is_ok())
    }

    /// Whether all that is there can be read.
    fn is_read(&self, place: Range<u64>) -> bool {
        !self.lines.iter().any(|line| line.kind == Kind::Unreadable && place.contains(&(line.at.start as u64)))
    }

    /// The only one of these, where that is certain.
    fn only<'l>(
        &self,
        mut lines: impl Iterator<Item = &'l Line>,
        is_in_place: bool,
        place: Range<u64>,
    ) -> Result<&'l Line, Unknown> {
        let line = lines.next().ok_or(Unknown::NotThere)?;
        let is_certain = is_in_place && lines.next().is_none() && self.is_read(place);
        if is_certain { Ok(line) } else { Err(Unknown::Unclear) }
    }

    /// The last prompt before a place, unless it has been answered: then it is another turn's.
    fn unanswered(&self, place: u64) -> Option<&Line> {
        let (came, _) = self.lines.split_at(self.lines.partition_point(|line| (line.at.start as u64) < place));
        came.iter().rev().take_while(|line| !line.is_answer).find(|line| line.said.is_some())
    }

    /// The lines before the first one with such a mark, as far as they lead there; nothing where nothing was said before it.
    pub fn before(&self, marks: &BTreeSet<String>) -> Result<Vec<Range<usize>>, Unknown> {
        let cut = self.lines.iter().position(|line| line.mark().is_some_and(|mark| marks.contains(mark)));
        let cut = cut.ok_or(Unknown::NotThere)?;
        // What else is of that prompt goes with it.
        let id = self.lines[cut].prompt_id.as_ref();
        let first = self.lines.iter().position(|line| id.is_some() && line.prompt_id.as_ref() == id);
        let (before, after) = self.lines.split_at(first.unwrap_or(cut).min(cut));
        let is_between = |line: &&Line| line.prompt_id.is_none();
        if self.form.prompt.is_empty()
            && before.iter().rev().take_while(is_between).any(|line| line.kind == Kind::Unreadable)
        {
            // It may be where the prompt begins.
            return Err(Unknown::Unreadable);
        }
        let way = self.way(before, after)?;
        let mut beside = HashMap::new();
        let mut taken = Vec::new();
        for line in before.iter().filter(|line| line.kind == Kind::Object) {
            let leads = match &way {
                None => true,
                Some(way) => self.leads(line, way, &mut beside),
            };
            if leads && !line.is_about_end {
                taken.push(line);
            }
        }
        let is_empty = !taken.iter().any(|line| line.is_talk(self.form));
        Ok(if is_empty { Vec::new() } else { taken.into_iter().map(|line| line.at.clone()).collect() })
    }

    /// The ids of the lines that lead to where it is cut, where lines are a tree.
    fn way<'l>(&self, before: &'l [Line], after: &'l [Line]) -> Result<Option<HashSet<&'l str>>, Unknown> {
        if self.form.parent.is_empty() {
            return Ok(None);
        }
        let parents: HashMap<&str, Option<&str>> =
            before.iter().filter_map(|line| Some((line.id.as_deref()?, line.parent.as_deref()))).collect();
        let is_whole = !before.iter().any(|line| line.kind == Kind::Unreadable);
        let may_be_lost = |id: &str| !parents.contains_key(id) && id != self.session && !is_whole;
        let mut way = HashSet::new();
        let mut at = after.iter().find(|line| line.id.is_some()).and_then(|line| line.parent.as_deref());
        while let Some(id) = at.filter(|id| way.insert(*id)) {
            let comes_later = || after.iter().any(|line| line.id.as_deref() == Some(id));
            if may_be_lost(id) || (!parents.contains_key(id) && comes_later()) {
                return Err(Unknown::Unreadable);
            }
            at = parents.get(id).copied().flatten();
        }
        // What hangs beside it may hang on such a line, too.
        let hangs =
            |line: &Line| line.said.is_none() && line.id.is_some() && line.parent.as_deref().is_some_and(may_be_lost);
        if self.form.has_side_lines && before.iter().any(hangs) {
            return Err(Unknown::Unreadable);
        }
        Ok(Some(way))
    }

    /// Whether a line is on the way, or hangs beside it within a prompt that is. A branch that was left begins with a prompt.
    fn leads<'l>(&self, line: &'l Line, way: &HashSet<&str>, beside: &mut HashMap<&'l str, bool>) -> bool {
        let Some(id) = line.id.as_deref().filter(|id| *id != self.session) else { return true };
        let on_way = way.contains(id);
        let is_beside = match (&line.said, line.parent.as_deref()) {
            (None, Some(parent)) => beside.get(parent).copied().unwrap_or(false),
            _ => false,
        };
        beside.insert(id, on_way || is_beside);
        on_way || (is_beside && self.form.has_side_lines)
    }

    /// These lines, with another session's id in place of this one's.
    pub fn written(&self, text: &[u8], lines: &[Range<usize>], session: &str) -> Vec<u8> {
        let mut written = Vec::with_capacity(lines.iter().map(Range::len).sum());
        for line in lines {
            renamed(self.form, &text[line.clone()], self.session, session, &mut written);
        }
        written
    }
}

/// Adds a line, with another id where one of the keys has this one. A text in which that is quoted has a backslash before each
/// quotation mark.
fn renamed(form: &TranscriptForm, line: &[u8], from: &str, to: &str, written: &mut Vec<u8>) {
    let value = format!("\"{from}\"");
    let mut rest = line;
    while let Some(at) = rest.find(&value) {
        let (before, after) = rest.split_at(at);
        let key = before.trim_ascii_end().strip_suffix(b":").map(<[u8]>::trim_ascii_end).unwrap_or_default();
        let is_its = form.session.iter().any(|name| key.ends_with(format!("\"{name}\"").as_bytes()));
        written.extend_from_slice(before);
        written.extend_from_slice(if is_its { format!("\"{to}\"") } else { value.clone() }.as_bytes());
        rest = &after[value.len()..];
    }
    written.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::adapters::adapter;
    use serde_json::json;

    fn form(agent: &str) -> TranscriptForm {
        adapter(agent).and_then(|adapter| adapter.transcript).expect("it keeps a transcript")
    }

    fn text(lines: &[Value]) -> Vec<u8> {
        lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes()
    }

    /// What is left of a transcript before a prompt: the ids of its lines, or their types.
    fn left(agent: &str, lines: &[Value], mark: &str) -> Result<Vec<String>, Unknown> {
        let (form, text) = (form(agent), text(lines));
        let before = Talk::read(&form, "S", &text).before(&BTreeSet::from([mark.to_owned()]))?;
        let name = |line: Range<usize>| {
            let line: Value = serde_json::from_slice(&text[line]).expect("it is JSON");
            let id = line.get("uuid").or_else(|| line.get("id")).or_else(|| line.get("type"));
            id.and_then(Value::as_str).unwrap_or("?").to_owned()
        };
        Ok(before.into_iter().map(name).collect())
    }

    fn user(id: &str, parent: Option<&str>, prompt: &str) -> Value {
        let message = json!({"content": id, "parts": [{"text": id}]});
        json!({"type": "user", "uuid": id, "parentUuid": parent, "promptId": prompt, "message": message})
    }

    fn answer(id: &str, parent: &str) -> Value {
        json!({"type": "assistant", "uuid": id, "parentUuid": parent, "message": {"content": [{"type": "text", "text": id}]}})
    }

    fn result(id: &str, parent: &str) -> Value {
        json!({"type": "user", "uuid": id, "parentUuid": parent, "message": {"content": [{"type": "tool_result"}]}})
    }

    #[test]
    fn a_branch_that_was_left_is_not_copied() {
        let lines = [
            user("a", None, "p1"),
            answer("a1", "a"),
            user("b", Some("a1"), "p2"),
            answer("b1", "b"),
            json!({"type": "last-prompt", "leafUuid": "b1"}),
            user("c", Some("a1"), "p3"),
            answer("c1", "c"),
            user("d", Some("c1"), "p4"),
        ];
        assert_eq!(left("claude", &lines, "d").expect("it is there"), ["a", "a1", "c", "c1"]);
        assert_eq!(left("claude", &lines, "c").expect("it is there"), ["a", "a1"]);
        assert_eq!(left("claude", &lines, "b").expect("it is there"), ["a", "a1"]);
        assert_eq!(left("claude", &lines, "a").expect("it is there"), Vec::<String>::new());
        assert_eq!(left("claude", &lines, "e"), Err(Unknown::NotThere));
        assert_eq!(left("qwen", &lines, "d").expect("it is there"), ["a", "a1", "last-prompt", "c", "c1"]);
    }

    #[test]
    fn calls_at_the_same_time_stay_and_sub_agents_go() {
        let lines = [
            json!({"type": "mode"}),
            user("a", None, "p1"),
            answer("call-1", "a"),
            answer("call-2", "call-1"),
            result("result-1", "call-1"),
            result("result-2", "call-2"),
            user("sub", None, "p1"),
            answer("sub-1", "sub"),
            answer("a1", "result-2"),
            json!({"type": "queue-operation", "content": "b"}),
            json!({"type": "file-history-snapshot", "promptId": "p2"}),
            user("b", Some("a1"), "p2"),
        ];
        let all = ["mode", "a", "call-1", "call-2", "result-1", "result-2", "a1"];
        assert_eq!(left("claude", &lines, "b").expect("it is there"), all);
        // pi takes the last line for the end: there only the way itself is left.
        let pi = |id: &str, parent: Option<&str>, role: &str| json!({"type": "message", "id": id, "parentId": parent, "message": {"role": role, "content": id}});
        let lines = [
            json!({"type": "session", "id": "S"}),
            pi("a", None, "user"),
            pi("a1", Some("a"), "assistant"),
            pi("a2", Some("a1"), "assistant"),
            json!({"type": "branch_summary", "id": "s", "parentId": "a1"}),
            pi("b", Some("s"), "user"),
        ];
        assert_eq!(left("pi", &lines, "b").expect("it is there"), ["S", "a", "a1", "s"]);
    }

    #[test]
    fn what_was_summarised_leads_to_what_it_sums_up() {
        let summary = json!({"type": "system", "subtype": "compact_boundary", "uuid": "s", "parentUuid": null, "logicalParentUuid": "a1"});
        let lines = [
            user("a", None, "p1"),
            answer("a1", "a"),
            summary,
            user("summed", Some("s"), "p1"),
            answer("b1", "summed"),
            user("b", Some("b1"), "p2"),
        ];
        assert_eq!(left("claude", &lines, "b").expect("it is there"), ["a", "a1", "s", "summed", "b1"]);
        // A ring of parents ends too.
        let ring = [answer("x", "y"), user("y", Some("x"), "p0"), user("b", Some("y"), "p2")];
        assert_eq!(left("claude", &ring, "b").expect("it is there"), ["x", "y"]);
    }

    #[test]
    fn torn_lines_are_left_out_and_a_prompt_is_found_by_id_place_and_text() {
        let said = |id: &str, text: &str| json!({"id": id, "type": "user", "content": [{"text": text}]});
        let result = json!({"id": "r", "type": "user", "content": [{"functionResponse": {}}]});
        let mut all = text(&[json!({"sessionId": "S"}), said("a", "go on")]);
        all.extend_from_slice(b"{\"type\":\"user\",\"con{\"id\":\"torn\"}\n\xff\xfe\n");
        let from = all.len() as u64;
        all.extend(text(&[result, said("b", "go on"), said("c", "go on")]));
        let form = form("gemini");
        let talk = Talk::read(&form, "S", &all);
        let sought = |from, text: Option<&str>| Sought { text: text.map(str::to_owned), from, ..Sought::default() };
        assert_eq!(talk.mark(&sought(from, Some("go on"))).as_deref(), Ok("b"));
        assert_eq!(talk.mark(&sought(from, None)).as_deref(), Ok("b"));
        assert_eq!(talk.mark(&sought(0, Some("go on"))).as_deref(), Ok("a"));
        assert_eq!(talk.mark(&sought(all.len() as u64, Some("go on"))).as_deref(), Ok("c"), "it was written first");
        assert_eq!(talk.mark(&sought(all.len() as u64, Some("other"))), Err(Unknown::NotThere));
        all.extend(text(&[json!({"id": "c1", "type": "gemini", "content": "done"})]));
        let answered = Talk::read(&form, "S", &all);
        assert_eq!(
            answered.mark(&sought(all.len() as u64, Some("go on"))),
            Err(Unknown::NotThere),
            "it is another, and has been answered"
        );
        assert_eq!(talk.mark(&sought(from, Some("other"))), Err(Unknown::Unclear), "it is one of several");
        let lines = talk.before(&BTreeSet::from(["b".to_owned()])).expect("it is there");
        let copy = talk.written(&all, &lines, "T");
        assert!(std::str::from_utf8(&copy).is_ok_and(|copy| !copy.contains("torn")), "{copy:?}");
    }

    #[test]
    fn a_line_that_cannot_be_read_lets_nothing_be_lost() {
        let form = form("claude");
        let before = |torn: &str, others: &[Value]| {
            let all = [&text(&[user("a", None, "p1")])[..], torn.as_bytes(), &text(others)].concat();
            let lines = Talk::read(&form, "S", &all).before(&BTreeSet::from(["b".to_owned()]));
            lines.map(|lines| lines.len())
        };
        let whole = [answer("a1", "a"), user("b", Some("a1"), "p2")];
        assert_eq!(before("{\"torn\n", &whole), Ok(2), "nothing leads to it");
        assert_eq!(before("\n42\n", &whole), Ok(2));
        let answered = "{\"type\":\"assistant\",\"uuid\":\"a1\",\"parentUuid\":\"a\",\"x\":\"\\ud83d\"}\n";
        assert_eq!(before(answered, &whole[1..]), Ok(2), "agents read that");
        assert_eq!(before(&answered[1..], &whole[1..]), Err(Unknown::Unreadable), "it leads to the prompt");
        assert_eq!(before("", &whole[1..]), Ok(0), "it is in another file");
        let beside = [answer("a1", "a"), result("r", "lost"), user("b", Some("a1"), "p2")];
        assert_eq!(before("{\"torn\n", &beside), Err(Unknown::Unreadable), "it hangs beside");
        assert_eq!(before("", &[user("b", Some("c"), "p2"), answer("c", "a")]), Err(Unknown::Unreadable));
    }

    #[test]
    fn a_turn_of_codexs_may_begin_with_a_line_that_cannot_be_read() {
        let form = form("codex");
        let of = |turn: &str| json!({"type": "event_msg", "payload": {"turn_id": turn}}).to_string() + "\n";
        let before = |text: String| {
            let lines = Talk::read(&form, "S", text.as_bytes()).before(&BTreeSet::from(["p2".to_owned()]));
            lines.map(|lines| lines.len())
        };
        assert_eq!(before(of("p1") + "{}\n{\n" + &of("p2")), Err(Unknown::Unreadable));
        assert_eq!(before(of("p1") + "{\n" + &of("p1") + "{}\n" + &of("p2")), Ok(3));
    }

    #[test]
    fn in_a_transcript_that_was_rewritten_only_the_text_tells() {
        let said = |id: &str, text: &str| json!({"id": id, "type": "user", "content": [{"text": text}]});
        let mark = |all: &[u8], from: u64, to: u64, sought: Option<&str>| {
            let form = form("gemini");
            let sought = Sought { text: sought.map(str::to_owned), from, to: Some(to), ..Sought::default() };
            Talk::read(&form, "S", all).mark(&sought)
        };
        let lines = [
            json!({"sessionId": "S"}),
            said("a", "one"),
            said("b", "two"),
            said("c", "three"),
            said("d", "three more"),
        ];
        let all = text(&lines);
        let ends: Vec<u64> = (0..=lines.len()).map(|count| text(&lines[..count]).len() as u64).collect();
        for (at, (id, its)) in [("a", "one"), ("b", "two"), ("c", "three"), ("d", "three more")].into_iter().enumerate()
        {
            let (from, to) = (ends[at + 1], ends[at + 2]);
            assert_eq!(mark(&all, from, to, Some(its)).as_deref(), Ok(id));
            assert_eq!(mark(&all, from, to, Some("\u{7}other")).as_deref(), Ok(id), "the only one there");
            assert_eq!(mark(&all, from, to, None).as_deref(), Ok(id));
            // Whatever is there now.
            for shift in 1..from.min(all.len() as u64 - from) {
                let (from, to) = (from - shift, to - shift);
                if ends.contains(&from) {
                    continue;
                }
                assert_eq!(mark(&all, from, to, Some(its)).as_deref(), Ok(id), "{shift}");
                let other = mark(&all, from, to, Some("other"));
                assert!(matches!(other, Err(Unknown::Unclear | Unknown::NotThere)), "{shift}: {other:?}");
            }
        }
        // It is there once, but where its turn was at work another is.
        assert_eq!(mark(&all, ends[3], ends[4], Some("one")), Err(Unknown::NotThere));
        assert_eq!(mark(&all, ends[5] + 1, ends[5] + 9, Some("one")), Err(Unknown::NotThere));
        let twice = [&all[..], &text(&[said("e", "one")])].concat();
        assert_eq!(mark(&twice, ends[2] + 1, ends[3] + 1, Some("one")), Err(Unknown::Unclear));
        let torn = [&all[..], b"{\"torn\n"].concat();
        assert_eq!(mark(&torn, ends[2] + 1, ends[3] + 1, Some("one")), Err(Unknown::Unclear));
        assert_eq!(mark(&torn, ends[4], ends[5] + 8, Some("other")), Err(Unknown::Unclear));
    }

    #[test]
    fn only_the_sessions_own_keys_are_changed() {
        let form = form("claude");
        let line = r#"{"sessionId" : "S","text":"\"sessionId\":\"S\"","other":"S","deep":{"sessionId":"S"}}"#;
        let mut written = Vec::new();
        renamed(&form, line.as_bytes(), "S", "T", &mut written);
        let wanted = r#"{"sessionId" : "T","text":"\"sessionId\":\"S\"","other":"S","deep":{"sessionId":"T"}}"#;
        assert_eq!(String::from_utf8_lossy(&written), wanted);
    }
}
