//! The rules of the house, read off the sources: what may name what, who prints, who runs git.

mod calls;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The rooms of the git layer: each names only those before it.
const GIT_ROOMS: [&str; 10] =
    ["repo", "objects", "refs", "worktree", "index", "scan", "checkpoint", "timeline", "durable", "apply"];

/// What the other rooms may name, and the leaves that everybody may.
const MAY_NAME: [(&str, &[&str]); 7] = [
    ("model", &["model"]),
    ("git", &["git", "model"]),
    ("config", &["config", "git", "model"]),
    ("agents", &["agents", "git", "model"]),
    ("ops", &["ops", "agents", "config", "git", "model"]),
    ("api", &["api", "ops", "agents", "config", "git", "model"]),
    ("program", &["program", "ops", "agents", "config", "git", "model"]),
];
const LEAVES: [&str; 3] = ["error", "progress", "warning"];

/// The crates that only the command line may use.
const OF_THE_PROGRAM: [&str; 6] = ["clap", "clap_complete", "console", "dialoguer", "ratatui", "renderdag"];

/// A source: its name below `src`, and its text.
type Source = (String, String);

/// Every file below `src`, by its path there, with its text.
pub(crate) fn sources() -> Vec<Source> {
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
    assert!(found.len() > 100, "the sources are where they are looked for");
    found
}

/// What of them is Rust, without its unit tests.
pub(crate) fn code() -> Vec<Source> {
    let is_rust = |name: &str| Path::new(name).extension().is_some_and(|extension| extension == "rs");
    let rust = sources().into_iter().filter(|(name, _)| is_rust(name));
    rust.map(|(name, text)| (name, text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned()))
        .collect()
}

/// Their code without comments.
fn bare() -> Vec<Source> {
    let bare = |text: &str| -> String {
        text.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect()
    };
    code().into_iter().map(|(name, text)| (name, bare(&text))).collect()
}

/// Every path that begins with `crate::`, with groups in braces opened.
fn named(code: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
        let path = &rest[..end];
        match rest[end..].strip_prefix('{').and_then(|group| group.split_once('}')) {
            Some((group, _)) if path.ends_with("::") => {
                named.extend(group.split(',').map(|name| format!("{path}{}", name.trim())));
            }
            _ => drop(named.insert(path.trim_end_matches(':').to_owned())),
        }
    }
    named
}

/// The top-level room of a source or a path.
fn room(name: &str) -> &str {
    let first = name.split(['/', ':']).next().unwrap_or_default();
    first.strip_suffix(".rs").unwrap_or(first)
}

/// Each line says what a source names that it must not.
fn astray(sources: &[Source]) -> Vec<String> {
    let mut astray = Vec::new();
    for (source, code) in sources {
        let Some((_, allowed)) = MAY_NAME.iter().find(|(name, _)| *name == room(source)) else { continue };
        for path in named(code) {
            let target = room(&path);
            if !LEAVES.contains(&target) && !allowed.contains(&target) {
                astray.push(format!("{source} names {path}"));
            }
            let rank = |inner: Option<&str>| GIT_ROOMS.iter().position(|room| Some(*room) == inner);
            let (own, other) = (rank(source.split('/').nth(1)), rank(path.split("::").nth(1)));
            if room(source) == "git" && target == "git" && other > own {
                astray.push(format!("{source} names {path}, a room below its own"));
            }
        }
        for name in OF_THE_PROGRAM.iter().filter(|_| room(source) != "program") {
            if code.contains(&format!("{name}::")) {
                astray.push(format!("{source} names {name}"));
            }
        }
        if room(source) != "program" && code.contains("feature = \"cli\"") {
            astray.push(format!("{source} is another without the command line"));
        }
    }
    astray
}

#[test]
fn each_room_names_only_those_above_it() {
    assert_eq!(astray(&bare()), Vec::<String>::new());
}

#[test]
fn a_line_that_breaks_the_order_is_found() {
    for (source, line) in [
        ("git/objects/tree.rs", "use crate::git::refs::Refs;"),
        ("git/apply/mod.rs", "let wait = crate::config::Config(repo).lock_timeout()?;"),
        ("git/scan/mod.rs", "use crate::{error::Code, program::ui::Ui};"),
        ("git/refs/mod.rs", "let on = console::colors_enabled();"),
        ("model/plan.rs", "use crate::git::repo::Repo;"),
        ("ops/undo/mod.rs", "use crate::program::args::Distance;"),
        ("ops/gc.rs", "use clap::ValueEnum;"),
        ("ops/gc.rs", "#[cfg(feature = \"cli\")]"),
        ("config.rs", "use crate::ops::view::View;"),
    ] {
        assert_eq!(astray(&[(source.to_owned(), line.to_owned())]).len(), 1, "{source}: {line}");
    }
    let fine = "use crate::git::repo::Repo;\nuse crate::model::{path, plan};\nuse crate::error::{Code, Refusal};\n";
    assert_eq!(astray(&[("git/apply/mod.rs".to_owned(), fine.to_owned())]), Vec::<String>::new());
}

