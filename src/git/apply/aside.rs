//! What is moved out of the worktree as a whole, and back: renamed, or, where the git directory is on another file system, copied,
//! compared and removed. At any instant one of the two places has all of it, or a name beside its place that a recovery knows.

use crate::git::apply::refusals::{changed_meanwhile, in_use_elsewhere, interrupted};
use crate::git::repo::Repo;
use crate::git::repo::platform::{At, in_use, mounted_in};
use crate::git::repo::scratch::{TEMPORARY, remove_tree};
use crate::git::scan::found::as_path;
use crate::git::worktree::exchange::Spot;
use crate::git::worktree::identity::state_of;
use crate::git::worktree::{Lookup, Reached, Worktree, across};
use crate::model::bytes::in_quotes;
use crate::model::plan::AsideMove;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, ByteSlice};
use rustix::fs::CWD;
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How the name ends of what is left of it beside its place.
const KEPT: &str = "-kept";

/// One of a plan's moves out of the worktree, or back.
pub struct Aside<'a> {
    repo: &'a Repo,
    /// What the plan says of it.
    planned: &'a AsideMove,
    /// Where it is kept.
    store: PathBuf,
    /// What it is called beside its place for a moment.
    beside: OsString,
}

impl<'a> Aside<'a> {
    /// The one of this number, of the apply with this journal.
    pub fn new(repo: &'a Repo, journal: ObjectId, number: usize, planned: &'a AsideMove) -> Self {
        let beside = format!("{TEMPORARY}{journal}-aside-{number}").into();
        Self { repo, planned, store: repo.aside_path(&planned.store), beside }
    }

