//! From the turns to walk over and the present state to a plan. Files,
//! directories and index entries follow the rules of [`super::merge`], one turn
//! after the other; refs must be where the turns left them. Nothing that no turn
//! changed is ever in a plan, so all else stays as it is.

use crate::error::{Code, Refusal};
use crate::model::bytes::{exact, in_quotes, pathspec_word, shell_word};
use crate::model::checkpoint::{
    Aside, Change, Delta, FileState, Head, IndexEntry, StashEntry, branch_word, known_as, short_branch,
};
use crate::model::merge;
use crate::model::merge::{Cause, Edits, Merge, Merged, Verdict, resolve_trivially};
use crate::model::operation::Operation;
use crate::model::path::{all_parents, is_at_or_below, parents};
use crate::model::plan::{
    AsideMove, BranchMove, DirectoryMove, FileMove, IndexMove, Op, Plan, ReturnState, SymbolicMove,
};
use crate::model::shelf::{Place, Shelf, Thing};
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};

/// What is at a path of the worktree now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// Nothing.
    Absent,
    /// A file or link.
    File(FileState),
    /// A file or link that the rescue checkpoint does not have: ignored now, or over a limit.
    NotCaptured(FileState),
    /// A directory, with every file and every empty directory (ending with a slash) below it.
    Directory(Vec<BString>),
    /// Nothing, because this parent of it is not a directory.
    Behind(BString),
    /// Something that oxundo never touches: a FIFO, a repository, an unreadable file.
    Other,
}

impl Occupant {
    fn file(&self) -> Option<FileState> {
        match self {
            Self::File(state) | Self::NotCaptured(state) => Some(*state),
            _ => None,
        }
    }
}

/// What is now at a path where a turn made something beyond the limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    #[default]
    Nothing,
    /// Something, with its fingerprint, if it has one.
    Something(Option<String>),
}

/// The present state of all that the turns touch.
#[derive(Clone, Debug, Default)]
pub struct Present {
    /// Files, by path.
    pub files: BTreeMap<BString, Occupant>,
    /// What the turns made beyond the limits, or moved, where it is there, with its present state.
    pub aside: BTreeMap<BString, Standing>,
    /// Fingerprints of all of these, and of what is kept aside.
    pub states: BTreeMap<Place, String>,
    /// The directories among these in which something has changed since.
    pub touched: BTreeSet<BString>,
    /// Those with a repository in them, or that are one.
    pub repositories: BTreeSet<BString>,
    /// Those that git has files of by now, which went and came as a whole.
    pub tracked: BTreeSet<BString>,
    /// Of those that cannot be there, and of directories: what is in the place of one, or of one above.
    pub behind: BTreeMap<BString, BString>,
    /// Files that are not there because git leaves them out, by a mark in the index.
    pub left_out: BTreeSet<BString>,
    /// What is not captured and a turn of the walk changed or deleted.
    pub uncovered: BTreeSet<BString>,
    /// The stores in which something is kept aside.
    pub kept: BTreeSet<String>,
    /// The modes of the directories that exist.
    pub directories: BTreeMap<BString, u32>,
    /// The modes of directories above these whose permissions keep the owner from changing their content.
    pub closed: BTreeMap<BString, u32>,
    /// Those above these that are not there, and the modes that they would have.
    pub missing: BTreeMap<BString, u32>,
    /// Index entries, by path.
    pub index: BTreeMap<BString, Vec<IndexEntry>>,
    /// Files whose entries somebody changed, and what turns beside the walk did to them, from the side that is farther from it:
    /// what is staged may have the lines of that. The farthest turn first.
    pub left: BTreeMap<BString, Vec<Change<Option<ObjectId>>>>,
    /// What HEAD has of files of which something may be staged that a turn of the walk did: where the index has no more, nothing is.
    pub committed: BTreeMap<BString, Vec<IndexEntry>>,
    /// Files that somebody has taken out of the index since, and committed so: they stay out of it.
    pub taken_out: BTreeSet<BString>,
    /// All branches.
    pub branches: BTreeMap<String, ObjectId>,
    /// The branches that stand for another ref, and for which.
    pub symbolic: BTreeMap<String, String>,
    /// HEAD.
    pub head: Head,
    /// The stash list.
    pub stash: Vec<StashEntry>,
    /// What git is in the middle of.
    pub operation: Operation,
    /// What that has staged, or left unmerged.
    pub staged: BTreeSet<BString>,
    /// What the user edited since the turns or between them: as it is, and as it was where the
    /// walk leads.
    pub edited: BTreeMap<BString, Change<Option<FileState>>>,
}

/// One turn of a walk.
#[derive(Clone, Debug, Default)]
pub struct TurnDelta {
    /// The turn.
    pub turn: u64,
    /// What it changed, with `from` as the state that the walk comes from.
    pub delta: Delta,
    /// What somebody may have staged of the files that it changed, though it left their entries alone.
    pub staged: BTreeMap<BString, Change<Vec<IndexEntry>>>,
    /// What the last walk over it, the other way, recorded.
    pub returns: ReturnState,
    /// What git was in the middle of where the walk comes from.
    pub within: Operation,
    /// What has been committed since of what it changed, and it moved no ref.
    pub since: Since,
    /// What leads on where the walk comes as far as this turn and not over it; none where it begins here.
    pub short_of: Option<String>,
}

/// What HEAD had as a turn was made, or, of files, as it was undone, and has where the walk comes to it.
#[derive(Clone, Debug, Default)]
pub struct Since {
    /// Where HEAD is, if that has other files than where the turn was made.
    pub head: Option<ObjectId>,
    /// Of files that redo leads on.
    pub files: BTreeMap<BString, Change<Option<FileState>>>,
    /// Of index entries.
    pub entries: BTreeMap<BString, Change<Vec<IndexEntry>>>,
}

impl TurnDelta {
    /// What the last walk took out of the index though the turn had left it alone.
    pub fn returns_of_staged(&self) -> impl Iterator<Item = &IndexMove> {
        self.returns.index.iter().filter(|known| !self.delta.index.contains_key(&known.path))
    }

    /// When it was, in words: what is 0 is no turn but a state that is gone to.
    fn when(&self) -> String {
        if self.turn == 0 { "then".to_owned() } else { format!("in turn {}", self.turn) }
    }

    /// What git was in the middle of where the walk leads.
    fn goal(&self) -> &Operation {
        self.delta.operation.as_ref().map_or(&self.within, |change| &change.to)
    }

    /// Whether a conflict that the turn left is no operation's: what a stash entry had and what was there did not go together.
    fn is_left_by_stash(&self) -> bool {
        !self.delta.operation.as_ref().map_or(&self.within, |change| &change.from).is_under_way()
    }

    /// Leaves the refs where they are.
    pub fn leave_refs(&mut self) {
        self.delta.branches.clear();
        self.delta.symbolic.clear();
        (self.delta.head, self.delta.stash, self.delta.operation) = (None, None, None);
    }
}

/// The stage of what is merged into what was there.
const THEIRS: u8 = 3;

/// Plans a walk over turns, in walking order.
pub fn plan(op: Op, turns: &[TurnDelta], present: &Present, edits: Edits, merge: &mut Merge<'_>) -> Result<Plan> {
    let mut planner = Planner {
        op,
        present,
        edits,
        merge,
        files: BTreeMap::new(),
        directories: BTreeMap::new(),
        removed: BTreeMap::new(),
        aside: Shelf::default(),
        carried: BTreeMap::new(),
        index: BTreeMap::new(),
        branches: BTreeMap::new(),
        symbolic: BTreeMap::new(),
        head: present.head.clone(),
        stash: present.stash.clone(),
        operation: present.operation.clone(),
        is_lost: false,
        beside: None,
        torn: None,
        left: present.left.clone(),
        unstaged: BTreeSet::new(),
        still_staged: BTreeSet::new(),
        went_along: BTreeSet::new(),
        overwritten: BTreeSet::new(),
        touched: BTreeSet::new(),
        staying: BTreeSet::new(),
        reached: BTreeSet::new(),
        returned: BTreeSet::new(),
        returned_whole: BTreeSet::new(),
        overlaps: BTreeMap::new(),
        moved: None,
        turns: turns.iter().map(|turn| turn.turn).collect(),
    };
    planner.reached = planner.reached_by(turns);
    let files = returning(turns.iter().flat_map(|turn| &turn.delta.files));
    planner.returned = files.into_iter().map(|(path, _)| path.clone()).collect();
    planner.returned_whole = planner.whole_returned_by(turns);
    let mut returns = Vec::new();
    for turn in turns {
        returns.push((turn.turn, planner.turn(turn)?));
    }
    planner.check_places();
    let mut plan = planner.finish(op)?;
    plan.returns = returns;
    Ok(plan)
}

