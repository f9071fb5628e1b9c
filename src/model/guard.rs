//! What must not be undone: published, merge and foreign commits.

use crate::error::{Code, Refusal};
use crate::model::bytes::sanitized;
use crate::model::checkpoint::{branch_word, short_branch, shown_name};
use crate::model::plan::Op;
use crate::model::turn::Note;
use gix::ObjectId;

/// A commit that a plan would take off a branch, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// The commit.
    pub id: ObjectId,
    /// How many parents it has.
    pub parents: usize,
    /// The first line of its message.
    pub subject: String,
    /// Where it was published, for example `origin/main`.
    pub published: Option<String>,
    /// Its notes, of every worktree's turns.
    pub notes: Vec<Note>,
    /// What the timeline and the notes say of it.
    pub origin: CommitOrigin,
}

/// What the timeline and the notes say of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitOrigin {
    /// One of the walk's turns recorded it, and so does its note.
    Recorded,
    /// The timeline knows it, but its note is gone.
    NoteMissing(u64),
    /// Its note was copied from a commit of this turn: an amend or a rebase.
    Copied(u64, ObjectId),
    /// Another turn made it, which ended on this other branch.
    Elsewhere(u64, String),
    /// A turn of this worktree made it.
    OfWorktree(u64, String),
    /// A turn made it, of which commits above it are off the branch.
    PartOf(u64),
    /// HEAD is on it: the user's work from before this turn, which was left committed when that was undone.
    Kept(u64),
    /// Nobody recorded it.
    Unknown,
}

/// Checks every commit that would leave a branch.
pub fn check(op: Op, name: &str, leaving: &[Leaving]) -> Result<(), Refusal> {
    let branch = short_branch(name);
    let word = op.word();
    // What stands on top was made anew, as by a rebase onto what others have published: that is below it, and no turn's.
    let is_remade = |commit: &Leaving| matches!(commit.origin, CommitOrigin::Copied(..)) && commit.published.is_none();
    let published = leaving.iter().find(|commit| commit.published.is_some());
    if let Some(first) = published.filter(|_| !leaving.first().is_some_and(is_remade)) {
        let place = first.published.as_deref().unwrap_or_default();
        return Err(Refusal::new(Code::Published, format!("commit {} has been published ({place})", named(first)))
            .hints(way_out(op))
            .commits(ids(leaving, |commit| commit.published.is_some())));
    }
    if let Some(first) = leaving.iter().find(|commit| commit.parents > 1) {
        return Err(Refusal::new(Code::Merge, format!("commit {} is a merge", named(first)))
            .hints(way_out(op))
            .commits(ids(leaving, |commit| commit.parents > 1)));
    }
    let foreign = |commit: &Leaving| commit.origin != CommitOrigin::Recorded;
    let Some(first) = leaving.iter().find(|commit| foreign(commit)) else {
        return Ok(());
    };
    let message = match &first.origin {
        CommitOrigin::Copied(turn, original) => format!(
            "commit {} was rewritten since turn {turn} made it as {}",
            named(first),
            original.to_hex_with_len(7)
        ),
        CommitOrigin::NoteMissing(turn) => {
            format!("commit {} of turn {turn} has lost its note in refs/notes/oxundo", named(first))
        }
        CommitOrigin::Elsewhere(turn, other) => {
            format!("commit {} belongs to turn {turn}, which ended on '{}'", named(first), short_branch(other))
        }
        CommitOrigin::OfWorktree(turn, worktree) => {
            let worktree = sanitized(&shown_name(worktree));
            format!("commit {} was made by turn {turn} of the worktree '{worktree}'", named(first))
        }
        CommitOrigin::PartOf(turn) => {
            format!("commit {} is what is left here of the commits of turn {turn}", named(first))
        }
        CommitOrigin::Kept(turn) => {
            format!("commit {} has your work from before turn {turn}, which is undone", named(first))
        }
        CommitOrigin::Recorded | CommitOrigin::Unknown => {
            format!("commit {} on '{branch}' was not made by a turn", named(first))
        }
    };
    let hint = match &first.origin {
        CommitOrigin::Elsewhere(_, other) => {
            let other = branch_word(other);
            format!("run 'git switch {other}' and 'oxundo undo' to take that turn back first")
        }
        CommitOrigin::Kept(_) => {
            "run 'git reset -q --soft HEAD~1' to have that uncommitted again, then the same command again".to_owned()
        }
        CommitOrigin::PartOf(turn) => {
            return Err(Refusal::new(Code::Foreign, message)
                .hint(format!("run 'oxundo undo --only {turn}' to take that out by a commit on top"))
                .commits(ids(leaving, foreign)));
        }
        CommitOrigin::OfWorktree(..) => {
            let id = first.id.to_hex_with_len(10);
            return Err(Refusal::new(Code::Foreign, message)
                .hint(format!("run 'git revert --no-edit {id}' to take that out by a commit on top"))
                .commits(ids(leaving, foreign)));
        }
        _ => {
            let (name, does) = (branch_word(name), if op == Op::Squash { "take in" } else { "take back" });
            format!("run 'git log --notes=oxundo {name}' to see it; {word} does not {does} what no turn recorded")
        }
    };
    Err(Refusal::new(Code::Foreign, message).hint(hint).hints(way_out(op)).commits(ids(leaving, foreign)))
}

