//! The steps of the open turn: what changed around each call of a tool that an agent's hooks tell of. Where a call names the
//! one file that it writes, only that is looked at; before and after any other, the worktree.

use crate::agents::adapters::adapter;
use crate::agents::process::at_work;
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::delta::touched_beyond_limits;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::objects::tree::{entry_kind, tree_change};
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::repo::clock::rfc3339_now;
use crate::git::scan::nested::has_repository;
use crate::git::timeline::stored::Side;
use crate::git::worktree::Worktree;
use crate::git::worktree::privacy::Privacy;
use crate::git::worktree::stat::size_of;
use crate::model::bytes::{exact, quoted, sanitized};
use crate::model::call::{Looked, ToolCall, ToolUse, first_unknown, is_between, just_ended, last_index};
use crate::model::checkpoint::{Checkpoint, Delta, IndexEntry, Uncaptured};
use crate::model::path::{is_at_or_below, parents};
use crate::model::plan::{Op, Plan};
use crate::model::pointers::Pointers;
use crate::model::step::{Share, Step};
use crate::model::timeline::{Pin, Timeline};
use crate::model::turn::{Brought, FileChange, Participant, Turn};
use crate::ops::locked::Locked;
use crate::ops::turn::calls::{FoundBefore, Left};
use crate::ops::turn::found::{commits_of, found_state, lead_before};
use crate::ops::turn::gaps::{are_gaps_users, brought_within, led_as, with_found};
use crate::ops::turn::reach::{Reach, found_as_begun, found_by, is_any_at_large, may_write};
use crate::ops::turn::running::left_running;
use crate::ops::turn::since::Since;
use crate::ops::turn::{calls, states};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// What a step is called that no call made.
const WATCHED: &str = "watched";

/// The state that is known last: after the last step, or as the turn began.
fn last_known(view: &View<'_>, turn: &Turn) -> Result<Checkpoint> {
    let mut last = states::after(&view.timeline, turn, view.timeline.last_step(turn.turn)?)?;
    last.uncaptured.clear();
    Ok(last)
}

/// As a call begins: what somebody has changed since the last step is not the call's, and the call may delete it. Of a call
/// that names the file which it writes, that is looked at; of any other, all is.
fn found_before(view: &View<'_>, tool: &ToolUse, told: &[ToolCall]) -> Result<FoundBefore> {
    let mut found = FoundBefore::default();
    let Some(turn) = view.open_turn()?.filter(|_| !tool.only_reads()) else { return Ok(found) };
    if !view.config().steps()? {
        return Ok(found);
    }
    let last = last_known(view, &turn)?;
    let reach = Reach::of(view.repo, tool);
    let moved = || {
        let start = states::pointers_at_beginning(&view.timeline, &turn)?;
        Ok::<_, anyhow::Error>(start.moved_to(&Refs::new(view.repo).pointers()?))
    };
    if reach == Reach::Anywhere && !is_any_at_large(view.repo, told.iter().filter(|call| call.ended_at.is_none())) {
        found.moved = Some(moved()?);
    }
    match reach {
        Reach::File(path) => {
            // Nor is it somebody else's where something that a call has left running may have written it.
            let may = |is: fn(&ToolCall) -> bool| may_write(view.repo, told.iter().filter(|call| is(call)), &path);
            if !may(|call| call.is_unrecorded() || call.goes_on) {
                found.file = file_before(view, &last, &path)?;
                found.staged = staged_before(view, told, &last, &path)?;
            } else if !may(ToolCall::is_unrecorded) {
                // It is no work of this call: a step of its own. What the user has committed is that in a look at all alone.
                found.state = if view.head.commit == last.head.commit {
                    file_beside(view, &last, &path)?
                } else {
                    state_found(view, &turn, &last, told)?
                };
            }
            found.path = path;
            // Who has led HEAD elsewhere, as by a merge, had git write this file and others. And what the last state leaves out may
            // be within reach by now.
            let is_led = found.file.is_some() && view.head.commit != last.head.commit;
            let is_beyond = match found.file {
                Some(left) => left == Left::Beyond,
                None => is_in_new_directory(view, &last, &found.path)?,
            };
            let unknown = told.iter().filter(|call| call.is_unknown());
            if (is_led || is_beyond) && !is_any_at_large(view.repo, unknown) {
                found.state = state_found(view, &turn, &last, told)?;
                // The commits that they led it to are kept with the state.
                found.moved = Some(moved()?);
                if let (Some(Left::Beyond), Some(state)) = (found.file, found.state) {
                    let state = Checkpoints::new(view.repo).read_checkpoint(state)?;
                    let within = Checkpoints::new(view.repo).captured_file(&state, found.path.as_bstr())?;
                    found.file = Some(within.map_or(Left::Beyond, Left::File));
                }
            }
        }
        // What a call that may do anything has changed by now is nobody else's. One that has left something running is over: what
        // that has done by now is a step of its own.
        Reach::Anywhere if !is_any_at_large(view.repo, told.iter().filter(|call| !call.is_known)) => {
            found.state = state_found(view, &turn, &last, told)?;
        }
        Reach::Anywhere | Reach::Nowhere => {}
    }
    view.repo.flush()?;
    Ok(found)
}

