//! Another program saves a file in the very instant in which oxundo replaces it, deletes it or changes its mode. Each save
//! has a mark of its own, and is found afterwards: in the worktree, in an object, or in a file that is named.
//!
//! The tracer stops oxundo at each instant and lets the other program act. `cargo test` tries the instants around what
//! happens to one file; `OXUNDO_THOROUGH=1` every instant from the first file to the end.

use crate::form::is_thorough;
use crate::kill_points::{fire, has_journal, in_parallel};
use crate::sandbox::{Output, Sandbox, announce};
use crate::tracer::{Kill, LAUNCH, Trace, Victim, interrupt_each};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How a program saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Save {
    /// Over the bytes that are there, and no more of them than there are.
    InPlace,
    /// A new file, renamed over the old one.
    Renamed,
    /// The file is emptied, and written.
    Truncated,
    Appended,
    /// No save: the file is deleted,
    Deleted,
    /// or only its mode changed.
    Chmod,
}

use Save::{Appended, Chmod, Deleted, InPlace, Renamed, Truncated};

const WAYS: [Save; 6] = [InPlace, Renamed, Truncated, Appended, Deleted, Chmod];

/// The mark that tells a save from all that was there.
const MARK: &str = "saved by the user";

/// The mode that the user gives.
const MODE: u32 = 0o604;

impl Save {
    /// Saves; says whether that could be done.
    fn act(self, path: &Path) -> bool {
        let temporary = path.with_extension("by-editor");
        match self {
            InPlace => OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(MARK.as_bytes())),
            Appended => OpenOptions::new().append(true).open(path).and_then(|mut file| file.write_all(MARK.as_bytes())),
            Truncated => {
                let file = OpenOptions::new().write(true).truncate(true).open(path);
                file.and_then(|mut file| file.write_all(MARK.as_bytes()))
            }
            Renamed => fs::write(&temporary, MARK).and_then(|()| fs::rename(&temporary, path)),
            Deleted => fs::remove_file(path),
            Chmod => fs::set_permissions(path, PermissionsExt::from_mode(MODE)),
        }
        .is_ok()
    }

    fn has_bytes(self) -> bool {
        !matches!(self, Deleted | Chmod)
    }
}

/// What the turn does: it edits a file, makes one, deletes one and changes the mode of one, in the worktree's top and below.
const SCRIPT: &str = "for f in edited d/edited; do sed -i s/before/after/ $f; done; rm gone; chmod 600 mode; mkdir n; \
    sed s/the/a/ edited >made; sed s/the/a/ edited >n/made";

/// What is there before it.
fn files() -> Sandbox {
    let repo = Sandbox::new();
    let long = "what was there before the turn\n".repeat(4);
    for path in ["edited", "gone", "mode", "d/edited"] {
        repo.write(path, &long);
    }
    repo.sh("git add -A; git commit -qm files");
    repo
}

/// The turn.
fn repo() -> Sandbox {
    let repo = files();
    repo.agent(SCRIPT);
    repo
}

/// The same as the second step of a turn, and the one of its session; another session made the first.
fn stepped() -> Sandbox {
    let repo = files();
    let told = |session: &str, event: &str, script: &str| {
        let about = format!(
            r#"{{"hook_event_name": "{event}", "session_id": "{session}", "prompt": "p", "tool_name": "Bash", "tool_use_id": "of {session}"}}"#
        );
        fire(&repo, &about);
        repo.sh(script);
    };
    let both = |event| ["one", "other"].map(|session| told(session, event, ""));
    both("UserPromptSubmit");
    for (session, script) in [("one", "echo first >first"), ("other", SCRIPT)] {
        told(session, "PreToolUse", script);
        told(session, "PostToolUse", "");
    }
    both("Stop");
    repo
}

/// Where an operation starts.
#[derive(Clone, Copy, Debug)]
enum Start {
    /// After the turn.
    Done,
    /// After its undo.
    Undone,
    /// After the turn with steps.
    Stepped,
}

use Start::{Done, Stepped, Undone};

