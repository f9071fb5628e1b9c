//! The library works in the tests' own process too, and reads its environment. So that it is nobody's, the process
//! begins anew without what a developer has set: `GIT_DIR` in a hook, `OXUNDO_MODE`, a configuration of git's.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Once;

/// What the tests themselves are told by.
const TOLD: [&str; 10] = [
    "OXUNDO_BLESS",
    "OXUNDO_CASE",
    "OXUNDO_CASES",
    "OXUNDO_POINT",
    "OXUNDO_REPLAY",
    "OXUNDO_REQUIRE_FUSE",
    "OXUNDO_SECONDS",
    "OXUNDO_SEED",
    "OXUNDO_THOROUGH",
    "OXUNDO_WHOLE",
];

/// How many tests run at once, where nobody says it: twice as many as there are processors, since many wait, for a lock to
/// grow old or a directory's times to tell.
const THREADS: &str = "RUST_TEST_THREADS";

/// What is there in place of the developer's configuration.
const SET: [(&str, &str); 5] = [
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("XDG_CONFIG_HOME", "/nonexistent"),
    ("XDG_STATE_HOME", "/nonexistent"),
];

/// Starts this program again, with its arguments, unless its environment is nobody's. To be called before the library
/// is: the first test that makes a repository does so.
pub fn ensure() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let theirs: Vec<String> =
            std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(is_theirs).collect();
        if theirs.is_empty() && SET.iter().all(|(name, value)| std::env::var_os(name).is_some_and(|is| is == *value)) {
            return;
        }
        let mut again = Command::new(std::env::current_exe().expect("the tests are a program"));
        again.args(std::env::args_os().skip(1));
        for name in &theirs {
            again.env_remove(name);
        }
        if std::env::var_os(THREADS).is_none() {
            again.env(THREADS, (2 * std::thread::available_parallelism().map_or(1, usize::from)).to_string());
        }
        panic!("start the tests again: {}", again.envs(SET).exec());
    });
}

fn is_theirs(name: &String) -> bool {
    let is_read = name.starts_with("GIT_") || name.starts_with("OXUNDO_") || name == "EMAIL";
    is_read && !TOLD.contains(&name.as_str()) && SET.iter().all(|(set, _)| set != name)
}
