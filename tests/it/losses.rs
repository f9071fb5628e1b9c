//! Each way in which work goes away is planted, and then one `oxundo find` names it with the line that, typed as printed,
//! brings the very bytes back.

use crate::sandbox::{Mode, Sandbox};
use crate::steps::{call, edit, hook, shell, tick};
use serde_json::json;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What is lost everywhere, in as many ways as there are.
const LOST: &str = "lost work\n";

/// A way to lose something.
struct Loss {
    what: &'static str,
    /// Plants it; gives the worktree in which it is looked for, where that is not the first one.
    plant: fn(&Sandbox) -> Option<Sandbox>,
    ask: &'static [&'static str],
    path: &'static [u8],
    content: &'static [u8],
}

const A: Loss =
    Loss { what: "", plant: |_| None, ask: &["-S", "lost work", "a.txt"], path: b"a.txt", content: LOST.as_bytes() };

/// Says that nobody is to be asked about what is there.
macro_rules! plant {
    ($repo:ident, $($done:tt)*) => {
        |$repo| {
            $($done)*
            None
        }
    };
}

/// By what was done in the worktree by turns and undo.
const BY_TURNS: &[Loss] = &[
    Loss {
        what: "the agent deleted what it had made",
        plant: plant!(repo, repo.turn(Mode::Ghost, "echo lost work >a.txt"); repo.turn(Mode::Ghost, "rm a.txt");),
        ..A
    },
    Loss {
        what: "the agent deleted the user's untracked file",
        plant: plant!(repo, repo.write("a.txt", LOST); repo.agent("rm a.txt; echo 1 >b"); repo.agent("echo 2 >b");),
        ..A
    },
    Loss {
        what: "a turn that is open deleted it",
        plant: plant!(repo,
            repo.write("a.txt", LOST);
            hook(repo, "s", "UserPromptSubmit", &json!({}));
            repo.sh("rm a.txt");
        ),
        ..A
    },
    Loss {
        what: "the turn is undone, and another one made instead",
        plant: plant!(repo, repo.agent("echo lost work >a.txt"); repo.undo(); repo.agent("echo other >a.txt");),
        ..A
    },
    Loss {
        what: "undo overwrote the user's edit",
        plant: plant!(repo,
            repo.agent("echo agent >>README.txt");
            repo.write("README.txt", LOST).oxundo(["undo", "--edits=overwrite"]).success();
        ),
        ask: &["-S", "lost work"],
        path: b"README.txt",
        ..A
    },
    Loss {
        what: "it was restored over",
        plant: plant!(repo,
            repo.agent("echo 1 >a.txt");
            repo.write("a.txt", LOST).oxundo(["restore", "1", "--", "a.txt"]).success();
        ),
        ..A
    },
    Loss {
        what: "one turn of several was taken out",
        plant: plant!(repo,
            repo.agent("echo lost work >a.txt");
            repo.agent("echo 2 >b");
            repo.oxundo(["undo", "--only", "1"]).success();
        ),
        ..A
    },
    Loss {
        what: "renamed, then deleted",
        plant: plant!(repo, repo.write("a.txt", LOST); repo.agent("mv a.txt b"); repo.agent("rm b; echo 1 >c");),
        ask: &["-S", "lost work"],
        path: b"b",
        ..A
    },
    Loss {
        what: "a directory is in its place",
        plant: plant!(repo, repo.write("a.txt", LOST); repo.agent("rm a.txt; mkdir a.txt; echo 1 >a.txt/b"); repo.agent("rm -r a.txt; touch c");),
        ..A
    },
    Loss {
        what: "its neighbours have expired",
        plant: plant!(repo,
            repo.agent("echo lost work >a.txt");
            repo.oxundo(["keep", "1"]).success();
            for turn in 0..6 {
                repo.agent(&format!("echo {turn} >a.txt"));
            }
            repo.oxundo(["gc", "--keep", "now"]).success();
        ),
        ..A
    },
    Loss {
        what: "squashed: it was between two commits",
        plant: plant!(repo,
            repo.agent("echo lost work >a.txt");
            repo.agent("echo better >a.txt");
            repo.oxundo(["squash", "1.."]).success();
        ),
        ..A
    },
    Loss {
        what: "it looked like a secret, and was never committed",
        plant: plant!(repo, repo.agent("echo lost work >.env"); repo.agent("rm .env; echo 1 >b");),
        ask: &[".env"],
        path: b".env",
        ..A
    },
    Loss {
        what: "ignored, and named to be captured",
        plant: plant!(repo,
            repo.write(".gitignore", "*.local\n").write("a.local", LOST).git(["config", "oxundo.include", "a.local"]);
            repo.agent("rm a.local; echo 1 >b");
        ),
        ask: &["*.local"],
        path: b"a.local",
        ..A
    },
    Loss {
        what: "a name that is no text, and bytes that are none",
        plant: plant!(repo,
            repo.write(b"d/\xff\n'.bin", b"\0lost\xffwork\r\n\0");
            repo.agent("rm -r d; echo 1 >b");
        ),
        ask: &["-S", "work\r"],
        path: b"d/\xff\n'.bin",
        content: b"\0lost\xffwork\r\n\0",
    },
    Loss {
        what: "a link",
        plant: plant!(repo, repo.link("a.txt", "lost work"); repo.agent("ln -sf elsewhere a.txt"); repo.agent("rm a.txt; touch b");),
        ask: &["-S", "lost work"],
        content: b"lost work",
        ..A
    },
    Loss {
        what: "what git converts",
        plant: plant!(repo,
            repo.write(".gitattributes", "*.txt text eol=crlf\n").write("a.txt", "lost\r\nwork\r\n");
            repo.sh("git add -A; git commit -qm text");
            repo.agent("echo other >a.txt");
            repo.agent("rm a.txt");
        ),
        ask: &["-S", "lost\r\nwork"],
        content: b"lost\r\nwork\r\n",
        ..A
    },
    Loss {
        what: "too large to be copied, and moved aside by undo",
        plant: plant!(repo,
            repo.git(["config", "oxundo.maxFileSize", "4"]);
            repo.turn(Mode::Ghost, "mkdir d; echo lost work >d/large");
            repo.undo();
        ),
        ask: &["d/large"],
        path: b"d/large",
        ..A
    },
];

