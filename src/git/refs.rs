//! Reading and moving refs: every move names the value it expects.

mod transaction;

use super::Repo;
use super::lock::held;
use crate::error::{Code, Refusal};
use crate::model::checkpoint::{self, Head, StashEntry};
use crate::model::plan::Plan;
use anyhow::{Context, Result, bail};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::date::parse::TimeBuf;
use gix::refs::transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog};
use gix::refs::{FullName, Target};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The mark, in the scratch directory, of refs being moved.
const MARK: &str = "refs.mark";

/// What whoever rewrites the packed refs holds.
const PACKED_LOCKS: [&str; 2] = ["packed-refs.lock", "packed-refs.new"];

/// By how much the clock of a file system may be behind.
const CLOCKS_DIFFER: Duration = Duration::from_secs(1);

/// No git command holds a ref's lock for longer.
const HELD_AT_MOST: Duration = Duration::from_secs(2);

/// Where a worktree's records are.
#[derive(Clone, Copy, Debug)]
pub enum Own {
    /// The timeline.
    Timeline,
    /// The journal of an apply in progress.
    Pending,
}

impl Repo {
    /// The full name of one of this worktree's own refs.
    pub fn own_ref(&self, own: Own) -> String {
        let word = match own {
            Own::Timeline => "timeline",
            Own::Pending => "pending",
        };
        match self.linked_id() {
            Some(id) => format!("refs/oxundo/worktrees/{id}/{word}"),
            None => format!("refs/oxundo/{word}"),
        }
    }

    /// The full name of a branch that is to be made.
    ///
    /// # Errors
    ///
    /// A refusal when git would not take the name, or there is one.
    pub fn new_branch_name(&self, short: &str) -> Result<String> {
        let full = format!("refs/heads/{short}");
        let checked = self.git(["check-ref-format", "--branch", short]).ask()?;
        if checked.0 != 0 || checked.1.trim() != short.as_bytes() {
            return Err(Refusal::new(Code::Usage, format!("'{short}' cannot be a branch's name"))
                .hint("'git help check-ref-format' says what can")
                .into());
        }
        let refused = |why: String| {
            Err(Refusal::new(Code::Branch, why).hint("give another name, or run 'git branch' to see them").into())
        };
        if self.ref_id(&full)?.is_some() {
            return refused(format!("there is a branch '{short}' already"));
        }
        let below = |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
        if let Some(other) = self.branches()?.keys().find(|other| below(&full, other) || below(other, &full)) {
            let other = checkpoint::short_branch(other);
            return refused(format!("there is a branch '{other}', beside which git cannot keep one '{short}'"));
        }
        Ok(full)
    }

    /// Where HEAD is now.
    ///
    /// # Errors
    ///
    /// When HEAD cannot be read.
    pub fn head(&self) -> Result<Head> {
        let head = self.gix.head().context("read HEAD")?;
        let branch = head.referent_name().map(|name| name.as_bstr().to_string());
        let commit = match head.kind {
            gix::head::Kind::Unborn(_) => None,
            _ => head.id().map(gix::Id::detach),
        };
        Ok(Head { branch, commit })
    }

    /// Every branch and where it points.
    ///
    /// # Errors
    ///
    /// When the refs cannot be read.
    pub fn branches(&self) -> Result<BTreeMap<String, ObjectId>> {
        let packed = self.gix.refs.packed_refs_path();
        let stamp =
            || packed.metadata().ok().map(|about| (about.ino(), about.mtime(), about.mtime_nsec(), about.len()));
        loop {
            let before = stamp();
            let _ = self.gix.refs.force_refresh_packed_buffer();
            let branches = self.listed_branches()?;
            // gix looks at the packed refs first: it misses what is packed and pruned while it lists.
            if stamp() == before {
                return Ok(branches);
            }
        }
    }

    fn listed_branches(&self) -> Result<BTreeMap<String, ObjectId>> {
        let mut branches = BTreeMap::new();
        for reference in self.gix.references()?.local_branches()? {
            let reference = reference.map_err(|error| anyhow::anyhow!("read the branches: {error}"))?;
            if let Some(id) = reference.target().try_id() {
                branches.insert(reference.name().as_bstr().to_string(), id.to_owned());
            }
        }
        Ok(branches)
    }

