//! Counting what a delta changes: files and lines.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::repo::shell::Shell;
use crate::model::bytes::quoted;
use crate::model::checkpoint::{Change, Checkpoint, Delta, FileState, Kind};
use crate::model::turn::FileChange;
use anyhow::Result;
use gix::bstr::{BStr, ByteSlice};
use gix::diff::blob::{Algorithm, Diff, InternedInput};

/// Larger files are not compared line by line.
const DIFF_LIMIT: u64 = 4 << 20;

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

    /// How each file of a delta changed, with lines added and removed.
    pub fn file_stats(&self, delta: &Delta) -> Result<Vec<FileChange>> {
        let aside = delta.aside.iter().map(|(path, change)| FileChange {
            path: quoted(path.as_bstr()),
            status: if change.to.is_some() { 'A' } else { 'D' },
            insertions: 0,
            deletions: 0,
        });
        let files = delta.files.iter().map(|(path, change)| self.file_change(path.as_bstr(), change));
        files.chain(aside.map(Ok)).collect()
    }

    fn file_change(&self, path: &BStr, change: &Change<Option<FileState>>) -> Result<FileChange> {
        let link = |state: &FileState| state.kind == Kind::Symlink;
        let status = match (&change.from, &change.to) {
            (None, _) => 'A',
            (_, None) => 'D',
            (Some(from), Some(to)) if link(from) != link(to) => 'T',
            _ => 'M',
        };
        let (insertions, deletions) = self.line_counts(change)?;
        Ok(FileChange { path: quoted(path), status, insertions, deletions })
    }

    fn line_counts(&self, change: &Change<Option<FileState>>) -> Result<(u64, u64)> {
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
        if Objects::new(self.repo).size(state.id)? > DIFF_LIMIT {
            return Ok(None);
        }
        let bytes = Objects::new(self.repo).blob(state.id)?;
        let binary = bytes[..bytes.len().min(TEXT_PROBE)].contains(&0);
        Ok((!binary).then_some(bytes))
    }
}
