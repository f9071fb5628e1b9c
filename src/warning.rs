//! What a caller should hear though nothing failed.

/// One of them, in a sentence of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The sentence. It may quote paths and prompts, with their control characters escaped.
    pub message: String,
}

impl Warning {
    /// With this message.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Who hears of warnings, as they come.
pub(crate) type Warn<'a> = &'a dyn Fn(Warning);
