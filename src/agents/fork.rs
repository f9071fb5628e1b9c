//! A copy of an agent's transcript that ends before a prompt, under a session's id of its own. The transcript itself is only
//! read. Whatever keeps a copy from being made is said in words: the files are undone all the same.

use crate::agents::adapters::{Adapter, TranscriptForm};
use crate::agents::talk::{Sought, Talk, Unknown};
use crate::git::repo::platform::process;
use crate::git::repo::scratch::{TEMPORARY, name_of, replace_synced_if};
use crate::model::bytes::sanitized;
use rustix::fs::OFlags;
use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::io;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// So much of a transcript is read.
const MOST: u64 = 256 << 20;

/// So many copies with the same beginning are told apart: each has been gone on with.
const COPIES: u32 = 1000;

/// A transcript that was read.
pub struct Transcript {
    form: TranscriptForm,
    session: String,
    path: PathBuf,
    file: File,
    text: Vec<u8>,
    is_all: bool,
}

/// A copy that is to be made, or is there.
#[derive(Clone, Debug)]
pub struct Fork {
    /// Its session's id.
    pub session: String,
    /// Its file.
    pub path: PathBuf,
    /// Whether it is there already, as it would be made.
    pub is_there: bool,
    text: Rc<Vec<u8>>,
    source: Rc<Transcript>,
}

impl std::fmt::Debug for Transcript {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Transcript").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Transcript {
    /// Reads a session's transcript: a file of the user's own, where the agent keeps such files.
    pub fn read(adapter: &Adapter, session: &str, path: &Path) -> Result<Self, String> {
        let form = adapter.transcript.ok_or_else(|| format!("oxundo does not know how {} keeps it", adapter.title))?;
        let shown = || sanitized(&path.to_string_lossy());
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => format!("'{}' is gone", shown()),
            _ => format!("'{}' cannot be read: {error}", shown()),
        };
        let (Some(parent), Some(name)) = (path.parent().filter(|_| path.is_absolute()), path.file_name()) else {
            return Err(format!("'{}' is no path of a file", shown()));
        };
        let directory = parent.canonicalize().map_err(failed)?;
        if !is_kept_below(&form, &directory) {
            return Err(format!("'{}' is not where {} keeps conversations", shown(), adapter.title));
        }
        let path = directory.join(name);
        let file = opened(&path).map_err(|error| match path.symlink_metadata() {
            Ok(about) if about.is_symlink() => format!("'{}' is a symbolic link", shown()),
            _ => failed(error),
        })?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            return Err(format!("'{}' is no file", shown()));
        }
        if about.uid() != rustix::process::geteuid().as_raw() {
            return Err(format!("'{}' is another user's", shown()));
        }
        let mut text = Vec::new();
        (&file).take(MOST).read_to_end(&mut text).map_err(failed)?;
        let is_all = (text.len() as u64) < MOST;
        Ok(Self { form, session: session.to_owned(), path, file, text, is_all })
    }

    /// The marks of prompts in it. Each of them must be there.
    pub fn marks(&self, prompts: &[Sought]) -> Result<BTreeSet<String>, String> {
        let talk = Talk::read(&self.form, &self.session, &self.text);
        prompts.iter().map(|sought| talk.mark(sought).map_err(|unknown| self.why(unknown))).collect()
    }

    fn why(&self, unknown: Unknown) -> String {
        let path = sanitized(&self.path.to_string_lossy());
        match unknown {
            Unknown::NotThere if self.is_all => format!("the undone prompt is not in '{path}'"),
            Unknown::NotThere => format!("the undone prompt is not in the first 256 MiB of '{path}'"),
            Unknown::Unclear => format!("which prompt in '{path}' is the undone one is not certain"),
            Unknown::Unreadable => format!("a line of '{path}' cannot be read, and a copy might lack what came before"),
        }
    }

    /// The copy that ends before the first of these marks.
    pub fn fork(self, marks: &BTreeSet<String>) -> Result<Fork, String> {
        let talk = Talk::read(&self.form, &self.session, &self.text);
        let lines = talk.before(marks).map_err(|unknown| self.why(unknown))?;
        if lines.is_empty() {
            return Err("it begins with the undone prompt: start a new one".to_owned());
        }
        let neutral = talk.written(&self.text, &lines, "");
        for count in 0..COPIES {
            let session = another_id(&self.session, &neutral, count)
                .ok_or_else(|| format!("the session's id '{}' is no UUID", sanitized(&self.session)))?;
            let path = self.path_of(&session)?;
            let text = talk.written(&self.text, &lines, &session);
            let is_there = match path.symlink_metadata() {
                Ok(_) if is_copy(&path, &text) => true,
                // Somebody has gone on with that, or it is none.
                Ok(_) => continue,
                Err(error) if error.kind() == ErrorKind::NotFound => false,
                Err(error) => return Err(format!("'{}' is in the way: {error}", sanitized(&path.to_string_lossy()))),
            };
            return Ok(Fork { session, path, is_there, text: Rc::new(text), source: Rc::new(self) });
        }
        Err(format!("there are {COPIES} copies of it already"))
    }

    /// The name of a copy: it has its own id where this one's has its.
    fn path_of(&self, session: &str) -> Result<PathBuf, String> {
        let name = self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let short = |id: &str| id.get(..8).unwrap_or_default().to_owned();
        let renamed = match (name.contains(&self.session), name.contains(&short(&self.session))) {
            (true, _) => name.replace(&self.session, session),
            (false, true) => name.replace(&short(&self.session), &short(session)),
            (false, false) => return Err(format!("'{}' is not named for the session", sanitized(name))),
        };
        Ok(self.path.with_file_name(renamed))
    }

    /// Whether what was read is still there: an agent may only have added to it.
    fn is_as_read(&self) -> bool {
        let mut again = vec![0; self.text.len()];
        self.file.read_exact_at(&mut again, 0).is_ok() && again == self.text
    }

    /// Lets those read a copy who may read this, and only its owner where they cannot be told to be the same.
    fn permit(&self, copy: &File) -> io::Result<()> {
        let about = self.file.metadata()?;
        let mode = about.mode() & 0o777;
        let is_private = mode == mode & 0o700;
        let is_same_group = || {
            if copy.metadata()?.gid() != about.gid() {
                // Only a member may.
                let _ = std::os::unix::fs::fchown(copy, None, Some(about.gid()));
            }
            Ok::<_, io::Error>(copy.metadata()?.gid() == about.gid())
        };
        // A directory may give an access list to what is made in it.
        let is_same = is_private || (!has_access_list(&self.file) && !has_access_list(copy) && is_same_group()?);
        copy.set_permissions(Permissions::from_mode(if is_same { mode } else { mode & 0o700 }))
    }
}

