//! What oxundo promises, held against the real git: one binary, a file per subject.
//!
//! The agent is `sh -c`, the oracle is git. `OXUNDO_CASE=words` runs only the cases of the tables
//! whose name has these words; `OXUNDO_CASES=200` makes the property tests run that many cases, and
//! `OXUNDO_THOROUGH=1` tries every combination in the tables. `TMPDIR=/dev/shm` makes it all faster.

mod commits;
mod completions;
mod copies;
mod crash;
mod damage;
mod doctor;
mod edits;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod faults;
mod filters;
mod gc;
mod hooks;
mod hostile;
mod house;
mod ignore;
mod init;
mod json;
mod keeps;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod kill_points;
mod kinds;
mod library;
mod limits;
#[cfg(target_os = "linux")]
mod listings;
mod log;
mod looks;
mod manual;
mod messages;
mod modes;
#[cfg(target_os = "linux")]
mod monitor;
mod no_repository;
mod packages;
mod pages;
mod parts;
mod payloads;
mod property;
mod recovery;
mod refusals;
mod replay;
mod roundtrip;
mod run;
mod sandbox;
mod signals;
mod sparse;
mod special;
mod terminal;
mod together;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tracer;
mod untracked;