    /// The stash list, newest first.
    ///
    /// # Errors
    ///
    /// When its reflog cannot be read.
    pub fn stash(&self) -> Result<Vec<StashEntry>> {
        let Some(reference) = self.gix.try_find_reference("refs/stash")? else {
            return Ok(Vec::new());
        };
        let mut log = reference.log_iter();
        let Some(lines) = log.rev()? else {
            return Ok(Vec::new());
        };
        lines
            .map(|line| {
                let line = line?;
                Ok(StashEntry {
                    id: line.new_oid,
                    name: line.signature.name.to_string(),
                    email: line.signature.email.to_string(),
                    date: line.signature.time.to_string(),
                    message: line.message.to_str_lossy().into_owned(),
                })
            })
            .collect()
    }

    /// Where a ref points; `None` when there is no such ref.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn ref_id(&self, name: &str) -> Result<Option<ObjectId>> {
        let target = transaction::value(&self.gix.refs, full_name(name)?.as_ref());
        Ok(target.with_context(|| format!("read {name}"))?.and_then(|target| target.try_id().map(ToOwned::to_owned)))
    }

    /// Moves one of oxundo's refs, with a reflog entry. `None` means that it is not there.
    ///
    /// # Errors
    ///
    /// When it is not at `from`.
    pub fn move_own_ref(&self, name: &str, from: Option<ObjectId>, to: Option<ObjectId>, message: &str) -> Result<()> {
        let mut gix = self.gix.clone();
        // git writes no reflog for a ref outside heads, remotes and notes unless it is made to.
        gix.refs.write_reflog = gix::refs::store::WriteReflog::Always;
        let edit = edit(name, from, to, message)?;
        let moved = self.marked(&[name], || self.edit_refs(&gix, [edit], || Ok(())))?;
        let moved = moved.with_context(|| format!("move {name}"));
        moved.map(drop).map_err(|error| self.not_moved([name], error))
    }

    fn edit_refs(
        &self,
        gix: &gix::Repository,
        edits: impl IntoIterator<Item = RefEdit>,
        still: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let (who, mut time) = (self.committer(), TimeBuf::default());
        transaction::edit(gix, edits, who.to_ref(&mut time), still)
    }

    /// Moves refs under a mark that names them: by it the next command knows the locks that a killed
    /// one left, or that could not be removed, as ours.
    fn marked<T>(&self, names: &[&str], edit: impl FnOnce() -> T) -> Result<T> {
        let mark = self.scratch()?.join(MARK);
        std::fs::write(&mark, names.join("\n")).with_context(|| format!("write '{}'", mark.display()))?;
        let edited = edit();
        let mut locks = names.iter().copied().chain(["packed-refs"]).map(|name| self.ref_lock(name));
        if !locks.any(|lock| lock.exists()) {
            // What a mark left behind costs is that the next command looks for locks.
            let _ = std::fs::remove_file(&mark);
        }
        Ok(edited)
    }

    fn ref_lock(&self, name: &str) -> PathBuf {
        let directory = if name == "HEAD" { &self.git_dir } else { &self.common_dir };
        directory.join(format!("{name}.lock"))
    }

    /// Whether a command may have left locks on refs.
    pub(super) fn has_marked_locks(&self) -> bool {
        self.scratch_path(MARK).exists()
    }

    /// Removes the locks that a command left on refs. To be called with the worktree's lock held.
    ///
    /// # Errors
    ///
    /// When one cannot be removed.
    pub(super) fn clear_marked_locks(&self) -> Result<()> {
        let mark = self.scratch_path(MARK);
        let Ok(since) = mark.metadata().and_then(|about| about.modified()) else {
            return Ok(());
        };
        let names = std::fs::read_to_string(&mark).with_context(|| format!("read '{}'", mark.display()))?;
        for name in names.lines().filter(|name| FullName::try_from(*name).is_ok()) {
            clear_lock_of_the_dead(&self.ref_lock(name), since)?;
        }
        // gix locks the packed refs even to read what a ref was.
        for lock in PACKED_LOCKS {
            clear_lock_of_the_dead(&self.common_dir.join(lock), since)?;
        }
        remove_if_there(&mark)
    }

    /// Removes the locks that a killed git left which changed the stash list since `begun`.
    pub(super) fn clear_stash_locks(&self, begun: SystemTime) -> Result<()> {
        // File systems tell the time by a clock that is a little behind.
        let since = begun - CLOCKS_DIFFER;
        let mut locks = PACKED_LOCKS.iter().chain(&["refs/stash.lock", "logs/refs/stash.lock"]);
        locks.try_for_each(|lock| clear_lock_of_the_dead(&self.common_dir.join(lock), since))
    }

    /// Moves the branches, HEAD and its reflog as a plan says, all or none.
    ///
    /// # Errors
    ///
    /// A refusal `branch` when one of them is not where the plan expects it.
    pub fn move_refs(&self, plan: &Plan, message: &str) -> Result<()> {
        let message = &format!("oxundo: {message}");
        let edits = ref_edits(plan, message)?;
        if edits.is_empty() {
            return Ok(());
        }
        let still = || if self.head()? == plan.head.from { Ok(()) } else { Err(moved_meanwhile("HEAD")) };
        still()?;
        // A deleted branch makes place for one below its name, or above: its reflog must go first.
        let (gone, moved): (Vec<_>, Vec<_>) = edits.into_iter().partition(|edit| edit.change.new_value().is_none());
        let names: Vec<_> = plan.branches.iter().map(|branch| branch.name.as_str()).chain(["HEAD"]).collect();
        let edited = self.marked(&names, || {
            if gone.is_empty() || moved.is_empty() || !nests(&gone, &moved) {
                self.edit_refs(&self.gix, moved.into_iter().chain(gone), still)
            } else {
                self.edit_refs(&self.gix, gone, still).and_then(|()| self.edit_refs(&self.gix, moved, || Ok(())))
            }
        });
        match edited? {
            Ok(()) => Ok(()),
            Err(error) => {
                // Tell a lost race from a failure of the disk.
                let branches = self.branches()?;
                let lost = plan.branches.iter().find(|branch| {
                    let now = branches.get(&branch.name).copied();
                    now != branch.from && now != branch.to
                });
                if let Some(branch) = lost {
                    return Err(moved_meanwhile(&branch.name));
                }
                if error.is::<Refusal>() {
                    return Err(error);
                }
                Err(self.not_moved(names, error.context("move the branch")))
            }
        }
    }

    /// Why refs cannot be moved: the lock that git has on one of them, if there is one.
    fn not_moved<'a>(&self, names: impl IntoIterator<Item = &'a str>, error: anyhow::Error) -> anyhow::Error {
        for name in names.into_iter().chain(["packed-refs"]) {
            let lock = self.ref_lock(name);
            if lock.symlink_metadata().is_ok() {
                return held(&lock, &format!("'{}'", checkpoint::short_branch(name)));
            }
        }
        error
    }

    /// Makes the stash list what a change leads to, entry by entry, keeping what is there already.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn set_stash(&self, change: &checkpoint::Change<Vec<StashEntry>>) -> Result<()> {
        let (now, to) = (self.stash()?, &change.to);
        if now.is_empty()
            && let Some(id) = self.ref_id("refs/stash")?
            && change.from.iter().chain(to).any(|entry| entry.id == id)
        {
            // Its reflog was wiped, or git was killed when it had dropped the last entry from it:
            // git would log no move to where the ref is already.
            self.git(["update-ref", "-d", "refs/stash"]).run(b"")?;
        }
        let shared = now.iter().rev().zip(to.iter().rev()).take_while(|(a, b)| a == b).count();
        for _ in shared..now.len() {
            self.git(["stash", "drop", "-q", "stash@{0}"]).run(b"")?;
        }
        for entry in to[..to.len() - shared].iter().rev() {
            self.git(["stash", "store", "-q", "-m", &entry.message, &entry.id.to_string()])
                .env("GIT_COMMITTER_NAME", &entry.name)
                .env("GIT_COMMITTER_EMAIL", &entry.email)
                .env("GIT_COMMITTER_DATE", format!("@{}", entry.date))
                .run(b"")?;
        }
        // git calls it a success when it has dropped the last entry and could not delete the ref.
        let left = self.ref_id("refs/stash")?;
        if to.is_empty() && left.is_some_and(|id| change.from.iter().any(|entry| entry.id == id)) {
            bail!("git stash drop: refs/stash is still there");
        }
        Ok(())
    }

    /// The branches that other worktrees have checked out, with these worktrees' directories.
    ///
    /// # Errors
    ///
    /// When the worktrees cannot be listed.
    pub fn branches_elsewhere(&self) -> Result<BTreeMap<String, String>> {
        let mut elsewhere = BTreeMap::new();
        if !self.common_dir.join("worktrees").exists() {
            return Ok(elsewhere);
        }
        for worktree in self.gix.worktrees_including_main()? {
            let Ok(other) = worktree else { continue };
            if is_same_place(other.git_dir(), &self.git_dir) {
                continue;
            }
            let Ok(Some(name)) = other.head_name() else { continue };
            let place = other.workdir().unwrap_or(other.git_dir()).display().to_string();
            elsewhere.insert(name.as_bstr().to_string(), place);
        }
        Ok(elsewhere)
    }
}

