//! Writing what is relied on into the log, and waiting for it.

use crate::git::durable::flush::sync_whole;
use crate::git::durable::gather::{borrowed_since, logged, loose_beside, objects_directory};
use crate::git::durable::log::{Entry, Log};
use crate::git::durable::seen::Seen;
use crate::git::durable::{Durable, RefState, When};
use crate::git::repo::clock::boot_time;
use crate::git::repo::platform::file_clock;
use crate::git::repo::written::WrittenFile;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

/// A log longer than this begins anew.
const LONG: u64 = 16 << 20;

impl Durable<'_> {
    /// Makes the log where there is none: by it the next command knows that there was a power cut, also where nothing is in it. To
    /// be called before anything is written.
    pub fn begin(&self) -> Result<()> {
        if !self.is_on() || self.repo.power.logs.replace(true) || self.own_log().exists() {
            return Ok(());
        }
        let logs = self.logs();
        self.repo.make_private(&logs)?;
        let mut log = Log::open(self.own_log())?;
        log.append(&[], boot_time())?;
        self.sync_directories()
    }

    /// Makes all objects that there are durable, whoever wrote them, and these states of refs. To be called with the
    /// worktree's lock held.
    pub fn keep(&self, refs: &[RefState]) -> Result<()> {
        if !self.is_on() {
            return Ok(());
        }
        let mut log = Log::open(self.own_log())?;
        let (begun, mark) = (file_clock(), log.mark());
        // Those of others; then its own, which are at hand.
        let mut seen = Seen::read(self.repo, mark);
        // A clock that was set back since says nothing of what came.
        let since = mark.filter(|mark| *mark <= begun).unwrap_or_else(boot_time);
        let mut others = loose_beside(self.repo, since, Some(&mut seen))?;
        others.extend(borrowed_since(self.repo, since)?);
        self.repo.flush()?;
        let own = self.repo.power.written.borrow_mut().give();
        let mut unmet: BTreeMap<&str, u64> =
            own.iter().flatten().map(|file| (file.name.as_str(), file.inode)).collect();
        others.retain(|file| unmet.remove(file.name.as_str()).is_none());
        for (name, inode) in unmet {
            seen.add(name, inode);
        }
        let objects = own.map(own_entries).zip(logged(&others)?).map(|(own, others)| [own, others].concat());
        // Too much for the log, or the log itself is too much: all is flushed that is on the file system.
        if (objects.is_none() || log.length() > LONG) && sync_whole(&[&objects_directory(self.repo), log.path()])? {
            log.empty()?;
            // What comes again later is not in the log.
            seen = Seen::nothing();
        }
        let states = self.states(refs)?;
        log.append(&objects.unwrap_or_default().into_iter().chain(states).collect::<Vec<_>>(), begun)?;
        log.sync()?;
        seen.write(self.repo, begun);
        Ok(())
    }

    /// Adds what these refs are now, and the objects that were written for them, which something durable leads to already.
    pub fn note(&self, refs: &[RefState], when: When) -> Result<()> {
        if !self.is_on() {
            return Ok(());
        }
        self.repo.flush()?;
        let own = self.repo.power.written.borrow_mut().give().unwrap_or_default();
        let mut log = Log::open(self.own_log())?;
        let mut seen = Seen::read(self.repo, log.mark());
        let unmet: BTreeMap<&str, u64> = own.iter().map(|file| (file.name.as_str(), file.inode)).collect();
        let is_more = !unmet.is_empty();
        for (name, inode) in unmet {
            seen.add(name, inode);
        }
        let states = self.states(refs)?;
        // Those of others are still to be taken in, and what was too much.
        let mark = log.mark().unwrap_or_else(boot_time);
        log.append(&own_entries(own).into_iter().chain(states).collect::<Vec<_>>(), mark)?;
        if is_more {
            seen.write(self.repo, mark);
        }
        if when == When::Now { log.sync() } else { Ok(()) }
    }

    /// Once for each log: its name, and those of the directories above it.
    fn sync_directories(&self) -> Result<()> {
        let scratch = self.repo.common_dir.join("oxundo");
        let all = [&self.logs(), &scratch, self.repo.scratch()?, &self.repo.common_dir, &self.repo.git_dir];
        // In the main worktree several of these are one.
        for directory in BTreeSet::from(all) {
            File::open(directory)
                .and_then(|directory| directory.sync_all())
                .with_context(|| format!("flush '{}'", directory.display()))?;
        }
        Ok(())
    }
}

