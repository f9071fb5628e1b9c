//! Text in UTF-16, which is text for git where an attribute says so, and which it merges by lines as UTF-8.

use gix::bstr::{BStr, ByteSlice};

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wide {
    is_little: bool,
    has_mark: bool,
}

const MARK: char = '\u{feff}';

impl Wide {
    /// How bytes are written that are all of this encoding, as attributes name it, and what they say; none where they are not, or are
    /// of any other encoding.
    pub fn read(encoding: &BStr, bytes: &[u8]) -> Option<(Self, Vec<u8>)> {
        let name = encoding.to_str().ok()?.to_ascii_uppercase().replace('_', "-");
        let (has_mark, is_little) = match (name.as_str(), bytes.get(..2)) {
            ("UTF-16" | "UTF-16LE-BOM", Some([0xff, 0xfe])) => (true, true),
            ("UTF-16" | "UTF-16BE-BOM", Some([0xfe, 0xff])) => (true, false),
            ("UTF-16LE", _) => (false, true),
            ("UTF-16BE", _) => (false, false),
            _ => return None,
        };
        let pairs = bytes.get(usize::from(has_mark) * 2..)?.chunks(2);
        let units: Option<Vec<u16>> = pairs
            .map(|pair| {
                let pair = pair.try_into().ok()?;
                Some(if is_little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) })
            })
            .collect();
        let text = String::from_utf16(&units?).ok()?;
        Some((Self { is_little, has_mark }, text.into_bytes()))
    }

    /// The same way, what this says; none where that is no UTF-8.
    pub fn write(self, text: &[u8]) -> Option<Vec<u8>> {
        let mark = self.has_mark.then_some(MARK);
        let text: String = mark.into_iter().chain(std::str::from_utf8(text).ok()?.chars()).collect();
        let bytes = |unit: u16| if self.is_little { unit.to_le_bytes() } else { unit.to_be_bytes() };
        Some(text.encode_utf16().flat_map(bytes).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_as_it_was() {
        let of = |units: &[u16], is_little: bool| -> Vec<u8> {
            units.iter().flat_map(|unit| if is_little { unit.to_le_bytes() } else { unit.to_be_bytes() }).collect()
        };
        let (text, units) = ("a\u{1f600}\n", [0x61, 0xd83d, 0xde00, 0x0a]);
        let marked = [&[0xfeff][..], &units].concat();
        for (encoding, bytes) in [
            ("UTF-16", of(&marked, true)),
            ("utf_16", of(&marked, false)),
            ("UTF-16LE-BOM", of(&marked, true)),
            ("UTF-16LE", of(&units, true)),
            ("UTF-16BE", of(&units, false)),
        ] {
            let (wide, read) = Wide::read(encoding.into(), &bytes).expect(encoding);
            assert_eq!(read, text.as_bytes(), "{encoding}");
            assert_eq!(wide.write(&read), Some(bytes), "{encoding}");
        }
    }

    #[test]
    fn what_is_of_another_encoding_is_none() {
        for (encoding, bytes) in [
            ("UTF-16", &b"a\0"[..]),
            ("UTF-16", b""),
            ("UTF-16LE", b"a"),
            ("UTF-16LE", b"\0\xd8"),
            ("UTF-8", b"a"),
            ("UTF-32", b"\xff\xfe\0\0"),
        ] {
            assert_eq!(Wide::read(encoding.into(), bytes), None, "{encoding} {bytes:?}");
        }
    }
}
