//! Everything that oxundo keeps as JSON: whatever was written there, it is read without a panic, and
//! what is read says the same when it is written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oxundo::internals::{
    FileChange, FileState, IndexEntry, Note, Plan, Skipped, StashEntry, Timeline, Turn, UsualModes,
};
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Debug;

fn survives<T: Serialize + DeserializeOwned + PartialEq + Debug>(text: &[u8]) {
    let Ok(value) = serde_json::from_slice::<T>(text) else { return };
    let written = serde_json::to_vec(&value).expect("what was read can be written");
    assert_eq!(serde_json::from_slice::<T>(&written).expect("and read again"), value);
}

fuzz_target!(|text: &[u8]| {
    survives::<Note>(text);
    survives::<Turn>(text);
    survives::<Timeline>(text);
    survives::<Plan>(text);
    survives::<FileChange>(text);
    survives::<FileState>(text);
    survives::<IndexEntry>(text);
    survives::<Skipped>(text);
    survives::<StashEntry>(text);
    survives::<UsualModes>(text);
    if let Ok(turn) = serde_json::from_slice::<Turn>(text) {
        let _ = (turn.title(), turn.label(), turn.branch_name());
    }
});
