//! Records that someone else wrote: whatever they say, nothing outside the worktree is touched,
//! nothing is run, and no commit is dropped that no turn made.

use crate::sandbox::{Sandbox, State, check_all};
use serde_json::{Value, json};

/// One entry of a tree: mode, name, id.
type Entry = (String, Vec<u8>, String);

/// Trees and blobs that git itself would not write.
impl Sandbox {
    fn blob(&self, bytes: impl AsRef<[u8]>) -> String {
        self.git_fed(&["hash-object", "-w", "--stdin"], bytes.as_ref())
    }

    fn entries(&self, tree: &str) -> Vec<Entry> {
        let listed = self.try_git(["ls-tree", "-z", tree]);
        listed.success();
        let entry = |line: &[u8]| {
            let tab = line.iter().position(|byte| *byte == b'\t').expect("a tab stands before the name");
            let about = String::from_utf8_lossy(&line[..tab]).into_owned();
            let mut words = about.split(' ').map(str::to_owned);
            let (mode, _, id) = (words.next(), words.next(), words.next());
            (mode.expect("a mode"), line[tab + 1..].to_vec(), id.expect("an id"))
        };
        listed.stdout.split(|byte| *byte == 0).filter(|line| !line.is_empty()).map(entry).collect()
    }

    fn tree(&self, mut entries: Vec<Entry>) -> String {
        let slashed = |(mode, name, _): &Entry| {
            let slash: &[u8] = if mode == "040000" { b"/" } else { b"" };
            [name, slash].concat()
        };
        entries.sort_by_key(slashed);
        let mut raw = Vec::new();
        for (mode, name, id) in entries {
            raw.extend(mode.trim_start_matches('0').as_bytes());
            raw.push(b' ');
            raw.extend(name);
            raw.push(0);
            let digit = |at: usize| u8::from_str_radix(&id[at..at + 2], 16).expect("an id is hexadecimal");
            raw.extend((0..id.len()).step_by(2).map(digit));
        }
        self.git_fed(&["hash-object", "-w", "-t", "tree", "--literally", "--stdin"], &raw)
    }

    /// A tree with something put at a path, or taken away.
    fn put(&self, tree: Option<&str>, path: &[&str], what: Option<(&str, &str)>) -> String {
        let mut entries = tree.map_or_else(Vec::new, |tree| self.entries(tree));
        let (name, rest) = path.split_first().expect("a path has a name");
        let old = entries.iter().position(|entry| entry.1 == name.as_bytes()).map(|at| entries.remove(at));
        if !rest.is_empty() {
            let below = old.filter(|(mode, ..)| mode == "040000").map(|(_, _, id)| id);
            let inner = self.put(below.as_deref(), rest, what);
            entries.push(("040000".to_owned(), name.as_bytes().to_vec(), inner));
        } else if let Some((mode, id)) = what {
            entries.push((mode.to_owned(), name.as_bytes().to_vec(), id.to_owned()));
        }
        self.tree(entries)
    }
}

/// The timeline with some of it replaced.
struct Forged<'a> {
    repo: &'a Sandbox,
    tree: String,
}

impl<'a> Forged<'a> {
    fn new(repo: &'a Sandbox) -> Self {
        Self { repo, tree: repo.git(["rev-parse", "refs/oxundo/timeline^{tree}"]) }
    }

    /// Puts text in the place of a record.
    fn record(mut self, path: &str, text: impl AsRef<[u8]>) -> Self {
        let blob = self.repo.blob(text);
        let path: Vec<_> = path.split('/').collect();
        self.tree = self.repo.put(Some(&self.tree), &path, Some(("100644", &blob)));
        self
    }

    /// Changes a record that is JSON.
    fn json(self, path: &str, change: impl FnOnce(&mut Value)) -> Self {
        let text = self.repo.git(["cat-file", "blob", &format!("{}:{path}", self.tree)]);
        let mut value = serde_json::from_str(&text).expect("the record is JSON");
        change(&mut value);
        self.record(path, value.to_string())
    }

