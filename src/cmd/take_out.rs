//! `oxundo undo --only`, `--revert` and `-- PATHSPEC`: turns are taken out by merging their
//! inverse into the worktree, the index and, where they made commits, into a commit on top of
//! HEAD. Nothing is rewritten, later turns stay. What is done is recorded as a turn of oxundo's
//! own, so that undo walks over it as over any other; redo right after it brings all back.

use crate::cli::UndoArgs;
use crate::cmd::outcome::Outcome;
use crate::cmd::travel::{Route, merging, nothing, replaced};
use crate::cmd::{last_whole, resolve};
use crate::config::Config;
use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::Capture;
use crate::git::index::Index;
use crate::git::index::pathspec::Selection;
use crate::git::objects::Objects;
use crate::git::objects::tree::tree_change;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored};
use crate::model::bytes::sanitized;
use crate::model::checkpoint::{Change, Checkpoint, Delta, FileState, IndexEntry};
use crate::model::merge;
use crate::model::merge::{Carried, Cause, Edits, Merge, Merged, Verdict};
use crate::model::plan::{BranchMove, Op, Plan, parents};
use crate::model::turn::{Made, Turn};
use crate::model::walk::{Leg, conflict, travel};
use crate::turns;
use crate::ui::Ui;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeMap;

/// Takes turns out, whole or some of their paths.
///
/// # Errors
///
/// A refusal, with nothing changed, or a failure, with everything taken back.
pub fn run(repo: &Repo, ui: &Ui, args: &UndoArgs) -> Result<Outcome> {
    let _lock = repo.lock("undo")?;
    turns::settle(repo, ui)?;
    turns::check_idle(repo)?;
    let stored = Timelines::new(repo).timeline()?;
    let taken = if let Some(text) = &args.only {
        vec![on_this_branch(repo, &stored, text)?]
    } else {
        let route = Route::find(repo, &stored, Op::Undo, &args.distance)?;
        route.turns.into_iter().filter(|turn| !turn.is_part()).collect()
    };
    // Later turns' work is there to stay, whatever is to become of the user's edits.
    let later_stay = args.only.is_some() || args.revert;
    if later_stay && args.distance.edits == Some(Edits::Overwrite) {
        return Err(Refusal::new(Code::Usage, "--edits=overwrite would take out later turns' work too")
            .hint("leave it out: edits are merged where they go together")
            .into());
    }
    let edits = match Config(repo).edits_or(args.distance.edits)? {
        Edits::Overwrite if later_stay => Edits::Merge,
        edits => edits,
    };
    let capture = turns::present(repo, &stored)?;
    let job = Job { repo, stored: &stored, taken: &taken, capture: &capture, edits };
    let plan = job.plan(args).map_err(|error| job.with_later_turns(error, later_stay))?;
    let numbers: Vec<u64> = taken.iter().map(|turn| turn.turn).collect();
    let listed = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let (made, message) = if args.pathspecs.is_empty() {
        (Made::TakenOut(numbers.clone()), format!("take out turn {listed}"))
    } else {
        let paths: Vec<_> = args.pathspecs.iter().map(|path| path.to_string_lossy()).collect();
        (Made::Part(numbers.clone()), format!("take out {} of turn {listed}", paths.join(" ")))
    };
    let whose = match &taken[..] {
        [turn] => format!("turn {} ({})", turn.turn, sanitized(&turn.label())),
        _ => format!("turns {listed}"),
    };
    let part = if args.pathspecs.is_empty() { "" } else { "parts of " };
    let mut outcome = Outcome {
        what: format!("{} {part}{whose}", if args.distance.dry_run { "Would take out" } else { "Took out" }),
        turns: numbers,
        turn: None,
        hints: vec!["'oxundo redo' brings it back".to_owned()],
        plan,
        rescue: None,
        conversations: crate::cmd::conversation::described(&taken),
        dry_run: args.distance.dry_run,
    };
    if !outcome.dry_run {
        super::make(repo, ui, made, message, &mut outcome)?;
    }
    Ok(outcome)
}

