//! Plans that are carried out later: as they were shown, once, or not at all.

use crate::sandbox::Sandbox;
use serde_json::{Value, json};

/// A plan's id, and the plan.
fn plan(repo: &Sandbox, args: &[&str]) -> (String, Value) {
    let before = repo.state();
    let (code, plan) = repo.json(args);
    assert_eq!(code, 0, "{plan}");
    repo.state().assert_is(&before, "to plan changes nothing");
    (plan["plan"].as_str().expect("it has an id").to_owned(), plan)
}

#[test]
fn a_plan_is_carried_out_once() {
    let repo = Sandbox::new();
    let none = repo.state();
    repo.agent("echo 1 >one.txt");
    repo.agent("echo 2 >two.txt");
    let done = repo.state();
    let (id, told) = plan(&repo, &["undo", "--plan", "-n", "2"]);
    assert_eq!((&told["turns"], &told["dry_run"]), (&json!([2, 1]), &json!(true)));
    let (code, first) = repo.json(["apply", &id]);
    assert_eq!((code, &first["dry_run"], &first["files"]), (0, &json!(false), &told["files"]));
    repo.state().assert_is(&none, "both are undone");
    let before = repo.everything();
    assert_eq!(repo.json(["apply", &id]), (0, first), "the same again is the same undo");
    repo.oxundo(["apply", &id]).says("Done before: Undid turns 2, 1");
    repo.everything().assert_is(&before, "and changes nothing");
    repo.oxundo(["redo", "-n", "2"]).success();
    let taken_back = "; it was taken back since: 'oxundo undo --steps 2 --plan' makes another plan";
    repo.oxundo(["apply", &id]).says(&format!("Done before: Undid turns 2, 1{taken_back}"));
    let (again, _) = plan(&repo, &["undo", "--plan", "-n", "2"]);
    assert_ne!(again, id, "a plan of another time is another one");
    repo.state().assert_is(&done, "redone");
    let (only, _) = plan(&repo, &["undo", "--plan", "--only", "1"]);
    repo.oxundo(["apply", &only]).says("Took out turn 1");
    repo.assert_absent("one.txt", "it is taken out");
    let told = repo.oxundo(["apply", &only]).out();
    assert!(told.contains("Done before") && !told.contains("since"), "{told}");
    repo.undo();
    let told = repo.oxundo(["apply", &only]).out();
    assert!(told.contains("it was taken back since: 'oxundo undo --only 1 --plan'"), "{told}");
    repo.redo();
    let told = repo.oxundo(["apply", &only]).out();
    assert!(!told.contains("since"), "{told}");
    repo.refuses(&["apply", &again], "stale");
    assert_eq!(repo.json(["apply", "no-such-plan"]).1["error"]["code"], "not_found");
}

#[test]
fn a_plan_that_would_do_something_else_is_stale() {
    let repo = Sandbox::new();
    repo.agent("printf '1\\n2\\n3\\n4\\n5\\n' >one.txt");
    repo.agent("sed -i s/1/one/ one.txt");
    let changes: [&str; 3] = [
        "sed -i s/5/five/ one.txt",
        "git commit -q --allow-empty -m theirs",
        "oxundo run -- sh -c 'echo 3 >three.txt'",
    ];
    for change in changes {
        let repo = repo.copy();
        let (id, _) = plan(&repo, &["undo", "--plan"]);
        repo.sh(change);
        repo.refuses(&["apply", &id], "stale");
    }
    // What no turn has to do with does not matter, nor what only gives names; an open turn is closed for it.
    let (id, _) = plan(&repo, &["undo", "--plan"]);
    repo.write("mine.txt", "mine\n");
    let names: [&[&str]; 5] = [
        &["keep", "1"],
        &["checkpoint", "mine"],
        &["describe", "2", "-m", "other words"],
        &["checkpoint", "--delete", "mine"],
        &["keep", "1", "--off"],
    ];
    for args in names {
        repo.oxundo(args).success();
    }
    repo.oxundo(["apply", &id]).success();
    repo.assert_file("one.txt", "1\n2\n3\n4\n5\n", "undone");
    repo.oxundo(["turn", "begin"]).success();
    repo.write("one.txt", "now\n");
    let (id, _) = plan(&repo, &["undo", "--plan"]);
    repo.oxundo(["apply", &id]).success();
    repo.assert_file("one.txt", "1\n2\n3\n4\n5\n", "the open turn is undone");
}

