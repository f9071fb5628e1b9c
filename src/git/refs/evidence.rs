//! Who moved a branch, and which commits came from elsewhere, by what git wrote down.

use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::refs::mend::LOG_END;
use crate::git::repo::clock::parse_rfc3339;
use crate::model::bytes::lossless;
use crate::model::turn::Turn;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::ByteSlice;
use std::collections::{BTreeMap, HashSet};

/// How git's messages begin where it moves the branch that is checked out: HEAD moves with it, and both are written down.
const WITH_HEAD: [&str; 8] = ["commit", "merge", "rebase", "reset", "cherry-pick", "revert", "am", "pull"];

/// How their first words end where it made no commit on the way: as a rebase begins and ends, and where HEAD is only put elsewhere.
const NOT_MAKING: [&str; 4] = ["(start)", "(finish)", "(abort)", "reset"];

/// And where it moves what is checked out nowhere, in the name of another repository.
const FROM_OUTSIDE: [&str; 2] = ["fetch", "push"];

/// How git's message begins where it gives a branch another name.
const RENAMED: &[u8] = b"Branch: renamed ";

/// And where it makes one like it, with its reflog.
const COPIED: &[u8] = b"Branch: copied ";

/// How it begins where HEAD goes to another branch.
const LEAVING: &[u8] = b"checkout: moving from ";

/// How they begin where it puts a branch elsewhere.
const RESET: [&[u8]; 2] = [b"reset: ", b"branch: Reset to "];

/// How oxundo's own messages begin.
const OWN: &[u8] = b"oxundo: ";

/// Where a branch was, and since when renames of it count. Times are in seconds since 1970, as reflogs have them.
#[derive(Clone, Copy, Debug)]
pub struct Was<'a> {
    /// The commit.
    pub commit: ObjectId,
    /// What tells that it was there, unless oxundo has brought it there.
    pub known_by: KnownBy<'a>,
    /// Other turns whose renames are in their records.
    pub recorded: &'a [Recorded<'a>],
}

/// A turn whose renames are in its record.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// When it began.
    pub began: i64,
    /// When it ended.
    pub ended: i64,
    /// The last lines, at its end, of all reflogs that were written in it; older records do not have them.
    pub lines: Option<&'a BTreeMap<String, String>>,
}

/// A reset of a branch.
#[derive(Clone, Copy, Debug)]
pub struct Reset {
    /// Where it was.
    pub from: ObjectId,
    /// Where that led it.
    pub to: ObjectId,
    /// Whether it had been there before.
    pub goes_back: bool,
}

/// When something began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Began {
    /// The time, in seconds since 1970.
    pub time: i64,
    /// How long HEAD's reflog was then, where that is known.
    pub head_log: Option<u64>,
    /// A time at which all that it does was still to be written, in nanoseconds since 1970, where there is one.
    pub written: Option<u64>,
}

/// What tells of a reflog that its branch was somewhere.
#[derive(Clone, Copy, Debug)]
pub enum KnownBy<'a> {
    /// A line of it, as [`Refs::last_line`] gave it then.
    Line(&'a str),
    /// It was there at this time at the latest.
    Time(i64),
}

impl Was<'_> {
    /// At a commit, whenever that was.
    pub fn at(commit: ObjectId) -> Self {
        Self { commit, known_by: KnownBy::Time(i64::MAX), recorded: &[] }
    }
}

impl Began {
    /// When a turn did.
    pub fn of(turn: &Turn) -> Self {
        let time = parse_rfc3339(&turn.began_at).unwrap_or_default();
        Self { time, head_log: turn.head_log, written: turn.began }
    }
}

