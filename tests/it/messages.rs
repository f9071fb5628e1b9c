//! One voice, read off the sources: every message is in docs/errors.md, and says what to do next.

use crate::house::code;
use std::path::Path;

fn table() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/errors.md")).expect("read the table")
}

/// What follows each of these openings, up to the parenthesis that closes it, and the rest behind that.
fn calls<'a>(code: &'a str, opening: &str) -> Vec<(&'a str, &'a str)> {
    let starts = code.match_indices(opening).map(|(at, _)| at + opening.len());
    starts
        .map(|start| {
            let (mut depth, mut quoted, mut escaped) = (1, false, false);
            let end = code[start..].find(|c| {
                match c {
                    _ if escaped => escaped = false,
                    '\\' if quoted => escaped = true,
                    '"' => quoted = !quoted,
                    '(' if !quoted => depth += 1,
                    ')' if !quoted => depth -= 1,
                    _ => {}
                }
                depth == 0
            });
            code[start..].split_at(end.expect("it is closed"))
        })
        .collect()
}

/// The texts in quotes, with `…` for what is filled in.
fn texts(code: &str) -> Vec<String> {
    let (mut texts, mut text, mut filled, mut escaped) = (Vec::new(), None::<String>, 0, false);
    for c in code.chars() {
        let Some(shown) = &mut text else {
            if c == '"' {
                text = Some(String::new());
            }
            continue;
        };
        match c {
            // A line that goes on in the next one.
            '\n' | ' ' if escaped => {}
            c if escaped => {
                escaped = false;
                shown.push(c);
            }
            '\\' => escaped = true,
            '"' => texts.extend(text.take()),
            '{' => {
                filled += 1;
                shown.push('…');
            }
            '}' => filled -= 1,
            _ if filled > 0 => {}
            c => shown.push(c),
        }
    }
    texts
}

/// A refusal as the sources have it.
struct Made {
    file: String,
    code: String,
    messages: Vec<String>,
    has_hint: bool,
}

fn refusals() -> Vec<Made> {
    let mut all = Vec::new();
    for (file, code) in code() {
        for (arguments, rest) in calls(&code, "Refusal::new(") {
            let before = &code[..code.len() - rest.len() - arguments.len()];
            let (word, message) = arguments.split_once(',').expect("it has a code and a message");
            let word = word.trim().strip_prefix("Code::").unwrap_or_else(|| panic!("{file}: {arguments}"));
            let mut messages = texts(message);
            messages.truncate(1);
            if messages.is_empty() {
                // It was made above.
                let made = before.rfind(&format!("let {} = ", message.trim()));
                messages.extend(
                    made.into_iter().flat_map(|made| texts(before[made..].split(";\n").next().unwrap_or_default())),
                );
            }
            // The rest of the function: the hint may be added some lines below.
            let has_hint = rest.split("\n}\n").next().is_some_and(|rest| rest.contains(".hint("));
            all.push(Made { file: file.clone(), code: snake(word), messages, has_hint });
        }
    }
    assert!(all.len() > 50, "the refusals are found");
    all
}

/// `InProgress` as `in_progress`.
fn snake(word: &str) -> String {
    let mut name = String::new();
    for c in word.chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

#[test]
fn every_code_is_in_the_table_with_its_exit_code() {
    use oxundo::Code;
    let all = [
        Code::Published,
        Code::Merge,
        Code::Foreign,
        Code::Branch,
        Code::InProgress,
        Code::Busy,
        Code::Agent,
        Code::Stale,
        Code::Vetoed,
        Code::Conflict,
        Code::Nothing,
        Code::NotFound,
        Code::Usage,
        Code::NoIdentity,
        Code::Locked,
        Code::Corrupt,
        Code::Io,
        Code::Interrupted,
    ];
    let (_, source) = code().into_iter().find(|(file, _)| file == "error/mod.rs").expect("it is there");
    let variants =
        source.split_once("pub enum Code {").and_then(|(_, rest)| rest.split_once("\n}")).expect("it is one").0;
    let declared: Vec<&str> =
        variants.lines().map(str::trim).filter(|line| !line.starts_with("//") && !line.is_empty()).collect();
    assert_eq!(declared.len(), all.len(), "this test knows every code: {declared:?}");
    let table = table();
    for code in all {
        let name = serde_json::to_value(code).expect("it is a word");
        let name = name.as_str().expect("it is a word");
        let row = format!("| `{name}` | {} | ", code.exit());
        assert_eq!(table.matches(&row).count(), 1, "docs/errors.md has a row '{row}'");
        let rows: Vec<&str> = table.lines().filter(|line| line.starts_with(&row)).collect();
        assert!(rows.iter().all(|row| row.split('|').filter(|cell| !cell.trim().is_empty()).count() == 4), "{rows:?}");
        assert!(table.lines().any(|line| line.starts_with("### ") && line.contains(&format!("`{name}`"))), "{name}");
    }
}

#[test]
fn every_message_is_in_the_table_below_its_code() {
    let table = table();
    let sections: Vec<&str> = table.split("\n### ").skip(1).collect();
    for refusal in refusals() {
        let name = format!("`{}`", refusal.code);
        let heading = |section: &&&str| section.lines().next().is_some_and(|first| first.contains(&name));
        let section = sections.iter().find(heading).unwrap_or_else(|| panic!("there is a section of {name}"));
        for message in refusal.messages {
            let is_there = section.contains(&format!("`{message}"));
            assert!(is_there, "{}: docs/errors.md has '{message}' below {name}", refusal.file);
        }
    }
}

#[test]
fn every_refusal_says_what_to_do_next() {
    for refusal in refusals() {
        assert!(refusal.has_hint, "{}: {:?} ({}) has a hint", refusal.file, refusal.messages, refusal.code);
    }
}

#[test]
fn messages_are_read_as_one_voice() {
    // Other words for what the specification has a word for.
    let foreign = ["snapshot", "backup", "savepoint", "working tree", "working copy", "staging area", "SHA", "please"];
    for (file, code) in code() {
        for opening in ["Refusal::new(", ".hint(", "bail!(", "ensure!(", "anyhow!(", ".warn(", ".context("] {
            for (arguments, _) in calls(&code, opening) {
                let Some(message) = texts(arguments).into_iter().find(|message| !message.is_empty()) else { continue };
                let first = message.split_whitespace().next().unwrap_or_default();
                let lower = !first.starts_with(char::is_uppercase) || first == "HEAD" || first == "PATH";
                assert!(lower, "{file}: '{message}' begins in lower case");
                assert!(!message.ends_with('.'), "{file}: '{message}' has no full stop");
                assert!(!message.contains('"'), "{file}: '{message}' has names in single quotes");
                let is_size = ["… bytes", "… KiB", "… MiB"].iter().any(|unit| message.contains(unit));
                assert!(!is_size, "{file}: '{message}' has its size from 'size'");
                for word in foreign {
                    assert!(!message.contains(word), "{file}: '{message}' says '{word}'");
                }
            }
        }
    }
}
