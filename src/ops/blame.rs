//! Which turn wrote each line of a file: what is committed by git's own blame and the notes, what is not by the checkpoints of
//! the turns that are done here. Where a turn has steps, the step. Nothing is guessed: what was written between the turns is the user's.

use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::objects::alike::Features;
use crate::git::objects::lines::{BlamedLine, carried, no_range};
use crate::git::objects::tree::{TreeSlot, file_kind};
use crate::git::refs::Refs;
use crate::git::refs::evidence::Began;
use crate::git::repo::clock::{parse_rfc3339, rfc3339_of};
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored};
use crate::git::worktree::Worktree;
use crate::model::bytes::{in_quotes, quoted, shell_word, unquoted};
use crate::model::checkpoint::{Change, Checkpoint, FileState};
use crate::model::step::Step;
use crate::model::turn::{CommitKind, FileChange, Note, Session, Turn, first_line};
use crate::ops::on_branch::{OnOne, ends_of_turn};
use crate::ops::turn::meanwhile::has_both;
use crate::ops::turn::popped::Popped;
use crate::ops::turn::states;
use crate::ops::undo::range::below;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

/// How many turns are looked through for lines that are not committed.
const FAR: usize = 1024;

/// How many commits of each branch are looked at for one that was made anew.
const NEAR: usize = 64;

/// A line, and who wrote it.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its number, from 1.
    pub number: usize,
    /// What is in it.
    pub content: BString,
    /// The commit that it is from; none where it is not committed.
    pub commit: Option<ObjectId>,
    /// Who made the commit.
    pub author: Option<String>,
    /// When the turn ended, or the commit was made.
    pub at: Option<String>,
    /// The first line of the commit's message.
    pub subject: Option<String>,
    /// The turn that wrote it.
    pub by: Option<By>,
}

/// The turn that wrote a line.
#[derive(Clone, Debug)]
pub struct By {
    /// Its number.
    pub turn: u64,
    /// The step, where that is known.
    pub step: Option<u64>,
    /// The worktree that it is of, where that is another one.
    pub worktree: Option<String>,
    /// The agent.
    pub agent: String,
    /// The model, where it is known.
    pub model: Option<String>,
    /// The agent's session.
    pub session: Option<String>,
    /// The first line of what it was asked for.
    pub prompt: Option<String>,
}

/// Finds who wrote the lines of a file in the worktree, in these ranges, or all.
pub fn blame(view: &View<'_>, path: &BStr, ranges: &[String]) -> Result<Vec<Line>> {
    let Some(content) = Worktree::new(view.repo).read_plain_file(path)? else {
        return Err(Refusal::new(Code::NotFound, format!("there is no file {} here", in_quotes(path)))
            .hint(format!(
                "run 'oxundo find {}' to see where there is one",
                shell_word([b":/", path.as_bytes()].concat())
            ))
            .into());
    };
    let objects = Objects::new(view.repo);
    let is_known = is_known(view, path)?;
    let blamed = if is_known { objects.blame(path, ranges)? } else { unknown(path, &content, ranges)? };
    let mut sought: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for line in &blamed {
        if let Some((commit, number)) = line.commit.zip(line.original.checked_sub(1)) {
            sought.entry((commit, line.path.clone())).or_default().push(number);
        }
    }
    let (notes, came) = notes(view, &blamed)?;
    let blame = Blame { notes, came, others: others(view)?, sought, ..Blame::of(view) };
    let open = || blamed.iter().filter(|line| line.commit.is_none());
    let mut older: Vec<BString> = open().find_map(|line| line.previous.clone()).into_iter().collect();
    if open().next().is_some() {
        older.extend(blame.name_since(path)?);
    }
    let trail = Trail::new(path.to_owned(), older, content.clone(), open().map(|line| line.line - 1));
    let mut recorded = blame.recorded(trail)?;
    let texts: Vec<&[u8]> = content.lines().collect();
    let mut known = BTreeMap::new();
    let mut lines = Vec::new();
    for line in blamed {
        let (by, ended_at) = match line.commit {
            Some(commit) => blame.committed(commit, &line, &mut known)?,
            None => recorded.remove(&(line.line - 1)),
        }
        .unzip();
        let is_committed = line.commit.is_some();
        lines.push(Line {
            number: line.line,
            content: texts.get(line.line - 1).copied().unwrap_or_default().into(),
            commit: line.commit,
            at: ended_at.flatten().or_else(|| is_committed.then(|| rfc3339_of(line.time))),
            author: is_committed.then_some(line.author),
            subject: is_committed.then_some(line.subject),
            by,
        });
    }
    Ok(lines)
}

/// Whether git tells whose the lines of a file are: HEAD has it, or it is staged, and HEAD may have it under another name.
fn is_known(view: &View<'_>, path: &BStr) -> Result<bool> {
    let (objects, index) = (Objects::new(view.repo), Index::new(view.repo));
    let is_committed = objects.tree_file(objects.head_tree(&view.head)?, path)?.is_some();
    Ok(is_committed || (view.head.commit.is_some() && !index.index_entries(&*index.read_index()?, path)?.is_empty()))
}