/// The state that a call finds, as it is kept, where somebody has changed anything since the last step, or led HEAD or a branch.
fn state_found(view: &View<'_>, turn: &Turn, last: &Checkpoint, told: &[ToolCall]) -> Result<Option<ObjectId>> {
    let since = Since::look_within(view, turn)?;
    let ignored = since.ignored_between(view, turn, told)?;
    let mut now = but_for_unknown(view, since.into_state(), last, told)?;
    let checkpoints = Checkpoints::new(view.repo);
    let is_all_known = Pointers::are_of_both(last, &now) && checkpoints.work_between(last, &now)?.is_empty();
    // A call may give it another name.
    let beyond = [checkpoints.new_beyond_limits(last, &now)?, touched_beyond_limits(last, &now)].concat();
    let beyond: Vec<BString> = beyond.into_iter().map(|skipped| skipped.path.clone()).collect();
    let is_all_known = is_all_known && beyond.is_empty() && ignored.is_empty();
    now.uncaptured = checkpoints.identities(beyond.iter().map(|path| path.as_bstr()));
    now.uncaptured.extend(ignored);
    if is_all_known { Ok(None) } else { Ok(Some(checkpoints.write_checkpoint(&now)?)) }
}

/// How often what a call finds is looked at, where others end meanwhile: an end waits for nobody.
const LOOKS: usize = 3;

/// Adds a call that begins, with what it finds. What calls that end meanwhile have done is in their steps before it.
pub fn record_begun(locked: &mut Locked<'_>, part: &Participant, tool: &ToolUse) -> Result<()> {
    for left in (0..LOOKS).rev() {
        let repo = locked.repo;
        // Evidence is less than the call.
        let (told, length) = record_ended(locked).unwrap_or_else(|_| calls::so_far(repo));
        let mut found = found_before(locked, tool, &told).unwrap_or_default();
        let _ = record_found(locked, &told, &mut found).and_then(|()| keep_found(locked, tool, &found));
        let _ = note_within(locked, &told, &found);
        if calls::record_begun_if(repo, part, tool, found, || left == 0 || calls::is_all(repo, length))? {
            break;
        }
    }
    Ok(())
}

/// A state, but with the files that calls name of which the end is not known as these found them, or as another has them.
fn but_for_unknown(view: &View<'_>, state: Checkpoint, other: &Checkpoint, told: &[ToolCall]) -> Result<Checkpoint> {
    let named: Vec<_> = found_by(view.repo, told, ToolCall::is_unknown, other)?.into_iter().collect();
    if named.is_empty() { Ok(state) } else { Checkpoints::new(view.repo).with_files(&state, &named) }
}

/// The state of all, but of files that calls in flight name: what these are about to write is their own. Such a file is as it was
/// found, or as another state has it; none of them takes it away, so that somebody else has, or has given it another name.
fn state_now(view: &View<'_>, turn: &Turn, other: &Checkpoint, told: &[ToolCall]) -> Result<Checkpoint> {
    let (checkpoints, state) = (Checkpoints::new(view.repo), Since::look_within(view, turn)?.into_state());
    let mut named = Vec::new();
    for (path, found) in found_by(view.repo, told, |call| call.ended_at.is_none(), other)? {
        if found.is_none() || checkpoints.captured_file(&state, path.as_bstr())?.is_some() {
            named.push((path, found));
        }
    }
    if named.is_empty() { Ok(state) } else { checkpoints.with_files(&state, &named) }
}

/// The last state with a file that a call is about to write, as it is kept, where something that another has left running may have
/// changed it since, or the user.
fn file_beside(view: &View<'_>, last: &Checkpoint, path: &BString) -> Result<Option<ObjectId>> {
    let file = match file_before(view, last, path)? {
        None | Some(Left::Beyond) => return Ok(None),
        Some(left) => left.file(),
    };
    let checkpoints = Checkpoints::new(view.repo);
    checkpoints.write_checkpoint(&checkpoints.with_files(last, &[(path.clone(), file)])?).map(Some)
}

/// What a file holds that a call is about to write, if somebody has changed it since the last step, or taken it away.
fn file_before(view: &View<'_>, last: &Checkpoint, path: &BString) -> Result<Option<Left>> {
    let known = Checkpoints::new(view.repo).captured_file(last, path.as_bstr())?;
    let now = Worktree::new(view.repo).state(path.as_bstr(), view.repo.hash_kind())?;
    if now == known {
        return Ok(None);
    }
    if now.is_none() && last.index.sparse.is_empty() {
        return Ok(Some(Left::Nothing));
    }
    let is_covered = now.is_some() && is_covered(view, last, path.as_bstr())?;
    let now = if is_covered { Checkpoints::new(view.repo).file_now(path.as_bstr())? } else { None };
    Ok(Some(now.map_or(Left::Beyond, Left::File)))
}

/// Whether a file is in a directory that somebody has made since the last step: it may be one that no state holds.
fn is_in_new_directory(view: &View<'_>, last: &Checkpoint, path: &BString) -> Result<bool> {
    for directory in parents(path.as_bstr()) {
        let is_known = last.skips(&directory.to_owned())
            || Checkpoints::new(view.repo).captured_directory(last, directory)?.is_some();
        if is_known || Worktree::new(view.repo).stat(directory)?.is_some() {
            return Ok(!is_known);
        }
    }
    Ok(false)
}

/// What is staged of a file that a call is about to write, if somebody has staged it since the last look: the worktree may have
/// something else, and the call may stage that.
fn staged_before(
    view: &View<'_>,
    told: &[ToolCall],
    last: &Checkpoint,
    path: &BString,
) -> Result<Option<Vec<IndexEntry>>> {
    let index = Index::new(view.repo);
    if index.is_as_begun() || index.present().is_none_or(|now| last_index(told) == Some(&now)) {
        return Ok(None);
    }
    let now = staged_now(view, path)?;
    let known = Checkpoints::new(view.repo).entries_of(&last.index, path.as_bstr())?;
    Ok(Some(now).filter(|now| !now.is_empty() && *now != known))
}

