//! Who moved a branch, by what git wrote down as it moved.

use crate::git::refs::Refs;
use gix::bstr::ByteSlice;

/// How git's messages begin where it moves the branch that is checked out: HEAD moves with it, and both are written down.
const WITH_HEAD: [&str; 8] = ["commit", "merge", "rebase", "reset", "cherry-pick", "revert", "am", "pull"];

/// And where it moves what is checked out nowhere, in the name of another repository.
const FROM_OUTSIDE: [&str; 2] = ["fetch", "push"];

impl Refs<'_> {
    /// Whether a branch that is not HEAD's was last moved by a fetch or a push, or where another HEAD was on it.
    pub fn was_moved_elsewhere(&self, name: &str) -> bool {
        let Some(message) = self.last_message(name) else { return false };
        begins(&message, &FROM_OUTSIDE) || (begins(&message, &WITH_HEAD) && !self.has_led_head(name))
    }

    /// Whether a branch was last moved while this worktree's HEAD was on it.
    pub fn was_moved_here(&self, name: &str) -> bool {
        self.last_message(name).is_some_and(|message| begins(&message, &WITH_HEAD)) && self.has_led_head(name)
    }

    /// What git wrote down of its last move.
    fn last_message(&self, name: &str) -> Option<Vec<u8>> {
        let log = self.log_text(name).ok().flatten().unwrap_or_default();
        log.lines().next_back().and_then(|line| line.split_once_str("\t")).map(|(_, said)| said.to_owned())
    }

    /// Whether HEAD has been where a branch was led last.
    fn has_led_head(&self, name: &str) -> bool {
        let last = self.logged(name).first().map(|last| last.to);
        last.is_none_or(|to| self.logged("HEAD").iter().any(|moved| moved.to == to))
    }
}

fn begins(message: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| message.starts_with(word.as_bytes()))
}
