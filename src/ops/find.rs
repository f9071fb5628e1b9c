//! Where a lost file or text is: every state that is recorded, the newest first, what was only staged or in commits that are
//! on no branch any more, and what is kept beside the worktree.
//!
//! States share most of their trees: one that was looked through in a newer state has nothing new in an older one, so that
//! each tree and each content is read once, however many turns there are.

use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::index::pathspec::Selection;
use crate::git::objects::Objects;
use crate::git::objects::tree::Level;
use crate::git::repo::clock::parse_rfc3339;
use crate::git::timeline::Timelines;
use crate::git::timeline::others::Other;
use crate::git::timeline::stored::Stored;
use crate::git::worktree::Worktree;
use crate::model::bytes::instead;
use crate::ops::find::states::State;
use crate::ops::find::unreached::unreached;
use crate::ops::restore::aside_in;
use crate::ops::view::View;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use regex::bytes::{Regex, RegexBuilder};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

mod states;
mod unreached;

/// What a file has to contain.
pub enum Needle {
    /// These bytes.
    Text(Vec<u8>),
    /// What this matches.
    Pattern(Regex),
}

impl Needle {
    /// A regular expression, as the user gave it.
    pub fn pattern(text: &str) -> Result<Self> {
        // As git's: line by line.
        let built = RegexBuilder::new(text).multi_line(true).build();
        Ok(Self::Pattern(built.map_err(|error| {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Refusal::new(Code::Usage, format!("'{text}' is no regular expression: {why}")).hint(instead("-G", "-S"))
        })?))
    }

    fn is_in(&self, content: &[u8]) -> bool {
        match self {
            Self::Text(text) => content.find(text).is_some(),
            Self::Pattern(pattern) => pattern.is_match(content),
        }
    }
}

/// Where something was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In a state, by the words that mean it.
    State(String),
    /// In a commit that is on no branch any more.
    Commit(ObjectId),
    /// Only staged, in a state by these words; the tree of what was.
    Staged(String, ObjectId),
    /// Moved aside, below this path: it comes back with the state of this turn.
    Aside(u64, BString),
    /// In a file that is kept beside the worktree.
    Kept(PathBuf),
}

/// A content of a file that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The file's path in the worktree; of one that is kept, its name.
    pub path: BString,
    /// Where it is; the newest of several places.
    pub place: Place,
    /// Since when it is known, RFC 3339, where that is known.
    pub at: Option<String>,
    /// Its size in bytes.
    pub size: u64,
    /// Whether the worktree has the same now.
    pub is_present: bool,
    /// What git knows the content by.
    id: Option<ObjectId>,
}

/// Looks for files by their paths, their content, or both. Gives at most `most` of them, the newest first, and whether
/// there are more.
pub fn find(
    view: &View<'_>,
    pathspecs: &[OsString],
    needle: Option<&Needle>,
    most: usize,
) -> Result<(Vec<Found>, bool)> {
    let selection = Index::new(view.repo).selection(pathspecs)?;
    let (trees, contents) = (HashSet::new(), HashSet::new());
    let mut search = Search { view, selection, needle, trees, contents, staged: Vec::new(), found: Vec::new() };
    search.in_timeline(&view.timeline, "")?;
    let others: Vec<Other<'_>> = Timelines::new(view.repo).other_timelines()?;
    // What is damaged there must not hide what is here.
    let others: Vec<(&Other<'_>, &Stored<'_>)> =
        others.iter().filter_map(|other| Some((other, other.stored.as_ref().ok()?))).collect();
    for (other, stored) in &others {
        search.in_timeline(stored, &format!("{}:", other.words()))?;
    }
    let timelines = [&view.timeline].into_iter().chain(others.iter().map(|(_, stored)| *stored));
    search.in_commits(&timelines.collect::<Vec<_>>())?;
    search.staged()?;
    search.aside()?;
    others.iter().try_for_each(|(other, stored)| search.aside_elsewhere(other, stored))?;
    search.kept()?;
    let mut found = search.found;
    // What is kept has no other way to be found, and what has no time is next to it.
    let since = |found: &Found| found.at.as_deref().map(|at| parse_rfc3339(at).unwrap_or_default());
    found.sort_by_key(|found| Reverse(since(found).map_or((true, 0), |since| (false, since))));
    let more = found.len() > most;
    found.truncate(most);
    for one in &mut found {
        let now = Worktree::new(view.repo).readable(one.path.as_bstr(), view.repo.hash_kind());
        one.is_present = one.id.is_some() && now.map(|now| now.id) == one.id;
    }
    Ok((found, more))
}

