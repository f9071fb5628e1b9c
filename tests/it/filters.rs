//! What stands between a file and its blob: line ends, encodings, filters. Undo and redo give back the
//! very bytes of every captured file, tracked or not.

use crate::sandbox::{Mode, Sandbox, announce, check_all, in_both_modes};
use crate::steps::{edit, hook, tick};
use serde_json::json;
use std::process::Command;

/// A repository with attributes and settings, and files in every state: clean, dirty, staged, untracked.
fn with(attributes: &str, settings: &[(&str, &str)], name: &str, contents: [&[u8]; 4]) -> Sandbox {
    let repo = Sandbox::new();
    for (key, value) in settings {
        repo.git(["config", key, value]);
    }
    repo.commit(".gitattributes", attributes);
    let [clean, dirty, staged, untracked] = contents;
    for (state, content) in [("clean", clean), ("dirty", b"first\n"), ("staged", b"first\n")] {
        repo.write(format!("{state}{name}"), content);
    }
    repo.sh("git add . 2>/dev/null && git commit -qm files");
    repo.write(format!("dirty{name}"), dirty).write(format!("staged{name}"), staged);
    repo.sh(&format!("git add staged{name} 2>/dev/null"));
    repo.write(format!("untracked{name}"), untracked);
    repo
}

/// The agent rewrites, deletes and adds such files.
fn script(name: &str) -> String {
    format!(
        "printf 'agent\\r\\nmade\\n' >clean{name}; printf 'agent\\n' >dirty{name}; rm staged{name} untracked{name};
         printf 'new\\r\\n' >new{name}; printf 'a\\r\\nb\\n' >other{name}; git add other{name} 2>/dev/null || :"
    )
}

const MIXED: [&[u8]; 4] =
    [b"one\r\ntwo\n$Id$\n", b"ONE\ntwo\r\n$Id: mine $\n", b"\r\n\r\none\n", b"mixed\r\nends\n$Id: x $\n"];

#[test]
fn what_is_committed_is_converted_by_the_attributes_of_every_source() {
    let sources = ["the worktree", "info", "a file", "a file from the top", "a tree", "a tree for one command"];
    check_all(sources.map(|source| (source.to_owned(), source)), |source| {
        let mut repo = Sandbox::new();
        repo.commit("sub/f", "one\n");
        let tree = repo.sh(
            "git switch -qc attributes; echo '* ident' >.gitattributes; git add .gitattributes; git commit -qm attributes
             git switch -q main; git rev-parse attributes^{tree}",
        );
        match *source {
            "the worktree" => drop(repo.commit(".gitattributes", "* ident\n")),
            "info" => drop(repo.write(".git/info/attributes", "* ident\n")),
            "a file" => drop(repo.sh("echo '* ident' >~/rules; git config core.attributesFile '~/rules'")),
            "a file from the top" => {
                repo.sh("echo '* ident' >.git/rules; git config core.attributesFile .git/rules");
                repo.start_in("sub");
            }
            "a tree" => drop(repo.git(["config", "attr.tree", tree.trim()])),
            _ => repo = repo.with_variable("GIT_ATTR_SOURCE", tree.trim()),
        }
        let file = if *source == "a file from the top" { "f" } else { "sub/f" };
        for content in ["$Id: agent $ one", "$Id: agent $ two"] {
            repo.agent(&format!("echo '{content}' >{file}"));
            assert_eq!(repo.git(["status", "--porcelain"]), "", "git finds nothing to convert");
            let wanted = repo.git(["hash-object", "--path=sub/f", "sub/f"]);
            assert_eq!(repo.git(["rev-parse", "HEAD:sub/f"]), wanted, "it is what git would have committed");
        }
        repo.undo();
        repo.assert_file("sub/f", "$Id: agent $ one\n", "the very bytes");
    });
}

#[test]
fn line_ends_and_ident_come_back() {
    let rules = [
        "*.x text",
        "*.x text=auto",
        "*.x -text",
        "*.x eol=crlf",
        "*.x eol=lf",
        "*.x text eol=crlf ident",
        "*.x ident",
        "",
    ];
    let mut cases = Vec::new();
    for (at, rule) in rules.into_iter().enumerate() {
        for (n, autocrlf) in ["false", "input", "true"].into_iter().enumerate() {
            let mode = Mode::BOTH[(at + n) % 2];
            cases.push((format!("'{rule}' autocrlf={autocrlf} {mode:?}"), (rule, autocrlf, mode)));
        }
    }
    check_all(cases, |(rule, autocrlf, mode)| {
        let settings = [("core.autocrlf", *autocrlf)];
        let repo = with(&format!("{rule}\n"), &settings, ".x", MIXED);
        repo.there_and_back(*mode, &script(".x"));
    });
}

