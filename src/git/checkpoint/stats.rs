//! Counting what a delta changes: files and lines.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::repo::shell::Shell;
use crate::model::bytes::quoted;
use crate::model::checkpoint::{Change, Checkpoint, Delta, FileState, Kind};
use crate::model::renames::{self, Candidate, Weighed};
use crate::model::turn::{FileChange, Totals};
use crate::progress::Phase;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use gix::diff::blob::{Algorithm, Diff, InternedInput};
use std::collections::{BTreeMap, HashMap};

/// The files that differ between two states.
type Files = BTreeMap<BString, Change<Option<FileState>>>;

/// How much of a file is looked at to tell whether it is text; as git does.
const TEXT_PROBE: usize = 8000;

impl Checkpoints<'_> {
    /// The commit message that the user's command prints for the turn's diff; `None` when it fails or prints none.
    pub fn written_message(&self, command: &str, start: &Checkpoint, after: &Checkpoint) -> Option<String> {
        let trees = [start.worktree.to_string(), after.worktree.to_string()];
        let diff = self.repo.git(["diff-tree", "-p", "-r", &trees[0], &trees[1]]).run(b"").ok()?;
        let printed = Shell::new(command, self.repo.top()).run(&diff).ok()?;
        let text = String::from_utf8_lossy(&printed).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// How each file of a delta changed, with lines added and removed, and all of it: there a file with another name now is one
    /// file, beside what it was.
    pub fn file_stats(&self, delta: &Delta) -> Result<(Vec<FileChange>, Totals)> {
        let renames = self.renames(delta)?;
        let targets: HashMap<&BString, &BString> = renames.iter().map(|(to, from)| (*from, *to)).collect();
        let (mut changes, mut totals) = (Vec::new(), Totals::default());
        let underway = self.repo.watch.begin(Phase::Count, delta.files.len());
        for (path, change) in &delta.files {
            let counted = self.line_counts(change)?;
            underway.advance(1);
            let (from, to) = (renames.get(path), targets.get(path));
            let named = |path: &&BString| quoted(path.as_bstr());
            changes.push(FileChange {
                insertions: counted.0,
                deletions: counted.1,
                from: from.map(named),
                to: to.map(named),
                ..FileChange::new(quoted(path.as_bstr()), status(change))
            });
            let before = from.and_then(|from| delta.files.get(*from)).map(|before| before.from);
            let beside = before.map(|before| self.line_counts(&Change::new(before, change.to))).transpose()?;
            if to.is_none() {
                totals.add(beside.unwrap_or(counted));
            }
        }
        for (path, change) in &delta.aside {
            changes.push(FileChange::new(quoted(path.as_bstr()), if change.to.is_some() { 'A' } else { 'D' }));
            totals.add((0, 0));
        }
        Ok((changes, totals))
    }

    /// The old names by the new ones.
    fn renames<'d>(&self, delta: &'d Delta) -> Result<BTreeMap<&'d BString, &'d BString>> {
        self.paired(&delta.files, |_| Ok(false))
    }

    /// The paths that files had whose content is at other paths after a change, by these: they were renamed, also over another
    /// file, or changed places.
    pub fn came_from(&self, files: &Files) -> Result<BTreeMap<BString, BString>> {
        let places = Places::of(files);
        // Where the other one stays, too, they were alike to begin with, and what was done to one of them was taken back.
        let is_elsewhere = |change: &Change<FileState>| {
            Ok::<_, anyhow::Error>(
                places.is_elsewhere(change)
                    && (places.have_changed(change) || !self.are_alike(change.from.id, change.to.id)?),
            )
        };
        let is_gone = |change: &Change<Option<FileState>>| match (change.from, change.to) {
            (Some(from), Some(to)) => is_elsewhere(&Change::new(from, to)),
            (_, to) => Ok(to.is_none()),
        };
        let mut is_any_gone = false;
        for change in files.values() {
            is_any_gone = is_gone(change)?;
            if is_any_gone {
                break;
            }
        }
        let is_another = |change: &Change<FileState>| {
            Ok(is_elsewhere(change)? || is_any_gone && !self.are_alike(change.from.id, change.to.id)?)
        };
        let mut pairs = self.paired(files, is_another)?;
        // What is empty tells nothing.
        let is_empty = |path: &BString| files[path].to.is_none_or(|file| file.id.is_empty_blob());
        pairs.retain(|to, from| to != from && !is_empty(to));
        Ok(pairs.into_iter().map(|(to, from)| (to.clone(), from.clone())).collect())
    }

    /// Likewise, but only files that are gone from one place and have come to another that was free, and where no other file could be
    /// meant.
    pub fn surely_came_from(&self, files: &Files) -> Result<BTreeMap<BString, BString>> {
        let mut files = files.clone();
        files.retain(|_, change| change.from.is_some() != change.to.is_some());
        let pairs = self.came_from(&files)?;
        let candidate = |path, state: FileState| Candidate { path, id: state.id, is_link: state.kind == Kind::Symlink };
        let gone: Vec<_> = files.iter().filter_map(|(path, change)| Some(candidate(path, change.from?))).collect();
        let new: Vec<_> = files.iter().filter_map(|(path, change)| Some(candidate(path, change.to?))).collect();
        renames::certain(&gone, &new, &pairs, |id| anyhow::Ok(self.content_of(id)?.as_deref().map(Weighed::new)))
    }

    /// Whether half of two contents is the same, as far as these are looked at.
    pub fn are_alike(&self, from: ObjectId, to: ObjectId) -> Result<bool> {
        let (Some(from), Some(to)) = (self.content_of(from)?, self.content_of(to)?) else { return Ok(true) };
        Ok(Weighed::new(&from).alike(&Weighed::new(&to)).is_some())
    }

    /// Contents as they are compared; none of what is not looked at.
    pub fn weighed(&self, contents: impl IntoIterator<Item = ObjectId>) -> Result<Vec<Option<Weighed>>> {
        contents.into_iter().map(|id| Ok(self.content_of(id)?.as_deref().map(Weighed::new))).collect()
    }

    /// Which of the files that are new is which of those that are gone. Where `is_another` says so, what is at a path is another
    /// file than was.
    fn paired<'d>(
        &self,
        files: &'d Files,
        is_another: impl Fn(&Change<FileState>) -> Result<bool>,
    ) -> Result<BTreeMap<&'d BString, &'d BString>> {
        let candidate = |path, state: FileState| Candidate { path, id: state.id, is_link: state.kind == Kind::Symlink };
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        for (path, change) in files {
            let is_one = match (change.from, change.to) {
                (Some(from), Some(to)) => !is_another(&Change::new(from, to))?,
                _ => false,
            };
            if !is_one {
                gone.extend(change.from.map(|from| candidate(path, from)));
                new.extend(change.to.map(|to| candidate(path, to)));
            }
        }
        let renames = renames::found(&gone, &new, |id| anyhow::Ok(self.content_of(id)?.as_deref().map(Weighed::new)))?;
        Ok(renames.into_iter().map(|(to, from)| (new[to].path, gone[from].path)).collect())
    }

    /// How many lines a change adds to a file, and how many it removes; none of what is no text, or too large.
    pub fn line_counts(&self, change: &Change<Option<FileState>>) -> Result<(u64, u64)> {
        if change.from.map(|state| state.id) == change.to.map(|state| state.id) {
            return Ok((0, 0));
        }
        let (Some(from), Some(to)) = (self.text_of(change.from)?, self.text_of(change.to)?) else {
            return Ok((0, 0));
        };
        let input = InternedInput::new(from.as_slice(), to.as_slice());
        let diff = Diff::compute(Algorithm::Histogram, &input);
        Ok((u64::from(diff.count_additions()), u64::from(diff.count_removals())))
    }

    /// The content of a file if it is text; empty for no file.
    fn text_of(&self, state: Option<FileState>) -> Result<Option<Vec<u8>>> {
        let Some(state) = state else {
            return Ok(Some(Vec::new()));
        };
        let content = self.content_of(state.id)?;
        Ok(content.filter(|bytes| !bytes[..bytes.len().min(TEXT_PROBE)].contains(&0)))
    }

    /// A file's content, unless it is too large to be compared.
    pub fn content_of(&self, id: ObjectId) -> Result<Option<Vec<u8>>> {
        Objects::new(self.repo).small_blob(id)
    }
}

