//! `oxundo`: see the library.

fn main() -> std::process::ExitCode {
    oxundo::run(std::env::args_os())
}
