//! The two commits of a turn: the dirty commit before it, of the user's uncommitted work, and the auto-commit after
//! it, of what the agent changed and did not commit itself.

use crate::config::Untracked;
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::Capture;
use crate::git::index::Index;
use crate::git::index::convert::Conversion;
use crate::git::index::lock::IndexLock;
use crate::git::index::read::changed_entries;
use crate::git::objects::Objects;
use crate::git::objects::commit::Sign;
use crate::git::objects::tree::{entry_kind, entry_mode, plain_entry};
use crate::git::repo::Repo;
use crate::git::scan::ignore::ignored_now;
use crate::model::bytes::in_quotes;
use crate::model::checkpoint::{Checkpoint, Delta, FileState, IndexEntry, IndexState, Kind};
use crate::model::merge::{Blobs, Merged};
use crate::model::plan::IndexMove;
use crate::model::turn::{Turn, subject};
use crate::ops::locked::Locked;
use crate::ops::turn::hidden::Hidden;
use crate::ops::turn::meanwhile::{Part, Parts, Whose};
use crate::ops::turn::popped::Popped;
use crate::ops::turn::since::Since;
use crate::ops::turn::skipped::announce_left_out;
use crate::ops::turn::{check_idle, check_on_branch};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeSet;

/// The user's uncommitted work as a commit that no ref holds yet.
pub struct Dirty<'r> {
    /// The commit.
    pub commit: ObjectId,
    /// What becomes of the index with it.
    pub index: Vec<IndexMove>,
    /// The locked index with the change prepared, where there is one.
    pub lock: Option<IndexLock<'r>>,
}

/// Makes the dirty commit, where there is anything to commit.
pub fn dirty_commit<'r>(locked: &Locked<'r>, capture: &Capture, turn: &Turn) -> Result<Option<Dirty<'r>>> {
    let (repo, config) = (locked.repo, locked.config());
    let checkpoint = &capture.checkpoint;
    let head_tree = Objects::new(repo).head_tree(&checkpoint.head)?;
    let paths = unstaged(locked, capture)?;
    let (tree, index, lock) = if paths.is_empty() {
        (checkpoint.index.tree, Vec::new(), None)
    } else {
        let index = Index::new(repo);
        let lock = index.lock_index(config.lock_timeout()?)?;
        // Not as it was when it was looked at: somebody may have staged, and that is what a roll-back goes back to.
        let found = lock.read()?;
        lock.stage(paths.iter().map(|path| path.as_bstr()))?;
        stage_as_captured(repo, &lock, checkpoint, &paths)?;
        let staged = lock.read()?;
        let tree = index.index_state(&staged, head_tree)?.tree;
        (tree, index.index_moves(&paths, &found, &staged)?, Some(lock))
    };
    if tree == head_tree {
        return Ok(None);
    }
    let message = format!("oxundo: uncommitted changes before turn {}\n", turn.turn);
    let parents: Vec<_> = checkpoint.head.commit.into_iter().collect();
    let commit = Objects::new(repo).make_commit(tree, &parents, &message, config.sign()?)?;
    Ok(Some(Dirty { commit, index, lock }))
}

/// Has the index what was captured of these files, where somebody has saved in them since: that is in no state of the turn's, and
/// nobody is known who did it.
fn stage_as_captured(repo: &Repo, lock: &IndexLock<'_>, captured: &Checkpoint, paths: &[BString]) -> Result<()> {
    let (checkpoints, index) = (Checkpoints::new(repo), Index::new(repo));
    let staged = lock.read()?;
    let mut conversion = index.conversion(&staged)?;
    let mut moves = Vec::new();
    for path in paths {
        let then = checkpoints.captured_file(captured, path.as_bstr())?;
        let from = index.index_entries(&staged, path.as_bstr())?;
        if from.iter().any(|entry| !entry.is_plain() || entry.is_gitlink()) {
            continue;
        }
        let to = match (then, from.first()) {
            (None, Some(_)) if !captured.skips(path) => Vec::new(),
            (Some(file), Some(entry)) if entry.id != file.id => {
                let id = as_git_has_it(repo, &mut conversion, path, file)?;
                id.filter(|id| *id != entry.id).map(|id| IndexEntry { id, ..*entry }).into_iter().collect()
            }
            // What is there and is not staged is left out by git.
            (Some(file), None) if checkpoints.file_now(path.as_bstr())?.is_none() => {
                let id = as_git_has_it(repo, &mut conversion, path, file)?.unwrap_or(file.id);
                vec![IndexEntry::plain(entry_mode(file.kind), id)]
            }
            _ => continue,
        };
        if then.is_none() || !to.is_empty() {
            moves.push(IndexMove { path: path.clone(), from, to });
        }
    }
    if moves.is_empty() { Ok(()) } else { lock.set(&moves, |_| false) }
}