/// The operations, and where each starts.
const OPERATIONS: [(&str, &[&str], Start); 10] = [
    ("undo", &["undo"], Done),
    ("redo", &["redo"], Undone),
    ("restore", &["restore", "1:before"], Done),
    ("undo --only", &["undo", "--only", "1"], Done),
    ("undo --revert", &["undo", "--revert"], Done),
    ("undo of paths", &["undo", "--", "edited", "gone", "made", "mode", "d", "n"], Done),
    ("restore --exact", &["restore", "--exact", "1:before"], Done),
    ("undo --to a step", &["undo", "--to", "1.1"], Stepped),
    ("undo --only a step", &["undo", "--only", "1.2"], Stepped),
    ("undo --session", &["undo", "--session", "other"], Stepped),
];

/// Where a mark is found.
fn is_found(repo: &Sandbox, mark: &str, stderr: &str) -> bool {
    let in_worktree = || repo.sh(&format!("grep -rlF '{mark}' . --exclude-dir=.git || :"));
    let in_objects = || {
        let all = repo.sh(&format!("git cat-file --batch-all-objects --batch | grep -caF '{mark}' || :"));
        all.trim() != "0"
    };
    !in_worktree().is_empty() || in_named_files(repo, mark, stderr) || in_objects()
}

/// Whether a file that a warning names has it.
fn in_named_files(repo: &Sandbox, mark: &str, stderr: &str) -> bool {
    let kept = repo.sh(&format!("grep -rlF '{mark}' .git/oxundo/kept 2>/dev/null || :"));
    kept.lines().any(|path| stderr.contains(path))
}

/// What holds after whatever happened: the journal is gone, nothing is left beside a file or in scratch, git is content.
fn settled(repo: &Sandbox) {
    assert!(!has_journal(repo), "the journal is gone");
    let beside = repo.sh("find . -name '.oxundo-tmp-*' -not -path './.git/*'; ls .git/oxundo/out 2>/dev/null || :");
    assert_eq!(beside, "", "nothing is left behind");
    repo.oxundo(["status"]).success();
    repo.assert_sound();
}

/// Runs an operation and lets another program act at the instant of this number, counted from the first file that
/// is made beside its place. Says how many instants there were, and whether it could act.
fn act_at(
    repo: &Sandbox,
    args: &[&str],
    number: usize,
    kill: Option<Kill>,
    act: &dyn Fn() -> bool,
) -> (Trace, Vec<String>, bool) {
    let (seen, acted) = (RefCell::new(Vec::new()), Cell::new(false));
    let each = |text: &str| {
        let mut seen = seen.borrow_mut();
        if !seen.is_empty() || (text.contains("-new-") && !text.contains("-try-")) || text.contains("/oxundo/out") {
            if seen.len() == number {
                acted.set(act());
            }
            seen.push(text.to_owned());
        }
    };
    let trace = interrupt_each(&mut repo.launched_command(LAUNCH, args), kill, &each).expect("it was traced before");
    (trace, seen.into_inner(), acted.get())
}

/// Whether a process can be traced here.
fn is_traced(repo: &Sandbox) -> bool {
    match crate::kill_points::points_of(repo, &["status"]) {
        Ok(_) => true,
        Err(error) => {
            announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
            false
        }
    }
}

/// An instant, of all that were seen, around what happens to a file.
fn instants(repo: &Sandbox, args: &[&str]) -> Vec<String> {
    let (trace, seen, _) = act_at(&repo.copy(), args, usize::MAX, None, &|| true);
    assert_eq!(trace.code, Some(0), "it works where nothing disturbs it: {}", trace.stderr);
    seen
}

const PATHS: [&str; 6] = ["edited", "gone", "made", "mode", "d/edited", "n/made"];

