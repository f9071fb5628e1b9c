//! The life of a turn: what is recorded when it begins, and what is committed
//! and recorded when it ends, whichever way it ends.

pub mod session;

use crate::config::{Config, Untracked};
use crate::error::failure::refusal_of;
use crate::error::{Code, Refusal};
use crate::git::apply::Apply;
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::{Before, Capture};
use crate::git::index::Index;
use crate::git::index::lock::IndexLock;
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::repo::clock::now;
use crate::git::scan::ignore::{ignored_now, rules_of};
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored, step};
use crate::model::bytes::{quoted, shown};
use crate::model::checkpoint::{
    Change, Checkpoint, Delta, IndexEntry, IndexState, Reason, Skipped, branch_changes, uncovered_changes,
};
use crate::model::merge::{Carried, Cause, Edits, Merged};
use crate::model::plan::{BranchMove, IndexMove, Op, Plan};
use crate::model::record::Record;
use crate::model::session::Origin;
use crate::model::timeline::{Pin, Timeline};
use crate::model::turn::{CommitKind, Made, Mode, Note, Totals, Turn, TurnCommit, subject};
use crate::model::walk::{Leg, travel};
use crate::ui::Ui;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};

/// Who makes a turn and why.
#[derive(Clone, Debug)]
pub struct Who {
    /// The agent.
    pub agent: String,
    /// Its session.
    pub session: Option<String>,
    /// The message given, or the prompt.
    pub message: Option<String>,
    /// Commit or ghost.
    pub mode: Mode,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ending {
    /// The agent's exit code.
    pub exit_code: Option<i32>,
    /// Whether it was cut off.
    pub interrupted: bool,
}

/// Brings the worktree's records in order before anything else is done: finishes or rolls
/// back an interrupted command, and closes a turn whose process is gone. To be called with
/// the worktree's lock held.
///
/// # Errors
///
/// When either fails.
pub fn settle(repo: &Repo, ui: &Ui) -> Result<()> {
    recover(repo, ui)?;
    let stored = Timelines::new(repo).timeline()?;
    match stored.state.open {
        Some(open) => session::close(repo, ui, &stored, open),
        None => Ok(()),
    }
}

/// As [`settle`], but lets a turn be in which a session is at work.
///
/// # Errors
///
/// When either fails.
pub fn settle_unless_live(repo: &Repo, ui: &Ui) -> Result<()> {
    recover(repo, ui)?;
    let stored = Timelines::new(repo).timeline()?;
    match stored.state.open {
        Some(open) if !session::is_live(&stored.known_turn(open)?) => session::close(repo, ui, &stored, open),
        _ => Ok(()),
    }
}

fn recover(repo: &Repo, ui: &Ui) -> Result<()> {
    if let Some(recovered) = Apply::new(repo).recover()? {
        let how = if recovered.finished { "finished" } else { "rolled back" };
        ui.warn(&format!("{how} an interrupted operation: {}", recovered.what));
        for path in &recovered.left {
            ui.warn(&format!("left '{}' as it is: it was changed since", shown(path.as_bstr())));
        }
    }
    Ok(())
}

/// Records the state before a turn and, in commit mode, saves the user's uncommitted work
/// in a dirty commit. Gives the turn's number.
fn begin_as(repo: &Repo, ui: &Ui, who: &Who, origin: Origin) -> Result<u64> {
    begin_made(repo, ui, who, origin, None)
}

fn begin_made(repo: &Repo, ui: &Ui, who: &Who, origin: Origin, made: Option<Made>) -> Result<u64> {
    let config = Config(repo);
    if who.mode == Mode::Commit {
        check_idle(repo).map_err(|error| match error.downcast::<Refusal>() {
            Ok(refusal) => refusal.hint("or pass --ghost, which makes no commits").into(),
            Err(error) => error,
        })?;
        repo.check_identity()?;
        // What will be asked when the agent is done.
        config.verify()?;
        config.sign()?;
    }
    let stored = Timelines::new(repo).timeline()?;
    let capture = present(repo, &stored)?;
    let number = stored.state.next;
    let mut turn = Turn {
        v: 1,
        turn: number,
        agent: who.agent.clone(),
        session: who.session.clone(),
        message: who.message.clone(),
        mode: who.mode,
        began_on: capture.checkpoint.head.branch.clone(),
        branch: capture.checkpoint.head.branch.clone(),
        began_at: now(),
        ended_at: None,
        exit_code: None,
        interrupted: false,
        dirty_commit: None,
        commits: Vec::new(),
        previous: None,
        depth: 0,
        totals: Totals::default(),
        origin,
        torn: note_torn(ui, &capture),
        made,
    };
    let mut plan = Plan::empty(Op::Begin, capture.checkpoint.head.clone());
    let mut lock = None;
    // Between two prompts nothing is committed: it is not known yet whose the changes are.
    if who.mode == Mode::Commit
        && !turn.origin.waiting
        && let Some(dirty) = dirty_commit(repo, config, &capture, &turn)?
    {
        turn.dirty_commit = Some(dirty.commit);
        turn.commits.push(TurnCommit { id: dirty.commit, kind: CommitKind::Dirty });
        advance(&mut plan, dirty.commit);
        plan.index = dirty.index;
        lock = dirty.lock;
    }
    announce_skipped(repo, ui, &stored, &capture.checkpoint.skipped)?;
    let mut update = stored.update();
    update.state.next = number + 1;
    update.state.open = Some(number);
    update.state.usual_modes = Some(capture.checkpoint.modes.usual);
    let tips = capture.checkpoint.branches.values().copied();
    let stash = capture.checkpoint.stash.iter().map(|entry| entry.id);
    let commits = capture.checkpoint.head.commit.into_iter().chain(turn.dirty_commit);
    let held: BTreeSet<Pin> = tips.chain(commits).chain(stash).map(Pin).collect();
    update.state.held = held.into_iter().collect();
    update.put_turn(&turn)?;
    update.put_checkpoint(number, Side::Before, &capture.checkpoint)?;
    let message = format!("begin {number} ({})", turn.label());
    Apply::new(repo).apply(&plan, &update.into_record(message, notes(repo, &turn))?, lock)?;
    Ok(number)
}

/// The present state, with the permission bits that this timeline takes for granted.
///
/// # Errors
///
/// When something cannot be read or kept.
pub fn present(repo: &Repo, stored: &Stored) -> Result<Capture> {
    let usual = stored.state.usual_modes.unwrap_or_else(crate::git::worktree::stat::umask_modes);
    Checkpoints::new(repo).capture(usual, &Config(repo).limits()?, None)
}

/// Checks that git is not in the middle of something.
///
/// # Errors
///
/// A refusal `in_progress` that says of what.
pub fn check_idle(repo: &Repo) -> Result<()> {
    let what = match (repo.in_progress(), Index::new(repo).first_unmerged()?) {
        (Some(what), _) => format!("a {what} is in progress"),
        (None, Some(path)) => format!("'{}' is unmerged", shown(path.as_bstr())),
        (None, None) => return Ok(()),
    };
    let refusal = Refusal::new(Code::InProgress, what);
    Err(refusal.hint("finish or abort it first: 'git status' says how").into())
}

/// Says which files something kept changing while they were captured, and gives them for the record.
fn note_torn(ui: &Ui, capture: &Capture) -> Vec<String> {
    for path in &capture.torn {
        let path = shown(path.as_bstr());
        ui.warn(&format!(
            "'{path}' kept changing while it was read: what undo knows of it may be from more than one moment"
        ));
    }
    capture.torn.iter().map(|path| quoted(path.as_bstr())).collect()
}

/// The user's uncommitted work as a commit that no ref holds yet.
struct Dirty<'repo> {
    commit: ObjectId,
    index: Vec<IndexMove>,
    lock: Option<IndexLock<'repo>>,
}

