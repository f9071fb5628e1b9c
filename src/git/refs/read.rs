//! Reading refs.

use crate::error::{Code, Refusal};
use crate::git::refs::{Edit, Refs, full_name, moved_meanwhile};
use crate::git::repo::refs;
use crate::model::bytes::{instead, lossless};
use crate::model::checkpoint;
use crate::model::checkpoint::Head;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::refs::Target;
use std::collections::BTreeMap;
use std::path::Path;

/// How often HEAD and the branches may move while they are read.
const MOMENTS: u32 = 5;

/// HEAD and the branches at one moment.
#[derive(Debug)]
pub struct Moment {
    /// HEAD.
    pub head: Head,
    /// Every branch and where it points.
    pub branches: BTreeMap<String, ObjectId>,
    /// The branches that stand for another ref, and for which.
    pub symbolic: BTreeMap<String, String>,
}

/// A name that a branch can have, made of one that it cannot.
fn a_branch_name(wanted: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || c == '_' { c } else { '-' };
    let parts = wanted.split('/').map(|part| part.chars().map(plain).collect::<String>());
    let parts: Vec<String> =
        parts.map(|part| part.trim_matches('-').to_owned()).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() || parts == ["HEAD"] { "new".to_owned() } else { parts.join("/") }
}

/// The branch of these beside which git cannot keep one of this name: the one is a directory where the other is a file.
pub fn in_the_way_of<'a>(name: &str, others: impl IntoIterator<Item = &'a String>) -> Option<&'a String> {
    let below = |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
    others.into_iter().find(|other| below(name, other) || below(other, name))
}

/// Every ref of oxundo's.
pub const REFS: [&str; 2] = ["refs/oxundo", "refs/notes/oxundo"];

