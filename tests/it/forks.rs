//! Another program in the instant in which a conversation is copied, and a kill at each call of an undo that makes a copy.

use crate::conversation::{CLAUDE, Chat, kept, repo};
use crate::kill_points::{has_journal, points_of};
use crate::sandbox::{Sandbox, announce};
use crate::tracer::{Failure, Kill, LAUNCH, Point, Trace, Victim, fail, interrupt, trace, trace_flushes};
use nix::errno::Errno;
use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

const UNDO: [&str; 2] = ["undo", "--conversation"];

fn cannot_trace() -> bool {
    match points_of(&Sandbox::new(), &["status"]) {
        Ok(_) => false,
        Err(error) => {
            announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
            true
        }
    }
}

/// The files that an agent lists, but for the original.
fn copies(repo: &Sandbox, original: &PathBuf) -> Vec<(PathBuf, Vec<u8>)> {
    let is_listed = |path: &PathBuf| path.extension().is_some_and(|end| end == "jsonl") && path != original;
    kept(repo).into_iter().filter(|(path, _)| is_listed(path)).collect()
}

/// What another program does in the instant of a call.
fn meanwhile(repo: &Sandbox, call: &str, act: &dyn Fn()) -> Trace {
    interrupt(&mut repo.launched_command(LAUNCH, &UNDO), call, act).expect("it was traced before")
}

#[test]
fn what_an_agent_writes_meanwhile_is_its_own() {
    if cannot_trace() {
        return;
    }
    let repo = repo();
    let mut chat = Chat::new(&repo, &CLAUDE);
    chat.three();
    let later = "{\"type\":\"user\",\"uuid\":\"later\"}\n";
    // As the copy is begun, and as it gets its name.
    for call in ["/.oxundo-tmp-", ".jsonl"] {
        let before = chat.text();
        let done = meanwhile(&repo, call, &|| chat.append(later.as_bytes()));
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let made = copies(&repo, &chat.path);
        assert_eq!(made.len(), 1, "{}", done.stderr);
        assert!(!String::from_utf8_lossy(&made[0].1).contains("later"));
        assert_eq!(chat.text(), before + later);
        fs::remove_file(&made[0].0).expect("remove the copy");
        repo.redo();
    }

    // Written anew in the same file, as by an agent that takes a line out of it.
    let done = meanwhile(&repo, "/.oxundo-tmp-", &|| fs::write(&chat.path, "{}\n").expect("write it anew"));
    assert_eq!((done.code, chat.text().as_str()), (Some(0), "{}\n"), "{}", done.stderr);
    assert_eq!(copies(&repo, &chat.path), []);
    repo.assert_file("a.txt", "one\n1\n2\n", "the files are undone all the same");
}

#[test]
fn a_copy_is_on_the_disk_before_it_has_its_name() {
    if cannot_trace() {
        return;
    }
    let repo = repo();
    let mut chat = Chat::new(&repo, &CLAUDE);
    chat.three();
    let flushed = RefCell::new(Vec::new());
    let note = |call: &str| {
        if call.contains(".claude") {
            flushed.borrow_mut().push((call.contains(".oxundo-tmp-"), copies(&repo, &chat.path).len()));
        }
    };
    trace_flushes(&mut repo.launched_command(LAUNCH, &UNDO), None, &note).expect("it was traced before");
    // The file while it has another name, and then the directory with its name.
    assert_eq!(flushed.into_inner(), [(true, 0), (false, 1)]);
}

/// The calls of an undo that makes a copy, and the copy. All is as before after that.
fn observed(repo: &Sandbox, chat: &Chat<'_>) -> (Vec<Point>, (PathBuf, Vec<u8>)) {
    let done = trace(&mut repo.launched_command(LAUNCH, &UNDO), None).expect("it was traced before");
    let made = copies(repo, &chat.path).pop().expect("a copy");
    repo.redo();
    fs::remove_file(&made.0).expect("remove the copy");
    (done.points, made)
}