/// The lines of a file that HEAD has not, in these ranges.
fn unknown(path: &BStr, content: &[u8], ranges: &[String]) -> Result<Vec<BlamedLine>> {
    let count = content.lines().count();
    let mut wanted = vec![ranges.is_empty(); count];
    for range in ranges {
        let (first, last) = bounds(range, count).ok_or_else(|| no_range(ranges, "the file is not committed"))?;
        wanted[first - 1..last].fill(true);
    }
    let line = |line: usize| BlamedLine {
        line,
        commit: None,
        original: line,
        path: path.to_owned(),
        previous: None,
        author: String::new(),
        time: 0,
        committed: 0,
        subject: String::new(),
    };
    Ok((1..=count).filter(|number| wanted[number - 1]).map(line).collect())
}

/// `N`, `N,M`, `N,+M`, `N,-M`, `N,` and `,M`, as git reads them.
fn bounds(range: &str, count: usize) -> Option<(usize, usize)> {
    let (first, last) = range.split_once(',').unwrap_or((range, ""));
    let from: usize = if first.is_empty() { 1 } else { first.parse().ok()? };
    let to = match last.split_at_checked(1) {
        None => count.max(from),
        Some(("+", many)) => from.checked_add(many.parse().ok().filter(|many| *many > 0)?)?.checked_sub(1)?,
        Some(("-", many)) => {
            return bounds(
                &format!("{},{from}", from.saturating_add(1).saturating_sub(many.parse().ok()?).max(1)),
                count,
            );
        }
        Some(_) => last.parse().ok()?,
    };
    let (from, to) = (from.min(to), from.max(to).min(count));
    (1..=count).contains(&from).then_some((from, to))
}

/// The note on each of these commits that tells whose it is: of this worktree's turns before those of others. Where several
/// sessions may have made it, it names all their agents. Those that a turn has found, and which came from another repository.
fn notes(view: &View<'_>, lines: &[BlamedLine]) -> Result<(BTreeMap<ObjectId, Note>, HashSet<ObjectId>)> {
    let mut commits: Vec<ObjectId> = lines.iter().filter_map(|line| line.commit).collect();
    commits.sort_unstable();
    commits.dedup();
    let here = view.repo.worktree_id();
    let (mut known, mut found, refs) = (BTreeMap::new(), Vec::new(), Refs::new(view.repo));
    for (commit, notes) in commits.iter().zip(refs.notes_on(&commits)?) {
        if notes.iter().any(|note| note.kind == CommitKind::Found && note.commit == *commit) {
            found.push(*commit);
        }
        let mut agents: Vec<Note> = notes.into_iter().filter(|note| note.kind == CommitKind::Agent).collect();
        agents.sort_by_key(|note| (note.commit == *commit, note.worktree == here, note.turn));
        let Some(last) = agents.pop() else { continue };
        let is_same =
            |note: &&Note| Note { agent: last.agent.clone(), session: last.session.clone(), ..(*note).clone() } == last;
        let same: Vec<&Note> = agents.iter().filter(is_same).chain([&last]).collect();
        let agent = together(same.iter().map(|note| note.agent.as_str()));
        let session = last.session.clone().filter(|_| same.len() == 1);
        known.insert(*commit, Note { agent, session, ..last.clone() });
    }
    Ok((known, refs.came_here(&found, Began::default())?))
}

/// The timelines of other worktrees, by their names.
fn others<'r>(view: &View<'r>) -> Result<BTreeMap<String, Stored<'r>>> {
    let others = Timelines::new(view.repo).other_timelines()?.into_iter();
    Ok(others.filter_map(|other| Some((other.worktree, other.stored.ok()?))).collect())
}

/// A turn, and when it ended.
type Written = (By, Option<String>);

/// Each version of a file that a turn made, with who wrote each line; none where that is nobody's turn.
type Known = BTreeMap<(u64, BString, ObjectId), BTreeMap<usize, Written>>;

/// A file on the way to older versions of it.
struct Trail {
    path: BString,
    /// What it was called before, as far as that is known.
    older: Vec<BString>,
    /// A tree with the version, as far as one is known.
    tree: Option<ObjectId>,
    /// The version.
    now: Vec<u8>,
    /// The lines that are looked for, from 0: where each is in this version, and where it was in the first.
    left: Vec<(usize, usize)>,
    found: BTreeMap<usize, Written>,
}

impl Trail {
    fn new(path: BString, older: Vec<BString>, now: Vec<u8>, lines: impl IntoIterator<Item = usize>) -> Self {
        let left = lines.into_iter().map(|line| (line, line)).collect();
        Self { path, older, tree: None, now, left, found: BTreeMap::new() }
    }

    /// As it is in a tree.
    fn of_tree(self, tree: ObjectId) -> Self {
        Self { tree: Some(tree), ..self }
    }

    /// Looks no further for lines of which an older version has none that is the same: no comparison has to tell.
    fn leave_those_not_in(&mut self, old: &[u8]) {
        let (there, now): (HashSet<&[u8]>, Vec<&[u8]>) = (old.lines().collect(), self.now.lines().collect());
        self.left.retain(|(here, _)| now.get(*here).is_some_and(|line| there.contains(line)));
    }

    /// Goes to an older version; gives the lines that are not in it.
    fn go_to(&mut self, old: Vec<u8>) -> Vec<(usize, usize)> {
        let all = self.left.clone();
        follow(&old, &self.now, &mut self.left);
        self.now = old;
        let stays: Vec<usize> = self.left.iter().map(|(_, line)| *line).collect();
        all.into_iter().filter(|(_, line)| !stays.contains(line)).collect()
    }
}

