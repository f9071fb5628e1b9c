//! Every command-line type, and nothing else.

use crate::model::merge::Edits;
use crate::model::step::StepRange;
use crate::model::timeline::{TurnSpec, range_ends};
use crate::ops::resolve::pathspec_of;
use clap::builder::PossibleValue;
use clap::{Args, CommandFactory, Error, FromArgMatches, Parser, Subcommand, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// Under which heading the help of a command has what every command takes.
const GLOBAL: &str = "Global options";

/// What the short help of a command has of it.
const GLOBALLY: &str = "Global options: -C DIR, --color WHEN, -q, -v, --json ('oxundo --help' has more)";

/// Undo and redo for any coding agent, exactly
///
/// A turn is one piece of an agent's work: `oxundo run` makes one of any command, `oxundo init` makes one of each prompt
/// of an interactive agent. Around it, oxundo keeps two checkpoints: HEAD, branches, index, and every tracked and
/// untracked file that is not ignored. Undo goes back to the first, redo to the second, exactly. What you changed since
/// stays, nothing is ever lost, and what must not be undone is refused, with nothing changed.
///
/// TURN is a number, as `oxundo log` shows it; 0, the state before the first; @, the last one done, and @~2, the second
/// before it; a checkpoint's name; or what git finds a commit by that a turn made: its id, HEAD, main~2. TURN.STEP, as in 12.3, is the state after
/// a step of a turn, as `oxundo log --steps` shows it.
#[derive(Debug, Parser)]
#[command(name = "oxundo", version, max_term_width = 100, infer_subcommands = false, after_long_help = include_str!("help/oxundo.txt"))]
pub struct Cli {
    /// Before or behind it
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do; without it: where the timeline stands, and the last turns
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What every command takes.
#[derive(Debug, Args)]
pub struct GlobalArgs {
    /// Run as if started in this directory
    #[arg(short = 'C', global = true, help_heading = GLOBAL, hide_short_help = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directory: Option<PathBuf>,
    /// When to use colours
    #[arg(long, global = true, help_heading = GLOBAL, hide_short_help = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// Print errors and answers only
    #[arg(short, long, global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub quiet: bool,
    /// Say on stderr which git commands run, and how long scans and applies take
    #[arg(short, long, global = true, help_heading = GLOBAL, hide_short_help = true, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Print one JSON object, for errors too
    #[arg(long, global = true, help_heading = GLOBAL, hide_short_help = true)]
    pub json: bool,
}

impl Cli {
    /// What a line says.
    ///
    /// # Errors
    ///
    /// Where it says nothing that there is, or asks for help.
    pub fn parsed(line: &[OsString]) -> Result<Self, Error> {
        let command = Self::command().mut_subcommands(|command| command.after_help(GLOBALLY));
        Self::from_arg_matches(&command.try_get_matches_from(line)?)
    }
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
    ///
    /// The agent has the terminal and its own standard input and output; oxundo writes nothing to standard output and passes
    /// the exit code through.
    ///
    /// Uncommitted changes of yours go into a dirty commit first. What the agent changed and did not commit itself is
    /// committed afterwards, but for what is ignored, too large, or looks like a secret; undo takes that back as well. A
    /// turn that changed nothing leaves no trace. With --ghost, or in no git repository, no commit is made.
    #[command(after_long_help = include_str!("help/run.txt"))]
    Run(RunArgs),
    /// Take turns back: exactly the state before them
    ///
    /// HEAD, branches, index and files are as they were when the turn began; your own uncommitted changes of then are
    /// uncommitted again, staged as they were. What you changed since stays, merged line by line where the turn changed
    /// the same file. Before anything is touched, the present is kept as a rescue checkpoint.
    ///
    /// All turns asked for are undone, or none. Refused are: commits that are published, merges, or not made by a turn;
    /// another branch than the turn's; an operation of git in progress; your edits where they overlap.
    #[command(after_long_help = include_str!("help/undo.txt"))]
    Undo(UndoArgs),
    /// Bring undone turns back: exactly the state after them
    ///
    /// The commits have the ids that they had. A new turn that changes something drops the undone ones from the redo stack;
    /// their files are still to be had by 'oxundo restore'.
    #[command(after_long_help = include_str!("help/redo.txt"))]
    Redo(RedoArgs),
    /// Choose on the timeline screen where to go, back or forward
    ///
    /// Shows the turns, undone and left ones and checkpoints too, and beside them what Enter would do now: the files that
    /// would change with their difference, or why it is refused. One key each takes a single turn out, reverts, brings one
    /// file back, starts a branch, names the present state or describes a turn; '?' lists them, '/' searches. Enter asks
    /// before it does anything. To leave it without a choice exits 130. A terminal that shows lines only (TERM=dumb) gets a
    /// numbered list.
    #[command(visible_alias = "ui", after_long_help = include_str!("help/rewind.txt"))]
    Rewind(RewindArgs),
    /// Show the timeline, newest first
    ///
    /// Each line has the turn's number, its age, the agent and the message, and the size of the change. Undone, open and
    /// interrupted turns are marked.
    #[command(after_long_help = include_str!("help/log.txt"))]
    Log(LogArgs),
    /// Show what a turn changed, or a file as it was
    ///
    /// Changes are shown by git's own diff, with your pager and colours.
    #[command(after_long_help = include_str!("help/show.txt"))]
    Show(ShowArgs),
    /// Show what changed since a turn, or between two
    ///
    /// Changes are shown by git's own diff, with your pager and colours.
    #[command(after_long_help = include_str!("help/diff.txt"))]
    Diff(DiffArgs),
    /// Name the present state, to go or look back to it
    ///
    /// The name stands for a turn in 'undo --to', 'restore', 'show' and 'diff'. HEAD, index and files are not touched. A
    /// checkpoint is kept until it is deleted.
    #[command(after_long_help = include_str!("help/checkpoint.txt"))]
    Checkpoint(CheckpointArgs),
    /// Say what a turn was about
    ///
    /// The message is what log, show and the list of rewind have. That of the turn's commits stays.
    #[command(after_long_help = include_str!("help/describe.txt"))]
    Describe(DescribeArgs),
    /// Carry a plan of 'undo --plan' out, as it was shown or not at all
    ///
    /// Where it would not do the same any more, it is refused (stale). The same plan twice is done once.
    #[command(after_long_help = include_str!("help/apply.txt"))]
    Apply(ApplyArgs),
    /// Keep a turn from expiring
    ///
    /// Neither gc nor age takes it, nor what its states have. --off lets it go again.
    #[command(after_long_help = include_str!("help/keep.txt"))]
    Keep(KeepArgs),
    /// Bring files of any turn or checkpoint into the worktree
    ///
    /// Only the worktree changes; HEAD and index stay. What restore did is a turn of its own, which undo takes back. With --exact
    /// all goes to that state: the index and where HEAD's branch points too, and what was made since goes, what you saved between
    /// two calls included, which 'undo --to TURN.STEP' keeps.
    #[command(after_long_help = include_str!("help/restore.txt"))]
    Restore(RestoreArgs),
    /// Find a lost file or text in all that is recorded, with the command that brings it back
    ///
    /// Looks through every turn, step, checkpoint and rescue, those of other and removed worktrees too; through what was staged, and
    /// commits and stash entries that are on no branch and in no list any more; and through what is kept beside the worktree.
    /// Each content is given once, with the newest state that has it.
    #[command(after_long_help = include_str!("help/find.txt"))]
    Find(FindArgs),
    /// Say which turn wrote each line of a file
    ///
    /// What is committed is told by git's blame and the notes, what is not by the checkpoints of turns that are done here. A
    /// line has the turn, or the step of it, its agent and model, and the first line of the prompt; what no turn wrote has the
    /// commit and its author.
    #[command(after_long_help = include_str!("help/blame.txt"))]
    Blame(BlameArgs),
    /// Start a branch at a turn, to explore another way
    ///
    /// The new branch is checked out with the files as the turn left them. The old branch and its later turns stay.
    #[command(after_long_help = include_str!("help/branch.txt"))]
    Branch(BranchArgs),
    /// Make one clean commit of unpublished turns' commits
    ///
    /// The files stay as they are, and the message has what the turns' messages say unless you give one. Undo brings the
    /// single commits back.
    #[command(after_long_help = include_str!("help/squash.txt"))]
    Squash(SquashArgs),
    /// Show where the timeline stands and what undo would do
    ///
    /// Names what the last turn done does not cover as well: files that are too large, nested repositories and the like.
    #[command(after_long_help = include_str!("help/status.txt"))]
    Status(StatusArgs),
    /// Check the records and say what is wrong and how to mend it
    ///
    /// Looks at the timeline and its reflog, the notes, git's configuration, interrupted commands and the agents' hooks, in
    /// every worktree. The hooks are tried: each is called as its agent would, with an event that records nothing. Each
    /// finding comes with the command that mends it; without --fix and --finish, doctor itself changes nothing.
    #[command(after_long_help = include_str!("help/doctor.txt"))]
    Doctor(DoctorArgs),
    /// Set up agents' hooks, so that each of their prompts is a turn
    ///
    /// Known are claude, codex, gemini, cursor, copilot, qwen, droid, goose, crush, opencode, amp, cline and pi. What others
    /// wrote into the agents' files stays as it is. By default the hooks are set up for you in this repository.
    #[command(after_long_help = include_str!("help/init.txt"))]
    Init(InitArgs),
    /// Take away what init set up
    ///
    /// Turns, checkpoints and notes stay unless --purge is given.
    #[command(after_long_help = include_str!("help/uninstall.txt"))]
    Uninstall(UninstallArgs),
    /// Tell where a turn begins and ends, from a script or an editor
    ///
    /// To say the same twice does no harm.
    #[command(after_long_help = include_str!("help/turn.txt"))]
    Turn(TurnArgs),
    /// Be called by an agent's own hook: reads its JSON, prints nothing, always exits 0
    ///
    /// What goes wrong is in $(git rev-parse --git-path oxundo)/hooks.log and in 'oxundo doctor'.
    #[command(after_long_help = include_str!("help/hook.txt"))]
    Hook(HookArgs),
    /// Let old turns go and free the space that they take
    ///
    /// The newest 50 turns of a branch and all checkpoints stay. The objects themselves are git's to free.
    #[command(after_long_help = include_str!("help/gc.txt"))]
    Gc(GcArgs),
    /// Stand between an editor and an agent, who speak the Agent Client Protocol: each prompt is a turn
    ///
    /// The editor starts this in the agent's place. Each line goes on as it came. The editor can list turns, plan, undo and redo
    /// by methods of oxundo's own, which the agent's answer to 'initialize' names.
    #[cfg(feature = "acp")]
    #[command(after_long_help = include_str!("help/acp.txt"))]
    Acp(AcpArgs),
    /// Serve agents by the Model Context Protocol, on standard input and output
    ///
    /// Agents can list, show, compare and find what is recorded, name a state and plan an undo, a redo or a restore. They can
    /// carry a plan out, by its id alone, only where oxundo.mcp is full. 'oxundo init --mcp AGENT' sets it up.
    #[cfg(feature = "mcp")]
    #[command(after_long_help = include_str!("help/mcp.txt"))]
    Mcp,
    /// Print a shell's completion script
    ///
    /// It completes commands, options, turns with their messages, checkpoints and agents, for 'oxundo' and for 'git
    /// oxundo'. Completion reads and never writes.
    #[command(after_long_help = include_str!("help/completions.txt"))]
    Completions(CompletionsArgs),
    /// Show a page of the manual, or install all of them
    #[command(after_long_help = include_str!("help/man.txt"))]
    Man(ManArgs),
    /// Complete a command line, for the scripts of `completions`
    #[command(name = "__complete", hide = true)]
    Complete(CompleteArgs),
}

/// A shell that there is a completion script for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShellName {
    /// Bash
    Bash,
    /// Zsh
    Zsh,
    /// Fish
    Fish,
    /// PowerShell
    #[value(name = "powershell", alias = "pwsh")]
    Powershell,
}

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// Whose script
    #[arg(value_name = "SHELL")]
    pub shell: ShellName,
}

