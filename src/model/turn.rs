//! The record of one turn.

use crate::model::bytes::exact;
use crate::model::checkpoint::{Delta, FileState, hex, hex_option};
use crate::model::path::is_at_or_below;
use crate::model::plan::AsideMove;
use crate::model::pointers::Tip;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How a turn is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// On the user's branch, as commits.
    #[default]
    Commit,
    /// As checkpoints alone.
    Ghost,
}

impl Mode {
    /// Its word, in text and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Ghost => "ghost",
        }
    }
}

/// What a commit of a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitKind {
    /// The auto-commit, or a commit that the agent itself made.
    Agent,
    /// The user's uncommitted work, committed before the turn.
    Dirty,
    /// A commit that was there before and that the turn brought onto the branch.
    Found,
}

/// A commit that belongs to a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnCommit {
    /// Its id.
    #[serde(with = "hex")]
    pub id: ObjectId,
    /// What it is.
    pub kind: CommitKind,
}

/// How one file differs between a turn's two checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The path, quoted as git does where it is not UTF-8.
    pub path: String,
    /// `A`, `M`, `D` or `T`.
    pub status: char,
    /// Lines added; 0 for what is not text.
    pub insertions: u64,
    /// Lines removed; 0 for what is not text.
    pub deletions: u64,
    /// What a new file was called before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What a file that is gone is called now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl FileChange {
    /// A change of which no lines are counted.
    pub fn new(path: String, status: char) -> Self {
        Self { path, status, insertions: 0, deletions: 0, from: None, to: None }
    }
}

/// The totals of a turn's changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Files; a renamed one is one, and its lines are counted beside what it was.
    pub files: u64,
    /// Lines added.
    pub insertions: u64,
    /// Lines removed.
    pub deletions: u64,
}

impl Totals {
    /// One more file, with so many lines added and removed.
    pub fn add(&mut self, (insertions, deletions): (u64, u64)) {
        self.files += 1;
        self.insertions += insertions;
        self.deletions += deletions;
    }
}

/// A turn that oxundo made itself, at the user's word, so that it is undone as any other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    /// Files of an earlier state, brought into the worktree.
    Restore,
    /// A branch, started at a turn.
    Branch,
    /// One commit out of several.
    Squash,
    /// These turns, taken out while later ones stay.
    #[serde(rename = "taken_out")]
    Revert(Vec<u64>),
    /// Some paths of these turns, taken out of the worktree. The turns stay the last ones done:
    /// undo walks over this and the next one as one step, and redo brings the paths back.
    #[serde(rename = "part")]
    PartialRevert(Vec<u64>),
    /// Likewise, chosen hunk by hunk.
    Hunks {
        /// The turns.
        turns: Vec<u64>,
        /// Paths that are left with a part of what the turns did, quoted as git does.
        partly: Vec<String>,
    },
    /// Back to a step of the last of these turns; of the others nothing is left.
    BackTo {
        /// The turns.
        turns: Vec<u64>,
        /// The step.
        step: u64,
    },
}

