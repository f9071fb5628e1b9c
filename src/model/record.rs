//! What an operation records: the timeline's move and the notes.

use crate::model::turn::Note;
use gix::ObjectId;
use serde::{Deserialize, Serialize};

/// What goes with a plan: the timeline that records it, and the notes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The timeline's commit before.
    #[serde(with = "crate::model::checkpoint::hex_option")]
    pub timeline_from: Option<ObjectId>,
    /// The timeline's commit after.
    #[serde(with = "crate::model::checkpoint::hex_option")]
    pub timeline_to: Option<ObjectId>,
    /// What the reflogs say.
    pub message: String,
    /// Notes to add.
    pub notes: Vec<Note>,
}
