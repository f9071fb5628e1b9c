//! What a failure is to the user: a disk that is full, a file that may not be
//! written, or a damaged object, each with the way on.

use crate::error::{Code, Refusal};
use gix::error::Class;
use std::io;

/// The refusal that an error is, whatever was said around it. What is not a refusal is
/// damage to what git keeps, or an input or output error.
pub fn refusal_of(error: &anyhow::Error) -> Refusal {
    if let Some(refusal) = error.downcast_ref::<Refusal>() {
        return refusal.clone();
    }
    let text = told(error);
    match Cause::of(error, &text) {
        Cause::Damage => Refusal::new(Code::Corrupt, format!("something that git keeps is missing or damaged: {text}"))
            .hint("run 'oxundo doctor': it says what is damaged and how to go on"),
        Cause::Full => Refusal::new(Code::Io, text).hint("free some space, then run the same command again"),
        Cause::Forbidden => {
            Refusal::new(Code::Io, text).hint("make it writable for you, then run the same command again")
        }
        Cause::Other => {
            Refusal::new(Code::Io, text).hint("run the same command again, and 'oxundo doctor' if that fails too")
        }
    }
}

/// The error and its causes in a line; what a cause only repeats is left out.
fn told(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |told, cause| match told.as_str() {
        "" => cause,
        told if told.ends_with(&cause) => told.to_owned(),
        told => format!("{told}: {cause}"),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Damage,
    Full,
    Forbidden,
    Other,
}

impl Cause {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn code_and_hint(error: impl Into<anyhow::Error>) -> (Code, String) {
        let refusal = refusal_of(&error.into());
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
    fn a_missing_object_is_damage() {
        let missing = gix::Error::from(gix::error::not_found("an object"));
        assert_eq!(code_and_hint(anyhow::Error::from(missing).context("read a tree")).0, Code::Corrupt);
        let other = io::Error::from(io::ErrorKind::NotFound);
        assert_eq!(code_and_hint(other).0, Code::Io);
    }
}
