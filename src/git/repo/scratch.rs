//! Writing files whole or not at all, and removing them: oxundo's own in the git directory, and agents' settings.

use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::git::repo::platform::{is_directory, mounted_in, names_in, open_up, process};
use crate::model::bytes::{in_quotes, lossless, quoted_line, shell_word};
use anyhow::{Context, Result};
use gix::bstr::ByteSlice;
use rustix::fs::{AtFlags, CWD, Mode, renameat, unlinkat};
use std::ffi::OsStr;
use std::fs::{File, FileType, OpenOptions, Permissions};
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

/// What is out of the worktree while a plan is carried out.
pub const OUT: &str = "out";

/// What came out of the worktree a while ago.
pub const REPLACED: &str = "replaced";

/// What other programs saved while their files were being replaced: the user's.
pub const KEPT: &str = "kept";

/// How much oxundo takes.
const SPACE: &str = "space";

/// What stays when all else is removed: nobody else may have it.
pub const KEPT_AT_PURGE: [&str; 2] = [KEPT, REPLACED];

impl Repo {
    /// Half-written files of processes that are gone.
    pub fn half_written(&self) -> impl Iterator<Item = PathBuf> {
        std::fs::read_dir(&self.scratch).into_iter().flatten().flatten().filter_map(|entry| {
            let name = entry.file_name();
            let writer = name.to_str()?.strip_prefix(TEMPORARY)?.split('-').next()?.parse().ok()?;
            process(writer).is_none().then(|| entry.path())
        })
    }

    /// Every scratch directory, of all worktrees.
    pub fn scratches(&self) -> Vec<PathBuf> {
        let linked = std::fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten();
        let all = linked.map(|entry| entry.path()).chain([self.common_dir.clone()]);
        all.map(|directory| directory.join("oxundo")).filter(|scratch| scratch.is_dir()).collect()
    }

    /// The directories of a worktree, by the name that it has in refs, where something of it may be kept.
    pub fn scratches_of(&self, worktree: &str) -> Vec<PathBuf> {
        if worktree == "main" {
            return vec![self.common_dir.join("oxundo")];
        }
        let name = lossless::decode(worktree);
        let name = OsStr::from_bytes(&name);
        vec![
            self.common_dir.join("worktrees").join(name).join("oxundo"),
            self.common_dir.join("oxundo/worktrees").join(name),
        ]
    }

    /// Where something may be that must outlast all of oxundo's: in every scratch directory, and in what outlasts a linked
    /// worktree's.
    pub fn keeping(&self) -> Vec<PathBuf> {
        let lasting = std::fs::read_dir(self.common_dir.join("oxundo/worktrees")).into_iter().flatten().flatten();
        self.scratches().into_iter().chain(lasting.map(|entry| entry.path())).collect()
    }

    /// What is kept that was not oxundo's to delete: other programs saved it, or it was in the way. Of all worktrees.
    pub fn kept(&self) -> Vec<PathBuf> {
        let mut directories: Vec<PathBuf> = self.keeping().into_iter().map(|place| place.join(KEPT)).collect();
        let mut kept = Vec::new();
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    directories.push(entry.path());
                } else {
                    kept.push(entry.path());
                }
            }
        }
        kept.sort();
        kept
    }

    /// All that was moved out of any worktree and is kept.
    pub fn moved_aside(&self) -> Vec<PathBuf> {
        let below = |directory: PathBuf| std::fs::read_dir(directory).into_iter().flatten().flatten();
        let of_linked = below(self.common_dir.join("oxundo/worktrees")).map(|entry| entry.path());
        let turns = self.scratches().into_iter().chain(of_linked).flat_map(|scratch| below(scratch.join("aside")));
        let mut all: Vec<PathBuf> = turns.flat_map(|turn| below(turn.path())).map(|entry| entry.path()).collect();
        all.sort();
        all
    }

    /// Where what was moved out of this worktree is kept, a directory a turn.
    pub fn aside_directories(&self) -> Vec<PathBuf> {
        let of_linked = self.linked_name().map(|id| self.common_dir.join("oxundo/worktrees").join(id).join("aside"));
        of_linked.into_iter().chain([self.scratch_path("aside")]).collect()
    }

    /// Remembers that old turns have been looked for.
    pub fn mark_collected(&self) -> Result<()> {
        let path = self.scratch()?.join("gc");
        std::fs::write(&path, "").with_context(|| format!("write {}", path.display()))
    }

    /// Remembers how much oxundo takes, for those who have no time to ask.
    pub fn remember_space(&self, bytes: u64) {
        // Where nothing was recorded yet, nothing is made.
        let _ = replace(&self.scratch_path(SPACE), format!("{bytes}\n").as_bytes());
    }

    /// How much oxundo took when somebody asked last, and when that was.
    pub fn remembered_space(&self) -> Option<(u64, SystemTime)> {
        let path = self.scratch_path(SPACE);
        let bytes = std::fs::read_to_string(&path).ok()?.trim().parse().ok()?;
        Some((bytes, path.metadata().ok()?.modified().ok()?))
    }

    /// How long ago old turns were looked for last; `None` if never, or if that time is in the future.
    pub fn since_collected(&self) -> Option<Duration> {
        let about = self.scratch_path("gc").metadata().ok()?;
        about.modified().ok()?.elapsed().ok()
    }
}

