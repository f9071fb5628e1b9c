//! Paths are bytes. This is how they are shown to people, given in JSON, and
//! kept in oxundo's own records, without ever losing one.

use gix::bstr::{BStr, BString, ByteSlice};

/// A path as git prints it: as it is, or C-quoted where it is not UTF-8 or begins with a quotation mark.
///
/// # Examples
///
/// ```
/// use oxundo::internals::quoted;
/// assert_eq!(quoted(b"caf\xc3\xa9".as_slice().into()), "café");
/// assert_eq!(quoted(b"caf\xe9".as_slice().into()), r#""caf\351""#);
/// ```
pub fn quoted(path: &BStr) -> String {
    match path.to_str() {
        // A mark in front is what shows that a path is quoted.
        Ok(text) if !text.starts_with('"') => text.to_owned(),
        _ => c_quoted(path),
    }
}

/// The path that is not UTF-8, or begins with a quotation mark, and that [`quoted`] gives this text for; none where the text is the path.
pub fn unquoted(text: &str) -> Option<BString> {
    unquoted_by_git(text).filter(|path| quoted(path.as_bstr()) == text)
}

/// The path that git prints in these quotes: git quotes more than [`quoted`] does. None where it is in none.
pub fn unquoted_by_git(text: &str) -> Option<BString> {
    let mut rest = text.strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    let mut path = Vec::new();
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            (b'\\', [byte @ (b'"' | b'\\'), after @ ..]) => (*byte, after),
            (b'\\', [b'n', after @ ..]) => (b'\n', after),
            (b'\\', [b't', after @ ..]) => (b'\t', after),
            (b'\\', [b'r', after @ ..]) => (b'\r', after),
            (b'\\', [b'a', after @ ..]) => (7, after),
            (b'\\', [b'b', after @ ..]) => (8, after),
            (b'\\', [b'v', after @ ..]) => (11, after),
            (b'\\', [b'f', after @ ..]) => (12, after),
            (b'\\', digits) => {
                let (digits, after) = digits.split_at_checked(3)?;
                (u8::from_str_radix(digits.to_str().ok()?, 8).ok()?, after)
            }
            (byte, after) => (byte, after),
        };
        path.push(byte);
        rest = after;
    }
    Some(path.into())
}

/// A path fit for a terminal: C-quoted where it holds control characters or is not UTF-8.
pub fn shown(path: &BStr) -> String {
    match path.to_str() {
        Ok(text) if !text.starts_with('"') && !text.chars().any(deceives) => text.to_owned(),
        _ => c_quoted(path),
    }
}

/// The first ones of these paths within a sentence, and how many more there are.
pub fn first_in_quotes(paths: &[&BString], most: usize) -> String {
    let named: Vec<String> = paths.iter().take(most).map(|path| in_quotes(path.as_bstr())).collect();
    let more = if paths.len() > most { format!(" and {} more", paths.len() - most) } else { String::new() };
    format!("{}{more}", named.join(", "))
}

/// A path within a sentence, in quotes: its own where it has some.
pub fn in_quotes(path: &BStr) -> String {
    match shown(path) {
        text if text.starts_with('"') => text,
        text => format!("'{text}'"),
    }
}