/// Arguments of `man`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// A command, `config`, `json` or `storage` [default: oxundo]
    #[arg(value_name = "PAGE")]
    pub page: Option<String>,
    /// Install all pages below this directory [default: where man looks for yours, ~/.local/share/man]
    #[arg(long, value_name = "DIR", num_args = 0..=1, conflicts_with = "page", value_hint = ValueHint::DirPath)]
    #[expect(clippy::option_option, reason = "an option whose value may be left out")]
    pub install: Option<Option<PathBuf>>,
}

/// Arguments of `__complete`.
#[derive(Args, Debug)]
pub struct CompleteArgs {
    /// Where the command line is completed
    pub index: usize,
    /// Its words, `oxundo` first
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

/// Arguments of `status`.
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// One short line, for a prompt: how many turns can be undone and redone, the open turn, and whether anything is uncommitted
    #[arg(short, long)]
    pub short: bool,
}

/// Arguments of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Write the hooks that are set up as `oxundo init` writes them now, and mend what oxundo can mend itself
    #[arg(long)]
    pub fix: bool,
    /// Finish or roll back a command that was interrupted in the git directory of which this one is a copy
    #[arg(long)]
    pub finish: bool,
}

/// Arguments of `gc`.
#[derive(Args, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct GcArgs {
    /// Let turns go that are older than this: `30d`, `2 weeks`, `now`, `never` [default: `oxundo.keep`, 30 days]
    #[arg(long, value_name = "AGE")]
    pub keep: Option<String>,
    /// Change nothing, say what would go
    #[arg(long)]
    pub dry_run: bool,
    /// Let go too what is old, or over `oxundo.maxSize`, and may be the only copy of something of yours
    #[arg(long)]
    pub drop_user: bool,
    /// As a turn's end starts it by itself: wait for nobody, and let be what is busy
    #[arg(long, hide = true, conflicts_with_all = ["keep", "dry_run", "drop_user", "stores"])]
    pub auto: bool,
    /// List the stores of directories that are in no git repository
    #[arg(long, conflicts_with = "keep")]
    pub stores: bool,
    /// Remove the store of this directory with all its turns (can be repeated)
    #[arg(long, value_name = "DIR", requires = "stores", value_hint = ValueHint::DirPath)]
    pub remove: Vec<PathBuf>,
}