    /// Puts a file into the tree of a checkpoint.
    fn file(mut self, checkpoint: &str, path: &[&str], content: &str) -> Self {
        let blob = self.repo.blob(content);
        let path: Vec<_> = checkpoint.split('/').chain(path.iter().copied()).collect();
        self.tree = self.repo.put(Some(&self.tree), &path, Some(("100644", &blob)));
        self
    }

    /// Makes it the timeline.
    fn install(self) {
        let tip = self.repo.git(["rev-parse", "refs/oxundo/timeline"]);
        let mut args = vec!["commit-tree".to_owned(), "-m".to_owned(), "forged".to_owned()];
        for parent in self.repo.git(["log", "-1", "--no-notes", "--format=%P", &tip]).split_whitespace() {
            args.extend(["-p".to_owned(), parent.to_owned()]);
        }
        args.push(self.tree);
        let commit = self.repo.git(args);
        self.repo.git(["update-ref", "refs/oxundo/timeline", &commit]);
    }
}

const BEFORE: &str = "turns/00/00/01/before";
const AFTER: &str = "turns/00/00/01/after";

/// A turn in a repository beside which something is that nobody may touch.
fn worked() -> Sandbox {
    let repo = Sandbox::new();
    let outside = repo.beside("outside");
    outside.write("canary", "canary\n").write("empty/x", "");
    outside.sh("rm empty/x; chmod 755 empty; chmod 644 canary");
    repo.sh("mkdir -p .git/hooks; echo '#!/bin/sh' >.git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit");
    repo.write("own.txt", "mine\n").write("deep/own/file", "deep\n");
    repo.agent("echo more >>README.txt; echo new >new; mkdir -p made/deep; echo in >made/in; rm own.txt");
    repo
}