/// A timeline's turns.
struct Turns<'b, 'r> {
    timeline: &'b Stored<'r>,
    /// The worktree, where that is another one.
    worktree: Option<String>,
}

impl Turns<'_, '_> {
    fn below(&self, view: &View<'_>, turn: &Turn) -> Option<u64> {
        if self.worktree.is_none() { below(view, turn) } else { turn.previous }
    }
}

struct Blame<'v, 'r> {
    view: &'v View<'r>,
    objects: Objects<'r>,
    notes: BTreeMap<ObjectId, Note>,
    /// The commits that turns found, and others made elsewhere.
    came: HashSet<ObjectId>,
    others: BTreeMap<String, Stored<'r>>,
    /// The lines of each commit's files that are asked for, from 0.
    sought: BTreeMap<(ObjectId, BString), Vec<usize>>,
    /// The turns of this worktree that were looked at.
    looked_at: RefCell<BTreeMap<u64, Rc<LookedAt>>>,
    /// When the first turn that is known began.
    since: OnceCell<Option<i64>>,
    /// The agents' own commits, with their turns.
    made: OnceCell<Vec<(u64, ObjectId, Features)>>,
}

/// A turn, and the files that it changed.
struct LookedAt {
    turn: Turn,
    files: Vec<FileChange>,
}

impl LookedAt {
    /// Whether it changed a file of this name.
    fn has(&self, path: &BString) -> bool {
        let name = quoted(path.as_bstr());
        self.files.iter().any(|file| file.path == name)
    }
}

impl<'v, 'r> Blame<'v, 'r> {
    /// Of what is recorded here.
    fn of(view: &'v View<'r>) -> Self {
        let (notes, came, others, sought, looked_at, since, made) = Default::default();
        Self { view, objects: Objects::new(view.repo), notes, came, others, sought, looked_at, since, made }
    }

    /// Who wrote a committed line.
    fn committed(&self, commit: ObjectId, line: &BlamedLine, known: &mut Known) -> Result<Option<Written>> {
        let Some(note) = self.notes.get(&commit) else { return self.by_no_turn(commit, line, known) };
        let worktree = Some(note.worktree.clone()).filter(|name| *name != self.view.repo.worktree_id());
        let timeline = worktree.as_ref().map_or(Some(&self.view.timeline), |name| self.others.get(name));
        let turn = timeline.map(|timeline| timeline.find_turn(note.turn)).transpose()?.flatten();
        let (Some(timeline), Some(turn)) = (timeline, turn) else {
            // It has expired: the note says what is left to say.
            let (agent, session) = (note.agent.clone(), note.session.clone());
            let by = By { turn: note.turn, step: None, worktree, agent, model: None, session, prompt: None };
            return Ok(Some((by, None)));
        };
        let key = (turn.turn, line.path.clone(), commit);
        if !known.contains_key(&key) {
            let turns = Turns { timeline, worktree };
            let lines = if self.is_of_nobodys_turn(timeline, &turn, line.time, commit)? {
                BTreeMap::new()
            } else {
                self.lines_of_commit(&turns, &turn, (commit, note.commit), line.path.as_bstr())?
            };
            known.insert(key.clone(), lines);
        }
        Ok(writer_of(line, known.get(&key)))
    }

    /// Whether a commit that a turn has made, written at this time, is one anew that was there before and is no turn's, as what it rebased or
    /// picked.
    fn is_of_nobodys_turn(&self, timeline: &Stored<'_>, turn: &Turn, written: i64, commit: ObjectId) -> Result<bool> {
        let (objects, refs) = (&self.objects, Refs::new(self.view.repo));
        if parse_rfc3339(&turn.began_at).is_none_or(|began| written > began) || !objects.has_commit(commit) {
            return Ok(false);
        }
        let copy = objects.seen(commit);
        let mut tips = timeline.checkpoint(turn.turn, Side::Before)?.tips();
        tips.splice(..0, turn.dirty_commit);
        tips.extend(objects.remote_tip_ids()?);
        tips.retain(|tip| objects.has_commit(*tip));
        for tip in tips.into_iter().take(NEAR) {
            for other in objects.newest_first(tip).take(NEAR)?.into_iter().filter(|other| *other != commit) {
                let other = objects.seen(other);
                let has_author =
                    copy.features.as_ref().zip(other.features.as_ref()).is_some_and(|(a, b)| a.has_author_of(b));
                if has_author && objects.change_the_same(&copy, &other) {
                    let notes = refs.notes_on(&[other.id])?;
                    return Ok(notes.iter().flatten().all(|note| note.kind != CommitKind::Agent));
                }
            }
        }
        Ok(false)
    }

    /// Who wrote a line of a commit that is no turn's: the user may have made it of what turns had left uncommitted, or anew of a
    /// turn's commit.
    fn by_no_turn(&self, commit: ObjectId, line: &BlamedLine, known: &mut Known) -> Result<Option<Written>> {
        if self.came.contains(&commit) || self.since()?.is_none_or(|since| line.committed < since) {
            return Ok(None);
        }
        let key = (0, line.path.clone(), commit);
        if !known.contains_key(&key) {
            let tree = self.objects.commit_tree(commit)?;
            let committed = self.content(tree, line.path.as_bstr())?;
            let sought = self.sought.get(&(commit, line.path.clone())).cloned().unwrap_or_default();
            let older = line.previous.iter().filter(|older| **older != line.path).cloned().collect();
            let mut trail = Trail::new(line.path.clone(), older, committed, sought).of_tree(tree);
            let turns = Turns { timeline: &self.view.timeline, worktree: None };
            let last = self.last_before(line.committed)?;
            self.walk(&turns, last, &self.objects.parents(commit)?, &mut trail)?;
            let original = if trail.found.is_empty() { self.original_of(commit)? } else { None };
            if let Some((turn, original)) = original {
                trail.found = self.lines_of_commit(&turns, &turn, (commit, original), line.path.as_bstr())?;
            }
            known.insert(key.clone(), trail.found);
        }
        Ok(writer_of(line, known.get(&key)))
    }

