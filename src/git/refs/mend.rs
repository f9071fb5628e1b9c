//! What a power cut leaves of refs: files with nothing in them, or that name objects which are gone, and locks of which no
//! process lives. git stops at each of them.

use crate::git::refs::lists::COPY as TABLES;
use crate::git::refs::lockfile::{PACKED, RefLocks};
use crate::git::refs::transaction::content;
use crate::git::refs::{Refs, full_name};
use crate::git::repo::clock::{since_boot, unix_now};
use crate::git::repo::platform::nanoseconds;
use crate::git::repo::refs::NO_LOG;
use crate::git::repo::scratch::{KEPT, remove_if_there, replace_dated};
use crate::model::bytes::lossless;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::refs::Target;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How the locks of oxundo's begin, on refs and on the index.
const OWN: [&[u8]; 2] = [b"oxundo's, of ", b"oxundo's\n"];

/// How the names of copies of the index begin.
const COPY: &str = "index.oxundo-";

/// So many of the last lines of a reflog may have been written shortly before a power cut.
const YOUNG: usize = 200;

/// So much of the end of a reflog tells it from another: all of it may be long, and is read at each command.
pub const LOG_END: usize = 4096;

/// So much of HEAD's reflog is looked through for what came and went in a turn.
const MOST_MOVES: u64 = 64 << 10;

/// A move of a ref.
#[derive(Clone, Copy, Debug)]
pub struct Logged {
    /// Where it was.
    pub from: ObjectId,
    /// Where it is since.
    pub to: ObjectId,
    /// When, in seconds since 1970.
    pub at: u64,
}

