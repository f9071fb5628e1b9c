//! One note on every commit of a turn, under `refs/notes/oxundo`. `git notes add` loses notes
//! when two processes write at once; this compares and swaps, and tries again. oxundo's processes
//! exclude each other by a kernel lock, but git may still write the ref.

use crate::git::objects::Objects;
use crate::git::refs::{NOTES, Refs};
use crate::git::repo::find::again;
use crate::git::repo::lock::Lock;
use crate::model::turn::Note;
use anyhow::{Context, Result, bail};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::note::plumbing::State;
use std::fs::File;

/// How often a lost race is run again.
const TRIES: u32 = 200;

impl Refs<'_> {
    /// Takes the lock that all worktrees share for writing the notes; waits while another oxundo
    /// has it.
    pub fn lock_notes(&self) -> Result<Lock> {
        let directory = self.repo.common_dir.join("oxundo");
        let sharing = self.repo.sharing();
        sharing.make_directories(&directory).with_context(|| format!("make '{}'", directory.display()))?;
        let path = directory.join("notes");
        let file = File::options().write(true).create(true).truncate(false).open(&path);
        let file = file.with_context(|| format!("open '{}'", path.display()))?;
        sharing.share(&path)?;
        file.lock().context("lock the notes")?;
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
            let Some(commit) = again(|| self.notes_commit(parent, notes))? else {
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
            let tree = again(|| self.tree_without(root, commits))?;
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

    /// The tree of notes without those on these commits.
    fn tree_without(&self, root: ObjectId, commits: &[ObjectId]) -> Result<ObjectId> {
        let mut state = State::new(root, &self.repo.gix)?;
        for commit in commits {
            state.edit(*commit, None, &self.repo.gix)?;
        }
        Ok(state.write(&self.repo.gix)?)
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
                Some(id) => self.repo.find_blob(id)?.data.clone(),
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
        let Some(commit) = self.ref_id(NOTES)? else {
            return Ok(vec![Vec::new(); commits.len()]);
        };
        let root = Objects::new(self.repo).commit_tree(commit)?;
        again(|| self.notes_in(root, commits))
    }

    fn notes_in(&self, root: ObjectId, commits: &[ObjectId]) -> Result<Vec<Vec<Note>>> {
        let mut state = State::new(root, &self.repo.gix)?;
        commits
            .iter()
            .map(|commit| {
                let Some(id) = state.get(commit, &self.repo.gix)? else {
                    return Ok(Vec::new());
                };
                let text = self.repo.find_blob(id)?.data.clone();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::Repo;
    use crate::git::repo::testing::Fixture;
    use crate::model::turn::CommitKind;

    fn note(turn: u64, commit: ObjectId) -> Note {
        let at = "2026-01-01T00:00:00Z".to_owned();
        Note {
            v: 1,
            turn,
            kind: CommitKind::Agent,
            commit,
            agent: "sh".into(),
            session: None,
            worktree: "main".into(),
            at,
        }
    }

    #[test]
    fn git_shows_a_note_beside_what_others_wrote_and_the_same_one_once() {
        let f = Fixture::new();
        let (refs, commit) = (Refs::new(&f.repo), f.commit("a", "one"));
        f.git(&["notes", "--ref=oxundo", "add", "-m", "by hand", "HEAD"]);
        for at in ["2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"] {
            refs.add_notes(&[Note { at: at.to_owned(), ..note(1, commit) }]).expect("add a note");
        }
        refs.add_notes(&[note(2, commit)]).expect("add a note");
        let shown = f.lines(&["notes", "--ref=oxundo", "show", "HEAD"]);
        assert_eq!(shown.len(), 3, "one line a note: {shown:?}");
        assert_eq!(shown[0], "by hand", "what stood there stays");
        assert_eq!(refs.notes_on(&[commit]).expect("read"), [[note(1, commit), note(2, commit)]]);
        refs.add_notes(&[]).expect("nothing to do");
    }

    #[test]
    fn notes_that_are_taken_off_leave_the_others_and_at_last_no_ref() {
        let f = Fixture::new();
        let (refs, first) = (Refs::new(&f.repo), f.commit("a", "one"));
        refs.remove_notes(&[first]).expect("there is nothing to take off");
        let second = f.commit("b", "two");
        refs.add_notes(&[note(1, first), note(2, second)]).expect("add notes");
        refs.remove_notes(&[first]).expect("take one off");
        assert_eq!(f.lines(&["notes", "--ref=oxundo", "list"]).len(), 1);
        assert_eq!(refs.notes_on(&[first, second]).expect("read"), [vec![], vec![note(2, second)]]);
        refs.remove_notes(&[first, second]).expect("take the other one off");
        assert!(!f.git_agrees(&["rev-parse", "-q", "--verify", NOTES]), "no note, no ref");
        assert_eq!(refs.notes_on(&[first]).expect("read"), [vec![]]);
    }

    #[test]
    fn writers_at_the_same_time_lose_no_note() {
        let f = Fixture::new();
        let commits: Vec<ObjectId> = (0..3).map(|n| f.commit(&format!("{n}"), "")).collect();
        std::thread::scope(|scope| {
            for writer in 0..4_u64 {
                let (top, commits) = (f.repo.top().to_owned(), &commits);
                scope.spawn(move || {
                    let repo = Repo::open(&top).expect("open the repository");
                    for (number, commit) in (0..).zip(commits) {
                        Refs::new(&repo).add_notes(&[note(writer * 10 + number, *commit)]).expect("add a note");
                    }
                });
            }
        });
        for (number, commit) in (0..).zip(&commits) {
            let shown = f.lines(&["notes", "--ref=oxundo", "show", &commit.to_string()]);
            let mut turns: Vec<u64> =
                shown.iter().map(|line| serde_json::from_str::<Note>(line).expect("a note").turn).collect();
            turns.sort_unstable();
            assert_eq!(turns, [number, 10 + number, 20 + number, 30 + number], "each writer's note is there, once");
        }
    }
}
