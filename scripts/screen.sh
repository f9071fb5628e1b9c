#!/usr/bin/env bash
# Makes docs/screen.svg, README's picture of the timeline screen, of a real run: 'oxundo rewind' in tmux, in a repository of
# its own, with turns of a stand-in for an agent. The same run gives the same picture.
set -euo pipefail

cd "$(dirname "$0")/.."
top=$PWD
cargo build --locked --bin oxundo --example picture
place=$(mktemp -d)
tmux() { command tmux -L "oxundo-$$" -f /dev/null "$@"; }
trap 'tmux kill-server 2>/dev/null || true; rm -rf "$place"' EXIT
mkdir -p "$place/bin" "$place/home" "$place/shop"
cp target/debug/oxundo "$place/bin"

export HOME="$place/home" PATH="$place/bin:$PATH" TERM=xterm-256color LC_ALL=C.UTF-8 TZ=UTC
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat
export GIT_AUTHOR_DATE='2026-01-01T12:00:00Z' GIT_COMMITTER_DATE='2026-01-01T12:00:00Z'
cd "$place/shop"
git init -q -b main
git config user.name 'Ada'
git config user.email 'ada@example.com'
mkdir src
printf 'pub fn price(of: &str) -> u64 {\n    index::find(of)\n}\n' >src/lookup.rs
printf '# Shop\n' >README.md
git add -A
git commit -qm 'Look prices up'

turn() { oxundo -q run --agent "$1" -m "$2" -- sh -ec "$3"; }
turn claude 'cache lookups' 'printf "use std::collections::HashMap;\n\npub type Cache = HashMap<String, u64>;\n" >src/cache.rs
    printf "mod cache;\n\npub fn price(of: &str, cache: &cache::Cache) -> u64 {\n    cache[of]\n}\n" >src/lookup.rs'
turn codex 'say what prices are in' 'echo "Prices are in cents." >>README.md'
oxundo -q checkpoint 'works so far'
turn claude 'round to the next five cents' 'sed -i "s/cache\[of\]/cache[of].next_multiple_of(5)/" src/lookup.rs'
turn claude 'a currency for each price' 'printf "pub enum Currency {\n    Euro,\n    Krona,\n}\n" >src/currency.rs
    sed -i "1i mod currency;" src/lookup.rs'
oxundo -q undo
# The user goes on.
printf 'ask Bob\n' >todo.txt

tmux new-session -d -x 100 -y 26 'exec oxundo rewind'
shows() {
    for _ in $(seq 200); do
        tmux capture-pane -p | grep -qF "$1" && return
        sleep 0.05
    done
    echo "error: the screen never shows '$1'" >&2
    exit 1
}
shows 'would change'
shows '@@'

# How long the run took on this machine is no part of the picture.
tmux capture-pane -e -p |
    sed -E 's/[0-9]+ s ago/1 s ago/' |
    "$top/target/debug/examples/picture" >"$top/docs/screen.svg"
