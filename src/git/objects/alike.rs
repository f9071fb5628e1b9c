//! How far one commit is another one made anew: amended, rebased, picked, or with another message.

use crate::git::objects::Objects;
use crate::git::objects::changes::Changes;
use crate::git::objects::lines::changed_alike;
use crate::git::objects::tree::TreeSlot;
use gix::ObjectId;
use gix::bstr::BString;
use std::cell::OnceCell;
use std::cmp::Ordering;

/// How far one commit is another one made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// It is not, as far as one can see.
    None,
    /// It has the same parents and author, or message, and is about the same path, as an amended one, and one made right after a
    /// reset may be too.
    Beside,
    /// Amended, rebased or picked: by the same author at the same time, with the same message, content or changes; or with another
    /// author or date, and the same message and changes. Or done once more, on the same parents and with the same content.
    Copy,
    /// Only the message was changed, or the author, the date or the signature: it has the same parents and content.
    Reworded,
}

/// What a commit is known by when it is made anew.
#[derive(Clone, Debug)]
pub struct Features {
    /// Who wrote it, and when.
    author: BString,
    /// Whether it was committed in the second in which it was written: it may be new, and need not be another one made anew.
    is_new: bool,
    /// When it was committed, in seconds since 1970.
    committed: i64,
    message: BString,
    tree: ObjectId,
    parents: Vec<ObjectId>,
}

impl Features {
    /// Whether they have enough in common for one to be made from the other.
    pub fn may_be(&self, other: &Self) -> bool {
        self.author == other.author
            || self.message == other.message
            || (self.is_beside(other) && self.tree == other.tree)
    }

    /// Whether they have the same content, as the commit has that the user made of several.
    pub fn has_tree_of(&self, other: &Self) -> bool {
        self.tree == other.tree
    }

    /// Whether both were written by the same author at the same time.
    pub fn has_author_of(&self, other: &Self) -> bool {
        self.author == other.author
    }

    /// Whether the messages are the same.
    pub fn has_message_of(&self, other: &Self) -> bool {
        self.message == other.message
    }

    /// Whether they have the author, the date and the parents in common, as what git amends has.
    pub fn may_be_amended(&self, other: &Self) -> bool {
        self.author == other.author && self.is_beside(other)
    }

    /// Which of the two was committed first.
    pub fn age_to(&self, other: &Self) -> Ordering {
        self.committed.cmp(&other.committed)
    }

    /// Whether it was committed after this time, in seconds since 1970, by the clock of whoever did it.
    pub fn is_after(&self, time: i64) -> bool {
        self.committed > time
    }

    /// Whether it is a merge.
    pub fn is_merge(&self) -> bool {
        self.parents.len() > 1
    }

    fn is_beside(&self, other: &Self) -> bool {
        self.parents == other.parents
    }
}

/// A commit that is compared with others: what it is known by, where it can be read, and what it changes, once somebody asks.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The commit.
    pub id: ObjectId,
    /// What it is known by.
    pub features: Option<Features>,
    changes: OnceCell<Changes>,
}

/// How many commits are compared one by one, down from two that may differ in messages only.
const DEEP: usize = 64;