#[test]
fn safecrlf_does_not_stop_a_turn() {
    let repo = with("*.x text\n", &[("core.autocrlf", "true")], ".x", MIXED);
    repo.git(["config", "core.safecrlf", "true"]);
    repo.write("plain.txt", "one\ntwo\r\n");
    repo.there_and_back(Mode::Commit, &script(".x"));
}

#[test]
fn another_encoding_comes_back() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.commit(
            ".gitattributes",
            "*.u text working-tree-encoding=UTF-16LE eol=crlf\n*.l working-tree-encoding=ISO-8859-1\n",
        );
        repo.write("clean.u", utf16("ein\r\nzwei ä\r\n")).write("dirty.u", utf16("one\r\n")).write("a.l", b"caf\xe9\n");
        repo.sh("git add . && git commit -qm files");
        repo.write("dirty.u", utf16("mine\nwith other ends\r\n"));
        repo.write("untracked.u", utf16("untracked\n")).write("broken.u", b"odd").write("b.l", b"\xe4\n");
        repo.there_and_back(mode, "printf 'x\\0\\n\\0' >clean.u; printf 'y\\0' >dirty.u; rm untracked.u broken.u; printf '\\344\\n' >a.l; printf 'n\\0' >new.u");
    }
}

#[test]
fn a_filter_that_loses_bytes_loses_none() {
    let settings =
        [("filter.loss.clean", "tr a-z A-Z"), ("filter.loss.smudge", "tr A-Z a-z"), ("filter.loss.required", "true")];
    let contents: [&[u8]; 4] = [b"Clean File\n", b"Dirty File\n", b"Staged File\n", b"Untracked File\n"];
    for mode in Mode::tried() {
        let repo = with("*.x filter=loss\n", &settings, ".x", contents);
        repo.there_and_back(mode, &script(".x"));
    }
}

#[test]
fn a_filter_that_fails_or_is_missing_does_not_lose_the_turn() {
    let repo = Sandbox::new();
    repo.commit(".gitattributes", "*.x filter=gone\n");
    repo.git(["config", "filter.gone.clean", "false"]);
    repo.git(["config", "filter.gone.required", "true"]);
    repo.write("untracked.x", "mine\n");
    let before = repo.state();
    let output = repo.agent("echo agent >new.x; rm untracked.x; echo two >a.txt");
    output.warns("not committed");
    repo.undo();
    repo.state().assert_is(&before, "the turn was recorded, and is undone");
}

#[test]
fn a_required_filter_that_is_gone_by_then_stands_in_no_way() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.sh("git config filter.turn.clean 'tr a-z b-za'; git config filter.turn.smudge 'tr b-za a-z'
            git config filter.turn.required true; echo '*.x filter=turn' >.gitattributes; echo abc >a.x; echo abc >b.x
            git add -A; git commit -qm x; echo mine >>b.x");
        let before = repo.state();
        repo.turn(mode, "echo more >>a.x; echo more >>b.x; echo new >c.x; git add a.x; echo 2 >README.txt");
        let after = repo.state();
        for (args, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
            repo.sh("for which in clean smudge; do git config filter.turn.$which /nowhere/filter; done");
            repo.oxundo([args]).success();
            repo.sh("git config filter.turn.clean 'tr a-z b-za'; git config filter.turn.smudge 'tr b-za a-z'");
            repo.state().assert_is(wanted, args);
        }
    });
}

/// Git's long-running filter protocol, in a shell's neighbour: it turns the case of letters.
const PROCESS: &str = r#"
use strict; binmode STDIN; binmode STDOUT; $| = 1;
sub get { my ($h, $d); read(STDIN, $h, 4) == 4 or exit 0; my $n = hex $h; return undef if $n == 0; read(STDIN, $d, $n - 4); $d }
sub put { print sprintf("%04x", length($_[0]) + 4), $_[0] }
sub done { print "0000" }
sub list { my @l; while (defined(my $p = get())) { push @l, $p } @l }
list(); put("git-filter-server\n"); put("version=2\n"); done();
list(); put("capability=clean\n"); put("capability=smudge\n"); done();
open(my $log, '>>', $ARGV[0]); print $log "started\n"; close $log;
while (1) {
    my ($command) = list(); my $text = join '', list();
    if ($command =~ /clean/) { $text =~ tr/a-z/A-Z/ } else { $text =~ tr/A-Z/a-z/ }
    put("status=success\n"); done();
    put(substr($text, 0, 65000, '')) while length $text;
    done(); done();
}
"#;

