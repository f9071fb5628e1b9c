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
use crate::model::plan::{BranchMove, Op, Plan};
use crate::model::turn::{CommitKind, Made, Turn, listed};
use crate::ops::made::{PlannedTurn, Words};
use crate::ops::resolve::resolve;
use crate::ops::revert::on_this_branch;
use crate::ops::turn::check_not_in_progress;
use crate::ops::undo::leaving::described;
use crate::ops::undo::range::{begins_with_the_older, no_such_line, nothing};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::ByteSlice;
use std::collections::BTreeMap;

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
    let head = &view.head;
    let base = view.timeline.undone_to(turns[turns.len() - 1].turn)?.head;
    let (Some(tip), true) = (head.commit, base.branch == head.branch) else {
        return Err(nothing(Op::Squash, "these turns made no commit on this branch").into());
    };
    let hidden: Vec<_> = base.commit.into_iter().collect();
    let line = Objects::new(view.repo).commits_between(&hidden, tip)?;
    if let Err(refusal) = guard::check(Op::Squash, head.stack(), &described(view, Op::Squash, &turns, &line, &[])?) {
        let later = later_turns(view, &turns, tip)?;
        let hint = later.map(|first| format!("run 'oxundo squash {first}..' for the turns above it"));
        return Err(refusal.hints(hint).into());
    }
    let squash = Squash { view, wish, turns: &turns, base: base.commit };
    let commit = squash.commit(&line, tip)?;
    if commit == tip {
        return Err(nothing(Op::Squash, "it is one commit already").into());
    }
    let mut plan = Plan::empty(Op::Squash, head.clone());
    plan.head.to.commit = Some(commit);
    if let Some(name) = &head.branch {
        plan.branches.push(BranchMove { name: name.clone(), from: Some(tip), to: Some(commit) });
    }
    let numbers: Vec<u64> = turns.iter().rev().map(|turn| turn.turn).collect();
    let listed = listed(&numbers);
    let hint = "'oxundo undo' takes it back; these turns can be undone after that, until the commit is published";
    let words = Words {
        message: format!("squash turns {listed}"),
        verbs: ["Squashed", "Would squash"],
        object: format!("{} commits of turns {listed}", line.len()),
        hint: hint.to_owned(),
    };
    Ok(PlannedTurn { turns: numbers, ..PlannedTurn::new(plan, view.present()?, Made::Squash, words) })
}

/// How many turns are looked through for those above what is in the way.
const MOST_LATER: usize = 64;

/// The first of the later ones of these turns, the newest of which comes first, that have nothing in their way.
fn later_turns(view: &View<'_>, turns: &[Turn], tip: ObjectId) -> Result<Option<u64>> {
    let mut free = None;
    for end in 1..turns.len().min(MOST_LATER) {
        let base = view.timeline.undone_to(turns[end - 1].turn)?.head;
        let hidden: Vec<_> = base.commit.into_iter().collect();
        let line = Objects::new(view.repo).commits_between(&hidden, tip)?;
        let described = described(view, Op::Squash, &turns[..end], &line, &[])?;
        if base.branch != view.head.branch || guard::check(Op::Squash, view.head.stack(), &described).is_err() {
            break;
        }
        free = Some(turns[end - 1].turn);
    }
    Ok(free)
}

/// The turns to squash, newest first.
fn chosen(view: &View<'_>, range: Option<&str>) -> Result<Vec<Turn>> {
    let Some(top) = view.last_whole()? else {
        return Err(nothing(Op::Squash, "no turn of this branch is done").into());
    };
    let first = match range {
        None => None,
        Some(range) => {
            let (first, end) = range.split_once("..").unwrap_or((range, ""));
            let named = |words: &str| resolve(view, if words.is_empty() { "@" } else { words });
            let (last, lowest) = (named(end)?, named(first)?);
            // The last one done stands for an end that nobody named.
            if lowest == 0 || (lowest > last && end.is_empty()) {
                on_this_branch(view, first)?;
            }
            if lowest > last {
                return Err(begins_with_the_older(first, end).into());
            }
            if last != top {
                return Err(Refusal::new(Code::Usage, format!("turn {last} is not the last one done: {top} is"))
                    .hint(format!("run 'oxundo squash {first}..{top}', or undo the later turns first"))
                    .into());
            }
            Some(lowest)
        }
    };
    let mut turns = Vec::new();
    let mut at = Some(top);
    while let Some(number) = at {
        let turn = view.timeline.require_turn(number)?;
        // Without a range: as far down as nothing is published and all is on this branch.
        let commits: Vec<_> = turn.commits.iter().map(|commit| commit.id).collect();
        if first.is_none()
            && (turn.began_on != view.head.branch || !Objects::new(view.repo).published(&commits)?.is_empty())
        {
            break;
        }
        at = turn.previous;
        turns.push(turn);
        if first == Some(number) {
            break;
        }
    }
    if first.is_none() && turns.is_empty() {
        return Err(nothing(Op::Squash, "the last turn is published, or began on another branch").into());
    }
    if first.is_some_and(|first| turns.iter().all(|turn| turn.turn != first)) {
        return Err(no_such_line().into());
    }
    Ok(turns)
}

struct Squash<'a, 'r> {
    view: &'a View<'r>,
    wish: &'a Wish,
    /// Newest first.
    turns: &'a [Turn],
    base: Option<ObjectId>,
}

impl Squash<'_, '_> {
    /// The new tip, which no ref holds yet.
    fn commit(&self, line: &[ObjectId], tip: ObjectId) -> Result<ObjectId> {
        let repo = self.view.repo;
        let sign = self.view.sign()?;
        let parent = if self.folds() { self.base } else { self.dirty_commits(line, sign)? };
        let tree = Objects::new(repo).commit_tree(tip)?;
        let squashed = line.iter().filter(|id| self.folds() || !self.is_dirty(**id)).count();
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

    fn is_dirty(&self, id: ObjectId) -> bool {
        let mut commits = self.turns.iter().flat_map(|turn| &turn.commits);
        commits.any(|commit| commit.id == id && commit.kind == CommitKind::Dirty)
    }

    /// The user's dirty commits as one line, without what the agents did between them.
    fn dirty_commits(&self, line: &[ObjectId], sign: Sign) -> Result<Option<ObjectId>> {
        let repo = self.view.repo;
        let mut tip = self.base;
        let at = |commit| Head { commit, ..Head::default() };
        Checkpoints::new(repo).merging(|merge| {
            for id in line.iter().rev().filter(|id| self.is_dirty(**id)) {
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
