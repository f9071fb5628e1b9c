//! Every hint is a line that works as it stands: each refusal is provoked, each line of its hints is typed, and what the user
//! wanted is reached within two of them.

use crate::sandbox::{Mode, Output, Sandbox, check_all};

/// What a user must fill in: nobody else knows it.
const FILLED_IN: [&str; 3] = ["COMMAND", "NAME", "ADDRESS"];

/// The lines in a hint that are to be typed, in their order.
fn lines(hint: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = hint;
    while let Some(at) = ["'oxundo ", "'git ", "`oxundo "].iter().filter_map(|start| rest.find(start)).min() {
        let quote = if rest[at..].starts_with('`') { '`' } else { '\'' };
        let line = &rest[at + 1..];
        // It ends where the words in it that are in quotes are closed.
        let is_end = |end: &usize| {
            let is_open = quote == '\'' && line[..*end].matches('\'').count() % 2 == 1;
            !is_open && !line[end + 1..].starts_with(|next: char| next.is_alphanumeric() || ":/".contains(next))
        };
        let Some(end) = line.match_indices(quote).map(|(end, _)| end).find(is_end) else { break };
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

struct Case {
    /// What the user types.
    line: &'static str,
    /// What was before, by a shell that has oxundo.
    before: &'static str,
    /// Says whether the user has what they wanted; none where it is not to be had.
    wanted: Option<&'static str>,
}

/// Types each hint of a refusal; says whether one of them, or the line itself again after it, leads to what was wanted.
fn leads_on(repo: &Sandbox, case: &Case, line: &str, left: usize) -> bool {
    let refused = typed(repo, line);
    assert_ne!(refused.code, 0, "it is refused: {refused:?}");
    let hints: Vec<String> =
        refused.err().lines().filter_map(|told| told.strip_prefix("hint: ")).map(str::to_owned).collect();
    assert!(!hints.is_empty(), "there is a hint: {refused:?}");
    let reaches = |repo: &Sandbox| case.wanted.is_none_or(|wanted| typed(repo, wanted).code == 0);
    let mut is_reached = case.wanted.is_none();
    for hint in hints {
        let all = lines(&hint);
        if all.iter().any(|line| FILLED_IN.iter().any(|word| line.contains(word))) {
            continue;
        }
        assert!(
            !all.iter().any(|line| line
                .split(' ')
                .any(|word| word.len() > 2 && word.bytes().all(|c| c.is_ascii_uppercase() || c == b'.'))),
            "it can be typed as it stands: {hint}"
        );
        let then = repo.copy();
        let mut last = None;
        for line in &all {
            assert!(all.len() > 1 || line != case.line, "it leads in a circle: {hint}");
            let output = typed(&then, line);
            assert_ne!(output.code, 2, "'{line}' is a line: {output:?}");
            assert!([0, 4].contains(&output.code) || left > 0 || case.wanted.is_none(), "'{line}' works: {output:?}");
            last = Some((line.clone(), output.code));
        }
        is_reached |= reaches(&then);
        if let Some((line, code)) = last
            && !is_reached
            && left > 0
        {
            is_reached |= if code == 0 {
                typed(&then, case.line).code == 0 && reaches(&then)
            } else {
                leads_on(&then, case, &line, left - 1)
            };
        }
    }
    is_reached
}

/// Two turns, each with a file of its own.
const TWO: &str = "oxundo -q run -- sh -c 'echo 1 >one; echo 1 >f'; oxundo -q run -- sh -c 'echo 2 >two'";

const fn case(before: &'static str, line: &'static str, wanted: &'static str) -> Case {
    Case { line, before, wanted: Some(wanted) }
}

#[test]
fn each_hint_can_be_typed_and_leads_to_what_was_wanted() {
    let own = "echo own >own; git add own; git commit -qm own";
    let cases = [
        // conflict
        case("echo mine >f", "oxundo undo --to 0", "! test -e one && ! test -e f"),
        case("echo mine >f", "oxundo undo --only 1", "! test -e one && test -e two"),
        case("echo mine >f; git commit -qam mine", "oxundo undo --only 1 --edits=merge", "! test -e f || grep 0 f"),
        case(
            "oxundo -q run --ghost -- sh -c 'echo g >f'; oxundo -q undo; echo m >f; git commit -qam m",
            "oxundo redo",
            "grep g f",
        ),
        // published, merge and foreign
        case(
            "git init -q --bare ../up; git push -q ../up main; git remote add up ../up; git fetch -q up",
            "oxundo undo",
            "! test -e two",
        ),
        case("OWN", "oxundo undo --steps 2 --edits=refuse", "! test -e one && ! test -e two"),
        case("git switch -qc o HEAD~1; OWN; git merge -q --no-edit main", "oxundo undo", "! test -e two"),
        case(
            "git commit -qa --amend -C HEAD --allow-empty; echo x >two; git commit -qa --amend --no-edit",
            "oxundo undo --edits=overwrite",
            "! test -e two",
        ),
        case("oxundo -q undo; OWN", "oxundo redo", "test -e two"),
        case(
            "oxundo -q undo; echo other >>README.txt; git commit -q --amend -am other",
            "oxundo redo --to 2",
            "test -e two",
        ),
        case("OWN", "oxundo restore --exact 1", "! test -e two || test -e one"),
        // branch
        case("git switch -q --orphan o; OWN", "oxundo undo", "! test -e two"),
        case(
            "oxundo -q run -- git switch -qc theirs; git switch -q main",
            "oxundo undo",
            "! git rev-parse -q --verify theirs",
        ),
        case("oxundo -q undo; oxundo -q run -- sh -c 'echo 3 >three'", "oxundo undo --to 2", "test -e two"),
        Case {
            line: "oxundo undo --only 2",
            before: "oxundo -q undo; oxundo -q run -- sh -c 'echo 3 >three'",
            wanted: None,
        },
        case(
            "git branch side HEAD~1; oxundo -q run -- sh -c 'git branch -f side; echo 3 >three'; git branch -f side HEAD~3",
            "oxundo undo",
            "! test -e three",
        ),
        case(
            "oxundo -q run -- git switch -qc theirs; OWN; git switch -q main",
            "oxundo restore --exact 3",
            "git rev-parse --abbrev-ref HEAD | grep theirs",
        ),
        case("", "oxundo branch main 1", "! test -e two"),
        case("OWN; oxundo -q run -- sh -c 'echo 3 >three'; git reset -q --hard HEAD~2", "oxundo redo", "test -e three"),
        // in_progress
        case(
            "git switch -qc o HEAD~1; echo x >two; git add two; git commit -qm x; git switch -q main; git merge -q o || true",
            "oxundo undo",
            "! test -e two",
        ),
        case("git bisect start -q", "oxundo undo", "! test -e two"),
        // nothing
        case("", "oxundo undo 5", "! test -e one"),
        case("oxundo -q undo", "oxundo redo 3", "test -e two"),
        case("oxundo -q checkpoint -m here; rm one", "oxundo undo --to here", "test -e one"),
        case("oxundo -q undo", "oxundo undo --to 2", "test -e two"),
        // not_found
        case("", "oxundo undo -- one", "! test -e one && test -e two"),
        // usage
        case("", "oxundo checkout 1", "! test -e two"),
        case("", "oxundo rollback", "! test -e two"),
        case("", "oxundo undo -2", "! test -e one"),
        case("", "oxundo undo two", "! test -e two"),
        case("", "oxundo undo --setps 2", "! test -e one"),
        case("", "oxundo redo --to 1", "! test -e two"),
        case("", "oxundo revert 1", "! test -e two"),
        case("", "oxundo gc --keep x", "true"),
        case("oxundo -q checkpoint -m here", "oxundo checkpoint -m here", "oxundo checkpoint --list"),
        case("", "oxundo checkpoint -m 17", "oxundo checkpoint --list"),
        case("oxundo -q undo --only 2", "oxundo redo --steps 2", "test -e two"),
        case("", "oxundo undo --only 1 --edits=overwrite", "true"),
        case("", "oxundo squash 1..1", "true"),
        Case { line: "oxundo show 9", before: "", wanted: None },
        Case { line: "oxundo restore @rescue", before: "", wanted: None },
        Case { line: "oxundo diff op:99", before: "", wanted: None },
        Case { line: "oxundo redo --to 0", before: "oxundo -q undo 2", wanted: None },
        Case { line: "oxundo undo --to 0", before: "oxundo -q undo 2", wanted: None },
        Case { line: "oxundo undo --only 2", before: "oxundo -q undo", wanted: None },
        Case { line: "oxundo squash --nope", before: "", wanted: None },
    ];
    let repo = Sandbox::new();
    typed(&repo, TWO).success();
    let cases = cases.map(|case| (format!("{} | {}", case.before, case.line), case));
    check_all(cases, |case| {
        let repo = repo.copy();
        typed(&repo, &case.before.replace("OWN", own)).success();
        assert!(leads_on(&repo, case, case.line, 1), "a hint leads to what was wanted");
    });
}

#[test]
fn a_hint_has_the_line_that_was_typed() {
    let repo = Sandbox::new();
    repo.turn(Mode::Ghost, "echo 1 >'a b'");
    repo.write("a b", "mine\n");
    let told = typed(&repo, "oxundo -C . undo --edits merge --to 0").err();
    assert!(told.contains("run 'git stash push -u -- ':/a b'' to put these changes away, then 'oxundo -C . undo --edits merge --to 0' again"), "{told}");
    assert!(told.contains("or run 'oxundo -C . undo --edits=overwrite --to 0', which keeps"), "{told}");
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
