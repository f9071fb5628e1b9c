//! Staging paths and setting entries, on the copy of the index: by git, but in the plain case.

use crate::git::index::Index;
use crate::git::index::lock::{IndexLock, STAND_IN, Stager};
use crate::git::index::write;
use crate::git::worktree::Worktree;
use crate::model::checkpoint::IndexEntry;
use crate::model::plan::IndexMove;
use crate::progress::Phase;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How many entries fit well into a command line.
const MOST_GIVEN: usize = 100;

impl IndexLock<'_> {
    /// Begins what [`Self::set`] needs, a draft of the index or the git that writes it, while oxundo does other work. `moves` are
    /// those to entries that will differ from the worktree. Not in a sparse checkout: there git looks at once which
    /// files are on disk, and these have not been written yet.
    pub fn expect_set(&self, given: &[&IndexMove]) -> Result<()> {
        if write::is_plain(self)? {
            self.begin_draft()?;
        } else if !Index::new(self.repo).is_sparse_checkout() {
            let given = if given.len() > MOST_GIVEN { &[] } else { given };
            self.stager.replace(Some(self.stager(given)?));
        }
        Ok(())
    }

    fn stager(&self, given: &[&IndexMove]) -> Result<Stager> {
        // Without need it would be in the environment of the user's filters.
        let unsafe_too: &[&str] =
            if self.repo.boolean("core.safecrlf") == Ok(Some(true)) { &["-c", "core.safecrlf=false"] } else { &[] };
        let words = unsafe_too.iter().chain(&["update-index", "-z", "--add", "--remove", "--replace"]);
        let mut args: Vec<OsString> = words.map(Into::into).collect();
        for entry in given {
            for to in &entry.to {
                let mut info = OsString::from(format!("{:o},{},", to.mode, to.id));
                info.push(OsStr::from_bytes(&entry.path));
                args.extend(["--cacheinfo".into(), info]);
            }
        }
        args.push("--stdin".into());
        let given = given.iter().map(|entry| entry.path.clone()).collect();
        // It only reads the files: their objects are its own.
        let git = self.repo.git_apart(&args).index(self.path());
        Ok(Stager { git: git.start()?, given })
    }

    /// Stages these paths as `git add` and `git rm` would: files with their content, filters applied; missing
    /// files are removed.
    pub fn stage<'a>(&self, paths: impl IntoIterator<Item = &'a BStr>) -> Result<()> {
        let paths: Vec<&BStr> = paths.into_iter().collect();
        let _underway = self.repo.watch.begin(Phase::Stage, paths.len());
        if self.stager.borrow().is_none() && write::stage(self, &paths)? {
            return Ok(());
        }
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
        let ran = stager.git.run(&input);
        self.forget();
        ran.map(drop)
    }

    /// Sets the entries of each path as the move says. `fresh` tells whether the worktree already has what the
    /// entry names (for a removed entry: nothing), so that git can record its stat data.
    pub fn set(&self, moves: &[IndexMove], fresh: impl Fn(&IndexMove) -> bool) -> Result<()> {
        if self.stager.borrow().is_none() && write::set(self, moves, &fresh)? {
            return Ok(());
        }
        let is_given = |path| self.stager.borrow().as_ref().is_some_and(|stager| stager.given.contains(path));
        let staged: Vec<_> = moves.iter().filter(|entry| !is_given(&entry.path) && fresh(entry)).collect();
        if self.stage(staged.iter().map(|entry| entry.path.as_bstr())).is_err() {
            // A filter failed, or a file was written to while git read it. All that is lost is stat data: the entries are
            // set below.
            self.unlock_copy()?;
        }
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
        self.update(&["update-index", "-z", "--skip-worktree", "--stdin"], &nul_separated([inside.as_bstr()]))
    }

    /// Has git change entries without a look at their files. Where it writes an index, it still looks at other files that
    /// were changed as late as that, and fails where a filter that these must have is not there: then it may do without.
    fn update(&self, words: &[&str], input: &[u8]) -> Result<()> {
        let Err(error) = self.git(words).run(input) else { return Ok(()) };
        let optional: Vec<String> =
            self.repo.subsections("filter").iter().map(|name| format!("filter.{name}.required=false")).collect();
        if optional.is_empty() {
            return Err(error);
        }
        self.unlock_copy()?;
        let without = optional.iter().flat_map(|setting| ["-c", setting.as_str()]);
        self.git(&without.chain(words.iter().copied()).collect::<Vec<_>>()).run(input).map(drop)
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
        self.update(&["update-index", "-z", "--index-info"], &input)?;
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
                self.update(&["update-index", "-z", option, "--stdin"], &input)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    /// The flag of the index, as `git ls-files --debug` has it.
    const INTENT_TO_ADD: u32 = 1 << 29;

    /// Settings with which oxundo writes the index where it can, and with which git always does.
    const BOTH: [&str; 2] = ["index.skipHash=false", "index.skipHash=true"];

    type Entries = BTreeMap<BString, Vec<IndexEntry>>;

    /// What git says of an index that has these entries.
    fn listed(entries: &Entries) -> Vec<u8> {
        let mut text = Vec::new();
        for (path, entry) in entries.iter().flat_map(|(path, all)| all.iter().map(move |entry| (path, entry))) {
            let tag = match (entry.stage, entry.skip_worktree) {
                (0, true) => 'S',
                (0, false) => 'H',
                _ => 'M',
            };
            let tag = if entry.assume_unchanged { tag.to_ascii_lowercase() } else { tag };
            text.extend_from_slice(format!("{tag} {:06o} {} {}\t", entry.mode, entry.id, entry.stage).as_bytes());
            text.extend_from_slice(path);
            text.push(0);
        }
        text
    }

    /// The number of entries that git knows as added with `git add -N`.
    fn intended(f: &Fixture) -> usize {
        let flags = |line: &String| line.split_once("flags: ").map(|(_, flags)| flags.to_owned());
        let flags = f.lines(&["ls-files", "--debug"]).iter().filter_map(flags).collect::<Vec<_>>();
        flags.iter().filter(|bits| u32::from_str_radix(bits, 16).expect("a number") & INTENT_TO_ADD != 0).count()
    }

    /// Leads the index from some entries to others.
    #[track_caller]
    fn set(f: &Fixture, from: &Entries, to: &Entries, fresh: bool) {
        let paths: std::collections::BTreeSet<&BString> = from.keys().chain(to.keys()).collect();
        let of = |entries: &Entries, path: &BString| entries.get(path).cloned().unwrap_or_default();
        let moves: Vec<_> = paths
            .into_iter()
            .map(|path| IndexMove { path: path.clone(), from: of(from, path), to: of(to, path) })
            .collect();
        let lock = Index::new(&f.repo).lock_index(Duration::ZERO).expect("lock the index");
        lock.set(&moves, |_| fresh).expect("set the entries");
        lock.commit().expect("replace the index");
    }

    #[track_caller]
    fn check(f: &Fixture, wanted: &Entries) {
        let (found, wanted_text) = (f.git(&["ls-files", "-s", "-v", "-z"]), listed(wanted));
        assert_eq!(found.as_bstr(), wanted_text.as_bstr(), "git finds exactly these entries");
        let wanted = wanted.values().flatten().filter(|entry| entry.intent_to_add).count();
        assert_eq!(intended(f), wanted, "and as many added with -N");
    }

    /// Any entries that git itself can make for one path. `blobs` are some contents, the first one empty.
    fn any_entries(blobs: [ObjectId; 4]) -> impl Strategy<Value = Vec<IndexEntry>> {
        let mode = || prop::sample::select(vec![0o100_644, 0o100_755, 0o120_000, 0o160_000]);
        let plain = (mode(), 1..4_usize, any::<bool>(), any::<bool>()).prop_map(move |(mode, blob, skip, assume)| {
            let entry = IndexEntry::plain(mode, blobs[blob]);
            vec![IndexEntry { skip_worktree: skip, assume_unchanged: assume, ..entry }]
        });
        let file = prop::sample::select(vec![0o100_644, 0o100_755, 0o120_000]);
        let intended = (file, any::<bool>()).prop_map(move |(mode, assume)| {
            let entry = IndexEntry::plain(mode, blobs[0]);
            vec![IndexEntry { intent_to_add: true, assume_unchanged: assume, ..entry }]
        });
        let conflict = prop::sample::subsequence(vec![1_u8, 2, 3], 1..=3).prop_flat_map(move |stages| {
            let entry = |stage: u8| {
                (mode(), 1..4_usize)
                    .prop_map(move |(mode, blob)| IndexEntry { stage, ..IndexEntry::plain(mode, blobs[blob]) })
            };
            stages.into_iter().map(entry).collect::<Vec<_>>()
        });
        prop_oneof![2 => Just(Vec::new()), 4 => plain, 2 => intended, 2 => conflict]
    }

    #[test]
    fn entries_become_exactly_what_is_said_from_whatever_was_there() {
        for setting in BOTH {
            become_what_is_said(&Fixture::with(&[setting]));
        }
    }

    fn become_what_is_said(f: &Fixture) {
        let blobs = ["", "one", "two", "three"].map(|content| f.blob(content));
        let names = [&b"a"[..], b"a-b", b"d/\n\"x", b"d/e/y", b"\xff\xfe", b":(glob)*", "\u{e9}".as_bytes()];
        let state = || names.map(|_| any_entries(blobs));
        let entries = |all: [Vec<IndexEntry>; 7]| -> Entries {
            let pairs = names.iter().map(|name| BString::from(*name)).zip(all);
            pairs.filter(|(_, entries)| !entries.is_empty()).collect()
        };
        let config = ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() };
        let mut now = Entries::new();
        let last = std::cell::RefCell::new(&mut now);
        proptest!(config, |(next in state())| {
            let next = entries(next);
            let mut last = last.borrow_mut();
            set(f, &last, &next, false);
            check(f, &next);
            **last = next;
        });
        set(f, &now, &Entries::new(), false);
        check(f, &Entries::new());
    }

    #[test]
    fn what_stays_is_not_touched_by_what_changes() {
        for setting in BOTH {
            stays(&Fixture::with(&[setting]));
        }
    }

    fn stays(f: &Fixture) {
        f.commit("stays", "one");
        f.commit("goes", "two");
        f.git(&["update-index", "--assume-unchanged", "stays"]);
        let (stat, blob) = (f.lines(&["ls-files", "--debug", "stays"]), f.blob("three"));
        let to = [("new".into(), vec![IndexEntry::plain(0o100_644, blob)])].into();
        let from = [("goes".into(), vec![IndexEntry::plain(0o100_644, f.blob("two"))])].into();
        set(f, &from, &to, false);
        assert_eq!(f.lines(&["ls-files", "--debug", "stays"]), stat, "with its flags and its stat data");
        assert_eq!(f.lines(&["ls-files"]), ["new", "stays"]);
    }

    #[test]
    fn an_entry_that_the_worktree_has_is_known_to_be_clean_without_a_look() {
        for setting in BOTH {
            is_known_to_be_clean(&Fixture::with(&[setting]));
        }
    }

    fn is_known_to_be_clean(f: &Fixture) {
        f.write("a", "one");
        let entries: Entries = [("a".into(), vec![IndexEntry::plain(0o100_644, f.blob("one"))])].into();
        set(f, &Entries::new(), &entries, false);
        check(f, &entries);
        assert_eq!(f.lines(&["diff-files", "--name-only"]), ["a"], "git would have to look");
        set(f, &entries, &entries, true);
        check(f, &entries);
        assert_eq!(f.lines(&["diff-files", "--name-only"]), [""; 0], "git knows");
    }

    #[test]
    fn an_entry_is_what_is_said_even_where_the_worktree_turns_out_to_have_something_else() {
        let f = Fixture::new();
        f.write("a", "edited meanwhile");
        let entries: Entries = [
            ("a".into(), vec![IndexEntry::plain(0o100_644, f.blob("one"))]),
            ("gone".into(), vec![IndexEntry::plain(0o100_755, f.blob("two"))]),
        ]
        .into();
        set(&f, &Entries::new(), &entries, true);
        check(&f, &entries);
    }

    #[test]
    fn paths_are_staged_as_git_add_and_git_rm_do_it() {
        let settings = ["core.autocrlf=false", "filter.up.clean=tr a-z A-Z", "filter.up.smudge=cat"];
        let [one, other] = [Fixture::with(&settings), Fixture::with(&settings)];
        for f in [&one, &other] {
            f.write(".gitattributes", "*.txt text\n*.up filter=up\n");
            f.write("d/inner", "one");
            f.write("file", "one");
            f.write("gone", "one");
            f.commit("stays", "one");
            std::fs::remove_dir_all(f.path("d")).expect("remove a directory");
            f.write("d", "a file now");
            std::fs::remove_file(f.path("file")).expect("remove a file");
            f.write("file/inner", "a directory now");
            std::fs::remove_file(f.path("gone")).expect("remove a file");
            f.write("lines.txt", "one\r\ntwo\r\n");
            f.write("a.up", "word");
            f.write(b"odd \xff\n*", "x");
            std::os::unix::fs::symlink("file", f.path("link")).expect("make a link");
            f.write("run", "#!/bin/sh\n");
            std::fs::set_permissions(f.path("run"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .expect("set a mode");
            f.write("stays", "edited, and not to be staged");
        }
        let odd: &[u8] = b"odd \xff\n*";
        let paths =
            [&b"d"[..], b"d/inner", b"file", b"file/inner", b"gone", b"lines.txt", b"a.up", odd, b"link", b"run"];
        let lock = Index::new(&one.repo).lock_index(Duration::ZERO).expect("lock the index");
        lock.stage(paths.iter().map(|path| path.as_bstr())).expect("stage");
        lock.commit().expect("replace the index");
        other.git(&["add", "-A", ":!stays"]);
        assert_eq!(one.index(), other.index());
        assert_eq!(one.lines(&["status", "--porcelain", "stays"]), [" M stays"], "nothing else is staged");
        let raw = one.id(&["hash-object", "--no-filters", "lines.txt"]).to_string();
        assert!(!one.index().contains(&raw), "the filters were applied");
    }

    #[test]
    fn a_git_that_was_started_ahead_makes_the_same_entries() {
        let f = Fixture::with(&BOTH[1..]);
        f.commit("a", "one");
        f.write("a", "two");
        f.write("b", "in the worktree");
        let plain = |content| vec![IndexEntry::plain(0o100_644, f.blob(content))];
        let given = IndexMove { path: "b".into(), from: Vec::new(), to: plain("only in the index") };
        let read = IndexMove { path: "a".into(), from: plain("one"), to: plain("two") };
        let lock = Index::new(&f.repo).lock_index(Duration::ZERO).expect("lock the index");
        lock.expect_set(&[&given]).expect("start git");
        lock.set(&[given.clone(), read.clone()], |_| true).expect("set the entries");
        lock.commit().expect("replace the index");
        check(&f, &[(given.path, given.to), (read.path, read.to)].into());
        let lock = Index::new(&f.repo).lock_index(Duration::ZERO).expect("lock the index");
        lock.expect_set(&[]).expect("start git");
        drop(lock);
        assert!(f.git_agrees(&["add", "-A"]), "one that was started for nothing leaves no lock");
    }

    #[test]
    fn a_sparse_index_is_folded_again_when_all_is_left_out_again() {
        let f = Fixture::new();
        f.commit("in/file", "one");
        f.commit("out/deep/file", "two");
        f.commit("out/other", "three");
        f.commit("far/file", "four");
        f.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "in"]);
        let f = f.reopened();
        let folded = f.lines(&["ls-files", "--sparse", "-s"]);
        assert!(folded.iter().any(|line| line.ends_with("\tout/")), "git folds it: {folded:?}");
        let left_out =
            |content| vec![IndexEntry { skip_worktree: true, ..IndexEntry::plain(0o100_644, f.blob(content)) }];
        let path = BString::from("out/deep/file");
        let (old, new): (Entries, Entries) =
            ([(path.clone(), left_out("two"))].into(), [(path.clone(), left_out("edited"))].into());
        set(&f, &old, &new, false);
        let edited = f.lines(&["ls-files", "-s", "out"]);
        assert!(edited[0].contains(&f.blob("edited").to_string()), "it is changed where it was folded: {edited:?}");
        assert_eq!(edited.len(), 2, "nothing else is: {edited:?}");
        set(&f, &new, &old, false);
        assert_eq!(f.lines(&["ls-files", "--sparse", "-s"]), folded);
    }
}