#[test]
fn what_another_program_saves_at_any_instant_of_an_apply_is_found_again() {
    let done = repo();
    if !is_traced(&done) {
        return;
    }
    let (undone, stepped) = (done.copy(), stepped());
    undone.undo();
    let mut cases = Vec::new();
    for (nth, (name, args, start)) in OPERATIONS.iter().enumerate() {
        let repo = match start {
            Done => &done,
            Undone => &undone,
            Stepped => &stepped,
        };
        let seen = instants(repo, args);
        for (at, path) in PATHS.iter().enumerate() {
            for number in 0..=seen.len() {
                for (way, save) in WAYS.iter().enumerate() {
                    // Each instant has one way, and each way many instants.
                    if is_thorough() || (number + 7 * way + 31 * at) % 307 == 17 * nth {
                        cases.push((*name, repo, *args, *path, number, *save));
                    }
                }
            }
        }
    }
    let failed = in_parallel(&cases, |(_, repo, args, path, number, save)| {
        saves_at(&repo.copy(), args, path, *number, *save);
    });
    let told: String = failed
        .iter()
        .map(|(at, text)| {
            let (name, _, _, path, number, save) = cases[*at];
            format!("== {name}: {path}, {save:?} at {number}\n{text}\n\n")
        })
        .collect();
    if is_thorough() {
        announce(&format!("{} saves at an instant, {} lost or wrong", cases.len(), failed.len()));
    }
    assert!(failed.is_empty(), "{} of {} are wrong:\n{told}", failed.len(), cases.len());
}

fn saves_at(repo: &Sandbox, args: &[&str], path: &str, number: usize, save: Save) {
    let before = repo.printed();
    let (trace, seen, acted) = act_at(repo, args, number, None, &|| save.act(&repo.path(path)));
    let said = format!("{:?} before {:?}:\n{}", trace.code, seen.get(number), trace.stderr);
    assert!(matches!(trace.code, Some(0 | 3)), "it works or is refused, {said}");
    if acted && save.has_bytes() {
        assert!(is_found(repo, MARK, &trace.stderr), "the save is lost, {said}");
        let there = repo.exists(path) && String::from_utf8_lossy(&repo.read(path)).contains(MARK);
        assert!(there || trace.stderr.contains("kept"), "it is in its place, or that is said, {said}");
    }
    if acted && save == Chmod && repo.exists(path) && !seen.get(number).is_some_and(|text| text.contains("chmod")) {
        let mode = repo.mode(path) & 0o7777;
        assert!(mode == MODE || !trace.stderr.contains("changed meanwhile"), "the user's mode is kept, {said}");
    }
    if trace.code == Some(3) {
        assert!(trace.stderr.contains(&format!("'{path}' was changed meanwhile")), "it says which file it was, {said}");
        let rest = |state: crate::sandbox::State| {
            let own = format!("on disk {path}");
            // A directory that was made for it stays with the save that is in it.
            state.only(|fact| !own.starts_with(fact) && !fact.starts_with("git ") && !fact.contains("refs/oxundo"))
        };
        rest(repo.printed()).assert_is(&rest(before), &format!("a refusal changes nothing else, {said}"));
    }
    settled(repo);
}

