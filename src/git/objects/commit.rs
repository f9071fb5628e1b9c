//! Making commits: the user's and the agent's with the configured identity, and
//! oxundo's own, which only its refs hold.

use crate::error::failure::to_refusal;
use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::model::checkpoint::StashEntry;
use anyhow::{Context, Result, bail};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::date::parse::TimeBuf;
use gix::objs::{Kind, Write as _};
use gix::shallow::Commits;
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
    /// Makes a commit anew upon other parents. All else stays, but for a signature, which would be wrong.
    pub fn remake(&self, id: ObjectId, parents: &[ObjectId]) -> Result<ObjectId> {
        let old = self.repo.find_commit(id).with_context(|| format!("read commit {id}"))?;
        let new = with_parents(&old.data, parents);
        self.repo.gix.objects.write_buf(Kind::Commit, &new).with_context(|| format!("make commit {id} anew"))
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

    /// A commit as an entry of the stash list with this message, where it can be read.
    pub fn as_stash_entry(&self, id: ObjectId, message: &str) -> Option<StashEntry> {
        let commit = self.repo.find_commit(id).ok()?;
        let made = commit.committer().ok()?;
        let [name, email] = [made.name, made.email].map(ToString::to_string);
        Some(StashEntry { id, name, email, date: made.time.trim().to_owned(), message: message.to_owned() })
    }

    /// Whether a commit of this id is there.
    pub fn has_commit(&self, id: ObjectId) -> bool {
        self.repo.find_commit(id).is_ok()
    }

    /// The parents of a commit; none where a shallow clone ends.
    pub fn parents(&self, id: ObjectId) -> Result<Vec<ObjectId>> {
        self.parents_above(self.edge()?.as_ref(), id)
    }

    /// Where a shallow clone ends: to look at it is to ask the file system.
    pub(super) fn edge(&self) -> Result<Option<Commits>> {
        Ok(self.repo.gix.shallow_commits()?)
    }

    /// The parents of a commit, where this is the edge of a shallow clone.
    pub(super) fn parents_above(&self, edge: Option<&Commits>, id: ObjectId) -> Result<Vec<ObjectId>> {
        if edge.is_some_and(|edge| edge.iter().any(|end| *end == id)) {
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