/// The blob that git makes of a file as it was captured; none where the file is so still, and git has made it.
fn as_git_has_it(
    repo: &Repo,
    conversion: &mut Conversion<'_>,
    path: &BString,
    file: FileState,
) -> Result<Option<ObjectId>> {
    if file.kind == Kind::Symlink || !conversion.may_convert(path.as_bstr())? {
        return Ok(Some(file.id));
    }
    if Checkpoints::new(repo).file_now(path.as_bstr())?.is_some_and(|now| now.id == file.id) {
        return Ok(None);
    }
    Index::new(repo).converted(path.as_bstr(), file.id).map(Some)
}

/// What a dirty commit has to stage first.
fn unstaged(view: &View<'_>, capture: &Capture) -> Result<Vec<BString>> {
    let mut paths = capture.changed.clone();
    if view.config().untracked()? == Untracked::Commit {
        let secrets = view.config().secrets()?;
        let new = Checkpoints::new(view.repo).untracked_files(capture)?;
        paths.extend(new.into_iter().filter(|path| !secrets.matches(path.as_bstr())));
    }
    Ok(paths)
}

/// What a dirty commit would take: all that is not committed.
pub fn uncommitted(view: &View<'_>, capture: &Capture) -> Result<BTreeSet<BString>> {
    let objects = Objects::new(view.repo);
    let staged = objects.changed_paths(objects.head_tree(&capture.checkpoint.head)?, capture.checkpoint.index.tree)?;
    Ok(unstaged(view, capture)?.into_iter().chain(staged).collect())
}

/// Whether anything tracked is not committed.
pub fn has_uncommitted(view: &View<'_>, capture: &Capture) -> Result<bool> {
    let head_tree = Objects::new(view.repo).head_tree(&capture.checkpoint.head)?;
    Ok(!capture.changed.is_empty() || capture.checkpoint.index.tree != head_tree)
}

/// The auto-commit, which no ref holds yet, and the index that goes with it.
pub struct AutoCommit<'r> {
    /// The commit.
    pub commit: ObjectId,
    /// What becomes of the index with it.
    pub index: Vec<IndexMove>,
    /// The index as it is then.
    pub state: IndexState,
    /// The locked index with the change prepared.
    pub lock: IndexLock<'r>,
}

/// Makes the auto-commit of what the turn changed, where there is anything to commit.
pub fn auto_commit<'r>(
    locked: &Locked<'r>,
    turn: &Turn,
    since: &mut Since,
    changed: &Delta,
) -> Result<Option<AutoCommit<'r>>> {
    let (repo, config, index) = (locked.repo, locked.config(), Index::new(locked.repo));
    let checkpoint = &since.capture.checkpoint;
    if let Some(doing) = repo.in_progress() {
        anyhow::bail!("the agent left a {} in progress", doing.word);
    }
    if let Some(path) = index.first_unmerged()? {
        let path = in_quotes(path.as_bstr());
        anyhow::bail!("the agent left {path} unmerged");
    }
    let lock = index.lock_index(config.lock_timeout()?)?;
    let found = lock.read()?;
    lock.expect_set(&[])?;
    let head_tree = Objects::new(repo).head_tree(&checkpoint.head)?;
    let mut choice = Choice::of(locked, since, changed, head_tree)?;
    announce_left_out(locked, &choice.left_out, &checkpoint.skipped, &since.start.skipped);
    // Where the agent made commits itself, there may be nothing left, nor where the user did the rest; a secret has been
    // named. What came out of the user's stash is theirs.
    let is_all_said =
        changed.head.is_some() || !choice.left_out.is_empty() || since.theirs.goal.is_some() || changed.stash.is_some();
    if choice.commit.is_empty() {
        let is_nothing = is_all_said || (changed.files.is_empty() && changed.index.is_empty());
        anyhow::ensure!(is_nothing, "git tracks none of these files, or is told to leave them alone");
        return Ok(None);
    }
    let message = commit_message(locked, turn, since.theirs.goal.as_ref().unwrap_or(&since.start), checkpoint);
    let was = choice.parts.iter().map(|(path, _)| index.index_entries(&found, path.as_bstr()));
    let was: Vec<_> = was.collect::<Result<_>>()?;
    lock.stage(choice.stage.iter().map(|path| path.as_bstr()))?;
    stage_as_captured(repo, &lock, checkpoint, &choice.stage)?;
    choice.stage_parts(repo, &lock, checkpoint)?;
    let (message, by_hooks) = verified(locked, &lock, message, since, (head_tree, &choice.commit))?;
    choice.stage.extend(by_hooks.iter().cloned());
    choice.commit.extend(by_hooks);
    let checkpoint = &since.capture.checkpoint;
    let staged = lock.read()?;
    let tree = index.tree_with_index_entries(head_tree, &staged, &choice.commit)?;
    if tree == head_tree {
        // Content that is staged and nowhere else stays staged: it may be the only copy.
        return Ok(None);
    }
    choice.stage_again(locked, &lock, &was, (since.start.index.tree, head_tree))?;
    let staged = lock.read()?;
    let moves = index.index_moves(&choice.stage, &found, &staged)?;
    let parents: Vec<_> = checkpoint.head.commit.into_iter().collect();
    let commit = Objects::new(repo).make_commit(tree, &parents, &message, config.sign()?)?;
    Ok(Some(AutoCommit { commit, index: moves, state: index.index_state(&staged, tree)?, lock }))
}

