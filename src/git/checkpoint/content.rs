//! The content of what a scan found: blobs for what git does not have yet, the raw bytes of files that git converts among them.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::objects::tree::{TreeChange, entry_kind};
use crate::git::repo::Repo;
use crate::git::repo::large::{IN_MEMORY, file_id};
use crate::git::scan::dircache::BlobCache;
use crate::git::scan::found::{Candidate, Difference, Scan, state_of};
use crate::git::worktree::privacy::Privacy;
use crate::git::worktree::stat::{file_state, kind_of, mode_of, size_of};
use crate::git::worktree::{Lookup, Worktree, is_denied};
use crate::model::checkpoint::{Checkpoint, FileState, Kind, Reason, Skipped, UsualModes};
use crate::progress::Phase;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::index::entry::{Flags, Mode};
use std::collections::BTreeMap;
use std::io::Read;

/// How often a file that changes while it is read is read again.
const READS: u32 = 3;

/// What became of a file that was to be written as a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// It is not there.
    Gone,
    /// It cannot be read.
    Unreadable,
    /// It is this blob.
    Blob(ObjectId),
}

impl Written {
    fn id(self) -> Option<ObjectId> {
        match self {
            Self::Blob(id) => Some(id),
            _ => None,
        }
    }
}

/// What becomes of a file that not even its owner may read, who is the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unreadable {
    /// It is left alone.
    Stays,
    /// It is read all the same: it has another mode for an instant.
    IsOpened,
}

/// Reads what a scan found.
pub struct Content<'a> {
    repo: &'a Repo,
    index: &'a gix::index::File,
    pub changes: Vec<TreeChange>,
    pub changed: Vec<BString>,
    pub unusual: BTreeMap<BString, u32>,
    pub skipped: Vec<Skipped>,
    /// The files that changed each time they were read.
    pub torn: Vec<BString>,
}

impl<'a> Content<'a> {
    /// For a worktree with this index.
    pub fn new(repo: &'a Repo, index: &'a gix::index::File) -> Self {
        Self {
            repo,
            index,
            changes: Vec::new(),
            changed: Vec::new(),
            unusual: BTreeMap::new(),
            skipped: Vec::new(),
            torn: Vec::new(),
        }
    }

    /// Reads all. `may_open` says of an untracked file whether it is read though not even its owner may.
    pub fn read_all(
        &mut self,
        scan: &Scan,
        may_open: &dyn Fn(&BStr) -> bool,
        earlier: Option<&Checkpoint>,
    ) -> Result<()> {
        for entry in self.index.entries() {
            if entry.mode == Mode::COMMIT || entry.mode == Mode::DIR {
                let path = entry.path(self.index);
                let path = path.strip_suffix(b"/").unwrap_or(path);
                self.changes.push((path.into(), None));
            }
        }
        self.changes.extend(scan.missing_sparse.iter().map(|(directory, _)| (directory.clone(), None)));
        let underway = self.repo.watch.begin(Phase::Read, scan.tracked.len() + scan.untracked.len());
        for (at, difference) in &scan.tracked {
            self.tracked(*at, difference, earlier)?;
            underway.advance(1);
        }
        let mut known = BlobCache::load(self.repo, scan.untracked.len());
        for file in &scan.untracked {
            if file.private {
                let same =
                    self.private(file, earlier)?.map(|id| (file.path.clone(), Some((entry_kind(file.kind), id))));
                self.changes.extend(same);
                continue;
            }
            let found = known.find(self.repo, file);
            let unreadable = if may_open(file.path.as_bstr()) { Unreadable::IsOpened } else { Unreadable::Stays };
            let read = if found.is_none() { self.blob(file, unreadable)? } else { None };
            if let Some(id) = read {
                known.insert(file, id);
            }
            let entry = found.or(read).map(|id| (entry_kind(file.kind), id));
            self.changes.extend(entry.map(|entry| (file.path.clone(), Some(entry))));
            underway.advance(1);
        }
        known.save(self.repo)
    }