fn dirty_commit<'repo>(
    repo: &'repo Repo,
    config: Config<'_>,
    capture: &Capture,
    turn: &Turn,
) -> Result<Option<Dirty<'repo>>> {
    let checkpoint = &capture.checkpoint;
    let head_tree = Objects::new(repo).head_tree(&checkpoint.head)?;
    let mut paths = capture.changed.clone();
    if config.untracked()? == Untracked::Commit {
        let secrets = config.secrets()?;
        let new = Checkpoints::new(repo).untracked_files(capture)?;
        paths.extend(new.into_iter().filter(|path| !secrets.matches(path.as_bstr())));
    }
    let (tree, index, lock) = if paths.is_empty() {
        (checkpoint.index.tree, Vec::new(), None)
    } else {
        let lock = Index::new(repo).lock_index()?;
        lock.stage(paths.iter().map(|path| path.as_bstr()))?;
        let staged = lock.read()?;
        let tree = Index::new(repo).index_state(&staged, head_tree)?.tree;
        (tree, Index::new(repo).index_moves(&paths, &capture.index, &staged)?, Some(lock))
    };
    if tree == head_tree {
        return Ok(None);
    }
    let message = format!("oxundo: uncommitted changes before turn {}\n", turn.turn);
    let parents: Vec<_> = checkpoint.head.commit.into_iter().collect();
    let commit = Objects::new(repo).make_commit(tree, &parents, &message, config.sign()?).map_err(unsigned)?;
    Ok(Some(Dirty { commit, index, lock }))
}

