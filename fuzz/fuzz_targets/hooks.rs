//! What an agent's hook is told: whatever it is, it is read without a panic, and nothing that is
//! beyond bounds comes through.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oxundo::internals::{ADAPTERS, parse_hook};

fuzz_target!(|input: (u8, Option<&str>, &[u8])| {
    let (adapter, event, payload) = input;
    let adapter = &ADAPTERS[usize::from(adapter) % ADAPTERS.len()];
    let Ok(payload) = serde_json::from_slice(payload) else { return };
    let Some(heard) = parse_hook(adapter, event, &payload, None) else { return };
    assert!(heard.prompt.is_none_or(|prompt| prompt.len() <= 16 << 10));
    let part = heard.part;
    for name in [part.session, part.prompt, part.model, part.transcript] {
        assert!(name.is_none_or(|name| name.len() <= 4 << 10));
    }
});
