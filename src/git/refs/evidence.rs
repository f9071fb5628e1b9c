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
        let log = self.log_text(name).ok().flatten().unwrap_or_default();
        let Some(message) = log.lines().next_back().and_then(|line| line.split_once_str("\t")).map(|(_, said)| said)
        else {
            return false;
        };
        let begins = |words: &[&str]| words.iter().any(|word| message.starts_with(word.as_bytes()));
        if begins(&FROM_OUTSIDE) {
            return true;
        }
        let Some(to) = self.logged(name).first().map(|last| last.to) else { return false };
        begins(&WITH_HEAD) && !self.logged("HEAD").iter().any(|moved| moved.to == to)
    }
}
