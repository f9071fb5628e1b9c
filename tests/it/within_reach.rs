//! What the beginning of a turn does not hold, and the user brings within reach in the middle of it: no call has made it because it
//! names it. And what they save between the prompts of a session that has told of its calls.

use crate::copied::{Story, told_from};
use crate::sandbox::{Sandbox, State, check_all};
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
            (
                "a shell adds all that there is",
                case(&[LOOKS, LARGE, ('a', "git add -A"), BESIDE], "AGENT2 ", "A  n", Leaves("USER1 ")),
            ),
            (
                "and commits it",
                case(&[LOOKS, LARGE, ('a', "git add -A; git commit -qm all"), BESIDE], "AGENT2 ", "", Leaves("USER1 ")),
            ),
        ],
    );
}

const BUILDS: (char, &str) = ('u', "mkdir dist; echo USER1 >dist/n");

const FIRST_LINE: (char, &str) = ('u', "sed -i '1s/.*/USER2/' F");

/// What was there before, where they save something else in the middle.
#[test]
fn what_the_user_had_built_is_in_no_commit_of_the_agents() {
    check_from(
        "seq 30 >F; git add F; git commit -qm F; mkdir dist; echo USER1 >dist/n",
        [
            ("nothing else", case(&[LOOKS, ('a', "git add -A"), BESIDE], "AGENT2 ", "A  dist/n", Leaves("USER1 "))),
            (
                "a line in a file of the agent's",
                case(
                    &[LOOKS, FIRST_LINE, ('a', "git add -A"), BESIDE],
                    "AGENT2 ",
                    "A  dist/n\nM  F",
                    Leaves("USER1 USER2 "),
                ),
            ),
        ],
    );
}