/// Which contents are where before and after a change.
struct Places<'d> {
    was: HashMap<ObjectId, Vec<&'d Change<Option<FileState>>>>,
    now: HashMap<ObjectId, Vec<&'d Change<Option<FileState>>>>,
}

impl<'d> Places<'d> {
    fn of(files: &'d Files) -> Self {
        let (mut was, mut now) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        for change in files.values() {
            if let Some(from) = change.from {
                was.entry(from.id).or_default().push(change);
            }
            if let Some(to) = change.to {
                now.entry(to.id).or_default().push(change);
            }
        }
        Self { was, now }
    }

    /// Whether a file's content was at another path, or is there now.
    fn is_elsewhere(&self, change: &Change<FileState>) -> bool {
        change.from.id != change.to.id
            && (self.was.contains_key(&change.to.id) || self.now.contains_key(&change.from.id))
    }

    /// Whether the file at that other path is gone, or has come, or has changed places in turn.
    fn have_changed(&self, change: &Change<FileState>) -> bool {
        let has_left = |other: &&Change<Option<FileState>>| other.to.is_none_or(|to| self.was.contains_key(&to.id));
        let has_come =
            |other: &&Change<Option<FileState>>| other.from.is_none_or(|from| self.now.contains_key(&from.id));
        self.was.get(&change.to.id).is_some_and(|others| others.iter().any(has_left))
            || self.now.get(&change.from.id).is_some_and(|others| others.iter().any(has_come))
    }
}

/// The letter that git has for it.
fn status(change: &Change<Option<FileState>>) -> char {
    let link = |state: &FileState| state.kind == Kind::Symlink;
    match (&change.from, &change.to) {
        (None, _) => 'A',
        (_, None) => 'D',
        (Some(from), Some(to)) if link(from) != link(to) => 'T',
        _ => 'M',
    }
}
