//! The answer of every operation that carries out a plan: what it did, or would do.

use crate::model::bytes::quoted;
use crate::model::checkpoint::short_branch;
use crate::model::plan::Plan;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use serde_json::json;

/// What was done, or would be.
pub struct Outcome {
    /// The plan.
    pub plan: Plan,
    /// The turns it is about.
    pub turns: Vec<u64>,
    /// Those of them that were undone.
    pub undone: Vec<u64>,
    /// The turn that it was recorded as, where it was.
    pub turn: Option<u64>,
    /// What was done, in a few words.
    pub what: String,
    /// What to do next.
    pub hints: Vec<String>,
    /// The rescue checkpoint.
    pub rescue: Option<ObjectId>,
    /// The agents' conversations that went with the turns.
    pub conversations: Vec<serde_json::Value>,
    /// The copies of conversations that were made, in a line each.
    pub forks: Vec<String>,
    /// Whether nothing was done.
    pub dry_run: bool,
}

impl Outcome {
    /// As JSON, with the keys that the manual promises.
    pub fn json(&self) -> serde_json::Value {
        let plan = &self.plan;
        let id = |id: Option<ObjectId>| id.map(|id| id.to_string());
        let list = |paths: &[BString]| paths.iter().map(|path| quoted(path.as_bstr())).collect::<Vec<_>>();
        let files: Vec<_> = (plan.actions().into_iter())
            .map(|(path, action)| json!({"path": quoted(path.as_bstr()), "action": action}))
            .collect();
        let branches: Vec<_> = (plan.branches.iter())
            .map(|b| json!({"branch": short_branch(&b.name), "from": id(b.from), "to": id(b.to)}))
            .collect();
        json!({
            "op": plan.op.word(),
            "dry_run": self.dry_run,
            "turns": self.turns,
            "undone": self.undone,
            "turn": self.turn,
            "head": {
                "from": id(plan.head.from.commit),
                "to": id(plan.head.to.commit),
                "branch": plan.head.to.branch.as_deref().map(short_branch),
            },
            "branches": branches,
            "files": files,
            "kept_edits": list(&plan.kept_edits),
            "unstaged": list(&plan.unstaged),
            "overwritten": list(&plan.overwritten),
            "rescue": id(self.rescue),
            "conversations": self.conversations,
        })
    }
}

/// The object that a command prints: the version of the format, then its keys.
pub fn versioned(value: serde_json::Value) -> serde_json::Value {
    let mut object = serde_json::Map::new();
    object.insert("v".to_owned(), 1.into());
    if let serde_json::Value::Object(keys) = value {
        object.extend(keys);
    }
    serde_json::Value::Object(object)
}
