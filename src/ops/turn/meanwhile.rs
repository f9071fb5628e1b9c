//! What the user saved, staged, stashed and committed during a turn, and which branches they made and switched to, outside of
//! every call of its agents' tools: it is the user's. It is in no commit of the turn's, and undo of the turn keeps it as it
//! keeps what was edited after the turn.

use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::Capture;
use crate::git::index::Index;
use crate::git::index::convert::Conversion;
use crate::git::objects::Objects;
use crate::git::objects::tree::plain_entry;
use crate::git::timeline::stored::Side;
use crate::model::bytes::{exact, in_quotes, shell_word};
use crate::model::call::{ToolCall, first_unknown};
use crate::model::checkpoint::{Checkpoint, FileState, IndexState, Kind};
use crate::model::merge::{Blobs, Cause, Merge, Merged};
use crate::model::path::parents;
use crate::model::plan::{AsideMove, Plan};
use crate::model::pointers::Pointers;
use crate::model::turn::{CommitKind, Turn};
use crate::ops::turn::branches::owned_that_moved;
use crate::ops::turn::calls;
use crate::ops::turn::gaps::{Gaps, Overlaps, committed_since, is_led_by_user, is_users_end, tells_all};
use crate::ops::turn::left::{LeftByCalls, is_without};
use crate::ops::turn::reach::{found_by, note_idle};
use crate::ops::turn::renamed::CameFrom;
use crate::ops::turn::states;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};

/// The states at an open turn's ends.
#[derive(Clone, Copy)]
pub struct Ends<'a> {
    /// Before it.
    pub before: &'a Checkpoint,
    /// Right after it began.
    pub start: &'a Checkpoint,
    /// Now.
    pub after: &'a Checkpoint,
}

/// What in a turn is the user's.
#[derive(Clone, Debug, Default)]
pub struct Theirs {
    /// The state that undo of the turn leads to, where that is not the one before it.
    pub goal: Option<Checkpoint>,
    /// What they staged otherwise than it was.
    staged: BTreeSet<BString>,
    /// Where the user led HEAD, branches and the stash list from, and where to.
    moves: Vec<(Pointers, Pointers)>,
    /// The state before a call that ended nowhere, where they had changed something by then.
    pub found: Option<Checkpoint>,
    /// What calls left in files that the user has changed.
    left: BTreeMap<BString, LeftByCalls>,
    /// What they saved where a file was that calls had deleted, above it or below.
    crowded: BTreeSet<BString>,
    /// What was committed as the turn began, as a tree.
    start: Option<ObjectId>,
    /// What the user committed last in the middle of it, as a tree.
    onto: Option<ObjectId>,
    /// Where the files were in the beginning to which they gave other names.
    came_from: CameFrom,
    /// Where files were in that state that calls gave other names, with what the user had saved in them.
    moved: CameFrom,
    /// The names under which the user changed files that calls had moved there, by their first ones.
    names: BTreeMap<BString, BTreeSet<BString>>,
    /// What was beyond the limits as they saved something in it: of the turn's part in that nothing can be told.
    touched: BTreeSet<BString>,
    /// Whether the turn's agents tell of all that they do.
    pub is_told: bool,
}

/// Whose a path is that changed in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The turn's.
    Turns,
    /// The user's alone.
    Users,
    /// Both have changed it: the turn's part makes this of what is committed.
    Both(Option<Part>),
}

/// A file with what of it is to be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The file.
    pub file: FileState,
    /// Whether its content is as git has it, and not as the file has it.
    pub is_gits: bool,
}

impl Part {
    fn as_in_worktree(file: FileState) -> Self {
        Self { file, is_gits: false }
    }

    /// Of a file what has this content as git has it.
    pub fn as_in_git(file: FileState, id: ObjectId) -> Self {
        Self { file: FileState { id, ..file }, is_gits: true }
    }
}

/// What becomes of lines that calls have made of what the user had saved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Overlapping {
    /// They are the turn's.
    IsCommitted,
    /// Nothing of the file is to be committed: what was hidden from git may be in them still.
    IsNobodys,
}

