//! The calls of tools that agents' hooks tell of: evidence of when an agent was at work.

use crate::model::checkpoint::{FileState, IndexEntry, hex_option};
use crate::model::pointers::Moved;
use gix::ObjectId;
use serde::{Deserialize, Serialize};

/// What is told of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The tool's name.
    pub tool: String,
    /// The file that it is about, where it names one.
    pub path: Option<String>,
    /// The agent's own id of the call.
    pub id: Option<String>,
    /// The command line, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Whether the file that it names had another name as it began, which may be the one that it writes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_other_names: bool,
    /// Whether others do its work, as sub-agents do, who tell of their own calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_told_by_others: bool,
}

/// The tools of agents that write the file which they name and nothing else, as [`folded`] has them.
const EDITORS: [&str; 14] = [
    "edit",
    "write",
    "multiedit",
    "notebookedit",
    "writefile",
    "replace",
    "editfile",
    "createfile",
    "create",
    "writetofile",
    "replaceinfile",
    "searchreplace",
    "strreplace",
    "strreplacebasededittool",
];

/// Those that write no file at all.
const READERS: [&str; 33] = [
    "read",
    "readfile",
    "readmanyfiles",
    "view",
    "grep",
    "greptool",
    "grepsearch",
    "searchfilecontent",
    "glob",
    "globtool",
    "ls",
    "listdirectory",
    "listdir",
    "webfetch",
    "websearch",
    "todowrite",
    "todoread",
    "notebookread",
    // They ask the user, who may be editing meanwhile.
    "askuserquestion",
    "enterplanmode",
    "exitplanmode",
    // They keep lists of the agent's own, and look things up.
    "taskcreate",
    "taskupdate",
    "tasklist",
    "taskget",
    "toolsearch",
    "lsp",
    "listmcpresources",
    "listmcpresourcestool",
    "readmcpresource",
    "readmcpresourcetool",
    // They end what another call has started.
    "killshell",
    "taskstop",
];

/// A tool's name as agents agree on it: letters and digits alone, in lower case.
fn folded(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

impl ToolUse {
    /// The one file that it writes, as it names it; none where it may write any.
    pub fn only_file(&self) -> Option<&str> {
        self.path.as_deref().filter(|_| !self.has_other_names && EDITORS.contains(&folded(&self.tool).as_str()))
    }

    /// Whether it writes no file by itself.
    pub fn only_reads(&self) -> bool {
        self.is_told_by_others || READERS.contains(&folded(&self.tool).as_str())
    }
}

/// A beginning or an end of a call, as it was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallMark {
    /// The session; none for an agent that has only one.
    pub session: Option<String>,
    /// What is called.
    #[serde(flatten)]
    pub tool: ToolUse,
    /// When it was told, RFC 3339.
    pub at: String,
    /// When the system had been running for so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_boot: Option<i64>,
    /// Whether it is the end.
    pub ends: bool,
    /// The agent's processes at the beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<u32>,
    /// The time that a file would have got which was changed then, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<u64>,
    /// What the file held that it names, where somebody had changed that since the last look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<FileState>,
    /// Whether somebody had taken that file away since the last look.
    #[serde(default, skip_serializing_if = "is_not")]
    pub gone: bool,
    /// Whether that file was there, and left out of the state.
    #[serde(default, skip_serializing_if = "is_not")]
    pub beyond: bool,
    /// What was staged of that file, where somebody had staged it since the last look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged: Option<Vec<IndexEntry>>,
    /// The state in which it found all, where that was looked at.
    #[serde(default, with = "hex_option", skip_serializing_if = "Option::is_none")]
    pub state: Option<ObjectId>,
    /// What refs it found elsewhere than the turn did, where that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moved>,
    /// What was looked at after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked: Option<Looked>,
    /// The place of what had been told last as all was looked at: a call that ended later is not in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<usize>,
    /// Which index that was, where all was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_not(is: &bool) -> bool {
    !is
}

/// What was looked at after a call, for a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Looked {
    /// The file that it names.
    File,
    /// All: what each call changed that was over is known.
    All,
    /// All, where it is told what was known by then, or else nothing: something that it started goes on.
    GoesOn,
}