/// Removes a ref's lock file if nobody alive can have it: waits until it is older than any git
/// command holds one. One that was made before `since` is left.
///
/// # Errors
///
/// When it cannot be removed.
pub fn clear_lock_of_the_dead(lock: &Path, since: SystemTime) -> Result<()> {
    let made = |lock: &Path| lock.metadata().and_then(|about| about.modified());
    let Some(first) = made(lock).ok().filter(|made| *made >= since) else {
        return Ok(());
    };
    std::thread::sleep(HELD_AT_MOST.saturating_sub(first.elapsed().unwrap_or_default()));
    if made(lock).is_ok_and(|now| now == first) { remove_if_there(lock) } else { Ok(()) }
}

/// Removes a file; that it is gone already is no error.
///
/// # Errors
///
/// When the system refuses.
pub fn remove_if_there(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove '{}'", path.display()))
        }
        _ => Ok(()),
    }
}

fn is_same_place(a: &Path, b: &Path) -> bool {
    std::fs::canonicalize(a).is_ok_and(|a| a == b)
}

fn moved_meanwhile(name: &str) -> anyhow::Error {
    let name = checkpoint::short_branch(name);
    Refusal::new(Code::Branch, format!("'{name}' was moved by something else meanwhile"))
        .hint("run the same command again")
        .into()
}

