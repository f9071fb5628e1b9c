//! Where git speaks another language, oxundo says and does the same: it reads no words of git's.

use crate::sandbox::{Output, Sandbox};
use std::ffi::OsString;
use std::io::Write;

/// The repository where git speaks German; none, and said aloud, where no git on this machine can. Debian's has its
/// translations with it, and shows them in `C.UTF-8` too when `LANGUAGE` asks for one.
fn in_german(repo: &Sandbox) -> Option<Sandbox> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian: OsString = ["/usr/bin:".into(), path.clone()].into_iter().collect();
    for path in [path, debian] {
        for locale in ["de_DE.UTF-8", "C.UTF-8"] {
            let it = repo.clone().with_variable("LC_ALL", locale).with_variable("LANGUAGE", "de");
            let it = it.with_variable("PATH", path.clone());
            if it.try_git(["rev-parse", "nowhere"]).err().contains("Schwerwiegend") {
                return Some(it);
            }
        }
    }
    let _ = writeln!(std::io::stderr(), "SKIPPED, NOTHING IS PROVED: no git here speaks German");
    None
}

/// What is said, without what is another one each time.
fn said(repo: &Sandbox, output: &Output) -> String {
    let text = format!("{}\n{}\n{}", output.code, output.out(), output.err());
    let text = text.replace(&*repo.base().to_string_lossy(), "BASE");
    let words = text.split_inclusive(|c: char| !c.is_ascii_hexdigit());
    words.map(|word| if word.len() > 7 { "ID " } else { word }).collect()
}

/// Runs oxundo through what has it listen to git: stashes, merges, locks, hooks, a filter that fails.
fn story(repo: &Sandbox) -> Vec<String> {
    let mut all = Vec::new();
    let mut tell = |args: &[&str]| all.push(format!("{args:?} {}", said(repo, &repo.oxundo(args))));
    repo.append_to_config("[core]\n\tfilesRefLockTimeout = 0\n[oxundo]\n\tlockTimeout = 0\n");
    repo.write("long", "1\n2\n3\n4\n5\n6\n7\n8\n9\n").write("gone", "gone\n");
    repo.sh("git add .; git commit -qm long; echo staged >staged; git add staged");
    let before = repo.state();
    tell(&[
        "run",
        "--",
        "sh",
        "-ec",
        "echo two >>README.txt; git stash -q; sed -i s/5/five/ long; rm gone; git branch it",
    ]);
    for args in [&["undo"] as &[_], &["redo"], &["diff", "1"], &["status"], &["doctor"]] {
        tell(args);
    }
    // Merged by git, and what it cannot merge.
    repo.sh("sed -i s/9/nine/ long");
    tell(&["undo"]);
    tell(&["redo"]);
    repo.sh("sed -i s/five/fünf/ long");
    tell(&["undo"]);
    repo.sh("sed -i s/fünf/five/ long; sed -i s/nine/9/ long");
    for lock in ["index.lock", "refs/heads/main.lock", "packed-refs.lock"] {
        repo.write(format!(".git/{lock}"), "");
        tell(&["undo"]);
        repo.sh(&format!("rm .git/{lock}"));
    }
    // What git refuses by itself.
    tell(&["branch", "it"]);
    tell(&["branch", "no..name"]);
    repo.append_to_config("[filter \"fails\"]\n\tclean = false\n\trequired\n");
    repo.write(".gitattributes", "*.odd filter=fails\n");
    // Here git's own words are repeated, in whatever language.
    repo.oxundo(["run", "--", "sh", "-c", "echo odd >it.odd"]).warns("the turn's changes were not committed: git ");
    repo.sh("rm -f it.odd .gitattributes");
    repo.sh("git checkout -q --detach; git -c core.editor=false rebase -q -i HEAD~1 || true");
    tell(&["undo"]);
    repo.sh("git rebase -q --abort || true; git switch -q main");
    tell(&["undo", "--to", "0"]);
    tell(&["undo"]);
    let _ = repo.oxundo(["undo"]);
    all.push(format!("{}", repo.state().difference(&before).lines().count()));
    all
}

#[test]
fn oxundo_says_and_does_the_same_where_git_speaks_german() {
    let repo = Sandbox::new();
    let Some(german) = in_german(&repo.copy()) else { return };
    // The same git, in English.
    let path = german.sh("echo \"$PATH\"");
    let english = story(&repo.with_variable("PATH", path));
    let german = story(&german);
    for (english, german) in english.iter().zip(&german) {
        assert_eq!(german, english);
    }
    assert_eq!(german.len(), english.len());
}