/// By what came between two states, in steps and sessions.
const BY_STEPS: &[Loss] = &[
    Loss {
        what: "only between two calls of one turn",
        plant: plant!(repo,
            hook(repo, "s", "UserPromptSubmit", &json!({}));
            edit(repo, 1, "a.txt", "echo lost work >a.txt");
            edit(repo, 2, "a.txt", "echo better >a.txt");
            shell(repo, 3, "rm a.txt; echo 1 >b");
            hook(repo, "s", "Stop", &json!({}));
        ),
        ..A
    },
    Loss {
        what: "the user saved it between two calls, and the next one overwrote it",
        plant: plant!(repo,
            hook(repo, "s", "UserPromptSubmit", &json!({}));
            edit(repo, 1, "a.txt", "echo 1 >a.txt");
            repo.write("a.txt", LOST);
            tick();
            shell(repo, 2, "echo 2 >a.txt");
            hook(repo, "s", "Stop", &json!({}));
        ),
        ..A
    },
    Loss {
        what: "a turn that took back all that it did",
        plant: plant!(repo,
            hook(repo, "s", "UserPromptSubmit", &json!({}));
            edit(repo, 1, "a.txt", "echo lost work >a.txt");
            shell(repo, 2, "git clean -fdq");
            let stop = json!({"hook_event_name": "Stop", "session_id": "s"}).to_string();
            crate::sandbox::Output::fired(&mut repo.oxundo_command(["hook", "claude"]), stop.as_bytes()).success();
        ),
        ..A
    },
    Loss {
        what: "one session's share was taken out",
        plant: plant!(repo,
            for session in ["one", "two"] {
                hook(repo, session, "UserPromptSubmit", &json!({}));
            }
            let named = |path: &str| json!({"file_path": repo.path(path)});
            call(repo, "one", 1, "Write", &named("a.txt"), "echo lost work >a.txt");
            call(repo, "two", 1, "Write", &named("b.txt"), "echo other >b.txt");
            hook(repo, "one", "Stop", &json!({}));
            hook(repo, "two", "Stop", &json!({}));
            repo.oxundo(["undo", "--session", "one"]).success();
        ),
        ..A
    },
];

