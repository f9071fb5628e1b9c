//! The line that puts HEAD on another branch with git, so that git takes it as things stand: where uncommitted changes are in
//! the way they are stashed first, and a branch that another worktree has checked out is freed.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::model::bytes::{lossless, shell_word};
use crate::model::checkpoint::branch_word;
use crate::model::turn::Turn;
use crate::ops::called::branch_now;
use crate::ops::turn::commit::uncommitted;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::BString;

/// The line that puts HEAD on a branch, which is made at the commit where it is not there, or detaches it at the commit;
/// nothing where neither is there.
pub fn line(view: &View<'_>, branch: Option<&str>, commit: Option<ObjectId>) -> Result<Option<String>> {
    let refs = Refs::new(view.repo);
    let tip = branch.map(|name| refs.ref_id(name)).transpose()?.flatten();
    let word = branch.map(branch_word);
    let (to, switch) = match (word, tip, commit.filter(|commit| Objects::new(view.repo).has_commit(*commit))) {
        (Some(word), Some(tip), _) => (tip, format!("git switch {word}")),
        (Some(word), None, Some(commit)) => (commit, format!("git switch -c {word} {}", commit.to_hex_with_len(10))),
        (None, _, Some(commit)) => (commit, format!("git switch --detach {}", commit.to_hex_with_len(10))),
        (_, _, None) => return Ok(None),
    };
    let elsewhere = branch.and_then(|name| refs.branches_elsewhere().ok()?.remove(name));
    let cleared = cleared(view, to)?;
    // Where nothing is committed git stashes nothing. The files stay as they are.
    let (cleared, switch) = match cleared {
        Some(_) if view.head.commit.is_none() => (None, as_they_are(branch, tip.is_none(), to)),
        cleared => (cleared.map(|stash| format!("{stash} && ")), switch),
    };
    let freed = elsewhere.map(|place| format!("git -C {} switch --detach && ", shell_word(place.as_bytes())));
    Ok(Some([cleared, freed, Some(switch)].into_iter().flatten().collect()))
}

/// The line that puts HEAD there and leaves the files and the index alone.
fn as_they_are(branch: Option<&str>, is_new: bool, to: ObjectId) -> String {
    let to = to.to_hex_with_len(10);
    let Some(name) = branch else { return format!("git update-ref --no-deref HEAD {to}") };
    let made = if is_new { format!("git branch {} {to} && ", branch_word(name)) } else { String::new() };
    format!("{made}git symbolic-ref HEAD {}", shell_word(lossless::decode(name)))
}

/// The line that puts HEAD on the branch that a turn ended on, where that is another, and the turn is in its history.
pub fn to_turn(view: &View<'_>, turn: &Turn) -> Result<Option<String>> {
    let branch = branch_now(view, turn)?;
    let Some(branch) = branch.as_deref().filter(|name| *name != view.head.stack()) else { return Ok(None) };
    // One that moved no ref is done on no branch.
    let node = view.timeline.node(turn.turn)?;
    let (tip, end) = (Refs::new(view.repo).ref_id(branch)?, node.to.filter(|_| node.moved()));
    let objects = Objects::new(view.repo);
    match end.filter(|end| objects.has_commit(*end)).zip(tip) {
        Some((end, tip)) if objects.is_ancestor(end, tip)? => line(view, Some(branch), None),
        _ => Ok(None),
    }
}

/// What takes the uncommitted changes out of the way of a switch to a commit, if any are in it.
fn cleared(view: &View<'_>, to: ObjectId) -> Result<Option<&'static str>> {
    let objects = Objects::new(view.repo);
    stash_of(view, &objects.changed_paths(objects.head_tree(&view.head)?, objects.commit_tree(to)?)?)
}

/// What takes the uncommitted changes out of the way of something that writes these files, if any are in it.
pub fn stash_of(view: &View<'_>, written: &[BString]) -> Result<Option<&'static str>> {
    if written.is_empty() {
        return Ok(None);
    }
    let present = view.present()?;
    let untracked = Checkpoints::new(view.repo).untracked_files(&present)?;
    let uncommitted = uncommitted(view, &present)?;
    Ok(if untracked.iter().any(|path| written.contains(path)) {
        Some("git stash -u")
    } else if written.iter().any(|path| uncommitted.contains(path)) {
        Some("git stash")
    } else {
        None
    })
}