/// Runs the repository's own hooks, where they are to be run; gives the message as they leave it, and the other files that they have
/// changed and staged. What they make of the turn's files, and these, is the turn's, also where they fail.
fn verified(
    view: &View<'_>,
    lock: &IndexLock<'_>,
    message: String,
    since: &mut Since,
    (head_tree, paths): (ObjectId, &[BString]),
) -> Result<(String, Vec<BString>)> {
    if !view.config().verify()? {
        return Ok((message, Vec::new()));
    }
    let beside = staged_beside(view, lock, head_tree, (since.capture.checkpoint.index.tree, paths))?;
    let led = |lead: fn(&IndexMove) -> IndexMove| match &beside[..] {
        [] => Ok(()),
        moves => lock.set(&moves.iter().map(lead).collect::<Vec<_>>(), |_| false),
    };
    led(IndexMove::clone)?;
    let (index, checkpoints, shown) = (Index::new(view.repo), Checkpoints::new(view.repo), lock.read()?);
    let ran = index.run_commit_hooks(lock, &message);
    let left = lock.read()?;
    let mut staged = changed_entries(&shown, &left);
    staged.retain(|path| !paths.contains(path) && beside.iter().all(|it| it.path != *path));
    let mut made = Vec::new();
    for path in staged {
        // What was there already somebody else has saved.
        let (was, now) = (
            checkpoints.captured_file(&since.capture.checkpoint, path.as_bstr())?,
            checkpoints.file_now(path.as_bstr())?,
        );
        made.extend((now.is_some() && now != was).then_some(path));
    }
    led(|it| IndexMove { path: it.path.clone(), from: it.to.clone(), to: it.from.clone() })?;
    since.look_again_at(view, &[paths, &made].concat())?;
    Ok((ran?, made))
}

/// What takes out of the index what somebody has staged beside what is committed: hooks see what they see in git's own commit of some
/// files, and one that rewrites what is staged leaves the user's alone.
fn staged_beside(
    view: &View<'_>,
    lock: &IndexLock<'_>,
    head_tree: ObjectId,
    (staged, committed): (ObjectId, &[BString]),
) -> Result<Vec<IndexMove>> {
    let (index, found, mut moves) = (Index::new(view.repo), lock.read()?, Vec::new());
    for (path, change) in Objects::new(view.repo).tree_changes(head_tree, staged)? {
        if !committed.contains(&path) {
            let from = index.index_entries(&found, path.as_bstr())?;
            moves.push(IndexMove { path, from, to: plain_entry(change.from, false) });
        }
    }
    Ok(moves)
}

