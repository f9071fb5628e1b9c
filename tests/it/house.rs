//! The rules of the house, read off the sources.

use std::path::Path;

/// Every file below `src`, by its path there, with its text.
pub(crate) fn sources() -> Vec<(String, String)> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut found, mut left) = (Vec::new(), vec![top.clone()]);
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).expect("read the sources").flatten() {
            let path = entry.path();
            if path.is_dir() {
                left.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("read a source");
            let name = path.strip_prefix(&top).expect("it is below").to_string_lossy().into_owned();
            found.push((name, text));
        }
    }
    assert!(found.len() > 20, "the sources are where they are looked for");
    found
}

/// What of them is Rust, without its unit tests.
pub(crate) fn code() -> Vec<(String, String)> {
    let rust = sources()
        .into_iter()
        .filter(|(name, _)| Path::new(name).extension().is_some_and(|extension| extension == "rs"));
    rust.map(|(name, text)| (name, text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned()))
        .collect()
}

/// The sources that have these words, without those that may.
fn having(words: &str, allowed: &[&str]) -> Vec<String> {
    let having = sources().into_iter().filter(|(_, text)| text.contains(words)).map(|(name, _)| name);
    having.filter(|name| !allowed.iter().any(|allowed| name.starts_with(allowed))).collect()
}

#[test]
fn git_is_run_behind_one_door() {
    assert_eq!(having("Command::new(\"git\")", &["git/process.rs"]), Vec::<String>::new());
}

#[test]
fn only_the_ui_prints() {
    assert_eq!(having("io::stdout()", &["ui.rs"]), Vec::<String>::new());
    assert_eq!(having("println!", &[]), Vec::<String>::new());
}

#[test]
fn gix_handles_stay_in_the_git_layer() {
    for handle in ["gix::Repository", "gix::open", "gix::discover", "gix::index", "gix::refs", "gix::objs"] {
        assert_eq!(having(handle, &["git/"]), Vec::<String>::new(), "{handle}");
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
        assert_eq!(having(word, &outside), Vec::<String>::new(), "{word}");
    }
}

#[test]
fn what_is_said_is_ascii_whatever_the_locale() {
    // Comments, tests and what is shown only where there is more than ASCII.
    let allowed = ["ui.rs", "cmd/log/graph.rs", "cli.rs", "hooks/payload.rs"];
    let mut found = Vec::new();
    for (name, text) in sources() {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let said = lines.filter(|line| !line.is_ascii()).map(|line| format!("{name}: {}", line.trim()));
        found.extend(said.filter(|_| !allowed.contains(&name.as_str())));
    }
    assert_eq!(found, Vec::<String>::new());
}
