//! Moving refs: every move names the value it expects.

use crate::error::Refusal;
use crate::git::objects::Objects;
use crate::git::refs::{Edit, Refs, full_name, moved_meanwhile};
use crate::model::checkpoint::{Change, Head};
use crate::model::operation::{ORIG_HEAD, Operation, left_before};
use crate::model::plan::{BranchMove, Plan, SymbolicMove};
use anyhow::{Result, bail};
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use gix::refs::{FullName, Target};
use std::collections::BTreeSet;

impl Refs<'_> {
    /// Moves one of oxundo's refs, with a reflog entry. `None` means that it is not there.
    pub fn move_own_ref(&self, name: &str, from: Option<ObjectId>, to: Option<ObjectId>, message: &str) -> Result<()> {
        self.repo.flush()?;
        // git writes no reflog for a ref outside heads, remotes and notes unless it is made to.
        let edit = Edit { always_logged: true, ..edit(name, from, to)? };
        named(self.edit(&[edit], message, || Ok(())), || format!("move {name}"))
    }

    /// Moves the branches, HEAD and its reflog as a plan says, all or none.
    pub fn move_refs(&self, plan: &Plan, message: &str) -> Result<()> {
        let message = &format!("oxundo: {message}");
        let mut edits = ref_edits(plan)?;
        edits.extend(self.operation_edits(plan)?);
        if edits.is_empty() {
            return Ok(());
        }
        self.repo.flush()?;
        let still = || {
            if self.head()? != plan.head.from {
                return Err(moved_meanwhile("HEAD"));
            }
            self.check_arrival(plan)
        };
        still()?;
        // `a` can only be made when `a/b` is gone, reflog included, and the other way round: deletions first.
        let (gone, moved): (Vec<_>, Vec<_>) = edits.iter().cloned().partition(|edit| edit.to.is_none());
        if !nests(&gone, &moved) {
            return named(self.edit(&edits, message, still), || "move the branch".to_owned());
        }
        named(self.edit(&gone, message, still), || "delete a branch".to_owned())?;
        named(self.edit(&moved, message, || Ok(())), || "move the branch".to_owned())
    }
}

impl Refs<'_> {
    /// The branch that HEAD is led to is where it is to be, though it does not move.
    fn check_arrival(&self, plan: &Plan) -> Result<()> {
        let to = &plan.head.to;
        let comes = |name: &&String| {
            plan.head.from.branch.as_ref() != Some(name) && plan.branches.iter().all(|branch| branch.name != **name)
        };
        match to.branch.as_ref().filter(comes) {
            Some(name) if self.ref_id(name)? != to.commit => Err(moved_meanwhile(name)),
            _ => Ok(()),
        }
    }

    /// What says what git is in the middle of, where that is refs in tables.
    fn operation_edits(&self, plan: &Plan) -> Result<Vec<Edit>> {
        let Some(Change { from, to }) = plan.moved_operation() else { return Ok(Vec::new()) };
        let id = |operation: &Operation, path: &BString| -> Result<Option<ObjectId>> {
            let Some(blob) = operation.files.get(path) else { return Ok(None) };
            Ok(Some(ObjectId::from_hex(Objects::new(self.repo).blob(*blob)?.trim())?))
        };
        let mut names: BTreeSet<BString> = from.files.keys().chain(to.files.keys()).cloned().collect();
        names.extend(left_before(to).map(ToOwned::to_owned));
        let mut edits = Vec::new();
        for path in names.iter().filter(|path| self.repo.is_in_table(path.as_bstr())) {
            let name = FullName::try_from(path.clone())?;
            let (mut now, then) = (id(from, path)?.map(Target::Object), id(to, path)?);
            // git may have left one behind.
            if now.is_none() || *path == ORIG_HEAD {
                now = self.repo.ref_value(name.as_ref())?;
            }
            let then = then.map(Target::Object);
            if now != then && !(*path == ORIG_HEAD && then.is_none()) {
                edits.push(Edit { name, from: now, to: then, logged: None, always_logged: false });
            }
        }
        Ok(edits)
    }
}