#[test]
fn a_plan_of_paths_is_of_the_same_paths_from_wherever_it_is_carried_out() {
    for forth in [&["undo", "--plan", "--", "n"][..], &["restore", "--plan", "1:before", "--", "n"]] {
        let repo = Sandbox::new();
        repo.write("sub/n", "a\n").write("n", "a\n").sh("git add -A; git commit -qm base");
        repo.agent("echo A >n; echo A >sub/n");
        let made = [&["-C", "sub"][..], forth].concat();
        let (id, _) = plan(&repo, &made);
        let stale = repo.copy();
        stale.oxundo(["-C", "sub", "undo", "--", "n"]).success();
        let told = stale.oxundo(["apply", &id]).err();
        assert!(told.contains(&format!("-C {}", stale.path("sub").display())), "{told}");
        repo.oxundo(["apply", &id]).success();
        repo.assert_file("sub/n", "a\n", "it was planned there");
        repo.assert_file("n", "A\n", "and not here");
        repo.oxundo(["apply", &id]).says("Done before");
    }
}

#[test]
fn every_form_can_be_planned_and_is_what_the_form_does() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >one.txt");
    repo.agent("echo 2 >two.txt; echo 2 >2.txt");
    repo.agent("echo 3 >three.txt");
    repo.oxundo(["undo"]).success();
    let forms: [&[&str]; 7] = [
        &["undo", "--only", "1"],
        &["undo", "--to", "1"],
        &["undo", "--revert"],
        &["undo", "--", "2.txt"],
        &["redo"],
        &["restore", "1:before", "--", "README.txt", "three.txt"],
        &["restore", "--exact", "1"],
    ];
    for form in forms {
        let (planned, done) = (repo.copy(), repo.copy());
        for repo in [&planned, &done] {
            repo.write("README.txt", "changed\n");
        }
        let args: Vec<&str> = [&form[..1], &["--plan"], &form[1..]].concat();
        let (id, told) = plan(&planned, &args);
        let (code, applied) = planned.json(["apply", &id]);
        assert_eq!((code, &applied["files"], &applied["turns"]), (0, &told["files"], &told["turns"]), "{form:?}");
        done.oxundo(form).success();
        let on_disk = |repo: &Sandbox| repo.state().only(|fact| fact.starts_with("on disk "));
        on_disk(&planned).assert_is(&on_disk(&done), &format!("{form:?}"));
    }
}

#[test]
fn what_was_killed_before_it_could_say_so_is_not_done_again() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >one.txt");
    let (id, _) = plan(&repo, &["undo", "--plan"]);
    // As they stand until the undo is whole.
    let plans = std::fs::read(repo.path(".git/oxundo/plans")).expect("they are remembered");
    repo.oxundo(["apply", &id]).success();
    std::fs::write(repo.path(".git/oxundo/plans"), plans).expect("write them");
    let before = repo.everything();
    let (code, told) = repo.json(["apply", &id]);
    assert_eq!((code, &told["op"], &told["dry_run"]), (0, &json!("undo"), &json!(false)), "{told}");
    repo.oxundo(["apply", &id]).says(&format!("Done before: undo 1 (sh) (plan {})", &id[..12]));
    repo.everything().assert_is(&before, "nothing is done");
    repo.oxundo(["redo"]).success();
    repo.oxundo(["apply", &id]).says("Done before: ");
    repo.assert_file("one.txt", "1\n", "it stays redone");
}
