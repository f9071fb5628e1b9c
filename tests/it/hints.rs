//! Every hint is a line that works as it stands: each refusal is provoked, each line of its hints is typed, and what the user
//! wanted is reached within two of them.

mod cases;

use crate::sandbox::{Mode, Output, Sandbox, announce, check_all};
use cases::{CASES, Case, ELSEWHERE};
use std::collections::BTreeSet;

/// What a user must fill in, since nobody else knows it, and something that somebody might.
const FILLED_IN: [(&str, &str); 4] =
    [("COMMAND", "true"), ("NAME", "A"), ("ADDRESS", "a@example.com"), ("DIRECTORY", "../home/stores")];

/// With what a line begins.
const PROGRAMS: [&str; 11] =
    ["oxundo", "GIT_LITERAL_PATHSPECS=0", "git", "rm", "mv", "cd", "unset", "export", "chmod", "chattr", "mkdir"];

/// The lines in a hint that are to be typed, in their order: in single quotes, or in backticks where they have such themselves.
fn lines(hint: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = hint;
    let begins = |text: &str| PROGRAMS.iter().any(|name| text.strip_prefix(name).is_some_and(|it| it.starts_with(' ')));
    let quotes = ['\'', '`'];
    while let Some((at, quote)) = rest.match_indices(quotes).find(|(at, _)| begins(&rest[at + 1..])) {
        let line = &rest[at + 1..];
        let Some(end) = line.find(quote) else { break };
        lines.push(line[..end].to_owned());
        rest = &line[end + 1..];
    }
    lines
}

/// Types a line.
fn typed(repo: &Sandbox, line: &str) -> Output {
    let path = std::env::var("PATH").unwrap_or_default();
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_oxundo"))
        .parent()
        .expect("it is in a directory")
        .display()
        .to_string();
    Output::of(repo.shell(line).env("PATH", format!("{bin}:{path}")))
}

/// What scripts have besides.
const WORDS: &str = r#"own() { echo own >own; git add own; git commit -qm own; }
    turn() { oxundo -q run -- sh -ec "$1"; }
    ghost() { oxundo -q run --ghost -- sh -ec "$1"; }
    tell() {
        printf '{"hook_event_name":"%s","session_id":"%s","prompt":"p"%s}' "$2" "$1" "$3" >../home/payload
        setsid -f sh -c 'oxundo hook claude <../home/payload; touch ../home/told'
        until test -e ../home/told; do sleep 0.05; done; rm ../home/told
    }
    begins() { tell "$1" PreToolUse ',"tool_name":"Bash","tool_use_id":"'$1'","tool_input":{"command":"x"}'; }
    ends() { tell "$1" PostToolUse ',"tool_name":"Bash","tool_use_id":"'$1'","tool_input":{"command":"x"}'; }
    # The clock by which files get their times goes on.
    ticks() { touch ../tick; until touch ../tock && [ ../tock -nt ../tick ]; do :; done; }
    identify() { git config user.name A; git config user.email a@example.com; }
    "#;

/// Two turns, each with a file of its own.
const TWO: &str = "oxundo -q run -- sh -c 'echo 1 >one; echo 1 >f'; oxundo -q run -- sh -c 'echo 2 >two'";

/// Where a user is who follows hints, and in which environment.
struct User<'c> {
    case: &'c Case,
    repo: Sandbox,
    /// The line that was refused.
    line: String,
    /// What stands before every line.
    place: String,
}

impl<'c> User<'c> {
    /// Somebody to whom it happens; none where this machine cannot make it happen.
    fn new(case: &'c Case, base: &Sandbox) -> Option<Self> {
        let copy = base.copy();
        let repo = if case.by_root.is_some() { copy.clone().unprivileged() } else { copy.clone() };
        let mut done = typed(&repo, &format!("{WORDS}{}", case.before));
        if let Some(script) = case.by_root.filter(|script| done.code == 0 && !script.is_empty()) {
            done = if rustix::process::geteuid().is_root() { typed(&copy, script) } else { return None };
        }
        if done.code == cases::SKIPPED {
            return None;
        }
        done.success();
        Some(Self { case, repo, line: case.line.to_owned(), place: case.place.to_owned() })
    }

    fn types(&mut self, line: &str) -> Output {
        let output = typed(&self.repo, &format!("{}{line}", self.place));
        if output.code == 0 && ["cd ", "unset ", "export "].iter().any(|word| line.starts_with(word)) {
            self.place.push_str(&format!("{line}; "));
        }
        output
    }

    /// Does what a hint says in words.
    fn acts(&self) {
        if self.case.deed.is_empty() {
            return;
        }
        let who = if self.case.by_root.is_some() { self.repo.as_root() } else { self.repo.clone() };
        typed(&who, &format!("{WORDS}{}", self.case.deed)).success();
    }