impl Refs<'_> {
    /// The refs whose files hold none, or one of an object that is not there.
    pub fn damaged(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        if self.repo.has_tables() {
            let is_gone = |id: &Option<ObjectId>| id.is_some_and(|id| !self.repo.has_object(id));
            let gone = self.repo.refs_below("refs/")?.into_iter().filter(|(_, id)| is_gone(id));
            return Ok(gone.map(|(name, _)| lossless::encode(name.as_bstr())).collect());
        }
        for (name, path) in self.files("refs")? {
            let text = std::fs::read(&path).with_context(|| format!("read '{}'", path.display()))?;
            let text = text.trim();
            let is_whole =
                text.starts_with(b"ref: ") || ObjectId::from_hex(text).is_ok_and(|id| self.repo.has_object(id));
            found.extend((!is_whole && full_name(&name).is_ok()).then_some(name));
        }
        Ok(found)
    }

    /// Takes the file of a ref away; what it names, if anything, is kept in a file of that name. In tables it has none.
    pub fn take_away(&self, name: &str) -> Result<()> {
        if self.repo.has_tables() {
            return Ok(());
        }
        self.keep_file(name)?;
        remove_if_there(&self.ref_file(name))
    }

    /// Puts the file of a ref in the place of a damaged one, in one step: were that taken away first, a power cut could leave
    /// neither, and a branch that is gone may be gone for good reason.
    pub fn replace_damaged(&self, name: &str, to: ObjectId) -> Result<()> {
        self.keep_file(name)?;
        let mut locks = RefLocks::begin(*self, &[name])?;
        locks.take(name)?;
        locks.put(&self.ref_file(name), &content(&Target::Object(to)))
    }

    /// Keeps what the file of a ref holds, if anything, in a file of that name.
    fn keep_file(&self, name: &str) -> Result<()> {
        let file = self.ref_file(name);
        if file.metadata().is_ok_and(|about| about.size() > 0) {
            let kept = self.repo.scratch_path(KEPT).join(OsStr::from_bytes(&lossless::decode(name)));
            kept.parent().map_or(Ok(()), |above| self.repo.make_private(above))?;
            std::fs::copy(&file, &kept).with_context(|| format!("write '{}'", kept.display()))?;
        }
        Ok(())
    }

    /// All that is in a reflog; none where there is none.
    pub fn log_text(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.repo.log_text(name)
    }

    /// How long HEAD's reflog is; none where git keeps it in a table.
    pub fn head_log_length(&self) -> Option<u64> {
        let length = || std::fs::metadata(self.repo.log_file("HEAD")).map_or(0, |about| about.size());
        (!self.repo.has_tables()).then(length)
    }

    /// The commits at which HEAD was since its reflog was this long, the last one first; of what is very long, the last ones.
    pub fn head_was_at(&self, length: u64) -> Result<Vec<ObjectId>> {
        let path = self.repo.log_file("HEAD");
        let read = || -> std::io::Result<_> {
            let mut file = File::open(&path)?;
            let now = file.metadata()?.size();
            // Lines of it may have expired.
            let from = if now < length { 0 } else { length };
            let mut end = Vec::new();
            file.seek(SeekFrom::Start(from.max(now.saturating_sub(MOST_MOVES))))?;
            file.take(MOST_MOVES).read_to_end(&mut end)?;
            Ok(end)
        };
        let text = match read() {
            Err(error) if NO_LOG.contains(&error.kind()) => Vec::new(),
            read => read.with_context(|| format!("read '{}'", path.display()))?,
        };
        let ids = text.lines().rev().filter_map(|line| ObjectId::from_hex(line.split_str(" ").nth(1)?).ok());
        Ok(ids.filter(|id| !id.is_null()).collect())
    }

    /// How long a reflog is, and its last [`LOG_END`] bytes; none where there is none.
    pub fn log_end(&self, name: &str) -> Result<Option<(u64, Vec<u8>)>> {
        if self.repo.has_tables() {
            let text = self.log_text(name)?;
            let end = |text: &[u8]| text[text.len().saturating_sub(LOG_END)..].to_vec();
            return Ok(text.map(|text| (text.len() as u64, end(&text))));
        }
        let path = self.repo.log_file(name);
        let read = || -> std::io::Result<_> {
            let mut file = File::open(&path)?;
            let length = file.metadata()?.size();
            let mut end = Vec::new();
            file.seek(SeekFrom::Start(length.saturating_sub(LOG_END as u64)))?;
            file.take(LOG_END as u64).read_to_end(&mut end)?;
            Ok((length, end))
        };
        match read() {
            Err(error) if NO_LOG.contains(&error.kind()) => Ok(None),
            read => read.map(Some).with_context(|| format!("read '{}'", path.display())),
        }
    }

    /// Whether a reflog that is a file was written at this time or later, in nanoseconds since 1970.
    pub fn is_log_written_since(&self, name: &str, time: u64) -> bool {
        let about = std::fs::metadata(self.repo.log_file(name));
        !self.repo.has_tables() && about.is_ok_and(|about| nanoseconds(about.mtime(), about.mtime_nsec()) >= time)
    }

    /// Where a ref was, by its reflog, the last one first.
    pub fn logged(&self, name: &str) -> Vec<Logged> {
        let text = self.log_text(name).ok().flatten().unwrap_or_default();
        let mut moves: Vec<_> = text.lines().filter_map(moved).collect();
        moves.reverse();
        moves
    }

    /// Takes out of a reflog what is no line of one, and the last lines if they name what is gone: git stops at both.
    pub fn mend_log(&self, name: &str) -> Result<bool> {
        // In tables, a line that names what is gone is in nobody's way.
        let Some(text) = self.log_text(name)?.filter(|_| !self.repo.has_tables()) else { return Ok(false) };
        let path = self.repo.log_file(name);
        let lines: Vec<&[u8]> = text.lines_with_terminator().collect();
        let is_there = |id: &ObjectId| id.is_null() || self.repo.has_object(*id);
        let is_whole = |at: usize, line: &[u8]| {
            line.ends_with(b"\n")
                && moved(line).is_some_and(|it| at + YOUNG < lines.len() || [it.from, it.to].iter().all(is_there))
        };
        let whole: Vec<_> = lines.iter().enumerate().filter(|(at, line)| is_whole(*at, line)).collect();
        if whole.len() == lines.len() {
            return Ok(false);
        }
        let whole: Vec<u8> = whole.into_iter().flat_map(|(_, line)| line.iter().copied()).collect();
        // It tells of no time of which it did not tell before.
        let dated = || replace_dated(&path, &whole, path.metadata()?.modified()?);
        dated().with_context(|| format!("write '{}'", path.display()))?;
        Ok(true)
    }

    /// Removes the locks that were there before the system was started, if they are oxundo's or nothing says whose they are.
    pub fn clear_locks_of_before(&self) -> Result<bool> {
        let index = (String::new(), self.repo.git_dir.join("index.lock"));
        let mut any = false;
        let others = ["HEAD", PACKED].map(|name| (String::new(), self.ref_file(name).with_added_lock()));
        let tables: Vec<_> = self.table_lists().iter().map(|list| self.ref_file(list).with_added_lock()).collect();
        for lock in tables.into_iter().filter(|lock| is_of_before(lock, true)) {
            any = true;
            remove_if_there(&lock)?;
        }
        for (name, path) in
            [self.files("refs")?, self.files("logs/refs/oxundo")?].concat().into_iter().chain(others).chain([index])
        {
            // A git that oxundo had started may have left one on its own refs.
            let is_own = name.contains("refs/oxundo/");
            if path.extension() == Some(OsStr::new("lock")) && is_of_before(&path, is_own) {
                any = true;
                remove_if_there(&path)?;
            }
        }
        // Without its mark nobody would know what a killed command worked on.
        if self.repo.scratch_path(TABLES).exists() {
            any = true;
            let _ = std::fs::remove_dir_all(self.repo.scratch_path(TABLES));
        }
        for entry in std::fs::read_dir(&self.repo.git_dir)?.flatten() {
            if entry.file_name().as_bytes().starts_with(COPY.as_bytes()) {
                any = true;
                remove_if_there(&entry.path())?;
            }
        }
        Ok(any)
    }

    /// Every file below a directory of refs, with the name that it has as a ref.
    fn files(&self, below: &str) -> Result<Vec<(String, PathBuf)>> {
        let top = &self.repo.common_dir;
        let (mut found, mut left) = (Vec::new(), vec![top.join(below)]);
        while let Some(directory) = left.pop() {
            for entry in std::fs::read_dir(&directory).into_iter().flatten() {
                let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
                if kind.is_dir() {
                    left.push(path);
                } else if kind.is_file()
                    && let Ok(name) = path.strip_prefix(top)
                {
                    found.push((lossless::encode(name.as_os_str().as_bytes().as_bstr()), path));
                }
            }
        }
        Ok(found)
    }
}

