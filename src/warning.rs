//! What a caller should hear though nothing failed.

use crate::model::bytes::with_quoted_lines;

/// One of them, in a sentence of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The sentence. It may quote paths and prompts, with their control characters escaped.
    pub message: String,
    /// Whether it says where something is that is nowhere else: who wants no warnings wants this one.
    pub(crate) is_vital: bool,
}

impl Warning {
    /// With this message.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: with_quoted_lines(message), is_vital: false }
    }

    /// With this message, that nobody may miss.
    pub(crate) fn vital(message: impl Into<String>) -> Self {
        Self { message: with_quoted_lines(message), is_vital: true }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Who hears of warnings, as they come.
pub(crate) type Warn<'a> = &'a dyn Fn(Warning);
