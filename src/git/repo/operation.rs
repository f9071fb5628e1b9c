//! Reading what git is in the middle of: files of the worktree's own git directory, some of which are refs where git keeps
//! refs in tables. Large ones are not read, nor those that others cannot read, who could read what is copied from them.

use crate::git::repo::Repo;
use crate::git::repo::audience::{Audience, PASS, READ};
use crate::git::repo::large::blob_id;
use crate::git::repo::refs::{self, listed_refs};
use crate::model::operation::{DIRECTORIES, MARKS, MORE, ORIG_HEAD, Operation, PREPARED, is_mark, is_ref};
use anyhow::{Context, Result, ensure};
use gix::bstr::{BStr, BString, ByteSlice};
use gix::refs::{FullName, Target};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// How it fails to look at what is not there.
const ABSENT: [ErrorKind; 2] = [ErrorKind::NotFound, ErrorKind::NotADirectory];

/// What there is of an operation.
#[derive(Default)]
struct Found {
    files: BTreeMap<BString, Metadata>,
    /// What refs say, as files would.
    refs: BTreeMap<BString, Vec<u8>>,
    /// Something that is no file, or a directory with nothing in it.
    odd: Vec<BString>,
}

impl Repo {
    /// Where such a file is.
    pub fn operation_path(&self, path: &BStr) -> PathBuf {
        self.git_dir.join(OsStr::from_bytes(path))
    }

    /// Whether a file of an operation is a ref in a table.
    pub fn is_in_table(&self, path: &BStr) -> bool {
        self.has_tables() && is_ref(path)
    }

    /// What is in a file of an operation, or in the ref in its place.
    pub fn operation_file(&self, path: &BStr) -> Result<Option<Vec<u8>>> {
        if self.is_in_table(path) {
            let value = self.ref_value(FullName::try_from(path.to_owned())?.as_ref())?;
            return Ok(value.and_then(|target| match target {
                Target::Object(id) => Some(format!("{id}\n").into_bytes()),
                Target::Symbolic(_) => None,
            }));
        }
        let place = self.operation_path(path);
        match std::fs::read(&place) {
            Err(error) if ABSENT.contains(&error.kind()) => Ok(None),
            read => read.map(Some).with_context(|| format!("read '{}'", place.display())),
        }
    }

    /// What git is in the middle of, if it takes no more bytes than these.
    pub fn operation(&self, most: u64) -> Result<Operation> {
        let found = self.found_of_operation()?;
        let bytes: u64 = found.files.values().map(Metadata::len).sum();
        if bytes > most || !found.odd.is_empty() || self.hides_operation(&found) {
            return self.unread(&found);
        }
        let mut operation = Operation::default();
        for (path, content) in &found.refs {
            operation.files.insert(path.clone(), self.put_blob(content)?);
        }
        for path in found.files.keys() {
            // What is gone meanwhile is not there.
            if let Some(content) = self.operation_file(path.as_bstr())? {
                operation.files.insert(path.clone(), self.put_blob(&content)?);
            }
        }
        Ok(operation)
    }

    fn found_of_operation(&self) -> Result<Found> {
        let mut found = Found::default();
        if self.has_tables() {
            found.refs = self.operation_refs()?;
        }
        for name in MARKS {
            self.look_for(name, &mut found)?;
        }
        for directory in DIRECTORIES.iter().filter(|directory| !directory.starts_with("refs/")) {
            self.list_below(directory, &mut found)?;
        }
        let all = || found.files.keys().chain(found.refs.keys());
        let is_under_way = !found.odd.is_empty() || all().any(|path| is_mark(path.as_bstr()));
        let is_am = all().any(|path| path.starts_with(b"rebase-apply/"));
        for name in PREPARED {
            self.look_for(name, &mut found)?;
        }
        if !is_under_way {
            found.refs.clear();
            return Ok(found);
        }
        for name in MORE.iter().filter(|name| is_am || **name != ORIG_HEAD) {
            self.look_for(name, &mut found)?;
        }
        if !is_am {
            found.refs.remove(BStr::new(ORIG_HEAD));
        }
        for directory in DIRECTORIES.iter().filter(|directory| directory.starts_with("refs/") && !self.has_tables()) {
            self.list_below(directory, &mut found)?;
        }
        // An empty directory of refs is none.
        found.odd.retain(|path| !path.starts_with(b"refs/"));
        Ok(found)
    }