trait AddedLock {
    fn with_added_lock(self) -> PathBuf;
}

impl AddedLock for PathBuf {
    fn with_added_lock(self) -> PathBuf {
        let mut name = self.into_os_string();
        name.push(".lock");
        name.into()
    }
}

/// What a line of a reflog tells of.
fn moved(line: &[u8]) -> Option<Logged> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let mut id = || ObjectId::from_hex(words.next()?).ok();
    let (from, to) = (id()?, id()?);
    let who = words.next()?.split(|byte| *byte == b'\t').next()?;
    let at = who.rsplit(|byte| *byte == b' ').nth(1)?.to_str().ok()?.parse().ok()?;
    Some(Logged { from, to, at })
}

/// Whether a lock is of a process that did not live to see the system start: oxundo, or if need be any.
fn is_of_before(lock: &Path, whoevers: bool) -> bool {
    let Ok(about) = lock.symlink_metadata() else { return false };
    let is_nobodys = about.is_file()
        && (whoevers
            || about.size() == 0
            || std::fs::read(lock).is_ok_and(|text| OWN.iter().any(|own| begins_like(&text, own))));
    is_nobodys && about.mtime() < unix_now() - since_boot()
}

/// Whether a text begins like this, as far as it was written.
fn begins_like(text: &[u8], own: &[u8]) -> bool {
    text.iter().zip(own).all(|(is, own)| is == own || *is == 0)
}