fn staged_now(view: &View<'_>, path: &BString) -> Result<Vec<IndexEntry>> {
    let index = Index::new(view.repo);
    let read = index.read_index()?;
    index.index_entries(&read, path.as_bstr())
}

/// Whether a look at the whole worktree would take this file in, as far as that can be told from it alone.
fn is_covered(view: &View<'_>, last: &Checkpoint, path: &BStr) -> Result<bool> {
    // It may have grown, or be closed to others by now.
    if !last.index.sparse.is_empty() || !is_within_by_itself(view, path)? {
        return Ok(false);
    }
    if Checkpoints::new(view.repo).captured_file(last, path)?.is_some() {
        return Ok(true);
    }
    // What is new may be a repository.
    let is_known = |directory: &BStr| Objects::new(view.repo).tree_has_entry(last.worktree, directory);
    for directory in parents(path) {
        if is_known(directory)? {
            break;
        }
        match Worktree::new(view.repo).open_directory(directory)? {
            Some(fd) if !has_repository(&fd) => {}
            _ => return Ok(false),
        }
    }
    let path = path.to_owned();
    let is_left_out =
        || Ok::<_, anyhow::Error>(!Checkpoints::new(view.repo).left_out(last, [&path].into_iter())?.is_empty());
    Ok(!is_left_out()?)
}

/// Whether neither its size nor its mode keeps a file beyond the limits.
fn is_within_by_itself(view: &View<'_>, path: &BStr) -> Result<bool> {
    let Some((stat, _)) = Worktree::new(view.repo).stat(path)? else { return Ok(false) };
    Ok(size_of(&stat) <= view.limits()?.max_file_size && !Privacy::new(view.repo).hides(path, &stat))
}

/// What a look after a call shows.
struct Seen {
    /// The state before the call, where that is not the last one known: somebody else changed something in between.
    before: Option<Checkpoint>,
    after: Checkpoint,
    /// Whether it is the file that the call names.
    is_named: bool,
}

/// Records the step of a call that has just ended, if it changed anything.
pub fn record(locked: &mut Locked<'_>, part: &Participant, tool: &ToolUse) -> Result<()> {
    let Some(turn) = locked.open_turn()?.filter(|_| !tool.only_reads()) else { return Ok(()) };
    if !locked.config().steps()? {
        return Ok(());
    }
    let told = calls::in_open_turn(locked.repo);
    let Some(call) = just_ended(&told, part.session.as_ref(), tool) else { return Ok(()) };
    let last = last_known(locked, &turn)?;
    let found = found_state(locked, &last, &told, call)?;
    let start = states::pointers_at_beginning(&locked.timeline, &turn)?;
    let (seen, extent) = match Reach::of(locked.repo, &call.tool) {
        Reach::Nowhere => return calls::record_look(locked.repo, part, tool, Looked::File),
        Reach::File(path) => (named(locked, &turn, (&last, found), (&told, call), &path)?, Looked::File),
        Reach::Anywhere => {
            let is_found = found.is_some();
            let mut seen = all(locked, &turn, (&last, found), &told)?;
            if !is_found {
                lead_before(locked.repo, &start, &last, (&told, call), (&mut seen.before, &seen.after));
            }
            (seen, Looked::All)
        }
    };
    // Their processes are known since they began their parts. What edits files leaves none behind.
    let parts = &turn.origin.parts;
    let left = if extent == Looked::All { left_running(locked.repo, parts, &told, call) } else { Vec::new() };
    put(locked, &turn, (&start, &last), &told, (part, call, !left.is_empty()), &seen)?;
    if extent == Looked::File {
        return calls::record_look(locked.repo, part, tool, extent);
    }
    // First of the others': until this one is written down, all may be its work.
    for left in left.iter().filter(|left| left.told != call.told) {
        if let Some(part) = parts.iter().find(|part| part.session == left.session) {
            calls::record_look(locked.repo, part, &left.tool, Looked::GoesOn)?;
        }
    }
    let goes_on = left.iter().any(|left| left.told == call.told);
    calls::record_look_at_all(locked.repo, part, tool, &told, goes_on)
}

/// Records the steps of calls whose ends wait to be recorded, or cannot be any more: what comes is not theirs. Gives all calls, and
/// how much was told by then.
pub fn record_ended(locked: &mut Locked<'_>) -> Result<(Vec<ToolCall>, u64)> {
    let repo = locked.repo;
    let (mut told, mut length) = calls::so_far(repo);
    let turn = if told.is_empty() { None } else { locked.open_turn()? };
    let Some(turn) = turn.filter(|_| locked.config().steps().unwrap_or(false)) else { return Ok((told, length)) };
    let waits = |call: &&ToolCall| call.ended_at.is_some() && call.is_unrecorded() && !call.tool.only_reads();
    let part_of = |call: &ToolCall| turn.origin.parts.iter().find(|part| part.session == call.session);
    for _ in 1..LOOKS {
        let waiting: Vec<_> = told.iter().filter(waits).filter_map(|call| Some((part_of(call)?, call))).collect();
        if waiting.is_empty() {
            break;
        }
        for (part, call) in waiting {
            record(locked, part, &call.tool)?;
        }
        (told, length) = calls::so_far(repo);
    }
    Ok((told, length))
}

