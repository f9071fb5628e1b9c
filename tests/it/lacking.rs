//! Where the kernel or the file system lacks something, another way leads to the same: macOS has no `openat2`, an
//! old kernel no `renameat2`, exFAT no second names for a file. The kernel is told to refuse these calls to oxundo,
//! to git and to the agent, as where they are missing.

use crate::sandbox::{Mode, Sandbox};
use nix::libc::{self, c_int, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};

/// What is missing, and how the kernel says so.
type Lack = (&'static [c_long], c_int);

const CALLS: Lack = (&[libc::SYS_openat2, libc::SYS_renameat2], libc::ENOSYS);
/// As sandboxes refuse what they do not know.
const REFUSED: Lack = (&[libc::SYS_openat2, libc::SYS_renameat2], libc::EPERM);
const LINKS: Lack = (&[libc::SYS_link, libc::SYS_linkat], libc::EPERM);

/// Runs a test on a thread for which these calls fail, and for all that it starts.
fn without(lacks: &[Lack], test: impl FnOnce() + Send) {
    let programs: Vec<BpfProgram> = lacks.iter().map(filter).collect();
    filtered(&programs, test);
}

fn filtered(programs: &[BpfProgram], test: impl FnOnce() + Send) {
    let outcome = std::thread::scope(|scope| {
        let lacking = scope.spawn(|| {
            for program in programs {
                apply_filter(program).expect("the kernel filters calls");
            }
            test();
        });
        lacking.join()
    });
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

fn filter((calls, errno): &Lack) -> BpfProgram {
    let rules = calls.iter().map(|call| (*call, Vec::new())).collect();
    let fails = SeccompAction::Errno(u32::try_from(*errno).expect("a number of an error"));
    let machine = std::env::consts::ARCH.try_into().expect("a machine that is known");
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, fails, machine).expect("a filter");
    filter.try_into().expect("a filter that the kernel takes")
}

/// No thread can be made, as where a user may have no more of them; processes can.
fn without_threads(test: impl FnOnce() + Send) {
    let flag = u64::try_from(libc::CLONE_THREAD).expect("a flag");
    let is_thread = SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag);
    let rule = SeccompRule::new(vec![is_thread.expect("a condition")]).expect("a rule");
    let machine = || std::env::consts::ARCH.try_into().expect("a machine that is known");
    let errno = |errno: c_int| SeccompAction::Errno(u32::try_from(errno).expect("a number of an error"));
    // What it is asked for is in memory, where no filter looks; the older call is tried then.
    let newer =
        SeccompFilter::new([(libc::SYS_clone3, vec![])].into(), SeccompAction::Allow, errno(libc::ENOSYS), machine());
    let older = SeccompFilter::new(
        [(libc::SYS_clone, vec![rule])].into(),
        SeccompAction::Allow,
        errno(libc::EAGAIN),
        machine(),
    );
    let programs: Vec<BpfProgram> =
        [newer, older].map(|filter| filter.expect("a filter").try_into().expect("the kernel takes it")).into();
    filtered(&programs, test);
}

/// A repository with files and directories to edit, replace, move and delete.
fn filled() -> Sandbox {
    let repo = Sandbox::new();
    for path in ["edited.txt", "gone.txt", "moved.txt", "dir/a.txt", "dir/deep/b.txt", "becomes/a.txt", "file"] {
        repo.write(path, format!("{path}\n"));
    }
    repo.link("link", "edited.txt").chmod("file", 0o755);
    repo.sh("git add . && git commit -qm files");
    repo.write("staged.txt", "staged\n").write("mine.txt", "mine\n").write("edited.txt", "dirty\n");
    repo.git(["add", "staged.txt"]);
    repo
}

/// Every kind of change, new things over the limits among them, which are moved aside whole.
const SCRIPT: &str = "
    echo more >>edited.txt; rm gone.txt; mv moved.txt there.txt; mv dir other; ln -sf file link; chmod 600 mine.txt
    rm -r becomes; echo now >becomes; rm file; mkdir -p file/deep; echo in >file/deep/it; mkdir empty; ln -s none dangling
    mkdir -p node_modules/one; echo code >node_modules/one/index.js; head -c 11000000 /dev/zero >large.bin
    git add there.txt; git commit -qm its there.txt; git branch new; git stash push -q -- staged.txt";

#[test]
fn without_openat2_and_renameat2_turns_lead_there_and_back() {
    without(&[CALLS], || Mode::BOTH.into_iter().for_each(|mode| filled().there_and_back(mode, SCRIPT)));
}

/// `mv` has no other way than these calls.
fn without_mv() -> String {
    SCRIPT.replace(
        "mv moved.txt there.txt; mv dir other",
        "cp -a moved.txt there.txt; cp -a dir other; rm -r moved.txt dir",
    )
}

#[test]
fn where_openat2_and_renameat2_are_refused_turns_lead_there_and_back() {
    for lacks in [&[REFUSED][..], &[REFUSED, LINKS]] {
        without(lacks, || Mode::BOTH.into_iter().for_each(|mode| filled().there_and_back(mode, &without_mv())));
    }
}