#[test]
fn no_link_in_oxundos_own_directories_is_followed() {
    let start = worked();
    for (link, target) in [
        (".git/oxundo", "../../outside"),
        (".git/oxundo/aside", "../../../outside"),
        (".git/oxundo/aside/7", "../../../../outside/7"),
        (".git/oxundo/fired", "../../../outside"),
        (".git/oxundo/fired/claude", "../../../../outside/canary"),
        (".git/oxundo/timeline", "../../../outside/canary"),
        (".git/oxundo/lock", "../../../outside/canary"),
        (".git/oxundo/hooks.log", "../../../outside/none"),
    ] {
        let repo = start.copy();
        repo.sh("mkdir -p ../outside/7/0 ../outside/claude; echo keep | tee ../outside/7/0/keep >../outside/canary
            cp -a ../outside ../home/kept");
        let place = repo.path(link);
        repo.sh(&format!("rm -rf {link}; mkdir -p {link}; rm -r {link}"));
        std::os::unix::fs::symlink(target, &place).expect("make a link");
        for args in [
            &["undo"][..],
            &["run", "--", "sh", "-c", "head -c 20000000 /dev/zero >big"],
            &["status"],
            &["gc", "--keep", "now"],
            &["hook", "claude", "Stop"],
            &["uninstall", "--purge"],
        ] {
            let output = repo.oxundo(args);
            if args[0] != "hook" {
                assert!(output.err().contains("is a link"), "{link}: {output:?}");
                assert!(output.err().contains("hint: "), "{link}: {output:?}");
            }
            assert!(place.is_symlink(), "{link}: it is there for the user to look at");
            repo.sh("diff -r ../outside ../home/kept");
        }
        repo.sh(&format!("rm {link}"));
        repo.oxundo(["status"]).success();
    }
}

#[test]
fn a_timeline_with_thousands_of_levels_stops_nobody() {
    let repo = worked();
    let mut tree = repo.put(None, &["file"], Some(("100644", &repo.blob("deep\n"))));
    let objects = gix::open(repo.root()).expect("open the repository");
    for _ in 0..20_000 {
        let oid = gix::ObjectId::from_hex(tree.as_bytes()).expect("an id");
        let mode = gix::objs::tree::EntryKind::Tree.into();
        let below = gix::objs::Tree { entries: vec![gix::objs::tree::Entry { mode, filename: "d".into(), oid }] };
        tree = objects.write_object(&below).expect("write a tree").to_string();
    }
    let all = repo.git(["rev-parse", "refs/oxundo/timeline^{tree}"]);
    let at = ["turns", "00", "00", "01", "after", "worktree"];
    let forged = repo.put(Some(&all), &at, Some(("040000", &tree)));
    let commit = repo.git(["commit-tree", "-m", "forged", &forged]);
    repo.git(["update-ref", "refs/oxundo/timeline", &commit]);
    let before = repo.state();
    for args in [&["status"][..], &["undo", "--dry-run"], &["undo"], &["diff", "1"], &["doctor"], &["log"]] {
        let output = repo.oxundo(args);
        assert!([0, 1, 3].contains(&output.code), "{output:?}");
        repo.state().assert_is(&before, "nothing is changed");
    }
    let refused = repo.oxundo(["undo"]);
    refused.exits(1);
    refused.warns("levels of directories");
}

/// Paths that lead out of the worktree or into a git directory, on some system.
const ASTRAY: [&[&str]; 17] = [
    &["..", "outside", "canary"],
    &["deep", "..", "..", "outside", "canary"],
    &["../outside/canary"],
    &["/tmp/oxundo-hostile"],
    &[".", "x"],
    &[".git", "hooks", "pre-commit"],
    &[".git", "config"],
    &[".git"],
    &[".GIT", "config"],
    &["deep", ".gIt", "config"],
    &["git~1", "config"],
    &["deep", "GIT~1", "hooks", "x"],
    &[".g\u{200c}it", "config"],
    &[".gi\u{feff}t", "config"],
    &[".git::$INDEX_ALLOCATION", "config"],
    &[".git ", "config"],
    &[".git. .", "config"],
];

/// How such a path can get into a plan.
const CHANNELS: [&str; 8] = ["write", "delete", "make", "remove", "modes", "aside", "index", "special"];

impl Forged<'_> {
    fn astray(self, channel: &str, path: &[&str]) -> Self {
        let joined = path.join("/");
        let worktree = |side: &str| format!("{side}/worktree");
        let skipped = json!({"path": joined, "reason": "large", "size": 7, "state": null});
        match channel {
            "write" => self.file(&worktree(BEFORE), path, "written\n"),
            "delete" => self.file(&worktree(AFTER), path, "canary\n"),
            "make" => self
                .json(&format!("{BEFORE}/directories"), |all| all.as_array_mut().expect("a list").push(json!(joined))),
            "remove" => self
                .json(&format!("{AFTER}/directories"), |all| all.as_array_mut().expect("a list").push(json!(joined))),
            "modes" => self
                .file(&worktree(BEFORE), path, "canary\n")
                .file(&worktree(AFTER), path, "canary\n")
                .json(&format!("{BEFORE}/modes"), |modes| modes[&joined] = json!("0777"))
                .json(&format!("{AFTER}/modes"), |modes| modes[&joined] = json!("0644")),
            "aside" => self.record(&format!("{AFTER}/skipped"), format!("{skipped}\n")),
            "index" => self.file(&format!("{BEFORE}/index"), path, "staged\n"),
            _ => {
                let id = self.repo.blob("staged\n");
                let entry = json!({"mode": 0o100_644, "id": id, "stage": 0, "intent_to_add": true,
                    "skip_worktree": false, "assume_unchanged": false});
                self.record(&format!("{BEFORE}/special"), format!("{}\n", json!({"path": joined, "entries": [entry]})))
            }
        }
    }
}

/// Sees to it that undo is refused and touches nothing, in the repository or outside; gives the code.
#[track_caller]
fn is_refused(repo: &Sandbox) -> String {
    let (before, outside) = (repo.everything(), repo.outside());
    let (code, value) = repo.json(["undo"]);
    assert_ne!(code, 0, "undo is refused: {value}");
    repo.everything().assert_is(&before, "a refusal changes nothing");
    repo.outside().assert_is(&outside, "nothing outside is touched");
    value["error"]["code"].as_str().expect("an error has a code").to_owned()
}

