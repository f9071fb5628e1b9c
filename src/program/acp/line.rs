//! The lines of the protocol: read whole, taken apart only as far as oxundo has to, and never written anew.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::{BufRead, Result};

/// A longer line goes on as it comes, and nobody looks at it.
pub const LONGEST: usize = 64 << 20;

/// What is in a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// All of a line.
    Line,
    /// The beginning or the middle of one that is too long; the rest follows.
    Part,
    /// The end of such a line.
    Rest,
    /// Nothing: it is over.
    End,
}

/// Reads the next line, or a part of one, into an empty buffer. The last one may have no end.
pub fn read(from: &mut impl BufRead, line: &mut Vec<u8>, last: &Piece, most: usize) -> Result<Piece> {
    line.clear();
    loop {
        let there = match from.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            there => there?,
        };
        if there.is_empty() {
            return Ok(match (line.is_empty(), last) {
                (true, _) => Piece::End,
                (false, Piece::Part) => Piece::Rest,
                (false, _) => Piece::Line,
            });
        }
        let end = there.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let taken = end.unwrap_or(there.len());
        line.extend_from_slice(&there[..taken]);
        from.consume(taken);
        if end.is_some() {
            return Ok(if *last == Piece::Part { Piece::Rest } else { Piece::Line });
        }
        if line.len() >= most {
            return Ok(Piece::Part);
        }
    }
}

/// A message of either side.
#[derive(Deserialize)]
pub struct Message<'a> {
    /// The number or name of a request, and of its answer.
    #[serde(borrow, default, deserialize_with = "given")]
    pub id: Option<&'a RawValue>,
    /// What is asked or told; none in an answer.
    #[serde(borrow, default)]
    pub method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    pub result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    pub error: Option<&'a RawValue>,
}

/// What is there, also where it is null.
fn given<'de: 'a, 'a, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl Message<'_> {
    /// The id, the same for the same however it is written.
    pub fn key(&self) -> Option<String> {
        let id: serde_json::Value = serde_json::from_str(self.id?.get()).ok()?;
        // Who has but one kind of number answers 1.0 with 1.
        let whole = id.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15);
        Some(whole.map_or_else(|| id.to_string(), |number| format!("{number:.0}")))
    }
}

/// The messages of a line: one, or several at once. None of what is no such thing.
pub fn messages(line: &[u8]) -> Vec<Message<'_>> {
    let Ok(text) = std::str::from_utf8(line) else { return Vec::new() };
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text).unwrap_or_default();
    }
    serde_json::from_str(text).ok().into_iter().collect()
}

/// A part of a message, where it is as it is to be.
pub fn read_as<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

#[derive(Deserialize)]
struct Capable<'a> {
    #[serde(borrow, default, rename = "agentCapabilities")]
    able: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Noted<'a> {
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

