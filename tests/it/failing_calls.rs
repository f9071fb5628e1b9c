//! A disk that is full, one that fails, and what may not be written, at any call: a clear error, nothing
//! changed, and the next command is fine.
//!
//! `cargo test` tries a few calls of each operation; `OXUNDO_THOROUGH=1` every one, once with a disk
//! that stays full and once with another error, which take turns.
//! `OXUNDO_CASE=words` takes only the operations whose name has these words.

use crate::form::{is_whole, part_of, sample};
use crate::kill_points::{Judge, Operation, has_journal, in_parallel, operations, points_of, whole, without_records};
use crate::sandbox::{Sandbox, announce};
use crate::tracer::{Failure, LAUNCH, Point, Trace, fail};
use nix::errno::Errno;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a call fails, and whether all later ones that need space do.
const WAYS: [(Errno, bool); 4] =
    [(Errno::ENOSPC, true), (Errno::EIO, false), (Errno::EACCES, false), (Errno::EROFS, false)];

/// Calls of one operation that `cargo test` lets fail.
const SAMPLE: usize = 4;

#[test]
fn whatever_call_fails_nothing_is_changed_and_the_next_command_is_fine() {
    let thorough = crate::form::is_thorough();
    let wanted = std::env::var("OXUNDO_CASE").unwrap_or_default();
    if let Err(error) = points_of(&Sandbox::new(), &["status"]) {
        return announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
    }
    let all = part_of(operations(), &wanted, |operation| operation.name);
    let mut cases = Vec::new();
    for operation in &all {
        let points = points_of(&operation.repo, &operation.args).expect("it was traced before");
        // Where a lock that was just made cannot be removed, git has no answer either.
        let is_unlock = |text: &str| text.contains(": unlink ") && text.contains(".lock");
        let is_ours = |point: &Point| !point.by_agent && !point.text.contains(": execve ") && !is_unlock(&point.text);
        let ours: Vec<usize> = (0..points.len()).filter(|at| is_ours(&points[*at])).collect();
        let many = sample(SAMPLE);
        let nth = |nth| ours[(2 * nth + 1) * ours.len() / (2 * many)];
        let chosen = if thorough { ours } else { (0..many).map(nth).collect() };
        for at in chosen {
            let ways = if thorough { vec![0, 1 + at % (WAYS.len() - 1)] } else { vec![at % WAYS.len()] };
            cases.extend(ways.into_iter().map(|way| (operation, points[at].number, WAYS[way])));
        }
    }
    let told = AtomicUsize::new(0);
    let failed = in_parallel(&cases, |(operation, number, (errno, lasting))| {
        let failure = Failure { number: *number, errno: *errno, lasting: *lasting };
        told.fetch_add(check(operation, failure).into(), Ordering::Relaxed);
    });
    let told = told.into_inner();
    let mut failures = String::new();
    for (at, text) in &failed {
        let (operation, number, way) = &cases[*at];
        let _ = writeln!(failures, "== {}: {number} {way:?}\n{text}\n", operation.name);
    }
    if thorough {
        announce(&format!("{} calls failed, {told} of them with an error; {} were bad", cases.len(), failed.len()));
    }
    // Of a few calls, some may be of those that are not.
    let most = if is_whole() { cases.len() / 2 } else { cases.len() / 4 };
    assert!(told > most, "most calls are needed: {told} of {}", cases.len());
    assert!(failures.is_empty(), "{} of {} failures lost something:\n{failures}", failed.len(), cases.len());
}

/// Whether the command gave up.
fn check(operation: &Operation, failure: Failure) -> bool {
    let repo = operation.repo.copy();
    let trace = fail(&mut repo.launched_command(LAUNCH, &operation.args), failure).expect("it was traced before");
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        report(&repo, operation, &trace);
        operation.judge.go_on(&repo, &trace, operation.args[0] == "undo");
    }));
    if let Err(panic) = outcome {
        let text = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic".to_owned());
        let point = trace.points.iter().find(|point| point.number == failure.number);
        let point = point.map_or("none", |point| point.text.as_str());
        panic!("failed at {point}, exit code {:?}, it said: {}\n{text}", trace.code, trace.stderr);
    }
    trace.code != Some(0)
}

/// What the command itself says and leaves.
fn report(repo: &Sandbox, operation: &Operation, trace: &Trace) {
    assert!(!trace.stderr.contains("panicked"), "no panic");
    if trace.code == Some(0) {
        return;
    }
    assert!(
        trace.stderr.contains("error: ") && trace.stderr.contains("hint: "),
        "it says what is wrong and what to do"
    );
    let left = has_journal(repo);
    if let Judge::Travel(travel) = &operation.judge
        && !left
        && !operation.name.starts_with("recovery")
    {
        let now = without_records(&whole(repo));
        now.assert_is(&without_records(&travel.ends[0]), "what fails changes nothing");
    }
}
