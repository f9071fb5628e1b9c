//! `oxundo squash`: one clean commit out of the commits of the last turns. The user's own dirty
//! commits stay commits of the user's, below it, or are folded in with `--all`. The last tree is
//! the same, so that index and worktree stay as they are. It is a turn of its own: undo takes it
//! back, and then the turns below it are undone as before.

use crate::cli::SquashArgs;
use crate::cmd::outcome::Outcome;
use crate::cmd::take_out::merge_trees;
use crate::cmd::travel::{described, merging, nothing};
use crate::cmd::{last_whole, resolve};
use crate::config::Config;
use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::objects::commit::Author;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored};
use crate::model::bytes::{quoted, sanitized};
use crate::model::checkpoint::Head;
use crate::model::guard;
use crate::model::plan::{BranchMove, Op, Plan};
use crate::model::turn::{CommitKind, Made, Turn};
use crate::turns;
use crate::ui::Ui;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::ByteSlice;
use std::collections::BTreeMap;

/// Makes one commit out of several.
///
/// # Errors
///
/// A refusal, with nothing changed, or a failure, with everything taken back.
pub fn run(repo: &Repo, ui: &Ui, args: &SquashArgs) -> Result<Outcome> {
    let _lock = repo.lock("squash")?;
    turns::settle(repo, ui)?;
    turns::check_idle(repo)?;
    repo.check_identity()?;
    let stored = Timelines::new(repo).timeline()?;
    let turns = chosen(repo, &stored, args)?;
    let head = Refs::new(repo).head()?;
    let base = stored.checkpoint(turns[turns.len() - 1].turn, Side::Before)?.head;
    let (Some(tip), true) = (head.commit, base.branch == head.branch) else {
        return Err(nothing(Op::Squash, "these turns made no commit on this branch").into());
    };
    let line = Objects::new(repo).commits_between(&base.commit.into_iter().collect::<Vec<_>>(), tip)?;
    guard::check(Op::Squash, head.stack(), &described(repo, &turns, &line)?)?;
    let job = Job { repo, args, turns: &turns, base: base.commit };
    let commit = job.commit(&line, tip)?;
    if commit == tip {
        return Err(nothing(Op::Squash, "it is one commit already").into());
    }
    let mut plan = Plan::empty(Op::Squash, head.clone());
    plan.head.to.commit = Some(commit);
    if let Some(name) = head.branch {
        plan.branches.push(BranchMove { name, from: Some(tip), to: Some(commit) });
    }
    let mut numbers: Vec<u64> = turns.iter().map(|turn| turn.turn).collect();
    numbers.reverse();
    let listed = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let words = if args.dry_run { "Would squash" } else { "Squashed" };
    let mut outcome = Outcome {
        what: format!("{words} {} commits of turns {listed}", line.len()),
        turns: numbers,
        turn: None,
        hints: vec![
            "'oxundo undo' takes it back; these turns can be undone after that, until the commit is published"
                .to_owned(),
        ],
        plan,
        rescue: None,
        conversations: Vec::new(),
        dry_run: args.dry_run,
    };
    if !args.dry_run {
        super::make(repo, ui, Made::Squash, format!("squash turns {listed}"), &mut outcome)?;
    }
    Ok(outcome)
}

/// The turns to squash, newest first.
fn chosen(repo: &Repo, stored: &Stored, args: &SquashArgs) -> Result<Vec<Turn>> {
    let stack = Refs::new(repo).head()?;
    let top = last_whole(repo, stored, stored.state.top(stack.stack()))?;
    let Some(top) = top else { return Err(nothing(Op::Squash, "no turn of this branch is done").into()) };
    let first = match &args.turns {
        None => None,
        Some(range) => {
            let (first, last) = range.split_once("..").unwrap_or((range, "@"));
            let last = resolve(repo, stored, if last.is_empty() { "@" } else { last })?;
            if last != top {
                return Err(Refusal::new(Code::Usage, format!("turn {last} is not the last one done: {top} is"))
                    .hint(format!("run 'oxundo squash {first}..{top}', or undo the later turns first"))
                    .into());
            }
            Some(resolve(repo, stored, first)?)
        }
    };
    let mut turns = Vec::new();
    let mut at = Some(top);
    while let Some(number) = at {
        let turn = stored.known_turn(number)?;
        // Without a range, as far as nothing is published and all is on this branch.
        let commits: Vec<_> = turn.commits.iter().map(|commit| commit.id).collect();
        if first.is_none() && (turn.began_on != stack.branch || !Objects::new(repo).published(&commits)?.is_empty()) {
            break;
        }
        at = turn.previous;
        turns.push(turn);
        if first == Some(number) {
            break;
        }
    }
    if turns.is_empty() || first.is_some_and(|first| turns.iter().all(|turn| turn.turn != first)) {
        return Err(Refusal::new(Code::Branch, "there is no such line of turns on this branch")
            .hint("run 'oxundo log' to see its turns")
            .into());
    }
    Ok(turns)
}