/// Writes a file of a line or two anew. It is cut off behind that only where it was longer: a disk's file system writes one
/// that has been emptied at once when it is closed, which takes longer than all the rest.
pub fn overwrite(mut file: &File, content: &[u8]) -> io::Result<()> {
    file.write_all(content)?;
    if file.metadata()?.len() > content.len() as u64 { file.set_len(content.len() as u64) } else { Ok(()) }
}

/// Refuses a link in the place of a scratch directory, or in one: oxundo makes none there, and would write, read or delete
/// where it leads. What was moved aside is further below, and may be anything, as may what is out of the worktree for a
/// moment.
pub fn check_no_links(scratch: &Path) -> Result<()> {
    let looked = |path: &Path| path.symlink_metadata().map(|about| about.file_type());
    let Ok(kind) = looked(scratch) else { return Ok(()) };
    let mut directories = Vec::new();
    check_no_link(scratch, kind, &mut directories)?;
    for _ in 0..2 {
        for directory in
            std::mem::take(&mut directories).into_iter().filter(|directory| *directory != scratch.join(OUT))
        {
            // What cannot be read, or is gone again, is used by nobody.
            for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                check_no_link(&entry.path(), kind, &mut directories)?;
            }
        }
    }
    Ok(())
}

fn check_no_link(path: &Path, kind: FileType, directories: &mut Vec<PathBuf>) -> Result<()> {
    if kind.is_symlink() {
        let (path, word) = (path.display(), shell_word(path.as_os_str().as_bytes()));
        return Err(Refusal::new(
            Code::Corrupt,
            format!("'{path}' is a link: oxundo makes none there, and follows none"),
        )
        .hint(format!("see where it leads, then run 'rm {word}' and the same command again"))
        .into());
    }
    directories.extend(kind.is_dir().then(|| path.to_owned()));
    Ok(())
}

/// By this a record shows that it is whole.
pub fn checksum(record: &[u8]) -> [u8; 8] {
    let mut hasher = DefaultHasher::new();
    hasher.write(record);
    hasher.finish().to_be_bytes()
}

/// A name that says what these bytes are, the same for ever.
pub fn name_of(bytes: &[u8]) -> Result<String> {
    Ok(gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, bytes)?.to_string())
}

/// Puts a record into the scratch directory. Without it the next scan takes a little longer.
pub fn write_record(repo: &Repo, name: &str, record: &[u8]) {
    let Ok(scratch) = repo.scratch() else { return };
    let _ = replace(&scratch.join(name), &whole(record));
}

/// A record as it is in its file: by its checksum it shows that it is whole.
pub fn whole(record: &[u8]) -> Vec<u8> {
    [&checksum(record), record].concat()
}

