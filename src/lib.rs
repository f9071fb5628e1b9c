//! Undo and redo for any coding agent, on git.
//!
//! A **turn** is one piece of an agent's work. Around it oxundo takes two
//! **checkpoints**: HEAD, branches, index, and every tracked and untracked file,
//! as they were at one instant. The turns of a worktree are its **timeline**,
//! with a cursor on each branch: the turns below it are done, those above it are
//! undone. Undo and redo move the cursor and apply the difference. Four things
//! always hold:
//!
//! 1. *Exact*: if nothing else changed, undo brings back the very state before the
//!    turn, and redo the very state after it.
//! 2. *Nothing is lost*: before anything is touched, the present is kept as a rescue
//!    checkpoint; only what the turn is proven to have made is ever deleted.
//! 3. *All or nothing*: every check comes before the first write, and what is
//!    interrupted is finished or rolled back by the next command.
//! 4. *The user's edits are the user's*: what no turn changed is never touched.
//!
//! The program is [`run`]. A front end of another kind, in an editor or an agent, opens a [`Worktree`]
//! and has begin and end of turns, the list of them, undo and redo with a [`Plan`] to look at
//! first, capture, restore and gc. What is refused comes as a [`Refusal`] with a [`Code`],
//! a message and what to do next. All else here is the program's own and changes as it likes.
//!
//! `model` decides, purely; `git` reads and acts; `cmd` is the glue, a file a
//! subcommand; `turns` is the life of a turn from its beginning to its end.

mod agent;
mod api;
#[doc(hidden)]
pub mod cli;
#[doc(hidden)]
pub mod cmd;
#[doc(hidden)]
pub mod config;
mod error;
#[doc(hidden)]
pub mod git;
#[doc(hidden)]
pub mod hooks;
mod liveness;
#[doc(hidden)]
pub mod model;
mod setup;
mod turns;
#[doc(hidden)]
pub mod ui;

pub use api::{Collected, Done, Entry, Planned, Result, State, Walk, Who, Worktree};
pub use error::{Code, Refusal};
pub use gix::ObjectId;
pub use gix::bstr;
pub use model::merge::Edits;
pub use model::progress::{Progress, Watch, Work};
pub use model::session::{Origin, Part, Process};
pub use model::turn::{CommitKind, FileChange, Made, Mode, Totals, Turn, TurnCommit};
pub use plan::Plan;

/// What a [`Plan`] is made of.
pub mod plan {
    pub use crate::model::checkpoint::{Change, FileState, Head, IndexEntry, Kind, StashEntry};
    pub use crate::model::merge::Carried;
    pub use crate::model::plan::{AsideMove, BranchMove, DirectoryMove, FileMove, IndexMove, Op, Plan};
}

use clap::Parser;
use cli::{Cli, Command};
use error::failure::refusal_of;
use git::repo::Repo;
use model::plan::Op;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use ui::Ui;

/// Runs a command line; gives the process's exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        // An agent takes any other exit code for a verdict on its work.
        Err(error) if cmd::hook::is_meant(&args) => {
            Ui::complain(&error.to_string());
            return ExitCode::SUCCESS;
        }
        Err(error) => return usage(&error, &args),
    };
    let mut ui = Ui { json: cli.json, quiet: cli.quiet, verbose: cli.verbose, hints: true, color: cli.color };
    ui.colors(None);
    if let Command::Hook(hook) = &cli.command {
        cmd::hook::run(cli.directory.as_deref(), &ui, hook);
        return ExitCode::SUCCESS;
    }
    if let Command::Complete(args) = &cli.command {
        // With the shell gone there is nobody left to tell.
        let _ = Ui::raw(cmd::complete::run(args).as_bytes());
        return ExitCode::SUCCESS;
    }
    if let Some(directory) = &cli.directory
        && let Err(error) = std::env::set_current_dir(directory)
    {
        cmd::heed_user(&mut ui);
        let refusal = Refusal::new(Code::NotFound, format!("cannot go to '{}': {error}", directory.display()))
            .hint("give a directory that is there with -C");
        ui.refuse(&refusal);
        return ExitCode::from(refusal.code.exit());
    }
    let directory = PathBuf::from(".");
    if let Command::Run(args) = &cli.command {
        return ExitCode::from(cmd::run::run(&directory, &mut ui, args));
    }
    match answer(&cli, &directory, &mut ui) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let refusal = refusal_of(&error);
            ui.refuse(&refusal);
            ExitCode::from(refusal.code.exit())
        }
    }
}

