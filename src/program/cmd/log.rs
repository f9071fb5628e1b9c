//! `oxundo log`: the timeline, or the operations on it.

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::repo::clock::{parse_rfc3339, seconds};
use crate::git::repo::date_form::DateForm;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::Stored;
use crate::model::bytes::{sanitized, shell_word};
use crate::model::checkpoint::{short_branch, shown_name};
use crate::model::step::Step;
use crate::model::turn::{Made, Turn};
use crate::ops::brought_back::is_back;
use crate::ops::called::branch_now;
use crate::ops::dropped::fates;
use crate::ops::filter::{Filter, Wanted};
use crate::ops::list::{State, delta_of, every, here, only, since, uncommitted_since};
use crate::ops::operation::numbered;
use crate::ops::status::status;
use crate::ops::turn::session::{By, look};
use crate::ops::view::View;
use crate::program::args::LogArgs;
use crate::program::text::format::Format;
use crate::program::text::line::{InWorktree, Line, StepLine, Taken};
use crate::program::text::log::{Log, NoTurns, Operations, Overview};
use crate::program::ui::{Answer, Ui};
use anyhow::{Context, Result};
use gix::ObjectId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

/// How many turns are shown when nobody says.
const USUAL: usize = 50;

/// What the done turns took out of others, but for those of which that is there again: the user has brought it back, or they were
/// taken out themselves.
fn taken_out<'t>(turns: impl Iterator<Item = (&'t Turn, State)>, back: &BTreeSet<u64>) -> BTreeMap<u64, Taken> {
    let mut done: Vec<&Turn> = turns.filter(|(_, state)| *state == State::Done).map(|(turn, _)| turn).collect();
    done.sort_by_key(|turn| Reverse(turn.turn));
    let mut taken = BTreeMap::new();
    for turn in done {
        if back.contains(&turn.turn) || taken.get(&turn.turn) == Some(&Taken::All) {
            continue;
        }
        let how = if turn.is_part() { Taken::Parts } else { Taken::All };
        for number in turn.takes_out() {
            let is_left = matches!(&turn.made, Some(Made::BackTo { turns, .. }) if turns.last() == Some(number));
            let how = if is_left { Taken::Parts } else { how };
            let known = taken.entry(*number).or_insert(how);
            *known = how.max(*known);
        }
    }
    taken
}

/// So many turns are shown beside where the timeline stands.
const LAST: usize = 5;

/// Where the timeline stands, and the last turns.
pub fn overview(repo: &Repo, ui: &Ui) -> Result<Overview> {
    let heard = ui.heard();
    let view = look(repo, &heard, "status")?;
    let place = InWorktree { id: repo.worktree_id(), here: true, removed: false };
    let mut turns = here(&view, LAST + 1)?;
    let more = rest(&view, &mut turns, LAST)?;
    let dates = dates(&view, None)?.unwrap_or(DateForm::Brief);
    let lines = as_they_stand(&view, described(&view.timeline, place, turns, &dates)?)?;
    let log = Log { lines, more, dates, ..empty(&view)? };
    Ok(Overview { status: status(&view, By::Typed)?, log })
}

/// A log of no turns, as of where HEAD stands.
fn empty(view: &View<'_>) -> Result<Log> {
    Ok(Log {
        top: view.last_whole()?,
        heads: heads(view)?,
        head: view.head.commit,
        branch: view.head.branch.clone(),
        worktree: view.repo.worktree_id(),
        lines: Vec::new(),
        none: if view.timeline.commit.is_some() { NoTurns::Here } else { NoTurns::Yet },
        graph: false,
        look: Ui::look(),
        more: 0,
        asked: ["log".to_owned(), String::new()],
        since: None,
        dates: DateForm::Brief,
        format: None,
    })
}

