//! What changed in a turn outside of every call of its agents' tools, where they tell of all of these: nobody but the user did
//! it.

use crate::agents::adapters::adapter;
use crate::config::Config;
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::delta::touched_beyond_limits;
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::git::scan::found::state_of;
use crate::git::scan::nested::whole_state;
use crate::git::timeline::stored::{Side, Stored};
use crate::git::worktree::Worktree;
use crate::model::bytes::exact;
use crate::model::call::{ToolCall, is_between};
use crate::model::checkpoint::{Change, Checkpoint, Delta, FileState, IndexEntry, IndexState, Kind, Skipped};
use crate::model::leftover::Ends;
use crate::model::merge::{Blobs, Merge, Merged};
use crate::model::operation::Operation;
use crate::model::path::{is_at_or_below, parents};
use crate::model::pointers::Pointers;
use crate::model::step::Step;
use crate::model::turn::{Bounds, Participant, Turn};
use crate::ops::turn::checkouts::{Checkout, file_of};
use crate::ops::turn::found::found_by_unended;
use crate::ops::turn::known::has_told_calls;
use crate::ops::turn::left::{self, Between, LeftByCalls};
use crate::ops::turn::reach::{Reach, is_any_at_large};
use crate::ops::turn::renamed::{self, CameFrom, Renames};
use crate::ops::turn::states;
use crate::ops::turn::unplaced::Written;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};

/// The files that calls name which ended nowhere, as these found them.
fn unended(view: &View<'_>, turn: &Turn, last: &Checkpoint) -> Result<Vec<(BString, Option<FileState>)>> {
    let is_there = |found: Option<FileState>| found.is_none_or(|file| Objects::new(view.repo).has_object(file.id));
    let mut files = Vec::new();
    for (path, found) in &turn.unended {
        let Some(path) = exact::decode(path) else { continue };
        let found =
            if is_there(*found) { *found } else { Checkpoints::new(view.repo).captured_file(last, path.as_bstr())? };
        files.push((path, found));
    }
    Ok(files)
}

/// What changed between two calls, or after the last.
struct Gap {
    work: Delta,
    /// The files that it goes from, as a tree.
    was: ObjectId,
    from: Pointers,
    to: Pointers,
    /// The state then, where something was staged.
    then: Option<Checkpoint>,
    /// What git wrote as HEAD went from one commit to another.
    checkout: Option<Checkout>,
    /// The files that got other names.
    renames: Renames,
    /// What is beyond the limits and new.
    beyond: Vec<Skipped>,
    /// Which files and directories that is, where a call may have given them other names since.
    made: Vec<String>,
    /// What is beyond the limits, and changed.
    touched: Vec<Touched>,
    /// Where files were that calls had given the names under which the user has changed them.
    by_calls: CameFrom,
}

impl Gap {
    fn is_empty(&self) -> bool {
        self.work.is_empty() && self.beyond.is_empty() && self.touched.is_empty() && self.from == self.to
    }

    /// What was done to a file, and where it was; none where git wrote all of it, as without what calls did it would have written
    /// something else.
    fn change(&self, base: &Checkpoint, path: &BString) -> Option<(Option<&BString>, Change<Option<FileState>>)> {
        let change = self.work.files.get(path)?;
        match (self.renames.came.get(path), &self.checkout) {
            (Some(origin), _) => Some((Some(&origin.path), Change::new(origin.file, change.to))),
            (None, Some(checkout)) => checkout.rest(base, path, change).map(|rest| (None, rest)),
            (None, None) => Some((None, change.clone())),
        }
    }

    /// The entries that went along with files to their other names, as they are without what calls did: `staged`, or in the
    /// beginning. Where a call names its file only that one is looked at before it: `all` tells what is seen of the old name later.
    fn moved_entries(
        &self,
        all: &[Self],
        came_from: &CameFrom,
        staged: &BTreeMap<BString, Vec<IndexEntry>>,
        in_beginning: impl Fn(&BString) -> Result<Vec<IndexEntry>>,
    ) -> Result<Vec<(BString, Vec<IndexEntry>)>> {
        let own = |path: &BString| staged.get(path).cloned().map_or_else(|| in_beginning(path), Ok);
        let mut moved = Vec::new();
        for (path, change) in &self.work.index {
            let Some(old) = came_from.get(path) else { continue };
            let is_gone =
                |gap: &Self| gap.work.index.get(old).is_some_and(|it| it.to.is_empty() && it.from == change.to);
            let has_come = self.work.index.get(old).map_or_else(|| all.iter().any(is_gone), |it| it.from == change.to);
            // What is staged again as it was has not come along.
            if has_come && own(path)? != change.to {
                moved.push((path.clone(), own(old)?));
            }
        }
        Ok(moved)
    }
}

/// What is beyond the limits, and in which the user has saved something.
struct Touched {
    /// Its path, a directory's with a slash at its end.
    name: BString,
    /// Which file or directory it is, where a call may have given it another name since.
    file: Option<String>,
}

impl Touched {
    fn of(skipped: &Skipped, state: &Checkpoint) -> Self {
        let mut name = skipped.path.clone();
        if whole_state(skipped).is_some() {
            name.push(b'/');
        }
        Self { name, file: state.uncaptured.get(&skipped.path).map(|known| known.file.clone()) }
    }

    fn path(&self) -> BString {
        self.name.trim_end_with(|c| c == '/').into()
    }

    /// Whether it is the user's, of whom there is this without what calls did, and who made these between them.
    fn is_theirs(&self, without_calls: &Checkpoint, made: &BTreeSet<String>) -> bool {
        let was_there = |file: &String| without_calls.uncaptured.values().any(|known| known.file == *file);
        without_calls.skips(&self.path())
            || self.file.as_ref().is_some_and(|file| made.contains(file) || was_there(file))
    }