/// The auto-commit as it would be made if the turn ended now, but for filters, hooks and a signature; none where none
/// would be made. It is for looking only.
pub fn as_if_committed(view: &View<'_>, turn: &Turn, since: &Since, changed: &Delta) -> Result<Option<ObjectId>> {
    let (repo, checkpoint) = (view.repo, &since.capture.checkpoint);
    if check_idle(repo).and_then(|()| check_on_branch(&checkpoint.head)).is_err() {
        return Ok(None);
    }
    let head_tree = Objects::new(repo).head_tree(&checkpoint.head)?;
    let choice = Choice::of(view, since, changed, head_tree)?;
    let mut entries = Vec::new();
    for path in &choice.commit {
        let from = if choice.stage.contains(path) { checkpoint.worktree } else { checkpoint.index.tree };
        let part = choice.parts.iter().find(|(both, _)| both == path).map(|(_, part)| *part);
        let entry = Objects::new(repo).tree_entry(from, path.as_bstr())?;
        let part = part.map(|part| part.map(|Part { file, .. }| (entry_kind(file.kind), file.id)));
        entries.push((path.clone(), part.unwrap_or(entry)));
    }
    let tree = Objects::new(repo).edited_tree(head_tree, &entries)?;
    if tree == head_tree {
        return Ok(None);
    }
    let parents: Vec<_> = checkpoint.head.commit.into_iter().collect();
    Objects::new(repo).make_commit(tree, &parents, &turn.title(), Sign::Never).map(Some)
}

/// Whether staged content that is not committed would be replaced: the index may hold the only copy.
pub fn replaces_staged_content(repo: &Repo, head_tree: ObjectId, moves: &[IndexMove]) -> Result<bool> {
    for entry in moves {
        let committed = Objects::new(repo).tree_entry(head_tree, entry.path.as_bstr())?.map(|(_, id)| id);
        let kept = |from: &IndexEntry| Some(from.id) == committed || entry.to.iter().any(|to| to.id == from.id);
        if entry.from.iter().any(|from| !from.intent_to_add && !kept(from)) {
            return Ok(true);
        }
    }
    Ok(false)
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
    /// Those of the staged that the user changed too, with what is committed of them.
    parts: Vec<(BString, Option<Part>)>,
}

/// What becomes of one path that a turn changed.
enum Fate {
    /// It is left out.
    Stays,
    /// It looks like a secret.
    LeftOut,
    /// It is committed as it is in the index.
    Committed,
    /// It is staged, and committed.
    Staged,
}

impl Choice {
    fn of(view: &View<'_>, since: &Since, changed: &Delta, head_tree: ObjectId) -> Result<Self> {
        let Since { start, capture, .. } = since;
        let mut paths: BTreeSet<&BString> = changed.files.keys().chain(changed.index.keys()).collect();
        // An agent that moved HEAD may have left content in the worktree or the index that was committed before.
        let uncommitted = match changed.head {
            Some(_) => Objects::new(view.repo).changed_paths(head_tree, capture.checkpoint.index.tree)?,
            None => Vec::new(),
        };
        if changed.head.is_some() {
            paths.extend(uncommitted.iter().chain(&capture.changed));
        }
        let is_new =
            |path: &BString| changed.files.get(path).is_some_and(|change| change.from.is_none() && change.to.is_some());
        let ignored = ignored_now(view.repo, paths.iter().copied().filter(|path| is_new(path)))?;
        let secrets = view.config().secrets()?;
        let hidden = Hidden::find(view, (&since.before, &capture.checkpoint), changed, &paths)?;
        let mut choice = Self { parts: users_too(view, since, &hidden, &mut paths, head_tree)?, ..Self::default() };
        let moved = moved_untracked(view.repo, changed, start, head_tree)?;
        for path in paths {
            if moved.contains(path) && Index::new(view.repo).index_entries(&capture.index, path.as_bstr())?.is_empty() {
                continue;
            }
            let is_ignored = ignored.contains(path);
            let is_secret = || secrets.matches(path.as_bstr());
            // Whoever has staged it: the file is the user's, and nobody adds it for them.
            let is_old = || was_untracked(view.repo, path, [start, since.goal()], head_tree);
            if since.theirs.is_told && is_old()? {
                continue;
            }
            let is_part = choice.parts.iter().any(|(both, _)| both == path);
            match fate(view.repo, path, start, capture, head_tree, is_ignored, is_secret)? {
                // It has its first name again, and is committed under another one.
                Fate::Stays if is_part && was_committed(view.repo, path, since)? => choice.take(path),
                Fate::Stays => {}
                Fate::Committed if is_part => choice.take(path),
                Fate::LeftOut => choice.left_out.push(path.clone()),
                Fate::Committed => choice.commit.push(path.clone()),
                Fate::Staged => choice.take(path),
            }
        }
        choice.parts.retain(|(path, _)| choice.stage.contains(path));
        Ok(choice)
    }

    fn take(&mut self, path: &BString) {
        self.commit.push(path.clone());
        self.stage.push(path.clone());
    }

