//! Reading refs while other programs pack, prune and delete them. gix reads the packed refs before the file of a ref, and so
//! misses one that is packed and pruned in between; git reads them last.

use crate::git::repo::Repo;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::refs::file::Store;
use gix::refs::{FullName, FullNameRef, Target};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;

/// How many refs may stand for each other, as in git.
const SYMBOLIC_DEPTH: usize = 5;

/// A ref, and the object that it points to: none if it stands for another ref.
pub type Listed = (FullName, Option<ObjectId>);

/// Where a ref points now.
pub fn value(store: &Store, name: &FullNameRef) -> Result<Option<Target>> {
    if let Some(target) = linked(store, name) {
        return Ok(Some(Target::Symbolic(target)));
    }
    // gix also tries 'refs/heads/main' as the short form of other names.
    if let Some(loose) = store.try_find_packed(name, None)?.filter(|found| found.name.as_ref() == name) {
        return Ok(Some(loose.target));
    }
    let Some(packed) = store.open_packed_buffer()? else { return Ok(None) };
    let found = packed.try_find(name)?.filter(|found| found.name == name);
    Ok(found.map(|found| Target::Object(found.target())))
}

/// The ref whose name a ref's file is a link to: so git made symbolic refs once, and does with `core.preferSymlinkRefs`. gix
/// follows the link.
fn linked(store: &Store, name: &FullNameRef) -> Option<FullName> {
    let own = is_of_one_worktree(name.as_bstr());
    let directory = store.common_dir().filter(|_| !own).unwrap_or(store.git_dir());
    let target = std::fs::read_link(directory.join(OsStr::from_bytes(name.as_bstr()))).ok()?;
    let target = BString::from(target.into_os_string().into_vec());
    FullName::try_from(target).ok().filter(|target| target.as_bstr().starts_with(b"refs/"))
}

/// Whether each worktree has a ref of this name.
fn is_of_one_worktree(name: &BStr) -> bool {
    let below = [&b"refs/worktree/"[..], b"refs/bisect/", b"refs/rewritten/"];
    !name.starts_with(b"refs/") || below.iter().any(|prefix| name.starts_with(prefix))
}

/// The object that a ref leads to, if it need be by other refs.
pub fn object(store: &Store, name: &FullNameRef) -> Result<Option<ObjectId>> {
    Ok(resolved(store, name.to_owned())?.1)
}

/// The ref that one stands for in the end, which may be itself or not be there yet, and the object that it points to.
pub fn resolved(store: &Store, name: FullName) -> Result<(FullName, Option<ObjectId>)> {
    let mut last = name;
    for _ in 0..=SYMBOLIC_DEPTH {
        match value(store, last.as_ref())? {
            Some(Target::Symbolic(next)) => last = next,
            found => return Ok((last, found.and_then(|target| target.try_id().map(ToOwned::to_owned)))),
        }
    }
    Ok((last, None))
}

impl Repo {
    /// Every ref below a prefix that ends with a slash.
    pub fn refs_below(&self, prefix: &str) -> Result<Vec<Listed>> {
        let packed = self.gix.refs.packed_refs_path();
        let stamp =
            || packed.metadata().ok().map(|about| (about.ino(), about.mtime(), about.mtime_nsec(), about.len()));
        let before = stamp();
        // gix fails at a ref that is deleted while it lists, and at one that is damaged, which git leaves out.
        match self.listed(prefix) {
            Ok(refs) if stamp() == before => Ok(refs),
            _ => self.listed_by_git(prefix),
        }
    }

    fn listed(&self, prefix: &str) -> Result<Vec<Listed>> {
        // It knows the packed refs by their time, and two writers can come within one tick. Where there are none it fails.
        let _ = self.gix.refs.force_refresh_packed_buffer();
        let refs = self.gix.references()?;
        let refs = refs.prefixed(prefix)?.map(|found| {
            let found = found.map_err(|error| anyhow::anyhow!("read a ref: {error}"))?;
            Ok((found.name().to_owned(), found.target().try_id().map(ToOwned::to_owned)))
        });
        refs.collect()
    }

    fn listed_by_git(&self, prefix: &str) -> Result<Vec<Listed>> {
        let args = ["for-each-ref", "--format=%(objectname) %(symref) %(refname)", prefix];
        let printed = self.git(args).run(b"").with_context(|| format!("read the refs below '{prefix}'"))?;
        let mut refs = Vec::new();
        for line in printed.lines() {
            let words: Vec<_> = line.splitn(3, |byte| *byte == b' ').collect();
            let [id, symbolic, name] = words[..] else { continue };
            let id = if symbolic.is_empty() { Some(ObjectId::from_hex(id)?) } else { None };
            refs.push((FullName::try_from(BString::from(name))?, id));
        }
        Ok(refs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;

    fn sorted(mut refs: Vec<Listed>) -> Vec<Listed> {
        refs.sort();
        refs
    }

    #[test]
    fn git_lists_refs_as_gix_does() {
        let f = Fixture::new();
        let listed = || sorted(f.repo.refs_below("refs/heads/").expect("list them"));
        let by_git = || sorted(f.repo.listed_by_git("refs/heads/").expect("ask git"));
        assert_eq!((listed(), by_git()), (Vec::new(), Vec::new()));
        let [first, second] = ["1", "2"].map(|name| f.commit(name, name));
        f.git(&["branch", "a/packed", &first.to_string()]);
        f.git(&["pack-refs", "--all"]);
        f.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
        f.git(&["branch", "b", &second.to_string()]);
        assert_eq!(listed().iter().filter_map(|(_, id)| *id).collect::<Vec<_>>(), [first, second, second]);
        assert_eq!(listed(), by_git());
        std::fs::write(f.repo.git_dir().join("refs/heads/damaged"), "no id").expect("damage a ref");
        assert_eq!(listed(), by_git(), "without it, as git has it");
    }

    #[test]
    fn refs_that_stand_for_others_lead_to_an_object_or_nowhere() {
        let f = Fixture::new();
        let commit = f.commit("1", "1");
        for (name, target) in [("one", "main"), ("two", "one"), ("round", "trip"), ("trip", "round"), ("gone", "none")]
        {
            f.git(&["symbolic-ref", &format!("refs/heads/{name}"), &format!("refs/heads/{target}")]);
        }
        for (name, wanted) in [("main", Some(commit)), ("two", Some(commit)), ("round", None), ("gone", None)] {
            let name = FullName::try_from(format!("refs/heads/{name}")).expect("a name");
            assert_eq!(object(&f.repo.gix.refs, name.as_ref()).expect("read it"), wanted, "{}", name.as_bstr());
        }
    }
}
