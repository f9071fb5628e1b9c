//! Directories that are not read because they are known to hold what the index says: whatever happens
//! in one is seen all the same.

use crate::sandbox::{Mode, Sandbox};
use std::time::Duration;

/// What happens in a directory that holds the tracked files `a`, `b` and `sub/c`.
const EVENTS: &[&str] = &[
    "echo new >new",
    "rm a",
    "mv a z",
    "mv a swap; mv b a; mv swap b",
    "rm a; mkdir a; echo inside >a/file",
    "rm a; ln -s b a",
    "rm -r sub; echo file >sub",
    "rm -r sub",
    "mv sub other",
    "mkdir empty",
    "mkdir -p deep/er; echo x >deep/er/file",
    "echo '*.log' >.gitignore",
    "chmod 700 .",
    "chmod 600 a",
    "echo edited >>a",
    "git rm -q --cached a",
    "git rm -q --cached -r .",
    "echo staged >s; git add s",
    "git mv a moved",
    "mv ../DIRECTORY ../aside-DIRECTORY; mkdir ../DIRECTORY; echo other >../DIRECTORY/a",
];

/// A repository with two directories for each event, which are known.
fn known() -> Sandbox {
    let repo = Sandbox::new();
    for directory in 0..2 * EVENTS.len() {
        for file in ["a", "b", "sub/c"] {
            repo.write(format!("d{directory}/{file}"), format!("{directory} {file}\n"));
        }
    }
    repo.git(["add", "-A"]);
    repo.git(["commit", "-qm", "directories"]);
    repo
}

/// What was changed in the last two seconds is never known, and these are counted in whole ones.
const LATER: Duration = Duration::from_millis(3200);

#[test]
fn whatever_happens_in_a_known_directory_is_seen() {
    let within = |directory: usize, event: &str| {
        let name = format!("d{directory}");
        format!("(cd {name}; {});", event.replace("DIRECTORY", &name))
    };
    let of = |side: usize| EVENTS.iter().enumerate().map(move |(nth, event)| within(2 * nth + side, event));
    let (agents, users): (String, String) = (of(0).collect(), of(1).collect());
    let check = |mode| {
        let repo = known();
        std::thread::sleep(LATER);
        repo.oxundo(["run", "--", "true"]).success();
        let record = repo.root().join(".git/oxundo/listed");
        let directories = 4 * EVENTS.len() as u64;
        assert_eq!(record.metadata().map(|about| about.len() / 16).ok(), Some(directories), "each of them is known");
        repo.sh(&format!("set -e; {users}"));
        std::thread::sleep(LATER);
        // What the user did is in the way of nothing, and comes back when a turn takes it away.
        let away: String = (0..EVENTS.len()).map(|nth| format!("rm -rf d{}; ", 2 * nth + 1)).collect();
        repo.there_and_back(mode, &format!("{agents} {away} rm -rf aside-*; sleep {}", LATER.as_secs_f32()));
    };
    std::thread::scope(|scope| {
        for mode in Mode::BOTH {
            scope.spawn(move || check(mode));
        }
    });
}
