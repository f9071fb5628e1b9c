//! What leads on from a conflict: what is in the way may be committed by now, where no stash takes it out of the way, or in a file of
//! which a stash takes more than that.

use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::scan::ignore::ignored_now;
use crate::git::timeline::stored::Side;
use crate::git::worktree::Worktree;
use crate::model::bytes::{in_quotes, pathspec_word, quoted, sanitized};
use crate::model::checkpoint::{Checkpoint, Delta, IndexEntry};
use crate::model::leftover::Ends;
use crate::model::plan::Op;
use crate::model::planner::{LISTED, TurnDelta};
use crate::model::turn::Turn;
use crate::ops::renamed_since::RenamedSince;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};

/// A refusal with hints that fit what is in the way of undoing or redoing this turn; another error as it is.
pub fn leading_on(view: &View<'_>, error: anyhow::Error, now: &Checkpoint, (op, turn): (Op, u64)) -> anyhow::Error {
    let refusal = match error.downcast::<Refusal>() {
        Ok(mut refusal) if view.repo.is_shadow() => {
            for hint in refusal.hints.iter_mut().filter(|hint| is_stash(hint)) {
                "move these changes away, then run the same command again".clone_into(hint);
            }
            return refusal.into();
        }
        Ok(refusal) if refusal.code == Code::Conflict && !refusal.paths.is_empty() => with_diff(view, refusal),
        Ok(refusal) => return refusal.into(),
        Err(error) => return error,
    };
    match is_in_vain(view, &refusal, now, (op, turn)) {
        Ok(true) => as_git_stashes(view, with_restore(view, refusal, now, (op, turn)), now).into(),
        Ok(false) => as_git_stashes(view, refusal, now).into(),
        Err(error) => error,
    }
}

/// Turns that are undone, the newest first, with what that changes.
pub type Undone<'t> = (&'t [Turn], &'t [TurnDelta]);

/// A refusal to undo turns because of files that have other names since: what takes the turns out follows them there.
pub fn under_new_names(view: &View<'_>, error: anyhow::Error, undone: Undone<'_>, now: &Checkpoint) -> anyhow::Error {
    let mut refusal = match error.downcast::<Refusal>() {
        Ok(refusal) if refusal.code == Code::Conflict && !refusal.paths.is_empty() => refusal,
        Ok(refusal) => return refusal.into(),
        Err(error) => return error,
    };
    let names = match new_names(view, undone, now) {
        Ok(names) => names,
        Err(error) => return error,
    };
    let is_renamed = |path: &BString| names.iter().any(|(.., names)| names.has(path));
    if let Some(line) = taking_out(undone.0).filter(|_| refusal.paths.iter().all(is_renamed)) {
        refusal.hints = vec![line];
    }
    refusal.into()
}

/// Refuses to leave what turns made where somebody has given it another name: it would count as theirs.
pub fn check_new_names(view: &View<'_>, undone: Undone<'_>, now: &Checkpoint) -> Result<()> {
    for (turn, delta, names) in new_names(view, undone, now)? {
        let is_made = |path: &BString| delta.files.get(path).is_some_and(|change| change.to.is_none());
        if let Some((old, new)) = names.iter().find(|(old, _)| is_made(old)) {
            let (old, new) = (in_quotes(old.as_bstr()), in_quotes(new.as_bstr()));
            let message = format!("{new} is what turn {} made as {old}, and would stay", turn.turn);
            return Err(Refusal::new(Code::Conflict, message)
                .hints(taking_out(undone.0))
                .hint(format!("or pass --edits=overwrite to leave {new} as it is"))
                .into());
        }
    }
    Ok(())
}

/// Of each turn the files that have other names since.
fn new_names<'t>(
    view: &View<'_>,
    (turns, deltas): Undone<'t>,
    now: &Checkpoint,
) -> Result<Vec<(&'t Turn, &'t Delta, RenamedSince)>> {
    let (mut above, mut all) = (Vec::new(), Vec::new());
    for (turn, TurnDelta { delta, .. }) in turns.iter().zip(deltas) {
        let end = || view.timeline.checkpoint(turn.turn, Side::After);
        all.push((turn, delta, RenamedSince::find(view, (delta, end), now, &above)?));
        above.push(delta);
    }
    Ok(all)
}

