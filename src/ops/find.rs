//! Where a lost file or text is: every state that is recorded, the newest first, and what is kept beside the worktree.
//!
//! States share most of their trees: one that was looked through in a newer state has nothing new in an older one, so that
//! each tree and each content is read once, however many turns there are.

use crate::error::{Code, Refusal};
use crate::git::index::Index;
use crate::git::index::pathspec::Selection;
use crate::git::objects::Objects;
use crate::git::objects::tree::Level;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored};
use crate::git::worktree::Worktree;
use crate::model::bytes::{quoted_line, shell_word};
use crate::model::checkpoint::shown_name;
use crate::ops::restore::aside_of;
use crate::ops::view::View;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use regex::bytes::Regex;
use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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
        Ok(Self::Pattern(Regex::new(text).map_err(|error| {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Refusal::new(Code::Usage, format!("'{text}' is no regular expression: {why}")).hint(format!(
                "run {} to look for the text as it is",
                quoted_line(&format!("oxundo find -S {}", shell_word(text.as_bytes())))
            ))
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
    let mut search =
        Search { view, selection, needle, trees: HashSet::new(), contents: HashSet::new(), found: Vec::new() };
    search.in_timeline(&view.timeline, "")?;
    for other in Timelines::new(view.repo).other_timelines()? {
        // What is damaged there must not hide what is here.
        let Ok(stored) = other.stored else { continue };
        search.in_timeline(&stored, &format!("{}:", shown_name(&other.worktree)))?;
    }
    search.beside()?;
    let mut found = search.found;
    // What is kept has no other way to be found, and what has no time is next to it.
    found.sort_by(|a, b| (b.at.is_none(), &b.at).cmp(&(a.at.is_none(), &a.at)));
    let more = found.len() > most;
    found.truncate(most);
    for one in &mut found {
        let now = Worktree::new(view.repo).state(one.path.as_bstr(), view.repo.hash_kind()).ok().flatten();
        one.is_present = one.id.is_some() && now.map(|now| now.id) == one.id;
    }
    Ok((found, more))
}

struct Search<'v, 'r> {
    view: &'v View<'r>,
    selection: Selection<'r>,
    needle: Option<&'v Needle>,
    /// Trees that were looked through, with where they are.
    trees: HashSet<(BString, ObjectId)>,
    /// Contents that were looked at.
    contents: HashSet<(BString, ObjectId)>,
    found: Vec<Found>,
}

impl Search<'_, '_> {
    /// Looks through the states of a timeline; `whose` stands before their names.
    fn in_timeline(&mut self, timeline: &Stored<'_>, whose: &str) -> Result<()> {
        for number in timeline.rescue_numbers()?.into_iter().rev() {
            let tree = timeline.rescue_tree(number)?;
            self.in_checkpoint(tree, &|| Ok((format!("{whose}rescue:{number}"), None)))?;
        }
        for (name, named) in &timeline.state.named {
            let tree = timeline.named_tree(named.number)?;
            self.in_checkpoint(tree, &|| Ok((format!("{whose}{name}"), Some(named.at.clone()))))?;
        }
        let numbers = timeline.turn_numbers()?;
        for (at, number) in numbers.iter().copied().enumerate().rev() {
            let turn = || timeline.require_turn(number);
            let after = timeline.checkpoint_id(number, Side::After)?;
            self.in_checkpoint(after, &|| Ok((format!("{whose}{number}"), turn()?.ended_at)))?;
            self.in_steps(timeline, number, whose)?;
            let before = timeline.checkpoint_id(number, Side::Before)?;
            let below =
                at.checked_sub(1).map(|below| timeline.checkpoint_id(numbers[below], Side::After)).transpose()?;
            // A state that the turn below left has that turn's name.
            if self.files_of(before)? != self.files_of(below.flatten())? {
                self.in_checkpoint(before, &|| Ok((format!("{whose}{number}:before"), Some(turn()?.began_at))))?;
            }
        }
        Ok(())
    }

    /// Looks through the steps of a turn, and what was there before them.
    fn in_steps(&mut self, timeline: &Stored<'_>, turn: u64, whose: &str) -> Result<()> {
        for step in (1..=timeline.last_step(turn)?).rev() {
            for (side, end) in [(Side::After, ""), (Side::Before, ":before")] {
                let tree = timeline.step_tree(turn, step, side)?;
                self.in_checkpoint(tree, &|| {
                    let at = timeline.step(turn, step)?.map(|step| step.ended_at);
                    Ok((format!("{whose}{turn}.{step}{end}"), at))
                })?;
            }
        }
        Ok(())
    }

    /// The tree of a checkpoint's files.
    fn files_of(&self, checkpoint: Option<ObjectId>) -> Result<Option<ObjectId>> {
        let Some(tree) = checkpoint else { return Ok(None) };
        Ok(Objects::new(self.view.repo).tree_entry(tree, "worktree".into())?.map(|(_, id)| id))
    }

    fn in_checkpoint(
        &mut self,
        checkpoint: Option<ObjectId>,
        name: &dyn Fn() -> Result<(String, Option<String>)>,
    ) -> Result<()> {
        let Some(worktree) = self.files_of(checkpoint)? else { return Ok(()) };
        let before = self.found.len();
        self.in_tree(worktree, BStr::new(""))?;
        if self.found.len() > before {
            let (words, at) = name()?;
            for found in &mut self.found[before..] {
                found.place = Place::State(words.clone());
                found.at.clone_from(&at);
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

    /// Looks through what was moved aside, which comes back with its turn's state, and what is kept for the user.
    fn beside(&mut self) -> Result<()> {
        for number in Timelines::new(self.view.repo).aside()?.into_keys() {
            for (path, aside) in aside_of(self.view, number)? {
                let store = self.view.repo.aside_path(&aside.store);
                self.file(path.as_bstr(), &store, &Place::Aside(number, path.clone()))?;
            }
        }
        for file in self.view.repo.kept() {
            let name = BString::from(file.file_name().unwrap_or_default().as_bytes());
            self.file(name.as_bstr(), &file, &Place::Kept(file.clone()))?;
        }
        Ok(())
    }

    /// Looks at a file outside of git, or at all that is in a directory.
    fn file(&mut self, path: &BStr, file: &Path, place: &Place) -> Result<()> {
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
                place: place.clone(),
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
