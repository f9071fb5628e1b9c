//! What counts is what is on the disk: git's settings, attributes and stat data say what was, and for git alone.

use crate::sandbox::{Mode, Sandbox, check_all};
use std::os::unix::fs::MetadataExt;

/// No file system's clock is coarser: from then on, a file that changes is another one by its stat data.
const LATER: std::time::Duration = std::time::Duration::from_millis(3100);

/// Makes everything look old, as it is in a worktree that was cloned an hour ago. git calls every file clean, and asks for
/// the content of none.
const AN_HOUR_AGO: &str = "find . -path ./.git -prune -o -type f -exec touch -d '2 hours ago' {} +
     git update-index -q --refresh; touch -d '1 hour ago' .git/index";

/// A filter that loses the case of letters and not their number.
const LOSSY: &str = "git config filter.loss.clean 'tr a-z A-Z'; printf 'Some Text' >a.x; printf 'Other Text' >b.x";

const LINES: &str = "printf 'one\\ntwo\\n' >a.x; printf '$Id$\\n' >b.x; git add .; git commit -qm files";

/// Checks the files out again, by the rules of now.
const AGAIN: &str = "rm a.x b.x; git checkout -q -- a.x b.x";

#[test]
fn files_that_git_calls_clean_come_back_byte_by_byte_whatever_converted_them_is_gone() {
    let add = "git add .; git commit -qm files";
    let by_attributes = |rule: &str| {
        format!("{LINES}; echo '*.x {rule}' >.gitattributes; git add .gitattributes; git commit -qm rules; {AGAIN}")
    };
    let cases = [
        (
            "a filter, its attributes deleted",
            format!("{LOSSY}; echo '*.x filter=loss' >.gitattributes; {add}"),
            "rm .gitattributes",
        ),
        (
            "a filter, its attributes left out",
            format!("{LOSSY}; echo '*.x filter=loss' >.gitattributes; {add}"),
            "git sparse-checkout set --no-cone '/*.x'; test ! -e .gitattributes",
        ),
        (
            "a filter that is not set any more",
            format!("{LOSSY}; echo '*.x filter=loss' >.gitattributes; {add}"),
            "git config --unset filter.loss.clean",
        ),
        (
            "a filter of info/attributes",
            format!("{LOSSY}; mkdir -p .git/info; echo '*.x filter=loss' >.git/info/attributes; {add}"),
            "rm .git/info/attributes",
        ),
        (
            "a filter of core.attributesFile",
            format!("{LOSSY}; echo '*.x filter=loss' >../rules; git config core.attributesFile ../rules; {add}"),
            "git config --unset core.attributesFile",
        ),
        ("core.autocrlf", format!("{LINES}; git config core.autocrlf true; {AGAIN}"), "git config core.autocrlf false"),
        ("eol, edited away", by_attributes("text eol=crlf"), "echo >.gitattributes"),
        ("eol, committed away", by_attributes("text eol=crlf"), "git rm -q .gitattributes; git commit -qm gone"),
        ("ident", by_attributes("ident"), "echo '*.x -ident' >.gitattributes"),
        ("an encoding", by_attributes("working-tree-encoding=UTF-16LE"), "echo >.gitattributes"),
        ("nothing, in the index's own second", format!("{LINES}; printf 'two\\none\\n' >a.x"), ":"),
    ];
    let cases = cases.into_iter().flat_map(|(name, prepared, gone)| {
        Mode::BOTH.map(|mode| (format!("{name} {mode:?}"), (prepared.clone(), gone, mode)))
    });
    check_all(cases, |(prepared, gone, mode)| {
        let repo = Sandbox::new();
        repo.sh(prepared);
        repo.sh(AN_HOUR_AGO);
        repo.sh(gone);
        let before = repo.files();
        repo.turn(*mode, "echo agent >a.x; rm b.x; echo new >c.x");
        let after = repo.files();
        for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
            repo.oxundo([op]).success();
            repo.files().assert_is(wanted, op);
        }
        repo.assert_sound();
    });
}

#[test]
fn what_an_agent_has_git_convert_is_no_change_after_redo_either() {
    let cases = [
        ("attributes", "echo '*.x text eol=crlf' >.gitattributes; git add .gitattributes"),
        ("attributes that nobody shares", "mkdir -p .git/info; echo '*.x text eol=crlf' >.git/info/attributes"),
        ("a setting", "git config core.autocrlf true"),
    ];
    check_all(cases.map(|(name, rule)| (name.to_owned(), rule)), |rule| {
        let repo = Sandbox::new();
        repo.sh(LINES);
        repo.agent(&format!("{rule}; {AGAIN}; echo new >c"));
        let after = repo.state();
        assert!(after.tracked_changes().is_empty(), "git finds nothing to commit: {:?}", after.tracked_changes());
        repo.undo();
        repo.redo();
        repo.state().assert_is(&after, "and nothing after redo");
    });
}

#[test]
fn a_change_that_no_size_and_no_time_shows_comes_back() {
    let repo = Sandbox::new();
    repo.sh("git config core.trustCtime false; git config core.checkStat minimal; printf 1111 >a; printf 2222 >b; printf 3333 >c");
    repo.sh("git add .; git commit -qm files");
    repo.sh(AN_HOUR_AGO);
    // The user's own, before the turn; and the agent's.
    let in_its_place =
        |file: &str, text: &str| format!("t=$(stat -c %y {file}); printf {text} >{file}; touch -d \"$t\" {file}");
    repo.sh(&in_its_place("a", "9999"));
    assert_eq!(repo.git(["status", "--porcelain"]), "", "git does not see it");
    let before = repo.files();
    repo.agent(&format!("{}; printf 7777 >a; cp -p c b; echo new >new", in_its_place("c", "8888")));
    let after = repo.files();
    repo.undo();
    repo.files().assert_is(&before, "undo");
    repo.redo();
    repo.files().assert_is(&after, "redo");
}

#[test]
fn what_was_read_once_is_not_read_again_and_what_changes_later_is() {
    let repo = Sandbox::new();
    repo.sh("for n in $(seq 50); do printf \"text $n\" >f$n; done; printf 'one\\r\\n' >crlf; echo '* text=auto' >.gitattributes; git add . 2>/dev/null; git commit -qm files");
    // git trusts what is older than the index; oxundo, what is older than any clock's step.
    std::thread::sleep(LATER);
    repo.sh("git update-index -q --refresh; touch .git/index");
    let record = || repo.path(".git/oxundo/read").metadata().map(|about| (about.ino(), about.mtime_nsec())).ok();
    repo.oxundo(["checkpoint", "first"]).success();
    let first = record();
    assert!(first.is_some(), "what was read is known");
    repo.oxundo(["checkpoint", "second"]).success();
    assert_eq!(record(), first, "nothing was read anew");
    let before = repo.files();
    repo.agent("t=$(stat -c %y f7); printf 'TEXT 7' >f7; touch -d \"$t\" f7; printf 'two\\r\\n' >crlf; echo new >new");
    let after = repo.files();
    for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
        repo.oxundo([op]).success();
        repo.files().assert_is(wanted, op);
    }
    // A record that is damaged is no harm.
    std::fs::write(repo.path(".git/oxundo/read"), "nonsense").expect("damage it");
    repo.there_and_back(Mode::Commit, "printf agent >f9; printf agent >crlf");
}