    /// Its name at the end of a turn.
    fn followed(&self, view: &View<'_>, after: &Checkpoint) -> BString {
        let Some(file) = self.file.as_ref().filter(|_| !after.skips(&self.path())) else { return self.name.clone() };
        let worktree = Worktree::new(view.repo);
        let now = after.skipped.iter().find(|now| worktree.is_at(now.path.as_bstr(), file));
        now.map_or_else(
            || self.name.clone(),
            |now| [now.path.as_slice(), &self.name[self.path().len()..]].concat().into(),
        )
    }
}

/// What of a turn is outside of its calls.
struct Outside {
    /// States between which nothing of the agents' changed anything, in order.
    stretches: Vec<(Checkpoint, Checkpoint)>,
    /// The state before a call that ended nowhere, or with which something was at work in the background.
    found: Option<Checkpoint>,
}

/// The files that are committed as HEAD has gone on, and are so in the worktree.
pub fn committed_since(view: &View<'_>, state: &Checkpoint, now: &Checkpoint) -> Result<Vec<BString>> {
    let objects = Objects::new(view.repo);
    let (head, mut committed) = (objects.head_tree(&now.head)?, Vec::new());
    for path in objects.changed_paths(objects.head_tree(&state.head)?, head)? {
        if objects.tree_file(head, path.as_bstr())? == objects.tree_file(now.worktree, path.as_bstr())? {
            committed.push(path);
        }
    }
    Ok(committed)
}

/// A state from which the user led HEAD to another, without what they have committed by that and had saved before, beside what was at
/// work. `background` are the ends of the steps of that, in order.
fn before_saved(
    view: &View<'_>,
    mut from: Checkpoint,
    to: &Checkpoint,
    background: &[(Checkpoint, Checkpoint)],
) -> Result<Checkpoint> {
    let checkpoints = Checkpoints::new(view.repo);
    let paths = if background.is_empty() { Vec::new() } else { committed_since(view, &from, to)? };
    for (before, after) in background.iter().rev() {
        let file = |state, path: &BString| checkpoints.captured_file(state, path.as_bstr());
        let mut saved = Vec::new();
        for path in &paths {
            let [now, was, is] = [file(&from, path)?, file(before, path)?, file(after, path)?];
            if now == is && was != is {
                saved.push(path);
            }
        }
        from = checkpoints.with_paths_of(&from, before, saved)?;
    }
    Ok(from)
}

/// The state after a step with what was found behind an earlier one, as something began to be at work in the background: where calls since
/// then name files, no more was looked at.
pub fn with_found(
    view: &View<'_>,
    turn: &Turn,
    (step, state): (u64, Checkpoint),
    (behind, found): (u64, &Checkpoint),
) -> Result<Checkpoint> {
    for later in behind + 1..=step {
        let later = view.timeline.step(turn.turn, later)?;
        let is_of_file =
            |step: Step| !step.is_background() && matches!(Reach::of(view.repo, &step.tool), Reach::File(_));
        if !later.is_some_and(is_of_file) {
            return Ok(state);
        }
    }
    let (checkpoints, mut paths) = (Checkpoints::new(view.repo), Vec::new());
    for (path, change) in checkpoints.file_changes(&states::after(&view.timeline, turn, behind)?, found)? {
        if checkpoints.captured_file(&state, path.as_bstr())? == change.from {
            paths.push(path);
        }
    }
    checkpoints.with_all_of_paths(&state, found, &paths)
}

/// A state with where HEAD, branches and the stash list have gone in another, what this has committed, and what git is in the middle of
/// there, or no more is: nothing but the user has led these, though something is at work in the background.
pub fn led_as(view: &View<'_>, state: &Checkpoint, now: &Checkpoint) -> Result<Checkpoint> {
    let mut paths = committed_since(view, state, now)?;
    if state.operation != now.operation {
        paths.extend(state.index.unmerged().into_iter().chain(now.index.unmerged()));
    }
    let mut led = Checkpoints::new(view.repo).with_all_of_paths(state, now, &paths)?;
    Pointers::of(now).put_into(&mut led);
    led.operation.clone_from(&now.operation);
    Ok(led)
}

impl Outside {
    /// Behind these steps, in order.
    fn of(view: &View<'_>, turn: &Turn, since: u64, after: &Checkpoint) -> Result<Self> {
        let (timeline, checkpoints) = (&view.timeline, Checkpoints::new(view.repo));
        let last_step = timeline.last_step(turn.turn)?;
        // While something is at work in the background, whatever changes may be its work.
        let at_work_after = turn.origin.at_work_after().unwrap_or(u64::MAX);
        let (is_at_work, until) = (last_step >= at_work_after, last_step.min(at_work_after));
        let last = states::after(timeline, turn, until)?;
        let found = match turn.users_end {
            // Put away already, where a kill came before it was written down that this is over.
            _ if is_at_work => match timeline.found(turn.turn)? {
                None => timeline.found_behind(turn.turn, at_work_after)?,
                found => found,
            },
            true => None,
            false => found_by_unended(view, turn, &last, after)?,
        };
        let (mut stretches, mut background, mut kept) = (Vec::new(), Vec::new(), None);
        let with_gaps: BTreeSet<u64> = timeline.steps_with_gaps(turn.turn)?.into_iter().collect();
        for step in since..=last_step {
            // As something began to be at work in the background.
            let was_over = step <= until && turn.origin.background.iter().any(|(from, _)| *from == step);
            let began = match &found {
                Some(found) if step == at_work_after => Some(found.clone()),
                _ if was_over => timeline.found_behind(turn.turn, step)?,
                _ => None,
            };
            let mut from = states::after(timeline, turn, step)?;
            if let Some((behind, found)) = &kept {
                from = with_found(view, turn, (step, from), (*behind, found))?;
            }
            if let Some(began) = began {
                stretches.push((from, began.clone()));
                from = began.clone();
                kept = Some((step, began));
            }
            let next = step + 1;
            let before =
                if with_gaps.contains(&next) { timeline.step_checkpoint(turn.turn, next, Side::Before)? } else { None };
            let Some(before) = before else { continue };
            if timeline.step(turn.turn, next)?.is_some_and(|step| step.is_background()) {
                stretches.push((before_saved(view, from, &before, &background)?, before.clone()));
                background.push((before, states::after(timeline, turn, next)?));
            } else if step < until && !turn.origin.was_background_before(next) {
                stretches.push((before_saved(view, from, &before, &background)?, before));
            }
        }
        if turn.users_end && !is_at_work {
            let to = checkpoints.with_files(after, &unended(view, turn, &last)?)?;
            let last = match &kept {
                Some((behind, found)) => with_found(view, turn, (last_step, last), (*behind, found))?,
                None => last,
            };
            stretches.push((before_saved(view, last, &to, &background)?, to));
        } else if let Some(found) = found.as_ref().filter(|_| !is_at_work) {
            stretches.push((last, found.clone()));
        }
        if turn.led_by_user && (is_at_work || !turn.users_end) {
            let from = match found.as_ref().filter(|_| !is_at_work || last_step == at_work_after) {
                Some(found) => found.clone(),
                None => states::after(timeline, turn, last_step)?,
            };
            let to = checkpoints.with_files(after, &unended(view, turn, &from)?)?;
            let to = led_as(view, &from, &to)?;
            stretches.push((before_saved(view, from, &to, &background)?, to));
        }
        Ok(Self { stretches, found })
    }
}

