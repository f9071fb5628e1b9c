//! The stash list, entry by entry. git drops entries by number only, so that one which comes in between is dropped instead of
//! the one that was meant; and what it leaves when it is killed is like what a living git has. So it is written here.

use crate::git::refs::lockfile::{PACKED, RefLocks};
use crate::git::refs::read::Moment;
use crate::git::refs::transaction::{content, log_line};
use crate::git::refs::{Refs, STASH};
use crate::model::bytes::lossless;
use crate::model::checkpoint::{Change, StashEntry, known_as};
use crate::model::pointers::Pointers;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::actor::SignatureRef;
use gix::bstr::ByteSlice;
use gix::refs::Target;
use gix::refs::file::log::iter::forward;
use std::time::Duration;

impl Refs<'_> {
    /// The stash list, newest first. Where its reflog does not know what the ref is at, as it was wiped, that is the newest.
    pub fn stash(&self) -> Result<Vec<StashEntry>> {
        Ok(self.listed(self.logged_stash()?, self.ref_id(STASH)?))
    }

    fn listed(&self, mut list: Vec<StashEntry>, top: Option<ObjectId>) -> Vec<StashEntry> {
        let Some(top) = top else { return Vec::new() };
        if list.iter().all(|entry| entry.id != top)
            && let Ok(unlogged) = self.unlogged(top)
        {
            list.insert(0, unlogged);
        }
        list
    }

    /// An entry as `git stash` logs it: as its commit was made.
    fn unlogged(&self, id: ObjectId) -> Result<StashEntry> {
        let commit = self.repo.find_commit(id)?;
        let committer = commit.committer()?;
        let [name, email, message] =
            [committer.name, committer.email, commit.message()?.summary().as_ref()].map(|text| lossless::encode(text));
        Ok(StashEntry { id, name, email, date: committer.time()?.to_string(), message })
    }

    fn logged_stash(&self) -> Result<Vec<StashEntry>> {
        let log = self.log_text(STASH)?.unwrap_or_default();
        let mut list = Vec::new();
        for line in forward(&log) {
            let line = line?;
            list.push(StashEntry {
                id: line.new_oid(),
                name: lossless::encode(line.signature.name),
                email: lossless::encode(line.signature.email),
                date: line.signature.time()?.to_string(),
                message: lossless::encode(line.message),
            });
        }
        list.reverse();
        Ok(list)
    }

    /// HEAD and the branches at one moment, with the stash list.
    pub fn pointers(&self) -> Result<Pointers> {
        let Moment { head, branches, symbolic } = self.moment()?;
        Ok(Pointers { head, branches, symbolic, stash: self.stash()? })
    }

    /// Makes of the stash list what a change leads to. Entries are told by what they are, not by their place: those that
    /// are in neither end of the change are somebody else's, and stay. Gives how many of these there are.
    pub fn set_stash(&self, change: &Change<Vec<StashEntry>>) -> Result<usize> {
        let found = |logged: &[StashEntry], top| merged(&known_as(self.listed(logged.to_vec(), top), change), change);
        let (logged, top) = (self.logged_stash()?, self.ref_id(STASH)?);
        let (list, others) = found(&logged, top);
        if list == logged && top == list.first().map(|first| first.id) {
            // A roll-back needs no lock for what was not done since somebody else had it.
            return Ok(others);
        }
        let (mut locks, logged, top) = self.lock_stash(change)?;
        let (list, others) = found(&logged, top);
        if self.repo.has_tables() {
            self.stash_in_tables(&locks, &list, top.is_some())?;
        } else if list.is_empty() && top.is_some() {
            locks.take(PACKED)?;
            self.delete(&locks, &[STASH])?;
        } else if let Some(newest) = list.first() {
            let log = self.repo.log_file(STASH);
            if list != logged {
                log.parent()
                    .map_or(Ok(()), |above| self.repo.sharing().make_directories(above))
                    .context("make the directory of the stash list")?;
                locks.put(&log, &log_of(&list)?)?;
            }
            if top != Some(newest.id) {
                locks.put(&self.ref_file(STASH), &content(&Target::Object(newest.id)))?;
            }
        }
        Ok(others)
    }

    /// Locks the stash and reads its reflog and where it is. git takes its last entry off in two steps, and has no lock between
    /// them: who comes there waits a moment.
    fn lock_stash(
        &self,
        change: &Change<Vec<StashEntry>>,
    ) -> Result<(RefLocks<'_>, Vec<StashEntry>, Option<ObjectId>)> {
        let is_known = |id| change.from.iter().chain(&change.to).any(|entry| entry.id == id);
        let mut left = MOMENTS;
        loop {
            let locks = if self.repo.has_tables() {
                self.lock_tables()?
            } else {
                let mut locks = RefLocks::begin(*self, &[STASH, PACKED])?;
                locks.take(STASH)?;
                locks
            };
            let (logged, top) = (self.logged_stash()?, self.ref_id(STASH)?);
            // Its reflog may have been wiped, or a kill may have come between the reflog and the ref.
            let is_logged = logged.first().map(|first| first.id) == top;
            if is_logged || top.is_none_or(is_known) || left == 0 {
                return Ok((locks, logged, top));
            }
            drop(locks);
            left -= 1;
            std::thread::sleep(MOMENT);
        }
    }
}