/// By git, in the agent's hands.
const BY_GIT: &[Loss] = &[
    Loss {
        what: "staged, edited since, and reset",
        plant: plant!(repo,
            repo.write("a.txt", LOST).git(["add", "a.txt"]);
            repo.write("a.txt", "half an edit\n").turn(Mode::Ghost, "git reset -q --hard");
        ),
        ..A
    },
    Loss {
        what: "nowhere but in the index",
        plant: plant!(repo,
            repo.write("a.txt", LOST).git(["add", "a.txt"]);
            repo.sh("rm a.txt");
            repo.turn(Mode::Ghost, "git reset -q; echo 1 >b");
        ),
        ..A
    },
    Loss {
        what: "in an entry of the stash list that the agent dropped",
        plant: plant!(repo,
            repo.write("README.txt", LOST).git(["stash", "-q"]);
            repo.agent("git stash drop -q; echo 1 >b");
        ),
        ask: &["-S", "lost work"],
        path: b"README.txt",
        ..A
    },
    Loss {
        what: "untracked, in an entry that the agent dropped",
        plant: plant!(repo,
            repo.write("a.txt", LOST).git(["stash", "-q", "-u"]);
            repo.agent("git stash clear; echo 1 >b");
        ),
        ..A
    },
    Loss {
        what: "staged, in an entry that the agent dropped",
        plant: plant!(repo,
            repo.write("README.txt", LOST).git(["add", "-A"]);
            repo.write("README.txt", "half an edit\n").git(["stash", "-q"]);
            repo.agent("git stash drop -q; echo 1 >b");
        ),
        ask: &["-S", "lost work"],
        path: b"README.txt",
        ..A
    },
    Loss {
        what: "on another branch, below its tip, which the agent deleted",
        plant: plant!(repo,
            repo.sh("git switch -qc topic; echo lost work >a.txt; git add -A; git commit -qm a; echo 2 >a.txt; git commit -qam b; git switch -q main");
            repo.agent("git branch -qD topic; echo 1 >b");
        ),
        ..A
    },
    Loss {
        what: "in a commit that the agent amended on another branch",
        plant: plant!(repo,
            repo.sh("git switch -qc topic; echo lost work >a.txt; git add -A; git commit -qm a; git switch -q main");
            repo.agent("git switch -q topic; echo other >a.txt; git commit -qa --amend --no-edit; git switch -q main; echo 1 >b");
        ),
        ..A
    },
    Loss {
        what: "reset away",
        plant: plant!(repo,
            repo.agent("echo lost work >a.txt");
            repo.agent("git reset -q --hard HEAD~; echo 1 >b");
        ),
        ..A
    },
    Loss {
        what: "on a branch that the agent switched from, uncommitted",
        plant: plant!(repo,
            repo.write("README.txt", LOST);
            repo.turn(Mode::Ghost, "git checkout -qf; git switch -qc topic; echo 1 >b");
        ),
        ask: &["-S", "lost work"],
        path: b"README.txt",
        ..A
    },
];

fn removed(repo: &Sandbox) {
    repo.git(["worktree", "remove", "--force", "../tree"]);
}