struct Job<'a> {
    repo: &'a Repo,
    args: &'a SquashArgs,
    /// Newest first.
    turns: &'a [Turn],
    base: Option<ObjectId>,
}

impl Job<'_> {
    /// The new tip, which no ref holds yet.
    fn commit(&self, line: &[ObjectId], tip: ObjectId) -> Result<ObjectId> {
        let repo = self.repo;
        let sign = Config(repo).sign()?;
        let parent = if self.args.all { self.base } else { self.dirty_commits(line, sign)? };
        let tree = Objects::new(repo).commit_tree(tip)?;
        let squashed = line.iter().filter(|id| self.args.all || !self.is_dirty(**id)).count();
        let unchanged = squashed == 0 || (squashed == 1 && self.args.message.is_none() && self.args.author.is_none());
        if unchanged && parent == Objects::new(repo).parents(tip)?.first().copied() {
            return Ok(tip);
        }
        let author = self.args.author.as_deref().map(author).transpose()?;
        let parents: Vec<_> = parent.into_iter().collect();
        Objects::new(repo).make_commit_by(author.as_ref(), tree, &parents, &self.message(), sign)
    }

    fn is_dirty(&self, id: ObjectId) -> bool {
        let mut commits = self.turns.iter().flat_map(|turn| &turn.commits);
        commits.any(|commit| commit.id == id && commit.kind == CommitKind::Dirty)
    }

    /// The user's dirty commits, one on the other, without what the agents did between them.
    fn dirty_commits(&self, line: &[ObjectId], sign: bool) -> Result<Option<ObjectId>> {
        let repo = self.repo;
        let mut tip = self.base;
        let at = |commit| Head { branch: None, commit };
        merging(repo, |merge| {
            for id in line.iter().rev().filter(|id| self.is_dirty(**id)) {
                let parent = Objects::new(repo).parents(*id)?.first().copied();
                if parent == tip {
                    tip = Some(*id);
                    continue;
                }
                let from = Objects::new(repo).head_tree(&at(parent))?;
                let mut overlaps = BTreeMap::new();
                let onto = Objects::new(repo).head_tree(&at(tip))?;
                let tree = merge_trees(repo, onto, from, Objects::new(repo).commit_tree(*id)?, &mut overlaps, merge)?;
                if let Some((path, _)) = overlaps.first_key_value() {
                    let path = quoted(path.as_bstr());
                    let what = format!("your own changes in '{path}' build on what a turn did there");
                    return Err(Refusal::new(Code::Conflict, what)
                        .hint("pass --all to fold them into the one commit")
                        .paths(overlaps.keys().map(|path| quoted(path.as_bstr())))
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

    fn message(&self) -> String {
        let mut oldest_first = self.turns.iter().rev();
        let body = match (&self.args.message, self.turns) {
            (Some(message), _) => message.trim().to_owned(),
            (None, [turn]) => turn.title(),
            (None, [last, .., first]) => {
                let titles: Vec<_> = oldest_first.by_ref().map(|turn| format!("- {}", turn.title())).collect();
                format!("{}: turns {} to {}\n\n{}", last.agent, first.turn, last.turn, titles.join("\n"))
            }
            (None, []) => String::new(),
        };
        let trailer = Config(self.repo).trailer();
        let trailer = trailer.trim();
        let mut agents: Vec<&str> =
            self.turns.iter().filter(|turn| turn.made.is_none()).map(|turn| turn.agent.as_str()).collect();
        agents.sort_unstable();
        agents.dedup();
        if trailer.is_empty() || agents.is_empty() {
            return format!("{body}\n");
        }
        let trailers: String = agents.iter().map(|agent| format!("{trailer}: {agent}\n")).collect();
        format!("{body}\n\n{trailers}")
    }
}

/// Reads `Name <address>`.
fn author(text: &str) -> Result<Author> {
    let parts = text.trim().strip_suffix('>').and_then(|text| text.split_once('<'));
    match parts.map(|(name, email)| (name.trim(), email.trim())) {
        Some((name, email)) if !name.is_empty() && !email.is_empty() => {
            Ok(Author { name: name.to_owned(), email: email.to_owned(), date: None })
        }
        _ => Err(Refusal::new(Code::Usage, format!("'{}' is no author", sanitized(text)))
            .hint("write it as 'Name <address>'")
            .into()),
    }
}