#[test]
fn a_commit_that_another_program_makes_at_any_instant_stays_on_its_branch() {
    let (done, stepped) = (repo(), stepped());
    if !is_traced(&done) {
        return;
    }
    let mut cases = Vec::new();
    for (nth, (name, args, start)) in OPERATIONS.iter().enumerate() {
        let repo = match start {
            Done if args[0] == "undo" && args.len() < 3 || args.contains(&"--exact") => &done,
            Stepped => &stepped,
            _ => continue,
        };
        let many = instants(repo, args).len();
        let chosen = (0..=many).filter(|number| is_thorough() || (number + 5 * nth) % 29 == 0);
        cases.extend(chosen.map(|number| (*name, repo, *args, number)));
    }
    let failed = in_parallel(&cases, |(_, repo, args, number)| {
        let repo = repo.copy();
        let before = repo.printed();
        let made = RefCell::new(None);
        let commit = || {
            let id = repo.sh("git commit-tree -p HEAD -m theirs 'HEAD^{tree}'").trim().to_owned();
            // oxundo may have the branch locked: then it waits, and this does not.
            let is_made = repo.try_git(["update-ref", "refs/heads/main", &id]).code == 0;
            *made.borrow_mut() = is_made.then_some(id);
            is_made
        };
        let (trace, seen, _) = act_at(&repo, args, *number, None, &commit);
        let said = format!("{:?} before {:?}:\n{}", trace.code, seen.get(*number), trace.stderr);
        assert!(matches!(trace.code, Some(0 | 3)), "it works or is refused, {said}");
        if let Some(id) = made.borrow().as_ref() {
            let history = repo.git(["rev-list", "main"]);
            assert!(history.lines().any(|commit| commit == id), "the commit is on its branch, {said}");
        }
        if trace.code == Some(3) {
            let files = |state: crate::sandbox::State| state.only(|fact| fact.starts_with("on disk "));
            files(repo.printed()).assert_is(&files(before), &format!("a refusal changes no file, {said}"));
        }
        settled(&repo);
    });
    let told: String =
        (failed.iter()).map(|(at, text)| format!("== {} at {}\n{text}\n\n", cases[*at].0, cases[*at].3)).collect();
    assert!(failed.is_empty(), "{} of {} are wrong:\n{told}", failed.len(), cases.len());
}

/// What a command says some time later, when it looks again at what came out of the worktree.
fn told_later(repo: &Sandbox) -> String {
    repo.sh("touch -d '1 hour ago' .git/oxundo/replaced/* 2>/dev/null || :");
    let output = repo.oxundo(["checkpoint"]);
    output.success();
    output.err().lines().filter(|line| line.starts_with("warning: ")).collect()
}

/// What commands say until one has concluded all that came out. A program that another thread of the tests is just
/// starting has whatever the tests have open, until it runs.
fn told_at_last(repo: &Sandbox) -> String {
    let end = Instant::now() + Duration::from_secs(60);
    let mut told = told_later(repo);
    while repo.exists(".git/oxundo/replaced") && Instant::now() < end {
        told.push_str(&told_later(repo));
    }
    told
}

#[test]
fn what_came_out_stays_as_long_as_somebody_has_it_open() {
    let repo = repo();
    let left =
        || repo.sh("ls .git/oxundo/replaced/* 2>/dev/null | grep -c '^[0-9a-f]*-[0-9]*$' || :").trim().to_owned();
    let mut open = OpenOptions::new().append(true).open(repo.path("edited")).expect("open a file");
    repo.undo();
    let all: u32 = left().parse().expect("a number");
    assert!(all > 1, "all of it stays for a while: {all}");
    repo.oxundo(["checkpoint"]).success();
    assert_eq!(left(), all.to_string(), "it is new");
    assert_eq!(told_later(&repo), "", "nobody has saved");
    assert_eq!(left(), "1", "but for what is open, it goes");
    let new = repo.sh("find .git/oxundo/replaced/* -prune -mmin -1 | wc -l");
    assert_eq!(new.trim(), "1", "and is not asked after for another minute");
    open.write_all(MARK.as_bytes()).expect("write to an open file");
    assert_eq!(told_later(&repo), "", "it may be in the middle of it");
    drop(open);
    // The journal says which file it was, as long as it is there.
    let pruned = repo.copy();
    pruned.sh("git reflog expire --expire=now --all; git gc -q --prune=now");
    for repo in [&repo, &pruned] {
        let told = told_later(repo);
        assert!(in_named_files(repo, MARK, &told), "{told}");
        assert!(!repo.exists(".git/oxundo/replaced"), "nothing else is left");
    }
    for _ in 0..20 {
        repo.redo();
        repo.undo();
    }
    let operations = repo.sh("ls .git/oxundo/replaced | wc -l");
    assert!(operations.trim().parse::<u32>().expect("a number") < 20, "it does not grow without end: {operations}");
    let open = OpenOptions::new().append(true).open(repo.path("edited")).expect("open a file");
    repo.redo();
    repo.oxundo(["uninstall", "--purge"]).success();
    assert_eq!(left(), "1", "a purge leaves what is open");
    drop(open);
}