#[test]
fn a_long_running_filter_is_spoken_to_and_loses_nothing() {
    let contents: [&[u8]; 4] = [b"Clean File\n", b"Dirty File\n", b"Staged File\n", b"Untracked File\n"];
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        std::fs::write(repo.home().join("filter.pl"), PROCESS).expect("write the filter");
        let (filter, log) = (repo.home().join("filter.pl"), repo.home().join("filter.log"));
        let command = format!("perl {} {}", filter.display(), log.display());
        let settings = [("filter.long.process", command.as_str()), ("filter.long.required", "true")];
        let repo = with("*.x filter=long\n", &settings, ".x", contents);
        repo.there_and_back(mode, &script(".x"));
        if mode == Mode::Commit {
            repo.redo();
            assert_eq!(
                repo.git(["show", "HEAD:clean.x"]),
                "AGENT\r\nMADE",
                "what is committed went through the filter"
            );
        }
        assert!(log.exists(), "the filter was used");
    }
}

#[test]
fn git_lfs_files_come_back() {
    if !Command::new("git-lfs").arg("version").output().is_ok_and(|output| output.status.success()) {
        return announce("SKIPPED: git-lfs is not installed");
    }
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.git(["lfs", "install", "--local", "--skip-repo"]);
        repo.commit(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
        for name in ["clean", "dirty", "doomed", "staged"] {
            repo.write(format!("{name}.bin"), format!("{name}\0one\r\n"));
        }
        repo.sh("git add . && git commit -qm files");
        assert!(repo.git(["show", "HEAD:clean.bin"]).starts_with("version https://git-lfs"), "git-lfs is at work");
        repo.write("dirty.bin", b"mine\0\r\n")
            .write("staged.bin", b"mine\0 too\r\n")
            .write("untracked.bin", b"\0untracked\n");
        repo.git(["add", "staged.bin"]);
        let script = "printf 'agent\\0' >clean.bin; printf 'agent\\0' >dirty.bin; rm doomed.bin untracked.bin; printf 'new\\0' >new.bin";
        repo.there_and_back(mode, script);
        repo.redo();
        let listed = repo.git(["ls-files"]);
        if mode == Mode::Commit {
            assert!(
                repo.git(["show", "HEAD:new.bin"]).starts_with("version https://git-lfs"),
                "a pointer is committed"
            );
            assert!(listed.contains("new.bin") && !listed.contains("doomed.bin"), "{listed}");
            assert_eq!(repo.git(["status", "--short", "--untracked-files=no"]), "", "and all is clean");
        }
        repo.undo();
        // A pointer that was never smudged is a file like any other.
        repo.sh("git -c filter.lfs.smudge=cat -c filter.lfs.process= -c filter.lfs.required=false checkout -q HEAD -- clean.bin");
        repo.there_and_back(mode, "printf 'over the pointer' >clean.bin");
    }
}

#[test]
fn a_filter_that_is_gone_is_not_needed_for_files_that_stay() {
    let repo = Sandbox::new();
    repo.write("ga", "f2 filter=up\n").write("f2", "one\n");
    repo.sh("git add .; git commit -qm files; git update-index --split-index");
    let mut states = vec![repo.files()];
    for work in [
        "cp ga .gitattributes",
        "git config core.autocrlf true; rm .gitattributes",
        "printf 'x\\r\\ny1\\n' >f2; git config core.trustctime false; git config --unset core.autocrlf",
    ] {
        repo.turn(Mode::Commit, work);
        states.push(repo.files());
    }
    repo.sh("git config filter.up.smudge false; git config filter.up.required true");
    for state in states.iter().rev().skip(1) {
        repo.undo();
        repo.files().assert_is(state, "undo");
    }
}

