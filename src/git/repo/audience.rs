//! Who besides its owner can get at something: by the permission bits of it and of the directories above it.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// What somebody needs to read a file.
pub const READ: u32 = 0o4;

/// What somebody needs to get at what is in a directory whose name is known.
pub const PASS: u32 = 0o1;

/// Those who can get at something, besides its owner and the superuser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience {
    /// All users.
    Everybody,
    /// Who is a member of each of these groups.
    Members(BTreeSet<u32>),
    /// No other user.
    Nobody,
}

impl Audience {
    /// Those of them whom something of this mode, and of this group, surely gives all that they need.
    #[must_use]
    pub fn surely(self, mode: u32, group: u32, need: u32) -> Self {
        match (gives(mode >> 3, need), gives(mode, need)) {
            (true, true) => self,
            (true, false) => self.among(group),
            // Who is in the group may not.
            (false, _) => Self::Nobody,
        }
    }

    /// Those of them whom it may give that.
    #[must_use]
    pub fn perhaps(self, mode: u32, group: u32, need: u32) -> Self {
        match (gives(mode >> 3, need), gives(mode, need)) {
            (_, true) => self,
            (true, false) => self.among(group),
            (false, false) => Self::Nobody,
        }
    }

    fn among(self, group: u32) -> Self {
        match self {
            Self::Everybody => Self::Members([group].into()),
            Self::Members(mut groups) => {
                groups.insert(group);
                Self::Members(groups)
            }
            Self::Nobody => Self::Nobody,
        }
    }

    /// Whether all of the others are among these.
    pub fn includes(&self, others: &Self) -> bool {
        match (self, others) {
            (Self::Everybody, _) | (_, Self::Nobody) => true,
            (Self::Members(few), Self::Members(all)) => few.is_subset(all),
            (Self::Members(_), Self::Everybody) | (Self::Nobody, _) => false,
        }
    }

    /// Who gets into a directory, through all those above it.
    pub fn of_directory(path: &Path) -> Self {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let all = path.ancestors().filter_map(|above| above.metadata().ok());
        all.fold(Self::Everybody, |audience, about: Metadata| {
            audience.perhaps(about.permissions().mode(), about.gid(), PASS)
        })
    }
}

fn gives(bits: u32, need: u32) -> bool {
    bits & need == need
}

/// Whether a group is the user's own, with nobody else in it, as many systems make one for each user.
pub fn is_own_group(group: u32) -> bool {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    is_own(group, rustix::process::geteuid().as_raw(), &read("/etc/group"), &read("/etc/passwd"))
}

fn is_own(group: u32, user: u32, groups: &str, users: &str) -> bool {
    fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
        text.lines().map(|line| line.split(':').collect())
    }
    let is = |row: &[&str], column: usize, id: u32| row.get(column).is_some_and(|field| field.parse() == Ok(id));
    let Some(name) = rows(users).find(|row| is(row, 2, user)).and_then(|row| row.first().copied()) else {
        return false;
    };
    let is_only = |row: Vec<&str>| {
        let members = row.get(3).copied().unwrap_or_default();
        row.first() == Some(&name) && members.split(',').all(|member| member.is_empty() || member == name)
    };
    let mut named = rows(groups).filter(|row| is(row, 2, group)).peekable();
    // Systems that keep users elsewhere may know more of a group that is not in the file.
    named.peek().is_some() && named.all(is_only) && rows(users).all(|row| !is(&row, 3, group) || is(&row, 2, user))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(groups: &[u32]) -> Audience {
        Audience::Members(groups.iter().copied().collect())
    }

    #[test]
    fn bits_say_who_can_and_who_surely_can() {
        for (mode, surely, perhaps) in [
            (0o644, Audience::Everybody, Audience::Everybody),
            (0o640, members(&[7]), members(&[7])),
            (0o600, Audience::Nobody, Audience::Nobody),
            (0o604, Audience::Nobody, Audience::Everybody),
        ] {
            assert_eq!(Audience::Everybody.surely(mode, 7, READ), surely, "{mode:o}");
            assert_eq!(Audience::Everybody.perhaps(mode, 7, READ), perhaps, "{mode:o}");
        }
        assert_eq!(members(&[7]).surely(0o750, 8, READ | PASS), members(&[7, 8]));
        assert_eq!(Audience::Everybody.surely(0o711, 7, READ | PASS), Audience::Nobody, "nobody sees the names");
        assert_eq!(Audience::Everybody.perhaps(0o711, 7, PASS), Audience::Everybody, "but knows some");
    }

    #[test]
    fn an_audience_includes_another_where_each_of_the_others_is_in_it() {
        let all = [Audience::Everybody, members(&[1]), members(&[1, 2]), Audience::Nobody];
        for (at, larger) in all.iter().enumerate() {
            for (other, smaller) in all.iter().enumerate() {
                assert_eq!(larger.includes(smaller), at <= other, "{larger:?} {smaller:?}");
            }
        }
        assert!(!members(&[1]).includes(&members(&[2])));
    }

    #[test]
    fn a_group_is_a_users_own_where_nobody_else_is_in_it() {
        let users = "root:x:0:0::/:/bin/sh\nann:x:1000:1000::/:/bin/sh\nbob:x:1001:1001::/:/bin/sh\n";
        let groups = "root:x:0:\nann:x:1000:\nbob:x:1001:ann\ndev:x:50:ann\n";
        assert!(is_own(1000, 1000, groups, users));
        assert!(!is_own(1001, 1001, groups, users), "another is a member");
        assert!(!is_own(50, 1000, groups, users), "it has another name");
        assert!(!is_own(1000, 1001, groups, users), "it is another's");
        assert!(!is_own(77, 1000, groups, users), "nobody knows it");
        let more = format!("{users}cy:x:1002:1000::/:/bin/sh\n");
        assert!(!is_own(1000, 1000, groups, &more), "it is another's first group");
    }
}
