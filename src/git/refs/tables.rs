//! Moving refs that git keeps in tables (`extensions.refStorage`).
//!
//! What git itself leaves of a transaction when it is killed is a lock that nobody can tell from a living git's, and of several
//! moves one may be made and the next not. So git works on a copy: the lists of tables are locked as files of refs are
//! (`lockfile.rs`), links to the tables and the lists are put into a git directory in the scratch, and there git writes new
//! tables, in as many steps as it takes. Then these are linked to where the others are, and the list that names them takes the
//! place of the one before: all moves are made at once. Tables are never written again, so that links to them are as good as
//! copies. A linked worktree has a list of its own, with its HEAD; that one follows, as HEAD follows the branches in files.

use crate::git::refs::lists::{COPY, table_names};
use crate::git::refs::lockfile::RefLocks;
use crate::git::refs::{Edit, Refs, STASH};
use crate::git::repo::process::Git;
use crate::git::repo::scratch::remove_if_there;
use crate::model::bytes::lossless;
use crate::model::checkpoint::StashEntry;
use anyhow::{Context, Result, ensure};
use gix::bstr::ByteSlice;
use gix::refs::Target;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// What git has in the place of HEAD's file.
const NO_HEAD: &str = "ref: refs/heads/.invalid\n";

/// From so many tables on they are made one. git's own commands do it too.
const MANY: usize = 16;

/// The tables that one list names.
#[derive(Debug)]
struct Stack {
    /// The list's name, from the git directory of all worktrees.
    list: String,
    /// The directory that it is in.
    place: PathBuf,
    /// That of the copy.
    copy: PathBuf,
    /// The tables' names.
    names: Vec<String>,
}

impl Stack {
    fn now(&self) -> Result<Vec<String>> {
        table_names(&self.copy.join("tables.list"))
    }
}

impl Refs<'_> {
    /// Locks the lists; and where there are many tables, these too, if nobody else has one of them.
    pub(super) fn lock_tables(&self) -> Result<RefLocks<'_>> {
        let lists = self.table_lists();
        let names = [lists.clone(), self.too_many(&lists)?].concat();
        let mut locks = RefLocks::begin(*self, &names.iter().map(String::as_str).collect::<Vec<_>>())?;
        lists.iter().try_for_each(|list| locks.take(list))?;
        let tables = self.too_many(&lists)?;
        // Others may have come since.
        if tables.iter().all(|table| names.contains(table)) {
            locks.take_all(&tables);
        }
        Ok(locks)
    }

    /// The tables of all lists if those of one are many.
    fn too_many(&self, lists: &[String]) -> Result<Vec<String>> {
        let (mut all, mut is_many) = (Vec::new(), false);
        for list in lists {
            let names = table_names(&self.ref_file(list))?;
            let place = list.strip_suffix("tables.list").unwrap_or_default();
            is_many |= names.len() >= MANY;
            all.extend(names.into_iter().map(|name| format!("{place}{name}")));
        }
        Ok(if is_many { all } else { Vec::new() })
    }

    /// Makes the edits, all or none, if `still` says so once the lists are locked.
    pub(super) fn edit_tables(&self, edits: &[Edit], message: &str, still: impl FnOnce() -> Result<()>) -> Result<()> {
        let locks = self.lock_tables()?;
        edits.iter().try_for_each(|edit| self.expect(edit, &lossless::encode(edit.name.as_bstr())))?;
        still()?;
        let tables = Tables::copy(*self, &locks)?;
        tables.make(edits, message)?;
        tables.publish(&locks)
    }

    /// Takes the lines of a log out that are older than a time.
    pub(super) fn expire_log_in_tables(&self, name: &str, limit: i64) -> Result<()> {
        let locks = self.lock_tables()?;
        let tables = Tables::copy(*self, &locks)?;
        let [all, unreachable] = ["--expire", "--expire-unreachable"].map(|option| format!("{option}=@{limit} +0000"));
        let name = lossless::decode(name);
        let args: [&OsStr; 5] =
            ["reflog".as_ref(), "expire".as_ref(), all.as_ref(), unreachable.as_ref(), OsStr::from_bytes(&name)];
        tables.git(&args).run(b"")?;
        tables.publish(&locks)
    }

    /// Makes this the stash list. The lists are locked.
    pub(super) fn stash_in_tables(&self, locks: &RefLocks<'_>, list: &[StashEntry], is_there: bool) -> Result<()> {
        let tables = Tables::copy(*self, locks)?;
        if is_there {
            tables.update("", false, &deletion(STASH.as_bytes()))?;
        }
        for entry in list.iter().rev() {
            tables.push_stash(entry)?;
        }
        tables.publish(locks)
    }
}

/// A copy of the lists in which git makes new tables. Dropped, it goes.
struct Tables<'r> {
    refs: Refs<'r>,
    top: PathBuf,
    git_dir: PathBuf,
    stacks: Vec<Stack>,
    /// Whether all tables may be replaced, since their locks are held.
    folds: bool,
}

