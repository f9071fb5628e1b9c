//! How much is tried. `cargo test` by itself has a part of what is long, a story in one mode, and is done in some minutes; with `OXUNDO_WHOLE=1`, as
//! `.ci/run` has it, all cases of the tables; with `OXUNDO_THOROUGH=1` every combination of them (`tests/long.sh`).

use std::env::{var, var_os};

/// What a part has of the whole: one in so many.
const PART: usize = 5;

/// Tables that are not longer than this are tried as a whole in any form.
const SHORT: usize = 4;

/// Whether every combination is tried, however long it takes.
pub(crate) fn is_thorough() -> bool {
    var_os("OXUNDO_THOROUGH").is_some()
}

/// Whether all cases are tried, or a part of them.
pub(crate) fn is_whole() -> bool {
    is_thorough() || var_os("OXUNDO_WHOLE").is_some()
}

/// How many random cases are tried, where the whole has so many: as many as were asked for.
pub(crate) fn random_cases(whole: u32) -> u32 {
    let asked = var("OXUNDO_CASES").ok().and_then(|cases| cases.parse().ok());
    asked.unwrap_or_else(|| sample(whole as usize).try_into().expect("it is no more than that"))
}

/// How many points are tried, where the whole has so many.
pub(crate) fn sample(whole: usize) -> usize {
    if is_whole() { whole } else { whole.div_ceil(3) }
}

/// The cases of a table that are tried.
pub(crate) fn part<T>(cases: impl IntoIterator<Item = T>) -> Vec<T> {
    let cases: Vec<T> = cases.into_iter().collect();
    if is_whole() || cases.len() <= SHORT {
        return cases;
    }
    // Of each case in two variants, it is the first and the second one in turn.
    let is_in = |at: usize| at.is_multiple_of(PART);
    cases.into_iter().enumerate().filter(|(at, _)| is_in(*at)).map(|(_, case)| case).collect()
}

/// The same of those whose name has these words: what was asked for is tried.
pub(crate) fn part_of<T>(cases: impl IntoIterator<Item = T>, words: &str, name: impl Fn(&T) -> &str) -> Vec<T> {
    if words.is_empty() { part(cases) } else { cases.into_iter().filter(|case| name(case).contains(words)).collect() }
}

#[test]
fn a_part_of_a_table_has_some_of_each_variant() {
    let numbers: Vec<usize> = part(0..40);
    if is_whole() {
        assert_eq!(numbers, (0..40).collect::<Vec<_>>());
    } else {
        assert_eq!(numbers.len(), 8);
        assert!([0, 1].iter().all(|variant| numbers.iter().filter(|number| *number % 2 == *variant).count() == 4));
    }
    assert_eq!(part(0..SHORT).len(), SHORT, "a short one is tried as a whole");
}
