//! Which source calls the methods of which, as far as their text tells.
//!
//! The type that a method is called on is known for `self`, `Self::`, `Type::`, `Type::new(..)`; for a value of which
//! the source, or for a field of `self` the source of its type, writes that type and no other, as in `name: &Type`;
//! and for what a method of these returns, if that is a type and no `Result` of it. On any other value a method counts
//! if its name has more than one word and no other source or trait has a method of that name: any other may be a
//! method of std's.
//!
//! Not seen are other calls on a value of which only inference knows the type, as in `View::open(repo)?.stack()`; those
//! by way of a trait, of a type under another name, and of a macro. A call on a value counts as one of the type that is
//! written, even where another value of that name hides it; and text that looks like a call counts as one.

use super::{Files, Source, module, named};
use std::collections::{BTreeMap, BTreeSet};

/// Methods whose names std or gix has too: they count only where the type is known. A name that is missing here may show
/// as a cycle that is none.
const OF_OTHERS: [&str; 4] = ["as_bytes", "git_dir", "has_object", "try_lock"];

/// A type: the source that it is named from, and its name.
type Type<'a> = (&'a str, String);

/// A line of code, a chain of calls being one, and the type whose `impl` it stands in.
struct Line {
    text: String,
    of: Option<String>,
    is_inherent: bool,
}

/// What is read off a source.
struct Read<'a> {
    lines: Vec<Line>,
    /// Its own types and those it imports, each with the source that it is from.
    types: BTreeMap<String, &'a str>,
    /// Values that are written with their type; none if there are others of their name.
    values: BTreeMap<String, Option<Type<'a>>>,
}

struct Method<'a> {
    of: Type<'a>,
    file: &'a str,
    is_public: bool,
    returns: Option<Type<'a>>,
}

/// What all the sources define.
struct House<'a> {
    sources: BTreeMap<&'a str, Read<'a>>,
    methods: BTreeMap<String, Vec<Method<'a>>>,
    of_traits: BTreeSet<String>,
}

/// The sources that each source calls methods of.
pub(super) fn calls(sources: &[Source]) -> BTreeMap<&str, BTreeSet<&str>> {
    let house = House::read(sources);
    let of = |own: &&str, read: &Read| -> BTreeSet<&str> {
        let files = read.lines.iter().flat_map(|line| house.called(own, line));
        files.filter(|file| file != own).collect()
    };
    house.sources.iter().map(|(name, read)| (*name, of(name, read))).collect()
}

impl<'a> House<'a> {
    fn read(sources: &'a [Source]) -> Self {
        let files = Files::of(sources);
        let read = sources.iter().map(|(name, code)| (name.as_str(), Read::of(name, code, &files))).collect();
        let mut house = Self { sources: read, methods: BTreeMap::new(), of_traits: BTreeSet::new() };
        for (file, read) in &house.sources {
            let mut before = "";
            for line in &read.lines {
                let Some((is_public, name)) = method(line, std::mem::replace(&mut before, &line.text)) else {
                    continue;
                };
                let returns = line.text.rsplit_once(" -> ").and_then(|(_, of)| read.named(first_word(of), line));
                match read.own(line).filter(|_| line.is_inherent) {
                    Some(of) => house.methods.entry(name).or_default().push(Method { of, file, is_public, returns }),
                    None => drop(house.of_traits.insert(name)),
                }
            }
        }
        house
    }

    /// The sources of the methods that a line calls.
    fn called(&self, own: &str, line: &Line) -> Vec<&'a str> {
        let (read, text) = (&self.sources[own], &line.text);
        let paths = text.match_indices("::").filter_map(|(at, _)| {
            let of = read.named(last_word(&text[..at]), line)?;
            Some(self.method(&of, first_word(&text[at + 2..]))?.file)
        });
        let dots = text.match_indices('.').filter_map(|(at, _)| {
            let name = first_word(&text[at + 1..]);
            let is_call = text[at + 1 + name.len()..].starts_with(['(', ':']);
            let known = || self.method(&self.receiver(read, &text[..at], line)?, name).map(|method| method.file);
            is_call.then(|| known().or_else(|| self.only(own, name))).flatten()
        });
        paths.chain(dots).collect()
    }

    fn method(&self, of: &Type, name: &str) -> Option<&Method<'a>> {
        self.methods.get(name)?.iter().find(|method| method.of == *of)
    }

    /// The source of the only method of this name that another may mean.
    fn only(&self, own: &str, name: &str) -> Option<&'a str> {
        let is_plain = !name.contains('_') || OF_OTHERS.contains(&name) || self.of_traits.contains(name);
        let methods = self.methods.get(name).filter(|_| !is_plain)?.iter();
        let mut visible = methods.filter(|method| method.is_public || is_below(own, method.file));
        let file = visible.next()?.file;
        visible.all(|method| method.file == file).then_some(file)
    }

    /// The type of what stands before a dot, if it is written somewhere.
    fn receiver(&self, read: &Read<'a>, before: &str, line: &Line) -> Option<Type<'a>> {
        let before = before.trim_end_matches('?');
        let made = before.strip_suffix(')').and_then(|_| Some(&before[..opening(before)?]));
        let word = last_word(made.unwrap_or(before));
        let of = made.unwrap_or(before).strip_suffix(word)?.strip_suffix('.');
        match (made, of) {
            (Some(_), Some(of)) => self.method(&self.receiver(read, of, line)?, word)?.returns.clone(),
            (Some(made), None) => read.named(last_word(made.strip_suffix("::new").unwrap_or(made)), line),
            (None, None) if word == "self" => read.own(line),
            (None, Some(of)) if last_word(of) == "self" => self.sources[read.own(line)?.0].values.get(word)?.clone(),
            (None, _) => read.values.get(word)?.clone(),
        }
    }
}