/// All that changed outside of the calls in a turn, in order.
pub struct Gaps {
    all: Vec<Gap>,
    /// The state before a call that ended nowhere, or with which something was at work in the background, up to which they go.
    pub found: Option<Checkpoint>,
    /// The files in it that calls had made in what was not captured as a whole.
    pub within: BTreeSet<BString>,
}

impl Gaps {
    /// What changed between the steps after this one, and after the last, where its agents tell of all their calls: these are `told`
    /// while it is open.
    pub fn since(view: &View<'_>, turn: &Turn, since: u64, after: &Checkpoint, told: &[ToolCall]) -> Result<Self> {
        let (timeline, objects, checkpoints) = (&view.timeline, Objects::new(view.repo), Checkpoints::new(view.repo));
        let mut gaps = Vec::new();
        if !tells_all(turn) {
            return Ok(Self { all: gaps, found: None, within: BTreeSet::new() });
        }
        let base = states::after(timeline, turn, since)?;
        let (mut users, mut within) = (Vec::new(), Within::of(view, turn, &base, told));
        let mut gap = |from: &Checkpoint, to: &Checkpoint| {
            let mut work = checkpoints.work_between(from, to)?;
            let mut touched = within.take_from(from, &users, &mut work);
            let out_of_reach = taken_out_of_reach(view, &base, to, &mut work)?;
            let then = (!work.index.is_empty()).then(|| to.clone());
            let by_calls = moved_by_calls(view, (&base, from), &work)?;
            let mut new = checkpoints.new_beyond_limits(from, to)?;
            new.retain(|new| !out_of_reach.contains(&new.path));
            touched.extend(out_of_reach.into_iter().map(|name| Touched { name, file: None }));
            users.extend(new.iter().map(|new| new.path.clone()));
            let mut beyond = Vec::new();
            for new in new {
                // A call may have brought it within reach, as by adding it to the index: it is the user's as ever.
                if after.skips(&new.path) || objects.tree_entry(after.worktree, new.path.as_bstr())?.is_some() {
                    beyond.push(new.clone());
                }
            }
            let is_new = |path: &BString| !from.skips(path);
            let made = to.uncaptured.iter().filter(|(path, _)| is_new(path)).map(|(_, known)| known.file.clone());
            let made = made.collect();
            // What is known of it file by file needs no more to be said.
            let is_known = |top: &BString| work.files.keys().any(|path| is_at_or_below(path.as_bstr(), top.as_bstr()));
            let saved = touched_beyond_limits(from, to).into_iter().filter(|it| !is_known(&it.path));
            touched.splice(..0, saved.map(|it| Touched::of(it, to)));
            let was = from.worktree;
            let (from, to, renames) = (Pointers::of(from), Pointers::of(to), Renames::default());
            Ok::<_, anyhow::Error>(Gap {
                work,
                was,
                from,
                to,
                then,
                checkout: None,
                renames,
                beyond,
                made,
                touched,
                by_calls,
            })
        };
        let Outside { stretches, found } = Outside::of(view, turn, since, after)?;
        for (from, to) in stretches {
            let from = checkpoints.with_formatted(&base, from, &to)?;
            gaps.push(gap(&from, &to)?);
        }
        gaps.retain(|gap| !gap.is_empty());
        let files: Vec<_> = gaps.iter().map(|gap| (gap.was, &gap.work.files)).collect();
        let renames = renamed::find(view, &files, (&base, after))?;
        gaps.iter_mut().zip(renames).for_each(|(gap, renames)| gap.renames = renames);
        let within = within.brought;
        Ok(Self { all: gaps, found, within })
    }

    /// What calls left in files that the user has changed, by how they are at the end of a turn.
    pub fn left_by_calls(
        &self,
        view: &View<'_>,
        ends: (&Checkpoint, &Checkpoint),
    ) -> Result<BTreeMap<BString, LeftByCalls>> {
        let changes = self.all.iter().map(|gap| Between {
            files: &gap.work.files,
            renames: &gap.renames,
            checkout: gap.checkout.as_ref(),
            was: gap.was,
            head: Change::new(&gap.from.head, &gap.to.head),
        });
        Checkpoints::new(view.repo).merging_beside(|merge| {
            left::left_by_calls(view, changes, ends, &mut |path, now, change| {
                Ok(match saved(path, now, change, merge)? {
                    Follows::Whole(now) => Some(now),
                    Follows::Overlaps(_) => None,
                })
            })
        })
    }

