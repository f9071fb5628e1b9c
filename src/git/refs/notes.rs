//! One note on every commit of a turn, under `refs/notes/oxundo`. `git notes add` loses notes
//! when two processes write at once; this compares and swaps, and tries again. oxundo's processes
//! exclude each other by a kernel lock, but git may still write the ref.

use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::refs::lockfile::remove_stale_lock;
use crate::git::repo::lock::Lock;
use crate::model::turn::Note;
use anyhow::{Context, Result, bail};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::note::plumbing::State;
use std::fs::File;
use std::time::SystemTime;

/// The ref that holds the notes.
pub const NOTES: &str = "refs/notes/oxundo";

/// How often a lost race is run again.
const TRIES: u32 = 200;

impl Refs<'_> {
    /// Takes the lock that all worktrees share for writing the notes; waits while another oxundo
    /// has it.
    pub fn lock_notes(&self) -> Result<Lock> {
        let directory = self.repo.common_dir.join("oxundo");
        std::fs::create_dir_all(&directory).with_context(|| format!("make '{}'", directory.display()))?;
        let path = directory.join("notes");
        let file = File::options().write(true).create(true).truncate(false).open(&path);
        let file = file.with_context(|| format!("open '{}'", path.display()))?;
        file.lock().context("lock the notes")?;
        // No other oxundo can hold it now: this lock file is git's, or a kill left it.
        remove_stale_lock(&self.repo.common_dir.join(format!("{NOTES}.lock")), SystemTime::UNIX_EPOCH)?;
        Ok(Lock::over(file))
    }

    /// Adds each note to its commit, beside what other turns said of it.
    pub fn add_notes(&self, notes: &[Note]) -> Result<()> {
        if notes.is_empty() {
            return Ok(());
        }
        let _lock = self.lock_notes()?;
        for attempt in 0..TRIES {
            let parent = self.ref_id(NOTES)?;
            let Some(commit) = self.notes_commit(parent, notes)? else {
                return Ok(());
            };
            let moved = self.move_own_ref(NOTES, parent, Some(commit), "oxundo: notes");
            if moved.is_ok() {
                return Ok(());
            }
            if self.ref_id(NOTES)? == parent && attempt > 20 {
                return moved.context("write the notes");
            }
            std::thread::sleep(pause(attempt));
        }
        bail!("the notes in {NOTES} keep changing");
    }

    /// Takes the notes off commits that no longer are a turn's.
    pub fn remove_notes(&self, commits: &[ObjectId]) -> Result<()> {
        if commits.is_empty() {
            return Ok(());
        }
        let _lock = self.lock_notes()?;
        for attempt in 0..TRIES {
            let Some(parent) = self.ref_id(NOTES)? else { return Ok(()) };
            let root = Objects::new(self.repo).commit_tree(parent)?;
            let mut state = State::new(root, &self.repo.gix)?;
            for commit in commits {
                state.edit(*commit, None, &self.repo.gix)?;
            }
            let tree = state.write(&self.repo.gix)?;
            if tree == root {
                return Ok(());
            }
            // If the very first turn is taken back, no notes ref stays behind.
            let to = if tree == Objects::new(self.repo).empty_tree() {
                None
            } else {
                Some(Objects::new(self.repo).write_own_commit(tree, vec![parent], "oxundo: notes")?)
            };
            if self.move_own_ref(NOTES, Some(parent), to, "oxundo: notes").is_ok() {
                return Ok(());
            }
            std::thread::sleep(pause(attempt));
        }
        bail!("the notes in {NOTES} keep changing");
    }

    /// A notes commit with these notes added; `None` when all of them are there already.
    fn notes_commit(&self, parent: Option<ObjectId>, notes: &[Note]) -> Result<Option<ObjectId>> {
        let root = match parent {
            Some(commit) => Objects::new(self.repo).commit_tree(commit)?,
            None => Objects::new(self.repo).write_empty_tree()?,
        };
        let mut state = State::new(root, &self.repo.gix)?;
        for note in notes {
            let line = serde_json::to_string(note)?;
            let mut text = match state.get(&note.commit, &self.repo.gix)? {
                Some(id) => self.repo.gix.find_blob(id)?.data.clone(),
                None => Vec::new(),
            };
            let there = text.lines().any(|old| same_note(old, note));
            if there {
                continue;
            }
            if !text.is_empty() && !text.ends_with(b"\n") {
                text.push(b'\n');
            }
            text.extend_from_slice(line.as_bytes());
            text.push(b'\n');
            let blob = self.repo.gix.write_blob(text)?.detach();
            state.edit(note.commit, Some(blob), &self.repo.gix)?;
        }
        let tree = state.write(&self.repo.gix)?;
        if tree == root && parent.is_some() {
            return Ok(None);
        }
        Ok(Some(Objects::new(self.repo).write_own_commit(tree, parent.into_iter().collect(), "oxundo: notes")?))
    }

    /// The notes on each commit; lines that are not oxundo's are skipped.
    pub fn notes_on(&self, commits: &[ObjectId]) -> Result<Vec<Vec<Note>>> {
        let Some(root) = self.ref_id(NOTES)? else {
            return Ok(vec![Vec::new(); commits.len()]);
        };
        let mut state = State::new(Objects::new(self.repo).commit_tree(root)?, &self.repo.gix)?;
        commits
            .iter()
            .map(|commit| {
                let Some(id) = state.get(commit, &self.repo.gix)? else {
                    return Ok(Vec::new());
                };
                let text = self.repo.gix.find_blob(id)?.data.clone();
                Ok(text.lines().filter_map(|line| serde_json::from_slice(line).ok()).collect())
            })
            .collect()
    }
}

/// A short wait that differs from one attempt to the next.
fn pause(attempt: u32) -> std::time::Duration {
    std::time::Duration::from_millis(u64::from(attempt % 7) * 3)
}

/// Whether a line is this note, at whatever time it was written.
fn same_note(line: &[u8], note: &Note) -> bool {
    serde_json::from_slice::<Note>(line).is_ok_and(|old| Note { at: note.at.clone(), ..old } == *note)
}