#[test]
fn killed_anywhere_no_half_of_a_copy_is_listed_and_the_next_undo_has_it() {
    if cannot_trace() {
        return;
    }
    let repo = repo();
    let mut chat = Chat::new(&repo, &CLAUDE);
    chat.three();
    let original = chat.text();
    let (points, whole) = observed(&repo, &chat);
    let ours: Vec<&Point> = points.iter().filter(|point| !point.by_agent).collect();
    let near = ours.iter().filter(|point| point.text.contains(".claude/")).map(|point| point.number);
    let far = ours.iter().map(|point| point.number).step_by(ours.len() / 4 + 1);
    let numbers: Vec<usize> = near.chain(far).collect();
    assert!(numbers.len() > 6, "{points:?}");
    for (number, done) in numbers.into_iter().flat_map(|number| [(number, false), (number, true)]) {
        let kill = Kill { number, done, victim: Victim::All };
        trace(&mut repo.launched_command(LAUNCH, &UNDO), Some(kill)).expect("it was traced before");
        for copy in copies(&repo, &chat.path) {
            assert_eq!(copy, whole, "killed at {number} {done}: what is listed is whole");
        }
        assert_eq!(chat.text(), original, "killed at {number} {done}");
        // Whichever way it went on.
        let _ = repo.oxundo(["redo"]);
        assert!(!has_journal(&repo), "killed at {number} {done}");
        repo.oxundo(UNDO).success();
        assert_eq!(
            copies(&repo, &chat.path),
            std::slice::from_ref(&whole),
            "killed at {number} {done}: one copy, whole"
        );
        repo.redo();
        fs::remove_file(&whole.0).expect("remove the copy");
    }
    // The next copy in the directory takes away what was left half-written.
    repo.oxundo(UNDO).success();
    assert_eq!(kept(&repo).len(), 2);
}

#[test]
fn where_the_disk_is_full_the_files_are_undone_or_the_copy_goes_too() {
    if cannot_trace() {
        return;
    }
    let repo = repo();
    let mut chat = Chat::new(&repo, &CLAUDE);
    chat.three();
    let before = kept(&repo);
    let (points, _) = observed(&repo, &chat);
    let fails = |words: &str, lasting: bool| {
        let point = points.iter().find(|point| point.text.contains(words)).expect("it is a call of the undo");
        let failure = Failure { number: point.number, errno: Errno::ENOSPC, lasting };
        fail(&mut repo.launched_command(LAUNCH, &UNDO), failure).expect("it was traced before")
    };
    let done = fails("/.oxundo-tmp-", false);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stderr.contains("conversation is not forked: no copy could be written: "), "{}", done.stderr);
    assert_eq!(kept(&repo), before);
    repo.redo();
    let done = fails("index.lock", true);
    assert_ne!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(kept(&repo), before, "what the copy goes with was not done");
}

#[test]
fn a_commit_that_the_user_made_of_a_turns_names_where_the_branch_starts() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >one");
    repo.agent("echo 2 >two");
    repo.git(["commit", "-q", "--amend", "-m", "a better message"]);
    let own = repo.git(["rev-parse", "HEAD"]);
    repo.agent("echo 3 >three");
    repo.oxundo(["branch", "b", &own]).success();
    assert_eq!(repo.git(["rev-parse", "b"]), own, "only the message is another");
    repo.undo();
    // With another tree it is not as the turn left it.
    repo.sh("git switch -qc rebased HEAD~3; echo u >u; git add u; git commit -qm u; git cherry-pick main~2 >/dev/null");
    let picked = repo.git(["rev-parse", "HEAD"]);
    let said = repo.oxundo(["branch", "c", &picked]);
    said.success();
    let first = repo.git(["rev-parse", "--short=7", "main~2"]);
    said.warns(&format!(
        "commit {} was made of {first}: the branch starts at that, as turn 1 made it",
        picked.get(..7).expect("an id")
    ));
    assert_eq!(repo.git(["rev-parse", "--short=7", "c"]), first);
}