/// Arguments of `run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// The message of the turn's commit
    #[arg(short, long, value_name = "MSG", allow_hyphen_values = true)]
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
    /// Watch the worktree: what has changed when it is quiet is a step, where no hook tells of the agent's calls
    #[arg(long)]
    pub steps: bool,
    /// Write at the end what became of the turn, as JSON, to this file; /dev/fd/3 is what was opened as that
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// The agent and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

#[cfg(feature = "acp")]
#[derive(Args, Clone, Debug)]
pub struct AcpArgs {
    /// Answer a method of oxundo's own, for 'acp' itself
    #[arg(long, hide = true, value_name = "METHOD", conflicts_with = "command")]
    pub answer: Option<String>,
    /// The agent and its arguments
    #[arg(required_unless_present = "answer", trailing_var_arg = true, value_name = "AGENT",
        value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// How far to go.
#[derive(Args, Clone, Debug, Default)]
pub struct Distance {
    /// Go this many turns, as with --steps
    #[arg(value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["steps", "to"])]
    pub number: Option<u64>,
    /// Go this many turns [default: 1]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "to")]
    pub steps: Option<u64>,
    /// Go until this turn is the last one done
    #[arg(long, value_name = "TURN")]
    pub to: Option<String>,
    /// What becomes of your edits: merge, refuse or overwrite
    ///
    /// Those to what the turns changed: merge keeps them by a three-way merge, and refuses where they overlap; refuse refuses
    /// wherever there are any; overwrite restores exactly, and the way back, redo or undo, brings them back [default: `oxundo.edits`, merge]
    #[arg(long, value_name = "HOW", hide_possible_values = true)]
    pub edits: Option<Edits>,
    /// Which branches move: own, those of the turns, or all
    ///
    /// With all, those move too that others moved during the turns [default: own]
    #[arg(long, value_name = "WHICH", hide_possible_values = true)]
    pub branches: Option<Branches>,
    /// Change nothing, print the plan
    #[arg(long)]
    pub dry_run: bool,
    /// Change nothing, print the plan and its id for 'apply'
    ///
    /// By the id, 'oxundo apply' carries out this very plan, or refuses.
    #[arg(long, conflicts_with = "dry_run")]
    pub plan: bool,
}

/// Which branches undo and redo move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Branches {
    /// Those that the turns moved
    Own,
    /// Those too that others moved meanwhile
    All,
}