impl Objects<'_> {
    /// What a commit is known by, where it can be read.
    pub fn features(&self, id: ObjectId) -> Option<Features> {
        let commit = self.repo.find_commit(id).ok()?;
        let author = commit.author().ok()?;
        let parts: [&[u8]; 3] = [author.name, author.email, author.time.trim().as_bytes()];
        let committed = commit.committer().ok()?.seconds();
        Some(Features {
            author: parts.join(&b'\n').into(),
            is_new: author.seconds() == committed,
            committed,
            message: commit.message_raw().ok()?.to_owned(),
            tree: commit.tree_id().ok()?.detach(),
            parents: commit.parent_ids().map(gix::Id::detach).collect(),
        })
    }

    /// A commit, to be compared with others.
    pub fn seen(&self, id: ObjectId) -> Seen {
        Seen { id, features: self.features(id), changes: OnceCell::new() }
    }

    /// What a commit changes; nothing where that cannot be read.
    pub fn changes_in<'s>(&self, seen: &'s Seen) -> &'s Changes {
        seen.changes.get_or_init(|| self.changes_of(seen.id).unwrap_or_default())
    }

    /// What one commit is of another.
    pub fn likeness(&self, original: ObjectId, other: ObjectId) -> Likeness {
        self.alike(&self.seen(original), &self.seen(other))
    }

    /// What one commit is of another.
    pub fn alike(&self, original: &Seen, other: &Seen) -> Likeness {
        let (Some(was), Some(is)) = (&original.features, &other.features) else { return Likeness::None };
        // What was made on top of it is not made from it, nor is what it was made on top of.
        if is.parents.contains(&original.id) || was.parents.contains(&other.id) || !was.may_be(is) {
            return Likeness::None;
        }
        let is_authors = was.author == is.author;
        let (is_same_message, is_same_tree) = (was.message == is.message, was.tree == is.tree);
        if was.is_beside(is) {
            // Two empty ones have only in common that they are empty.
            return match is_same_tree {
                true if is_authors || is_same_message => Likeness::Reworded,
                // By somebody else and in other words it may be what another has done by hand, which came to the same.
                true if !self.changes_in(original).is_empty() => Likeness::Copy,
                false if is_authors && is_same_message => Likeness::Copy,
                // Two commits that were made in the same second may have no more in common than that.
                false if is_authors && is.is_new && !self.change_lines_alike(original, other) => Likeness::None,
                false if self.touch_the_same(original, other) => Likeness::Beside,
                _ => Likeness::None,
            };
        }
        let is_copy = is_authors && (is_same_tree || is_same_message)
            || (is_authors || is_same_message) && self.change_the_same(original, other);
        if is_copy { Likeness::Copy } else { Likeness::None }
    }

    /// Whether two commits change the same.
    pub fn change_the_same(&self, one: &Seen, other: &Seen) -> bool {
        self.are_the_same(self.changes_in(one), self.changes_in(other))
    }

    /// Whether a commit is another one made anew with nothing changed but messages: its own, or those of commits below it.
    pub fn is_reworded(&self, original: ObjectId, other: ObjectId) -> bool {
        let (mut original, mut other) = (original, other);
        for _ in 0..DEEP {
            match self.likeness(original, other) {
                Likeness::Reworded => return true,
                Likeness::Copy => {}
                Likeness::None | Likeness::Beside => return false,
            }
            let tree = |id| self.commit_tree(id).ok();
            let (Ok(below), Ok(beside)) = (self.parents(original), self.parents(other)) else { return false };
            if below == beside {
                return false;
            }
            let ([first, rest @ ..], [others, others_rest @ ..]) = (&below[..], &beside[..]) else { return false };
            if tree(original).is_none() || tree(original) != tree(other) || rest != others_rest {
                return false;
            }
            (original, other) = (*first, *others);
        }
        false
    }

    /// Whether two commits changed a path that both changed.
    fn touch_the_same(&self, one: &Seen, other: &Seen) -> bool {
        let others = self.changes_in(other);
        self.changes_in(one).keys().any(|path| others.contains_key(path))
    }

    /// Whether two commits on the same parent made a file of the same name, deleted the same, or did the same to any of its lines.
    fn change_lines_alike(&self, one: &Seen, other: &Seen) -> bool {
        let others = self.changes_in(other);
        let blob = |slot: TreeSlot| self.small_blob(slot?.1).ok().flatten();
        self.changes_in(one).iter().filter_map(|(path, one)| Some((one, others.get(path)?))).any(|(one, other)| {
            let is_alike = || {
                let (was, one, other) = (blob(one.from)?, blob(one.to)?, blob(other.to)?);
                Some(changed_alike(&was, &one, &other))
            };
            one.from.is_none() || one.to.map(|(_, id)| id) == other.to.map(|(_, id)| id) || is_alike().unwrap_or(false)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;

    #[test]
    fn a_commit_that_was_made_anew_is_told_from_others() {
        let f = Fixture::new();
        f.commit("base", "base");
        let original = f.commit("a", "one");
        let head = || f.id(&["rev-parse", "HEAD"]);
        let likeness = |other| Objects::new(&f.repo).likeness(original, other);
        f.git(&["commit", "-q", "--amend", "-m", "better"]);
        assert_eq!(likeness(head()), Likeness::Reworded);
        f.write("a", "two");
        f.git(&["commit", "-qa", "--amend", "-m", "another"]);
        assert_eq!(likeness(head()), Likeness::Beside, "all but the author and the parents is another");
        f.git(&["reset", "-q", "--hard", &original.to_string()]);
        f.write("a", "two");
        f.git(&["commit", "-qa", "--amend", "--no-edit"]);
        assert_eq!(likeness(head()), Likeness::Copy, "the message is the same");
        f.git(&["reset", "-q", "--hard", &format!("{original}~1")]);
        f.git(&["commit", "-q", "--allow-empty", "-m", "between"]);
        f.git(&["cherry-pick", &original.to_string()]);
        assert_eq!(likeness(head()), Likeness::Copy, "it is on other parents");
        f.git(&["reset", "-q", "--hard", &original.to_string()]);
        f.git(&["commit", "-q", "--allow-empty", "-C", "HEAD"]);
        assert_eq!(likeness(head()), Likeness::None, "it is on top of it");
        f.git(&["commit", "-q", "--amend", "--allow-empty", "--author", "Else <else@example.com>", "--no-edit"]);
        assert_eq!(likeness(head()), Likeness::None);
        let gone = ObjectId::from_bytes_or_panic(&[7; 20]);
        assert_eq!(likeness(gone), Likeness::None);
        assert!(Objects::new(&f.repo).features(gone).is_none());
    }

    #[test]
    fn a_commit_by_another_author_is_told_by_what_it_changes() {
        let f = Fixture::new();
        f.commit("base", "base");
        let original = f.commit("a", "one");
        let head = || f.id(&["rev-parse", "HEAD"]);
        let likeness = |other| Objects::new(&f.repo).likeness(original, other);
        let else_is = ["--author", "Else <else@example.com>", "--date", "2001-01-01T00:00:00"];
        let amend = |more: &[&str]| drop(f.git(&[&["commit", "-qa", "--amend"], &else_is[..], more].concat()));
        amend(&["--no-edit"]);
        assert_eq!(likeness(head()), Likeness::Reworded, "it is the same content on the same parents");
        amend(&["-m", "his own words"]);
        assert_eq!(likeness(head()), Likeness::Copy, "it may be his own work, which comes to the same");
        assert!(!Objects::new(&f.repo).is_reworded(original, head()));
        f.git(&["reset", "-q", "--hard", &original.to_string()]);
        f.write("a", "two");
        amend(&["--no-edit"]);
        assert_eq!(likeness(head()), Likeness::Beside);
        amend(&["-m", "his own words"]);
        assert_eq!(likeness(head()), Likeness::None, "nothing is left of it");
        f.git(&["reset", "-q", "--hard", &format!("{original}~1")]);
        f.git(&["commit", "-q", "--allow-empty", "-m", "between"]);
        f.git(&["cherry-pick", &original.to_string()]);
        amend(&["--no-edit"]);
        assert_eq!(likeness(head()), Likeness::Copy, "picked");
        amend(&["-m", "his own words"]);
        assert_eq!(likeness(head()), Likeness::None);
        f.git(&["reset", "-q", "--hard", &format!("{original}~1")]);
        f.git(&["commit", "-q", "--allow-empty", "-m", "empty"]);
        let empty = head();
        amend(&["--allow-empty", "-m", "another"]);
        assert_eq!(Objects::new(&f.repo).likeness(empty, head()), Likeness::None, "one empty commit is like the other");
    }
}
