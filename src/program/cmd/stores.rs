//! `oxundo gc --stores`: the stores of directories that are in no git repository.

use crate::error::{Code, Refusal};
use crate::git::repo::clock::ago;
use crate::git::repo::shadow::{ShadowRepository, ShadowUse};
use crate::model::bytes::{quoted, shell_word, shown, size};
use crate::program::args::GcArgs;
use crate::program::ui::Answer;
use anyhow::Result;
use gix::bstr::BStr;
use serde_json::json;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Lists the stores, or removes those that are named.
pub fn run(args: &GcArgs) -> Result<Stores> {
    let mut stores = ShadowRepository::all()?;
    let removed = !args.remove.is_empty();
    if removed {
        let wanted = args.remove.iter().map(|name| named(&stores, name)).collect::<Result<Vec<_>>>()?;
        stores.retain(|store| wanted.contains(store));
    }
    let list = stores.iter().cloned().map(ShadowRepository::about).collect::<Result<_>>()?;
    if removed && !args.dry_run {
        stores.iter().try_for_each(ShadowRepository::remove)?;
    }
    Ok(Stores { list, removed, dry_run: args.dry_run })
}

/// The path of what may be gone, without links and `..` where it was.
fn place_of(name: &Path) -> std::io::Result<PathBuf> {
    let path = std::path::absolute(name)?;
    let there = path.ancestors().find_map(|there| Some((std::fs::canonicalize(there).ok()?, there)));
    Ok(there.and_then(|(found, there)| Some(found.join(path.strip_prefix(there).ok()?))).unwrap_or(path))
}

/// The store of a directory, which may be gone, or one that is named itself.
fn named(stores: &[ShadowRepository], name: &Path) -> Result<ShadowRepository> {
    let path = place_of(name)?;
    let mut fitting = stores.iter().filter(|store| store.git_dir == path || store.directory == path);
    match (fitting.next(), fitting.next()) {
        (Some(store), None) => Ok(store.clone()),
        (None, _) => Err(Refusal::new(Code::NotFound, format!("'{}' has no store", name.display()))
            .hint("run 'oxundo gc --stores' to see them")
            .into()),
        (Some(first), Some(second)) => Err(Refusal::new(
            Code::Usage,
            format!("two directories were at '{}', and each has a store", name.display()),
        )
        .hint(format!(
            "run 'oxundo gc --stores --remove {}' or 'oxundo gc --stores --remove {}'",
            shell_word(first.git_dir.as_os_str().as_bytes()),
            shell_word(second.git_dir.as_os_str().as_bytes())
        ))
        .into()),
    }
}

/// Stores, listed or removed.
pub struct Stores {
    list: Vec<ShadowUse>,
    removed: bool,
    dry_run: bool,
}

fn path(path: &Path) -> &BStr {
    path.as_os_str().as_bytes().into()
}

impl Answer for Stores {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let stores: Vec<_> = (self.list.iter())
            .map(|about| {
                json!({
                    "directory": quoted(path(&about.store.directory)),
                    "store": quoted(path(&about.store.git_dir)),
                    "there": about.there,
                    "turns": about.turns,
                    "last": about.last,
                    "bytes": about.bytes,
                })
            })
            .collect();
        Ok(json!({"dry_run": self.dry_run, "removed": self.removed && !self.dry_run, "stores": stores}))
    }

    fn text(&self) -> String {
        if self.list.is_empty() {
            return "no stores\n".to_owned();
        }
        let word = match (self.removed, self.dry_run) {
            (false, _) => "",
            (true, false) => "Removed ",
            (true, true) => "Would remove ",
        };
        let line = |about: &ShadowUse| {
            let age = about.last.as_deref().map(|last| format!(", the last {}", ago(last))).unwrap_or_default();
            let turns = if about.turns == 1 { "1 turn".to_owned() } else { format!("{} turns", about.turns) };
            let gone = if about.there { "" } else { " (the directory is gone)" };
            let directory = shown(path(&about.store.directory));
            let at = shown(path(&about.store.git_dir));
            format!("{word}{directory}: {turns}{age}, {}{gone}\n  {at}\n", size(about.bytes))
        };
        self.list.iter().map(line).collect()
    }
}