impl Distance {
    /// How many turns to go, where that was said.
    pub fn steps(&self) -> Option<u64> {
        self.number.or(self.steps)
    }
}

/// Arguments of `undo`.
#[derive(Args, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct UndoArgs {
    /// How far
    #[command(flatten)]
    pub distance: Distance,
    /// Choose on the timeline screen: 'oxundo rewind'
    #[arg(short, long, conflicts_with_all = ["number", "steps", "to", "dry_run", "plan", "only", "revert", "pathspecs"])]
    pub interactive: bool,
    /// Be asked by git what to take out, hunk by hunk
    ///
    /// Of the worktree alone: HEAD and the index stay.
    #[arg(short, long, conflicts_with_all = ["interactive", "session", "revert"])]
    pub patch: bool,
    /// Take this turn or step, or these (3..5, 3.1..3.4), out
    ///
    /// Later ones stay. A turn in commit mode is taken out by a commit on top.
    #[arg(long, value_name = "TURN", conflicts_with_all = ["number", "steps", "to"])]
    pub only: Option<String>,
    /// Take out what this session did in its last turn
    ///
    /// What others did in that turn stays.
    #[arg(long, value_name = "ID", conflicts_with_all = ["number", "steps", "to", "only", "revert", "pathspecs"])]
    pub session: Option<String>,
    /// Take the turns out by commits on top of HEAD
    ///
    /// Published or not: nothing is rewritten.
    #[arg(long)]
    pub revert: bool,
    /// Take the agent's conversation back too, as a copy
    ///
    /// The copy ends before the undone prompt, and the line that takes it up is printed.
    #[arg(long, conflicts_with = "interactive")]
    pub conversation: bool,
    /// Take only these paths out, of the worktree alone
    #[arg(last = true, value_name = "PATHSPEC", value_hint = ValueHint::AnyPath, conflicts_with = "revert")]
    pub pathspecs: Vec<OsString>,
}

