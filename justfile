# What is typed often. `just git=/usr/lib/old/bin test` runs the tests with another git.

set shell := ["bash", "-euc"]

git := ""
export PATH := if git == "" { env("PATH") } else { git + ":" + env("PATH") }
# A failing property tells its story last: no backtrace may bury it.
export RUST_BACKTRACE := env("RUST_BACKTRACE", "0")

_default:
    @just --list --unsorted

# formatting, lints, documentation, spelling, licences
check:
    cargo fmt --check
    cargo clippy --locked --all-targets -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps
    if command -v typos >/dev/null; then typos; else echo "no typos: cargo install typos-cli"; fi
    if command -v cargo-deny >/dev/null; then cargo deny check licenses bans sources; else echo "no cargo-deny: cargo install cargo-deny"; fi

# all tests, or those with a word in their name
test *words:
    git --version
    cargo test --locked -- {{ words }}

# golden files, written anew
snap:
    OXUNDO_BLESS=1 cargo test --locked
    git diff --stat

# oxundo beside git
bench *args:
    cargo bench --locked -- {{ args }}

# every fuzz target, so many seconds each
fuzz seconds="60":
    for target in $(cargo +nightly fuzz list); do cargo +nightly fuzz run --sanitizer none "$target" -- -max_total_time={{ seconds }}; done

# README's picture
demo:
    scripts/demo.sh
    scripts/screen.sh

# the long form of the tests, more than an hour
long seconds="60":
    tests/long.sh {{ seconds }}

# the oldest Rust that builds it
msrv:
    cargo +$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml) check --locked --all-targets
