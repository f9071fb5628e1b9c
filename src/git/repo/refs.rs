//! Reading refs while other programs pack, prune and delete them. gix reads the packed refs before the file of a ref, and so
//! misses one that is packed and pruned in between; git reads them last.
//!
//! Where they are in tables (`extensions.refStorage`), gix knows nothing of them: there git is asked for each.

use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::git::repo::aliases::symbolic_refs;
use crate::git::repo::process::Git;
use crate::git::repo::told::{Answer, LIST, Tables};
use crate::model::bytes::{in_quotes, lossless};
use crate::model::operation::InProgress;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::refs::file::Store;
use gix::refs::{FullName, FullNameRef, Target};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How many refs may stand for each other, as in git.
const SYMBOLIC_DEPTH: usize = 5;

/// How it fails to read a reflog that is not there: there may be refs below that name, or one above.
pub const NO_LOG: [ErrorKind; 3] = [ErrorKind::NotFound, ErrorKind::IsADirectory, ErrorKind::NotADirectory];

/// A ref, and the object that it points to: none if it stands for another ref.
pub type Listed = (FullName, Option<ObjectId>);

/// The setting that says how a repository keeps its refs.
pub const FORMAT: &str = "extensions.refStorage";

/// Whether a repository has its refs in tables.
pub fn has_tables(gix: &gix::Repository) -> bool {
    gix.config_snapshot().string(FORMAT).is_some_and(|format| format == "reftable")
}

/// Where a ref points now.
pub fn value(gix: &gix::Repository, name: &FullNameRef) -> Result<Option<Target>> {
    let git = |args: &[&OsStr]| Git::new(gix.git_dir(), gix.workdir().unwrap_or(gix.git_dir()), args).for_oxundo();
    if has_tables(gix) { value_by_git(name, |args| git(args).ask()) } else { value_in_files(&gix.refs, name) }
}

fn value_by_git(name: &FullNameRef, git: impl Fn(&[&OsStr]) -> Result<Answer>) -> Result<Option<Target>> {
    let wanted = OsStr::from_bytes(name.as_bstr());
    let unread = || {
        Refusal::new(Code::Corrupt, format!("git cannot read {}", in_quotes(name.as_bstr())))
            .hint("run 'oxundo doctor': it says what is damaged")
    };
    let is_below_refs = name.as_bstr().starts_with(b"refs/");
    if is_below_refs {
        let (code, printed) = git(&["for-each-ref".as_ref(), LISTING.as_ref(), wanted])?;
        if code != 0 {
            return Err(unread().into());
        }
        for (found, id) in listed_refs(&printed)? {
            if let (true, Some(id)) = (found.as_ref() == name, id) {
                return Ok(Some(Target::Object(id)));
            }
        }
    }
    // One that leads nowhere is in no list.
    let (code, printed) = git(&["symbolic-ref".as_ref(), "-q".as_ref(), "--no-recurse".as_ref(), wanted])?;
    match code {
        0 => return Ok(Some(Target::Symbolic(FullName::try_from(BString::from(printed.trim_end()))?))),
        1 if is_below_refs => return Ok(None),
        1 => {}
        _ => return Err(unread().into()),
    }
    let (code, printed) = git(&["rev-parse".as_ref(), "--verify".as_ref(), "-q".as_ref(), wanted])?;
    if code == 0 { Ok(Some(Target::Object(ObjectId::from_hex(printed.trim())?))) } else { Ok(None) }
}