/// Adds a line to a file of the scratch directory, in one write: others may add theirs at the same time.
pub fn append_line(path: &Path, line: &[u8]) -> Result<()> {
    let mut file = File::options().create(true).append(true).mode(0o600).open(path);
    // Others at work in this worktree, where it is shared, add theirs. What they made is so already.
    let is_shared =
        path.parent().and_then(|above| above.metadata().ok()).is_some_and(|above| above.mode() & 0o020 != 0);
    if let Some(file) = file.as_ref().ok().filter(|_| is_shared) {
        let _ = file.set_permissions(Permissions::from_mode(0o660));
    }
    let written =
        file.as_mut().map_or_else(|error| Err(error.kind().into()), |file| file.write_all(&[line, b"\n"].concat()));
    written.with_context(|| format!("write '{}'", path.display()))
}

/// What a record says; `None` when it is damaged.
pub fn verify(record: &[u8]) -> Option<&[u8]> {
    let (sum, record) = record.split_first_chunk()?;
    (*sum == checksum(record)).then_some(record)
}

/// The number that a record begins with.
pub fn take_number(record: &mut &[u8]) -> Option<u64> {
    let (number, rest) = record.split_first_chunk()?;
    *record = rest;
    Some(u64::from_be_bytes(*number))
}

/// How the names of files begin that are written beside their place: a kill may leave one there.
pub const TEMPORARY: &str = ".oxundo-tmp-";

/// A name for such a file, which no other has.
pub fn temporary_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{TEMPORARY}{}-{number}", std::process::id())
}

/// Puts a file with this content in the place of the one that is there: whole, or not at all.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_by(path, File::options(), |file| file.write_all(content))
}

/// As [`replace`], as if it had been written at this time.
pub fn replace_dated(path: &Path, content: &[u8], time: SystemTime) -> io::Result<()> {
    replace_by(path, File::options(), |file| {
        file.write_all(content)?;
        file.set_modified(time)
    })
}

/// As [`replace`], with these permission bits, and whole after a power cut too.
pub fn replace_synced(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    replace_synced_if(path, content, permit(mode), || Ok(()))
}

/// Gives a file these permission bits.
pub fn permit(mode: u32) -> impl FnOnce(&File) -> io::Result<()> {
    move |file| file.set_permissions(Permissions::from_mode(mode))
}

/// As [`replace_synced`], with whatever permissions `permit` gives, unless `check` fails, which is asked at the last moment.
pub fn replace_synced_if(
    path: &Path,
    content: &[u8],
    permit: impl FnOnce(&File) -> io::Result<()>,
    check: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    // Private until it is whole.
    let mut private = File::options();
    private.mode(0o600);
    replace_by(path, private, |file| {
        file.write_all(content)?;
        permit(file)?;
        file.sync_all()?;
        check()
    })
}

fn replace_by(path: &Path, mut new: OpenOptions, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let temporary = path.with_file_name(temporary_name());
    let filled = new.write(true).create_new(true).open(&temporary).and_then(|mut file| fill(&mut file));
    let written = filled.and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // The error to report is the first one.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Removes a file; that it is gone already is no error.
pub fn remove_if_there(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove '{}'", path.display()))
        }
        _ => Ok(()),
    }
}

/// The disk space that a file, or a directory with all below it, takes; what cannot be read, or is gone, counts as 0.
pub fn disk_usage(path: &Path) -> u64 {
    let Ok(about) = path.symlink_metadata() else { return 0 };
    let below = about.is_dir().then(|| std::fs::read_dir(path)).into_iter().flatten().flatten().flatten();
    about.blocks() * 512 + below.map(|entry| disk_usage(&entry.path())).sum::<u64>()
}

/// Removes a file, or a directory with all below it, also where directories may not be written, and however deep they are.
pub fn remove_tree(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_ok_and(|about| !about.is_dir()) {
        return remove_if_there(path);
    }
    check_no_mount(path)?;
    if std::fs::remove_dir_all(path).is_err() {
        remove_level_by_level(path).with_context(|| format!("remove '{}'", path.display()))?;
    }
    Ok(())
}