    /// The commit of a turn of which one was made anew that has no note, and the turn: git may have been in the middle of that as the
    /// turn ended.
    fn original_of(&self, commit: ObjectId) -> Result<Option<(Turn, ObjectId)>> {
        if self.made.get().is_none() {
            let mut made = Vec::new();
            for number in self.view.timeline.newest_turns(NEAR, 0)? {
                let commits = self.view.timeline.require_turn(number)?.commits;
                let own = commits.iter().filter(|commit| commit.kind == CommitKind::Agent);
                made.extend(own.filter_map(|commit| Some((number, commit.id, self.objects.features(commit.id)?))));
            }
            let _ = self.made.set(made);
        }
        let (Some(copy), Some(made)) = (self.objects.features(commit), self.made.get()) else { return Ok(None) };
        let is_it = |was: &Features| was.has_author_of(&copy) && was.has_message_of(&copy);
        let original = made.iter().find(|(.., was)| is_it(was));
        original.map(|(turn, id, _)| Ok((self.view.timeline.require_turn(*turn)?, *id))).transpose()
    }

    /// The last turn done here that began before a commit was made: what it wrote may be in that.
    fn last_before(&self, made: i64) -> Result<Option<u64>> {
        let (mut at, mut looked) = (self.view.top()?, 0);
        while let Some(number) = at.filter(|_| looked < FAR) {
            let Some(looked_at) = self.looked_at(&self.view.timeline, number, true)? else { break };
            if parse_rfc3339(&looked_at.turn.began_at).is_none_or(|began| began <= made) {
                break;
            }
            (at, looked) = (below(self.view, &looked_at.turn), looked + 1);
        }
        Ok(at)
    }

    /// When the first turn began that is known, in seconds since 1970; none where there is none.
    fn since(&self) -> Result<Option<i64>> {
        if let Some(since) = self.since.get() {
            return Ok(*since);
        }
        let timeline = &self.view.timeline;
        let first = timeline.turn_numbers()?.into_iter().min().map(|first| timeline.require_turn(first)).transpose()?;
        let since = first.and_then(|turn| parse_rfc3339(&turn.began_at));
        Ok(*self.since.get_or_init(|| since))
    }

    /// What a file was called in the last turn that changed it, where the user has given it another name since.
    fn name_since(&self, path: &BStr) -> Result<Option<BString>> {
        let (view, Some(top)) = (self.view, self.view.top()?) else { return Ok(None) };
        let (checkpoints, worktree) = (Checkpoints::new(view.repo), Worktree::new(view.repo));
        let state = view.timeline.checkpoint(top, Side::After)?;
        if self.objects.tree_file(state.worktree, path)?.is_some() {
            return Ok(None);
        }
        let mut files = BTreeMap::from([(path.to_owned(), Change::new(None, checkpoints.file_now(path)?))]);
        let (mut at, mut looked) = (Some(top), 0);
        while let Some(number) = at.filter(|_| looked < FAR) {
            let Some(turn) = self.looked_at(&view.timeline, number, true)? else { break };
            for file in &turn.files {
                let name = unquoted(&file.path).unwrap_or_else(|| file.path.as_str().into());
                let then = checkpoints.captured_file(&state, name.as_bstr())?;
                if then.is_some() && worktree.stat(name.as_bstr())?.is_none() {
                    files.insert(name, Change::new(then, None));
                }
            }
            (at, looked) = (below(view, &turn.turn), looked + 1);
        }
        Ok(checkpoints.came_from(&files)?.remove(path))
    }

    /// A turn, and the files that it changed; those of this worktree are read once.
    fn looked_at(&self, timeline: &Stored<'_>, number: u64, is_here: bool) -> Result<Option<Rc<LookedAt>>> {
        if let Some(known) = self.looked_at.borrow().get(&number).filter(|_| is_here) {
            return Ok(Some(Rc::clone(known)));
        }
        let Some(turn) = timeline.find_turn(number)? else { return Ok(None) };
        let turn = Rc::new(LookedAt { turn, files: timeline.turn_files(number)? });
        if is_here {
            self.looked_at.borrow_mut().insert(number, Rc::clone(&turn));
        }
        Ok(Some(turn))
    }

    /// Who wrote the lines of a file, as a turn's commit has it: what was there before the turn, and what the user saved while it
    /// was open, is not the turn's, whoever committed it.
    fn lines_of_commit(
        &self,
        turns: &Turns<'_, 'r>,
        turn: &Turn,
        (commit, original): (ObjectId, ObjectId),
        path: &BStr,
    ) -> Result<BTreeMap<usize, Written>> {
        let tree = self.objects.commit_tree(commit)?;
        let committed = self.content(tree, path)?;
        let count = committed.lines().count();
        let mut trail = Trail::new(path.to_owned(), Vec::new(), committed, 0..count).of_tree(tree);
        // git copies the note to one that the user has made anew of it, and may have put something of their own in.
        let copied = (commit != original).then_some(original);
        for (line, step) in self.lines_of_turn(turns.timeline, turn, &mut trail, copied)? {
            let by = by(turn, step.as_ref(), turns.worktree.clone());
            trail.found.insert(line, (by, turn.ended_at.clone()));
        }
        let parents = self.objects.parents(commit)?;
        self.walk(turns, turns.below(self.view, turn), &parents, &mut trail)?;
        Ok(trail.found)
    }

