//! What a formatter has made of lines that calls had just written, an editor's as it saves or one that a hook runs: nothing but blanks is
//! another, and it is no edit of the user's.

use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::merge::hunks;
use crate::model::checkpoint::{Checkpoint, FileState, Kind};
use anyhow::Result;
use gix::bstr::ByteSlice;
use std::cell::LazyCell;
use std::ops::Range;

impl Checkpoints<'_> {
    /// The state that calls left, with what has been made of their lines by the next one that differs by blanks alone. `base` is how all
    /// was before them.
    pub fn with_formatted(&self, base: &Checkpoint, left: Checkpoint, next: &Checkpoint) -> Result<Checkpoint> {
        let mut formatted = Vec::new();
        // A file that calls moved is not theirs by that.
        let moved = LazyCell::new(|| self.surely_came_from(&self.file_changes(base, &left)?));
        for (path, change) in self.file_changes(&left, next)? {
            let (Some(was), Some(is)) = (change.from, change.to) else { continue };
            if [was.kind, is.kind].contains(&Kind::Symlink) {
                continue;
            }
            let mut before = self.captured_file(base, path.as_bstr())?;
            if before.is_none()
                && let Some(old) = moved.as_ref().ok().and_then(|moved| moved.get(&path))
            {
                before = self.captured_file(base, old.as_bstr())?;
            }
            if before == Some(was) {
                continue;
            }
            let content = |file: Option<FileState>| file.map_or(Ok(Some(Vec::new())), |file| self.content_of(file.id));
            let (Some(before), Some(was_content), Some(is_content)) =
                (content(before)?, content(Some(was))?, content(Some(is))?)
            else {
                continue;
            };
            if let Some(made) = with_blanks(&before, &was_content, &is_content) {
                let id = self.repo.gix.write_blob(&made)?.detach();
                formatted.push((path, Some(FileState { id, ..was })));
            }
        }
        drop(moved);
        if formatted.is_empty() { Ok(left) } else { self.with_files(&left, &formatted) }
    }
}

fn range(lines: &Range<u32>) -> Range<usize> {
    lines.start as usize..lines.end as usize
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn without_blanks(lines: &[&[u8]]) -> Vec<u8> {
    lines.concat().into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

/// A text that calls left, with what was made of lines of theirs that differs by blanks alone; none where nothing was.
fn with_blanks(before: &[u8], left: &[u8], now: &[u8]) -> Option<Vec<u8>> {
    if [before, left, now].iter().any(|text| text.contains(&0)) {
        return None;
    }
    let (old, new) = (lines(left), lines(now));
    let theirs: Vec<Range<usize>> = hunks(before, left).iter().map(|hunk| range(&hunk.after)).collect();
    let is_theirs = |lines: &Range<usize>| {
        theirs.iter().any(|theirs| theirs.start <= lines.start && lines.end <= theirs.end && !theirs.is_empty())
    };
    let (mut made, mut at, mut is_any) = (Vec::new(), 0, false);
    let mut take = |was: Range<usize>, is: Range<usize>| {
        if is_theirs(&was) && without_blanks(&old[was.clone()]) == without_blanks(&new[is.clone()]) {
            made.push(old[at..was.start].concat());
            made.push(new[is].concat());
            (at, is_any) = (was.end, true);
        }
    };
    for hunk in hunks(left, now) {
        let (was, is) = (range(&hunk.before), range(&hunk.after));
        // Line by line where it can be told which is which: those beside them may be the user's.
        if was.len() == is.len() {
            was.zip(is).for_each(|(was, is)| take(was..was + 1, is..is + 1));
        } else {
            take(was, is);
        }
    }
    made.push(old[at..].concat());
    is_any.then(|| made.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_by_blanks_in_the_lines_of_calls_is_theirs_and_nothing_else() {
        for (before, left, now, wanted) in [
            ("a\nb\n", "a\nits  \nb\n", "a\nits\nb\n", Some("a\nits\nb\n")),
            ("a\nb\n", "a\nits\nb\n", "a\n  its\nb\n", Some("a\n  its\nb\n")),
            ("a\nb\n", "a\nf(x,y)\nb\n", "a\nf(\n  x,\n  y\n)\nb\n", Some("a\nf(\n  x,\n  y\n)\nb\n")),
            ("", "its\nits", "its\n\nits\n", Some("its\n\nits\n")),
            // The user's own line, and what they wrote.
            ("a \nb\n", "a \nits \nb\n", "a\nits\nb\n", Some("a \nits\nb\n")),
            ("a\nb\n", "a\nits \nb\n", "a\nits\nb\nmine\n", Some("a\nits\nb\n")),
            ("a\nb\n", "a\nits\nb\n", "a\nits!\nb\n", None),
            ("a \nb\n", "a \nits\nb\n", "a\nits\nb\n", None),
            ("a\n", "a\nits\0 \n", "a\nits\0\n", None),
        ] {
            let made = with_blanks(before.as_bytes(), left.as_bytes(), now.as_bytes());
            assert_eq!(made.as_deref().map(String::from_utf8_lossy).as_deref(), wanted, "{left:?} {now:?}");
        }
    }
}