/// Everything about a turn but its two checkpoints.
#[allow(clippy::struct_field_names, reason = "`turn` is the key in the record; nobody is warned where it is public")]
#[allow(clippy::struct_excessive_bools, reason = "each is seen by itself")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The version of this record's format.
    pub v: u32,
    /// Its number.
    pub turn: u64,
    /// Who made it.
    pub agent: String,
    /// The agent's session, where it has one.
    pub session: Option<String>,
    /// The message given, or what of the prompt git may be told: `subject_of_prompt` decides it. Older records have the
    /// whole prompt here.
    pub message: Option<String>,
    /// The whole prompt, which is nowhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Commit or ghost.
    pub mode: Mode,
    /// Whether it makes no commits though it should: what is uncommitted, of the user's or an agent's, could be in a commit
    /// of the other's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// Why it makes no commits though it should, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    /// The branch on which it began; `None` for a detached HEAD.
    pub began_on: Option<String>,
    /// The branch on which it ended, to which it belongs.
    pub branch: Option<String>,
    /// When it began, RFC 3339.
    pub began_at: String,
    /// When it ended, RFC 3339; `None` while it is open.
    pub ended_at: Option<String>,
    /// The last line, at its end, in the reflog of each branch that it moved beside HEAD's or switched between, and then of HEAD's,
    /// and of each that was written to in it; or as a walk found it under this name. It tells that branch from every other that
    /// gets the name. Older records do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<BTreeMap<String, String>>,
    /// How the agent exited.
    pub exit_code: Option<i32>,
    /// Whether it was cut off.
    pub interrupted: bool,
    /// The dirty commit made for it.
    #[serde(with = "hex_option")]
    pub dirty_commit: Option<ObjectId>,
    /// Every commit that it made or found, oldest first.
    pub commits: Vec<TurnCommit>,
    /// The turn below it when it ended: the last one done where HEAD stood.
    pub previous: Option<u64>,
    /// How many turns of its line were done when it ended, itself included.
    pub depth: u64,
    /// The totals of its changes.
    pub totals: Totals,
    /// How its bounds are known, and the sessions at work in it.
    #[serde(default)]
    pub origin: Bounds,
    /// Paths that something kept changing while they were captured, quoted as git does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub torn: Vec<String>,
    /// The files, as [`exact::encode`] has them, that it is proven to have made though the rules and limits of its
    /// beginning leave them out: oxundo itself wrote them where nothing was.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub wrote: BTreeSet<String>,
    /// What oxundo moved out of the worktree in it, or back into it, that other turns had made beyond the limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<AsideMove>,
    /// What it moved to where it was found at its end, a file or a directory, from where it was before and not captured; both
    /// as [`exact::encode`] has them. The old name is not known of what was elsewhere.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub came: BTreeMap<String, Option<String>>,
    /// What is ignored, or was not captured before, and it put where it is: by its path as [`exact::encode`] has it, a fingerprint
    /// where there is one. Something that is not captured was moved there, or was there before and is moved away.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub placed: BTreeMap<String, Option<String>>,
    /// What may be the only copy of something that was not captured before it and is changed or gone: the new name and the old
    /// one, as [`exact::encode`] has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub copies: BTreeMap<String, String>,
    /// What its calls moved from where it was before and not captured, while it is open: by where each file was, as
    /// [`exact::encode`] has it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub brought: BTreeMap<String, Brought>,
    /// What was there before, not captured, and it took away: the files, by their paths as [`exact::encode`] has them, as it put them
    /// into the stash list, or as they were after a call had moved them and before another changed them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stashed: BTreeMap<String, TakenFile>,
    /// Whether it changed or deleted what the user had, and its state before may hold the only copy of that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sole: bool,
    /// When it began, exactly, in nanoseconds since 1970: what is older it has not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<u64>,
    /// When it ended by that clock, where it made what is moved aside as a whole: what changed later it has not left so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// Whether what differs after its last step is the user's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub users_end: bool,
    /// Whether HEAD and branches were led by the user to where they are after its last step: each of its calls is over, and what one has
    /// left running makes files, and no commits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub led_by_user: bool,
    /// But for these files, as [`exact::encode`] has them: calls name them of which nothing told the end, and which found this in
    /// them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unended: BTreeMap<String, Option<FileState>>,
    /// The files, as [`exact::encode`] has them, of which what the user saved between its calls cannot be told from what these did; of
    /// a directory that goes as a whole with a slash at its end.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub overlaps: BTreeSet<String>,
    /// The files, as [`exact::encode`] has them, that its calls made in what was not captured as a whole, and which somebody has brought
    /// within reach between calls, as by adding another one to the index.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub within: BTreeSet<String>,
    /// The user's last commit between its calls, where nobody else led HEAD on: undo leads to it.
    #[serde(default, with = "hex_option", skip_serializing_if = "Option::is_none")]
    pub onto: Option<ObjectId>,
    /// How long HEAD's reflog was when it began, where that is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_log: Option<u64>,
    /// The commits at which HEAD was in it, and which nothing has had since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<Tip>,
    /// What it is, when oxundo made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
    /// Whether it is never to expire.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// Where HEAD stood at its ends; older records do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub footing: Option<Footing>,
    /// What a newer release says beside all this: it is left alone.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// Where HEAD stood at a turn's ends, and what that makes of its place on the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footing {
    /// The commit before it.
    #[serde(with = "hex_option")]
    pub from: Option<ObjectId>,
    /// The commit after it.
    #[serde(with = "hex_option")]
    pub to: Option<ObjectId>,
    /// The last turn that moved HEAD among it and those below it; 0 for none.
    pub base: u64,
    /// The last turn done when it began, 0 for none, where that is another than the one below it: it has switched to
    /// a branch that has turns of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_to: Option<u64>,
    /// The nearest turn, it or one below it, from which undo goes on with others than those below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_at: Option<u64>,
}