/// What is committed, and what tells the turn's part of a file from the rest of it.
pub struct Parts<'a, 'm, 'r> {
    head: ObjectId,
    capture: &'a Capture,
    merge: &'a mut Merge<'m>,
    /// Made ready for the first file that both have changed: most turns have none.
    conversion: Option<Conversion<'r>>,
}

impl Theirs {
    /// Finds it in the open turn, and notes it in the turn's record.
    pub fn find(view: &View<'_>, turn: &mut Turn, ends: Ends<'_>) -> Result<Self> {
        let mut told = calls::in_open_turn(view.repo);
        note_idle(view, turn, &mut told, ends.after)?;
        let is_told = tells_all(turn);
        turn.users_end = is_users_end(view.repo, &view.timeline, turn, &told)?;
        turn.led_by_user = is_led_by_user(view.repo, &view.timeline, turn, &told)?;
        if first_unknown(&told).is_some() {
            let last = states::after(&view.timeline, turn, view.timeline.last_step(turn.turn)?)?;
            let unended = found_by(view.repo, &told, ToolCall::is_unknown, &last)?;
            turn.unended = unended.into_iter().map(|(path, found)| (exact::encode(&path), found)).collect();
        }
        let mut gaps = Gaps::since(view, turn, 0, ends.after, &told)?;
        turn.within = gaps.within.iter().map(|path| exact::encode(path)).collect();
        let (start, now) = (Pointers::of(ends.start), Pointers::of(ends.after));
        let mut led = gaps.led(view, start.clone());
        let owned = owned_that_moved(view, ends.before, ends.after)?;
        led.leave(&owned, &now);
        turn.onto = led.head.commit.filter(|_| led.head != ends.start.head);
        if gaps.is_empty() && led == start {
            return Ok(Self { is_told, ..Self::default() });
        }
        gaps.find_checkouts(view, ends.start, false)?;
        let (goal, staged, Overlaps { all, crowded }) = goal(view, turn.onto, &led, &gaps, ends)?;
        turn.overlaps = all.iter().map(|path| exact::encode(path)).collect();
        let (mut left, came_from) = (gaps.left_by_calls(view, (ends.before, ends.after))?, gaps.came_from());
        let by_calls = moved_by_calls(view, ends, &goal)?;
        let tree = Objects::new(view.repo).head_tree(&ends.start.head)?;
        // What the user had saved in it before a call gave it its name, the call has left there, too; but for a file that git does
        // not have, over one that it has.
        let is_over = |path: &BString, old: &BString| {
            let is_there = Checkpoints::new(view.repo).captured_file(ends.before, path.as_bstr())?.is_some();
            Ok::<_, anyhow::Error>(is_there && !Objects::new(view.repo).tree_has_entry(tree, old.as_bstr())?)
        };
        for (path, old) in by_calls.iter().filter(|(_, old)| gaps.have(old)) {
            if !is_over(path, old)? {
                left.remove(path);
            }
        }
        let is_nothing = staged.is_empty()
            && led == start
            && goal.skipped == ends.before.skipped
            && Checkpoints::new(view.repo).work_between(ends.before, &goal)?.is_empty();
        let (found, names, touched) = (gaps.found.take(), gaps.names(), gaps.touched());
        let mut moves = gaps.moves();
        if !owned.is_empty() && led.head != start.head {
            moves.push((start, led));
        }
        Ok(Self {
            goal: (!is_nothing).then_some(goal),
            staged,
            moves,
            found,
            start: Some(tree),
            onto: turn.onto.map(|onto| Objects::new(view.repo).commit_tree(onto)).transpose()?,
            left,
            crowded,
            came_from,
            moved: by_calls,
            names,
            touched,
            is_told,
        })
    }

