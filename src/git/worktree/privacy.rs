//! Which files others cannot read, though they could read what is copied from them into the git directory.

use crate::git::repo::Repo;
use crate::git::repo::audience::{Audience, PASS, READ};
use crate::git::worktree::Worktree;
use crate::git::worktree::stat::mode_of;
use crate::model::path::{parents, up_from};
use gix::bstr::{BStr, BString};
use rustix::fs::{FileType, Stat, fstat};
use std::cell::RefCell;
use std::collections::HashMap;

/// Says of files whether they are private. Asked only where permission bits are missing: what is open to all, in directories
/// that are, costs nothing.
pub struct Privacy<'a> {
    repo: &'a Repo,
    /// Who can get to what is in a directory.
    directories: RefCell<HashMap<BString, Audience>>,
}

impl<'a> Privacy<'a> {
    /// Of the files in a repository's worktree.
    pub fn new(repo: &'a Repo) -> Self {
        Self { repo, directories: RefCell::default() }
    }

    /// Whether a file or directory is hidden from somebody who can read what git has.
    pub fn hides(&self, path: &BStr, stat: &Stat) -> bool {
        let audience = self.repo.audience();
        audience != Audience::Nobody && !self.readers(path, stat).includes(&audience)
    }

    /// Whether all that is in the worktree may be hidden: by its top, or by what is above that and not above the git directory.
    pub fn hides_all(&self) -> bool {
        let is_open = fstat(&self.repo.opened().fd).is_ok_and(|top| is_open(&top));
        if is_open && self.repo.has_own_git_directory() {
            return false;
        }
        let audience = self.repo.audience();
        audience != Audience::Nobody && !self.readers_of_top().includes(&audience)
    }

    fn readers(&self, path: &BStr, stat: &Stat) -> Audience {
        readers_of(self.readers_in(parents(path).next().unwrap_or_default()), stat)
    }

    /// Who surely sees what is in a directory.
    fn readers_in(&self, directory: &BStr) -> Audience {
        let mut known = self.directories.borrow_mut();
        let way = up_from(directory).filter(|path| !path.is_empty());
        let way: Vec<&BStr> = way.collect();
        let unknown = way.iter().take_while(|above| !known.contains_key(**above)).count();
        let above = way.get(unknown).and_then(|above| known.get(*above));
        let mut readers = above.cloned().unwrap_or_else(|| self.readers_of_top());
        for below in way[..unknown].iter().rev() {
            // What cannot be looked at is read by nobody.
            let stat = Worktree::new(self.repo).stat(below).ok().flatten();
            readers = stat.map_or(Audience::Nobody, |(stat, _)| readers_of(readers, &stat));
            known.insert((*below).to_owned(), readers.clone());
        }
        readers
    }

    fn readers_of_top(&self) -> Audience {
        fstat(&self.repo.opened().fd).map_or(Audience::Nobody, |top| readers_of(self.repo.audience_of_top(), &top))
    }
}

/// Who surely reads something, of those who see what is in its directory.
fn readers_of(above: Audience, stat: &Stat) -> Audience {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => above,
        FileType::Directory => above.surely(mode_of(stat), stat.st_gid, READ | PASS),
        _ => above.surely(mode_of(stat), stat.st_gid, READ),
    }
}

/// Whether the permission bits of something hide it from nobody.
pub fn is_open(stat: &Stat) -> bool {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => true,
        FileType::Directory => is_open_directory(mode_of(stat)),
        _ => mode_of(stat) & 0o044 == 0o044,
    }
}

/// As [`is_open`], for a directory with this mode.
pub fn is_open_directory(mode: u32) -> bool {
    mode & 0o055 == 0o055
}