/// A call of a tool.
#[allow(clippy::struct_excessive_bools, reason = "each is seen by itself")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The session that called.
    pub session: Option<String>,
    /// What it called.
    #[serde(flatten)]
    pub tool: ToolUse,
    /// When the call began, RFC 3339.
    pub began_at: String,
    /// When it was over; none where nothing told of that.
    pub ended_at: Option<String>,
    /// When the system had been running for so many seconds.
    #[serde(skip)]
    pub since_boot: Option<i64>,
    /// The agent's processes when it began.
    #[serde(skip)]
    pub beside: Vec<u32>,
    /// The time of files when it began, in nanoseconds.
    #[serde(skip)]
    pub clock: Option<u64>,
    /// That when it was over.
    #[serde(skip)]
    pub clock_over: Option<u64>,
    /// What somebody else had left in the file that it names.
    #[serde(skip)]
    pub found: Option<FileState>,
    /// Whether somebody else had taken that file away.
    #[serde(skip)]
    pub gone: bool,
    /// Whether that file was there, and left out of the state.
    #[serde(skip)]
    pub beyond: bool,
    /// What somebody else had staged of that file.
    #[serde(skip)]
    pub staged: Option<Vec<IndexEntry>>,
    /// The state in which it found all, where that was looked at.
    #[serde(skip)]
    pub state: Option<ObjectId>,
    /// What refs it found elsewhere than the turn did, where that was looked at.
    #[serde(skip)]
    pub moved: Option<Moved>,
    /// Whether it is known what it changed.
    #[serde(skip)]
    pub is_known: bool,
    /// Whether the end of its prompt is all that tells that it is over.
    #[serde(skip)]
    pub ended_with_prompt: bool,
    /// Which index was looked at after it, where all was.
    #[serde(skip)]
    pub index: Option<String>,
    /// Whether something that it started goes on.
    #[serde(skip)]
    pub goes_on: bool,
    /// The place of its beginning among all that was told, and of its end.
    #[serde(skip)]
    pub told: (usize, Option<usize>),
}

impl CallMark {
    /// That a call began.
    pub fn of(call: ToolCall) -> Self {
        let ToolCall {
            session,
            tool,
            began_at,
            since_boot,
            beside,
            clock,
            found,
            gone,
            beyond,
            staged,
            state,
            moved,
            ..
        } = call;
        Self {
            session,
            tool,
            at: began_at,
            since_boot,
            ends: false,
            beside,
            clock,
            found,
            gone,
            beyond,
            staged,
            state,
            moved,
            looked: None,
            seen: None,
            index: None,
        }
    }
}

/// For so many seconds at most a call is at work that the agent carries out itself, without a process for it.
const OWN_WORK: i64 = 10;

impl ToolCall {
    fn end(&mut self, mark: &CallMark, place: usize) {
        self.ended_at = Some(mark.at.clone());
        self.clock_over = mark.clock;
        self.told.1 = Some(place);
    }

    /// What somebody else had left of the file that it names, where they had changed it and what they left `is_there`.
    #[allow(clippy::option_option, reason = "it may have been taken away")]
    pub fn left(&self, is_there: impl Fn(&FileState) -> bool) -> Option<Option<FileState>> {
        self.found.filter(|found| is_there(found)).map(Some).or_else(|| self.gone.then_some(None))
    }

    /// Whether it is not known what it changed.
    pub fn is_unknown(&self) -> bool {
        !self.is_known || self.goes_on
    }

    /// Whether what it has changed by now is in no step: it is in flight, or what was to be recorded at its end was not.
    pub fn is_unrecorded(&self) -> bool {
        self.ended_at.is_none() || !(self.is_known || self.ended_with_prompt)
    }

    /// Whether another one was in flight at some time of this one.
    pub fn overlaps(&self, other: &Self) -> bool {
        let begins_in = |one: &Self, other: &Self| other.told.1.is_none_or(|end| end > one.told.0);
        begins_in(self, other) && begins_in(other, self)
    }

    /// Until when, by the clock of files, it changed something if nothing tells of its end and no process carried it out.
    pub fn latest(&self) -> Option<u64> {
        Some(self.clock?.saturating_add(OWN_WORK.unsigned_abs() * 1_000_000_000))
    }

    /// Whether it may have begun before it was told of.
    pub fn may_have_begun_before(&self) -> bool {
        self.clock == Some(0)
    }

    /// How old it is, in seconds, by these two clocks: the second one is never set, and only begins anew with the system,
    /// which no call outlasts.
    pub fn age(&self, since_began: Option<i64>, since_boot: i64) -> Option<i64> {
        let by_boot = self.since_boot.map(|then| since_boot.saturating_sub(then));
        by_boot.map(|age| if age < 0 { i64::MAX } else { age }).or(since_began)
    }

