//! Differences as git itself shows them, and of texts that are in no repository.

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::repo::process::Git;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, ByteSlice};
use gix::diff::blob::unified_diff::{ConsumeBinaryHunk, ContextSize};
use gix::diff::blob::{Algorithm, Diff, InternedInput, UnifiedDiff};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// What follows a pager that may not wait until what it shows was read. Its input is what it shows. An interruption ends it whenever it
/// comes, by the system's own hand: a trap that is set off right before the read waits until something was read.
const ASK: &str = "trap - INT; printf 'Enter: back to the timeline' >/dev/tty; read -r answer </dev/tty";

/// How git is to show a difference.
#[derive(Clone, Copy, Debug)]
pub struct DiffStyle {
    /// As what.
    pub form: DiffForm,
    /// Whether in colours.
    pub colored: bool,
    /// Whether it stays until a key says that it was read, where one screen is enough for all of it, too.
    pub waits: bool,
}

/// What a difference is shown as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffForm {
    /// All of it.
    Patch,
    /// A line for each file.
    Stat,
}

impl Objects<'_> {
    /// Prints the difference of two trees as `git diff` does: its pager, its colours, its
    /// configuration.
    pub fn print_diff(&self, from: ObjectId, to: ObjectId, style: DiffStyle, paths: &[OsString]) -> Result<()> {
        // The user's `color.diff`, which is more specific, still wins.
        let color = if style.colored { "color.ui=always" } else { "color.ui=never" };
        let mut args: Vec<OsString> = vec!["-c".into(), color.into()];
        if style.waits {
            args.extend(["-c".into(), "pager.diff=true".into()]);
        }
        args.push("diff".into());
        if style.form == DiffForm::Stat {
            args.push("--stat".into());
        }
        args.extend([from.to_string().into(), to.to_string().into(), "--".into()]);
        args.extend(paths.iter().cloned());
        self.print(args, style.waits)
    }

    /// How two trees differ in one file, as the user's own diff command says it, or git's: without colours.
    pub fn shown_diff(&self, from: ObjectId, to: ObjectId, path: &BStr) -> Result<Vec<u8>> {
        let literal = OsString::from_vec([b":(top,literal)", path.as_bytes()].concat());
        let mut args: Vec<OsString> = ["-c", "color.ui=never", "diff"].map(Into::into).into();
        args.extend([from.to_string().into(), to.to_string().into(), "--".into(), literal]);
        self.repo.git(args).run(b"")
    }

    /// How two trees differ in one file, as a patch without colours, the user's programs and renames.
    pub fn patch(&self, from: ObjectId, to: ObjectId, path: &BStr) -> Result<Vec<u8>> {
        let literal = OsString::from_vec([b":(top,literal)", path.as_bytes()].concat());
        let mut args: Vec<OsString> = ["diff-tree", "-p", "-r", "--no-renames"].map(Into::into).into();
        args.extend([from.to_string().into(), to.to_string().into(), "--".into(), literal]);
        self.repo.git(args).run(b"")
    }

    /// Prints the paths of a tree as git does.
    pub fn print_tree(&self, tree: ObjectId) -> Result<()> {
        let args =
            vec!["ls-tree".into(), "-r".into(), "--name-only".into(), "--full-tree".into(), tree.to_string().into()];
        self.print(args, false)
    }

    fn print(&self, args: Vec<OsString>, waits: bool) -> Result<()> {
        let here = self.repo.top().join(self.repo.prefix());
        let git = self.repo.git(args).directory(&here);
        let status = if waits { self.waiting(git) } else { git }.interactive()?;
        if status.success() || status.code().is_none() {
            return Ok(());
        }
        // It has told the user itself, and nobody else.
        Err(Refusal::new(Code::Io, "git has not shown all of it, and says why above")
            .hint("mend what it names, or give another place for the output, then run the same command again")
            .into())
    }

    /// Has what is shown stay until it was read. `less` waits by itself once it is told to; others may have gone by then.
    fn waiting(&self, git: Git) -> Git {
        // What git has it do where the user says nothing, and the last word on that.
        let options = std::env::var_os("LESS").unwrap_or_else(|| "FRX".into());
        let git = git.env("LESS", OsString::from_vec([options.as_bytes(), b" -+F"].concat()));
        let pager = self.repo.pager_of_differences();
        let program = pager.as_deref().and_then(|pager| Path::new(pager.split_whitespace().next()?).file_name());
        if program == Some("less".as_ref()) {
            return git;
        }
        let pager = pager.as_deref().unwrap_or("cat");
        // What interrupts the pager is for the pager to heed: the shell waits for it as for any other.
        git.env("GIT_PAGER", format!("trap : INT\n{pager}\n{ASK}"))
    }
}

/// The difference of two texts, as a patch has it.
pub fn text_diff(name: &str, from: Option<&str>, to: Option<&str>) -> Result<String> {
    let label = |side: &str, text: Option<&str>| match text {
        Some(_) => format!("{side}/{name}"),
        None => "/dev/null".to_owned(),
    };
    let input = InternedInput::new(from.unwrap_or_default(), to.unwrap_or_default());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let consume = ConsumeBinaryHunk::new(String::new(), "\n");
    let hunks = UnifiedDiff::new(&diff, &input, consume, ContextSize::symmetrical(3)).consume()?;
    Ok(format!("--- {}\n+++ {}\n{hunks}", label("a", from), label("b", to)))
}