/// How dates are to be shown, where somebody said so.
fn dates(view: &View<'_>, wanted: Option<&str>) -> Result<Option<DateForm>> {
    let is_terminal = Ui::look().width.is_some();
    let configured = view.config().dates();
    let form = wanted.or(configured.as_deref()).map(|name| DateForm::named(name, is_terminal));
    match form.transpose() {
        // git says of a wrong configuration what it thinks of it.
        Err(_) if wanted.is_none() => Ok(None),
        form => Ok(form?),
    }
}

/// How dates of operations are to be shown.
pub fn dates_of_operations(view: &View<'_>, args: &LogArgs) -> Result<DateForm> {
    Ok(dates(view, args.date.as_deref())?.unwrap_or_else(DateForm::iso))
}

/// A turn of a timeline of this worktree, as the log has it.
pub fn recorded_line(timeline: &Stored<'_>, turn: (Turn, State)) -> Result<Line> {
    let place = InWorktree { id: timeline.repo.worktree_id(), here: true, removed: false };
    described(timeline, place, vec![turn], &DateForm::Brief)?.pop().context("a turn has a line")
}

/// Cuts the turns of the line on which HEAD stands off behind so many; gives how many more there are.
fn rest(view: &View<'_>, turns: &mut Vec<(Turn, State)>, most: usize) -> Result<u64> {
    if turns.len() <= most {
        return Ok(0);
    }
    let below = turns.get(most).map_or(1, |(turn, state)| if *state == State::Done { turn.depth } else { 1 });
    let done_above = turns[..most].iter().any(|(_, state)| *state == State::Done);
    let place = view.place()?;
    let undone = place.undone.len() + usize::from(view.timeline.state.open.is_some());
    let undone_more = undone.saturating_sub(most) as u64;
    turns.truncate(most);
    let done = match place.top {
        Some(top) if !done_above && undone_more > 0 => view.timeline.require_turn(top)?.depth,
        _ if undone_more > 0 => 0,
        _ => below,
    };
    // What has expired counted once.
    let there = (view.timeline.turn_numbers()?.len() - turns.len()) as u64;
    Ok((undone_more + done).min(there).max(1))
}

/// A turn as the log has it.
pub fn line_of(view: &View<'_>, number: u64) -> Result<Line> {
    // What takes it out is newer.
    let mut turns = since(&view.timeline, view, number)?;
    let back = brought_back(view, turns.iter().map(|(turn, state)| (turn, *state)))?;
    let taken_out = taken_out(turns.iter().map(|(turn, state)| (turn, *state)), &back).get(&number).copied();
    turns.retain(|(turn, _)| turn.turn == number);
    let place = InWorktree { id: view.repo.worktree_id(), here: true, removed: false };
    let lines = as_they_stand(view, described(&view.timeline, place, turns, &DateForm::Brief)?)?;
    let line = lines.into_iter().next().with_context(|| format!("turn {number} is not there"))?;
    Ok(Line { taken_out, ..line })
}

/// Reads the timeline, newest first.
pub fn run(repo: &Repo, ui: &Ui, args: &LogArgs) -> Result<Box<dyn Answer>> {
    let heard = ui.heard();
    let view = look(repo, &heard, "log")?;
    if args.ops {
        let dates = dates_of_operations(&view, args)?;
        let most = args.number.unwrap_or(usize::MAX);
        let mut list = numbered(&view, most.saturating_add(1))?;
        let more = list.len() > most;
        list.truncate(most);
        return Ok(Box::new(Operations { list, dates, more }));
    }
    let format = args.format.as_deref().map(Format::parse).transpose()?;
    let usual = if format.is_some() { DateForm::iso() } else { DateForm::Brief };
    let dates = dates(&view, args.date.as_deref())?.unwrap_or(usual);
    let most = args.number.unwrap_or(USUAL);
    let mut filter = Filter::of(repo, wanted(args))?;
    let (lines, more) = if args.all || args.worktree.is_some() {
        of_worktrees(&view, ui, args, filter.as_mut(), (most, &dates))?
    } else {
        let (turns, more) = of_line(&view, filter.as_mut(), most)?;
        let here = InWorktree { id: repo.worktree_id(), here: true, removed: false };
        let lines = as_they_stand(&view, described(&view.timeline, here, turns, &dates)?)?;
        (with_steps(&view.timeline, args, lines)?, more)
    };
    // What is there now is told on top of what was there last; the log is there without it, too.
    let is_here = args.worktree.is_none() && filter.is_none();
    let tells = !ui.json && format.is_none() && is_here && !lines.is_empty();
    let since = if tells { uncommitted_since(&view).unwrap_or_default() } else { None };
    let empty = empty(&view)?;
    let none = match empty.none {
        _ if most == 0 => NoTurns::Wanted,
        NoTurns::Here if filter.is_some() => NoTurns::Match,
        none => none,
    };
    Ok(Box::new(Log { graph: args.graph, asked: asked(args), more, lines, none, since, dates, format, ..empty }))
}

