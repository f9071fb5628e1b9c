//! A file system monitor that the user has switched on for git: what it says has not changed is not looked at, and
//! whatever changes is seen all the same.

use crate::dircache::{EVENTS, NOTHING, away, events, known};
use crate::sandbox::{Mode, Sandbox, announce};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::time::Duration;

/// An honest monitor: it keeps what was there at each token, and tells what differs.
const HONEST: &str = r#"#!/bin/sh
test "$1" = 2 || exit 1
seen=../home/seen; mkdir -p $seen; now=$(ls $seen | wc -l)
find . -mindepth 1 -path ./.git -prune -o -type d -printf '%P\t%m %i\n' -o -printf '%P\t%m %s %T@ %C@ %i %l\n' >$seen/$now
then=${2#fake:}
printf 'fake:%s\0' $now
if test "$then" != "$2" && test -f $seen/$then
then sort $seen/$then $seen/$now | uniq -u | cut -f1 | sort -u | tr '\n' '\0'
else printf '/\0'; fi
"#;

/// A monitor that tells what a file says, and keeps no token apart from another.
const SCRIPTED: &str = "#!/bin/sh\nprintf 'fixed\\0'; cat ../home/changed\n";

/// Makes a hook of a script, and has it used.
fn hook(repo: &Sandbox, script: &str) {
    let file = repo.home().join("monitor");
    std::fs::write(&file, script).expect("write a hook");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("make it executable");
    repo.git(["config", "core.fsmonitor", "../home/monitor"]);
}

/// How many directories are known to be plain.
fn plain(repo: &Sandbox) -> usize {
    let Ok(record) = std::fs::read(repo.path(".git/oxundo/watched")) else { return 0 };
    let token = record[16..].iter().position(|byte| *byte == 0).expect("a token ends");
    (record.len() - 16 - token - 1) / 8
}

/// A repository with known directories, none of them with a file that may have changed after git looked at it.
fn quiet() -> Sandbox {
    let [repo] = all_quiet();
    repo
}

/// Several of them.
fn all_quiet<const COUNT: usize>() -> [Sandbox; COUNT] {
    let repos: [Sandbox; COUNT] = std::array::from_fn(|_| known(NOTHING));
    // git counts whole seconds, and no program can set when a file was changed.
    std::thread::sleep(Duration::from_millis(1100));
    for repo in &repos {
        repo.git(["update-index", "--force-write-index"]);
    }
    repos
}

/// Everything happens, by the user and by the agent; undo and redo bring all of it back.
fn check_events(repo: &Sandbox, mode: Mode) {
    repo.oxundo(["run", "--", "true"]).success();
    assert_eq!(plain(repo), 4 * EVENTS.len(), "all directories but the top, which has more in it, are plain");
    repo.sh(&events(1));
    // git's own memory of the monitor is another one.
    repo.git(["status", "-s"]);
    let before = repo.state();
    repo.turn(mode, &format!("{} {}", events(0), away()));
    let after = repo.state();
    for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before), ("redo", &after)] {
        repo.git(["status", "-s"]);
        repo.oxundo([op]).success();
        repo.state().assert_is(wanted, &format!("{op} brings back the very state ({mode:?})"));
    }
    assert!(plain(repo) > 0, "what is left is known");
    repo.sh("chmod 600 README.txt; rm -r d0; chmod 711 d28");
    repo.there_and_back(mode, "chmod 640 README.txt d28/b; rm -r d30; chmod 755 d28");
    // git takes the bits that it does not look at for clean.
    repo.sh("chmod 600 d34/a; chmod 711 d34/sub; git update-index -q --refresh; oxundo status");
    repo.there_and_back(mode, "chmod 644 d34/a; chmod 755 d34/sub");
}

#[test]
fn whatever_happens_is_seen_with_a_hook() {
    for (mode, repo) in Mode::BOTH.into_iter().zip(all_quiet::<2>()) {
        hook(&repo, HONEST);
        check_events(&repo, mode);
    }
}