impl Refs<'_> {
    /// Whether a branch that is not HEAD's was last moved by a fetch or a push, or where another HEAD was on it.
    pub fn was_moved_elsewhere(&self, name: &str) -> bool {
        let text = self.log_of(name);
        let Some(last) = last(&text) else { return false };
        begins(last.said, &FROM_OUTSIDE).is_some()
            || (begins(last.said, &WITH_HEAD).is_some() && !self.has_led_head(&last))
    }

    /// Whether a branch was last moved while this worktree's HEAD was on it.
    pub fn was_moved_here(&self, name: &str) -> bool {
        let text = self.log_of(name);
        last(&text).is_some_and(|last| begins(last.said, &WITH_HEAD).is_some() && self.has_led_head(&last))
    }

    /// Whether a ref was ever at a commit.
    pub fn was_at(&self, name: &str, commit: ObjectId) -> bool {
        let (text, id) = (self.log_of(name), commit.to_string());
        text.lines().any(|line| line.splitn_str(3, " ").take(2).any(|end| end == id.as_bytes()))
    }

    /// Whether a branch had another name when it was there, and has its own by nothing but git's renaming: its reflog goes along.
    pub fn was_called(&self, name: &str, old: &str, was: &Was<'_>) -> bool {
        let (text, id) = (self.log_of(name), was.commit.to_string());
        let [name, old] = [name, old].map(lossless::decode);
        let since = since(&text, was.known_by);
        let recorded = Spans::of(&text, was.recorded);
        let (mut was_there, mut called) = (since.is_some(), None);
        for line in since.unwrap_or(&text).lines().filter_map(Line::read) {
            let is_in_time = line.is_by(was.known_by) || line.said.starts_with(OWN);
            was_there |= line.to == id.as_bytes() && is_in_time;
            if let Some((from, to)) = names_after(COPIED, line.said)
                && was_there
                && to != old
                && (from == old || called == Some(from))
            {
                return false;
            }
            let Some((from, to)) = names_after(RENAMED, line.said).filter(|_| was_there) else { continue };
            if recorded.have(&line) {
                continue;
            }
            match called {
                Some(is) if is == from => called = Some(to),
                None if from == old => called = Some(to),
                // It had that name itself when it was there.
                None if !is_in_time => return false,
                _ => {}
            }
        }
        // A copy of it has all these lines, and another name.
        called == Some(&name[..])
    }

    /// Where HEAD was as it left a branch on which it had been at a commit, or where it is, if it did not leave it: wherever that has gone
    /// since. A branch that began there goes on with it. None where HEAD's reflog does not say so.
    pub fn left_at(&self, name: &str, commit: ObjectId) -> Option<ObjectId> {
        let (text, id) = (self.log_of("HEAD"), commit.to_string());
        let lines: Vec<Line<'_>> = text.lines().filter_map(Line::read).collect();
        let to_it = lossless::decode([" to ", name.strip_prefix("refs/heads/").unwrap_or(name)].concat().as_str());
        let came_by = |line: &Line<'_>| line.said.ends_with(&to_it) || line.from == line.to || !line.leaves();
        let at = lines.iter().rposition(|line| line.to == id.as_bytes() && came_by(line))?;
        let left = lines[at + 1..].iter().find(|line| line.leaves()).map(|line| line.from);
        ObjectId::from_hex(left.or(lines.last().map(|line| line.to))?).ok()
    }

    /// Where resets, and what names the commit anew, have led a branch since it was last at a commit.
    pub fn resets_since(&self, name: &str, commit: ObjectId) -> Vec<Reset> {
        let (text, id) = (self.log_of(name), commit.to_string());
        let lines: Vec<Line<'_>> = text.lines().filter_map(Line::read).collect();
        let since = lines.iter().rposition(|line| line.to == id.as_bytes()).map_or(lines.len(), |at| at + 1);
        let is_reset = |(_, line): &(usize, &Line<'_>)| RESET.iter().any(|words| line.said.starts_with(words));
        let reset = |(at, line): (usize, &Line<'_>)| {
            let (from, to) = (ObjectId::from_hex(line.from).ok()?, ObjectId::from_hex(line.to).ok()?);
            let goes_back = lines[..at].iter().any(|earlier| earlier.to == line.to);
            Some(Reset { from, to, goes_back })
        };
        lines.iter().enumerate().skip(since).filter(is_reset).filter_map(reset).collect()
    }

    /// Whether a branch has the line by which one is known that was there.
    pub fn has_line(&self, name: &str, was: &Was<'_>) -> bool {
        since(&self.log_of(name), was.known_by).is_some()
    }

    /// Whether a branch has its name by a later rename, and had another when it was there.
    pub fn is_another_since(&self, name: &str, was: &Was<'_>) -> bool {
        let (text, own) = (self.log_of(name), lossless::decode(name));
        let recorded = Spans::of(&text, was.recorded);
        let mut later = since(&text, was.known_by).unwrap_or(&text).lines().filter_map(Line::read);
        later.any(|line| names_after(RENAMED, line.said).is_some_and(|(_, to)| to == &own[..]) && !recorded.have(&line))
            // It may have gone away and come back, the first of it within a second that does not tell.
            && !self.was_called(name, name, &Was { recorded: &[], ..*was })
    }

    /// The last line of a branch's reflog, which tells it from another branch for as long as it has one.
    pub fn last_line(&self, name: &str) -> Option<String> {
        let (_, end) = self.log_end(name).ok().flatten()?;
        end.lines().next_back().filter(|line| line.len() < LOG_END - 1).map(lossless::encode)
    }

    /// Whether a branch's reflog begins at this time or later, and with the branch.
    pub fn is_made_since(&self, name: &str, time: i64) -> bool {
        let text = self.log_of(name);
        let first = text.lines().next().filter(|line| line.starts_with(b"0000000"));
        first.and_then(Line::read).is_some_and(|line| line.at.is_some_and(|at| at >= time))
    }

    /// Where a branch began, as far as its reflog goes back to that.
    pub fn began_at(&self, name: &str) -> Option<ObjectId> {
        let text = self.log_of(name);
        let first = text.lines().next().filter(|line| line.starts_with(b"0000000")).and_then(Line::read)?;
        ObjectId::from_hex(first.to).ok()
    }

    /// Whether oxundo itself has brought a branch to where it is.
    pub fn is_where_brought(&self, name: &str) -> bool {
        last(&self.log_of(name)).is_some_and(|last| last.said.starts_with(OWN))
    }

    /// Which of these commits came from another repository, or were there before: they are in what is known of one, or are in older
    /// files, and HEAD's reflog does not say that they were made here since that began. Where it has none, those that are younger are
    /// taken for made here.
    pub fn came_here(&self, commits: &[ObjectId], began: Began) -> Result<HashSet<ObjectId>> {
        let objects = Objects::new(self.repo);
        let tips = if commits.is_empty() { Vec::new() } else { objects.remote_tip_ids()? };
        let mut came = objects.reachable_from(&tips, commits)?;
        if let Some(written) = began.written {
            // What they came with may be gone, as a branch of a colleague's that the turn has deleted there.
            let others: Vec<ObjectId> = commits.iter().filter(|id| !came.contains(*id)).copied().collect();
            came.extend(objects.older_than(&others, written));
        }
        if came.is_empty() {
            return Ok(came);
        }
        let text = self.log_of("HEAD");
        if text.is_empty() {
            came.retain(|id| objects.features(*id).is_some_and(|commit| !commit.is_after(began.time - 1)));
        }
        let later = began.head_log.and_then(|length| text.get(usize::try_from(length).ok()?..));
        let is_later = |line: &Line<'_>| later.is_some() || line.at.is_none_or(|at| at >= began.time);
        let lines = later.unwrap_or(&text).lines().filter_map(Line::read).filter(is_later).filter(Line::has_made);
        // Of what is no id, as after a power cut, nothing is told.
        for made in lines.filter_map(|line| ObjectId::from_hex(line.to).ok()) {
            came.remove(&made);
        }
        Ok(came)
    }

    fn log_of(&self, name: &str) -> Vec<u8> {
        self.log_text(name).ok().flatten().unwrap_or_default()
    }

    /// Whether HEAD went there too, and in the same way: it may have followed later, by a merge.
    fn has_led_head(&self, last: &Line<'_>) -> bool {
        let way = begins(last.said, &WITH_HEAD);
        let text = self.log_of("HEAD");
        text.lines().filter_map(Line::read).any(|line| line.to == last.to && begins(line.said, &WITH_HEAD) == way)
    }
}