/// A file that was not captured, as it was taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenFile {
    /// What it was.
    #[serde(flatten)]
    pub file: FileState,
    /// The step in which it was first known, where a call had moved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The last step that did something to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// A file that a call moved from where it was not captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Brought {
    /// Where it is, or was last, as [`exact::encode`] has it.
    pub to: String,
    /// What it was when that was first known; none where it is not captured there either.
    pub file: Option<FileState>,
    /// Whether it came from where nothing is looked at: it is known by the first name that it had then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nowhere: bool,
    /// What it was last, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<FileState>,
    /// Whether calls have changed it since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
    /// Whether somebody else has, between calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub saved: bool,
    /// The step in which it was first known; older records do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The last step that did something to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

impl Brought {
    /// A file that a call has moved there, in this step.
    pub fn new(to: String, file: Option<FileState>, step: u64) -> Self {
        Self { to, file, nowhere: false, last: file, changed: false, saved: false, step: Some(step), until: Some(step) }
    }

    /// Notes what it was before a step that did something to it, and after that.
    pub fn note(&mut self, step: u64, before: Option<FileState>, after: Option<FileState>) {
        let differ = |one: Option<FileState>, other: Option<FileState>| one.zip(other).is_some_and(|(a, b)| a != b);
        self.saved |= differ(self.last, before);
        self.changed |= differ(before, after);
        (self.last, self.until) = (after.or(before), Some(step));
    }
}

impl Turn {
    /// The first line of its message, or a substitute.
    pub fn title(&self) -> String {
        subject(self.message.as_deref(), &self.agent, self.turn)
    }

    /// The first line of what it was asked for, or of its message.
    pub fn asked_line(&self) -> Option<&str> {
        first_line(self.prompt.as_deref().or(self.message.as_deref()))
    }

    /// Its agent, and its message where it has one: `claude: add a cache`.
    pub fn label(&self) -> String {
        match first_line(self.message.as_deref()) {
            Some(line) => format!("{}: {line}", self.agent),
            None => self.agent.clone(),
        }
    }

    /// What it was asked for: the first prompt counts, and a message that was given stays.
    pub fn asked(&mut self, message: Option<String>, prompt: Option<String>) {
        if self.prompt.is_none() {
            self.message = self.message.take().or(message);
            self.prompt = prompt;
        }
    }