/// A turn that is done on the branch that HEAD is on.
fn on_this_branch(repo: &Repo, stored: &Stored, text: &str) -> Result<Turn> {
    let wanted = resolve(repo, stored, text)?;
    let head = Refs::new(repo).head()?;
    let mut at = stored.state.top(head.stack());
    while let Some(number) = at {
        let turn = stored.known_turn(number)?;
        if number == wanted {
            return Ok(turn);
        }
        at = turn.previous;
    }
    if !stored.state.is_undone(wanted) && stored.turn(wanted)?.is_some_and(|turn| turn.branch == head.branch) {
        return Err(replaced(wanted).into());
    }
    let refusal = if wanted == 0 {
        Refusal::new(Code::Usage, "0 is the state before the first turn, not a turn")
    } else if stored.state.is_undone(wanted) {
        Refusal::new(Code::Nothing, format!("turn {wanted} is undone already"))
    } else {
        Refusal::new(Code::Branch, format!("turn {wanted} is not among the turns of this branch"))
    };
    Err(refusal.hint("run 'oxundo log --all' to see the turns").into())
}

struct Job<'a> {
    repo: &'a Repo,
    stored: &'a Stored<'a>,
    taken: &'a [Turn],
    capture: &'a Capture,
    edits: Edits,
}

impl Job<'_> {
    fn plan(&self, args: &UndoArgs) -> Result<Plan> {
        let now = &self.capture.checkpoint;
        let mut selection = match &args.pathspecs[..] {
            [] => None,
            pathspecs => Some(Index::new(self.repo).selection(pathspecs)?),
        };
        let mut legs = Vec::new();
        let mut trees = Vec::new();
        for turn in self.taken {
            let before = self.stored.checkpoint(turn.turn, Side::Before)?;
            let after = self.stored.checkpoint(turn.turn, Side::After)?;
            // The user's work before the turn is not the turn's.
            let start = turns::with_dirty_commit(self.repo, &before, turn.dirty_commit)?;
            let mut delta = Checkpoints::new(self.repo).delta(turn.turn, &start, &after)?.inverse();
            delta.branches.clear();
            (delta.head, delta.stash) = (None, None);
            match &mut selection {
                Some(selection) => restrict(&mut delta, selection),
                None => trees.push((
                    turn,
                    Objects::new(self.repo).head_tree(&after.head)?,
                    Objects::new(self.repo).head_tree(&start.head)?,
                )),
            }
            legs.push(Leg { turn: turn.turn, delta, carried: Carried::default() });
        }
        if selection.is_some() && legs.iter().all(|leg| leg.delta.files.is_empty() && leg.delta.aside.is_empty()) {
            let turn = self.taken[0].turn;
            return Err(Refusal::new(Code::NotFound, format!("turn {turn} changed no file that the pathspec matches"))
                .hint(format!("run 'oxundo show --stat {turn}' to see the turn's files"))
                .into());
        }
        let mut facts = Checkpoints::new(self.repo).facts(&legs, now, &self.capture.index)?;
        facts.edited = self.edited(now)?;
        merging(self.repo, |merge| {
            let mut plan = travel(Op::Undo, &legs, &facts, self.edits, merge)?;
            self.commit(&mut plan, &trees, merge)?;
            if plan.is_empty() {
                return Err(nothing(Op::Undo, "what the turn changed is taken out already").into());
            }
            Ok(plan)
        })
    }

    /// What the user edited since the last turn.
    fn edited(&self, now: &Checkpoint) -> Result<BTreeMap<BString, Change<Option<FileState>>>> {
        let top = last_whole(self.repo, self.stored, self.stored.state.top(now.head.stack()))?;
        let Some(top) = top else { return Ok(BTreeMap::new()) };
        let last = self.stored.checkpoint(top, Side::After)?;
        Checkpoints::new(self.repo).edited(&[(&last, now)], now, &last)
    }

    /// A commit for each turn that made some, on top of HEAD.
    fn commit(&self, plan: &mut Plan, trees: &[(&Turn, ObjectId, ObjectId)], merge: &mut Merge<'_>) -> Result<()> {
        let mut tree = Objects::new(self.repo).head_tree(&plan.head.from)?;
        let mut overlaps = BTreeMap::new();
        for (turn, from, to) in trees {
            let next = merge_trees(self.repo, tree, *from, *to, &mut overlaps, merge)?;
            if next != tree && overlaps.is_empty() {
                self.repo.check_identity()?;
                let message = format!("Take out turn {}: {}\n\n{}", turn.turn, turn.title(), taken_commits(turn));
                let parents: Vec<_> = plan.head.to.commit.into_iter().collect();
                let commit =
                    Objects::new(self.repo).make_commit(next, &parents, &message, Config(self.repo).sign()?)?;
                plan.head.to.commit = Some(commit);
            }
            tree = next;
        }
        if !overlaps.is_empty() {
            return Err(conflict(&overlaps, Op::Undo, Edits::Overwrite).into());
        }
        if let (Some(name), true) = (&plan.head.from.branch, plan.head.from.commit != plan.head.to.commit) {
            plan.branches.push(BranchMove { name: name.clone(), from: plan.head.from.commit, to: plan.head.to.commit });
        }
        Ok(())
    }

    /// A conflict, with the later turn that changed each path.
    fn with_later_turns(&self, error: anyhow::Error, later_stay: bool) -> anyhow::Error {
        let mut refusal = match error.downcast::<Refusal>() {
            Ok(refusal) if refusal.code == Code::Conflict => refusal,
            Ok(refusal) => return refusal.into(),
            Err(error) => return error,
        };
        if later_stay {
            refusal.hints.retain(|hint| !hint.contains("--edits=overwrite"));
        }
        let oldest = self.taken.iter().map(|turn| turn.turn).min().unwrap_or_default();
        let mut at = self.stored.state.top(self.capture.checkpoint.head.stack());
        while let Some(number) = at.filter(|number| *number > oldest) {
            let Ok(turn) = self.stored.known_turn(number) else { break };
            let files = self.stored.turn_files(number).unwrap_or_default();
            let is_taken = self.taken.iter().any(|taken| taken.turn == number);
            let shared = files.iter().find(|file| refusal.paths.contains(&file.path)).filter(|_| !is_taken);
            if let Some(file) = shared {
                let label = sanitized(&turn.label());
                refusal.message.push_str(&format!("; turn {number} ({label}) changed '{}' too", file.path));
            }
            at = turn.previous;
        }
        refusal.into()
    }
}

