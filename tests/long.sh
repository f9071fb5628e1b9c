#!/usr/bin/env bash
# The long form of the tests, more than two hours on two quiet cores: every turn in every place, every kill point in every way,
# every call that fails, refs packed and locked by others at every instant, kills at random instants,
# long random walks, every forged record, and the fuzz targets. Ends with
# the figures for docs/reliability.md. Usage: tests/long.sh [SECONDS-PER-FUZZ-TARGET]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
export RUST_BACKTRACE=0
cargo test --locked --no-run
figures=()

# What to say of it, the filter, and the variables that make it long.
part() {
    local what=$1 filter=$2 began=$SECONDS
    shift 2
    echo "== $what"
    env "$@" cargo test --locked --test it "$filter" -- --nocapture
    figures+=("$what: nothing lost, in $((SECONDS - began)) s")
}

part "known directories, and an overlay" dircache OXUNDO_THOROUGH=1
part "every turn in every place and mode" roundtrip OXUNDO_THOROUGH=1
part "every turn in every sparse checkout" sparse OXUNDO_THOROUGH=1
part "every kill point" kill_points OXUNDO_THOROUGH=1
part "every kill between what is aside and its place" private:: OXUNDO_THOROUGH=1
part "the power cut at every call" power:: OXUNDO_THOROUGH=1
part "every call that fails" failing_calls OXUNDO_THOROUGH=1
part "saves at every instant of an apply, and an editor that saves all the time" saves OXUNDO_THOROUGH=1
part "the same on a disk" saves::an_editor OXUNDO_THOROUGH=1 TMPDIR=/tmp
part "refs packed and locked by others at any instant" refs_of_others OXUNDO_THOROUGH=1
part "an hour beside git's housekeeping, in eight worktrees" beside_gits_housekeeping OXUNDO_SECONDS=3600
part "6000 kills at random instants" crash OXUNDO_CASES=6000
part "every record led astray, and nonsense" hostile OXUNDO_THOROUGH=1
part "2 x 1000 random walks" property OXUNDO_CASES=1000
part "500 histories that the user makes anew" anew::a_turn_is_done_where_its_work_is OXUNDO_CASES=500
part "1000 random walks over lines of the user's" edits_of_other_lines OXUNDO_CASES=1000

# Each protocol is a command that can be left out.
for features in cli,acp cli,mcp; do
    cargo clippy --locked --lib --bins --no-default-features --features "$features" -- -D warnings
done

if cargo +nightly fuzz --version >/dev/null 2>&1; then
    for target in $(cargo +nightly fuzz list); do
        echo "== fuzz $target"
        # All of it is safe Rust: no sanitizer has anything to find.
        log=$(mktemp)
        cargo +nightly fuzz run --sanitizer none "$target" -- -max_total_time="$seconds" -print_final_stats=1 2>&1 |
            tee "$log"
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        figures+=("fuzz $target: $runs inputs in $seconds s, no panic")
    done
else
    figures+=("FUZZING SKIPPED: it needs 'rustup toolchain install nightly' and 'cargo install cargo-fuzz'")
fi

printf '%s\n' "${figures[@]}"