    /// Whether it is in flight, by its age in seconds and the processes that its agent has now. That nothing has told of
    /// its end is not enough: Escape tells of none. What carries it out is either a process that the agent had not when it
    /// began, or the agent itself, for a moment. What cannot be seen counts as at work.
    pub fn is_in_flight(&self, age: Option<i64>, now: Option<&[u32]>) -> bool {
        let is_new = age.is_none_or(|age| age < OWN_WORK);
        self.ended_at.is_none() && (is_new || now.is_none_or(|now| now.iter().any(|id| !self.beside.contains(id))))
    }
}

/// The calls that these marks tell of, in the order in which they began. An end of which no beginning was told is none;
/// one that names no call is that of all of its session's.
pub fn calls(marks: impl IntoIterator<Item = CallMark>) -> Vec<ToolCall> {
    let mut told = Told::default();
    for (place, mark) in marks.into_iter().enumerate() {
        match mark.looked {
            Some(looked) => told.looked_at(looked, mark),
            None if mark.ends => told.end(&mark, place),
            None => told.begin(mark, place),
        }
    }
    told.calls
}

/// What was told so far. A turn may have thousands of calls, and few of them are in flight or not looked at at a time.
#[derive(Default)]
struct Told {
    calls: Vec<ToolCall>,
    /// Those in flight, as they began.
    open: Vec<usize>,
    /// The others, as they ended.
    ended: Vec<usize>,
    /// Those of them of which it is not known what they changed.
    unknown: Vec<usize>,
}

impl Told {
    fn begin(&mut self, mark: CallMark, place: usize) {
        let CallMark {
            session, tool, at, since_boot, beside, clock, found, gone, beyond, staged, state, moved, ..
        } = mark;
        // Where hooks are set up in two places, each tells of it. One that is over may have had this id: a few models count from
        // nought in each of their answers.
        let is_it = |call: &ToolCall| {
            call.session == session && call.tool.tool == tool.tool && tool.id.is_some() && call.tool.id == tool.id
        };
        if self.open.iter().any(|at| is_it(&self.calls[*at])) {
            return;
        }
        let is_known = tool.only_reads();
        self.open.push(self.calls.len());
        self.calls.push(ToolCall {
            session,
            tool,
            began_at: at,
            ended_at: None,
            since_boot,
            beside,
            clock,
            clock_over: None,
            found,
            gone,
            beyond,
            staged,
            state,
            moved,
            is_known,
            ended_with_prompt: false,
            index: None,
            goes_on: false,
            told: (place, None),
        });
    }

    fn end(&mut self, mark: &CallMark, place: usize) {
        let is_all = mark.tool == ToolUse::default();
        let of_session = |at: &usize| self.calls[*at].session == mark.session;
        let its = self.open.iter().copied().filter(of_session).map(|at| (at, &self.calls[at].tool));
        let one = of_call(its, &mark.tool);
        let ends = |at: &usize| if is_all { of_session(at) } else { one == Some(*at) };
        let (over, open): (Vec<usize>, Vec<usize>) = self.open.iter().copied().partition(ends);
        self.open = open;
        for at in over {
            self.calls[at].end(mark, place);
            self.calls[at].ended_with_prompt = is_all;
            self.ended.push(at);
            self.unknown.push(at);
        }
    }

    /// Notes what was looked at after a call.
    fn looked_at(&mut self, looked: Looked, mark: CallMark) {
        let of_session = |at: &usize| self.calls[*at].session == mark.session;
        let its = self.ended.iter().rev().copied().filter(of_session).map(|at| (at, &self.calls[at].tool));
        if let Some(at) = of_call(its, &mark.tool) {
            let call = &mut self.calls[at];
            call.is_known = true;
            call.index = mark.index;
            call.goes_on = looked == Looked::GoesOn;
        }
        // Of an earlier release, all did.
        let seen = mark.seen.or((looked == Looked::All).then_some(usize::MAX));
        let Some(seen) = seen else { return };
        for at in std::mem::take(&mut self.unknown) {
            if self.calls[at].told.1.is_some_and(|end| end <= seen) {
                self.calls[at].is_known = true;
            } else {
                self.unknown.push(at);
            }
        }
    }
}

/// The call that has just ended and of which it is not known yet what it changed.
pub fn just_ended<'c>(calls: &'c [ToolCall], session: Option<&String>, tool: &ToolUse) -> Option<&'c ToolCall> {
    let is_one = |call: &&ToolCall| call.ended_at.is_some() && !call.is_known && call.session.as_ref() == session;
    let mut ended: Vec<_> = calls.iter().filter(is_one).collect();
    ended.sort_by_key(|call| std::cmp::Reverse(call.told.1));
    of_call(ended.into_iter().map(|call| (call, &call.tool)), tool)
}

