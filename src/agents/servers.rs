//! Where each agent is told of servers of the Model Context Protocol, and what is put there for `oxundo mcp`: a row an agent.

use crate::agents::edit::{Hit, last, without_hit};
use crate::agents::json::{Container, Document, Layout, on_one_line, property, value_of};
use crate::agents::setup::{FileEdit, Home, Scope};
use anyhow::{Context, Result, bail, ensure};
use jsonc_parser::ast::ObjectProp;
use serde_json::{Value, json};

/// The name of our server in an agent's settings.
const NAME: &str = "oxundo";

/// How one agent is told of a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerRow {
    /// The agent.
    pub agent: &'static str,
    /// The file below the top of the worktree.
    project: &'static str,
    /// The user's own.
    pub user: Home,
    /// The object in it that has the servers.
    key: &'static str,
    form: Form,
}

/// How a server is written.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// `command`, and `args`.
    Plain,
    /// The same, with a `type`.
    Typed,
    /// One list of words.
    Words,
}

const fn home(variable: Option<&'static str>, directory: &'static str, file: &'static str) -> Home {
    Home { variable, directory, file }
}

/// Those whose settings are JSON.
pub const SERVERS: &[ServerRow] = &[
    ServerRow {
        agent: "claude",
        project: ".mcp.json",
        user: home(Some("CLAUDE_CONFIG_DIR"), "", ".claude.json"),
        key: "mcpServers",
        form: Form::Plain,
    },
    ServerRow {
        agent: "gemini",
        project: ".gemini/settings.json",
        user: home(None, ".gemini", "settings.json"),
        key: "mcpServers",
        form: Form::Plain,
    },
    ServerRow {
        agent: "qwen",
        project: ".qwen/settings.json",
        user: home(None, ".qwen", "settings.json"),
        key: "mcpServers",
        form: Form::Plain,
    },
    ServerRow {
        agent: "cursor",
        project: ".cursor/mcp.json",
        user: home(None, ".cursor", "mcp.json"),
        key: "mcpServers",
        form: Form::Plain,
    },
    ServerRow {
        agent: "droid",
        project: ".factory/mcp.json",
        user: home(None, ".factory", "mcp.json"),
        key: "mcpServers",
        form: Form::Typed,
    },
    ServerRow {
        agent: "crush",
        project: ".crush.json",
        user: home(Some("XDG_CONFIG_HOME"), ".config", "crush/crush.json"),
        key: "mcp",
        form: Form::Typed,
    },
    ServerRow {
        agent: "opencode",
        project: "opencode.json",
        user: home(Some("XDG_CONFIG_HOME"), ".config", "opencode/opencode.json"),
        key: "mcp",
        form: Form::Words,
    },
    ServerRow {
        agent: "amp",
        project: ".amp/settings.json",
        user: home(Some("XDG_CONFIG_HOME"), ".config", "amp/settings.json"),
        key: "amp.mcpServers",
        form: Form::Plain,
    },
];

/// What others are told by, in words.
pub fn by_hand(agent: &str) -> &'static str {
    match agent {
        "codex" => "type 'codex mcp add oxundo -- oxundo mcp'",
        "goose" => "type 'goose configure', and add the command-line extension 'oxundo mcp'",
        "copilot" => "type '/mcp add' in it: a local server, 'oxundo mcp'",
        "cline" => "add the command 'oxundo mcp' to its servers in its settings",
        _ => "it has no servers of the Model Context Protocol",
    }
}

/// How an agent is told of a server.
pub fn row(agent: &str) -> Option<&'static ServerRow> {
    SERVERS.iter().find(|row| row.agent == agent)
}

/// What is left of a file; nothing where it was made for our server.
struct Rest(Option<String>);

