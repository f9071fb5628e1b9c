//! Another front end: a turn around a command, then a question before anything is taken back.
//!
//!     cargo run --example front_end -- sed -i s/cat/dog/ README.md

#![expect(clippy::print_stdout, reason = "that is how it talks")]

use oxundo::{Progress, ProgressSink, Refusal, Walk, Who, Worktree};
use std::env;
use std::io::stdin;
use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            println!("{refusal}");
            for hint in &refusal.hints {
                println!("  {hint}");
            }
            ExitCode::from(refusal.code.exit())
        }
    }
}

fn work() -> Result<(), Refusal> {
    let words: Vec<String> = env::args().skip(1).collect();
    let Some((program, args)) = words.split_first() else {
        println!("what shall I run?");
        return Ok(());
    };
    let mut worktree = Worktree::open(Path::new("."))?;
    worktree.set_progress(ProgressSink::new(|progress| {
        if let Progress::Begins(work, files) = progress {
            println!("({work:?}, {files} files)");
        }
    }));

    let who = Who { agent: program.clone(), message: Some(words.join(" ")), session: None };
    worktree.begin(&who)?;
    let ended = Command::new(program).args(args).status();
    let turn = if ended.is_ok() { worktree.end(&who)? } else { worktree.abort(&who)? };
    let Some(turn) = turn else {
        println!("Nothing was changed");
        return Ok(());
    };
    for entry in worktree.list(5)? {
        println!("{:4}  {:?}  {}", entry.turn.turn, entry.state, entry.turn.label());
    }

    let planned = worktree.plan(&Walk::undo(1))?;
    println!("Take turn {} back?", turn.turn);
    for (path, action) in planned.plan.actions() {
        println!("  {action} {path}");
    }
    let mut answer = String::new();
    if stdin().read_line(&mut answer).is_ok() && answer.trim() == "y" {
        let done = worktree.apply(&planned)?;
        println!("It is back: {} files", done.plan.files.len());
    }
    Ok(())
}