/// The sources by their modules' paths.
struct Files<'a>(BTreeMap<String, &'a str>);

impl<'a> Files<'a> {
    fn of(sources: &'a [Source]) -> Self {
        Self(sources.iter().map(|(name, _)| (module(name), name.as_str())).collect())
    }

    /// The source that a path leads to.
    fn file_of(&self, path: &str) -> Option<&'a str> {
        let ends = path.match_indices("::").map(|(at, _)| at).chain([path.len()]);
        ends.filter_map(|end| self.0.get(&path[..end])).last().copied()
    }
}

/// The path of a source's module.
fn module(name: &str) -> String {
    let path = name.strip_suffix(".rs").unwrap_or(name);
    path.strip_suffix("/mod").unwrap_or(path).replace('/', "::")
}

/// The modules that a source names without `crate::`: those that it declares, and the one that declares it.
fn beside(name: &str, code: &str) -> Vec<String> {
    let own = module(name);
    let is_named = |module: &str| {
        let begun = format!("{module}::");
        let mut found = code.match_indices(&begun).map(|(at, _)| &code[..at]);
        found.any(|before| !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'))
    };
    let declared = code.lines().filter_map(|line| line.strip_suffix(';')?.rsplit_once("mod ").map(|(_, name)| name));
    let mut paths: Vec<String> = declared.filter(|name| is_named(name)).map(|name| format!("{own}::{name}")).collect();
    // In a module that stands in a source, `super` is that source.
    if code.replace("    use super::", "").contains("super::") {
        paths.extend(own.rsplit_once("::").map(|(parent, _)| parent.to_owned()));
    }
    paths
}

/// The sources that each source imports from.
fn imports(sources: &[Source]) -> BTreeMap<&str, BTreeSet<&str>> {
    let files = Files::of(sources);
    let of = |code: &str, own: &str| {
        let paths = named(code).into_iter().chain(beside(own, code));
        paths.filter_map(|path| files.file_of(&path)).filter(|file| *file != own).collect()
    };
    sources.iter().filter(|(name, _)| name != "lib.rs").map(|(name, code)| (name.as_str(), of(code, name))).collect()
}

/// Those that are left when every source that needs none of the others, or that none needs, has been taken away.
fn in_cycles<'a>(mut needs: BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<&'a str> {
    loop {
        let left: BTreeSet<&str> = needs.keys().copied().collect();
        let needed: BTreeSet<&str> = needs.values().flatten().copied().collect();
        needs.retain(|name, targets| needed.contains(name) && targets.iter().any(|target| left.contains(target)));
        if needs.len() == left.len() {
            return left.into_iter().collect();
        }
    }
}

/// A source that a test makes up.
fn source(name: &str, code: &str) -> Source {
    (name.to_owned(), code.to_owned())
}

#[test]
fn no_file_imports_from_one_that_imports_from_it() {
    let sources = bare();
    assert_eq!(in_cycles(imports(&sources)), Vec::<&str>::new());
    let tied =
        [source("a.rs", "use crate::b::B;"), source("b/mod.rs", "use crate::c::C;"), source("c.rs", "crate::a::f();")];
    assert_eq!(in_cycles(imports(&tied)), ["a.rs", "b/mod.rs", "c.rs"], "a cycle is found");
    let parent = source("a.rs", "mod b;\nmod c;\nfn f() {\n    b::g();\n}\n");
    for back in ["use crate::a::f;", "super::f();"] {
        let tied = [parent.clone(), source("a/b.rs", back), source("a/c.rs", back)];
        assert_eq!(in_cycles(imports(&tied)), ["a.rs", "a/b.rs"], "a module that is named from its parent: {back}");
    }
}

/// What each source imports from, or calls methods of.
fn needs(sources: &[Source]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut needs = imports(sources);
    for (name, called) in calls::calls(sources) {
        needs.entry(name).and_modify(|files| files.extend(called));
    }
    needs
}

/// A house without cycles, as long as `follow` calls nothing of `begin.rs`.
const MADE_UP: [(&str, &str); 4] = [
    (
        "foo/mod.rs",
        "pub struct Foo<'r, T> {
    own: &'r Foo<'r, T>,
}
impl<'r, T> Foo<'r, T> {
    pub fn new() -> Self {}
}",
    ),
    (
        "foo/bar.rs",
        "pub struct Bar;
impl Bar {
    pub fn begin(&self) {}
    pub fn begin_this(&self) {}
}",
    ),
    (
        "foo/begin.rs",
        "use crate::foo::Foo;
impl<T: Fn() -> T> Foo<'_, T> {
    pub fn begin(&self) {
        self.follow();
    }
    pub fn begin_it(&self) {}
    pub fn begin_this(&self) {}
    fn begin_here(&self) {}
    #[cfg(test)]
    pub fn begin_test(&self) {}
}
impl std::fmt::Display for Foo<'_, u8> {
    fn as_shown(&self) {}
}",
    ),
    (
        "foo/follow.rs",
        "use crate::foo::Foo;
impl<'r, T> Foo<'r, T> {

    pub fn follow(&self, foo: &'r mut Foo<'_, T>) -> Foo<'r, T> {
        BODY
    }
}",
    ),
];