    fn worktree(&self) -> Worktree<'a> {
        Worktree::new(self.repo)
    }

    fn path(&self) -> &'a BStr {
        self.planned.path.as_bstr()
    }

    /// Whether it is in the worktree, and whether it is kept aside.
    fn places(&self) -> Result<(bool, bool)> {
        let there = matches!(self.worktree().find(self.path())?, Lookup::There(_));
        Ok((there, self.store.symlink_metadata().is_ok()))
    }

    /// Whether this is what is at a path in the worktree; `None` where the plan cannot tell. What was copied there from another
    /// file system is another file with the same content.
    pub fn is_at(&self, path: &BStr) -> Option<bool> {
        let file = self.planned.file.as_ref()?;
        let there = self.worktree().identity(path);
        let is_copy = || self.planned.state.is_some() && self.is_as_found(&self.place(path));
        Some(there.is_some_and(|there| there.known.file == *file || is_copy()))
    }

    fn place(&self, path: &BStr) -> PathBuf {
        self.repo.top().join(as_path(path))
    }

    /// Whether it is as it was when the plan was made.
    fn is_as_found(&self, place: &Path) -> bool {
        self.planned.state.is_none() || self.planned.state == state_of(place)
    }

    /// Moves it. What goes out is looked at when nobody can reach it by its path any more: if somebody has saved in it since the
    /// plan was made, it goes back at once, and this says no.
    pub fn carry_out(&self) -> Result<bool> {
        if self.planned.out
            && let Some(parent) = self.store.parent()
        {
            self.repo.make_private(parent)?;
        }
        match self.worktree().move_aside(self.path(), &self.store, self.planned.out) {
            Err(error) if error.downcast_ref::<Errno>() == Some(&Errno::XDEV) => {
                if self.planned.out {
                    self.copy_out()
                } else {
                    self.copy_back().map(|()| true)
                }
            }
            Ok(()) if self.planned.out && !self.is_as_found(&self.store) => {
                self.worktree().move_aside(self.path(), &self.store, false).map(|()| false)
            }
            outcome => outcome.map(|()| true),
        }
    }

    /// Moves it if it is where it should be, and as it was, however much of that was done; says whether it is where it is to be. It
    /// is in both places or in neither if the user changed that.
    pub fn finish(&self) -> Result<bool> {
        self.settle()?;
        let (there, kept) = self.places()?;
        if (there, kept) != (self.planned.out, !self.planned.out) {
            return Ok(there != kept);
        }
        // What somebody has saved in is not taken away for a moment, if that can be helped.
        let is_changed = self.planned.out && !self.is_as_found(&self.place(self.path()));
        if is_changed { Ok(false) } else { self.carry_out() }
    }

    /// Puts an end to what a kill left half done.
    pub fn settle(&self) -> Result<()> {
        // Its path leads there for as long as this is held.
        let coming = self.coming()?;
        let halves = [self.half(), self.gone()].into_iter().chain(coming.iter().map(|coming| coming.path.clone()));
        for half in halves.filter(|half| half.symlink_metadata().is_ok()) {
            remove_tree(&half)?;
        }
        let (there, kept) = self.places()?;
        if let Some(beside) = self.beside()?.filter(|beside| beside.path.symlink_metadata().is_ok()) {
            if kept {
                // What is kept is whole: this was copied. What somebody has written in it since stays.
                self.sync_store()?;
                self.remove_beside(&beside)?;
            } else if !there {
                self.worktree().put(self.path(), &Spot::Beside(self.beside.clone()))?;
            }
        }
        if there
            && kept
            && let Some(place) = self.worktree().reach(self.path())?
            && across::is_same(place.at(), by_path(&self.store), &|| Ok(()))?
        {
            place.sync()?;
            self.remove_store()?;
        }
        Ok(())
    }

    /// What somebody has written in it since it was copied, in a sentence that says where that is.
    pub fn written_since(&self) -> Result<Option<String>> {
        let Some(beside) = self.beside()?.filter(|_| self.planned.out) else { return Ok(None) };
        if with_ending(&beside.path, KEPT).symlink_metadata().is_err() {
            return Ok(None);
        }
        let place = with_ending(&self.place(self.path()).with_file_name(&self.beside), KEPT);
        let [path, place] = [self.path(), place.as_os_str().as_bytes().as_bstr()].map(in_quotes);
        Ok(Some(format!("kept what was saved in {path} meanwhile as {place}")))
    }

    /// Takes it out of everybody's reach first: who saves in it meanwhile is seen. Who is at work in it would go on in what is
    /// removed.
    fn copy_out(&self) -> Result<bool> {
        let place = self.worktree().reach(self.path())?.context("it is there")?;
        self.check_free(&place)?;
        let beside = Spot::Beside(self.beside.clone());
        if self.worktree().take_out(self.path(), std::slice::from_ref(&beside))?.is_none() {
            return Err(changed_meanwhile(self.path()));
        }
        if !self.beside()?.is_some_and(|beside| self.is_as_found(&beside.path)) {
            self.worktree().put(self.path(), &beside)?;
            return Ok(false);
        }
        let copied = self.copy_from_beside();
        if copied.is_err() {
            // The error to report is the one above.
            let _ = remove_tree(&self.half());
            if self.worktree().put(self.path(), &beside).unwrap_or(false) {
                let _ = remove_tree(&self.store);
            }
        }
        self.remove_beside(&copied?).map(|()| true)
    }

    /// Removes what was copied, but for what somebody has written in it since, which gets a name that nobody needs.
    fn remove_beside(&self, beside: &Reached) -> Result<()> {
        if !across::remove_copied(beside.at(), by_path(&self.store))? {
            rename(&beside.path, &with_ending(&beside.path, KEPT))?;
        }
        Ok(())
    }

    fn check_free(&self, place: &Reached) -> Result<()> {
        if mounted_in(&place.path).is_some() {
            return Err(changed_meanwhile(self.path()));
        }
        let [files, directories] = across::inodes(place.at())?;
        if in_use(&files, &directories).is_empty() { Ok(()) } else { Err(in_use_elsewhere(self.path())) }
    }

    fn copy_from_beside(&self) -> Result<Reached> {
        let from = self.beside()?.context("it is there")?;
        let half = self.half();
        let before = across::stamp(from.at())?;
        across::copy(from.at(), by_path(&half), &|| self.check_stop())
            .with_context(|| format!("copy '{}' to '{}'", self.path(), self.store.display()))?;
        if !across::is_same(from.at(), by_path(&half), &|| self.check_stop())? || across::stamp(from.at())? != before {
            return Err(changed_meanwhile(self.path()));
        }
        rename(&half, &self.store)?;
        self.sync_store()?;
        self.check_free(&from)?;
        Ok(from)
    }

    fn copy_back(&self) -> Result<()> {
        let coming = self.coming()?.with_context(|| format!("'{}' has no directory to be in", self.path()))?;
        let (from, to) = (by_path(&self.store), coming.at());
        let copied = across::copy(from, to, &|| self.check_stop())
            .with_context(|| format!("copy '{}' back from '{}'", self.path(), self.store.display()))
            .and_then(|()| across::is_same(from, to, &|| self.check_stop()))
            .and_then(|same| if same { Ok(()) } else { Err(changed_meanwhile(self.path())) })
            .and_then(|()| self.worktree().put(self.path(), &Spot::Beside(self.coming_name())))
            .and_then(|free| if free { Ok(()) } else { Err(changed_meanwhile(self.path())) });
        if copied.is_err() {
            // The error to report is the one above.
            let _ = remove_tree(&coming.path);
        }
        copied?;
        coming.sync()?;
        self.remove_store()
    }

    /// Makes the name of what is kept durable, before the only other one goes.
    fn sync_store(&self) -> Result<()> {
        self.repo.above(&self.store).iter().try_for_each(|directory| {
            File::open(directory).and_then(|directory| directory.sync_all()).context("make a copy durable")
        })
    }

    fn check_stop(&self) -> Result<()> {
        if self.repo.is_asked_to_stop() { Err(interrupted()) } else { Ok(()) }
    }

    /// Under another name first: what is there under its own is whole.
    fn remove_store(&self) -> Result<()> {
        rename(&self.store, &self.gone())?;
        remove_tree(&self.gone())
    }

    /// Where it is beside its place.
    fn beside(&self) -> Result<Option<Reached>> {
        Ok(self.worktree().reach(self.path())?.map(|place| place.beside(&self.beside)))
    }

    /// Where it is while it is copied back: what has this name is ours, and was in no place yet.
    fn coming(&self) -> Result<Option<Reached>> {
        Ok(self.worktree().reach(self.path())?.map(|place| place.beside(&self.coming_name())))
    }

    fn coming_name(&self) -> OsString {
        with_ending(Path::new(&self.beside), "-new").into()
    }

    fn half(&self) -> PathBuf {
        with_ending(&self.store, ".half")
    }

    fn gone(&self) -> PathBuf {
        with_ending(&self.store, ".gone")
    }
}