    fn has_it(&self) -> bool {
        self.case.wanted.is_none_or(|wanted| typed(&self.repo, wanted).code == 0)
    }

    /// What is refused now, and the hints.
    fn refused(&mut self) -> (Output, Vec<String>) {
        let line = self.line.clone();
        let refused = self.types(&line);
        assert_ne!(refused.code, 0, "it is refused: {refused:?}");
        let hints: Vec<String> =
            refused.err().lines().filter_map(|told| told.strip_prefix("hint: ")).map(str::to_owned).collect();
        assert!(!hints.is_empty(), "there is a hint: {refused:?}");
        (refused, hints)
    }

    /// Types the lines of a hint, and what these lead to; says whether that is refused.
    fn follows(&mut self, hint: &str, is_last: bool) -> bool {
        let mut all = lines(hint);
        let is_look = |line: &String| *line == self.line || ["git status", "oxundo doctor"].contains(&line.as_str());
        if all.iter().all(is_look) {
            self.acts();
        }
        for line in &mut all {
            for (word, value) in FILLED_IN {
                *line = line.replace(word, value);
            }
            let is_name = |word: &str| word.len() > 1 && word.bytes().all(|c| c.is_ascii_uppercase() || c == b'.');
            let words = line.split([' ', '=', '\'']).filter(|word| !["HEAD", "--"].contains(word));
            let names: Vec<_> = words.filter(|word| is_name(word.trim_matches('.'))).collect();
            assert!(names.is_empty(), "it can be typed as it stands: {hint}");
        }
        let mut refused = None;
        for line in all.clone() {
            let is_again = line == self.line;
            assert!(!is_again || all.len() > 1 || !self.case.deed.is_empty(), "it leads in a circle: {hint}");
            // On a terminal it asks.
            let line = if line == "oxundo init" { "oxundo init --all".to_owned() } else { line };
            // Another user is to type it.
            let (of_others, is_oxundo) =
                (hint.contains("owner") || hint.contains("superuser"), line.starts_with("oxundo"));
            let output = if of_others && !is_oxundo { typed(&self.repo.as_root(), &line) } else { self.types(&line) };
            assert_ne!(output.code, 2, "'{line}' is a line: {output:?}");
            let works = [0, 4].contains(&output.code) || !is_last || self.case.wanted.is_none();
            assert!(works, "'{line}' works: {output:?}");
            refused = (output.code != 0 && is_oxundo).then_some(line.clone());
            // doctor says how to mend what it found.
            if line == "oxundo doctor" {
                for mend in output.out().lines().filter_map(|told| told.trim_start().strip_prefix("mend: ")) {
                    self.types(mend);
                }
                refused = None;
            }
        }
        if let Some(line) = refused.clone() {
            self.line = line;
        }
        refused.is_some()
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        // What nothing may change would stay behind.
        if self.case.before.contains("chattr") {
            let _ = typed(&self.repo, "chattr -R -i . 2>/dev/null || true");
        }
    }
}

/// Whether a message is one of this row of the table.
fn is_of(message: &str, row: &str) -> bool {
    let mut parts = row.split('…');
    let Some(mut rest) = parts.next().and_then(|first| message.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let found = if parts.peek().is_none() {
            rest.ends_with(part).then(|| rest.len() - part.len())
        } else {
            rest.find(part)
        };
        let Some(at) = found else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

/// Follows each hint of a refusal, and each of those that it leads to; says whether one of them leads to what was wanted, or the
/// line that was refused first when it is typed again.
fn leads_on(case: &Case, base: &Sandbox, way: &[usize]) -> Option<bool> {
    let come = || {
        let mut user = User::new(case, base)?;
        for hint in way {
            let (_, hints) = user.refused();
            user.follows(hints.get(*hint).expect("it is refused as before"), false);
        }
        Some(user)
    };
    let (refused, hints) = come()?.refused();
    if way.is_empty() {
        let message = refused.err();
        let message = message.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or_default().to_owned();
        assert!(is_of(&message, case.message), "it says '{}': {refused:?}", case.message);
    }
    let (is_last, mut is_reached) = (!way.is_empty(), case.wanted.is_none());
    let has_line = hints.iter().any(|hint| !lines(hint).is_empty());
    assert!(has_line || !case.deed.is_empty(), "there is a line to type: {refused:?}");
    for at in 0..hints.len() {
        let mut user = come()?;
        // Paths in it are those of this repository.
        let (_, hints) = user.refused();
        let is_refused = user.follows(hints.get(at).expect("it is refused as before"), is_last);
        if user.has_it() {
            is_reached = true;
        } else if !is_refused {
            user.types(case.line);
            is_reached |= user.has_it();
        } else if !is_last {
            is_reached |= leads_on(case, base, &[way, &[at]].concat())?;
        }
    }
    Some(is_reached)
}

#[test]
fn each_hint_can_be_typed_and_leads_to_what_was_wanted() {
    let repo = Sandbox::new();
    typed(&repo, TWO).success();
    let cases = CASES.iter().map(|case| (format!("{} | {}", case.before, case.line), case));
    check_all(cases.collect::<Vec<_>>(), |case| match leads_on(case, &repo, &[]) {
        None => announce(&format!("SKIPPED, NOTHING IS PROVED: '{}' cannot be made to happen here", case.message)),
        Some(is_reached) => assert!(is_reached, "a hint leads to what was wanted"),
    });
}

/// The rows of docs/errors.md that are refusals, each with its code.
fn rows() -> Vec<(String, String)> {
    let table = include_str!("../../docs/errors.md").split_once("\n## Every message").expect("it is there").1;
    let table = table.split_once("\n## Warnings").expect("it is there").0;
    let sections = table.split("\n### ").skip(1);
    let rows = sections.flat_map(|section| {
        let (name, rest) = section.split_once('\n').unwrap_or((section, ""));
        let rows = rest.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once("` |")?.0));
        rows.map(|row| (name.to_owned(), row.to_owned())).collect::<Vec<_>>()
    });
    rows.collect()
}

