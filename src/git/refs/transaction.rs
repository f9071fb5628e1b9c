//! Moving several refs, all or none, while other programs move and pack refs.
//!
//! gix's transaction alone is not safe then. It reads the packed refs before it locks them, and so misses what `git
//! pack-refs` writes in between: a ref that was just packed seems to be gone, and a packed-refs file that it rewrites
//! lacks the refs that were packed meanwhile. Where there are no packed refs it deletes a ref without git's lock on them,
//! so that a `git pack-refs` under way brings the ref back; and if it meets that lock, it fails at removing a file that is
//! not there, after it has deleted the ref's reflog. Therefore:
//!
//! - gix only updates refs. Each value is read once more when its lock is held: from then on nobody moves or prunes it.
//! - What gix refuses because of what it read too early is tried again.
//! - Refs are deleted here, as git does it: with git's lock on the packed refs, whether or not the ref is one of them.

use crate::git::refs::moved_meanwhile;
use crate::git::repo::refs::value;
use crate::git::repo::scratch::remove_if_there;
use crate::model::bytes::lossless;
use anyhow::{Context, Result};
use gix::bstr::{BString, ByteSlice};
use gix::lock::Marker;
use gix::lock::acquire::{Fail, resolve_symlink};
use gix::refs::file::{Store, Transaction};
use gix::refs::transaction::RefEdit;
use gix::refs::{Target, TargetRef};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often gix may have read the packed refs too early.
const TRIES: u32 = 10;

/// Makes the edits, all or none, if `still` says so once all locks are held. A failure of the disk half way leaves some
/// of them made.
pub(super) fn edit(
    gix: &gix::Repository,
    edits: impl IntoIterator<Item = RefEdit>,
    who: gix::actor::SignatureRef<'_>,
    still: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let (gone, moved): (Vec<_>, Vec<_>) = edits.into_iter().partition(|edit| edit.change.new_value().is_none());
    let gone = Deletion::prepare(gix, &gone)?;
    let prepared = if moved.is_empty() { None } else { Some(prepare(gix, &moved)?) };
    moved.iter().try_for_each(|edit| name_exactly(gix, edit))?;
    still()?;
    if let Some(prepared) = prepared {
        prepared.commit(who)?;
    }
    gone.commit()
}

fn prepare<'a>(gix: &'a gix::Repository, edits: &[RefEdit]) -> Result<Transaction<'a, 'a>> {
    let (loose, packed) =
        (patience(gix, "core.filesRefLockTimeout", 100), patience(gix, "core.packedRefsTimeout", 1000));
    let mut tries = 0..TRIES;
    loop {
        // gix knows packed refs by their time, and two writers can come within one tick. Without any it cannot.
        let _ = gix.refs.force_refresh_packed_buffer();
        match gix.refs.transaction().prepare(edits.iter().cloned(), loose, packed) {
            Ok(prepared) => {
                edits.iter().try_for_each(|edit| expect(&gix.refs, edit))?;
                return Ok(prepared);
            }
            Err(error) => {
                let too_early = error.is_conflict() || error.is_not_found();
                let error = error.into();
                if !(too_early || is_no_directory(&error)) || tries.next().is_none() {
                    return Err(error);
                }
                edits.iter().try_for_each(|edit| expect(&gix.refs, edit))?;
            }
        }
    }
}

/// The lock on a ref's file, and the directories that it needs.
fn lock(path: &Path, patience: Fail, boundary: &Path) -> Result<Marker> {
    let mut tries = 0..TRIES;
    loop {
        let locked = Marker::acquire_to_hold_resource(path, patience, Some(boundary.to_owned()), 0);
        match locked.map_err(anyhow::Error::from) {
            Err(error) if is_no_directory(&error) && tries.next().is_some() => {}
            locked => return locked,
        }
    }
}

/// Whether a lock could not be made since its directory was gone: git removes those that it leaves empty.
fn is_no_directory(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.any(|cause| cause.kind() == std::io::ErrorKind::NotFound)
}

/// gix writes a branch's name into HEAD as text, with replacement characters for what is not UTF-8: this puts the very
/// name into the lock file that is to become HEAD.
fn name_exactly(gix: &gix::Repository, edit: &RefEdit) -> Result<()> {
    match edit.change.new_value() {
        Some(TargetRef::Symbolic(name)) if name.as_bstr().to_str().is_err() => {
            let lock = gix.git_dir().join(format!("{}.lock", edit.name.as_bstr()));
            let content = [b"ref: ", name.as_bstr().as_bytes(), b"\n"].concat();
            std::fs::write(&lock, content).with_context(|| format!("write '{}'", lock.display()))
        }
        _ => Ok(()),
    }
}

/// A refusal unless a ref is where its edit expects it.
fn expect(store: &Store, edit: &RefEdit) -> Result<()> {
    let mut now = value(store, edit.name.as_ref())?;
    while let Some(Target::Symbolic(name)) = now.as_ref().filter(|_| edit.deref) {
        now = value(store, name.as_ref())?;
    }
    let expected = edit.change.previous_value();
    if now.as_ref().map(Target::to_ref) == expected {
        return Ok(());
    }
    Err(moved_meanwhile(&lossless::encode(edit.name.as_bstr())))
}

/// How long to wait for a lock of git's.
fn patience(gix: &gix::Repository, key: &str, default: u64) -> Fail {
    match gix.config_snapshot().integer(key) {
        Some(time) => Fail::from(Duration::from_millis(time.try_into().unwrap_or(u64::MAX))),
        None => Fail::from(Duration::from_millis(default)),
    }
}

