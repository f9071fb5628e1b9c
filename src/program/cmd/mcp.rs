//! `oxundo mcp`: what agents ask oxundo for, by the Model Context Protocol.

use crate::error::{Code, Refusal};
use crate::program::mcp::serve;
use anyhow::Result;
use std::io::{IsTerminal, stdin};
use std::path::Path;

/// Serves until the client has gone.
pub fn run(directory: &Path) -> Result<()> {
    if stdin().is_terminal() {
        return Err(Refusal::new(Code::Usage, "'oxundo mcp' is for agents to start, and here is a terminal")
            .hint("run 'oxundo init --mcp AGENT' to set an agent up")
            .into());
    }
    serve(directory)
}
