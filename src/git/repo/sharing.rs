//! For whom the files in the git directory are: `core.sharedRepository`. What oxundo makes there has the permissions that it
//! would have of git, or one command would lock the others out who work in the repository.

use gix::bstr::{BStr, ByteSlice};
use gix::config::Boolean;
use std::fs::{DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What the group may do in a repository that it shares.
const GROUP: u32 = 0o660;

/// What all may do in one that everybody reads.
const EVERYBODY: u32 = 0o664;

/// What a directory is made with in which nobody else looks.
const PRIVATE: u32 = 0o700;

/// New files in a directory with this bit belong to the directory's group.
const SET_GROUP: u32 = 0o2000;

/// What is said where somebody removes a directory as another is made in it, or as it is made.
const COME_AND_GONE: [ErrorKind; 2] = [ErrorKind::NotFound, ErrorKind::AlreadyExists];

/// How often a directory is made that goes away meanwhile.
const TRIES: u32 = 32;

/// For whom files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// For whom the process's own mask says.
    Own,
    /// For these too.
    Also(u32),
    /// For exactly these.
    Exactly(u32),
}

impl Sharing {
    /// What this value of the setting says, if it has one. One that git takes for an error is git's to report.
    pub fn of(value: Option<&BStr>) -> Self {
        let Some(value) = value else { return Self::Also(GROUP) };
        let text = value.to_str_lossy();
        match (&*text, u32::from_str_radix(&text, 8)) {
            ("umask", _) | (_, Ok(0)) => Self::Own,
            ("group", _) | (_, Ok(1)) => Self::Also(GROUP),
            ("all" | "world" | "everybody", _) | (_, Ok(2)) => Self::Also(EVERYBODY),
            (_, Ok(mode)) if mode & 0o600 == 0o600 => Self::Exactly(mode & 0o666),
            (_, Err(_)) if Boolean::try_from(value).is_ok_and(bool::from) => Self::Also(GROUP),
            _ => Self::Own,
        }
    }

    /// The permissions of something that has these.
    fn mode(self, mode: u32, is_directory: bool) -> u32 {
        let (Self::Also(mut tweak) | Self::Exactly(mut tweak)) = self else { return mode };
        if mode & 0o200 == 0 {
            tweak &= !0o222;
        }
        if mode & 0o100 != 0 {
            tweak |= (tweak & 0o444) >> 2;
        }
        let shared = if matches!(self, Self::Exactly(_)) { mode & !0o777 | tweak } else { mode | tweak };
        if !is_directory {
            return shared;
        }
        let open = shared | (shared & 0o444) >> 2;
        if open & 0o060 == 0 { open } else { open | SET_GROUP }
    }

