//! What the beginning of a turn does not hold, and the user brings within reach in the middle of it: no call has made it because it
//! names it. And what they save between the prompts of a session that has told of its calls.

use crate::copied::{Story, told_from};
use crate::sandbox::{Sandbox, check_all};
use crate::taken_back::Undo::{Leaves, Nothing};
use crate::taken_back::{case, check_from};

const LOOKS: (char, &str) = ('a', "true");
const APPENDS: (char, &str) = ('e', "n echo AGENT1 >>n");
const BESIDE: (char, &str) = ('a', "echo AGENT2 >>F");

#[test]
fn a_file_that_was_ignored_and_is_within_reach_by_now_is_the_users() {
    let begun = "echo n >.gitignore; git add -A; git commit -qm ignores; seq 30 >n; echo USER1 >>n";
    check_from(
        begun,
        [
            ("staged", case(&[LOOKS, ('u', "git add -f n"), APPENDS], "", "AM n", Leaves("USER1 "))),
            (
                "committed",
                case(&[LOOKS, ('u', "git add -f n; git commit -qm mine"), APPENDS], "AGENT1 ", "", Leaves("USER1 ")),
            ),
            (
                "staged by a session that has called nothing else",
                case(&[('u', "git add -f n"), APPENDS], "", "AM n", Leaves("USER1 ")),
            ),
            (
                "and a call does nothing to it",
                case(&[LOOKS, ('u', "git add -f n"), ('e', "n true"), BESIDE], "AGENT2 ", "A  n", Leaves("USER1 ")),
            ),
            (
                "as the call goes on: nobody knows what was in it",
                case(
                    &[LOOKS, ('e', "n git add -f n; echo AGENT1 >>n"), BESIDE],
                    "AGENT2 ",
                    "AM n",
                    Leaves("AGENT1 USER1 "),
                ),
            ),
            (
                "after a call that found it ignored",
                case(&[LOOKS, ('e', "n true"), ('u', "git add -f n"), APPENDS], "", "AM n", Leaves("USER1 ")),
            ),
        ],
    );
}

const MAKES: (char, &str) = ('e', "n seq 2000 >n; echo AGENT1 >>n");
const LARGE: (char, &str) = ('u', "seq 2000 >n; echo USER1 >>n");

#[test]
fn a_large_file_of_the_users_is_not_a_calls_that_names_it() {
    let begun = "git config oxundo.maxFileSize 1k";
    check_from(
        begun,
        [
            (
                "it does nothing to it",
                case(&[LOOKS, LARGE, ('e', "n true"), BESIDE], "AGENT2 ", "?? n", Leaves("USER1 ")),
            ),
            (
                "it has another name by then",
                case(&[LOOKS, LARGE, ('u', "mv n m"), ('e', "m true"), BESIDE], "AGENT2 ", "?? m", Leaves("USER1 ")),
            ),
            ("it is staged", case(&[LOOKS, LARGE, ('u', "git add n"), APPENDS], "", "AM n", Leaves("USER1 "))),
        ],
    );
}

#[test]
fn a_large_file_of_the_agents_that_the_user_takes_in_is_its_still() {
    let begun = "git config oxundo.maxFileSize 1k";
    check_from(
        begun,
        [
            ("staged", case(&[MAKES, ('u', "git add n")], "AGENT1 ", "", Leaves(""))),
            ("and there is more", case(&[MAKES, ('u', "git add n"), BESIDE], "AGENT1 AGENT2 ", "", Leaves(""))),
            (
                "the user's stays theirs",
                case(&[LOOKS, LARGE, LOOKS, ('u', "git add n"), BESIDE], "AGENT2 ", "A  n", Leaves("USER1 ")),
            ),
        ],
    );
}

const WIDENS: (char, &str) = ('u', "git sparse-checkout disable; sed -i 's/^line 50$/USER1/' n");

#[test]
fn what_a_sparse_checkout_has_since_is_the_users() {
    let begun = "seq -f 'line %g' 60 >n; git add n; git commit -qm n
        git sparse-checkout set --no-cone '/*' '!/n'";
    check_from(
        begun,
        [
            ("an edit", case(&[LOOKS, WIDENS, APPENDS], "AGENT1 ", " M n", Leaves("USER1 "))),
            (
                "one that does nothing",
                case(&[LOOKS, WIDENS, ('e', "n true"), BESIDE], "AGENT2 ", " M n", Leaves("USER1 ")),
            ),
        ],
    );
}

