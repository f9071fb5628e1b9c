//! Making commits: the user's and the agent's with the configured identity, and
//! oxundo's own, which only its refs hold.

use super::Repo;
use crate::config::Config;
use anyhow::{Context, Result, bail};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::date::parse::TimeBuf;
use std::collections::HashSet;

/// How many commits are gone down before history is walked as a whole.
const STRAIGHT: usize = 64;

/// Who wrote a commit, and when.
pub struct Author {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
    /// The date as git reads it; now where it is not given.
    pub date: Option<String>,
}

impl Repo {
    /// Makes a commit by the configured user. No ref moves.
    ///
    /// # Errors
    ///
    /// When it cannot be written or, with `sign`, not be signed.
    pub fn make_commit(&self, tree: ObjectId, parents: &[ObjectId], message: &str, sign: bool) -> Result<ObjectId> {
        self.make_commit_by(None, tree, parents, message, sign)
    }

    /// As [`Repo::make_commit`], with another author: a name, an address, and a date as git
    /// writes it, where one is to be kept.
    ///
    /// # Errors
    ///
    /// When it cannot be written or, with `sign`, not be signed.
    pub fn make_commit_by(
        &self,
        author: Option<&Author>,
        tree: ObjectId,
        parents: &[ObjectId],
        message: &str,
        sign: bool,
    ) -> Result<ObjectId> {
        if !sign && author.is_none() {
            let (author, committer) = (self.author(), self.committer());
            let [author_time, committer_time] = &mut [TimeBuf::default(), TimeBuf::default()];
            let (author, committer) = (author.to_ref(author_time), committer.to_ref(committer_time));
            let commit = self.gix.new_commit_as(committer, author, message, tree, parents.iter().copied());
            return Ok(commit.context("write a commit")?.id().detach());
        }
        let mut args = vec!["commit-tree".to_owned(), if sign { "-S" } else { "--no-gpg-sign" }.to_owned()];
        for parent in parents {
            args.extend(["-p".to_owned(), parent.to_string()]);
        }
        args.push(tree.to_string());
        let mut git = self.git(args);
        if let Some(author) = author {
            git = git.env("GIT_AUTHOR_NAME", &author.name).env("GIT_AUTHOR_EMAIL", &author.email);
            if let Some(date) = &author.date {
                git = git.env("GIT_AUTHOR_DATE", date);
            }
        }
        let printed = if sign {
            git.run_within(message.as_bytes(), Config(self).sign_timeout()?).context("sign the commit")?
        } else {
            git.run(message.as_bytes()).context("write a commit")?
        };
        ObjectId::from_hex(printed.trim()).context("read the new commit's id")
    }