/// The line that takes turns out of files that have other names.
fn taking_out(turns: &[Turn]) -> Option<String> {
    let which = match turns {
        [] => return None,
        [turn] => turn.turn.to_string(),
        [last, .., first] => format!("{}..{}", first.turn, last.turn),
    };
    Some(format!("run 'oxundo undo --only {which}' to take it out of the files under the names that they have now"))
}

/// Whether what would take the user's changes out of the way takes nothing, as they are committed, or git leaves them alone; or takes
/// what was there before along, a part of the turn's, or of what that was made upon.
fn is_in_vain(view: &View<'_>, refusal: &Refusal, now: &Checkpoint, (op, turn): (Op, u64)) -> Result<bool> {
    let paths = &refusal.paths;
    let has = |is: fn(&str) -> bool| refusal.hints.iter().any(|hint| is(hint));
    if is_committed(view, paths, now)? || (has(is_sparse) && !Index::new(view.repo).is_sparse_checkout()) {
        return Ok(true);
    }
    if !has(is_stash) {
        return Ok(false);
    }
    // Of more than are named, it takes all that there is.
    if paths.len() <= LISTED && !Checkpoints::new(view.repo).has_uncommitted(paths).unwrap_or(true) {
        return Ok(true);
    }
    let was = match op {
        Op::Redo => Some(view.timeline.checkpoint(turn, Side::Before)?),
        _ => view.top()?.map(|top| view.timeline.checkpoint(top, Side::After)).transpose()?,
    };
    was.map_or(Ok(false), |was| is_left(view, paths, &was, now))
}