    /// The lines of a file that a turn wrote, and the steps that did, as one of its commits has it, or one that was made anew of the
    /// `original`. The trail goes to the version before the turn.
    fn lines_of_turn(
        &self,
        timeline: &Stored<'_>,
        turn: &Turn,
        trail: &mut Trail,
        original: Option<ObjectId>,
    ) -> Result<Vec<(usize, Option<Step>)>> {
        let (path, content, tree) = (trail.path.clone(), trail.now.clone(), trail.tree);
        let before = self.before(timeline, turn, trail)?;
        let mut its = trail.go_to(with_ends_of(&content, before));
        // What the user has saved in the place of a line that was there is not committed: the line still is.
        let base = timeline.checkpoint(turn.turn, Side::Before)?;
        let was = self.as_in(base.worktree, (&trail.path, trail.tree))?;
        let kept = carried(&with_ends_of(&content, was), &content);
        its.retain(|(_, line)| kept.get(*line).copied().flatten().is_none());
        self.take_popped(timeline, turn, (path.as_bstr(), &content), &mut its)?;
        if let Some(original) = original {
            let own = with_ends_of(&content, self.made_in(timeline, turn, original, (&path, tree))?);
            let carried = carried(&own, &content);
            its.retain(|(_, line)| carried.get(*line).copied().flatten().is_some());
        }
        let mut steps = self.steps_of_commit(timeline, turn, &content, (&path, tree), &its)?;
        let its = its.into_iter().map(|(_, line)| (line, steps.remove(&line)));
        Ok(its.filter(|(_, step)| is_its(turn, path.as_bstr(), step.as_ref())).collect())
    }

    /// A file as a commit of a turn's has it, or as the turn left it where git has let go of that commit.
    fn made_in(
        &self,
        timeline: &Stored<'_>,
        turn: &Turn,
        commit: ObjectId,
        (path, tree): (&BString, Option<ObjectId>),
    ) -> Result<Vec<u8>> {
        if self.objects.has_commit(commit) {
            return self.as_in(self.objects.commit_tree(commit)?, (path, tree));
        }
        self.as_in(timeline.checkpoint(turn.turn, Side::After)?.worktree, (path, tree))
    }

    /// A file as a tree has it, under the name that it has there.
    fn as_in(&self, tree: ObjectId, (path, later): (&BString, Option<ObjectId>)) -> Result<Vec<u8>> {
        let mut trail = Trail { tree: later, ..Trail::new(path.clone(), Vec::new(), Vec::new(), []) };
        self.rename(tree, &mut trail)?;
        self.content(tree, trail.path.as_bstr())
    }

    /// The steps that wrote these lines of a file, as a turn's commit has it in this tree.
    fn steps_of_commit(
        &self,
        timeline: &Stored<'_>,
        turn: &Turn,
        committed: &[u8],
        (path, tree): (&BString, Option<ObjectId>),
        lines: &[(usize, usize)],
    ) -> Result<BTreeMap<usize, Step>> {
        if timeline.last_step(turn.turn)? == 0 {
            return Ok(BTreeMap::new());
        }
        let end = timeline.checkpoint(turn.turn, Side::After)?.worktree;
        let mut trail = Trail { tree, ..Trail::new(path.clone(), Vec::new(), Vec::new(), []) };
        self.rename(end, &mut trail)?;
        let after = with_ends_of(committed, self.content(end, trail.path.as_bstr())?);
        let carried = carried(&after, committed);
        let (mut places, mut apart) = (BTreeMap::new(), Vec::new());
        for (line, _) in lines {
            match carried.get(*line).copied().flatten() {
                Some(place) => drop(places.insert(place, *line)),
                None => apart.push(*line),
            }
        }
        trail = Trail { now: after, left: places.keys().map(|place| (*place, *place)).collect(), ..trail };
        let steps = self.steps(timeline, turn, Trail { tree: Some(end), ..trail })?;
        let mut found: BTreeMap<usize, Step> =
            steps.into_iter().filter_map(|(place, step)| Some((*places.get(&place)?, step))).collect();
        if has_both(turn, path) {
            // What the user has saved in their place is not committed.
            let trail = Trail { tree, ..Trail::new(path.clone(), Vec::new(), committed.to_vec(), apart) };
            found.extend(self.steps_apart(timeline, turn, trail)?);
        }
        Ok(found)
    }

    /// The last steps that have these lines of a file and found them not there, whatever became of them since.
    fn steps_apart(&self, timeline: &Stored<'_>, turn: &Turn, trail: Trail) -> Result<BTreeMap<usize, Step>> {
        self.taken_by_steps(timeline, turn, trail, |trail, [before, after]| {
            let in_state = |state: &Checkpoint| -> Result<Vec<bool>> {
                let then = with_ends_of(&trail.now, self.at(state, trail.path.as_bstr())?);
                Ok(carried(&then, &trail.now).into_iter().map(|place| place.is_some()).collect())
            };
            let (before, after) = (in_state(before)?, in_state(after)?);
            let has = |lines: &[bool], line: usize| lines.get(line).copied().unwrap_or_default();
            let is_its = |(_, line): &(usize, usize)| has(&after, *line) && !has(&before, *line);
            let (its, left) = trail.left.iter().partition(|line| is_its(line));
            trail.left = left;
            Ok(its)
        })
    }

