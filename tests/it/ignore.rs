//! Ignore rules are frozen when a turn begins: whatever the agent does to them, nothing of the user's is
//! deleted and nothing of the turn's stays.

use crate::sandbox::{Mode, Output, Sandbox, check_all};

/// Where a rule that ignores `*.ign` and `cache/` can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Committed,
    Uncommitted,
    Itself,
    Deep,
    Exclude,
    Global,
    Untracked,
}

const PLACES: [Place; 7] =
    [Place::Committed, Place::Uncommitted, Place::Itself, Place::Deep, Place::Exclude, Place::Global, Place::Untracked];

impl Place {
    /// The file of rules, as the agent's shell finds it.
    fn file(self) -> &'static str {
        match self {
            Self::Committed | Self::Uncommitted | Self::Itself => ".gitignore",
            Self::Deep => "sub/.gitignore",
            Self::Untracked => "loose/.gitignore",
            Self::Exclude => ".git/info/exclude",
            Self::Global => "../home/global-ignore",
        }
    }

    /// The directory that it rules.
    fn directory(self) -> &'static str {
        match self {
            Self::Deep => "sub/",
            Self::Untracked => "loose/",
            _ => "",
        }
    }
}

const RULES: &str = "*.ign\ncache/\n!keep.ign\n";

/// Ignored files of the user's, with the rules in this place.
fn ruled(place: Place) -> Sandbox {
    let repo = Sandbox::new();
    let directory = place.directory();
    repo.write("sub/tracked", "tracked\n").write("loose/file", "loose\n");
    repo.sh("git add sub && git commit -qm sub");
    repo.git(["config", "core.excludesFile", repo.home().join("global-ignore").to_str().expect("the home is UTF-8")]);
    match place {
        Place::Committed | Place::Deep => drop(repo.commit(place.file(), RULES)),
        Place::Itself => drop(repo.write(".gitignore", format!(".gitignore\n{RULES}"))),
        _ => drop(repo.write(place.file(), RULES)),
    }
    for name in ["mine.ign", "cache/deep/mine", "keep.ign", "plain"] {
        repo.write(format!("{directory}{name}"), format!("mine: {name}\n"));
    }
    repo
}

/// Every file that no rule hid, and the ignored ones: what is on disk, and git's view of it.
#[track_caller]
fn walk(repo: &Sandbox, place: Place, mode: Mode, script: &str) {
    let before = repo.state();
    repo.turn(mode, script);
    let after = repo.state();
    // What is outside the worktree, or ignored itself, is not captured: the rules stay as the agent
    // left them, and git sees by them.
    let stays = matches!(place, Place::Exclude | Place::Global | Place::Itself);
    for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
        repo.oxundo([op]).success();
        if stays {
            let own = format!("on disk {}", place.file());
            let files = |name: &str| (name.starts_with("on disk") && name != own) || name.starts_with("index");
            repo.state().only(files).assert_is(&wanted.clone().only(files), &format!("{op} brings the files back"));
        } else {
            repo.state().assert_is(wanted, &format!("{op} brings all back"));
        }
    }
}

fn in_every_place(change: impl Fn(Place) -> String) {
    let cases = PLACES.iter().enumerate().map(|(at, place)| (format!("{place:?}"), (*place, Mode::BOTH[at % 2])));
    check_all(cases, |(place, mode)| walk(&ruled(*place), *place, *mode, &change(*place)));
}

#[test]
fn rules_that_are_loosened() {
    in_every_place(|place| format!(": >{}; echo agent >{}new.txt", place.file(), place.directory()));
}

#[test]
fn rules_that_are_removed() {
    in_every_place(|place| format!("rm {}; echo agent >{}plain; echo new >new.txt", place.file(), place.directory()));
}

#[test]
fn rules_that_are_tightened_hide_nothing_of_the_turns() {
    in_every_place(|place| {
        let (file, directory) = (place.file(), place.directory());
        format!(
            "echo '*' >>{file}; echo new >{directory}hidden; echo agent >{directory}plain; rm {directory}keep.ign; mkdir -p {directory}d/e; echo new >{directory}d/e/hidden"
        )
    });
}

#[test]
fn rules_that_are_added() {
    for mode in Mode::tried() {
        for file in [".gitignore", "sub/.gitignore", "made/.gitignore", ".git/info/exclude"] {
            let repo = ruled(Place::Committed);
            repo.write("secret.txt", "mine\n");
            let before = repo.state();
            let files = |name: &str| name.starts_with("on disk") || name.starts_with("index");
            repo.turn(mode, &format!("mkdir made; printf '*\\n' >>{file}; echo agent >secret.txt; echo new >sub/new; echo new >made/new; git add -f sub/new"));
            let after = repo.state();
            for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
                repo.oxundo([op]).success();
                repo.state().only(files).assert_is(&wanted.clone().only(files), &format!("{op}, a rule in {file}"));
            }
        }
    }
}

