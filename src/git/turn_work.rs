//! What a turn's end asks of git beside the capture: which new files are ignored
//! now, the user's commit hooks, a written message, line counts.

use super::Repo;
use super::capture::Capture;
use super::ignore::Rules;
use super::index::{IndexLock, TreeChange};
use super::process::Shell;
use crate::model::bytes::quoted;
use crate::model::checkpoint::{Change, Checkpoint, Delta, FileState, IndexEntry, Kind};
use crate::model::plan::parents;
use crate::model::turn::FileChange;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::diff::blob::{Algorithm, Diff, InternedInput};
use gix::index::State;
use gix::objs::tree::EntryKind;
use std::collections::BTreeSet;

/// Larger files are not compared line by line.
const DIFF_LIMIT: u64 = 4 << 20;

/// How much of a file is looked at to tell whether it is text; as git does.
const TEXT_PROBE: usize = 8000;

/// What a tree has where the index has these entries.
pub fn tree_change(path: &BString, entries: &[IndexEntry]) -> TreeChange {
    let entry = entries.iter().find(|entry| entry.stage == 0 && !entry.intent_to_add);
    let kind = entry.map(|entry| match entry.mode {
        0o100_755 => (EntryKind::BlobExecutable, entry.id),
        0o120_000 => (EntryKind::Link, entry.id),
        0o160_000 => (EntryKind::Commit, entry.id),
        _ => (EntryKind::Blob, entry.id),
    });
    (path.clone(), kind)
}

impl Repo {
    /// The first path that is unmerged.
    ///
    /// # Errors
    ///
    /// When the index cannot be read.
    pub fn first_unmerged(&self) -> Result<Option<BString>> {
        let index = self.read_index()?;
        let unmerged = index.entries().iter().find(|entry| entry.stage_raw() != 0);
        Ok(unmerged.map(|entry| entry.path(&index).to_owned()))
    }

    /// The captured files that are not in the index.
    ///
    /// # Errors
    ///
    /// When a tree cannot be read.
    pub fn untracked_files(&self, capture: &Capture) -> Result<Vec<BString>> {
        let state = &capture.checkpoint;
        let left_out: Vec<TreeChange> = state.index.sparse.iter().map(|directory| (directory.clone(), None)).collect();
        let staged = self.edited_tree(state.index.tree, &left_out)?;
        let mut untracked = Vec::new();
        for path in self.changed_paths(staged, state.worktree)? {
            if self.index_entries(&capture.index, path.as_bstr())?.is_empty() {
                untracked.push(path);
            }
        }
        Ok(untracked)
    }

