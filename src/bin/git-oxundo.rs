//! `git oxundo`: the same as `oxundo`, where git finds it.

fn main() -> std::process::ExitCode {
    oxundo::run(std::env::args_os())
}
