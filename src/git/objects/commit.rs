//! Making commits: the user's and the agent's with the configured identity, and
//! oxundo's own, which only its refs hold.

use crate::error::failure::to_refusal;
use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::objects::lines::changed_alike;
use anyhow::{Context, Result, bail};
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use gix::date::parse::TimeBuf;
use gix::objs::{Kind, Write as _};
use std::time::Duration;

/// Who wrote a commit, and when.
pub struct Author {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
    /// The date as git reads it; now where it is not given.
    pub date: Option<String>,
}

/// Whether commits are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// They are not.
    Never,
    /// They are, by whatever the user has set up for git, if it takes no longer than this.
    Within(Duration),
}

/// How far one commit is another one made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// It is not, as far as one can see.
    None,
    /// It has the same parents and author, or message, and is about the same path, as an amended one, and one made right after a
    /// reset may be too.
    Beside,
    /// Amended, rebased or picked: by the same author at the same time, with the same message, content or changes; or with another
    /// author or date, and the same message and changes.
    Copy,
    /// Only the message was changed, the author, the date or the signature: it has the same parents and content.
    Reworded,
}

/// What a commit is known by when it is made anew.
#[derive(Debug)]
pub struct Features {
    /// Who wrote it, and when.
    author: BString,
    /// Whether it was committed in the second in which it was written: it may be new, and need not be another one made anew.
    is_new: bool,
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

    /// Whether the messages are the same.
    pub fn has_message_of(&self, other: &Self) -> bool {
        self.message == other.message
    }

    fn is_beside(&self, other: &Self) -> bool {
        self.parents == other.parents
    }
}

/// How many commits are compared one by one, down from two that may differ in messages only.
const DEEP: usize = 64;

/// A commit as git stores it, with other parents and without a signature.
fn with_parents(commit: &[u8], parents: &[ObjectId]) -> Vec<u8> {
    let mut new = Vec::new();
    let (mut is_head, mut is_dropped) = (true, false);
    for line in commit.lines_with_terminator() {
        if is_head {
            // A line that begins with a space goes on with the one above it.
            is_dropped = if line.starts_with(b" ") {
                is_dropped
            } else {
                [&b"parent "[..], b"gpgsig ", b"gpgsig-sha256 "].iter().any(|key| line.starts_with(key))
            };
            is_head = line != b"\n";
        }
        if !(is_head && is_dropped) {
            new.extend_from_slice(line);
        }
        if line.starts_with(b"tree ") && new.len() == line.len() {
            new.extend(parents.iter().flat_map(|parent| format!("parent {parent}\n").into_bytes()));
        }
    }
    new
}

/// Where a commit cannot be signed, oxundo's need not be.
fn unsigned(error: &anyhow::Error) -> anyhow::Error {
    Refusal::new(Code::Io, to_refusal(error).message)
        .hint("run 'git config oxundo.sign never' to leave oxundo's commits unsigned")
        .into()
}

