//! Answers as people read them.

pub mod format;
pub mod graph;
pub mod line;
pub mod log;
pub mod outcome;
pub mod table;
