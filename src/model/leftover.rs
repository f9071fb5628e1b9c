//! Whether what a turn did to a file is still part of what is uncommitted there. Lines tell: whichever branch HEAD is on,
//! whoever has committed, stashed or edited meanwhile, and however it was done.

use std::collections::HashMap;

/// A file's content at both ends of a change; none where it is not there.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'a> {
    /// Before it.
    pub from: Option<&'a [u8]>,
    /// After it.
    pub to: Option<&'a [u8]>,
}

/// How many more of each line there are after a change than before.
type Lines<'a> = HashMap<&'a [u8], i64>;

impl<'a> Ends<'a> {
    fn lines(self) -> Lines<'a> {
        let mut lines = Lines::new();
        for (content, by) in [(self.from, -1), (self.to, 1)] {
            // git may have its own line ends.
            let content = content.map(|content| content.strip_suffix(b"\n").unwrap_or(content));
            let content = content.into_iter().flat_map(|content| content.split(|byte| *byte == b'\n'));
            content.for_each(|line| *lines.entry(line.strip_suffix(b"\r").unwrap_or(line)).or_default() += by);
        }
        lines.retain(|_, by| *by != 0);
        lines
    }

    /// Whether it made the file, or deleted it.
    fn presence(self) -> Option<bool> {
        (self.from.is_some() != self.to.is_some()).then_some(self.to.is_some())
    }

    /// Whether another change brings back what this one brought: any line of it; or where it brought none, took away all that it took.
    pub fn comes_back_in(self, other: Self) -> bool {
        let (mine, others) = (self.lines(), other.lines());
        let does = |(line, by): (&&[u8], &i64)| others.get(line).is_some_and(|other| other.signum() == by.signum());
        let mut brought = mine.iter().filter(|(line, by)| **by > 0 && tells(line)).peekable();
        if brought.peek().is_some() { brought.any(does) } else { !mine.is_empty() && mine.iter().all(does) }
    }

    /// Whether any of this change is in another one. What only moved lines is in whatever changes the file.
    pub fn is_in(self, other: Self) -> bool {
        if self.from == self.to || other.from == other.to {
            return false;
        }
        if self.presence().is_some() && self.presence() == other.presence() {
            return true;
        }
        let (mine, others) = (self.lines(), other.lines());
        // Braces and blank lines are everybody's, unless there is nothing else.
        let only_such = !mine.keys().any(|line| tells(line));
        let is_there = |(line, by): (&&[u8], &i64)| others.get(line).is_some_and(|other| other.signum() == by.signum());
        mine.is_empty() || mine.iter().filter(|(line, _)| only_such || tells(line)).any(is_there)
    }
}

/// Whether one content may have come of the other, by a copy or under another name: at least half of the longer one, in
/// lines, is in both. That is git's own measure.
pub fn is_like(one: &[u8], other: &[u8]) -> bool {
    let longer = one.len().max(other.len());
    if one.len().min(other.len()) < longer.div_ceil(2) {
        return false;
    }
    let mut lines: HashMap<&[u8], usize> = HashMap::new();
    one.split_inclusive(|byte| *byte == b'\n').for_each(|line| *lines.entry(line).or_default() += 1);
    let mut common = 0;
    for line in other.split_inclusive(|byte| *byte == b'\n') {
        if let Some(left) = lines.get_mut(line).filter(|left| **left > 0) {
            *left -= 1;
            common += line.len();
        }
    }
    common >= longer.div_ceil(2)
}

/// Whether a line has a word in it: braces and blank lines are everybody's.
pub fn tells(line: &[u8]) -> bool {
    line.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends<'a>(from: Option<&'a str>, to: Option<&'a str>) -> Ends<'a> {
        Ends { from: from.map(str::as_bytes), to: to.map(str::as_bytes) }
    }

    #[test]
    fn a_change_is_there_as_long_as_a_line_of_it_is() {
        let turn = ends(Some("one\ntwo\n"), Some("one\nagent\n"));
        for (head, now, wanted) in [
            ("one\ntwo\n", "one\nagent\n", true),
            ("one\ntwo\n", "one\nagent\nuser\n", true),
            ("one\ntwo\n", "one\r\nagent\r\n", true),
            // What it took away is away still.
            ("one\ntwo\n", "one\nuser\n", true),
            // Taken back, or committed, with the user's beside it.
            ("one\ntwo\n", "one\ntwo\nuser\n", false),
            ("one\nagent\n", "one\nagent\nuser\n", false),
            ("one\nagent\n", "user\nagent\n", false),
            ("one\nagent\n", "one\nagent\n", false),
        ] {
            assert_eq!(turn.is_in(ends(Some(head), Some(now))), wanted, "{head:?} {now:?}");
        }
    }

    #[test]
    fn a_file_that_was_made_or_deleted_is_told_by_that() {
        let (made, gone) = (ends(None, Some("")), ends(Some("x\n"), None));
        assert!(made.is_in(ends(None, Some("user\n"))));
        assert!(!made.is_in(ends(Some(""), Some("user\n"))), "it is committed");
        assert!(gone.is_in(ends(Some("y\n"), None)));
        assert!(!gone.is_in(ends(None, Some("user\n"))), "it was deleted in a commit, and made anew");
        assert!(!ends(Some("x"), Some("x")).is_in(ends(Some("x"), Some("y"))), "it was not changed");
    }

    #[test]
    fn lines_that_everybody_writes_tell_nothing() {
        let function = ends(Some("x\n"), Some("x\n\nfn agent() {\n}\n"));
        assert!(!function.is_in(ends(Some("x\n"), Some("x\n\nfn user() {\n}\n"))), "a brace and a blank line");
        assert!(function.is_in(ends(Some("x\n"), Some("x\n\nfn agent() {\n    user\n}\n"))), "its own line");
        let brace = ends(Some("x {\n"), Some("x {\n}\n"));
        assert!(brace.is_in(ends(Some("x {\n"), Some("x {\n}\n// user\n"))), "it did nothing else");
    }

    #[test]
    fn a_copy_is_told_by_half_of_its_lines() {
        for (one, other, wanted) in [
            ("a\nb\n", "a\nb\n", true),
            ("a\nb\n", "b\nc\n", true),
            ("a\nb\nc\n", "c\nd\ne\n", false),
            ("a\na\na\n", "a\nb\nc\n", false),
            ("a\n", "a\nlonger\n", false),
            ("", "", true),
            ("", "a\n", false),
        ] {
            assert_eq!(is_like(one.as_bytes(), other.as_bytes()), wanted, "{one:?} {other:?}");
            assert_eq!(is_like(other.as_bytes(), one.as_bytes()), wanted, "{other:?} {one:?}");
        }
    }

    #[test]
    fn what_only_moves_lines_is_in_any_change() {
        let moved = ends(Some("a\nb\n"), Some("b\na\n"));
        assert!(moved.is_in(ends(Some("a\nb\n"), Some("b\na\nuser\n"))));
        assert!(!moved.is_in(ends(Some("b\na\n"), Some("b\na\n"))));
    }
}
