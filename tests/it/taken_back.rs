//! What the user takes back of an agent's in the middle of a turn, and brings back; and what they save in what it has made: each
//! line is whose token it has.

use crate::copied::{committed, there, told_from};
use crate::sandbox::check_all;

/// Whether undo is refused, as it would take something of the user's with it, or has nothing to take out; or the tokens that it
/// leaves.
#[derive(Clone, Copy)]
pub(super) enum Undo {
    Refused,
    Nothing,
    Leaves(&'static str),
}
use Undo::{Leaves, Nothing, Refused};

/// A story; what of it is committed as the agent's, what `git status` says then, and what undo does.
pub(super) struct Case {
    story: &'static [(char, &'static str)],
    committed: &'static str,
    status: &'static str,
    undo: Undo,
}

pub(super) const fn case(
    story: &'static [(char, &'static str)],
    committed: &'static str,
    status: &'static str,
    undo: Undo,
) -> Case {
    Case { story, committed, status, undo }
}

fn check<const N: usize>(cases: [(&str, Case); N]) {
    check_from("true", cases);
}

/// Where the user has done this before.
pub(super) fn check_from<const N: usize>(begun: &str, cases: [(&str, Case); N]) {
    check_all(cases.map(|(name, case)| (name.to_owned(), case)), |case| {
        let repo = told_from(begun, case.story);
        assert_eq!(committed(&repo), case.committed, "the agent's, and no line of the user's");
        let mut status: Vec<_> = repo.git(["status", "--porcelain"]).lines().map(str::to_owned).collect();
        status.sort_unstable();
        assert_eq!(status.join("\n"), case.status);
        let (all, after) = (there(&repo), repo.state());
        match case.undo {
            Refused => {
                repo.refuses(&["undo"], "conflict");
                assert_eq!(there(&repo), all, "it changes nothing");
            }
            Nothing => drop(repo.refuses(&["undo"], "nothing")),
            Leaves(tokens) => {
                repo.undo();
                assert_eq!(there(&repo), tokens, "undo takes out all of the agent's, and nothing else");
                repo.redo();
                repo.state().assert_is(&after, "redo");
            }
        }
    });
}

const MAKES: (char, &str) = ('a', "seq -f 'line %g' 60 >n");
const SAVES: (char, &str) = ('u', "sed -i 's/^line 50$/USER1/' n");
const GOES_ON: (char, &str) = ('e', "n sed -i 's/^line 10$/AGENT1/' n");

#[test]
fn what_the_user_saves_in_a_file_that_the_agent_has_made_and_goes_on_with_is_in_no_commit_of_its() {
    check([
        ("an edit", case(&[MAKES, SAVES, GOES_ON], "AGENT1 ", " M n", Refused)),
        ("a shell", case(&[MAKES, SAVES, ('a', "sed -i 's/^line 10$/AGENT1/' n")], "AGENT1 ", " M n", Refused)),
        (
            "once more",
            case(
                &[
                    MAKES,
                    SAVES,
                    GOES_ON,
                    ('u', "sed -i 's/^line 40$/USER2/' n"),
                    ('e', "n sed -i 's/^line 20$/AGENT2/' n"),
                ],
                "AGENT1 AGENT2 ",
                " M n",
                Refused,
            ),
        ),
        (
            "it has committed it by then",
            case(
                &[('a', "seq -f 'line %g' 60 >n; git add n; git commit -qm own"), SAVES, GOES_ON],
                "AGENT1 ",
                " M n",
                Refused,
            ),
        ),
        (
            "under another name",
            case(
                &[MAKES, ('u', "mv n m; sed -i 's/^line 50$/USER1/' m"), ('e', "m sed -i 's/^line 10$/AGENT1/' m")],
                "AGENT1 ",
                " M m",
                Refused,
            ),
        ),
    ]);
}

const TELLS: (char, &str) = ('e', "F echo AGENT1 >>F");
const APPENDS: (char, &str) = ('e', "c echo AGENT2 >>c");
const ADDS: (char, &str) = ('u', "echo USER1 >>c");
const COMMITS: (char, &str) = ('u', "sed -i 's/^line 9$/USER9/' c; git commit -qm mine c");
const NEW: (char, &str) = ('u', "seq 30 >n; git add n; git commit -qm mine");

