//! The pure part: what turns, checkpoints and the timeline are, and every
//! decision about them. Nothing in here reads a file, a ref or the clock.

pub mod bytes;
pub mod call;
pub mod checkpoint;
pub mod expiry;
pub mod guard;
pub mod kin;
pub mod leftover;
pub mod limits;
pub mod line_ends;
pub mod merge;
pub mod names;
pub mod operation;
pub mod path;
pub mod place;
pub mod plan;
pub mod planner;
pub mod pointers;
pub mod record;
pub mod renames;
pub mod session;
pub mod shelf;
pub mod step;
pub mod subject;
pub mod timeline;
pub mod tokens;
pub mod turn;
pub mod wide;