/// A line of a reflog.
struct Line<'a> {
    /// Where the ref was.
    from: &'a [u8],
    /// Where it is since.
    to: &'a [u8],
    /// Since when, in seconds since 1970.
    at: Option<i64>,
    /// Why.
    said: &'a [u8],
}

impl<'a> Line<'a> {
    fn read(line: &'a [u8]) -> Option<Self> {
        let (about, said) = line.split_once_str("\t")?;
        let at = about.rsplit_str(" ").nth(1).and_then(|time| time.to_str().ok()?.parse().ok());
        let mut ends = about.splitn_str(3, " ");
        Some(Self { from: ends.next()?, to: ends.next()?, at, said })
    }

    /// Whether HEAD went to another branch.
    fn leaves(&self) -> bool {
        self.said.starts_with(LEAVING)
    }

    /// Whether what HEAD went to was made as it went there.
    fn has_made(&self) -> bool {
        let (Some(way), Some((does, what))) = (begins(self.said, &WITH_HEAD), self.said.split_once_str(": ")) else {
            return false;
        };
        let is_led =
            || what.eq_ignore_ascii_case(b"fast-forward") || NOT_MAKING.iter().any(|end| does.ends_with_str(end));
        way == "commit" || !is_led()
    }

    /// Whether it was written by the time by which something is known.
    fn is_by(&self, known_by: KnownBy<'_>) -> bool {
        matches!(known_by, KnownBy::Time(until) if self.at.is_some_and(|at| at <= until))
    }
}