impl Fork {
    /// Makes the copy: whole and on the disk, or not at all.
    pub fn make(&self) -> Result<(), String> {
        // Two sessions may have the same beginning, and one copy.
        if self.is_there || self.is_as_made() {
            return Ok(());
        }
        self.remove_half_written();
        let check = || {
            let other = match (self.source.is_as_read(), self.path.symlink_metadata().is_ok()) {
                (true, false) => return Ok(()),
                (false, _) => "it was rewritten meanwhile",
                (_, true) => "a file of that name was made meanwhile",
            };
            Err(io::Error::other(other))
        };
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        let permit = |copy: &File| self.source.permit(copy);
        let made = replace_synced_if(&self.path, &self.text, permit, check);
        // Its name too.
        let made = made.and_then(|()| File::open(directory)?.sync_all());
        made.map_err(|error| format!("no copy could be written: {error}"))
    }

    /// Takes back what [`Self::make`] made, unless somebody has gone on with it.
    pub fn take_back(&self) {
        if !self.is_there && self.is_as_made() {
            // A copy too many does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    fn is_as_made(&self) -> bool {
        is_copy(&self.path, &self.text)
    }

    /// What an oxundo that was killed has left, under names that no agent lists.
    fn remove_half_written(&self) {
        let directory = self.path.parent().and_then(|directory| std::fs::read_dir(directory).ok());
        for entry in directory.into_iter().flatten().flatten() {
            let name = entry.file_name();
            let writer = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY)?.split('-').next()?.parse().ok());
            if writer.is_some_and(|writer| process(writer).is_none()) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// Opens a file for reading; nothing else is waited for, or followed.
fn opened(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    File::options().read(true).custom_flags(i32::try_from(flags.bits()).unwrap_or_default()).open(path)
}

/// Whether this is what stands there, in a file of the user's own. Nothing else is opened, as that may block or do something, and
/// no more is read than this is long.
fn is_copy(path: &Path, text: &[u8]) -> bool {
    let is_its = |about: io::Result<std::fs::Metadata>| {
        let user = rustix::process::geteuid().as_raw();
        about.is_ok_and(|about| about.is_file() && about.uid() == user && about.len() == text.len() as u64)
    };
    if !is_its(path.symlink_metadata()) {
        return false;
    }
    let Ok(file) = opened(path) else { return false };
    let mut there = vec![0; text.len()];
    is_its(file.metadata()) && file.read_exact_at(&mut there, 0).is_ok() && there == text
}

/// Whether others may read a file, or may not, than its permission bits say.
#[cfg(target_os = "linux")]
fn has_access_list(file: &File) -> bool {
    let mut names = vec![0; 64 << 10];
    match rustix::fs::flistxattr(file, &mut names[..]) {
        Ok(length) => {
            let mut names = names[..length].split(|byte| *byte == 0);
            names.any(|name| {
                name.starts_with(b"system.") && name.ends_with(b"acl") || name == b"system.posix_acl_access"
            })
        }
        Err(error) => error != rustix::io::Errno::NOTSUP,
    }
}

/// Elsewhere nothing tells.
#[cfg(not(target_os = "linux"))]
fn has_access_list(_: &File) -> bool {
    true
}

/// Whether an agent keeps conversations below this directory.
fn is_kept_below(form: &TranscriptForm, directory: &Path) -> bool {
    let mut places = form.places.iter().filter_map(|(variable, below)| {
        let top = std::env::var_os(variable).filter(|value| !value.is_empty())?;
        Path::new(&top).join(below).canonicalize().ok()
    });
    places.any(|place| directory.starts_with(place))
}

/// The id of a copy: a UUID of the same kind, from what is in it, so that the same undo gives the same copy. Where an id begins
/// with a time, that stays.
fn another_id(id: &str, text: &[u8], count: u32) -> Option<String> {
    let is_uuid = id.len() == 36
        && id
            .char_indices()
            .all(|(at, c)| if matches!(at, 8 | 13 | 18 | 23) { c == '-' } else { c.is_ascii_hexdigit() });
    if !is_uuid {
        return None;
    }
    let mut all = text.to_vec();
    all.extend_from_slice(&count.to_be_bytes());
    let hash = name_of(&all).ok()?;
    let time = if id.as_bytes()[14] == b'7' { 13 } else { 0 };
    let mut digits = hash.chars();
    let digit = |(at, c): (usize, char)| match at {
        _ if at < time => Some(c),
        8 | 13 | 14 | 18 | 19 | 23 => Some(c),
        _ => digits.next(),
    };
    id.char_indices().map(digit).collect()
}
