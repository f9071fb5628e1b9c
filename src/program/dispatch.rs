//! Command line in, exit code out: which subcommand gets the repository, and what a failure is to the shell.

use crate::error::failure::to_refusal;
use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::model::plan::Op;
use crate::program::args::{Cli, Color, Command, GlobalArgs, HookArgs, RedoArgs, TurnEnd, UndoArgs};
use crate::program::cmd;
use crate::program::parse::parse;
use crate::program::typed::in_the_same_way;
use crate::program::ui::{Answer, Ui, Unanswered};
use crate::program::usage;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs a command line; gives the process's exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if let Some(hook) = plain_hook(&args) {
        let ui = Ui { json: false, quiet: false, verbose: false, hints: true, color: Color::Never };
        cmd::hook::run(None, &ui, &hook);
        return ExitCode::SUCCESS;
    }
    let args = usage::spelled_out(args);
    let Cli { global, mut command } = match parse(&args) {
        Ok(cli) => cli,
        // An agent takes any other exit code for a verdict on its work.
        Err(error) if cmd::hook::is_meant(&args) && error.use_stderr() => {
            Ui::complain(&error.to_string());
            return ExitCode::SUCCESS;
        }
        Err(error) => return usage(&error, &args),
    };
    Ui::was_typed(&args);
    let GlobalArgs { json, quiet, verbose, color, directory } = global;
    let mut ui = Ui { json, quiet, verbose, hints: true, color };
    ui.colors(None);
    if let Some(Command::Undo(args)) = &mut command {
        args.take_path();
    }
    let Some(command) = &command else { return overview(directory.as_deref(), &mut ui) };
    if let Command::Hook(hook) = command {
        cmd::hook::run(directory.as_deref(), &ui, hook);
        return ExitCode::SUCCESS;
    }
    if let Command::Complete(args) = command {
        // With the shell gone there is nobody left to tell.
        let _ = Ui::raw(cmd::complete::run(args).as_bytes());
        return ExitCode::SUCCESS;
    }
    let paths = matches!(command, Command::Undo(_) | Command::Restore(_));
    let misread = || usage::no_paths(&args).filter(|_| paths);
    let refused = usage::two_places(&args).or_else(misread).or_else(|| go_to(directory.as_deref(), &mut ui));
    if let Some(refusal) = refused {
        if let Command::Run(args) = command {
            return ExitCode::from(cmd::run::refused(&ui, args, &refusal));
        }
        ui.refuse(&refusal);
        return ExitCode::from(refusal.code.exit());
    }
    let directory = PathBuf::from(".");
    if let Command::Run(args) = command {
        return ExitCode::from(cmd::run::run(&directory, &mut ui, args));
    }
    let answered = answer(command, &directory, &mut ui);
    concluded(&ui, answered, Some(command))
}

/// `hook AGENT …` as agents call it, with no option before it. All commands and options are not made ready for that: it
/// would take a good part of the time that a hook takes.
fn plain_hook(args: &[OsString]) -> Option<HookArgs> {
    let [_, command, words @ ..] = args else { return None };
    let is_plain = words.first().is_some_and(|agent| !agent.to_string_lossy().starts_with('-'));
    (command == "hook" && is_plain).then(|| HookArgs { words: words.to_vec() })
}

/// The exit code of what was answered, or why it could not be.
fn concluded(ui: &Ui, answered: anyhow::Result<ExitCode>, command: Option<&Command>) -> ExitCode {
    match answered {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let refusal = unanswered(&error, command).unwrap_or_else(|| to_refusal(&error));
            ui.refuse(&refusal);
            ExitCode::from(refusal.code.exit())
        }
    }
}

/// Goes to the directory that was given; the refusal where that fails.
fn go_to(directory: Option<&Path>, ui: &mut Ui) -> Option<Refusal> {
    let directory = directory?;
    let error = std::env::set_current_dir(directory).err()?;
    cmd::apply_global_settings(ui);
    let here = usage::without_directory(&std::env::args_os().collect::<Vec<_>>());
    let message = format!("cannot go to '{}': {error}", directory.display());
    Some(Refusal::new(Code::NotFound, message).hint(format!("run {here} to do it here")))
}

/// What `oxundo` alone says: where the timeline stands, or which commands there are.
fn overview(directory: Option<&Path>, ui: &mut Ui) -> ExitCode {
    if let Some(refusal) = go_to(directory, ui) {
        ui.refuse(&refusal);
        return ExitCode::from(refusal.code.exit());
    }
    let answered = Repo::open_existing(Path::new(".")).and_then(|repo| {
        match repo {
            Some(mut repo) => {
                meet(&mut repo, ui, false);
                ui.answer(&cmd::log::overview(&repo, ui)?)?;
            }
            None if ui.json => drop(Repo::open(Path::new("."))?),
            None => Ui::raw(usage::SHORT.as_bytes())?,
        }
        Ok(ExitCode::SUCCESS)
    });
    concluded(ui, answered, None)
}

