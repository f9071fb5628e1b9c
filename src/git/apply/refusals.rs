//! Why an apply does not go on.

use crate::error::{Code, Refusal};
use crate::model::bytes::in_quotes;
use gix::bstr::BStr;

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

/// The refusal to go on when git has begun or ended something.
pub fn other_operation() -> anyhow::Error {
    Refusal::new(Code::InProgress, "git has begun or ended a merge, or the like, meanwhile")
        .hint("run the same command again")
        .into()
}