    /// The sessions that took part in it, its own first.
    pub fn sessions(&self) -> Vec<Session<'_>> {
        let mut all = Vec::new();
        if self.own_part().is_none() {
            // Of a `run` whose agent tells of nothing there is no part.
            let asked = self.own_words().into_iter().collect();
            all.push(Session { agent: &self.agent, id: self.session.as_deref(), model: None, idle: false, asked });
        }
        for part in self.origin.parts.iter().filter(|part| !part.told_twice) {
            let asked = part.asked.iter().map(|asked| (asked.message.as_deref(), asked.prompt.as_deref()));
            let mut asked: Vec<Words<'_>> = asked.collect();
            if asked.is_empty() && self.is_own(part) {
                asked.extend(self.own_words());
            }
            let run_agent = self.origin.run_agent.as_ref().unwrap_or(&self.agent);
            let agent = if part.inside { run_agent } else { &part.agent };
            let model = part.model.as_deref().and_then(model_name);
            let at = if self.is_own(part) { 0 } else { all.len() };
            all.insert(at, Session { agent, id: part.session.as_deref(), model, idle: part.idle, asked });
        }
        let mut again = self.origin.parts.iter().filter(|part| part.told_twice);
        if let [one] = &mut all[..] {
            one.model = one.model.take().or_else(|| again.find_map(|part| model_name(part.model.as_deref()?)));
        }
        all
    }

    fn is_own(&self, part: &Participant) -> bool {
        let is_of_run = || self.origin.run_agent.as_ref().is_none_or(|agent| *agent == self.agent);
        if part.inside { is_of_run() } else { part.agent == self.agent && part.session == self.session }
    }

    /// The part of the session that it is called after; none of a `run` whose agent tells of nothing.
    pub fn own_part(&self) -> Option<&Participant> {
        self.origin.parts.iter().find(|part| self.is_own(part))
    }

    /// What it was asked for at first, but for what one of the sessions is known to have been asked for.
    fn own_words(&self) -> Option<Words<'_>> {
        let asked = || self.origin.parts.iter().flat_map(|part| &part.asked);
        let message = self.message.as_deref().filter(|own| asked().all(|asked| asked.message.as_deref() != Some(*own)));
        let prompt = self.prompt.as_deref().filter(|own| asked().all(|asked| asked.prompt.as_deref() != Some(*own)));
        (message.is_some() || prompt.is_some()).then_some((message, prompt))
    }

    /// Every agent that has changed something, its own first, with the model where it is known: `claude:claude-opus-5`.
    pub fn assistants(&self) -> Vec<String> {
        let mut sessions = self.sessions();
        sessions.retain(|session| !session.idle);
        let is_known = |agent: &str| sessions.iter().any(|session| session.agent == agent && session.model.is_some());
        let mut all = Vec::new();
        for session in &sessions {
            let name = session.assistant();
            // Without a model it says nothing more.
            if !all.contains(&name) && (session.model.is_some() || !is_known(session.agent)) {
                all.push(name);
            }
        }
        all
    }

    /// Whether it was to make commits.
    pub fn wanted_mode(&self) -> Mode {
        if self.mixed { Mode::Commit } else { self.mode }
    }

    /// Whether it only takes some paths of other turns out.
    pub fn is_part(&self) -> bool {
        match &self.made {
            Some(Made::PartialRevert(_) | Made::Hunks { .. }) => true,
            Some(Made::BackTo { turns, .. }) => turns.len() == 1,
            _ => false,
        }
    }

    /// Whether `oxundo branch` made it, from another branch: undo of it takes the branch away, and goes back to that one.
    pub fn began_branch(&self) -> bool {
        matches!(self.made, Some(Made::Branch)) && self.began_on != self.branch
    }

    /// The turns that it takes out, whole or in part: redo brings them back.
    pub fn takes_out(&self) -> &[u64] {
        match &self.made {
            Some(
                Made::Revert(turns)
                | Made::PartialRevert(turns)
                | Made::Hunks { turns, .. }
                | Made::BackTo { turns, .. },
            ) => turns,
            _ => &[],
        }
    }

    /// Whether the turns that are undone can still be redone after it: the branch they are on is
    /// as it was.
    pub fn keeps_redo(&self) -> bool {
        matches!(self.made, Some(Made::PartialRevert(_) | Made::Hunks { .. } | Made::Branch))
    }

    /// Whether it is proven to have made this file, whatever the rules and limits of its beginning leave out.
    pub fn has_written(&self, path: &BStr) -> bool {
        if self.wrote.is_empty() && self.came.is_empty() {
            return false;
        }
        let name = exact::encode(path);
        self.wrote.contains(&name) || self.came.get(&name).is_some_and(|old| old.as_ref() == Some(&name))
    }

    /// Whether a record of it may be the only copy of something of the user's.
    pub fn is_only_copy(&self) -> bool {
        self.sole || !self.copies.is_empty()
    }

    /// What it moved that was not captured before: each new name and the old one.
    pub fn moves(&self) -> impl Iterator<Item = (BString, BString)> {
        let moves =
            self.came.iter().filter_map(|(new, old)| Some((exact::decode(new)?, exact::decode(old.as_ref()?)?)));
        moves.filter(|(new, old)| new != old)
    }

    /// Whether one of these files is one that its calls have moved there, while it is open.
    pub fn has_brought_any(&self, changed: &Delta) -> bool {
        let mut brought = self.brought.values().filter_map(|known| exact::decode(&known.to));
        brought.any(|to| changed.files.contains_key(&to))
    }

    /// Leaves out what it had taken away up to a step, and leaves what it had done to that by then.
    pub fn forget_taken_up_to(&mut self, step: u64) {
        let mut moved_on = false;
        for (path, _) in self.stashed.iter().filter(|(_, taken)| taken.until.is_some_and(|until| until <= step)) {
            moved_on |= self.placed.remove(path).is_none();
        }
        if moved_on {
            // It is under a name of which nothing more is known.
            let is_old = |name: &String| self.came.values().flatten().any(|old| old == name);
            let is_known =
                |name: &String| self.came.contains_key(name) || self.stashed.contains_key(name) || is_old(name);
            self.placed.retain(|name, _| is_known(name));
        }
        self.stashed.retain(|_, taken| taken.step.is_none_or(|at| at > step));
    }

    /// Whether it moved what was at this path before, or above it, to where undo finds it again.
    pub fn has_moved(&self, path: &BStr) -> bool {
        self.stashed.contains_key(&exact::encode(path))
            || self.moves().any(|(_, old)| is_at_or_below(path, old.as_bstr()))
    }

    /// To where it moved something and from where it moved nothing away: what was there before and not captured is nowhere.
    pub fn moved_over(&self) -> BTreeSet<BString> {
        self.moves().map(|(new, _)| new).filter(|new| !self.has_moved(new.as_bstr())).collect()
    }

    /// What a path was called before the turn, or is called after it, where the turn moved it.
    pub fn other_names(&self, path: &BStr) -> Vec<BString> {
        let other = |from: &BString, to: &BString| {
            let is_in = is_at_or_below(path, from.as_bstr());
            is_in.then(|| BString::from([to.as_slice(), &path[from.len()..]].concat()))
        };
        self.moves().flat_map(|(new, old)| [other(&new, &old), other(&old, &new)]).flatten().collect()
    }

    /// The last commit that it made; else the last one that it found.
    pub fn last_commit(&self) -> Option<ObjectId> {
        let of = |kind| self.commits.iter().rfind(|commit| commit.kind == kind);
        of(CommitKind::Agent).or_else(|| of(CommitKind::Found)).map(|commit| commit.id)
    }

    /// Whether this turn made or found the commit.
    pub fn knows(&self, id: &ObjectId) -> bool {
        self.commits.iter().any(|commit| commit.id == *id)
    }

    /// Has what its commits became in their place. Where others are made of them still, they are all its own as well.
    pub fn became(&mut self, new: impl Fn(ObjectId) -> ObjectId, stay: bool) {
        let mut commits = Vec::new();
        for commit in self.commits.drain(..) {
            let is = TurnCommit { id: new(commit.id), kind: commit.kind };
            if stay && is.id != commit.id {
                commits.push(commit);
            }
            commits.push(is);
        }
        self.commits = commits;
    }
}

