//! Lines of files: whose git says that they are, and which of them are the same in two versions.

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::model::bytes::{sanitized, unquoted_by_git};
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::diff::blob::{Algorithm, Diff, InternedInput};
use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// A line of a file, as `git blame` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlamedLine {
    /// Its number in the worktree, from 1.
    pub line: usize,
    /// The commit that it is from; none where it is not committed.
    pub commit: Option<ObjectId>,
    /// Its number there.
    pub original: usize,
    /// The path there.
    pub path: BString,
    /// The path in what came before that.
    pub previous: Option<BString>,
    /// Who wrote the commit.
    pub author: String,
    /// When, in seconds since 1970.
    pub time: i64,
    /// When the commit was made, likewise: later than it was written, where somebody has made it anew.
    pub committed: i64,
    /// The first line of its message.
    pub subject: String,
}

impl Objects<'_> {
    /// Whose the lines of a file in the worktree are that HEAD has, in these ranges, or all.
    pub fn blame(&self, path: &BStr, ranges: &[String]) -> Result<Vec<BlamedLine>> {
        let mut args: Vec<OsString> = ["blame", "--line-porcelain"].map(Into::into).into();
        args.extend(ranges.iter().map(|range| format!("-L{range}").into()));
        args.extend(["--".into(), OsString::from_vec(path.to_vec())]);
        let told = self
            .repo
            .git(args)
            .directory(self.repo.top())
            .run(b"")
            .map_err(|error| if ranges.is_empty() { error } else { no_range(ranges, &gits_reason(&error)) })?;
        parsed(&told, path)
    }
}

/// What git says is wrong with a range: where it shows how it is used, it has not understood it.
fn gits_reason(error: &anyhow::Error) -> String {
    let told = format!("{:#}", error.root_cause());
    let why = told.strip_prefix("git blame: ").unwrap_or(&told);
    let why = why.strip_prefix("fatal: ").unwrap_or(why);
    if told.contains("usage: git") { "git does not understand it".to_owned() } else { why.to_owned() }
}

/// The refusal of a range of lines that is none.
pub fn no_range(ranges: &[String], why: &str) -> anyhow::Error {
    let given = sanitized(&ranges.join(" "));
    Refusal::new(Code::Usage, format!("'{given}' is no range of lines here: {why}"))
        .hint("run 'oxundo blame -h' to see how ranges are given")
        .into()
}

fn parsed(told: &[u8], path: &BStr) -> Result<Vec<BlamedLine>> {
    let (mut lines, mut now) = (Vec::new(), None::<BlamedLine>);
    for line in told.lines() {
        if let Some(blamed) = &mut now {
            if line.starts_with(b"\t") {
                lines.extend(now.take());
                continue;
            }
            let (key, value) = line.split_once_str(" ").unwrap_or((line, b""));
            let text = value.to_str_lossy();
            match key {
                b"author" => blamed.author = text.into_owned(),
                b"committer-time" => blamed.committed = text.parse().unwrap_or_default(),
                b"author-time" => blamed.time = text.parse().unwrap_or_default(),
                b"summary" => blamed.subject = text.into_owned(),
                b"previous" => {
                    let name = text.split_once(' ').map(|(_, name)| name);
                    blamed.previous = name.map(|name| unquoted_by_git(name).unwrap_or_else(|| name.into()));
                }
                b"filename" => blamed.path = unquoted_by_git(&text).unwrap_or_else(|| value.into()),
                _ => {}
            }
            continue;
        }
        let mut words = line.split_str(" ");
        let mut number = || words.next().and_then(|word| word.to_str().ok());
        let id =
            number().and_then(|id| ObjectId::from_hex(id.as_bytes()).ok()).context("read what git blame prints")?;
        let [original, line] = [number(), number()].map(|word| word.and_then(|word| word.parse().ok()).unwrap_or(0));
        let commit = Some(id).filter(|id| !id.is_null());
        let (author, subject) = (String::new(), String::new());
        let path = path.to_owned();
        now = Some(BlamedLine { line, commit, original, path, previous: None, author, time: 0, committed: 0, subject });
    }
    Ok(lines)
}

/// For each line of a version, from 0, the line of an older one that it is.
pub fn carried(old: &[u8], new: &[u8]) -> Vec<Option<usize>> {
    let count = new.lines().count();
    if old == new {
        return (0..count).map(Some).collect();
    }
    let input = InternedInput::new(old, new);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let mut lines = vec![None; count];
    let (mut from, mut to) = (0, 0);
    let ends = (u32::try_from(old.lines().count()), u32::try_from(count));
    let end = (ends.0.unwrap_or(u32::MAX), ends.1.unwrap_or(u32::MAX));
    let hunks = diff.hunks().map(|hunk| (hunk.before, hunk.after));
    for (before, after) in hunks.chain([(end.0..end.0, end.1..end.1)]) {
        while to < after.start && from < before.start {
            if let Some(line) = lines.get_mut(to as usize) {
                *line = Some(from as usize);
            }
            (from, to) = (from + 1, to + 1);
        }
        (from, to) = (before.end, after.end);
    }
    lines
}

/// Whether two versions of a file took away a line that both did, or have a new one that both have.
pub fn changed_alike(before: &[u8], one: &[u8], other: &[u8]) -> bool {
    let [(gone, new), (others_gone, others_new)] = [one, other].map(|after| {
        let from = carried(before, after);
        let kept: HashSet<usize> = from.iter().flatten().copied().collect();
        let gone: HashSet<usize> = (0..before.lines().count()).filter(|line| !kept.contains(line)).collect();
        let new = after.lines().zip(from).filter(|(line, from)| from.is_none() && !line.trim().is_empty());
        (gone, new.map(|(line, _)| line).collect::<HashSet<&[u8]>>())
    });
    !gone.is_disjoint(&others_gone) || !new.is_disjoint(&others_new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_followed_over_what_came_and_went_around_it() {
        let all = |old: &str, new: &str| carried(old.as_bytes(), new.as_bytes());
        assert_eq!(all("a\nb\nc\n", "a\nb\nc\n"), [Some(0), Some(1), Some(2)]);
        assert_eq!(all("a\nb\nc\n", "x\nb\nc\ny\n"), [None, Some(1), Some(2), None]);
        assert_eq!(all("a\nb\nc\n", "a\nc"), [Some(0), None], "a last line without its end is another one");
        assert_eq!(all("", "a\n"), [None]);
        assert_eq!(all("a\n", ""), []);
    }
    #[test]
    fn two_changes_are_alike_by_any_line_of_both() {
        let alike = |one: &str, other: &str| changed_alike(b"a\nb\nc\n", one.as_bytes(), other.as_bytes());
        assert!(alike("a\nB\nc\n", "a\nB\nC\n"), "one has more");
        assert!(alike("a\nB\nc\n", "a\nBB\nc\n"), "the same line is another now");
        assert!(alike("a\nb\nc\nd\n", "d\na\nb\nc\n"), "the same line is new");
        assert!(!alike("A\nb\nc\n", "a\nb\nC\n"));
        assert!(!alike("a\nb\nc\n\nd\n", "\na\nb\nc\n"), "an empty line is nobody's");
    }
}