#[test]
fn a_program_that_had_the_file_open_may_save_at_any_later_instant() {
    let repo = repo();
    if !is_traced(&repo) {
        return;
    }
    let seen = instants(&repo, &["undo"]);
    let mut cases = Vec::new();
    for (nth, path) in ["edited", "made", "n/made"].into_iter().enumerate() {
        // It saves when all is over, too.
        let all = (1..=seen.len()).filter(|number| is_thorough() || number % 8 == nth).chain([usize::MAX]);
        cases.extend(all.map(|number| (path, number)));
    }
    let failed = in_parallel(&cases, |(path, number)| {
        let repo = repo.copy();
        let open = OpenOptions::new().write(true).open(repo.path(path)).expect("open a file");
        let open = RefCell::new(Some(open));
        let save = || {
            let mut file: File = open.borrow_mut().take().expect("it saves once");
            file.rewind().and_then(|()| file.write_all(MARK.as_bytes())).expect("write to an open file");
            true
        };
        let (trace, seen, _) = act_at(&repo, &["undo"], *number, None, &save);
        if open.borrow().is_some() {
            save();
        }
        let told = format!("{}{}", trace.stderr, told_at_last(&repo));
        let said = format!("{:?} before {:?}:\n{told}", trace.code, seen.get(*number));
        assert!(matches!(trace.code, Some(0 | 3)), "{said}");
        assert!(is_found(&repo, MARK, &told), "the save is lost, {said}");
        settled(&repo);
    });
    assert!(failed.is_empty(), "{} of {} are lost: {failed:#?}", failed.len(), cases.len());
}

#[test]
fn a_save_in_the_instant_of_a_kill_is_found_by_the_next_command() {
    let repo = repo();
    if !is_traced(&repo) {
        return;
    }
    let undone = repo.copy();
    undone.undo();
    let mut cases = Vec::new();
    for (at, (repo, args)) in [(&repo, ["undo"]), (&undone, ["redo"])].into_iter().enumerate() {
        let points = crate::kill_points::points_of(repo, &args).expect("it was traced before");
        let is_file = |text: &str| text.contains("oxundo/out/") || text.contains("-new-");
        let all: Vec<_> = points.iter().filter(|point| is_file(&point.text) && !point.text.contains("-try-")).collect();
        for (nth, point) in all.iter().enumerate() {
            for (way, save) in [InPlace, Renamed, Truncated, Appended].into_iter().enumerate() {
                for (which, path) in PATHS.iter().enumerate() {
                    if is_thorough() || (nth + way + which) % 17 == at {
                        cases.push((repo, args, point.number, point.text.clone(), nth, save, *path));
                    }
                }
            }
        }
    }
    let failed = in_parallel(&cases, |(repo, args, number, _, _, save, path)| {
        let repo = repo.copy();
        let (count, acted) = (Cell::new(0), Cell::new(false));
        // The call of this number is the last one: the save comes right before it.
        let each = |text: &str| {
            if !text.starts_with("open ") {
                if count.get() == *number {
                    acted.set(save.act(&repo.path(path)));
                }
                count.set(count.get() + 1);
            }
        };
        let kill = Kill { number: *number, done: true, victim: Victim::All };
        let command = &mut repo.launched_command(LAUNCH, args);
        let trace = interrupt_each(command, Some(kill), &each).expect("it was traced before");
        assert!(trace.killed, "it is killed");
        let next: Output = repo.oxundo(["status"]);
        next.success();
        if acted.get() {
            assert!(is_found(&repo, MARK, &next.err()), "the save is lost: {}", next.err());
        }
        settled(&repo);
    });
    let told: String = failed
        .iter()
        .map(|(at, text)| {
            let (_, args, _, point, _, save, path) = &cases[*at];
            format!("== {args:?}: {path}, {save:?}, then killed at {point}\n{text}\n\n")
        })
        .collect();
    assert!(failed.is_empty(), "{} of {} are wrong:\n{told}", failed.len(), cases.len());
}

