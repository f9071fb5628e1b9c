//! Objects after a power cut.

use crate::git::durable::Durable;
use crate::git::durable::gather::{LooseFile, loose_since};
use crate::git::durable::log::Entry;
use crate::git::repo::scratch::{KEPT, remove_if_there};
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::objs::{Kind, ObjectRef, TreeRefIter};
use gix::odb::loose::Store;
use gix::zlib::{Decompress, FlushDecompress, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;

impl Durable<'_> {
    /// Writes the objects of a log again that are missing or damaged; gives how many. One of which a part is gone for good
    /// was thrown away together with it.
    pub(super) fn mend_objects(&self, entries: &[Entry]) -> Result<usize> {
        let store = self.store();
        let (mut gone, mut damaged) = (BTreeMap::new(), BTreeSet::new());
        for entry in entries {
            let Entry::Object(name, content) = entry else { continue };
            let Ok(id) = ObjectId::from_hex(name.as_bytes()) else { continue };
            let now = std::fs::read(store.object_path(&id));
            let is_there = match &now {
                Ok(now) => now == content || is_readable(id, now),
                Err(error) if error.kind() == ErrorKind::NotFound => self.is_elsewhere(id),
                // It is there, for others to read.
                Err(_) => true,
            };
            if !is_there {
                damaged.extend(now.is_ok().then_some(id));
                gone.insert(id, content);
            }
        }
        let mut written = 0;
        for (id, content) in &gone {
            self.repo.write_again(&id.to_string(), content)?;
            written += 1;
        }
        loop {
            let apart = |id: &ObjectId| !damaged.contains(id) && self.has_lost_parts(*id);
            let Some(id) = gone.keys().find(|id| apart(id)).copied() else { break };
            let path = store.object_path(&id);
            std::fs::remove_file(&path).with_context(|| format!("remove '{}'", path.display()))?;
            gone.remove(&id);
            written -= 1;
        }
        Ok(written)
    }

    /// Takes the files of objects away that are empty, or were written last and are damaged; gives how many.
    pub(super) fn remove_damaged(&self, mark: u64) -> Result<usize> {
        let mut removed = 0;
        for file in loose_since(self.repo, 0)?.into_iter().filter(|file| file.size == 0) {
            remove_if_there(&file.path)?;
            removed += 1;
        }
        let mut left = loose_since(self.repo, mark)?;
        // What names one that is gone is no use either, and git stops at it.
        loop {
            let before = removed;
            let mut whole = Vec::new();
            for file in left {
                let Ok(id) = ObjectId::from_hex(file.name.as_bytes()) else { continue };
                match std::fs::read(&file.path) {
                    Ok(content) if !is_readable(id, &content) || self.has_lost_parts(id) => {
                        self.put_away(&file)?;
                        removed += 1;
                    }
                    Ok(_) => whole.push(file),
                    // It is gone again, or for others to read.
                    Err(_) => {}
                }
            }
            if removed == before {
                return Ok(removed);
            }
            left = whole;
        }
    }

    /// Whether an object is in a pack or in another repository. gix knows the empty tree and blob without any file.
    fn is_elsewhere(&self, id: ObjectId) -> bool {
        let is_known = [ObjectId::empty_tree(id.kind()), ObjectId::empty_blob(id.kind())].contains(&id);
        !is_known && self.repo.gix.has_object(id)
    }

    /// Moves the file of an object to where git does not find it.
    fn put_away(&self, file: &LooseFile) -> Result<()> {
        let kept = self.repo.scratch_path(KEPT).join("objects").join(&file.name);
        kept.parent().map_or(Ok(()), |above| self.repo.make_private(above))?;
        match std::fs::rename(&file.path, &kept) {
            // git has removed it meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            moved => moved.with_context(|| format!("write '{}'", kept.display())),
        }
    }

    fn store(&self) -> Store {
        Store::at(self.repo.gix.objects.store_ref().path().to_owned(), self.repo.hash_kind())
    }

    /// Whether an object names another one that is nowhere, and should be here.
    fn has_lost_parts(&self, id: ObjectId) -> bool {
        if self.repo.gix.is_shallow().unwrap_or(true) || self.repo.setting("extensions.partialClone").is_some() {
            return false;
        }
        let Ok(object) = self.repo.find_object(id) else { return false };
        let parts: Vec<ObjectId> = match (object.kind, ObjectRef::from_bytes(&object.data, object.kind, id.kind())) {
            (Kind::Tree, _) => TreeRefIter::from_bytes(&object.data, id.kind())
                .flatten()
                .filter(|entry| !entry.mode.is_commit())
                .map(|entry| entry.oid.to_owned())
                .collect(),
            (_, Ok(ObjectRef::Commit(commit))) => commit.parents().chain([commit.tree()]).collect(),
            (_, Ok(ObjectRef::Tag(tag))) => vec![tag.target()],
            _ => Vec::new(),
        };
        parts.iter().any(|part| !self.repo.gix.has_object(part))
    }
}

/// Whether the file of an object with this content is whole. git wants the end of the compressed stream too.
fn is_readable(id: ObjectId, content: &[u8]) -> bool {
    let (mut zlib, mut whole) = (Decompress::new(), vec![0; 4096]);
    loop {
        let (Ok(read), Ok(written)) = (usize::try_from(zlib.total_in()), usize::try_from(zlib.total_out())) else {
            return false;
        };
        match zlib.decompress(&content[read..], &mut whole[written..], FlushDecompress::None) {
            Ok(Status::StreamEnd) => break,
            Ok(_) if u64::try_from(written).is_ok_and(|written| zlib.total_out() > written) => {
                whole.resize(whole.len() * 2, 0);
            }
            _ => return false,
        }
    }
    whole.truncate(usize::try_from(zlib.total_out()).unwrap_or_default());
    let hash = || {
        let mut hasher = gix::hash::hasher(id.kind());
        hasher.update(&whole);
        hasher.try_finalize().ok()
    };
    zlib.total_in() == content.len() as u64 && hash() == Some(id)
}