impl UndoArgs {
    /// Takes `--only 17:src/a.rs` for `--only 17 -- src/a.rs`, that very path.
    pub fn take_path(&mut self) {
        let Some((turn, path)) = self.only.as_deref().and_then(|only| only.split_once(':')) else { return };
        // A worktree's name may stand before a turn, too.
        let is_one = TurnSpec::parse(turn).is_ok() || StepRange::parse(turn).is_some() || range_ends(turn).is_some();
        let is_side = ["", "before", "after"].contains(&path);
        if is_one && !is_side && self.pathspecs.is_empty() {
            self.pathspecs = vec![pathspec_of(path)];
            self.only = Some(turn.to_owned());
        }
    }
}

/// Arguments of `rewind`.
#[derive(Args, Debug)]
pub struct RewindArgs {
    /// What becomes of your own edits to what the turns changed [default: `oxundo.edits`, merge]
    #[arg(long, value_name = "HOW")]
    pub edits: Option<Edits>,
}

/// Arguments of `restore`.
#[derive(Args, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct RestoreArgs {
    /// A turn, as it ended; `17:before` as it began; a checkpoint's name; `@rescue`; or `op:12` of 'log --ops'
    #[arg(value_name = "TURN")]
    pub state: String,
    /// Go to that state as a whole: HEAD's branch and the index too; what was made or edited since goes
    #[arg(long, conflicts_with = "pathspecs")]
    pub exact: bool,
    /// Be asked by git what to bring back, hunk by hunk
    #[arg(short, long, conflicts_with = "exact")]
    pub patch: bool,
    /// The paths, where not all are meant
    #[arg(last = true, value_name = "PATHSPEC", value_hint = ValueHint::AnyPath)]
    pub pathspecs: Vec<OsString>,
    /// Change nothing, print the plan
    #[arg(long)]
    pub dry_run: bool,
    /// Change nothing, print the plan and its id for 'apply'
    ///
    /// By the id, 'oxundo apply' carries out this very plan, or refuses.
    #[arg(long, conflicts_with = "dry_run")]
    pub plan: bool,
}