    /// The commits to which the user led HEAD and branches, and those below them. Where they only worded one of the turn's anew,
    /// it is the turn's still, as it is where they do so after the turn. `start` is how the turn began.
    pub fn commits(&self, view: &View<'_>, start: &Checkpoint) -> Result<BTreeSet<ObjectId>> {
        let objects = Objects::new(view.repo);
        let tips = |at: &Pointers| at.branches.values().copied().chain(at.head.commit).collect::<BTreeSet<_>>();
        let (began, mut commits) = (tips(&Pointers::of(start)), BTreeSet::new());
        let (old, mut seen): (Vec<ObjectId>, _) = (began.iter().copied().collect(), BTreeSet::new());
        for (from, to) in &self.moves {
            // What was there before the turn, and is on a branch since the user led it there, is none that a call has found.
            for (name, tip) in &to.branches {
                let was = from.branches.get(name).filter(|was| *was != tip);
                let came = was.map(|was| objects.commits_between(&[*was], *tip)).transpose()?.unwrap_or_default();
                commits.extend(objects.reachable_from(&old, &came)?);
            }
            let (from, to) = (tips(from), tips(to));
            // What was there at any time may have gone since, and be brought back.
            seen.extend(from.iter().copied());
            let hidden: Vec<ObjectId> = seen.iter().copied().collect();
            let of_turn: Vec<ObjectId> =
                from.difference(&began).filter(|tip| !commits.contains(*tip)).copied().collect();
            for new in to.difference(&seen).filter(|new| !of_turn.iter().any(|tip| objects.is_reworded(*tip, **new))) {
                commits.extend(objects.commits_between(&hidden, *new)?);
            }
        }
        Ok(commits)
    }