/// What was staged in a state.
struct Staged {
    state: String,
    checkpoint: ObjectId,
    tree: ObjectId,
    at: Option<String>,
}

struct Search<'v, 'r> {
    view: &'v View<'r>,
    selection: Selection<'r>,
    needle: Option<&'v Needle>,
    /// Trees that were looked through, with where they are.
    trees: HashSet<(BString, ObjectId)>,
    /// Contents that were looked at.
    contents: HashSet<(BString, ObjectId)>,
    /// What was staged, where that is not what the files were.
    staged: Vec<Staged>,
    found: Vec<Found>,
}

impl Search<'_, '_> {
    /// Looks through the states of a timeline; `whose` stands before their names.
    fn in_timeline(&mut self, timeline: &Stored<'_>, whose: &str) -> Result<()> {
        let mut indexes = HashSet::new();
        states::each(timeline, whose, |state| {
            let from = self.found.len();
            self.in_tree(state.files, BStr::new(""))?;
            let State { checkpoint, index: tree, .. } = state;
            if tree != state.files && indexes.insert(tree) {
                let (state, at) = (state.words.clone(), state.at(timeline)?);
                self.staged.push(Staged { state, checkpoint, tree, at });
            }
            if self.found.len() > from {
                let at = state.at(timeline)?;
                self.is_in(from, &Place::State(state.words), at.as_ref());
            }
            Ok(())
        })
    }

    /// Says where what was found last is.
    fn is_in(&mut self, from: usize, place: &Place, at: Option<&String>) {
        for found in &mut self.found[from..] {
            found.place = place.clone();
            found.at = at.cloned();
        }
    }

