//! What history says: which commits are between two, and which is another's ancestor.

use crate::git::objects::Objects;
use anyhow::{Context, Result};
use gix::ObjectId;
use std::collections::HashSet;

/// How many commits to follow one by one before walking history as a whole.
const STRAIGHT: usize = 64;

impl Objects<'_> {
    /// The commits that `from` reaches and `hidden` does not, newest first.
    pub fn commits_between(&self, hidden: &[ObjectId], from: ObjectId) -> Result<Vec<ObjectId>> {
        let hidden: Vec<_> = hidden.iter().copied().filter(|id| self.repo.gix.has_object(id)).collect();
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
        let walk = self.repo.gix.rev_walk([from]).with_hidden(hidden).all().context("walk history")?;
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

    fn only_parent(&self, commit: Option<ObjectId>) -> Option<ObjectId> {
        match self.parents(commit?).ok()?[..] {
            [parent] => Some(parent),
            _ => None,
        }
    }

    /// Whether one commit is another's ancestor, or the same.
    pub fn is_ancestor(&self, ancestor: ObjectId, of: ObjectId) -> Result<bool> {
        if ancestor == of {
            return Ok(true);
        }
        if !self.repo.gix.has_object(ancestor) {
            return Ok(false);
        }
        // Most often one is a few steps below the other: follow the parents of both at once.
        let (mut below, mut above) = (Some(of), Some(ancestor));
        for _ in 0..STRAIGHT {
            (below, above) = (self.only_parent(below), self.only_parent(above));
            if below == Some(ancestor) || above == Some(of) {
                return Ok(below == Some(ancestor));
            }
        }
        let base = self.repo.gix.merge_bases_many(of, &[ancestor]).context("walk history")?;
        Ok(base.iter().any(|base| base.detach() == ancestor))
    }

    /// Which of these commits these tips reach.
    pub fn reachable_from(&self, tips: &[ObjectId], commits: &[ObjectId]) -> Result<HashSet<ObjectId>> {
        let mut reached: HashSet<ObjectId> = commits.iter().copied().collect();
        let tips: Vec<_> = tips.iter().copied().filter(|id| self.repo.gix.has_object(id)).collect();
        if tips.is_empty() || commits.is_empty() {
            return Ok(HashSet::new());
        }
        let walk = self.repo.gix.rev_walk(commits.iter().copied()).with_hidden(tips).all().context("walk history")?;
        for info in walk {
            reached.remove(&info?.id);
        }
        Ok(reached)
    }
}