    /// Goes over the steps of a turn that changed a file, from the last one; each takes its lines out of those that are left, by the
    /// states before it and after it.
    fn taken_by_steps(
        &self,
        timeline: &Stored<'_>,
        turn: &Turn,
        mut trail: Trail,
        take: impl Fn(&mut Trail, [&Checkpoint; 2]) -> Result<Vec<(usize, usize)>>,
    ) -> Result<BTreeMap<usize, Step>> {
        let mut found = BTreeMap::new();
        for number in (1..=timeline.last_step(turn.turn)?).rev() {
            if trail.left.is_empty() {
                break;
            }
            let Some(step) = timeline.step(turn.turn, number)? else { continue };
            if self.is_in_step(timeline, &step, &mut trail)? {
                let (before, after) = (states::before(timeline, turn, number)?, states::after(timeline, turn, number)?);
                let its = take(&mut trail, [&before, &after])?;
                found.extend(its.into_iter().map(|(_, line)| (line, step.clone())));
            }
        }
        Ok(found)
    }

    /// Whether a step changed a file, under the name that it had then.
    fn is_in_step(&self, timeline: &Stored<'_>, step: &Step, trail: &mut Trail) -> Result<bool> {
        if let Some(tree) = self.worktree_in(timeline.step_tree(step.turn, step.step, Side::After)?)? {
            self.rename(tree, trail)?;
        }
        let name = quoted(trail.path.as_bstr());
        Ok(timeline.step_files(step.turn, step.step)?.iter().any(|file| file.path == name))
    }

    /// Which turn done here, or which one that is open, wrote these lines of a file; those that are left are the user's.
    fn recorded(&self, mut trail: Trail) -> Result<BTreeMap<usize, Written>> {
        let turns = Turns { timeline: &self.view.timeline, worktree: None };
        if let Some(open) = self.view.open_turn()? {
            self.written(&turns, &open, &mut trail)?;
        }
        self.walk(&turns, self.view.top()?, &[], &mut trail)?;
        Ok(trail.found)
    }

    /// Goes from one turn down over those below it. Whatever was committed in what these commits stand on is told by git.
    fn walk(&self, turns: &Turns<'_, 'r>, top: Option<u64>, parents: &[ObjectId], trail: &mut Trail) -> Result<()> {
        let (mut at, mut looked) = (top, 0);
        while let Some(number) = at.filter(|_| !trail.left.is_empty() && looked < FAR) {
            let Some(looked_at) = self.looked_at(turns.timeline, number, turns.worktree.is_none())? else { break };
            let turn = &looked_at.turn;
            let is_named = looked_at.has(&trail.path) || trail.older.iter().any(|older| looked_at.has(older));
            if is_named || self.has_another_name(turns.timeline, number, trail)? {
                let state = turns.timeline.checkpoint(number, Side::After)?;
                self.rename(state.worktree, trail)?;
                if self.is_committed(&state, trail.path.as_bstr(), parents)? {
                    break;
                }
                let after = with_ends_of(&trail.now, self.at(&state, trail.path.as_bstr())?);
                trail.leave_those_not_in(&after);
                if trail.left.is_empty() {
                    break;
                }
                trail.go_to(after);
                self.written(turns, turn, trail)?;
            }
            (at, looked) = (turns.below(self.view, turn), looked + 1);
        }
        Ok(())
    }

    /// Whether a file had another name at the end of a turn, by which it is gone to from here on.
    fn has_another_name(&self, timeline: &Stored<'_>, number: u64, trail: &mut Trail) -> Result<bool> {
        let Some(tree) = self.worktree_in(timeline.checkpoint_id(number, Side::After)?)? else { return Ok(false) };
        let name = trail.path.clone();
        self.rename(tree, trail)?;
        Ok(trail.path != name)
    }

    /// Whether what a state has of a file was committed in what these commits stand on.
    fn is_committed(&self, state: &Checkpoint, path: &BStr, parents: &[ObjectId]) -> Result<bool> {
        let (Some(head), false) = (state.head.commit, parents.is_empty()) else { return Ok(false) };
        if self.objects.tree_file(self.objects.commit_tree(head)?, path)?
            != self.objects.tree_file(state.worktree, path)?
        {
            return Ok(false);
        }
        // What was deleted there git does not follow.
        let has_it = |parent: ObjectId| -> Result<bool> {
            let is_there = self.objects.tree_file(self.objects.commit_tree(parent)?, path)?.is_some();
            Ok(is_there && self.objects.is_ancestor(head, parent)?)
        };
        parents.iter().try_fold(false, |is, parent| Ok(is || has_it(*parent)?))
    }