/// A session's prompt is over, and others are at work in the turn: so are its calls of which nothing told the end. What they have
/// changed by now is looked at, so that what comes is not theirs.
pub fn record_ended_with_prompt(locked: &mut Locked<'_>, part: &Participant) -> Result<()> {
    let is_its = |call: &ToolCall| call.session == part.session && call.ended_at.is_none() && !call.is_known;
    let own: Vec<ToolCall> = calls::in_open_turn(locked.repo).into_iter().filter(is_its).collect();
    for call in &own {
        calls::record(locked.repo, part, &call.tool, true)?;
        record(locked, part, &call.tool)?;
    }
    calls::end_all(locked.repo, part)
}

/// A session that tells of each call goes on to the next one, and calls of it are in flight no more of which nothing told the end.
/// What has changed since is theirs only as far as it is older than they can have lasted.
pub fn record_given_up(locked: &mut Locked<'_>, part: &Participant) -> Result<()> {
    let Some(turn) = locked.open_turn()? else { return Ok(()) };
    let Some(part) = turn.origin.part_of(part) else { return Ok(()) };
    for call in calls::given_up(locked.repo, part) {
        let Some(latest) = call.latest().filter(|_| Worktree::new(locked.repo).local_device().is_some()) else {
            continue;
        };
        calls::record(locked.repo, part, &call.tool, true)?;
        let (checkpoints, told) = (Checkpoints::new(locked.repo), calls::in_open_turn(locked.repo));
        let Some(call) = told.iter().find(|told| told.told.0 == call.told.0) else { continue };
        let last = last_known(locked, &turn)?;
        let found = found_state(locked, &last, &told, call)?;
        let known = found.as_ref().unwrap_or(&last);
        let now = state_now(locked, &turn, known, &told)?;
        let changed = checkpoints.file_changes(known, &now)?;
        let reach = Reach::of(locked.repo, &call.tool);
        let is_its = |path: &&BString| {
            let is_reached = reach == Reach::Anywhere || reach == Reach::File((*path).clone());
            is_reached && Worktree::new(locked.repo).is_older(path.as_bstr(), latest)
        };
        let after = checkpoints.with_paths_of(known, &now, changed.keys().filter(is_its))?;
        let start = states::pointers_at_beginning(&locked.timeline, &turn)?;
        let seen = Seen { before: found, after, is_named: false };
        put(locked, &turn, (&start, &last), &told, (part, call, false), &seen)?;
        calls::record_look(locked.repo, part, &call.tool, Looked::File)?;
    }
    Ok(())
}

/// What a session had at work in the background, which began behind this step, is over: what has changed since the last one, other
/// than by calls in flight, is a step of its own. Gives the last step.
pub fn record_background(locked: &mut Locked<'_>, turn: &Turn, part: &Participant, from: u64) -> Result<u64> {
    let found = locked.timeline.found(turn.turn)?;
    if let Some(found) = &found {
        let mut update = locked.timeline.update();
        update.put_found_behind(turn.turn, from, found)?;
        let plan = Plan::empty(Op::Begin, locked.head.clone());
        locked.carry_out(&plan, update, format!("found behind {}.{from}", turn.turn), Vec::new(), None)?;
    }
    record_so_far(locked, turn, part, found.map(|found| (from, found)))?;
    locked.timeline.last_step(turn.turn)
}

/// What a session had at work in the background is over, and another's goes on: what has changed by now may be either's.
pub fn record_beside_others(locked: &mut Locked<'_>, turn: &Turn, part: &Participant) -> Result<()> {
    let found = turn.origin.at_work_after().zip(locked.timeline.found(turn.turn)?);
    record_so_far(locked, turn, part, found)
}

/// What has changed since the last step, other than by calls in flight, is a step of the background's. `found` is what was there as that
/// began, behind which step: what somebody had changed by then is not its work.
fn record_so_far(
    locked: &mut Locked<'_>,
    turn: &Turn,
    part: &Participant,
    found: Option<(u64, Checkpoint)>,
) -> Result<()> {
    let number = locked.timeline.last_step(turn.turn)?;
    let last = states::after(&locked.timeline, turn, number)?;
    let told = calls::in_open_turn(locked.repo);
    let after = state_now(locked, turn, &last, &told)?;
    let others = at_work_beside(turn, &told, part);
    let before = found_as_it_began(locked, turn, (number, &last), found)?;
    put_background(locked, turn, part, (&last, Seen { before, after, is_named: false }), others)
}

/// Looks at the file that a call names, and at what is staged of it where somebody had staged that before it.
fn named(
    view: &View<'_>,
    turn: &Turn,
    (last, found): (&Checkpoint, Option<Checkpoint>),
    (told, call): (&[ToolCall], &ToolCall),
    path: &BString,
) -> Result<Seen> {
    let objects = Objects::new(view.repo);
    let known = found.as_ref().unwrap_or(last).clone();
    let mut seen = file(view, turn, (last, found), (told, call), path)?;
    let is_there = |entries: &&Vec<IndexEntry>| entries.iter().all(|entry| objects.has_object(entry.id));
    if let Some(staged) = call.staged.as_ref().filter(is_there) {
        let checkpoints = Checkpoints::new(view.repo);
        let entries = |entries: Vec<IndexEntry>| BTreeMap::from([(path.clone(), entries)]);
        let before = seen.before.get_or_insert(known);
        checkpoints.put_entries(&mut before.index, &entries(staged.clone()))?;
        checkpoints.put_entries(&mut seen.after.index, &entries(staged_now(view, path)?))?;
    }
    Ok(seen)
}

