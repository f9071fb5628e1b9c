//! Warnings about what a turn does not capture or commit.

use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::Capture;
use crate::git::scan::nested::own_part;
use crate::git::timeline::stored::Side;
use crate::git::worktree::identity::is_directory;
use crate::git::worktree::{Lookup, Worktree};
use crate::model::bytes::{exact, first_in_quotes, in_quotes, quoted, sanitized, shown, size};
use crate::model::checkpoint::{Checkpoint, Delta, Reason, Skipped, uncovered_changes};
use crate::model::path::is_at_or_below;
use crate::model::plan::Plan;
use crate::model::turn::Turn;
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;

/// How many paths a sentence names.
const NAMED: usize = 3;

/// Says which files something kept changing while they were captured, and gives them for the record.
pub fn note_torn(view: &View<'_>, capture: &Capture) -> Vec<String> {
    for path in &capture.torn {
        let path = in_quotes(path.as_bstr());
        view.warn(format!(
            "{path} kept changing while it was read: what undo knows of it may be from more than one moment"
        ));
    }
    capture.torn.iter().map(|path| quoted(path.as_bstr())).collect()
}

/// Says what is not captured as a turn begins: once, not before every turn; and not of what the turn is made to move.
pub fn announce_skipped(view: &View<'_>, turn: &Turn, now: &Checkpoint) -> Result<()> {
    let newest = view.timeline.state.next.checked_sub(1).filter(|number| *number > 0);
    let latest = match newest {
        Some(number) if view.timeline.find_turn(number)?.is_some() => {
            Some(view.timeline.checkpoint(number, Side::Before)?)
        }
        _ => None,
    };
    if latest.as_ref().is_none_or(|latest| latest.rules != now.rules)
        && let Some(said) = tracked_only(view)
    {
        view.warn(said);
    }
    let said = latest.map(|latest| latest.skipped).unwrap_or_default();
    let is_moved = |new: &Skipped| turn.moved.iter().any(|it| it.path == new.path);
    let is_news = |new: &&Skipped| new.reason != Reason::Repository && !knows(&said, new) && !is_moved(new);
    let new: Vec<_> = now.skipped.iter().filter(is_news).collect();
    if new.is_empty() {
        return Ok(());
    }
    let described = new.iter().take(NAMED).map(|skipped| with_reason(skipped));
    let mut list = described.collect::<Vec<_>>().join(", ");
    if new.len() > NAMED {
        list.push_str(&format!(", {} more", new.len() - NAMED));
    }
    view.warn(format!("not covered by undo: {list}"));
    if let Some(largest) = new.iter().find(|skipped| is_over_budget(skipped)) {
        view.warn(ways_out(view, largest, &new)?);
    }
    if let Some(closing) = view.repo.closing()
        && new.iter().any(|skipped| skipped.reason == Reason::Private)
    {
        let directory = sanitized(&view.repo.common_dir().display().to_string());
        view.warn(format!("to cover what is private: chmod {} '{directory}'", closing.words));
    }
    Ok(())
}

fn is_over_budget(skipped: &Skipped) -> bool {
    matches!(skipped.reason, Reason::TooMuch | Reason::TooMany)
}

/// How to ignore what is over the budget, and how to take it all in.
fn ways_out(view: &View<'_>, largest: &Skipped, all: &[&Skipped]) -> Result<String> {
    let limits = view.limits()?;
    let sum = |reason| all.iter().filter(|other| other.reason == reason).map(|other| other.size).sum::<u64>();
    let mebibytes = limits.max_bytes.saturating_add(sum(Reason::TooMuch)).div_ceil(1 << 20);
    let setting = match largest.reason {
        Reason::TooMuch => format!("oxundo.maxCapture {mebibytes}m"),
        _ => format!("oxundo.maxCaptureFiles {}", limits.max_files.saturating_add(sum(Reason::TooMany))),
    };
    let path = shown(largest.path.as_bstr());
    let file = view.repo.exclude_file();
    Ok(format!(
        "to ignore it for good: echo '/{path}' >>'{}'; to cover it: git config {setting}",
        sanitized(&file.display().to_string())
    ))
}

/// Where the repository's top holds more than one project: that only tracked files are covered.
pub fn tracked_only(view: &View<'_>) -> Option<String> {
    let why = view.repo.why_no_project()?;
    let top = sanitized(&view.repo.top().display().to_string());
    Some(format!("only tracked files are covered by undo in '{top}', since {why}: name others in .gitignore, with !"))
}