/// Takes either mark off.
const OFF: &str = "git update-index --no-assume-unchanged c; git update-index --no-skip-worktree c";
const EDIT: (char, &str) = ('e', "c sed -i 's/^line 9$/AGENT1/' c");

#[test]
fn what_git_was_told_to_leave_alone_is_in_no_commit_of_the_turns() {
    for mark in ["assume-unchanged", "skip-worktree"] {
        let begun = format!("git update-index --{mark} c; sed -i 's/^line 40$/USER1/' c");
        check_from(
            &begun,
            [
                ("a shell takes the mark off", case(&[('a', OFF), BESIDE], "AGENT2 ", " M c", Leaves("USER1 "))),
                ("and changes it", case(&[('a', OFF), EDIT], "AGENT1 ", " M c", Leaves("USER1 "))),
                ("the user takes it off", case(&[LOOKS, ('u', OFF), EDIT], "AGENT1 ", " M c", Leaves("USER1 "))),
                (
                    "and saves more in it",
                    case(
                        &[LOOKS, ('u', OFF), ('u', "sed -i 's/^line 50$/USER2/' c"), EDIT],
                        "AGENT1 ",
                        " M c",
                        Leaves("USER1 USER2 "),
                    ),
                ),
                (
                    "both change one line",
                    case(
                        &[('a', OFF), ('e', "c sed -i 's/^USER1$/AGENT1/' c"), BESIDE],
                        "AGENT2 ",
                        " M c",
                        Leaves("USER1 "),
                    ),
                ),
                ("nobody takes it off", case(&[EDIT, BESIDE], "AGENT2 ", "", Leaves("USER1 "))),
            ],
        );
    }
}

const SAVES: (char, &str) = ('u', "sed -i 's/^line 5$/USER1/' a");
const COMMITS: (char, &str) = ('u', "sed -i 's/^line 5$/USER1/' a; git commit -qam mine");

#[test]
fn a_session_that_only_looked_has_told_of_its_calls() {
    check_from(
        "true",
        [
            ("it read", case(&[('r', "F"), ('p', ""), SAVES], "", " M a", Nothing)),
            ("it ran something", case(&[LOOKS, ('p', ""), SAVES], "", " M a", Nothing)),
            ("the user commits", case(&[LOOKS, ('p', ""), COMMITS], "USER1 ", "", Nothing)),
            ("twice", case(&[LOOKS, ('p', ""), LOOKS, ('p', ""), ('p', ""), SAVES], "", " M a", Nothing)),
        ],
    );
}

