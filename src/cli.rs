//! Every command-line type, and nothing else.

use crate::model::merge::Edits;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Undo and redo for any coding agent, exactly
#[derive(Debug, Parser)]
#[command(name = "oxundo", version, max_term_width = 100, infer_subcommands = false)]
pub struct Cli {
    /// Run as if started in this directory
    #[arg(short = 'C', global = true, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// Print errors and answers only
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Say on stderr which git commands run, and how long scans and applies take
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run an agent as one turn: save your work, let it work, commit what it did
    Run(RunArgs),
    /// Take turns back: exactly the state before them
    Undo(UndoArgs),
    /// Bring undone turns back: exactly the state after them
    Redo(RedoArgs),
    /// Choose a turn from a list and go there, back or forward
    Rewind(RewindArgs),
    /// Show the timeline, newest first
    Log(LogArgs),
    /// Show what a turn changed, or a file as it was
    Show(ShowArgs),
    /// Show what changed since a turn, or between two
    Diff(DiffArgs),
    /// Name the present state, to go or look back to it
    Checkpoint(CheckpointArgs),
    /// Bring files of any turn or checkpoint into the worktree
    Restore(RestoreArgs),
    /// Start a branch at a turn, to explore another way
    Branch(BranchArgs),
    /// Make one clean commit of unpublished turns' commits
    Squash(SquashArgs),
    /// Show where the timeline stands and what undo would do
    Status,
    /// Check the records and say what is wrong and how to mend it
    Doctor,
    /// Set up agents' hooks, so that each of their prompts is a turn
    Init(InitArgs),
    /// Take away what init set up
    Uninstall(UninstallArgs),
    /// Tell where a turn begins and ends, from a script or an editor
    Turn(TurnArgs),
    /// Be called by an agent's own hook: reads its JSON, prints nothing, always exits 0
    Hook(HookArgs),
    /// Let old turns go and free the space that they take
    Gc(GcArgs),
}

/// Arguments of `gc`.
#[derive(Args, Debug)]
pub struct GcArgs {
    /// Expire turns older than this: `30d`, `2 weeks`, `now`, `never` [default: `oxundo.keep`, 30 days]
    #[arg(long, value_name = "AGE")]
    pub keep: Option<String>,
    /// Change nothing, say what would go
    #[arg(long)]
    pub dry_run: bool,
    /// As a turn's end starts it by itself: wait for nobody, and let be what is busy
    #[arg(long, hide = true, conflicts_with_all = ["keep", "dry_run", "stores"])]
    pub auto: bool,
    /// List the stores of directories that are in no git repository
    #[arg(long, conflicts_with = "keep")]
    pub stores: bool,
    /// Remove the store of this directory with all its turns (can be repeated)
    #[arg(long, value_name = "DIR", requires = "stores")]
    pub remove: Vec<PathBuf>,
}

/// Arguments of `run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// The message of the turn's commit
    #[arg(short, long, value_name = "MSG")]
    pub message: Option<String>,
    /// The agent's name [default: the command's]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The agent's session
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Make no commits: keep checkpoints only
    #[arg(long)]
    pub ghost: bool,
    /// The agent and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// How far to go.
#[derive(Args, Clone, Debug)]
pub struct Distance {
    /// How many turns
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "to")]
    pub steps: Option<u64>,
    /// Until this turn is the last one done
    #[arg(long, value_name = "TURN")]
    pub to: Option<String>,
    /// What to do with your own edits to what the turns changed [default: merge]
    #[arg(long, value_name = "HOW")]
    pub edits: Option<Edits>,
    /// Change nothing, print the plan
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `undo`.
#[derive(Args, Debug)]
pub struct UndoArgs {
    /// How far
    #[command(flatten)]
    pub distance: Distance,
    /// Choose the turn from a list, forward too; look at the files, then confirm
    #[arg(short, long, conflicts_with_all = ["steps", "to", "dry_run", "only", "revert", "pathspecs"])]
    pub interactive: bool,
    /// Take this one turn out and leave later ones; in commit mode by a commit on top
    #[arg(long, value_name = "TURN", conflicts_with_all = ["steps", "to"])]
    pub only: Option<String>,
    /// Take the turns out by commits on top of HEAD, published or not; rewrite nothing
    #[arg(long)]
    pub revert: bool,
    /// Take only these paths out, of the worktree alone
    #[arg(last = true, value_name = "PATHSPEC", conflicts_with = "revert")]
    pub pathspecs: Vec<OsString>,
}

/// Arguments of `rewind`.
#[derive(Args, Debug)]
pub struct RewindArgs {
    /// What to do with your own edits to what the turns changed [default: merge]
    #[arg(long, value_name = "HOW")]
    pub edits: Option<Edits>,
}

/// Arguments of `restore`.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// A turn, as it ended; `17:before` as it began; or a checkpoint's name
    #[arg(value_name = "TURN")]
    pub state: String,
    /// Only these paths
    #[arg(last = true, value_name = "PATHSPEC")]
    pub pathspecs: Vec<OsString>,
    /// Change nothing, print the plan
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `checkpoint`.
#[derive(Args, Debug)]
pub struct CheckpointArgs {
    /// Its name [default: the message, or the next free of c1, c2, …]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Its name, in words
    #[arg(short, long, value_name = "MSG", conflicts_with = "name")]
    pub message: Option<String>,
    /// Forget the checkpoint of this name
    #[arg(long, requires = "name")]
    pub delete: bool,
    /// List all of them
    #[arg(long, conflicts_with_all = ["name", "message", "delete"])]
    pub list: bool,
}