/// What converts a file: its attributes, git's settings before its first commit, and after it.
const CONVERSIONS: [(&str, [&str; 3]); 7] = [
    ("nothing", ["", "", ""]),
    ("a filter one way", ["both filter=f", "git config filter.f.clean 'sed s/^/#/'", ""]),
    ("a filter", ["both filter=f", "git config filter.f.clean tac; git config filter.f.smudge tac", ""]),
    ("line ends", ["both text eol=crlf", "", ""]),
    ("automatic line ends", ["", "git config core.autocrlf true", ""]),
    ("line ends that stay", ["", "", "git config core.autocrlf true"]),
    ("an encoding", ["both text working-tree-encoding=UTF-16", "", ""]),
];

#[test]
fn what_git_has_only_written_anew_is_not_named_as_an_edit() {
    let kinds = [
        ("core.autocrlf true", ""),
        ("core.autocrlf false", "*.txt text eol=crlf"),
        ("filter.f.smudge 'tr a-z A-Z'", "*.txt filter=f"),
    ];
    for (setting, attributes) in kinds {
        let repo = Sandbox::new();
        repo.sh("printf 'a\\nb\\n' >mine.txt; cp mine.txt other.txt; git add -A; git commit -qm files");
        repo.commit(".gitattributes", attributes);
        repo.sh(&format!("git config {setting}; git config filter.f.clean 'tr A-Z a-z'"));
        repo.turn(Mode::Ghost, "echo ITS >its.md");
        let was = repo.read("other.txt");
        repo.sh("echo MINE >>mine.txt; rm other.txt; git checkout -q other.txt");
        assert_ne!(repo.read("other.txt"), was, "{setting}: it is written anew");
        let undone = repo.oxundo(["undo"]);
        undone.success();
        assert!(undone.out().contains("Kept your edits in mine.txt\n"), "{setting}: {undone:?}");
    }
}

/// By a switch of branches, or by the stash: `git status` is clean.
#[test]
fn what_git_has_written_anew_in_other_ends_is_as_a_turn_left_it() {
    let kinds: [(&str, &str, &str); 4] = [
        ("core.autocrlf true", "", "AGENT\\n"),
        ("core.autocrlf input", "", "AGENT\\r\\n"),
        ("core.autocrlf false", "*.txt text eol=crlf", "AGENT\\n"),
        ("filter.f.clean 'sed s/foo/bar/'", "*.txt filter=f", "foo AGENT\\n"),
    ];
    for (setting, attributes, made) in kinds {
        for (mode, undo) in
            Mode::tried().into_iter().flat_map(|mode| ["undo", "undo --only=1"].map(|undo| (mode, undo)))
        {
            let repo = Sandbox::new();
            repo.commit(".gitattributes", attributes);
            repo.sh(&format!("git config {setting}; seq 9 >old.txt; git add old.txt 2>/dev/null; git commit -qm old; git stash -q 2>/dev/null || :"));
            let before = repo.read("old.txt");
            repo.turn(mode, &format!("printf '{made}' >new.txt; sed -i 's/^3/AGENT/' old.txt"));
            repo.sh(match mode {
                Mode::Commit => "git switch -qc other HEAD~1; git switch -q main",
                Mode::Ghost => "git stash -qu; git stash pop -q",
            });
            let there = repo.read("new.txt");
            assert_ne!(
                there,
                made.replace("\\n", "\n").replace("\\r", "\r").as_bytes(),
                "{setting}: it is written anew"
            );
            let work = repo.git(["status", "--porcelain"]);
            repo.oxundo(undo.split(' ')).success();
            repo.assert_absent("new.txt", setting);
            assert_eq!(repo.read("old.txt").len(), before.len(), "{setting}");
            assert_eq!(repo.git(["status", "--porcelain"]), "", "{setting}");
            repo.oxundo([if undo == "undo" { "redo" } else { "undo" }]).success();
            assert_eq!(repo.git(["status", "--porcelain"]), work, "{setting}");
            // Whatever somebody saves in it is theirs.
            repo.sh("echo USER >>new.txt");
            let error = repo.refuses(&undo.split(' ').collect::<Vec<_>>(), "conflict");
            assert!(error["message"].as_str().is_some_and(|message| message.contains("new.txt")), "{error}");
            repo.assert_sound();
        }
    }
}