#[test]
fn no_file_calls_methods_of_one_that_calls_methods_of_it() {
    assert_eq!(in_cycles(needs(&bare())), Vec::<&str>::new());
    let tied = [
        "self.begin();",
        "Self::begin(self);",
        "foos.map(Foo::begin);",
        "Foo::new(f(a), b).begin();",
        "foo\n            .begin();",
        "self.own.begin();",
        "foo.follow(foo)?.begin();",
        "let other = Foo::new();\n        other.begin();",
        "f().begin_it();",
    ];
    let fine = [
        "self.follow(foo);",
        "f().begin();",
        "f().begin_this();",
        "f().begin_here();",
        "f().begin_test();",
        "f().as_shown();",
        "Bar::begin(foo);",
        "foo.bar.begin();",
        "self.begin;",
    ];
    for body in tied.into_iter().chain(fine) {
        let house = MADE_UP.map(|(name, code)| source(name, &code.replace("BODY", body)));
        let found = in_cycles(needs(&house));
        let expected = if tied.contains(&body) { vec!["foo/begin.rs", "foo/follow.rs"] } else { Vec::new() };
        assert_eq!(found, expected, "{body}");
    }
}

/// The sources that have these words, without those whose names begin like one of these.
fn having(words: &str, allowed: &[&str]) -> Vec<String> {
    let found = bare().into_iter().filter(|(_, code)| code.contains(words)).map(|(name, _)| name);
    found.filter(|name| !allowed.iter().any(|allowed| name.starts_with(allowed))).collect()
}

#[test]
fn git_is_run_behind_one_door() {
    assert_eq!(having("Command::new(\"git\")", &["git/repo/process.rs", "git/repo/testing.rs"]), Vec::<String>::new());
}

#[test]
fn only_the_ui_prints() {
    // What the SDK of a protocol says is no output of a command's.
    assert_eq!(having("io::stdout()", &["program/ui.rs", "program/mcp/mod.rs"]), Vec::<String>::new());
    assert_eq!(having("println!", &[]), Vec::<String>::new());
}

#[test]
fn refs_are_read_in_one_place() {
    // gix by itself misses a ref that is packed meanwhile.
    for word in ["find_reference(", ".references()", "gix.head", ".head_id(", ".head_name(", ".head_commit("] {
        assert_eq!(having(word, &["git/repo/refs.rs"]), Vec::<String>::new(), "{word}");
    }
    for word in ["repo.gix.find_commit(", "repo.gix.find_tree(", "repo.gix.find_blob(", "repo.gix.find_object("] {
        assert_eq!(having(word, &["git/repo/find.rs"]), Vec::<String>::new(), "{word}: git may be moving it");
    }
}

#[test]
fn gix_handles_stay_in_the_git_layer() {
    for handle in ["gix::Repository", "gix::open", "gix::discover", "gix::index", "gix::refs", "gix::objs"] {
        assert_eq!(having(handle, &["git/"]), Vec::<String>::new(), "{handle}");
    }
}

#[test]
fn the_model_reads_nothing() {
    for word in ["std::fs", "std::env", "std::time", "SystemTime"] {
        let all = having(word, &[]);
        assert!(all.iter().all(|name| !name.starts_with("model/")), "{word}: {all:?}");
    }
}

#[test]
fn the_timeline_is_read_in_one_place() {
    let readers = having("\"state.json\"", &["git/timeline/stored.rs", "git/timeline/update.rs", "git/repo/shadow.rs"]);
    assert_eq!(readers, Vec::<String>::new());
}

#[test]
fn what_is_said_is_ascii_whatever_the_locale() {
    // What is shown only where there is more than ASCII, or is held against what others wrote.
    let allowed =
        ["program/ui.rs", "program/text/graph.rs", "program/screen/glyphs.rs", "program/args.rs", "agents/payload.rs"];
    for (name, code) in bare() {
        let said: Vec<&str> = code.lines().filter(|line| !line.is_ascii()).collect();
        assert!(allowed.contains(&name.as_str()) || said.is_empty(), "{name}: {said:?}");
    }
}
