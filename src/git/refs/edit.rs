//! Moving refs: every move names the value it expects.

use crate::error::{Code, Refusal};
use crate::git::refs::lockfile::locked_error;
use crate::git::refs::{Refs, full_name, transaction};
use crate::model::checkpoint;
use crate::model::plan::Plan;
use anyhow::{Context, Result, bail};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::date::parse::TimeBuf;
use gix::refs::Target;
use gix::refs::transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog};

impl Refs<'_> {
    /// Moves one of oxundo's refs, with a reflog entry. `None` means that it is not there.
    pub fn move_own_ref(&self, name: &str, from: Option<ObjectId>, to: Option<ObjectId>, message: &str) -> Result<()> {
        let mut gix = self.repo.gix.clone();
        // git writes no reflog for a ref outside heads, remotes and notes unless it is made to.
        gix.refs.write_reflog = gix::refs::store::WriteReflog::Always;
        let edit = edit(name, from, to, message)?;
        let moved = self.with_marker(&[name], || self.edit_refs(&gix, [edit], || Ok(())))?;
        let moved = moved.with_context(|| format!("move {name}"));
        moved.map(drop).map_err(|error| self.not_moved([name], error))
    }

    fn edit_refs(
        &self,
        gix: &gix::Repository,
        edits: impl IntoIterator<Item = RefEdit>,
        still: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let (who, mut time) = (self.repo.committer(), TimeBuf::default());
        transaction::edit(gix, edits, who.to_ref(&mut time), still)
    }

    /// Moves the branches, HEAD and its reflog as a plan says, all or none.
    pub fn move_refs(&self, plan: &Plan, message: &str) -> Result<()> {
        let message = &format!("oxundo: {message}");
        let edits = ref_edits(plan, message)?;
        if edits.is_empty() {
            return Ok(());
        }
        let still = || if self.head()? == plan.head.from { Ok(()) } else { Err(moved_meanwhile("HEAD")) };
        still()?;
        // `a` can only be made when `a/b` is gone, reflog included, and the other way round: deletions first.
        let (gone, moved): (Vec<_>, Vec<_>) = edits.into_iter().partition(|edit| edit.change.new_value().is_none());
        let names: Vec<_> = plan.branches.iter().map(|branch| branch.name.as_str()).chain(["HEAD"]).collect();
        let edited = self.with_marker(&names, || {
            if gone.is_empty() || moved.is_empty() || !nests(&gone, &moved) {
                self.edit_refs(&self.repo.gix, moved.into_iter().chain(gone), still)
            } else {
                self.edit_refs(&self.repo.gix, gone, still)
                    .and_then(|()| self.edit_refs(&self.repo.gix, moved, || Ok(())))
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
                return locked_error(&lock, &format!("'{}'", checkpoint::short_branch(name)));
            }
        }
        error
    }
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
            // Through HEAD, so that HEAD's reflog records the move too.
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

/// Whether the name of a deleted ref is a directory of a new one's name, or the other way round.
fn nests(gone: &[RefEdit], moved: &[RefEdit]) -> bool {
    let below = |a: &RefEdit, b: &RefEdit| {
        let (a, b) = (a.name.as_bstr(), b.name.as_bstr());
        a.strip_prefix(b.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
    };
    gone.iter().any(|old| moved.iter().any(|new| below(old, new) || below(new, old)))
}

pub fn log(message: &str) -> LogChange {
    LogChange { mode: RefLog::AndReference, force_create_reflog: false, message: message.into() }
}

pub fn edit(name: &str, from: Option<ObjectId>, to: Option<ObjectId>, message: &str) -> Result<RefEdit> {
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
