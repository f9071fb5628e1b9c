//! Whether a turn's state before it may hold the only copy of something that no turn has made.

use crate::git::objects::Objects;
use crate::git::timeline::stored::Side;
use crate::model::checkpoint::{Checkpoint, Delta};
use crate::model::turn::Turn;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};

/// How many turns below are asked whether they have made it. What is older counts as the user's.
const MOST: usize = 50;

/// A file's path and content.
type Content<'a> = (&'a BString, ObjectId);

/// Whether a turn changed or deleted what no commit has and no turn below it has made: the user's.
pub fn is_sole(view: &View<'_>, turn: &Turn, before: &Checkpoint, whole: &Delta) -> Result<bool> {
    let committed = match turn.dirty_commit {
        Some(dirty) => Objects::new(view.repo).commit_tree(dirty)?,
        None => Objects::new(view.repo).head_tree(&before.head)?,
    };
    let stays = |path: &BString, id| whole.files[path].to.is_some_and(|to| to.id == id);
    let gone = whole.files.iter().filter_map(|(path, change)| Some((path, change.from?.id)));
    let (_, mut gone) = split(view, committed, gone.filter(|(path, id)| !stays(path, *id)).collect())?;
    let mut below = turn.previous;
    for _ in 0..MOST {
        let Some(number) = below.filter(|_| !gone.is_empty()) else { break };
        let [left, found] = [Side::After, Side::Before].map(|side| view.timeline.checkpoint(number, side));
        let (made, came_between) = split(view, left?.worktree, gone)?;
        if !came_between.is_empty() {
            return Ok(true);
        }
        (gone, _) = split(view, found?.worktree, made)?;
        below = view.timeline.require_turn(number)?.previous;
    }
    Ok(!gone.is_empty())
}

/// What of this a tree has, and what it has not.
fn split<'a>(view: &View<'_>, tree: ObjectId, all: Vec<Content<'a>>) -> Result<(Vec<Content<'a>>, Vec<Content<'a>>)> {
    let (mut has, mut has_not) = (Vec::new(), Vec::new());
    for (path, id) in all {
        let found = Objects::new(view.repo).tree_file(tree, path.as_bstr())?;
        let list = if found.is_some_and(|(_, found)| found == id) { &mut has } else { &mut has_not };
        list.push((path, id));
    }
    Ok((has, has_not))
}
