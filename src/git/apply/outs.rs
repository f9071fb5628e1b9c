//! What comes out of the worktree while a plan is carried out. It is looked at when nobody can reach it by its path any
//! more; if it is not what the plan was made for, another program has saved there in the same instant, and it goes back.
//! What is as it should be stays until all is done: a program that had it open may have written to it meanwhile. What
//! cannot go back, or is still open for writing, is kept in a file that is named.
//!
//! The names are made of the journal's id. So what a kill leaves is known, and nobody else's file is taken for it.

use crate::git::repo::Repo;
use crate::git::repo::platform::{Inodes, open_for_writing};
use crate::git::repo::scratch::{KEPT, OUT, REPLACED, TEMPORARY};
use crate::git::repo::threads::start;
use crate::git::worktree::Worktree;
use crate::git::worktree::exchange::Spot;
use crate::git::worktree::look::Seen;
use crate::model::bytes::in_quotes;
use crate::model::checkpoint::FileState;
use crate::model::plan::FileMove;
use anyhow::{Context, Result, bail};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::thread::JoinHandle;

/// How many files stay for a while when an operation is over, and of how many bytes together. Many are asked after at once.
const LITTLE: (usize, u64) = (200, 8 << 20);

/// What came out of the worktree.
pub struct Outs<'a> {
    repo: &'a Repo,
    journal: ObjectId,
    /// Whether its directory is there.
    is_made: bool,
    taken: Vec<Taken>,
    /// Whoever is asking which of these are open for writing.
    asked: Option<JoinHandle<Inodes>>,
    /// What is kept, each in a sentence that says where.
    pub kept: Vec<String>,
}

/// Something that came out, and was what the plan was made for.
struct Taken {
    path: BString,
    spot: Spot,
    seen: Seen,
}

/// Why something is kept.
#[derive(Clone, Copy)]
enum Why {
    /// Another program saved it.
    Saved,
    /// Another program may still write to it.
    Open,
    /// A directory has to be where it was.
    InTheWay,
}

/// Why there may be nothing where a file is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// The apply itself has taken out what was there.
    OnTheWay,
    /// Somebody has taken away what the apply had put there.
    TakenAway,
}

impl<'a> Outs<'a> {
    /// None yet, of the apply with this journal.
    pub fn new(repo: &'a Repo, journal: ObjectId) -> Self {
        Self { repo, journal, is_made: false, taken: Vec::new(), asked: None, kept: Vec::new() }
    }

    /// The id of the journal, of which the names are made.
    pub fn journal(&self) -> ObjectId {
        self.journal
    }