#[test]
fn every_refusal_in_the_table_has_its_hints_typed_or_it_is_said_why_not() {
    let rows: BTreeSet<String> = rows().into_iter().map(|(_, row)| row).collect();
    assert!(rows.len() > 120, "the table is read");
    let typed: BTreeSet<String> = CASES.iter().map(|case| case.message.to_owned()).collect();
    let elsewhere: BTreeSet<String> = ELSEWHERE.iter().map(|(row, _)| (*row).to_owned()).collect();
    let unknown: Vec<_> = typed.union(&elsewhere).filter(|row| !rows.contains(*row)).collect();
    assert!(unknown.is_empty(), "these are in docs/errors.md: {unknown:#?}");
    let both: Vec<_> = typed.intersection(&elsewhere).collect();
    assert!(both.is_empty(), "these are typed here: {both:#?}");
    let missing: Vec<_> = rows.iter().filter(|row| !typed.contains(*row) && !elsewhere.contains(*row)).collect();
    assert!(missing.is_empty(), "nobody types the hints of these: {missing:#?}");
}

#[test]
fn a_hint_has_the_line_that_was_typed() {
    let repo = Sandbox::new();
    repo.turn(Mode::Ghost, "echo 1 >'a b'");
    repo.write("a b", "mine\n");
    let told = typed(&repo, "oxundo -C . undo --edits merge --to 0").err();
    assert!(told.contains("run `git -C . stash push -u -- ':/a b'` to put these changes away, then 'oxundo -C . undo --edits merge --to 0' again"), "{told}");
    assert!(told.contains("or run 'oxundo -C . undo --edits=overwrite --to 0', which keeps"), "{told}");
}

/// A line that only looks or is refused, and the line of a hint that does the rest in the same manner.
const MANNERS: &[(&str, &str)] = &[
    ("undo --dry-run -- a", "oxundo undo --dry-run --only 1 -- a"),
    ("undo -p -- a", "oxundo undo -p --only 1 -- a"),
    ("undo --plan --edits merge -- a", "oxundo undo --plan --edits=merge --only 1 -- a"),
    ("undo --dry-run 4", "oxundo undo --dry-run 2"),
    ("undo --conversation -q 4", "oxundo undo --conversation -q 2"),
    ("--color never undo 4", "oxundo undo --color=never 2"),
    ("undo --json 4", "oxundo undo --json 2"),
    ("undo 4 --json", "oxundo log --json"),
    ("undo --json=1", "oxundo undo --json"),
    ("undo --dry-run 4", "oxundo log"),
    ("undo --dry-run 0", "oxundo undo --dry-run 2"),
    ("undo --dry-run @", "oxundo undo --dry-run"),
    ("undo --dry-run HEAD~1", "oxundo undo --dry-run --to HEAD~1"),
    ("undo --dry-run all", "oxundo undo --dry-run --to 0"),
    ("undo --dry-run 1..2", "oxundo undo --dry-run --only 1..2"),
    ("undo --dry-run 1-2", "oxundo undo --dry-run --only 1..2"),
    ("undo --dry-run -2", "oxundo undo --dry-run 2"),
    ("undo --dry-run turn 2", "oxundo undo --dry-run --only 2"),
    ("undo --dry-run --only 2..1", "oxundo undo --dry-run --only 1..2"),
    ("redo --plan --to 1", "oxundo undo --plan --to 1"),
    ("restore --dry-run a", "oxundo restore --dry-run @ -- a"),
    ("undo --edits=merge --to 2", "oxundo log"),
    ("undo --dry-run --to cp", "oxundo restore --dry-run --exact cp"),
    // What comes first has to be done.
    ("squash --dry-run 1..1", "oxundo undo --to 1"),
    ("squash --dry-run 1..1", "oxundo squash --dry-run 1..2"),
    ("init --mcp", "oxundo init --mcp --all"),
    ("branch 1 other", "oxundo branch other 1"),
    ("undo gone/a.rs", "oxundo undo -- gone/a.rs"),
    ("undo 1 a --dry-run", "oxundo undo 1 --dry-run -- a"),
    ("undo 1 a --edits merge b", "oxundo undo 1 --edits merge -- a b"),
    ("log a -n 3", "oxundo log -n 3 -- a"),
];

