//! The rules of the house, read off the sources.

use std::path::{Path, PathBuf};

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("read the sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// The sources that have these words, without those that may.
fn having(words: &str, allowed: &[&str]) -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let all = sources(&top);
    assert!(all.len() > 20, "the sources are where they are looked for");
    all.into_iter()
        .filter(|path| {
            let name = path.strip_prefix(&top).expect("it is below").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(path).expect("read a source");
            text.contains(words) && !allowed.iter().any(|allowed| name.starts_with(allowed))
        })
        .collect()
}

#[test]
fn git_is_run_behind_one_door() {
    assert_eq!(having("Command::new(\"git\")", &["git/process.rs"]), Vec::<PathBuf>::new());
}

#[test]
fn only_the_ui_prints() {
    assert_eq!(having("io::stdout()", &["ui.rs"]), Vec::<PathBuf>::new());
    assert_eq!(having("println!", &[]), Vec::<PathBuf>::new());
}

#[test]
fn gix_handles_stay_in_the_git_layer() {
    for handle in ["gix::Repository", "gix::open", "gix::discover", "gix::index", "gix::refs", "gix::objs"] {
        assert_eq!(having(handle, &["git/"]), Vec::<PathBuf>::new(), "{handle}");
    }
}

#[test]
fn the_model_reads_nothing() {
    let outside = [
        "api.rs",
        "cmd/",
        "git/",
        "turns.rs",
        "turns/",
        "liveness.rs",
        "setup.rs",
        "agent.rs",
        "config.rs",
        "cli.rs",
        "lib.rs",
        "ui.rs",
        "error.rs",
        "main.rs",
        "bin/",
    ];
    for word in ["std::fs", "std::env", "std::time", "SystemTime", "crate::git"] {
        assert_eq!(having(word, &outside), Vec::<PathBuf>::new(), "{word}");
    }
}

#[test]
fn what_is_said_is_ascii_whatever_the_locale() {
    // Comments, tests and what is shown only where there is more than ASCII.
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let allowed = ["ui.rs", "cmd/log/graph.rs", "cli.rs", "hooks/payload.rs"];
    let mut found = Vec::new();
    for path in sources(&top) {
        let name = path.strip_prefix(&top).expect("it is below").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("read a source");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let said = lines.filter(|line| !line.is_ascii()).map(|line| format!("{name}: {}", line.trim()));
        found.extend(said.filter(|_| !allowed.contains(&name.as_str())));
    }
    assert_eq!(found, Vec::<String>::new());
}