/// Text that someone else wrote, with its control characters made visible, and what turns the direction of a line.
pub fn sanitized(text: &str) -> String {
    text.chars().map(|c| if deceives(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Whether a character does something to a terminal, or shows what follows it in another order.
pub fn deceives(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A path of the worktree as a pathspec that takes it alone, wherever git is called, as a shell's command line has that.
pub fn pathspec_word(path: &BString) -> String {
    // What begins otherwise may be a sign to git.
    let begins = path.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'.' || !byte.is_ascii());
    let is_plain = begins && !path.iter().any(|byte| b"*?[\\".contains(byte));
    let magic: &[u8] = if is_plain { b":/" } else { b":(top,literal)" };
    shell_word([magic, path.as_slice()].concat())
}

/// A word as a shell's command line has it, in quotes where it needs them. What a terminal cannot be shown, what is not UTF-8,
/// and what would end the quotes around the line is written so that any shell reads the very bytes.
pub fn shell_word(word: impl AsRef<[u8]>) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:@%+,=~^".contains(byte);
    let word = word.as_ref();
    match word.to_str() {
        Ok(text) if !word.is_empty() && !text.starts_with('~') && word.iter().all(is_plain) => text.to_owned(),
        Ok(text) if !text.contains(|c| deceives(c) || c == '`') => format!("'{}'", text.replace('\'', "'\\''")),
        _ => {
            // In front, '-' is that of an option.
            let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b" _./:@+,=~^-".contains(&byte);
            let escaped = |(at, byte): (usize, &u8)| match byte {
                b'-' if at == 0 => "\\055".to_owned(),
                byte if is_safe(*byte) => char::from(*byte).to_string(),
                byte => format!("\\{byte:03o}"),
            };
            let escaped: String = word.iter().enumerate().map(escaped).collect();
            // Line breaks at its end get lost on their way from another command; only some shells have a way for these.
            if word.ends_with(b"\n") {
                return format!("$'{escaped}'");
            }
            format!("\"$(printf '{}')\"", escaped.replace("\\045", "%%"))
        }
    }
}

/// A line to type within a sentence.
pub fn quoted_line(line: &str) -> String {
    if line.contains('\'') { format!("`{line}`") } else { format!("'{line}'") }
}

/// With what a line to type begins.
const PROGRAMS: [&str; 10] = ["git", "oxundo", "rm", "mv", "cd", "chmod", "chattr", "mkdir", "unset", "export"];

/// A sentence with its lines to type as [`quoted_line`] has them, where some are in single quotes and have such words.
pub fn with_quoted_lines(text: impl Into<String>) -> String {
    let text = text.into();
    let begins = |at: usize| {
        PROGRAMS.iter().any(|program| text[at + 1..].strip_prefix(program).is_some_and(|rest| rest.starts_with(' ')))
    };
    let (mut told, mut from) = (String::new(), 0);
    while let Some(at) = text[from..].match_indices('\'').map(|(at, _)| from + at).find(|at| begins(*at)) {
        let Some(end) = end_of_line(&text[at + 1..]).map(|end| at + 1 + end) else { break };
        told.push_str(&text[from..at]);
        told.push_str(&quoted_line(&text[at + 1..end]));
        from = end + 1;
    }
    told + &text[from..]
}

/// Where the quote is that ends a line: one that begins a word, or follows an escaped one, is of a word of the line, as
/// [`shell_word`] has them.
fn end_of_line(line: &str) -> Option<usize> {
    let (mut begins_word, mut is_open, mut is_escaped) = (true, None, false);
    for (at, c) in line.char_indices() {
        match (c, is_open) {
            _ if is_escaped => (is_escaped, begins_word) = (false, is_open.is_none()),
            ('\\', None | Some('$')) => is_escaped = true,
            ('\'', Some(_)) => (is_open, begins_word) = (None, false),
            ('\'', None) if begins_word => is_open = Some('\''),
            ('\'', None) if line[..at].ends_with('$') => is_open = Some('$'),
            ('\'', None) => return Some(at),
            (_, None) => begins_word = matches!(c, ' ' | '='),
            _ => {}
        }
    }
    None
}

/// The hint to type the same line with one word for another.
pub fn instead(old: impl AsRef<[u8]>, new: impl AsRef<[u8]>) -> String {
    format!("give {} instead of {}", shell_word(new), shell_word(old))
}

/// A number of bytes as people say it.
pub fn size(bytes: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let (mut tenths, mut unit) = (bytes.saturating_mul(10), 0);
    while tenths >= 10_240 && unit + 1 < units.len() {
        tenths /= 1024;
        unit += 1;
    }
    if bytes == 1 {
        "1 byte".to_owned()
    } else if unit == 0 {
        format!("{bytes} bytes")
    } else {
        format!("{}.{} {}", tenths / 10, tenths % 10, units[unit])
    }
}

fn c_quoted(path: &BStr) -> String {
    let mut out = String::from("\"");
    for &byte in path.iter() {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            0x20..=0x7e => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out.push('"');
    out
}

/// Serialises a path so that every byte survives JSON: UTF-8 as it is, any other byte as a
/// NUL, which no path can hold, and two hex digits.
pub mod exact {
    use super::{BString, ByteSlice};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// The string that stands for `path`.
    pub fn encode(path: &[u8]) -> String {
        match path.to_str() {
            Ok(text) => text.to_owned(),
            Err(_) => path.iter().fold(String::from("\0"), |mut out, byte| {
                out.push_str(&format!("{byte:02x}"));
                out
            }),
        }
    }

    /// The path that `text` stands for, or `None` when it was not written by [`encode`].
    pub fn decode(text: &str) -> Option<BString> {
        let Some(hex) = text.strip_prefix('\0') else {
            return Some(text.into());
        };
        let digits: Vec<u8> =
            hex.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect::<Option<_>>()?;
        let (pairs, rest) = digits.as_chunks::<2>();
        rest.is_empty().then(|| pairs.iter().map(|[hi, lo]| hi << 4 | lo).collect::<Vec<u8>>().into())
    }

    /// For `#[serde(with)]`.
    pub fn serialize<S: Serializer>(path: &BString, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&encode(path))
    }

    /// For `#[serde(with)]`.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BString, D::Error> {
        decode(&String::deserialize(from)?).ok_or_else(|| D::Error::custom("not a path"))
    }
}

/// Names of refs and texts of reflogs, as strings in which no byte is lost: a byte that is not UTF-8 is a NUL, which
/// none of them can hold, and its two hex digits.
pub mod lossless {
    /// The text that stands for these bytes.
    pub fn encode(bytes: &[u8]) -> String {
        bytes.utf8_chunks().fold(String::new(), |text, chunk| {
            chunk.invalid().iter().fold(text + chunk.valid(), |text, byte| text + &format!("\0{byte:02x}"))
        })
    }

    /// The bytes that this text stands for. What [`encode`] would not write stays as it is, and git refuses it.
    pub fn decode(text: &str) -> Vec<u8> {
        let mut parts = text.split('\0');
        let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
        for part in parts {
            match part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|byte| !byte.is_ascii()) {
                Some(byte) => {
                    bytes.push(byte);
                    bytes.extend_from_slice(&part.as_bytes()[2..]);
                }
                None => bytes.extend([b"\0", part.as_bytes()].concat()),
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_quotes_of_its_own_is_in_others() {
        let told = [
            ("run 'git switch main' first, or 'oxundo log'", "run 'git switch main' first, or 'oxundo log'"),
            ("'a b' is no branch: run 'git switch 'a b'' first", "'a b' is no branch: run `git switch 'a b'` first"),
            (r"run 'git switch 'q'\''8'', or 'git log'", r"run `git switch 'q'\''8'`, or 'git log'"),
            (r"run 'git stash push -- ':/it'\''s a.txt'' or", r"run `git stash push -- ':/it'\''s a.txt'` or"),
            (r"run 'oxundo show $'a\'\001'' to see", r"run `oxundo show $'a\'\001'` to see"),
            (r#"run 'git show "$(printf 'a \001')"' to see"#, r#"run `git show "$(printf 'a \001')"` to see"#),
            ("run 'oxundo x --file='a b' c': it", "run `oxundo x --file='a b' c`: it"),
            ("run `git switch 'a b'` first", "run `git switch 'a b'` first"),
            ("'git is quoted", "'git is quoted"),
        ];
        for (text, expected) in told {
            assert_eq!(with_quoted_lines(text), expected);
        }
    }

    #[test]
    fn a_shell_reads_the_very_bytes_of_a_word() {
        let words: [&[u8]; 15] = [
            b"plain-1",
            b"",
            b"a b",
            b"it's",
            b"~home",
            b"a=b",
            b"$x`y`",
            b"n\nl",
            b"\xff\xfe",
            b"-n\xff %s 100% \\n",
            b"it`s",
            b"a!b\"c\" \xff $HOME",
            b"\x1b[31m'\\",
            "\u{e9}\u{9b}".as_bytes(),
            "a\u{202e}txt.sh".as_bytes(),
        ];
        for word in words {
            let line = format!("printf %s {}", shell_word(word));
            for shell in ["sh", "bash"] {
                let read = std::process::Command::new(shell).args(["-c", &line]).output().expect("run a shell");
                assert_eq!(read.stdout, word, "{line}");
            }
            assert!(!line.contains('`'), "{line}");
            assert!(!line.contains(deceives) && sanitized(&line) == line, "{line:?}");
        }
        assert_eq!(shell_word("src/a.rs"), "src/a.rs");
        assert_eq!(
            sanitized("\u{5d0}\u{2066}a\u{1b}"),
            "\u{5d0}\u{fffd}a\u{fffd}",
            "a letter that is read from the right stays"
        );
    }

    #[test]
    fn every_path_survives_its_record() {
        for path in [b"a b".as_slice(), b"\xff\xfe", b"caf\xe9/\n", "目录".as_bytes(), b""] {
            assert_eq!(exact::decode(&exact::encode(path)), Some(BString::from(path)));
        }
        assert_eq!(exact::decode("\0f"), None, "half a byte is no path");
        assert_eq!(exact::decode("\0zz"), None, "hex only");
    }

    #[test]
    fn every_name_of_a_ref_survives_its_record() {
        for name in [b"refs/heads/main".as_slice(), b"refs/heads/caf\xe9/\xffb", b"\xc3", "目录".as_bytes(), b""] {
            assert_eq!(lossless::decode(&lossless::encode(name)), name);
        }
        assert_eq!(lossless::encode(b"refs/heads/caf\xe9"), "refs/heads/caf\0e9", "what can be read stays so");
        for forged in ["a\x002fb", "a\0", "a\0zz", "a\0+f", "\0é"] {
            assert_eq!(lossless::decode(forged), forged.as_bytes(), "nothing else is made of it");
        }
    }

    #[test]
    fn what_is_quoted_can_be_read_back() {
        for path in [b"\xff\xfe".as_slice(), b"caf\xe9/\n\t\r\"\\\x01", b"\xe9", b"\"caf\\351\"", b"\""] {
            assert_eq!(unquoted(&quoted(path.as_bstr())), Some(BString::from(path)));
        }
        for plain in ["a b", "\"", "\"a\"", "\"\\351", "\"\\9\"", "\"\\+51\\351\"", "\"\\141\\351\"", "caf\u{e9}"] {
            assert_eq!(unquoted(plain), None, "{plain}");
        }
    }

    #[test]
    fn control_characters_never_reach_a_terminal() {
        assert_eq!(shown(b"a\x1b[2J".as_bstr()), r#""a\033[2J""#);
        assert_eq!(shown(b"plain name".as_bstr()), "plain name");
        assert_eq!(in_quotes(b"plain name".as_bstr()), "'plain name'");
        assert_eq!(in_quotes(b"caf\xe9".as_bstr()), r#""caf\351""#);
        assert_eq!(sanitized("a\x1b[31m"), "a\u{fffd}[31m");
    }
}
