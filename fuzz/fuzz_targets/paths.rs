//! Paths in records and on terminals: every byte survives a record, no control character is shown,
//! and what is quoted reads back as the same path.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oxundo::internals::{exact, quoted, sanitized, shown};

fuzz_target!(|path: &[u8]| {
    if !path.contains(&0) {
        assert_eq!(exact::decode(&exact::encode(path)).as_deref().map(|path| &path[..]), Some(path));
    }
    for text in [shown(path.into()), sanitized(&String::from_utf8_lossy(path))] {
        assert!(!text.chars().any(char::is_control));
    }
    if std::str::from_utf8(path).is_err() {
        let text = quoted(path.into());
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).expect("it stands in quotes");
        assert_eq!(unquoted(inner.as_bytes()).as_deref(), Some(path));
    }
    if let Ok(text) = std::str::from_utf8(path)
        && let Some(path) = exact::decode(text)
        && std::str::from_utf8(&path).is_err()
    {
        assert_eq!(exact::encode(&path), text.to_lowercase());
    }
});

/// As git reads what it has quoted.
fn unquoted(text: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let (&escape, after) = rest.split_first()?;
        rest = after;
        bytes.push(match escape {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'"' | b'\\' => escape,
            b'0'..=b'3' => {
                let (digits, after) = rest.split_at_checked(2)?;
                rest = after;
                digits.iter().fold(escape - b'0', |value, digit| (value << 3) | (digit - b'0'))
            }
            _ => return None,
        });
    }
    Some(bytes)
}