#[test]
fn where_nothing_can_be_put_into_its_place_all_stays_as_it_is() {
    const WAYS: [Lack; 5] = [
        (&[libc::SYS_renameat2], libc::EIO),
        (&[libc::SYS_renameat2, libc::SYS_renameat, libc::SYS_linkat], libc::EPERM),
        (&[libc::SYS_fchmod], libc::EPERM),
        (&[libc::SYS_mkdirat], libc::EPERM),
        (&[libc::SYS_fchmod, libc::SYS_fchmodat], libc::EPERM),
    ];
    for mode in Mode::tried() {
        let repo = filled();
        let before = repo.state();
        repo.turn(mode, SCRIPT);
        let after = repo.state();
        for lack in WAYS {
            without(&[lack], || {
                for command in [&["undo"][..], &["undo", "--only", "1"], &["restore", "0", "--", "gone.txt", "dir"]] {
                    let output = repo.oxundo(command);
                    assert_eq!(output.code, 1, "{lack:?}\n{output:?}");
                    assert!(!output.err().contains("roll back"), "there is nothing to roll back\n{output:?}");
                    repo.state().assert_is(&after, &format!("{lack:?}: {command:?} changes nothing"));
                    assert_eq!(repo.git(["for-each-ref", "refs/oxundo/pending"]), "", "and leaves nothing to do");
                }
            });
        }
        repo.undo();
        repo.state().assert_is(&before, "once it can be");
        repo.redo();
        repo.state().assert_is(&after, "and again");
        repo.assert_sound();
    }
}

#[test]
fn without_hard_links_turns_lead_there_and_back() {
    without(&[LINKS], || Mode::BOTH.into_iter().for_each(|mode| filled().there_and_back(mode, SCRIPT)));
}

#[test]
fn without_either_turns_lead_there_and_back() {
    without(&[CALLS, LINKS], || Mode::BOTH.into_iter().for_each(|mode| filled().there_and_back(mode, SCRIPT)));
}

#[test]
fn without_openat2_what_is_behind_a_link_is_not_touched() {
    without(&[CALLS, LINKS], || {
        let repo = filled();
        repo.agent("echo more >>dir/deep/b.txt; echo new >dir/deep/new.txt");
        repo.sh("mv dir ../elsewhere; ln -s ../elsewhere dir");
        let elsewhere = repo.sh("cd ../elsewhere; find . -type f -exec sha256sum {} +");
        let _ = repo.oxundo(["undo", "--force"]);
        assert_eq!(repo.sh("cd ../elsewhere; find . -type f -exec sha256sum {} +"), elsewhere);
    });
}

#[test]
fn without_hard_links_the_index_lock_of_a_killed_oxundo_is_known() {
    without(&[LINKS], || {
        let repo = filled();
        let before = repo.state();
        repo.agent(SCRIPT);
        if crate::kill_points::points_of(&repo, &["undo"]).is_err() {
            return crate::sandbox::announce("SKIPPED, NOTHING IS PROVED: no process can be traced here");
        }
        let killed = crate::kill_points::killed_at(&repo, &["undo"], ["renameat", "edited.txt"]);
        assert!(killed.exists(".git/index.lock"), "it was in the middle of it");
        killed.oxundo(["undo"]).success();
        assert!(!killed.exists(".git/index.lock"), "the lock is gone");
        killed.state().assert_is(&before, "undo went on");
        killed.assert_sound();
    });
}

#[test]
fn where_there_is_no_thread_nothing_panics_and_nothing_is_half_done() {
    let repo = filled();
    let before = repo.state();
    without_threads(|| {
        repo.turn(Mode::Commit, SCRIPT);
        let after = repo.state();
        // It cannot hear of Ctrl-C then, and does not begin.
        let refused = repo.oxundo(["undo"]);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.err().contains("start a thread"), "{refused:?}");
        repo.state().assert_is(&after, "nothing is changed");
        let heard = repo.oxundo(["hook", "claude"]);
        assert!(!heard.err().contains("panicked"), "{heard:?}");
    });
    repo.undo();
    repo.state().assert_is(&before, "once there are some");
}

#[test]
fn where_nothing_can_be_heard_a_run_looks_for_its_steps() {
    let full = (&[libc::SYS_inotify_add_watch][..], libc::ENOSPC);
    for lack in [(&[libc::SYS_inotify_init1][..], libc::EMFILE), full] {
        without(&[lack], || {
            let repo = Sandbox::new();
            let step = "until git cat-file -e refs/oxundo/timeline:turns/00/00/01/steps/00/01; do sleep 0.05; done 2>/dev/null";
            let script = format!("echo 1 >one.txt; {step}; echo 2 >one.txt");
            let output = repo.oxundo(["run", "--steps", "--ghost", "--", "sh", "-ec", &script]);
            output.success();
            output.warns("the worktree cannot be watched");
            output.warns("it was looked at every few seconds for steps");
            assert_eq!(repo.oxundo(["show", "1.1:one.txt"]).out(), "1");
        });
    }
}
