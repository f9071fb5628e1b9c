//! A repository that a group works in, with `core.sharedRepository`: what one of them does locks none of the others out.

use crate::sandbox::{Sandbox, announce};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A shared repository of two members of a group; none where nobody can be made one.
fn shared(how: &str) -> Option<[Sandbox; 2]> {
    if !rustix::process::geteuid().is_root() {
        announce("SKIPPED, NOTHING IS PROVED: only the superuser can be two others");
        return None;
    }
    let one = Sandbox::new();
    one.sh(&format!(
        "git config --global maintenance.auto false; git config --global safe.directory '*'; git config core.sharedRepository {how}; echo base >base.txt
         git add -A; git commit -qm base; git gc -q; chmod -R g+rwX ..; find .. -type d -exec chmod g+s {{}} +"
    ));
    let one = one.unprivileged();
    let two = one.member(1);
    Some([one, two])
}

/// Objects in each of git's directories, and refs in many, as plain git makes them.
const PLAIN_GIT: &str = "for i in $(seq 200); do echo $0 $i; done | split -l1 -a3 - ../home/$0-
    git hash-object -w ../home/$0-* >../home/$0.ids; rm ../home/$0-*
    for kind in heads heads/deep oxundo/own notes; do git update-ref refs/$kind/$0 HEAD; done
    git tag $0; git notes add -f -m $0; git stash list; git pack-refs --all; git commit -q --allow-empty -m $0";

/// A turn with whatever makes files in the git directory: objects small and large, refs, reflogs, a stash, what is aside.
const TURN: &str = "for i in $(seq 40); do echo $0 $i >$0-$i.txt; done; head -c 6000000 /dev/urandom >$0-large.txt
    head -c 12000000 /dev/zero >$0-aside.bin; git add -A; git commit -qm own; echo more >>$0-1.txt; echo stashed >>$0-2.txt; git stash -q
    git branch $0-branch; echo more >>$0-3.txt";

fn works(member: &Sandbox, name: &str, ghost: bool) {
    member.git(["config", "oxundo.mode", if ghost { "ghost" } else { "commit" }]);
    member.oxundo(["run", "--", "sh", "-ec", &TURN.replace("$0", name)]).success();
    for args in [&["undo"][..], &["redo"], &["checkpoint", name], &["undo"], &["restore", name], &["gc"]] {
        member.oxundo(args).success();
    }
    assert!(member.path(format!("{name}-1.txt")).exists(), "{name} has the work");
}

/// What the group may not do in the git directory, though the others there may.
fn closed(directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).expect("list it").flatten() {
        let (path, about) = (entry.path(), entry.metadata().expect("look at it"));
        let [user, group] = [6, 3].map(|shift| about.permissions().mode() >> shift & 0o7);
        if user != group || about.is_dir() && about.permissions().mode() & 0o2000 == 0 {
            found.push(format!("{:o} {}", about.permissions().mode(), path.display()));
        }
        if about.is_dir() {
            closed(&path, found);
        }
    }
}

#[test]
fn each_goes_on_with_git_and_oxundo_in_a_worktree_of_his_own() {
    for (how, ghost) in [("group", false), ("0660", true)] {
        let Some([one, two]) = shared(how) else { return };
        let own = two.linked("two");
        for round in 0..if ghost { 1 } else { 2 } {
            for (member, name) in [(&own, "own"), (&one, "main")] {
                member.sh(&PLAIN_GIT.replace("$0", &format!("{name}{round}")));
                works(member, &format!("{name}-turn{round}"), ghost);
            }
            // The other may not lock the HEAD of a worktree that git made.
            own.sh("git gc -q --prune=now; git fsck --full --strict");
        }
        let mut found = Vec::new();
        for below in ["objects", "refs", "logs"] {
            closed(&one.path(".git").join(below), &mut found);
        }
        assert!(found.is_empty(), "{how}: closed to the group: {found:#?}");
    }
}

#[test]
fn each_takes_back_and_brings_again_what_the_other_has_done_in_one_worktree() {
    let Some([one, two]) = shared("group") else { return };
    one.sh("chmod g+ws .");
    let files = |state: &Sandbox| state.state().only(|fact| fact.starts_with("on disk "));
    let before = files(&one);
    // Some of it is over the limits, so that it is moved aside.
    let work = "umask 002; mkdir d; echo 1 >d/new; echo more >>base.txt; head -c 11000000 /dev/zero >big
        mkdir -p node_modules/a; echo 1 >node_modules/a/x";
    one.oxundo(["run", "--", "sh", "-c", work]).success();
    let after = files(&one);
    for _ in 0..2 {
        two.oxundo(["undo"]).success();
        assert_eq!(before.difference(&files(&two)), "");
        one.oxundo(["redo"]).success();
        assert_eq!(after.difference(&files(&two)), "");
        one.oxundo(["undo"]).success();
        two.oxundo(["redo"]).success();
    }
    two.oxundo(["run", "--", "sh", "-c", "umask 002; echo two >>base.txt; git add -A; git commit -qm two"]).success();
    one.oxundo(["undo"]).success();
    for (member, name) in [(&one, "one"), (&two, "two")] {
        member.oxundo(["doctor"]).success();
        member
            .sh(&format!("echo x >{name}.txt; git add {name}.txt; git commit -qm x; git stash list; git fsck --full"));
    }
}

#[test]
fn what_comes_back_of_an_operation_is_the_groups_and_another_one_gives_it_up() {
    for begin in ["git rebase -q side || :", "git cherry-pick side main~0 || :", "git merge -q side || :"] {
        let Some([one, two]) = shared("group") else { return };
        one.sh("git checkout -q -b side; echo side >base.txt; git commit -qam side; git checkout -q main; echo main >base.txt; git commit -qam main; chmod -R g+rwX . ");
        let before = one.state();
        one.sh("git config oxundo.mode ghost");
        one.oxundo(["run", "--", "sh", "-c", &format!("exec >/dev/null 2>&1; {begin}")]).success();
        one.undo();
        one.state().without("ref refs/oxundo").assert_is(&before, begin);
        one.redo();
        let mut found = Vec::new();
        for below in ["rebase-merge", "sequencer"].map(|name| one.path(".git").join(name)) {
            if below.is_dir() {
                closed(&below, &mut found);
            }
        }
        assert!(found.is_empty(), "{begin}: closed to the group: {found:#?}");
        // What is in the worktree belongs to the one who wrote it.
        let word = begin.split(' ').nth(1).expect("git's word");
        one.sh("chmod g+rw base.txt");
        two.sh(&format!("git {word} --abort"));
        assert!(
            two.operation().keys().all(|name| name == "ORIG_HEAD" || name == "AUTO_MERGE" || name == "REBASE_HEAD"),
            "{begin}"
        );
        assert_eq!(two.read("base.txt"), b"main\n", "{begin}");
    }
}