/// Says what a turn changed that is not captured.
pub fn announce_uncovered(view: &View<'_>, turn: &Turn, before: &Checkpoint, after: &Checkpoint, changed: &Delta) {
    let is_covered = |path: &BString| changed.aside.contains_key(path) || turn.has_moved(path.as_bstr());
    // Not for directories that tools fill again in every turn: undo says so when it matters.
    let named = |old: &&Skipped| old.reason != Reason::SkipDir && !is_covered(&old.path);
    for skipped in uncovered_changes(before, after).into_iter().filter(named) {
        view.warn(format!("the turn changed {}, which undo does not cover", in_quotes(skipped.path.as_bstr())));
    }
    let now = || view.present().ok().map(|now| now.checkpoint);
    let new = unignored(view, changed.files.keys(), after, now);
    let added = changed.index.iter().filter(|(_, change)| change.from.is_empty() && !change.to.is_empty());
    let new = with_added(view, new, added.map(|(path, _)| path), |path| changed.files.contains_key(path), before);
    if !new.is_empty() {
        let paths = first_in_quotes(&new.iter().collect::<Vec<_>>(), NAMED);
        view.warn(format!("the turn no longer ignores {paths}, which undo does not cover"));
    }
    let older = turn.came.iter().filter(|(_, old)| old.is_none());
    for path in older.filter_map(|(path, _)| exact::decode(path)) {
        view.warn(format!(
            "{} was not made by the turn, which moved it there: undo leaves it",
            in_quotes(path.as_bstr())
        ));
    }
}

/// What was ignored as a turn began and is not by now, as it changed such rules; if it has changed them: whatever has become of
/// that, no state has it. `end` is the state after the turn, by the rules of its beginning.
fn unignored<'p>(
    view: &View<'_>,
    mut changed: impl Iterator<Item = &'p BString>,
    end: &Checkpoint,
    now: impl FnOnce() -> Option<Checkpoint>,
) -> BTreeSet<BString> {
    let is_of_rules = |path: &BString| path.rsplit(|byte| *byte == b'/').next() == Some(b".gitignore");
    let Some(now) = (if changed.any(is_of_rules) { now() } else { None }) else { return BTreeSet::new() };
    let checkpoints = Checkpoints::new(view.repo);
    let changed = checkpoints.file_changes(end, &now).unwrap_or_default().into_iter();
    let new = changed.filter(|(_, change)| change.from.is_none() && change.to.is_some()).map(|(path, _)| path);
    checkpoints.left_out(end, new.collect::<BTreeSet<_>>().iter()).unwrap_or_default()
}

/// With what was ignored as well, by the state before the turn, and was added to the index all the same: it may have been there before.
fn with_added<'p>(
    view: &View<'_>,
    mut unignored: BTreeSet<BString>,
    added: impl Iterator<Item = &'p BString>,
    is_covered: impl Fn(&BString) -> bool,
    before: &Checkpoint,
) -> BTreeSet<BString> {
    let is_there = |path: &BString| matches!(Worktree::new(view.repo).find(path.as_bstr()), Ok(Lookup::There(_)));
    let added: Vec<&BString> = added.filter(|path| !is_covered(path) && is_there(path)).collect();
    unignored.extend(Checkpoints::new(view.repo).left_out(before, added.into_iter()).unwrap_or_default());
    unignored
}

/// Warns of that where the turns are undone.
pub fn warn_of_unignored<'t>(view: &View<'_>, turns: impl Iterator<Item = &'t Turn>, plan: &Plan, now: &Checkpoint) {
    for turn in turns {
        let state = |side| view.timeline.checkpoint(turn.turn, side);
        let (Ok(before), Ok(end)) = (state(Side::Before), state(Side::After)) else { continue };
        let new = unignored(view, plan.files.iter().map(|file| &file.path), &end, || Some(now.clone()));
        let gone = plan.index.iter().filter(|entries| !entries.from.is_empty() && entries.to.is_empty());
        let is_covered = |path: &BString| plan.files.iter().any(|file| file.path == *path && file.to.is_none());
        let new = with_added(view, new, gone.map(|entries| &entries.path), is_covered, &before);
        if !new.is_empty() {
            let words = if new.len() == 1 { "stays as it is: it was" } else { "stay as they are: they were" };
            let paths = first_in_quotes(&new.iter().collect::<Vec<_>>(), NAMED);
            view.warn(format!("{paths} {words} ignored as turn {} began", turn.turn));
            return;
        }
    }
}

/// The word for what somebody changed that undo leaves, since no state has it.
pub fn not_covered(path: &BString) -> String {
    format!("{} was changed too, and is not covered", in_quotes(path.as_bstr()))
}

/// Warns of what was not captured and had its place taken by what these turns moved there, which goes back alone.
pub fn warn_of_overwritten<'t>(view: &View<'_>, turns: impl Iterator<Item = &'t Turn>, plan: &Plan) {
    for turn in turns {
        let mut over = turn.moved_over();
        over.retain(|path| plan.aside.iter().any(|aside| aside.out && aside.path == *path));
        // A record that cannot be read is told of where it is needed.
        let before = (!over.is_empty()).then(|| view.timeline.checkpoint(turn.turn, Side::Before).ok()).flatten();
        over.retain(|path| before.as_ref().is_some_and(|before| before.uncaptured.contains_key(path)));
        for path in over {
            let path = in_quotes(path.as_bstr());
            view.warn(format!(
                "{path} does not come back: it was not captured, and turn {} moved another there",
                turn.turn
            ));
        }
    }
}