/// A model's name as one word; none for what is no name, or is too long for one. It comes from files of the agent's, and
/// becomes part of a trailer.
pub fn model_name(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let name = words.join("-");
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@+[]()".contains(c);
    (name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.len() <= 100 && name.chars().all(plain))
        .then_some(name)
}

/// The subject of a turn's commits.
pub fn subject(message: Option<&str>, agent: &str, turn: u64) -> String {
    first_line(message).map_or_else(|| format!("{agent}: turn {turn}"), str::to_owned)
}

/// Numbers of turns as people read them: those that follow each other, up or down, as a range.
pub fn listed(numbers: &[u64]) -> String {
    let mut parts = Vec::new();
    let mut rest = numbers;
    while let Some((&first, _)) = rest.split_first() {
        let run = |step: fn(u64) -> Option<u64>| {
            1 + rest.windows(2).take_while(|pair| step(pair[0]) == Some(pair[1])).count()
        };
        let run = run(|number| number.checked_add(1)).max(run(|number| number.checked_sub(1)));
        // Two or three are as short by themselves.
        let (taken, after) = rest.split_at(if run > 3 { run } else { 1 });
        parts.push(match taken {
            [one] => one.to_string(),
            many => format!("{first}..{}", many[many.len() - 1]),
        });
        rest = after;
    }
    parts.join(", ")
}

/// The first line that says something.
pub fn first_line(message: Option<&str>) -> Option<&str> {
    message?.lines().map(str::trim).find(|line| !line.is_empty())
}

/// How a turn's bounds are known, and the sessions at work in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is seen by itself")]
pub struct Bounds {
    /// Whether hooks alone bound it; else a `run` does.
    pub by_hooks: bool,
    /// Whether it was opened between two prompts of a `run`, for changes that no hook announces.
    pub waiting: bool,
    /// Whether more than one session, or one beside a `run`, took part.
    pub shared: bool,
    /// Whether it began only after its prompt: what the agent did before is not in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// What the `run` calls its own agent, if that told of prompts before it: where it has no part, it was not at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_agent: Option<String>,
    /// The sessions that take part, in the order in which they came.
    pub parts: Vec<Participant>,
    /// Behind which step, and up to which, something of theirs was at work in the background, and is over: what changed there is
    /// theirs, whether or not a call did it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<(u64, u64)>,
}