impl Objects<'_> {
    /// What a commit is known by, where it can be read.
    pub fn features(&self, id: ObjectId) -> Option<Features> {
        let commit = self.repo.find_commit(id).ok()?;
        let author = commit.author().ok()?;
        let parts: [&[u8]; 3] = [author.name, author.email, author.time.trim().as_bytes()];
        Some(Features {
            author: parts.join(&b'\n').into(),
            is_new: author.seconds() == commit.committer().ok()?.seconds(),
            message: commit.message_raw().ok()?.to_owned(),
            tree: commit.tree_id().ok()?.detach(),
            parents: commit.parent_ids().map(gix::Id::detach).collect(),
        })
    }

    /// What one commit is of another.
    pub fn likeness(&self, original: ObjectId, other: ObjectId) -> Likeness {
        let (Some(was), Some(is)) = (self.features(original), self.features(other)) else { return Likeness::None };
        // What was made on top of it is not made from it, nor is what it was made on top of.
        if is.parents.contains(&original) || was.parents.contains(&other) || !was.may_be(&is) {
            return Likeness::None;
        }
        let is_authors = was.author == is.author;
        let (is_same_message, is_same_tree) = (was.message == is.message, was.tree == is.tree);
        if was.is_beside(&is) {
            // Two empty ones have only in common that they are empty.
            let is_empty = || self.changed_in(original).is_ok_and(|changed| changed.is_empty());
            return match is_same_tree {
                true if is_authors || is_same_message || !is_empty() => Likeness::Reworded,
                false if is_authors && is_same_message => Likeness::Copy,
                // Two commits that were made in the same second may have no more in common than that.
                false if is_authors && is.is_new && !self.change_lines_alike(original, other) => Likeness::None,
                false if self.touch_the_same(original, other) => Likeness::Beside,
                _ => Likeness::None,
            };
        }
        let is_copy = is_authors && (is_same_tree || is_same_message)
            || (is_authors || is_same_message) && self.change_the_same((original, was.tree), (other, is.tree));
        if is_copy { Likeness::Copy } else { Likeness::None }
    }

    /// Whether a commit may be one that the user made of another and those below it: it has the same content, and the other
    /// changed something.
    pub fn is_squash(&self, original: ObjectId, other: ObjectId) -> bool {
        let (Some(was), Some(is)) = (self.features(original), self.features(other)) else { return false };
        was.has_tree_of(&is) && self.changed_in(original).is_ok_and(|changed| !changed.is_empty())
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
            let ([first, rest @ ..], [others, others_rest @ ..]) = (&below[..], &beside[..]) else { return false };
            if tree(original).is_none() || tree(original) != tree(other) || rest != others_rest {
                return false;
            }
            (original, other) = (*first, *others);
        }
        false
    }

    /// Makes a commit anew upon other parents. All else stays, but for a signature, which would be wrong.
    pub fn remake(&self, id: ObjectId, parents: &[ObjectId]) -> Result<ObjectId> {
        let old = self.repo.find_commit(id).with_context(|| format!("read commit {id}"))?;
        let new = with_parents(&old.data, parents);
        self.repo.gix.objects.write_buf(Kind::Commit, &new).with_context(|| format!("make commit {id} anew"))
    }

    /// Whether two commits changed a path that both changed.
    fn touch_the_same(&self, one: ObjectId, other: ObjectId) -> bool {
        match (self.changed_in(one), self.changed_in(other)) {
            (Ok(one), Ok(other)) => one.iter().any(|path| other.contains(path)),
            _ => false,
        }
    }

    /// Whether two commits on the same parent made a file of the same name, deleted the same, or did the same to any of its lines.
    fn change_lines_alike(&self, one: ObjectId, other: ObjectId) -> bool {
        let alike = || -> Result<bool> {
            let parent = self.parents(one)?.first().copied();
            let before = parent.map_or_else(|| self.write_empty_tree(), |parent| self.commit_tree(parent))?;
            let (tree, other_tree) = (self.commit_tree(one)?, self.commit_tree(other)?);
            let others = self.changed_in(other)?;
            for path in self.changed_in(one)?.iter().filter(|path| others.contains(path)) {
                let file = |tree| Ok::<_, anyhow::Error>(self.tree_file(tree, path.as_bstr())?.map(|(_, id)| id));
                let (was, one, other) = (file(before)?, file(tree)?, file(other_tree)?);
                if was.is_none() || one == other {
                    return Ok(true);
                }
                let (Some(was), Some(one), Some(other)) = (was, one, other) else { continue };
                let blobs = [self.small_blob(was)?, self.small_blob(one)?, self.small_blob(other)?];
                if let [Some(was), Some(one), Some(other)] = blobs
                    && changed_alike(&was, &one, &other)
                {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        alike().unwrap_or(false)
    }

    /// Whether two commits changed the same paths, to the same.
    fn change_the_same(&self, (one, tree): (ObjectId, ObjectId), (other, other_tree): (ObjectId, ObjectId)) -> bool {
        let (Ok(changed), Ok(others)) = (self.changed_in(one), self.changed_in(other)) else { return false };
        let is_same = |path: &BString| {
            let [one, other] = [tree, other_tree].map(|tree| self.tree_file(tree, path.as_bstr()));
            matches!((one, other), (Ok(one), Ok(other)) if one == other)
        };
        !changed.is_empty() && changed == others && changed.iter().all(is_same)
    }

    /// The paths that a commit changed against its first parent.
    pub fn changed_in(&self, id: ObjectId) -> Result<Vec<BString>> {
        let below = match self.parents(id)?.first() {
            Some(parent) => self.commit_tree(*parent)?,
            None => self.write_empty_tree()?,
        };
        self.changed_paths(below, self.commit_tree(id)?)
    }

    /// Makes a commit by the configured user. No ref moves.
    pub fn make_commit(&self, tree: ObjectId, parents: &[ObjectId], message: &str, sign: Sign) -> Result<ObjectId> {
        self.make_commit_by(None, tree, parents, message, sign)
    }

    /// As [`Repo::make_commit`], with another author: a name, an address, and a date as git
    /// writes it, where one is to be kept.
    pub fn make_commit_by(
        &self,
        author: Option<&Author>,
        tree: ObjectId,
        parents: &[ObjectId],
        message: &str,
        sign: Sign,
    ) -> Result<ObjectId> {
        if sign == Sign::Never && author.is_none() {
            let (author, committer) = (self.repo.author(), self.repo.committer());
            let [author_time, committer_time] = &mut [TimeBuf::default(), TimeBuf::default()];
            let (author, committer) = (author.to_ref(author_time), committer.to_ref(committer_time));
            let commit = self.repo.gix.new_commit_as(committer, author, message, tree, parents.iter().copied());
            return Ok(commit.context("write a commit")?.id().detach());
        }
        let mut args =
            vec!["commit-tree".to_owned(), if sign == Sign::Never { "--no-gpg-sign" } else { "-S" }.to_owned()];
        for parent in parents {
            args.extend(["-p".to_owned(), parent.to_string()]);
        }
        args.push(tree.to_string());
        let mut git = self.repo.git(args);
        if let Some(author) = author {
            git = git.env("GIT_AUTHOR_NAME", &author.name).env("GIT_AUTHOR_EMAIL", &author.email);
            if let Some(date) = &author.date {
                git = git.env("GIT_AUTHOR_DATE", date);
            }
        }
        let printed = match sign {
            Sign::Within(time) => {
                git.run_within(message.as_bytes(), time).context("sign the commit").map_err(|error| unsigned(&error))?
            }
            Sign::Never => git.run(message.as_bytes()).context("write a commit")?,
        };
        let made = ObjectId::from_hex(printed.trim()).context("read the new commit's id")?;
        if self.repo.is_looking() {
            // git has put it where only git finds it, and the next one may be made on top.
            let content =
                self.repo.git(["cat-file", "commit", &made.to_string()]).run(b"").context("read the new commit")?;
            self.repo.gix.write_buf(Kind::Commit, &content)?;
        }
        Ok(made)
    }

    /// Makes one of oxundo's own commits, never signed.
    pub fn write_own_commit(&self, tree: ObjectId, parents: Vec<ObjectId>, message: &str) -> Result<ObjectId> {
        let who = self.repo.committer();
        let commit = gix::objs::Commit {
            tree,
            parents: parents.into(),
            author: who.clone(),
            committer: who,
            encoding: None,
            message: message.into(),
            extra_headers: Vec::new(),
        };
        Ok(self.repo.gix.write_object(&commit)?.detach())
    }

    /// Whether git has this object.
    pub fn has_object(&self, id: ObjectId) -> bool {
        self.repo.gix.has_object(id)
    }

    /// Whether a commit of this id is there.
    pub fn has_commit(&self, id: ObjectId) -> bool {
        self.repo.find_commit(id).is_ok()
    }

    /// The parents of a commit; none where a shallow clone ends.
    pub fn parents(&self, id: ObjectId) -> Result<Vec<ObjectId>> {
        if self.repo.gix.shallow_commits()?.is_some_and(|shallow| shallow.iter().any(|end| *end == id)) {
            return Ok(Vec::new());
        }
        let commit = self.repo.find_commit(id).with_context(|| format!("read commit {id}"))?;
        Ok(commit.parent_ids().map(gix::Id::detach).collect())
    }

    /// A commit's author and its message.
    pub fn author_and_message(&self, id: ObjectId) -> Result<(Author, String)> {
        let commit = self.repo.find_commit(id).with_context(|| format!("read commit {id}"))?;
        let author = commit.author()?;
        let author = Author {
            name: author.name.to_string(),
            email: author.email.to_string(),
            date: Some(format!("@{}", author.time.trim())),
        };
        Ok((author, commit.message_raw()?.to_str_lossy().into_owned()))
    }

    /// The first line of a commit's message.
    pub fn commit_subject(&self, id: ObjectId) -> Result<String> {
        let commit = self.repo.find_commit(id).with_context(|| format!("read commit {id}"))?;
        let message = commit.message_raw()?;
        let first = message.lines().next().unwrap_or_default();
        Ok(crate::model::bytes::sanitized(&first.to_str_lossy()))
    }

    /// The commit that a revision names, in git's words for it: `HEAD`, `main~2`.
    pub fn commit_named(&self, revision: &str) -> Result<Option<ObjectId>> {
        if revision.is_empty() || revision.starts_with('-') {
            return Ok(None);
        }
        let wanted = format!("{revision}^{{commit}}");
        let (code, printed) = self.repo.git_apart(["rev-parse", "--verify", "-q", &wanted]).ask()?;
        Ok(ObjectId::from_hex(printed.trim()).ok().filter(|_| code == 0))
    }

    /// The one commit whose id begins with these digits.
    pub fn find_commit_id(&self, digits: &str) -> Result<ObjectId> {
        if self.repo.has_tables() {
            let wanted = format!("{digits}^{{commit}}");
            let (code, printed) = self.repo.git_apart(["rev-parse", "--verify", "-q", &wanted]).ask()?;
            let id = ObjectId::from_hex(printed.trim()).ok().filter(|_| code == 0);
            return id.with_context(|| format!("'{digits}' is not a commit"));
        }
        let Ok(id) = self.repo.gix.rev_parse_single(digits.as_bytes().as_bstr()) else {
            bail!("'{digits}' is not a commit");
        };
        Ok(id.detach())
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
        assert_eq!(likeness(head()), Likeness::Reworded);
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