/// How often, and how long each time, to wait for a git that is changing the stash list.
const MOMENTS: u32 = 30;
const MOMENT: Duration = Duration::from_millis(10);

/// The list that a change makes of this one, and how many entries in it are in neither of its ends. Each of those stays
/// above the entry that it is above; one that is in both ends, and is gone, stays gone.
fn merged(now: &[StashEntry], change: &Change<Vec<StashEntry>>) -> (Vec<StashEntry>, usize) {
    let Change { from, to } = change;
    let wanted = to.iter().filter(|entry| now.contains(entry) || !from.contains(entry));
    let mut list: Vec<StashEntry> = wanted.cloned().collect();
    let (mut below, mut others) = (list.len(), 0);
    for entry in now.iter().rev() {
        if let Some(at) = list.iter().position(|it| it == entry) {
            below = at;
        } else if !from.contains(entry) {
            list.insert(below, entry.clone());
            others += 1;
        }
    }
    (list, others)
}

/// A reflog that is this list, oldest first: each entry follows on the one below it.
fn log_of(list: &[StashEntry]) -> Result<Vec<u8>> {
    let (mut log, mut below) = (Vec::new(), None);
    for entry in list.iter().rev() {
        let [name, email, message] = [&entry.name, &entry.email, &entry.message].map(|text| lossless::decode(text));
        let who = SignatureRef { name: name.as_bstr(), email: email.as_bstr(), time: &entry.date };
        log.extend(log_line(below, entry.id, who, &message)?);
        below = Some(entry.id);
    }
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;

    /// A repository with so many stashes, and git's word for them.
    fn stashed(count: usize) -> Fixture {
        let f = Fixture::new();
        f.commit("a", "one");
        for number in 0..count {
            f.write("a", format!("edit {number}"));
            f.git(&["stash", "push", "-q", "-m", &format!("stash: {number} \u{e9}")]);
        }
        f
    }

    fn listed(f: &Fixture) -> Vec<String> {
        f.lines(&["reflog", "show", "--date=raw", "--format=%H %gn <%ge> %gd %gs", "refs/stash", "--"])
    }

    #[test]
    fn the_list_is_what_git_stash_list_shows_newest_first() {
        let f = stashed(3);
        let found = Refs::new(&f.repo).stash().expect("read the list");
        let line = |entry: &StashEntry| {
            let StashEntry { id, name, email, date, message } = entry;
            format!("{id} {name} <{email}> stash@{{{date}}} {message}")
        };
        assert_eq!(
            found.iter().map(line).collect::<Vec<_>>(),
            listed(&f).iter().map(|l| l.replace("refs/", "")).collect::<Vec<_>>()
        );
        let none = stashed(0);
        assert_eq!(Refs::new(&none.repo).stash().expect("there is none"), []);
    }

    /// What a call that failed, or a kill, leaves of a list that was to go: git shows nothing, and the entry is known.
    #[test]
    fn an_entry_of_which_only_the_ref_is_left_is_in_the_reflog_again() {
        let f = stashed(1);
        let refs = Refs::new(&f.repo);
        let (all, shown) = (refs.stash().expect("read the list"), listed(&f));
        std::fs::remove_file(f.repo.log_file(STASH)).expect("remove the reflog");
        assert_eq!(refs.stash().expect("read the list"), all, "as its commit was made");
        refs.set_stash(&Change::new(Vec::new(), all)).expect("set the list");
        assert_eq!(listed(&f), shown);
    }

    #[test]
    fn a_list_becomes_any_other_one_line_by_line() {
        let f = stashed(3);
        let refs = Refs::new(&f.repo);
        let all = refs.stash().expect("read the list");
        let [c, b, a] = &all[..] else { panic!("three of them") };
        let of_bytes = StashEntry {
            name: "N\0e9".into(),
            message: "odd \0ff".into(),
            date: "1600000000 -0730".into(),
            ..a.clone()
        };
        let lists: [&[&StashEntry]; 8] =
            [&[c, b, a], &[b, a], &[], &[a, b], &[c, &of_bytes], &[&of_bytes], &[], &[c, b, a]];
        let original = listed(&f);
        let mut now = all.clone();
        for wanted in lists {
            let to: Vec<StashEntry> = wanted.iter().map(|entry| (*entry).clone()).collect();
            refs.set_stash(&Change::new(now, to.clone())).expect("set the list");
            let shown = f.git(&["stash", "list", "--format=%H"]);
            let ids: Vec<String> = to.iter().map(|entry| entry.id.to_string()).collect();
            assert_eq!(String::from_utf8_lossy(&shown).lines().collect::<Vec<_>>(), ids, "git shows these");
            if let Ok(found) = refs.stash() {
                assert_eq!(found, to, "with their names, dates and messages");
            }
            now = to;
        }
        assert_eq!(listed(&f), original, "back at the beginning, git sees no difference");
    }
}