    /// The names under which the user changed files that calls had moved there, by their first ones.
    pub fn names(&self) -> BTreeMap<BString, BTreeSet<BString>> {
        let mut names: BTreeMap<BString, BTreeSet<BString>> = BTreeMap::new();
        for (gap, (name, first)) in self.all.iter().flat_map(|gap| gap.by_calls.iter().map(move |it| (gap, it))) {
            if gap.work.files.contains_key(name) {
                names.entry(first.clone()).or_default().insert(name.clone());
            }
        }
        names
    }

    /// The files that were beyond the limits as the user saved something in them.
    pub fn touched(&self) -> BTreeSet<BString> {
        let touched = self.all.iter().flat_map(|gap| &gap.touched);
        touched.map(|touched| &touched.name).filter(|name| !name.ends_with(b"/")).cloned().collect()
    }

    /// Whether the user has changed a file of this name.
    pub fn have(&self, path: &BString) -> bool {
        self.all.iter().any(|gap| gap.work.files.contains_key(path))
    }

    /// Where the files were in the beginning that the user gave other names, by these.
    pub fn came_from(&self) -> CameFrom {
        renamed::came_from(self.all.iter().map(|gap| &gap.renames))
    }

    /// Tells what git wrote from what was saved. Without what calls did HEAD begins where `start` has it, and goes where the user
    /// led it, or `stays`.
    pub fn find_checkouts(&mut self, view: &View<'_>, start: &Checkpoint, stays: bool) -> Result<()> {
        let mut own = Pointers::of(start);
        for at in 0..self.all.len() {
            let (earlier, later) = self.all.split_at_mut(at);
            let [gap, ..] = later else { break };
            let was = own.head.clone();
            if !stays {
                own.follow(&gap.from, &gap.to, &Objects::new(view.repo));
            }
            let known = || {
                let pointers = earlier.iter().flat_map(|gap| [&gap.from, &gap.to]).chain([&gap.from]);
                pointers.flat_map(Pointers::tips).collect()
            };
            gap.checkout = Checkout::of(view, (&gap.from, &gap.to), (&was, &own), known)?;
            if let Some(checkout) = &mut gap.checkout {
                checkout.find_saved(view, &gap.work.files)?;
                gap.renames.leave(|path| checkout.has_written(path));
            }
        }
        Ok(())
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Where HEAD, branches and the stash list are without what was done to them by calls.
    pub fn led(&self, view: &View<'_>, mut start: Pointers) -> Pointers {
        for gap in &self.all {
            start.follow(&gap.from, &gap.to, &Objects::new(view.repo));
        }
        start
    }

    /// Where the user led them from, and where to.
    pub fn moves(self) -> Vec<(Pointers, Pointers)> {
        self.all.into_iter().map(|gap| (gap.from, gap.to)).filter(|(from, to)| from != to).collect()
    }

    /// What git is in the middle of without what calls began and ended.
    pub fn operation(&self, mut start: Operation) -> Operation {
        for Change { from, to } in self.all.iter().filter_map(|gap| gap.work.operation.as_ref()) {
            // A call may have ended what the user had prepared, before they began something else.
            for path in from.files.keys().chain(to.files.keys()) {
                let [was, is] = [from, to].map(|side| side.files.get(path).copied());
                if start.files.get(path).copied() == was {
                    match is {
                        Some(id) => drop(start.files.insert(path.clone(), id)),
                        None => drop(start.files.remove(path)),
                    }
                }
            }
            follow(&mut start.unread, &Change::new(from.unread.clone(), to.unread.clone()));
        }
        start
    }

    /// What the user staged, and is staged otherwise than it was: what they had saved themselves, or of a file that was then as it
    /// is without what calls did. `base` has the files as they were, and `start` what was staged.
    pub fn staged(
        &self,
        view: &View<'_>,
        base: &Checkpoint,
        start: &IndexState,
    ) -> Result<BTreeMap<BString, Vec<IndexEntry>>> {
        let checkpoints = Checkpoints::new(view.repo);
        let (mut staged, mut saved) = (BTreeMap::new(), Saved::of(view, base));
        let came_from = self.came_from();
        checkpoints.merging(|merge| {
            for gap in &self.all {
                saved.follow(gap, merge)?;
                let in_beginning = |path: &BString| checkpoints.entries_of(start, path.as_bstr());
                let moved = gap.moved_entries(&self.all, &came_from, &staged, in_beginning)?;
                for (path, change) in &gap.work.index {
                    if gap.checkout.as_ref().is_some_and(|checkout| checkout.wrote_entries(path, change)) {
                        staged.remove(path);
                        continue;
                    }
                    let (theirs, then) = (saved.file(path)?, saved.as_found(gap, path)?);
                    let is_saved = |file: FileState| change.to.iter().all(|entry| is_of(*entry, file, then));
                    if theirs == then || (!change.to.is_empty() && theirs.is_some_and(is_saved)) {
                        staged.insert(path.clone(), change.to.clone());
                    }
                }
                staged.extend(moved);
            }
            Ok(())
        })?;
        let mut changed = BTreeMap::new();
        for (path, now) in staged {
            if checkpoints.entries_of(start, path.as_bstr())? != now {
                changed.insert(path, now);
            }
        }
        Ok(changed)
    }

    /// Of these files of the user's the names that they have at the end, where calls have given them others since.
    pub fn followed(
        &self,
        view: &View<'_>,
        paths: &BTreeSet<BString>,
        (before, after): (&Checkpoint, &Checkpoint),
    ) -> Result<BTreeSet<BString>> {
        let checkpoints = Checkpoints::new(view.repo);
        let mut beyond: BTreeMap<&BString, BString> = BTreeMap::new();
        for touched in self.all.iter().flat_map(|gap| &gap.touched).filter(|touched| paths.contains(&touched.name)) {
            beyond.insert(&touched.name, touched.followed(view, after));
        }
        let paths: BTreeSet<BString> = paths.iter().map(|path| beyond.get(path).unwrap_or(path).clone()).collect();
        let mut gone = BTreeMap::new();
        for path in &paths {
            let last = self.all.iter().rev().find_map(|gap| gap.work.files.get(path)?.to);
            if last.is_some() && checkpoints.captured_file(after, path.as_bstr())?.is_none() {
                gone.insert(path.clone(), Change::new(last, None));
            }
        }
        if gone.is_empty() {
            return Ok(paths);
        }
        let mut files = checkpoints.file_changes(before, after)?;
        files.retain(|_, change| change.from.is_none());
        files.extend(gone);
        let now: BTreeMap<BString, BString> =
            checkpoints.came_from(&files)?.into_iter().map(|(new, old)| (old, new)).collect();
        Ok(paths.into_iter().map(|path| now.get(&path).cloned().unwrap_or(path)).collect())
    }

    /// What the user wrote in the middle of it that was nowhere before, but for what git wrote as they led HEAD. `before` is how it began.
    pub fn written<'v, 'r>(&self, view: &'v View<'r>, before: &Checkpoint) -> Result<Written<'v, 'r>> {
        let mut written = Written::none(view);
        for gap in &self.all {
            let is_gits = |path: &BString| gap.checkout.as_ref().is_some_and(|checkout| checkout.has_written(path));
            written.follow((before, gap.was), &gap.work.files, is_gits)?;
        }
        Ok(written)
    }

    /// A state with the files and directories as the user left them; what overlaps with what calls did is as it was. Tells of
    /// which files something does.
    pub fn put_files(&self, view: &View<'_>, state: &mut Checkpoint) -> Result<Overlaps> {
        let checkpoints = Checkpoints::new(view.repo);
        let base = state.clone();
        let mut saved = Saved::of(view, &base);
        checkpoints.merging(|merge| self.all.iter().try_for_each(|gap| saved.follow(gap, merge)))?;
        let crowded = saved.make_room(view)?;
        let files: Vec<_> = saved.files.into_iter().collect();
        let mut directories: BTreeMap<BString, Option<u32>> = BTreeMap::new();
        for (gap, (path, change)) in
            self.all.iter().flat_map(|gap| gap.work.directories.iter().map(move |it| (gap, it)))
        {
            if let Some(checkout) = &gap.checkout
                && checkout.moved_directory(view, path.as_bstr())?
            {
                continue;
            }
            if !directories.contains_key(path) {
                directories.insert(path.clone(), checkpoints.captured_directory(state, path.as_bstr())?);
            }
            if let Some(now) = directories.get_mut(path) {
                follow(now, change);
            }
        }
        *state = checkpoints.with_files(state, &files)?;
        checkpoints.put_directories(state, &directories)?;
        let mut made = BTreeSet::new();
        for gap in &self.all {
            // What calls made, and goes with them.
            let of_calls = gap.touched.iter().filter(|touched| !touched.is_theirs(state, &made));
            saved.lost.extend(of_calls.map(|touched| touched.name.clone()));
            made.extend(gap.made.iter().cloned());
            let new = gap.beyond.iter().filter(|new| !state.skips(&new.path)).cloned();
            state.skipped.extend(new.collect::<Vec<_>>());
        }
        Ok(Overlaps { all: saved.lost, crowded })
    }
}

/// Files in which the user saved something that overlaps with what calls did.
pub struct Overlaps {
    /// All of them.
    pub all: BTreeSet<BString>,
    /// Those that are where a file was that calls had deleted, above it or below: only one of the two can be there.
    pub crowded: BTreeSet<BString>,
}

/// The files as they are without what calls did.
struct Saved<'a> {
    checkpoints: Checkpoints<'a>,
    objects: Objects<'a>,
    base: &'a Checkpoint,
    files: BTreeMap<BString, Option<FileState>>,
    /// Those of which something overlaps with what calls did.
    lost: BTreeSet<BString>,
    /// Those that have other names since, as they were.
    gone: BTreeMap<BString, Option<FileState>>,
    /// Their other names.
    names: CameFrom,
    /// What each was as the user changed it, where calls had changed it by then.
    known: BTreeMap<BString, Vec<Known>>,
}