/// Warns of what was not captured, and these turns moved and changed: nothing has what it was, and it goes back as it is.
pub fn warn_of_changed<'t>(view: &View<'_>, turns: impl Iterator<Item = &'t Turn>, plan: &Plan) {
    for turn in turns {
        let goes_back = |old: &BString| plan.aside.iter().any(|aside| !aside.out && aside.path == *old);
        let moved: Vec<(BString, BString)> = turn.moves().filter(|(_, old)| goes_back(old)).collect();
        for (_, old) in &moved {
            let stashed = turn.stashed.keys().filter_map(|path| exact::decode(path));
            let mut changed = stashed.filter(|path| path != old && is_at_or_below(path.as_bstr(), old.as_bstr()));
            for path in changed.by_ref().take(NAMED) {
                let (path, turn) = (in_quotes(path.as_bstr()), turn.turn);
                view.warn(format!("{path} stays as turn {turn} left it: its directory goes back as a whole"));
            }
            if let more @ 1.. = changed.count() {
                view.warn(format!("so do {more} more files in {}", in_quotes(old.as_bstr())));
            }
        }
        let state = |side| view.timeline.checkpoint(turn.turn, side).ok();
        // A record that cannot be read is told of where it is needed.
        let Some((before, after)) = moved.first().and_then(|_| state(Side::Before).zip(state(Side::After))) else {
            continue;
        };
        let between = view.timeline.uncaptured_between(turn.turn, &before).unwrap_or_default();
        for (new, old) in moved {
            let was = between.get(&old).or_else(|| before.uncaptured.get(&old)).and_then(|was| was.state.as_deref());
            let skipped = after.skipped.iter().find(|now| now.path == new).and_then(|now| now.state.as_deref());
            let now = skipped.or_else(|| turn.placed.get(&exact::encode(&new))?.as_deref());
            if let (Some(was), Some(now)) = (was.filter(|was| !is_directory(was)), now)
                && own_part(was) != own_part(now)
            {
                let (path, turn) = (in_quotes(old.as_bstr()), turn.turn);
                view.warn(format!(
                    "{path} goes back as turn {turn} left it: it was not captured, and was changed meanwhile"
                ));
            }
        }
    }
}

/// Says what becomes of directories that are moved as a whole, where that is not all that there is to say.
pub fn announce_whole(view: &View<'_>, plan: &Plan) {
    for aside in plan.aside.iter().filter(|aside| aside.out && plan.touched.contains(&aside.path)) {
        let place = view.repo.aside_path(&aside.store);
        let place = in_quotes(place.as_os_str().as_bytes().as_bstr());
        let path = in_quotes(aside.path.as_bstr());
        view.warn(format!("{path} has changed since, and goes as it is to {place}: it comes back with the turn"));
    }
    for path in &plan.staying {
        view.warn(format!(
            "{} stays: it is a repository, or has one, or files of git's by now",
            in_quotes(path.as_bstr())
        ));
    }
}

/// Says which new files a turn's commit leaves out.
pub fn announce_left_out(view: &View<'_>, secrets: &[BString], skipped: &[Skipped], before: &[Skipped]) {
    let secret = |path: &BString| format!("{} (looks like a secret)", shown(path.as_bstr()));
    let mut left: Vec<String> = secrets.iter().map(secret).collect();
    left.extend(skipped.iter().filter(|new| !knows(before, new)).map(with_reason));
    if !left.is_empty() {
        view.warn(format!("not committed: {}", left.join(", ")));
    }
}

/// Whether this was skipped before, even if it has changed since.
fn knows(before: &[Skipped], new: &Skipped) -> bool {
    before.iter().any(|old| (&old.path, old.reason) == (&new.path, new.reason))
}

/// A path that was not captured, and why.
fn with_reason(skipped: &Skipped) -> String {
    use Reason as R;
    let path = shown(skipped.path.as_bstr());
    match skipped.reason {
        R::Large => format!("{path} ({})", size(skipped.size)),
        R::Many => format!("{path}/ (>= {} files)", skipped.size),
        R::SkipDir => format!("{path}/"),
        R::Excluded => format!("{path} (oxundo.exclude)"),
        R::Repository | R::Special => format!("{path} (no file)"),
        R::Unreadable => format!("{path} (unreadable)"),
        R::Name => format!("{path} (a name git refuses)"),
        R::Deep => format!("{path}/ (too many directories in each other)"),
        R::TooMuch => format!("{path} ({}, over oxundo.maxCapture)", size(skipped.size)),
        R::Private => format!("{path} (private, and others can read what git has)"),
        R::TooMany => format!("{path} ({} files, over oxundo.maxCaptureFiles)", skipped.size),
    }
}
