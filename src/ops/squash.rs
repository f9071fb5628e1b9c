//! One clean commit out of the commits of the last turns. The user's dirty commits stay the user's commits, below it,
//! or are folded into it. The tree at the tip is the same, so that index and worktree stay as they are. It is a turn
//! of its own: undo takes it back, and then the turns below it can be undone as before.

use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::objects::commit::{Author, Sign};
use crate::model::bytes::{in_quotes, instead, sanitized};
use crate::model::checkpoint::Head;
use crate::model::guard;
use crate::model::guard::{CommitOrigin, Leaving};
use crate::model::plan::{BranchMove, Op, Plan};
use crate::model::timeline::range_ends;
use crate::model::turn::{CommitKind, Made, Turn, listed};
use crate::ops::dropped;
use crate::ops::made::{PlannedTurn, Words};
use crate::ops::resolve::resolve;
use crate::ops::turn::check_not_in_progress;
use crate::ops::undo::leaving::described;
use crate::ops::undo::range::{begins_with_the_older, is_done, no_such_line, nothing};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::ByteSlice;
use std::collections::{BTreeMap, BTreeSet};

/// What is squashed, and into what.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// The turns, as `FIRST..LAST`; without it, as far as nothing is published.
    pub turns: Option<String>,
    /// The commit's message.
    pub message: Option<String>,
    /// Its author, as `Name <address>`.
    pub author: Option<String>,
    /// What becomes of the user's own commits between the turns.
    pub dirty: DirtyCommits,
}

/// What becomes of the user's dirty commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirtyCommits {
    /// They stay commits of the user's, below the new one.
    #[default]
    Stay,
    /// They are folded into it.
    Fold,
}

/// Plans to make one commit out of several.
pub fn plan(view: &View<'_>, wish: &Wish) -> Result<PlannedTurn> {
    // As git amends no commit then: what is in progress is to be committed upon it.
    check_not_in_progress(view.repo)?;
    view.repo.check_identity()?;
    let turns = chosen(view, wish.turns.as_deref())?;
    let Some(line) = Line::of(view, &turns)? else {
        return Err(nothing(Op::Squash, "these turns made no commit on this branch").into());
    };
    if let Err(refusal) = line.check(view) {
        let later = later_turns(view, &turns)?;
        let hint = later.map(|first| format!("run 'oxundo squash {first}..' for the turns above it"));
        let hint = hint.unwrap_or_else(|| "run 'oxundo log' to see the turns".to_owned());
        return Err(refusal.hint(hint).into());
    }
    let commit = Squash { view, wish, turns: &turns, line: &line }.commit()?;
    if commit == line.tip {
        return Err(nothing(Op::Squash, "it is one commit already").into());
    }
    let mut plan = Plan::empty(Op::Squash, view.head.clone());
    plan.head.to.commit = Some(commit);
    if let Some(name) = &view.head.branch {
        plan.branches.push(BranchMove { name: name.clone(), from: Some(line.tip), to: Some(commit) });
    }
    let numbers: Vec<u64> = turns.iter().rev().map(|turn| turn.turn).collect();
    let listed = listed(&numbers);
    let hint = "'oxundo undo' takes it back; these turns can be undone after that, until the commit is published";
    let words = Words {
        message: format!("squash turns {listed}"),
        verbs: ["Squashed", "Would squash"],
        object: format!("{} commits of turns {listed}", line.commits.len()),
        hint: hint.to_owned(),
    };
    Ok(PlannedTurn { turns: numbers, ..PlannedTurn::new(plan, view.present()?, Made::Squash, words) })
}

/// The commits of HEAD's history above where some turns began, whatever branch has them.
struct Line {
    /// The commit below them.
    base: Option<ObjectId>,
    /// The commit that HEAD is at.
    tip: ObjectId,
    /// They, the newest first.
    commits: Vec<Leaving>,
    /// Those of them that are the user's own work, committed before a turn.
    dirty: BTreeSet<ObjectId>,
}

impl Line {
    /// None where there are no such commits.
    fn of(view: &View<'_>, turns: &[Turn]) -> Result<Option<Self>> {
        let (Some(tip), Some(lowest)) = (view.head.commit, turns.last()) else { return Ok(None) };
        let objects = Objects::new(view.repo);
        let began = view.timeline.undone_to(lowest.turn)?.head.commit;
        let above = objects.commits_between(began.as_slice(), tip)?;
        let mut line = Self { base: None, tip, commits: Vec::new(), dirty: BTreeSet::new() };
        let mut all = described(view, Op::Squash, turns, &above, &[])?;
        // What others have, and the user has put all of this on top of, is below it.
        let is_others = |commit: &Leaving| commit.published.is_some() && commit.origin == CommitOrigin::Unknown;
        all.truncate(all.iter().rposition(|commit| !is_others(commit)).map_or(all.len(), |last| last + 1));
        for mut commit in all {
            let mut made_as = commit.id;
            // What the user gave another message, or put upon other commits, is the turn's all the same.
            let is_it = |original| {
                objects.is_reworded(original, commit.id)
                    || objects.change_the_same(&objects.seen(original), &objects.seen(commit.id))
            };
            if let CommitOrigin::Copied(turn, original) = commit.origin
                && is_it(original)
            {
                if turns.iter().all(|one| one.turn != turn) {
                    break;
                }
                (commit.origin, made_as) = (CommitOrigin::Recorded, original);
            }
            let known = turns.iter().flat_map(|turn| &turn.commits).find(|known| known.id == made_as);
            match known.map(|known| known.kind) {
                Some(CommitKind::Dirty) => drop(line.dirty.insert(commit.id)),
                // What a turn only brought onto the branch is somebody else's.
                Some(CommitKind::Found) if !commit.notes.iter().any(|note| note.is_of_agents(commit.id)) => {
                    commit.origin = CommitOrigin::Unknown;
                }
                Some(CommitKind::Found | CommitKind::Agent) | None => {}
            }
            line.commits.push(commit);
        }
        let Some(lowest) = line.commits.last() else { return Ok(None) };
        line.base = objects.parents(lowest.id)?.first().copied();
        Ok(Some(line))
    }