/// A file that calls had changed.
#[derive(Clone, Copy)]
struct Known {
    with: Option<FileState>,
    without: Option<FileState>,
    /// Whether the user then took away what they had done.
    is_away: bool,
}

impl<'a> Saved<'a> {
    fn of(view: &View<'a>, base: &'a Checkpoint) -> Self {
        let (files, lost, gone, names, known) = Default::default();
        let (checkpoints, objects) = (Checkpoints::new(view.repo), Objects::new(view.repo));
        Self { checkpoints, objects, base, files, lost, gone, names, known }
    }

    fn file(&self, path: &BString) -> Result<Option<FileState>> {
        match self.files.get(path) {
            Some(now) => Ok(*now),
            None => self.checkpoints.captured_file(self.base, path.as_bstr()),
        }
    }

    /// A file as it was at the end of a gap, whoever wrote it.
    fn as_found(&self, gap: &Gap, path: &BString) -> Result<Option<FileState>> {
        gap.then.as_ref().map_or(Ok(None), |then| self.checkpoints.captured_file(then, path.as_bstr()))
    }

    fn follow(&mut self, gap: &Gap, merge: &mut Merge<'_>) -> Result<()> {
        for (path, own) in gap.checkout.iter().flat_map(Checkout::own) {
            let now = self.file(path)?;
            let [from, to] = [own.from, own.to].map(|slot| file_of(self.base, slot, now));
            let (Follows::Whole(now) | Follows::Overlaps(now)) = saved(path, now, &Change::new(from, to), merge)?;
            self.files.insert(path.clone(), now);
        }
        for path in &gap.renames.gone {
            let file = self.file(path)?;
            self.gone.insert(path.clone(), file);
            // A call had taken it from there already.
            if !gap.work.files.contains_key(path) {
                self.files.insert(path.clone(), None);
            }
        }
        self.names.extend(gap.renames.came.iter().map(|(new, origin)| (origin.path.clone(), new.clone())));
        let (mut followed, mut known) = (Vec::new(), Vec::new());
        for (path, change) in &gap.work.files {
            let without = self.file(path)?;
            if without != change.from {
                known.push((path, change, without));
            }
            followed.extend(self.followed(gap, path, merge)?);
        }
        self.files.extend(followed);
        for (path, change, without) in known {
            let is_away = self.file(path)? == change.to;
            self.known.entry(path.clone()).or_default().push(Known { with: change.from, without, is_away });
        }
        // What overlaps goes along with its file.
        for (path, origin) in gap.renames.came.iter().filter(|(path, _)| gap.work.files.contains_key(*path)) {
            if self.lost.remove(&origin.path) {
                self.lost.insert(path.clone());
            }
        }
        Ok(())
    }