#[test]
fn what_the_user_builds_in_the_middle_of_a_turn_is_not_the_calls_that_adds_all() {
    check_from(
        "true",
        [
            ("all", case(&[LOOKS, BUILDS, ('a', "git add -A"), BESIDE], "AGENT2 ", "A  dist/n", Leaves("USER1 "))),
            (
                "and commits it",
                case(
                    &[LOOKS, BUILDS, ('a', "git add -A; git commit -qm all"), BESIDE],
                    "AGENT2 ",
                    "",
                    Leaves("USER1 "),
                ),
            ),
            (
                "a part, and writes to it",
                case(
                    &[LOOKS, BUILDS, ('a', "git add dist/n; echo AGENT1 >>dist/n"), BESIDE],
                    "AGENT2 ",
                    "AM dist/n",
                    Leaves("AGENT1 USER1 "),
                ),
            ),
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
        "the user saves in what a call has put there",
        "echo '*.ig' >.gitignore; seq 30 >s.ig; echo USER1 >>s.ig",
        &[('a', "mv s.ig s.txt"), ('a', "echo AGENT1 >s.ig"), ('u', "sleep .02; echo USER2 >>s.ig; sleep .02"), BESIDE],
    ),
    (
        "and a call goes on in that",
        "echo '*.ig' >.gitignore; seq 30 >s.ig; echo USER1 >>s.ig",
        &[
            ('a', "mv s.ig s.txt"),
            ('a', "echo AGENT1 >s.ig"),
            ('u', "sleep .02; echo USER2 >>s.ig; sleep .02"),
            ('a', "sed -i s/AGENT1/AGENT2/ s.ig"),
        ],
    ),
    (
        "a call puts there what nobody knew",
        "printf '*.ig\nig/\n' >.gitignore; seq 30 >s.ig; echo USER1 >>s.ig; mkdir ig; echo USER2 >ig/y",
        &[('a', "mv s.ig s.txt"), ('a', "mv ig/y s.ig"), BESIDE],
    ),
    (
        "the user puts there what nobody knew",
        "printf '*.ig\nig/\n' >.gitignore; seq 30 >s.ig; echo USER1 >>s.ig; mkdir ig; echo USER2 >ig/y",
        &[('a', "mv s.ig s.txt"), ('u', "sleep .02; mv ig/y s.ig; sleep .02"), BESIDE],
    ),
    (
        "a call deletes what was moved away",
        "echo '*.ig' >.gitignore; seq 30 >s.ig; echo USER1 >>s.ig",
        &[('a', "mv s.ig s.txt"), ('u', "sleep .02; echo USER2 >s.ig; sleep .02"), ('a', "rm s.txt; echo AGENT1 >>F")],
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

/// Undo leads to these files, redo back to where the turn ended, and undo there again.
fn goes_there_and_back(repo: &Sandbox, files: &State) {
    let after = repo.state();
    repo.undo();
    assert_eq!(repo.files(), *files);
    repo.redo();
    repo.state().assert_is(&after, "redo");
    repo.undo();
    assert_eq!(repo.files(), *files);
}

/// A call moves what was ignored to where it is captured, and that is changed later in the turn: its content, its place, or which file it is.
#[test]
fn what_a_call_moved_that_was_ignored_comes_back_as_it_was_whatever_became_of_it() {
    let stories: [(&str, Story<'_>); 34] = [
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
        ("written to, and moved back", &[RENAMES, ('a', "echo AGENT1 >>s.txt"), ('a', "mv s.txt s.ig")]),
        (
            "written to, and moved on to where nothing is captured",
            &[RENAMES, ('a', "echo AGENT1 >>s.txt"), ('a', "mv s.txt w.ig; echo AGENT2 >>F")],
        ),
        (
            "a file of it changed, and all moved back",
            &[RENAMES_ALL, ('a', "sed -i s/USER2/AGENT1/ og/z"), ('a', "mv og ig")],
        ),
        (
            "a file of it written to, and all moved back",
            &[RENAMES_ALL, ('e', "og/sub/y echo AGENT1 >>og/sub/y"), ('a', "mv og ig; echo AGENT2 >>F")],
        ),
        (
            "a file of it changed, and each moved back",
            &[RENAMES_ALL, ('a', "sed -i s/USER2/AGENT1/ og/z"), ('a', "mkdir ig; mv og/* ig/; rmdir og"), BESIDE],
        ),
        (
            "a file of it changed, and all copied back",
            &[RENAMES_ALL, ('a', "echo AGENT1 >>og/z"), ('a', "cp -a og ig; rm -r og")],
        ),
        (
            "a file of it made anew, and the rest deleted",
            &[RENAMES_ALL, ('a', "mkdir ig; echo AGENT1 >ig/z"), ('a', "rm -r og; echo AGENT2 >>F")],
        ),
        ("its modes changed, and all moved back", &[RENAMES_ALL, ('a', "chmod 755 og/z"), ('a', "mv og ig")]),
        (
            "two of it changed places, and all moved back",
            &[RENAMES_ALL, ('a', "mv og/z og/t; mv og/sub/y og/z; mv og/t og/sub/y"), ('a', "mv og ig")],
        ),
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
        goes_there_and_back(&repo, &before);
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
    // The hint leaves it with both of its names.
    let repo =
        told_from(IGNORED, &[BESIDE, RENAMES, ('u', "sleep .02; sed -i 15s/.*/USER4/ s.txt; sleep .02"), BESIDE]);
    let said = repo.oxundo(["undo"]).err();
    let hint = said.split_once("run `").and_then(|(_, rest)| rest.split_once("` to take out all but it"));
    repo.sh(hint.expect("a line").0);
    assert_eq!(repo.sh("grep -c USER4 s.txt; ls").trim(), "1\nF\nREADME.txt\na\nc\nd\nig\nl.ig\ns.txt\nt.ig", "{said}");
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

/// The user makes something in the middle of a turn where it is ignored, or saves it by a rename, and a call moves that.
#[test]
fn what_the_user_made_between_calls_that_is_ignored_comes_back_whatever_became_of_it() {
    const SAVES: (char, &str) = ('u', "sleep .02; sed -i 15s/.*/USER6/ s.ig; sleep .02");
    const MAKES_ONE: (char, &str) = ('u', "sleep .02; seq 40 >n.ig; echo USER7 >>n.ig; sleep .02");
    const MAKES_ALL: (char, &str) =
        ('u', "sleep .02; mkdir -p node_modules/b; echo USER8 >node_modules/b/z; sleep .02");
    const MOVES_ONE: (char, &str) = ('a', "mv n.ig n.txt");
    const MAKES_N: (char, &str) = ('u', "sleep .02; echo USER6 >ig/n; sleep .02");
    const MAKES_NEW: (char, &str) = ('a', "mkdir -p new; echo AGENT1 >>F");
    const PUTS: &str = "sleep .02; mkdir -p new; echo USER6 >new/n.ig; sleep .02";
    const MAKES_IN: (char, &str) = ('u', "sleep .02; echo USER6 >ig/n; echo USER7 >ig/sub/n.ig; sleep .02");
    let stories: [(&str, Story<'_>); 29] = [
        ("saved", &[BESIDE, SAVES, RENAMES]),
        ("saved, before all calls", &[SAVES, RENAMES]),
        ("saved, and written anew", &[BESIDE, SAVES, RENAMES, ('e', "s.txt sed -i 3s/.*/AGENT1/ s.txt")]),
        ("saved twice", &[BESIDE, SAVES, BESIDE, ('u', "sleep .02; sed -i 25s/.*/USER9/ s.ig; sleep .02"), RENAMES]),
        ("saved, and an edit is told of first", &[BESIDE, SAVES, ('e', "F echo AGENT1 >>F"), RENAMES]),
        ("made", &[BESIDE, MAKES_ONE, MOVES_ONE]),
        ("made, before all calls", &[MAKES_ONE, MOVES_ONE]),
        (
            "made, with a name that is no UTF-8",
            &[
                ('u', "sleep .02; seq 40 >$(printf 'n\\377.ig'); sleep .02"),
                ('a', "mv $(printf 'n\\377.ig') $(printf '\\377n')"),
                ('a', "echo AGENT1 >>$(printf '\\377')*"),
            ],
        ),
        ("made, and written anew", &[BESIDE, MAKES_ONE, MOVES_ONE, ('e', "n.txt sed -i 3s/.*/AGENT1/ n.txt")]),
        ("made, and written to", &[MAKES_ONE, MOVES_ONE, ('a', "echo AGENT1 >>n.txt")]),
        ("made, and deleted", &[MAKES_ONE, MOVES_ONE, ('a', "rm n.txt")]),
        ("made, moved on", &[MAKES_ONE, MOVES_ONE, ('a', "sed -i 3s/.*/AGENT1/ n.txt; mv n.txt d/o.txt")]),
        ("made, moved where it is ignored", &[BESIDE, MAKES_ONE, ('a', "mv n.ig o.ig; echo AGENT1 >>F")]),
        ("made over a tracked file", &[MAKES_ONE, ('a', "mv n.ig a"), ('e', "a sed -i 3s/.*/AGENT1/ a")]),
        ("made, and committed", &[MAKES_ONE, MOVES_ONE, ('a', "git add -A; git commit -qm its")]),
        ("a directory", &[BESIDE, MAKES_ALL, ('a', "mv node_modules og; echo AGENT1 >>F")]),
        (
            "a directory, a file of it written anew",
            &[MAKES_ALL, ('a', "mv node_modules og"), ('e', "og/b/z sed -i s/8/A/ og/b/z")],
        ),
        ("made in a directory", &[BESIDE, MAKES_IN, RENAMES_ALL]),
        ("saved in a directory", &[BESIDE, ('u', "sleep .02; sed -i 15s/.*/USER6/ ig/z; sleep .02"), RENAMES_ALL]),
        (
            "saved in a directory, and written anew",
            &[
                ('u', "sleep .02; sed -i 15s/.*/USER6/ ig/z; sleep .02"),
                RENAMES_ALL,
                ('e', "og/z sed -i 3s/.*/AGENT1/ og/z"),
            ],
        ),
        ("made in a directory, and written anew", &[MAKES_IN, RENAMES_ALL, ('e', "og/n sed -i s/6/A/ og/n")]),
        ("made in a directory, and deleted", &[MAKES_N, RENAMES_ALL, ('a', "rm -r og")]),
        ("a part of it moved on", &[MAKES_N, RENAMES_ALL, ('a', "mv og/sub og2; mv og/n og3")]),
        ("made, and moved where it is ignored by a call that does no more", &[MAKES_ONE, ('a', "mv n.ig o.ig")]),
        ("made in a directory of the agent's that moves", &[MAKES_NEW, ('u', PUTS), ('a', "mv new newer")]),
        ("made in a directory of the agent's, and moved out", &[MAKES_NEW, ('u', PUTS), ('a', "mv new/n.ig n.txt")]),
        (
            "made in a directory of the agent's with more in it, and moved out",
            &[MAKES_NEW, ('u', PUTS), ('a', "echo AGENT2 >new/f; mv new/n.ig n.txt")],
        ),
        (
            "a directory with what is not captured anywhere",
            &[
                (
                    'u',
                    "sleep .02; mkdir -p node_modules/b; echo USER8 >node_modules/b/z; echo USER9 >node_modules/b/x.ig; sleep .02",
                ),
                ('a', "mv node_modules og"),
                ('a', "echo AGENT1 >>og/b/z"),
            ],
        ),
        (
            "made as two that are exchanged",
            &[MAKES_ONE, SAVES, ('a', "mv n.ig n; mv s.ig n.ig; mv n s.ig; echo AGENT1 >>F")],
        ),
    ];
    check_all(stories.map(|(name, story)| (name.to_owned(), story)), |story| {
        let theirs: Vec<_> = story.iter().filter(|(who, _)| *who == 'u').copied().collect();
        let expected = told_from(IGNORED, &theirs).files();
        let repo = told_from(IGNORED, story);
        goes_there_and_back(&repo, &expected);
    });
}

#[test]
fn what_the_user_made_between_calls_has_one_place_and_what_calls_made_none() {
    // What was there first, and was moved away before that, stays where it is.
    let another = ('u', "sleep .02; echo USER6 >s.ig; sleep .02");
    for to in ["x.txt", "x.ig"] {
        let repo = told_from(IGNORED, &[RENAMES, another, ('a', &format!("mv s.ig {to}; echo AGENT1 >>F"))]);
        let after = repo.state();
        repo.undo();
        assert_eq!(repo.sh("cat s.ig; tail -1 s.txt"), "USER6\nUSER1");
        repo.assert_absent(to, "it is back under its name");
        repo.redo();
        repo.state().assert_is(&after, "redo");
    }
    // Of what comes out of a directory in which nothing is looked at it is not known what it was called.
    for then in ["echo AGENT1 >>F", "sed -i 3s/.*/AGENT1/ n.txt", "mv n.txt o.txt"] {
        let makes = ('u', "sleep .02; seq 30 >ig/n; echo USER6 >>ig/n; sleep .02");
        let repo = told_from(IGNORED, &[BESIDE, makes, ('a', "mv ig/n n.txt"), ('a', then)]);
        let after = repo.state();
        repo.undo();
        assert_eq!(repo.sh("cat *.txt | grep -c USER6").trim(), "1", "{then}: it is somewhere");
        repo.redo();
        repo.state().assert_is(&after, "redo");
    }
    // What a call has made in a directory of the user's goes with the turn.
    let makes_in = ('a', "echo AGENT1 >ig/new; mv ig og; echo AGENT2 >og/newer");
    let repo = told_from(IGNORED, &[makes_in, ('a', "echo AGENT3 >og/newest")]);
    repo.undo();
    assert_eq!(repo.files(), told_from(IGNORED, &[]).files());
    // What a call has made is no more the user's.
    let made = [('a', "echo AGENT1 >n.ig"), ('u', "sleep .02"), ('a', "mv n.ig n.txt; echo AGENT1 >>F")];
    let repo = told_from(IGNORED, &made);
    repo.undo();
    assert_eq!(repo.files(), told_from(IGNORED, &[]).files());
}

/// A call moves a directory that was not captured to where it is, and what is in it is not captured even there.
#[test]
fn what_is_not_captured_in_a_directory_that_a_call_moved_goes_back_with_it() {
    let begun = format!("{IGNORED}; echo USER4 >ig/sub/x.ig; mkdir -p ig/c.ig; seq 3 >ig/c.ig/1; chmod 700 ig/c.ig");
    let stories: [(&str, Story<'_>); 5] = [
        ("as it is", &[RENAMES_ALL]),
        ("a file of it written to", &[RENAMES_ALL, ('a', "echo AGENT1 >>og/z")]),
        ("a file of it written anew", &[RENAMES_ALL, ('e', "og/z sed -i 3s/.*/AGENT1/ og/z")]),
        ("a file of it deleted", &[RENAMES_ALL, ('a', "rm og/sub/y")]),
        ("moved again", &[RENAMES_ALL, ('a', "mv og oh")]),
    ];
    let before = told_from(&begun, &[]).files();
    check_all(stories.map(|(name, story)| (name.to_owned(), story)), |story| {
        let repo = told_from(&begun, story);
        goes_there_and_back(&repo, &before);
    });
}

#[test]
fn what_calls_changed_in_a_directory_that_they_moved_out_of_reach_goes_back_with_a_word() {
    let begun = format!("{IGNORED}; echo node_modules/ >>.git/info/exclude");
    let moved_on = ('a', "mv og node_modules");
    let repo = told_from(&begun, &[RENAMES_ALL, ('a', "sed -i s/USER2/AGENT1/ og/z"), moved_on]);
    let after = repo.state();
    for args in [&["undo", "--dry-run"][..], &["undo"]] {
        let output = repo.oxundo(args);
        output.success();
        output.warns("'ig/z' stays as turn 1 left it: its directory goes back as a whole");
    }
    assert_eq!(repo.sh("ls -d ig node_modules 2>/dev/null || cat ig/sub/y").trim(), "ig\nUSER3");
    repo.redo();
    repo.state().assert_is(&after, "redo");
    let repo = told_from(&begun, &[RENAMES_ALL, ('a', "echo AGENT1 >>F"), moved_on]);
    assert!(!repo.oxundo(["undo"]).err().contains("as a whole"), "it is as it was");
}

#[test]
fn what_comes_back_with_the_whole_turn_stays_where_one_step_of_it_is_taken_out() {
    let changes = ('a', "sed -i 3s/.*/AGENT1/ s.txt");
    let repo = told_from(IGNORED, &[RENAMES, changes, ('a', "mv s.txt s.ig"), ('a', "echo AGENT2 >>F")]);
    let after = repo.state();
    repo.oxundo(["undo", "--only", "1.4"]).success();
    assert_eq!(repo.sh("grep -c AGENT2 F || :; sed -n 3p s.ig").trim(), "0\nAGENT1");
    repo.redo();
    repo.state().assert_is(&after, "redo");
    // Back to where it was moved back: it stays.
    repo.oxundo(["undo", "--to", "1.3"]).success();
    assert_eq!(repo.sh("grep -c AGENT2 F || :; sed -n 3p s.ig; ls s.*").trim(), "0\nAGENT1\ns.ig");
    repo.redo();
    repo.state().assert_is(&after, "redo");
    let on = [RENAMES, ('a', "echo AGENT1 >>s.txt"), ('a', "mv s.txt w.ig; echo AGENT2 >>F"), ('a', "echo AGENT3 >>F")];
    let repo = told_from(IGNORED, &on);
    repo.oxundo(["undo", "--to", "1.3"]).success();
    assert_eq!(repo.sh("grep -c AGENT3 F || :; tail -1 w.ig; ls s.* w.* 2>/dev/null || :").trim(), "0\nAGENT1\nw.ig");
    // Back to where it was moved: it is there once.
    let repo = told_from(IGNORED, &[RENAMES, ('a', "rm s.txt; echo AGENT2 >>F")]);
    repo.oxundo(["undo", "--to", "1.1"]).success();
    assert_eq!(repo.sh("ls s.*").trim(), "s.txt");
    let repo = told_from(IGNORED, &[BESIDE, RENAMES, ('a', "rm s.txt; echo AGENT2 >>F")]);
    repo.oxundo(["undo", "--to", "1.1"]).success();
    assert_eq!(repo.sh("ls s.*").trim(), "s.ig");
}

/// The user removes the directory of what undo has put back, and redo makes it again.
#[test]
fn what_goes_aside_by_undo_has_its_directory_by_redo() {
    let stories: [(&str, Story<'_>); 2] = [
        ("in place", &[RENAMES_ALL, ('a', "sed -i s/USER2/AGENT1/ og/z"), ('a', "mv og ig; echo AGENT2 >>F")]),
        ("made anew", &[RENAMES_ALL, ('a', "mkdir ig; echo AGENT1 >ig/z; echo AGENT2 >>F"), ('a', "rm -r og")]),
    ];
    check_all(stories.map(|(name, story)| (name.to_owned(), story)), |story| {
        let repo = told_from(IGNORED, story);
        repo.undo();
        repo.sh("rm -r ig");
        repo.redo();
        assert_eq!(repo.sh("cat ig/z | grep -o AGENT1; grep -o AGENT2 F").trim(), "AGENT1\nAGENT2");
        repo.undo();
        assert_eq!(repo.sh("grep -c AGENT F || :").trim(), "0");
        repo.assert_sound();
    });
}

/// Of what calls have moved, the user saves in it, there or back in its place.
#[test]
fn what_the_user_saves_in_what_calls_moved_there_and_back_stays() {
    let later = ('a', "echo AGENT1 >>F");
    let stories: [(&str, Story<'_>, &str); 8] = [
        ("there", &[RENAMES, ('u', "echo USER4 >>s.txt"), ('a', "mv s.txt s.ig"), later], "echo USER4 >>s.ig"),
        (
            "as they take it back",
            &[RENAMES, ('u', "sleep .02; mv s.txt s.ig; echo USER4 >>s.ig; sleep .02"), later],
            "echo USER4 >>s.ig",
        ),
        ("in a directory", &[RENAMES_ALL, ('u', "echo USER4 >>og/z"), ('a', "mv og ig"), later], "echo USER4 >>ig/z"),
        (
            "anew, in a directory",
            &[RENAMES_ALL, ('u', "sed -i s/USER3/USER4/ og/sub/y"), ('a', "mv og ig"), later],
            "sed -i s/USER3/USER4/ ig/sub/y",
        ),
        (
            "as they take a directory back",
            &[RENAMES_ALL, ('u', "sleep .02; mv og ig; echo USER4 >>ig/z; sleep .02"), later],
            "echo USER4 >>ig/z",
        ),
        (
            "there, and a copy comes back",
            &[RENAMES, ('u', "echo USER4 >>s.txt"), ('a', "cp s.txt s.ig; rm s.txt"), later],
            "echo USER4 >>s.ig",
        ),
        (
            "in a directory of which each comes back",
            &[RENAMES_ALL, ('u', "echo USER4 >>og/z"), ('a', "mkdir ig; mv og/* ig/; rmdir og"), later],
            "echo USER4 >>ig/z",
        ),
        (
            "beside what a call changed in it",
            &[RENAMES_ALL, ('a', "echo AGENT1 >>og/sub/y"), ('u', "echo USER4 >>og/z"), ('a', "mv og ig"), later],
            "echo USER4 >>ig/z",
        ),
    ];
    let stories = stories.map(|(name, story, saves)| (name.to_owned(), (story, saves)));
    check_all(stories, |(story, saves)| {
        let expected = told_from(IGNORED, &[('u', saves)]).files();
        goes_there_and_back(&told_from(IGNORED, story), &expected);
    });
    // In what a call has changed, too, undo would take it away.
    let both = ('u', "sleep .02; echo USER4 >>og/z; sleep .02");
    let story = [RENAMES_ALL, ('a', "sed -i s/USER2/AGENT1/ og/z"), both, ('a', "mv og ig"), later];
    let repo = told_from(IGNORED, &story);
    repo.refuses(&["undo"], "conflict");
    assert_eq!(repo.sh("grep -c 'USER4' ig/z").trim(), "1");
    let both = ('u', "sleep .02; echo USER4 >>w.ig; sleep .02");
    let repo = told_from(IGNORED, &[RENAMES, ('a', "echo AGENT1 >>s.txt"), ('a', "mv s.txt w.ig"), both, later]);
    let output = repo.oxundo(["undo"]);
    output.success();
    output.warns("goes back as");
    assert_eq!(repo.sh("grep -c USER4 s.ig; ls w.ig 2>/dev/null || :").trim(), "1");
}

/// An ignored file that a call moves into the place of another one, and a later one writes anew.
#[test]
fn what_calls_wrote_anew_in_the_place_of_what_they_moved_is_freed_by_no_gc() {
    for takes in [('a', "mv t.ig s.ig"), ('u', "sleep .02; mv t.ig s.ig; sleep .02"), ('a', "cp -p t.ig s.ig; rm t.ig")]
    {
        let begun = format!("{IGNORED}; seq 50 >t.ig; echo USER5 >>t.ig");
        let repo = told_from(&begun, &[RENAMES, takes, ('a', "sed -i 3s/.*/AGENT1/ s.ig")]);
        let output = repo.oxundo(["undo"]);
        output.success();
        output.warns("'t.ig' was not captured before turn 1, and 's.ig' may be a copy of it");
        for _ in 0..3 {
            repo.agent("echo more >>a");
        }
        repo.sh("oxundo gc --keep 0s; git gc -q --prune=now");
        let found = repo.sh("cat $(find . -type f ! -path './.git/objects/*') | grep -c '^USER5$' || true");
        assert_ne!(found.trim(), "0", "what the user wrote is somewhere still");
    }
}

/// A directory that a call has moved has more in it than is looked at of what has its own name.
#[test]
fn of_many_files_that_a_call_moved_and_another_one_deleted_all_come_back() {
    let begun = "mkdir -p node_modules/p; for i in $(seq 2100); do echo USER$i >node_modules/p/$i; done";
    let repo = told_from(begun, &[('a', "mv node_modules vendor"), ('a', "rm -r vendor")]);
    repo.undo();
    assert_eq!(repo.sh("cat node_modules/p/* | sort | uniq | wc -l").trim(), "2100");
}

#[test]
fn a_directory_with_more_files_than_are_looked_at_goes_back_where_a_call_moved_it() {
    let begun = "mkdir many; for i in $(seq 250); do echo USER$i >many/$i; done";
    let puts = ('u', "sleep .02; echo USER251 >many/251; sleep .02");
    let stories: [(&str, Story<'_>); 3] = [
        ("as it is", &[('a', "mv many more; echo AGENT1 >>F")]),
        ("and a file of it changed", &[('a', "mv many more"), ('a', "echo AGENT1 >>more/1")]),
        ("with what the user puts there", &[BESIDE, puts, ('a', "mv many more")]),
    ];
    check_all(stories.map(|(name, story)| (name.to_owned(), story)), |story| {
        let theirs: Vec<_> = story.iter().filter(|(who, _)| *who == 'u').copied().collect();
        let repo = told_from(begun, story);
        let after = repo.state();
        repo.undo();
        assert_eq!(repo.files(), told_from(begun, &theirs).files());
        repo.redo();
        repo.state().assert_is(&after, "redo");
    });
}

/// A file over the limits in a directory that a call moves, and out of that.
#[test]
fn what_is_too_large_is_followed_out_of_a_directory_that_a_call_moved() {
    let begun = "git config oxundo.maxFileSize 1k; mkdir -p node_modules/b; seq 2000 >node_modules/b/o; echo USER1 >>node_modules/b/o; \
        echo USER2 >node_modules/y";
    let moves = ('a', "mv node_modules og");
    let stories: [(&str, Story<'_>); 4] = [
        ("out", &[moves, ('a', "mv og/b/o n")]),
        ("out, and on", &[moves, ('a', "mv og/b/o n"), ('a', "mv n n2; echo AGENT1 >>F")]),
        ("with its directory", &[moves, ('a', "mv og/y og/w; mv og/b og2")]),
        ("within it", &[moves, ('a', "mv og/b/o og/w")]),
    ];
    let before = told_from(begun, &[]).files();
    check_all(stories.map(|(name, story)| (name.to_owned(), story)), |story| {
        let repo = told_from(begun, story);
        let after = repo.state();
        repo.undo();
        assert_eq!(repo.files(), before);
        repo.redo();
        repo.state().assert_is(&after, "redo");
        repo.undo();
        for _ in 0..3 {
            repo.agent("echo more >>a");
        }
        repo.oxundo(["gc", "--keep", "0s"]).success();
        assert_eq!(repo.sh("tail -1 node_modules/b/o").trim(), "USER1");
    });
}

#[test]
fn what_a_call_moved_that_is_too_large_and_changed_goes_back_with_a_word() {
    let begun = "git config oxundo.maxFileSize 1k; echo '*.ig' >.gitignore; seq 2000 >o.ig; echo USER1 >>o.ig";
    let said = "'o.ig' goes back as turn 1 left it: it was not captured, and was changed meanwhile";
    let saves = ('u', "sleep .02; sed -i 5s/.*/USER2/ o.ig; sleep .02");
    for (to, change) in [("n", "sed -i 3s/.*/AGENT1/ n"), ("n", "echo AGENT1 >>n"), ("n.ig", "echo AGENT1 >>n.ig")] {
        let (moves, changes) = (format!("mv o.ig {to}"), format!("{to} {change}"));
        for story in [
            &[('a', &*moves), ('a', change)][..],
            &[('a', &*moves), ('e', &*changes)],
            &[saves, ('a', &*moves), ('a', change)],
        ] {
            let repo = told_from(begun, story);
            for args in [&["undo", "--dry-run"][..], &["undo"]] {
                let output = repo.oxundo(args);
                output.success();
                output.warns(said);
            }
            assert_eq!(repo.sh("grep -c USER1 o.ig").trim(), "1");
        }
        let repo = told_from(begun, &[('a', &*moves), ('a', "echo AGENT1 >>F")]);
        assert!(!repo.oxundo(["undo"]).err().contains("goes back"), "it is as it was");
    }
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