#[test]
fn a_hint_does_it_in_the_manner_of_the_line_that_was_typed() {
    let repo = Sandbox::new();
    typed(
        &repo,
        "oxundo -q run -- sh -c 'echo 1 >a'; oxundo -q run -- sh -c 'echo 2 >b'; oxundo -q checkpoint cp; echo mine >a",
    )
    .success();
    let before = repo.everything();
    for (line, hinted) in MANNERS {
        let output = repo.oxundo(line.split(' '));
        assert_ne!(output.code, 0, "{line}: {output:?}");
        let told = output.err() + &output.out();
        assert!(lines(&told).iter().any(|line| line == hinted), "{line} leads to {hinted}: {told}");
    }
    repo.everything().assert_is(&before, "nothing is changed");
}

#[test]
fn each_line_of_a_hint_is_for_the_directory_that_was_named() {
    let programs = ["oxundo -C repo", "git -C repo oxundo"];
    for (name, program) in ["a", "!a", "^a", "-a", "_a", ".a"].into_iter().zip(programs.into_iter().cycle()) {
        let repo = Sandbox::new();
        repo.turn(Mode::Ghost, &format!("echo 1 >'./{name}'; echo 1 >beside"));
        repo.write(name, "mine\n").write("beside", "mine too\n");
        repo.write("README.txt", "not in the way\n");
        let away = |line: &str| typed(&repo, &format!("cd ..; {line}"));
        let told = away(&format!("{program} undo")).err();
        assert_eq!(lines(&told).iter().filter(|line| line.contains(" -C repo ")).count(), 4, "{told}");
        for line in lines(&told).iter().filter(|line| line.ends_with("diff") || line.contains("stash push")) {
            away(line).success();
        }
        repo.assert_file("README.txt", "not in the way\n", "what is in nobody's way stays");
        // Where both go somewhere, the hints have all of the way.
        repo.sh("mkdir -p sub");
        let told = away("git -C repo oxundo -C sub undo x").err();
        assert!(told.contains("'oxundo -C repo/sub undo"), "{told}");
        away("oxundo -C repo undo").success();
        repo.assert_absent(name, "it is undone");
    }
}

#[test]
fn a_directory_that_needs_quotes_is_in_the_lines_too() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >one");
    let away = |line: &str| {
        typed(&repo, &format!("cd ..; mv repo 'my repo'; code=0; {line} || code=$?; mv 'my repo' repo; exit $code"))
    };
    for (line, hinted) in [
        ("oxundo -C 'my repo' undo @", "oxundo -C 'my repo' undo"),
        ("oxundo undo --dry-run @ -C 'my repo'", "oxundo -C 'my repo' undo --dry-run"),
        ("oxundo -C 'my repo' undo all", "oxundo -C 'my repo' undo --to 0"),
        ("oxundo -C 'my repo' undo 9", "oxundo -C 'my repo' undo"),
        ("oxundo -C 'my repo' claude -p x", "oxundo -C 'my repo' run -- claude -p x"),
    ] {
        let told = away(line).err();
        assert!(lines(&told).iter().any(|line| line == hinted), "{line} leads to {hinted}: {told}");
    }
    away("oxundo -C 'my repo' undo").success();
    repo.assert_absent("one", "it is undone");
}

#[test]
fn a_worktree_that_has_the_branch_is_freed_by_the_hint() {
    let repo = Sandbox::new();
    repo.git(["branch", "o"]);
    repo.agent("echo 1 >one; git add one; git commit -qm one; git branch -f o");
    repo.git(["worktree", "add", "-q", "../it is", "o"]);
    repo.refuses(&["undo"], "branch");
    let hints = typed(&repo, "oxundo undo").err();
    for line in lines(&hints) {
        typed(&repo, &line).success();
    }
    repo.assert_absent("one", "it is undone");
}
