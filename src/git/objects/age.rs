//! Which objects were there before something began, by when their files were written.

use crate::git::objects::Objects;
use gix::ObjectId;
use gix::objs::Exists;
use std::collections::HashSet;
use std::io::Result;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Some file systems tell times by twos of seconds, or by another machine's clock.
const NEAREST: Duration = Duration::from_secs(2);

impl Objects<'_> {
    /// Those of these commits that are known to have been written before a time, in nanoseconds since 1970. Nothing is known of one
    /// that git has written once more since then, as into a pack.
    pub fn older_than(&self, commits: &[ObjectId], time: u64) -> HashSet<ObjectId> {
        let since = SystemTime::UNIX_EPOCH + Duration::from_nanos(time).saturating_sub(NEAREST);
        let directory = self.repo.gix.objects.store_ref().path();
        let mut are_packs_older = None;
        let mut is_older = |id: &&ObjectId| {
            let name = id.to_string();
            if let Ok(is_older) = is_file_older(&directory.join(&name[..2]).join(&name[2..]), since) {
                return is_older;
            }
            // What is still in memory alone is new.
            *are_packs_older.get_or_insert_with(|| are_all_older(&directory.join("pack"), since).unwrap_or(false))
                && (*self.repo.gix.objects).exists(id)
        };
        commits.iter().filter(|id| is_older(id)).copied().collect()
    }
}

fn is_file_older(path: &Path, since: SystemTime) -> Result<bool> {
    Ok(path.symlink_metadata()?.modified()? < since)
}

fn are_all_older(directory: &Path, since: SystemTime) -> Result<bool> {
    for entry in directory.read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "pack") && !is_file_older(&path, since)? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;

    #[test]
    fn what_was_written_again_since_then_is_not_known_to_be_older() {
        let f = Fixture::new();
        let (old, new) = (f.commit("a", "one"), f.commit("a", "two"));
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let set = |path: &Path, seconds| {
            let file = std::fs::File::open(path).expect("open");
            file.set_modified(at(seconds)).expect("set its time");
        };
        let objects = f.repo.git_dir().join("objects");
        let loose = |id: ObjectId| objects.join(&id.to_string()[..2]).join(&id.to_string()[2..]);
        set(&loose(old), 1000);
        set(&loose(new), 2000);
        let older = |seconds: u64| Objects::new(&f.repo).older_than(&[old, new], seconds * 1_000_000_000);
        assert_eq!(older(1500), [old].into());
        assert_eq!(older(1001), [].into(), "the file system may not tell these apart");
        f.git(&["repack", "-adq"]);
        assert_eq!(older(1500), [].into(), "the pack is new");
        let packs = objects.join("pack").read_dir().expect("read").flatten().map(|entry| entry.path());
        packs.for_each(|pack| set(&pack, 1000));
        assert_eq!(older(1500), [old, new].into());
    }
}