impl Refs<'_> {
    /// The full name of a branch that is to be made.
    pub fn new_branch_name(&self, short: &str) -> Result<String> {
        let full = format!("refs/heads/{short}");
        let checked = self.repo.git_apart(["check-ref-format", "--branch", short]).ask()?;
        if checked.0 != 0 || checked.1.trim() != short.as_bytes() {
            return Err(Refusal::new(Code::Usage, format!("'{short}' cannot be a branch's name"))
                .hint(instead(short, a_branch_name(short)))
                .into());
        }
        let refused = |why: String| {
            Err(Refusal::new(Code::Branch, why).hint("give another name, or run 'git branch' to see them").into())
        };
        let (branches, symbolic) = self.all_branches()?;
        if branches.contains_key(&full) || symbolic.contains_key(&full) {
            return refused(format!("there is a branch '{short}' already"));
        }
        if let Some(other) = in_the_way_of(&full, branches.keys().chain(symbolic.keys())) {
            let other = checkpoint::short_branch(other);
            return refused(format!("there is a branch '{other}', beside which git cannot keep one '{short}'"));
        }
        Ok(full)
    }

    /// A refusal unless a ref is where its edit expects it.
    pub(super) fn expect(&self, edit: &Edit, name: &str) -> Result<()> {
        let now = self.repo.ref_value(edit.name.as_ref())?;
        if now == edit.from { Ok(()) } else { Err(moved_meanwhile(name)) }
    }

    /// Where HEAD is now.
    pub fn head(&self) -> Result<Head> {
        let head = self.repo.ref_value(full_name("HEAD")?.as_ref()).context("read HEAD")?;
        match head.context("there is no HEAD")? {
            Target::Object(id) => Ok(Head { commit: Some(id), ..Head::default() }),
            Target::Symbolic(given) => {
                let (branch, commit) =
                    refs::resolved(|name| self.repo.ref_value(name), given.clone()).context("read HEAD")?;
                let through = (branch != given).then(|| lossless::encode(given.as_bstr()));
                Ok(Head { branch: Some(lossless::encode(branch.as_bstr())), commit, through })
            }
        }
    }

    /// HEAD and all branches at one moment: read in one order, until HEAD and its branch are still the same at the end.
    pub fn moment(&self) -> Result<Moment> {
        let mut tries = 0..MOMENTS;
        loop {
            let head = self.head()?;
            let (branches, symbolic) = self.all_branches()?;
            let tip = head.branch.as_ref().map_or(head.commit, |branch| branches.get(branch).copied());
            let is_one = head.is_on_other_ref() || tip == head.commit;
            if tries.next().is_none() || is_one && self.head()? == head {
                return Ok(Moment { head, branches, symbolic });
            }
        }
    }

    /// Every branch and where it points. One that stands for another is none.
    pub fn branches(&self) -> Result<BTreeMap<String, ObjectId>> {
        Ok(self.all_branches()?.0)
    }

    /// Every branch that stands for another ref, and for which.
    pub fn symbolic(&self) -> Result<BTreeMap<String, String>> {
        Ok(self.all_branches()?.1)
    }

    /// The branches, and those that stand for others.
    pub fn all_branches(&self) -> Result<(BTreeMap<String, ObjectId>, BTreeMap<String, String>)> {
        let (mut branches, mut symbolic) = (BTreeMap::new(), BTreeMap::new());
        for (full, id) in self.repo.refs_below("refs/heads/")? {
            let name = lossless::encode(full.as_bstr());
            if let Some(id) = id {
                branches.insert(name, id);
            } else if let Some(Target::Symbolic(other)) = self.repo.ref_value(full.as_ref())? {
                symbolic.insert(name, lossless::encode(other.as_bstr()));
            }
        }
        Ok((branches, symbolic))
    }

    /// Where a ref points; `None` when there is no such ref.
    pub fn ref_id(&self, name: &str) -> Result<Option<ObjectId>> {
        let target = self.repo.ref_value(full_name(name)?.as_ref());
        Ok(target.with_context(|| format!("read {name}"))?.and_then(|target| target.try_id().map(ToOwned::to_owned)))
    }

    /// The branches that other worktrees have checked out, with these worktrees' directories.
    pub fn branches_elsewhere(&self) -> Result<BTreeMap<String, String>> {
        let mut elsewhere = BTreeMap::new();
        for other in self.other_worktrees()? {
            // A bare repository has a HEAD, and nothing is checked out there.
            if other.workdir().is_none() && other.config_snapshot().boolean("core.bare") == Some(true) {
                continue;
            }
            let head = refs::value(&other, full_name("HEAD")?.as_ref());
            let Ok(Some(Target::Symbolic(given))) = head else { continue };
            let (name, _) = refs::resolved(|name| refs::value(&other, name), given)?;
            let place = other.workdir().unwrap_or(other.git_dir()).display().to_string();
            elsewhere.insert(lossless::encode(name.as_bstr()), place);
        }
        Ok(elsewhere)
    }

    /// The commits that are on something beside the branches: tags, remote-tracking branches, and the detached HEADs of other
    /// worktrees.
    pub fn tips_beside(&self) -> Result<Vec<ObjectId>> {
        let mut tips = Vec::new();
        for prefix in ["refs/remotes/", "refs/tags/"] {
            tips.extend(self.repo.refs_below(prefix)?.into_iter().filter_map(|(_, id)| id));
        }
        for other in self.other_worktrees()? {
            let head = refs::value(&other, full_name("HEAD")?.as_ref());
            tips.extend(head.ok().flatten().and_then(|head| head.try_id().map(ToOwned::to_owned)));
        }
        // A tag may be an object of its own.
        let commit = |id: ObjectId| Some(self.repo.find_object(id).ok()?.peel_to_commit().ok()?.id);
        Ok(tips.into_iter().filter_map(commit).collect())
    }

    /// The repository as it is seen from each other worktree that can be opened.
    fn other_worktrees(&self) -> Result<Vec<gix::Repository>> {
        if !self.repo.common_dir.join("worktrees").exists() {
            return Ok(Vec::new());
        }
        let all = self.repo.gix.worktrees_including_main()?.flatten();
        Ok(all.filter(|other| !is_same_place(other.git_dir(), &self.repo.git_dir)).collect())
    }

    /// Every ref of oxundo's, of all worktrees.
    pub fn own_refs(&self) -> Result<Vec<String>> {
        let args = ["for-each-ref", "--format=%(refname)"].into_iter().chain(REFS);
        let printed = self.repo.git_apart(args).run(b"")?;
        Ok(printed.lines().map(lossless::encode).collect())
    }
}

fn is_same_place(a: &Path, b: &Path) -> bool {
    std::fs::canonicalize(a).is_ok_and(|a| a == b)
}
