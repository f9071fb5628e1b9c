//! Undo and redo for any coding agent, on git.

pub mod error;
pub mod git;
pub mod model;