    /// Takes the lines out of those that are left that a turn wrote, and goes to the version before it.
    fn written(&self, turns: &Turns<'_, 'r>, turn: &Turn, trail: &mut Trail) -> Result<()> {
        let (path, now, tree) = (trail.path.clone(), trail.now.clone(), trail.tree);
        let before = self.before(turns.timeline, turn, trail)?;
        let mut its = trail.go_to(with_ends_of(&now, before));
        for mut stashed in self.take_popped(turns.timeline, turn, (path.as_bstr(), &now), &mut its)? {
            // What the user had put away an earlier turn may have written.
            self.walk(turns, turns.below(self.view, turn), &[], &mut stashed)?;
            trail.found.extend(stashed.found);
        }
        let lines = its.iter().map(|(here, _)| *here);
        let steps =
            self.steps(turns.timeline, turn, Trail { tree, ..Trail::new(path.clone(), Vec::new(), now, lines) })?;
        for (step, line) in its.into_iter().map(|(here, line)| (steps.get(&here), line)) {
            if is_its(turn, path.as_bstr(), step) {
                trail.found.insert(line, (by(turn, step, turns.worktree.clone()), turn.ended_at.clone()));
            }
        }
        Ok(())
    }

    /// Takes what came out of the user's stash in a turn out of these lines of a version of a file; gives them as they were stashed.
    fn take_popped(
        &self,
        timeline: &Stored<'_>,
        turn: &Turn,
        (path, now): (&BStr, &[u8]),
        lines: &mut Vec<(usize, usize)>,
    ) -> Result<Vec<Trail>> {
        if turn.ended_at.is_none() || lines.is_empty() {
            return Ok(Vec::new());
        }
        let [before, after] = [Side::Before, Side::After].map(|side| timeline.checkpoint(turn.turn, side));
        let after = after?;
        let popped = Popped::find(self.view, timeline, turn.previous, [&before?, &after])?;
        let mut all = Vec::new();
        for (tree, version) in popped.versions(self.view, &after, path)? {
            let version = with_ends_of(now, self.objects.blob(version)?);
            let carried = carried(&version, &with_ends_of(&version, now.to_vec()));
            let mut stashed = Trail::new(path.to_owned(), Vec::new(), version, []).of_tree(tree);
            lines.retain(|(here, line)| match carried.get(*here).copied().flatten() {
                Some(there) => {
                    stashed.left.push((there, *line));
                    false
                }
                None => true,
            });
            all.push(stashed);
        }
        Ok(all)
    }

    /// What a file held before a turn, or as the user saved it meanwhile, under the name that it had then.
    fn before(&self, timeline: &Stored<'_>, turn: &Turn, trail: &mut Trail) -> Result<Vec<u8>> {
        let name = quoted(trail.path.as_bstr());
        let renamed = timeline.turn_files(turn.turn)?.into_iter().find(|file| file.path == name);
        let mut state = timeline.undone_to(turn.turn)?;
        // What oxundo itself makes of HEAD writes no line.
        if turn.ended_at.is_some() && turn.made.is_none() {
            let after = timeline.checkpoint(turn.turn, Side::After)?;
            OnOne { ends: [state, _], .. } = ends_of_turn(self.view, turn, [state, after])?;
        }
        if let Some(from) = renamed.and_then(|file| file.from)
            && self.objects.tree_file(state.worktree, trail.path.as_bstr())?.is_none()
        {
            trail.older.insert(0, unquoted(&from).unwrap_or_else(|| from.into()));
        }
        self.rename(state.worktree, trail)?;
        self.at(&state, trail.path.as_bstr())
    }

    /// Goes by the older name where a tree has only that.
    fn rename(&self, tree: ObjectId, trail: &mut Trail) -> Result<()> {
        let is_there = |path: &BString| Ok::<_, anyhow::Error>(self.objects.tree_file(tree, path.as_bstr())?.is_some());
        if !is_there(&trail.path)? {
            let mut older = None;
            for at in 0..trail.older.len() {
                if is_there(&trail.older[at])? {
                    older = Some(trail.older.remove(at));
                    break;
                }
            }
            if let (None, Some(later)) = (&older, trail.tree) {
                older = self.older_name(tree, later, &trail.path)?;
            }
            let Some(older) = older else {
                // It came since: nothing below has it under another name.
                trail.tree = None;
                return Ok(());
            };
            trail.path = older;
        }
        trail.tree = Some(tree);
        Ok(())
    }

    /// What a file was called in a tree that is not there any more under that name in a later one.
    fn older_name(&self, tree: ObjectId, later: ObjectId, path: &BString) -> Result<Option<BString>> {
        let state = |slot: TreeSlot| {
            slot.and_then(|(mode, id)| Some(FileState { kind: file_kind(mode.kind())?, id, mode: 0o644 }))
        };
        let changes = self.objects.tree_changes(tree, later)?.into_iter();
        let changes = changes.map(|(name, change)| (name, Change::new(state(change.from), state(change.to))));
        let files = changes.filter(|(name, change)| name == path || (change.from.is_some() && change.to.is_none()));
        Ok(Checkpoints::new(self.view.repo).came_from(&files.collect())?.remove(path))
    }

    /// The steps of a turn that wrote these lines of a file.
    fn steps(&self, timeline: &Stored<'_>, turn: &Turn, trail: Trail) -> Result<BTreeMap<usize, Step>> {
        let content = trail.now.clone();
        self.taken_by_steps(timeline, turn, trail, |trail, [before, after]| {
            trail.go_to(with_ends_of(&content, self.at(after, trail.path.as_bstr())?));
            self.rename(before.worktree, trail)?;
            Ok(trail.go_to(with_ends_of(&content, self.at(before, trail.path.as_bstr())?)))
        })
    }

