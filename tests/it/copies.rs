//! Directories of the tests, and copies of them: hundreds of repositories are the same at first, and git need not make
//! each of them.

use rustix::fs::statvfs;
use std::collections::HashMap;
use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use tempfile::TempDir;

/// Where memory is a file system.
const MEMORY: &str = "/dev/shm";

/// What the tests take of it at most at a time, several times over: some 140 MiB where files are large, else 20.
const ENOUGH: u64 = 1 << 30;

/// By this file a git directory knows its own journals.
const KEY: &str = "oxundo/journal.key";

/// A directory in memory where there is room, for a file in memory costs a tenth of one on a disk; else where
/// temporary files are. `TMPDIR` says otherwise: `TMPDIR=/tmp cargo test` has everything on a disk.
pub(crate) fn directory() -> TempDir {
    static PLACE: LazyLock<PathBuf> = LazyLock::new(|| {
        let has_room = || statvfs(MEMORY).is_ok_and(|about| about.f_bavail * about.f_frsize > ENOUGH);
        // Older kernels do not say when something in memory was made.
        let made = |directory: &TempDir| directory.path().metadata()?.created();
        let is_good = || TempDir::with_prefix_in("oxundo-", MEMORY).is_ok_and(|directory| made(&directory).is_ok());
        let asked = std::env::var_os("TMPDIR").is_some();
        if !asked && has_room() && is_good() { MEMORY.into() } else { std::env::temp_dir() }
    });
    TempDir::with_prefix_in("oxundo-", &*PLACE).expect("make a temporary directory")
}

/// Copies a directory as `cp -a` does, but for git's objects, which nobody ever writes to, and the key of journals: these are
/// the same files.
pub(crate) fn copy(from: &Path, to: &Path) {
    copy_entries(from, to, false, &mut HashMap::new());
}

/// `names` has the copies of the files with several names, by their inodes.
fn copy_entries(from: &Path, to: &Path, objects: bool, names: &mut HashMap<u64, PathBuf>) {
    let about = fs::symlink_metadata(from).expect("look at a directory");
    fs::create_dir(to).expect("make a directory");
    for entry in fs::read_dir(from).expect("list a directory") {
        let entry = entry.expect("read a directory's entry");
        let (old, new) = (entry.path(), to.join(entry.file_name()));
        let about = entry.metadata().expect("look at a file");
        if about.is_dir() {
            copy_entries(&old, &new, objects || old.ends_with(".git/objects"), names);
        } else if about.is_symlink() {
            symlink(fs::read_link(&old).expect("read a symlink"), &new).expect("make a symlink");
        } else if about.is_file() && (objects || old.ends_with(KEY)) && fs::hard_link(&old, &new).is_ok() {
            // An object never changes: a second name will do, where there can be one. Nor does the file by which a git
            // directory knows its own journals: the copy stands for the very same one.
        } else if let Some(other) = names.get(&about.ino()).filter(|_| about.nlink() > 1) {
            fs::hard_link(other, &new).expect("link a file");
        } else if about.is_file() {
            copy_file(&old, &new);
            names.insert(about.ino(), new);
        } else {
            let copied = Command::new("cp").arg("-a").args([&old, &new]).status();
            assert!(copied.is_ok_and(|status| status.success()), "copy {}", old.display());
        }
    }
    set_times(to, &about);
    // Last: nothing can be made in a directory that is read-only.
    fs::set_permissions(to, about.permissions()).expect("set a mode");
}

/// Copies a file with its mode and its times.
fn copy_file(from: &Path, to: &Path) {
    let about = from.metadata().expect("look at a file");
    fs::copy(from, to).expect("copy a file");
    if about.permissions().mode() & 0o400 == 0 {
        // It cannot be opened as it is.
        fs::set_permissions(to, fs::Permissions::from_mode(0o600)).expect("set a mode");
        set_times(to, &about);
        fs::set_permissions(to, about.permissions()).expect("set a mode");
    } else {
        set_times(to, &about);
    }
}

fn set_times(path: &Path, about: &fs::Metadata) {
    let time = about.modified().expect("files have times");
    let times = FileTimes::new().set_modified(time).set_accessed(time);
    File::open(path).and_then(|file| file.set_times(times)).expect("set the times of a file");
}

/// A directory that was read once, to be written many times.
pub(crate) struct Template(Vec<(PathBuf, u32, Option<Vec<u8>>)>);

impl Template {
    /// Reads the files and directories below; anything else is not expected there.
    pub(crate) fn read(directory: &Path) -> Self {
        let mut all = Vec::new();
        let mut left = vec![PathBuf::new()];
        while let Some(inside) = left.pop() {
            let path = directory.join(&inside);
            let about = path.symlink_metadata().expect("look at a file");
            let content = about.is_file().then(|| fs::read(&path).expect("read a file"));
            if content.is_none() {
                let entries = fs::read_dir(&path).expect("list a directory");
                left.extend(entries.map(|entry| inside.join(entry.expect("read an entry").file_name())));
            }
            all.push((inside, about.permissions().mode() & 0o7777, content));
        }
        Self(all)
    }

    /// Writes all of it: the directory itself must not be there.
    pub(crate) fn write(&self, directory: &Path) {
        for (inside, mode, content) in &self.0 {
            let path = if inside.as_os_str().is_empty() { directory.to_owned() } else { directory.join(inside) };
            match content {
                Some(content) => fs::write(&path, content).expect("write a file"),
                None => fs::create_dir(&path).expect("make a directory"),
            }
            let made = path.symlink_metadata().expect("look at a file").permissions().mode() & 0o7777;
            if made != *mode {
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).expect("set a mode");
            }
        }
    }
}