    /// Whose a path is, and what of it is to be committed.
    pub fn whose<'r>(
        &self,
        view: &View<'r>,
        (before, after): (&Checkpoint, &Checkpoint),
        path: &BStr,
        parts: &mut Parts<'_, '_, 'r>,
    ) -> Result<Whose> {
        let checkpoints = Checkpoints::new(view.repo);
        let file = |state: &Checkpoint, path: &BStr| checkpoints.captured_file(state, path);
        if self.touched.contains(path) {
            return Ok(Whose::Users);
        }
        if self.left.is_empty() && self.goal.is_none() && self.crowded.is_empty() {
            return Ok(Whose::Turns);
        }
        let head = parts.head;
        let in_head = |path: &BStr| Objects::new(view.repo).tree_file(head, path);
        let committed = in_head(path)?;
        // git does not have it: nobody adds it for them.
        if committed.is_none() && self.crowded.contains(path) {
            return Ok(Whose::Users);
        }
        let origin = self.came_from.get(path).filter(|_| committed.is_none()).map(|old| old.as_bstr());
        if let Some(old) = origin
            && file(before, old)?.is_some()
            && in_head(old)?.is_none()
        {
            return Ok(Whose::Users);
        }
        // Or as the user has committed it last.
        let is_at_start = || {
            for tree in self.start.iter().chain(&self.onto) {
                if committed == Objects::new(view.repo).tree_file(*tree, path)? {
                    return Ok::<_, anyhow::Error>(true);
                }
            }
            Ok(false)
        };
        // A call may have committed what the user had saved in it by then.
        let is_it = |left: &Option<FileState>| committed == left.map(|left| (left.kind, left.id));
        // Or what calls had made by an earlier time, without anything of the user's.
        let has_none_of_theirs = |left: &Option<FileState>| match (committed, left, file(after, path)?) {
            (Some((_, committed)), Some(left), Some(now)) => is_without(view, committed, (left.id, now.id)),
            _ => Ok(false),
        };
        if let Some(LeftByCalls { file: left, were }) = self.left.get(path)
            && (is_at_start()? || is_it(left) || were.iter().any(is_it) || has_none_of_theirs(left)?)
            && (committed.is_some() || left.is_some() && file(after, path)?.is_some())
            && (checkpoints.has_room(after, path)? || self.has_room_beside_theirs(view, after, path)?)
        {
            return Ok(Whose::Both(left.map(Part::as_in_worktree)));
        }
        let Some(goal) = &self.goal else { return Ok(Whose::Turns) };
        let (was, now) = (file(before, path)?, file(after, path)?);
        let first = self.moved.get(path).map_or(path, |old| old.as_bstr());
        for name in self.names.get(&first.to_owned()).into_iter().flatten().filter(|_| committed.is_none()) {
            // The user has committed it under a name that it has no more.
            if let Some(there) = in_head(name.as_bstr())?
                && file(after, name.as_bstr())?.is_none()
            {
                let theirs = (Some(there), name.as_bstr(), None);
                return parts.part_of(view, path, [was, file(goal, first)?, now], theirs, Overlapping::IsCommitted);
            }
        }
        if let Some(old) = self.moved.get(path) {
            let from = self.came_from.get(old).unwrap_or(old).as_bstr();
            let first = in_head(from)?;
            // Over another file, of which no call has committed what it is now.
            let is_replaced = first.is_some() && committed == was.map(|was| (was.kind, was.id));
            // The user has committed the name alone that a call had staged.
            let is_named = first.is_none() && was.is_none();
            if committed.is_none() || is_replaced || is_named {
                let committed = if is_named { (committed, path, was) } else { (first, from, file(before, from)?) };
                let ends = [was, file(goal, old.as_bstr())?, now];
                return parts.part_of(view, path, ends, committed, Overlapping::IsCommitted);
            }
        }
        let saved = file(goal, path)?;
        if was == saved {
            let is_theirs =
                saved == now && (self.staged.contains(path) || self.has_committed(view, path, committed)?);
            return Ok(if is_theirs { Whose::Users } else { Whose::Turns });
        }
        if saved == now {
            let goes_along = now.is_none() && self.goes_along(view, (goal, after), path)?;
            return Ok(if goes_along { Whose::Turns } else { Whose::Users });
        }
        let committed = match origin {
            Some(old) => (in_head(old)?, old, file(before, old)?),
            None => (committed, path, was),
        };
        parts.part_of(view, path, [was, saved, now], committed, Overlapping::IsCommitted)
    }

    /// Whether a file can be at a path beside what is committed: in its way is only what the user saved where it was.
    fn has_room_beside_theirs(&self, view: &View<'_>, after: &Checkpoint, path: &BStr) -> Result<bool> {
        let below = Objects::new(view.repo).entries_below(after.worktree, path)?;
        let above = parents(path).map(ToOwned::to_owned).filter(|above| self.crowded.contains(above));
        let mut in_the_way = below.into_iter().map(|(below, _)| below).chain(above).peekable();
        Ok(in_the_way.peek().is_some() && in_the_way.all(|path| self.crowded.contains(&path)))
    }

    /// Whether what is committed of a path is the user's own: they have changed it back since.
    fn has_committed(&self, view: &View<'_>, path: &BStr, committed: Option<(Kind, ObjectId)>) -> Result<bool> {
        let (Some(start), Some(onto)) = (self.start, self.onto) else { return Ok(false) };
        // A call has given the file this name, and may have taken it away again.
        if self.names.values().any(|names| names.contains(&path.to_owned())) {
            return Ok(false);
        }
        let objects = Objects::new(view.repo);
        Ok(objects.tree_file(onto, path)? == committed && objects.tree_file(start, path)? != committed)
    }

    /// Whether a file got another name and has what calls did to it there: then the name is the turn's too.
    fn goes_along(&self, view: &View<'_>, (goal, after): (&Checkpoint, &Checkpoint), path: &BStr) -> Result<bool> {
        let file = |state, path: &BString| Checkpoints::new(view.repo).captured_file(state, path.as_bstr());
        for (new, _) in self.came_from.iter().filter(|(_, old)| *old == path) {
            if file(goal, new)? != file(after, new)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl<'a, 'm, 'r> Parts<'a, 'm, 'r> {
    /// With the tree that is committed, the present state, and what merges blobs.
    pub fn of(head: ObjectId, capture: &'a Capture, merge: &'a mut Merge<'m>) -> Self {
        Self { head, capture, merge, conversion: None }
    }

    /// What is committed of a file.
    pub fn committed(&self, view: &View<'_>, path: &BStr) -> Result<Option<(Kind, ObjectId)>> {
        Objects::new(view.repo).tree_file(self.head, path)
    }

    /// The blob that git has, or would have, of a file in the worktree.
    pub fn as_git_has(&mut self, view: &View<'r>, path: &BStr, file: FileState) -> Result<ObjectId> {
        if file.kind == Kind::Symlink {
            return Ok(file.id);
        }
        let committed = self.committed(view, path)?;
        let conversion = self.conversion(view)?;
        let converts = match committed {
            Some((_, committed)) => conversion.converts_with(path, committed)?,
            None => conversion.may_convert(path)?,
        };
        if converts { Index::new(view.repo).converted(path, file.id) } else { Ok(file.id) }
    }

    fn conversion(&mut self, view: &View<'r>) -> Result<&mut Conversion<'r>> {
        Ok(match &mut self.conversion {
            Some(ready) => ready,
            none => none.insert(Index::new(view.repo).conversion(&self.capture.index)?),
        })
    }

    /// As of a file that both have changed, of one that was so before the turn, was saved so by the user, and is so now, where what is
    /// committed of it is what HEAD has under this name.
    pub fn part_in_head(
        &mut self,
        view: &View<'r>,
        path: &BStr,
        (was, saved, now): (FileState, FileState, FileState),
        name: &BStr,
    ) -> Result<Whose> {
        let committed = Objects::new(view.repo).tree_file(self.head, name)?;
        self.part_of(view, path, [was, saved, now].map(Some), (committed, name, None), Overlapping::IsNobodys)
    }

    /// What of a file is to be committed that was so before the turn, was saved so by the user, and is so now. What is committed of it
    /// may be under another name, for which git has its own attributes; that file may have been so before the turn.
    fn part_of(
        &mut self,
        view: &View<'r>,
        path: &BStr,
        [was, saved, now]: [Option<FileState>; 3],
        (committed, from, before): (Option<(Kind, ObjectId)>, &BStr, Option<FileState>),
        overlapping: Overlapping,
    ) -> Result<Whose> {
        let (Some(saved), Some(now)) = (saved, now) else { return Ok(Whose::Turns) };
        // git does not have the user's file: nobody adds it for them.
        let Some((kind, ours)) = committed else { return Ok(Whose::Users) };
        if [saved.kind, now.kind, kind].contains(&Kind::Symlink) {
            return Ok(Whose::Turns);
        }
        // Whoever has changed the mode.
        let kind = if was.is_some_and(|was| was.kind != saved.kind) { kind } else { now.kind };
        // What is committed may have no line as the file has it.
        let converted = |file: FileState| Index::new(view.repo).converted(path, file.id);
        let mut ours = ours;
        let mut is_gits = self.conversion(view)?.converts_with(from, ours)?;
        // As the file has it, where that is known of what is committed: git may have no more of it than a name.
        let is_it = |file: &FileState| Index::new(view.repo).converted(from, file.id).is_ok_and(|id| id == ours);
        if let Some(before) = before.filter(|before| is_gits && is_it(before)) {
            (ours, is_gits) = (before.id, false);
        }
        let content = |file: FileState| if is_gits { converted(file) } else { Ok(file.id) };
        // Where the filter is gone, git stages none of it: that is said where it is to be staged.
        let (Ok(base), Ok(theirs)) = (content(saved), content(now)) else { return Ok(Whose::Turns) };
        let blobs = Blobs { base, ours, theirs };
        let merged = match (self.merge)(path, blobs)? {
            // What the agent has made of lines that the user had saved is the agent's, and no more than these.
            Merged::Overlap(Cause::Lines(_)) if overlapping == Overlapping::IsCommitted => {
                Checkpoints::new(view.repo).merging_for_theirs(|merge| merge(path, blobs))?
            }
            merged => merged,
        };
        Ok(match merged {
            Merged::Clean(id) => Whose::Both(Some(Part { file: FileState { kind, id, ..now }, is_gits })),
            Merged::Overlap(_) => Whose::Turns,
        })
    }
}

/// Those of these files that going back from a state to the goal changes, as records have them.
pub fn taken_along(
    view: &View<'_>,
    overlaps: &BTreeSet<BString>,
    (goal, from): (&Checkpoint, &Checkpoint),
) -> Result<BTreeSet<String>> {
    let mut told = BTreeSet::new();
    for path in overlaps {
        let file = |state| Checkpoints::new(view.repo).captured_file(state, path.as_bstr());
        if file(goal)? != file(from)? {
            told.insert(exact::encode(path));
        }
    }
    Ok(told)
}

/// Whether a file has what the user saved during a turn beside what its calls wrote.
pub fn has_both(turn: &Turn, path: &BString) -> bool {
    turn.overlaps.contains(&exact::encode(path))
}

/// Warns of what the user saved in these turns that a plan takes with them, or cannot bring back.
pub fn warn_of_both<'t>(view: &View<'_>, turns: impl Iterator<Item = &'t Turn>, plan: &Plan) {
    for warning in gone_with(turns, plan) {
        view.warn(warning);
    }
}

/// As [`has_both`], of what goes aside as a whole, be it a directory.
fn has_both_aside(turn: &Turn, aside: &AsideMove) -> bool {
    let directory = [aside.path.as_slice(), b"/"].concat().into();
    aside.out && (has_both(turn, &aside.path) || has_both(turn, &directory))
}

/// The files that a plan changes, and those beyond the limits that it moves away.
pub fn changed_files(plan: &Plan) -> impl Iterator<Item = BString> {
    let aside = plan.aside.iter().filter(|aside| aside.out).map(|aside| &aside.path);
    plan.files.iter().map(|file| &file.path).chain(aside).cloned()
}

/// What is said of that.
pub fn gone_with<'t>(turns: impl Iterator<Item = &'t Turn>, plan: &Plan) -> Vec<String> {
    let mut said = Vec::new();
    for turn in turns {
        let aside = plan.aside.iter().filter(|aside| has_both_aside(turn, aside));
        let files = plan.files.iter().map(|file| &file.path).filter(|path| has_both(turn, path));
        for path in files.chain(aside.map(|aside| &aside.path)) {
            let path = in_quotes(path.as_bstr());
            said.push(format!("what you saved in {path} during turn {} goes with it", turn.turn));
        }
    }
    said
}

/// Warns of what the user saved in a turn and a later call of it took away again, where undo leaves the file as it is.
pub fn warn_of_lost(view: &View<'_>, turn: &Turn, plan: &Plan) {
    for path in turn.overlaps.iter().filter_map(|path| exact::decode(path)) {
        let is_aside = plan.aside.iter().any(|aside| aside.path == path.trim_end_with(|c| c == '/'));
        if !is_aside && !plan.files.iter().any(|file| file.path == path) {
            let find = shell_word([b":/", path.as_slice()].concat());
            let path = in_quotes(path.as_bstr());
            let what = format!("what you saved in {path} during turn {}, and a later call took away", turn.turn);
            view.warn(format!("{what}, does not come back: 'oxundo find {find}' tells where it is"));
        }
    }
}

/// What takes out both.
pub const BOTH: &str = "or pass --edits=overwrite, which takes out both; redo brings them back";

/// Refuses to go back over a turn where that takes what the user saved in it, with what its calls wrote, out of these files.
pub fn check_apart(turn: &Turn, changed: impl Iterator<Item = BString>, hint: &str) -> Result<(), Refusal> {
    let (paths, mut rest): (Vec<BString>, Vec<BString>) = changed.partition(|path| has_both(turn, path));
    let Some(path) = paths.first() else { return Ok(()) };
    // What goes back under another name goes with that.
    let names = paths.iter().flat_map(|path| turn.other_names(path.as_bstr())).filter(|name| !paths.contains(name));
    let names: BTreeSet<BString> = names.collect();
    rest.retain(|path| !names.contains(path));
    let path = in_quotes(path.as_bstr());
    let message = format!("{path} has what you saved during turn {} beside what its calls wrote", turn.turn);
    let others =
        paths.iter().chain(&names).map(|path| shell_word([b":(top,exclude,literal)", path.as_slice()].concat()));
    let others = others.collect::<Vec<_>>().join(" ");
    let them = if paths.len() == 1 { "it" } else { "them" };
    let leave = format!("run 'oxundo undo --only {} -- :/ {others}' to take out all but {them}", turn.turn);
    let leave = (!rest.is_empty()).then_some(leave);
    let hint = if leave.is_none() { hint.trim_start_matches("or ") } else { hint };
    Err(Refusal::new(Code::Conflict, message).hints(leave).hint(hint).paths(paths))
}

/// Where files were that calls gave other names, by these, where the user had saved something in them.
fn moved_by_calls(view: &View<'_>, ends: Ends<'_>, goal: &Checkpoint) -> Result<CameFrom> {
    let checkpoints = Checkpoints::new(view.repo);
    let saved = checkpoints.work_between(ends.before, goal)?.files;
    let mut moved = match checkpoints.work_between(goal, ends.after)?.files {
        files if saved.keys().any(|path| files.get(path).is_some_and(|change| change.to.is_none())) => {
            checkpoints.came_from(&files)?
        }
        _ => CameFrom::new(),
    };
    moved.retain(|_, old| saved.contains_key(old));
    Ok(moved)
}

/// The state that undo of a turn leads to, with what the user saved, staged, committed and began; what of that is
/// staged otherwise; and the files of which something overlaps with what calls did.
fn goal(
    view: &View<'_>,
    onto: Option<ObjectId>,
    led: &Pointers,
    gaps: &Gaps,
    ends: Ends<'_>,
) -> Result<(Checkpoint, BTreeSet<BString>, Overlaps)> {
    let mut goal = ends.before.clone();
    let mut overlaps = gaps.put_files(view, &mut goal)?;
    overlaps.all = gaps.followed(view, &overlaps.all, (ends.before, ends.after))?;
    overlaps.all.extend(gaps.written(view, ends.before)?.without_place(ends.before, &goal, ends.after)?);
    goal.operation = gaps.operation(goal.operation);
    let staged = if let Some(onto) = onto {
        led.clone().put_into(&mut goal);
        goal.index = committed(view, ends.start, onto)?;
        gaps.staged(view, ends.before, &goal.index)?
    } else {
        led.clone().put_beside_head(&mut goal);
        gaps.staged(view, ends.before, &ends.start.index)?
    };
    Checkpoints::new(view.repo).put_entries(&mut goal.index, &staged)?;
    Ok((goal, staged.into_keys().collect(), overlaps))
}

/// The index at a turn's beginning, with what the user committed since.
fn committed(view: &View<'_>, start: &Checkpoint, onto: ObjectId) -> Result<IndexState> {
    let objects = Objects::new(view.repo);
    let tree = objects.commit_tree(onto)?;
    let mut index = start.index.clone();
    let mut entries = BTreeMap::new();
    for path in objects.changed_paths(objects.head_tree(&start.head)?, tree)? {
        let entry = objects.entry_at(tree, path.as_bstr())?;
        entries.insert(path, plain_entry(entry, false));
    }
    Checkpoints::new(view.repo).put_entries(&mut index, &entries)?;
    Ok(index)
}

/// The state after a turn without its own commit, and without what that staged: undo of the turn does not leave that staged.
pub fn without_commit(view: &View<'_>, turn: &Turn, after: &Checkpoint) -> Result<Checkpoint> {
    let (objects, checkpoints) = (Objects::new(view.repo), Checkpoints::new(view.repo));
    let last = states::after(&view.timeline, turn, view.timeline.last_step(turn.turn)?)?;
    let mut state = after.clone();
    if last.head == after.head {
        return Ok(state);
    }
    let (head, undone) = (objects.head_tree(&after.head)?, view.timeline.undone_to(turn.turn)?);
    let mut entries = BTreeMap::new();
    for (path, change) in checkpoints.index_changes(&last, after)? {
        let committed = plain_entry(objects.entry_at(head, path.as_bstr())?, false);
        if change.to == committed && checkpoints.entries_of(&undone.index, path.as_bstr())? != change.to {
            entries.insert(path, change.from);
        }
    }
    checkpoints.put_entries(&mut state.index, &entries)?;
    // Nobody but oxundo commits for a turn after its last call.
    let is_agents = |id: &ObjectId| turn.commits.iter().any(|it| it.id == *id && it.kind == CommitKind::Agent);
    if let Some(made) = after.head.commit.filter(is_agents)
        && !objects.reachable_from(&Pointers::of(&last).tips(), &[made])?.contains(&made)
        && let Some(parent) = objects.parents(made)?.first()
    {
        state.advance(*parent);
    }
    Ok(state)
}

/// The files that changed after the last step of a turn, but for what the user has committed.
pub fn changed_at_end(view: &View<'_>, turn: &Turn) -> Result<Vec<BString>> {
    let last = states::after(&view.timeline, turn, view.timeline.last_step(turn.turn)?)?;
    let end = without_commit(view, turn, &view.timeline.checkpoint(turn.turn, Side::After)?)?;
    let theirs = committed_since(view, &last, &end)?;
    let changed = Checkpoints::new(view.repo).file_changes(&last, &end)?.into_keys();
    Ok(changed.filter(|path| !theirs.contains(path)).collect())
}

/// Whether the user has ended, in the middle of a turn, what one of its calls had left git in the middle of.
pub fn has_ended_operation(view: &View<'_>, turn: &Turn, end: &Checkpoint) -> Result<bool> {
    let timeline = &view.timeline;
    let is_ended = |step, now: &Checkpoint| {
        let left = states::after(timeline, turn, step)?.operation;
        Ok::<_, anyhow::Error>(left.is_under_way() && !now.operation.is_under_way())
    };
    if !turn.led_by_user {
        return Ok(false);
    }
    for step in timeline.steps_with_gaps(turn.turn)? {
        let Some(before) = timeline.step_checkpoint(turn.turn, step, Side::Before)? else { continue };
        if is_ended(step.saturating_sub(1), &before)? {
            return Ok(true);
        }
    }
    is_ended(timeline.last_step(turn.turn)?, end)
}

/// Where the user led HEAD, branches and the stash list from during a turn, and where to, in order.
pub fn users_moves(view: &View<'_>, turn: &Turn, after: &Checkpoint) -> Result<Vec<(Pointers, Pointers)>> {
    Ok(Gaps::since(view, turn, 0, &without_commit(view, turn, after)?, &[])?.moves())
}

/// A state from before the end of a turn, with what the user did after this step of it, but for where they led HEAD; and the files
/// of which something overlaps with what calls did. None where that is nothing.
pub fn with_saved(
    view: &View<'_>,
    turn: &Turn,
    base: &Checkpoint,
    since: u64,
    after: &Checkpoint,
) -> Result<Option<(Checkpoint, BTreeSet<BString>)>> {
    let mut gaps = Gaps::since(view, turn, since, &without_commit(view, turn, after)?, &[])?;
    if gaps.is_empty() {
        return Ok(None);
    }
    gaps.find_checkouts(view, base, true)?;
    let mut state = base.clone();
    let overlaps = gaps.put_files(view, &mut state)?;
    let mut overlaps = gaps.followed(view, &overlaps.all, (base, after))?;
    overlaps.extend(gaps.written(view, base)?.without_place(base, &state, after)?);
    state.operation = gaps.operation(state.operation);
    gaps.led(view, Pointers::of(base)).put_beside_head(&mut state);
    let staged = gaps.staged(view, base, &base.index)?;
    Checkpoints::new(view.repo).put_entries(&mut state.index, &staged)?;
    Ok(Some((state, overlaps)))
}