impl Drop for Tables<'_> {
    fn drop(&mut self) {
        // Where it fails for good, whoever makes the next copy does it.
        let _ = std::fs::remove_dir_all(&self.top).or_else(|_| std::fs::remove_dir_all(&self.top));
    }
}

impl<'r> Tables<'r> {
    fn copy(refs: Refs<'r>, locks: &RefLocks<'_>) -> Result<Self> {
        let top = refs.repo.scratch()?.join(COPY);
        if top.exists() {
            std::fs::remove_dir_all(&top).with_context(|| format!("remove '{}'", top.display()))?;
        }
        let mut tables = Self { refs, git_dir: top.clone(), top, stacks: Vec::new(), folds: false };
        tables.fill(locks).with_context(|| format!("copy the tables of refs to '{}'", tables.top.display()))?;
        Ok(tables)
    }

    fn fill(&mut self, locks: &RefLocks<'_>) -> Result<()> {
        let lists = self.refs.table_lists();
        let tables = self.refs.too_many(&lists)?;
        self.folds = !tables.is_empty() && tables.iter().all(|name| locks.has(&self.refs.ref_file(name)));
        if lists.len() > 1 {
            self.git_dir = self.top.join("worktrees/own");
            make_git_dir(&self.git_dir)?;
            std::fs::write(self.git_dir.join("commondir"), "../..\n")?;
            std::fs::write(self.git_dir.join("gitdir"), self.refs.repo.top().join(".git").as_os_str().as_bytes())?;
        }
        make_git_dir(&self.top)?;
        std::fs::write(self.top.join("config"), self.config())?;
        for (list, git_dir) in lists.into_iter().zip([&self.top, &self.git_dir]) {
            let file = self.refs.ref_file(&list);
            let place = file.parent().map(Path::to_owned).unwrap_or_default();
            let (names, copy) = (table_names(&file)?, git_dir.join(COPY));
            for name in &names {
                link_or_copy(&place.join(name), &copy.join(name))?;
                if !self.folds {
                    // git leaves a table as it is of which somebody else seems to be making another.
                    File::create(copy.join(format!("{name}.lock")))?;
                }
            }
            std::fs::write(copy.join("tables.list"), listed(&names))?;
            self.stacks.push(Stack { list, place, copy, names });
        }
        Ok(())
    }

    /// What git has to know of the repository to write into it.
    fn config(&self) -> String {
        let logs = self.refs.repo.setting("core.logAllRefUpdates").map_or("true".to_owned(), |set| set.to_string());
        let hash = self.refs.repo.hash_kind();
        format!(
            "[core]\n\trepositoryFormatVersion = 1\n\tbare = false\n\tlogAllRefUpdates = {logs}\n[extensions]\n\trefStorage = reftable\n\tobjectFormat = {hash}\n"
        )
    }

    fn git<S: AsRef<OsStr>>(&self, args: &[S]) -> Git {
        let repo = self.refs.repo;
        let (who, mut time) = (repo.committer(), gix::date::parse::TimeBuf::default());
        let who = who.to_ref(&mut time);
        // What keeps tables apart here is none of the tables' locks in the repository.
        let git = Git::new(&self.git_dir, repo.top(), args).for_oxundo();
        git.env("GIT_OBJECT_DIRECTORY", repo.common_dir.join("objects"))
            .env("GIT_COMMITTER_NAME", OsStr::from_bytes(who.name))
            .env("GIT_COMMITTER_EMAIL", OsStr::from_bytes(who.email))
            .env("GIT_COMMITTER_DATE", format!("@{}", who.time.trim()))
    }

