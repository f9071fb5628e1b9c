//! The operations on a timeline, which are the reflog of its ref.

use crate::git::refs::{OwnRef, Refs};
use crate::git::repo::scratch::{overwrite, remove_if_there};
use crate::git::timeline::Timelines;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::refs::file::log::iter::forward;
use std::fs::File;
use std::path::PathBuf;

/// The file that notes the timeline's last commit.
const MARK: &str = "timeline";

/// How operations begin that do no more than to give something a name, or to take one away.
const NAMING: [&str; 5] = ["checkpoint ", "forget checkpoint ", "describe ", "keep ", "let go of "];

/// One operation on the timeline, from its reflog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The timeline's commit after it.
    pub commit: ObjectId,
    /// The one that it was made on.
    pub previous: Option<ObjectId>,
    /// When.
    pub at: String,
    /// What.
    pub what: String,
}

impl Operation {
    /// Whether it keeps no state: it looked at no worktree.
    pub fn keeps_nothing(&self) -> bool {
        self.only_names() && !self.what.starts_with("checkpoint ") || self.what.starts_with("gc: ")
    }

    /// Whether it only gave something a name, or took one away: each turn is as it was.
    pub fn only_names(&self) -> bool {
        NAMING.iter().any(|word| self.what.starts_with(word))
    }
}

impl Timelines<'_> {
    /// The timeline's operations, newest first, also when the ref itself is gone.
    pub fn operations(&self) -> Result<Vec<Operation>> {
        let name = Refs::new(self.repo).own_ref(OwnRef::Timeline);
        let Some(log) = self.repo.log_text(&name)? else { return Ok(Vec::new()) };
        // A damaged line must not hide the others.
        let mut operations: Vec<_> = (forward(&log).flatten())
            .map(|line| Operation {
                commit: line.new_oid(),
                previous: Some(line.previous_oid()).filter(|id| !id.is_null()),
                at: (line.signature.time())
                    .map(|time| time.format_or_unix(gix::date::time::format::ISO8601_STRICT))
                    .unwrap_or_default(),
                what: line.message.to_string(),
            })
            .collect();
        operations.reverse();
        Ok(operations)
    }

    /// The file that notes the timeline's last commit, outside git's refs.
    fn timeline_mark(&self) -> PathBuf {
        self.repo.scratch_path(MARK)
    }

    /// Notes the timeline's commit, so that a ref that something else deleted is reported as lost.
    pub fn remember_timeline(&self, commit: ObjectId) {
        // A failure only costs that report.
        let mark = File::options().write(true).create(true).truncate(false).open(self.timeline_mark());
        let _ = mark.and_then(|mark| overwrite(&mark, format!("{commit}\n").as_bytes()));
        let _ = self.repo.sharing().share(&self.timeline_mark());
    }

    /// Removes the note, so that a deleted timeline is not reported as lost.
    pub fn forget_timeline(&self) -> Result<()> {
        remove_if_there(&self.timeline_mark())
    }

    /// As [`Self::forget_timeline`], of all worktrees.
    pub fn forget_timelines(&self) -> Result<()> {
        self.repo.scratches().iter().try_for_each(|scratch| remove_if_there(&scratch.join(MARK)))
    }

    /// The last commit that was noted.
    pub fn remembered_timeline(&self) -> Option<ObjectId> {
        ObjectId::from_hex(std::fs::read(self.timeline_mark()).ok()?.trim()).ok()
    }

    /// Whether this worktree has had a timeline that oxundo itself did not take back. A reflog
    /// alone says nothing: git writes it before the ref.
    pub fn had_timeline(&self) -> bool {
        self.timeline_mark().exists()
    }

    /// The operation that made a timeline, by its commit.
    pub fn operation_of(&self, commit: ObjectId) -> Operation {
        let about = self.repo.find_commit(commit).ok();
        let about = about.as_ref().and_then(|commit| Some((commit.time().ok()?, commit.message_raw().ok()?)));
        let (at, what) = match about {
            Some((time, message)) => (
                time.format_or_unix(gix::date::time::format::ISO8601_STRICT),
                message.trim().to_str_lossy().into_owned(),
            ),
            None => Default::default(),
        };
        Operation { commit, previous: None, at, what }
    }
}