    /// Whether there is more than one to make one of.
    fn is_long(&self) -> bool {
        self.commits.len() > self.dirty.len() + 1
    }

    /// Refuses what is not the turns', and what others have.
    fn check(&self, view: &View<'_>) -> Result<(), Refusal> {
        guard::check(Op::Squash, view.head.stack(), &self.commits)
    }
}

/// How many turns are looked through for those above what is in the way.
const MOST_LATER: usize = 64;

/// The first of the later ones of these turns, the newest of which comes first, that have nothing in their way and are to be made one of.
fn later_turns(view: &View<'_>, turns: &[Turn]) -> Result<Option<u64>> {
    let mut free = None;
    for end in 1..turns.len().min(MOST_LATER) {
        match Line::of(view, &turns[..end])? {
            Some(line) if line.check(view).is_err() => break,
            line => free = line.filter(Line::is_long).map(|_| turns[end - 1].turn).or(free),
        }
    }
    Ok(free)
}

/// The turns to squash, newest first.
fn chosen(view: &View<'_>, range: Option<&str>) -> Result<Vec<Turn>> {
    let Some(top) = view.last_whole()? else {
        return Err(nothing(Op::Squash, "no turn of this branch is done").into());
    };
    let Some(range) = range else { return unpublished(view, top) };
    let (first, end) = range_ends(range).unwrap_or((range, ""));
    let lowest = an_end(view, first)?;
    let last = an_end(view, end)?;
    if lowest > last {
        return Err(begins_with_the_older(first, end).into());
    }
    if last != top {
        return Err(Refusal::new(Code::Usage, format!("turn {last} is not the last one done: {top} is"))
            .hint(format!("run 'oxundo squash {lowest}..{top}' to have the later ones in it, too"))
            .hint(format!("or run 'oxundo undo --to {last}' first, then the same command again"))
            .into());
    }
    let (mut turns, mut at) = (Vec::new(), Some(top));
    while let Some(number) = at.filter(|number| *number >= lowest) {
        let turn = view.timeline.require_turn(number)?;
        at = turn.previous;
        turns.push(turn);
    }
    // What was picked or merged is done, and not below.
    if turns.last().is_none_or(|turn| turn.turn != lowest) { Err(no_such_line().into()) } else { Ok(turns) }
}

/// The turn at one end of a range, which is done here; the last one where nobody named it.
fn an_end(view: &View<'_>, words: &str) -> Result<u64> {
    let words = if words.is_empty() { "@" } else { words };
    let number = resolve(view, words)?;
    if number == 0 {
        return Err(Refusal::new(Code::Usage, "0 is the state before the first turn, not a turn")
            .hint("run 'oxundo squash' to make one commit of all that is not published")
            .into());
    }
    if view.place()?.undone.contains(&number) {
        return Err(Refusal::new(Code::Nothing, format!("turn {number} is undone already"))
            .hint(format!("run 'oxundo redo --to {number}' first, then the same command again"))
            .into());
    }
    if !is_done(view, number)? {
        return Err(no_such_line().into());
    }
    dropped::check(view, number)?;
    Ok(number)
}

/// The turns from the last one done down, as far as nothing is published and none has come from another branch.
fn unpublished(view: &View<'_>, top: u64) -> Result<Vec<Turn>> {
    let (mut turns, mut at) = (Vec::new(), Some(top));
    let copies = dropped::fates(view, top.saturating_sub(dropped::LOOKED_AT))?.copies;
    while let Some(number) = at {
        let turn = view.timeline.require_turn(number)?;
        // Or what the user, or somebody else, has made of them.
        let commits: Vec<_> = turn.commits.iter().map(|commit| commit.id).chain(copies.get(&number).copied()).collect();
        if turn.began_on != turn.branch || !Objects::new(view.repo).published(&commits)?.is_empty() {
            break;
        }
        at = turn.previous;
        turns.push(turn);
    }
    if turns.is_empty() {
        return Err(nothing(Op::Squash, "the last turn is published, or began on another branch").into());
    }
    Ok(turns)
}