#[test]
fn what_the_user_adds_right_beside_a_line_of_the_agents_is_in_no_commit_of_its() {
    check([
        ("above it", case(&[TELLS, ADDS, APPENDS], "AGENT1 AGENT2 ", " M c", Leaves("USER1 "))),
        ("below it", case(&[TELLS, APPENDS, ADDS], "AGENT1 AGENT2 ", " M c", Refused)),
        (
            "below it, in a file that the user has committed meanwhile",
            case(&[TELLS, COMMITS, APPENDS, ADDS], "AGENT1 AGENT2 ", " M c", Refused),
        ),
        ("above it", case(&[TELLS, COMMITS, ADDS, APPENDS], "AGENT1 AGENT2 ", " M c", Leaves("USER1 USER9 "))),
        (
            "and had left something else uncommitted",
            case(
                &[TELLS, COMMITS, ('u', "sed -i 's/^line 20$/USER2/' c"), APPENDS, ADDS],
                "AGENT1 AGENT2 ",
                " M c",
                Refused,
            ),
        ),
        (
            "and had committed a part of it",
            case(
                &[
                    TELLS,
                    (
                        'u',
                        "sed -i 's/^line 9$/USER9/' c; git add c; sed -i 's/^line 20$/USER2/' c; git commit -qm mine",
                    ),
                    APPENDS,
                    ADDS,
                ],
                "AGENT1 AGENT2 ",
                " M c",
                Refused,
            ),
        ),
        (
            "and a call's line with it",
            case(
                &[TELLS, ('e', "c sed -i 's/^line 30$/AGENT3/' c"), COMMITS, APPENDS, ADDS],
                "AGENT1 AGENT2 ",
                " M c",
                Refused,
            ),
        ),
        (
            "in a file that the user has made and committed",
            case(&[TELLS, NEW, ('e', "n echo AGENT2 >>n"), ('u', "echo USER1 >>n")], "AGENT1 AGENT2 ", " M n", Refused),
        ),
        (
            "above it",
            case(
                &[TELLS, NEW, ('u', "echo USER1 >>n"), ('e', "n echo AGENT2 >>n")],
                "AGENT1 AGENT2 ",
                " M n",
                Leaves("USER1 "),
            ),
        ),
        (
            "in its place",
            case(
                &[TELLS, NEW, ('e', "n echo AGENT2 >>n"), ('u', "sed -i 's/AGENT2/USER1/' n")],
                "AGENT1 AGENT2 ",
                " M n",
                Refused,
            ),
        ),
        (
            "the user deletes it",
            case(&[TELLS, NEW, ('e', "n echo AGENT2 >>n"), ('u', "rm n")], "AGENT1 AGENT2 ", " D n", Refused),
        ),
    ]);
}

const EDITS: (char, &str) = ('e', "c sed -i 's/^line 23$/AGENT1/' c");
const ELSEWHERE: (char, &str) = ('e', "c sed -i 's/^line 50$/AGENT2/' c");
const BESIDE: (char, &str) = ('a', "echo AGENT2 >>a");

#[test]
fn what_the_user_puts_away_of_the_agents_and_brings_back_is_the_turns_still() {
    check([
        (
            "stashed",
            case(&[EDITS, ('u', "git stash -q"), BESIDE, ('u', "git stash pop -q")], "AGENT1 AGENT2 ", "", Leaves("")),
        ),
        (
            "with work of the user's in the file",
            case(
                &[EDITS, ('u', "sed -i 's/^line 53$/USER1/' c; git stash -q"), BESIDE, ('u', "git stash pop -q")],
                "AGENT1 AGENT2 ",
                " M c",
                Leaves("USER1 "),
            ),
        ),
        (
            "and in another one",
            case(
                &[EDITS, ('u', "echo USER1 >>F"), ('u', "git stash -q"), BESIDE, ('u', "git stash pop -q")],
                "AGENT1 AGENT2 ",
                " M F",
                Leaves("USER1 "),
            ),
        ),
        (
            "and the agent goes on in it meanwhile",
            case(
                &[
                    EDITS,
                    ('u', "cp c ../put; git checkout -q c"),
                    ('e', "c sed -i 's/^line 40$/AGENT2/' c"),
                    ('u', "sed -i 's/^line 23$/AGENT1/' c"),
                ],
                "AGENT1 AGENT2 ",
                "",
                Leaves(""),
            ),
        ),
        (
            "a part of it",
            case(
                &[
                    EDITS,
                    ('e', "c sed -i 's/^line 40$/AGENT2/' c"),
                    ('u', "cp c ../put; git checkout -q c"),
                    ('a', "echo AGENT3 >>a"),
                    ('u', "sed 's/^AGENT2$/line 40/' ../put >c"),
                ],
                "AGENT1 AGENT2 AGENT3 ",
                " M c",
                Leaves(""),
            ),
        ),
        (
            "a new file",
            case(
                &[('a', "echo AGENT1 >n"), ('u', "git stash -qu"), BESIDE, ('u', "git stash pop -q")],
                "AGENT1 AGENT2 ",
                "",
                Leaves(""),
            ),
        ),
        (
            "copied away",
            case(
                &[EDITS, ('u', "cp c ../put; git checkout -q c"), BESIDE, ('u', "cp ../put c")],
                "AGENT1 AGENT2 ",
                "",
                Leaves(""),
            ),
        ),
        (
            "a name too",
            case(
                &[
                    ('a', "git mv c G; sed -i 's/^line 23$/AGENT1/' G"),
                    ('u', "git stash -q"),
                    BESIDE,
                    ('u', "git stash pop -q"),
                ],
                "AGENT1 AGENT2 ",
                "",
                Leaves(""),
            ),
        ),
    ]);
}