/// Answers as git's daemon does, on the socket where oxundo looks for it.
fn daemon(repo: &Sandbox, answer: impl Fn(&str, &mut UnixStream) + Send + 'static) {
    let listener = UnixListener::bind(repo.path(".git/fsmonitor--daemon.ipc")).expect("make a socket");
    repo.git(["config", "core.fsmonitor", "true"]);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let packet = |stream: &mut UnixStream| {
                let mut length = [0; 4];
                stream.read_exact(&mut length).ok()?;
                let length = usize::from_str_radix(std::str::from_utf8(&length).ok()?, 16).ok()?.checked_sub(4)?;
                let mut token = vec![0; length];
                stream.read_exact(&mut token).ok()?;
                String::from_utf8(token).ok()
            };
            let token = packet(&mut stream).expect("a packet with a token");
            assert_eq!(packet(&mut stream), None, "nothing comes behind it");
            answer(&token, &mut stream);
        }
    });
}

/// An answer in packets of so many bytes.
fn packets(answer: &[u8], size: usize) -> Vec<u8> {
    let packet = |part: &[u8]| [format!("{:04x}", part.len() + 4).as_bytes(), part].concat();
    answer.chunks(size).flat_map(packet).chain(*b"0000").collect()
}

#[test]
fn whatever_happens_is_seen_with_gits_daemon() {
    for ((mode, size), repo) in [(Mode::Commit, 7), (Mode::Ghost, 65516)].into_iter().zip(all_quiet::<2>()) {
        hook(&repo, HONEST);
        let (script, top) = (repo.home().join("monitor"), repo.root().to_owned());
        daemon(&repo, move |token, stream| {
            let output = Command::new(&script).args(["2", token]).current_dir(&top).output().expect("run the monitor");
            // Who has heard enough may be gone.
            let _ = stream.write_all(&packets(&output.stdout, size));
        });
        check_events(&repo, mode);
    }
}

/// The daemon of the git that is here, where it has one: on macOS, and since 2.55 on Linux.
#[test]
fn whatever_happens_is_seen_with_a_real_daemon() {
    for mode in Mode::tried() {
        let repo = quiet();
        repo.git(["config", "core.fsmonitor", "true"]);
        if repo.try_git(["fsmonitor--daemon", "start"]).code != 0 {
            return announce("SKIPPED: the git that is here has no daemon that watches");
        }
        check_events(&repo, mode);
        repo.git(["fsmonitor--daemon", "stop"]);
    }
}

/// Whether a turn in which this happens is one that changes something, where the monitor tells this at its end and
/// nothing at its beginning.
fn sees(repo: &Sandbox, told: &str, script: &str) -> bool {
    std::fs::write(repo.home().join("changed"), "").expect("write what the monitor tells");
    std::fs::write(repo.home().join("told"), told).expect("write what it will tell");
    let before = repo.log().len();
    repo.turn(Mode::Ghost, &format!("{script}\n cp ../home/told ../home/changed"));
    repo.log().len() > before
}

#[test]
fn a_monitor_is_believed() {
    let repo = quiet();
    hook(&repo, SCRIPTED);
    sees(&repo, "", ":");
    assert_eq!(plain(&repo), 4 * EVENTS.len(), "they are known to be plain");
    for (told, script, seen) in [
        ("", "echo agent >>d0/a", false),
        ("d1/a\0", "echo agent >>d2/a; rm d2/b; echo new >d2/sub/new", false),
        ("d2/b", "", true),
        ("d2/sub/", "", true),
        ("d3/sub\0", "chmod 600 d3/a", true),
        ("d4\0", "chmod 600 d4/sub/c", true),
        ("d5/sub/c\0", "chmod 600 d5/a", false),
        ("d5/sub/d\0", "chmod 600 d5/sub/c", true),
        ("d6/", "rm -r d6/sub", true),
        ("README.txt", "rm -r d7/sub", false),
        ("d1/x\0/", "", true),
    ] {
        assert_eq!(sees(&repo, told, script), seen, "{told:?}: {script}");
    }
    // A file with a name elsewhere may be changed where no monitor looks.
    repo.sh("ln d10/a ../home/link; git -c core.fsmonitor=false update-index --refresh || :");
    assert!(!sees(&repo, "d10/a\0", ""), "it is as it was");
    assert!(sees(&repo, "", "echo agent >>../home/link"), "it is always looked at");
    // Where the index has changed, what is there is not what was looked at.
    assert!(!sees(&repo, "", "chmod 600 d11/a"));
    assert!(sees(&repo, "", "git update-index --chmod=+x d11/b"));
    let (_, shown) = repo.json(["show", &repo.log()[0]["turn"].to_string()]);
    assert!(shown.to_string().contains("d11/a"), "{shown}");
    // Another monitor was not asked then.
    repo.oxundo(["status"]).success();
    let known = plain(&repo);
    repo.sh("chmod 600 d12/a; cp ../home/monitor ../home/other; oxundo status");
    assert_eq!(plain(&repo), known, "nothing is told");
    repo.sh("git config core.fsmonitor ../home/other; oxundo status");
    assert_eq!(plain(&repo), known - 1, "everything is looked at");
}

