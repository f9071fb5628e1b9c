//! Merging the content of a file by lines, with `git merge-file`, as the path's `merge` attribute says.
//! A merge driver of the user's is never run, since a preview or `status` must not start commands: where
//! both sides changed such a file, it overlaps.

use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::objects::tree::tree_change;
use crate::git::repo::Repo;
use crate::model::checkpoint::IndexEntry;
use crate::model::line_ends::as_changed;
use crate::model::merge;
use crate::model::merge::{Blobs, Cause, Merge, Merged, Verdict};
use crate::model::wide::Wide;
use anyhow::{Context, Result, ensure};
use gix::ObjectId;
use gix::attrs::StateRef;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::diff::blob::{Algorithm, Diff, Hunk, InternedInput};
use gix::worktree::stack::state::attributes::Source;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::{Range, RangeInclusive};

/// How much of a file git looks at to tell whether it is text.
const TEXT_PROBE: usize = 8000;

/// How a path's content is merged.
enum Driver {
    Text,
    Union,
    Binary,
    Other(String),
}

/// Where lines of the one side are next to the other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// As git merges.
    AsGit,
    /// As git merges, and where it does not, the lines stay.
    Ours,
    /// What is right beside the other side's lines does not overlap with them.
    Beside,
    /// Nor does anything: where both have changed lines, these are theirs.
    Theirs,
}

/// Merges the content of files.
pub struct Merger<'repo> {
    repo: &'repo Repo,
    attributes: gix::AttributeStack<'repo>,
    how: How,
}

impl Merger<'_> {
    /// Merges three blobs.
    pub fn merge(&mut self, path: &BStr, blobs: Blobs) -> Result<Merged> {
        let driver = self.driver(path)?;
        if let Driver::Other(name) = driver {
            return Ok(Merged::Overlap(Cause::Driver(name)));
        }
        let repo = self.repo;
        let read = |id: ObjectId| Objects::new(repo).blob(id).with_context(|| format!("read what '{path}' was"));
        let sides = [read(blobs.ours)?, read(blobs.base)?, read(blobs.theirs)?];
        let is_binary = |bytes: &Vec<u8>| bytes[..bytes.len().min(TEXT_PROBE)].contains(&0);
        let text = if sides.iter().any(is_binary) {
            self.as_text(path, &sides)?.map(|(wide, sides)| (Some(wide), sides))
        } else {
            Some((None, sides))
        };
        let Some((wide, sides)) = text.filter(|_| !matches!(driver, Driver::Binary)) else {
            return Ok(Merged::Overlap(Cause::Binary));
        };
        let union = matches!(driver, Driver::Union).then_some("--union");
        // Who writes other line ends has changed each line, and most often none.
        let merged = match self.merge_lines(&sides, union)? {
            None => as_changed(&sides).map(|sides| self.merge_lines(&sides, union)).transpose()?.flatten(),
            merged => merged,
        };
        let is_apart = matches!(self.how, How::Beside | How::Theirs);
        let merged = merged.or_else(|| if is_apart { merged_beside(&sides) } else { None });
        let merged = match merged {
            None if self.how == How::Ours => self.merge_lines(&sides, Some("--ours"))?,
            None if self.how == How::Theirs => self.merge_lines(&sides, Some("--theirs"))?,
            merged => merged,
        };
        let Some(mut merged) = merged else { return Ok(Merged::Overlap(Cause::Lines(overlap(&sides)))) };
        if let Some(wide) = wide {
            merged = wide.write(&merged).with_context(|| format!("write '{path}' as it was encoded"))?;
        }
        Ok(Merged::Clean(repo.gix.write_blob(merged)?.detach()))
    }

    /// What would be binary as UTF-8, where an attribute says that it is no binary, and it is all written in one way.
    fn as_text(&mut self, path: &BStr, sides: &[Vec<u8>; 3]) -> Result<Option<(Wide, [Vec<u8>; 3])>> {
        let mut found = self.attributes.selected_attribute_matches(["working-tree-encoding"]);
        self.attributes.at_entry(path, None)?.matching_attributes(&mut found);
        let state = found.iter_selected().next().map(|found| found.assignment.state.to_owned());
        let Some(StateRef::Value(encoding)) = state.as_ref().map(gix::attrs::State::as_ref) else { return Ok(None) };
        let [Some(ours), Some(base), Some(theirs)] = sides.each_ref().map(|side| Wide::read(encoding.as_bstr(), side))
        else {
            return Ok(None);
        };
        let is_one = ours.0 == base.0 && base.0 == theirs.0;
        Ok(is_one.then_some((ours.0, [ours.1, base.1, theirs.1])))
    }

    fn driver(&mut self, path: &BStr) -> Result<Driver> {
        let mut found = self.attributes.selected_attribute_matches(["merge"]);
        self.attributes.at_entry(path, None)?.matching_attributes(&mut found);
        let state = found.iter_selected().next().map(|found| found.assignment.state.to_owned());
        let name = match state.as_ref().map(gix::attrs::State::as_ref) {
            Some(StateRef::Unset) => return Ok(Driver::Binary),
            Some(StateRef::Set) => return Ok(Driver::Text),
            Some(StateRef::Value(name)) => name.as_bstr().to_string(),
            Some(StateRef::Unspecified) | None => match self.repo.setting("merge.default") {
                Some(name) => name.to_string(),
                None => return Ok(Driver::Text),
            },
        };
        let configured = self.repo.setting(&format!("merge.{name}.driver")).is_some();
        Ok(match name.as_str() {
            _ if configured => Driver::Other(name),
            "union" => Driver::Union,
            "binary" => Driver::Binary,
            _ => Driver::Text,
        })
    }

    /// `None` where lines overlap.
    fn merge_lines(&self, sides: &[Vec<u8>; 3], favor: Option<&str>) -> Result<Option<Vec<u8>>> {
        let scratch = self.repo.scratch()?;
        let mut args: Vec<OsString> = vec!["merge-file".into(), "-p".into(), "-q".into()];
        args.extend(favor.map(OsString::from));
        let files = ["ours", "base", "theirs"].map(|side| scratch.join(format!("merge-{}-{side}", std::process::id())));
        for (file, bytes) in files.iter().zip(sides) {
            std::fs::write(file, bytes).with_context(|| format!("write '{}'", file.display()))?;
            args.push(file.into());
        }
        let merged = self.repo.git_apart(args).ask();
        for file in &files {
            std::fs::remove_file(file).with_context(|| format!("remove '{}'", file.display()))?;
        }
        let (code, merged) = merged?;
        ensure!((0..128).contains(&code), "git merge-file: it ended with code {code}");
        Ok((code == 0).then_some(merged))
    }
}

