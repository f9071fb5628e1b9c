//! Another front end, as the undo button of an editor: a turn around a command, then a question before anything is
//! taken back.
//!
//!     cargo run --example front_end -- sed -i s/cat/dog/ README.md

#![expect(clippy::print_stdout, reason = "that is how it talks")]

use oxundo::{Error, Progress, TurnInfo, Undo, Warning, Worktree};
use std::env;
use std::io::stdin;
use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&error.warnings);
            println!("{error}");
            for hint in &error.hints {
                println!("  {hint}");
            }
            ExitCode::from(error.code.exit())
        }
    }
}

fn work() -> Result<(), Error> {
    let words: Vec<String> = env::args().skip(1).collect();
    let Some((program, args)) = words.split_first() else {
        println!("what shall I run?");
        return Ok(());
    };
    let worktree = Worktree::open(Path::new("."))?;
    worktree.set_progress(|progress| {
        if let Progress::Begins(phase, files) = progress {
            println!("({phase:?}, {files} files)");
        }
    });

    let info = TurnInfo::by(program).message(words.join(" "));
    tell(&worktree.begin(&info)?.warnings);
    let status = Command::new(program).args(args).status();
    let ended = if status.is_ok() { worktree.end(&info)? } else { worktree.abort(&info)? };
    tell(&ended.warnings);
    if ended.turn.is_none() {
        println!("Nothing was changed");
        return Ok(());
    }
    for turn in worktree.list(5)?.turns {
        println!("{:4}  {:?}  {}", turn.number, turn.state, turn.label);
    }

    let status = worktree.status()?;
    println!("[{}] Undo", if status.can_undo() { status.undo_depth.to_string() } else { "-".to_owned() });
    let preview = worktree.preview(Undo::last(1))?;
    tell(&preview.warnings);
    println!("{}. Shall I?", preview.summary);
    for file in &preview.plan.files {
        println!("  {} {}", file.action, file.path);
    }
    let mut answer = String::new();
    if stdin().read_line(&mut answer).is_ok() && answer.trim() == "y" {
        let outcome = worktree.apply(&preview)?;
        tell(&outcome.warnings);
        println!("{}: {} files", outcome.summary, outcome.plan.files.len());
    }
    Ok(())
}

fn tell(warnings: &[Warning]) {
    for warning in warnings {
        println!("note: {warning}");
    }
}
