//! Since when something is as it is, by what the file system says: evidence of what changed first.

use crate::git::repo::platform::nanoseconds;
use crate::git::worktree::Worktree;
use crate::model::path::parents;
use gix::bstr::{BStr, ByteSlice};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

impl Worktree<'_> {
    /// Whether it is proven that a path has been as it is since before a time of [`file_clock`](crate::git::repo::platform::file_clock): nothing was written to the
    /// file, it was not renamed, and no directory above it was, which leaves the file's own times as they are.
    pub fn is_older(&self, path: &BStr, than: u64) -> bool {
        // A network's file system goes by another clock.
        if self.local_device().is_none() {
            return false;
        }
        let is_before = |about: &Metadata| nanoseconds(about.ctime(), about.ctime_nsec()) < than;
        let itself = match self.about(path) {
            Some(about) => is_before(&about),
            // It went, and its directory tells when.
            None => self.about(parents(path).next().unwrap_or_default()).is_some_and(|about| is_before(&about)),
        };
        // A directory that is renamed changes itself and the one that it is in.
        itself
            && parents(path).all(|directory| {
                let outer = parents(directory).next().unwrap_or_default();
                let one_is_before = |path| self.about(path).as_ref().is_some_and(is_before);
                one_is_before(directory) || one_is_before(outer)
            })
    }

    fn about(&self, path: &BStr) -> Option<Metadata> {
        let path: PathBuf =
            if path.is_empty() { self.path().to_owned() } else { self.path().join(path.to_path().ok()?) };
        path.symlink_metadata().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::platform::file_clock;
    use crate::git::repo::testing::Fixture;
    use std::fs;

    /// Waits until files have got later times than any did before.
    fn tick() -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        while file_clock() <= nanoseconds(now.tv_sec, now.tv_nsec) {
            std::thread::yield_now();
        }
        file_clock()
    }

    #[test]
    fn a_file_is_older_than_a_time_unless_it_or_a_directory_above_it_came_later() {
        let f = Fixture::new();
        let top = f.repo.top().to_owned();
        let is_older = |path: &str, than| Worktree::new(&f.repo).is_older(path.into(), than);
        for directory in ["a/b", "gone", "old"] {
            fs::create_dir_all(top.join(directory)).expect("make a directory");
            fs::write(top.join(directory).join("one"), "1").expect("write a file");
        }
        fs::remove_file(top.join("gone/one")).expect("remove it");
        let then = tick();
        assert!(is_older("a/b/one", then) && is_older("gone/one", then));
        fs::write(top.join("a/b/two"), "2").expect("write a file beside it");
        assert!(is_older("a/b/one", then) && !is_older("a/b/two", then));
        fs::write(top.join("old/one"), "2").expect("write it");
        assert!(!is_older("old/one", then));
        fs::rename(top.join("a/b"), top.join("a/c")).expect("rename it");
        assert!(!is_older("a/c/one", then), "its own times are as they were");
        assert!(!is_older("a/b/one", then), "it went");
    }
}
