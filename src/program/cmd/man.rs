//! `oxundo man`: shows a page of the manual, or installs all of them. The pages are in the program, since cargo
//! installs nothing else.

use crate::agents::spawn;
use crate::config::keys::KEYS;
use crate::error::{Code, Refusal};
use crate::program::args::{Cli, ManArgs};
use crate::program::ui::{Answer, Ui};
use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// How wide a page is at most, as `--help` is.
const WIDTH: usize = 100;

macro_rules! pages {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("../../../man/", $name)))),*] };
}

/// Every page, by its file's name.
pub const PAGES: &[(&str, &str)] = pages![
    "oxundo.1"
    "oxundo-run.1"
    "oxundo-undo.1"
    "oxundo-redo.1"
    "oxundo-rewind.1"
    "oxundo-log.1"
    "oxundo-show.1"
    "oxundo-diff.1"
    "oxundo-checkpoint.1"
    "oxundo-describe.1"
    "oxundo-keep.1"
    "oxundo-apply.1"
    "oxundo-restore.1"
    "oxundo-branch.1"
    "oxundo-squash.1"
    "oxundo-status.1"
    "oxundo-doctor.1"
    "oxundo-find.1"
    "oxundo-blame.1"
    "oxundo-init.1"
    "oxundo-uninstall.1"
    "oxundo-turn.1"
    "oxundo-hook.1"
    "oxundo-gc.1"
    "oxundo-completions.1"
    "oxundo-man.1"
    "oxundo-mcp.1"
    "oxundo-acp.1"
    "git-oxundo.1"
    "oxundo-config.7"
    "oxundo-json.7"
    "oxundo-storage.7"
];

/// Installs the pages, or shows one. Gives what is to be answered, or nothing when man has shown it.
pub fn run(ui: &Ui, args: &ManArgs) -> Result<Option<Manual>> {
    if let Some(directory) = &args.install {
        return install(directory.clone()).map(Some);
    }
    let (program, wanted) = (Cli::command(), args.page.as_deref().unwrap_or("oxundo"));
    // A command may have another name, and has one page.
    let (name, page) = find(program.find_subcommand(wanted).map_or(wanted, Command::get_name))?;
    if !ui.json && show(name, page)? {
        return Ok(None);
    }
    Ok(Some(Manual::Page(name, text(name, page))))
}

/// A page's name without what all names have: `undo` for `oxundo-undo.1`.
pub fn short(name: &str) -> &str {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    stem.strip_prefix("oxundo-").unwrap_or(stem)
}

/// What a page is about, in a line.
pub fn about(page: &str) -> &str {
    let name = page.lines().skip_while(|line| *line != ".SH NAME").nth(1);
    name.and_then(|line| line.split_once(" \\- ")).map_or("", |(_, about)| about)
}

/// A page for where there is no man: a command's is its help, the others are the texts that they are made of.
fn text(name: &str, page: &str) -> String {
    let mut program = Cli::command();
    program.build();
    let mut command = match short(name) {
        "oxundo" => {
            let own = program.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            program.after_long_help(format!("{own}\n{}", include_str!("../../../man/sections/oxundo.txt")))
        }
        "git-oxundo" => of_text(name, page, include_str!("../../../man/sections/git-oxundo.txt")),
        "config" => of_text(name, page, &with_keys(include_str!("../../../man/sections/config.txt"))),
        "json" => of_text(name, page, include_str!("../../../man/sections/json.txt")),
        "storage" => of_text(name, page, include_str!("../../../man/sections/storage.txt")),
        command => program.find_subcommand(command).cloned().unwrap_or(program),
    };
    command.render_long_help().to_string()
}

/// A page that is about no command: clap wraps it as it does the help.
fn of_text(name: &str, page: &str, text: &str) -> Command {
    let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let title = format!("{name}: {}{{after-help}}", about(page));
    Command::new("oxundo").max_term_width(WIDTH).help_template(title).after_long_help(text.trim_end().to_owned())
}