impl<'a> Read<'a> {
    fn of(name: &'a str, code: &str, files: &Files<'a>) -> Self {
        let mut types = BTreeMap::new();
        for path in named(code) {
            let Some(file) = files.file_of(&path) else { continue };
            types.extend(path.split("::").filter(|name| is_type(name)).map(|name| (name.to_owned(), file)));
        }
        for words in ["struct ", "enum ", "trait ", "type "] {
            let defined = code.match_indices(words).map(|(at, _)| first_word(&code[at + words.len()..]));
            types.extend(defined.filter(|name| is_type(name)).map(|defined| (defined.to_owned(), name)));
        }
        let mut read = Self { lines: lines(code), types, values: BTreeMap::new() };
        for (at, _) in code.match_indices(": ") {
            let written = code[at + 2..].trim_start_matches('&');
            let written = written.strip_prefix('\'').map_or(written, |rest| &rest[first_word(rest).len()..]);
            let written = written.trim_start().trim_start_matches("mut ");
            let of = Some(first_word(written)).filter(|name| !written[name.len()..].starts_with("::"));
            read.value(last_word(&code[..at]), of.unwrap_or_default());
        }
        for (at, _) in code.match_indices("::new(") {
            let of = last_word(&code[..at]);
            let bound = code[..at - of.len()].strip_suffix(" = ").unwrap_or_default();
            read.value(last_word(bound), of);
        }
        read
    }

    /// A value is written with this type.
    fn value(&mut self, name: &str, of: &str) {
        let of = self.types.get(of).map(|file| (*file, of.to_owned()));
        let known = self.values.entry(name.to_owned()).or_insert_with(|| of.clone());
        *known = known.take().filter(|known| Some(known) == of.as_ref());
    }

    /// The type of a name, in a line of this source.
    fn named(&self, name: &str, line: &Line) -> Option<Type<'a>> {
        let name = if name == "Self" { line.of.as_deref()? } else { name };
        self.types.get(name).map(|file| (*file, name.to_owned()))
    }

    /// The type whose `impl` a line stands in.
    fn own(&self, line: &Line) -> Option<Type<'a>> {
        self.named("Self", line)
    }
}

fn lines(code: &str) -> Vec<Line> {
    let chained = code.lines().fold(String::new(), |text, line| match line.trim_start() {
        next if next.starts_with('.') => text + next,
        _ => text + "\n" + line,
    });
    let (mut of, mut is_inherent) = (None, false);
    let mut lines = Vec::new();
    for text in chained.lines().map(str::to_owned) {
        if text.starts_with(|c: char| c != ' ' && c != '{') {
            let header = text.strip_prefix("impl").filter(|rest| rest.starts_with([' ', '<']));
            of = header.map(subject);
            is_inherent = header.is_some_and(|header| !header.contains(" for "));
        }
        lines.push(Line { text, of: of.clone(), is_inherent });
    }
    lines
}

/// The name of the type that an `impl` is for.
fn subject(header: &str) -> String {
    let mut depth = 0;
    let header = header.replace("->", "");
    let outside = header.chars().filter(|c| {
        depth += i32::from(*c == '<');
        let is_outside = depth == 0;
        depth -= i32::from(*c == '>');
        is_outside
    });
    let outside: String = outside.collect();
    let path = outside.split(" for ").last().and_then(|rest| rest.split_whitespace().next());
    last_word(path.unwrap_or_default()).to_owned()
}

/// Whether the method that a line begins is public, and its name.
fn method(line: &Line, before: &str) -> Option<(bool, String)> {
    let text = line.text.strip_prefix("    ").filter(|_| before.trim() != "#[cfg(test)]")?;
    let (words, rest) = text.split_once("fn ")?;
    let is_first = words.is_empty() || words.starts_with(['p', 'c', 'a']);
    is_first.then(|| (words.starts_with("pub"), first_word(rest).to_owned()))
}

/// Where the parenthesis opens that the text ends with.
fn opening(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().rev().find_map(|(at, c)| {
        depth += i32::from(c == ')') - i32::from(c == '(');
        (depth == 0).then_some(at)
    })
}

/// Whether a source sees what is private to another.
fn is_below(name: &str, other: &str) -> bool {
    module(name).strip_prefix(&module(other)).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn is_type(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
}

fn first_word(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())]
}

fn last_word(text: &str) -> &str {
    text.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}