/// A session's part in a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is seen by itself")]
pub struct Participant {
    /// The agent.
    pub agent: String,
    /// Its session.
    pub session: Option<String>,
    /// The agent's own id of the prompt.
    pub prompt: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Where the agent keeps the conversation.
    pub transcript: Option<String>,
    /// How long that was when the session began its part, in bytes.
    pub from: Option<u64>,
    /// How long it was when it ended it.
    pub to: Option<u64>,
    /// The agent's process, which shows whether the session is still alive.
    pub process: Option<Process>,
    /// Whether it is the `run`'s own agent.
    pub inside: bool,
    /// Whether it has not ended its part yet.
    pub at_work: bool,
    /// Whether it goes on after an end of its prompt: then any end of the session's is that of its part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
    /// The last step when it said for the first time that it was done and something of its was still at work, or when it joined unproven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<u64>,
    /// Whether it joined others without having shown yet that it tells of its calls: what changed since then outside of calls may be its
    /// work, and nothing before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unproven: bool,
    /// Whether another part tells of the same session: an editor's protocol and the agent's own hooks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told_twice: bool,
    /// Whether it is known to have changed nothing in the turn: it is named where it took part, and not where work is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idle: bool,
    /// What it was asked for, in that order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
}

/// What a session was asked for, once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The agent's own id of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The message given, or what of the prompt git may be told.
    pub message: Option<String>,
    /// The whole prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// A message, and a whole prompt.
pub type Words<'a> = (Option<&'a str>, Option<&'a str>);

/// A session that took part in a turn, as it is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session<'a> {
    /// The agent.
    pub agent: &'a str,
    /// Its id.
    pub id: Option<&'a str>,
    /// The model's name.
    pub model: Option<String>,
    /// Whether it is known to have changed nothing.
    pub idle: bool,
    /// What it was asked for: more than once, where it got another prompt while others were at work.
    pub asked: Vec<Words<'a>>,
}

impl Session<'_> {
    /// Its agent, with the model where it is known.
    pub fn assistant(&self) -> String {
        // What follows it on another line would be another trailer.
        let agent = self.agent.split_whitespace().collect::<Vec<_>>().join(" ");
        self.model.as_ref().map_or(agent.clone(), |model| format!("{agent}:{model}"))
    }

    /// The first lines of what git may be told of what it was asked for.
    pub fn messages(&self) -> Vec<&str> {
        self.asked.iter().filter_map(|(message, _)| first_line(*message)).collect()
    }

    /// All that it was asked for: the whole prompts, and messages where there are none.
    pub fn prompts(&self) -> Vec<&str> {
        self.asked.iter().filter_map(|(message, prompt)| prompt.or(*message)).collect()
    }
}

/// A process, distinguishable from a later one with the same number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it was started, in its system's own words.
    pub started: String,
    /// The namespace of its number: a container has numbers of its own.
    pub space: String,
}

impl Participant {
    /// Whether both are of one session. Without an id, an agent has one session.
    pub fn is_session_of(&self, other: &Self) -> bool {
        match (&self.session, &other.session) {
            (Some(a), Some(b)) => a == b,
            (None, None) => self.agent == other.agent,
            _ => false,
        }
    }

    /// Takes part again in a turn in which it had this part before: what it was asked for then is not forgotten.
    fn after(self, earlier: &Self) -> Self {
        let model = self.model.or_else(|| earlier.model.clone());
        let from = earlier.from.filter(|_| earlier.transcript == self.transcript).or(self.from);
        let mut asked = earlier.asked.clone();
        asked.extend(self.asked.into_iter().filter(|words| !earlier.asked.contains(words)));
        Self { model, from, asked, listed: self.listed.or(earlier.listed), ..self }
    }

    /// Whether both name the same prompt.
    pub fn is_prompt_of(&self, other: &Self) -> bool {
        self.prompt.is_some() && self.prompt == other.prompt
    }