/// The table of keys, before the examples.
fn with_keys(text: &str) -> String {
    let keys: String = KEYS
        .iter()
        .map(|key| {
            let default = if key.default.is_empty() { "none" } else { key.default };
            let about = format!("{} Takes {}. Default: {default}.", key.about, key.values);
            format!("  oxundo.{}\n      {about}\n\n", key.name)
        })
        .collect();
    text.replace("Examples:\n", &format!("Keys:\n{keys}Examples:\n"))
}

fn find(wanted: &str) -> Result<(&'static str, &'static str)> {
    let is =
        |name: &str| name == wanted || short(name) == wanted || name.rsplit_once('.').is_some_and(|n| n.0 == wanted);
    PAGES.iter().copied().find(|(name, _)| is(name)).ok_or_else(|| {
        let names: Vec<_> = PAGES.iter().map(|(name, _)| short(name)).collect();
        Refusal::new(Code::NotFound, format!("there is no page '{wanted}'"))
            .hint(format!("run 'oxundo man' for the first; the pages are {}", names.join(", ")))
            .into()
    })
}

/// Whether there was a man program, and it showed the page.
fn show(name: &str, page: &str) -> Result<bool> {
    let Ok(man) = spawn::find(OsStr::new("man")) else { return Ok(false) };
    let directory = std::env::temp_dir().join(format!("oxundo-man-{}", std::process::id()));
    // One that is there already may be a trap.
    if std::fs::create_dir(&directory).is_err() {
        return Ok(false);
    }
    let file = directory.join(name);
    let shown = std::fs::write(&file, page).map_err(Into::into).and_then(|()| {
        // Every man takes a name with a slash for a file; not every one knows -l.
        spawn::run(&man, &[OsString::from("man"), file.into_os_string()], None)
    });
    // It is the system's to clean up what stays.
    let _ = std::fs::remove_dir_all(&directory);
    Ok(shown?.success())
}

fn install(directory: Option<PathBuf>) -> Result<Manual> {
    let usual = || {
        let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let data = given("XDG_DATA_HOME").or_else(|| given("HOME").map(|home| home.join(".local/share")))?;
        Some(data.join("man"))
    };
    let directory = directory.or_else(usual).ok_or_else(|| {
        Refusal::new(Code::Usage, "there is no home directory to install into")
            .hint("run 'oxundo man --install man' to have them in a directory here, or name another")
    })?;
    let directory = std::path::absolute(directory)?;
    for (name, page) in PAGES {
        write(&directory, name, page).with_context(|| format!("install the manual in '{}'", directory.display()))?;
    }
    Ok(Manual::Installed(directory))
}

fn write(directory: &Path, name: &str, page: &str) -> std::io::Result<()> {
    let section = name.rsplit_once('.').map_or("1", |(_, section)| section);
    let directory = directory.join(format!("man{section}"));
    std::fs::create_dir_all(&directory)?;
    std::fs::write(directory.join(name), page)
}

/// A page that no man has shown, or where all are now.
pub enum Manual {
    /// The page's name, and itself.
    Page(&'static str, String),
    /// The directory that has `man1` and `man7`.
    Installed(PathBuf),
}

impl Answer for Manual {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(match self {
            Self::Page(name, text) => json!({"page": name, "text": text}),
            Self::Installed(directory) => {
                let names: Vec<_> = PAGES.iter().map(|(name, _)| name).collect();
                json!({"directory": directory.to_string_lossy(), "pages": names})
            }
        })
    }

    fn text(&self) -> String {
        match self {
            Self::Page(_, text) => text.clone(),
            Self::Installed(directory) => {
                format!(
                    "Installed {} pages below {}\n",
                    PAGES.len(),
                    crate::model::bytes::sanitized(&directory.to_string_lossy())
                )
            }
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Page(..) => Vec::new(),
            Self::Installed(directory) => vec![format!(
                "'man oxundo' and 'git help oxundo' show them; if man finds none, put '{}:' into MANPATH",
                directory.display()
            )],
        }
    }
}