#[test]
fn what_the_user_saves_between_calls_is_theirs_in_a_file_that_git_converts() {
    let ways = CONVERSIONS.iter().flat_map(|way| [false, true].map(|is_staged| (way, is_staged)));
    check_all(ways.map(|case| (format!("{}, staged: {}", case.0.0, case.1), case)), |(way, is_staged)| {
        let (name, [attributes, before, after]) = way;
        let [read, write] = match *name {
            "an encoding" => ["iconv -f UTF-16 -t UTF-8", "iconv -f UTF-8 -t UTF-16"],
            name if name.contains("line ends") => ["tr -d '\\r'", "sed 's/$/\\r/'"],
            _ => ["cat", "cat"],
        };
        let change = |script: &str| format!("{read} <both | sed '{script}' | {write} >../new; cat ../new >both");
        let repo = Sandbox::new();
        repo.write(".gitattributes", format!("{attributes}\n")).sh(before);
        repo.sh(&format!("seq 9 | {write} >both; git add . 2>/dev/null; git commit -qm files; {after}"));
        repo.sh(&change("s/3/before/"));
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        tick();
        edit(&repo, 1, "both", &change("s/1/agent/"));
        tick();
        repo.sh(&change("s/9/mine/"));
        if *is_staged {
            repo.sh("git add both 2>/dev/null");
        }
        tick();
        edit(&repo, 2, "both", &change("s/5/its/"));
        hook(&repo, "s", "Stop", &json!({}));
        let words = |text: &str| {
            let words = ["agent", "before", "its", "mine"].into_iter().filter(|word| text.contains(*word));
            words.collect::<Vec<_>>().join(" ")
        };
        let of = |commit: &str| words(&repo.sh(&format!("git show --format= -U0 {commit} | grep ^+")));
        assert_eq!([of("HEAD"), of("HEAD~")], ["agent its", "before"], "each commit has whose it is");
        let file = || repo.sh(&format!("{read} <both"));
        assert_eq!(words(&file()), "agent before its mine");
        let left = |options: &str| repo.sh(&format!("git diff -U0 {options} -- both 2>/dev/null | grep ^+ || :"));
        let (staged, unstaged) = if *is_staged { ("mine", "") } else { ("", "mine") };
        assert_eq!([words(&left("--cached")), words(&left(""))], [staged, unstaged], "what they did not commit");
        let after = repo.state();
        repo.undo();
        assert_eq!(words(&file()), "before mine", "undo keeps it");
        repo.redo();
        repo.state().assert_is(&after, "redo");
        // It is not what the turn left uncommitted.
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        edit(&repo, 3, "README.txt", "echo more >>README.txt");
        hook(&repo, "s", "Stop", &json!({}));
        assert_eq!([of("HEAD"), of("HEAD~")], ["", "mine"], "the next turn commits, and before it what is the user's");
    });
}

/// As git-lfs does it: git has the name of the content, and lines of names tell nothing.
#[test]
fn what_the_user_saves_between_calls_is_theirs_in_a_file_of_which_git_has_a_name() {
    for (last, mine) in [("true", "mine"), ("sed -i s/7/mine2/ both", "mine mine2")] {
        let repo = Sandbox::new();
        repo.sh(
            "mkdir ../store
             git config filter.f.clean 'd=../store/$$; cat >$d; n=$(git hash-object --no-filters $d); mv $d ../store/$n; echo $n'
             git config filter.f.smudge 'read n; cat ../store/$n'
             echo both filter=f >.gitattributes; seq 9 >both; git add .; git commit -qm files",
        );
        let of = |commit: &str| {
            repo.sh(&format!("git cat-file --filters {commit}:both | grep -o '[a-z]*[0-9]*' | grep '[a-z]' | xargs"))
        };
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        edit(&repo, 1, "README.txt", "echo its >>README.txt");
        tick();
        repo.sh("sed -i s/9/mine/ both");
        tick();
        edit(&repo, 2, "both", "sed -i s/1/its/ both");
        tick();
        repo.sh(last);
        tick();
        hook(&repo, "s", "Stop", &json!({}));
        assert_eq!(of("HEAD"), "its", "{last}: the agent's line alone");
        assert_eq!(repo.git(["status", "--porcelain"]), " M both");
        let after = repo.state();
        repo.undo();
        assert_eq!(repo.sh("grep -o 'mine.*' both | sort | xargs; grep its both || :"), mine);
        repo.redo();
        repo.state().assert_is(&after, "redo");
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        edit(&repo, 3, "README.txt", "echo more >>README.txt");
        hook(&repo, "s", "Stop", &json!({}));
        assert_ne!(of("HEAD~"), "its", "{last}: the next turn commits, and before it what is the user's");
        assert_eq!(repo.git(["status", "--porcelain"]), "");
    }
}
