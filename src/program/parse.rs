//! Reading a command line.

use crate::program::args::{Cli, Command, GlobalArgs};
use clap::{Args, Error, FromArgMatches};
use std::ffi::OsString;

/// What a command line says.
///
/// Of the commands that are used all day only the one that is named is made ready: all of them with all their options are a
/// good part of what such a command takes. What is wrong with it, and help, is told by the whole.
pub fn parse(args: &[OsString]) -> Result<Cli, Error> {
    let quick = match args.get(1).and_then(|name| name.to_str()) {
        Some("run") => alone(args, "run", Command::Run),
        Some("undo") => alone(args, "undo", Command::Undo),
        Some("redo") => alone(args, "redo", Command::Redo),
        Some("status") => alone(args, "status", Command::Status),
        Some("turn") => alone(args, "turn", Command::Turn),
        _ => None,
    };
    quick.map_or_else(|| Cli::parsed(args), Ok)
}

/// The same, as if this were the only command there is.
fn alone<A: Args>(args: &[OsString], name: &'static str, command: fn(A) -> Command) -> Option<Cli> {
    let own = A::augment_args(clap::Command::new(name));
    let whole = GlobalArgs::augment_args(clap::Command::new("oxundo").subcommand(own));
    let found = whole.try_get_matches_from(args).ok()?;
    let own = A::from_arg_matches(found.subcommand()?.1).ok()?;
    Some(Cli { global: GlobalArgs::from_arg_matches(&found).ok()?, command: Some(command(own)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_says_the_same_to_one_command_alone_as_to_all() {
        for line in [
            "run -m x --ghost -- sh -c undo",
            "run --agent a sh --json",
            "-C d run true",
            "undo",
            "undo 3 --edits=overwrite --json -q",
            "undo --only 2 -- a b",
            "--json undo",
            "undo --color never -C d --dry-run",
            "redo --to 5 -v",
            "status --short",
            "turn begin --session s",
            "turn end -m x",
            "undo --help",
            "undo --nonsense",
            "redo 1 2 3",
            "run",
            "status status",
            "log -n 3",
            "",
        ] {
            let args: Vec<OsString> =
                std::iter::once("oxundo").chain(line.split_whitespace()).map(Into::into).collect();
            let told = |read: Result<Cli, Error>| read.map_or_else(|error| error.to_string(), |cli| format!("{cli:?}"));
            assert_eq!(told(parse(&args)), told(Cli::parsed(&args)), "{line}");
        }
    }
}