    fn worktree(&self) -> Worktree<'a> {
        Worktree::new(self.repo)
    }

    /// The name of something that is made beside its place. What has such a name was in no place yet.
    pub fn new_name(&self, which: impl std::fmt::Display) -> OsString {
        format!("{}{which}", self.new_names()).into()
    }

    /// How all of these names begin.
    pub fn new_names(&self) -> String {
        format!("{TEMPORARY}{}-new-", self.journal)
    }

    fn directory(&self) -> PathBuf {
        self.repo.scratch_path(OUT)
    }

    /// Where the file of this number may be while it is out. Apart, where it is in nobody's way; beside its place, where
    /// oxundo's directory is on another file system. Twice, since one may come out while another is there.
    fn spots(&self, number: usize) -> [Spot; 4] {
        let apart = |again: &str| Spot::Apart(self.directory().join(format!("{}-{number}{again}", self.journal)));
        let beside = |again: &str| Spot::Beside(format!("{TEMPORARY}{}-out-{number}{again}", self.journal).into());
        [apart(""), beside(""), apart("-again"), beside("-again")]
    }

    fn make_directory(&mut self) -> Result<()> {
        if !self.is_made {
            self.repo.scratch()?;
            self.repo.make_private(&self.directory())?;
            self.is_made = true;
        }
        Ok(())
    }

    /// Lets what was made beside a file change places with it. Says whether that was what the plan was made for; if not,
    /// it is still out, and [`Self::settle`] says what becomes of it.
    pub fn exchange(&mut self, number: usize, path: &BStr, ready: OsString, from: &FileState) -> Result<bool> {
        self.make_directory()?;
        let out = self.worktree().exchange(path, &Spot::Beside(ready), &self.spots(number))?;
        out.map_or(Ok(false), |spot| self.accept(path, spot, from))
    }

    /// Takes a file out, likewise.
    pub fn take_out(&mut self, number: usize, path: &BStr, from: &FileState) -> Result<bool> {
        self.make_directory()?;
        let out = self.worktree().take_out(path, &self.spots(number))?;
        out.map_or(Ok(false), |spot| self.accept(path, spot, from))
    }

    fn accept(&mut self, path: &BStr, spot: Spot, from: &FileState) -> Result<bool> {
        let seen = self.worktree().look_at(path, &spot, self.repo.hash_kind())?;
        let is_it = seen.as_ref().is_none_or(|seen| seen.state == Some(*from));
        if is_it && let Some(seen) = seen {
            self.taken.push(Taken { path: path.to_owned(), spot, seen });
        }
        Ok(is_it)
    }

    /// Decides on what is out of the file of this number, in a plan that is being finished or rolled back, whoever took
    /// it out.
    pub fn settle(&mut self, number: usize, file: &FileMove, absence: Absence) -> Result<()> {
        for spot in self.spots(number) {
            // Seldom is anything there: then what was taken need not be gone through.
            if self.worktree().stat_at(file.path.as_bstr(), &spot)?.is_some()
                && !self.taken.iter().any(|taken| taken.spot == spot && taken.path == file.path)
            {
                self.settle_at(number, file, spot, absence)?;
            }
        }
        Ok(())
    }

    fn settle_at(&mut self, number: usize, file: &FileMove, spot: Spot, absence: Absence) -> Result<()> {
        let path = file.path.as_bstr();
        // What cannot be read is nothing that the plan has put there.
        let seen = self.worktree().look_at(path, &spot, self.repo.hash_kind()).ok().flatten();
        let state = seen.as_ref().and_then(|seen| seen.state);
        let is = |wanted: Option<FileState>| wanted.is_some() && state == wanted;
        if is(file.from) {
            self.hold(path, spot, seen);
            return Ok(());
        }
        let there = self.worktree().stat(path)?.is_some();
        let now = self.worktree().state(path, self.repo.hash_kind())?;
        let was_taken_away = !there && absence == Absence::TakenAway && is(file.to);
        let goes_back = (!there && !was_taken_away) || now == file.from || (now == file.to && !is(file.to));
        if goes_back && self.give_back(number, file, &spot, there)? {
            return Ok(());
        }
        if is(file.to) {
            self.hold(path, spot, seen);
            return Ok(());
        }
        self.keep(path, &spot, Why::Saved)
    }

    /// Clears a place for a directory that has to be made: the file or link that is there is kept.
    pub fn clear(&mut self, path: &BStr) -> Result<()> {
        // First under a name of its own: the way there follows no link, and what comes to the place now stays there.
        let name = format!("{TEMPORARY}{}-kept-{}", self.journal, self.kept.len()).into();
        match self.worktree().take_out(path, &[Spot::Beside(name)])? {
            Some(out) => self.keep(path, &out, Why::InTheWay),
            None => Ok(()),
        }
    }

    fn hold(&mut self, path: &BStr, spot: Spot, seen: Option<Seen>) {
        self.taken.extend(seen.map(|seen| Taken { path: path.to_owned(), spot, seen }));
    }

    /// Puts something back into its place; says whether it is there.
    fn give_back(&mut self, number: usize, file: &FileMove, spot: &Spot, there: bool) -> Result<bool> {
        let path = file.path.as_bstr();
        if !there {
            // Where its directory is gone too, it stays out.
            return Ok(self.worktree().put(path, spot).unwrap_or(false));
        }
        let Some(other) = self.worktree().exchange(path, spot, &self.spots(number))? else {
            return Ok(self.worktree().put(path, spot).unwrap_or(false));
        };
        let seen = self.worktree().look_at(path, &other, self.repo.hash_kind()).ok().flatten();
        let state = seen.as_ref().and_then(|seen| seen.state);
        if state.is_some() && (state == file.from || state == file.to) {
            self.hold(path, other, seen);
            return Ok(true);
        }
        // Saved once more: what was saved last has the place.
        let out = self.worktree().exchange(path, &other, &self.spots(number))?;
        self.keep(path, out.as_ref().unwrap_or(&other), Why::Saved)?;
        Ok(true)
    }

    /// Looks once more at all that is out; gives the path of one that has changed since.
    pub fn changed(&mut self) -> Result<Option<BString>> {
        for at in 0..self.taken.len() {
            if !self.is_unchanged(at)? {
                return Ok(Some(self.taken[at].path.clone()));
            }
        }
        Ok(None)
    }

    fn is_unchanged(&mut self, at: usize) -> Result<bool> {
        let Taken { path, spot, seen } = &self.taken[at];
        let Some(stat) = self.worktree().stat_at(path.as_bstr(), spot)? else { return Ok(true) };
        if seen.is_still(&stat) {
            return Ok(true);
        }
        let now = self.worktree().look_at(path.as_bstr(), spot, self.repo.hash_kind())?;
        Ok(now.is_none_or(|now| now.state == seen.state))
    }

    /// Asks who has any of it open, which takes a moment, if it does not stay.
    pub fn ask(&mut self) {
        if !self.is_little() {
            self.ask_now();
        }
    }

    fn ask_now(&mut self) {
        let files: Inodes = self.taken.iter().map(|taken| taken.seen.file()).collect();
        if !files.is_empty() {
            self.asked = start(move || open_for_writing(&files)).ok();
        }
    }

    fn is_little(&self) -> bool {
        let sizes = self.taken.iter().map(|taken| u64::try_from(taken.seen.stat.st_size).unwrap_or(u64::MAX));
        self.taken.len() <= LITTLE.0 && sizes.fold(0, u64::saturating_add) <= LITTLE.1
    }

    /// Deletes what is beside its place, if nobody else needs it: its directory may be removed, or closed.
    pub fn finish_beside(&mut self) -> Result<()> {
        let (beside, apart) = std::mem::take(&mut self.taken).into_iter().partition(Taken::is_beside);
        let asked = self.asked.take();
        self.taken = beside;
        if !self.taken.is_empty() {
            self.ask_now();
            self.delete_all()?;
        }
        (self.taken, self.asked) = (apart, asked);
        Ok(())
    }

    /// Lets what is out stay for a while, if it is little, but for what was saved meanwhile, which is kept; else deletes it.
    pub fn leave(&mut self) -> Result<()> {
        if !self.is_little() || self.taken.is_empty() {
            return self.finish();
        }
        for at in (0..self.taken.len()).rev() {
            if !self.is_unchanged(at)? {
                let Taken { path, spot, .. } = self.taken.remove(at);
                self.keep(path.as_bstr(), &spot, Why::Saved)?;
            }
        }
        // What is left is looked at by a later command.
        if self.set_aside().is_ok() { Ok(()) } else { self.finish() }
    }

    /// Gives the directory of what is out a name that no other operation has.
    fn set_aside(&mut self) -> std::io::Result<()> {
        let all = self.repo.lasting_path(REPLACED);
        self.repo.sharing().make_private(&all)?;
        let mut tried = Ok(());
        for number in 0..100 {
            tried = std::fs::rename(self.directory(), all.join(format!("{}-{number}", self.journal)));
            match &tried {
                Err(error) if [ErrorKind::DirectoryNotEmpty, ErrorKind::AlreadyExists].contains(&error.kind()) => {}
                _ => break,
            }
        }
        tried?;
        self.taken.clear();
        self.is_made = false;
        Ok(())
    }

    /// Deletes what stayed out, if it is still what it was; else keeps it.
    pub fn conclude(&mut self, path: &BStr, spot: &Spot, is_known: impl Fn(FileState) -> bool) -> Result<()> {
        match self.worktree().look_at(path, spot, self.repo.hash_kind())? {
            Some(Seen { state: Some(state), .. }) if is_known(state) => self.worktree().delete_at(path, spot),
            Some(_) => self.keep(path, spot, Why::Saved),
            None => Ok(()),
        }
    }

    /// Deletes all that is out, but for what somebody else needs, which is kept.
    pub fn finish(&mut self) -> Result<()> {
        if self.asked.is_none() {
            self.ask_now();
        }
        self.delete_all()?;
        self.is_made = false;
        match std::fs::remove_dir(self.directory()) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(error).context("remove a directory"),
            // Nothing came out, or something is there that is not ours.
            _ => Ok(()),
        }
    }

    fn delete_all(&mut self) -> Result<()> {
        let answer = self.asked.take().and_then(|asked| asked.join().ok());
        // Where nobody could be asked beside other work, it is done now.
        let open = answer.unwrap_or_else(|| open_for_writing(&self.taken.iter().map(|it| it.seen.file()).collect()));
        for at in 0..self.taken.len() {
            let why = if self.is_unchanged(at)? { Why::Open } else { Why::Saved };
            let Taken { path, spot, seen } = &self.taken[at];
            let (path, spot, file) = (path.clone(), spot.clone(), seen.file());
            match why {
                Why::Open if !open.contains(&file) => self.worktree().delete_at(path.as_bstr(), &spot)?,
                why => self.keep(path.as_bstr(), &spot, why)?,
            }
        }
        self.taken.clear();
        Ok(())
    }

    /// Keeps something that is out in a file of its own, and says so.
    fn keep(&mut self, path: &BStr, spot: &Spot, why: Why) -> Result<()> {
        let place = self.place_to_keep(path)?;
        let place = match (self.worktree().carry_away(path, spot, &place)?, spot) {
            (false, Spot::Beside(name)) => self.repo.top().join(OsStr::from_bytes(path)).with_file_name(name),
            _ => place,
        };
        let (path, place) = (in_quotes(path), in_quotes(place.as_os_str().as_bytes().as_bstr()));
        self.kept.push(match why {
            Why::Saved => format!("kept what was saved in {path} meanwhile as {place}"),
            Why::Open => format!("{path} is open in another program, which may write to it: kept as {place}"),
            Why::InTheWay => format!("{path} was in the place of a directory: kept as {place}"),
        });
        Ok(())
    }

    /// A file that is not there yet, below a directory of this operation's, under the path that it had.
    fn place_to_keep(&self, path: &BStr) -> Result<PathBuf> {
        let id = self.journal.to_hex_with_len(12);
        for number in 1..1000 {
            let place = self.repo.lasting_path(&format!("{KEPT}/{id}-{number}")).join(OsStr::from_bytes(path));
            let parent = place.parent().unwrap_or(&place);
            match self.repo.sharing().make_private(parent) {
                Ok(()) if place.symlink_metadata().is_err() => return Ok(place),
                // Taken, or a file is in the way.
                Ok(()) => {}
                Err(error) if matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::AlreadyExists) => {}
                Err(error) => return Err(error).with_context(|| format!("make '{}'", parent.display())),
            }
        }
        bail!("there is no place to keep '{path}'")
    }
}

impl Taken {
    fn is_beside(&self) -> bool {
        matches!(self.spot, Spot::Beside(_))
    }
}