    /// Looks through the commits that nothing but these timelines keeps.
    fn in_commits(&mut self, timelines: &[&Stored<'_>]) -> Result<()> {
        for commit in unreached(self.view, timelines)? {
            let from = self.found.len();
            commit.files.into_iter().try_for_each(|(path, id)| self.content(path, id))?;
            self.is_in(from, &Place::Commit(commit.commit), Some(&commit.at));
            if let Some(unreached::Found { checkpoint, files, index }) = commit.state {
                let from = self.found.len();
                self.in_tree(files, BStr::new(""))?;
                self.is_in(from, &Place::Commit(files), Some(&commit.at));
                let (state, at) = ("before a call".to_owned(), Some(commit.at));
                self.staged.push(Staged { state, checkpoint, tree: index, at });
            }
        }
        Ok(())
    }

    /// Looks through what was staged, and neither committed nor in the files.
    fn staged(&mut self) -> Result<()> {
        let objects = Objects::new(self.view.repo);
        for Staged { state, checkpoint, tree, at } in std::mem::take(&mut self.staged) {
            let from = self.found.len();
            self.in_tree(tree, BStr::new(""))?;
            if self.found.len() > from {
                let head = objects.head_tree(&Checkpoints::new(self.view.repo).read_head(checkpoint)?)?;
                let of_last = self.found.split_off(from);
                for found in of_last {
                    let committed = objects.tree_file(head, found.path.as_bstr())?;
                    if committed.map(|(_, id)| id) != found.id {
                        self.found.push(found);
                    }
                }
                self.is_in(from, &Place::Staged(state, tree), at.as_ref());
            }
        }
        Ok(())
    }

    /// What is new in a tree, which no newer state had at this place.
    fn in_tree(&mut self, tree: ObjectId, prefix: &BStr) -> Result<()> {
        if !self.trees.insert((prefix.to_owned(), tree)) {
            return Ok(());
        }
        for (name, id, level) in Objects::new(self.view.repo).level(tree)? {
            let path = joined(prefix, name.as_bstr());
            match level {
                Level::Directory => self.in_tree(id, path.as_bstr())?,
                Level::File => self.content(path, id)?,
            }
        }
        Ok(())
    }

    fn content(&mut self, path: BString, id: ObjectId) -> Result<()> {
        let key = (path, id);
        if self.contents.contains(&key) || !self.selection.takes(key.0.as_bstr()) {
            return Ok(());
        }
        self.contents.insert(key.clone());
        let (path, objects) = (key.0, Objects::new(self.view.repo));
        if let Some(needle) = self.needle
            && !needle.is_in(&objects.blob(id)?)
        {
            return Ok(());
        }
        let size = objects.size(id)?;
        self.found.push(Found {
            path,
            place: Place::Kept(PathBuf::new()),
            at: None,
            size,
            is_present: false,
            id: Some(id),
        });
        Ok(())
    }

    /// Looks through what was moved aside, which comes back with its turn's state.
    fn aside(&mut self) -> Result<()> {
        for number in Timelines::new(self.view.repo).aside()?.into_keys() {
            for (path, aside) in aside_in(&self.view.timeline, number)? {
                let store = self.view.repo.aside_path(&aside.store);
                self.file(path.as_bstr(), &store, &|_| Place::Aside(number, path.clone()))?;
            }
        }
        Ok(())
    }

    /// Looks through what was moved aside in another worktree: it is there as a file.
    fn aside_elsewhere(&mut self, other: &Other<'_>, timeline: &Stored<'_>) -> Result<()> {
        for place in self.view.repo.scratches_of(&other.worktree) {
            for turn in std::fs::read_dir(place.join("aside")).into_iter().flatten().flatten() {
                let Some(number) = turn.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
                for (path, aside) in aside_in(timeline, number)? {
                    self.file(path.as_bstr(), &place.join(&aside.store), &|file| Place::Kept(file.to_owned()))?;
                }
            }
        }
        Ok(())
    }

    /// Looks through what is kept for the user.
    fn kept(&mut self) -> Result<()> {
        for file in self.view.repo.kept() {
            let name = BString::from(file.file_name().unwrap_or_default().as_bytes());
            self.file(name.as_bstr(), &file, &|file| Place::Kept(file.to_owned()))?;
        }
        Ok(())
    }

    /// Looks at a file outside of git, or at all that is in a directory.
    fn file(&mut self, path: &BStr, file: &Path, place: &dyn Fn(&Path) -> Place) -> Result<()> {
        let Ok(about) = file.symlink_metadata() else { return Ok(()) };
        if about.is_dir() {
            for entry in std::fs::read_dir(file).with_context(|| format!("read '{}'", file.display()))?.flatten() {
                let path = joined(path, entry.file_name().as_bytes().as_bstr());
                self.file(path.as_bstr(), &entry.path(), place)?;
            }
            return Ok(());
        }
        let has_it = |needle: &Needle| std::fs::read(file).is_ok_and(|content| needle.is_in(&content));
        if self.selection.takes(path) && self.needle.is_none_or(has_it) {
            let found = Found {
                path: path.to_owned(),
                place: place(file),
                at: None,
                size: about.len(),
                is_present: false,
                id: None,
            };
            self.found.push(found);
        }
        Ok(())
    }
}

fn joined(directory: &BStr, name: &BStr) -> BString {
    if directory.is_empty() { name.to_owned() } else { [directory.as_bytes(), b"/", name.as_bytes()].concat().into() }
}
