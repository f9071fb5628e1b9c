//! What oxundo does, without a terminal: each operation reads the state once, decides with the model, and lets the
//! git layer act. Every change needs a [`locked::Locked`].

pub mod blame;
pub mod branch;
pub mod checkpoint;
pub mod conversation;
pub mod describe;
pub mod diff;
pub mod exact;
pub mod filter;
pub mod find;
pub mod fingerprint;
pub mod gc;
pub mod list;
pub mod locked;
pub mod made;
pub mod offer;
pub mod operation;
pub mod outcome;
pub mod place;
pub mod planned;
pub mod purge;
pub mod reach;
pub mod removed;
pub mod request;
pub mod resolve;
pub mod restore;
pub mod revert;
pub mod sessions;
pub mod side_effects;
pub mod squash;
pub mod status;
pub mod steps;
pub mod trace;
pub mod turn;
pub mod undo;
pub mod view;
