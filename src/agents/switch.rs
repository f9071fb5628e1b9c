//! Settings of an agent's that turn its hooks off.

use crate::agents::adapters::{Off, Switch};
use crate::agents::json::{Document, value_of};
use serde_json::Value;
use std::path::Path;

/// How the names of the hooks begin that `init` gives a name.
pub const NAMES: &str = "oxundo-";

/// Which of some files turns the hooks off, by its place among them. They come in the order in which they decide.
pub fn deciding(switch: &Switch, files: &[(String, Option<String>)]) -> Option<usize> {
    let value =
        |(at, (name, text)): (usize, &(String, Option<String>))| Some((at, value(switch, name, text.as_deref()?)?));
    let mut values = files.iter().enumerate().filter_map(value);
    match switch.off {
        Off::When(off) => {
            let decided = values.find_map(|(at, value)| Some((at, value.as_bool()?)));
            decided.filter(|(_, value)| *value == off).map(|(at, _)| at)
        }
        Off::Names => values.find(|(_, value)| names_ours(value)).map(|(at, _)| at),
    }
}

fn names_ours(value: &Value) -> bool {
    let names = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.into_iter().any(|name| name.starts_with(NAMES))
}

/// The value of the switch in a file; none where it is not there, or the file cannot be read.
fn value(switch: &Switch, name: &str, text: &str) -> Option<Value> {
    let (first, rest) = switch.keys.split_first()?;
    let value = if is_toml(name) {
        toml::from_str::<Value>(text).ok()?.get(*first)?.clone()
    } else {
        let document = Document::parse(text).ok()?;
        let top = document.top().ok()?;
        // Where a name is there twice, the last counts.
        value_of(&top.properties.iter().rfind(|property| property.name.as_str() == *first)?.value)
    };
    rest.iter().try_fold(value, |value, key| value.get(key).cloned())
}

/// Why an agent does not start with this file, where it is TOML that is none. Of JSON the adapters know what is read.
pub fn broken(name: &str, text: &str) -> Option<String> {
    let error = toml::from_str::<Value>(text).err().filter(|_| is_toml(name))?;
    let line = text.bytes().take(error.span()?.start).filter(|byte| *byte == b'\n').count() + 1;
    Some(format!("line {line}: {}", error.message()))
}

fn is_toml(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::adapters::adapter;

    fn off(agent: &str, files: &[(&str, &str)]) -> Option<usize> {
        let files: Vec<_> = files.iter().map(|(name, text)| ((*name).to_owned(), Some((*text).to_owned()))).collect();
        let switches = adapter(agent).expect("it is in the table").switches;
        switches.iter().find_map(|switch| deciding(switch, &files))
    }

    #[test]
    fn the_first_file_that_has_the_switch_decides() {
        let on = "{\"disableAllHooks\": true} // c";
        assert_eq!(off("claude", &[("a.json", "{}"), ("b.json", on)]), Some(1));
        assert_eq!(off("claude", &[("a.json", "{\"disableAllHooks\": false}"), ("b.json", on)]), None);
        assert_eq!(off("claude", &[("a.json", "{\"disableAllHooks\": \"yes\"}"), ("b.json", "{")]), None);
        assert_eq!(off("claude", &[("a.json", "{\"disableAllHooks\": true, \"disableAllHooks\": false}")]), None);
    }

    #[test]
    fn each_agent_has_its_own_words() {
        assert_eq!(off("gemini", &[("s.json", "{\"hooksConfig\": {\"enabled\": false}}")]), Some(0));
        assert_eq!(off("gemini", &[("s.json", "{\"hooksConfig\": {\"disabled\": [\"oxundo-AfterAgent\"]}}")]), Some(0));
        assert_eq!(off("gemini", &[("s.json", "{\"hooksConfig\": {\"disabled\": [\"mine\"]}}")]), None);
        assert_eq!(off("droid", &[("s.json", "{\"hooksDisabled\": true}")]), Some(0));
        for toml in [
            "[features]\nhooks = false # no\n",
            "features.hooks = false\n",
            "a = 1\n[ features ]\nhooks=false",
            "features = { hooks = false }",
            "\"features\".'hooks' = false",
            "[features]\ncodex_hooks = false",
        ] {
            assert_eq!(off("codex", &[("config.toml", toml)]), Some(0), "{toml}");
        }
        for toml in [
            "hooks = false\n",
            "[features]\nhooks = true\n",
            "[features]\nhooks = false\nhooks = true",
            "[x]\nfeatures.hooks = false",
            "note = \"\"\"\n[features]\nhooks = false\n\"\"\"",
        ] {
            assert_eq!(off("codex", &[("config.toml", toml)]), None, "{toml}");
        }
        assert_eq!(
            broken("config.toml", "a = 1\n[features\nhooks = false").map(|why| why.starts_with("line 2")),
            Some(true)
        );
        assert_eq!(broken("config.toml", "[features]\n"), None);
        assert_eq!(broken("settings.json", "{"), None);
    }
}