/// Arguments of `branch`.
#[derive(Args, Debug)]
pub struct BranchArgs {
    /// The new branch's name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The turn after which it starts
    #[arg(value_name = "TURN", default_value = "@")]
    pub turn: String,
    /// What to do with your own edits to what the turns changed [default: merge]
    #[arg(long, value_name = "HOW")]
    pub edits: Option<Edits>,
    /// Change nothing, print the plan
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `squash`.
#[derive(Args, Debug)]
pub struct SquashArgs {
    /// From the first of these turns to the last one done [default: all that is not published]
    #[arg(value_name = "TURN..TURN")]
    pub turns: Option<String>,
    /// The commit's message
    #[arg(short, long, value_name = "MSG")]
    pub message: Option<String>,
    /// Its author, `Name <address>` [default: you]
    #[arg(long, value_name = "AUTHOR")]
    pub author: Option<String>,
    /// Fold your own dirty commits in too
    #[arg(long)]
    pub all: bool,
    /// Change nothing, print the plan
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `redo`.
#[derive(Args, Debug)]
pub struct RedoArgs {
    /// How far
    #[command(flatten)]
    pub distance: Distance,
}

/// Arguments of `log`.
#[derive(Args, Debug)]
pub struct LogArgs {
    /// At most this many turns
    #[arg(short = 'n', long, value_name = "N")]
    pub number: Option<usize>,
    /// Turns of every branch and worktree, removed ones too, and those that can be redone no more
    #[arg(long, conflicts_with = "ops")]
    pub all: bool,
    /// Draw a lane for each branch, worktree and session beside the turns
    #[arg(long, conflicts_with = "ops")]
    pub graph: bool,
    /// The operations instead of the turns
    #[arg(long)]
    pub ops: bool,
}

/// Arguments of `show`.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// The turn; `17:src/a.rs` for a file after it, `17:before:src/a.rs` before it
    #[arg(value_name = "TURN", default_value = "@")]
    pub turn: OsString,
    /// Only this path
    #[arg(value_name = "PATH")]
    pub path: Option<OsString>,
    /// Show a summary of the changed files only
    #[arg(long)]
    pub stat: bool,
}

/// Arguments of `diff`.
#[derive(Args, Debug)]
pub struct DiffArgs {
    /// From the state after this turn (default: @), to the state after the second or the worktree
    #[arg(value_name = "TURN", num_args = 0..=2)]
    pub turns: Vec<String>,
    /// Show a summary of the changed files only
    #[arg(long)]
    pub stat: bool,
    /// Only these paths
    #[arg(last = true, value_name = "PATHSPEC")]
    pub pathspecs: Vec<OsString>,
}

/// Which end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TurnEnd {
    /// A turn begins; one of the same session that is still open is closed as interrupted
    Begin,
    /// The turn ends
    End,
    /// The turn was cut off: it ends, marked as interrupted
    Abort,
}

/// Arguments of `turn`.
#[derive(Args, Debug)]
pub struct TurnArgs {
    /// Which end of a turn
    #[arg(value_name = "begin|end|abort")]
    pub end: TurnEnd,
    /// The message of the turn's commit
    #[arg(short, long, value_name = "MSG")]
    pub message: Option<String>,
    /// The agent's name [default: script]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The agent's session
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The agent's own id of the turn: the same one twice is told once
    #[arg(long, value_name = "ID")]
    pub turn: Option<String>,
}

/// Arguments of `hook`.
#[derive(Args, Debug)]
pub struct HookArgs {
    /// The agent, the event where its JSON does not tell, and the JSON where it is not on stdin
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "AGENT [EVENT]")]
    pub words: Vec<OsString>,
}

/// For whom hooks are set up.
#[derive(Args, Clone, Copy, Debug)]
#[group(multiple = false)]
pub struct ScopeArgs {
    /// For everybody who works on this project: in the files that are committed
    #[arg(long)]
    pub project: bool,
    /// For all your repositories
    #[arg(long)]
    pub user: bool,
}

/// Arguments of `init`.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct InitArgs {
    /// The agents [default: asks]
    #[arg(value_name = "AGENT", conflicts_with = "all")]
    pub agents: Vec<String>,
    /// Every agent that is installed
    #[arg(long)]
    pub all: bool,
    /// For whom
    #[command(flatten)]
    pub scope: ScopeArgs,
    /// Make it 'git undo' and 'git redo' as well
    #[arg(long)]
    pub alias: bool,
    /// Install git's pre-push hook, which remembers what was pushed
    #[arg(long)]
    pub pre_push: bool,
    /// Change nothing, print the difference
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `uninstall`.
#[derive(Args, Debug)]
pub struct UninstallArgs {
    /// The agents [default: all, and the configuration]
    #[arg(value_name = "AGENT")]
    pub agents: Vec<String>,
    /// What was set up for all your repositories, instead of for this one
    #[arg(long)]
    pub user: bool,
    /// Every turn, checkpoint and note as well: nothing can be undone any more
    #[arg(long, conflicts_with = "agents")]
    pub purge: bool,
    /// Change nothing, print the difference
    #[arg(long)]
    pub dry_run: bool,
}