    /// A private file that was captured earlier in this turn: it still is where git has just this content of it. What is new
    /// in it is left out.
    fn private(&mut self, file: &Candidate, earlier: Option<&Checkpoint>) -> Result<Option<ObjectId>> {
        let path = file.path.as_bstr();
        let known = match earlier {
            Some(earlier) => Objects::new(self.repo).tree_file(earlier.worktree, path)?,
            None => None,
        };
        let now = match Worktree::new(self.repo).state(path, self.repo.hash_kind()) {
            Err(error) if is_denied(&error) => None,
            now => now?,
        };
        if let (Some(now), Some((kind, id))) = (now, known)
            && now.id == id
            && (now.kind == Kind::Symlink) == (kind == Kind::Symlink)
        {
            return Ok(Some(id));
        }
        let state = Worktree::new(self.repo).stat(path)?.and_then(|(stat, _)| state_of(Reason::Private, &stat));
        self.skipped.push(Skipped { path: path.to_owned(), reason: Reason::Private, size: file.size, state });
        Ok(None)
    }

    fn is_private(&self, path: &BStr) -> Result<bool> {
        let stat = Worktree::new(self.repo).stat(path)?;
        Ok(stat.is_some_and(|(stat, _)| Privacy::new(self.repo).hides(path, &stat)))
    }

    fn tracked(&mut self, at: usize, difference: &Difference, earlier: Option<&Checkpoint>) -> Result<()> {
        let entry = &self.index.entries()[at];
        let path = entry.path(self.index).to_owned();
        // Of 'git add -N' git has the name alone: what is private in it still is.
        if let Difference::MaybeModified(file) = difference
            && entry.flags.contains(Flags::INTENT_TO_ADD)
            && self.is_private(path.as_bstr())?
        {
            let same = self.private(file, earlier)?.map(|id| (path, Some((entry_kind(file.kind), id))));
            self.changes.extend(same);
            return Ok(());
        }
        // git takes no changes of these paths into a commit.
        let hidden = entry.flags.intersects(Flags::ASSUME_VALID | Flags::SKIP_WORKTREE);
        let now = match difference {
            Difference::Gone => None,
            // For git it is as its entry says: there is nothing to commit.
            Difference::Holds(file, id) => return self.other_bytes(file, *id),
            Difference::MaybeModified(file) => match self.blob(file, Unreadable::IsOpened)? {
                Some(id) => Some((entry_kind(file.kind), id)),
                // Unreadable: take what the index says.
                None if self.skipped.last().is_some_and(|skipped| skipped.path == path) => return Ok(()),
                None => None,
            },
        };
        let staged = entry.mode.to_tree_entry_mode().map(|mode| (mode.kind(), entry.id));
        let in_tree = entry.stage_raw() == 0 && !entry.flags.contains(Flags::INTENT_TO_ADD);
        if now == staged && in_tree {
            return Ok(());
        }
        if !hidden {
            self.changed.push(path.clone());
        }
        if now.is_some() || in_tree {
            self.changes.push((path, now));
        }
        Ok(())
    }

    /// A file whose bytes are not its entry's blob. Where git has them, it has been read already.
    fn other_bytes(&mut self, file: &Candidate, id: ObjectId) -> Result<()> {
        let known = Objects::new(self.repo).has_object(id).then_some(id);
        let read = known.map_or_else(|| self.blob(file, Unreadable::IsOpened), |id| Ok(Some(id)))?;
        self.changes.extend(read.map(|id| (file.path.clone(), Some((entry_kind(file.kind), id)))));
        Ok(())
    }

    /// The raw content of a file as a blob; `None` when it is gone, or unreadable and said so.
    fn blob(&mut self, file: &Candidate, unreadable: Unreadable) -> Result<Option<ObjectId>> {
        let path = file.path.as_bstr();
        let time = |stat: Option<(rustix::fs::Stat, _)>| {
            stat.map(|(stat, _): (_, std::os::fd::OwnedFd)| (stat.st_mtime, stat.st_mtime_nsec, stat.st_size))
        };
        let (mut written, mut torn) = (Written::Gone, true);
        for _ in 0..READS {
            let before = Worktree::new(self.repo).stat(path)?;
            written = Checkpoints::new(self.repo).write_file(path, file.kind, unreadable)?;
            torn = time(before) != time(Worktree::new(self.repo).stat(path)?);
            if !torn {
                break;
            }
        }
        if torn {
            self.torn.push(path.to_owned());
        }
        if written == Written::Unreadable {
            let state = Worktree::new(self.repo).stat(path)?.and_then(|(stat, _)| file_state(&stat));
            self.skipped.push(Skipped { path: path.to_owned(), reason: Reason::Unreadable, size: 0, state });
        }
        Ok(written.id())
    }

