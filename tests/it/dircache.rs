//! Directories that are not read because they are known to hold what the index says: whatever happens
//! in one is seen all the same. The temporary directory is on a file system that tells.

use crate::sandbox::{Mode, Output, Sandbox, announce};
use std::time::Duration;

/// What happens in a directory that holds the tracked files `a`, `b` and `sub/c`.
pub(crate) const EVENTS: &[&str] = &[
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

/// A repository with two directories for each event, which are known: with nothing in them but tracked files, or
/// with these others as well.
pub(crate) fn known(others: &str) -> Sandbox {
    let repo = Sandbox::new();
    for directory in 0..2 * EVENTS.len() {
        for file in ["a", "b", "sub/c"] {
            repo.write(format!("d{directory}/{file}"), format!("{directory} {file}\n"));
        }
    }
    repo.git(["add", "-A"]);
    repo.git(["commit", "-qm", "directories"]);
    repo.sh(&format!("for d in d*; do (cd $d; {others}); done"));
    repo
}

pub(crate) const NOTHING: &str = ":";
const UNTRACKED: &str = "echo mine >mine; mkdir -p odd/in; echo in >odd/in/side; ln -s a link; echo x >sub/mine";

/// What was changed in the last two seconds is never known, and these are counted in whole ones. It is the kernel's clock
/// that says when: nobody can set the time at which a directory changed, and so there is nothing for it but to wait.
const LATER: Duration = Duration::from_millis(3200);

/// The record of directories.
fn record(repo: &Sandbox) -> Vec<u8> {
    repo.read(".git/oxundo/listed")
}

/// A script in which everything happens, each in a directory of its own; the agent is of side 0, the user of side 1.
pub(crate) fn events(side: usize) -> String {
    let within = |(nth, event): (usize, &&str)| {
        let name = format!("d{}", 2 * nth + side);
        format!("(cd {name}; {});", event.replace("DIRECTORY", &name))
    };
    EVENTS.iter().enumerate().map(within).collect()
}

/// A script that takes away what the user did: it is in the way of nothing, and undo brings it back.
pub(crate) fn away() -> String {
    let directories = (0..EVENTS.len()).map(|nth| format!("rm -rf d{}; ", 2 * nth + 1));
    directories.chain(["rm -rf aside-*; ".to_owned()]).collect()
}

#[test]
fn whatever_happens_in_a_known_directory_is_seen() {
    let check = |mode, others| {
        let repo = known(others);
        std::thread::sleep(LATER);
        repo.oxundo(["run", "--", "true"]).success();
        // The top, which holds `.git`, is one of them.
        let directories = 4 * EVENTS.len() + 1;
        let unknown: usize = if others == NOTHING { 0 } else { 2 * EVENTS.len() * "@mine.@odd/.@link.@mine.".len() };
        let length = 8 + directories * 17 + "@.git.".len() + unknown;
        assert_eq!(record(&repo).len(), length, "each of them is known, with what is in it");
        repo.sh(&events(1));
        std::thread::sleep(LATER);
        repo.there_and_back(mode, &format!("{} {} sleep {}", events(0), away(), LATER.as_secs_f32()));
    };
    std::thread::scope(|scope| {
        for mode in Mode::tried() {
            for others in [NOTHING, UNTRACKED] {
                scope.spawn(move || check(mode, others));
            }
        }
    });
}

/// Whether oxundo takes part in the record: it believes one that names `mine` otherwise.
fn believes(repo: &Sandbox) -> bool {
    std::thread::sleep(LATER);
    repo.oxundo(["run", "--ghost", "--", "true"]).success();
    let Ok(known) = std::fs::read(repo.path(".git/oxundo/listed")) else { return false };
    let at = known.windows(5).position(|name| name == b"mine\0").expect("a name is in the record");
    let mut forged = known[8..].to_vec();
    forged[at - 8 + 3] = b'E';
    let mut hasher = std::hash::DefaultHasher::new();
    std::hash::Hasher::write(&mut hasher, &forged);
    repo.write(".git/oxundo/listed", [&std::hash::Hasher::finish(&hasher).to_be_bytes(), &forged[..]].concat());
    let turn = "rm -f d*/mine d*/sub/mine";
    let before = repo.state();
    repo.turn(Mode::Ghost, turn);
    repo.undo();
    let missed = repo.state() != before;
    repo.redo();
    missed
}

#[test]
fn the_user_says_whether_the_file_system_tells() {
    let check = |setting: &str, used| {
        let repo = known(UNTRACKED);
        let (key, value) = setting.split_once('=').expect("a key has a value");
        repo.git(["config", key, value]);
        assert_eq!(believes(&repo), used, "{setting}");
    };
    // Together: they mostly wait.
    std::thread::scope(|scope| {
        for (setting, used) in [
            ("core.untrackedCache=false", false),
            ("core.untrackedCache=true", true),
            ("core.untrackedCache=keep", true),
            ("feature.manyFiles=true", true),
        ] {
            scope.spawn(move || check(setting, used));
        }
    });
}

#[test]
fn a_damaged_record_misleads_nobody() {
    let repo = known(UNTRACKED);
    std::thread::sleep(LATER);
    repo.oxundo(["run", "--ghost", "--", "true"]).success();
    let good = record(&repo);
    let at = good.windows(5).position(|name| name == b"mine\0").expect("a name is in the record");
    let with =
        |at: usize, byte: u8| good.iter().enumerate().map(|(n, old)| if n == at { byte } else { *old }).collect();
    let bad: [Vec<u8>; 7] = [
        with(at, b'M'),
        with(at + 4, b'x'),
        with(at - 1, 0),
        with(0, !good[0]),
        good[..good.len() / 2].to_vec(),
        b"short".to_vec(),
        Vec::new(),
    ];
    for bad in bad {
        repo.write(".git/oxundo/listed", bad);
        repo.there_and_back(Mode::Ghost, "rm d*/mine d*/sub/mine");
    }
}

#[test]
fn ignored_names_that_are_known_are_held_against_the_rules_of_now() {
    let repo = known("echo object >x.o; mkdir out; echo made >out/made");
    repo.write(".gitignore", "*.o\nout/\n");
    repo.sh("git add .gitignore; git commit -qm rules");
    std::thread::sleep(LATER);
    repo.oxundo(["run", "--ghost", "--", "true"]).success();
    assert!(record(&repo).windows(4).any(|name| name == b"x.o\0"), "they are known");
    repo.write(".gitignore", "out/\n");
    repo.there_and_back(Mode::Ghost, "rm d*/x.o");
    repo.write("d1/.gitignore", "!out/\n");
    repo.there_and_back(Mode::Ghost, "rm d1/out/made");
    // With very many of them a directory is read each time.
    repo.sh("for i in $(seq 250); do echo $i >d2/many$i; done");
    std::thread::sleep(LATER);
    repo.there_and_back(Mode::Ghost, "rm d2/many7 d3/x.o");
    assert!(!record(&repo).windows(6).any(|name| name == b"many8\0"), "it is not in the record");
}

/// On an overlay, which containers have: what is below it, what was changed, and what was taken away.
#[test]
fn an_overlay_tells_as_well() {
    let repo = known(UNTRACKED);
    let mount = "mkdir ../home/upper ../home/work && mount -t overlay overlay \
                 -o userxattr,lowerdir=$PWD,upperdir=$(realpath ../home/upper),workdir=$(realpath ../home/work) $PWD && cd $PWD";
    let inside = |script: &str| {
        let mut command = repo.shell("exec unshare -Urm sh -ec \"$1\" sh \"$2\"");
        Output::of(command.args(["sh", script, script]))
    };
    let mounted = inside(mount);
    if mounted.code != 0 {
        return announce(&format!("SKIPPED: no overlay can be mounted here ({})", mounted.err()));
    }
    repo.sh("rm -rf ../home/upper ../home/work");
    let later = LATER.as_secs_f32();
    let rounds = if crate::form::is_thorough() { "1 2" } else { "1" };
    let look = "find . -path ./.git -prune -o -printf '%p %y %m %l\\n' | sort; \
                find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 cksum; git status -s";
    let output = inside(&format!(
        "{mount}
         look() {{ {look}; }}
         sleep {later}; oxundo run --ghost -- true; test -s .git/oxundo/listed
         cp .git/oxundo/listed ../home/first
         look >../home/before
         oxundo run --ghost -- sh -ec '{}'
         look >../home/after
         for n in {rounds}; do
           sleep {later}
           oxundo undo; look >../home/found; diff ../home/before ../home/found
           sleep {later}
           oxundo redo; look >../home/found; diff ../home/after ../home/found
         done
         cmp ../home/first .git/oxundo/listed && exit 1 || :",
        events(0).replace('\'', "'\\''"),
    ));
    output.success();
}