#[test]
fn ignored_files_that_the_agent_tracks_are_not_deleted() {
    for mode in Mode::tried() {
        let repo = ruled(Place::Committed);
        repo.turn(mode, "git add -f mine.ign cache; git commit -qm forced; echo new >new.txt");
        repo.undo();
        repo.assert_file("mine.ign", "mine: mine.ign\n", "it was there before the turn");
        repo.assert_file("cache/deep/mine", "mine: cache/deep/mine\n", "it was there before the turn");
        assert_eq!(repo.git(["status", "--short"]), "?? keep.ign\n?? loose/\n?? plain", "and it is ignored again");
        repo.redo();
        repo.assert_file("mine.ign", "mine: mine.ign\n", "it is tracked again");
        assert_eq!(repo.git(["status", "--short", "-uno"]), "", "it is tracked again");
    }
}

#[test]
fn a_rule_beside_a_tracked_file_does_not_hide_it() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.write("tracked.ign", "one\n").write("cache/tracked", "one\n");
        repo.sh("git add . && git commit -qm files");
        repo.write(".gitignore", RULES).write("cache/mine", "mine\n");
        repo.there_and_back(mode, "echo agent >tracked.ign; rm cache/tracked; echo two >.gitignore");
        repo.assert_file("cache/mine", "mine\n", "it was ignored");
    }
}

#[test]
fn included_files_are_captured_wherever_they_are() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.commit(".gitignore", ".env*\nbuild/\nsecrets/\n");
        repo.git(["config", "oxundo.include", ".env secrets/*.key"]);
        repo.git(["config", "--add", "oxundo.include", "deep/.env.local"]);
        for path in
            [".env", "deep/.env", "deep/.env.local", ".env.local", "secrets/a.key", "secrets/b.txt", "build/.env"]
        {
            repo.write(path, format!("mine: {path}\n"));
        }
        let before = repo.state();
        let captured = [".env", "deep/.env", "deep/.env.local", "secrets/a.key"];
        repo.turn(mode, "echo agent >.env; rm deep/.env secrets/a.key; echo agent >deep/.env.local; echo new >secrets/new.key; echo two >README.txt");
        let after = repo.state();
        for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
            repo.oxundo([op]).success();
            repo.state().assert_is(wanted, op);
        }
        for path in captured {
            assert_eq!(repo.git(["log", "--all", "--format=%s", "--", path]), "", "{path} is in no commit");
        }
        repo.turn(mode, "echo agent >.env.local; rm secrets/b.txt; echo 3 >README.txt");
        repo.undo();
        repo.assert_file(".env.local", "agent\n", "what no glob names is not captured");
        repo.assert_absent("secrets/b.txt", "what no glob names is not captured");
    }
}

#[test]
fn an_include_that_leads_out_is_refused() {
    let repo = Sandbox::new();
    for bad in ["../outside.txt", "a/../../b", ".."] {
        repo.git(["config", "oxundo.include", bad]);
        let output = repo.oxundo(["run", "--", "sh", "-c", "echo two >README.txt"]);
        output.exits(125);
        output.warns(bad);
        repo.assert_file("README.txt", "readme\n", "the agent was not started");
    }
}

#[test]
fn a_file_that_is_only_ignored_since_is_no_edit_of_the_users() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        let rules = repo.home().join("global-ignore");
        repo.git(["config", "core.excludesFile", rules.to_str().expect("the home is UTF-8")]);
        repo.write(".claude/settings.local.json", "{}\n");
        repo.sh("ln -s README.txt link; echo x >program; chmod 700 program");
        // As Claude Code does when its session starts.
        repo.turn(
            mode,
            "printf '%s\n' '**/.claude/settings.local.json' link program >../home/global-ignore; echo n >new",
        );
        let names = |output: &Output| output.out().contains("Kept your edits");
        for args in [&["undo", "--dry-run"], &["undo"] as &[_], &["redo"], &["undo", "--revert"]] {
            let output = repo.oxundo(args);
            output.success();
            assert!(!names(&output), "{args:?}: nobody edited anything: {output:?}");
            repo.assert_file(".claude/settings.local.json", "{}\n", "it stays as it was");
        }
        repo.assert_absent("new", "the turn is undone");
        assert_eq!(repo.mode("program"), 0o700);

        repo.turn(mode, "echo n >new");
        repo.write(".claude/settings.local.json", "{\"mine\": 1}\n");
        repo.undo();
        repo.assert_file(".claude/settings.local.json", "{\"mine\": 1}\n", "what is ignored stays");
    }
}

