//! `oxundo acp`: a turn a prompt, between an editor and an agent.

use crate::agents::spawn;
use crate::error::{Code, Refusal};
use crate::program::acp::{answer, serve};
use crate::program::args::AcpArgs;
use crate::program::ui::Ui;
use anyhow::Result;
use std::io::{IsTerminal, stdin};
use std::path::Path;
use std::process::ExitCode;

/// Serves until the agent has gone; gives its exit code.
pub fn run(directory: &Path, ui: &mut Ui, args: &AcpArgs) -> Result<ExitCode> {
    if let Some(method) = &args.answer {
        Ui::raw(format!("{}\n", answer(directory, method)?).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    super::apply_global_settings(ui);
    if stdin().is_terminal() {
        return Err(Refusal::new(Code::Usage, "'oxundo acp' is for editors to start, and here is a terminal")
            .hint("run 'oxundo init AGENT' for prompts that are given on a terminal")
            .into());
    }
    let program = match spawn::find(&args.command[0]) {
        Ok(program) => program,
        Err(missing) => {
            let (what, code) = missing.told();
            let name = args.command[0].to_string_lossy();
            ui.refuse(
                &Refusal::new(Code::NotFound, format!("'{name}': {what}"))
                    .hint("check the agent's command in the editor's settings, and PATH"),
            );
            return Ok(ExitCode::from(code));
        }
    };
    serve(&program, &args.command).map(ExitCode::from)
}