#[test]
fn a_line_of_the_agents_that_the_user_corrects_is_committed_as_it_was_wherever_the_agent_goes_on() {
    check([
        (
            "in its place",
            case(&[EDITS, ('u', "sed -i 's/^AGENT1$/USER1/' c"), ELSEWHERE], "AGENT1 AGENT2 ", " M c", Refused),
        ),
        (
            "beside it",
            case(&[EDITS, ('u', "sed -i 's/^AGENT1$/AGENT1 USER1/' c"), ELSEWHERE], "AGENT1 AGENT2 ", " M c", Refused),
        ),
        (
            "anew",
            case(
                &[EDITS, ('u', "git checkout -q c; sed -i 's/^line 23$/USER1/' c"), ELSEWHERE],
                "AGENT1 AGENT2 ",
                " M c",
                Refused,
            ),
        ),
    ]);
}

#[test]
fn of_two_files_that_were_alike_the_one_that_goes_back_is_not_the_others_name() {
    check([
        (
            "the agent goes on in the other one",
            case(
                &[
                    ('e', "F sed -i 's/^line 9$/AGENT1/' F"),
                    ('u', "git checkout -q F; sed -i 's/^line 9$/USER1/' c"),
                    ('e', "c sed -i 's/^line 30$/AGENT2/' c"),
                ],
                "AGENT2 ",
                " M c",
                Leaves("USER1 "),
            ),
        ),
        (
            "and elsewhere",
            case(
                &[
                    ('e', "F sed -i 's/^line 9$/AGENT1/' F"),
                    ('u', "git checkout -q F; sed -i 's/^line 9$/USER1/' c"),
                    ('a', "echo AGENT2 >>a"),
                ],
                "AGENT2 ",
                " M c",
                Leaves("USER1 "),
            ),
        ),
    ]);
}

const FIRST: (char, &str) = ('e', "F sed -i 's/^line 3$/AGENT1/' F");
const SAVED_AWAY: (char, &str) = ('u', "mv F G; sed -i 's/^line 20$/USER1/' G");
const THERE: (char, &str) = ('e', "G sed -i 's/^line 30$/AGENT2/' G");
const AND_THIRD: (char, &str) = ('e', "H sed -i 's/^line 40$/AGENT3/' H");