impl<'r> Checkpoints<'r> {
    /// Runs `work` with a merge of content, which is set up when it is first needed.
    pub fn merging<T>(&self, work: impl FnOnce(&mut Merge<'_>) -> Result<T>) -> Result<T> {
        self.merging_as(How::AsGit, work)
    }

    /// As [`Self::merging`], where lines that both have changed stay as they are on our side.
    pub fn merging_for_ours<T>(&self, work: impl FnOnce(&mut Merge<'_>) -> Result<T>) -> Result<T> {
        self.merging_as(How::Ours, work)
    }

    /// As [`Self::merging`], where it is asked whose a line is: to git, who writes right beside a line of the other's has changed that
    /// too.
    pub fn merging_beside<T>(&self, work: impl FnOnce(&mut Merge<'_>) -> Result<T>) -> Result<T> {
        self.merging_as(How::Beside, work)
    }

    /// As [`Self::merging_beside`], where the other side has the last word on what both have changed.
    pub fn merging_for_theirs<T>(&self, work: impl FnOnce(&mut Merge<'_>) -> Result<T>) -> Result<T> {
        self.merging_as(How::Theirs, work)
    }

    fn merging_as<T>(&self, how: How, work: impl FnOnce(&mut Merge<'_>) -> Result<T>) -> Result<T> {
        let mut merger = None;
        work(&mut |path, blobs| {
            let merger = match &mut merger {
                Some(merger) => merger,
                None => merger.insert(Merger { how, ..self.merger()? }),
            };
            merger.merge(path, blobs)
        })
    }

    /// A tree with the change from one tree to another merged in, by the rule for index entries.
    /// What overlaps is noted.
    pub fn merge_trees(
        &self,
        tree: ObjectId,
        from: ObjectId,
        to: ObjectId,
        overlaps: &mut BTreeMap<BString, Cause>,
        merge: &mut Merge<'_>,
    ) -> Result<ObjectId> {
        let mut changes = Vec::new();
        for (path, change) in Objects::new(self.repo).entry_changes(from, to)? {
            let now = Objects::new(self.repo).plain_entries(tree, path.as_bstr())?;
            let next = match merge::entries(&now, &change) {
                Verdict::Becomes(next) => Ok(next),
                Verdict::Overlap(_) => Err(Cause::Committed),
                Verdict::Merge(next, blobs) => match merge(path.as_bstr(), blobs)? {
                    Merged::Clean(id) => Ok(next.into_iter().map(|entry| IndexEntry { id, ..entry }).collect()),
                    Merged::Overlap(cause) => Err(cause),
                },
            };
            match next {
                Ok(next) => changes.push(tree_change(&path, &next)),
                Err(cause) => drop(overlaps.insert(path, cause)),
            }
        }
        Objects::new(self.repo).edited_tree(tree, &changes)
    }

    /// Gets ready to merge, by the attributes that hold now.
    pub fn merger(&self) -> Result<Merger<'r>> {
        let index = Index::new(self.repo).expanded_where_present(Index::new(self.repo).read_index()?)?;
        Ok(Merger {
            repo: self.repo,
            attributes: self.repo.gix.attributes_only(&index, Source::WorktreeThenIdMapping)?,
            how: How::AsGit,
        })
    }
}

/// What makes one content of another.
pub(super) fn hunks(from: &[u8], to: &[u8]) -> Vec<Hunk> {
    let input = InternedInput::new(from, to);
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    diff.hunks().collect()
}

/// Both sides' changes, where no line is changed by both; none where one is, or both write in the same place.
fn merged_beside(sides: &[Vec<u8>; 3]) -> Option<Vec<u8>> {
    let [ours, base, theirs] =
        sides.each_ref().map(|side| side.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>());
    let changes = |side: &Vec<u8>, lines: &[&[u8]]| -> Vec<(Range<usize>, Vec<u8>)> {
        let range = |range: &Range<u32>| range.start as usize..range.end as usize;
        hunks(&sides[1], side).iter().map(|hunk| (range(&hunk.before), lines[range(&hunk.after)].concat())).collect()
    };
    let mut all = [changes(&sides[0], &ours), changes(&sides[2], &theirs)].concat();
    all.sort_by_key(|(before, _)| (before.start, before.end));
    all.dedup();
    let (mut merged, mut at) = (Vec::new(), 0);
    for (number, (before, after)) in all.iter().enumerate() {
        let is_taken = all[..number].last().is_some_and(|(other, _)| other == before);
        if before.start < at || is_taken {
            return None;
        }
        merged.extend(base[at..before.start].concat());
        merged.extend(after);
        at = before.end;
    }
    merged.extend(base[at..].concat());
    Some(merged)
}

/// The lines of our side, counted from one, that both sides changed.
fn overlap([ours, base, theirs]: &[Vec<u8>; 3]) -> Vec<RangeInclusive<u32>> {
    let theirs = hunks(base, theirs);
    let touch = |a: &Hunk, b: &Hunk| a.before.start <= b.before.end && b.before.start <= a.before.end;
    let both = hunks(base, ours).into_iter().filter(|ours| theirs.iter().any(|theirs| touch(ours, theirs)));
    both.map(|hunk| hunk.after.start + 1..=hunk.after.end.max(hunk.after.start + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_right_beside_each_other_are_each_ones_own() {
        let base = "one\ntwo\nthree\n";
        for (ours, theirs, wanted) in [
            ("one\ntwo\n", "one\ntwo\nthree\nits\n", Some("one\ntwo\nits\n")),
            ("two\nthree\n", "its\none\ntwo\nthree\n", Some("its\ntwo\nthree\n")),
            ("mine\ntwo\nthree\n", "one\nits\nthree\n", Some("mine\nits\nthree\n")),
            ("one\ntwo\nthree\nmine\n", "one\ntwo\nits\n", Some("one\ntwo\nits\nmine\n")),
            ("one\ntwo\nthree\nmine\n", "one\ntwo\nthree\nits\n", None),
            ("one\nmine\nthree\n", "one\nits\nthree\n", None),
            ("one\nthree\n", "one\nits\nthree\n", None),
            ("one\nmine\n", "one\ntwo\nits\n", None),
            ("one\nboth\nthree\n", "one\nboth\nthree\nits\n", Some("one\nboth\nthree\nits\n")),
            ("", "one\ntwo\nthree\nits\n", Some("its\n")),
        ] {
            let sides = [ours, base, theirs].map(|side| side.as_bytes().to_vec());
            let merged = merged_beside(&sides).map(|merged| String::from_utf8(merged).expect("it is text"));
            assert_eq!(merged.as_deref(), wanted, "{ours:?} {theirs:?}");
        }
    }
}
