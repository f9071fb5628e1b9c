//! The worktree's part of a plan.

use crate::git::apply::aside::Aside;
use crate::git::apply::outs::{Absence, Outs};
use crate::git::apply::refusals::{changed_meanwhile, interrupted};
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::git::scan::nested::repository_below;
use crate::git::worktree::exchange::Spot;
use crate::git::worktree::stat::{OPEN, is_open, kind_of, mode_of};
use crate::git::worktree::{Lookup, Worktree, is_denied};
use crate::model::checkpoint::FileState;
use crate::model::path::{all_parents, is_at_or_below, parents};
use crate::model::plan::{AsideMove, DirectoryMove, FileMove, Plan};
use crate::progress::Phase;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use rustix::fs::{Dev, FileType};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::time::{SystemTime, UNIX_EPOCH};

/// The worktree's part of a plan.
pub struct Files<'a> {
    repo: &'a Repo,
    /// Skip what is neither as the plan begins nor as it ends, instead of refusing.
    lenient: bool,
    obstacles: Obstacles,
    /// Whether a power cut may have torn what the plan wrote.
    pub after_cut: bool,
    pub left: BTreeSet<BString>,
    /// The files of which the mode was changed, by device and inode, with the new one.
    reached: BTreeSet<(Dev, u64, u32)>,
    /// What comes out of the worktree.
    pub outs: Outs<'a>,
    begun: SystemTime,
}

/// What is made of something that is in the place of a directory which the plan needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacles {
    /// It may be there for a moment only: it is an error, and the next command tries again.
    MayPass,
    /// It lasts: it makes way where the plan makes the directory, and is kept; else what was to be in there is left.
    Last,
}

/// Files above this size are hashed once only, when they are out.
const LARGE: u64 = 1 << 20;

impl<'a> Files<'a> {
    /// Refuses where anything is not as the plan expects it. The journal's id names what is not in its place.
    pub fn strict(repo: &'a Repo, journal: ObjectId) -> Self {
        let outs = Outs::new(repo, journal);
        Self {
            repo,
            lenient: false,
            obstacles: Obstacles::MayPass,
            after_cut: false,
            left: BTreeSet::new(),
            reached: BTreeSet::new(),
            outs,
            begun: SystemTime::now(),
        }
    }

    /// Skips what is neither as the plan begins nor as it ends, and notes it in `left`.
    pub fn lenient(repo: &'a Repo, journal: ObjectId, obstacles: Obstacles) -> Self {
        Self { lenient: true, obstacles, ..Self::strict(repo, journal) }
    }