#[test]
fn a_file_that_gets_its_name_back_with_what_both_did_meanwhile_has_each_as_theirs() {
    check([
        ("mv", case(&[FIRST, SAVED_AWAY, THERE, ('u', "mv G F")], "AGENT1 AGENT2 ", " M F", Leaves("USER1 "))),
        (
            "by a third one",
            case(
                &[FIRST, SAVED_AWAY, THERE, ('u', "mv G H"), AND_THIRD, ('u', "mv H F")],
                "AGENT1 AGENT2 AGENT3 ",
                " M F",
                Leaves("USER1 "),
            ),
        ),
        (
            "and a save in the same moment",
            case(
                &[FIRST, SAVED_AWAY, THERE, ('u', "sed -i 's/^line 45$/USER2/' G; mv G F")],
                "AGENT1 AGENT2 ",
                " M F",
                Leaves("USER1 USER2 "),
            ),
        ),
        (
            "which the agent goes on with",
            case(
                &[
                    FIRST,
                    SAVED_AWAY,
                    THERE,
                    ('u', "mv G F; sed -i 's/^line 45$/USER2/' F"),
                    ('e', "F sed -i 's/^line 10$/AGENT3/' F"),
                ],
                "AGENT1 AGENT2 AGENT3 ",
                " M F",
                Leaves("USER1 USER2 "),
            ),
        ),
        (
            "as a copy",
            case(
                &[FIRST, SAVED_AWAY, THERE, ('u', "cp G F; rm G; sed -i 's/^line 50$/USER2/' F")],
                "AGENT1 AGENT2 ",
                " M F",
                Leaves("USER1 USER2 "),
            ),
        ),
        (
            "twice, with one name looked at each time",
            case(
                &[
                    FIRST,
                    SAVED_AWAY,
                    THERE,
                    ('u', "mv G F"),
                    ('e', "F sed -i 's/^line 40$/AGENT3/' F"),
                    ('u', "mv F G"),
                    ('e', "G sed -i 's/^line 10$/AGENT4/' G"),
                    ('u', "mv G F"),
                ],
                "AGENT1 AGENT2 AGENT3 AGENT4 ",
                " M F",
                Leaves("USER1 "),
            ),
        ),
        (
            "after the agent had moved it on",
            case(&[FIRST, SAVED_AWAY, ('a', "mv G H"), ('u', "mv H F")], "AGENT1 ", " M F", Leaves("USER1 ")),
        ),
        (
            "after the agent had moved it on and written to it",
            case(
                &[FIRST, SAVED_AWAY, ('a', "mv G H; sed -i 's/^line 30$/AGENT2/' H"), ('u', "mv H F")],
                "AGENT1 AGENT2 ",
                " M F",
                Leaves("USER1 "),
            ),
        ),
        (
            "after the agent had given it another",
            case(
                &[FIRST, ('u', "sed -i 's/^line 20$/USER1/' F"), ('a', "mv F H"), AND_THIRD, ('u', "mv H F")],
                "AGENT1 AGENT3 ",
                " M F",
                Leaves("USER1 "),
            ),
        ),
    ]);
}

#[test]
fn a_name_that_the_user_gave_a_file_stays_where_they_go_on_from_it_or_the_agent_takes_it_away() {
    check([
        (
            "a third name",
            case(&[FIRST, ('u', "mv F G"), THERE, ('u', "mv G H"), AND_THIRD], "AGENT1 AGENT2 AGENT3 ", "", Leaves("")),
        ),
        (
            "a third name, and a save",
            case(
                &[FIRST, SAVED_AWAY, THERE, ('u', "mv G H"), AND_THIRD],
                "AGENT1 AGENT2 AGENT3 ",
                " M H",
                Leaves("USER1 "),
            ),
        ),
        (
            "the agent gives the old one back",
            case(
                &[
                    FIRST,
                    ('u', "mv F G"),
                    ('a', "mv G F"),
                    ('u', "sed -i 's/^line 40$/USER1/' F"),
                    ('e', "F sed -i 's/^line 50$/AGENT2/' F"),
                ],
                "AGENT1 AGENT2 ",
                " M F",
                Leaves("USER1 "),
            ),
        ),
    ]);
}

#[test]
fn a_line_of_the_users_that_has_no_place_without_the_agents_is_not_taken_back_unsaid() {
    // Which of two files that were alike is which nobody can tell.
    check([(
        "another file in the place of the agent's",
        case(
            &[
                ('a', "mv F G"),
                ('u', "mv G F; mv c G; sed -i 's/^line 9$/USER1/' G"),
                ('e', "G sed -i 's/^line 30$/AGENT2/' G"),
            ],
            "AGENT2 ",
            " D c\n M G",
            Refused,
        ),
    )]);
}

#[test]
fn what_everybody_writes_is_no_copy_of_the_users() {
    const AGENTS: (char, &str) = ('a', "printf 'AGENT1\\n}\\n\\n' >>F");
    check([
        ("deleted", case(&[('u', "printf '}\\n\\n' >u"), AGENTS, ('u', "rm u")], "AGENT1 ", "", Leaves(""))),
        (
            "taken back",
            case(&[('u', "printf '}\\n\\n' >>a"), AGENTS, ('u', "git checkout -q a")], "AGENT1 ", "", Leaves("")),
        ),
        (
            "copied",
            case(
                &[('u', "echo USER1 >u"), ('a', "echo AGENT1 >>F; cat u >>F"), ('u', "rm u")],
                "AGENT1 USER1 ",
                "",
                Refused,
            ),
        ),
    ]);
}
