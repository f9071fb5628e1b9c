//! `git oxundo`: the program `oxundo` that is beside this one, where git finds it. To link all of that twice would take minutes.

use std::io::{Write, stderr};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// What a shell says where a program is not there.
const NOT_FOUND: u8 = 127;

fn main() -> ExitCode {
    let mut given = std::env::args_os();
    let name = given.next().unwrap_or_else(|| "git-oxundo".into());
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("oxundo")).filter(|it| it.is_file());
    let program = beside.unwrap_or_else(|| PathBuf::from("oxundo"));
    let error = Command::new(&program).arg0(name).args(given).exec();
    // Nobody may be there to read it.
    let _ = writeln!(
        stderr(),
        "error: cannot start '{}': {error}\nhint: install oxundo again: 'git oxundo' is a door to it",
        program.display()
    );
    ExitCode::from(NOT_FOUND)
}