    /// Whether what the other tells of is a prompt, and not the one of this part.
    pub fn is_other_prompt_than(&self, other: &Self) -> bool {
        !self.goes_on && self.prompt.is_some() && other.prompt.is_some() && self.prompt != other.prompt
    }
}

impl Bounds {
    /// Whether the agent of the `run` tells of its prompts.
    pub fn run_tells(&self) -> bool {
        self.run_agent.is_some() || self.parts.iter().any(|part| part.inside)
    }

    /// Whether nobody is at work in it who does not tell of that.
    pub fn tells(&self) -> bool {
        self.by_hooks || self.run_tells()
    }

    /// The step after which something of an agent's was at work that nobody tells of, as a command in the background.
    pub fn at_work_after(&self) -> Option<u64> {
        self.parts.iter().filter_map(|part| part.listed).min()
    }

    /// The part of a session.
    pub fn part_of(&self, who: &Participant) -> Option<&Participant> {
        self.parts.iter().find(|part| part.is_session_of(who))
    }

    /// Adds a session to those that are there, or replaces its part where it has one already.
    pub fn join(&mut self, part: Participant) {
        self.shared |= !part.told_twice;
        match self.parts.iter_mut().find(|known| known.is_session_of(&part)) {
            Some(known) => *known = part.after(known),
            None => self.parts.push(part),
        }
    }

    /// What a session had at work in the background is over, or it is no more told of. Gives behind which step that began, if it is
    /// the last one's.
    pub fn end_background(&mut self, who: &Participant) -> Option<u64> {
        let part = self.parts.iter_mut().find(|part| part.is_session_of(who))?;
        let listed = part.listed.take()?;
        let mut others = self.parts.iter_mut().filter_map(|part| part.listed.as_mut()).peekable();
        if others.peek().is_none() {
            return Some(listed);
        }
        others.for_each(|other| *other = listed.min(*other));
        None
    }

    /// A session shows that it tells of its calls, and so do others of its agent. Gives whether that was not known.
    pub fn prove(&mut self, who: &Participant) -> bool {
        let mut is_new = false;
        for part in self.parts.iter_mut().filter(|part| part.unproven && part.at_work && part.agent == who.agent) {
            (part.unproven, is_new) = (false, true);
            if !part.goes_on {
                part.listed = None;
            }
        }
        is_new
    }

    /// Whether what changed before this step, outside of the calls, was the work of something in the background.
    pub fn was_background_before(&self, step: u64) -> bool {
        self.background.iter().any(|(from, to)| (from + 1..=*to).contains(&step))
    }

    /// A session goes on after an end of its prompt, which came after this step; it takes part where it did not.
    pub fn go_on(&mut self, part: Participant, last_step: u64) {
        self.waiting = false;
        let part = Participant { goes_on: true, ..part };
        match self.parts.iter_mut().find(|known| known.is_session_of(&part)) {
            Some(known) if known.at_work => {
                known.goes_on = true;
                known.listed = known.listed.or(Some(last_step));
            }
            Some(known) => *known = part.after(known),
            None => self.parts.push(part),
        }
    }
}

/// What the note on a commit says; one JSON object on a line of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The version of this format.
    pub v: u32,
    /// The turn.
    pub turn: u64,
    /// What the commit is.
    pub kind: CommitKind,
    /// The commit's own id, so that a copied note is seen to be one.
    #[serde(with = "hex")]
    pub commit: ObjectId,
    /// Who made the turn.
    pub agent: String,
    /// The agent's session.
    pub session: Option<String>,
    /// The worktree whose timeline holds the turn.
    pub worktree: String,
    /// When the note was written, RFC 3339.
    pub at: String,
}

