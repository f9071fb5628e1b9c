//! Turns that the user dropped out of the middle of a line, in an interactive rebase or by picking only later ones. The line
//! leads on below them, and they are not on it any more: what they did is not there.

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::objects::alike::{Features, Likeness, Seen};
use crate::git::objects::history::Newest;
use crate::model::place::Node;
use crate::model::turn::{CommitKind, Turn};
use crate::ops::anew::{Anew, Original, Rest, Work};
use crate::ops::switching::stash_of;
use crate::ops::turn::commit::uncommitted;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// How many commits are looked at for a copy of a turn's last one.
const NEAR: usize = 256;

/// How far down HEAD's history turns are looked for, in commits.
const FAR: usize = 1024;

/// HEAD's history, as far as somebody has asked.
struct History<'o, 'r> {
    seen: HashSet<ObjectId>,
    rest: Newest<'o, 'r>,
}

impl History<'_, '_> {
    /// Whether a commit is in it, or too far down to tell.
    fn may_have(&mut self, commit: ObjectId) -> Result<bool> {
        while !self.seen.contains(&commit) {
            if self.seen.len() >= FAR {
                return Ok(true);
            }
            if !self.rest.may_have(commit) {
                return Ok(false);
            }
            self.seen.extend(self.rest.take(16)?);
        }
        Ok(true)
    }
}

/// How many turns are looked at at once for those that were dropped.
pub const LOOKED_AT: u64 = 64;

/// How many of the turns that the record of the last one done counts are dropped since.
pub fn dropped_since(view: &View<'_>, top: &Turn) -> Result<u64> {
    if stands_on_its_own(view, top.turn)? {
        return Ok(0);
    }
    let lowest = top.turn.saturating_sub(LOOKED_AT);
    let dropped = dropped(view, lowest)?;
    let (mut there, mut at, mut is_on_branch) = (0, Some(top.clone()), !dropped.is_empty());
    while let Some(turn) = at.take_if(|turn| is_on_branch && turn.turn >= lowest) {
        there += u64::from(!turn.is_part() && !dropped.contains(&turn.turn));
        is_on_branch = turn.began_on == turn.branch;
        at = turn.previous.map(|below| view.timeline.require_turn(below)).transpose()?;
    }
    Ok(top.depth.saturating_sub(at.map_or(0, |below| below.depth)).saturating_sub(there))
}

/// Whether HEAD stands on the very commit of the last turn done: nothing below it was dropped since.
pub fn stands_on_its_own(view: &View<'_>, top: u64) -> Result<bool> {
    let (objects, to) = (Objects::new(view.repo), view.timeline.node(top)?.to);
    let (Some(head), Some(to)) = (view.head.commit, to) else { return Ok(true) };
    if head == to {
        return Ok(true);
    }
    History { seen: HashSet::new(), rest: objects.newest_first(head) }.may_have(to)
}

/// What became of the turns of HEAD's line.
#[derive(Debug, Default)]
pub struct Fates {
    /// Those that were dropped.
    pub dropped: BTreeSet<u64>,
    /// The commits that stand for others' last ones: the user has made these anew, or made one of several.
    pub copies: BTreeMap<u64, ObjectId>,
}

/// The turns of HEAD's line that were dropped, down to one.
pub fn dropped(view: &View<'_>, lowest: u64) -> Result<BTreeSet<u64>> {
    Ok(fates(view, lowest)?.dropped)
}

/// What became of the turns of HEAD's line, down to one.
pub fn fates(view: &View<'_>, lowest: u64) -> Result<Fates> {
    let Some(head) = view.head.commit else { return Ok(Fates::default()) };
    let line = Line::of(view, head, lowest)?;
    let Line { lost, own, .. } = &line;
    if lost.is_empty() {
        return Ok(Fates::default());
    }
    let objects = Objects::new(view.repo);
    let seen = commits_above(&objects, head, lost.last(), own)?;
    let (anew, ends) = (Anew::new(&objects, &view.timeline), ends_of(&objects, lost));
    let originals = Original::each_once(ends.iter());
    let pairs = anew.copies(&originals, &seen, |_, _| true)?;
    let copy = |node: &Node| {
        let original = originals.iter().position(|original| Some(original.seen.id) == node.to)?;
        Some(seen[*pairs.get(&original)?].id)
    };
    let mut found: Vec<Option<ObjectId>> = lost.iter().map(copy).collect();
    let taken_off = line.rewrites(&objects)?;
    let rewriters = line.rewriters(&objects, anew, &taken_off)?;
    let rest = Rest::of(anew, &originals, &seen, &pairs);
    look_in(&rest, lost, &mut found, |at| rewriters[at].is_none())?;
    for at in 0..lost.len() {
        // It is where the turn is that rewrote it, which is above it.
        let by = rewriters[at].and_then(|by| by.stands(&found));
        found[at] = found[at].or(by);
    }
    // What was rewritten may be there though that is not.
    look_in(&rest, lost, &mut found, |_| true)?;
    if found.contains(&None) {
        look_in_both(anew, &originals, &seen, &taken_off, lost, &mut found)?;
    }
    let all: Vec<&Seen> = seen.iter().collect();
    for (node, found) in lost.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
        *found = anew.squash_of(node, head, &all)?;
    }
    // What HEAD stands on may not be known by its commits.
    let is_known = line.there.first().is_some_and(|node| node.turn > lost[0].turn) || found[0].is_some();
    if !is_known {
        return Ok(Fates::default());
    }
    let mut fates = Fates::default();
    for (node, found) in lost.iter().zip(found) {
        match found {
            Some(commit) => drop(fates.copies.insert(node.turn, commit)),
            None => drop(fates.dropped.insert(node.turn)),
        }
    }
    Ok(fates)
}