/// The line of an agent's answer to `initialize`, with one more key in the `_meta` of what it can do. Not a byte else is another.
/// None where there is no place for it.
pub fn with_capability(line: &[u8], key: &str, value: &str) -> Option<Vec<u8>> {
    let [message] = &messages(line)[..] else { return None };
    let result = message.result?;
    let able = read_as::<Capable<'_>>(Some(result))?.able.filter(|able| able.get().starts_with('{'));
    let noted = able.and_then(|able| read_as::<Noted<'_>>(Some(able))?.meta).filter(|meta| meta.get().starts_with('{'));
    let one = format!("{}:{value}", serde_json::Value::from(key));
    let (object, added) = match (able, noted) {
        (_, Some(meta)) => (meta, one),
        (Some(able), None) if !able.get().contains("\"_meta\"") => (able, format!("\"_meta\":{{{one}}}")),
        (None, None) if !result.get().contains("\"agentCapabilities\"") && result.get().starts_with('{') => {
            (result, format!("\"agentCapabilities\":{{\"_meta\":{{{one}}}}}"))
        }
        _ => return None,
    };
    // It is a part of the line: this is where.
    let at = object.get().as_ptr().addr().checked_sub(line.as_ptr().addr())? + 1;
    let is_empty = object.get()[1..].trim_start().starts_with('}');
    let comma: &[u8] = if is_empty { b"" } else { b"," };
    Some([line.get(..at)?, added.as_bytes(), comma, line.get(at..)?].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pieces(text: &str, most: usize) -> Vec<(Piece, String)> {
        // A buffer that is smaller than a line, as a pipe's may be.
        let mut from = std::io::BufReader::with_capacity(3, text.as_bytes());
        let (mut all, mut last, mut line) = (Vec::new(), Piece::Line, Vec::new());
        loop {
            let piece = read(&mut from, &mut line, &last, most).expect("read");
            if piece == Piece::End {
                return all;
            }
            all.push((read_again(&piece), String::from_utf8(line.clone()).expect("text")));
            last = piece;
        }
    }

    fn read_again(piece: &Piece) -> Piece {
        match piece {
            Piece::Line => Piece::Line,
            Piece::Part => Piece::Part,
            Piece::Rest => Piece::Rest,
            Piece::End => Piece::End,
        }
    }

    #[test]
    fn lines_are_read_whole_and_longer_ones_in_parts() {
        let line = |text: &str| (Piece::Line, text.to_owned());
        assert_eq!(pieces("one\n\ntwo", 100), [line("one\n"), line("\n"), line("two")]);
        let long = pieces("one\nlonger than that\nx\n", 6);
        assert_eq!(long.iter().map(|(_, text)| text.as_str()).collect::<String>(), "one\nlonger than that\nx\n");
        assert_eq!(long[1].0, Piece::Part);
        assert_eq!((&long[long.len() - 2].0, &long[long.len() - 1]), (&Piece::Rest, &line("x\n")));
    }

    #[test]
    fn what_is_no_message_is_none() {
        for nonsense in ["", "x", "{", "7", "[]", "[7]", "{\"id\":1,\"id\":2}", "\u{feff}{}", "{\"method\":7}"] {
            assert!(messages(nonsense.as_bytes()).iter().all(|message| message.method.is_none()), "{nonsense}");
        }
        assert!(messages(b"\xff").is_empty());
        let several = messages(br#" [{"id":1,"method":"a"},{"id":"1","result":null}]"#);
        assert_eq!(several.iter().map(Message::key).collect::<Vec<_>>(), [Some("1".into()), Some("\"1\"".into())]);
        let [null] = &messages(br#"{"id":null,"method":"a"}"#)[..] else { panic!("one") };
        assert_eq!(null.key().as_deref(), Some("null"));
    }

    #[test]
    fn one_key_is_added_and_no_other_byte_changes() {
        for (result, wanted) in [
            (r#"{"agentCapabilities":{}}"#, r#"{"agentCapabilities":{"_meta":{"o":1}}}"#),
            (
                r#"{ "agentCapabilities" : { "a" : 1.50 } }"#,
                r#"{ "agentCapabilities" : {"_meta":{"o":1}, "a" : 1.50 } }"#,
            ),
            (r#"{"agentCapabilities":{"x":{},"_meta":{ }}}"#, r#"{"agentCapabilities":{"x":{},"_meta":{"o":1 }}}"#),
            (r#"{"agentCapabilities":{"_meta":{"z":[]}}}"#, r#"{"agentCapabilities":{"_meta":{"o":1,"z":[]}}}"#),
            (r#"{"protocolVersion":1}"#, r#"{"agentCapabilities":{"_meta":{"o":1}},"protocolVersion":1}"#),
        ] {
            let whole = |result: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{result}}}\r\n");
            let made = with_capability(whole(result).as_bytes(), "o", "1").expect("there is a place");
            assert_eq!(String::from_utf8(made.clone()).expect("text"), whole(wanted));
            let read: serde_json::Value = serde_json::from_slice(&made).expect("JSON");
            assert_eq!(read["result"]["agentCapabilities"]["_meta"]["o"], json!(1));
        }
        for none in [r#"{"agentCapabilities":null}"#, r#"{"agentCapabilities":{"_meta":7}}"#, "[]", "null"] {
            let line = format!("{{\"id\":0,\"result\":{none}}}");
            assert_eq!(with_capability(line.as_bytes(), "o", "1"), None, "{none}");
        }
    }
}