/// The lines of all worktrees' turns, or of those of the one that is named, and how many more there are.
fn of_worktrees(
    view: &View<'_>,
    ui: &Ui,
    args: &LogArgs,
    mut filter: Option<&mut Filter<'_, '_>>,
    (most, dates): (usize, &DateForm),
) -> Result<(Vec<Line>, u64)> {
    let wanted = args.worktree.as_deref();
    let (mut lines, mut more) = (Vec::new(), 0);
    let own = view.repo.worktree_id();
    let mut is_known = wanted.is_none_or(|name| shown_name(&own) == name);
    if is_known {
        let (turns, count) = of_all(&view.timeline, Some(view), filter.as_deref_mut(), most)?;
        let here = InWorktree { id: own, here: true, removed: false };
        lines = as_they_stand(view, described(&view.timeline, here, turns, dates)?)?;
        (lines, more) = (with_steps(&view.timeline, args, lines)?, count);
    }
    let timelines = Timelines::new(view.repo);
    let others = match wanted {
        Some(_) if is_known => Vec::new(),
        Some(name) => timelines.other_timeline(name)?.into_iter().collect(),
        None => timelines.other_timelines()?,
    };
    for other in others {
        is_known = true;
        let place = InWorktree { id: other.worktree, here: false, removed: other.removed };
        let read = other.stored.and_then(|stored| {
            let (turns, count) = of_all(&stored, None, filter.as_deref_mut(), most)?;
            more += count;
            with_steps(&stored, args, described(&stored, place, turns, dates)?)
        });
        match read {
            Ok(theirs) => lines = merged(lines, theirs),
            // What is damaged there must not hide what is here.
            Err(_) => ui.warn(&format!("{} cannot be read: its turns are left out", other.name)),
        }
    }
    if let Some(name) = wanted.filter(|_| !is_known) {
        let message = format!("there are no turns of a worktree '{}'", sanitized(name));
        let refusal = Refusal::new(Code::NotFound, message);
        return Err(refusal.hint("run 'oxundo log --all' to see the turns of all of them").into());
    }
    lines.truncate(most);
    let more = more.saturating_sub(lines.len() as u64);
    Ok((lines, more))
}

/// The command line, before and behind how many turns it shows.
fn asked(args: &LogArgs) -> [String; 2] {
    let mut line = "log".to_owned();
    for (is_given, flag) in [(args.all, " --all"), (args.graph, " --graph"), (args.steps, " --steps")] {
        line.push_str(if is_given { flag } else { "" });
    }
    let LogArgs { worktree, date, agent, session, since, until, grep, .. } = args;
    let values = [worktree, date, agent, session, since, until, grep];
    for (name, value) in ["worktree", "date", "agent", "session", "since", "until", "grep"].into_iter().zip(values) {
        if let Some(value) = value {
            line.push_str(&format!(" --{name} {}", shell_word(value.as_bytes())));
        }
    }
    let paths: String = args.pathspecs.iter().map(|path| format!(" {}", shell_word(path.as_bytes()))).collect();
    [line, if paths.is_empty() { paths } else { format!(" --{paths}") }]
}