    /// What was captured before the turn and is still there, though the index and the ignore rules no longer
    /// show it.
    pub fn missed(&mut self, earlier: &Checkpoint, worktree: ObjectId, usual: UsualModes) -> Result<Vec<TreeChange>> {
        let (mut missed, privacy) = (Vec::new(), Privacy::new(self.repo));
        for path in Objects::new(self.repo).removed_paths(earlier.worktree, worktree)? {
            if self.skipped.iter().any(|skipped| skipped.path == path) {
                continue;
            }
            let found = match Worktree::new(self.repo).find(path.as_bstr()) {
                // What can no longer be read counts as unchanged.
                Err(error) if is_denied(&error) => {
                    missed.push((path.clone(), Objects::new(self.repo).tree_entry(earlier.worktree, path.as_bstr())?));
                    continue;
                }
                found => found?,
            };
            let Lookup::There(stat) = found else { continue };
            let Some(kind) = kind_of(&stat) else { continue };
            let mode = mode_of(&stat);
            let private = privacy.hides(path.as_bstr(), &stat);
            let file = Candidate { path: path.clone(), kind, size: size_of(&stat), stamp: None, private };
            let read =
                if private { self.private(&file, Some(earlier))? } else { self.blob(&file, Unreadable::IsOpened)? };
            if let Some(id) = read {
                if kind != Kind::Symlink && mode != usual.of(kind) {
                    self.unusual.insert(path.clone(), mode);
                }
                missed.push((path, Some((entry_kind(kind), id))));
            }
        }
        Ok(missed)
    }
}

impl Checkpoints<'_> {
    /// The file at a path, with its raw content as a blob. None where no file is, or one that cannot be read.
    pub fn file_now(&self, path: &BStr) -> Result<Option<FileState>> {
        let Some((stat, _)) = Worktree::new(self.repo).stat(path)? else { return Ok(None) };
        let Some(kind) = kind_of(&stat) else { return Ok(None) };
        let id = self.write_file(path, kind, Unreadable::Stays)?.id();
        let mode = if kind == Kind::Symlink { 0 } else { mode_of(&stat) };
        Ok(id.map(|id| FileState { kind, id, mode }))
    }

    /// Writes a file's raw content, or a link's target, as a blob unless it is one already.
    fn write_file(&self, path: &BStr, kind: Kind, unreadable: Unreadable) -> Result<Written> {
        if kind == Kind::Symlink {
            return Ok(match Worktree::new(self.repo).read(path, kind)? {
                Some(target) => Written::Blob(self.repo.put_blob(&target)?),
                None => Written::Gone,
            });
        }
        let opened = match unreadable {
            Unreadable::IsOpened => Worktree::new(self.repo).open_closed_file(path),
            Unreadable::Stays => Worktree::new(self.repo).open_file(path),
        };
        let mut file = match opened {
            Err(error) if is_denied(&error) => return Ok(Written::Unreadable),
            Ok(None) => return Ok(Written::Gone),
            file => file?.context("a file is open")?,
        };
        if file.metadata().is_ok_and(|about| about.len() <= IN_MEMORY) {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).with_context(|| format!("read '{path}'"))?;
            return Ok(Written::Blob(self.repo.put_blob(&bytes)?));
        }
        let id = file_id(&file, self.repo.hash_kind()).with_context(|| format!("read '{path}'"))?;
        let Some(id) = id else { return Ok(Written::Unreadable) };
        if self.repo.gix.has_object(id) {
            return Ok(Written::Blob(id));
        }
        Ok(self.repo.put_large(file, id)?.map_or(Written::Unreadable, Written::Blob))
    }
}