/// The hint where commits must not leave their branch. Of other operations, their callers know what leads on.
fn way_out(op: Op) -> Option<&'static str> {
    match op {
        Op::Undo => Some("run 'oxundo undo --revert' to take it out by commits on top, which rewrite nothing"),
        _ => None,
    }
}

/// What a commit is called: its abbreviated id and its subject.
pub fn named(commit: &Leaving) -> String {
    format!("{} ({})", commit.id.to_hex_with_len(7), commit.subject)
}

fn ids(leaving: &[Leaving], which: impl Fn(&Leaving) -> bool) -> Vec<ObjectId> {
    leaving.iter().filter(|commit| which(commit)).map(|commit| commit.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(n: u8) -> Leaving {
        Leaving {
            id: ObjectId::from_bytes_or_panic(&[n; 20]),
            parents: 1,
            subject: "a change".into(),
            published: None,
            notes: Vec::new(),
            origin: CommitOrigin::Recorded,
        }
    }

    fn code(leaving: &[Leaving]) -> Option<Code> {
        check(Op::Undo, "refs/heads/main", leaving).err().map(|refusal| refusal.code)
    }

    #[test]
    fn recorded_commits_may_go() {
        assert_eq!(code(&[commit(1), commit(2)]), None);
    }

    #[test]
    fn each_obstacle_has_its_code_and_names_its_commits() {
        let published = Leaving { published: Some("origin/main".into()), ..commit(2) };
        let merge = Leaving { parents: 2, ..commit(3) };
        let foreign = Leaving { origin: CommitOrigin::Unknown, ..commit(4) };
        assert_eq!(code(&[commit(1), published.clone()]), Some(Code::Published));
        assert_eq!(code(&[commit(1), merge.clone()]), Some(Code::Merge));
        assert_eq!(code(&[foreign.clone(), commit(1)]), Some(Code::Foreign));
        assert_eq!(
            code(&[foreign.clone(), merge, published]),
            Some(Code::Published),
            "what others have seen is said first"
        );
        let refusal = check(Op::Undo, "main", &[commit(1), foreign]).expect_err("foreign");
        assert_eq!(refusal.commits, ["04".repeat(20)]);
    }

    #[test]
    fn a_rewritten_commit_is_traced_to_its_turn() {
        let copied = Leaving { origin: CommitOrigin::Copied(17, commit(9).id), ..commit(1) };
        let refusal = check(Op::Undo, "main", &[copied]).expect_err("rewritten");
        assert!(refusal.message.contains("turn 17"), "{}", refusal.message);
    }
}
