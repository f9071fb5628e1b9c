//! Moving refs: every move names the value it expects.

use crate::error::Refusal;
use crate::git::refs::lockfile::locked_error;
use crate::git::refs::{Refs, full_name, moved_meanwhile, transaction};
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
        self.repo.flush()?;
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
        self.repo.flush()?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::git::repo::testing::Fixture;
    use crate::model::checkpoint::Head;
    use crate::model::plan::{BranchMove, Op};

    fn state(f: &Fixture) -> Vec<String> {
        let mut all = f.lines(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        all.push(
            String::from_utf8(std::fs::read(f.repo.git_dir().join("HEAD")).expect("read HEAD")).expect("it is text"),
        );
        all
    }

    fn plan(f: &Fixture, moves: &[(&str, Option<ObjectId>, Option<ObjectId>)]) -> Plan {
        let branch =
            |(name, from, to): &(&str, _, _)| BranchMove { name: format!("refs/heads/{name}"), from: *from, to: *to };
        let head = Refs::new(&f.repo).head().expect("read HEAD");
        Plan { branches: moves.iter().map(branch).collect(), ..Plan::empty(Op::Undo, head) }
    }

    fn code(error: anyhow::Error) -> Code {
        error.downcast::<Refusal>().expect("a refusal").code
    }

    #[test]
    fn branches_move_all_together_and_the_reflogs_tell() {
        let f = Fixture::new();
        let [one, two] = ["1", "2"].map(|name| f.commit(name, name));
        f.git(&["branch", "side", &one.to_string()]);
        f.git(&["branch", "goes", &one.to_string()]);
        let moves = [
            ("main", Some(two), Some(one)),
            ("side", Some(one), Some(two)),
            ("goes", Some(one), None),
            ("new/deep", None, Some(two)),
        ];
        for packed in [false, true] {
            if packed {
                f.git(&["pack-refs", "--all"]);
            }
            let before = state(&f);
            let plan = plan(&f, &moves);
            Refs::new(&f.repo).move_refs(&plan, "undo").expect("move the refs");
            for (name, _, to) in &moves {
                let found = f.lines(&["for-each-ref", "--format=%(objectname)", &format!("refs/heads/{name}")]);
                assert_eq!(found, to.iter().map(ToString::to_string).collect::<Vec<_>>(), "{name}");
            }
            assert_eq!(f.lines(&["reflog", "-1", "--format=%gs", "HEAD"]), ["oxundo: undo"], "HEAD's own tells too");
            assert_eq!(f.lines(&["reflog", "-1", "--format=%gs", "side"]), ["oxundo: undo"]);
            let mut back = plan.inverse();
            let head = Refs::new(&f.repo).head().expect("read HEAD");
            back.head = checkpoint::Change::new(head.clone(), head);
            Refs::new(&f.repo).move_refs(&back, "redo").expect("move them back");
            assert_eq!(state(&f), before);
        }
        assert!(!f.repo.scratch_path("refs.mark").exists(), "nothing is left to clear");
    }

    #[test]
    fn one_branch_that_is_not_where_it_was_expected_keeps_all_where_they_are() {
        let f = Fixture::new();
        let [one, two] = ["1", "2"].map(|name| f.commit(name, name));
        f.git(&["branch", "side", &one.to_string()]);
        let wrong: [(&str, Option<ObjectId>, Option<ObjectId>); 4] = [
            ("side", Some(two), None),
            ("side", None, Some(two)),
            ("none", Some(one), None),
            ("none", Some(one), Some(two)),
        ];
        for packed in [false, true] {
            if packed {
                f.git(&["pack-refs", "--all"]);
            }
            for moved in wrong {
                let before = state(&f);
                let plan = plan(&f, &[("main", Some(two), Some(one)), ("first", None, Some(one)), moved]);
                let error = Refs::new(&f.repo).move_refs(&plan, "undo").expect_err("it is elsewhere");
                if moved != ("none", Some(one), None) {
                    assert_eq!(code(error), Code::Branch, "{moved:?}");
                }
                assert_eq!(state(&f), before, "nothing moved: {moved:?}");
            }
        }
    }

    #[test]
    fn a_branch_makes_place_for_one_below_its_name_and_above() {
        let f = Fixture::new();
        let one = f.commit("1", "1");
        for (gone, new) in [("a", "a/b"), ("a/b", "a"), ("a", "a/b/c/d"), ("a/b/c/d", "a/b")] {
            for packed in [false, true] {
                f.git(&["branch", gone]);
                if packed {
                    f.git(&["pack-refs", "--all"]);
                }
                let plan = plan(&f, &[(gone, Some(one), None), (new, None, Some(one))]);
                Refs::new(&f.repo).move_refs(&plan, "undo").expect("move the refs");
                assert_eq!(f.lines(&["branch", "--format=%(refname:short)"]), [new, "main"], "{gone} to {new}");
                f.git(&["branch", "-q", "-D", new]);
            }
        }
    }

    #[test]
    fn head_moves_to_a_branch_to_a_commit_and_only_from_where_it_was() {
        let f = Fixture::new();
        let [one, two] = ["1", "2"].map(|name| f.commit(name, name));
        f.git(&["branch", "side", &one.to_string()]);
        let at = |branch: Option<&str>, commit| Head {
            branch: branch.map(|name| format!("refs/heads/{name}")),
            commit: Some(commit),
        };
        let path = [at(Some("main"), two), at(Some("side"), one), at(None, two), at(None, one), at(Some("main"), two)];
        for step in path.windows(2) {
            let plan = Plan {
                head: checkpoint::Change::new(step[0].clone(), step[1].clone()),
                ..Plan::empty(Op::Undo, Head::default())
            };
            Refs::new(&f.repo).move_refs(&plan, "undo").expect("move HEAD");
            assert_eq!(f.id(&["rev-parse", "HEAD"]), step[1].commit.expect("a commit"));
            assert_eq!(f.git_agrees(&["symbolic-ref", "-q", "HEAD"]), step[1].branch.is_some());
            let before = state(&f);
            let error = Refs::new(&f.repo).move_refs(&plan, "undo").expect_err("HEAD is elsewhere by now");
            assert_eq!((code(error), state(&f)), (Code::Branch, before), "nothing moved");
        }
    }

    #[test]
    fn where_git_holds_a_lock_nothing_moves_and_the_lock_is_named() {
        let f = Fixture::new();
        let [one, two] = ["1", "2"].map(|name| f.commit(name, name));
        f.git(&["branch", "side", &one.to_string()]);
        for lock in ["refs/heads/side.lock", "HEAD.lock"] {
            let lock = f.repo.git_dir().join(lock);
            std::fs::write(&lock, "").expect("write a file");
            let before = state(&f);
            let plan = plan(&f, &[("main", Some(two), Some(one)), ("side", Some(one), Some(two))]);
            let error = Refs::new(&f.repo).move_refs(&plan, "undo").expect_err("git has it");
            assert!(error.to_string().contains(&*lock.to_string_lossy()), "it is named: {error}");
            assert_eq!((code(error), state(&f)), (Code::Locked, before));
            assert!(lock.exists(), "it is git's to remove");
            std::fs::remove_file(lock).expect("git is done");
        }
    }
}