/// Looks for turns of which nothing is found yet in commits that several may have become, each run of them by itself.
fn look_in(
    rest: &Rest<'_, '_>,
    lost: &[Node],
    found: &mut [Option<ObjectId>],
    is_open: impl Fn(usize) -> bool,
) -> Result<()> {
    let mut at = 0;
    while at < lost.len() {
        let run: Vec<usize> = (at..lost.len()).take_while(|at| found[*at].is_none() && is_open(*at)).collect();
        let works: Vec<Work> = run.iter().filter_map(|at| Work::of(&lost[*at])).collect();
        for (which, commit) in rest.find_most(&works)? {
            found[run[which]] = Some(commit);
        }
        at += run.len().max(1);
    }
    Ok(())
}

/// Looks for turns of which a part is in what later ones rewrote, and a part is not.
fn look_in_both(
    anew: Anew<'_, '_>,
    originals: &[&Original],
    seen: &[Seen],
    rewrites: &[Rewrite<'_>],
    lost: &[Node],
    found: &mut [Option<ObjectId>],
) -> Result<()> {
    let mut stands = BTreeMap::new();
    let mut all = Vec::new();
    for rewrite in rewrites.iter().rev() {
        let Some(by) = rewrite.by.stands(found) else { continue };
        stands.extend(rewrite.gone.iter().map(|commit| (commit.id, by)));
        all.extend(rewrite.gone.iter().cloned());
    }
    if all.is_empty() {
        return Ok(());
    }
    all.extend(seen.iter().cloned());
    let pairs = anew.copies(originals, &all, |_, _| true)?;
    look_in(&Rest::of(anew, originals, &all, &pairs), lost, found, |_| true)?;
    for commit in found.iter_mut().flatten() {
        *commit = *stands.get(commit).unwrap_or(commit);
    }
    Ok(())
}

/// The commits that are a turn's alone: what it found may be another's, made anew.
fn made(turn: &Turn) -> impl Iterator<Item = ObjectId> {
    turn.commits.iter().filter(|commit| commit.kind != CommitKind::Found).map(|commit| commit.id)
}

/// The turns of HEAD's line that moved HEAD, the newest first.
struct Line {
    /// Those whose end is in HEAD's history.
    there: Vec<Node>,
    /// Those of whose end it knows nothing.
    lost: Vec<Node>,
    /// The commits of those that are there.
    own: HashSet<ObjectId>,
}

/// A turn that went back to below where others ended, as one that amends their commit does.
#[derive(Clone, Copy)]
enum Rewriter {
    /// It is there, and ended on this commit.
    There(ObjectId),
    /// It is this one of those that are lost.
    Lost(usize),
}

impl Rewriter {
    /// The commit that stands for what it rewrote, by what was found of those that are lost.
    fn stands(self, found: &[Option<ObjectId>]) -> Option<ObjectId> {
        match self {
            Self::There(commit) => Some(commit),
            Self::Lost(above) => found[above],
        }
    }
}

/// What a turn rewrote.
struct Rewrite<'l> {
    by: Rewriter,
    turn: &'l Node,
    /// The commits that it took off the branch, the newest first.
    gone: Vec<Seen>,
}

impl Line {
    fn of(view: &View<'_>, head: ObjectId, lowest: u64) -> Result<Self> {
        let objects = Objects::new(view.repo);
        let mut history = History { seen: HashSet::new(), rest: objects.newest_first(head) };
        let mut line = Self { there: Vec::new(), lost: Vec::new(), own: HashSet::new() };
        // Where the history goes on of what stands above: a turn may have rewritten what was below it.
        let (mut above, mut at) = (Some(head), view.top()?);
        while let (Some(upper), Some(number)) = (above, at.filter(|number| *number >= lowest)) {
            let node = view.timeline.node(number)?;
            at = node.previous;
            let Some(to) = node.to.filter(|_| node.moved()) else { continue };
            let turn = view.timeline.require_turn(number)?;
            if to == upper || history.may_have(to)? || objects.is_ancestor(to, upper)? {
                above = node.from;
                line.own.extend(made(&turn));
                line.there.push(node);
            } else {
                line.lost.push(node);
            }
            if turn.began_on != turn.branch {
                break;
            }
        }
        Ok(line)
    }