/// Of these turns those that took others out, and of which that is there again.
fn brought_back<'t>(view: &View<'_>, turns: impl Iterator<Item = (&'t Turn, State)>) -> Result<BTreeSet<u64>> {
    let mut back = BTreeSet::new();
    for (turn, _) in turns.filter(|(_, state)| *state == State::Done) {
        if is_back(view, turn)? {
            back.insert(turn.turn);
        }
    }
    Ok(back)
}

/// The turns of the line on which HEAD stands, down to one.
fn below_head(view: &View<'_>, lowest: u64) -> Result<BTreeSet<u64>> {
    let (mut below, mut at) = (BTreeSet::new(), view.top()?);
    while let Some(turn) = at.filter(|turn| *turn >= lowest) {
        below.insert(turn);
        at = view.timeline.node(turn)?.previous;
    }
    Ok(below)
}

/// With the commits that stand for those of turns where HEAD is, and what is taken out there.
fn as_they_stand(view: &View<'_>, mut lines: Vec<Line>) -> Result<Vec<Line>> {
    if lines.is_empty() {
        return Ok(lines);
    }
    let lowest = lines.iter().map(|line| line.turn.turn).min().unwrap_or_default();
    if lines.iter().any(|line| line.taken_out.is_some()) {
        let turns = || lines.iter().map(|line| (&line.turn, line.state));
        let (back, below) = (brought_back(view, turns())?, below_head(view, lowest)?);
        // What is done on another branch alone takes nothing out here.
        let of_here = taken_out(turns().filter(|(turn, _)| below.contains(&turn.turn)), &back);
        let mut taken = taken_out(turns(), &back);
        taken.retain(|turn, _| !below.contains(turn));
        taken.extend(of_here);
        for line in &mut lines {
            line.taken_out = taken.get(&line.turn.turn).copied();
        }
    }
    let copies = fates(view, lowest)?.copies;
    for line in &mut lines {
        line.made_anew = copies.get(&line.turn.turn).copied();
    }
    under_names_now(view, lines)
}

/// With the names that branches have now. One that is there under the name that it had, and was before, has no other.
fn under_names_now(view: &View<'_>, mut lines: Vec<Line>) -> Result<Vec<Line>> {
    let mut known = BTreeMap::new();
    let refs = Refs::new(view.repo);
    let there = refs.branches()?;
    for line in &mut lines {
        let Some(name) = &line.turn.branch else { continue };
        if !known.contains_key(name) {
            let ended = seconds(line.turn.ended_at.as_ref());
            let is_it = there.contains_key(name) && !refs.is_made_since(name, ended);
            known.insert(name.clone(), if is_it { Some(name.clone()) } else { branch_now(view, &line.turn)? });
        }
        line.branch = known[name].clone();
        let is_other = |name: &&String| line.place.here && view.head.branch.as_ref() != Some(*name);
        let tip = line.branch.as_ref().filter(is_other);
        if let (Some(tip), State::UndoneByHand) = (tip.and_then(|name| there.get(name)), line.state) {
            let end = view.timeline.node(line.turn.turn)?.to;
            // Nothing was taken off it.
            line.is_elsewhere = end.map_or(Ok(false), |end| Objects::new(view.repo).is_ancestor(end, *tip))?;
        }
    }
    Ok(lines)
}

/// Where the branches stand that HEAD is not on.
fn heads(view: &View<'_>) -> Result<BTreeMap<ObjectId, Vec<String>>> {
    let mut heads: BTreeMap<ObjectId, Vec<String>> = BTreeMap::new();
    for (name, tip) in Refs::new(view.repo).branches()? {
        if view.head.branch.as_ref() != Some(&name) {
            heads.entry(tip).or_default().push(short_branch(&name).into_owned());
        }
    }
    Ok(heads)
}

