//! What only commits have that no ref of the user's reaches any more: amended ones, those of branches that were deleted, and
//! entries that were dropped from the stash list. The timeline keeps them alive.

use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::Stored;
use crate::model::timeline::Pin;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::BString;
use std::collections::HashSet;

/// A commit that nothing but the timeline keeps.
pub struct Unreached {
    /// Its id.
    pub commit: ObjectId,
    /// When it was made, RFC 3339.
    pub at: String,
    /// The files that it made or changed.
    pub files: Vec<(BString, ObjectId)>,
    /// The state that a call found, where it keeps that.
    pub state: Option<Found>,
}

/// The trees of a state that a call found.
pub struct Found {
    /// Of its checkpoint.
    pub checkpoint: ObjectId,
    /// Of its files.
    pub files: ObjectId,
    /// Of what was staged.
    pub index: ObjectId,
}

/// The commits that these timelines keep alive and nothing else, the newest first.
pub fn unreached(view: &View<'_>, timelines: &[&Stored<'_>]) -> Result<Vec<Unreached>> {
    let pins = timelines.iter().flat_map(|timeline| timeline.state.pins.iter().chain(&timeline.state.held));
    let kept: HashSet<ObjectId> = pins.map(|Pin(id)| *id).collect();
    if kept.is_empty() {
        return Ok(Vec::new());
    }
    let refs = view.repo.refs_below("refs/")?.into_iter();
    let own = |name: &[u8]| name.starts_with(b"refs/oxundo/") || name.starts_with(b"refs/notes/");
    let mut present: Vec<ObjectId> = refs.filter(|(name, _)| !own(name.as_bstr())).filter_map(|(_, id)| id).collect();
    present.extend(view.head.commit);
    present.extend(Refs::new(view.repo).stash()?.into_iter().map(|entry| entry.id));
    let objects = Objects::new(view.repo);
    let kept: Vec<ObjectId> = kept.into_iter().collect();
    let commits = objects.reached_only_from(&kept, &present)?;
    commits.into_iter().map(|commit| read(view, commit)).collect()
}

fn read(view: &View<'_>, commit: ObjectId) -> Result<Unreached> {
    let objects = Objects::new(view.repo);
    let at = Timelines::new(view.repo).operation_of(commit).at;
    if let Some(state) = state_of(view, commit)? {
        return Ok(Unreached { commit, at, files: Vec::new(), state: Some(state) });
    }
    let parent = objects.parents(commit)?.first().map(|parent| objects.commit_tree(*parent)).transpose()?;
    let parent = parent.map_or_else(|| objects.write_empty_tree(), Ok)?;
    let changes = objects.tree_changes(parent, objects.commit_tree(commit)?)?;
    let files = changes.into_iter().filter_map(|(path, change)| {
        let (kind, id) = change.to?;
        (!kind.is_commit()).then_some((path, id))
    });
    Ok(Unreached { commit, at, files: files.collect(), state: None })
}

/// The state that a commit keeps, if it is one of these.
fn state_of(view: &View<'_>, commit: ObjectId) -> Result<Option<Found>> {
    let objects = Objects::new(view.repo);
    if !objects.parents(commit)?.is_empty() {
        return Ok(None);
    }
    let checkpoint = objects.commit_tree(commit)?;
    let part = |name: &str| Ok::<_, anyhow::Error>(objects.tree_entry(checkpoint, name.into())?.map(|(_, id)| id));
    let (Some(files), Some(index), Some(_)) = (part("worktree")?, part("index")?, part("rules")?) else {
        return Ok(None);
    };
    Ok(Some(Found { checkpoint, files, index }))
}