    /// What its turns rewrote, the oldest turn first.
    fn rewrites(&self, objects: &Objects<'_>) -> Result<Vec<Rewrite<'_>>> {
        let there = self.there.iter().filter_map(|node| Some((node, Rewriter::There(node.to?))));
        let lost = self.lost.iter().enumerate().map(|(at, node)| (node, Rewriter::Lost(at)));
        let mut rewrites = Vec::new();
        for (turn, by) in there.chain(lost) {
            let (Some(from), Some(to)) = (turn.from, turn.to) else { continue };
            if self.below(turn).is_empty() || objects.is_ancestor(from, to)? {
                continue;
            }
            let mut gone = objects.commits_between(&[to], from)?;
            gone.truncate(MANY_GONE);
            let gone = gone.into_iter().map(|commit| objects.seen(commit)).collect();
            rewrites.push(Rewrite { by, turn, gone });
        }
        rewrites.sort_by_key(|rewrite| rewrite.turn.turn);
        Ok(rewrites)
    }

    /// Those of the lost turns that are below one.
    fn below(&self, turn: &Node) -> &[Node] {
        let first = self.lost.iter().position(|lost| lost.turn < turn.turn).unwrap_or(self.lost.len());
        &self.lost[first..]
    }

    /// For each of the lost turns the next one above that went back to below where it ended, be it made anew by then.
    fn rewriters(
        &self,
        objects: &Objects<'_>,
        anew: Anew<'_, '_>,
        rewrites: &[Rewrite<'_>],
    ) -> Result<Vec<Option<Rewriter>>> {
        let mut found = vec![None; self.lost.len()];
        for Rewrite { by, turn, gone } in rewrites {
            let below = self.below(turn);
            let first = self.lost.len() - below.len();
            for (at, is_gone) in (first..).zip(went_with(objects, anew, gone, below)?) {
                found[at] = found[at].or(Some(*by).filter(|_| is_gone));
            }
        }
        Ok(found)
    }
}

/// How many commits at most are looked at of those that a turn went back to below.
const MANY_GONE: usize = 64;

/// Whether each of the turns below another one was in what that one took off the branch, be it made anew by then, or one with others.
fn went_with(objects: &Objects<'_>, anew: Anew<'_, '_>, gone: &[Seen], below: &[Node]) -> Result<Vec<bool>> {
    let ends = ends_of(objects, below);
    let originals: Vec<&Original> = ends.iter().collect();
    let pairs = anew.copies(&originals, gone, |_, _| true)?;
    let itself = |id: ObjectId| gone.iter().any(|commit| commit.id == id).then_some(id);
    let copy = |at: usize| pairs.get(&at).map(|commit| gone[*commit].id).or_else(|| itself(ends[at].seen.id));
    let mut found: Vec<Option<ObjectId>> = (0..ends.len()).map(copy).collect();
    look_in(&Rest::of(anew, &originals, gone, &pairs), below, &mut found, |_| true)?;
    Ok(found.iter().map(Option::is_some).collect())
}

/// The commits of HEAD's history that may be made of those of turns, down to where the lowest one of these began.
fn commits_above(
    objects: &Objects<'_>,
    head: ObjectId,
    lowest: Option<&Node>,
    own: &HashSet<ObjectId>,
) -> Result<Vec<Seen>> {
    let began: Vec<ObjectId> = lowest.into_iter().flat_map(|node| [node.from, node.dirty]).flatten().collect();
    let (mut seen, mut is_merged) = (Vec::new(), false);
    for commit in objects.newest_first(head).take(NEAR)? {
        if began.contains(&commit) {
            if !is_merged {
                break;
            }
            // Of another side of a merge there may be more.
            continue;
        }
        let it = objects.seen(commit);
        is_merged |= it.features.as_ref().is_some_and(Features::is_merge);
        if !own.contains(&commit) {
            seen.push(it);
        }
    }
    if is_merged {
        let all: Vec<ObjectId> = seen.iter().map(|it| it.id).collect();
        let below = objects.reachable_from(&began, &all)?;
        seen.retain(|it| !below.contains(&it.id));
    }
    Ok(seen)
}

/// The commits on which turns ended.
fn ends_of<'n>(objects: &Objects<'_>, nodes: impl IntoIterator<Item = &'n Node>) -> Vec<Original> {
    nodes.into_iter().filter_map(|node| Original::end_of(objects, node)).collect()
}

/// How many of the newest turns are looked at for those whose commits were picked.
const NEAR_TURNS: usize = 32;

/// The turns that are not on HEAD's line and whose last commit is in HEAD's history all the same, made anew: the user has picked
/// it. And that commit.
pub fn picked(view: &View<'_>) -> Result<BTreeMap<u64, ObjectId>> {
    let (objects, timeline) = (Objects::new(view.repo), &view.timeline);
    let (Some(head), place) = (view.head.commit, view.place()?) else { return Ok(BTreeMap::new()) };
    let mut left = timeline.newest_turns(NEAR_TURNS, 0)?;
    let lowest = left.last().copied().unwrap_or_default();
    left.retain(|turn| !place.undone.contains(turn) && timeline.state.open != Some(*turn));
    let (mut own, mut at) = (HashSet::new(), place.top);
    while let Some(number) = at.filter(|number| *number >= lowest) {
        let turn = timeline.require_turn(number)?;
        left.retain(|other| *other != number);
        own.extend(made(&turn));
        at = turn.previous;
    }
    let mut nodes = Vec::new();
    for number in left {
        let (node, turn) = (timeline.node(number)?, timeline.require_turn(number)?);
        nodes.extend(Some(node).filter(|node| node.moved() && node.to.is_some_and(|to| turn.knows(&to))));
    }
    if nodes.is_empty() {
        return Ok(BTreeMap::new());
    }
    own.extend(fates(view, lowest)?.copies.into_values());
    let seen = commits_above(&objects, head, nodes.last(), &own)?;
    let ends = ends_of(&objects, &nodes);
    let originals = Original::each_once(ends.iter());
    let anew = Anew::new(&objects, timeline);
    let pairs = anew.copies(&originals, &seen, |_, likeness| likeness != Likeness::Beside)?;
    let copy = |node: &Node| {
        let at = originals.iter().position(|original| Some(original.seen.id) == node.to)?;
        Some((node.turn, seen[*pairs.get(&at)?].id))
    };
    Ok(nodes.iter().filter_map(copy).collect())
}

/// Refuses to walk to or from a turn that was dropped.
pub fn check(view: &View<'_>, number: u64) -> Result<()> {
    if number == 0 || !dropped(view, number)?.contains(&number) {
        return Ok(());
    }
    let node = view.timeline.node(number)?;
    let short = |id: ObjectId| id.to_hex_with_len(10).to_string();
    let Some(to) = node.to else { return Ok(()) };
    let message = format!("turn {number} is not done any more: commit {} is not in HEAD's history", short(to));
    let missing = missing(view, &node)?;
    let mut written = Vec::new();
    for commit in &missing {
        written.extend(Objects::new(view.repo).changed_in(*commit)?);
    }
    let picked: Vec<String> = missing.into_iter().map(short).collect();
    let mut line = format!("git cherry-pick {}", picked.join(" "));
    // git picks nothing while anything is staged, whatever that is.
    written.extend(uncommitted(view, &view.present()?)?);
    if let Some(stash) = stash_of(view, &written)? {
        // A file that both have would stop the pop.
        let pop = if stash.ends_with("-u") { "" } else { " && git stash pop" };
        line = format!("{stash} && {line}{pop}");
    }
    let pick = format!("run '{line}' to have it again");
    Err(Refusal::new(Code::Foreign, message)
        .hints(Some(pick).filter(|_| !picked.is_empty()))
        .hint(format!("run 'oxundo restore {number}' to bring back the files that it left"))
        .into())
}

/// The commits of a turn that HEAD's history has not, be it in another form, the oldest first.
fn missing(view: &View<'_>, node: &Node) -> Result<Vec<ObjectId>> {
    let (Some(to), Some(head)) = (node.to, view.head.commit) else { return Ok(Vec::new()) };
    let objects = Objects::new(view.repo);
    let begun: Vec<ObjectId> = node.dirty.or(node.from).into_iter().collect();
    let all = objects.commits_between(&begun, to)?;
    let reached = objects.reachable_from(&[head], &all)?;
    let made = all.into_iter().filter(|id| !reached.contains(id));
    let made: Vec<Original> = made.map(|id| Original::one_of(&objects, node, id)).collect();
    let originals: Vec<&Original> = made.iter().collect();
    let others: HashSet<ObjectId> = fates(view, node.turn)?.copies.into_values().collect();
    let seen = commits_above(&objects, head, Some(node), &others)?;
    let pairs = Anew::new(&objects, &view.timeline).copies(&originals, &seen, |_, _| true)?;
    let missing = originals.iter().enumerate().filter(|(at, _)| !pairs.contains_key(at)).rev();
    Ok(missing.map(|(_, original)| original.seen.id).collect())
}