/// Sees to it that the commands that only look neither fall over nor touch anything, and that
/// nothing that they say works on a terminal.
#[track_caller]
fn can_be_looked_at(repo: &Sandbox) {
    let (before, outside) = (repo.everything(), repo.outside());
    for args in [&["log"][..], &["log", "--all"], &["status"], &["show", "1"], &["diff", "1"], &["doctor"]] {
        let output = repo.oxundo(args);
        assert!((0..=4).contains(&output.code), "it ends like a program that means it\n{output:?}");
        let said = format!("{}{}", output.out(), output.err());
        let control = said.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        assert_eq!(control, None, "no control character is printed\n{output:?}");
    }
    repo.everything().assert_is(&before, "looking changes nothing");
    repo.outside().assert_is(&outside, "looking touches nothing outside");
}

#[test]
fn no_record_leads_out_of_the_worktree() {
    let repo = worked();
    let sound = repo.git(["rev-parse", "refs/oxundo/timeline"]);
    let undone = repo.copy();
    undone.undo();
    let undone = undone.state();
    for channel in CHANNELS {
        Forged::new(&repo).astray(channel, ASTRAY[0]).install();
        can_be_looked_at(&repo);
        repo.git(["update-ref", "refs/oxundo/timeline", &sound]);
    }
    let thorough = crate::form::is_thorough();
    let all = CHANNELS.iter().enumerate().flat_map(|(nth, channel)| {
        let paths = ASTRAY.iter().enumerate().filter(move |(at, _)| thorough || (nth + at) % 3 == 0);
        paths.map(move |(_, path)| (*channel, *path))
    });
    check_all(all.map(|case| (format!("{case:?}"), case)), |(channel, path)| {
        repo.git(["update-ref", "refs/oxundo/timeline", &sound]);
        Forged::new(&repo).astray(channel, path).install();
        let (code, _) = repo.json(["undo", "--dry-run"]);
        if code != 0 {
            let why = is_refused(&repo);
            assert!(["corrupt", "conflict"].contains(&why.as_str()), "it is refused for what it is: {why}");
            return;
        }
        // What the record says of such a path is so already, or git allows it on this system.
        let copy = repo.copy();
        let outside = copy.outside();
        copy.undo();
        copy.outside().assert_is(&outside, "nothing outside is touched");
        let on_disk = |state: &State| state.clone().only(|fact| fact.starts_with("on disk "));
        on_disk(&copy.state()).assert_is(&on_disk(&undone), "undo does what the sound record says");
    });
    repo.git(["update-ref", "refs/oxundo/timeline", &sound]);
    repo.undo();
    repo.state().assert_is(&undone, "the sound record still is");
}

#[test]
fn no_record_moves_a_ref_that_is_no_branch() {
    let repo = worked();
    repo.sh("git tag v1; git update-ref refs/remotes/origin/main HEAD");
    let tip = repo.head();
    let sound = repo.git(["rev-parse", "refs/oxundo/timeline"]);
    let refs = [
        "refs/tags/v1",
        "refs/remotes/origin/main",
        "refs/notes/oxundo",
        "refs/oxundo/timeline",
        "refs/oxundo/pending",
        "HEAD",
        "refs/heads/../../config",
        "refs/heads/a b",
        "refs/heads/",
        "config",
        "../outside/canary",
    ];
    for name in refs {
        for (side, other) in [(BEFORE, AFTER), (AFTER, BEFORE)] {
            repo.git(["update-ref", "refs/oxundo/timeline", &sound]);
            let base = repo.git(["rev-parse", "HEAD~1"]);
            let with = |side: &str, id: &str| {
                let theirs = repo.git(["cat-file", "blob", &format!("refs/oxundo/timeline:{side}/branches")]);
                format!("{id} {name}\n{theirs}\n")
            };
            let forged = Forged::new(&repo).record(&format!("{side}/branches"), with(side, &base));
            forged.record(&format!("{other}/branches"), with(other, &tip)).install();
            is_refused(&repo);
        }
        repo.git(["update-ref", "refs/oxundo/timeline", &sound]);
        let head = |about: &mut Value| about["head"]["branch"] = json!(name);
        Forged::new(&repo).json(&format!("{BEFORE}/checkpoint.json"), head).install();
        is_refused(&repo);
    }
}

/// A record that is JSON, and what someone made of it.
type Nonsense = (&'static str, &'static str, fn(&mut Value));

