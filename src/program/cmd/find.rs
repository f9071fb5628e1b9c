//! `oxundo find`: where a lost file or text is, with the command that brings it back.

use crate::git::repo::Repo;
use crate::git::repo::clock::ago;
use crate::model::bytes::{quoted, shell_word, shown, size};
use crate::ops::find::{Found, Needle, Place, find};
use crate::ops::turn::session::look;
use crate::program::args::FindArgs;

use crate::program::ui::{Answer, Ui};
use crate::program::usage::line;
use anyhow::Result;
use gix::bstr::{BStr, ByteSlice};
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How many are shown when nobody says.
const USUAL: usize = 50;

/// What was found.
pub struct All {
    found: Vec<Found>,
    more: bool,
    /// Whether the command was called at the top of the worktree.
    at_top: bool,
}

/// Looks.
pub fn run(repo: &Repo, ui: &Ui, args: &FindArgs) -> Result<All> {
    let heard = ui.heard();
    let view = look(repo, &heard, "find")?;
    let needle = match (&args.text, &args.pattern) {
        (Some(text), _) => Some(Needle::Text(text.as_bytes().to_vec())),
        (None, Some(pattern)) => Some(Needle::pattern(pattern)?),
        (None, None) => None,
    };
    let (found, more) = find(&view, &args.pathspecs, needle.as_ref(), args.number.unwrap_or(USUAL))?;
    Ok(All { found, more, at_top: repo.prefix().as_os_str().is_empty() })
}

impl All {
    /// The line that brings a content back.
    fn line(&self, found: &Found) -> String {
        let restore = |state: &str, path| line([b"restore", state.as_bytes(), b"--", &self.pathspec(path)]);
        match &found.place {
            Place::State(state) => restore(state, found.path.as_bstr()),
            Place::Aside(turn, path) => restore(&turn.to_string(), path.as_bstr()),
            Place::Commit(id) | Place::Staged(_, id) => {
                let source = format!("--source={id}");
                let git = [b"git".as_slice(), b"restore", source.as_bytes(), b"--"];
                line(
                    [b"run".as_slice(), b"--ghost", b"--"]
                        .into_iter()
                        .chain(git)
                        .chain([&*self.pathspec(found.path.as_bstr())]),
                )
            }
            Place::Kept(file) => {
                let (from, to) = (file.as_os_str().as_bytes(), copy_of(file, found.path.as_bstr()));
                format!("cp {} {}", shell_word(from), shell_word(&to))
            }
        }
    }

    /// A path as one that is meant literally, from wherever the command is called.
    fn pathspec(&self, path: &BStr) -> Vec<u8> {
        let is_plain = |byte: &u8| !b"*?[\\".contains(byte);
        let is_bare = self.at_top && !path.starts_with(b":") && path.iter().all(is_plain);
        [if is_bare { b"".as_slice() } else { b":(top,literal)" }, path.as_bytes()].concat()
    }
}

/// What a copy of a file can be called here: nothing is in its place.
fn copy_of(file: &Path, path: &BStr) -> Vec<u8> {
    let name = path.rfind_byte(b'/').map_or(path.as_bytes(), |slash| &path[slash + 1..]);
    let is_free = |name: &[u8]| Path::new(OsStr::from_bytes(name)).symlink_metadata().is_err();
    if is_free(name) && file.file_name().is_some_and(|own| own.as_bytes() == name) {
        return b".".to_vec();
    }
    let numbered = (1_u64..).map(|number| [name, format!(".{number}").as_bytes()].concat());
    let free = std::iter::once(name.to_vec()).chain(numbered).find(|name| is_free(name));
    [b"./".as_slice(), &free.unwrap_or_default()].concat()
}

fn place(found: &Found) -> String {
    match &found.place {
        Place::State(state) if state.bytes().all(|byte| byte.is_ascii_digit()) => format!("turn {state}"),
        Place::State(state) => state.clone(),
        Place::Commit(id) => format!("commit {}", id.to_hex_with_len(10)),
        Place::Staged(state, _) => format!("staged, {state}"),
        Place::Aside(turn, _) => format!("aside, turn {turn}"),
        Place::Kept(_) => "kept".to_owned(),
    }
}

impl Answer for All {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let found: Vec<_> = (self.found.iter())
            .map(|found| {
                let state = match &found.place {
                    Place::State(state) => Some(state.clone()),
                    Place::Aside(turn, _) => Some(turn.to_string()),
                    Place::Kept(_) | Place::Commit(_) | Place::Staged(..) => None,
                };
                let source = match &found.place {
                    Place::Commit(id) | Place::Staged(_, id) => Some(id.to_string()),
                    _ => None,
                };
                json!({
                    "path": quoted(found.path.as_bstr()),
                    "state": state,
                    "aside": matches!(found.place, Place::Aside(..)),
                    "kept": if let Place::Kept(file) = &found.place { Some(quoted(file.as_os_str().as_bytes().as_bstr())) } else { None },
                    "source": source,
                    "at": found.at,
                    "size": found.size,
                    "present": found.is_present,
                    "command": self.line(found),
                })
            })
            .collect();
        Ok(json!({"found": found, "more": self.more}))
    }

    fn text(&self) -> String {
        if self.found.is_empty() {
            return "nothing is found\n".to_owned();
        }
        let rows: Vec<[String; 3]> = (self.found.iter())
            .map(|found| [place(found), found.at.as_deref().map(ago).unwrap_or_default(), size(found.size)])
            .collect();
        let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or_default();
        let (first, second, third) = (width(0), width(1), width(2));
        let mut text = String::new();
        for (found, [place, age, size]) in self.found.iter().zip(&rows) {
            let now = if found.is_present { " (as it is now)" } else { "" };
            let path = shown(found.path.as_bstr());
            text.push_str(&format!("{place:first$}  {age:second$}  {size:>third$}  {path}{now}\n"));
            if !found.is_present {
                text.push_str(&format!("{:first$}  {}\n", "", self.line(found)));
            }
        }
        text
    }

    fn hints(&self) -> Vec<String> {
        if self.found.is_empty() {
            return vec!["what is ignored, or beyond the limits, is in no state: 'oxundo status' names it".to_owned()];
        }
        if self.more { vec!["there are more: '-n' shows as many as it says".to_owned()] } else { Vec::new() }
    }
}