/// Refuses to delete a directory in which something is mounted: that is in another place as well.
pub fn check_no_mount(directory: &Path) -> Result<()> {
    let Some(place) = mounted_in(directory) else { return Ok(()) };
    let place = place.as_os_str().as_bytes();
    let message = format!("something is mounted at {}, and what is there would be deleted", in_quotes(place.as_bstr()));
    let line = quoted_line(&format!("umount {}", shell_word(place)));
    Err(Refusal::new(Code::Io, message)
        .hint(format!("run {line} as the superuser, then the same command again"))
        .into())
}

/// Directories that are in those of the uppermost level come up into the place of the one that they were in: no path gets
/// longer than the system takes.
fn remove_level_by_level(path: &Path) -> io::Result<()> {
    let top = open_up((CWD, path.as_os_str()), Mode::RWXU)?;
    let mut number = 0;
    loop {
        let names = names_in(&top)?;
        if names.is_empty() {
            return std::fs::remove_dir(path);
        }
        for name in &names {
            let at = (top.as_fd(), name.as_os_str());
            if !is_directory(at)? {
                unlinkat(at.0, at.1, AtFlags::empty())?;
                continue;
            }
            let directory = open_up(at, Mode::RWXU)?;
            for name in &names_in(&directory)? {
                let inner = (directory.as_fd(), name.as_os_str());
                if is_directory(inner)? {
                    // It may not be moved either where it may not be written.
                    open_up(inner, Mode::RWXU)?;
                    number += 1;
                    renameat(inner.0, inner.1, &top, format!("{TEMPORARY}{number}"))?;
                } else {
                    unlinkat(inner.0, inner.1, AtFlags::empty())?;
                }
            }
            unlinkat(at.0, at.1, AtFlags::REMOVEDIR)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let top = tempfile::tempdir().expect("make a directory");
        let (file, directory) = (top.path().join("file"), top.path().join("directory"));
        std::fs::create_dir(&directory).expect("make a directory");
        replace(&file, b"one").expect("make a file");
        assert_eq!(std::fs::read(&file).expect("read a file"), b"one");
        replace_synced(&file, b"two", 0o640).expect("replace a file");
        assert_eq!(std::fs::read(&file).expect("read a file"), b"two");
        assert_eq!(file.metadata().expect("look at a file").permissions().mode() & 0o7777, 0o640);
        replace(&directory, b"three").expect_err("a directory is no file");
        replace_synced(&top.path().join("none/file"), b"three", 0o600).expect_err("there is no directory");
        assert_eq!(std::fs::read_dir(top.path()).expect("list a directory").count(), 2, "nothing is left behind");
    }

    #[test]
    fn disk_usage_adds_up_what_can_be_seen() {
        let top = tempfile::tempdir().expect("make a directory");
        std::fs::create_dir(top.path().join("in")).expect("make a directory");
        let [file, link] = ["in/file", "link"].map(|name| top.path().join(name));
        std::fs::write(&file, vec![1; 100_000]).expect("write a file");
        std::os::unix::fs::symlink("in", &link).expect("make a link");
        let all = [top.path(), &top.path().join("in"), &file, &link];
        let blocks: u64 = all.map(|path| path.symlink_metadata().expect("look at a file").blocks()).iter().sum();
        assert_eq!(disk_usage(top.path()), blocks * 512, "each counts once");
        assert_eq!(disk_usage(&top.path().join("none")), 0);
    }

    #[test]
    fn a_directory_is_removed_however_deep_it_is_and_whatever_its_modes_are() {
        let top = tempfile::tempdir().expect("make a directory");
        let path = top.path().join("deep");
        std::fs::create_dir(&path).expect("make a directory");
        let mut at = rustix::fs::open(&path, rustix::fs::OFlags::DIRECTORY, Mode::empty()).expect("open it");
        for _ in 0..5000 {
            let (mode, flags) = (Mode::from_raw_mode(0o500), rustix::fs::OFlags::DIRECTORY);
            rustix::fs::mkdirat(&at, "d", Mode::from_raw_mode(0o700)).expect("make a directory");
            rustix::fs::mkdirat(&at, "e", mode).expect("make a directory");
            at = rustix::fs::openat(&at, "d", flags, Mode::empty()).expect("open it");
        }
        drop(at);
        remove_tree(&path).expect("remove it");
        assert!(path.symlink_metadata().is_err());
    }
}