/// When the first call began, by the clock of files, of which it is not known what it changed.
pub fn first_unknown(told: &[ToolCall]) -> Option<u64> {
    let unknown = told.iter().filter(|call| call.is_unknown());
    unknown.map(|call| call.clock.unwrap_or_default()).min()
}

/// How far the time of a file may be ahead of the clock of files, in nanoseconds: a system may give one that was looked at a finer time,
/// and no later change an earlier one, until that clock ticks.
const TICK: u64 = 10_000_000;

/// Whether none of all calls was in flight at a time that a file has.
pub fn is_between(told: &[ToolCall], time: u64) -> bool {
    let is_over = |over: u64| time > over.saturating_add(TICK);
    told.iter().all(|call| call.clock.is_some_and(|began| time < began) || call.clock_over.is_some_and(is_over))
}

/// Which index was looked at last as a whole.
pub fn last_index(told: &[ToolCall]) -> Option<&String> {
    let looked = told.iter().filter(|call| call.index.is_some());
    looked.max_by_key(|call| call.told.1)?.index.as_ref()
}

/// What refs that call found elsewhere of which alone it is not known what it changed; none where that was not looked at, or
/// others were in flight beside it.
pub fn found_by_only_unknown(told: &[ToolCall]) -> Option<&Moved> {
    let is_unknown = |call: &&ToolCall| call.is_unknown();
    let only = told.iter().find(is_unknown)?;
    let is_alone = !told.iter().any(|other| other.told != only.told && other.overlaps(only));
    only.moved.as_ref().filter(|_| is_alone && told.iter().filter(is_unknown).count() == 1)
}

