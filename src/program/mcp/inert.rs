//! What a client is given of what others wrote: text, and nothing that a terminal or a reader takes for more.

use crate::model::bytes::deceives;
use serde_json::Value;

/// Whether a character does something instead of being seen: controls, and what turns the direction of writing.
fn acts(c: char) -> bool {
    deceives(c) && c != '\n' && c != '\t'
}

/// A word without such characters.
pub fn word(text: &str) -> String {
    text.chars().map(|c| if acts(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// A whole answer without them.
pub fn value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(if text.chars().any(acts) { word(&text) } else { text }),
        Value::Array(all) => all.into_iter().map(self::value).collect(),
        Value::Object(all) => all.into_iter().map(|(key, one)| (word(&key), self::value(one))).collect(),
        other => other,
    }
}

/// The beginning of a text, at most so many bytes; and whether that is all of it.
pub fn beginning(text: &str, most: usize) -> (&str, bool) {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    (&text[..end], end == text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_that_acts_is_left_in_an_answer() {
        let told = value(json!({"a\u{1b}": ["\u{1b}[2Jx", {"b": "one\ntwo\t\u{202e}three\u{9b}"}], "n": 1}));
        assert_eq!(told, json!({"a\u{fffd}": ["\u{fffd}[2Jx", {"b": "one\ntwo\t\u{fffd}three\u{fffd}"}], "n": 1}));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(beginning("aé", 2), ("a", false));
        assert_eq!(beginning("aé", 3), ("aé", true));
    }
}
