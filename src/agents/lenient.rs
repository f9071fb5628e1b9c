//! Lines of JSON as agents write and read them, which is more than `serde_json` takes: half of a character that was cut in two, a
//! number beyond all bounds, brackets however deep, bytes that are no text. What a line lacks to be whole is never made up.

use serde_json::{Map, Value};

/// So deep are values kept; below that they are only passed over.
const DEPTH: usize = 8;

/// The value of a line; none where that is not whole. What is too deep is null in it, and so is a number beyond bounds.
pub fn parse(text: &[u8]) -> Option<Value> {
    if let Ok(value) = serde_json::from_slice(text) {
        return Some(value);
    }
    let mut reader = Reader { text: text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text) };
    let value = reader.value(DEPTH)?;
    reader.peek().is_none().then_some(value)
}

struct Reader<'a> {
    text: &'a [u8],
}

impl<'a> Reader<'a> {
    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        self.text = self.text.trim_ascii_start();
        self.text.first().copied()
    }

    fn take(&mut self) -> Option<u8> {
        let (first, rest) = self.text.split_first()?;
        self.text = rest;
        Some(*first)
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.take()).flatten().map(drop)
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        match self.peek()? {
            b'"' => Some(Value::String(text_of(self.string()?))),
            b'{' | b'[' if depth == 0 => self.pass_over(),
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        let mut object = Map::new();
        self.expect(b'{')?;
        if self.expect(b'}').is_some() {
            return Some(Value::Object(object));
        }
        loop {
            self.peek()?;
            let key = text_of(self.string()?);
            self.expect(b':')?;
            object.insert(key, self.value(depth - 1)?);
            if self.expect(b',').is_none() {
                return self.expect(b'}').map(|()| Value::Object(object));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        let mut array = Vec::new();
        self.expect(b'[')?;
        if self.expect(b']').is_some() {
            return Some(Value::Array(array));
        }
        loop {
            array.push(self.value(depth - 1)?);
            if self.expect(b',').is_none() {
                return self.expect(b']').map(|()| Value::Array(array));
            }
        }
    }

    /// A number, or a name as `true`.
    fn word(&mut self) -> Option<Value> {
        let is_its = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let length = self.text.iter().take_while(|byte| is_its(byte)).count();
        let (word, rest) = self.text.split_at(length);
        self.text = rest;
        (length > 0).then(|| serde_json::from_slice(word).unwrap_or_default())
    }

    /// What is between brackets, without a call for each of them.
    fn pass_over(&mut self) -> Option<Value> {
        let mut open = Vec::new();
        loop {
            match self.peek()? {
                b'"' => drop(self.string()?),
                bracket @ (b'{' | b'[') => {
                    open.push(bracket + 2);
                    self.take()?;
                }
                bracket @ (b'}' | b']') => {
                    self.take()?;
                    if open.pop()? != bracket {
                        return None;
                    }
                }
                b',' | b':' => drop(self.take()?),
                _ => drop(self.word()?),
            }
            if open.is_empty() {
                return Some(Value::Null);
            }
        }
    }

    /// What is between quotation marks, as it is written.
    fn string(&mut self) -> Option<&'a [u8]> {
        let inner = self.text.strip_prefix(b"\"")?;
        let mut at = 0;
        loop {
            match inner.get(at)? {
                b'"' => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.text = &inner[at + 1..];
        Some(&inner[..at])
    }
}

/// The text that is written so. What is no character is U+FFFD.
fn text_of(written: &[u8]) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(written.len()), written);
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let Some((escaped, after)) = rest.split_first() else { break };
        rest = after;
        let character = match escaped {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => escaped_character(&mut rest),
            other => {
                bytes.push(*other);
                continue;
            }
        };
        bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The character after `\u`, which may be written in two halves.
fn escaped_character(rest: &mut &[u8]) -> char {
    let unit = |text: &[u8]| u16::from_str_radix(std::str::from_utf8(text.get(..4)?).ok()?, 16).ok();
    let Some(first) = unit(rest) else { return char::REPLACEMENT_CHARACTER };
    *rest = &rest[4..];
    let second = rest.strip_prefix(b"\\u").and_then(unit);
    if let Some(Ok(whole)) = second.and_then(|second| char::decode_utf16([first, second]).next())
        && whole.len_utf16() == 2
    {
        *rest = &rest[6..];
        return whole;
    }
    char::from_u32(first.into()).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// What is read of a line that `serde_json` does not take.
    fn lenient(text: &[u8]) -> Option<Value> {
        assert!(serde_json::from_slice::<Value>(text).is_err(), "{}", String::from_utf8_lossy(text));
        parse(text)
    }

    #[test]
    fn what_agents_read_is_read() {
        let wanted = json!({"a": "x\u{fffd}", "b": "y"});
        for text in [
            &b"{\"a\":\"x\\ud83d\",\"b\":\"y\"}\n"[..],
            b"{\"a\":\"x\xff\",\"b\":\"y\"}",
            b"\xef\xbb\xbf{\"a\":\"x\\udca9\" , \"b\":\"y\"}\r\n",
        ] {
            assert_eq!(lenient(text), Some(wanted.clone()), "{}", String::from_utf8_lossy(text));
        }
        let mixed = br#"{"a":"\ud83d\ude00\ud83d\u0041\ud83d\n\"\\\/","n":1e400,"b":[true,-1,{}, [ ]],"o":{ }}"#;
        let wanted = json!({"a": "😀\u{fffd}A\u{fffd}\n\"\\/", "n": null, "b": [true, -1, {}, []], "o": {}});
        assert_eq!(lenient(mixed), Some(wanted));
        assert_eq!(lenient(b"{\"a\":\"\x01\"}"), Some(json!({"a": "\u{1}"})));
        let deep = 300_000;
        let line = format!("{{\"q\":{}{{\"]\":\"\\\"]\"}}{},\"a\":\"b\"}}", "[".repeat(deep), "]".repeat(deep));
        assert_eq!(lenient(line.as_bytes()).expect("it is whole")["a"], "b");
    }

    #[test]
    fn what_is_not_whole_is_not_read() {
        let deep = "[".repeat(200);
        for text in [
            "",
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":\"b",
            "{\"a\":\"b\\",
            "{\"a\":\"b\"",
            "{\"a\":\"b\",",
            "{\"a\":\"b\",}",
            "{\"a\" \"b\"}",
            "[1 2]",
            "[1,",
            "{\"type\":\"user\",\"con{\"id\":\"torn\"}",
            "{\"a\":{\"id\":\"torn\"}",
            "{\"a\":1}{\"b\":2}",
            "\0\0{\"a\":1}",
            "{\"a\":1}x",
            "{a:1}",
            "\\",
            "{\"a\":@}",
            &deep,
            &format!("{deep}}}"),
            &format!("{deep}\""),
            &format!("{deep}@"),
        ] {
            assert_eq!(lenient(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_not(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse(&text);
        }

        #[test]
        fn whatever_is_cut_is_not_read(text in "[a-z\"\\\\\\[{}\\]:,\u{e9}]{0,20}", keep in 1usize..60) {
            let mut line = json!({"a": text, "b": [{"c": text}]}).to_string().into_bytes();
            let whole = line.len();
            line.splice(1..1, *b"\"q\":\"\\ud83d\",");
            prop_assert_eq!(&parse(&line).expect("it is whole")["a"], &json!(text));
            line.truncate(keep.min(whole));
            prop_assert_eq!(parse(&line), None);
        }
    }
}