fn by_path(path: &Path) -> At<'_> {
    (CWD, path.as_os_str())
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to).with_context(|| format!("rename '{}'", from.display()))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;

    /// What a kill can leave of a move: in which of the places it is, and whether the one beside is whole.
    #[test]
    fn whatever_a_kill_left_is_whole_in_one_place_again() {
        for out in [true, false] {
            for (places, whole_in) in [
                (&["path"][..], "path"),
                (&["store"], "store"),
                // Taken out of reach, and not copied yet, or by half.
                (&["beside"], "path"),
                (&["beside", "half"], "path"),
                // Copied, and not removed yet; or removed by half.
                (&["beside", "store"], "store"),
                // Half of a copy that is to come back.
                (&["coming", "store"], "store"),
                // Come back, and still kept; or removed by half.
                (&["path", "store"], "path"),
                (&["path", "gone"], "path"),
            ] {
                let f = Fixture::new();
                let planned = AsideMove::new("d/big".into(), "aside/1/0".into(), out);
                let one = Aside::new(&f.repo, ObjectId::null(f.repo.hash_kind()), 0, &planned);
                f.write("d/other", "");
                let beside = f.path("d").join(&one.beside);
                let place = |name: &str| match name {
                    "path" => f.path("d/big"),
                    "store" => one.store.clone(),
                    "half" => one.half(),
                    "gone" => one.gone(),
                    "coming" => f.path("d").join(one.coming_name()),
                    "kept" => with_ending(&beside, KEPT),
                    _ => beside.clone(),
                };
                for name in places {
                    std::fs::create_dir_all(place(name)).expect("make a directory");
                    let is_half = matches!(*name, "half" | "gone" | "coming");
                    std::fs::write(place(name).join("file"), if is_half { "ha" } else { "half" })
                        .expect("write a file");
                }
                one.settle().expect("put an end to it");
                let all = ["path", "store", "beside", "half", "gone", "coming", "kept"];
                let left: Vec<_> = all.into_iter().filter(|name| place(name).exists()).collect();
                assert_eq!(left, [whole_in], "{places:?}");
                assert!(one.finish().expect("finish it"), "{places:?}");
                let goal = if out { "store" } else { "path" };
                assert_eq!(std::fs::read(place(goal).join("file")).expect("it is there"), b"half", "{places:?}, {out}");
            }
        }
    }

    #[test]
    fn what_somebody_has_written_in_what_was_copied_is_kept_beside_it_and_named() {
        let f = Fixture::new();
        let planned = AsideMove::new("d/big".into(), "aside/1/0".into(), true);
        let one = Aside::new(&f.repo, ObjectId::null(f.repo.hash_kind()), 0, &planned);
        let beside = f.path("d").join(&one.beside);
        for (place, name, text) in [(&one.store, "file", "its"), (&beside, "file", "its"), (&beside, "new", "mine")] {
            std::fs::create_dir_all(place).expect("make a directory");
            std::fs::write(place.join(name), text).expect("write a file");
        }
        one.settle().expect("put an end to it");
        let kept = with_ending(&beside, KEPT);
        assert_eq!(std::fs::read(kept.join("new")).expect("it is there"), b"mine");
        assert!(!kept.join("file").exists() && !beside.exists(), "what was copied is gone");
        let told = one.written_since().expect("look").expect("something is left");
        assert!(told.ends_with(&format!("{}'", kept.display())), "{told}");
    }
}
