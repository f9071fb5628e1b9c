//! Putting hooks into an agent's JSON settings and taking them out again, with everything else
//! in them, its order, layout and comments, left as it is.

use anyhow::{Context, Result, bail};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstContainerNode, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

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

/// The text with these hooks in it. A hook with the mark is ours: it is replaced if it differs.
pub fn with(text: Option<&str>, entries: &[HookEntry], mark: &str, versioned: bool) -> Result<String> {
    let given = text.filter(|text| !text.trim().is_empty());
    let root = parse(given.unwrap_or("{}\n"))?;
    let top = root.object_value().context("it is not an object of JSON")?;
    if versioned && top.get("version").is_none() {
        top.append("version", CstInputValue::Number("1".to_owned()));
    }
    let hooks = top.object_value_or_create("hooks").context("its 'hooks' is not an object")?;
    for entry in entries {
        let list = hooks.array_value_or_create(entry.event);
        let list = list.with_context(|| format!("its 'hooks.{}' is not a list", entry.event))?;
        if ours(&list, mark) == [entry.hook.clone()] {
            continue;
        }
        strip(&list, mark);
        let hook = input(&entry.hook);
        list.append(if entry.grouped {
            CstInputValue::Object(vec![("hooks".to_owned(), CstInputValue::Array(vec![hook]))])
        } else {
            hook
        });
    }
    Ok(root.to_string())
}

/// The text without our hooks, and without what is empty now that they are gone; nothing when
/// nothing else is left.
pub fn without(text: &str, mark: &str) -> Result<Option<String>> {
    let root = parse(text)?;
    let top = root.object_value().context("it is not an object of JSON")?;
    let Some(hooks) = top.object_value("hooks") else { return Ok(Some(text.to_owned())) };
    for event in hooks.properties() {
        let Some(list) = event.array_value() else { continue };
        if strip(&list, mark) && list.elements().is_empty() {
            event.remove();
        }
    }
    if hooks.properties().is_empty()
        && let Some(property) = top.get("hooks")
    {
        property.remove();
    }
    let only_version = |top: &CstObject| matches!(&top.properties()[..], [only] if is_named(only, "version"));
    let comments = has_comments(&root.clone().into());
    if (top.properties().is_empty() || only_version(&top)) && !comments {
        return Ok(None);
    }
    Ok(Some(root.to_string()))
}

/// Our hooks on every event: the event, and the hook.
pub fn found(text: &str, mark: &str) -> Result<Vec<(String, Value)>> {
    let root = parse(text)?;
    let top = root.object_value().context("it is not an object of JSON")?;
    let mut found = Vec::new();
    for event in top.object_value("hooks").iter().flat_map(CstObject::properties) {
        let name = event.decoded_name().unwrap_or_default();
        let hooks = event.array_value().map(|list| ours(&list, mark)).unwrap_or_default();
        found.extend(hooks.into_iter().map(|hook| (name.clone(), hook)));
    }
    Ok(found)
}

/// Every event that anyone has hooks on.
pub fn events(text: &str) -> Result<Vec<String>> {
    let root = parse(text)?;
    let top = root.object_value().context("it is not an object of JSON")?;
    let hooks = top.object_value("hooks");
    Ok(hooks.iter().flat_map(CstObject::properties).filter_map(|event| event.decoded_name()).collect())
}

fn parse(text: &str) -> Result<CstRootNode> {
    // A byte order mark is no part of what is parsed, and must not be lost.
    if text.starts_with('\u{feff}') {
        bail!("it begins with a byte order mark");
    }
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    CstRootNode::parse(text, &options).map_err(|error| anyhow::anyhow!("it is not JSON: {error}"))
}

fn is_named(property: &jsonc_parser::cst::CstObjectProp, name: &str) -> bool {
    property.decoded_name().as_deref() == Some(name)
}

fn has_comments(node: &CstContainerNode) -> bool {
    let children = node.children();
    children.iter().any(|child| match child {
        CstNode::Container(container) => has_comments(container),
        CstNode::Leaf(_) => child.is_comment(),
    })
}

/// Whether a hook's own command has the mark.
fn is_ours(hook: &CstObject, mark: &str) -> bool {
    let texts = hook.properties().into_iter().filter_map(|property| property.value()?.to_serde_value());
    texts.into_iter().any(|value| value.as_str().is_some_and(|text| has_word(text, mark)))
}

/// Whether the mark stands there as whole words: another agent's name may begin with ours.
fn has_word(text: &str, mark: &str) -> bool {
    let ends = |rest: &str| rest.chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '-' && c != '_');
    text.match_indices(mark).any(|(at, _)| ends(&text[at + mark.len()..]))
}

fn ours(list: &CstArray, mark: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for element in list.elements() {
        let Some(object) = element.as_object() else { continue };
        if is_ours(&object, mark) {
            found.extend(element.to_serde_value());
        } else if let Some(inner) = object.array_value("hooks") {
            found.extend(ours(&inner, mark));
        }
    }
    found
}

/// Takes our hooks out of a list, and the groups that are empty without them. Gives whether there were any.
fn strip(list: &CstArray, mark: &str) -> bool {
    let mut any = false;
    for element in list.elements() {
        let Some(object) = element.as_object() else { continue };
        if is_ours(&object, mark) {
            element.remove();
            any = true;
        } else if let Some(inner) = object.array_value("hooks")
            && strip(&inner, mark)
        {
            any = true;
            if inner.elements().is_empty() {
                element.remove();
            }
        }
    }
    any
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(fields) => {
            CstInputValue::Object(fields.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
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
        with(Some(text), &entries(), MARK, false).expect("it is set up")
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
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": "oxundo hook claude",
                        "timeout": 30,
                    },
                ],
            },
        ],
        "Begin": [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": "oxundo hook claude",
                        "timeout": 30
                    }
                ]
            }
        ],
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
            assert!(with(Some(bad), &entries(), MARK, false).is_err(), "{bad}");
        }
        for empty in [None, Some(""), Some(" \n")] {
            let text = with(empty, &entries(), MARK, true).expect("it is set up");
            assert_eq!(serde_json::from_str::<Value>(&text).expect("it is plain JSON")["version"], 1);
            assert!(text.ends_with("}\n"), "{text:?}");
            assert_eq!(without(&text, MARK).expect("it is JSON"), None, "nothing is left");
        }
    }

    #[test]
    fn another_agents_hooks_are_not_ours() {
        let text = with(None, &entries(), MARK, false).expect("it is set up");
        assert_eq!(without(&text, "oxundo hook claud").expect("it is JSON").as_deref(), Some(text.as_str()));
        assert_eq!(without("{\"hooks\": {}}", MARK).expect("it is JSON").as_deref(), None);
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

    proptest! {
        #[test]
        fn setting_up_and_taking_away_leaves_what_was_there(value in settings(), pretty in any::<bool>()) {
            let text = if pretty { format!("{value:#}\n") } else { value.to_string() };
            let after = set_up(&text);
            prop_assert_eq!(&set_up(&after), &after, "once is enough");
            let mut read: Value = serde_json::from_str(&after).expect("plain JSON stays plain JSON");
            let back = without(&after, MARK).expect("it is JSON").expect("something is left");
            let back_value: Value = serde_json::from_str(&back).expect("it is JSON");
            prop_assert_eq!(&back_value, &value);
            if pretty {
                prop_assert_eq!(&back, &text);
            }
            read.as_object_mut().expect("an object").remove("hooks");
            let mut rest = value.clone();
            rest.as_object_mut().expect("an object").remove("hooks");
            prop_assert_eq!(read, rest, "nothing but hooks is touched");
        }
    }
}