/// What of a reflog turns have written whose renames are in their records: from when to when, and up to which place in it.
struct Spans(Vec<(i64, i64, *const u8)>);

impl Spans {
    fn of(text: &[u8], turns: &[Recorded<'_>]) -> Self {
        let end = |turn: &Recorded<'_>| match turn.lines {
            None => Some((i64::MIN, text.as_ptr_range().end)),
            Some(lines) => {
                let behind = lines.values().filter_map(|line| since(text, KnownBy::Line(line)));
                behind.map(<[u8]>::as_ptr).max().map(|end| (turn.began, end))
            }
        };
        Self(turns.iter().filter_map(|turn| end(turn).map(|(began, end)| (began, turn.ended, end))).collect())
    }

    fn have(&self, line: &Line<'_>) -> bool {
        let is_in = |(began, ended, end): &(i64, i64, *const u8)| {
            line.to.as_ptr() < *end && line.at.is_none_or(|at| *began <= at && at <= *ended)
        };
        self.0.iter().any(is_in)
    }
}

/// What a reflog has behind the line by which it is known.
fn since<'a>(text: &'a [u8], known_by: KnownBy<'_>) -> Option<&'a [u8]> {
    let KnownBy::Line(line) = known_by else { return None };
    let line = [&lossless::decode(line)[..], b"\n"].concat();
    let is_whole = |at: &usize| *at == 0 || text[at - 1] == b'\n';
    let at = text.rfind_iter(&line).find(is_whole)?;
    Some(&text[at + line.len()..])
}

/// The names that follow such words, before and after.
fn names_after<'a>(words: &[u8], said: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    said.strip_prefix(words)?.split_once_str(" to ")
}

fn last(text: &[u8]) -> Option<Line<'_>> {
    text.lines().next_back().and_then(Line::read)
}