#[test]
fn a_users_own_file_of_a_like_name_is_nobodys_business() {
    let repo = repo();
    if !is_traced(&repo) {
        return;
    }
    for name in [".oxundo-tmp-notes", ".oxundo-tmp-1-1", "d/.oxundo-tmp-99-new-0", ".oxundo-tmp-"] {
        repo.write(name, "the user's\n");
    }
    let killed = crate::kill_points::killed_at(&repo, &["undo"], ["renameat", "oxundo/out/"]);
    killed.oxundo(["status"]).warns("an interrupted operation");
    for name in [".oxundo-tmp-notes", ".oxundo-tmp-1-1", "d/.oxundo-tmp-99-new-0", ".oxundo-tmp-"] {
        killed.assert_file(name, "the user's\n", "recovery leaves it");
    }
}

// All the time

/// An editor that saves all the time.
struct Editor<'r> {
    repo: &'r Sandbox,
    paths: Vec<String>,
    size: usize,
    saves: AtomicUsize,
    stopped: AtomicBool,
}

/// How long a save's mark is, which stands at the end of the file: it is written last.
const MARK_LENGTH: usize = 20;

impl Editor<'_> {
    /// Saves until it is stopped; gives the marks of all saves but those that it has overwritten itself.
    fn run(&self) -> BTreeSet<String> {
        let mut marks = BTreeSet::new();
        for (number, path) in self.paths.iter().cycle().enumerate() {
            if self.stopped.load(Ordering::Relaxed) {
                break;
            }
            let file = self.repo.path(path);
            let mark = format!("save-{number:0>14}\n");
            let content = "x".repeat(self.size - MARK_LENGTH) + &mark;
            let saved = match number / self.paths.len() % 3 {
                0 => rename_over(&file, &content),
                way => write_into(&file, &content, way == 1),
            };
            // Now and then it thinks, so that an operation is done as well.
            if number % 20_000 == 0 && self.size < 1 << 20 {
                std::thread::sleep(Duration::from_secs(1));
            }
            // It saves what is there: a file that is gone is not made.
            if let Ok(overwritten) = saved {
                marks.remove(&overwritten);
                marks.insert(mark);
                self.saves.fetch_add(1, Ordering::Relaxed);
            }
        }
        marks
    }
}

/// Writes a new file, and lets it change places with the old one; gives the mark of that.
fn rename_over(file: &Path, content: &str) -> std::io::Result<String> {
    let new = file.with_extension("by-editor");
    fs::write(&new, content)?;
    let renamed = renameat_with(CWD, &new, CWD, file, RenameFlags::EXCHANGE);
    let overwritten = File::open(&new).and_then(|mut old| mark_of(&mut old));
    fs::remove_file(&new)?;
    renamed?;
    overwritten
}

/// Writes into the file that is there; gives the mark that it had.
fn write_into(file: &Path, content: &str, emptied: bool) -> std::io::Result<String> {
    let mut file = OpenOptions::new().read(true).write(true).open(file)?;
    let overwritten = mark_of(&mut file)?;
    if emptied {
        file.set_len(0)?;
    }
    file.rewind()?;
    file.write_all(content.as_bytes())?;
    Ok(overwritten)
}

/// Stops the editor when it is dropped.
struct Stop<'e, 'r>(&'e Editor<'r>);

impl Drop for Stop<'_, '_> {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }
}

/// The end of a file.
fn mark_of(file: &mut File) -> std::io::Result<String> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MARK_LENGTH as u64)))?;
    let mut mark = Vec::new();
    file.read_to_end(&mut mark)?;
    Ok(String::from_utf8_lossy(&mark).into_owned())
}

/// All marks that are found in the worktree, in an object, or in what is kept.
fn marks_of(repo: &Sandbox) -> BTreeSet<String> {
    let files = "find . -type f -not -path './.git/*' -exec tail -qc 20 {} +; \
                 find .git/oxundo/kept -type f -exec tail -qc 20 {} + 2>/dev/null || :";
    let script = format!("{{ {files}; git cat-file --batch-all-objects --batch; }} | grep -aoE 'save-[0-9]{{14}}'");
    repo.sh(&script).lines().map(|mark| format!("{mark}\n")).collect()
}