    /// Puts into the index what of a staged file is the turn's, as git makes it of the file's bytes.
    fn stage_parts(&self, repo: &Repo, lock: &IndexLock<'_>, after: &Checkpoint) -> Result<()> {
        let (staged, index) = (lock.read()?, Index::new(repo));
        let mut moves = Vec::new();
        for (path, part) in &self.parts {
            let from = index.index_entries(&staged, path.as_bstr())?;
            let now = Checkpoints::new(repo).captured_file(after, path.as_bstr())?;
            let to = match part {
                Some(part) => vec![entry_of(&index, path, *part, from.first(), now)?],
                None => Vec::new(),
            };
            moves.push(IndexMove { path: path.clone(), from, to });
        }
        if moves.is_empty() { Ok(()) } else { lock.set(&moves, |_| false) }
    }

    /// What the user had staged of such a file is staged again, upon what is committed.
    fn stage_again(
        &self,
        view: &View<'_>,
        lock: &IndexLock<'_>,
        found: &[Vec<IndexEntry>],
        (start, head_tree): (ObjectId, ObjectId),
    ) -> Result<()> {
        let (objects, index) = (Objects::new(view.repo), Index::new(view.repo));
        let (committed, mut moves) = (lock.read()?, Vec::new());
        Checkpoints::new(view.repo).merging(|merge| {
            for ((path, part), entries) in self.parts.iter().zip(found) {
                let Some((_, base)) = objects.tree_file(start, path.as_bstr())? else { continue };
                let of_turn = part.map(|_| index.index_entries(&committed, path.as_bstr())).transpose()?;
                let to = match (&entries[..], of_turn.as_deref()) {
                    // That it is not there is committed already.
                    ([], Some(_)) if !objects.tree_has_entry(head_tree, path.as_bstr())? => continue,
                    ([], Some(_)) => Vec::new(),
                    ([ours], _) if ours.id == base || !ours.is_plain() => continue,
                    ([ours], None) => vec![*ours],
                    ([ours], Some([part])) => {
                        let blobs = Blobs { base, ours: ours.id, theirs: part.id };
                        let Merged::Clean(id) = merge(path.as_bstr(), blobs)? else { continue };
                        vec![IndexEntry { id, ..*ours }]
                    }
                    _ => continue,
                };
                moves.push(IndexMove { path: path.clone(), from: Vec::new(), to });
            }
            Ok(())
        })?;
        if moves.is_empty() { Ok(()) } else { lock.set(&moves, |_| false) }
    }
}

/// The entry of what of a file is the turn's, where the file as it is has another.
fn entry_of(
    index: &Index<'_>,
    path: &BString,
    Part { file: part, is_gits }: Part,
    staged: Option<&IndexEntry>,
    now: Option<FileState>,
) -> Result<IndexEntry> {
    let is_as_it_is =
        staged.is_some_and(|entry| now.is_some_and(|now| now.id == entry.id && now.kind != Kind::Symlink));
    let is_kept = is_gits || is_as_it_is || part.kind == Kind::Symlink;
    let id = if is_kept { part.id } else { index.converted(path.as_bstr(), part.id)? };
    let mode =
        staged.filter(|_| now.is_some_and(|now| now.kind == part.kind)).map_or(entry_mode(part.kind), |it| it.mode);
    Ok(IndexEntry { mode, id, ..staged.copied().unwrap_or_else(|| IndexEntry::plain(mode, id)) })
}

/// Leaves out what is the user's; gives the files that both have changed, with what is committed of each.
fn users_too(
    view: &View<'_>,
    since: &Since,
    hidden: &Hidden,
    paths: &mut BTreeSet<&BString>,
    head_tree: ObjectId,
) -> Result<Vec<(BString, Option<Part>)>> {
    let (mut users, mut both) = (BTreeSet::new(), Vec::new());
    let ends = (&since.before, &since.capture.checkpoint);
    let popped = Popped::find(view, &view.timeline, view.top()?, [ends.0, ends.1])?;
    let popped = popped.with_dirty_commit(view, since.dirty_commit(), ends.1.head.commit)?;
    Checkpoints::new(view.repo).merging_beside(|merge| {
        let mut parts = Parts::of(head_tree, &since.capture, merge);
        for path in paths.iter() {
            let whose = match hidden.whose(view, (since.goal(), ends.1), path, &mut parts)? {
                Some(whose) => whose,
                None => match since.theirs.whose(view, ends, path.as_bstr(), &mut parts)? {
                    Whose::Turns => {
                        let popped = popped.whose(view, ends.1, path.as_bstr(), &mut parts)?;
                        popped.unwrap_or(Whose::Turns)
                    }
                    theirs => theirs,
                },
            };
            match whose {
                Whose::Turns => {}
                Whose::Users => drop(users.insert(*path)),
                Whose::Both(part) => both.push(((*path).clone(), part)),
            }
        }
        Ok(())
    })?;
    paths.retain(|path| !users.contains(path));
    Ok(both)
}