    /// Where a file is after a gap that changed it, without what calls did, and what it is; none where git wrote all of it.
    fn followed(
        &mut self,
        gap: &Gap,
        path: &BString,
        merge: &mut Merge<'_>,
    ) -> Result<Option<(BString, Option<FileState>)>> {
        let is_gits = gap.checkout.as_ref().is_some_and(|checkout| checkout.has_written(path));
        if !is_gits && let Some(back) = self.brought_back(path, &gap.work.files[path], merge)? {
            let (Follows::Whole(now) | Follows::Overlaps(now)) = self.and_lost(path, back);
            return Ok(Some((path.clone(), now)));
        }
        let Some((origin, change)) = gap.change(self.base, path) else { return Ok(None) };
        let now = match origin {
            // It may have its first name again, where a call had given it the other.
            Some(old) => self.gone.get(old).copied().map_or_else(|| self.file(old), Ok)?.or(self.file(path)?),
            // What is there now is another file.
            None if gap.renames.gone.contains(path) => change.from,
            None => self.file(path)?,
        };
        // What a call has given its name is without that where it was, or where the user had put it by then.
        let elsewhere = match gap.by_calls.get(origin.unwrap_or(path)) {
            Some(first) => Some(first).filter(|first| !self.gone.contains_key(*first)),
            None if origin.is_none() => self.other_name(gap, path)?,
            None => None,
        };
        let (at, now) = match elsewhere {
            Some(other) if now.is_none() && change.from != change.to => (other.clone(), self.file(other)?),
            _ => (path.clone(), now),
        };
        let follows = match saved(path, now, &change, merge)? {
            Follows::Overlaps(now) => Follows::Overlaps(self.with_the_rest(path, now, &change)?),
            whole @ Follows::Whole(_) => whole,
        };
        let (Follows::Whole(now) | Follows::Overlaps(now)) = self.and_lost(path, follows);
        Ok(Some((at, now)))
    }

    /// A file with those lines of a change that do not overlap with what calls did.
    fn with_the_rest(
        &self,
        path: &BString,
        now: Option<FileState>,
        change: &Change<Option<FileState>>,
    ) -> Result<Option<FileState>> {
        let (Some(ours), Some(base), Some(theirs)) = (now, change.from, change.to) else { return Ok(now) };
        if [ours, base, theirs].iter().any(|side| side.kind == Kind::Symlink) {
            return Ok(now);
        }
        let blobs = Blobs { base: base.id, ours: ours.id, theirs: theirs.id };
        let merged = self.checkpoints.merging_for_ours(|merge| merge(path.as_bstr(), blobs))?;
        Ok(Some(match merged {
            Merged::Clean(id) => FileState { id, ..ours },
            Merged::Overlap(_) => ours,
        }))
    }

    /// The name that the user has given a file, where it has its own again by a call.
    fn other_name(&self, gap: &Gap, path: &BString) -> Result<Option<&BString>> {
        let Some(name) = self.names.get(path).filter(|_| self.gone.contains_key(path)) else { return Ok(None) };
        let is_there = self.objects.tree_file(gap.was, name.as_bstr())?.is_some();
        Ok(Some(name).filter(|_| !is_there))
    }

    /// A file in which the user brings back what calls had done and the user had taken away, as by a stash: that is the calls' again,
    /// and what comes with it is the user's. None where nothing of that comes back.
    fn brought_back(
        &self,
        path: &BString,
        change: &Change<Option<FileState>>,
        merge: &mut Merge<'_>,
    ) -> Result<Option<Follows>> {
        let Some(all) = self.known.get(path) else { return Ok(None) };
        if let Some(known) = all.iter().rev().find(|known| known.with == change.to) {
            return Ok(Some(Follows::Whole(known.without)));
        }
        let (Some(from), Some(to)) = (change.from, change.to) else { return Ok(None) };
        for Known { with, without, .. } in all.iter().rev().filter(|known| known.is_away) {
            let (Some(with), Some(without)) = (*with, *without) else { continue };
            if [with, without, from, to].iter().any(|file| file.kind == Kind::Symlink)
                || !self.come_back_in(&Change::new(without.id, with.id), &Change::new(from.id, to.id))?
            {
                continue;
            }
            let with_theirs = if from.id == without.id {
                Merged::Clean(with.id)
            } else {
                merge(path.as_bstr(), Blobs { base: without.id, ours: from.id, theirs: with.id })?
            };
            if let Merged::Clean(id) = with_theirs {
                let rest = Change::new(Some(FileState { id, ..from }), change.to);
                return saved(path, self.file(path)?, &rest, merge).map(Some);
            }
        }
        Ok(None)
    }