    /// Gives a file or directory that was just made its permissions. What is another user's has them from that user.
    pub fn share(self, path: &Path) -> io::Result<()> {
        if self == Self::Own {
            return Ok(());
        }
        let about = path.symlink_metadata()?;
        let (now, is_directory) = (about.permissions().mode() & 0o7777, about.is_dir());
        let wanted = self.mode(now, is_directory);
        if wanted == now || about.is_symlink() {
            return Ok(());
        }
        match std::fs::set_permissions(path, Permissions::from_mode(wanted)) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
            shared => shared,
        }
    }

    /// Makes a directory, and those above it that are not there.
    pub fn make_directories(self, path: &Path) -> io::Result<()> {
        let mut tries = 1..TRIES;
        loop {
            match self.try_make_directories(path) {
                // git removes those that it leaves empty: one may be gone before the next is in it, or as it is looked at.
                Err(error) if COME_AND_GONE.contains(&error.kind()) && tries.next().is_some() => {}
                made => return made,
            }
        }
    }

    fn try_make_directories(self, path: &Path) -> io::Result<()> {
        if self == Self::Own {
            return std::fs::create_dir_all(path);
        }
        let missing: Vec<PathBuf> = path.ancestors().take_while(|above| !above.exists()).map(Path::to_owned).collect();
        std::fs::create_dir_all(path)?;
        missing.iter().rev().try_for_each(|made| self.share(made))
    }

    /// Makes a directory of oxundo's own, and those above it that are not there: for its owner alone, and for the group where
    /// one shares the repository, but for nobody else. What is in there may be closed to them in the worktree.
    pub fn make_private(self, path: &Path) -> io::Result<()> {
        let missing: Vec<PathBuf> = match self {
            Self::Own => Vec::new(),
            _ => path.ancestors().take_while(|above| !above.exists()).map(Path::to_owned).collect(),
        };
        DirBuilder::new().recursive(true).mode(PRIVATE).create(path)?;
        missing.iter().rev().try_for_each(|made| self.among_members().share(made))
    }

    /// Closes such a directory to others that an earlier version has made. Another user's is theirs to close.
    pub fn close(self, path: &Path) {
        let Ok(about) = path.symlink_metadata() else { return };
        let is_own = about.is_dir() && about.uid() == rustix::process::geteuid().as_raw();
        let mode = about.mode() & 0o7777;
        let closed = if self == Self::Own { mode & !0o077 } else { mode & !0o007 };
        if is_own && mode != closed {
            // What cannot be closed is as it was.
            let _ = std::fs::set_permissions(path, Permissions::from_mode(closed));
        }
    }

    /// Whether all may read.
    pub fn is_with_everybody(self) -> bool {
        matches!(self, Self::Also(mode) | Self::Exactly(mode) if mode & 0o004 != 0)
    }

    /// Without those who are in no group that works here.
    fn among_members(self) -> Self {
        match self {
            Self::Own => self,
            Self::Also(mode) => Self::Also(mode & !0o007),
            Self::Exactly(mode) => Self::Exactly(mode & !0o007),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    /// What git makes of an object's file and its directory, and of a ref's.
    fn by_git(value: &str, mask: &str) -> Vec<u32> {
        let f = Fixture::new();
        let script = format!(
            "umask {mask}; git init -q --shared={value} new && cd new && echo x | git hash-object -w --stdin && \
             git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && \
             stat -c %a .git/objects/58 .git/objects/58/* .git/refs/heads/* .git/logs/refs .git/logs/HEAD"
        );
        let output = std::process::Command::new("sh").args(["-ec", &script]).current_dir(f.repo.top()).output();
        let printed = String::from_utf8(output.expect("run sh").stdout).expect("text");
        printed
            .lines()
            .filter(|line| line.len() < 6)
            .map(|mode| u32::from_str_radix(mode, 8).expect("a mode"))
            .collect()
    }

    #[test]
    fn directories_are_made_beside_one_who_removes_what_is_empty() {
        let f = Fixture::new();
        let top = f.repo.top().join("a");
        let all = [top.join("b/c"), top.join("b"), top];
        let (is_over, left) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|scope| {
            // It removes less often than is tried: whatever comes first, one try has it to itself.
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    for directory in &all {
                        if left.load(Ordering::Relaxed) > 0 && std::fs::remove_dir(directory).is_ok() {
                            left.fetch_sub(1, Ordering::Relaxed);
                        }
                    }
                }
            });
            let mut failed = Vec::new();
            for sharing in [Sharing::Own, Sharing::Also(GROUP)].repeat(300) {
                left.store(TRIES / 2, Ordering::Relaxed);
                failed.extend(sharing.make_directories(&all[0]).err());
            }
            is_over.store(true, Ordering::Relaxed);
            assert!(failed.is_empty(), "{failed:?}");
        });
        let nowhere = f.repo.top().join("file");
        std::fs::write(&nowhere, "").expect("write it");
        assert!(Sharing::Own.make_directories(&nowhere.join("d")).is_err(), "what cannot be made is told");
        assert!(Sharing::Own.make_directories(&nowhere).is_err(), "and so is what has its name");
    }

    #[test]
    fn a_setting_means_what_it_means_to_git() {
        let of = |value: &str| Sharing::of(Some(value.into()));
        assert_eq!(Sharing::of(None), Sharing::Also(GROUP));
        assert!(["umask", "false", "0", "no", "0400"].iter().all(|value| of(value) == Sharing::Own));
        assert!(["group", "true", "1", "yes"].iter().all(|value| of(value) == Sharing::Also(GROUP)));
        assert!(["all", "world", "everybody", "2"].iter().all(|value| of(value) == Sharing::Also(EVERYBODY)));
        assert_eq!((of("0660"), of("0775")), (Sharing::Exactly(0o660), Sharing::Exactly(0o664)));
    }

    #[test]
    fn what_is_oxundos_own_is_for_members_at_most() {
        let f = Fixture::new();
        for (sharing, wanted) in [
            (Sharing::Own, 0o700),
            (Sharing::Also(GROUP), 0o2770),
            (Sharing::Also(EVERYBODY), 0o2770),
            (Sharing::Exactly(0o640), 0o2750),
            (Sharing::Exactly(0o600), 0o700),
        ] {
            let top = f.outside().join(format!("{sharing:?}"));
            sharing.make_private(&top.join("in/deep")).expect("make directories");
            let mode = |path: &Path| path.metadata().expect("look at it").permissions().mode() & 0o7777;
            let modes = ["", "in", "in/deep"].map(|below| mode(&top.join(below)));
            assert_eq!(modes, [wanted; 3], "{sharing:?}: {modes:?}");
            std::fs::set_permissions(&top, Permissions::from_mode(0o755)).expect("open it");
            sharing.close(&top);
            let closed = if sharing == Sharing::Own { 0o700 } else { 0o750 };
            assert_eq!(mode(&top), closed, "as an earlier version made it: {sharing:?}");
        }
    }

    #[test]
    fn permissions_are_gits() {
        for mask in [0o022, 0o077] {
            for value in ["group", "all", "0640", "0600"] {
                let sharing = Sharing::of(Some(value.into()));
                let [file, directory, object] = [0o666, 0o777, 0o444].map(|mode| mode & !mask);
                let [file, object] = [file, object].map(|mode| sharing.mode(mode, false));
                let directory = sharing.mode(directory, true);
                let found = by_git(value, &format!("{mask:o}"));
                assert_eq!(found, [directory, object, file, directory, file], "{value}, umask {mask:o}: {found:?}");
            }
        }
    }
}