#[test]
fn nonsense_in_the_records_is_refused_and_never_followed_for_ever() {
    const STATE: &str = "state.json";
    const TURN: &str = "turns/00/00/01/turn.json";
    let nonsense: [Nonsense; 16] = [
        ("the last number", STATE, |it| it["next"] = json!(u64::MAX)),
        ("the last rescue", STATE, |it| it["next_rescue"] = json!(u64::MAX)),
        ("a negative number", STATE, |it| it["next"] = json!(-1)),
        ("a top that is not there", STATE, |it| it["stacks"]["refs/heads/main"]["top"] = json!(77)),
        ("turn 0", STATE, |it| it["stacks"]["refs/heads/main"]["top"] = json!(0)),
        ("the greatest turn", STATE, |it| it["stacks"]["refs/heads/main"]["top"] = json!(u64::MAX)),
        ("undone and done", STATE, |it| it["stacks"]["refs/heads/main"]["undone"] = json!([1, 1, 1])),
        ("an open turn that has ended", STATE, |it| it["open"] = json!(1)),
        ("an open turn that is not there", STATE, |it| it["open"] = json!(9)),
        ("modes beyond modes", STATE, |it| {
            it["usual_modes"] = json!({"file": u32::MAX, "executable": 0, "directory": 0});
        }),
        ("itself below it", TURN, |it| it["previous"] = json!(1)),
        ("a later turn below it", TURN, |it| it["previous"] = json!(5)),
        ("another number", TURN, |it| it["turn"] = json!(3)),
        ("the greatest depth", TURN, |it| it["depth"] = json!(u64::MAX)),
        ("the greatest totals", TURN, |it| {
            it["totals"] = json!({"files": u64::MAX, "insertions": u64::MAX, "deletions": 1});
        }),
        ("text for a terminal", TURN, |it| {
            let text = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m\r$(touch ../outside/run)`touch ../outside/run`";
            it["agent"] = json!(text);
            it["message"] = json!(text);
            it["session"] = json!(text);
            it["branch"] = json!("refs/heads/main");
            it["began_at"] = json!(text);
            it["ended_at"] = json!(text);
        }),
    ];
    let original = worked();
    let cases = nonsense.into_iter().map(|case| (case.0.to_owned(), case));
    check_all(cases, |(_, record, change)| {
        let repo = original.copy();
        Forged::new(&repo).json(record, change).install();
        let outside = repo.outside();
        // An open turn is closed by whoever comes first.
        let _ = repo.oxundo(["status"]);
        can_be_looked_at(&repo);
        for args in [&["undo"][..], &["redo"], &["undo", "--steps", "1000000"], &["run", "--", "touch", "x"], &["undo"]]
        {
            let output = repo.oxundo(args);
            assert!(
                (0..=4).contains(&output.code) || output.code == 125,
                "it ends like a program that means it\n{output:?}"
            );
            assert!(!output.err().contains("panicked"), "no panic\n{output:?}");
        }
        repo.outside().assert_is(&outside, "nothing outside is touched, nothing is run");
    });
}

