//! Staging paths and setting entries, by git, on the copy of the index.

use crate::git::index::Index;
use crate::git::index::lock::{IndexLock, STAND_IN, Stager};
use crate::git::worktree::Worktree;
use crate::model::checkpoint::IndexEntry;
use crate::model::plan::IndexMove;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How many entries fit well into a command line.
const MOST_GIVEN: usize = 100;

impl IndexLock<'_> {
    /// Starts the git that [`Self::set`] needs, so that it reads the index while oxundo does other work. `moves` are
    /// those to entries that will differ from the worktree. Not in a sparse checkout: there git looks at once which
    /// files are on disk, and these have not been written yet.
    pub fn expect_set(&self, given: &[&IndexMove]) -> Result<()> {
        if !Index::new(self.repo).is_sparse_checkout() {
            let given = if given.len() > MOST_GIVEN { &[] } else { given };
            self.stager.replace(Some(self.stager(given)?));
        }
        Ok(())
    }

    fn stager(&self, given: &[&IndexMove]) -> Result<Stager> {
        let mut args: Vec<OsString> =
            ["-c", "core.safecrlf=false", "update-index", "-z", "--add", "--remove", "--replace"]
                .map(Into::into)
                .into();
        for entry in given {
            for to in &entry.to {
                let mut info = OsString::from(format!("{:o},{},", to.mode, to.id));
                info.push(OsStr::from_bytes(&entry.path));
                args.extend(["--cacheinfo".into(), info]);
            }
        }
        args.push("--stdin".into());
        let given = given.iter().map(|entry| entry.path.clone()).collect();
        Ok(Stager { git: self.git(&args).start()?, given })
    }

    /// Stages these paths as `git add` and `git rm` would: files with their content, filters applied; missing
    /// files are removed.
    pub fn stage<'a>(&self, paths: impl IntoIterator<Item = &'a BStr>) -> Result<()> {
        let (behind, paths): (Vec<&BStr>, Vec<&BStr>) =
            paths.into_iter().partition(|path| Worktree::new(self.repo).is_behind_a_file(path));
        // git skips paths below what is no directory any more: such entries are removed by name.
        let gone: Vec<IndexMove> = behind.into_iter().map(IndexMove::removal).collect();
        self.write_exactly(&gone.iter().collect::<Vec<_>>())?;
        let input = nul_separated(paths);
        let waiting = self.stager.take();
        if input.is_empty() && waiting.as_ref().is_none_or(|stager| stager.given.is_empty()) {
            return Ok(());
        }
        let stager = waiting.map_or_else(|| self.stager(&[]), Ok)?;
        stager.git.run(&input).map(drop)
    }

    /// Sets the entries of each path as the move says. `fresh` tells whether the worktree already has what the
    /// entry names (for a removed entry: nothing), so that git can record its stat data.
    pub fn set(&self, moves: &[IndexMove], fresh: impl Fn(&IndexMove) -> bool) -> Result<()> {
        let is_given = |path| self.stager.borrow().as_ref().is_some_and(|stager| stager.given.contains(path));
        let staged: Vec<_> = moves.iter().filter(|entry| !is_given(&entry.path) && fresh(entry)).collect();
        self.stage(staged.iter().map(|entry| entry.path.as_bstr()))?;
        let now = self.read()?;
        let mut wrong = Vec::new();
        for entry in moves {
            if Index::new(self.repo).index_entries(&now, entry.path.as_bstr())? != entry.to {
                wrong.push(entry);
            }
        }
        self.write_exactly(&wrong)?;
        if Index::new(self.repo).has_sparse_index() { self.collapse() } else { Ok(()) }
    }

    /// Has git collapse directories again that were expanded and are left out: in an index with some collapsed
    /// directories, git looks for others only after it had to expand all.
    fn collapse(&self) -> Result<()> {
        let index = self.read()?;
        let Some(inside) = Index::new(self.repo).path_to_collapse_by(&index)? else { return Ok(()) };
        self.git(&["update-index", "-z", "--skip-worktree", "--stdin"])
            .run(&nul_separated([inside.as_bstr()]))
            .map(drop)
    }

    fn write_exactly(&self, moves: &[&IndexMove]) -> Result<()> {
        if moves.is_empty() {
            return Ok(());
        }
        let null = ObjectId::null(self.repo.hash_kind());
        let mut input = Vec::new();
        let mut line = |mode: u32, id: ObjectId, stage: u8, path: &BString| {
            input.extend_from_slice(format!("{mode:o} {id} {stage}\t").as_bytes());
            input.extend_from_slice(path);
            input.push(0);
        };
        for entry in moves {
            line(0, null, 0, &entry.path);
        }
        for entry in moves {
            for to in entry.to.iter().filter(|to| !to.intent_to_add) {
                line(to.mode, to.id, to.stage, &entry.path);
            }
        }
        self.git(&["update-index", "-z", "--index-info"]).run(&input)?;
        let having = |flag: fn(&IndexEntry) -> bool| -> Vec<(&BStr, u32)> {
            let flagged = moves.iter().filter_map(|entry| {
                let to = entry.to.iter().find(|to| flag(to))?;
                Some((entry.path.as_bstr(), to.mode))
            });
            flagged.collect()
        };
        self.intend_to_add(&having(|to| to.intent_to_add))?;
        for (option, paths) in [
            ("--assume-unchanged", having(|to| to.assume_unchanged)),
            ("--skip-worktree", having(|to| to.skip_worktree)),
        ] {
            if !paths.is_empty() {
                let input = nul_separated(paths.iter().map(|(path, _)| *path));
                self.git(&["update-index", "-z", option, "--stdin"]).run(&input)?;
            }
        }
        Ok(())
    }

    /// `git add -N` needs the files to exist, and the user's may not: so it is given a worktree of stand-in files.
    fn intend_to_add(&self, paths: &[(&BStr, u32)]) -> Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        let stand_in = self.repo.scratch_path(STAND_IN);
        make_stand_ins(&stand_in, paths).with_context(|| format!("make files in '{}'", stand_in.display()))?;
        let input = nul_separated(paths.iter().map(|(path, _)| *path));
        let added = self
            .git(&["add", "-N", "-f", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"])
            .env("GIT_WORK_TREE", &stand_in)
            .env("GIT_LITERAL_PATHSPECS", "1")
            .directory(&stand_in)
            .run(&input);
        std::fs::remove_dir_all(&stand_in).with_context(|| format!("remove '{}'", stand_in.display()))?;
        added.map(drop)
    }
}

fn make_stand_ins(stand_in: &Path, paths: &[(&BStr, u32)]) -> std::io::Result<()> {
    let _ = std::fs::remove_dir_all(stand_in);
    std::fs::create_dir(stand_in)?;
    for (path, mode) in paths {
        let file = stand_in.join(OsStr::from_bytes(path));
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent)?;
        }
        if *mode == 0o120_000 {
            std::os::unix::fs::symlink("stand-in", &file)?;
        } else {
            std::fs::write(&file, b"")?;
            let bits = if *mode == 0o100_755 { 0o755 } else { 0o644 };
            std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(bits))?;
        }
    }
    Ok(())
}

fn nul_separated<'a>(paths: impl IntoIterator<Item = &'a BStr>) -> Vec<u8> {
    let mut input = Vec::new();
    for path in paths {
        input.extend_from_slice(path);
        input.push(0);
    }
    input
}