#[test]
fn an_edit_of_a_file_that_is_ignored_since_is_kept_and_named() {
    for mode in Mode::tried() {
        for edit in ["echo mine >>notes", "chmod 700 notes", "rm notes"] {
            let repo = Sandbox::new();
            let rules = repo.home().join("global-ignore");
            repo.git(["config", "core.excludesFile", rules.to_str().expect("the home is UTF-8")]);
            repo.write("notes", "one\n");
            repo.turn(mode, "echo notes >../home/global-ignore; echo n >new");
            repo.sh(edit);
            let look = "! ls -l notes || cat notes";
            let edited = repo.sh(look);
            let output = repo.oxundo(["undo"]);
            output.success();
            output.says("Kept your edits in notes");
            assert_eq!(repo.sh(look), edited, "{edit}");
        }
    }
}

#[test]
fn a_file_that_is_only_listed_since_is_no_edit_of_the_users() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.commit(".gitignore", "notes\n");
        repo.write("notes", "one\n");
        repo.turn(mode, "echo >.gitignore; echo n >new");
        repo.write("mine", "mine\n");
        let output = repo.oxundo(["undo"]);
        output.success();
        output.says("Kept your edits in mine");
        assert!(!output.out().contains("notes"), "{output:?}");
        repo.assert_file("notes", "one\n", "it stays as it was");
    }
}

/// As a build directory that a watcher writes to: what is said to be moved out of the way is no edit where it has been moved.
#[test]
fn what_a_turn_untracked_comes_back_where_it_has_been_moved_out_of_the_way() {
    for mode in Mode::BOTH {
        for gone in ["echo MINE >>dist/f; mv dist ../moved", "rm -r dist"] {
            let repo = Sandbox::new();
            repo.sh("mkdir dist; echo f >dist/f; git add dist; git commit -qm dist");
            let before = repo.state();
            repo.turn(mode, "git rm -rq --cached dist; echo dist >.gitignore; echo ITS >>dist/f");
            repo.sh(gone);
            let after = repo.state();
            repo.undo();
            repo.state().assert_is(&before, gone);
            repo.redo();
            repo.state().assert_is(&after, "redo");
        }
    }
}

/// No state has it, whoever made it: the turn that ceased to ignore it says so as it ends, and so does undo.
#[test]
fn what_a_turn_no_longer_ignores_is_named_at_its_end_and_by_undo() {
    for mode in Mode::BOTH {
        let repo = Sandbox::new();
        repo.sh("echo gen >.gitignore; git add .gitignore; git commit -qm rules; mkdir gen; echo MINE >gen/old");
        let ended = repo.oxundo([
            "run",
            if mode == Mode::Ghost { "--ghost" } else { "--agent=sh" },
            "--",
            "sh",
            "-c",
            ": >.gitignore; echo ITS >gen/new; echo ITS >its.txt",
        ]);
        ended.warns("the turn no longer ignores 'gen/new', 'gen/old', which undo does not cover");
        let undone = repo.oxundo(["undo"]);
        undone.success();
        undone.warns("'gen/new', 'gen/old' stay as they are: they were ignored as turn 1 began");
        assert_eq!(repo.sh("cat gen/old gen/new .gitignore"), "MINE\nITS\ngen");
        assert!(!repo.exists("its.txt"));
        let redone = repo.oxundo(["redo"]);
        redone.success();
        assert!(!redone.err().contains("ignored"), "{redone:?}");
        // Of what was ignored by then, and is so still, nothing is said.
        repo.turn(mode, "echo '*.o' >.gitignore; echo ITS >a.o");
        repo.oxundo(["undo"]).success();
    }
}

/// Nobody knows what was in it before.
#[test]
fn what_a_turn_adds_to_the_index_though_it_is_ignored_is_named_where_it_stays() {
    let stories = [
        "echo AGENT >>o.npy; git add -f o.npy",
        "echo AGENT >>o.npy; git add -f o.npy; git commit -qm its",
        "echo AGENT >>o.npy; sed -i /npy/d .gitignore; git add -A",
        "echo AGENT >n.npy; git add -f n.npy; git commit -qm its",
        "echo AGENT >>o.npy; git add -f o.npy; git commit -qm its; echo AGENT2 >>o.npy",
    ];
    for (mode, story) in Mode::tried().into_iter().flat_map(|mode| stories.map(|story| (mode, story))) {
        let path = if story.contains("n.npy; git") { "n.npy" } else { "o.npy" };
        let repo = Sandbox::new();
        repo.commit(".gitignore", "*.npy\n*.log\n");
        repo.sh("echo USER >o.npy");
        let mode_of = if mode == Mode::Ghost { "--ghost" } else { "--agent=sh" };
        let ended = repo.oxundo(["run", mode_of, "--", "sh", "-ec", story]);
        ended.warns(&format!("the turn no longer ignores '{path}', which undo does not cover"));
        let (after, left) = (repo.state(), repo.read(path));
        let undone = repo.oxundo(["undo"]);
        undone.success();
        undone.warns(&format!("'{path}' stays as it is: it was ignored as turn 1 began"));
        assert_eq!(repo.read(path), left, "{story}");
        repo.redo();
        repo.state().assert_is(&after, story);
    }
}