struct Squash<'a, 'r> {
    view: &'a View<'r>,
    wish: &'a Wish,
    /// Newest first.
    turns: &'a [Turn],
    line: &'a Line,
}

impl Squash<'_, '_> {
    /// The new tip, which no ref holds yet.
    fn commit(&self) -> Result<ObjectId> {
        let (repo, Line { tip, commits, dirty, .. }) = (self.view.repo, self.line);
        let (tip, sign) = (*tip, self.view.sign()?);
        let parent = if self.folds() { self.line.base } else { self.dirty_commits(sign)? };
        let tree = Objects::new(repo).commit_tree(tip)?;
        let squashed = commits.iter().filter(|commit| self.folds() || !dirty.contains(&commit.id)).count();
        let unchanged = squashed == 0 || (squashed == 1 && self.wished().is_none() && self.wish.author.is_none());
        if unchanged && parent == Objects::new(repo).parents(tip)?.first().copied() {
            return Ok(tip);
        }
        let author = self.wish.author.as_deref().map(author).transpose()?;
        let parents: Vec<_> = parent.into_iter().collect();
        Objects::new(repo).make_commit_by(author.as_ref(), tree, &parents, &self.message(), sign)
    }

    fn folds(&self) -> bool {
        self.wish.dirty == DirtyCommits::Fold
    }

    /// The user's dirty commits as one line, without what the agents did between them.
    fn dirty_commits(&self, sign: Sign) -> Result<Option<ObjectId>> {
        let (repo, Line { base, commits, dirty, .. }) = (self.view.repo, self.line);
        let mut tip = *base;
        let at = |commit| Head { commit, ..Head::default() };
        Checkpoints::new(repo).merging(|merge| {
            for id in commits.iter().rev().map(|commit| &commit.id).filter(|id| dirty.contains(*id)) {
                let parent = Objects::new(repo).parents(*id)?.first().copied();
                if parent == tip {
                    tip = Some(*id);
                    continue;
                }
                let from = Objects::new(repo).head_tree(&at(parent))?;
                let mut overlaps = BTreeMap::new();
                let onto = Objects::new(repo).head_tree(&at(tip))?;
                let tree = Checkpoints::new(repo).merge_trees(
                    onto,
                    from,
                    Objects::new(repo).commit_tree(*id)?,
                    &mut overlaps,
                    merge,
                )?;
                if let Some((path, _)) = overlaps.first_key_value() {
                    let path = in_quotes(path.as_bstr());
                    let what = format!("your own changes in {path} build on what a turn did there");
                    return Err(Refusal::new(Code::Conflict, what)
                        .hint("pass --all to fold them into the one commit")
                        .paths(overlaps.keys().cloned())
                        .into());
                }
                if tree == onto {
                    continue;
                }
                let (author, message) = Objects::new(repo).author_and_message(*id)?;
                let parents: Vec<_> = tip.into_iter().collect();
                tip = Some(Objects::new(repo).make_commit_by(Some(&author), tree, &parents, &message, sign)?);
            }
            Ok(tip)
        })
    }

    /// The message that was asked for. An empty one asks for none, as with `run`.
    fn wished(&self) -> Option<&str> {
        self.wish.message.as_deref().map(str::trim).filter(|message| !message.is_empty())
    }

    fn message(&self) -> String {
        let mut oldest_first = self.turns.iter().rev();
        let body = match (self.wished(), self.turns) {
            (Some(message), _) => message.to_owned(),
            (None, [turn]) => turn.title(),
            (None, [last, .., first]) => {
                let titles: Vec<_> = oldest_first.by_ref().map(|turn| format!("- {}", turn.title())).collect();
                format!("{}: turns {} to {}\n\n{}", last.agent, first.turn, last.turn, titles.join("\n"))
            }
            (None, []) => String::new(),
        };
        let trailer = self.view.config().trailer();
        let trailer = trailer.trim();
        let mut agents: Vec<String> =
            self.turns.iter().filter(|turn| turn.made.is_none()).flat_map(Turn::assistants).collect();
        agents.sort_unstable();
        agents.dedup();
        if trailer.is_empty() || agents.is_empty() {
            return format!("{body}\n");
        }
        let trailers: String = agents.iter().map(|agent| format!("{trailer}: {agent}\n")).collect();
        format!("{body}\n\n{trailers}")
    }
}

/// As an author is written.
const AUTHOR: &str = "NAME <ADDRESS>";

/// Reads `Name <address>`.
fn author(text: &str) -> Result<Author> {
    let parts = text.trim().strip_suffix('>').and_then(|text| text.split_once('<'));
    match parts.map(|(name, email)| (name.trim(), email.trim())) {
        Some((name, email)) if !name.is_empty() && !email.is_empty() => {
            Ok(Author { name: name.to_owned(), email: email.to_owned(), date: None })
        }
        _ => Err(Refusal::new(Code::Usage, format!("'{}' is no author", sanitized(text)))
            .hint(instead(text, AUTHOR))
            .into()),
    }
}