    fn look_for(&self, name: &str, found: &mut Found) -> Result<()> {
        let path = BString::from(name);
        if self.is_in_table(path.as_bstr()) {
            return Ok(());
        }
        let place = self.operation_path(path.as_bstr());
        match place.symlink_metadata() {
            Ok(about) if about.is_file() => drop(found.files.insert(path, about)),
            Ok(_) => found.odd.push(path),
            Err(error) if ABSENT.contains(&error.kind()) => {}
            Err(error) => return Err(error).with_context(|| format!("look at '{}'", place.display())),
        }
        Ok(())
    }

    fn list_below(&self, directory: &str, found: &mut Found) -> Result<()> {
        let place = self.operation_path(directory.into());
        match place.symlink_metadata() {
            Ok(about) if about.is_dir() => {}
            // A link, for example: it is followed by nobody.
            Ok(_) => {
                found.odd.push(directory.into());
                return Ok(());
            }
            Err(_) => return Ok(()),
        }
        let mut left = vec![BString::from(directory)];
        while let Some(directory) = left.pop() {
            let place = self.operation_path(directory.as_bstr());
            let entries = match std::fs::read_dir(&place) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                listed => listed.with_context(|| format!("read '{}'", place.display()))?,
            };
            let mut is_empty = true;
            for entry in entries {
                let name = entry.with_context(|| format!("read '{}'", place.display()))?.file_name().into_vec();
                is_empty = false;
                let path = BString::from([directory.as_slice(), b"/", &name].concat());
                match self.operation_path(path.as_bstr()).symlink_metadata() {
                    Ok(about) if about.is_file() => drop(found.files.insert(path, about)),
                    Ok(about) if about.is_dir() => left.push(path),
                    Ok(_) => found.odd.push(path),
                    // It is gone meanwhile.
                    Err(_) => {}
                }
            }
            if is_empty {
                found.odd.push(directory);
            }
        }
        Ok(())
    }

    /// The refs that git keeps in tables: each as the file that it would be.
    fn operation_refs(&self) -> Result<BTreeMap<BString, Vec<u8>>> {
        let names = MARKS.iter().chain(&MORE).filter(|name| is_ref(BStr::new(name)));
        let below = DIRECTORIES.iter().filter(|directory| directory.starts_with("refs/"));
        let args = ["for-each-ref", "--include-root-refs", refs::LISTING].into_iter();
        let (code, printed) = self.told_of_refs(args.chain(names.chain(below).copied()))?;
        ensure!(code == 0, "git cannot read the refs of what is in progress");
        let listed = listed_refs(&printed)?.into_iter();
        Ok(listed
            .filter_map(|(name, id)| Some((name.as_bstr().to_owned(), format!("{}\n", id?).into_bytes())))
            .collect())
    }

    fn hides_operation(&self, found: &Found) -> bool {
        let audience = self.audience();
        if audience == Audience::Nobody {
            return false;
        }
        // Nothing can be read in an empty one: git closes such a one of every bisect.
        found.files.iter().filter(|(_, about)| about.len() > 0).any(|(path, about)| {
            let above = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            let directories = above.map(|(end, _)| self.operation_path(path[..end].as_bstr()));
            let readers = directories
                .filter_map(|directory| directory.metadata().ok())
                .fold(Audience::Everybody, |readers, about| readers.surely(about.mode(), about.gid(), READ | PASS));
            !readers.surely(about.mode(), about.gid(), READ).includes(&audience)
        })
    }

    /// What tells whether it is still the same, though it is not read.
    fn unread(&self, found: &Found) -> Result<Operation> {
        let mut text = Vec::new();
        for (path, about) in &found.files {
            let about = (about.ino(), about.len(), about.ctime(), about.ctime_nsec());
            text.extend([path.as_slice(), format!(" {about:?}\n").as_bytes()].concat());
        }
        for path in found.odd.iter().chain(found.refs.keys()) {
            text.extend([path.as_slice(), b"\n"].concat());
        }
        text.extend(found.refs.values().flatten());
        let id = blob_id(&text, self.hash_kind())?;
        let paths = found.files.keys().chain(found.refs.keys()).cloned();
        let read = Operation { files: paths.map(|path| (path, id)).collect(), unread: None };
        // The word is for hints.
        Ok(Operation { files: BTreeMap::new(), unread: Some(format!("{} {id}", read.word())) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;
    use std::os::unix::fs::PermissionsExt;

    const MOST: u64 = 1 << 20;

    fn names(operation: &Operation) -> Vec<String> {
        operation.files.keys().map(ToString::to_string).collect()
    }

    fn write(f: &Fixture, name: &str, content: &str) {
        let path = f.repo.git_dir().join(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("make a directory");
        std::fs::write(path, content).expect("write a file");
    }

    #[test]
    fn what_git_leaves_behind_belongs_to_no_operation_and_a_message_is_prepared_without_one() {
        let f = Fixture::new();
        for name in ["AUTO_MERGE", "ORIG_HEAD", "MERGE_RR", "refs/bisect/bad", "REBASE_HEAD"] {
            write(&f, name, "left\n");
        }
        assert_eq!(f.repo.operation(MOST).expect("read it"), Operation::default());
        write(&f, "SQUASH_MSG", "prepared\n");
        let prepared = f.repo.operation(MOST).expect("read it");
        assert_eq!((names(&prepared), prepared.is_under_way()), (vec!["SQUASH_MSG".to_owned()], false));
        write(&f, "MERGE_HEAD", "id\n");
        let merge = f.repo.operation(MOST).expect("read it");
        assert_eq!(
            names(&merge),
            ["AUTO_MERGE", "MERGE_HEAD", "MERGE_RR", "REBASE_HEAD", "SQUASH_MSG", "refs/bisect/bad"]
        );
        write(&f, "rebase-apply/0001", "patch\n");
        assert!(names(&f.repo.operation(MOST).expect("read it")).contains(&ORIG_HEAD.to_owned()), "am needs it");
    }

    #[test]
    fn what_is_too_large_odd_or_closed_is_not_read_and_known_again() {
        let f = Fixture::new();
        write(&f, "MERGE_HEAD", "id\n");
        write(&f, "MERGE_MSG", &"x".repeat(5000));
        let large = f.repo.operation(4096).expect("read it");
        assert!(large.unread.is_some() && large.files.is_empty() && large.is_under_way());
        assert_eq!(f.repo.operation(4096).expect("read it"), large);
        write(&f, "MERGE_MSG", &"x".repeat(6000));
        assert_ne!(f.repo.operation(4096).expect("read it"), large);
        assert!(f.repo.operation(MOST).expect("read it").unread.is_none());
        std::fs::create_dir(f.repo.git_dir().join("rebase-merge")).expect("make a directory");
        assert!(f.repo.operation(MOST).expect("read it").unread.is_some(), "git takes it for a rebase");
        std::fs::remove_dir(f.repo.git_dir().join("rebase-merge")).expect("remove a directory");
        let message = f.repo.git_dir().join("MERGE_MSG");
        std::fs::set_permissions(&message, PermissionsExt::from_mode(0o600)).expect("close it");
        for audience in [Audience::Everybody, Audience::Nobody] {
            *f.repo.audience.borrow_mut() = Some(audience.clone());
            let is_read = f.repo.operation(MOST).expect("read it").unread.is_none();
            assert_eq!(is_read, audience == Audience::Nobody, "{audience:?}");
        }
    }
}
