//! What calls copy, rename and delete of what the user saved in the same turn, and what the user puts there later: each line is
//! whose token it has.

use crate::sandbox::{Sandbox, check_all};
use crate::steps::{call, edit, hook, shell, tick};
use serde_json::json;

/// What was done, and by whom.
pub(super) type Story<'a> = &'a [(char, &'a str)];

/// A name, a story, what `git status` has after it, and what else is known of it.
type Case<'a> = (&'a str, Story<'a>, &'a str, &'a str);

fn named<const N: usize>(cases: [Case<'_>; N]) -> [(String, (Story<'_>, &str, &str)); N] {
    cases.map(|(name, story, status, rest)| (name.to_owned(), (story, status, rest)))
}

/// Tells a story in turns: what the agent does in a shell (`a`) or in an edit of the file that is named first
/// (`e`), which files it reads (`r`), and what the user does (`u`). A prompt ends and another one begins at `p`.
pub(super) fn told(story: Story<'_>) -> Sandbox {
    told_from("true", story)
}

/// As [`told`], where the user has done this before.
pub(super) fn told_from(begun: &str, story: Story<'_>) -> Sandbox {
    let repo = Sandbox::new();
    for name in ["F", "a", "c", "d/x"] {
        repo.write(name, (1..=60).map(|n| format!("line {n}\n")).collect::<String>());
    }
    repo.sh("git add -A; git commit -qm files");
    repo.sh(begun);
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    for (number, (who, done)) in (1..).zip(story) {
        match who {
            'a' => shell(&repo, number, done),
            'e' => {
                let (path, script) = done.split_once(' ').expect("a path and what is done");
                edit(&repo, number, path, script);
            }
            'r' => call(&repo, "s", number, "Read", &json!({"file_path": done}), "true"),
            'p' => {
                hook(&repo, "s", "Stop", &json!({}));
                hook(&repo, "s", "UserPromptSubmit", &json!({}));
            }
            _ => {
                repo.sh(done);
                tick();
            }
        }
    }
    hook(&repo, "s", "Stop", &json!({}));
    repo
}

/// The tokens that are there, sorted.
fn tokens(repo: &Sandbox, pick: &str) -> String {
    repo.sh(&format!("{pick} | grep -oE '(USER|AGENT)[0-9]+' | sort -u | tr '\\n' ' '"))
}

pub(super) fn committed(repo: &Sandbox) -> String {
    tokens(repo, "git show --format= HEAD | grep '^+'")
}

pub(super) fn there(repo: &Sandbox) -> String {
    tokens(repo, "grep -rh --exclude-dir=.git . .")
}

#[test]
fn what_the_user_saved_and_a_call_copied_is_theirs_whatever_becomes_of_the_copy() {
    let first = ('e', "F sed -i 's/^line 3$/AGENT1/' F");
    let saves = ('u', "sed -i 's/^line 30$/USER1/' a");
    let makes = ('u', "mkdir ud; printf 'USER1\nx\ny\nz\nwww\n' >ud/f");
    let cases: [Case<'_>; 10] = [
        ("it is deleted", &[first, saves, ('a', "cp a G"), ('u', "rm G")], " M a", ""),
        ("a second name", &[first, saves, ('a', "ln a G"), ('u', "rm G")], " M a", ""),
        ("after another call", &[first, saves, ('a', "cp a G"), ('a', "true"), ('u', "rm G")], " M a", ""),
        ("it is rewritten", &[first, saves, ('a', "cp a G"), ('u', "echo USER9 >G")], " M a\n M G", "G"),
        (
            "both are edited",
            &[first, saves, ('a', "cp a G"), ('u', "sed -i 's/^line 5$/USER2/' a; sed -i 's/^line 9$/USER3/' G")],
            " M G\n M a",
            "G",
        ),
        ("over a file of git's", &[first, saves, ('a', "cp a c"), ('u', "git checkout -q c")], " M a", ""),
        ("a new file", &[first, makes, ('a', "cp ud/f G"), ('u', "rm G")], "?? ud/", ""),
        (
            "a new file, and written to",
            &[first, makes, ('a', "cp ud/f G; echo AGENT3 >>G"), ('u', "rm G")],
            "?? ud/",
            "",
        ),
        ("a directory", &[first, makes, ('a', "cp -r ud G"), ('u', "rm -r G")], "?? ud/", ""),
        (
            "a directory, and another call",
            &[first, makes, ('a', "cp -r ud G"), ('a', "true"), ('u', "rm -r G")],
            "?? ud/",
            "",
        ),
    ];
    check_all(named(cases), |(story, status, copy)| {
        let repo = told(story);
        let status: Vec<_> = status.lines().filter(|line| !copy.is_empty() || !line.ends_with('G')).collect();
        let now = repo.sh("git status --porcelain");
        let mut now: Vec<_> = now.lines().collect();
        now.sort_unstable();
        let mut expected = status.clone();
        expected.sort_unstable();
        assert_eq!(now, expected, "what the user saved is not committed");
        let changed = repo.git(["show", "--format=", "--name-only", "HEAD", "--", "a", "ud"]);
        assert_eq!(changed, "", "nor is their file in the agent's commit");
        let (all, after) = (there(&repo), repo.state());
        if !copy.is_empty() {
            // What they wrote in what a call has made.
            repo.refuses(&["undo"], "conflict");
            return;
        }
        repo.undo();
        assert_eq!(there(&repo), all.replace("AGENT1 ", ""), "undo takes the agent's line out, and no other");
        repo.redo();
        repo.state().assert_is(&after, "redo");
    });
}

#[test]
fn a_file_in_which_the_user_saved_before_a_call_renamed_it_and_after_is_whole_again_with_undo() {
    let repo = told(&[
        ('e', "F sed -i 's/^line 3$/AGENT1/' F"),
        ('u', "sed -i 's/^line 40$/USER1/' a"),
        ('a', "mv a G"),
        ('u', "sed -i 's/^line 26$/USER2/' G"),
    ]);
    assert_eq!(committed(&repo), "AGENT1 ");
    assert_eq!(repo.git(["show", "--format=", "--name-status", "-M", "HEAD"]), "M\tF\nR100\ta\tG");
    let after = repo.state();
    repo.undo();
    assert_eq!(repo.sh("git status --porcelain; grep -o 'USER[0-9]' a"), " M a\nUSER2\nUSER1");
    repo.redo();
    repo.state().assert_is(&after, "redo");
}

#[test]
fn what_the_user_saves_where_a_file_was_or_a_directory_is_in_no_commit_of_the_agents() {
    let cases: [Case<'_>; 6] = [
        ("a directory", &[('a', "rm c"), ('u', "mkdir c; echo USER1 >c/k")], "?? c/", ""),
        ("as git deletes it", &[('a', "git rm -q c"), ('u', "mkdir c; echo USER1 >c/k")], "?? c/", ""),
        (
            "and a call after it",
            &[('a', "rm c"), ('u', "mkdir c; echo USER1 >c/k; seq 5 >c/z"), ('e', "F echo AGENT1 >>F")],
            "?? c/",
            "AGENT1 ",
        ),
        (
            "what a call edited",
            &[('e', "c echo AGENT1 >>c"), ('u', "rm c; mkdir c; echo USER1 >c/k")],
            " D c",
            "AGENT1 ",
        ),
        ("a file", &[('a', "rm -r d"), ('u', "echo USER1 >d")], "?? d", ""),
        (
            "where a call edited below",
            &[('a', "echo AGENT1 >>d/x"), ('u', "rm -r d; echo USER1 >d"), ('e', "a echo AGENT2 >>a")],
            " D d/x\n?? d",
            "AGENT1 AGENT2 ",
        ),
    ];
    check_all(named(cases), |(story, status, commit)| {
        let repo = told(story);
        assert_eq!(repo.sh("git status --porcelain"), *status);
        assert_eq!(committed(&repo), *commit);
        repo.refuses(&["undo"], "conflict");
        assert!(there(&repo).contains("USER1"));
    });
}

#[test]
fn what_the_user_saves_in_a_file_that_a_call_renamed_is_theirs_in_the_next_prompt() {
    for rename in ["mv F G", "git mv F G", "git mv F G; git commit -qm its"] {
        let repo = told(&[
            ('a', rename),
            ('u', "sed -i 's/^line 30$/USER1/' G"),
            ('p', ""),
            ('e', "c sed -i 's/^line 9$/AGENT2/' c"),
        ]);
        assert_eq!(committed(&repo), "AGENT2 ", "{rename}");
        assert_eq!(tokens(&repo, "git show HEAD~1 | grep '^+'"), "USER1 ", "{rename}: as any edit before a turn");
        assert!(!repo.oxundo(["status"]).out().contains("made no commits"), "{rename}");
    }
}

#[test]
fn a_file_that_a_call_renamed_and_the_user_gives_its_name_back_is_what_it_was() {
    let first = ('e', "F sed -i 's/^line 3$/AGENT1/' F");
    let saves = ('u', "sed -i 's/^line 30$/USER1/' a");
    let makes = ('u', "mkdir ud; echo USER1 >ud/k; ln -s nowhere ud/l");
    let cases: [Case<'_>; 9] = [
        ("new files", &[first, makes, ('a', "mv ud G"), ('u', "mv G ud")], "?? ud/", "USER1 "),
        ("what was saved", &[first, saves, ('a', "mv a G"), ('u', "mv G a")], " M a", "USER1 "),
        ("by git", &[first, saves, ('a', "git mv a G"), ('u', "git mv G a")], " M a", "USER1 "),
        (
            "and saved again",
            &[first, saves, ('a', "mv a G"), ('u', "mv G a; sed -i 's/^line 40$/USER2/' a")],
            " M a",
            "USER1 USER2 ",
        ),
        ("a link in its place", &[first, ('u', "ln -sf c a"), ('a', "mv a G"), ('u', "mv G a")], " T a", ""),
        ("nothing was saved", &[first, ('a', "git mv a G"), ('u', "git mv G a")], "", ""),
        ("a directory", &[first, ('a', "git mv d D"), ('u', "git mv D d")], "", ""),
        ("by another name", &[first, ('a', "git mv a G"), ('u', "git mv G H; git mv H a")], "", ""),
        ("committed by the agent", &[first, ('a', "git mv a G; git commit -qm own"), ('u', "git mv G a")], "", ""),
    ];
    check_all(named(cases), |(story, status, users)| {
        let repo = told(story);
        assert_eq!(repo.sh("git status --porcelain"), *status, "nothing of it is committed");
        assert_eq!(committed(&repo), "AGENT1 ");
        let after = repo.state();
        repo.undo();
        assert_eq!(repo.sh("git status --porcelain"), *status, "it is in the index as it was");
        assert_eq!(there(&repo), *users);
        repo.redo();
        repo.state().assert_is(&after, "redo");
    });
}

#[test]
fn what_the_user_saves_where_a_call_put_a_new_file_of_theirs_over_one_of_gits_stays_uncommitted() {
    for moves in ["mv new a", "mv a old; mv new a"] {
        let repo = told(&[
            ('e', "F sed -i 's/^line 3$/AGENT1/' F"),
            ('u', "seq -f 'new %g' 30 >new"),
            ('a', moves),
            ('u', "sed -i 's/new 20/USER6/' a"),
        ]);
        assert_eq!(committed(&repo), "AGENT1 ", "{moves}");
        assert_eq!(repo.sh("git status --porcelain -- a"), " M a", "{moves}");
        repo.refuses(&["undo"], "conflict");
    }
}

#[test]
fn what_the_user_saved_goes_along_over_several_turns_that_renamed_its_file() {
    let repo = told(&[('a', "mv F G"), ('p', ""), ('a', "mv G H"), ('p', ""), ('u', "sed -i 's/^line 31$/USER1/' H")]);
    let after = repo.state();
    repo.oxundo(["undo", "--steps", "2"]).success();
    assert_eq!(repo.sh("git status --porcelain; grep -rl USER1 --exclude-dir=.git ."), " M F\n./F");
    repo.oxundo(["redo", "--steps", "2"]).success();
    repo.state().assert_is(&after, "redo");
}