fn own_entries(files: Vec<WrittenFile>) -> Vec<Entry> {
    files.into_iter().map(|file| Entry::Object(file.name, file.content)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::Repo;
    use crate::git::repo::testing::Fixture;

    fn logged_names(f: &Fixture) -> Vec<String> {
        let mut log = Log::open(Durable::new(&f.repo).own_log()).expect("open the log");
        let entries = log.read().expect("read the log").entries;
        entries
            .into_iter()
            .filter_map(|entry| if let Entry::Object(name, _) = entry { Some(name) } else { None })
            .collect()
    }

    fn all_names(f: &Fixture) -> BTreeSet<String> {
        loose_beside(&f.repo, 0, None).expect("look").into_iter().map(|file| file.name).collect()
    }

    #[test]
    fn whoever_wrote_an_object_it_is_in_the_log_and_what_was_seen_before_is_not_again() {
        let f = Fixture::new();
        let durable = Durable::new(&f.repo);
        durable.begin().expect("make a log");
        for round in 0..12 {
            for number in 0..40 {
                f.repo.put_blob(format!("own {round} {number}").as_bytes()).expect("make a blob");
            }
            // Each in one of the directories in which those before are; and the same object, by both.
            for number in 0..20 {
                f.blob(format!("of others {round} {number}"));
                f.blob(format!("own {round} {}", 2 * number));
            }
            if round % 3 == 1 {
                f.repo.flush().expect("write them");
            }
            if round % 4 == 3 {
                durable.note(&[], When::Soon).expect("add to the log");
                f.git(&["gc", "-q", "--prune=now"]);
                f.blob("after git has packed all that it has a name for");
            }
            let there = all_names(&f);
            durable.keep(&[]).expect("add to the log");
            let logged: BTreeSet<String> = logged_names(&f).into_iter().collect();
            let missing: Vec<_> = there.difference(&logged).collect();
            assert!(missing.is_empty(), "round {round}: {missing:?}");
        }
    }

    #[test]
    fn what_is_borrowed_from_another_repository_is_in_the_log_too() {
        let (base, f) = (Fixture::new(), Fixture::new());
        let alternates = f.repo.git_dir().join("objects/info/alternates");
        std::fs::write(&alternates, base.repo.git_dir().join("objects").as_os_str().as_encoded_bytes())
            .expect("write a file");
        let repo = Repo::open(f.repo.top()).expect("open it");
        let durable = Durable::new(&repo);
        durable.begin().expect("make a log");
        let id = base.blob("of the other repository");
        assert_eq!(repo.put_blob(b"of the other repository").expect("make a blob"), id);
        durable.keep(&[]).expect("add to the log");
        assert!(logged_names(&f).contains(&id.to_string()));
    }

    #[test]
    fn directories_in_which_nothing_is_new_are_not_asked_for_their_files() {
        let f = Fixture::new();
        let durable = Durable::new(&f.repo);
        durable.begin().expect("make a log");
        let look = || {
            let mut seen = Seen::read(&f.repo, Log::open(durable.own_log()).expect("open the log").mark());
            loose_beside(&f.repo, 0, Some(&mut seen)).expect("look").len()
        };
        for number in 0..300 {
            f.repo.put_blob(format!("own {number}").as_bytes()).expect("make a blob");
        }
        durable.keep(&[]).expect("add to the log");
        f.repo.put_blob(b"one more, for a note").expect("make a blob");
        durable.note(&[], When::Soon).expect("add to the log");
        assert_eq!(look(), 0);
        let before = all_names(&f);
        f.blob("of others");
        let (new, all) = (all_names(&f).difference(&before).next().cloned().expect("one"), look());
        let beside = before.iter().filter(|name| name[..2] == new[..2]).count();
        assert_eq!(all, beside + 1, "only the directory that it is in is looked at");
    }
}
