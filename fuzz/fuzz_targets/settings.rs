//! Configuration: what git hands to the commands it starts, and any value of any key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oxundo::internals::{Config, Repo, config_parameters};
use std::cell::LazyCell;
use std::process::Command;
use tempfile::TempDir;

const KEYS: [&str; 14] = [
    "mode",
    "untracked",
    "dirty",
    "trailer",
    "messageCommand",
    "verify",
    "sign",
    "hints",
    "secret",
    "maxFileSize",
    "maxDirEntries",
    "skipDir",
    "exclude",
    "include",
];

thread_local! {
    static REPOSITORY: LazyCell<TempDir> = LazyCell::new(|| {
        let directory = TempDir::new().expect("make a directory");
        let made = Command::new("git").args(["init", "-q"]).arg(directory.path()).status();
        assert!(made.is_ok_and(|status| status.success()));
        directory
    });
}

fuzz_target!(|input: (u8, String)| {
    let (key, value) = input;
    let _ = config_parameters(&value);
    if !value.contains('\0') {
        // As git quotes them.
        let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''").replace('!', r"'\!'"));
        assert_eq!(config_parameters(&format!("'a.b'={}", quoted(&value))), [format!("a.b={value}")]);
    }
    let key = KEYS[usize::from(key) % KEYS.len()];
    let escaped = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', "\\n");
    REPOSITORY.with(|directory| {
        let file = directory.path().join(".git/config");
        std::fs::write(&file, format!("[oxundo]\n\t{key} = \"{escaped}\"\n")).expect("write the configuration");
        let Ok(repo) = Repo::open(directory.path()) else { return };
        let config = Config(&repo);
        let _ = (config.mode(), config.untracked(), config.keep_dirty(), config.trailer(), config.message_command());
        let _ = (config.verify(), config.sign(), config.hints(), config.limits());
        if let Ok(secrets) = config.secrets() {
            secrets.matches(value.as_bytes().into());
        }
    });
});
