//! How the program is linked.

use std::env;

/// The program starts for each of an agent's hooks, and what the loader does before `main` is a fifth of such a start, half of
/// it in a debug build: it writes 40,000 addresses. Linked to a fixed place, as Go's programs are, there are none to write.
/// `OXUNDO_PIE=1` has it linked as others are, for those who package it by such a rule: the code is the same.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=OXUNDO_PIE");
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
    let is_gnu_linux = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is_gnu_linux && !is("OXUNDO_PIE", "1") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
