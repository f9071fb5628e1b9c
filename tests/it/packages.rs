//! What is packed: the crate has what its code includes, and the packages have files that are there.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn cargo(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let output = output.expect("run cargo");
    assert!(output.status.success(), "cargo {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Every file below a directory, by its path from the top.
fn files(directory: &str) -> Vec<String> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(top.join(directory)).expect("list a directory").flatten() {
        let path = format!("{directory}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn the_crate_has_what_it_is_built_from() {
    let packed = cargo(&["package", "--list", "--allow-dirty", "--offline"]);
    let packed: Vec<_> = packed.lines().collect();
    let sections = |path: &String| !path.starts_with("man/sections/");
    for path in ["src", "completions", "man"].into_iter().flat_map(files).filter(sections) {
        assert!(packed.contains(&path.as_str()), "{path} is packed: {packed:?}");
    }
    for path in ["Cargo.lock", "README.md", "LICENSE", "CHANGELOG.md"] {
        assert!(packed.contains(&path), "{path} is packed: {packed:?}");
    }
    assert!(!packed.iter().any(|path| path.starts_with("tests/")), "tests are not: {packed:?}");
}

#[test]
fn the_packages_have_all_that_is_installed() {
    let metadata = cargo(&["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&metadata).expect("cargo prints JSON");
    let packages = &metadata["packages"][0]["metadata"];
    let deb = packages["deb"]["assets"].as_array().expect("a .deb has files");
    let deb: Vec<_> = deb.iter().map(|asset| (&asset[0], &asset[1])).collect();
    let rpm = packages["generate-rpm"]["assets"].as_array().expect("an .rpm has files");
    let rpm: Vec<_> = rpm.iter().map(|asset| (&asset["source"], &asset["dest"])).collect();
    for (kind, assets) in [("deb", deb), ("rpm", rpm)] {
        let sources: Vec<_> = assets.iter().filter_map(|(source, _)| source.as_str()).collect();
        for source in ["target/release/oxundo", "target/release/git-oxundo", "man/*.1", "man/*.7", "README.md"] {
            assert!(sources.contains(&source), "the {kind} has {source}: {sources:?}");
        }
        for source in sources.iter().filter(|source| !source.contains('*') && !source.starts_with("target/")) {
            assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(source).is_file(), "{source} is there");
        }
        let places: Vec<_> = assets.iter().filter_map(|(_, place)| place.as_str()).collect();
        for name in ["completions/oxundo", "completions/git-oxundo", "/_oxundo", "/_git-oxundo", "/oxundo.fish"] {
            assert!(places.iter().any(|place| place.ends_with(name)), "the {kind} installs {name}: {places:?}");
        }
    }
}