/// Whether any of these files has still something of what a state had there that HEAD has not. Of one that git converts it is not
/// told.
fn is_left(view: &View<'_>, paths: &[BString], was: &Checkpoint, now: &Checkpoint) -> Result<bool> {
    let (objects, index) = (Objects::new(view.repo), Index::new(view.repo));
    let head = objects.head_tree(&now.head)?;
    let mut conversion = index.conversion(&*index.read_index()?)?;
    for path in paths.iter().map(|path| path.as_bstr()) {
        let file = |tree| Ok::<_, anyhow::Error>(objects.tree_file(tree, path)?.map(|(_, id)| id));
        let ids = [file(head)?, file(was.worktree)?, file(now.worktree)?];
        if ids[0] == ids[1] || (ids[0].is_some() && conversion.may_convert(path)?) {
            continue;
        }
        let content = |id: Option<ObjectId>| id.map_or(Ok(None), |id| Checkpoints::new(view.repo).content_of(id));
        let [committed, was, now] = [content(ids[0])?, content(ids[1])?, content(ids[2])?];
        let since = |to| Ends { from: committed.as_deref(), to };
        if since(was.as_deref()).comes_back_in(since(now.as_deref())) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The conflict of turns that are taken out while those above them stay, with the later turns that changed the same files, and with
/// what leads on.
pub fn beside_later(view: &View<'_>, mut refusal: Refusal, now: &Checkpoint, turns: &[Turn]) -> anyhow::Error {
    let oldest = turns.iter().map(|turn| turn.turn).min().unwrap_or_default();
    let (mut at, mut newest) = (view.top().ok().flatten(), None);
    while let Some(number) = at.filter(|number| *number > oldest) {
        let Ok(turn) = view.timeline.require_turn(number) else { break };
        let files = view.timeline.turn_files(number).unwrap_or_default();
        let is_taken = turns.iter().any(|taken| taken.turn == number);
        let is_shared = |path: &&BString| files.iter().any(|file| file.path == quoted(path.as_bstr()));
        let shared: Vec<_> = refusal.paths.iter().filter(is_shared).filter(|_| !is_taken).collect();
        if let [first, others @ ..] = &shared[..] {
            newest = newest.or(Some(number));
            let (label, path) = (sanitized(&turn.label()), in_quotes(first.as_bstr()));
            let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
            refusal.message.push_str(&format!("; turn {number} ({label}) changed {path}{more} too"));
        }
        at = turn.previous;
    }
    match newest {
        Some(newest) => with_later(view, refusal, now, (oldest, newest)).into(),
        None => leading_on(view, refusal.into(), now, (Op::Undo, oldest)),
    }
}

/// What later turns changed is not the user's to put away, though what is uncommitted there may be: the later ones are taken out too,
/// or the files of then brought back.
fn with_later(view: &View<'_>, mut refusal: Refusal, now: &Checkpoint, (oldest, newest): (u64, u64)) -> Refusal {
    let is_users = is_users_alone(view, &refusal.paths, now).unwrap_or(false);
    refusal.hints.retain(|hint| is_users || !is_stash(hint));
    let line = format!("run 'oxundo undo --only {oldest}..{newest}' to take out all turns from {oldest} to {newest}");
    as_git_stashes(view, with_restore(view, refusal.hint(line), now, (Op::Undo, oldest)), now)
}

/// Where no turn is done, there is none since which something changed.
fn with_diff(view: &View<'_>, mut refusal: Refusal) -> Refusal {
    let is_diff = |hint: &&mut String| hint.starts_with("run 'oxundo diff'");
    if matches!(view.top(), Ok(None)) {
        refusal
            .hints
            .iter_mut()
            .filter(is_diff)
            .for_each(|hint| "run 'git diff' to see what you changed".clone_into(hint));
    }
    refusal
}

/// A refusal whose lines git does as they say; another error as it is.
pub fn as_git_does(view: &View<'_>, error: anyhow::Error, now: &Checkpoint) -> anyhow::Error {
    match error.downcast::<Refusal>() {
        Ok(refusal) if refusal.code == Code::Conflict && !refusal.paths.is_empty() => {
            as_git_stashes(view, refusal, now).into()
        }
        Ok(refusal) => refusal.into(),
        Err(error) => error,
    }
}

/// The lines that stash, as git does what they say.
fn as_git_stashes(view: &View<'_>, refusal: Refusal, now: &Checkpoint) -> Refusal {
    without_untracked(view, with_reset(view, with_add(refusal, now), now), now)
}

/// git stashes nothing where one of the files is unmerged, or any file is only meant to be added.
fn with_add(mut refusal: Refusal, now: &Checkpoint) -> Refusal {
    let is_one = |(path, entries): &(&BString, &Vec<IndexEntry>)| {
        let is_unmerged = || refusal.paths.contains(*path) && entries.iter().any(|entry| entry.stage > 0);
        entries.iter().any(|entry| entry.intent_to_add) || is_unmerged()
    };
    let added: Vec<String> = now.index.special.iter().filter(is_one).map(|(path, _)| pathspec_word(path)).collect();
    let which = if added.len() > LISTED { "-u -- :/".to_owned() } else { format!("-- {}", added.join(" ")) };
    for hint in refusal.hints.iter_mut().filter(|hint| is_stash(hint) && !added.is_empty()) {
        *hint = hint.replacen("run '", &format!("run 'git add {which} && "), 1);
    }
    refusal
}

/// git stashes nothing of a file that was deleted from the index too: there is nothing that its name could mean.
fn with_reset(view: &View<'_>, mut refusal: Refusal, now: &Checkpoint) -> Refusal {
    let objects = Objects::new(view.repo);
    let Ok(head) = objects.head_tree(&now.head) else { return refusal };
    let has = |tree, path: &BString| objects.tree_has_entry(tree, path.as_bstr()).unwrap_or(true);
    let is_gone = |path: &&BString| {
        !now.index.special.contains_key(*path)
            && !has(now.index.tree, path)
            && !has(now.worktree, path)
            && has(head, path)
    };
    let gone: Vec<String> = refusal.paths.iter().filter(is_gone).map(pathspec_word).collect();
    for hint in refusal.hints.iter_mut().filter(|hint| is_stash(hint) && !gone.is_empty()) {
        *hint = hint.replacen("run '", &format!("run 'git reset -q -- {} && ", gone.join(" ")), 1);
    }
    refusal
}

/// With `-u` git stashes no file that is tracked though it is ignored, and leaves an entry all the same.
fn without_untracked(view: &View<'_>, mut refusal: Refusal, now: &Checkpoint) -> Refusal {
    let is_any_ignored = ignored_now(view.repo, refusal.paths.iter()).is_ok_and(|ignored| !ignored.is_empty());
    let is_tracked = |path: &BString| {
        let entries = Checkpoints::new(view.repo).entries_of(&now.index, path.as_bstr());
        entries.is_ok_and(|entries| !entries.is_empty())
    };
    if is_any_ignored && refusal.paths.len() <= LISTED && refusal.paths.iter().all(is_tracked) {
        for hint in refusal.hints.iter_mut().filter(|hint| is_stash(hint)) {
            *hint = hint.replacen("git stash push -u --", "git stash push --", 1);
        }
    }
    refusal
}

fn is_sparse(hint: &str) -> bool {
    hint.starts_with("run 'git sparse-checkout add")
}

fn is_stash(hint: &str) -> bool {
    let line = hint.strip_prefix("or ").unwrap_or(hint);
    ["run 'git stash", "run 'git add -", "run 'git reset -q -- "].iter().any(|begin| line.starts_with(begin))
}

/// Whether all of these files are as HEAD has them, be it that they are not there.
fn is_committed(view: &View<'_>, paths: &[BString], now: &Checkpoint) -> Result<bool> {
    let objects = Objects::new(view.repo);
    let head = objects.head_tree(&now.head)?;
    for path in paths {
        let committed = objects.tree_file(head, path.as_bstr())?;
        // What no checkpoint can have is somebody's all the same.
        let is_gone = || Worktree::new(view.repo).stat(path.as_bstr()).is_ok_and(|found| found.is_none());
        if committed != objects.tree_file(now.worktree, path.as_bstr())?
            || (committed.is_none() && !is_gone())
            || now.is_in_repository(path.as_bstr())
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether something in these files is uncommitted, and none of it was when the last turn ended.
fn is_users_alone(view: &View<'_>, paths: &[BString], now: &Checkpoint) -> Result<bool> {
    let Some(top) = view.top()? else { return Ok(false) };
    let left = Checkpoint { head: now.head.clone(), ..view.timeline.checkpoint(top, Side::After)? };
    Ok(!is_committed(view, paths, now)? && is_committed(view, paths, &left)?)
}

/// No stash moves committed changes away; the files that were there on the turn's other side can be brought back whole.
fn with_restore(view: &View<'_>, mut refusal: Refusal, now: &Checkpoint, (op, turn): (Op, u64)) -> Refusal {
    refusal.hints.retain(|hint| !is_stash(hint) && !is_sparse(hint));
    let (side, state) = match op {
        Op::Redo => (Side::After, turn.to_string()),
        _ => (Side::Before, format!("{turn}:before")),
    };
    let Ok(then) = view.timeline.checkpoint(turn, side) else { return refusal };
    let objects = Objects::new(view.repo);
    let is_in = |path: &&BString| objects.tree_has_entry(then.worktree, path.as_bstr()).unwrap_or(false);
    let (there, made): (Vec<&BString>, Vec<&BString>) = refusal.paths.iter().partition(is_in);
    let listed = |paths: &[&BString]| paths.iter().map(|path| pathspec_word(path)).collect::<Vec<_>>().join(" ");
    if there.is_empty() && !is_committed(view, &refusal.paths, now).unwrap_or(true) {
        let made = listed(&made);
        let line = format!("git stash push -u -- {made}");
        return refusal
            .hint(format!("or run '{line}' to put away all that is uncommitted there, then the same command again"));
    }
    if there.is_empty() {
        // git deletes no file that it does not have.
        let is_tracked = |tree| made.iter().all(|path| objects.tree_has_entry(tree, path.as_bstr()).unwrap_or(false));
        if !objects.head_tree(&view.head).is_ok_and(is_tracked) {
            return refusal;
        }
        let made = listed(&made);
        let did = if op == Op::Redo { "deleted" } else { "left" };
        let line = format!("git rm -q -- {made} && git commit -m \"delete what turn {turn} {did}\"");
        return refusal.hint(format!("or run '{line}' to do without them, then the same command again"));
    }
    let there = listed(&there);
    refusal.hint(format!("or run 'oxundo restore {state} -- {there}' to have the files of then"))
}