struct Planner<'a, 'm> {
    op: Op,
    present: &'a Present,
    edits: Edits,
    merge: &'a mut Merge<'m>,
    files: BTreeMap<BString, Option<FileState>>,
    directories: BTreeMap<BString, Option<u32>>,
    /// The modes of directories that a turn of the walk removes.
    removed: BTreeMap<BString, u32>,
    aside: Shelf,
    /// Files that come by one turn of the walk and go aside by the next, by the store that they would go to.
    carried: BTreeMap<String, FileState>,
    index: BTreeMap<BString, Vec<IndexEntry>>,
    branches: BTreeMap<String, Option<ObjectId>>,
    symbolic: BTreeMap<String, Option<String>>,
    head: Head,
    stash: Vec<StashEntry>,
    operation: Operation,
    /// Whether the operation is over in the middle of which the turn leads.
    is_lost: bool,
    /// A turn after which the user has begun something.
    beside: Option<u64>,
    /// Why the operation in progress cannot be brought from one state to the other.
    torn: Option<String>,
    /// What the turns of the walk did to files, or turns beside it: what is staged may have their lines.
    left: BTreeMap<BString, Vec<Change<Option<ObjectId>>>>,
    unstaged: BTreeSet<BString>,
    still_staged: BTreeSet<BString>,
    /// The paths of renamed files that the user's edits moved with.
    went_along: BTreeSet<BString>,
    overwritten: BTreeSet<BString>,
    touched: BTreeSet<BString>,
    staying: BTreeSet<BString>,
    /// Files that are as the walk leaves them already, whatever its turns did to them on the way.
    reached: BTreeSet<BString>,
    /// Files that were taken out of a turn of the walk before, which is taken back with that: what somebody has in their place now stays.
    returned: BTreeSet<BString>,
    /// The same, of what goes and comes as a whole.
    returned_whole: BTreeSet<BString>,
    overlaps: BTreeMap<BString, Cause>,
    /// The first ref that is not where a turn left it.
    moved: Option<Moved>,
    /// The turns of the walk.
    turns: Vec<u64>,
}

/// The rule for the stash list: entries that the change removes go, those that it adds come on top, and every
/// other entry stays. What the user had dropped before the last walk stays dropped.
fn merged_stash(
    now: &[StashEntry],
    change: &Change<Vec<StashEntry>>,
    remembered: Option<&Change<Vec<StashEntry>>>,
) -> Vec<StashEntry> {
    let now = remembered.into_iter().chain([change]).fold(now.to_vec(), known_as);
    if let Some(was) = remembered.filter(|was| now == was.from) {
        return was.to.clone();
    }
    if now == change.from && remembered.is_none() {
        return change.to.clone();
    }
    let gone = |entry: &&StashEntry| change.from.contains(entry) && !change.to.contains(entry);
    let is_dropped = |entry: &StashEntry| remembered.is_some_and(|was| !was.to.contains(entry));
    let back = |entry: &&StashEntry| !change.from.contains(entry) && !now.contains(entry) && !is_dropped(entry);
    let back = change.to.iter().filter(back);
    back.chain(now.iter().filter(|entry| !gone(entry))).cloned().collect()
}