    /// Has git make what these lines say, in one transaction.
    fn update(&self, message: &str, logs: bool, lines: &[u8]) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let message = if message.is_empty() { vec![] } else { vec!["-m".to_owned(), message.to_owned()] };
        let logs = logs.then(|| "--create-reflog".to_owned());
        let args = ["update-ref", "--no-deref", "--stdin", "-z"].map(str::to_owned).into_iter();
        let args: Vec<OsString> = args.chain(logs).chain(message).map(OsString::from).collect();
        self.git(&args).run(lines).map(drop)
    }

    fn make(&self, edits: &[Edit], message: &str) -> Result<()> {
        let (head, others): (Vec<&Edit>, Vec<&Edit>) = edits.iter().partition(|edit| edit.name.as_bstr() == "HEAD");
        let goes_along = |head: &&&Edit| match &head.to {
            // git writes HEAD's log itself where it moves its branch.
            Some(Target::Symbolic(branch)) => {
                head.from == head.to && others.iter().any(|edit| edit.name == *branch && edit.logged.is_some())
            }
            _ => false,
        };
        let head = head.iter().find(|head| !goes_along(head));
        if let Some((_, to)) = head.and_then(|head| head.logged) {
            // From here on no branch is HEAD's, and its log has the one line that is wanted.
            self.update(message, false, &updating(b"HEAD", &to.to_string()))?;
        }
        let (gone, moved): (Vec<&Edit>, Vec<&Edit>) = others.into_iter().partition(|edit| edit.to.is_none());
        self.update(message, false, &gone.iter().flat_map(|edit| deletion(edit.name.as_bstr())).collect::<Vec<_>>())?;
        let (mut lines, logs) = (Vec::new(), moved.iter().any(|edit| edit.always_logged));
        for edit in moved.iter().filter(|edit| edit.from != edit.to) {
            if let Some(Target::Object(id)) = &edit.to {
                lines.extend(updating(edit.name.as_bstr(), &id.to_string()));
            }
        }
        self.update(message, logs, &lines)?;
        for edit in moved.into_iter().chain(head.copied()) {
            if let Some(Target::Symbolic(target)) = &edit.to {
                self.point(edit.name.as_bstr(), target.as_bstr())?;
            }
        }
        Ok(())
    }

    /// Has one ref stand for another, without a line in its log.
    fn point(&self, name: &[u8], target: &[u8]) -> Result<()> {
        let [name, target] = [name, target].map(OsStr::from_bytes);
        let logged = || -> Result<usize> {
            let asked =
                self.git(&["log".as_ref(), "-g".as_ref(), "--format=%H".as_ref(), name, "--".as_ref()]).ask()?;
            Ok(if asked.0 == 0 { asked.1.lines().count() } else { 0 })
        };
        let before = logged()?;
        self.git(&["symbolic-ref".as_ref(), name, target]).run(b"")?;
        if logged()? > before {
            let mut newest = name.to_owned();
            newest.push("@{0}");
            self.git(&["reflog".as_ref(), "delete".as_ref(), newest.as_os_str()]).run(b"")?;
        }
        Ok(())
    }

    fn push_stash(&self, entry: &StashEntry) -> Result<()> {
        let [name, email, message] = [&entry.name, &entry.email, &entry.message].map(|text| lossless::decode(text));
        let id = entry.id.to_string();
        let mut args = vec![OsStr::new("update-ref"), OsStr::new("--create-reflog")];
        if !message.is_empty() {
            args.extend([OsStr::new("-m"), OsStr::from_bytes(&message)]);
        }
        args.extend([OsStr::new(STASH), OsStr::new(&id)]);
        let git = self.git(&args).env("GIT_COMMITTER_NAME", OsStr::from_bytes(&name));
        let git = git.env("GIT_COMMITTER_EMAIL", OsStr::from_bytes(&email));
        git.env("GIT_COMMITTER_DATE", format!("@{}", entry.date)).run(b"").map(drop)
    }

    /// Puts the new tables beside the others, and the lists that name them in the place of those before.
    fn publish(&self, locks: &RefLocks<'_>) -> Result<()> {
        if self.folds {
            self.git(&["pack-refs", "--all"]).run(b"")?;
        }
        for stack in &self.stacks {
            let now = stack.now()?;
            if now == stack.names {
                continue;
            }
            ensure!(self.folds || now.starts_with(&stack.names), "git has made other tables of refs than it should");
            for name in now.iter().filter(|name| !stack.names.contains(name)) {
                let (from, to) = (stack.copy.join(name), stack.place.join(name));
                self.refs.repo.sharing().share(&from)?;
                link_or_copy(&from, &to).with_context(|| format!("write '{}'", to.display()))?;
            }
            // Whoever wrote the others may not have waited for the disk.
            self.sync(stack, &now)?;
            locks.put(&self.refs.ref_file(&stack.list), listed(&now).as_bytes())?;
            if self.folds {
                self.sync(stack, &[])?;
                for old in stack.names.iter().filter(|name| !now.contains(name)) {
                    remove_if_there(&stack.place.join(old))?;
                }
            }
        }
        Ok(())
    }

    fn sync(&self, stack: &Stack, names: &[String]) -> Result<()> {
        if !self.refs.repo.power.flushes.get() {
            return Ok(());
        }
        for path in names.iter().map(|name| stack.place.join(name)).chain([stack.place.clone()]) {
            let synced = File::open(&path).and_then(|file| file.sync_all());
            synced.with_context(|| format!("flush '{}'", path.display()))?;
        }
        Ok(())
    }
}

fn make_git_dir(git_dir: &Path) -> Result<()> {
    let make = |path: PathBuf| DirBuilder::new().recursive(true).mode(0o700).create(path);
    make(git_dir.join("refs"))?;
    make(git_dir.join(COPY))?;
    Ok(std::fs::write(git_dir.join("HEAD"), NO_HEAD)?)
}

fn link_or_copy(from: &Path, to: &Path) -> std::io::Result<()> {
    match std::fs::hard_link(from, to) {
        Err(error) if ![ErrorKind::AlreadyExists, ErrorKind::NotFound].contains(&error.kind()) => {
            std::fs::copy(from, to).map(drop)
        }
        linked => linked,
    }
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("{name}\n")).collect()
}

/// A line for `git update-ref -z`: wherever the ref is now.
fn updating(name: &[u8], to: &str) -> Vec<u8> {
    [b"update ", name, b"\0", to.as_bytes(), b"\0\0"].concat()
}

fn deletion(name: &[u8]) -> Vec<u8> {
    [b"delete ", name, b"\0\0"].concat()
}