    fn worktree(&self) -> Worktree<'_> {
        Worktree::new(self.repo)
    }

    /// Tries out what it takes to put files and directories into their places, before anything is changed. The way back
    /// takes the same: it would be refused too.
    pub fn rehearse(&self, plan: &Plan) -> Result<()> {
        let moved = plan.files.iter().find(|file| file.action() != "mode");
        let mode = moved.and_then(|file| file.to.or(file.from)).map_or(0, |state| state.mode);
        let first = (moved.map(|file| &file.path))
            .or_else(|| plan.aside.first().map(|aside| &aside.path))
            .or_else(|| plan.directories.iter().find(|it| it.from.is_none() || it.to.is_none()).map(|it| &it.path));
        let Some(path) = first else { return Ok(()) };
        for directory in parents(path.as_bstr()).chain([BStr::new("")]) {
            // One that is closed will be opened.
            let opened = match self.worktree().open_directory(directory) {
                Err(error) if is_denied(&error) => None,
                opened => opened?,
            };
            if let Some(fd) = opened
                && is_open(&rustix::fs::fstat(fd)?)
            {
                let names = [1, 2, 3].map(|which| self.outs.new_name(format!("try-{which}")));
                let has_directories = !plan.directories.is_empty();
                return self.worktree().rehearse(directory, mode & 0o777, &names, has_directories);
            }
        }
        Ok(())
    }

    pub fn apply(&mut self, plan: &Plan) -> Result<()> {
        let underway = self.repo.watch.begin(Phase::Apply, plan.files.len());
        for directory in &plan.directories {
            self.open(directory)?;
        }
        if self.lenient {
            self.put_back_half_changed(plan)?;
            self.sweep(plan)?;
        }
        for (number, file) in plan.files.iter().enumerate().filter(|(_, file)| file.to.is_none()) {
            if !self.has_come_back(plan, file) {
                self.delete(number, file)?;
            }
            underway.advance(1);
        }
        self.look_again()?;
        // What is in something else goes before that, and comes after it.
        for (number, aside) in plan.aside.iter().enumerate().rev().filter(|(_, aside)| aside.out) {
            if !self.is_past(plan, number, aside)? {
                self.move_aside(number, aside)?;
                self.check_moved(plan, aside)?;
            }
        }
        for directory in plan.directories.iter().rev().filter(|directory| directory.to.is_none()) {
            self.worktree().remove_empty_directory(directory.path.as_bstr())?;
        }
        let made = plan.directories.iter().filter(|directory| directory.from.is_none() && directory.to.is_some());
        let made: BTreeSet<&BStr> = made.map(|directory| directory.path.as_bstr()).collect();
        for (number, directory) in plan.directories.iter().enumerate().filter(|(_, directory)| directory.to.is_some()) {
            self.make_directory(number, directory, &made)?;
        }
        for (number, aside) in plan.aside.iter().enumerate().filter(|(_, aside)| !aside.out) {
            self.move_aside(number, aside)?;
        }
        for (number, file) in plan.files.iter().enumerate() {
            if let Some(to) = &file.to {
                self.write(number, file, to)?;
                underway.advance(1);
            }
        }
        self.look_again()?;
        self.outs.ask();
        Ok(())
    }

    /// Where two things cannot change places in one step, one of them may be out while the other is not in its place yet: what
    /// was made for that is still beside it. Any other file that is not there somebody has taken away since.
    fn put_back_half_changed(&mut self, plan: &Plan) -> Result<()> {
        for (number, file) in plan.files.iter().enumerate().filter(|(_, file)| file.is_change()) {
            let (path, ready) = (file.path.as_bstr(), Spot::Beside(self.outs.new_name(number)));
            if self.worktree().stat(path)?.is_none() && self.worktree().stat_at(path, &ready)?.is_some() {
                self.outs.settle(number, file, Absence::OnTheWay)?;
            }
        }
        Ok(())
    }

    /// Why a file of the plan may be absent.
    fn absence(&self, file: &FileMove) -> Absence {
        if file.is_change() && !self.after_cut { Absence::TakenAway } else { Absence::OnTheWay }
    }

    /// Looks once more at what has come out of the worktree: who had it open may have saved.
    fn look_again(&mut self) -> Result<()> {
        if !self.lenient
            && let Some(path) = self.outs.changed()?
        {
            return Err(changed_meanwhile(path.as_bstr()));
        }
        self.outs.finish_beside()
    }

    /// Sets the modes of directories: last, and the deepest first, since one may lose its write permission, or may not be
    /// looked into any more.
    pub fn close(&self, plan: &Plan) -> Result<()> {
        for directory in plan.directories.iter().rev() {
            let path = directory.path.as_bstr();
            if let Some(to) = directory.to
                && (directory.from.is_some_and(|from| from != to) || to & OPEN != OPEN)
                && self.worktree().has_directory(path)?
            {
                self.worktree().set_mode(path, to)?;
            }
        }
        Ok(())
    }

    /// Whether a file is still as the plan found it, so that it may be changed.
    fn ready(&mut self, file: &FileMove) -> Result<bool> {
        if self.is_likely_ready(file)? { Ok(true) } else { self.has_stayed(file) }
    }

    /// As [`Self::ready`], the content hashed now.
    fn has_stayed(&mut self, file: &FileMove) -> Result<bool> {
        let now = self.worktree().state(file.path.as_bstr(), self.repo.hash_kind())?;
        if now == file.from {
            return Ok(true);
        }
        if now != file.to || !self.lenient {
            self.leave(file)?;
        }
        Ok(false)
    }

    /// Whether a large file looks as it should: it is hashed when it is out. What was changed since this began is looked
    /// at before, so as not to take it away for so long.
    fn is_likely_ready(&self, file: &FileMove) -> Result<bool> {
        let (false, Some(from), Some((stat, _))) =
            (self.lenient, file.from, self.worktree().stat(file.path.as_bstr())?)
        else {
            return Ok(false);
        };
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        let seconds = self.begun.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Ok(size > LARGE
            && kind_of(&stat) == Some(from.kind)
            && mode_of(&stat) == from.mode
            && Objects::new(self.repo).size(from.id).is_ok_and(|known| known == size)
            && u64::try_from(stat.st_ctime).is_ok_and(|changed| changed < seconds))
    }

    /// Another program has changed a file: it is left as it is, or nothing of the plan is done.
    fn leave(&mut self, file: &FileMove) -> Result<()> {
        if self.lenient {
            self.left.insert(file.path.clone());
            return Ok(());
        }
        Err(changed_meanwhile(file.path.as_bstr()))
    }

    /// Something else came out of the worktree, or is in the place of a file, than the plan was made for. What is out goes
    /// back: now, or when the plan is rolled back.
    fn came_out(&mut self, number: usize, file: &FileMove) -> Result<()> {
        if self.lenient {
            self.outs.settle(number, file, self.absence(file))?;
        }
        self.leave(file)
    }

    fn check_stop(&self) -> Result<()> {
        if self.repo.is_asked_to_stop() { Err(interrupted()) } else { Ok(()) }
    }

    fn delete(&mut self, number: usize, file: &FileMove) -> Result<()> {
        self.check_stop()?;
        if self.lenient {
            self.outs.settle(number, file, self.absence(file))?;
            if self.clear_torn(file)? {
                return Ok(());
            }
        }
        if !self.ready(file)? {
            return Ok(());
        }
        match &file.from {
            Some(from) if !self.outs.take_out(number, file.path.as_bstr(), from)? => self.came_out(number, file),
            _ => Ok(()),
        }
    }

    fn write(&mut self, number: usize, file: &FileMove, to: &FileState) -> Result<()> {
        self.check_stop()?;
        let path = file.path.as_bstr();
        let whole;
        let mut file = file;
        if self.lenient {
            self.outs.settle(number, file, self.absence(file))?;
            // Where somebody took its directory away, it stays in the turn's record.
            if self.obstacles == Obstacles::Last && !self.worktree().has_place(path) {
                return self.leave(file);
            }
            if self.clear_torn(file)? {
                whole = FileMove { from: None, ..file.clone() };
                file = &whole;
            }
            if !self.has_stayed(file)? {
                return Ok(());
            }
        }
        if let Some(from) = &file.from
            && from.same_content(to)
        {
            return self.change_mode(file, from, to);
        }
        let ready = self.outs.new_name(number);
        self.worktree().make_beside(path, &ready, to, |out| {
            let out = &mut Stoppable { out, repo: self.repo };
            Objects::new(self.repo).copy_blob(to.id, out).with_context(|| format!("read what '{path}' was"))
        })?;
        let placed = self.place(number, file, ready.clone());
        if !placed.as_ref().is_ok_and(|placed| *placed) {
            self.worktree().delete_at(path, &Spot::Beside(ready))?;
        }
        if placed? { Ok(()) } else { self.came_out(number, file) }
    }

    /// Changes the mode of a file. What has several names, or is mounted elsewhere too, changes under all of them at once.
    fn change_mode(&mut self, file: &FileMove, from: &FileState, to: &FileState) -> Result<()> {
        let path = file.path.as_bstr();
        let inode = self.worktree().stat(path)?.map(|(stat, _)| (stat.st_dev, stat.st_ino, mode_of(&stat)));
        if inode.is_some_and(|inode| self.reached.contains(&inode) && inode.2 == to.mode) || !self.has_stayed(file)? {
            return Ok(());
        }
        if !self.worktree().change_mode(path, from.mode, to.mode)? {
            return self.leave(file);
        }
        self.reached.extend(inode.map(|(device, number, _)| (device, number, to.mode)));
        Ok(())
    }

    /// Puts what was made beside a file into its place, if that is as the plan found it; this is looked at last before, and
    /// first behind.
    fn place(&mut self, number: usize, file: &FileMove, ready: OsString) -> Result<bool> {
        let path = file.path.as_bstr();
        Ok(self.ready(file)?
            && match &file.from {
                Some(from) => self.outs.exchange(number, path, ready, from)?,
                None => self.worktree().put(path, &Spot::Beside(ready))?,
            })
    }

    /// After a power cut: whether there is nothing any more where a file should be. What was not written whole is deleted.
    fn clear_torn(&self, file: &FileMove) -> Result<bool> {
        let path = file.path.as_bstr();
        if !self.after_cut || file.from.is_none() && !self.worktree().has_file(path) {
            return Ok(false);
        }
        let now = self.worktree().state(path, self.repo.hash_kind())?;
        if now == file.from || now == file.to {
            return Ok(false);
        }
        for wanted in [file.from, file.to].into_iter().flatten().filter(|_| now.is_some()) {
            let Some(there) = self.worktree().read_plain_file(path)? else { return Ok(false) };
            if is_torn(&there, &Objects::new(self.repo).blob(wanted.id)?) {
                let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
                self.worktree().delete_at(path, &Spot::Beside(OsStr::from_bytes(name).to_owned()))?;
                return Ok(true);
            }
        }
        Ok(now.is_none() && matches!(self.worktree().find(path)?, Lookup::Absent))
    }

    fn is_kept(&self, aside: &AsideMove) -> bool {
        self.repo.aside_path(&aside.store).symlink_metadata().is_ok()
    }

    /// Whether the place of a file that goes has been taken already by what was kept aside of the same path.
    fn has_come_back(&self, plan: &Plan, file: &FileMove) -> bool {
        let comes = |aside: &AsideMove| !aside.out && is_at_or_below(file.path.as_bstr(), aside.path.as_bstr());
        self.lenient && plan.aside.iter().any(|aside| comes(aside) && !self.is_kept(aside))
    }

    /// Whether there is nothing to do any more of a move out of the worktree, however much of the plan was done. What somebody else
    /// has put into its place is left.
    fn is_past(&mut self, plan: &Plan, number: usize, aside: &AsideMove) -> Result<bool> {
        if !self.lenient {
            return Ok(false);
        }
        let one = Aside::new(self.repo, self.outs.journal(), number, aside);
        one.settle()?;
        let Some(is_there) = one.is_at(aside.path.as_bstr()) else {
            return Ok(self.has_moved_on(plan, aside)? || self.is_replaced(plan, aside)?);
        };
        let comes = |other: &&AsideMove| !other.out && other.store == aside.store;
        let next = plan.aside.iter().find(comes);
        let has_moved_on = next.is_some_and(|next| one.is_at(next.path.as_bstr()) == Some(true));
        let is_taken = !is_there && matches!(self.worktree().find(aside.path.as_bstr())?, Lookup::There(_));
        if is_taken && !self.is_planned_at(plan, aside.path.as_bstr())? {
            self.left.insert(aside.path.clone());
        }
        Ok(is_taken || (has_moved_on && !is_there))
    }

    /// Whether what is at a path is what the plan puts there.
    fn is_planned_at(&self, plan: &Plan, path: &BStr) -> Result<bool> {
        let mut coming = plan.aside.iter().filter(|one| !one.out && one.path == path);
        if coming.any(|one| Aside::new(self.repo, self.outs.journal(), 0, one).is_at(path) == Some(true))
            || plan.directories.iter().any(|it| it.path == path && it.to.is_some())
        {
            return Ok(true);
        }
        let Some(file) = plan.files.iter().find(|file| file.path == path && file.to.is_some()) else {
            return Ok(false);
        };
        Ok(self.worktree().state(path, self.repo.hash_kind())? == file.to)
    }

    /// As [`Self::is_past`], by the names alone: what goes aside, to come back under another name, has come there.
    fn has_moved_on(&self, plan: &Plan, aside: &AsideMove) -> Result<bool> {
        let comes = |other: &&AsideMove| !other.out && other.store == aside.store;
        let Some(other) = plan.aside.iter().find(comes).filter(|_| !self.is_kept(aside)) else { return Ok(false) };
        let is_there =
            |path: &BString| -> Result<bool> { Ok(matches!(self.worktree().find(path.as_bstr())?, Lookup::There(_))) };
        Ok(is_there(&other.path)? && !is_there(&aside.path)?)
    }

    /// Likewise: it has gone, and what comes into its place has come.
    fn is_replaced(&self, plan: &Plan, aside: &AsideMove) -> Result<bool> {
        Ok(self.is_kept(aside) && self.is_planned_at(plan, aside.path.as_bstr())?)
    }

    fn move_aside(&mut self, number: usize, aside: &AsideMove) -> Result<()> {
        self.check_stop()?;
        let one = Aside::new(self.repo, self.outs.journal(), number, aside);
        if !self.lenient {
            if !one.carry_out()? {
                return Err(changed_meanwhile(aside.path.as_bstr()));
            }
        } else if !one.finish()? {
            self.left.insert(aside.path.clone());
        }
        self.outs.kept.extend(one.written_since()?);
        Ok(())
    }

    /// Refuses where a repository has come to be in what is out now; one that a turn moved goes back to where it was.
    fn check_moved(&self, plan: &Plan, aside: &AsideMove) -> Result<()> {
        let comes_again = plan.aside.iter().any(|other| !other.out && other.store == aside.store);
        if self.lenient || comes_again || repository_below(&self.repo.aside_path(&aside.store)).is_none() {
            return Ok(());
        }
        Err(changed_meanwhile(aside.path.as_bstr()))
    }

    /// Clears the place of a directory, which only what the plan itself makes a directory of is; says whether it is free.
    fn make_way(&mut self, path: &BStr, made: &BTreeSet<&BStr>) -> Result<bool> {
        let here = match self.worktree().find(path)? {
            Lookup::Absent => return Ok(self.worktree().has_place(path)),
            Lookup::Behind(above) => above,
            Lookup::There(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => return Ok(true),
            Lookup::There(_) => path.to_owned(),
        };
        if made.contains(here.as_bstr()) {
            self.outs.clear(here.as_bstr())?;
            // It is told of as kept.
            self.left.remove(&here);
        }
        Ok(self.worktree().has_place(path))
    }

    fn make_directory(&mut self, number: usize, directory: &DirectoryMove, planned: &BTreeSet<&BStr>) -> Result<()> {
        match (directory.from, directory.to) {
            (None, Some(mode)) => {
                if self.obstacles == Obstacles::Last && !self.make_way(directory.path.as_bstr(), planned)? {
                    self.left.insert(directory.path.clone());
                    return Ok(());
                }
                let name = self.outs.new_name(format!("directory-{number}"));
                self.worktree().make_directory(directory.path.as_bstr(), mode | OPEN, &name)
            }
            _ => Ok(()),
        }
    }

    /// Gives a directory's owner all permissions, until its content has been changed.
    fn open(&self, directory: &DirectoryMove) -> Result<()> {
        let path = directory.path.as_bstr();
        let Some((stat, _)) = self.worktree().stat(path)? else { return Ok(()) };
        let now = Some(mode_of(&stat)).filter(|_| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
        let is_known = now == directory.from || (self.lenient && now == directory.to);
        match now.filter(|mode| is_known && mode & OPEN != OPEN) {
            Some(mode) => self.worktree().set_mode(path, mode | OPEN),
            None => Ok(()),
        }
    }

    /// Deletes what a killed write or rehearsal made beside what the plan changes, and put into no place.
    fn sweep(&self, plan: &Plan) -> Result<()> {
        let files = plan.files.iter().map(|file| &file.path);
        let directories = plan.directories.iter().map(|directory| &directory.path);
        let all = files.chain(directories).chain(plan.aside.iter().map(|aside| &aside.path));
        let above = all_parents(all.map(|path| path.as_bstr()));
        for directory in above.into_iter().chain([BStr::new("")]) {
            self.worktree().sweep(directory, &self.outs.new_names())?;
        }
        Ok(())
    }
}

/// Whether this is what a power cut leaves of a file that was not flushed: some of its bytes, and zeros.
fn is_torn(there: &[u8], whole: &[u8]) -> bool {
    there.len() <= whole.len() && there.iter().zip(whole).all(|(is, was)| is == was || *is == 0)
}

/// Writes as long as nobody asks to stop.
struct Stoppable<'a> {
    out: &'a mut dyn Write,
    repo: &'a Repo,
}

impl Write for Stoppable<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.repo.is_asked_to_stop() {
            return Err(std::io::Error::other("interrupted"));
        }
        self.out.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