    /// The files of a state that is kept so.
    fn worktree_in(&self, state: Option<ObjectId>) -> Result<Option<ObjectId>> {
        let entry = state.map(|state| self.objects.tree_entry(state, "worktree".into())).transpose()?.flatten();
        Ok(entry.map(|(_, tree)| tree))
    }

    fn at(&self, state: &Checkpoint, path: &BStr) -> Result<Vec<u8>> {
        self.content(state.worktree, path)
    }

    fn content(&self, tree: ObjectId, path: &BStr) -> Result<Vec<u8>> {
        self.objects.tree_file(tree, path)?.map_or_else(|| Ok(Vec::new()), |(_, id)| self.objects.blob(id))
    }
}

/// Who wrote a line, of those of whose lines it is known.
fn writer_of(line: &BlamedLine, known: Option<&BTreeMap<usize, Written>>) -> Option<Written> {
    known?.get(&line.original.checked_sub(1)?).cloned()
}

/// Whether a line that a turn has more than there was before it is the turn's: where the user saved beside what its calls wrote,
/// only what is in a step is.
fn is_its(turn: &Turn, path: &BStr, step: Option<&Step>) -> bool {
    step.is_some() || !has_both(turn, &path.to_owned())
}

/// A version with its lines' ends as another has them: git may have committed others than the worktree has.
fn with_ends_of(other: &[u8], version: Vec<u8>) -> Vec<u8> {
    if other.contains(&b'\r') || !version.contains(&b'\r') { version } else { version.replace(b"\r\n", b"\n") }
}

/// The lines of a file, from 1, that a turn wrote, and by whose call: as its last commit has it, or where none has, as the turn
/// left it.
pub fn written_by(view: &View<'_>, timeline: &Stored<'_>, turn: &Turn, path: &BStr) -> Result<Vec<(usize, By)>> {
    let blame = Blame::of(view);
    let after = timeline.checkpoint(turn.turn, Side::After)?;
    let mut tree = after.worktree;
    if let Some(last) = turn.commits.last().filter(|last| blame.objects.has_commit(last.id)) {
        let committed = blame.objects.commit_tree(last.id)?;
        tree = if blame.objects.tree_file(committed, path)?.is_some() { committed } else { tree };
    }
    let content = blame.content(tree, path)?;
    if content.contains(&0) {
        return Ok(Vec::new());
    }
    let count = content.lines().count();
    let mut trail = Trail::new(path.to_owned(), Vec::new(), content, 0..count).of_tree(tree);
    let its = blame.lines_of_turn(timeline, turn, &mut trail, None)?;
    Ok(its.into_iter().map(|(line, step)| (line + 1, by(turn, step.as_ref(), None))).collect())
}

/// Goes from one version to an older one with those lines that are in it too.
fn follow(old: &[u8], new: &[u8], left: &mut Vec<(usize, usize)>) {
    let carried = carried(old, new);
    left.retain_mut(|(here, _)| match carried.get(*here).copied().flatten() {
        Some(there) => {
            *here = there;
            true
        }
        None => false,
    });
}

/// Each agent once: `claude and codex`.
fn together<'a>(agents: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for agent in agents {
        if !names.contains(&agent) {
            names.push(agent);
        }
    }
    names.join(" and ")
}

/// What is told of a turn, and of the step. Where it may be of several sessions, none is said to have written it.
fn by(turn: &Turn, step: Option<&Step>, worktree: Option<String>) -> By {
    let all = turn.sessions();
    let is_in = |step: &Step, one: &Session<'_>| {
        let is_other = one.id.is_some_and(|id| step.others.iter().any(|other| other == id));
        is_other || (one.agent == step.agent && one.id == step.session.as_deref())
    };
    let whose: Vec<&Session<'_>> = all.iter().filter(|one| step.is_none_or(|step| is_in(step, one))).collect();
    let turn_alone = || turn.asked_line().filter(|_| all.len() == 1).map(str::to_owned);
    let (agent, session, model, prompt) = match &whose[..] {
        [] => (
            step.map_or(&turn.agent, |step| &step.agent).clone(),
            step.map_or(&turn.session, |step| &step.session).clone(),
            None,
            turn_alone(),
        ),
        [one] => {
            let lines: Vec<&str> = one.prompts().into_iter().filter_map(|prompt| first_line(Some(prompt))).collect();
            let prompt = if lines.is_empty() { turn_alone() } else { Some(lines.join(" / ")) };
            (one.agent.to_owned(), one.id.map(str::to_owned), one.model.clone(), prompt)
        }
        several => {
            let agents = together(several.iter().map(|one| one.agent));
            (agents, None, None, turn.asked_line().map(str::to_owned))
        }
    };
    By { turn: turn.turn, step: step.map(|step| step.step), worktree, agent, model, session, prompt }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_lines_are_read_as_git_reads_them() {
        let read = |range: &str| bounds(range, 9);
        for (range, wanted) in [
            ("3", (3, 9)),
            ("3,5", (3, 5)),
            ("5,3", (3, 5)),
            ("3,+2", (3, 4)),
            ("3,-2", (2, 3)),
            (",4", (1, 4)),
            ("8,20", (8, 9)),
        ] {
            assert_eq!(read(range), Some(wanted), "{range}");
        }
        for range in ["0", "10", "x", "3,x", ":main", "/a/", "3,+0"] {
            assert_eq!(read(range), None, "{range}");
        }
    }
}