/// What these changes, one after the other, lead back to what it was, and that.
fn returning<'d, T: PartialEq + 'd>(
    changes: impl Iterator<Item = (&'d BString, &'d Change<T>)>,
) -> Vec<(&'d BString, &'d T)> {
    let mut chains: BTreeMap<&BString, (&T, Option<&T>)> = BTreeMap::new();
    for (path, change) in changes {
        let (_, to) = chains.entry(path).or_insert((&change.from, Some(&change.from)));
        *to = to.filter(|to| **to == change.from).map(|_| &change.to);
    }
    let is_back =
        |(path, (from, to)): (&'d BString, (&'d T, Option<&'d T>))| (to == Some(from)).then_some((path, from));
    chains.into_iter().filter_map(is_back).collect()
}

impl Planner<'_, '_> {
    fn whole_returned_by(&self, turns: &[TurnDelta]) -> BTreeSet<BString> {
        let whole = returning(turns.iter().flat_map(|turn| &turn.delta.aside)).into_iter();
        let is_in_place = |(path, was): &(&BString, &Option<Aside>)| was.is_none() && self.thing_at(path).is_some();
        whole.filter(is_in_place).map(|(path, _)| path.clone()).collect()
    }

    /// The files that are where the walk leads to before it begins: the user has thrown away what its turns did.
    fn reached_by(&self, turns: &[TurnDelta]) -> BTreeSet<BString> {
        let goals: BTreeMap<&BString, Option<FileState>> =
            turns.iter().flat_map(|turn| turn.delta.files.iter().map(|(path, change)| (path, change.to))).collect();
        let is_there =
            |(path, goal): &(&BString, Option<FileState>)| goal.is_some() && self.occupant(path).file() == *goal;
        goals.into_iter().filter(is_there).map(|(path, _)| path.clone()).collect()
    }

    /// Walks over one turn; gives what the way back needs to know.
    fn turn(&mut self, turn: &TurnDelta) -> Result<ReturnState> {
        let (overwritten, head) = (self.edits == Edits::Overwrite, turn.since.head);
        let mut way_back = ReturnState { overwritten, head, ..ReturnState::default() };
        // The way back from overwritten edits restores edits: they need no record.
        let forget = turn.returns.overwritten && self.edits != Edits::Overwrite;
        self.operation(turn, &mut way_back);
        // Before the files: it needs them as they are before this turn.
        for (path, change) in &turn.delta.index {
            let remembered = turn.returns.entries(path);
            let now = self.entries_at(path);
            let next = match self.entries_since(path, &now, remembered.as_ref().unwrap_or(change), turn)? {
                Some(next) => next,
                None => self.entries(path, &now, change, turn)?,
            };
            if (&now, &next) != (&change.from, &change.to) && !(forget && remembered.is_some()) {
                way_back.index.push(IndexMove { path: path.clone(), from: next.clone(), to: now });
            }
            self.index.insert(path.clone(), next);
        }
        self.staged(turn, &mut way_back)?;
        self.asides(turn, &mut way_back);
        self.turn_files(turn, forget, &mut way_back)?;
        self.turn_directories(turn, forget, &mut way_back);
        self.make_directories(turn, &mut way_back);
        self.refs(turn, &mut way_back);
        Ok(way_back)
    }

    /// What of the turn's work is staged goes with it, and comes back with it, as far as that can be told from the rest.
    fn staged(&mut self, turn: &TurnDelta, way_back: &mut ReturnState) -> Result<()> {
        for (path, change) in &turn.staged {
            let now = self.entries_at(path);
            if self.head == self.present.head && self.present.committed.get(path) == Some(&now) {
                continue;
            }
            let Some(next) = self.merged_entries(path, &now, change)? else {
                self.still_staged.extend((!now.is_empty()).then(|| path.clone()));
                continue;
            };
            if next == now {
                continue;
            }
            self.unstaged.extend((next == change.to).then(|| path.clone()));
            way_back.index.push(IndexMove { path: path.clone(), from: next.clone(), to: now });
            self.index.insert(path.clone(), next);
        }
        way_back.index.sort_by(|one, other| one.path.cmp(&other.path));
        for known in turn.returns_of_staged().filter(|known| !turn.staged.contains_key(&known.path)) {
            let (now, change) = (self.entries_at(&known.path), Change::new(known.from.clone(), known.to.clone()));
            if let Some(next) = self.merged_entries(&known.path, &now, &change)? {
                self.index.insert(known.path.clone(), next);
            }
        }
        Ok(())
    }

    /// What git is in the middle of is one thing.
    fn operation(&mut self, turn: &TurnDelta, way_back: &mut ReturnState) {
        let now = self.operation.clone();
        let mut is_known = false;
        if let Some(change) = &turn.delta.operation {
            let next = match resolved(self.edits, &now, change, turn.returns.operation.as_ref()) {
                Some(next) => next,
                None if self.edits == Edits::Overwrite => change.to.clone(),
                // The user has quit what the turn began: git leaves the message there.
                None if now.is_rest_of(&change.from) && !change.to.is_under_way() => change.to.clone(),
                None => {
                    // A message alone is nothing that could be torn.
                    let all = [&now, &change.from, &change.to];
                    if let Some(one) = all.into_iter().find(|one| one.is_under_way()) {
                        let (word, then) = (one.word(), turn.when());
                        self.torn.get_or_insert_with(|| format!("the {word} in progress is not as it was {then}"));
                    }
                    now.clone()
                }
            };
            if next != now && (next.unread.is_some() || now.unread.is_some()) {
                let why = format!(
                    "what git was in the middle of {} is too large, closed to others, or not recorded here",
                    turn.when()
                );
                self.torn = Some(why);
            }
            let known = turn.returns.operation.as_ref();
            is_known = known.is_some_and(|known| (&known.from, &known.to) == (&now, &next));
            if (&now, &next) != (&change.from, &change.to) {
                way_back.operation = Some(Change::new(next.clone(), now));
            }
            self.operation = next;
        } else if now.is_under_way() && now != turn.within && !self.leaves_alone(&now, turn) {
            self.beside.get_or_insert(turn.turn);
        }
        // Where the walk before led away from an end of it, all that was there comes back.
        self.is_lost = !is_known && turn.goal().is_under_way() && self.operation != *turn.goal();
    }

    /// Whether a turn has nothing to do with an operation that is in progress on the way to it.
    fn leaves_alone(&self, operation: &Operation, turn: &TurnDelta) -> bool {
        let Delta { head, index, files, .. } = &turn.delta;
        let is_staged = |path: &BString| self.index.contains_key(path) || self.present.staged.contains(path);
        head.is_none()
            && index.is_empty()
            && (files.is_empty() || !operation.has_autostash())
            && !files.keys().any(is_staged)
    }

    /// What goes and comes as a whole.
    fn asides(&mut self, turn: &TurnDelta, way_back: &mut ReturnState) {
        // What goes aside makes way for a file, and what comes back finds its place free where one goes.
        // What goes comes first: it may come back under another name.
        let (mut absent, changes) = (BTreeSet::new(), &turn.delta.aside);
        let changes: Vec<_> = changes.iter().filter(|(path, _)| !self.returned_whole.contains(*path)).collect();
        for &(path, change) in &changes {
            if let Some(left) = &change.from
                && !self.goes_aside(path, left, turn, way_back)
                && change.to.is_none()
            {
                absent.insert(path);
            }
        }
        for (path, change) in changes {
            if let Some(back) = &change.to
                && !self.comes_back(path, back, turn)
            {
                absent.insert(path);
            }
        }
        way_back.absent.extend(absent.into_iter().map(|path| exact::encode(path)));
    }

    fn turn_files(&mut self, turn: &TurnDelta, forget: bool, way_back: &mut ReturnState) -> Result<()> {
        let moved = self.moved_edits(turn);
        self.went_along.extend(moved.iter().filter(|(_, next)| next.is_some()).map(|(path, _)| path.clone()));
        for (path, change) in &turn.delta.files {
            // What came as a whole and goes as a file, as into the stash, is kept where it was.
            if change.to.is_none()
                && !turn.delta.aside.contains_key(path)
                && let Some(thing) = self.aside.arrived(path)
            {
                self.aside.put_back(thing, path);
                self.files.insert(path.clone(), None);
                continue;
            }
            let remembered = turn.returns.file(path);
            let now = self.file_at(path);
            let next = match moved.get(path) {
                Some(next) => *next,
                None if self.has_given_up(path, now, remembered.as_ref(), turn) => change.to,
                None if self.is_over(path, now, remembered.as_ref(), turn) => now,
                None if self.is_reached(path, now, change, remembered.as_ref()) => now,
                None if self.is_untracked_and_gone(path, now, remembered.as_ref(), turn) => change.to,
                None => match self.file_since(path, now, remembered.as_ref().unwrap_or(change), turn)? {
                    Some(led) => led.to,
                    None => self.file(path, now, change, remembered.as_ref())?,
                },
            };
            let is_as_ever =
                (now, next) == (change.from, change.to) || self.is_back(now, change, remembered.as_ref(), turn);
            if !(is_as_ever || forget && remembered.is_some()) {
                way_back.files.push(FileMove { path: path.clone(), from: next, to: now });
            }
            self.files.insert(path.clone(), next);
            let left = Change::new(change.from.map(|file| file.id), change.to.map(|file| file.id));
            let known = self.left.entry(path.clone()).or_default();
            if left.from.is_some() && !known.contains(&left) {
                known.push(left);
            }
        }
        Ok(())
    }

    /// Whether a file of a turn that moved no ref was away as that was undone, as in the stash, and is here again: then it is the
    /// turn's as ever.
    fn is_back(
        &self,
        now: Option<FileState>,
        change: &Change<Option<FileState>>,
        remembered: Option<&Change<Option<FileState>>>,
        turn: &TurnDelta,
    ) -> bool {
        let was_away = remembered.is_some_and(|was| [was.from, was.to] == [change.from; 2]);
        self.op == Op::Redo && turn.delta.head.is_none() && was_away && now == change.to
    }

    /// Whether a file stays as it is, since that is where the walk leads to.
    fn is_reached(
        &self,
        path: &BString,
        now: Option<FileState>,
        change: &Change<Option<FileState>>,
        remembered: Option<&Change<Option<FileState>>>,
    ) -> bool {
        (self.reached.contains(path) || self.returned.contains(path))
            && now == self.occupant(path).file()
            && resolved(self.edits, &now, change, remembered).is_none()
    }

    /// The user may have deleted a directory with all that is in it, of which a file is overwritten, or something comes back as a whole, or one
    /// that was empty.
    fn make_directories(&mut self, turn: &TurnDelta, way_back: &mut ReturnState) {
        if self.present.missing.is_empty() {
            return;
        }
        let written = self.files.iter().filter(|(_, to)| to.is_some()).map(|(path, _)| path.as_bstr());
        let is_made =
            |(path, to): &(&BString, &Option<u32>)| to.is_some() && !self.present.directories.contains_key(*path);
        let made = self.directories.iter().filter(is_made).map(|(path, _)| path.as_bstr());
        let whole =
            turn.delta.aside.keys().filter(|path| self.aside.arrived(path).is_some()).map(|path| path.as_bstr());
        let all = all_parents(written.chain(made).chain(whole));
        let needed: BTreeSet<BString> = all.into_iter().map(ToOwned::to_owned).collect();
        for (path, mode) in self.present.missing.iter().filter(|(path, _)| needed.contains(*path)) {
            if self.directories.get(path).copied().flatten().is_none() {
                self.directories.insert(path.clone(), Some(*mode));
                way_back.directories.push(DirectoryMove { path: path.clone(), from: Some(*mode), to: None });
            }
        }
        way_back.directories.sort_by(|a, b| a.path.cmp(&b.path));
    }

    fn turn_directories(&mut self, turn: &TurnDelta, forget: bool, way_back: &mut ReturnState) {
        let own = turn.delta.directories.iter().map(|(path, change)| (path, change.clone()));
        let returns = turn.returns.directories.iter().filter(|other| !turn.delta.directories.contains_key(&other.path));
        let made = returns.map(|other| (&other.path, Change::new(other.from, other.to)));
        for (path, change) in own.chain(made) {
            let standing = self.directory_found_at(path);
            let now = *self.directories.entry(path.clone()).or_insert(standing);
            let remembered = turn.returns.directory(path);
            let led = remembered.clone().filter(|way| way.from == now).unwrap_or_else(|| change.clone());
            // A directory that the user changed stays; only empty ones are ever removed.
            let next = resolve_trivially(&now, &led).unwrap_or(now);
            if let (Some(mode), None) = (now, next) {
                self.removed.insert(path.clone(), mode);
            }
            if (now, next) != (change.from, change.to) && !(forget && remembered.is_some()) {
                way_back.directories.push(DirectoryMove { path: path.clone(), from: next, to: now });
            }
            self.directories.insert(path.clone(), next);
        }
    }

    /// The user's edits to files that this turn only renames: they move along. Gives each file's old name, where
    /// nothing stays, and its new one.
    fn moved_edits(&self, turn: &TurnDelta) -> BTreeMap<BString, Option<FileState>> {
        let mut moved = BTreeMap::new();
        if self.edits != Edits::Merge {
            return moved;
        }
        let led = |path: &BString, change: &Change<Option<FileState>>| {
            turn.returns.file(path).map_or((change.from, change.to), |remembered| (remembered.from, remembered.to))
        };
        for (old, change) in &turn.delta.files {
            let ((Some(from), None), Some(now)) = (led(old, change), self.file_at(old)) else { continue };
            // An earlier turn of the walk may have given it this name.
            let is_file = self.went_along.contains(old) || matches!(self.occupant(old), Occupant::File(_));
            if now == from || !is_file {
                continue;
            }
            let same = |state: Option<FileState>| state.is_some_and(|state| state.same_content(&from));
            let files = || turn.delta.files.iter().map(|(path, change)| (path, led(path, change)));
            let gone = files().filter(|(_, led)| same(led.0) && led.1.is_none()).count();
            let mut come = files().filter(|(_, led)| led.0.is_none() && same(led.1));
            // Only where it is certain which file became which.
            let (1, Some((new, (_, to))), None) = (gone, come.next(), come.next()) else { continue };
            if self.file_at(new).is_none()
                && let Verdict::Becomes(next) = merge::file(Some(now), &Change::new(Some(from), to))
            {
                moved.insert(old.clone(), None);
                moved.insert(new.clone(), next);
            }
        }
        moved
    }

    fn refs(&mut self, turn: &TurnDelta, way_back: &mut ReturnState) {
        let delta = &turn.delta;
        for (name, change) in &delta.branches {
            let now = *self.branches.entry(name.clone()).or_insert_with(|| self.present.branches.get(name).copied());
            // HEAD's branch must be exactly where the turn left it: if it is back already, something other than
            // undo moved it.
            let current = self.present.head.branch.as_ref() == Some(name);
            let is_left = delta.head.as_ref().is_some_and(|head| head.to.branch.as_ref() != Some(name));
            let remembered = turn.returns.branch(name).filter(|was| was.from == now && (!current || is_left));
            let next = remembered.map(|was| was.to).or_else(|| resolve_trivially(&now, change));
            let Some(next) = next.filter(|_| !current || now == change.from) else {
                self.note_moved(name, change.from, turn);
                continue;
            };
            if (now, next) != (change.from, change.to) {
                way_back.branches.push(BranchMove { name: name.clone(), from: next, to: now });
            }
            self.branches.insert(name.clone(), next);
        }
        for (name, change) in &delta.symbolic {
            let now = self.symbolic.entry(name.clone()).or_insert_with(|| self.present.symbolic.get(name).cloned());
            match resolve_trivially(now, change) {
                Some(next) => *now = next,
                None => self.note_moved(name, None, turn),
            }
        }
        if let Some(change) = &delta.head {
            if self.head == change.from {
                self.head = change.to.clone();
            } else {
                let name = self.head.stack().to_owned();
                self.note_moved(&name, change.from.commit, turn);
            }
        }
        if let Some(change) = &delta.stash {
            let next = merged_stash(&self.stash, change, turn.returns.stash.as_ref());
            let now = std::mem::replace(&mut self.stash, next.clone());
            if (&now, &next) != (&change.from, &change.to) {
                way_back.stash = Some(Change::new(next, now));
            }
        }
    }

    fn note_moved(&mut self, name: &str, left: Option<ObjectId>, turn: &TurnDelta) {
        // What was there when the walk began can be put back; as far as here the walk has led it itself.
        let walked = self.branches.get(name).is_some_and(|now| *now != self.present.branches.get(name).copied());
        // A later turn began elsewhere on it: put back it would be in the way of that one.
        let began = self.head.stack() == name && self.head.commit != left;
        let instead = turn.short_of.clone().filter(|_| walked || began || self.present.head.stack() == name);
        self.moved.get_or_insert_with(|| Moved { name: name.to_owned(), left, instead });
    }

    fn occupant(&self, path: &BString) -> &Occupant {
        self.present.files.get(path).unwrap_or(&Occupant::Absent)
    }

    /// The file at a path, where the walk is now.
    fn file_at(&self, path: &BString) -> Option<FileState> {
        self.files.get(path).copied().unwrap_or_else(|| self.found_at(path))
    }

    /// The file that was found at a path, unless it is moved aside.
    fn found_at(&self, path: &BString) -> Option<FileState> {
        if self.aside.has_taken(path) { None } else { self.occupant(path).file() }
    }

    /// The mode of the directory that was found at a path, unless it is moved aside.
    fn directory_found_at(&self, path: &BString) -> Option<u32> {
        if self.aside.has_taken(path) { None } else { self.present.directories.get(path).copied() }
    }

    fn entries_at(&self, path: &BString) -> Vec<IndexEntry> {
        self.index.get(path).or_else(|| self.present.index.get(path)).cloned().unwrap_or_default()
    }

    fn file(
        &mut self,
        path: &BString,
        now: Option<FileState>,
        change: &Change<Option<FileState>>,
        remembered: Option<&Change<Option<FileState>>>,
    ) -> Result<Option<FileState>> {
        if *self.occupant(path) == Occupant::Other {
            return Ok(self.overlap(path, now, Cause::NotCaptured));
        }
        if let Some(next) = resolved(self.edits, &now, change, remembered) {
            return Ok(next);
        }
        if matches!(self.occupant(path), Occupant::NotCaptured(_)) && !self.files.contains_key(path) {
            return Ok(self.overlap(path, now, Cause::NotCaptured));
        }
        if self.edits == Edits::Overwrite {
            self.overwritten.insert(path.clone());
            return Ok(change.to);
        }
        if self.edits == Edits::Refuse {
            return Ok(self.overlap(path, now, Cause::Edited));
        }
        Ok(match self.merged_file(path, now, remembered.unwrap_or(change))? {
            Ok(next) => next,
            Err(cause) => self.overlap(path, now, cause),
        })
    }

    /// Whether somebody has deleted, or moved out of the way, what the turn had left as no file of git's any more, as one that is ignored: it
    /// comes back as git's.
    fn is_untracked_and_gone(
        &self,
        path: &BString,
        now: Option<FileState>,
        remembered: Option<&Change<Option<FileState>>>,
        turn: &TurnDelta,
    ) -> bool {
        let is_untracked = |change: &Change<Vec<IndexEntry>>| change.from.is_empty() && !change.to.is_empty();
        self.op == Op::Undo
            && self.edits == Edits::Merge
            && (now, remembered) == (None, None)
            && *self.occupant(path) == Occupant::Absent
            && turn.delta.index.get(path).is_some_and(is_untracked)
    }

    /// How a file is led where something of it has been committed since the turn was undone: redo leaves that, though the turn had put it
    /// away. None where that cannot be told, or nothing has.
    fn file_since(
        &mut self,
        path: &BString,
        now: Option<FileState>,
        change: &Change<Option<FileState>>,
        turn: &TurnDelta,
    ) -> Result<Option<Change<Option<FileState>>>> {
        let Some(since) = turn.since.files.get(path) else { return Ok(None) };
        if let Ok(to) = self.merged_file(path, change.to, since)? {
            if now == change.from {
                return Ok(Some(Change::new(now, to)));
            }
            if let Ok(from) = self.merged_file(path, change.from, since)?
                && let Ok(next) = self.merged_file(path, now, &Change::new(from, to))?
            {
                return Ok(Some(Change::new(now, next)));
            }
        }
        Ok((now == since.to && change.to == since.from).then_some(Change::new(now, now)))
    }

    /// What is staged becomes where all of it has been committed since: as it is, where the walk changes nothing beside that, or it cannot
    /// be told.
    fn entries_since(
        &mut self,
        path: &BString,
        now: &Vec<IndexEntry>,
        change: &Change<Vec<IndexEntry>>,
        turn: &TurnDelta,
    ) -> Result<Option<Vec<IndexEntry>>> {
        let Some(since) = turn.since.entries.get(path).filter(|since| since.to == *now) else { return Ok(None) };
        let ends = [self.merged_entries(path, &change.from, since)?, self.merged_entries(path, &change.to, since)?];
        let [Some(from), Some(to)] = ends else { return Ok(Some(now.clone())) };
        Ok(Some(self.merged_entries(path, now, &Change::new(from, to))?.unwrap_or_else(|| now.clone())))
    }

    /// Whether somebody has given up the conflict that the turn left in a file, so that one of its sides is all that there is.
    fn has_given_up(
        &self,
        path: &BString,
        now: Option<FileState>,
        remembered: Option<&Change<Option<FileState>>>,
        turn: &TurnDelta,
    ) -> bool {
        let is_known = remembered.is_some_and(|remembered| remembered.from == now);
        let entries = turn.delta.index.get(path);
        let is_side = |now: FileState| entries.is_some_and(|change| is_given_up(now.id, change, turn));
        self.edits == Edits::Merge && !is_known && now.is_some_and(is_side)
    }

    /// Whether the operation is over in which the turn leads to a conflict, and one of its sides is all that there is.
    fn is_over(
        &self,
        path: &BString,
        now: Option<FileState>,
        remembered: Option<&Change<Option<FileState>>>,
        turn: &TurnDelta,
    ) -> bool {
        if remembered.is_some_and(|remembered| remembered.from == now) {
            return false;
        }
        let entries = turn.delta.index.get(path).map_or(&[][..], |change| &change.to);
        self.is_lost && now.is_some_and(|now| entries.iter().any(|entry| entry.stage > 0 && entry.id == now.id))
    }

    fn entries(
        &mut self,
        path: &BString,
        now: &Vec<IndexEntry>,
        change: &Change<Vec<IndexEntry>>,
        turn: &TurnDelta,
    ) -> Result<Vec<IndexEntry>> {
        let remembered = turn.returns.entries(path);
        let remembered = remembered.as_ref();
        // No commit could be made with it, and nothing would end it.
        let is_known = remembered.is_some_and(|remembered| remembered.from == *now);
        if self.is_lost && !is_known && change.to.iter().any(|entry| entry.stage > 0) {
            return Ok(now.clone());
        }
        if let Some(next) = resolved(self.edits, now, change, remembered) {
            return Ok(next);
        }
        if self.edits == Edits::Overwrite {
            return Ok(change.to.clone());
        }
        if self.edits == Edits::Refuse {
            return Ok(self.overlap(path, now.clone(), Cause::Edited));
        }
        if now.is_empty() && self.present.taken_out.contains(path) {
            return Ok(Vec::new());
        }
        if now.iter().all(|entry| is_given_up(entry.id, change, turn)) && !now.is_empty() {
            return Ok(change.to.clone());
        }
        if let Some(next) = self.without_unstaged(path, now, change, turn.delta.files.get(path))? {
            return Ok(next);
        }
        let ways = self.ways(path, remembered.unwrap_or(change), turn.delta.files.get(path));
        let apart = self.without_others(path, now)?;
        // What is undone is not to stay staged; what is redone was not staged by the turns before.
        let both = if self.op == Op::Undo { [&apart, now] } else { [now, &apart] };
        for staged in both {
            if let Some(merged) = self.merged_by(path, staged, &ways)? {
                return Ok(merged);
            }
        }
        // The file where the walk is now, and as it was found: what was in that is carried along, from step to step.
        let files = [self.file_at(path), self.occupant(path).file()].map(|file| file.map(|file| file.id));
        let elsewhere =
            |entry: &IndexEntry| entry.intent_to_add || (entry.stage == 0 && files.contains(&Some(entry.id)));
        if now.iter().all(elsewhere) {
            self.unstaged.insert(path.clone());
            return Ok(change.to.clone());
        }
        Ok(self.overlap(path, now.clone(), Cause::Staged))
    }

    /// What is staged without what the turn did to the file beyond what it staged itself, where somebody has staged that since, and
    /// without what it staged.
    fn without_unstaged(
        &mut self,
        path: &BString,
        now: &Vec<IndexEntry>,
        change: &Change<Vec<IndexEntry>>,
        file: Option<&Change<Option<FileState>>>,
    ) -> Result<Option<Vec<IndexEntry>>> {
        let (Op::Undo, [entry], Some(Change { from: Some(from), to: Some(to) })) = (self.op, &change.from[..], file)
        else {
            return Ok(None);
        };
        if entry.id == from.id {
            return Ok(None);
        }
        let with = |id| vec![IndexEntry { id, ..*entry }];
        let rest = self.merged_entries(path, now, &Change::new(with(from.id), with(to.id)))?;
        rest.map_or(Ok(None), |rest| self.merged_entries(path, &rest, change))
    }

    /// The changes that can be merged into what is staged, the best one first: the turn's own; the same from what
    /// other turns left in the file only, which was staged with lines of the user's; and what the turn did to the
    /// file, which leaves out what was unstaged before it, and was staged since.
    fn ways(
        &self,
        path: &BString,
        change: &Change<Vec<IndexEntry>>,
        file: Option<&Change<Option<FileState>>>,
    ) -> Vec<Change<Vec<IndexEntry>>> {
        let with = |entries: &[IndexEntry], id| entries.iter().map(|entry| IndexEntry { id, ..*entry }).collect();
        let left = self.left.get(path).into_iter().flatten().filter_map(|left| left.from);
        let left: Vec<Vec<IndexEntry>> = left.map(|left| with(&change.from, left)).collect();
        let mut ways = vec![change.clone()];
        ways.extend(left.iter().map(|from| Change::new(from.clone(), change.to.clone())));
        if let Some(Change { from: Some(from), to: Some(to) }) = file {
            let from = left.into_iter().chain([with(&change.from, from.id)]);
            ways.extend(from.map(|from| Change::new(from, with(&change.to, to.id))));
        }
        ways
    }

    fn merged_by(
        &mut self,
        path: &BString,
        now: &Vec<IndexEntry>,
        ways: &[Change<Vec<IndexEntry>>],
    ) -> Result<Option<Vec<IndexEntry>>> {
        for change in ways {
            if let Some(merged) = self.merged_entries(path, now, change)? {
                return Ok(Some(merged));
            }
        }
        Ok(None)
    }

    /// What is staged without what other turns did to the file, each by itself: the user may have changed the same lines between
    /// them, and again since.
    fn without_others(&mut self, path: &BString, now: &[IndexEntry]) -> Result<Vec<IndexEntry>> {
        let mut staged = now.to_vec();
        for left in self.left.get(path).cloned().unwrap_or_default() {
            let ([entry], Some(from), Some(to)) = (&staged[..], left.from, left.to) else { continue };
            let with = |id| vec![IndexEntry { id, ..*entry }];
            let change = Change::new(with(from), with(to));
            if let Some(without) = self.merged_entries(path, &staged, &change)? {
                staged = without;
            }
        }
        Ok(staged)
    }

    fn merged_entries(
        &mut self,
        path: &BString,
        now: &Vec<IndexEntry>,
        change: &Change<Vec<IndexEntry>>,
    ) -> Result<Option<Vec<IndexEntry>>> {
        Ok(match merge::entries(now, change) {
            Verdict::Becomes(next) => Some(next),
            Verdict::Overlap(_) => None,
            Verdict::Merge(next, blobs) => match (self.merge)(path.as_bstr(), blobs)? {
                Merged::Clean(id) => Some(next.into_iter().map(|entry| IndexEntry { id, ..entry }).collect()),
                Merged::Overlap(_) => None,
            },
        })
    }

    fn merged_file(
        &mut self,
        path: &BString,
        now: Option<FileState>,
        change: &Change<Option<FileState>>,
    ) -> Result<Result<Option<FileState>, Cause>> {
        Ok(match merge::file(now, change) {
            Verdict::Becomes(next) => Ok(next),
            Verdict::Overlap(cause) => Err(cause),
            Verdict::Merge(next, blobs) => match (self.merge)(path.as_bstr(), blobs)? {
                Merged::Clean(id) => Ok(next.map(|next| FileState { id, ..next })),
                Merged::Overlap(cause) => Err(cause),
            },
        })
    }

    /// Notes an overlap: the path stays as it is.
    fn overlap<T>(&mut self, path: &BString, now: T, cause: Cause) -> T {
        self.note(path, cause);
        now
    }

    fn note(&mut self, path: &BString, cause: Cause) {
        let cause = match cause {
            Cause::Deleted if self.present.left_out.contains(path) => Cause::LeftOut,
            cause => cause,
        };
        // A file's cause says more than its entry's.
        let known = self.overlaps.entry(path.clone()).or_insert_with(|| cause.clone());
        if *known == Cause::Staged {
            *known = cause;
        }
    }

    /// Whether what is at a path now is a file or directory that this turn takes away, and nothing that goes as a whole.
    fn is_taken_away(&self, path: &BString, turn: &TurnDelta, comes: bool) -> bool {
        let file_goes = turn.delta.files.get(path).is_some_and(|file| file.from.is_some() && file.to.is_none());
        let directory_goes = turn.delta.directories.get(path).is_some_and(|directory| directory.to.is_none())
            || self.directories.get(path) == Some(&None);
        file_goes || (comes && directory_goes)
    }

    /// What goes aside, as a whole, from a path, where the walk is now.
    fn thing_at(&self, path: &BString) -> Option<Thing> {
        let standing = self.present.aside.get(path).is_some_and(|standing| *standing != Standing::Nothing);
        // What the walk knows as a file is none.
        let standing = standing && !self.files.contains_key(path);
        self.aside.at_path(path, standing)
    }

    /// Moves aside what is still as the turn left it. Says whether it is there.
    fn goes_aside(&mut self, path: &BString, left: &Aside, turn: &TurnDelta, way_back: &mut ReturnState) -> bool {
        let is_taken_away = self.is_taken_away(path, turn, false);
        let thing = self.thing_at(path).filter(|_| !is_taken_away);
        let Some(thing) = thing else {
            if let Some(Some(state)) = self.files.get(path).copied().filter(|_| !is_taken_away) {
                // A turn of the walk has it as a file, and nobody knows what it was before that.
                if self.occupant(path).file().is_some() && self.edits != Edits::Overwrite {
                    self.note(path, Cause::Changed);
                }
                // Else it comes as a file, out of the stash: in the end it is in no store.
                self.files.insert(path.clone(), None);
                way_back.files.push(FileMove { path: path.clone(), from: None, to: Some(state) });
                self.carried.insert(left.store.clone(), state);
                return true;
            }
            self.leave_out_directories(path);
            return false;
        };
        let standing = self.present.aside.get(path);
        let is_found = thing.origin == Place::Path(path.clone());
        let comes_again = |other: &Change<Option<Aside>>| other.to.as_ref().is_some_and(|to| to.store == left.store);
        let is_repository = || self.present.repositories.contains(path) && !turn.delta.aside.values().any(comes_again);
        if is_found && (self.present.tracked.contains(path) || is_repository()) {
            self.staying.insert(path.clone());
            return false;
        }
        if is_found && self.present.touched.contains(path) {
            if self.edits == Edits::Refuse {
                self.note(path, Cause::Edited);
            }
            self.touched.insert(path.clone());
        }
        // As it is now it is kept, too.
        if is_found && standing != Some(&Standing::Something(left.state.clone())) && self.edits != Edits::Overwrite {
            self.note(path, Cause::Changed);
        } else {
            self.aside.put(thing, Place::Path(path.clone()), Place::Store(self.free_store(&left.store)));
        }
        true
    }

    /// This store, or another where a copy is left in it of what came back by another way, as out of the stash: one whose number
    /// no turn gives.
    fn free_store(&self, wanted: &str) -> String {
        let mut store = wanted.to_owned();
        while self.aside.in_store(&store, &self.present.kept).is_some() {
            store.push_str("000000");
        }
        store
    }

    /// Moves back what was kept aside where nothing else has taken its place. Says whether it is anywhere; what is kept
    /// nowhere, though it was, is lost.
    fn comes_back(&mut self, path: &BString, back: &Aside, turn: &TurnDelta) -> bool {
        let is_free = self.thing_at(path).is_none() || self.is_taken_away(path, turn, true);
        let kept = self.aside.in_store(&back.store, &self.present.kept);
        let moved_from =
            turn.delta.aside.iter().find(|(_, it)| it.from.as_ref().is_some_and(|it| it.store == back.store));
        let carried = self.carried.remove(&back.store).or_else(|| {
            let remembered = turn.returns.file(path).filter(|it| it.from.is_none() && kept.is_none());
            remembered.and_then(|it| it.to)
        });
        let behind = self.present.behind.get(path);
        let behind = behind.filter(|above| !self.goes(above) && !self.is_taken_away(above, turn, true)).cloned();
        let is_absent = kept.is_none() && turn.returns.was_absent(path.as_bstr());
        match kept {
            // The walk before left it where it was.
            _ if !is_free && is_absent => return false,
            _ if !is_free => self.note(path, Cause::InTheWay),
            Some(_) if behind.is_some() => behind.iter().for_each(|above| self.note(above, Cause::InTheWay)),
            Some(thing) => self.aside.put(thing, Place::Store(back.store.clone()), Place::Path(path.clone())),
            None if carried.is_some() => drop(self.files.insert(path.clone(), carried)),
            None if is_absent => return false,
            None if moved_from.is_some_and(|(from, _)| self.present.uncovered.contains(from)) => return false,
            None if moved_from.is_some() && self.edits != Edits::Overwrite => self.note(path, Cause::Gone),
            None if self.edits != Edits::Overwrite => self.note(path, Cause::Lost),
            None => {}
        }
        true
    }

    /// What goes as a whole and is nowhere takes along the directories that the walk would make of it.
    fn leave_out_directories(&mut self, path: &BString) {
        let present = self.present;
        for (directory, to) in &mut self.directories {
            if is_at_or_below(directory.as_bstr(), path.as_bstr()) && !present.directories.contains_key(directory) {
                *to = None;
            }
        }
    }

    /// Notes an overlap where something that stays is in the place of a file to be written.
    fn check_places(&mut self) {
        let mut blocked = Vec::new();
        for (path, state) in &self.files {
            if state.is_none() {
                continue;
            }
            match self.present.files.get(path) {
                Some(Occupant::Directory(below)) => {
                    blocked.extend(below.iter().filter(|inner| !self.goes(inner)).cloned());
                }
                Some(Occupant::Behind(parent)) if !self.goes(parent) => blocked.push(parent.clone()),
                _ => {}
            }
        }
        let made = self
            .directories
            .iter()
            .filter(|(_, to)| to.is_some())
            .filter_map(|(path, _)| self.present.behind.get(path).filter(|above| !self.goes(above)));
        blocked.extend(made.cloned());
        let written = || self.files.iter().filter(|(_, state)| state.is_some()).map(|(path, _)| path);
        let above = all_parents(written().map(|path| path.as_bstr()));
        blocked.extend(written().filter(|path| above.contains(path.as_bstr())).cloned());
        for path in blocked {
            self.note(&path, Cause::InTheWay);
        }
        self.check_replaced();
    }

    /// What the user has put in the place of a file that they took away would be in the way of overwriting it, too.
    fn check_replaced(&mut self) {
        let gone = self.overlaps.iter().filter(|(_, cause)| **cause == Cause::Deleted);
        for path in gone.map(|(path, _)| path.clone()).collect::<Vec<_>>() {
            match self.occupant(&path) {
                Occupant::Directory(below) if below.iter().any(|inner| !self.goes(inner)) => {
                    self.overlaps.insert(path, Cause::Directory);
                }
                Occupant::Behind(above) if !self.goes(above) => {
                    let above = above.clone();
                    self.overlaps.remove(&path);
                    self.note(&above, Cause::InTheWay);
                }
                _ => {}
            }
        }
    }

    /// Whether the plan removes what is at a path now; a directory's path ends with a slash.
    fn goes(&self, path: &BString) -> bool {
        if self.aside.has_taken(path) {
            return true;
        }
        match path.strip_suffix(b"/") {
            Some(directory) => self.directories.get(directory.as_bstr()) == Some(&None),
            None => self.files.get(path) == Some(&None),
        }
    }

    fn directory_moves(&self, files: &[FileMove]) -> Vec<DirectoryMove> {
        // What stays, as it is not proven to be the turn's, stays in its directory.
        let needed = all_parents(files.iter().filter(|file| file.to.is_some()).map(|file| file.path.as_bstr()));
        let moves = self.directories.iter().filter_map(|(path, to)| {
            let stays = || self.removed.get(path).copied().filter(|_| needed.contains(path.as_bstr()));
            let (from, to) = (self.directory_found_at(path), to.or_else(stays));
            (from != to).then(|| DirectoryMove { path: path.clone(), from, to })
        });
        moves.collect()
    }

    fn finish(mut self, op: Op) -> Result<Plan, Refusal> {
        if let Some(moved) = &self.moved {
            return Err(moved_ref(moved, self.present));
        }
        if !self.overlaps.is_empty() {
            return Err(conflict(&self.overlaps, op, self.edits));
        }
        let (present, torn, beside) = (self.present, self.torn.take(), self.beside);
        let files: Vec<_> = (self.files.iter())
            .map(|(path, to)| FileMove { path: path.clone(), from: self.found_at(path), to: *to })
            .filter(|file| file.from != file.to)
            .collect();
        let mut directories = self.directory_moves(&files);
        let mut kept_edits = kept_edits(present, &self.files, self.went_along);
        kept_edits.retain(|path| !self.overwritten.contains(path));
        directories.extend(opened(present, &files, &directories));
        directories.sort_by(|a, b| a.path.cmp(&b.path));
        let aside = with_states_of_unchanged(self.aside.into_moves(&present.states), &files, &directories);
        let index = self.index.into_iter().filter_map(|(path, to)| {
            let from = present.index.get(&path).cloned().unwrap_or_default();
            (from != to).then_some(IndexMove { path, from, to })
        });
        let branches = self.branches.into_iter().filter_map(|(name, to)| {
            let from = present.branches.get(&name).copied();
            (from != to).then_some(BranchMove { name, from, to })
        });
        let symbolic = self.symbolic.into_iter().filter_map(|(name, to)| {
            let from = present.symbolic.get(&name).cloned();
            (from != to).then_some(SymbolicMove { name, from, to })
        });
        let plan = Plan {
            v: 1,
            op,
            turns: self.turns,
            head: Change::new(present.head.clone(), self.head),
            branches: branches.collect(),
            symbolic: symbolic.collect(),
            stash: (present.stash != self.stash).then(|| Change::new(present.stash.clone(), self.stash)),
            operation: Some(Change::new(present.operation.clone(), self.operation)),
            index: index.collect(),
            directories,
            aside,
            kept_edits,
            unstaged: self.unstaged.into_iter().collect(),
            still_staged: self.still_staged.into_iter().collect(),
            overwritten: self.overwritten.into_iter().collect(),
            touched: self.touched.into_iter().collect(),
            staying: self.staying.into_iter().collect(),
            returns: Vec::new(),
            files,
        };
        check_operation(present, torn, beside, &plan)?;
        Ok(plan)
    }
}

/// Refuses what would tear an operation that the user has begun: its commit is to be made upon HEAD as it is, with what is staged
/// as it is; and what is in its stash comes back when it ends.
fn check_operation(present: &Present, torn: Option<String>, beside: Option<u64>, plan: &Plan) -> Result<(), Refusal> {
    let operation = &present.operation;
    let is_staged = || plan.files.iter().any(|file| present.staged.contains(&file.path));
    let moves = || plan.head.from != plan.head.to || !plan.index.is_empty() || is_staged();
    let tears = || moves() || operation.has_autostash() && !plan.files.is_empty();
    let why = torn.or_else(|| {
        let last = beside.filter(|_| tears())?;
        Some(format!("a {} is in progress that turn {last} did not begin", operation.word()))
    });
    let Some(why) = why else { return Ok(()) };
    let refusal = Refusal::new(Code::InProgress, why);
    if operation.is_under_way() {
        let (finish, give_up) = operation.in_progress().hints();
        return Err(refusal.hint(finish).hints(give_up));
    }
    let state = match (plan.op, plan.turns.first()) {
        (Op::Redo, Some(number)) => number.to_string(),
        (_, number) => format!("{}:before", number.copied().unwrap_or_default()),
    };
    Err(refusal.hint(format!("run 'oxundo restore {state}' to bring the files back alone")))
}

/// The directories that must be made writable for changes in them, and then get their mode back.
fn opened(present: &Present, files: &[FileMove], directories: &[DirectoryMove]) -> Vec<DirectoryMove> {
    let changed = || files.iter().map(|file| &file.path).chain(directories.iter().map(|directory| &directory.path));
    let is_closed = |path: &BString| {
        let has_changes = changed().any(|other| parents(other.as_bstr()).any(|parent| parent == path));
        has_changes && directories.iter().all(|directory| directory.path != *path)
    };
    let closed = present.closed.iter().filter(|(path, _)| is_closed(path));
    closed.map(|(path, mode)| DirectoryMove { path: path.clone(), from: Some(*mode), to: Some(*mode) }).collect()
}

/// The result where no merge is needed: a state that the last walk recorded, or one of the turn's own.
fn resolved<T: PartialEq + Clone>(
    edits: Edits,
    now: &T,
    change: &Change<T>,
    remembered: Option<&Change<T>>,
) -> Option<T> {
    let exact = remembered.filter(|remembered| edits != Edits::Overwrite && *now == remembered.from);
    exact.map(|remembered| remembered.to.clone()).or_else(|| resolve_trivially(now, change))
}

/// Whether a content is one side of a conflict that a turn left. What a stash entry had may be nowhere else by now.
fn is_given_up(content: ObjectId, change: &Change<Vec<IndexEntry>>, turn: &TurnDelta) -> bool {
    let is_kept = |stage: u8| stage != THEIRS || !turn.is_left_by_stash();
    change.from.iter().any(|entry| entry.stage > 0 && entry.id == content && is_kept(entry.stage))
}

/// What goes as a whole, with its state, but for that in which the plan itself changes something.
fn with_states_of_unchanged(
    mut moves: Vec<AsideMove>,
    files: &[FileMove],
    directories: &[DirectoryMove],
) -> Vec<AsideMove> {
    let changed: BTreeSet<&BString> = (files.iter().map(|file| &file.path))
        .chain(directories.iter().map(|directory| &directory.path))
        .chain(moves.iter().map(|one| &one.path))
        .collect();
    let has_changes = |path: &BString| {
        let below = [path.as_slice(), b"/"].concat();
        changed.range::<BString, _>(BString::from(below.clone())..).next().is_some_and(|it| it.starts_with(&below))
    };
    let stores: BTreeSet<String> =
        moves.iter().filter(|one| has_changes(&one.path)).map(|one| one.store.clone()).collect();
    for one in moves.iter_mut().filter(|one| stores.contains(&one.store)) {
        one.state = None;
    }
    moves
}

/// The edits that are still there after the walk: paths that are not as in the recorded state it leads to.
fn kept_edits(
    present: &Present,
    files: &BTreeMap<BString, Option<FileState>>,
    went_along: BTreeSet<BString>,
) -> Vec<BString> {
    let kept = present.edited.iter().filter(|(path, edit)| *files.get(*path).unwrap_or(&edit.from) != edit.to);
    let there = went_along.into_iter().filter(|path| files.get(path).is_some_and(Option::is_some));
    let all: BTreeSet<BString> = kept.map(|(path, _)| path.clone()).chain(there).collect();
    all.into_iter().collect()
}

/// The line that puts a branch back to where it was; what it has now stays under another name.
pub fn putting_back(name: &str, left: Option<ObjectId>, exists: bool) -> String {
    let [word, kept] = [name.to_owned(), format!("{name}-kept")].map(|name| branch_word(&name));
    match left.map(|left| left.to_hex_with_len(10).to_string()) {
        // It stays the branch that it is: by a rename git's reflog would say that it is the other.
        Some(left) if exists => format!("git branch {kept} {word} && git branch -qf {word} {left}"),
        Some(left) => format!("git branch {word} {left}"),
        None => format!("git branch -m {word} {kept}"),
    }
}

/// A ref that is not where a turn of the walk left it.
struct Moved {
    name: String,
    /// Where that was.
    left: Option<ObjectId>,
    /// What leads on where the walk itself has led it there.
    instead: Option<String>,
}

/// A branch that is put back keeps what it has now under another name.
fn moved_ref(Moved { name, left, instead }: &Moved, present: &Present) -> Refusal {
    let shown = short_branch(name);
    let refusal = Refusal::new(Code::Branch, format!("'{shown}' is not where the turn left it"));
    if let Some(instead) = instead {
        return refusal.hint(instead);
    }
    let is_here = present.head.stack() == name;
    let line = match left.map(|left| left.to_hex_with_len(10).to_string()) {
        Some(left) if is_here && present.head.commit.is_some() => match &present.head.branch {
            Some(_) => {
                let kept = branch_word(&format!("{name}-kept"));
                format!("git branch {kept} && git reset -q --keep {left}")
            }
            None => format!("git switch -q --detach {left}"),
        },
        Some(left) if is_here => format!("git merge -q --ff-only {left}"),
        _ => putting_back(name, *left, present.branches.contains_key(name)),
    };
    refusal.hint(format!("run '{line}' to put it there, then the same command again"))
}

/// How many paths one line of a message names.
const NAMED: usize = 3;

/// More paths than these are not listed in a line to type.
pub const LISTED: usize = 8;

/// What takes the user's changes out of the way. A stash takes all that is not ignored.
fn out_of_the_way(overlaps: &BTreeMap<BString, Cause>) -> String {
    let left_out = overlaps.iter().filter(|(_, cause)| **cause == Cause::LeftOut);
    let directories: BTreeSet<&[u8]> = left_out.filter_map(|(path, _)| Some(path.rsplit_once_str("/")?.0)).collect();
    if !directories.is_empty() {
        let words: Vec<_> = directories.into_iter().map(shell_word).collect();
        return format!(
            "run 'git sparse-checkout add {}' to have that there, then the same command again",
            words.join(" ")
        );
    }
    let is_stashed = |cause: &Cause| !matches!(cause, Cause::NotCaptured | Cause::InTheWay | Cause::Lost | Cause::Gone);
    if !overlaps.values().all(is_stashed) {
        return "move what is in the way somewhere else, then run the same command again".to_owned();
    }
    let paths = match overlaps.len() {
        0..=LISTED => overlaps.keys().map(pathspec_word).collect::<Vec<_>>().join(" "),
        _ => ":/".to_owned(),
    };
    format!("run 'git stash push -u -- {paths}' to put these changes away, then the same command again")
}

/// The refusal that names what overlaps.
pub fn conflict(overlaps: &BTreeMap<BString, Cause>, op: Op, edits: Edits) -> Refusal {
    let named = overlaps.iter().take(NAMED);
    let mut list: Vec<String> =
        named.map(|(path, cause)| format!("{} ({})", in_quotes(path.as_bstr()), cause.words())).collect();
    if overlaps.len() > NAMED {
        list.push(format!("{} more", overlaps.len() - NAMED));
    }
    let word = op.word();
    let refusal = Refusal::new(Code::Conflict, format!("{word} would overwrite changes in {}", list.join(", ")))
        .hint("run 'oxundo diff' to see what changed since the turn")
        .hint(out_of_the_way(overlaps));
    let refusal = match (op, edits) {
        // `restore` has no such flag: the user moves away what it would overwrite.
        (Op::Restore, _) | (_, Edits::Overwrite) => refusal,
        // What is in no checkpoint, or in the place of something else, is overwritten by nobody.
        _ if overlaps.values().any(|it| matches!(it, Cause::InTheWay | Cause::NotCaptured | Cause::Directory)) => {
            refusal
        }
        _ => refusal.hint("or pass --edits=overwrite, which keeps them in a rescue checkpoint only"),
    };
    refusal.paths(overlaps.keys().cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::checkpoint::Kind;
    use crate::model::merge::Blobs;
    use gix::bstr::BStr;

    fn id(n: u8) -> ObjectId {
        ObjectId::from_bytes_or_panic(&[n; 20])
    }

    fn file(n: u8) -> FileState {
        FileState { kind: Kind::File, id: id(n), mode: 0o644 }
    }

    fn delta(files: &[(&str, Option<FileState>, Option<FileState>)]) -> Delta {
        Delta {
            files: files.iter().map(|(path, from, to)| (BString::from(*path), Change::new(*from, *to))).collect(),
            ..Delta::default()
        }
    }

    fn present(files: &[(&str, Occupant)]) -> Present {
        Present {
            files: files.iter().map(|(path, present)| (BString::from(*path), present.clone())).collect(),
            ..Present::default()
        }
    }

    fn plan_by(steps: &[Delta], present: &Present, edits: Edits) -> Result<Plan, Refusal> {
        let turn_delta =
            |(turn, delta): (u64, &Delta)| TurnDelta { turn, delta: delta.clone(), ..TurnDelta::default() };
        let turns: Vec<_> = (1..).zip(steps).map(turn_delta).collect();
        // Stands for a merge of lines: 100 is an edit that goes together with any other.
        let mut merge = |_: &BStr, blobs: Blobs| {
            let sum = blobs.ours.as_bytes()[0].wrapping_add(blobs.theirs.as_bytes()[0]);
            Ok(if blobs.ours.as_bytes()[0] >= 100 {
                Merged::Clean(id(sum))
            } else {
                Merged::Overlap(Cause::Lines(vec![2..=3]))
            })
        };
        plan(Op::Undo, &turns, present, edits, &mut merge)
            .map_err(|error| error.downcast::<Refusal>().expect("a refusal"))
    }

    fn plan_of(steps: &[Delta], present: &Present) -> Result<Plan, Refusal> {
        plan_by(steps, present, Edits::Merge)
    }

    #[test]
    fn an_unchanged_file_goes_back() {
        let plan =
            plan_of(&[delta(&[("a", Some(file(2)), Some(file(1)))])], &present(&[("a", Occupant::File(file(2)))]))
                .expect("no obstacle");
        assert_eq!(plan.files.len(), 1);
        assert_eq!(plan.files[0].to, Some(file(1)));
        assert_eq!(plan.files[0].action(), "write");
    }

    #[test]
    fn an_edited_file_is_a_conflict_and_is_named() {
        let refusal =
            plan_of(&[delta(&[("a", Some(file(2)), Some(file(1)))])], &present(&[("a", Occupant::File(file(9)))]))
                .expect_err("the edit would be lost");
        assert_eq!((refusal.code, refusal.paths), (Code::Conflict, vec![BString::from("a")]));
    }

    #[test]
    fn a_file_that_is_already_back_is_left_alone() {
        let plan = plan_of(
            &[delta(&[("a", Some(file(2)), Some(file(1))), ("b", Some(file(3)), None)])],
            &present(&[("a", Occupant::File(file(1))), ("b", Occupant::Absent)]),
        )
        .expect("no obstacle");
        assert_eq!(plan.files, []);
    }

    #[test]
    fn a_chmod_by_the_user_survives_the_return_of_the_content() {
        let private = FileState { mode: 0o600, ..file(2) };
        let plan =
            plan_of(&[delta(&[("a", Some(file(2)), Some(file(1)))])], &present(&[("a", Occupant::File(private))]))
                .expect("no obstacle");
        assert_eq!(plan.files[0].to, Some(FileState { mode: 0o600, ..file(1) }));
    }

    #[test]
    fn edits_go_along_with_a_file_that_is_only_renamed() {
        let renamed = delta(&[("new", Some(file(1)), None), ("old", None, Some(file(1)))]);
        let edited = present(&[("new", Occupant::File(file(9))), ("old", Occupant::Absent)]);
        let plan = plan_of(std::slice::from_ref(&renamed), &edited).expect("no obstacle");
        let ends: Vec<_> = plan.files.iter().map(|file| (file.path.to_string(), file.to)).collect();
        assert_eq!(ends, [("new".to_owned(), None), ("old".to_owned(), Some(file(9)))]);
        assert_eq!(
            plan_by(std::slice::from_ref(&renamed), &edited, Edits::Refuse).expect_err("an edit").paths,
            ["new"]
        );
        let in_doubt =
            delta(&[("new", Some(file(1)), None), ("old", None, Some(file(1))), ("older", None, Some(file(1)))]);
        assert_eq!(plan_of(&[in_doubt], &edited).expect_err("which of them was it?").paths, ["new"]);
        let changed = delta(&[("new", Some(file(1)), None), ("old", None, Some(file(2)))]);
        assert_eq!(plan_of(&[changed], &edited).expect_err("it was not only renamed").paths, ["new"]);
        let twice = [renamed.clone(), delta(&[("old", Some(file(1)), None), ("oldest", None, Some(file(1)))])];
        let plan = plan_of(&twice, &edited).expect("no obstacle");
        assert_eq!(plan.files.iter().map(|file| file.path.as_bstr()).collect::<Vec<_>>(), ["new", "oldest"]);
    }

    #[test]
    fn two_steps_make_one_move() {
        let plan = plan_of(
            &[delta(&[("a", Some(file(3)), Some(file(2)))]), delta(&[("a", Some(file(2)), None)])],
            &present(&[("a", Occupant::File(file(3)))]),
        )
        .expect("no obstacle");
        assert_eq!(plan.files.len(), 1);
        assert_eq!((plan.files[0].from, plan.files[0].to), (Some(file(3)), None));
    }

    #[test]
    fn a_file_of_the_users_in_a_directory_that_must_go_is_a_conflict() {
        let swap = delta(&[("x/y", Some(file(2)), None), ("x", None, Some(file(1)))]);
        let below = |names: &[&str]| Occupant::Directory(names.iter().map(|n| BString::from(*n)).collect());
        let mut now = present(&[("x/y", Occupant::File(file(2))), ("x", below(&["x/y"]))]);
        assert!(plan_of(std::slice::from_ref(&swap), &now).is_ok(), "only the turn's file is there");
        now.files.insert("x".into(), below(&["x/mine", "x/y"]));
        let refusal = plan_of(&[swap], &now).expect_err("x/mine would be in the way");
        assert_eq!(refusal.paths, ["x/mine"]);
    }

    #[test]
    fn nothing_is_written_behind_a_link_that_stays() {
        let refusal =
            plan_of(&[delta(&[("x/y", None, Some(file(1)))])], &present(&[("x/y", Occupant::Behind("x".into()))]))
                .expect_err("x is not a directory");
        assert_eq!(refusal.paths, ["x"]);
    }

    #[test]
    fn the_inverse_of_the_inverse_is_the_plan() {
        let plan =
            plan_of(&[delta(&[("a", Some(file(2)), Some(file(1)))])], &present(&[("a", Occupant::File(file(2)))]))
                .expect("no obstacle");
        assert_eq!(plan.clone().inverse().inverse(), plan);
    }

    #[test]
    fn a_later_stash_of_the_users_stays() {
        let entry = |n: u8| StashEntry {
            id: id(n),
            name: "A User".into(),
            email: "user@example.com".into(),
            date: "0 +0000".into(),
            message: format!("stash {n}"),
        };
        let change = Change::new(vec![entry(2), entry(1)], vec![entry(3), entry(1)]);
        assert_eq!(merged_stash(&change.from, &change, None), change.to);
        let now = [entry(9), entry(2), entry(1)];
        assert_eq!(merged_stash(&now, &change, None), [entry(3), entry(9), entry(1)]);
        assert_eq!(merged_stash(&[], &change, None), [entry(3)], "what is gone already is no obstacle");
        let unlogged = |n| StashEntry { message: "read out of its commit".into(), ..entry(n) };
        let mut wiped = change.from.clone();
        wiped[0] = unlogged(2);
        assert_eq!(merged_stash(&wiped, &change, None), change.to, "its reflog was wiped: it is the same entry");
    }

    #[test]
    fn a_branch_that_moved_is_refused() {
        let step = Delta {
            branches: [("refs/heads/side".to_owned(), Change::new(Some(id(2)), None))].into(),
            ..Delta::default()
        };
        let mut now = Present::default();
        now.branches.insert("refs/heads/side".into(), id(3));
        assert_eq!(plan_of(&[step], &now).map_err(|r| r.code), Err(Code::Branch));
    }

    #[test]
    fn edits_are_overwritten_or_refused_only_as_was_asked() {
        let step = delta(&[("a", Some(file(2)), Some(file(1))), ("b", Some(file(2)), Some(file(1)))]);
        let now = present(&[("a", Occupant::File(file(100))), ("b", Occupant::File(file(2)))]);
        let steps = std::slice::from_ref(&step);
        let merged = plan_of(steps, &now).expect("the lines go together");
        assert_eq!(merged.files[0].to, Some(file(101)), "both sides' lines are in it");
        let overwritten = plan_by(steps, &now, Edits::Overwrite).expect("it was asked for");
        assert_eq!((overwritten.files[0].to, &overwritten.overwritten[..]), (Some(file(1)), &["a".into()][..]));
        let refusal = plan_by(steps, &now, Edits::Refuse).expect_err("there is an edit");
        assert_eq!((refusal.code, refusal.paths), (Code::Conflict, vec![BString::from("a")]), "and only there");
    }

    #[test]
    fn what_was_made_beyond_the_limits_goes_aside_while_it_is_what_the_turn_left() {
        let left = Aside { store: "aside/1/0".into(), state: Some("1 2.3".into()), tree: None };
        let step = Delta { aside: [("big".into(), Change::new(Some(left.clone()), None))].into(), ..Delta::default() };
        let kept = |kept: bool| kept.then(|| "aside/1/0".to_owned()).into_iter().collect();
        let now = |standing, is_kept| Present {
            aside: [("big".into(), standing)].into(),
            kept: kept(is_kept),
            ..Present::default()
        };
        let there = now(Standing::Something(left.state.clone()), false);
        let plan = plan_of(std::slice::from_ref(&step), &there).expect("no obstacle");
        assert_eq!(plan.aside, [AsideMove::new("big".into(), "aside/1/0".into(), true)]);
        let edited = now(Standing::Something(Some("9 9.9".into())), false);
        assert_eq!(plan_of(std::slice::from_ref(&step), &edited).expect_err("it changed").paths, ["big"]);
        let gone = plan_of(std::slice::from_ref(&step), &now(Standing::Nothing, false)).expect("it is gone");
        assert!(gone.is_empty(), "there is nothing to move");
        let back = step.inverse();
        let plan = plan_of(std::slice::from_ref(&back), &now(Standing::Nothing, true)).expect("no obstacle");
        assert_eq!(plan.aside, [AsideMove::new("big".into(), "aside/1/0".into(), false)]);
        let taken = now(Standing::Something(None), true);
        assert_eq!(plan_of(std::slice::from_ref(&back), &taken).expect_err("its place is taken").paths, ["big"]);
        let lost = plan_of(std::slice::from_ref(&back), &now(Standing::Nothing, false));
        assert_eq!(lost.expect_err("it was moved aside, and is not there any more").paths, ["big"]);
        let returns = ReturnState { absent: vec!["big".to_owned()], ..ReturnState::default() };
        let turns = [TurnDelta { turn: 1, delta: back, returns, ..TurnDelta::default() }];
        let mut merge = |_: &BStr, _: Blobs| panic!("nothing is merged");
        let plan = super::plan(Op::Redo, &turns, &now(Standing::Nothing, false), Edits::Merge, &mut merge);
        assert!(plan.expect("it was not there when the turn was undone").is_empty());
    }

    #[test]
    fn what_is_staged_and_in_the_worktree_too_is_unstaged_and_named() {
        let entry = |n| vec![IndexEntry::plain(0o120_000, id(n))];
        let step = Delta { index: [("a".into(), Change::new(entry(2), entry(1)))].into(), ..Delta::default() };
        let mut now = present(&[("a", Occupant::File(file(9)))]);
        now.index.insert("a".into(), entry(9));
        let plan = plan_of(std::slice::from_ref(&step), &now).expect("nothing is lost");
        assert_eq!((&plan.unstaged[..], &plan.index[0].to), (&["a".into()][..], &entry(1)));
        now.files.insert("a".into(), Occupant::File(file(8)));
        assert_eq!(
            plan_of(std::slice::from_ref(&step), &now).expect_err("what is staged is nowhere else").paths,
            ["a"]
        );
        // A later step, which the walk takes first, changes the file only.
        let first = delta(&[("a", Some(file(8)), Some(file(2)))]);
        now.index.insert("a".into(), entry(8));
        let plan = plan_of(&[first, step], &now).expect("what is staged is what that step left");
        assert_eq!((&plan.unstaged[..], &plan.index[0].to), (&[][..], &entry(1)));
    }

    #[test]
    fn head_that_is_elsewhere_is_refused_before_anything_else() {
        let head = |n| Head { commit: Some(id(n)), ..Head::default() };
        let step = Delta { head: Some(Change::new(head(2), head(1))), ..delta(&[("a", Some(file(2)), Some(file(1)))]) };
        let now = |n| Present { head: head(n), ..present(&[("a", Occupant::File(file(9)))]) };
        assert_eq!(plan_of(std::slice::from_ref(&step), &now(3)).expect_err("HEAD moved").code, Code::Branch);
        assert_eq!(plan_of(std::slice::from_ref(&step), &now(2)).expect_err("the edit").code, Code::Conflict);
        let free = Present { head: head(2), ..present(&[("a", Occupant::File(file(2)))]) };
        assert_eq!(plan_of(&[step], &free).expect("no obstacle").head, Change::new(head(2), head(1)));
    }
}