/// In other places.
const ELSEWHERE: &[Loss] = &[
    Loss {
        what: "in a checkpoint alone",
        plant: plant!(repo,
            repo.write("a.txt", LOST).oxundo(["checkpoint", "lunch"]).success();
            repo.sh("rm a.txt");
        ),
        ..A
    },
    Loss {
        what: "saved in the moment in which it was replaced",
        plant: plant!(repo,
            repo.write(".git/oxundo/kept/0123-1/a.txt", LOST);
        ),
        ..A
    },
    Loss {
        what: "kept, and another file has its name",
        plant: plant!(repo,
            repo.write(".git/oxundo/kept/0123-1/a.txt", LOST).write("a.txt", "other\n");
        ),
        path: b"a.txt.1",
        ..A
    },
    Loss {
        what: "in another worktree",
        plant: plant!(repo, let other = repo.linked("tree"); other.agent("echo lost work >a.txt"); other.agent("rm a.txt");),
        ..A
    },
    Loss {
        what: "in the first worktree, asked from another",
        plant: |repo| {
            repo.agent("echo lost work >a.txt");
            repo.agent("rm a.txt");
            Some(repo.linked("tree"))
        },
        ..A
    },
    Loss {
        what: "moved aside in the first worktree, asked from another",
        plant: |repo| {
            repo.git(["config", "oxundo.maxFileSize", "4"]);
            repo.turn(Mode::Ghost, "echo lost work >a.txt");
            repo.undo();
            Some(repo.linked("tree"))
        },
        ..A
    },
    Loss {
        what: "in a turn of a worktree that was removed",
        plant: plant!(repo, repo.linked("tree").turn(Mode::Ghost, "echo lost work >a.txt"); removed(repo);),
        ..A
    },
    Loss {
        what: "in a checkpoint of a worktree that was removed",
        plant: plant!(repo,
            let other = repo.linked("tree");
            other.write("a.txt", LOST).oxundo(["checkpoint", "there"]).success();
            removed(repo);
        ),
        ..A
    },
    Loss {
        what: "in a rescue of a worktree that was removed",
        plant: plant!(repo,
            let other = repo.linked("tree");
            other.turn(Mode::Ghost, "echo agent >>README.txt");
            other.write("README.txt", LOST).oxundo(["undo", "--edits=overwrite"]).success();
            removed(repo);
        ),
        ask: &["-S", "lost work"],
        path: b"README.txt",
        ..A
    },
    Loss {
        what: "moved aside in a worktree that was removed",
        plant: plant!(repo,
            repo.git(["config", "oxundo.maxFileSize", "4"]);
            let other = repo.linked("tree");
            other.turn(Mode::Ghost, "mkdir d; echo lost work >d/a.txt");
            other.undo();
            removed(repo);
        ),
        ask: &["d/a.txt"],
        ..A
    },
    Loss {
        what: "staged in a worktree that was removed",
        plant: plant!(repo,
            let other = repo.linked("tree");
            other.write("a.txt", LOST).git(["add", "a.txt"]);
            other.write("a.txt", "half an edit\n").turn(Mode::Ghost, "git reset -q --hard; echo 1 >b");
            removed(repo);
        ),
        ..A
    },
];

/// Asks, types the first line that is printed, and compares.
fn comes_back(repo: &Sandbox, loss: &Loss) {
    let Loss { what, ask, path, content, .. } = loss;
    let printed = repo.oxundo(["find"].iter().chain(*ask)).out();
    let line = printed.lines().map(str::trim).find(|line| line.starts_with("oxundo ") || line.starts_with("cp "));
    let line = line.unwrap_or_else(|| panic!("{what}: it is found:\n{printed}"));
    let typed = match line.strip_prefix("oxundo ") {
        Some(rest) => format!("'{}' {rest}", env!("CARGO_BIN_EXE_oxundo")),
        None => line.to_owned(),
    };
    // As the user's own shell has it.
    repo.sh(&format!("exec bash -c {}", shell_words::quote(&typed)));
    assert!(repo.exists(path), "{what}: '{line}' brings nothing:\n{printed}");
    let there = match std::fs::read_link(repo.path(path)) {
        Ok(target) => target.as_os_str().as_bytes().to_vec(),
        Err(_) => repo.read(path),
    };
    assert!(there == *content, "{what}: '{line}' brings {:?}:\n{printed}", String::from_utf8_lossy(&there));
}

fn each(losses: &[Loss]) {
    for loss in losses {
        let repo = Sandbox::new();
        let asked = (loss.plant)(&repo).unwrap_or_else(|| repo.clone());
        // What git forgets must not matter.
        repo.prune();
        let before = asked.everything();
        let _ = asked.json(["find"].iter().chain(loss.ask));
        asked.everything().assert_is(&before, &format!("it looks only: {}", loss.what));
        comes_back(&asked, loss);
    }
}

#[test]
fn what_turns_took_away_comes_back_by_one_line() {
    each(BY_TURNS);
}

#[test]
fn what_went_between_two_steps_comes_back_by_one_line() {
    each(BY_STEPS);
}

#[test]
fn what_git_took_away_comes_back_by_one_line() {
    each(BY_GIT);
}

#[test]
fn what_is_elsewhere_comes_back_by_one_line() {
    each(ELSEWHERE);
}

#[test]
fn what_is_in_a_directory_without_git_comes_back_by_one_line() {
    let repo = Sandbox::without_repository();
    repo.agent("echo lost work >a.txt");
    repo.agent("rm a.txt");
    assert!(!Path::exists(&repo.path("a.txt")));
    let line = repo.json(["find", "a.txt"]).1["found"][0]["command"].as_str().unwrap_or_default().to_owned();
    repo.oxundo(line.split(' ').skip(1)).success();
    repo.assert_file("a.txt", LOST, &line);
}