impl ServerRow {
    /// The file in a scope.
    pub fn place(&self, scope: Scope) -> &'static str {
        if scope == Scope::User { self.user.file } else { self.project }
    }

    /// What is changed to set it up. `read` gives the text of a file below the place of the scope.
    pub fn install(&self, scope: Scope, read: impl Fn(&str) -> Result<Option<String>>) -> Result<Vec<FileEdit>> {
        let path = self.place(scope).to_owned();
        let before = read(&path)?;
        let after = Some(self.with(before.as_deref())?);
        Ok(vec![FileEdit { path, before, after, executable: false }])
    }

    /// What is changed to take it away again.
    pub fn remove(&self, scope: Scope, read: impl Fn(&str) -> Result<Option<String>>) -> Result<Vec<FileEdit>> {
        let path = self.place(scope).to_owned();
        let Some(before) = read(&path)?.filter(|text| text.contains(NAME)) else { return Ok(Vec::new()) };
        let Some(after) = self.without(&before)? else { return Ok(Vec::new()) };
        Ok(vec![FileEdit { path, before: Some(before), after: after.0, executable: false }])
    }

    fn server(&self) -> Value {
        match self.form {
            Form::Plain => json!({"command": "oxundo", "args": ["mcp"]}),
            Form::Typed => json!({"type": "stdio", "command": "oxundo", "args": ["mcp"]}),
            Form::Words => json!({"type": "local", "command": ["oxundo", "mcp"]}),
        }
    }

    fn item(&self) -> String {
        property(NAME, &on_one_line(&self.server()))
    }

    fn with(&self, text: Option<&str>) -> Result<String> {
        let layout = Layout { line: Some("\n".to_owned()), step: "  ".to_owned() };
        let servers = |layout: &Layout| property(self.key, &layout.object(&[self.item()]));
        let Some(text) = text else { return Ok(format!("{}\n", layout.object(&[servers(&layout.inner())]))) };
        if text.trim().is_empty() {
            return Ok(format!("{text}{}", layout.object(&[servers(&layout.inner())])));
        }
        let document = Document::parse(text)?;
        let top = document.top()?;
        let after = match last(top, self.key) {
            None => document.with_item(&top.into(), servers),
            Some(found) => {
                let all = found.value.as_object().with_context(|| format!("its '{}' is no object", self.key))?;
                match last(all, NAME) {
                    Some(there) if self.is_ours(there) => return Ok(text.to_owned()),
                    Some(_) => bail!("it has a server '{NAME}' that is not oxundo's"),
                    None => document.with_item(&all.into(), |_| self.item()),
                }
            }
        };
        let back = self.without(&after)?.context("it is not found again")?.0;
        ensure!(back.as_deref() == Some(text), "it is written so that uninstall could not bring it back");
        Ok(after)
    }

    /// The text without our server, which is nothing where init made the file; nothing where our server is not there.
    fn without(&self, text: &str) -> Result<Option<Rest>> {
        let document = Document::parse(text)?;
        let top = document.top()?;
        let Some(servers) = last(top, self.key) else { return Ok(None) };
        let Some(all) = servers.value.as_object() else { return Ok(None) };
        let Some(ours) = last(all, NAME).filter(|there| self.is_ours(there)) else { return Ok(None) };
        let steps: Vec<(Container, _)> = vec![(all.into(), ours.range), (top.into(), servers.range)];
        Ok(Some(Rest(without_hit(&document, &Hit(steps))?)))
    }

    /// Whether init wrote this. What the user has added to it makes it theirs.
    fn is_ours(&self, there: &ObjectProp) -> bool {
        value_of(&there.value) == self.server()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::adapters::ADAPTERS;

    /// A user's files, of every shape. `KEY` is where the servers are, `MINE` a server of the user's.
    const FILES: [&str; 22] = [
        "",
        "\n",
        "{}",
        "{}\n",
        "{ }\n",
        "{\n}\n",
        "{ // c\n}\n",
        "{\"KEY\":{}}",
        "{\"KEY\": {}}\n",
        "{\n  \"KEY\": {\n  }\n}\n",
        "{\"KEY\":{MINE}}",
        "{\"a\":1,\"KEY\":{MINE},\"b\":[]}",
        "{\n  \"KEY\": {\n    MINE\n  }\n}\n",
        "{\r\n\t\"KEY\": {\r\n\t\tMINE\r\n\t}\r\n}\r\n",
        "{\n  \"KEY\": {\n    MINE, // c\n  }, // d\n}\n",
        "{\n  \"KEY\": { // c\n  }\n}\n",
        "{\"model\":\"opus\"}",
        "{\n  \"model\": \"opus\"\n}\n",
        "{\n  \"model\": \"opus\", // c\n}\n",
        "{\"KEY\":{MINE},\"KEY\":{}}",
        "  {\n    \"a\" : 1e400,\n    \"b\" : \"\\u00e9\\/\"\n  }",
        "{\"a\": {\"b\": {\"c\": [[], {}]}}   }\n\n\n",
    ];

    fn shapes(row: &ServerRow) -> impl Iterator<Item = String> {
        let mine = "\"mine\": {\"command\": \"make\"}";
        FILES.iter().map(move |file| file.replace("KEY", row.key).replace("MINE", mine))
    }

    fn installed(row: &ServerRow, text: Option<&str>) -> String {
        let edits = row.install(Scope::Local, |_| Ok(text.map(str::to_owned)));
        let [edit] = &edits.unwrap_or_else(|error| panic!("{}: {error}: {text:?}", row.agent))[..] else { panic!() };
        edit.after.clone().expect("it is written")
    }

    fn removed(row: &ServerRow, text: &str) -> Option<String> {
        let edits = row.remove(Scope::Local, |_| Ok(Some(text.to_owned()))).expect("it is understood");
        let [edit] = &edits[..] else { panic!("{}: it is there: {text}", row.agent) };
        edit.after.clone()
    }

    #[test]
    fn the_users_file_comes_back_byte_for_byte() {
        for row in SERVERS {
            let own = installed(row, None);
            assert_eq!(removed(row, &own), None, "{}: {own}", row.agent);
            for text in shapes(row) {
                let after = installed(row, Some(&text));
                assert_eq!(installed(row, Some(&after)), after, "{}: once is enough", row.agent);
                assert_eq!(removed(row, &after).as_deref(), Some(&*text), "{}: {after}", row.agent);
            }
        }
    }

    #[test]
    fn a_server_of_the_users_is_neither_replaced_nor_taken_away() {
        for row in SERVERS {
            let text = format!("{{\"{}\": {{\"oxundo\": {{\"command\": \"/opt/oxundo\"}}}}}}", row.key);
            let there = |_: &str| Ok(Some(text.clone()));
            assert!(row.install(Scope::Local, there).is_err());
            assert_eq!(row.remove(Scope::Local, there).expect("nothing to do"), []);
        }
    }

    #[test]
    fn every_agent_has_a_row_or_words() {
        for adapter in ADAPTERS {
            let words = by_hand(adapter.name);
            assert!(row(adapter.name).is_some() || !words.is_empty(), "{}", adapter.name);
        }
        assert!(SERVERS.iter().all(|row| ADAPTERS.iter().any(|adapter| adapter.name == row.agent)));
    }
}
