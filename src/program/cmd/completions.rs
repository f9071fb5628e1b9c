//! `oxundo completions`: the scripts that ask `oxundo __complete`, one for each shell.

use crate::program::args::{CompletionsArgs, ShellName};
use crate::program::ui::Answer;
use serde_json::json;

/// A shell's script.
pub struct Script(ShellName);

/// Gives the script of a shell.
pub fn run(args: &CompletionsArgs) -> Script {
    Script(args.shell)
}

impl Script {
    fn name(&self) -> &'static str {
        match self.0 {
            ShellName::Bash => "bash",
            ShellName::Zsh => "zsh",
            ShellName::Fish => "fish",
            ShellName::Powershell => "powershell",
        }
    }
}

impl Answer for Script {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(json!({"shell": self.name(), "script": self.text()}))
    }

    fn text(&self) -> String {
        let script = match self.0 {
            ShellName::Bash => include_str!("../../../completions/oxundo.bash"),
            ShellName::Zsh => include_str!("../../../completions/oxundo.zsh"),
            ShellName::Fish => include_str!("../../../completions/oxundo.fish"),
            ShellName::Powershell => include_str!("../../../completions/oxundo.ps1"),
        };
        script.to_owned()
    }
}