/// Refs that are about to be deleted, each locked and where it was expected.
struct Deletion<'a> {
    gix: &'a gix::Repository,
    refs: Vec<Doomed>,
}

struct Doomed {
    name: BString,
    path: PathBuf,
    log: PathBuf,
    /// With it go the directories that it leaves empty.
    _lock: Marker,
}

impl<'a> Deletion<'a> {
    fn prepare(gix: &'a gix::Repository, edits: &[RefEdit]) -> Result<Self> {
        let patience = patience(gix, "core.filesRefLockTimeout", 100);
        let refs = edits.iter().map(|edit| {
            let relative = edit.name.to_path()?;
            let path = gix.common_dir().join(relative);
            let lock = lock(&path, patience, &gix.common_dir().join("refs"))?;
            expect(&gix.refs, edit)?;
            let log = gix.common_dir().join("logs").join(relative);
            Ok(Doomed { name: edit.name.as_bstr().to_owned(), path, log, _lock: lock })
        });
        Ok(Self { gix, refs: refs.collect::<Result<_>>()? })
    }

    fn commit(self) -> Result<()> {
        if self.refs.is_empty() {
            return Ok(());
        }
        // Held until the last of them is gone: whoever packs refs meanwhile would bring it back.
        let _lock = self.lock_packed()?;
        for one in &self.refs {
            // First: a ref without a log is better than a log without a ref.
            remove_if_there(&one.log)?;
            let mut directory = one.log.parent();
            while let Some(empty) = directory.filter(|at| *at != self.gix.common_dir().join("logs")) {
                directory = std::fs::remove_dir(empty).ok().and_then(|()| empty.parent());
            }
        }
        self.unpack()?;
        self.refs.iter().try_for_each(|one| remove_if_there(&one.path))
    }

    fn lock_packed(&self) -> Result<Marker> {
        let patience = patience(self.gix, "core.packedRefsTimeout", 1000);
        let path = resolve_symlink(&self.gix.refs.packed_refs_path());
        Ok(Marker::acquire_to_hold_resource(path, patience, None, 0)?)
    }

    /// Writes the packed refs without those to be deleted, as far as any of them is packed.
    fn unpack(&self) -> Result<()> {
        let path = resolve_symlink(&self.gix.refs.packed_refs_path());
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            read => read.with_context(|| format!("read '{}'", path.display()))?,
        };
        let left = without(&text, &self.refs.iter().map(|one| one.name.as_bytes()).collect::<Vec<_>>());
        if left.len() == text.len() {
            return Ok(());
        }
        let new = path.with_extension("new");
        let write = || {
            // An existing file was left by a killed process: nobody else has the lock.
            let mut file = File::create(&new)?;
            file.set_permissions(path.metadata()?.permissions())?;
            file.write_all(&left)?;
            file.sync_all()?;
            std::fs::rename(&new, &path)
        };
        write().inspect_err(|_| drop(remove_if_there(&new))).with_context(|| format!("write '{}'", path.display()))?;
        // gix notices a new file by its time only.
        Ok(self.gix.refs.force_refresh_packed_buffer()?)
    }
}

/// A packed-refs file without these refs, and without what their tags point to.
fn without(packed: &[u8], names: &[&[u8]]) -> Vec<u8> {
    let mut left = Vec::with_capacity(packed.len());
    let mut goes = false;
    for line in packed.lines_with_terminator() {
        if !line.starts_with(b"^") {
            let name = line.strip_suffix(b"\n").unwrap_or(line).splitn_str(2, " ").nth(1);
            goes = !line.starts_with(b"#") && name.is_some_and(|name| names.contains(&name));
        }
        if !goes {
            left.extend_from_slice(line);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::without;

    const PACKED: &str = "# pack-refs with: peeled fully-peeled sorted \n\
        1111 refs/heads/a\n1112 refs/heads/a\u{a0}\n1113 refs/heads/a\u{3000}\n2222 refs/heads/a b\n3333 refs/tags/v1\n^4444\n5555 refs/tags/v10\n";

    #[test]
    fn packed_refs_lose_just_those_named_with_what_their_tags_point_to() {
        for (names, gone) in [
            (&["refs/heads/a"] as &[&str], "1111 refs/heads/a\n"),
            (&["refs/heads/a\u{a0}"], "1112 refs/heads/a\u{a0}\n"),
            (&["refs/tags/v1"], "3333 refs/tags/v1\n^4444\n"),
            (&["refs/tags/v10"], "5555 refs/tags/v10\n"),
            (&["refs/heads", "a", "b", "with:", "4444", ""], ""),
        ] {
            let names: Vec<_> = names.iter().map(|name| name.as_bytes()).collect();
            let left = String::from_utf8(without(PACKED.as_bytes(), &names)).expect("it is text");
            assert_eq!(left, PACKED.replace(gone, ""));
        }
        let odd = ["refs/heads/a\u{a0}", "refs/heads/a\u{3000}"].map(str::as_bytes);
        let all: Vec<&[u8]> =
            vec![odd[0], odd[1], b"refs/heads/a", b"refs/heads/a b", b"refs/tags/v1", b"refs/tags/v10"];
        assert_eq!(
            without(PACKED.as_bytes(), &all),
            PACKED.lines().next().map(|line| format!("{line}\n")).unwrap_or_default().as_bytes()
        );
        assert_eq!(without(b"1111 refs/heads/a", &[b"refs/heads/a"]), b"", "the last line may have no end");
    }
}