    /// Which of these paths the ignore rules of now exclude.
    ///
    /// # Errors
    ///
    /// When the configuration cannot be read.
    pub fn ignored_now<'a>(&self, paths: impl Iterator<Item = &'a BString>) -> Result<BTreeSet<BString>> {
        let mut ignored = BTreeSet::new();
        let mut rules: Option<Rules> = None;
        let mut read = BTreeSet::new();
        for path in paths {
            let rules = match &mut rules {
                Some(rules) => rules,
                None => rules.insert(self.shared_rules(self.gix.filesystem_options()?.ignore_case)?),
            };
            for directory in parents(path.as_bstr()).chain([BStr::new(b"")]) {
                if read.insert(directory.to_owned()) {
                    let separator: &[u8] = if directory.is_empty() { b"" } else { b"/" };
                    let file = BString::from([directory.as_bytes(), separator, b".gitignore"].concat());
                    if let Some(text) = self.worktree.read_plain_file(file.as_bstr()) {
                        rules.add(file, text);
                    }
                }
            }
            if rules.matches_with_parents(path.as_bstr()) {
                ignored.insert(path.clone());
            }
        }
        Ok(ignored)
    }

    /// A tree with some paths as they are in the index; those that it lacks are removed.
    ///
    /// # Errors
    ///
    /// When the tree cannot be written.
    pub fn tree_with_index_entries(&self, base: ObjectId, index: &State, paths: &[BString]) -> Result<ObjectId> {
        let changes: Result<Vec<TreeChange>> =
            (paths.iter()).map(|path| Ok(tree_change(path, &self.index_entries(index, path.as_bstr())?))).collect();
        self.edited_tree(base, &changes?)
    }

    /// Runs the user's pre-commit and commit-msg hooks on a staged index; gives the message
    /// as they leave it.
    ///
    /// # Errors
    ///
    /// When a hook fails.
    pub fn run_commit_hooks(&self, lock: &IndexLock<'_>, message: &str) -> Result<String> {
        let run = |args: Vec<&str>, hook: &str| {
            let ran = self.git(args).index(lock.path()).run(b"");
            ran.map_err(|error| anyhow::anyhow!("the {hook} hook failed: {error:#}"))
        };
        run(vec!["hook", "run", "--ignore-missing", "pre-commit"], "pre-commit")?;
        let file = self.scratch()?.join("COMMIT_EDITMSG");
        std::fs::write(&file, message)?;
        let name = file.to_string_lossy().into_owned();
        for hook in ["prepare-commit-msg", "commit-msg"] {
            let mut args = vec!["hook", "run", "--ignore-missing", hook, "--", &name];
            if hook == "prepare-commit-msg" {
                args.push("message");
            }
            run(args, hook)?;
        }
        let message = std::fs::read_to_string(&file).context("read the message")?;
        std::fs::remove_file(&file)?;
        Ok(message)
    }

    /// What the user's command says of the turn's diff; `None` when it fails or says nothing.
    pub fn written_message(&self, command: &str, start: &Checkpoint, after: &Checkpoint) -> Option<String> {
        let trees = [start.worktree.to_string(), after.worktree.to_string()];
        let diff = self.git(["diff-tree", "-p", "-r", &trees[0], &trees[1]]).run(b"").ok()?;
        let printed = Shell::new(command, self.top()).run(&diff).ok()?;
        let text = String::from_utf8_lossy(&printed).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Runs the user's command on what was done, at the top of the worktree.
    ///
    /// # Errors
    ///
    /// When it fails.
    pub fn hand_over(&self, command: &str, what: &[u8]) -> Result<()> {
        Shell::new(command, self.top()).run(what).map(drop)
    }

    /// How each file of a delta changed, with lines added and removed.
    ///
    /// # Errors
    ///
    /// When content cannot be read.
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

    /// The content of a file if it is text; nothing has an empty one.
    fn text_of(&self, state: Option<FileState>) -> Result<Option<Vec<u8>>> {
        let Some(state) = state else {
            return Ok(Some(Vec::new()));
        };
        if self.gix.find_header(state.id)?.size() > DIFF_LIMIT {
            return Ok(None);
        }
        let bytes = self.gix.find_blob(state.id)?.data.clone();
        let binary = bytes[..bytes.len().min(TEXT_PROBE)].contains(&0);
        Ok((!binary).then_some(bytes))
    }
}

impl Repo {
    /// The raw content of a blob.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn blob(&self, id: ObjectId) -> Result<Vec<u8>> {
        Ok(self.gix.find_blob(id)?.data.clone())
    }

    /// Prints the difference of two trees as `git diff` does: its pager, its colours, its
    /// configuration.
    ///
    /// # Errors
    ///
    /// When git cannot be started, or fails.
    pub fn print_diff(&self, from: ObjectId, to: ObjectId, stat: bool, paths: &[std::ffi::OsString]) -> Result<()> {
        // `color.diff`, which says more, stays above it.
        let color = if console::colors_enabled() { "color.ui=always" } else { "color.ui=never" };
        let mut args: Vec<std::ffi::OsString> = vec!["-c".into(), color.into(), "diff".into()];
        if stat {
            args.push("--stat".into());
        }
        args.extend([from.to_string().into(), to.to_string().into(), "--".into()]);
        args.extend(paths.iter().cloned());
        self.print(args)
    }

    /// Prints the paths of a tree as git does.
    ///
    /// # Errors
    ///
    /// When git cannot be started, or fails.
    pub fn print_tree(&self, tree: ObjectId) -> Result<()> {
        self.print(vec![
            "ls-tree".into(),
            "-r".into(),
            "--name-only".into(),
            "--full-tree".into(),
            tree.to_string().into(),
        ])
    }

    fn print(&self, args: Vec<std::ffi::OsString>) -> Result<()> {
        let here = self.top().join(self.prefix());
        let status = self.git(args).directory(&here).interactive()?;
        anyhow::ensure!(status.success() || status.code().is_none(), "git failed ({status})");
        Ok(())
    }

    /// Shows a text in the pager that git would use; gives whether it did.
    pub fn show_in_pager(&self, text: &[u8]) -> bool {
        let named = self.git(["var", "GIT_PAGER"]).run(b"").unwrap_or_default();
        let pager = String::from_utf8_lossy(named.trim());
        !matches!(&*pager, "" | "cat") && Shell::new(pager.as_bytes(), self.top()).page(text).is_ok()
    }
}
