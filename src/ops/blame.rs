//! Which turn wrote each line of a file: what is committed by git's own blame and the notes, what is not by the checkpoints of
//! the turns that are done here. Where a turn has steps, the step. Nothing is guessed: what was written between the turns is the user's.

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::objects::lines::{BlamedLine, carried, no_range};
use crate::git::refs::Refs;
use crate::git::repo::clock::rfc3339_of;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored};
use crate::git::worktree::Worktree;
use crate::model::bytes::{in_quotes, quoted, shell_word};
use crate::model::checkpoint::Checkpoint;
use crate::model::step::Step;
use crate::model::turn::{CommitKind, Note, Session, Turn, first_line};
use crate::ops::turn::states;
use crate::ops::undo::range::below;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::collections::BTreeMap;

/// How many turns are looked through for lines that are not committed.
const FAR: usize = 1024;

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
    let is_committed = objects.tree_file(objects.head_tree(&view.head)?, path)?.is_some();
    let blamed = if is_committed { objects.blame(path, ranges)? } else { unknown(path, &content, ranges)? };
    let blame = Blame { view, objects, notes: notes(view, &blamed)?, others: others(view)? };
    let open: Vec<usize> = blamed.iter().filter(|line| line.commit.is_none()).map(|line| line.line - 1).collect();
    let mut recorded = blame.recorded(path, &content, open)?;
    let texts: Vec<&[u8]> = content.lines().collect();
    let mut known = BTreeMap::new();
    let mut lines = Vec::new();
    for line in blamed {
        let (by, ended_at) = match line.commit {
            Some(commit) => blame.committed(commit, &line, &mut known)?,
            None => recorded.remove(&(line.line - 1)).unzip(),
        };
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
        author: String::new(),
        time: 0,
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
/// sessions may have made it, it names all their agents.
fn notes(view: &View<'_>, lines: &[BlamedLine]) -> Result<BTreeMap<ObjectId, Note>> {
    let mut commits: Vec<ObjectId> = lines.iter().filter_map(|line| line.commit).collect();
    commits.sort_unstable();
    commits.dedup();
    let here = view.repo.worktree_id();
    let mut known = BTreeMap::new();
    for (commit, notes) in commits.iter().zip(Refs::new(view.repo).notes_on(&commits)?) {
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
    Ok(known)
}

/// The timelines of other worktrees, by their names.
fn others<'r>(view: &View<'r>) -> Result<BTreeMap<String, Stored<'r>>> {
    let others = Timelines::new(view.repo).other_timelines()?.into_iter();
    Ok(others.filter_map(|other| Some((other.worktree, other.stored.ok()?))).collect())
}

/// A turn, and when it ended.
type Written = (Option<By>, Option<Option<String>>);

/// Each version of a file that a turn made, with the step of each line.
type Known = BTreeMap<(u64, BString, ObjectId), Vec<Option<Step>>>;

struct Blame<'v, 'r> {
    view: &'v View<'r>,
    objects: Objects<'r>,
    notes: BTreeMap<ObjectId, Note>,
    others: BTreeMap<String, Stored<'r>>,
}

impl Blame<'_, '_> {
    /// Who wrote a committed line.
    fn committed(&self, commit: ObjectId, line: &BlamedLine, known: &mut Known) -> Result<Written> {
        let Some(note) = self.notes.get(&commit) else { return Ok((None, None)) };
        let worktree = Some(note.worktree.clone()).filter(|name| *name != self.view.repo.worktree_id());
        let timeline = worktree.as_ref().map_or(Some(&self.view.timeline), |name| self.others.get(name));
        let turn = timeline.map(|timeline| timeline.find_turn(note.turn)).transpose()?.flatten();
        let (Some(timeline), Some(turn)) = (timeline, turn) else {
            // It has expired: the note says what is left to say.
            let (agent, session) = (note.agent.clone(), note.session.clone());
            let by = By { turn: note.turn, step: None, worktree, agent, model: None, session, prompt: None };
            return Ok((Some(by), None));
        };
        let key = (turn.turn, line.path.clone(), commit);
        if !known.contains_key(&key) {
            let steps = self.steps_of_commit(timeline, &turn, commit, line.path.as_bstr())?;
            known.insert(key.clone(), steps);
        }
        let step = known.get(&key).and_then(|steps| steps.get(line.original.checked_sub(1)?)?.as_ref());
        Ok((Some(by(&turn, step, worktree)), Some(turn.ended_at.clone())))
    }

    /// The step of each line of a file, as a turn's commit has it.
    fn steps_of_commit(
        &self,
        timeline: &Stored<'_>,
        turn: &Turn,
        commit: ObjectId,
        path: &BStr,
    ) -> Result<Vec<Option<Step>>> {
        if timeline.last_step(turn.turn)? == 0 {
            return Ok(Vec::new());
        }
        let committed = self.content(self.objects.commit_tree(commit)?, path)?;
        let after = self.at(&timeline.checkpoint(turn.turn, Side::After)?, path)?;
        let carried = carried(&after, &committed);
        let lines: Vec<usize> = carried.iter().flatten().copied().collect();
        let steps = self.steps(timeline, turn, path, &after, lines)?;
        Ok(carried.into_iter().map(|line| steps.get(&line?).cloned()).collect())
    }

