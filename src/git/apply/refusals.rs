//! Why an apply does not go on.

use crate::error::failure::to_refusal;
use crate::error::{Code, Refusal};
use crate::model::bytes::in_quotes;
use crate::model::plan::Op;
use gix::bstr::BStr;

/// What is safe to type where something is done, or may be.
const LOOK_FIRST: &str = "run 'oxundo status' to see where you are before you go on";

/// The refusal to go on when a signal has come.
pub fn interrupted() -> anyhow::Error {
    Refusal::new(Code::Interrupted, "interrupted: nothing is changed").hint("run the same command again").into()
}

/// The refusal to go on when another program has changed something.
pub fn changed_meanwhile(path: &BStr) -> anyhow::Error {
    Refusal::new(Code::Conflict, format!("{} was changed meanwhile", in_quotes(path)))
        .hint("run the same command again")
        .paths([path.to_owned()])
        .into()
}

/// The refusal to take away what somebody is at work in, where only a copy of it would be kept.
pub fn in_use_elsewhere(path: &BStr) -> anyhow::Error {
    let path_shown = in_quotes(path);
    let message = format!("{path_shown} is open in another program, and it would be copied to another file system");
    Refusal::new(Code::Conflict, message)
        .hint("close it there, then run the same command again")
        .paths([path.to_owned()])
        .into()
}

/// The refusal to go on when git has begun or ended something.
pub fn other_operation() -> anyhow::Error {
    Refusal::new(Code::InProgress, "git has begun or ended a merge, or the like, meanwhile")
        .hint("run the same command again")
        .into()
}

/// What failed behind the point at which all is done: the same command again would be another one.
pub fn all_but_done(op: Op, error: &anyhow::Error) -> anyhow::Error {
    let (word, cause) = (op.word(), to_refusal(error).message);
    Refusal::new(Code::Io, format!("{word} is done, and the next command finishes what is left of it: {cause}"))
        .hint(LOOK_FIRST)
        .into()
}

/// What failed where nobody can see whether that point was reached.
pub fn perhaps_done(op: Op, error: &anyhow::Error) -> anyhow::Error {
    let (word, cause) = (op.word(), to_refusal(error).message);
    Refusal::new(Code::Io, format!("the next command finishes {word}, or takes back what is done of it: {cause}"))
        .hint(LOOK_FIRST)
        .into()
}