fn ref_edits(plan: &Plan, message: &str) -> Result<Vec<RefEdit>> {
    let mut edits = Vec::new();
    let mut through_head = false;
    for branch in &plan.branches {
        let current = plan.head.from.branch.as_ref() == Some(&branch.name);
        if current && !plan.moves_head() && branch.to.is_some() {
            // Through HEAD, so that its reflog tells of the move too.
            through_head = true;
            edits.push(edit("HEAD", branch.from, branch.to, message)?.with_deref(true));
        } else {
            edits.push(edit(&branch.name, branch.from, branch.to, message)?);
        }
    }
    if plan.moves_head() && !through_head {
        edits.push(head_edit(plan, message)?);
    }
    Ok(edits)
}

fn head_edit(plan: &Plan, message: &str) -> Result<RefEdit> {
    let new = match (&plan.head.to.branch, plan.head.to.commit) {
        (Some(branch), _) => Target::Symbolic(full_name(branch)?),
        (None, Some(commit)) => Target::Object(commit),
        (None, None) => bail!("a detached HEAD needs a commit"),
    };
    let old = match (&plan.head.from.branch, plan.head.from.commit) {
        (Some(branch), _) => Target::Symbolic(full_name(branch)?),
        (None, Some(commit)) => Target::Object(commit),
        (None, None) => bail!("a detached HEAD needs a commit"),
    };
    Ok(RefEdit::update_with_log(full_name("HEAD")?, new, PreviousValue::MustExistAndMatch(old), log(message)))
}

/// Whether a ref that goes stands above or below one that comes.
fn nests(gone: &[RefEdit], moved: &[RefEdit]) -> bool {
    let below = |a: &RefEdit, b: &RefEdit| {
        let (a, b) = (a.name.as_bstr(), b.name.as_bstr());
        a.strip_prefix(b.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
    };
    gone.iter().any(|old| moved.iter().any(|new| below(old, new) || below(new, old)))
}

fn full_name(name: &str) -> Result<FullName> {
    FullName::try_from(name).map_err(|error| anyhow::anyhow!("'{name}' is no ref: {error}"))
}

fn log(message: &str) -> LogChange {
    LogChange { mode: RefLog::AndReference, force_create_reflog: false, message: message.into() }
}

fn edit(name: &str, from: Option<ObjectId>, to: Option<ObjectId>, message: &str) -> Result<RefEdit> {
    let expected = match from {
        Some(id) => PreviousValue::MustExistAndMatch(Target::Object(id)),
        None => PreviousValue::MustNotExist,
    };
    let name = full_name(name)?;
    Ok(match to {
        Some(id) => RefEdit::update_with_log(name, Target::Object(id), expected, log(message)),
        None => RefEdit::new(name, Change::Delete { expected, log: RefLog::AndReference }),
    })
}