    /// Whether what one change brought comes back in another.
    fn come_back_in(&self, one: &Change<ObjectId>, other: &Change<ObjectId>) -> Result<bool> {
        let mut contents = Vec::new();
        for id in [one.from, one.to, other.from, other.to] {
            let Some(content) = self.checkpoints.content_of(id)? else { return Ok(false) };
            contents.push(content);
        }
        let ends = |at: usize| Ends { from: Some(&contents[at]), to: Some(&contents[at + 1]) };
        Ok(ends(0).comes_back_in(ends(2)))
    }

    /// What the user saved in the place of a file that a call had deleted, below it or above it, overlaps with that: only one of the
    /// two can be there. Tells what that is.
    fn make_room(&mut self, view: &View<'_>) -> Result<BTreeSet<BString>> {
        let saved = |files: &BTreeMap<BString, Option<FileState>>| -> Vec<BString> {
            files.iter().filter(|(_, file)| file.is_some()).map(|(path, _)| path.clone()).collect()
        };
        let mut crowded = BTreeSet::new();
        for path in saved(&self.files) {
            let mut others: Vec<BString> = parents(path.as_bstr()).map(ToOwned::to_owned).collect();
            let in_base = Objects::new(view.repo).entries_below(self.base.worktree, path.as_bstr())?;
            others.extend(in_base.into_iter().map(|(path, _)| path));
            let below = [path.as_slice(), b"/"].concat();
            others.extend(self.files.keys().filter(|other| other.starts_with(&below)).cloned());
            for other in others {
                if self.file(&other)?.is_some() {
                    crowded.insert(path);
                    break;
                }
            }
        }
        for path in &crowded {
            self.files.remove(path);
            self.lost.insert(path.clone());
        }
        Ok(crowded)
    }

    fn and_lost(&mut self, path: &BString, follows: Follows) -> Follows {
        if matches!(follows, Follows::Overlaps(_)) {
            self.lost.insert(path.clone());
        }
        follows
    }
}

/// Leaves out of what the user did the files that calls have made, and that are beyond the limits since the user has changed them: they are
/// not deleted. Gives these.
fn taken_out_of_reach(
    view: &View<'_>,
    base: &Checkpoint,
    to: &Checkpoint,
    work: &mut Delta,
) -> Result<BTreeSet<BString>> {
    let gone = work.files.iter().filter(|(path, change)| change.to.is_none() && to.skips(path));
    let mut out = BTreeSet::new();
    for path in gone.map(|(path, _)| path) {
        if Checkpoints::new(view.repo).captured_file(base, path.as_bstr())?.is_none() {
            out.insert(path.clone());
        }
    }
    work.files.retain(|path, _| !out.contains(path));
    Ok(out)
}

/// The files that somebody has brought within reach since the last step of an open turn, and that its calls had made in what was not
/// captured as a whole: by the times that they have as long as they are there. `base` is how it began, `users` what is theirs.
pub fn brought_within(
    view: &View<'_>,
    turn: &Turn,
    [base, last, now]: [&Checkpoint; 3],
    told: &[ToolCall],
    users: &[BString],
) -> Result<BTreeSet<BString>> {
    let mut within = Within::of(view, turn, base, told);
    within.take_from(last, users, &mut Checkpoints::new(view.repo).work_between(last, now)?);
    Ok(within.brought)
}

/// What calls have made beyond the limits and is within reach since, as what was added to the index: it is still the calls'.
struct Within<'a> {
    worktree: Worktree<'a>,
    base: &'a Checkpoint,
    /// All calls, while the turn is open.
    told: &'a [ToolCall],
    /// The files in what was not captured as a whole, by the times that they have as they are looked at.
    brought: BTreeSet<BString>,
}

impl<'a> Within<'a> {
    fn of(view: &'a View<'_>, turn: &Turn, base: &'a Checkpoint, told: &'a [ToolCall]) -> Self {
        let brought = turn.within.iter().filter_map(|path| exact::decode(path)).collect();
        Self { worktree: Worktree::new(view.repo), base, told, brought }
    }

    /// Leaves it out of what the user did. Tells in which of the files somebody may have saved something. `users` is what the user has
    /// made beyond the limits.
    fn take_from(&mut self, from: &Checkpoint, users: &[BString], work: &mut Delta) -> Vec<Touched> {
        let mut touched = Vec::new();
        work.files.retain(|path, change| {
            let has_come = change.from.is_none() && change.to.is_some();
            let is_new = has_come && from.is_beyond(path.as_bstr()) && !self.base.is_beyond(path.as_bstr());
            if !is_new || users.iter().any(|top| is_at_or_below(path.as_bstr(), top.as_bstr())) {
                return true;
            }
            if let Some(was) = from.skipped.iter().find(|skipped| skipped.path == *path) {
                if !self.is_as_it_was(was) {
                    touched.push(Touched { name: path.clone(), file: None });
                }
                return false;
            }
            if !self.brought.contains(path) && !self.is_written_by_call(path) {
                return true;
            }
            self.brought.insert(path.clone());
            false
        });
        touched
    }

    fn is_as_it_was(&self, was: &Skipped) -> bool {
        let now = self.worktree.stat(was.path.as_bstr()).ok().flatten();
        was.state.is_some() && was.state == now.and_then(|(stat, _)| state_of(was.reason, &stat))
    }

    /// Whether one was in flight as it was written. Another machine may have a clock of its own.
    fn is_written_by_call(&self, path: &BString) -> bool {
        let there = self.worktree.identity(path.as_bstr());
        let there = there.filter(|there| Some(there.device) == self.worktree.local_device());
        there.is_some_and(|there| !self.told.is_empty() && !is_between(self.told, there.changed))
    }
}

