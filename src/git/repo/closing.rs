//! Who gets into the git directory, and how it is closed to those who are not meant to.

use crate::git::repo::Repo;
use crate::git::repo::audience::{Audience, is_own_group};
use crate::git::repo::sharing::Sharing;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

/// What is taken away from whom to close a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    /// In the words of `chmod`.
    pub words: &'static str,
    bits: u32,
}

impl Repo {
    /// Who can read what is in git's objects.
    pub fn audience(&self) -> Audience {
        let mut known = self.audience.borrow_mut();
        let look = || match Audience::of_directory(self.gix.objects.store_ref().path()) {
            Audience::Members(groups) if groups.iter().any(|group| is_own_group(*group)) => Audience::Nobody,
            audience => audience,
        };
        known.get_or_insert_with(look).clone()
    }

    /// Who gets to the worktree.
    pub fn audience_of_top(&self) -> Audience {
        self.top().parent().map_or(Audience::Everybody, Audience::of_directory)
    }

    /// Whether the directories above the worktree are above the git directory as well.
    pub fn has_own_git_directory(&self) -> bool {
        self.gix.objects.store_ref().path().starts_with(self.top())
    }

    /// What `chmod` has to take away from whom, so that those do not get into the git directory who are not meant to; none
    /// where there is nobody.
    pub fn closing(&self) -> Option<Closing> {
        match (self.sharing(), self.audience()) {
            (_, Audience::Nobody) => None,
            (Sharing::Own, _) => Some(Closing { words: "go-rwx", bits: 0o077 }),
            (sharing, Audience::Everybody) if !sharing.is_with_everybody() => {
                Some(Closing { words: "o-rwx", bits: 0o007 })
            }
            _ => None,
        }
    }

    /// Takes it away.
    pub fn close_git_directory(&self, closing: &Closing) -> std::io::Result<()> {
        let mode = self.common_dir.metadata()?.permissions().mode() & 0o7777;
        std::fs::set_permissions(&self.common_dir, Permissions::from_mode(mode & !closing.bits))?;
        *self.audience.borrow_mut() = None;
        Ok(())
    }
}