/// Turns are undone and redone, whatever git makes of such a monitor.
fn check_files(repo: &Sandbox, name: &str) {
    for script in ["echo agent >>d0/a; rm -r d1; chmod 600 d2/b", "echo agent >d0/new; rm d3/a; chmod 700 d2/sub"] {
        let before = repo.files();
        repo.turn(Mode::Ghost, script);
        let after = repo.files();
        for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
            repo.oxundo([op]).success();
            repo.files().assert_is(wanted, &format!("{name}: {op}"));
        }
    }
}

#[test]
fn a_monitor_that_is_no_use_is_not_used() {
    let scripts = [
        ("fails", "#!/bin/sh\nprintf 'fixed\\0'; exit 1\n"),
        ("says nothing", "#!/bin/sh\n"),
        ("says something else", "#!/bin/sh\necho 'Unsupported hook version'\n"),
        ("has no token", "#!/bin/sh\nprintf '\\0a\\0'\n"),
        ("is another one each time", "#!/bin/sh\nprintf \"c:$$:1\\0\"\n"),
        ("has no name for it", "#!/bin/sh\nprintf 'fixed\\0/\\0'\n"),
        ("tells of paths that are none", "#!/bin/sh\nprintf 'fixed\\0../a\\0'\n"),
        ("is no script", "\x7fELF"),
    ];
    for ((name, script), repo) in scripts.into_iter().zip(all_quiet::<8>()) {
        hook(&repo, HONEST);
        repo.oxundo(["run", "--ghost", "--", "true"]).success();
        repo.git(["config", "core.fsmonitor", "false"]);
        let git = repo.git(["status", "-s"]);
        hook(&repo, script);
        check_files(&repo, &format!("a monitor that {name}"));
        repo.git(["config", "core.fsmonitor", "false"]);
        assert_eq!(repo.git(["status", "-s"]), git, "{name}");
    }
}

#[test]
fn a_monitor_that_does_not_answer_is_not_waited_for() {
    let repo = quiet();
    hook(&repo, &HONEST.replacen('\n', "\nif test -e ../home/hang; then exec sleep 8; fi\n", 1));
    repo.oxundo(["run", "--ghost", "--", "true"]).success();
    let before = repo.state();
    repo.signal("hang");
    repo.turn(Mode::Ghost, "echo agent >>d0/a; rm ../home/hang");
    repo.undo();
    repo.state().assert_is(&before, "undone");
}

#[test]
fn a_daemon_that_is_no_use_is_not_used() {
    let answers = [
        ("goes away", ""),
        ("says what is no packet", "fixed\0"),
        ("says a packet that is too short", "0003fixed\0"),
        ("does not come to an end", "000afixed\0"),
        ("says nothing", "0000"),
    ];
    for ((name, answer), repo) in answers.into_iter().zip(all_quiet::<5>()) {
        daemon(&repo, move |_, stream| drop(stream.write_all(answer.as_bytes())));
        repo.oxundo(["run", "--ghost", "--", "true"]).success();
        check_files(&repo, &format!("a daemon that {name}"));
        assert_eq!(plain(&repo), 0, "a daemon that {name} is no ground for a record");
    }
    // One that is not there is started by git, if git has one.
    let repo = quiet();
    repo.git(["config", "core.fsmonitor", "true"]);
    repo.there_and_back(Mode::Ghost, "echo agent >>d0/a; rm -r d1; chmod 600 d2/b");
    let _ = repo.try_git(["fsmonitor--daemon", "stop"]);
}