fn begins(message: &[u8], words: &[&'static str]) -> Option<&'static str> {
    words.iter().find(|word| message.starts_with(word.as_bytes())).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;
    use std::io::Write;

    #[test]
    fn what_is_known_of_another_repository_came_from_there_unless_heads_reflog_says_that_it_was_made_here() {
        let f = Fixture::new();
        let (own, tree) = (f.commit("a", "one"), f.id(&["rev-parse", "HEAD^{tree}"]).to_string());
        let other = f.id(&["commit-tree", "-m", "other", "-p", &own.to_string(), &tree]);
        f.git(&["update-ref", "refs/remotes/o/main", &other.to_string()]);
        let came = |began| Refs::new(&f.repo).came_here(&[own, other], began).expect("look");
        assert_eq!(came(Began::default()), [other].into());
        let log = f.repo.git_dir().join("logs/HEAD");
        let length = std::fs::metadata(&log).expect("it is there").len();
        assert_eq!(
            came(Began { head_log: Some(length), ..Began::default() }),
            [own, other].into(),
            "own was there before"
        );
        let mut file = std::fs::File::options().append(true).open(&log).expect("open");
        file.write_all(b"\0\0 no line\tcommit: x\n0 \xff U <u@x> 1 +0000\tcommit: y\nx").expect("write");
        assert_eq!(came(Began::default()), [other].into(), "what is damaged in it tells nothing, and stops nothing");
        std::fs::remove_file(&log).expect("remove");
        assert_eq!(came(Began::default()), [].into(), "without it what is younger was made here");
        assert_eq!(came(Began { time: i64::MAX, ..Began::default() }), [own, other].into());
        assert_eq!(Refs::new(&f.repo).came_here(&[], Began::default()).expect("look"), [].into());
    }

    #[test]
    fn where_head_was_as_it_left_a_branch_is_told_wherever_that_has_gone_since() {
        let f = Fixture::new();
        let (one, refs) = (f.commit("a", "one"), Refs::new(&f.repo));
        let left = |at| refs.left_at("refs/heads/main", at);
        assert_eq!(left(one), Some(one), "it is there");
        let two = f.commit("a", "two");
        assert_eq!((left(one), left(two)), (Some(two), Some(two)), "it went along");
        f.git(&["switch", "-q", "-c", "begun"]);
        let three = f.commit("a", "three");
        f.git(&["branch", "-q", "-f", "main", &three.to_string()]);
        assert_eq!(
            (left(one), left(two), left(three)),
            (Some(two), Some(three), Some(three)),
            "where another began it goes on"
        );
        f.git(&["checkout", "-q", &one.to_string()]);
        assert_eq!(left(one), Some(two), "it was not there on the branch");
        f.git(&["switch", "-q", "main"]);
        assert_eq!(left(three), Some(three));
        assert_eq!(left(ObjectId::null(gix::hash::Kind::Sha1)), None);
    }

    #[test]
    fn a_line_tells_whether_the_commit_was_made_as_head_went_there() {
        for (said, made) in [
            ("commit: start again (finish)", true),
            ("commit (amend): fast-forward", true),
            ("commit (initial): one", true),
            ("merge topic: Merge made by the 'ort' strategy.", true),
            ("merge topic: Fast-forward", false),
            ("pull: Fast-forward", false),
            ("pull --ff-only o main: Fast-forward", false),
            ("pull --rebase o main (start): checkout 1234567", false),
            ("pull --rebase o main (pick): one", true),
            ("pull --rebase o main (finish): returning to refs/heads/main", false),
            ("rebase (pick): fast-forward", false),
            ("rebase (abort): returning to refs/heads/main", false),
            ("cherry-pick: one: two", true),
            ("revert: Revert \"one\"", true),
            ("am: one", true),
            ("reset: moving to o/main", false),
            ("checkout: moving from main to topic", false),
            ("clone: from ../o.git", false),
            ("oxundo: redo", false),
            ("", false),
        ] {
            assert_eq!(Line { from: b"", to: b"", at: None, said: said.as_bytes() }.has_made(), made, "{said}");
        }
    }
}