    /// Makes one of oxundo's own commits, never signed.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write_own_commit(&self, tree: ObjectId, parents: Vec<ObjectId>, message: &str) -> Result<ObjectId> {
        let who = self.committer();
        let commit = gix::objs::Commit {
            tree,
            parents: parents.into(),
            author: who.clone(),
            committer: who,
            encoding: None,
            message: message.into(),
            extra_headers: Vec::new(),
        };
        Ok(self.gix.write_object(&commit)?.detach())
    }

    /// The commits that `from` reaches and `hidden` does not, newest first.
    ///
    /// # Errors
    ///
    /// When history cannot be read.
    pub fn commits_between(&self, hidden: &[ObjectId], from: ObjectId) -> Result<Vec<ObjectId>> {
        let hidden: Vec<_> = hidden.iter().copied().filter(|id| self.gix.has_object(id)).collect();
        if hidden.contains(&from) {
            return Ok(Vec::new());
        }
        // The usual case needs no walk of history: a line of commits straight down. With more
        // than one tip, what is above the first may still be below another.
        if let [tip] = hidden[..]
            && let Some(line) = self.straight_line(tip, from)?
        {
            return Ok(line);
        }
        let walk = self.gix.rev_walk([from]).with_hidden(hidden).all().context("walk history")?;
        walk.map(|info| Ok(info?.id)).collect()
    }

    fn straight_line(&self, tip: ObjectId, from: ObjectId) -> Result<Option<Vec<ObjectId>>> {
        let mut line = Vec::new();
        let mut at = from;
        while line.len() < STRAIGHT {
            if at == tip {
                return Ok(Some(line));
            }
            let parents = self.parents(at)?;
            let [parent] = parents[..] else { return Ok(None) };
            line.push(at);
            at = parent;
        }
        Ok(None)
    }

    /// Whether git has this object.
    pub fn has_object(&self, id: ObjectId) -> bool {
        self.gix.has_object(id)
    }

    /// Whether a commit of this id is there.
    pub fn has_commit(&self, id: ObjectId) -> bool {
        self.gix.find_commit(id).is_ok()
    }

    /// The parents of a commit; none where a shallow clone ends.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn parents(&self, id: ObjectId) -> Result<Vec<ObjectId>> {
        if self.gix.shallow_commits()?.is_some_and(|shallow| shallow.iter().any(|end| *end == id)) {
            return Ok(Vec::new());
        }
        let commit = self.gix.find_commit(id).with_context(|| format!("read commit {id}"))?;
        Ok(commit.parent_ids().map(gix::Id::detach).collect())
    }

    /// A commit's author and its message.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn author_and_message(&self, id: ObjectId) -> Result<(Author, String)> {
        let commit = self.gix.find_commit(id).with_context(|| format!("read commit {id}"))?;
        let author = commit.author()?;
        let author = Author {
            name: author.name.to_string(),
            email: author.email.to_string(),
            date: Some(format!("@{}", author.time.trim())),
        };
        Ok((author, commit.message_raw()?.to_str_lossy().into_owned()))
    }

    /// The first line of a commit's message.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn commit_subject(&self, id: ObjectId) -> Result<String> {
        let commit = self.gix.find_commit(id).with_context(|| format!("read commit {id}"))?;
        let message = commit.message_raw()?;
        let first = message.lines().next().unwrap_or_default();
        Ok(crate::model::bytes::sanitized(&first.to_str_lossy()))
    }

    fn only_parent(&self, commit: Option<ObjectId>) -> Option<ObjectId> {
        match self.parents(commit?).ok()?[..] {
            [parent] => Some(parent),
            _ => None,
        }
    }

    /// Whether one commit is another's ancestor, or the same.
    ///
    /// # Errors
    ///
    /// When history cannot be read.
    pub fn is_ancestor(&self, ancestor: ObjectId, of: ObjectId) -> Result<bool> {
        if ancestor == of {
            return Ok(true);
        }
        if !self.gix.has_object(ancestor) {
            return Ok(false);
        }
        // Most often one is a few steps below the other: going down from both at once tells which.
        let (mut below, mut above) = (Some(of), Some(ancestor));
        for _ in 0..STRAIGHT {
            (below, above) = (self.only_parent(below), self.only_parent(above));
            if below == Some(ancestor) || above == Some(of) {
                return Ok(below == Some(ancestor));
            }
        }
        let base = self.gix.merge_bases_many(of, &[ancestor]).context("walk history")?;
        Ok(base.iter().any(|base| base.detach() == ancestor))
    }

    /// The one commit whose id begins with these digits.
    ///
    /// # Errors
    ///
    /// When there is none, or more than one.
    pub fn find_commit_id(&self, digits: &str) -> Result<ObjectId> {
        let Ok(id) = self.gix.rev_parse_single(digits.as_bytes().as_bstr()) else {
            bail!("'{digits}' is not a commit");
        };
        Ok(id.detach())
    }

    /// Which of these commits these tips reach.
    ///
    /// # Errors
    ///
    /// When history cannot be read.
    pub fn reachable_from(&self, tips: &[ObjectId], commits: &[ObjectId]) -> Result<HashSet<ObjectId>> {
        let mut reached: HashSet<ObjectId> = commits.iter().copied().collect();
        let tips: Vec<_> = tips.iter().copied().filter(|id| self.gix.has_object(id)).collect();
        if tips.is_empty() || commits.is_empty() {
            return Ok(HashSet::new());
        }
        let walk = self.gix.rev_walk(commits.iter().copied()).with_hidden(tips).all().context("walk history")?;
        for info in walk {
            reached.remove(&info?.id);
        }
        Ok(reached)
    }
}