fn value_in_files(store: &Store, name: &FullNameRef) -> Result<Option<Target>> {
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
pub fn object(gix: &gix::Repository, name: &FullNameRef) -> Result<Option<ObjectId>> {
    Ok(resolved(|name| value(gix, name), name.to_owned())?.1)
}

/// The ref that one stands for in the end, which may be itself or not be there yet, and the object that it points to, where this
/// says what each points to.
pub fn resolved(
    value: impl Fn(&FullNameRef) -> Result<Option<Target>>,
    name: FullName,
) -> Result<(FullName, Option<ObjectId>)> {
    let mut last = name;
    for _ in 0..=SYMBOLIC_DEPTH {
        match value(last.as_ref())? {
            Some(Target::Symbolic(next)) => last = next,
            found => return Ok((last, found.and_then(|target| target.try_id().map(ToOwned::to_owned)))),
        }
    }
    Ok((last, None))
}

/// What git is asked to print of each ref.
pub const LISTING: &str = "--format=%(objectname) %(symref) %(refname)";

pub fn listed_refs(printed: &[u8]) -> Result<Vec<Listed>> {
    let mut refs = Vec::new();
    for line in printed.lines() {
        let words: Vec<_> = line.splitn(3, |byte| *byte == b' ').collect();
        let [id, symbolic, name] = words[..] else { continue };
        let id = if symbolic.is_empty() { Some(ObjectId::from_hex(id)?) } else { None };
        refs.push((FullName::try_from(BString::from(name))?, id));
    }
    Ok(refs)
}

/// What git is asked to print of each line of a reflog. The parts have an end that is in none of them.
const LOG_LINE: &str = "--format=%H%x00%gn%x00%ge%x00%gd%x00%gs";

impl Repo {
    /// Whether the refs are in tables, and not in files.
    pub fn has_tables(&self) -> bool {
        has_tables(&self.gix)
    }

    /// Whether all is there by which git knows a repository, and this worktree of it.
    pub fn is_whole(&self) -> bool {
        let common = self.common_dir();
        let marks = [self.git_dir().join("HEAD"), common.join("HEAD"), common.join("refs")];
        let has_list = !self.has_tables() || common.join("reftable/tables.list").exists();
        has_list && marks.iter().all(|mark| mark.symlink_metadata().is_ok())
    }

    /// Where a ref points now.
    pub fn ref_value(&self, name: &FullNameRef) -> Result<Option<Target>> {
        if self.has_tables() {
            value_by_git(name, |args| self.told_of_refs(args))
        } else {
            value_in_files(&self.gix.refs, name)
        }
    }

    /// What git answers to a question that is about refs in tables alone.
    pub fn told_of_refs<I, S>(&self, question: I) -> Result<Answer>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let question: Vec<OsString> = question.into_iter().map(|word| word.as_ref().to_owned()).collect();
        let tables = self.tables();
        if let Some(answer) = tables.as_ref().and_then(|tables| self.told.borrow().known(tables, &question)) {
            return Ok(answer);
        }
        let answer = self.git_apart(&question).ask()?;
        if let Some(tables) = tables.filter(|tables| self.tables().as_ref() == Some(tables)) {
            self.told.borrow_mut().keep(tables, question, answer.clone());
        }
        Ok(answer)
    }

    /// None where they cannot be read.
    fn tables(&self) -> Option<Tables> {
        let list = |directory: &Path| std::fs::read(directory.join(LIST)).ok();
        Some([list(&self.common_dir)?, list(&self.git_dir)?])
    }

    /// The file of a ref's reflog.
    pub fn log_file(&self, name: &str) -> PathBuf {
        let directory = if name == "HEAD" { &self.git_dir } else { &self.common_dir };
        directory.join("logs").join(OsStr::from_bytes(&lossless::decode(name)))
    }

    /// All that is in a reflog, as git has it in a file; none where there is none.
    pub fn log_text(&self, name: &str) -> Result<Option<Vec<u8>>> {
        if self.has_tables() {
            return self.log_by_git(name);
        }
        let path = self.log_file(name);
        match std::fs::read(&path) {
            Err(error) if NO_LOG.contains(&error.kind()) => Ok(None),
            read => read.map(Some).with_context(|| format!("read '{}'", path.display())),
        }
    }

    /// A reflog out of tables. git names no lines of what is gone.
    fn log_by_git(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let name = OsStr::from_bytes(&lossless::decode(name)).to_owned();
        let is_there = self.git_apart(["reflog".as_ref(), "exists".as_ref(), name.as_os_str()]).ask()?.0 == 0;
        if !is_there {
            return Ok(None);
        }
        let args = ["log", "-g", "--no-show-signature", "--encoding=none", "--date=raw", LOG_LINE];
        let args = args.iter().map(OsStr::new).chain([name.as_os_str(), OsStr::new("--")]);
        // A ref that leads nowhere has a log which git does not show.
        let printed = self.git_apart(args).ask()?.1;
        let lines: Vec<&[u8]> = printed.lines().collect();
        let (mut text, mut from) = (Vec::new(), self.hash_kind().null().to_string().into_bytes());
        for line in lines.into_iter().rev() {
            let parts: Vec<&[u8]> = line.splitn(5, |byte| *byte == 0).collect();
            let [to, who, address, at, message] = parts[..] else { continue };
            let date = at.rsplit_str("@{").next().and_then(|date| date.strip_suffix(b"}")).unwrap_or_default();
            for part in [&from[..], b" ", to, b" ", who, b" <", address, b"> ", date, b"\t", message, b"\n"] {
                text.extend_from_slice(part);
            }
            from = to.to_vec();
        }
        Ok(Some(text))
    }

    /// The operation that git is in the middle of.
    pub fn in_progress(&self) -> Option<InProgress> {
        Some(InProgress::of(self.doing()?, |name| self.git_dir.join(name).exists()))
    }

    /// In git's word.
    fn doing(&self) -> Option<&'static str> {
        use gix::state::InProgress as P;
        let in_files = self.gix.state().map(|state| match state {
            P::ApplyMailbox => "am",
            P::ApplyMailboxRebase | P::Rebase | P::RebaseInteractive => "rebase",
            P::Bisect => "bisect",
            P::CherryPick | P::CherryPickSequence => "cherry-pick",
            P::Merge => "merge",
            P::Revert | P::RevertSequence => "revert",
        });
        in_files.or_else(|| self.picked_in_tables())
    }

    /// The operation that a ref tells of, where refs are in tables.
    fn picked_in_tables(&self) -> Option<&'static str> {
        if !self.has_tables() {
            return None;
        }
        let args = ["for-each-ref", "--include-root-refs", "--format=%(refname)"];
        let (_, printed) = self.told_of_refs(args).ok()?;
        let has = |name: &str| printed.lines().any(|line| line == name.as_bytes());
        let told = [("CHERRY_PICK_HEAD", "cherry-pick"), ("REVERT_HEAD", "revert")];
        told.into_iter().find(|(name, _)| has(name)).map(|(_, word)| word)
    }

    /// Every ref below a prefix that ends with a slash.
    pub fn refs_below(&self, prefix: &str) -> Result<Vec<Listed>> {
        if self.has_tables() {
            let (code, printed) = self.told_of_refs(["for-each-ref", LISTING, prefix])?;
            // What is wrong, git says where it fails.
            let mut listed = if code == 0 { listed_refs(&printed)? } else { self.listed_by_git(prefix)? };
            let leads_nowhere = |name: &BString| listed.iter().all(|(other, _)| other.as_bstr() != name.as_bstr());
            let symbolic = symbolic_refs(&self.common_dir).into_keys().filter(|name| name.starts_with_str(prefix));
            let nowhere: Vec<BString> = symbolic.filter(leads_nowhere).collect();
            for name in nowhere {
                listed.push((FullName::try_from(name)?, None));
            }
            return Ok(listed);
        }
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
        let printed = self.git_apart(["for-each-ref", LISTING, prefix]).run(b"");
        listed_refs(&printed.with_context(|| format!("read the refs below '{prefix}'"))?)
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
    fn what_others_do_to_tables_is_seen_at_once() {
        // git brings no reflogs along until 2.48.
        let f = Fixture::with(&["core.logAllRefUpdates=false"]);
        let [one, two] = ["1", "2"].map(|name| f.commit(name, name));
        if !f.git_agrees(&["refs", "migrate", "--ref-format=reftable"]) {
            return;
        }
        let f = f.reopened();
        let value = |name: &str| f.repo.ref_value(FullName::try_from(name).expect("a name").as_ref()).expect("read it");
        let main = || value("refs/heads/main").and_then(|target| target.try_id().map(ToOwned::to_owned));
        assert_eq!([main(), main()], [Some(two); 2]);
        f.git(&["update-ref", "refs/heads/main", &one.to_string()]);
        assert_eq!(main(), Some(one));
        f.git(&["pack-refs", "--all"]);
        assert_eq!(main(), Some(one));
        assert_eq!(value("refs/heads/new"), None);
        f.git(&["branch", "new"]);
        assert!(value("refs/heads/new").is_some() && f.repo.refs_below("refs/heads/").expect("list").len() == 2);
        f.git(&["symbolic-ref", "HEAD", "refs/heads/new"]);
        assert_eq!(value("HEAD"), Some(Target::Symbolic(FullName::try_from("refs/heads/new").expect("a name"))));
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
            assert_eq!(object(&f.repo.gix, name.as_ref()).expect("read it"), wanted, "{}", name.as_bstr());
        }
    }
}