/// What is not captured, as a call moves it away, the user puts something in its place, and a call may go on with that.
const IN_ITS_PLACE: &[(&str, &str, Story<'_>)] = &[
    (
        "an ignored file",
        "echo '*.ig' >.gitignore; seq 30 >s.ig; echo USER1 >>s.ig",
        &[('a', "mv s.ig s.txt"), ('u', "sleep .02; echo USER2 >s.ig; cp s.ig kept.ig")],
    ),
    (
        "and one more call",
        "echo '*.ig' >.gitignore; seq 30 >s.ig; echo USER1 >>s.ig",
        &[('a', "mv s.ig s.txt"), ('u', "sleep .02; echo USER2 >s.ig; sleep .02"), BESIDE],
    ),
    (
        "a call writes in it",
        "echo '*.ig' >.gitignore; seq 30 >s.ig; echo USER1 >>s.ig",
        &[('a', "mv s.ig s.txt"), ('u', "sleep .02; echo USER2 >s.ig; sleep .02"), ('e', "s.ig echo AGENT1 >>s.ig")],
    ),
    (
        "a large file",
        "git config oxundo.maxFileSize 1k; seq 300 >big; echo USER1 >>big",
        &[('a', "mv big big2"), ('u', "sleep .02; echo USER2 >big")],
    ),
    (
        "a large one in the place of a large one",
        "git config oxundo.maxFileSize 1k; seq 300 >big; echo USER1 >>big",
        &[('a', "mv big big2"), ('u', "sleep .02; seq 1000 1300 >big; sleep .02"), ('e', "big echo AGENT1 >>big")],
    ),
];

#[test]
fn what_the_user_puts_in_the_place_of_what_a_call_moved_away_is_theirs() {
    let cases = IN_ITS_PLACE.iter().map(|(name, begun, story)| ((*name).to_owned(), (*begun, *story)));
    check_all(cases, |(begun, story)| {
        let repo = told_from(begun, story);
        let everything = repo.everything();
        for args in [&["undo"][..], &["undo", "--revert"]] {
            repo.refuses(args, "conflict");
            repo.everything().assert_is(&everything, "nothing has changed");
        }
        let theirs = if begun.contains("big") { "big" } else { "s.ig" };
        repo.sh(&format!("mv {theirs} .git/theirs"));
        let after = repo.state();
        repo.undo();
        assert!(repo.read(theirs).ends_with(b"USER1\n"), "it is back under its name");
        repo.redo();
        repo.state().assert_is(&after, "redo");
    });
}

/// What is over the limits and was made or saved by the user in the middle of a turn.
#[test]
fn what_the_user_made_or_saved_over_the_limits_is_freed_by_no_gc() {
    let begun = "git config oxundo.maxFileSize 1k; seq 2000 >o; echo USER1 >>o";
    let stories: [(&str, Story<'_>); 4] = [
        (
            "saved in a directory that a call has made",
            &[
                BESIDE,
                ('a', "mkdir build; seq 30 >build/z; echo AGENT1 >>build/z"),
                ('u', "sleep 1.1; echo USER1 >build/mine; rm o; sleep 1.1"),
                BESIDE,
            ],
        ),
        (
            "saved in a large file that a call has made",
            &[BESIDE, MAKES, ('u', "sleep 1.1; sed -i 1s/.*/USER1/ n; rm o; sleep 1.1"), BESIDE],
        ),
        ("moved by a call and saved by a rename", &[('a', "mv o n"), ('e', "n sed -i 3s/.*/AGENT1/ n")]),
        (
            "a directory of theirs, in which a call makes a file",
            &[BESIDE, ('u', "rm o; mkdir build; echo USER1 >build/mine"), ('e', "build/z echo AGENT1 >build/z")],
        ),
    ];
    check_all(stories.map(|(name, story)| (name.to_owned(), story)), |story| {
        let repo = told_from(begun, story);
        repo.oxundo(["undo", "--edits=overwrite"]).success();
        for _ in 0..3 {
            repo.agent("echo more >>a");
        }
        repo.oxundo(["gc", "--keep", "0s"]).success();
        let found = repo.sh("cat $(find . -type f ! -path './.git/objects/*') | grep -c '^USER1$' || true");
        assert_ne!(found.trim(), "0", "what the user wrote is somewhere still");
    });
}

/// Something ignored, a file that only its owner reads and a directory.
const IGNORED: &str = "printf '*.ig\\nig/\\n' >.gitignore; git add -A; git commit -qm ignore; seq 30 >s.ig; echo USER1 >>s.ig; \
    chmod 600 s.ig; echo USER5 >t.ig; ln -s nowhere l.ig; mkdir -p ig/sub; seq 30 >ig/z; echo USER2 >>ig/z; echo USER3 >ig/sub/y";
const RENAMES: (char, &str) = ('a', "mv s.ig s.txt");
const RENAMES_ALL: (char, &str) = ('a', "mv ig og");

/// A call moves what was ignored to where it is captured, and that is changed later in the turn: its content, its place, or which file it is.
#[test]
fn what_a_call_moved_that_was_ignored_comes_back_as_it_was_whatever_became_of_it() {
    let stories: [(&str, Story<'_>); 25] = [
        ("saved by a rename", &[RENAMES, ('e', "s.txt sed -i 3s/.*/AGENT1/ s.txt")]),
        ("saved by a rename in a shell", &[RENAMES, ('a', "sed -i 3s/.*/AGENT1/ s.txt")]),
        ("written to", &[RENAMES, ('e', "s.txt echo AGENT1 >>s.txt")]),
        ("written to in a shell", &[RENAMES, ('a', "echo AGENT1 >>s.txt")]),
        ("replaced in a shell, and moved on", &[RENAMES, ('a', "seq 3 >s.txt"), ('a', "mv s.txt t; echo AGENT1 >>t")]),
        ("moved there and back", &[RENAMES, ('a', "mv s.txt s.ig; echo AGENT1 >>F"), RENAMES]),
        ("moved on to where nothing is captured", &[RENAMES, ('a', "mv s.txt w.ig; echo AGENT1 >>F")]),
        (
            "moved back and changed",
            &[RENAMES, ('a', "sed -i 3s/.*/AGENT1/ s.txt"), ('a', "mv s.txt s.ig; echo AGENT2 >>F")],
        ),
        ("another one in its place", &[RENAMES, ('a', "mv t.ig s.ig"), ('a', "rm s.txt; echo AGENT2 >>F")]),
        ("another one over it", &[RENAMES, ('a', "mv t.ig s.txt")]),
        ("deleted", &[RENAMES, ('a', "rm s.txt")]),
        ("moved on", &[RENAMES, ('a', "sed -i 3s/.*/AGENT1/ s.txt"), ('a', "mv s.txt d/t.txt")]),
        ("over a tracked file", &[('a', "mv s.ig a"), ('e', "a sed -i 3s/.*/AGENT1/ a")]),
        ("committed", &[RENAMES, ('e', "s.txt sed -i 3s/.*/AGENT1/ s.txt"), ('a', "git add -A; git commit -qm its")]),
        ("a directory", &[RENAMES_ALL, ('e', "og/z sed -i 3s/.*/AGENT1/ og/z")]),
        ("a part of it moved back", &[RENAMES_ALL, ('a', "mkdir ig; mv og/sub ig/")]),
        ("a part of it moved on", &[RENAMES_ALL, ('a', "mv og/sub og2")]),
        (
            "a part of it moved on and changed",
            &[RENAMES_ALL, ('a', "mv og/sub og2"), ('e', "og2/y echo AGENT1 >>og2/y")],
        ),
        ("a file of it renamed in it", &[RENAMES_ALL, ('a', "mv og/z og/w; mv og/sub og2")]),
        ("all of it moved on", &[RENAMES_ALL, ('a', "mv og node_modules; echo AGENT1 >>F")]),
        ("a directory in its place", &[RENAMES, ('a', "rm s.txt; mkdir s.txt; echo AGENT1 >s.txt/z")]),
        ("a link, and a directory in its place", &[('a', "mv l.ig l"), ('a', "rm l; mkdir l; echo AGENT1 >l/z")]),
        ("a file of it deleted", &[RENAMES_ALL, ('a', "rm og/z; echo AGENT1 >og/new")]),
        ("all of it deleted", &[RENAMES_ALL, ('a', "rm -r og")]),
        ("replaced as a whole", &[RENAMES_ALL, ('a', "cp -r og og2; rm -r og; mv og2 og; echo AGENT1 >>og/sub/y")]),
    ];
    let files = |repo: &Sandbox| repo.files();
    let before = files(&told_from(IGNORED, &[]));
    check_all(stories.map(|(name, story)| (name.to_owned(), story)), |story| {
        let repo = told_from(IGNORED, story);
        let after = repo.state();
        repo.undo();
        assert_eq!(files(&repo), before);
        repo.redo();
        repo.state().assert_is(&after, "redo");
        repo.undo();
        assert_eq!(files(&repo), before);
    });
    // Whatever somebody saves in it meanwhile.
    for save in ["sed -i 15s/.*/USER4/ s.txt", "echo USER4 >>s.txt", "rm s.txt; echo USER4 >s.txt"] {
        let repo = told_from(IGNORED, &[RENAMES, ('u', save)]);
        repo.refuses(&["undo"], "conflict");
        repo.oxundo(["undo", "--edits=overwrite"]).success();
        assert_eq!(files(&repo), before, "{save}");
        repo.redo();
        assert_eq!(repo.sh("grep -c USER4 s.txt").trim(), "1", "{save}");
    }
    // What somebody saves in it later goes along where the turn did no more than that.
    let later = "sed -i 15s/.*/USER4/ s.txt";
    let repo = told_from(IGNORED, &[RENAMES]);
    repo.sh(later);
    repo.undo();
    assert_eq!(repo.sh("grep -o 'USER.' s.ig; ls s.txt 2>/dev/null || :"), "USER4\nUSER1");
    let repo = told_from(IGNORED, &[RENAMES, ('e', "s.txt sed -i 3s/.*/AGENT1/ s.txt")]);
    repo.sh(later);
    repo.refuses(&["undo"], "conflict");
}

#[test]
fn what_a_call_moved_that_is_too_large_goes_back_to_its_name_as_it_is() {
    let begun = "git config oxundo.maxFileSize 1k; seq 2000 >o; echo USER1 >>o";
    for change in [('e', "n sed -i 3s/.*/AGENT1/ n"), ('a', "sed -i 3s/.*/AGENT1/ n")] {
        let repo = told_from(begun, &[('a', "mv o n"), change]);
        let after = repo.state();
        repo.undo();
        assert_eq!(repo.sh("ls o n 2>/dev/null || :; tail -1 o").trim(), "o\nUSER1");
        repo.redo();
        repo.state().assert_is(&after, "redo");
    }
}
