//! The first command after the system was started finishes what a power cut may have kept from the disk.

use crate::git::durable::Durable;
use crate::git::durable::flush::sync_whole;
use crate::git::durable::gather::{loose_since, objects_directory};
use crate::git::durable::log::{Content, Entry, Log};
use crate::git::refs::Refs;
use crate::git::repo::clock::boot_time;
use crate::git::repo::platform::file_clock;
use crate::git::repo::scratch::remove_if_there;
use anyhow::{Context, Result};
use gix::ObjectId;
use std::io::ErrorKind;
use std::path::Path;

/// How the main worktree is called.
const MAIN: &str = "main";

/// What was mended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// How many objects were written again.
    pub objects: usize,
    /// How many files of objects were removed that held none.
    pub removed: usize,
    /// The refs that were set again.
    pub refs: Vec<String>,
    /// Whether the index was made anew.
    pub index: bool,
    /// Whether anything else was.
    pub others: bool,
}

impl Mended {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// In words; none if it was nothing of which anybody has to know.
    pub fn words(&self) -> Option<String> {
        let others = [
            (self.removed > 0).then(|| format!("{} damaged objects removed", self.removed)),
            (!self.refs.is_empty()).then(|| format!("set again: {}", self.refs.join(", "))),
            self.index.then(|| "the index made anew".to_owned()),
        ];
        let others: Vec<String> = others.into_iter().flatten().collect();
        if others.is_empty() {
            // Objects alone may also be some that git has pruned since, as it will again.
            return None;
        }
        let objects = (self.objects > 0).then(|| format!("{} objects written again", self.objects));
        let parts: Vec<String> = objects.into_iter().chain(others).collect();
        Some(format!("mended what a power cut has left: {}", parts.join("; ")))
    }
}

