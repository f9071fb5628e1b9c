//! Which repository a directory is in, and whether git would use it: as git decides, since settings in it are commands.

use crate::error::{Code, Refusal};
use crate::git::repo::process::git_uses_repository;
use crate::git::repo::settings::boolean_of;
use anyhow::Result;
use gix::discover::repository::Path as Found;
use gix::discover::upwards::Options;
use gix::sec::Trust;
use std::path::{Component, Path};

fn options() -> Options<'static> {
    let across = std::env::var("GIT_DISCOVERY_ACROSS_FILESYSTEM").ok().and_then(|value| boolean_of(&value));
    // Most often no ceiling is above.
    let options =
        Options { match_ceiling_dir_or_error: false, cross_fs: across.unwrap_or(false), ..Options::default() };
    options.apply_environment()
}

/// The repository that a directory is in, given as it is without links.
pub fn discover(directory: &Path) -> Option<(Found, Trust)> {
    let (found, trust) = gix::discover::upwards_opts(directory, options()).ok()?;
    // gix looks into the ceiling itself, which git does not.
    let (path, top) = found.clone().into_repository_and_work_tree_directories();
    let is_there = |place: &Path| searched(directory).any(|at| at == place);
    let places = [Some(path.as_path()), path.parent(), top.as_deref()];
    places.into_iter().flatten().any(is_there).then_some((found, trust))
}

/// The directories in which a repository of this one is looked for, this one first.
pub fn searched(directory: &Path) -> impl Iterator<Item = &Path> {
    let ceilings = options().ceiling_dirs;
    directory.ancestors().take_while(move |at| *at == directory || !ceilings.iter().any(|ceiling| ceiling == at))
}

/// Refuses a repository that git would not use here: one that is not the user's, or a bare one that may have come with
/// another's files.
pub fn check_trust(directory: &Path, found: &Found, trust: Trust) -> Result<()> {
    let bare = matches!(found, Found::Repository(path) if !is_part_of_another(path));
    if (trust == Trust::Full && !bare) || git_uses_repository(directory)? {
        return Ok(());
    }
    let (path, top) = found.clone().into_repository_and_work_tree_directories();
    let place = top.unwrap_or(path).display().to_string();
    if trust == Trust::Full {
        let message = format!("git does not use the bare repository '{place}' here (safe.bareRepository)");
        return Err(Refusal::new(Code::Io, message)
            .hint("if you trust it, run 'git config --global safe.bareRepository all'")
            .into());
    }
    Err(Refusal::new(Code::Io, format!("the repository at '{place}' is unsafe: not all of it is yours"))
        .hint(format!("if you trust it, run 'git config --global --add safe.directory {place}'"))
        .into())
}

/// Whether a git directory is that of a repository with a worktree, of a linked worktree, or of a submodule: git takes it
/// for what it is, though it is stood in.
fn is_part_of_another(path: &Path) -> bool {
    let names: Vec<_> = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    let is = |at: usize, name: &str| names.get(at).is_some_and(|part| part.as_os_str() == name);
    let below =
        |at: usize| is(at, ".git") && (is(at + 1, "worktrees") || is(at + 1, "modules")) && at + 2 < names.len();
    path.file_name().is_some_and(|name| name == ".git") || (0..names.len()).any(below)
}