#[test]
fn a_damaged_record_of_a_monitor_misleads_nobody() {
    let repo = quiet();
    hook(&repo, HONEST);
    repo.oxundo(["run", "--ghost", "--", "true"]).success();
    let good = repo.read(".git/oxundo/watched");
    let with =
        |at: usize, byte: u8| good.iter().enumerate().map(|(n, old)| if n == at { byte } else { *old }).collect();
    let records: [Vec<u8>; 6] = [
        with(0, !good[0]),
        with(9, !good[9]),
        with(20, b'9'),
        with(40, 0),
        good[..good.len() / 2].to_vec(),
        Vec::new(),
    ];
    for record in records {
        repo.write(".git/oxundo/watched", record);
        repo.there_and_back(Mode::Ghost, "echo agent >>d0/a; rm -r d1; chmod 600 d2/b");
    }
    // Of another worktree: the same record means nothing there.
    let copy = repo.copy();
    copy.write(".git/oxundo/watched", &good);
    copy.there_and_back(Mode::Ghost, "echo agent >>d0/a; rm -r d1; chmod 600 d2/b");
}

#[test]
fn only_the_users_own_monitor_is_run_and_in_the_second_version() {
    let repo = quiet();
    let other = repo.home().join("other");
    repo.sh("git init -q nested; cd nested; echo x >x; git add x; git -c user.name=u -c user.email=e commit -qm x; \
             git config core.fsmonitor 'touch ../../home/other; false'");
    repo.turn(Mode::Ghost, "echo agent >>nested/x; echo agent >>d0/a");
    repo.undo();
    assert!(!other.exists(), "what another repository configures is not run");
    hook(&repo, "#!/bin/sh\necho \"$1\" >>../home/other; printf '/\\0'\n");
    repo.git(["config", "core.fsmonitorHookVersion", "1"]);
    repo.turn(Mode::Ghost, "echo agent >>d0/a");
    assert!(!other.exists(), "the first version is not spoken");
}

#[test]
fn an_edit_that_a_monitor_keeps_quiet_is_never_written_over() {
    let repo = quiet();
    hook(&repo, SCRIPTED);
    std::fs::write(repo.home().join("changed"), "d0/\0").expect("write what the monitor tells");
    repo.agent("echo agent >>d0/a; rm d1/a; echo made >d0/new; sleep 1.1");
    // Now they are plain, as a monitor that tells nothing has it.
    repo.git(["-c", "core.fsmonitor=false", "update-index", "-q", "--refresh", "--force-write-index"]);
    repo.oxundo(["status"]).success();
    std::fs::write(repo.home().join("changed"), "").expect("write what the monitor tells");
    let known = plain(&repo);
    repo.write("d0/a", "the user's\n").write("d0/new", "the user's too\n");
    repo.oxundo(["status"]).success();
    assert_eq!(plain(&repo), known, "nothing is looked at");
    let undone = repo.oxundo(["undo"]);
    repo.assert_file("d0/a", "the user's\n", &format!("it stays: {undone:?}"));
    repo.assert_file("d0/new", "the user's too\n", &format!("it stays: {undone:?}"));
    undone.exits(3);
}

#[test]
fn what_a_prompt_shows_calls_no_file_read() {
    let repo = quiet();
    hook(&repo, HONEST);
    assert_eq!(repo.oxundo(["status", "--short"]).out(), "");
    assert_eq!(plain(&repo), 0, "git's word for a file is not its bytes");
    repo.oxundo(["run", "--", "true"]).success();
    assert_eq!(plain(&repo), 4 * EVENTS.len());
    repo.oxundo(["checkpoint", "-m", "for a prompt to speak of"]).success();
    assert_eq!(repo.oxundo(["status", "--short"]).out(), "");
    repo.sh("echo mine >>d1/a");
    assert_eq!(repo.oxundo(["status", "--short"]).out(), "dirty");
}
