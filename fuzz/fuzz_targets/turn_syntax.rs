//! What a user may write for a turn: whatever it is, it is read without a panic, and what is read
//! means the same when it is written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oxundo::internals::TurnSpec;

fuzz_target!(|text: &str| {
    let Ok(spec) = TurnSpec::parse(text) else { return };
    let written = match &spec {
        TurnSpec::Number(number) => number.to_string(),
        TurnSpec::Below(0) => "@".to_owned(),
        TurnSpec::Below(n) => format!("@~{n}"),
        TurnSpec::Commit(digits) => digits.clone(),
    };
    assert_eq!(TurnSpec::parse(&written), Ok(spec));
});
