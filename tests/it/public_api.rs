//! What the library promises, item by item, as the sources have it, held against what is committed: nothing of it changes unseen.
//! `OXUNDO_BLESS=1` writes it anew.

use crate::house::code;
use std::fs;
use std::path::Path;

/// What `lib.rs` names for all: the module's file, and the name there.
fn exported(sources: &[(String, String)]) -> Vec<(String, String)> {
    let lib = &sources.iter().find(|(name, _)| name == "lib.rs").expect("it is there").1;
    // The last module is for the tests of this package.
    let lib = lib.split("/// What the tests, benches and fuzz targets").next().unwrap_or_default();
    let mut found = Vec::new();
    for (at, opening) in lib.match_indices("pub use ") {
        let path = lib[at + opening.len()..].split(';').next().unwrap_or_default();
        let (module, names) = path.rsplit_once("::{").or_else(|| path.rsplit_once("::")).expect("it has a module");
        let file = module.replace("::", "/");
        let file = [format!("{file}.rs"), format!("{file}/mod.rs")];
        let file = file.into_iter().find(|file| sources.iter().any(|(name, _)| name == file)).expect("it is there");
        let names = names.trim_end_matches('}').split(',').map(str::trim).filter(|name| !name.is_empty());
        found.extend(names.map(|name| (file.clone(), name.to_owned())));
    }
    found
}

/// Whether a line begins the definition of this name.
fn defines(line: &str, name: &str) -> bool {
    let kinds = ["pub struct ", "pub enum ", "pub type ", "pub fn "];
    let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind)?.strip_prefix(name));
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Whether a line begins an implementation for this name, or of it.
fn implements(line: &str, name: &str) -> bool {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    line.starts_with("impl") && line.ends_with('{') && words.skip(1).any(|word| word == name)
}

/// What is said in the lines from one to the line that closes it.
fn block<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let closes = |line: &&str| *line == "}" || line.ends_with(';') && !line.starts_with(' ') || line.ends_with("{}");
    let end = lines.iter().position(closes).unwrap_or(lines.len() - 1);
    lines[..=end].to_vec()
}

/// A definition, without what is said about it and what is not public.
fn definition(lines: &[&str], at: usize) -> Vec<String> {
    let above = lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("///"));
    let mut all: Vec<String> = above.filter(|line| line.starts_with("#[")).map(|line| (*line).to_owned()).collect();
    all.reverse();
    let is_struct = lines[at].starts_with("pub struct");
    let is_shown = |line: &&str| {
        let text = line.trim_start();
        !text.starts_with("//")
            && (!is_struct || !line.starts_with("    ") || text.starts_with("pub ") && !text.starts_with("pub(crate)"))
    };
    if lines[at].starts_with("pub fn") {
        all.push(lines[at].trim_end_matches(" {").to_owned());
        return all;
    }
    all.extend(block(&lines[at..]).into_iter().filter(is_shown).map(str::to_owned));
    all
}

/// The signatures of an implementation's public functions; of a trait's only that it is there.
fn implementation(lines: &[&str]) -> Vec<String> {
    let mut all = vec![lines[0].trim_end_matches(" {").to_owned()];
    let mut signature = String::new();
    for line in block(lines) {
        if line.starts_with("    pub fn ") || !signature.is_empty() {
            signature.push_str(line.trim());
            if line.ends_with('{') {
                all.push(format!("    {}", signature.trim_end_matches(" {")));
                signature.clear();
            } else {
                signature.push(' ');
            }
        }
    }
    let is_of_nothing = all.len() == 1 && !lines[0].contains(" for ");
    if is_of_nothing { Vec::new() } else { all }
}

fn listing() -> String {
    let sources = code();
    let mut all = Vec::new();
    for (file, name) in exported(&sources) {
        let text = &sources.iter().find(|(source, _)| *source == file).expect("it is there").1;
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|line| defines(line, &name)).unwrap_or_else(|| panic!("{file} defines {name}"));
        all.push(definition(&lines, at));
        for (at, _) in lines.iter().enumerate().filter(|(_, line)| implements(line, &name)) {
            all.push(implementation(&lines[at..]));
        }
    }
    let all: Vec<String> = all.into_iter().filter(|item| !item.is_empty()).map(|item| item.join("\n")).collect();
    all.join("\n\n") + "\n"
}

#[test]
fn what_is_public_is_what_is_promised() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/public-api.txt");
    let listing = listing();
    if std::env::var_os("OXUNDO_BLESS").is_some() {
        fs::write(&file, &listing).expect("write it");
    }
    let promised = fs::read_to_string(&file).expect("read it");
    let new: Vec<&str> = listing.lines().filter(|line| !promised.lines().any(|known| known == *line)).collect();
    let gone: Vec<&str> = promised.lines().filter(|line| !listing.lines().any(|known| known == *line)).collect();
    assert!(
        promised == listing,
        "it is another: see 'Versions' in CONTRIBUTING.md, then OXUNDO_BLESS=1\nnew: {new:#?}\ngone: {gone:#?}"
    );
    for known in
        ["pub fn open(directory: &Path) -> Result<Self>", "pub enum Code {", "    Vetoed,", "pub enum Applied {"]
    {
        assert!(listing.contains(known), "{known}");
    }
}
