//! The pages for people: what they point to is there.

use crate::sandbox::Sandbox;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn pages() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = |directory: PathBuf| std::fs::read_dir(directory).expect("list pages").flatten();
    let all = listed(top.to_owned()).chain(listed(top.join("docs"))).map(|entry| entry.path());
    all.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_')).collect::<String>().replace(' ', "-")
}

#[test]
fn every_link_leads_somewhere() {
    let mut links = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("read a page");
        for rest in text.split("](").skip(1) {
            let (target, _) = rest.split_once(')').expect("a link ends");
            if target.contains("://") {
                continue;
            }
            links += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { page.clone() } else { page.with_file_name("").join(file) };
            let there = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {target}: {error}", page.display()));
            let there = String::from_utf8_lossy(&there);
            let found =
                heading.is_empty() || there.lines().any(|line| line.starts_with('#') && anchor(line) == heading);
            assert!(found, "{}: '{target}' is a heading", page.display());
        }
    }
    assert!(links > 20, "links are found: {links}");
}

/// The indented block below a heading of README.
fn block(heading: &str) -> String {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).expect("read it");
    let (_, section) = readme.split_once(&format!("\n## {heading}\n")).expect("README has this heading");
    let lines = section.lines().skip_while(|line| !line.starts_with("    "));
    lines.take_while(|line| line.starts_with("    ")).map(|line| format!("{}\n", line.trim_start())).collect()
}

#[test]
fn the_quick_start_works_as_it_stands_there() {
    let repo = Sandbox::new();
    let agent = repo.home().join("claude");
    std::fs::write(&agent, "#!/bin/sh\necho cache >cache.rs\n").expect("write an agent");
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).expect("make it a program");
    let before = repo.state();
    let start = block("Quick start");
    assert_eq!(start.lines().count(), 3, "three commands: {start}");
    let mut commands = start.lines();
    let mut type_in = || {
        repo.sh(&format!("PATH=$HOME:$PATH; {}", commands.next().unwrap_or_default()));
        repo.state()
    };
    let after = type_in();
    assert!(repo.exists("cache.rs"), "the agent worked");
    type_in().assert_is(&before, "exactly the state before it");
    type_in().assert_is(&after, "exactly the state after it");
}

#[test]
fn what_readme_says_removes_every_trace() {
    let repo = Sandbox::new();
    repo.agent("echo agent >>README.txt");
    repo.sh(&block("To remove it"));
    assert_eq!(repo.git(["for-each-ref", "refs/oxundo", "refs/notes"]), "");
    assert!(!repo.exists(".git/oxundo"), "its scratch is gone");
}

/// The subcommands that are named behind these openings.
fn named(text: &str, openings: &[&str]) -> BTreeSet<String> {
    let rests = openings.iter().flat_map(|opening| text.split(opening).skip(1));
    let words = rests.map(|rest| rest.chars().take_while(char::is_ascii_lowercase).collect::<String>());
    words.filter(|word| !word.is_empty()).collect()
}

#[test]
fn every_command_that_a_hint_or_a_page_names_is_there() {
    let help = Sandbox::without_repository().oxundo(["help"]).out();
    let mut known: BTreeSet<String> =
        help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next().map(str::to_owned)).collect();
    known.extend(help.lines().filter_map(|line| line.split_once("[alias: ")?.1.split(']').next()).map(str::to_owned));
    let mut seen = BTreeSet::new();
    for (file, code) in crate::house::code() {
        let words = named(&code, &["'oxundo "]);
        assert!(words.is_subset(&known), "{file} names {words:?}");
        seen.extend(words);
    }
    assert!(seen.len() > 10, "hints name commands: {seen:?}");
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("read a page");
        let words = named(&text, &["`oxundo ", "\n    oxundo ", "$ oxundo ", "'oxundo "]);
        assert!(words.is_subset(&known), "{} names {words:?}", page.display());
    }
}
