//! What a failure is to the user: a disk that is full, a file that may not be
//! written, or a damaged object, each with the way on.

use crate::error::{Code, Refusal};
use gix::error::Class;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Damage,
    Full,
    Forbidden,
    Other,
}

impl Fault {
    /// By the innermost error that tells; by git's own words where git did the work.
    fn of(error: &anyhow::Error, text: &str) -> Self {
        let kinds: Vec<_> = error.chain().filter_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind())).collect();
        let any = |wanted: &[io::ErrorKind], words: &[&str]| {
            kinds.iter().any(|kind| wanted.contains(kind)) || words.iter().any(|words| text.contains(words))
        };
        if any(
            &[io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge],
            &["No space left on device", "Disk quota exceeded", "File too large"],
        ) {
            return Self::Full;
        }
        if any(
            &[io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem],
            &["Permission denied", "Read-only file system", "insufficient permission"],
        ) {
            return Self::Forbidden;
        }
        let class = gix::error::classify(error.as_ref()).dominant_class();
        if kinds.is_empty() && matches!(class, Some(Class::Corruption | Class::NotFound)) {
            return Self::Damage;
        }
        Self::Other
    }
}

/// The refusal that an error is, whatever was said around it. What is not a refusal is
/// damage to what git keeps, or an input or output error.
pub fn to_refusal(error: &anyhow::Error) -> Refusal {
    if let Some(refusal) = error.downcast_ref::<Refusal>() {
        return refusal.clone();
    }
    let (outermost, told) = (error.to_string(), error_chain(error));
    // What is around an error says what was attempted: "open 'x'".
    let text = match error.chain().nth(1) {
        Some(_) if !is_foreign(&outermost) => format!("cannot {told}"),
        _ => told,
    };
    match Fault::of(error, &text) {
        Fault::Damage => Refusal::new(Code::Corrupt, format!("something that git keeps is missing or damaged: {text}"))
            .hint("run 'oxundo doctor': it says what is damaged and how to go on"),
        Fault::Full => Refusal::new(Code::Io, text).hint("free some space, then run the same command again"),
        Fault::Forbidden => {
            Refusal::new(Code::Io, text).hint("make it writable for you, then run the same command again")
        }
        Fault::Other => {
            Refusal::new(Code::Io, text).hint("run the same command again, and 'oxundo doctor' if that fails too")
        }
    }
}

/// The error and its causes in a line: what was attempted, and of the words of others the last, which
/// say what was in the way. What a cause only repeats is left out.
pub fn error_chain(error: &anyhow::Error) -> String {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    let last = causes.len().saturating_sub(2);
    let kept = causes.into_iter().enumerate().filter(|(at, cause)| *at >= last || !is_foreign(cause));
    kept.map(|(_, cause)| lowered(&cause)).fold(String::new(), |told, cause| match told.as_str() {
        "" => cause,
        told if told.ends_with(&cause) => told.to_owned(),
        told => format!("{told}: {cause}"),
    })
}

/// Whether a library says it, or the system, which begin in upper case.
fn is_foreign(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_uppercase())
        && letters.next().is_some_and(|second| second.is_ascii_lowercase() || second == ' ')
}

/// A library's sentence as a part of ours.
fn lowered(text: &str) -> String {
    let text = text.strip_suffix('.').unwrap_or(text);
    match text.chars().next() {
        Some(first) if is_foreign(text) && !text.contains("(os error") => {
            format!("{}{}", first.to_ascii_lowercase(), &text[1..])
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_and_hint(error: impl Into<anyhow::Error>) -> (Code, String) {
        let refusal = to_refusal(&error.into());
        (refusal.code, refusal.hints.join("\n"))
    }

    #[test]
    fn a_full_disk_is_told_whoever_met_it() {
        let ours = anyhow::Error::from(io::Error::from(io::ErrorKind::StorageFull)).context("write a file");
        assert!(code_and_hint(ours).1.starts_with("free some space"));
        let gits = anyhow::anyhow!("git update-index: fatal: unable to write: No space left on device");
        assert!(code_and_hint(gits).1.starts_with("free some space"));
    }

    #[test]
    fn an_error_is_told_in_one_voice() {
        let system = || io::Error::from_raw_os_error(17);
        let told = |error: anyhow::Error| to_refusal(&error).message;
        assert_eq!(
            told(anyhow::Error::from(system()).context("open 'x'").context("record the turn")),
            "cannot record the turn: open 'x': File exists"
        );
        assert_eq!(told(anyhow::anyhow!("git add: fatal: no")), "git add: fatal: no", "it is no attempt");
        let inner = anyhow::Error::from(system()).context("Could not open reflog.");
        let library = inner.context("Could not update reflog").context("Could not prepare edit");
        assert_eq!(
            told(library.context("move refs/x")),
            "cannot move refs/x: could not open reflog: File exists",
            "of a library's chain only what is nearest to the cause"
        );
    }

    #[test]
    fn a_missing_object_is_damage() {
        let missing = gix::Error::from(gix::error::not_found("an object"));
        assert_eq!(code_and_hint(anyhow::Error::from(missing).context("read a tree")).0, Code::Corrupt);
        let other = io::Error::from(io::ErrorKind::NotFound);
        assert_eq!(code_and_hint(other).0, Code::Io);
    }
}