/// Undo and redo, over and over, beside an editor that saves these files, until there were so many saves, and so many
/// of them were in the way of an apply.
fn beside_an_editor(files: usize, size: usize, saves: usize, in_the_way: usize) {
    let repo = Sandbox::new();
    // All are of one size: what is written into one leaves nothing of what was there.
    let paths: Vec<_> = (0..files).map(|number| format!("d{}/{number}", number % 3)).collect();
    for path in &paths {
        repo.write(path, "x".repeat(size - 7) + "before\n");
    }
    repo.sh("git add -A; git commit -qm files");
    repo.agent("for f in d*/*; do sed -i '$s/before/behind/' $f; done; rm d0/0");
    let editor = Editor { repo: &repo, paths, size, saves: AtomicUsize::new(0), stopped: AtomicBool::new(false) };
    let (mut met, mut kept, mut done) = (0, 0, 0);
    let marks = std::thread::scope(|scope| {
        let editing = scope.spawn(|| editor.run());
        // Also where something fails here.
        let _stop = Stop(&editor);
        while !editing.is_finished() {
            for op in ["undo", "redo"] {
                let output = repo.oxundo([op, "--edits=overwrite", "-q"]);
                met += usize::from(output.err().contains("changed meanwhile"));
                done += usize::from(output.code == 0);
                kept += output.err().matches("kept what was saved").count();
                assert!([0, 3, 4].contains(&output.code), "{op} works, or is refused: {output:?}");
            }
            if editor.saves.load(Ordering::Relaxed) >= saves && met + kept >= in_the_way {
                editor.stopped.store(true, Ordering::Relaxed);
            }
        }
        editing.join().expect("the editor does not fail")
    });
    // What was written into a file that came out meanwhile is found when that is looked at again.
    told_at_last(&repo);
    let found = marks_of(&repo);
    let lost: Vec<_> = marks.iter().filter(|mark| !found.contains(*mark)).collect();
    let saves = editor.saves.into_inner();
    announce(&format!(
        "{files} files of {size} bytes: {saves} saves, {} of them not by another; {met} operations met one and were \
         rolled back, {kept} saves were kept apart, {done} operations were done; {} saves lost",
        marks.len(),
        lost.len()
    ));
    assert!(lost.is_empty(), "lost of {}: {lost:?}", marks.len());
    settled(&repo);
}

#[test]
fn an_editor_that_saves_all_the_time_loses_nothing() {
    if is_thorough() {
        beside_an_editor(200, 200, 50_000, 1_000);
        beside_an_editor(1, 100 << 20, 20, 10);
    } else {
        beside_an_editor(20, 200, 500, 5);
        beside_an_editor(1, 3 << 20, 20, 2);
    }
}

#[test]
fn what_was_kept_survives_a_purge() {
    let repo = Sandbox::new();
    repo.agent("echo own >own");
    let kept = ".git/oxundo/kept/0123-1/a.txt";
    repo.write(kept, "saved\n");
    let purged = repo.oxundo(["uninstall", "--purge"]);
    purged.success();
    assert!(purged.out().contains(".git/oxundo/kept"), "it is named: {purged:?}");
    repo.assert_file(kept, "saved\n", "the only copy");
    assert_eq!(repo.git(["for-each-ref", "refs/oxundo", "refs/notes"]), "");
    assert_eq!(repo.sh("ls -A .git/oxundo"), "kept", "all else is gone");
    repo.agent("echo again >again");
}

#[test]
fn who_wants_no_warnings_still_hears_where_the_only_copy_is() {
    let repo = repo();
    repo.write("big", vec![b'x'; 9 << 20]);
    repo.oxundo(["run", "--ghost", "--", "sh", "-c", "echo more >>big"]).success();
    let open = OpenOptions::new().append(true).open(repo.path("big")).expect("open it");
    repo.oxundo(["-q", "undo"]).warns("is open in another program, which may write to it: kept as");
    drop(open);
}
