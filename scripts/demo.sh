#!/usr/bin/env bash
# Makes docs/demo.svg, README's picture, of a real run: oxundo in a terminal of its own, in a repository
# of its own, around a stand-in for an agent. The same run gives the same picture, byte by byte.
set -euo pipefail

# One command, as somebody would type it, and what comes of it.
type_in() {
    printf '\e[1;32m$\e[0m \e[1m%s\e[0m\n' "$*"
    eval "$*" || true
    echo
}

scenes() {
    stty cols 100 rows 40
    type_in git status --short
    type_in 'oxundo run -m "cache lookups" -- claude -p "cache lookups"'
    type_in oxundo log
    type_in oxundo undo
    type_in git status --short
    type_in oxundo redo
    type_in git log --oneline
}

if [[ ${1:-} == scenes ]]; then
    scenes
    exit
fi

cd "$(dirname "$0")/.."
top=$PWD
cargo build --locked --bin oxundo --example picture
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir -p "$place/bin" "$place/home" "$place/shop"
cp target/debug/oxundo "$place/bin"

# What an agent does, without one.
cat >"$place/bin/claude" <<'AGENT'
#!/bin/sh
printf 'I put a cache in front of the lookup, and take the old index away.\n'
printf 'use std::collections::HashMap;\n\npub type Cache = HashMap<String, u64>;\n' >src/cache.rs
printf 'mod cache;\n\npub fn price(of: &str, cache: &cache::Cache) -> u64 {\n    cache[of]\n}\n' >src/lookup.rs
rm src/index.rs
AGENT
chmod +x "$place/bin/claude"

export HOME="$place/home" PATH="$place/bin:$PATH" TERM=xterm-256color LC_ALL=C.UTF-8 TZ=UTC
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat
export GIT_AUTHOR_DATE='2026-01-01T12:00:00Z' GIT_COMMITTER_DATE='2026-01-01T12:00:00Z'
cd "$place/shop"
git init -q -b main
git config user.name 'Ada'
git config user.email 'ada@example.com'
mkdir src
printf 'pub fn price(of: &str) -> u64 {\n    index::find(of)\n}\n' >src/lookup.rs
printf 'pub fn find(of: &str) -> u64 {\n    0\n}\n' >src/index.rs
printf '# Shop\n' >README.md
git add -A
git commit -qm 'Look prices up'
# The user is in the middle of something.
printf 'Prices are in cents.\n' >>README.md
printf 'ask Bob\n' >todo.txt

# How long the run took on this machine is no part of the picture.
script -qec "'$top/scripts/demo.sh' scenes" /dev/null |
    sed -E 's/[0-9]+ s ago/1 s ago/' |
    "$top/target/debug/examples/picture" >"$top/docs/demo.svg"