fn unsigned(error: anyhow::Error) -> anyhow::Error {
    let refusal = refusal_of(&error);
    if refusal.message.contains("sign") {
        return Refusal::new(Code::Io, refusal.message)
            .hint("run 'git config oxundo.sign never' to leave oxundo's commits unsigned")
            .into();
    }
    error
}

/// Whether content that was staged and not committed gives way to other content: the index
/// may hold the only copy.
fn replaces_staged_content(repo: &Repo, head_tree: ObjectId, moves: &[IndexMove]) -> Result<bool> {
    for entry in moves {
        let committed = Objects::new(repo).tree_entry(head_tree, entry.path.as_bstr())?.map(|(_, id)| id);
        let kept = |from: &IndexEntry| Some(from.id) == committed || entry.to.iter().any(|to| to.id == from.id);
        if entry.from.iter().any(|from| !from.intent_to_add && !kept(from)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Moves HEAD, with its branch if it is on one, to a commit.
fn advance(plan: &mut Plan, commit: ObjectId) {
    plan.head.to.commit = Some(commit);
    if let Some(branch) = &plan.head.from.branch {
        plan.branches.push(BranchMove { name: branch.clone(), from: plan.head.from.commit, to: Some(commit) });
    }
}

/// Whether this was skipped before, be it that it has changed.
fn knows(before: &[Skipped], new: &Skipped) -> bool {
    before.iter().any(|old| (&old.path, old.reason) == (&new.path, new.reason))
}

/// What is not captured is said once, not before every turn.
fn announce_skipped(_repo: &Repo, ui: &Ui, stored: &Stored, skipped: &[Skipped]) -> Result<()> {
    use Reason as R;
    let newest = stored.state.next.checked_sub(1).filter(|number| *number > 0);
    let said = match newest {
        Some(number) if stored.turn(number)?.is_some() => stored.checkpoint(number, Side::Before)?.skipped,
        _ => Vec::new(),
    };
    let new: Vec<_> =
        (skipped.iter()).filter(|skipped| skipped.reason != R::Repository && !knows(&said, skipped)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let described = new.iter().take(3).map(|skipped| with_reason(skipped));
    let mut list = described.collect::<Vec<_>>().join(", ");
    if new.len() > 3 {
        list.push_str(&format!(", {} more", new.len() - 3));
    }
    ui.warn(&format!("not covered by undo: {list}"));
    Ok(())
}

/// Ends the open turn: commits what it changed, records the state after it, or, when it
/// changed nothing, takes every trace of it back. Gives the turn, if there is one.
///
/// # Errors
///
/// When something cannot be read or written; the turn is then still open.
pub fn end(repo: &Repo, ui: &Ui, ending: Ending) -> Result<Option<Turn>> {
    let config = Config(repo);
    let stored = Timelines::new(repo).timeline()?;
    let Some(number) = stored.state.open else {
        return Ok(None);
    };
    let mut turn = stored.known_turn(number)?;
    let (before, start, mut capture) = since(repo, &stored, &turn)?;
    turn.ended_at = Some(now());
    turn.exit_code = ending.exit_code.or(turn.exit_code);
    turn.interrupted = ending.interrupted;
    turn.origin.waiting = false;
    turn.origin.parts.iter_mut().for_each(session::finish);
    turn.torn.extend(note_torn(ui, &capture));
    let changed = Checkpoints::new(repo).delta(number, &start, &capture.checkpoint)?;
    if changed.is_empty() {
        take_back(repo, &stored, &before, &start, &capture)?;
        return Ok(None);
    }
    let mut plan = Plan::empty(Op::End, capture.checkpoint.head.clone());
    let mut lock = None;
    let mut update = stored.update();
    if turn.mode == Mode::Commit {
        match auto_commit(repo, ui, config, &turn, &start, &capture, &changed) {
            Ok(Some(made)) => {
                plan.index = made.index;
                let head_tree = Objects::new(repo).head_tree(&capture.checkpoint.head)?;
                if replaces_staged_content(repo, head_tree, &plan.index)? {
                    update.put_rescue(&capture.checkpoint)?;
                }
                advance(&mut plan, made.commit);
                capture.checkpoint.head.commit = Some(made.commit);
                if let Some(branch) = &capture.checkpoint.head.branch {
                    capture.checkpoint.branches.insert(branch.clone(), made.commit);
                }
                capture.checkpoint.index = made.state;
                lock = Some(made.lock);
            }
            Ok(None) => {}
            // The turn is recorded all the same; its changes stay uncommitted.
            Err(error) => ui.warn(&format!("the turn's changes were not committed: {}", refusal_of(&error).message)),
        }
    }
    let after = &capture.checkpoint;
    // What tools make again changes with every turn: undo says so when it matters.
    for skipped in uncovered_changes(&before, after).into_iter().filter(|old| old.reason != Reason::SkipDir) {
        ui.warn(&format!("the turn changed '{}', which undo does not cover", shown(skipped.path.as_bstr())));
    }
    turn.branch.clone_from(&after.head.branch);
    turn.commits.extend(commits_of(repo, &start, after, turn.dirty_commit)?);
    let whole = Checkpoints::new(repo).delta(number, &before, after)?;
    let files = Checkpoints::new(repo).file_stats(&whole)?;
    turn.totals = Totals {
        files: files.len() as u64,
        insertions: files.iter().map(|file| file.insertions).sum(),
        deletions: files.iter().map(|file| file.deletions).sum(),
    };
    let ended_on = after.head.stack();
    turn.previous = stored.state.top(ended_on);
    let below = match turn.previous {
        Some(previous) => stored.known_turn(previous)?.depth,
        None => 0,
    };
    turn.depth = below.saturating_add(u64::from(!turn.is_part()));
    update.state.open = None;
    update.state.held.clear();
    pin_displaced(repo, &mut update.state, &whole)?;
    update.state.push(&step(&turn), turn.keeps_redo());
    update.put_turn(&turn)?;
    update.put_files(number, &files)?;
    update.put_checkpoint(number, Side::After, after)?;
    let word = if ending.interrupted { "end (interrupted)" } else { "end" };
    let message = format!("{word} {number} ({})", turn.label());
    Apply::new(repo).apply(&plan, &update.into_record(message, notes(repo, &turn))?, lock)?;
    Ok(Some(turn))
}

/// The state right after a turn began: the checkpoint, but on the dirty commit.
///
/// # Errors
///
/// When the commit cannot be read.
pub fn with_dirty_commit(repo: &Repo, before: &Checkpoint, dirty: Option<ObjectId>) -> Result<Checkpoint> {
    let mut start = before.clone();
    let Some(dirty) = dirty else { return Ok(start) };
    start.head.commit = Some(dirty);
    if let Some(branch) = &start.head.branch {
        start.branches.insert(branch.clone(), dirty);
    }
    // The dirty commit is the index as it was made for it; what was only intended is added.
    let tree = Objects::new(repo).commit_tree(dirty)?;
    for path in Objects::new(repo).changed_paths(before.index.tree, tree)? {
        Index::new(repo).take_from_sparse(&mut start.index, path.as_bstr())?;
    }
    for entries in start.index.special.values_mut() {
        entries.retain(|entry| !entry.intent_to_add);
    }
    start.index.special.retain(|_, entries| !entries.is_empty());
    start.index.tree = tree;
    Ok(start)
}

/// Whether nothing has changed since an open turn began.
fn is_unchanged(repo: &Repo, stored: &Stored, turn: &Turn) -> Result<bool> {
    let (_, start, capture) = since(repo, stored, turn)?;
    Ok(Checkpoints::new(repo).delta(turn.turn, &start, &capture.checkpoint)?.is_empty())
}

/// Takes back the record of the open turn and its dirty commit. What changed since it began
/// stays as it is, uncommitted.
fn drop_open(repo: &Repo) -> Result<()> {
    let stored = Timelines::new(repo).timeline()?;
    let Some(number) = stored.state.open else { return Ok(()) };
    let (before, start, capture) = since(repo, &stored, &stored.known_turn(number)?)?;
    take_back(repo, &stored, &before, &start, &capture)
}

/// The state before an open turn, the one right after it began, and the present by its rules.
fn since(repo: &Repo, stored: &Stored, turn: &Turn) -> Result<(Checkpoint, Checkpoint, Capture)> {
    let before = stored.checkpoint(turn.turn, Side::Before)?;
    let start = with_dirty_commit(repo, &before, turn.dirty_commit)?;
    let rules = rules_of(repo, &before)?;
    let known = Before { checkpoint: &before, rules };
    let capture = Checkpoints::new(repo).capture(before.modes.usual, &Config(repo).limits()?, Some(&known))?;
    Ok((before, start, capture))
}

/// Takes back the dirty commit and the record of a turn that changed nothing.
fn take_back(repo: &Repo, stored: &Stored, before: &Checkpoint, start: &Checkpoint, capture: &Capture) -> Result<()> {
    let number = stored.state.open.unwrap_or_default();
    let delta = Checkpoints::new(repo).delta(number, before, start)?.inverse();
    let legs = [Leg { turn: number, delta, carried: Carried::default() }];
    let facts = Checkpoints::new(repo).facts(&legs, &capture.checkpoint, &capture.index)?;
    let plan = travel(Op::End, &legs, &facts, Edits::Refuse, &mut |_, _| Ok(Merged::Overlap(Cause::Edited)))?;
    let mut update = stored.update();
    update.state.open = None;
    update.state.held.clear();
    update.state.next = number;
    update.remove_turn(number);
    let message = format!("drop {number}, which changed nothing");
    let untouched = Timeline { usual_modes: None, ..update.state.clone() } == Timeline::default();
    let record = if untouched {
        Record { timeline_from: stored.commit, timeline_to: None, notes: Vec::new(), message }
    } else {
        update.into_record(message, Vec::new())?
    };
    // The notes first: as long as the turn is open, somebody will come back to this.
    let dirty: Vec<_> = stored.known_turn(number)?.dirty_commit.into_iter().collect();
    Refs::new(repo).remove_notes(&dirty)?;
    Apply::new(repo).apply(&plan, &record, None)
}

/// The auto-commit, which no ref holds yet, and the index that goes with it.
struct AutoCommit<'repo> {
    commit: ObjectId,
    index: Vec<IndexMove>,
    state: IndexState,
    lock: IndexLock<'repo>,
}

fn auto_commit<'repo>(
    repo: &'repo Repo,
    ui: &Ui,
    config: Config<'_>,
    turn: &Turn,
    start: &Checkpoint,
    capture: &Capture,
    changed: &Delta,
) -> Result<Option<AutoCommit<'repo>>> {
    let checkpoint = &capture.checkpoint;
    if let Some(what) = repo.in_progress() {
        ui.warn(&format!("the agent left a {what} in progress: its changes are not committed"));
        return Ok(None);
    }
    if let Some(path) = Index::new(repo).first_unmerged()? {
        let path = shown(path.as_bstr());
        ui.warn(&format!("the agent left '{path}' unmerged: its changes are not committed"));
        return Ok(None);
    }
    let head_tree = Objects::new(repo).head_tree(&checkpoint.head)?;
    let choice = choose(repo, config, start, capture, changed, head_tree)?;
    name_left_out(ui, &choice.left_out, &checkpoint.skipped, &start.skipped);
    if choice.commit.is_empty() {
        return Ok(None);
    }
    let lock = Index::new(repo).lock_index()?;
    lock.stage(choice.stage.iter().map(|path| path.as_bstr()))?;
    let mut message = commit_message(repo, config, turn, start, checkpoint);
    if config.verify()? {
        message = Index::new(repo).run_commit_hooks(&lock, &message)?;
    }
    let staged = lock.read()?;
    let tree = Index::new(repo).tree_with_index_entries(head_tree, &staged, &choice.commit)?;
    if tree == head_tree {
        // What is staged and nowhere else stays staged: it may be the only copy.
        return Ok(None);
    }
    let index = Index::new(repo).index_moves(&choice.stage, &capture.index, &staged)?;
    let parents: Vec<_> = checkpoint.head.commit.into_iter().collect();
    let commit = Objects::new(repo).make_commit(tree, &parents, &message, config.sign()?).map_err(unsigned)?;
    Ok(Some(AutoCommit { commit, index, state: Index::new(repo).index_state(&staged, tree)?, lock }))
}

/// Which of a turn's changes are committed.
#[derive(Default)]
struct Choice {
    /// Paths whose entries the commit takes from the index.
    commit: Vec<BString>,
    /// Those of them that have to be staged first.
    stage: Vec<BString>,
    /// New files that look like secrets.
    left_out: Vec<BString>,
}

fn choose(
    repo: &Repo,
    config: Config<'_>,
    start: &Checkpoint,
    capture: &Capture,
    changed: &Delta,
    head_tree: ObjectId,
) -> Result<Choice> {
    let secrets = config.secrets()?;
    let mut paths: BTreeSet<&BString> = changed.files.keys().chain(changed.index.keys()).collect();
    // An agent that moved HEAD may have left on the worktree or the index what was committed before.
    let uncommitted = match changed.head {
        Some(_) => Objects::new(repo).changed_paths(head_tree, capture.checkpoint.index.tree)?,
        None => Vec::new(),
    };
    if changed.head.is_some() {
        paths.extend(uncommitted.iter().chain(&capture.changed));
    }
    let new = paths
        .iter()
        .copied()
        .filter(|path| changed.files.get(*path).is_some_and(|change| change.from.is_none() && change.to.is_some()));
    let ignored = ignored_now(repo, new)?;
    let mut choice = Choice::default();
    for path in paths {
        let entries = Index::new(repo).index_entries(&capture.index, path.as_bstr())?;
        if entries.iter().any(|entry| entry.assume_unchanged || entry.skip_worktree) {
            continue;
        }
        let tracked = !entries.is_empty();
        let in_head = Objects::new(repo).tree_has_entry(head_tree, path.as_bstr())?;
        let file = Checkpoints::new(repo).captured_file(&capture.checkpoint, path.as_bstr())?;
        let was_there = Checkpoints::new(repo).captured_file(start, path.as_bstr())?.is_some();
        if !tracked && !in_head && (was_there || file.is_none() || ignored.contains(path)) {
            continue;
        }
        if !in_head && secrets.matches(path.as_bstr()) {
            choice.left_out.push(path.clone());
            continue;
        }
        choice.commit.push(path.clone());
        let gitlink = entries.iter().any(IndexEntry::is_gitlink);
        let kept_out_of_index = !tracked && in_head;
        if !gitlink && !kept_out_of_index {
            choice.stage.push(path.clone());
        }
    }
    Ok(choice)
}

/// A path that was not captured, and why.
fn with_reason(skipped: &Skipped) -> String {
    use Reason as R;
    let path = shown(skipped.path.as_bstr());
    match skipped.reason {
        R::Large => format!("{path} ({} bytes)", skipped.size),
        R::Many => format!("{path}/ (>= {} files)", skipped.size),
        R::SkipDir => format!("{path}/"),
        R::Excluded => format!("{path} (oxundo.exclude)"),
        R::Repository | R::Special => format!("{path} (no file)"),
        R::Unreadable => format!("{path} (unreadable)"),
        R::Name => format!("{path} (a name git refuses)"),
    }
}

fn name_left_out(ui: &Ui, secrets: &[BString], skipped: &[Skipped], before: &[Skipped]) {
    let secret = |path: &BString| format!("{} (looks like a secret)", shown(path.as_bstr()));
    let mut left: Vec<String> = secrets.iter().map(secret).collect();
    left.extend(skipped.iter().filter(|new| !knows(before, new)).map(with_reason));
    if !left.is_empty() {
        ui.warn(&format!("not committed: {}", left.join(", ")));
    }
}

fn commit_message(repo: &Repo, config: Config<'_>, turn: &Turn, start: &Checkpoint, after: &Checkpoint) -> String {
    let written =
        config.message_command().and_then(|command| Checkpoints::new(repo).written_message(&command, start, after));
    let body = match (written, turn.message.as_deref().map(str::trim)) {
        (Some(written), _) => written,
        (None, Some(message)) if !message.is_empty() => message.to_owned(),
        (None, _) => subject(None, &turn.agent, turn.turn),
    };
    let trailer = config.trailer();
    if trailer.trim().is_empty() {
        format!("{body}\n")
    } else {
        format!("{body}\n\n{}: {}\n", trailer.trim(), turn.agent)
    }
}

/// Every commit between the turn's beginning and its end, on HEAD and on each branch that moved.
fn commits_of(repo: &Repo, start: &Checkpoint, after: &Checkpoint, dirty: Option<ObjectId>) -> Result<Vec<TurnCommit>> {
    let old_tips: Vec<ObjectId> = (start.branches.values().copied()).chain(start.head.commit).collect();
    let moved = branch_changes(start, after);
    let mut tips: Vec<(Option<ObjectId>, ObjectId)> =
        moved.values().filter_map(|change| Some((change.from, change.to?))).collect();
    if after.head.branch.is_none() {
        tips.extend(after.head.commit.map(|tip| (start.head.commit, tip)));
    }
    let mut found = Vec::new();
    for (old, new) in tips {
        if old == Some(new) {
            continue;
        }
        let hidden = old.map_or_else(|| old_tips.clone(), |old| vec![old]);
        let line = Objects::new(repo).commits_between(&hidden, new)?;
        found.extend(line.into_iter().rev().filter(|id| Some(*id) != dirty));
    }
    let mut seen = BTreeSet::new();
    found.retain(|id| seen.insert(*id));
    let others: Vec<_> = old_tips.into_iter().chain(Objects::new(repo).remote_tip_ids()?).collect();
    let known = Objects::new(repo).reachable_from(&others, &found)?;
    let kind = |id| if known.contains(id) { CommitKind::Found } else { CommitKind::Agent };
    Ok(found.iter().map(|id| TurnCommit { id: *id, kind: kind(id) }).collect())
}

fn notes(repo: &Repo, turn: &Turn) -> Vec<Note> {
    let note = |commit: &TurnCommit| Note {
        v: 1,
        turn: turn.turn,
        kind: commit.kind,
        commit: commit.id,
        agent: turn.agent.clone(),
        session: turn.session.clone(),
        worktree: repo.worktree_id(),
        at: turn.ended_at.clone().unwrap_or_else(|| turn.began_at.clone()),
    };
    turn.commits.iter().map(note).collect()
}

/// Keeps alive what a change takes off the refs, and lets go of what it puts back.
///
/// # Errors
///
/// When history cannot be read.
pub fn pin_displaced(repo: &Repo, state: &mut Timeline, delta: &Delta) -> Result<()> {
    let mut moves: Vec<(Option<ObjectId>, Option<ObjectId>)> =
        delta.branches.values().map(|change| (change.from, change.to)).collect();
    if let Some(Change { from, to }) = &delta.head {
        let detached = |head: &crate::model::checkpoint::Head| match head.branch {
            None => head.commit,
            Some(_) => None,
        };
        moves.push((detached(from), to.commit.filter(|_| from.branch.is_none())));
        moves.push((None, detached(to)));
    }
    // A stash hangs on nothing but its reflog line, which one command of git's wipes: those
    // that a turn touched stay pinned.
    if let Some(Change { from, to }) = &delta.stash {
        for entry in
            from.iter().filter(|entry| !to.contains(entry)).chain(to.iter().filter(|entry| !from.contains(entry)))
        {
            state.pin(entry.id);
        }
    }
    let restored: Vec<ObjectId> = moves.iter().filter_map(|(_, to)| *to).collect();
    for (from, to) in moves {
        let Some(from) = from else { continue };
        let held = match to {
            Some(to) => Objects::new(repo).is_ancestor(from, to)?,
            None => false,
        };
        if !held {
            state.pin(from);
        }
    }
    for id in restored {
        state.unpin(id);
    }
    Ok(())
}

/// The delta that a plan is, for pinning.
pub fn refs_delta(plan: &Plan) -> Delta {
    let branches: BTreeMap<_, _> =
        (plan.branches.iter()).map(|branch| (branch.name.clone(), Change::new(branch.from, branch.to))).collect();
    Delta { branches, head: Some(plan.head.clone()), stash: plan.stash.clone(), ..Delta::default() }
}

/// A plan of the user's own, as a turn that oxundo makes: between its two checkpoints nothing but
/// the plan happens, and undo and redo walk over it as over any other. Gives the turn, or none
/// when the plan came to nothing, and the checkpoint before it, which is its rescue.
///
/// # Errors
///
/// A refusal or failure, with everything as it was.
pub fn make(repo: &Repo, ui: &Ui, made: Made, message: String, plan: &Plan) -> Result<Option<Turn>> {
    let who = Who { agent: "oxundo".to_owned(), session: None, message: Some(message), mode: Mode::Ghost };
    let number = begin_made(repo, ui, &who, Origin::default(), Some(made))?;
    let stored = Timelines::new(repo).timeline()?;
    let message = format!("{} as turn {number}", plan.op.word());
    let record = Record { timeline_from: stored.commit, timeline_to: stored.commit, notes: Vec::new(), message };
    let made = Apply::new(repo).apply_and(plan, &record, None, || end(repo, ui, Ending::default()));
    if made.is_err() {
        // Where that fails too, the next command does it.
        let _ = drop_open(repo);
    }
    made
}
