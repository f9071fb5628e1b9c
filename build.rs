//! How the program is linked for the tests.

use std::env;

/// The tests start the program some ten thousand times, and half of its time goes into the addresses of a debug build that the
/// loader writes before `main`: linked to a fixed place, it has none. What is released is linked as any program.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
    let is_gnu_linux = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is("PROFILE", "debug") && is_gnu_linux {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