/// A tree with the change from one tree to another merged in, by the rule for index entries.
/// What overlaps is noted.
///
/// # Errors
///
/// When a tree cannot be read or written.
pub fn merge_trees(
    repo: &Repo,
    tree: ObjectId,
    from: ObjectId,
    to: ObjectId,
    overlaps: &mut BTreeMap<BString, Cause>,
    merge: &mut Merge<'_>,
) -> Result<ObjectId> {
    let mut changes = Vec::new();
    for (path, change) in Objects::new(repo).entry_changes(from, to)? {
        let now = Objects::new(repo).plain_entries(tree, path.as_bstr())?;
        let next = match merge::entries(&now, &change) {
            Verdict::Becomes(next) => Ok(next),
            Verdict::Overlap(_) => Err(Cause::Committed),
            Verdict::Merge(next, blobs) => match merge(path.as_bstr(), blobs)? {
                Merged::Clean(id) => Ok(next.into_iter().map(|entry| IndexEntry { id, ..entry }).collect()),
                Merged::Overlap(cause) => Err(cause),
            },
        };
        match next {
            Ok(next) => changes.push(tree_change(&path, &next)),
            Err(cause) => drop(overlaps.insert(path, cause)),
        }
    }
    Objects::new(repo).edited_tree(tree, &changes)
}

fn restrict(delta: &mut Delta, selection: &mut Selection<'_>) {
    delta.index.clear();
    delta.files.retain(|path, _| selection.takes(path.as_bstr()));
    delta.aside.retain(|path, _| selection.takes(path.as_bstr()));
    let Delta { files, directories, .. } = delta;
    // A directory goes with the files in it.
    directories.retain(|path, _| {
        selection.takes(path.as_bstr())
            || files.keys().any(|file| parents(file.as_bstr()).any(|parent| parent == path.as_bstr()))
    });
}

fn taken_commits(turn: &Turn) -> String {
    let commits = turn.commits.iter().filter(|commit| Some(commit.id) != turn.dirty_commit);
    commits.map(|commit| format!("This takes back commit {}.\n", commit.id)).collect()
}