/// Arguments of `find`.
#[derive(Args, Debug)]
pub struct FindArgs {
    /// Files that have this text
    #[arg(short = 'S', value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "pattern")]
    pub text: Option<OsString>,
    /// Files that have what this regular expression matches
    #[arg(short = 'G', value_name = "REGEX", allow_hyphen_values = true)]
    pub pattern: Option<String>,
    /// Show at most this many [default: 50]
    #[arg(short = 'n', long, value_name = "N")]
    pub number: Option<usize>,
    /// Their paths
    #[arg(value_name = "PATHSPEC", value_hint = ValueHint::AnyPath, required_unless_present_any = ["text", "pattern"])]
    pub pathspecs: Vec<OsString>,
}

/// Arguments of `blame`.
#[derive(Args, Debug)]
pub struct BlameArgs {
    /// These lines only: 10,20 or 10,+5, and what else git blame takes where the file is committed
    #[arg(short = 'L', value_name = "RANGE")]
    pub lines: Vec<String>,
    /// The file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: OsString,
}

/// Arguments of `checkpoint`.
#[derive(Args, Debug)]
pub struct CheckpointArgs {
    /// Its name [default: the message, or the next free of c1, c2, …]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Its name, in words
    #[arg(short, long, value_name = "MSG", allow_hyphen_values = true, conflicts_with = "name")]
    pub message: Option<String>,
    /// Forget the checkpoint of this name
    #[arg(long, requires = "name")]
    pub delete: bool,
    /// List all of them
    #[arg(long, conflicts_with_all = ["name", "message", "delete"])]
    pub list: bool,
}

/// Arguments of `apply`.
#[derive(Args, Debug)]
pub struct ApplyArgs {
    /// The plan's id
    #[arg(value_name = "PLAN")]
    pub plan: String,
}

/// Arguments of `describe`.
#[derive(Args, Debug)]
pub struct DescribeArgs {
    /// The turn
    #[arg(value_name = "TURN")]
    pub turn: String,
    /// What it was about
    #[arg(short, long, value_name = "MSG", allow_hyphen_values = true)]
    pub message: String,
}

/// Arguments of `keep`.
#[derive(Args, Debug)]
pub struct KeepArgs {
    /// The turn
    #[arg(value_name = "TURN")]
    pub turn: String,
    /// Let it expire as others do
    #[arg(long)]
    pub off: bool,
}

/// Arguments of `branch`.
#[derive(Args, Debug)]
pub struct BranchArgs {
    /// The new branch's name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The turn that it starts after
    #[arg(value_name = "TURN", default_value = "@")]
    pub turn: String,
    /// What becomes of your own edits to what the turns changed [default: `oxundo.edits`, merge]
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
    #[arg(short, long, value_name = "MSG", allow_hyphen_values = true)]
    pub message: Option<String>,
    /// The commit's author, `Name <address>` [default: you]
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
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct LogArgs {
    /// Show at most this many [default: 50]
    #[arg(short = 'n', long, value_name = "N")]
    pub number: Option<usize>,
    /// Show turns of every branch and worktree
    ///
    /// Removed ones too, and those that can be redone no more.
    #[arg(long, conflicts_with = "ops")]
    pub all: bool,
    /// Show all turns of this worktree, be it removed: `NAME` as in `NAME:17`
    #[arg(long, value_name = "NAME", hide_short_help = true, conflicts_with_all = ["ops", "all"])]
    pub worktree: Option<String>,
    /// Draw a lane for each branch, worktree and session
    #[arg(long, conflicts_with = "ops")]
    pub graph: bool,
    /// Show steps: what each call of the agent's tools changed
    #[arg(long, conflicts_with_all = ["ops", "graph"])]
    pub steps: bool,
    /// Show oxundo's operations instead of turns
    #[arg(long, conflicts_with_all = ["agent", "session", "since", "until", "grep", "pathspecs"])]
    pub ops: bool,
    /// Print each turn in a form of your own: `%(turn) %h %s`
    ///
    /// By git's placeholders where they fit, and %(turn), %(agent) and others for what git has not.
    #[arg(long, value_name = "FORMAT", alias = "pretty", conflicts_with_all = ["ops", "graph", "steps"])]
    pub format: Option<String>,
    /// How dates are shown, as git has it: relative, iso
    ///
    /// Also short, human, format:PATTERN and the others [default: `log.date`]
    #[arg(long, value_name = "FORM")]
    pub date: Option<String>,
    /// Go on printing what happens, as it happens
    ///
    /// With --json each event is an object on a line of its own.
    #[arg(long, conflicts_with_all = ["all", "worktree", "graph", "steps", "format", "number", "agent", "session", "since", "until", "grep", "pathspecs"])]
    pub follow: bool,
    /// Only turns of this agent
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Only turns in which this session took part
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Only turns that ended since then: `2 days ago`
    ///
    /// In words as git has them: `2026-01-02`, `yesterday`.
    #[arg(long, value_name = "DATE", alias = "after")]
    pub since: Option<String>,
    /// Only turns that ended until this date
    #[arg(long, value_name = "DATE", alias = "before")]
    pub until: Option<String>,
    /// Only turns whose message or prompt has a match of this
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pub grep: Option<String>,
    /// Only turns that changed one of these paths
    #[arg(last = true, value_name = "PATHSPEC", value_hint = ValueHint::AnyPath)]
    pub pathspecs: Vec<OsString>,
}

/// Arguments of `show`.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// The turn; `3..5` is from 3 to 5, `17:src/a.rs` a file after 17, `17:before:src/a.rs` before it
    #[arg(value_name = "TURN", default_value = "@")]
    pub turn: OsString,
    /// The path, where not all are meant
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub path: Option<OsString>,
    /// Show a summary of the changed files only
    #[arg(long)]
    pub stat: bool,
    /// Show the whole prompt, as it was recorded
    #[arg(long, conflicts_with_all = ["path", "stat"])]
    pub prompt: bool,
    /// Print a record of which lines the turn wrote, for other tools
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["path", "stat", "prompt"])]
    pub format: Option<ShowFormat>,
}