impl Durable<'_> {
    /// Mends what a power cut has left, once in each boot.
    pub fn mend(&self) -> Result<Mended> {
        let mut mended = Mended::default();
        if self.repo.power.looked.get() {
            return Ok(mended);
        }
        if Log::find(self.own_log())?.is_some_and(|log| log.is_of_this_boot()) {
            self.repo.power.logs.set(true);
            self.repo.power.looked.set(true);
            return Ok(mended);
        }
        for mut log in self.all_logs()? {
            // Whoever was first has done it.
            log.lock()?;
            if !log.is_of_this_boot() {
                self.mend_by(&mut log, &mut mended)?;
            }
        }
        self.repo.power.looked.set(true);
        Ok(mended)
    }

    /// Mends what no log tells of: all objects, refs and the index are looked at.
    pub fn mend_all(&self) -> Result<Mended> {
        let mut mended = Mended::default();
        self.mend_with(&Content::default(), &mut mended)?;
        mended.index = self.mend_index(&[])?;
        self.sync_mended(&mended)?;
        Ok(mended)
    }

    /// What [`Self::mend_all`] is for: git stops at each of these.
    pub fn damage(&self) -> Result<Vec<String>> {
        let empty = loose_since(self.repo, 0)?.into_iter().filter(|file| file.size == 0);
        let empty = empty.map(|file| format!("'{}' is empty", file.path.display()));
        let refs = Refs::new(self.repo);
        // git reads none of the refs that are in damaged tables.
        let damaged = if refs.torn_lists().is_empty() { refs.damaged()? } else { Vec::new() };
        let damaged =
            damaged.iter().map(|name| format!("'{}' names no object that is there", refs.ref_file(name).display()));
        let torn = refs.torn_lists();
        let torn = torn.iter().map(|list| format!("'{}' names tables of refs that are damaged", list.display()));
        let index = self.is_index_damaged().then(|| "the index cannot be read".to_owned());
        Ok(empty.chain(torn).chain(damaged).chain(index).collect())
    }

    /// Forgets all that the logs know, for good.
    pub fn forget(&self) -> Result<()> {
        for mut log in self.all_logs()? {
            log.empty()?;
            log.append(&[], file_clock())?;
            log.sync()?;
        }
        Ok(())
    }

    fn all_logs(&self) -> Result<Vec<Log>> {
        let directory = self.logs();
        let listed = match std::fs::read_dir(&directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed.with_context(|| format!("read '{}'", directory.display()))?,
        };
        let mut logs = Vec::new();
        for entry in listed {
            logs.extend(Log::find(entry?.path())?);
        }
        Ok(logs)
    }

    fn mend_by(&self, log: &mut Log, mended: &mut Mended) -> Result<()> {
        let content = log.read()?;
        let is_own = log.path() == self.own_log();
        let is_there = self.lived_on(log.time()?)?;
        if !is_there {
            self.mend_with(&content, mended)?;
            self.mend_marks(&content.entries)?;
            // The index of another worktree is mended there.
            mended.index |= is_own && self.mend_index(&content.entries)?;
            mended.objects += if is_own { self.mend_staged()? } else { 0 };
            self.sync_mended(mended)?;
        }
        let mut journal = content.entries.into_iter().rev().find_map(|entry| match entry {
            Entry::Ref(name, id) if name.ends_with("/pending") => Some((name, id)),
            _ => None,
        });
        if let Some((name, id)) = journal.as_mut().filter(|_| is_there) {
            *id = id.filter(|id| Refs::new(self.repo).ref_id(name).is_ok_and(|now| now == Some(*id)));
        }
        if !is_own && self.has_worktree(log.path()) {
            return Ok(());
        }
        let entries = match journal {
            // It is carried out like any other, but for what it finds torn; if need be after another power cut.
            Some((name, Some(id))) => vec![Entry::Cut(id), Entry::Ref(name, Some(id))],
            _ => Vec::new(),
        };
        log.empty()?;
        // What others have written since the start is not known to be on the disk.
        log.append(&entries, boot_time())?;
        log.sync()
    }

    fn mend_with(&self, content: &Content, mended: &mut Mended) -> Result<()> {
        let Content { entries, mark, .. } = content;
        self.check_reach()?;
        mended.others |= Refs::new(self.repo).mend_tables()?;
        mended.objects += self.mend_objects(entries)?;
        mended.removed += self.remove_damaged(*mark)?;
        mended.others |= Refs::new(self.repo).clear_locks_of_before()?;
        mended.others |= self.mend_reflogs(entries)?;
        mended.refs.extend(self.mend_damaged_refs(entries)?);
        mended.refs.extend(self.mend_refs(content)?);
        Ok(())
    }

    fn sync_mended(&self, mended: &Mended) -> Result<()> {
        if !mended.is_nothing() && self.is_on() {
            sync_whole(&[&objects_directory(self.repo), &self.repo.common_dir, &self.repo.git_dir])?;
        }
        Ok(())
    }

    /// Whether the worktree of a log is still there, or may be.
    fn has_worktree(&self, log: &Path) -> bool {
        let name = log.file_name().unwrap_or_default().to_string_lossy();
        let id = name.rsplit_once('-').map_or(&*name, |(id, _)| id);
        id == MAIN || self.repo.common_dir.join("worktrees").join(id).exists()
    }

    /// A timeline that was taken back is not missed.
    fn mend_marks(&self, entries: &[Entry]) -> Result<()> {
        let gone = entries.iter().rev().find_map(|entry| match entry {
            Entry::Ref(name, id) if name.ends_with("/timeline") => Some((name, id.is_none())),
            _ => None,
        });
        let Some((name, true)) = gone else { return Ok(()) };
        let of = name.strip_prefix("refs/oxundo/").and_then(|name| name.strip_suffix("timeline")).unwrap_or_default();
        remove_if_there(&self.repo.common_dir.join(of).join("oxundo/timeline"))
    }

    /// Whether it was a power cut by which the command with this journal was interrupted.
    pub fn is_cut(&self, journal: ObjectId) -> Result<bool> {
        let Some(mut log) = Log::find(self.own_log())? else { return Ok(false) };
        Ok(log.read()?.entries.contains(&Entry::Cut(journal)))
    }
}
