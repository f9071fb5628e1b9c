//! Whether a plan names only what oxundo may touch: somebody else may have written the records.

use crate::git::apply::Apply;
use crate::git::refs::full_name;
use crate::git::worktree::corrupt_path;
use crate::git::worktree::names::is_storable;
use crate::model::operation::is_operations;
use crate::model::plan::Plan;
use anyhow::Result;
use gix::bstr::ByteSlice;

impl Apply<'_> {
    /// No plan, whoever wrote it, leads out of the worktree, into a git directory, or to a ref
    /// that is no branch.
    pub fn check_names(plan: &Plan) -> Result<()> {
        let files = plan.files.iter().map(|file| &file.path);
        let directories = plan.directories.iter().map(|directory| &directory.path);
        let aside = plan.aside.iter().map(|aside| &aside.path);
        let bad_file = files.chain(directories).chain(aside).find(|path| !is_storable(path.as_bstr(), true));
        // What is tracked already has passed git's own rules.
        let bad_entry = plan.index.iter().map(|entry| &entry.path).find(|path| !is_storable(path.as_bstr(), false));
        if let Some(path) = bad_file.or(bad_entry) {
            return Err(corrupt_path(path.as_bstr()));
        }
        let mut operations = plan.operation.iter().flat_map(|it| it.from.files.keys().chain(it.to.files.keys()));
        if let Some(path) = operations.find(|path| !is_operations(path.as_bstr())) {
            return Err(corrupt_path(path.as_bstr()));
        }
        let heads = [&plan.head.from, &plan.head.to].into_iter().filter(|_| plan.moves_head());
        let symbolic = plan.symbolic.iter().map(|branch| &branch.name);
        let mut branches = (plan.branches.iter().map(|branch| &branch.name).chain(symbolic))
            .chain(heads.flat_map(|head| head.branch.iter().chain(&head.through)));
        let place = plan.aside.iter().map(|aside| &aside.store).find(|store| !is_store(store));
        match branches.find(|name| !is_branch(name)).or(place) {
            Some(name) => Err(corrupt_path(name.as_bytes().as_bstr())),
            None => Ok(()),
        }
    }
}

fn is_branch(name: &str) -> bool {
    name.starts_with("refs/heads/") && full_name(name).is_ok()
}

/// `aside/<turn>/<number>`, and nothing that leads elsewhere.
fn is_store(name: &str) -> bool {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    matches!(name.split('/').collect::<Vec<_>>()[..], ["aside", turn, n] if number(turn) && number(n))
}