fn answer(cli: &Cli, directory: &Path, ui: &mut Ui) -> anyhow::Result<ExitCode> {
    if let Command::Gc(args) = &cli.command
        && args.stores
    {
        cmd::heed_user(ui);
        ui.answer(&cmd::stores::run(args)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    // The manual and the scripts need no repository.
    if let Command::Man(args) = &cli.command {
        if let Some(manual) = cmd::man::run(ui, args)? {
            ui.answer(&manual)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Command::Completions(args) = &cli.command {
        ui.answer(&cmd::completions::run(args))?;
        return Ok(ExitCode::SUCCESS);
    }
    let begins = matches!(&cli.command, Command::Turn(args) if matches!(args.end, cli::TurnEnd::Begin));
    let opened = if begins { Repo::open_or_make(directory) } else { Repo::open(directory) };
    let mut repo = opened.inspect_err(|_| cmd::heed_user(ui))?;
    cmd::heed(&mut repo, ui);
    let ui = &*ui;
    cmd::tell_of_earlier_store(&repo, ui);
    match &cli.command {
        Command::Rewind(args) => return cmd::rewind::run(&repo, ui, args.edits),
        Command::Undo(args) if args.interactive => return cmd::rewind::run(&repo, ui, args.distance.edits),
        Command::Undo(args) if args.revert || args.only.is_some() || !args.pathspecs.is_empty() => {
            ui.answer(&cmd::take_out::run(&repo, ui, args)?)?;
        }
        Command::Undo(args) => travel(&repo, ui, Op::Undo, &args.distance)?,
        Command::Checkpoint(args) => ui.answer(&*cmd::checkpoint::run(&repo, ui, args)?)?,
        Command::Restore(args) => ui.answer(&cmd::restore::run(&repo, ui, args)?)?,
        Command::Branch(args) => ui.answer(&cmd::branch::run(&repo, ui, args)?)?,
        Command::Squash(args) => ui.answer(&cmd::squash::run(&repo, ui, args)?)?,
        Command::Redo(args) => travel(&repo, ui, Op::Redo, &args.distance)?,
        Command::Run(_) | Command::Hook(_) | Command::Complete(_) | Command::Completions(_) | Command::Man(_) => {}
        Command::Init(args) => return report(ui, &cmd::init::install(&repo, ui, args)?),
        Command::Uninstall(args) => return report(ui, &cmd::init::uninstall(&repo, ui, args)?),
        Command::Turn(args) => ui.answer(&cmd::turn::run(&repo, ui, args)?)?,
        Command::Log(args) => {
            cmd::settle_if_idle(&repo, ui, "log")?;
            ui.page(&*cmd::log::run(&repo, ui, args)?, |text| repo.show_in_pager(text))?;
        }
        Command::Status => {
            cmd::settle_if_idle(&repo, ui, "status")?;
            ui.answer(&cmd::status::run(&repo)?)?;
        }
        Command::Show(args) => {
            cmd::settle_if_idle(&repo, ui, "show")?;
            if let Some(shown) = cmd::show::run(&repo, ui, args)? {
                ui.answer(&shown)?;
            }
        }
        Command::Diff(args) => {
            cmd::settle_if_idle(&repo, ui, "diff")?;
            if let Some(changes) = cmd::diff::run(&repo, ui, args)? {
                ui.answer(&changes)?;
            }
        }
        Command::Gc(args) => ui.answer(&cmd::gc::run(&repo, ui, args)?)?,
        Command::Doctor => {
            let diagnosis = cmd::doctor::run(&repo)?;
            ui.answer(&diagnosis)?;
            return Ok(diagnosis.exit());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What was left undone is an error, though all else was done.
fn report(ui: &Ui, report: &cmd::init::Report) -> anyhow::Result<ExitCode> {
    ui.answer(report)?;
    Ok(u8::from(report.has_failed()).into())
}

fn travel(repo: &Repo, ui: &Ui, op: Op, distance: &cli::Distance) -> anyhow::Result<()> {
    let travelled = cmd::travel::run(repo, ui, op, distance)?;
    cmd::conversation::hand_over(repo, ui, op, &travelled);
    ui.answer(&travelled).map_err(Into::into)
}

/// clap's own words, or one JSON object where that was asked for.
fn usage(error: &clap::Error, args: &[OsString]) -> ExitCode {
    // What comes behind `--` is the agent's.
    let ours = args.iter().take_while(|arg| *arg != "--");
    if error.use_stderr() && ours.into_iter().any(|arg| arg == "--json") {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        let message = first.strip_prefix("error: ").unwrap_or(first);
        let ui = Ui { json: true, hints: true, ..Ui::default() };
        ui.refuse(&Refusal::new(Code::Usage, message).hint("run 'oxundo --help'"));
        return ExitCode::from(Code::Usage.exit());
    }
    // With the terminal gone there is nobody left to tell.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { Code::Usage.exit() } else { 0 })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
