//! Which objects were there before something began, by when their files were written.

use crate::git::objects::Objects;
use gix::ObjectId;
use gix::hash::Kind;
use gix::objs::Exists;
use gix::odb::pack::index::File;
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
        let mut newer = None;
        let mut is_older = |id: &&ObjectId| {
            let name = id.to_string();
            if let Ok(is_older) = is_file_older(&directory.join(&name[..2]).join(&name[2..]), since) {
                return is_older;
            }
            let newer = newer.get_or_insert_with(|| newer_packs(&directory.join("pack"), since, self.repo.hash_kind()));
            let is_in_none = newer.as_ref().is_ok_and(|packs| packs.iter().all(|pack| pack.lookup(id).is_none()));
            // What is still in memory alone is new.
            is_in_none && (*self.repo.gix.objects).exists(id)
        };
        commits.iter().filter(|id| is_older(id)).copied().collect()
    }
}

fn is_file_older(path: &Path, since: SystemTime) -> Result<bool> {
    Ok(path.symlink_metadata()?.modified()? < since)
}

/// The packs that are not older, by their indexes.
fn newer_packs(directory: &Path, since: SystemTime, hash: Kind) -> anyhow::Result<Vec<File>> {
    let mut newer = Vec::new();
    for entry in directory.read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "idx") && !is_file_older(&path, since)? {
            newer.push(File::at(path, hash)?);
        }
    }
    Ok(newer)
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
        f.commit("a", "three");
        f.git(&["repack", "-dq"]);
        assert_eq!(older(1500), [old, new].into(), "they are not in the new one");
    }
}
