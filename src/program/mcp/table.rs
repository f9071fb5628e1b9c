//! The tools: their names, what a model is told of them, and what they take.

use crate::config::Access;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

/// A tool.
pub struct Row {
    /// Its name.
    pub name: &'static str,
    about: &'static str,
    /// What it does to the worktree.
    effect: Effect,
    takes: fn() -> Value,
    needs: &'static [&'static str],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Looks,
    Adds,
    Changes,
}

/// All of them.
pub const TOOLS: [Row; 10] = [
    Row {
        name: "list",
        about: "The recorded turns, newest first: number, agent, message, state (done, undone, open, left) and the files that each changed.",
        effect: Effect::Looks,
        takes: || {
            json!({
                "n": number("At most so many turns (20)"),
                "all": flag("Those of every branch and worktree too"),
                "agent": text("Only turns of this agent"),
                "session": text("Only turns in which this session took part"),
                "grep": text("Only turns whose message this regular expression matches"),
                "paths": texts("Only turns that changed what one of these git pathspecs matches"),
            })
        },
        needs: &[],
    },
    Row {
        name: "show",
        about: "A turn and the files that it changed, or, with a path, a file as it was at the end of that turn ('17:before' for its beginning).",
        effect: Effect::Looks,
        takes: || {
            json!({
                "turn": text("A turn's number, '17.3' for a step, '@' for the last one, a checkpoint's name (@)"),
                "path": text("A file's path from the top of the worktree"),
            })
        },
        needs: &[],
    },
    Row {
        name: "diff",
        about: "What differs between two recorded states, or between one and the worktree as it is now, as a patch.",
        effect: Effect::Looks,
        takes: || {
            json!({
                "from": text("A state: '17' after turn 17, '17:before', '17.3', '0', a checkpoint's name (@)"),
                "to": text("Another state; the worktree as it is now where this is left out"),
                "paths": texts("Only what one of these git pathspecs matches"),
            })
        },
        needs: &[],
    },
    Row {
        name: "find",
        about: "Where a lost file or text is: in which recorded state, newest first.",
        effect: Effect::Looks,
        takes: || {
            json!({
                "paths": texts("Git pathspecs of the files"),
                "text": text("What the files have to contain"),
                "regex": text("What has to match in them"),
                "n": number("At most so many (20)"),
            })
        },
        needs: &[],
    },
    Row {
        name: "status",
        about: "Where the timeline stands, what undo would do now or why it would be refused, and what is not covered by undo.",
        effect: Effect::Looks,
        takes: || json!({}),
        needs: &[],
    },
    Row {
        name: "checkpoint",
        about: "Names the present state of the worktree, to look at it and to restore from it later. Files are not touched.",
        effect: Effect::Adds,
        takes: || json!({"name": text("Its name; without one it gets the next of c1, c2 and so on")}),
        needs: &[],
    },
    Row {
        name: "plan_undo",
        about: "Plans to take turns back, and changes nothing. Gives the plan with its id. Turns of other sessions and the turn in progress are out of reach.",
        effect: Effect::Adds,
        takes: || {
            json!({
                "turns": number("The last so many turns (1)"),
                "to": text("Until this turn is the last one done"),
                "only": text("This turn alone; later ones stay"),
                "revert": flag("By commits on top, published or not"),
                "paths": texts("Only these git pathspecs, in the worktree alone"),
                "edits": edits(),
            })
        },
        needs: &[],
    },
    Row {
        name: "plan_redo",
        about: "Plans to bring undone turns back, and changes nothing. Gives the plan with its id.",
        effect: Effect::Adds,
        takes: || {
            json!({
                "turns": number("The next so many turns (1)"),
                "to": text("Until this turn is the last one done"),
                "edits": edits(),
            })
        },
        needs: &[],
    },
    Row {
        name: "plan_restore",
        about: "Plans to bring files of a recorded state into the worktree, and changes nothing. Gives the plan with its id. Within your own turn, what it does is part of that turn.",
        effect: Effect::Adds,
        takes: || {
            json!({
                "state": text("'17' for the state after turn 17, '17:before', '17.3', a checkpoint's name"),
                "paths": texts("Only what one of these git pathspecs matches"),
            })
        },
        needs: &["state"],
    },
    Row {
        name: "apply",
        about: "Carries a plan out by its id, as it was shown and once: the same id again does nothing more. Refused (stale) when the worktree has moved since. The state right before is kept.",
        effect: Effect::Changes,
        takes: || json!({"plan": text("The plan's id")}),
        needs: &["plan"],
    },
];

fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

fn texts(about: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": about})
}

fn number(about: &str) -> Value {
    json!({"type": "integer", "minimum": 1, "description": about})
}

fn flag(about: &str) -> Value {
    json!({"type": "boolean", "description": about})
}

fn edits() -> Value {
    let about = "What becomes of the user's own later edits to the same files";
    json!({"type": "string", "enum": ["merge", "refuse"], "description": about})
}

/// The tools that a client may call.
pub fn tools(access: Access) -> Vec<Tool> {
    let may = |row: &&Row| match access {
        Access::Off => false,
        Access::Read => row.effect != Effect::Changes,
        Access::Full => true,
    };
    TOOLS.iter().filter(may).map(tool).collect()
}

fn tool(row: &Row) -> Tool {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), (row.takes)());
    schema.insert("required".to_owned(), row.needs.into());
    schema.insert("additionalProperties".to_owned(), false.into());
    let hints = ToolAnnotations::new().read_only(row.effect == Effect::Looks).open_world(false);
    let hints = if row.effect == Effect::Looks { hints } else { hints.destructive(row.effect == Effect::Changes) };
    let mut tool = Tool::new(row.name, row.about, schema);
    tool.annotations = Some(hints.idempotent(row.name != "checkpoint"));
    tool
}