/// Whether a file that is not in the index was committed as the turn began.
fn was_committed(repo: &Repo, path: &BString, since: &Since) -> Result<bool> {
    let objects = Objects::new(repo);
    Ok(Index::new(repo).index_entries(&since.capture.index, path.as_bstr())?.is_empty()
        && objects.tree_has_entry(objects.head_tree(&since.start.head)?, path.as_bstr())?)
}

/// Whether git does not have a file that was there before the turn, or without it, nor had it.
fn was_untracked(repo: &Repo, path: &BString, [start, goal]: [&Checkpoint; 2], head_tree: ObjectId) -> Result<bool> {
    let objects = Objects::new(repo);
    let has_not = |tree| Ok::<_, anyhow::Error>(!objects.tree_has_entry(tree, path.as_bstr())?);
    Ok(has_not(head_tree)?
        && (goal.is_beyond(path.as_bstr()) || Checkpoints::new(repo).captured_file(start, path.as_bstr())?.is_some())
        && has_not(objects.head_tree(&start.head)?)?)
}

/// Files that git does not have, and had under no name: the turn gave them others. Nobody adds the user's file for them.
fn moved_untracked(repo: &Repo, changed: &Delta, start: &Checkpoint, head_tree: ObjectId) -> Result<BTreeSet<BString>> {
    let mut is_any = false;
    for (path, change) in &changed.files {
        is_any |= change.to.is_none() && was_untracked(repo, path, [start; 2], head_tree)?;
    }
    if !is_any {
        return Ok(BTreeSet::new());
    }
    let mut moved = BTreeSet::new();
    for (new, old) in Checkpoints::new(repo).surely_came_from(&changed.files)? {
        if was_untracked(repo, &old, [start; 2], head_tree)? {
            moved.insert(new);
        }
    }
    Ok(moved)
}

fn fate(
    repo: &Repo,
    path: &BString,
    start: &Checkpoint,
    capture: &Capture,
    head_tree: ObjectId,
    is_ignored: bool,
    is_secret: impl FnOnce() -> bool,
) -> Result<Fate> {
    let entries = Index::new(repo).index_entries(&capture.index, path.as_bstr())?;
    if entries.iter().any(|entry| entry.assume_unchanged || entry.skip_worktree) {
        return Ok(Fate::Stays);
    }
    let is_tracked = !entries.is_empty();
    let in_head = Objects::new(repo).tree_has_entry(head_tree, path.as_bstr())?;
    let is_there = Checkpoints::new(repo).captured_file(&capture.checkpoint, path.as_bstr())?.is_some();
    let was_there = Checkpoints::new(repo).captured_file(start, path.as_bstr())?.is_some();
    if !is_tracked && !in_head && (was_there || !is_there || is_ignored) {
        return Ok(Fate::Stays);
    }
    if !in_head && is_secret() {
        return Ok(Fate::LeftOut);
    }
    let is_gitlink = entries.iter().any(IndexEntry::is_gitlink);
    let is_kept_out_of_index = !is_tracked && in_head;
    Ok(if is_gitlink || is_kept_out_of_index { Fate::Committed } else { Fate::Staged })
}

fn commit_message(locked: &Locked<'_>, turn: &Turn, start: &Checkpoint, after: &Checkpoint) -> String {
    let config = locked.config();
    // Of one that has a prompt the message is only its first line.
    let is_given = turn.message.is_some() && turn.prompt.is_none();
    let command = if is_given { None } else { config.message_command() };
    let written = command.and_then(|command| Checkpoints::new(locked.repo).written_message(&command, start, after));
    // Of a prompt the record's message has no more than git may be told.
    let body = match (written, turn.message.as_deref().map(str::trim)) {
        (Some(written), _) => written,
        (None, Some(message)) if !message.is_empty() => message.to_owned(),
        (None, _) => subject(None, &turn.agent, turn.turn),
    };
    let trailer = config.trailer();
    if trailer.trim().is_empty() {
        format!("{body}\n")
    } else {
        let lines = turn.assistants().into_iter().map(|name| format!("{}: {name}\n", trailer.trim()));
        format!("{body}\n\n{}", lines.collect::<String>())
    }
}