/// Looks at the file that a call names, and where that does not tell all of it, as of one that is gone, ignored, private or in
/// another repository, takes it from a look at all: what else has changed is nobody's yet.
fn file(
    view: &View<'_>,
    turn: &Turn,
    (last, found): (&Checkpoint, Option<Checkpoint>),
    (told, call): (&[ToolCall], &ToolCall),
    path: &BString,
) -> Result<Seen> {
    let (checkpoints, known) = (Checkpoints::new(view.repo), found.as_ref().unwrap_or(last));
    let now = if is_covered(view, known, path.as_bstr())? { checkpoints.file_now(path.as_bstr())? } else { None };
    let at_large = told.iter().filter(|other| other.told != call.told && other.ended_at.is_none());
    if is_any_at_large(view.repo, at_large) && Worktree::new(view.repo).stat(path.as_bstr())?.is_none() {
        // It takes no file away: one that may do anything has, or has given it another name.
        return Ok(Seen { after: known.clone(), before: found, is_named: true });
    }
    // Who began meanwhile may have found what it had written by then.
    let is_untold = call.may_have_begun_before();
    let left = if is_untold {
        Some(checkpoints.captured_file(last, path.as_bstr())?)
    } else {
        found_as_begun(view.repo, told, call, path)?
    };
    let mut before = left.map(|left| checkpoints.with_files(known, &[(path.clone(), left)])).transpose()?;
    let after = match now {
        Some(_) => checkpoints.with_files(known, &[(path.clone(), now)])?,
        None => as_looked_at(view, known, &Since::look_within(view, turn)?.into_state(), path)?,
    };
    // Somebody else has brought it within reach meanwhile: what there is of it is all that is known of what there was. Where it is not
    // beyond the limits by itself any more, the call has done that.
    let is_made_so = || Ok::<_, anyhow::Error>(known.skips(path) && is_within_by_itself(view, path.as_bstr())?);
    if call.beyond && checkpoints.captured_file(known, path.as_bstr())?.is_none() && !is_made_so()? {
        before = Some(checkpoints.with_paths_of(before.as_ref().unwrap_or(known), &after, [path])?);
    }
    Ok(Seen { before: before.or(found), after, is_named: true })
}

/// A state with a path as a look at all has it, be it that it is beyond the limits, or in what is.
fn as_looked_at(view: &View<'_>, known: &Checkpoint, seen: &Checkpoint, path: &BString) -> Result<Checkpoint> {
    let checkpoints = Checkpoints::new(view.repo);
    let mut after = checkpoints.with_paths_of(known, seen, [path])?;
    after.skipped.retain(|skipped| skipped.path != *path || seen.skips(path));
    // It may have been made in new directories, which hold nothing else that is captured.
    let mut new = BTreeMap::new();
    for directory in parents(path.as_bstr()) {
        let mode = checkpoints.captured_directory(seen, directory)?;
        if mode.is_some() && checkpoints.captured_directory(known, directory)?.is_none() {
            new.insert(directory.to_owned(), mode);
        }
    }
    checkpoints.put_directories(&mut after, &new)?;
    let beyond = checkpoints.new_beyond_limits(known, seen)?.into_iter();
    after.skipped.extend(beyond.filter(|new| is_at_or_below(path.as_bstr(), new.path.as_bstr())).cloned());
    for touched in touched_beyond_limits(known, seen) {
        if is_at_or_below(path.as_bstr(), touched.path.as_bstr())
            && let Some(was) = after.skipped.iter_mut().find(|was| was.path == touched.path)
        {
            was.clone_from(touched);
        }
    }
    Ok(after)
}

/// Looks at all.
fn all(
    view: &View<'_>,
    turn: &Turn,
    (last, found): (&Checkpoint, Option<Checkpoint>),
    told: &[ToolCall],
) -> Result<Seen> {
    let (checkpoints, worktree) = (Checkpoints::new(view.repo), Worktree::new(view.repo));
    let known = found.as_ref().unwrap_or(last);
    let after = state_now(view, turn, known, told)?;
    let changed = checkpoints.file_changes(known, &after)?;
    let began = first_unknown(told);
    let is_older = |path: &BString| began.is_some_and(|began| worktree.is_older(path.as_bstr(), began));
    let was_between = |path: &BString| {
        let there = worktree.identity(path.as_bstr());
        there.is_some_and(|there| is_between(told, there.changed))
    };
    let (mut older, mut by_calls) = (Vec::new(), BTreeMap::new());
    for path in changed.keys() {
        let beyond = known.skipped.iter().find(|skipped| is_at_or_below(path.as_bstr(), skipped.path.as_bstr()));
        if beyond.is_none() && found.is_some() || !is_older(path) {
            continue;
        }
        // Of what calls have made there is theirs what was written while one was in flight.
        let is_of_calls = match beyond.map(|beyond| by_calls.entry(&beyond.path)) {
            Some(Entry::Occupied(known)) => *known.get(),
            Some(Entry::Vacant(new)) => *new.insert(is_beyond_by_calls(view, turn, path)?),
            None => false,
        };
        let is_theirs = if is_of_calls { was_between(path) } else { found.is_none() };
        older.extend(is_theirs.then_some(path));
    }
    let before = if older.is_empty() { found } else { Some(checkpoints.with_paths_of(known, &after, older)?) };
    Ok(Seen { before, after, is_named: false })
}