/// A format of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShowFormat {
    /// Agent Trace, version 0.1.0, as JSON in one line
    AgentTrace,
}

/// Arguments of `diff`.
#[derive(Args, Debug)]
pub struct DiffArgs {
    /// From the state after this turn (default: @), to that after the second or the worktree; `3..5` is from 3 to 5
    #[arg(value_name = "TURN", num_args = 0..=2)]
    pub turns: Vec<String>,
    /// Show a summary of the changed files only
    #[arg(long)]
    pub stat: bool,
    /// The paths, where not all are meant
    #[arg(last = true, value_name = "PATHSPEC", value_hint = ValueHint::AnyPath)]
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
    #[arg(short, long, value_name = "MSG", allow_hyphen_values = true)]
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
    /// Set up for everybody who works on this project, in files that are committed
    #[arg(long)]
    pub project: bool,
    /// Set up for you in all your repositories
    #[arg(long)]
    pub user: bool,
}

/// Arguments of `init`.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct InitArgs {
    /// The agents' names [default: asks]
    #[arg(value_name = "AGENT", conflicts_with = "all")]
    pub agents: Vec<String>,
    /// Set up every agent that is installed
    #[arg(long)]
    pub all: bool,
    /// For whom
    #[command(flatten)]
    pub scope: ScopeArgs,
    /// Tell the agents of the server 'oxundo mcp', and leave their hooks
    #[arg(long, conflicts_with_all = ["alias", "pre_push"])]
    pub mcp: bool,
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
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct UninstallArgs {
    /// The agents' names [default: all, and the configuration]
    #[arg(value_name = "AGENT")]
    pub agents: Vec<String>,
    /// Take away what was set up for all your repositories, instead of for this one
    #[arg(long)]
    pub user: bool,
    /// Remove every turn, checkpoint and note as well: nothing can be undone any more
    #[arg(long, conflicts_with = "agents")]
    pub purge: bool,
    /// With --purge: do not ask before what may be the only copy of something is deleted
    #[arg(long, requires = "purge")]
    pub yes: bool,
    /// Change nothing, print the difference
    #[arg(long)]
    pub dry_run: bool,
}

impl ValueEnum for Edits {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Merge, Self::Refuse, Self::Overwrite]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Self::Merge => ("merge", "Keep them by a three-way merge; refuse where they overlap"),
            Self::Refuse => ("refuse", "Refuse wherever there are any"),
            Self::Overwrite => ("overwrite", "Restore exactly; the way back, redo or undo, brings them back"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}