#[test]
fn a_note_makes_no_commit_a_turn_s() {
    let repo = worked();
    let theirs = repo.commit("theirs.txt", "theirs\n");
    let known = repo.git(["notes", "--ref=oxundo", "show", "HEAD~1"]);
    let forged = known.lines().next().expect("a note has a line").replace(&repo.git(["rev-parse", "HEAD~1"]), &theirs);
    for note in [forged.as_str(), &known, "", "{}", "[]", "null", "{\"v\":1e999}"] {
        repo.git(["notes", "--ref=oxundo", "add", "-f", "-m", note, &theirs]);
        repo.refuses(&["undo"], "foreign");
    }
    assert_eq!(repo.head(), theirs);
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod traced {
    use super::{ASTRAY, can_be_looked_at};
    use crate::kill_points::killed_at;
    use crate::sandbox::announce;
    use crate::sandbox::{Mode, Sandbox};
    use crate::tracer::{LAUNCH, interrupt, trace};
    use serde_json::{Value, json};

    /// Whether programs can be traced here; says so loudly if not.
    fn can_trace() -> bool {
        let outcome = trace(&mut Sandbox::new().launched_command(LAUNCH, &["status"]), None);
        if let Err(error) = &outcome {
            announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
        }
        outcome.is_ok()
    }

    /// A turn that changes all kinds of things in one directory, and a place outside that looks like it.
    fn worked() -> Sandbox {
        let repo = Sandbox::new();
        repo.sh(
            "git config oxundo.maxFileSize 2k; mkdir -p dir/old; for f in edit gone mode; do echo $f >dir/$f; done",
        );
        repo.sh("git add -A; git commit -qm dir");
        repo.turn(
            Mode::Ghost,
            "echo more >>dir/edit; rm dir/gone; chmod 600 dir/mode; rmdir dir/old; mkdir dir/made; echo new >dir/new; \
             head -c 5000 /dev/zero >dir/big.bin; ln -s edit dir/link",
        );
        repo
    }

    #[test]
    fn a_symlink_planted_in_a_parent_s_place_is_never_followed() {
        if !can_trace() {
            return;
        }
        let after = worked();
        let before = after.copy();
        before.undo();
        let ends = [before.state(), after.state()];
        // Between the plan and the apply, and at the first file of each kind.
        let moments = ["refs.new /", "renameat .oxundo-tmp", "unlinkat", "mkdirat", "fchmod ", "aside/"];
        for (start, op) in [(&after, "undo"), (&before, "redo")] {
            for moment in moments {
                let repo = start.copy();
                let outside = repo.beside("outside");
                repo.sh("cp -a dir ../outside");
                let here = outside.outside();
                let plant = || drop(repo.sh("mv dir dir.moved; ln -s ../outside dir"));
                let mut command = repo.launched_command(LAUNCH, &[op]);
                let trace = interrupt(&mut command, moment, &plant).expect("it was traced before");
                let told = format!("{op}, at {moment}: {}", trace.stderr);
                repo.outside().assert_is(&here, &told);
                if repo.exists("dir.moved") {
                    repo.sh("rm dir; mv dir.moved dir");
                }
                repo.oxundo(["status"]).success();
                let now = repo.state();
                assert!(ends.contains(&now), "{told}\n{:?}", now.difference(&ends[0]));
                repo.outside().assert_is(&here, &told);
            }
        }
    }

    #[test]
    fn what_is_staged_between_plan_and_apply_stays_staged() {
        if !can_trace() {
            return;
        }
        for (mode, op) in Mode::tried().into_iter().flat_map(|mode| [(mode, "undo"), (mode, "redo")]) {
            let repo = Sandbox::new();
            repo.commit("other.txt", "one\n");
            repo.turn(mode, "echo two >>README.txt; echo two >>other.txt; git add other.txt");
            if op == "redo" {
                repo.undo();
            }
            let mine = repo.home().join("mine");
            std::fs::write(&mine, "mine\n").expect("write a file");
            let stage = || {
                let id = repo.git(["hash-object", "-w", &mine.to_string_lossy()]);
                for path in ["README.txt", "other.txt"] {
                    repo.git(["update-index", "--cacheinfo", &format!("100644,{id},{path}")]);
                }
            };
            let mut command = repo.launched_command(LAUNCH, &[op]);
            let trace = interrupt(&mut command, "index.mark", &stage).expect("it was traced before");
            let staged = repo.sh("git show :README.txt; git show :other.txt");
            assert_eq!(staged, "mine\nmine", "{mode:?}, {op}: {}", trace.stderr);
            assert_eq!(trace.code, Some(3), "{mode:?}, {op}: {}", trace.stderr);
            assert!(trace.stderr.contains("was changed meanwhile"), "{mode:?}, {op}: {}", trace.stderr);
            repo.git(["reset", "-q"]);
            repo.oxundo([op]).success();
        }
    }

    /// What someone makes of a plan, given a path.
    type Change = fn(&mut Value, &str);

    /// The journal of a killed undo, changed by someone.
    fn forge(repo: &Sandbox, change: impl FnOnce(&mut Value)) {
        let text = repo.git(["cat-file", "blob", "refs/oxundo/pending:journal.json"]);
        let mut journal = serde_json::from_str(&text).expect("the journal is JSON");
        change(&mut journal);
        let tree = repo.git(["rev-parse", "refs/oxundo/pending^{tree}"]);
        let blob = repo.blob(journal.to_string());
        let tree = repo.put(Some(&tree), &["journal.json"], Some(("100644", &blob)));
        let commit = repo.git(["commit-tree", "-m", "forged", &tree]);
        repo.git(["update-ref", "refs/oxundo/pending", &commit]);
    }

    #[test]
    fn a_journal_that_someone_else_wrote_leads_nowhere() {
        if !can_trace() {
            return;
        }
        let start = worked();
        start.beside("outside").write("canary", "canary\n");
        let killed = killed_at(&start, &["undo"], ["unlink", "oxundo/refs.mark"]);
        let changes: [(&str, Change); 6] = [
            ("files", |plan, path| plan["files"][0]["path"] = json!(path)),
            ("directories", |plan, path| plan["directories"][0]["path"] = json!(path)),
            ("aside", |plan, path| plan["aside"][0]["path"] = json!(path)),
            ("store", |plan, path| plan["aside"][0]["store"] = json!(path)),
            ("branches", |plan, path| {
                let name = format!("refs/heads/../{path}");
                plan["branches"] = json!([{"name": name, "from": null, "to": null}]);
            }),
            ("head", |plan, path| plan["head"]["to"] = json!({"branch": path, "commit": null})),
        ];
        for (at, (what, change)) in changes.iter().enumerate() {
            for path in ASTRAY.iter().skip(at % 2).step_by(2) {
                let repo = killed.copy();
                forge(&repo, |journal| change(&mut journal["plan"], &path.join("/")));
                let (before, outside) = (repo.everything(), repo.outside());
                for args in [&["status"][..], &["doctor", "--finish"]] {
                    let (code, value) = repo.json(args);
                    assert_eq!((code, &value["error"]["code"]), (1, &json!("corrupt")), "{what} {path:?}: {value}");
                }
                repo.everything().assert_is(&before, what);
                repo.outside().assert_is(&outside, what);
            }
        }
        let repo = killed.copy();
        forge(&repo, |journal| journal["record"]["message"] = json!("\u{1b}[2J$(touch ../outside/run)"));
        repo.oxundo(["doctor", "--finish"]).says("an interrupted operation: ");
        repo.oxundo(["status"]).success();
        can_be_looked_at(&repo);
    }

    #[test]
    fn a_journal_that_a_fetch_or_a_copy_brought_is_carried_out_only_by_doctor() {
        if !can_trace() {
            return;
        }
        let start = worked();
        let before = start.state();
        let killed = killed_at(&start, &["undo"], ["renameat", ".oxundo-tmp"]);
        let (fetched, copied) = (killed.beside("fetched"), killed.beside("copied"));
        killed.sh("git clone -q . ../fetched; cp -a . ../copied");
        fetched.sh("git config user.name A; git config user.email a@b; git fetch -q origin '+refs/*:refs/fetched/*'");
        fetched.sh("git update-ref refs/oxundo/pending refs/fetched/oxundo/pending");
        for repo in [&fetched, &copied] {
            let whole = repo.everything();
            for args in [&["status"][..], &["undo"], &["run", "--", "true"], &["checkpoint", "x"], &["gc"], &["log"]] {
                let output = repo.oxundo(args);
                assert_ne!(output.code, 0, "{output:?}");
                assert!(output.err().contains("interrupted in another git directory"), "{output:?}");
                assert!(output.err().contains("hint: run 'oxundo doctor'"), "{output:?}");
            }
            repo.oxundo(["hook", "claude"]).success();
            let diagnosis = repo.oxundo(["doctor"]);
            diagnosis.exits(1);
            diagnosis.says("write ");
            diagnosis.says("mend: oxundo doctor --finish");
            repo.everything().assert_is(&whole, "nothing was carried out");
        }
        // Put away, as the first line says.
        let mend = fetched.json(["doctor"]).1["findings"][0]["mend"][0].as_str().expect("a line").to_owned();
        fetched.sh(&mend);
        fetched.oxundo(["status"]).success();
        fetched.agent("echo more >>more");
        fetched.undo();
        // Or carried out.
        copied.oxundo(["doctor", "--finish"]).says("rolled back an interrupted operation: undo");
        copied.state().assert_is(&before, "as before the undo");
        copied.undo();
        copied.redo();
        copied.state().assert_is(&before, "there and back");
    }
}
