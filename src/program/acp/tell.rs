//! What is told of a conversation is told as an agent's own hook tells it: by a process for each sign. It keeps to its time,
//! whatever blocks it, and the conversation goes on.

use crate::agents::spawn;
use crate::error::{Code, Refusal};
use crate::program::acp::talk::{Asked, Sign};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// Programs that start others.
const LAUNCHERS: [&str; 14] =
    ["npx", "npm", "pnpm", "bunx", "bun", "yarn", "node", "deno", "uvx", "uv", "pipx", "python3", "python", "env"];

/// Their words for it.
const WORDS: [&str; 6] = ["exec", "run", "dlx", "x", "tool", "start"];

/// What tells, and asks, in the agent's place.
pub struct Teller {
    own: PathBuf,
    agent: String,
}

/// What the agent is called in the records. It is set apart from the agent that tells by its own hooks: those are heard before a
/// tool is called, and this when it may be at work.
pub fn name_of(command: &[OsString]) -> String {
    let first = spawn::name_of(&command[0]);
    let is_word = |word: &&OsString| {
        let text = word.to_string_lossy();
        !text.starts_with('-') && !WORDS.contains(&text.as_ref()) && !text.contains('=')
    };
    let program = match command[1..].iter().find(is_word) {
        Some(word) if LAUNCHERS.contains(&first.as_str()) => spawn::name_of(OsStr::new(without_version(word).as_str())),
        _ => first,
    };
    if program.to_lowercase().contains("acp") { program } else { format!("{program}-acp") }
}

/// A package's name.
fn without_version(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let at = text.rfind('@').filter(|at| *at > 0);
    at.map_or(&*text, |at| &text[..at]).to_owned()
}

/// What sets the names of this conversation's prompts apart from those of others.
pub fn stamp() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("acp-{}-{}", std::process::id(), now.as_millis())
}

impl Teller {
    pub fn new(agent: String) -> Result<Self> {
        Ok(Self { own: std::env::current_exe().context("find oxundo's own program")?, agent })
    }

    /// Tells of beginnings and ends. What fails is in the log of hooks.
    pub fn tell(&self, signs: &[Sign]) {
        for sign in signs {
            self.tell_one(sign);
        }
    }

    fn tell_one(&self, sign: &Sign) {
        let Sign { event, session, directory, prompt_id, prompt, call } = sign;
        let mut told = json!({"agent": self.agent, "session_id": session, "prompt_id": prompt_id, "prompt": prompt});
        if let Some(directory) = directory.as_deref().and_then(Path::to_str) {
            told["cwd"] = directory.into();
        }
        if let Some(call) = call {
            told["tool_name"] = call.tool.as_str().into();
            told["tool_use_id"] = call.id.as_str().into();
            told["tool_input"] = json!({"file_path": call.path, "command": call.command});
        }
        let mut hook = Command::new(&self.own);
        hook.args(["hook", "acp", event]);
        let _ = fed(hook, told.to_string().as_bytes(), Stdio::null());
    }

    /// Has oxundo answer what is asked of it.
    pub fn ask(&self, asked: &Asked) -> Result<Value, Refusal> {
        let mut own = Command::new(&self.own);
        own.args(["acp", "--answer", &asked.method]);
        if let Some(directory) = &asked.directory {
            own.current_dir(directory);
        }
        let answered = fed(own, asked.params.as_bytes(), Stdio::piped());
        let told = answered.and_then(|out| serde_json::from_slice::<Value>(&out).context("no answer came"));
        told.map_err(|error| {
            Refusal::new(Code::Io, format!("no answer came from oxundo itself: {error:#}"))
                .hint("run 'oxundo doctor' in that directory to see what is wrong")
        })
    }
}

/// Runs a program to its end, with this on its standard input; gives what it prints.
fn fed(mut program: Command, input: &[u8], output: Stdio) -> Result<Vec<u8>> {
    let mut child = program.stdin(Stdio::piped()).stdout(output).spawn().context("start oxundo")?;
    if let Some(mut stdin) = child.stdin.take() {
        // It need not read all.
        let _ = stdin.write_all(input);
    }
    Ok(child.wait_with_output().context("wait for oxundo")?.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_called_what_its_program_is() {
        for (command, name) in [
            ("gemini --experimental-acp", "gemini-acp"),
            ("/usr/bin/claude-code-acp", "claude-code-acp"),
            ("npx -y @zed-industries/codex-acp@0.16.0 -c x", "codex-acp"),
            ("node --no-warnings /opt/agent/dist/index.js", "index-acp"),
            ("uv tool run my-agent acp", "my-agent-acp"),
            ("env A=b opencode acp", "opencode-acp"),
            ("node", "node-acp"),
            ("agent\u{1b}[31m", "agent\u{fffd}[31m-acp"),
        ] {
            let words: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            assert_eq!(name_of(&words), name, "{command}");
        }
    }
}