fn described(
    timeline: &Stored<'_>,
    place: InWorktree,
    turns: Vec<(Turn, State)>,
    dates: &DateForm,
) -> Result<Vec<Line>> {
    let place = Rc::new(place);
    let taken = taken_out(turns.iter().map(|(turn, state)| (turn, *state)), &BTreeSet::new());
    let is_empty = |turn: &Turn| turn.ended_at.is_some() && turn.totals.files == 0;
    let line = |(turn, state): (Turn, State)| {
        Ok(Line {
            files: timeline.turn_files(turn.turn)?,
            steps: None,
            made_anew: None,
            branch: turn.branch.clone(),
            is_elsewhere: false,
            taken_out: taken.get(&turn.turn).copied(),
            age: dates.of(turn.ended_at.as_deref().unwrap_or(&turn.began_at)),
            // Damage there is no reason to show no log.
            instead: if is_empty(&turn) {
                delta_of(timeline, &turn).ok().and_then(|delta| only(&turn, &delta))
            } else {
                None
            },
            place: Rc::clone(&place),
            turn,
            state,
        })
    };
    turns.into_iter().map(line).collect()
}

fn wanted(args: &LogArgs) -> Wanted<'_> {
    Wanted {
        pathspecs: &args.pathspecs,
        agent: args.agent.as_deref(),
        session: args.session.as_deref(),
        since: args.since.as_deref(),
        until: args.until.as_deref(),
        grep: args.grep.as_deref(),
    }
}

/// The newest turns of a whole timeline that are meant, and how many there are.
fn of_all(
    timeline: &Stored<'_>,
    view: Option<&View<'_>>,
    filter: Option<&mut Filter<'_, '_>>,
    most: usize,
) -> Result<(Vec<(Turn, State)>, u64)> {
    let Some(filter) = filter else {
        return Ok((every(timeline, view, most)?, timeline.turn_numbers()?.len() as u64));
    };
    let mut turns = meant(timeline, filter, every(timeline, view, usize::MAX)?)?;
    let count = turns.len() as u64;
    turns.truncate(most);
    Ok((turns, count))
}

/// The newest turns of the line on which HEAD stands that are meant, and how many more there are.
fn of_line(view: &View<'_>, filter: Option<&mut Filter<'_, '_>>, most: usize) -> Result<(Vec<(Turn, State)>, u64)> {
    let Some(filter) = filter else {
        let mut turns = here(view, most.saturating_add(1))?;
        let more = rest(view, &mut turns, most)?;
        return Ok((turns, more));
    };
    let mut turns = meant(&view.timeline, filter, here(view, usize::MAX)?)?;
    let more = turns.len().saturating_sub(most) as u64;
    turns.truncate(most);
    Ok((turns, more))
}

/// Those of the turns that are meant.
fn meant(timeline: &Stored<'_>, filter: &mut Filter<'_, '_>, turns: Vec<(Turn, State)>) -> Result<Vec<(Turn, State)>> {
    let mut meant = Vec::new();
    for (turn, state) in turns {
        if filter.takes(timeline, &turn)? {
            meant.push((turn, state));
        }
    }
    Ok(meant)
}

/// With the steps of these turns, where they are asked for.
fn with_steps(timeline: &Stored<'_>, args: &LogArgs, mut lines: Vec<Line>) -> Result<Vec<Line>> {
    for line in lines.iter_mut().filter(|_| args.steps) {
        let number = line.turn.turn;
        let with_files = |step: Step| Ok(StepLine { files: timeline.step_files(number, step.step)?, step });
        line.steps = Some(timeline.steps(number)?.into_iter().map(with_files).collect::<Result<_>>()?);
    }
    Ok(lines)
}

/// Two lists in one, each in its own order, which is newest first by number: clocks jump.
fn merged(one: Vec<Line>, other: Vec<Line>) -> Vec<Line> {
    let began = |line: &Line| parse_rfc3339(&line.turn.began_at);
    let (mut one, mut other) = (one.into_iter().peekable(), other.into_iter().peekable());
    let mut merged = Vec::new();
    loop {
        let next = match (one.peek(), other.peek()) {
            (Some(a), Some(b)) if began(b) > began(a) => other.next(),
            (Some(_), _) => one.next(),
            _ => other.next(),
        };
        match next {
            Some(line) => merged.push(line),
            None => return merged,
        }
    }
}
