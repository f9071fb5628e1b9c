//! Moving several refs, all or none, while other programs move and pack refs.
//!
//! gix's transaction is not safe then. It reads the packed refs before it locks them, and so misses what `git pack-refs`
//! writes in between; where there are no packed refs it deletes a ref without git's lock on them, so that a `git pack-refs`
//! under way brings the ref back. And nobody can tell a lock that it leaves when it is killed from one of a living git's.
//! Therefore refs are moved here, as git does it: each is locked, and read once more when its lock is held, since from then
//! on nobody moves or prunes it; the reflog is written first; deletions come last, with git's lock on the packed refs,
//! whether or not the ref is one of them.

use crate::git::refs::lockfile::{PACKED, RefLocks, remove_empty, remove_empty_above};
use crate::git::refs::{Edit, Refs};
use crate::git::repo::scratch::remove_if_there;
use crate::git::repo::sharing::Sharing;
use crate::model::bytes::lossless;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::actor::SignatureRef;
use gix::bstr::ByteSlice;
use gix::refs::Target;
use gix::refs::store::WriteReflog;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

impl Refs<'_> {
    /// Makes the edits, all or none, if `still` says so once all locks are held. A failure of the disk half way leaves
    /// some of them made.
    pub(super) fn edit(&self, edits: &[Edit], message: &str, still: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.repo.has_tables() {
            return self.edit_tables(edits, message, still);
        }
        let names: Vec<String> = edits.iter().map(|edit| lossless::encode(edit.name.as_bstr())).collect();
        let all: Vec<&str> = names.iter().map(String::as_str).chain([PACKED]).collect();
        let mut locks = RefLocks::begin(*self, &all)?;
        names.iter().try_for_each(|name| locks.take(name))?;
        // For a ref that is made too: a journal must be able to go again.
        if edits.iter().any(|edit| edit.from.is_none() || edit.to.is_none()) {
            locks.take(PACKED)?;
        }
        edits.iter().zip(&names).try_for_each(|(edit, name)| self.expect(edit, name))?;
        still()?;
        let (gone, moved): (Vec<_>, Vec<_>) = edits.iter().zip(&names).partition(|(edit, _)| edit.to.is_none());
        for (edit, name) in moved {
            self.log(edit, name, message)?;
            if let Some(to) = edit.to.as_ref().filter(|to| edit.from.as_ref() != Some(to)) {
                let file = self.ref_file(name);
                match to {
                    Target::Symbolic(target) if self.is_kept_as_link(&file) => locks.link(&file, target)?,
                    _ => locks.put(&file, &content(to))?,
                }
            }
        }
        self.delete(&locks, &gone.into_iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>())
    }

    /// Whether a symbolic ref is a link, as git makes one where the user prefers that.
    fn is_kept_as_link(&self, file: &Path) -> bool {
        file.is_symlink() || self.repo.boolean("core.preferSymlinkRefs") == Ok(Some(true))
    }

    fn log(&self, edit: &Edit, name: &str, message: &str) -> Result<()> {
        let Some((from, to)) = edit.logged.filter(|(from, to)| *from != Some(*to)) else {
            return Ok(());
        };
        let path = self.repo.log_file(name);
        let policy = self.repo.gix.refs.write_reflog;
        let usual = |name: &str| name == "HEAD" || LOGGED.iter().any(|below| name.starts_with(below));
        let makes = edit.always_logged || policy == WriteReflog::Always || policy == WriteReflog::Normal && usual(name);
        let Some(mut file) =
            open_log(self.repo.sharing(), &path, makes).with_context(|| format!("open '{}'", path.display()))?
        else {
            return Ok(());
        };
        let (who, mut time) = (self.repo.committer(), gix::date::parse::TimeBuf::default());
        let line = log_line(from, to, who.to_ref(&mut time), message.as_bytes())?;
        // In one write: whoever reads it sees no half of a line.
        file.write_all(&line).with_context(|| format!("write '{}'", path.display()))
    }

    /// Deletes refs whose locks are held, and the one on the packed refs.
    pub(super) fn delete(&self, locks: &RefLocks<'_>, names: &[&str]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            // First: a ref without a log is better than a log without a ref.
            let log = self.repo.log_file(name);
            remove_if_there(&log)?;
            remove_empty_above(&log, &self.repo.common_dir.join("logs"));
        }
        self.unpack(locks, names)?;
        // The directories that they leave empty go with the locks.
        names.iter().try_for_each(|name| remove_if_there(&self.ref_file(name)))
    }

    /// Writes the packed refs without those to be deleted, as far as any of them is packed.
    fn unpack(&self, locks: &RefLocks<'_>, names: &[&str]) -> Result<()> {
        let path = self.ref_file(PACKED);
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            read => read.with_context(|| format!("read '{}'", path.display()))?,
        };
        let names: Vec<_> = names.iter().map(|name| lossless::decode(name)).collect();
        let left = without(&text, &names.iter().map(Vec::as_slice).collect::<Vec<_>>());
        if left.len() == text.len() {
            return Ok(());
        }
        locks.put(&path, &left)?;
        // gix notices a new file by its time only.
        Ok(self.repo.gix.refs.force_refresh_packed_buffer()?)
    }
}

/// The refs below these have a reflog unless the user says otherwise.
const LOGGED: [&str; 3] = ["refs/heads/", "refs/remotes/", "refs/notes/"];

/// What is in a ref's file.
pub fn content(target: &Target) -> Vec<u8> {
    match target {
        Target::Object(id) => format!("{id}\n").into_bytes(),
        Target::Symbolic(name) => [b"ref: ", name.as_bstr().as_bytes(), b"\n"].concat(),
    }
}

/// A line of a reflog.
pub fn log_line(from: Option<ObjectId>, to: ObjectId, who: SignatureRef<'_>, message: &[u8]) -> Result<Vec<u8>> {
    let from = from.unwrap_or_else(|| to.kind().null());
    let mut line = format!("{from} {to} ").into_bytes();
    who.trim().write_to(&mut line)?;
    if !message.is_empty() {
        line.push(b'\t');
        line.extend(message.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }));
    }
    line.push(b'\n');
    Ok(line)
}

/// Opens a reflog to write at its end; nothing where there is none and it is not to be made.
fn open_log(sharing: Sharing, path: &Path, makes: bool) -> std::io::Result<Option<File>> {
    if makes {
        path.parent().map_or(Ok(()), |above| sharing.make_directories(above))?;
    }
    let open = || {
        let opened = OpenOptions::new().append(true).create(makes).open(path)?;
        sharing.share(path).map(|()| opened)
    };
    match open() {
        Err(error) if error.kind() == ErrorKind::NotFound && !makes => Ok(None),
        // git leaves directories empty where there were refs below this name.
        Err(error) if error.kind() == ErrorKind::IsADirectory => {
            remove_empty(path)?;
            if makes { open().map(Some) } else { Ok(None) }
        }
        opened => opened.map(Some),
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