/// With the words for what failed. A refusal has its own.
fn named(done: Result<()>, what: impl FnOnce() -> String) -> Result<()> {
    done.map_err(|error| if error.is::<Refusal>() { error } else { error.context(what()) })
}

fn ref_edits(plan: &Plan) -> Result<Vec<Edit>> {
    let mut edits = Vec::new();
    for symbolic in &plan.symbolic {
        edits.push(symbolic_edit(symbolic, plan)?);
    }
    let is_symbolic = |branch: &&BranchMove| plan.symbolic.iter().any(|symbolic| symbolic.name == branch.name);
    for branch in plan.branches.iter().filter(|branch| !is_symbolic(branch)) {
        edits.push(edit(&branch.name, branch.from, branch.to)?);
        let current = plan.head.from.branch.as_ref() == Some(&branch.name);
        if let Some(to) = branch.to.filter(|_| current && !plan.moves_head()) {
            // HEAD's reflog records the move too.
            let head = Some(head_target(&plan.head.from)?);
            let logged = Some((branch.from, to));
            edits.push(Edit { name: full_name("HEAD")?, from: head.clone(), to: head, logged, always_logged: false });
        }
    }
    if plan.moves_head() {
        edits.push(head_edit(plan)?);
    }
    Ok(edits)
}

/// What HEAD's file is to say.
fn head_target(head: &Head) -> Result<Target> {
    match (head.given(), head.commit) {
        (Some(name), _) => Ok(Target::Symbolic(full_name(name)?)),
        (None, Some(commit)) => Ok(Target::Object(commit)),
        (None, None) => bail!("a detached HEAD needs a commit"),
    }
}

fn head_edit(plan: &Plan) -> Result<Edit> {
    let (from, to) = (Some(head_target(&plan.head.from)?), Some(head_target(&plan.head.to)?));
    let logged = plan.head.to.commit.map(|to| (plan.head.from.commit, to));
    Ok(Edit { name: full_name("HEAD")?, from, to, logged, always_logged: false })
}

/// What becomes of a branch that stands for another ref, or is to: it may be one of its own on the other side.
fn symbolic_edit(symbolic: &SymbolicMove, plan: &Plan) -> Result<Edit> {
    let own = plan.branches.iter().find(|branch| branch.name == symbolic.name);
    let target = |other: &Option<String>, id: Option<ObjectId>| match other {
        Some(other) => Ok::<_, anyhow::Error>(Some(Target::Symbolic(full_name(other)?))),
        None => Ok(id.map(Target::Object)),
    };
    let from = target(&symbolic.from, own.and_then(|own| own.from))?;
    let to = target(&symbolic.to, own.and_then(|own| own.to))?;
    Ok(Edit { name: full_name(&symbolic.name)?, from, to, logged: None, always_logged: false })
}

/// Whether the name of a deleted ref is a directory of a new one's name, or the other way round.
fn nests(gone: &[Edit], moved: &[Edit]) -> bool {
    let below = |a: &Edit, b: &Edit| {
        let (a, b) = (a.name.as_bstr(), b.name.as_bstr());
        a.strip_prefix(b.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
    };
    gone.iter().any(|old| moved.iter().any(|new| below(old, new) || below(new, old)))
}

fn edit(name: &str, from: Option<ObjectId>, to: Option<ObjectId>) -> Result<Edit> {
    let target = |id: Option<ObjectId>| id.map(Target::Object);
    let logged = to.map(|to| (from, to));
    Ok(Edit { name: full_name(name)?, from: target(from), to: target(to), logged, always_logged: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::git::repo::testing::Fixture;
    use crate::model::plan::Op;

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
            back.head = Change::new(head.clone(), head);
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
            through: None,
        };
        let path = [at(Some("main"), two), at(Some("side"), one), at(None, two), at(None, one), at(Some("main"), two)];
        for step in path.windows(2) {
            let plan =
                Plan { head: Change::new(step[0].clone(), step[1].clone()), ..Plan::empty(Op::Undo, Head::default()) };
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