/// Where files were in the beginning that are under other names by now, and that this changes: no change of the user's between calls
/// has to have done that.
fn moved_by_calls(view: &View<'_>, (base, from): (&Checkpoint, &Checkpoint), work: &Delta) -> Result<CameFrom> {
    let checkpoints = Checkpoints::new(view.repo);
    for (path, _) in work.files.iter().filter(|(_, change)| change.from.is_some()) {
        if checkpoints.captured_file(base, path.as_bstr())?.is_none() {
            return checkpoints.surely_came_from(&checkpoints.file_changes(base, from)?);
        }
    }
    Ok(CameFrom::new())
}

/// Whether what is staged of a file is what it was without a turn, or a mode that it had not after that either: one was
/// staged that is in no file.
fn is_of(entry: IndexEntry, file: FileState, after: Option<FileState>) -> bool {
    let has_mode = |file: FileState| (entry.mode == 0o100_755) == (file.kind == Kind::Executable);
    entry.id == file.id && (has_mode(file) || !after.is_some_and(has_mode))
}

/// Does what was done to a value to another that is the same.
fn follow<T: Clone + PartialEq>(now: &mut T, change: &Change<T>) {
    if *now == change.from {
        now.clone_from(&change.to);
    }
}

/// A file to which a change of the user's was made.
enum Follows {
    /// All of it.
    Whole(Option<FileState>),
    /// What does not overlap with what calls did.
    Overlaps(Option<FileState>),
}

/// A file with a change of the user's made to it; as it was where that overlaps.
fn saved(
    path: &BString,
    now: Option<FileState>,
    change: &Change<Option<FileState>>,
    merge: &mut Merge<'_>,
) -> Result<Follows> {
    if now == change.from || now == change.to {
        return Ok(Follows::Whole(change.to));
    }
    if change.from == change.to {
        return Ok(Follows::Whole(now));
    }
    let (Some(ours), Some(base), Some(theirs)) = (now, change.from, change.to) else {
        return Ok(Follows::Overlaps(now));
    };
    if [ours, base, theirs].iter().any(|side| side.kind == Kind::Symlink) {
        return Ok(Follows::Overlaps(now));
    }
    let mode = if ours.mode == base.mode { theirs.mode } else { ours.mode };
    let kind = Kind::of_mode(mode);
    if ours.id == base.id || base.id == theirs.id {
        let id = if ours.id == base.id { theirs.id } else { ours.id };
        return Ok(Follows::Whole(Some(FileState { kind, id, mode })));
    }
    let merged = merge(path.as_bstr(), Blobs { base: base.id, ours: ours.id, theirs: theirs.id })?;
    Ok(match merged {
        Merged::Clean(id) => Follows::Whole(Some(FileState { kind, id, mode })),
        Merged::Overlap(_) => Follows::Overlaps(Some(FileState { kind, mode, ..ours })),
    })
}

/// Whether its agents tell of each call of theirs, and nobody is at work in a turn who tells of none.
pub fn tells_all(turn: &Turn) -> bool {
    let Bounds { parts, by_hooks, .. } = &turn.origin;
    let is_of_run = !by_hooks || turn.exit_code.is_some();
    let are_known = !is_of_run || turn.origin.run_tells();
    let all = parts.iter().all(|part| adapter(&part.agent).is_some_and(|adapter| adapter.all_calls));
    are_known && all && !parts.is_empty()
}

/// Whether what changed after a turn's last call is not its agents', but for files that calls name which ended nowhere: all of
/// them tell of each call, and of each other one it is known what it changed.
pub fn is_users_end(repo: &Repo, timeline: &Stored<'_>, turn: &Turn, told: &[ToolCall]) -> Result<bool> {
    let is_known = !is_any_at_large(repo, told.iter().filter(|call| call.is_unknown()));
    Ok(is_known && is_all_told(repo, timeline, turn, told)?)
}

/// Whether it is the user who has led HEAD and branches elsewhere after a turn's last call: all of them are over, and are in steps.
pub fn is_led_by_user(repo: &Repo, timeline: &Stored<'_>, turn: &Turn, told: &[ToolCall]) -> Result<bool> {
    let are_over = told.iter().all(|call| call.ended_at.is_some() && call.is_known);
    Ok(are_over && is_all_told(repo, timeline, turn, told)?)
}

/// Whether what came while none of these calls was in flight is not its agents': all of them tell of each call, and none has left
/// anything at work.
pub fn are_gaps_users(repo: &Repo, timeline: &Stored<'_>, turn: &Turn, told: &[ToolCall]) -> Result<bool> {
    Ok(!told.iter().any(|call| call.goes_on) && is_all_told(repo, timeline, turn, told)?)
}

/// Whether all at work in a turn tell of each call of theirs, but for those since whose beginning all may be theirs.
fn is_all_told(repo: &Repo, timeline: &Stored<'_>, turn: &Turn, told: &[ToolCall]) -> Result<bool> {
    if !tells_all(turn) {
        return Ok(false);
    }
    for part in turn.origin.parts.iter().filter(|part| !part.unproven) {
        if !is_proven(repo, timeline, turn, told, part)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a session is known to tell of its calls, in a turn or before.
pub fn is_proven(
    repo: &Repo,
    timeline: &Stored<'_>,
    turn: &Turn,
    told: &[ToolCall],
    part: &Participant,
) -> Result<bool> {
    let has_called = |one: &Participant| told.iter().any(|call| call.session == one.session);
    // A session that has called nothing shares its hooks with others of its agent.
    let of_agent = turn.origin.parts.iter().filter(|one| one.agent == part.agent).chain([part]);
    Ok(of_agent.into_iter().any(has_called) || has_told(repo, timeline, part)?)
}

/// Whether a session is known to tell of its calls, and they are heeded. What goes on after a prompt's end may be a command of a
/// call then, if it is not known since when. Another session of its agent shows nothing: it may be started in another way.
pub fn has_told(repo: &Repo, timeline: &Stored<'_>, part: &Participant) -> Result<bool> {
    Ok((!part.goes_on || part.listed.is_some()) && Config(repo).steps()? && has_told_calls(repo, timeline, part)?)
}
