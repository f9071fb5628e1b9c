//! What `GIT_DIR` and its like say: oxundo works on what git would work on, or refuses, and never on anything else.

use crate::error::{Code, Refusal};
use crate::git::repo::process::absolute;
use crate::model::bytes::shell_word;
use anyhow::Result;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a variable says, where it says something.
fn given(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}

/// The git directory that the environment names, seen from a directory.
pub fn named_git_dir(directory: &Path) -> Result<Option<PathBuf>> {
    let Some(named) = given("GIT_DIR") else { return Ok(None) };
    let shown = Path::new(&named).display();
    let message = match absolute(&directory.join(&named)) {
        Err(_) => format!("GIT_DIR is '{shown}', where there is nothing"),
        Ok(found) if found.is_dir() && gix::discover::is_git(&found).is_err() => {
            format!("GIT_DIR is '{shown}', which is no git directory")
        }
        Ok(found) => return Ok(Some(found)),
    };
    Err(Refusal::new(Code::Usage, message).hint("run 'unset GIT_DIR', then the same command again").into())
}

/// The worktree that git has for a git directory that the environment names, seen from a directory; none if that is bare.
pub fn named_worktree(gix: &gix::Repository, directory: &Path) -> Result<Option<PathBuf>> {
    let config = gix.config_snapshot();
    let top = match given("GIT_WORK_TREE") {
        Some(named) => absolute(&directory.join(named))?,
        None if config.string("core.worktree").is_some() => absolute(gix.workdir().unwrap_or(directory))?,
        None if config.boolean("core.bare") == Some(true) => return Ok(None),
        // git takes the very directory that one stands in.
        None if gix.workdir().and_then(|top| absolute(top).ok()).is_some_and(|top| top == directory) => {
            return Ok(Some(directory.to_owned()));
        }
        None => {
            let message = format!(
                "GIT_DIR is set, and GIT_WORK_TREE is not: git takes '{}' for the worktree of '{}'",
                directory.display(),
                gix.git_dir().display()
            );
            return Err(Refusal::new(Code::Usage, message)
                .hint(match gix.workdir().and_then(|top| absolute(top).ok()) {
                    Some(top) => format!(
                        "run 'unset GIT_DIR', or 'cd {}', then the same command again",
                        shell_word(top.as_os_str().as_bytes())
                    ),
                    None => "run 'unset GIT_DIR', then the same command again".to_owned(),
                })
                .into());
        }
    };
    if directory.starts_with(&top) {
        return Ok(Some(top));
    }
    let message =
        format!("'{}' is not in '{}', the worktree of what GIT_DIR names", directory.display(), top.display());
    let [git_dir, there] = [absolute(gix.git_dir())?, top].map(|path| shell_word(path.as_os_str().as_bytes()));
    Err(Refusal::new(Code::Usage, message)
        .hint(format!(
            "run 'export GIT_DIR={git_dir} GIT_WORK_TREE={there} && cd {there}', then the same command again"
        ))
        .hint("or run 'unset GIT_DIR GIT_WORK_TREE' first, where what is here is meant")
        .into())
}

/// Refuses a worktree, git directories or an index that are not those which the environment names. git's hooks have the index
/// of their commit, which is in the git directory.
pub fn check_named(directory: &Path, top: &Path, git_dir: &Path, common_dir: &Path) -> Result<()> {
    let from = |place: &Path, variable| given(variable).map(|value| (variable, place.join(value)));
    let is = |path: &Path, wanted: &Path| absolute(path).is_ok_and(|path| path == wanted);
    let other = from(directory, "GIT_WORK_TREE").filter(|(_, named)| !is(named, top));
    let other = other.or_else(|| from(directory, "GIT_COMMON_DIR").filter(|(_, named)| !is(named, common_dir)));
    let is_in_git_dir = |index: &Path| index.parent().is_some_and(|parent| is(parent, git_dir));
    let other = other.or_else(|| from(top, "GIT_INDEX_FILE").filter(|(_, named)| !is_in_git_dir(named)));
    let Some((variable, named)) = other else { return Ok(()) };
    let message =
        format!("{variable} is '{}', which is not of the repository here, '{}'", named.display(), git_dir.display());
    Err(Refusal::new(Code::Usage, message).hint(format!("run 'unset {variable}', then the same command again")).into())
}
