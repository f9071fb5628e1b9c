//! Many untracked files, which are not read again while they look the same: no change is missed.

#[cfg(target_os = "linux")]
use crate::sandbox::Output;
use crate::sandbox::{Mode, Sandbox};
use std::time::Duration;

#[test]
fn an_edit_that_keeps_size_and_time_is_seen() {
    let repo = Sandbox::new();
    repo.sh("for d in a b; do mkdir $d; for i in $(seq 120); do echo mine $i >$d/$i; done; done; chmod 600 a/7");
    // What was changed a moment ago is always read.
    std::thread::sleep(Duration::from_millis(3100));
    repo.turn(Mode::Ghost, "echo one >README.txt");
    assert!(repo.exists(".git/oxundo/known"), "what they hold is known now");
    let scripts = [
        "touch -r a/1 ../home/time; echo MINE 1 >a/1; touch -r ../home/time a/1",
        "mv a/2 a/x; mv a/3 a/2; mv a/x a/3",
        "rm a/4; echo MINE 4 >a/4; rm -r b",
        "cp -p a/5 a/new; ln -f a/6 a/7; ln -sf 8 a/9",
        "chmod 755 a/10 a/11",
    ];
    for (at, script) in scripts.into_iter().enumerate() {
        repo.there_and_back(Mode::BOTH[at % 2], script);
    }
    // What git has thrown away is read again, and a record that is damaged is none.
    repo.sh("git for-each-ref --format='delete %(refname)' refs/oxundo refs/notes | git update-ref --stdin; rm -rf .git/logs/refs/oxundo; mv .git/oxundo ../old; mkdir .git/oxundo; cp ../old/known .git/oxundo");
    repo.prune();
    repo.there_and_back(Mode::Ghost, "rm a/12; echo agent >a/13");
    repo.write(".git/oxundo/known", b"damaged\0 1 2 3\0\xff\xfe");
    repo.there_and_back(Mode::Ghost, "rm a/12; echo agent >a/13");
}

/// Runs `oxundo ARGS…` with so many MiB of address space.
#[cfg(target_os = "linux")]
fn within(repo: &Sandbox, mebibytes: u64, args: &[&str]) {
    let mut shell = repo.shell(&format!("ulimit -v {}; exec oxundo \"$@\"", mebibytes * 1024));
    // The C library reserves much more than it uses, for each thread.
    Output::of(shell.env("MALLOC_ARENA_MAX", "1").arg("sh").args(args)).success();
}

#[test]
#[cfg(target_os = "linux")]
fn what_is_large_is_never_held_in_memory() {
    let repo = Sandbox::new();
    repo.sh(
        "truncate -s 11G huge; truncate -s 84M tracked; git add tracked; git commit -qm tracked; echo mine >>tracked",
    );
    let before = repo.sh("cksum tracked README.txt");
    within(
        &repo,
        80,
        &["run", "--ghost", "--", "sh", "-ec", "truncate -s 6G made; echo agent >>tracked; echo two >README.txt"],
    );
    let after = repo.sh("cksum tracked README.txt");
    for (op, wanted) in [("undo", &before), ("redo", &after)] {
        within(&repo, 80, &[op]);
        assert_eq!(&repo.sh("cksum tracked README.txt"), wanted, "{op}");
        assert_eq!(repo.exists("made"), op == "redo", "{op}");
    }
    assert_eq!(repo.path("huge").metadata().expect("it is there").len(), 11 << 30, "it stays");
}

#[test]
#[cfg(target_os = "linux")]
fn a_hundred_thousand_untracked_files() {
    let repo = Sandbox::new();
    let directories = if crate::form::is_thorough() { 500 } else { 20 };
    for directory in 0..directories {
        for file in 0..200 {
            repo.write(format!("d{directory}/{file}"), format!("{directory} {file}\n"));
        }
    }
    let script = "rm -r d1; echo agent >d2/2; mkdir d3/new; mv d3/* d3/new 2>/dev/null || :";
    repo.there_and_back(Mode::Ghost, script);
    within(&repo, 250, &["run", "--ghost", "--", "sh", "-ec", script]);
}