/// The first of these of which an end is: by the agent's id of the call, where it has any. Without one, by what it is about, and
/// where none is about that, by the tool alone: some agents tell of that only as a call begins.
fn of_call<'c, T>(mut all: impl Iterator<Item = (T, &'c ToolUse)> + Clone, ended: &ToolUse) -> Option<T> {
    let is_same = |(_, begun): &(T, &ToolUse)| match (&begun.id, &ended.id) {
        (Some(begun), Some(ended)) => begun == ended,
        _ => begun.tool == ended.tool,
    };
    let is_about_it = |(_, begun): &(T, &ToolUse)| (&begun.path, &begun.command) == (&ended.path, &ended.command);
    let about_it = all.clone().filter(is_same).find(is_about_it);
    about_it.or_else(|| all.find(is_same)).map(|(one, _)| one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(session: &str, tool: &str, id: Option<&str>, at: &str, ends: bool) -> CallMark {
        let tool = ToolUse { tool: tool.to_owned(), id: id.map(str::to_owned), ..ToolUse::default() };
        CallMark {
            session: Some(session.to_owned()),
            tool,
            at: at.to_owned(),
            since_boot: None,
            ends,
            beside: vec![7, 8],
            clock: None,
            found: None,
            gone: false,
            beyond: false,
            staged: None,
            state: None,
            moved: None,
            looked: None,
            seen: None,
            index: None,
        }
    }

    fn ends(marks: Vec<CallMark>) -> Vec<Option<String>> {
        calls(marks).into_iter().map(|call| call.ended_at).collect()
    }

    #[test]
    fn each_end_is_that_of_its_beginning() {
        let marks = vec![
            mark("s", "Bash", Some("1"), "a", false),
            mark("s", "Bash", Some("2"), "b", false),
            mark("o", "Bash", Some("2"), "c", false),
            mark("s", "Bash", Some("2"), "d", true),
            mark("s", "Bash", Some("9"), "e", true),
        ];
        assert_eq!(ends(marks), [None, Some("d".to_owned()), None]);
    }

    #[test]
    fn what_has_a_time_right_after_a_call_did_not_come_between_calls() {
        let at = |time, ends| CallMark { clock: Some(time), ..mark("s", "Bash", Some("1"), "a", ends) };
        let told = calls([at(100 * TICK, false), at(200 * TICK, true)]);
        let has = |time| is_between(&told, time);
        assert!(has(100 * TICK - 1) && has(201 * TICK + 1));
        assert!(!has(100 * TICK) && !has(150 * TICK) && !has(201 * TICK));
        assert!(!is_between(&calls([at(TICK, false)]), 300 * TICK), "it is in flight still");
    }

    #[test]
    fn a_call_that_two_hooks_tell_of_is_one() {
        let begins = || mark("s", "Edit", Some("1"), "9", false);
        let ended = |at: &str| mark("s", "Edit", Some("1"), at, true);
        let over = || vec![Some("10".to_owned())];
        assert_eq!(ends(vec![begins(), begins(), ended("10")]), over(), "one of them was killed");
        assert_eq!(ends(vec![begins(), begins(), ended("10"), ended("11")]), over());
        let again = ends(vec![begins(), ended("10"), begins(), ended("11")]);
        assert_eq!(again, [Some("10".to_owned()), Some("11".to_owned())], "another one of the same id");
        let others = [mark("t", "Edit", Some("1"), "9", false), mark("s", "Edit", Some("2"), "9", false)];
        let all = others.into_iter().chain([begins(), ended("10")]).collect();
        assert_eq!(ends(all), [None, None, Some("10".to_owned())], "of another session, and another one");
    }

    #[test]
    fn the_end_of_a_prompt_is_that_of_its_calls() {
        let marks = vec![
            mark("s", "Bash", None, "a", false),
            mark("o", "Bash", None, "b", false),
            mark("s", "Edit", Some("1"), "c", false),
            mark("s", "", None, "d", true),
            mark("s", "Edit", Some("1"), "e", false),
        ];
        assert_eq!(ends(marks), [Some("d".to_owned()), None, Some("d".to_owned()), None]);
    }

    #[test]
    fn a_call_of_which_no_end_is_told_is_in_flight_while_something_carries_it_out() {
        let begun = calls([mark("s", "Bash", None, "a", false)]).remove(0);
        let soon = Some(OWN_WORK - 1);
        let late = Some(OWN_WORK);
        for (age, now, wanted) in [
            (soon, Some(&[7, 8][..]), true),
            (late, Some(&[7, 8]), false),
            (late, Some(&[8]), false),
            (late, Some(&[]), false),
            (late, Some(&[7, 9]), true),
            (late, None, true),
            (Some(-5), Some(&[]), true),
            (None, Some(&[]), true),
        ] {
            assert_eq!(begun.is_in_flight(age, now), wanted, "{age:?}, {now:?}");
        }
        let ended = calls([mark("s", "Bash", None, "a", false), mark("s", "Bash", None, "b", true)]).remove(0);
        assert!(!ended.is_in_flight(soon, Some(&[9])));
    }

    #[test]
    fn a_clock_that_is_set_makes_no_call_older_or_younger() {
        let mut call = calls([mark("s", "Bash", None, "a", false)]).remove(0);
        assert_eq!(call.age(Some(-3600), 100), Some(-3600), "there is no other clock");
        call.since_boot = Some(95);
        assert_eq!(call.age(Some(-3600), 100), Some(5));
        assert_eq!(call.age(Some(3600), 100), Some(5));
        assert_eq!(call.age(Some(5), 90), Some(i64::MAX), "the system was started anew");
    }

    #[test]
    fn a_look_tells_of_what_had_ended_as_it_began_and_one_at_nothing_of_its_call_alone() {
        let look = |looked, seen| CallMark { looked: Some(looked), seen, ..mark("s", "Bash", Some("1"), "e", true) };
        for (looked, seen, known) in [
            (Looked::File, None, [true, false, false]),
            (Looked::GoesOn, None, [true, false, false]),
            (Looked::All, Some(4), [true, true, false]),
            (Looked::GoesOn, Some(4), [true, true, false]),
            (Looked::All, None, [true, true, true]),
        ] {
            let mut marks: Vec<CallMark> =
                ["1", "2", "3"].map(|id| mark("s", "Bash", Some(id), "b", false)).into_iter().collect();
            marks.extend(["1", "2", "3"].map(|id| mark("s", "Bash", Some(id), "e", true)));
            marks.push(look(looked, seen));
            let told = calls(marks);
            assert_eq!([0, 1, 2].map(|at| told[at].is_known), known, "{looked:?} {seen:?}");
            assert_eq!(told[0].goes_on, looked == Looked::GoesOn);
        }
    }

    #[test]
    fn without_ids_the_tool_tells() {
        let marks = vec![
            mark("s", "Bash", None, "a", false),
            mark("s", "Edit", None, "b", false),
            mark("s", "Edit", None, "c", true),
            mark("s", "Edit", None, "d", true),
        ];
        assert_eq!(ends(marks), [None, Some("c".to_owned())]);
    }
}