impl Note {
    /// Whether it says of this commit that an agent made it: one that was copied along says so of another.
    pub fn is_of_agents(&self, commit: ObjectId) -> bool {
        self.commit == commit && self.kind == CommitKind::Agent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_that_follow_each_other_are_a_range() {
        let cases: [(&[u64], &str); 6] = [
            (&[], ""),
            (&[3, 2, 1], "3, 2, 1"),
            (&[4, 3, 2, 1], "4..1"),
            (&[1, 2, 3, 4, 9], "1..4, 9"),
            (&[12, 9, 8, 7, 6, 5, 3, 4], "12, 9..5, 3, 4"),
            (&[u64::MAX, 0], "18446744073709551615, 0"),
        ];
        for (numbers, text) in cases {
            assert_eq!(listed(numbers), text);
        }
    }

    #[test]
    fn the_subject_is_the_first_line_that_says_something() {
        assert_eq!(subject(Some("\n  add a cache \nand more"), "claude", 3), "add a cache");
        assert_eq!(subject(Some(" \n"), "claude", 3), "claude: turn 3");
        assert_eq!(subject(None, "sh", 1), "sh: turn 1");
    }

    #[test]
    fn a_models_name_is_one_plain_word() {
        for (text, name) in [
            ("claude-opus-4-5-20251101", Some("claude-opus-4-5-20251101")),
            ("us.anthropic/claude:v1[1m]", Some("us.anthropic/claude:v1[1m]")),
            ("Opus 4.1", Some("Opus-4.1")),
            ("<synthetic>", None),
            ("a\nSigned-off-by: B <b@example.com>", None),
            ("a <b@example.com>", None),
            ("\u{1b}[31m", None),
            (" ", None),
        ] {
            assert_eq!(model_name(text).as_deref(), name, "{text:?}");
        }
        assert_eq!(model_name(&"m".repeat(101)), None);
    }

    fn part(agent: &str, session: Option<&str>, model: Option<&str>, inside: bool) -> Participant {
        Participant {
            agent: agent.to_owned(),
            session: session.map(str::to_owned),
            model: model.map(str::to_owned),
            inside,
            ..Participant::default()
        }
    }

    fn turn(session: Option<&str>, parts: Vec<Participant>) -> Turn {
        Turn {
            agent: "claude".to_owned(),
            session: session.map(str::to_owned),
            message: Some("do it".to_owned()),
            origin: Bounds { parts, ..Bounds::default() },
            ..Turn::default()
        }
    }

    #[test]
    fn each_session_is_named_with_its_model_and_the_turns_own_first() {
        let one = |agent, model| part(agent, None, model, false);
        let two =
            |first, second| vec![part("claude", Some("a"), first, false), part("claude", Some("b"), second, false)];
        for (session, parts, names) in [
            (None, vec![], vec!["claude"]),
            (None, vec![one("codex", Some("g")), one("claude", Some("c"))], vec!["claude:c", "codex:g"]),
            (None, vec![one("codex", Some("g"))], vec!["claude", "codex:g"]),
            (None, vec![part("other", None, Some("c"), true)], vec!["claude:c"]),
            (None, vec![one("claude", Some("a\nb: c"))], vec!["claude"]),
            (Some("a"), two(Some("x"), Some("y")), vec!["claude:x", "claude:y"]),
            (Some("b"), two(Some("x"), Some("y")), vec!["claude:y", "claude:x"]),
            (Some("a"), two(Some("x"), Some("x")), vec!["claude:x"]),
            (Some("a"), two(None, Some("y")), vec!["claude:y"]),
            (Some("a"), two(None, None), vec!["claude"]),
        ] {
            assert_eq!(turn(session, parts.clone()).assistants(), names, "{parts:?}");
        }
    }

    #[test]
    fn each_session_has_its_own_words_be_they_of_an_earlier_release() {
        let asked = |words: &str| Asked { message: Some(words.to_owned()), ..Asked::default() };
        let with =
            |part: Participant, words: &[&str]| Participant { asked: words.iter().map(|w| asked(w)).collect(), ..part };
        let (a, b) = (part("claude", Some("a"), None, false), part("codex", Some("b"), None, false));
        let words = |turn: &Turn| -> Vec<Vec<String>> {
            turn.sessions().iter().map(|one| one.messages().into_iter().map(str::to_owned).collect()).collect()
        };
        let old = turn(Some("a"), vec![a.clone(), b.clone()]);
        assert_eq!(words(&old), [vec!["do it"], vec![]], "only the first one's were kept");
        let new = turn(Some("a"), vec![with(a.clone(), &["do it"]), with(b.clone(), &["that"])]);
        assert_eq!(words(&new), [["do it"], ["that"]]);
        let run = turn(None, vec![with(b.clone(), &["that"])]);
        assert_eq!(words(&run), [["do it"], ["that"]], "the agent of a run tells of nothing");
        let mut bounds = new.origin;
        bounds.join(with(a, &["more"]));
        assert_eq!(words(&turn(Some("a"), bounds.parts)), [vec!["do it", "more"], vec!["that"]]);
    }
}
