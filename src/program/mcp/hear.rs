//! What a client says, line by line, on its way to the SDK: that drops a line which is no JSON to it, and a client whose
//! request was such a line would wait for ever.

use crate::agents::lenient;
use crate::git::repo::threads::start;
use anyhow::Result;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, stdin};
use tokio::io::{AsyncRead, AsyncWriteExt, simplex};
use tokio::runtime::Handle;

/// A method that nobody has: what is asked for by it is refused.
pub const UNREADABLE: &str = "oxundo/unreadable";

/// So much is read at once.
const READ: usize = 64 << 10;

/// A longer line is none to the SDK.
const LONGEST: u64 = 16 << 20;

/// What the client says, until it has gone.
///
/// # Errors
///
/// Fails when no thread can be started.
pub fn client(runtime: Handle) -> Result<impl AsyncRead + Send + Unpin + 'static> {
    let (heard, mut on) = simplex(READ);
    start(move || {
        let mut client = BufReader::with_capacity(READ, stdin());
        let mut line = Vec::new();
        while client.by_ref().take(LONGEST).read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let said = in_place_of(&line).unwrap_or_else(|| std::mem::take(&mut line));
            if runtime.block_on(on.write_all(&said)).is_err() {
                break;
            }
            line.clear();
        }
        // It is gone: the end of what it says ends the server.
        let _ = runtime.block_on(on.shutdown());
    })?;
    Ok(heard)
}

/// A request with the id of one that the SDK could not read. None for all else.
fn in_place_of(line: &[u8]) -> Option<Vec<u8>> {
    if serde_json::from_slice::<Value>(line).is_ok() {
        return None;
    }
    let asked = lenient::parse(line)?;
    let id = asked.get("id").filter(|id| id.is_string() || id.is_number())?;
    asked.get("method")?;
    Some(format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": UNREADABLE})).into_bytes())
}
