#!/bin/sh
# What a thousand turns take on disk, and what 'oxundo gc' and 'git gc' give back of it.
#
#     OXUNDO=target/release/oxundo TURNS=1000 sh benches/space.sh
set -eu
oxundo=$(realpath "${OXUNDO:-target/release/oxundo}")
turns=${TURNS:-1000}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
export HOME="$directory" GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
mkdir "$directory/repo" && cd "$directory/repo"
git init -q -b main .
git config user.name bench && git config user.email bench@example.com && git config gc.auto 0

# A thousand files of 4 KB that have nothing in common.
for d in $(seq 50); do
    mkdir "d$d"
    for f in $(seq 20); do head -c 2900 /dev/urandom | base64 >"d$d/f$f"; done
done
git add -A && git commit -qm base && git gc -q

said() {
    size=$(du -sk .git | cut -f1)
    loose=$(git count-objects -v | sed -n 's/^count: //p')
    packed=$(git count-objects -v | sed -n 's/^in-pack: //p')
    printf '%-40s %8s KiB %8s loose %8s packed\n' "$1" "$size" "$loose" "$packed"
}

said "before"
# Each turn changes four files and makes one.
for n in $(seq "$turns"); do
    "$oxundo" run --agent bench -m "turn $n" -- sh -c "
        for k in 1 2 3 4; do echo $n >>d\$((($n + k) % 50 + 1))/f$((n % 20 + 1)); done; echo $n >new$n"
done
said "after $turns turns"
git gc -q
said "after git gc"
git clone -q --bare --no-local --single-branch . ../alone && git -C ../alone gc -q
(cd ../alone && mkdir .git && mv objects refs HEAD config packed-refs .git && said "the branch alone, without oxundo")
"$oxundo" gc --keep now
said "after oxundo gc --keep now"
git gc -q --prune=now
said "after git gc --prune=now"
