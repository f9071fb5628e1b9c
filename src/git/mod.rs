//! The git layer: the only place with gix handles, and the only door to the `git` binary. It reads
//! the present state, keeps checkpoints and the timeline, and carries plans out. `model` and `ops`
//! decide which.
//!
//! Each room has a handle of its own, and names only rooms above it in this list.

pub mod repo;

pub mod objects;

pub mod refs;

pub mod worktree;

pub mod index;

pub mod scan;

pub mod checkpoint;

pub mod timeline;

pub mod durable;

pub mod apply;
