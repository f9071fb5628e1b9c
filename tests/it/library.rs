//! The library as another front end uses it.

use crate::sandbox::Sandbox;
use oxundo::{Code, Phase, ProgressSink, State, Walk, Who, Worktree};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn ready() -> (Sandbox, Worktree) {
    let repo = Sandbox::new();
    repo.git(["config", "commit.gpgSign", "false"]);
    let worktree = Worktree::open(repo.root()).expect("it is a repository");
    (repo, worktree)
}

fn who(agent: &str, message: &str) -> Who {
    Who { agent: agent.to_owned(), message: Some(message.to_owned()), session: None }
}

#[test]
fn turns_are_made_listed_undone_and_redone() {
    let (repo, worktree) = ready();
    let before = repo.state();
    let (first, second) = (who("editor", "first"), who("editor", "second"));
    assert_eq!(worktree.end(&first).expect("nothing to end").map(|turn| turn.turn), None);
    assert_eq!(worktree.begin(&first), Ok(1));
    assert_eq!(worktree.end(&first).expect("it ends").map(|turn| turn.turn), None, "what changed nothing is no turn");
    worktree.begin(&first).expect("it begins");
    repo.write("a.txt", "one\n");
    let turn = worktree.end(&first).expect("it ends").expect("it changed something");
    assert_eq!((turn.turn, turn.label().as_str(), turn.interrupted), (1, "editor: first", false));
    worktree.begin(&second).expect("it begins");
    repo.write("b.txt", "two\n");
    assert!(worktree.abort(&second).expect("it ends").expect("it changed something").interrupted);
    let after = repo.state();

    let done = worktree.walk(&Walk::undo(2)).expect("both are undone");
    assert_eq!((done.turns, done.rescue.is_some()), (vec![2, 1], true));
    repo.state().assert_is(&before, "undo is exact");
    let states: Vec<_> = worktree.list(9).expect("a list").into_iter().map(|entry| entry.state).collect();
    assert_eq!(states, [State::Undone, State::Undone]);
    worktree.walk(&Walk::redo_to("2")).expect("both are redone");
    repo.state().assert_is(&after, "redo is exact");
    let list = worktree.list_all(1).expect("a list");
    assert_eq!((list.len(), list[0].turn.turn, list[0].files[0].path.as_str()), (1, 2, "b.txt"));
}

#[test]
fn only_what_was_looked_at_is_done() {
    let (repo, worktree) = ready();
    repo.agent("echo 1 >>README.txt; echo 1 >a.txt");
    let planned = worktree.plan(&Walk::undo(1)).expect("a plan");
    let actions: Vec<_> = planned.plan.actions().into_iter().map(|(path, action)| format!("{action} {path}")).collect();
    assert_eq!(actions, ["delete a.txt", "write README.txt"].map(str::to_owned).into_iter().rev().collect::<Vec<_>>());
    repo.write("README.txt", "mine\nreadme\n1\n");
    let now = repo.everything();
    let refusal = worktree.apply(&planned).expect_err("it is another plan now");
    assert_eq!((refusal.code, refusal.hints.len()), (Code::Conflict, 1), "{refusal}");
    repo.everything().assert_is(&now, "nothing is changed");
    let planned = worktree.plan(&Walk::undo(1)).expect("a plan");
    assert_eq!(planned.plan.kept_edits, ["README.txt"]);
    worktree.apply(&planned).expect("it is done");
    repo.assert_file("README.txt", "mine\nreadme\n", "the user's edit stays");
    assert_eq!(worktree.plan(&Walk::undo(1)).expect_err("nothing is left").code, Code::Nothing);
}

#[test]
fn states_are_captured_compared_read_restored_and_let_go() {
    let (repo, worktree) = ready();
    repo.agent("echo 1 >a.txt");
    worktree.capture("here").expect("a name");
    assert_eq!(worktree.capture("here").expect_err("it is taken").code, Code::Usage);
    repo.agent("echo 2 >a.txt; echo 2 >b.txt");
    let changes = worktree.changes("here", Some("2")).expect("changes");
    assert_eq!(
        changes.iter().map(|file| (file.path.as_str(), file.status)).collect::<Vec<_>>(),
        [("a.txt", 'M'), ("b.txt", 'A')]
    );
    assert!(worktree.changes("2", None).expect("none").is_empty(), "the worktree is as after turn 2");
    assert_eq!(worktree.read("here", "a.txt".into()), Ok(b"1\n".to_vec()));
    assert_eq!(worktree.read("here", "b.txt".into()).expect_err("it came later").code, Code::NotFound);
    let plan = worktree.plan_restore("here", &["a.txt".into()]).expect("a plan");
    assert_eq!(plan.actions(), [(&"a.txt".into(), "write")]);
    repo.assert_file("a.txt", "2\n", "a plan changes nothing");
    assert_eq!(worktree.restore("here", &[]).expect("it is restored").turn, Some(3));
    repo.assert_file("a.txt", "1\n", "as it was");
    worktree.walk(&Walk::undo(1)).expect("it is a turn like any other");
    repo.assert_file("a.txt", "2\n", "and taken back");
    let gone = worktree.gc(Some(Duration::ZERO), true).expect("what would go");
    assert_eq!((gone.expired, gone.kept, gone.dry_run), (vec![], 3, true), "the newest stay");
}

#[test]
fn what_takes_its_time_is_told() {
    let (repo, mut worktree) = ready();
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&told);
    worktree.set_progress(ProgressSink::new(move |progress| {
        if let oxundo::Progress::Begins(work, files) = progress {
            listener.lock().expect("nobody panics").push((work, files));
        }
    }));
    worktree.begin(&who("editor", "m")).expect("it begins");
    repo.write("a.txt", "one\n");
    worktree.end(&who("editor", "m")).expect("it ends");
    worktree.walk(&Walk::undo(1)).expect("it is undone");
    let told = told.lock().expect("nobody panics");
    for work in [Phase::Scan, Phase::Read, Phase::Apply] {
        assert!(told.contains(&(work, 1)), "{work:?}: {told:?}");
    }
}