    /// Which turn done here, or which one that is open, wrote these lines of a file, from 0; those that are not in it are the
    /// user's.
    fn recorded(
        &self,
        path: &BStr,
        content: &[u8],
        lines: Vec<usize>,
    ) -> Result<BTreeMap<usize, (By, Option<String>)>> {
        let mut found = BTreeMap::new();
        // Each line where it is in the version that is looked at, and where it is in the worktree.
        let mut left: Vec<(usize, usize)> = lines.into_iter().map(|line| (line, line)).collect();
        let mut now = content.to_vec();
        if let Some(open) = self.view.open_turn()? {
            self.written(&open, path, &mut now, &mut left, &mut found)?;
        }
        let (mut at, mut looked) = (self.view.top()?, 0);
        let name = quoted(path);
        while let Some(number) = at.filter(|_| !left.is_empty() && looked < FAR) {
            let turn = self.view.timeline.require_turn(number)?;
            if self.view.timeline.turn_files(number)?.iter().any(|file| file.path == name) {
                let after = self.at(&self.view.timeline.checkpoint(number, Side::After)?, path)?;
                follow(&after, &now, &mut left);
                now = after;
                self.written(&turn, path, &mut now, &mut left, &mut found)?;
            }
            (at, looked) = (below(self.view, &turn), looked + 1);
        }
        Ok(found)
    }

    /// Takes the lines out of those that are left that a turn wrote, and goes to the version before it.
    fn written(
        &self,
        turn: &Turn,
        path: &BStr,
        now: &mut Vec<u8>,
        left: &mut Vec<(usize, usize)>,
        found: &mut BTreeMap<usize, (By, Option<String>)>,
    ) -> Result<()> {
        let timeline = &self.view.timeline;
        let before = self.at(&timeline.undone_to(turn.turn)?, path)?;
        let all = left.clone();
        follow(&before, now, left);
        let stays: Vec<usize> = left.iter().map(|(_, line)| *line).collect();
        let its: Vec<(usize, usize)> = all.into_iter().filter(|(_, line)| !stays.contains(line)).collect();
        let steps = self.steps(timeline, turn, path, now, its.iter().map(|(here, _)| *here).collect())?;
        for (here, line) in its {
            found.insert(line, (by(turn, steps.get(&here), None), turn.ended_at.clone()));
        }
        *now = before;
        Ok(())
    }

    /// The steps of a turn that wrote these lines of a file.
    fn steps(
        &self,
        timeline: &Stored<'_>,
        turn: &Turn,
        path: &BStr,
        content: &[u8],
        lines: Vec<usize>,
    ) -> Result<BTreeMap<usize, Step>> {
        let mut found = BTreeMap::new();
        let mut left: Vec<(usize, usize)> = lines.into_iter().map(|line| (line, line)).collect();
        let (mut now, name) = (content.to_vec(), quoted(path));
        for number in (1..=timeline.last_step(turn.turn)?).rev() {
            if left.is_empty() {
                break;
            }
            let Some(step) = timeline.step(turn.turn, number)? else { continue };
            if timeline.step_files(turn.turn, number)?.iter().all(|file| file.path != name) {
                continue;
            }
            let after = self.at(&states::after(timeline, turn, number)?, path)?;
            follow(&after, &now, &mut left);
            let before = self.at(&states::before(timeline, turn, number)?, path)?;
            let all = left.clone();
            follow(&before, &after, &mut left);
            let stays: Vec<usize> = left.iter().map(|(_, line)| *line).collect();
            let its = all.into_iter().map(|(_, line)| line).filter(|line| !stays.contains(line));
            found.extend(its.map(|line| (line, step.clone())));
            now = before;
        }
        Ok(found)
    }

    fn at(&self, state: &Checkpoint, path: &BStr) -> Result<Vec<u8>> {
        self.content(state.worktree, path)
    }

    fn content(&self, tree: ObjectId, path: &BStr) -> Result<Vec<u8>> {
        self.objects.tree_file(tree, path)?.map_or_else(|| Ok(Vec::new()), |(_, id)| self.objects.blob(id))
    }
}

/// The lines of a file, from 1, that a turn wrote, and by whose call.
pub fn written_by(view: &View<'_>, timeline: &Stored<'_>, turn: &Turn, path: &BStr) -> Result<Vec<(usize, By)>> {
    let blame = Blame { view, objects: Objects::new(view.repo), notes: BTreeMap::new(), others: BTreeMap::new() };
    let before = blame.at(&timeline.undone_to(turn.turn)?, path)?;
    let after = blame.at(&timeline.checkpoint(turn.turn, Side::After)?, path)?;
    if after.contains(&0) {
        return Ok(Vec::new());
    }
    let new: Vec<usize> =
        carried(&before, &after).iter().enumerate().filter_map(|(line, old)| old.is_none().then_some(line)).collect();
    let steps = blame.steps(timeline, turn, path, &after, new.clone())?;
    Ok(new.into_iter().map(|line| (line + 1, by(turn, steps.get(&line), None))).collect())
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
