//! What oxundo promises, held against the real git: one binary, a file per subject.
//!
//! The agent is `sh -c`, the oracle is git. `OXUNDO_CASE=words` runs only the cases of the tables
//! whose name has these words; `OXUNDO_CASES=200` makes the property tests run that many cases,
//! `OXUNDO_WHOLE=1` tries all of the long tables and not a part of them, and `OXUNDO_THOROUGH=1` every combination (`form.rs`). All of it
//! is in memory where there is room; `TMPDIR=/tmp` has it on a disk.

#[cfg(feature = "acp")]
mod acp;
mod agent;
mod anew;
mod apply;
mod at_once;
mod between;
mod beyond_limits;
mod blame;
mod branches;
mod brought;
mod command_line;
mod commits;
mod completions;
mod concurrency;
mod conversation;
mod copied;
mod copies;
mod crash;
mod crossing;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod cut_off;
mod damage;
mod deep;
#[cfg(target_os = "linux")]
mod dircache;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod disk;
mod doctor;
mod documentation;
mod edits;
mod elsewhere;
mod enabled;
mod encodings;
mod environment;
mod events;
mod evidence;
mod exact;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod failing_calls;
#[cfg(target_os = "linux")]
mod filesystems;
mod filters;
mod find;
mod first_release;
mod follow;
mod follow_property;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod foreseen;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod forks;
mod form;
#[cfg(target_os = "linux")]
mod fuse;
mod gained;
mod gc;
mod heads;
#[path = "../../src/git/repo/hermetic.rs"]
mod hermetic;
mod hints;
mod hooks;
mod hostile;
mod house;
mod hunks;
mod ignore;
mod init;
mod json;
mod kept_aside;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod kill_points;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod lacking;
mod library;
mod limits;
mod living;
mod locale;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod locks;
mod log;
mod losses;
mod manual;
#[cfg(feature = "mcp")]
mod mcp;
mod meanwhile;
mod mending;
mod messages;
mod missed;
mod modes;
#[cfg(target_os = "linux")]
mod monitor;
mod moved_whole;
mod no_repository;
mod on_disk;
mod once;
mod operations;
mod others;
mod packages;
mod partial_undo;
mod payloads;
mod plugins;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod power;
mod private;
mod prompts;
mod property;
mod public_api;
mod reach;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod reboot;
mod recovery;
mod refusals;
mod renamed;
mod renamed_since;
mod replay;
mod repositories;
mod rewritten;
mod roundtrip;
mod run;
mod sandbox;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod saves;
mod schema;
mod screen;
mod sessions;
mod settings;
mod shared;
mod shares;
mod short_status;
mod show_diff;
mod side_effects;
mod signals;
mod sparse;
mod special_files;
mod standing;
mod steps;
mod tables;
mod taken_back;
mod terminal;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod torn;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tracer;
mod trials;
mod trust;
mod unmerged;
mod untracked;
mod user_edits;
mod watched;
mod which;
mod within_reach;