/// Whether it is the turn's calls that have made what is beyond the limits at a path, or in which it is: one that adds it to the index has
/// only brought it within reach.
fn is_beyond_by_calls(view: &View<'_>, turn: &Turn, path: &BString) -> Result<bool> {
    let timeline = &view.timeline;
    if states::after(timeline, turn, 0)?.is_beyond(path.as_bstr()) {
        return Ok(false);
    }
    for step in timeline.steps_with_gaps(turn.turn)? {
        let Some(found) = timeline.step_checkpoint(turn.turn, step, Side::Before)? else { continue };
        let is_beyond = |state: &Checkpoint| state.is_beyond(path.as_bstr());
        if is_beyond(&found) && !is_beyond(&states::after(timeline, turn, step.saturating_sub(1))?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Records a step. A call may have left something running, its own or one beside it.
fn put(
    locked: &mut Locked<'_>,
    turn: &Turn,
    (start, last): (&Pointers, &Checkpoint),
    told: &[ToolCall],
    (part, call, is_left): (&Participant, &ToolCall, bool),
    seen: &Seen,
) -> Result<()> {
    let checkpoints = Checkpoints::new(locked.repo);
    let before = seen.before.as_ref().unwrap_or(last);
    let delta = checkpoints.delta(&with_made_small(locked, turn, before, &seen.after)?, before, &seen.after)?;
    // What a call has saved in something beyond the limits is not the user's, though no record has it; nor is where it led a branch that
    // another worktree is on, as one that it has made itself.
    let is_nothing = delta.is_empty()
        && Pointers::are_of_both(before, &seen.after)
        && touched_beyond_limits(before, &seen.after).is_empty()
        && !checkpoints.has_taken_any(&before.uncaptured);
    // What was found is not the work of another call of which nothing tells the end, nor of what was left running.
    let unknown = told.iter().filter(|other| other.told != call.told && other.is_unknown());
    let is_open = is_left
        || match Reach::of(locked.repo, &call.tool) {
            Reach::File(path) => may_write(locked.repo, unknown, &path),
            Reach::Anywhere | Reach::Nowhere => {
                unknown.into_iter().any(|other| Reach::of(locked.repo, &other.tool) != Reach::Nowhere)
            }
        };
    if is_nothing && (seen.before.is_none() || !is_open) {
        return Ok(());
    }
    let (files, totals) = checkpoints.file_stats(&delta)?;
    let others = others(locked.repo, told, call, &delta.files.keys().cloned().collect::<Vec<_>>());
    let share = match (others.is_empty(), seen.is_named) {
        (false, _) => Share::Shared,
        (true, true) => Share::Named,
        (true, false) => Share::Claimed,
    };
    let step = Step {
        v: 1,
        turn: turn.turn,
        step: locked.timeline.last_step(turn.turn)? + 1,
        agent: part.agent.clone(),
        session: call.session.clone(),
        tool: as_seen_from_top(locked.repo, &call.tool),
        began_at: call.began_at.clone(),
        ended_at: call.ended_at.clone().unwrap_or_else(rfc3339_now),
        share,
        others,
        head: seen.after.head.commit,
        totals,
    };
    write(locked, (&step, &files), Some((&delta, told)), start, seen)
}

/// A turn that is known to have written the files that were beyond the limits by themselves, and are within reach after a call; the turn
/// has made them so.
fn with_made_small(view: &View<'_>, turn: &Turn, before: &Checkpoint, after: &Checkpoint) -> Result<Turn> {
    let mut turn = turn.clone();
    let mut made = Vec::new();
    for path in before.skipped.iter().map(|skipped| &skipped.path).filter(|path| !after.skips(path)) {
        if Checkpoints::new(view.repo).captured_file(after, path.as_bstr())?.is_some() {
            made.push(path);
        }
    }
    if !made.is_empty() {
        let began = view.timeline.checkpoint(turn.turn, Side::Before)?;
        let made = made.into_iter().filter(|path| !began.is_beyond(path.as_bstr()));
        turn.wrote.extend(made.map(|path| exact::encode(path)));
    }
    Ok(turn)
}

/// What the turn's calls have moved from where it was not captured, after one that changed this. `found` is what others had made before
/// that one.
fn brought(
    view: &View<'_>,
    turn: &Turn,
    (step, found): (u64, BTreeMap<BString, Uncaptured>),
    (delta, told): (&Delta, &[ToolCall]),
) -> Result<BTreeMap<String, Brought>> {
    let before = view.timeline.checkpoint(turn.turn, Side::Before)?;
    let between = view.timeline.uncaptured_between(turn.turn, &before)?;
    let found = view.timeline.uncaptured_of_others(turn.turn, step, &before, found)?;
    let calls = are_gaps_users(view.repo, &view.timeline, turn, told)?.then_some(told);
    Checkpoints::new(view.repo).brought(turn, &before, (between, found), (step, delta, calls))
}

/// Records what has changed since the last step as one that no hook tells of; the files that are being written are as they were
/// then.
pub fn record_watched(locked: &mut Locked<'_>, turn: &Turn, state: Checkpoint, busy: &BTreeSet<BString>) -> Result<()> {
    let checkpoints = Checkpoints::new(locked.repo);
    let number = locked.timeline.last_step(turn.turn)?;
    let last = states::after(&locked.timeline, turn, number)?;
    let after = if busy.is_empty() { state } else { checkpoints.with_paths_of(&state, &last, busy)? };
    let tool = ToolUse { tool: WATCHED.to_owned(), ..ToolUse::default() };
    let others = sessions(at_work(turn).filter(|part| !part.inside));
    let seen = Seen { before: None, after, is_named: false };
    put_without_call(locked, turn, (&last, seen), (&turn.agent, turn.session.as_ref()), tool, others)
}

/// The other sessions of which something may have been at work between calls: what a call has left, or what was listed, or calls of
/// which nothing is told.
fn at_work_beside(turn: &Turn, told: &[ToolCall], part: &Participant) -> Vec<String> {
    let may_be = |one: &&Participant| {
        let is_unknown = told.iter().any(|call| call.session == one.session && call.is_unknown());
        one.listed.is_some() || is_unknown || !adapter(&one.agent).is_some_and(|adapter| adapter.all_calls)
    };
    sessions(at_work(turn).filter(|one| !one.is_session_of(part)).filter(may_be))
}

fn sessions<'p>(parts: impl Iterator<Item = &'p Participant>) -> Vec<String> {
    parts.map(|part| part.session.clone().unwrap_or_default()).collect()
}

/// Records a step that no call made, if anything has changed.
fn put_without_call(
    locked: &mut Locked<'_>,
    turn: &Turn,
    (last, seen): (&Checkpoint, Seen),
    (agent, session): (&str, Option<&String>),
    tool: ToolUse,
    others: Vec<String>,
) -> Result<()> {
    let checkpoints = Checkpoints::new(locked.repo);
    let before = seen.before.as_ref().unwrap_or(last);
    let delta = checkpoints.delta(turn, before, &seen.after)?;
    // Where calls are told of, what is in no step is the user's.
    let is_known = tool.tool == WATCHED || touched_beyond_limits(before, &seen.after).is_empty();
    // Nor is where the user has led HEAD what the next call does.
    if delta.is_empty() && is_known && Pointers::are_of_both(last, before) {
        return Ok(());
    }
    let (files, totals) = checkpoints.file_stats(&delta)?;
    // Where it is to be told from what others did, what is at work for hours leaves room for the user, too.
    let is_users_too = tool.tool == Step::BACKGROUND && at_work(turn).count() > 1;
    let number = locked.timeline.last_step(turn.turn)?;
    let last_time = locked.timeline.step(turn.turn, number)?.map(|step| step.ended_at);
    let step = Step {
        v: 1,
        turn: turn.turn,
        step: number + 1,
        agent: agent.to_owned(),
        session: session.cloned(),
        tool: ToolUse { path: if let [file] = &files[..] { Some(file.path.clone()) } else { None }, ..tool },
        began_at: last_time.unwrap_or_else(|| turn.began_at.clone()),
        ended_at: rfc3339_now(),
        share: if others.is_empty() && !is_users_too { Share::Claimed } else { Share::Shared },
        others,
        head: seen.after.head.commit,
        totals,
    };
    let start = states::pointers_at_beginning(&locked.timeline, turn)?;
    let told = calls::in_open_turn(locked.repo);
    write(locked, (&step, &files), Some((&delta, &told)), &start, &seen)
}

/// The path in it as other paths are, where it is that of a file here.
fn as_seen_from_top(repo: &Repo, tool: &ToolUse) -> ToolUse {
    let mut tool = ToolUse { has_other_names: false, ..tool.clone() };
    if let Reach::File(path) = Reach::of(repo, &tool) {
        tool.path = Some(quoted(path.as_bstr()));
    }
    tool
}

/// Writes a step down. `changed` is what a call may have moved, with all calls.
fn write(
    locked: &mut Locked<'_>,
    (step, files): (&Step, &[FileChange]),
    changed: Option<(&Delta, &[ToolCall])>,
    start: &Pointers,
    seen: &Seen,
) -> Result<()> {
    let mut update = locked.timeline.update();
    update.put_step(step, files, seen.before.as_ref(), &seen.after)?;
    if let Some((delta, told)) = changed.filter(|(delta, _)| !delta.files.is_empty() || !delta.aside.is_empty())
        && let Some(turn) = locked.open_turn()?
        && (!seen.is_named || turn.has_brought_any(delta))
    {
        let found = seen.before.as_ref().map(|before| before.uncaptured.clone()).unwrap_or_default();
        let brought = brought(locked, &turn, (step.step, found), (delta, told))?;
        if turn.brought != brought {
            update.put_turn(&Turn { brought, ..turn })?;
        }
    }
    // Whoever made these commits may take them off their branches again.
    for state in seen.before.iter().chain([&seen.after]) {
        let moved = start.moved_to(&Pointers::of(state));
        let pins = commits_of(&moved);
        hold(&mut update.state, pins.filter(|pin| Objects::new(locked.repo).has_commit(pin.0)));
    }
    let message = format!("step {} ({}: {})", step.name(), step.agent, step.label());
    let plan = Plan::empty(Op::Begin, locked.head.clone());
    locked.carry_out(&plan, update, message, Vec::new(), None)
}

fn hold(state: &mut Timeline, pins: impl Iterator<Item = Pin>) {
    for pin in pins {
        if !state.held.contains(&pin) {
            state.held.push(pin);
        }
    }
}

/// Keeps alive what a call finds that somebody has made since the last step: it may overwrite it, take it off its branch, and
/// have git delete it.
fn keep_found(locked: &mut Locked<'_>, tool: &ToolUse, found: &FoundBefore) -> Result<()> {
    let objects = Objects::new(locked.repo);
    let mut trees: Vec<ObjectId> = found.state.into_iter().collect();
    let file = found.file.and_then(Left::file).map(|file| (found.path.clone(), Some((entry_kind(file.kind), file.id))));
    let staged = found.staged.iter().filter(|entries| !entries.iter().any(IndexEntry::is_gitlink));
    for change in file.into_iter().chain(staged.map(|entries| tree_change(&found.path, entries))) {
        trees.push(objects.edited_tree(objects.empty_tree(), &[change])?);
    }
    let held = &locked.timeline.state.held;
    trees.retain(|tree| !held.iter().any(|pin| objects.commit_tree(pin.0).is_ok_and(|held| held == *tree)));
    let commit = |tree| objects.write_own_commit(tree, Vec::new(), "found before a call").map(Pin);
    let mut pins = trees.into_iter().map(commit).collect::<Result<Vec<_>>>()?;
    pins.extend(found.moved.iter().flat_map(commits_of).filter(|pin| objects.has_commit(pin.0)));
    if pins.iter().all(|pin| held.contains(pin)) {
        return Ok(());
    }
    let mut update = locked.timeline.update();
    hold(&mut update.state, pins.into_iter());
    let plan = Plan::empty(Op::Begin, locked.head.clone());
    locked.carry_out(&plan, update, format!("found before a call ({})", sanitized(&tool.tool)), Vec::new(), None)
}

/// While something is at work in the background, what a call finds that has changed is its work: a step of its own.
fn record_found(locked: &mut Locked<'_>, told: &[ToolCall], found: &mut FoundBefore) -> Result<()> {
    let Some(turn) = locked.open_turn()? else { return Ok(()) };
    let (parts, left) = (&turn.origin.parts, told.iter().rfind(|call| call.goes_on));
    let listed = parts.iter().find(|part| part.listed.is_some());
    if listed.is_none() && left.is_none() {
        return Ok(());
    }
    // Whatever comes of it, this is not the user's.
    let Some(state) = found.state.take() else { return Ok(()) };
    let left_by = || parts.iter().find(|part| left.is_some_and(|call| call.session == part.session));
    let Some(part) = listed.or_else(left_by) else { return Ok(()) };
    let (number, last) = (locked.timeline.last_step(turn.turn)?, last_known(locked, &turn)?);
    let after = Checkpoints::new(locked.repo).read_checkpoint(state)?;
    let others = at_work_beside(&turn, told, part);
    let before = found_as_it_began(locked, &turn, (number, &last), part.listed.zip(locked.timeline.found(turn.turn)?))?;
    put_background(locked, &turn, part, (&last, Seen { before, after, is_named: false }), others)
}

/// Notes which files calls had made in what was not captured as a whole, where somebody has brought that within reach by now: a call may
/// delete them.
fn note_within(locked: &mut Locked<'_>, told: &[ToolCall], found: &FoundBefore) -> Result<()> {
    let Some(turn) = locked.open_turn()?.filter(|_| found.state.is_some()) else { return Ok(()) };
    let (last, Some(state)) = (last_known(locked, &turn)?, found.state) else { return Ok(()) };
    let base = states::after(&locked.timeline, &turn, 0)?;
    let mut new = last.skipped.iter().filter(|skipped| !base.is_beyond(skipped.path.as_bstr())).peekable();
    if new.peek().is_none() {
        return Ok(());
    }
    let (now, mut users) = (Checkpoints::new(locked.repo).read_checkpoint(state)?, Vec::new());
    for skipped in new {
        if !is_beyond_by_calls(locked, &turn, &skipped.path)? {
            users.push(skipped.path.clone());
        }
    }
    let within = brought_within(locked, &turn, [&base, &last, &now], told, &users)?;
    let within: BTreeSet<String> = within.iter().map(|path| exact::encode(path)).collect();
    if within == turn.within {
        return Ok(());
    }
    let mut update = locked.timeline.update();
    update.put_turn(&Turn { within, ..turn })?;
    let plan = Plan::empty(Op::Begin, locked.head.clone());
    locked.carry_out(&plan, update, "within reach before a call".to_owned(), Vec::new(), None)
}

/// What was there as something began to be at work in the background, by the state after the last step.
fn found_as_it_began(
    view: &View<'_>,
    turn: &Turn,
    (step, last): (u64, &Checkpoint),
    found: Option<(u64, Checkpoint)>,
) -> Result<Option<Checkpoint>> {
    Ok(match found {
        Some((behind, found)) if behind == step => Some(found),
        Some((behind, found)) => {
            let last = Checkpoint { uncaptured: BTreeMap::new(), ..last.clone() };
            Some(with_found(view, turn, (step, last), (behind, &found))?)
        }
        None => None,
    })
}

fn put_background(
    locked: &mut Locked<'_>,
    turn: &Turn,
    part: &Participant,
    (last, mut seen): (&Checkpoint, Seen),
    others: Vec<String>,
) -> Result<()> {
    // By that it is found again.
    let before = seen.before.take().unwrap_or_else(|| Checkpoint { uncaptured: BTreeMap::new(), ..last.clone() });
    seen.before = Some(led_as(locked, &before, &seen.after)?);
    let tool = ToolUse { tool: Step::BACKGROUND.to_owned(), ..ToolUse::default() };
    put_without_call(locked, turn, (last, seen), (&part.agent, part.session.as_ref()), tool, others)
}

/// The other sessions whose calls were in flight and may have written one of these files.
fn others(repo: &Repo, told: &[ToolCall], call: &ToolCall, paths: &[BString]) -> Vec<String> {
    let may_be_its = |other: &&ToolCall| paths.iter().any(|path| may_write(repo, std::iter::once(*other), path));
    // What a file held that a call names, and of which nothing tells the end, was left to that.
    let names_one = |other: &&ToolCall| {
        other.is_unrecorded() && matches!(Reach::of(repo, &other.tool), Reach::File(path) if paths.contains(&path))
    };
    let waiting: Vec<&ToolCall> = told.iter().filter(|other| other.told != call.told).filter(names_one).collect();
    let is_beside = |other: &ToolCall| {
        other.overlaps(call) || waiting.iter().any(|waiting| waiting.told != other.told && other.overlaps(waiting))
    };
    let others = told.iter().filter(|other| other.session != call.session && is_beside(other)).filter(may_be_its);
    let mut names: Vec<String> = others.map(|other| other.session.clone().unwrap_or_default()).collect();
    names.sort();
    names.dedup();
    names
}