/// Answers a command: those that need no repository first.
fn answer(command: &Command, directory: &Path, ui: &mut Ui) -> anyhow::Result<ExitCode> {
    match command {
        Command::Gc(args) if args.stores => {
            cmd::apply_global_settings(ui);
            ui.answer(&cmd::stores::run(args)?)?;
        }
        Command::Man(args) => {
            if let Some(manual) = cmd::man::run(ui, args)? {
                ui.answer(&manual)?;
            }
        }
        Command::Completions(args) => ui.answer(&cmd::completions::run(args))?,
        #[cfg(feature = "acp")]
        Command::Acp(args) => return cmd::acp::run(directory, ui, args),
        #[cfg(feature = "mcp")]
        Command::Mcp => cmd::mcp::run(directory)?,
        command => {
            let begins = matches!(command, Command::Turn(args) if matches!(args.end, TurnEnd::Begin));
            if is_for_user(command)
                && let Ok(None) = Repo::open_existing(directory)
            {
                // What is for all of the user's repositories needs none of them.
                let empty = tempfile::tempdir()?;
                let mut repo = Repo::make_empty(empty.path())?;
                meet(&mut repo, ui, false);
                return answer_in(&repo, ui, command);
            }
            let opened = if begins { cmd::open_to_record(directory) } else { Repo::open(directory).map(Some) };
            let Some(mut repo) = opened.inspect_err(|_| cmd::apply_global_settings(ui))? else {
                let told = cmd::turn::not_begun(ui);
                ui.answer(&told)?;
                return Ok(ExitCode::SUCCESS);
            };
            meet(&mut repo, ui, changes_something(command));
            return answer_in(&repo, ui, command);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a command sets up, or takes away, what is for the user wherever they are.
fn is_for_user(command: &Command) -> bool {
    match command {
        Command::Init(args) => args.scope.user && !args.pre_push,
        Command::Uninstall(args) => args.user && !args.purge,
        _ => false,
    }
}

/// Talks as the user has configured it, and says what they have to know of the repository before anything else.
fn meet(repo: &mut Repo, ui: &mut Ui, changes: bool) {
    cmd::apply_user_settings(repo, ui);
    cmd::tell_of_earlier_store(repo, ui);
    cmd::tell_of_missed(repo, ui, changes);
}

/// Whether a command is there to change something.
fn changes_something(command: &Command) -> bool {
    match command {
        Command::Undo(UndoArgs { distance, .. }) | Command::Redo(RedoArgs { distance }) => {
            !distance.dry_run && !distance.plan
        }
        Command::Restore(args) => !args.plan && !args.dry_run,
        Command::Checkpoint(args) => !args.list,
        Command::Branch(args) => !args.dry_run,
        Command::Squash(args) => !args.dry_run,
        Command::Apply(_) | Command::Rewind(_) => true,
        _ => false,
    }
}

/// What a command does that may take its time, and leaves the terminal alone for as long.
fn doing(command: &Command) -> Option<&'static str> {
    Some(match command {
        Command::Undo(args) if !args.interactive && !args.patch => "undoing",
        Command::Redo(_) => "redoing",
        Command::Restore(args) if !args.patch => "restoring",
        Command::Apply(_) => "carrying the plan out",
        Command::Branch(_) => "starting the branch",
        Command::Squash(_) => "squashing",
        Command::Checkpoint(_) => "looking at the present state",
        Command::Status(_) => "looking at what undo would do",
        Command::Find(_) => "searching",
        Command::Gc(_) => "looking for what is old",
        _ => return None,
    })
}

/// Answers a command about a repository.
fn answer_in(repo: &Repo, ui: &Ui, command: &Command) -> anyhow::Result<ExitCode> {
    let _doing = doing(command).map(|what| repo.start(what));
    match command {
        Command::Rewind(args) => return cmd::rewind::run(repo, ui, args.edits),
        Command::Undo(args) if args.interactive => return cmd::rewind::run(repo, ui, args.distance.edits),
        Command::Undo(args) if args.distance.plan => ui.answer(&cmd::apply::offer_undo(repo, ui, args)?)?,
        Command::Redo(args) if args.distance.plan => ui.answer(&cmd::apply::offer_redo(repo, ui, args)?)?,
        Command::Restore(args) if args.plan => ui.answer(&cmd::apply::offer_restore(repo, ui, args)?)?,
        Command::Apply(args) => ui.answer(&cmd::apply::run(repo, ui, args)?)?,
        Command::Undo(args) => ui.answer(&cmd::undo::undo(repo, ui, args)?)?,
        Command::Redo(args) => ui.answer(&cmd::undo::walk(repo, ui, Op::Redo, &args.distance, false)?)?,
        Command::Checkpoint(args) => ui.answer(&*cmd::checkpoint::run(repo, ui, args)?)?,
        Command::Describe(args) => ui.answer(&cmd::describe::run(repo, ui, args)?)?,
        Command::Keep(args) => ui.answer(&cmd::describe::keep(repo, ui, args)?)?,
        Command::Restore(args) => ui.answer(&cmd::restore::run(repo, ui, args)?)?,
        Command::Find(args) => ui.answer(&cmd::find::run(repo, ui, args)?)?,
        Command::Blame(args) => ui.page(&cmd::blame::run(repo, ui, args)?, |text| repo.show_in_pager(text))?,
        Command::Branch(args) => ui.answer(&cmd::branch::run(repo, ui, args)?)?,
        Command::Squash(args) => ui.answer(&cmd::squash::run(repo, ui, args)?)?,
        Command::Init(args) => return report(ui, &cmd::init::install(repo, ui, args)?),
        Command::Uninstall(args) => return report(ui, &cmd::init::uninstall(repo, ui, args)?),
        Command::Turn(args) => ui.answer(&cmd::turn::run(repo, ui, args)?)?,
        Command::Log(args) if args.follow => cmd::follow::run(repo, ui, args)?,
        Command::Log(args) => ui.page(&*cmd::log::run(repo, ui, args)?, |text| repo.show_in_pager(text))?,
        Command::Status(args) if args.short => ui.answer(&cmd::status::short(repo, ui)?)?,
        Command::Status(_) => ui.answer(&cmd::status::run(repo, ui)?)?,
        Command::Show(args) => cmd::show::run(repo, ui, args)?.map_or(Ok(()), |shown| ui.answer(&shown))?,
        Command::Diff(args) => cmd::diff::run(repo, ui, args)?.map_or(Ok(()), |changes| ui.answer(&changes))?,
        Command::Gc(args) => ui.answer(&cmd::gc::run(repo, ui, args)?)?,
        Command::Doctor(args) => {
            let diagnosis = cmd::doctor::run(repo, &ui.heard(), args)?;
            ui.answer(&diagnosis)?;
            return Ok(diagnosis.exit());
        }
        // These have been answered by now.
        Command::Run(_) | Command::Hook(_) | Command::Complete(_) | Command::Completions(_) | Command::Man(_) => {}
        #[cfg(feature = "acp")]
        Command::Acp(_) => {}
        #[cfg(feature = "mcp")]
        Command::Mcp => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// What was left undone is an error, though all else was done.
fn report(ui: &Ui, report: &cmd::init::SetupReport) -> anyhow::Result<ExitCode> {
    ui.answer(report)?;
    Ok(u8::from(report.has_failed()).into())
}

/// Help and the version as clap prints them; what is wrong in words of its own.
fn usage(error: &clap::Error, args: &[OsString]) -> ExitCode {
    // What comes behind `--` is the agent's.
    let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    let is_json = |arg: &OsString| arg == "--json" || arg.as_encoded_bytes().starts_with(b"--json=");
    let json = args[..end].iter().any(is_json);
    let ui = Ui { json, hints: true, ..Ui::default() };
    ui.colors(None);
    if !error.use_stderr() {
        return help(&ui, error, args);
    }
    // `help` is clap's, and takes no option.
    let plain: Vec<OsString> = args.iter().filter(|arg| !is_json(arg)).cloned().collect();
    let refusal = match Cli::parsed(&plain) {
        Err(asked) if json && plain.get(1).is_some_and(|name| name == "help") => {
            if !asked.use_stderr() {
                return help(&ui, &asked, args);
            }
            usage::refusal(&asked, &plain)
        }
        _ => usage::refusal(error, args),
    };
    let refusal = in_the_same_way(refusal, args);
    ui.refuse(&refusal);
    // The agent's own code may be any other one.
    ExitCode::from(if usage::is_run(args) { cmd::run::FAILED } else { refusal.code.exit() })
}

/// Help, or the version.
fn help(ui: &Ui, asked: &clap::Error, args: &[OsString]) -> ExitCode {
    let for_all = usage::is_for_all(args).then_some(usage::SHORT);
    let told = match for_all {
        _ if ui.json => ui.answer(&Text(for_all.map_or_else(|| asked.render().to_string(), str::to_owned))),
        Some(text) => Ui::raw(text.as_bytes()).map_err(Into::into),
        None => asked.print().and_then(|()| Ui::out().flush()).map_err(|error| Unanswered(error).into()),
    };
    concluded(ui, told.map(|()| ExitCode::SUCCESS), None)
}

/// What is text alone.
struct Text(String);

impl Answer for Text {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(serde_json::json!({"text": self.0}))
    }

    fn text(&self) -> String {
        self.0.clone()
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Unanswered>().is_some_and(|error| error.0.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Where stdout took no answer: all is done, and to run it again would do it twice.
fn unanswered(error: &anyhow::Error, command: Option<&Command>) -> Option<Refusal> {
    let message = error.downcast_ref::<Unanswered>()?.to_string();
    let is_kept = |command: &Command| match command {
        Command::Gc(args) => !args.dry_run && (!args.stores || !args.remove.is_empty()),
        Command::Init(args) => !args.dry_run,
        Command::Uninstall(args) => !args.dry_run,
        Command::Turn(_) | Command::Describe(_) | Command::Keep(_) => true,
        command => changes_something(command),
    };
    let hint = if command.is_some_and(is_kept) {
        "it is done all the same: run 'oxundo log' to see"
    } else {
        "give another place for its output"
    };
    Some(Refusal::new(Code::Io, message).hint(hint))
}
