//! The user's commit hooks, run on the copy of the index that a commit is made of.

use crate::git::index::Index;
use crate::git::index::lock::IndexLock;
use anyhow::{Context, Result};

impl Index<'_> {
    /// Runs the user's pre-commit and commit-msg hooks on a staged index; gives the message
    /// as they leave it.
    pub fn run_commit_hooks(&self, lock: &IndexLock<'_>, message: &str) -> Result<String> {
        let run = |args: Vec<&str>, hook: &str| {
            let ran = lock.git(&args).run(b"");
            ran.map_err(|error| anyhow::anyhow!("the {hook} hook failed: {error:#}"))
        };
        run(vec!["hook", "run", "--ignore-missing", "pre-commit"], "pre-commit")?;
        let file = self.repo.scratch()?.join("COMMIT_EDITMSG");
        std::fs::write(&file, message)?;
        let name = file.to_string_lossy().into_owned();
        for hook in ["prepare-commit-msg", "commit-msg"] {
            let mut args = vec!["hook", "run", "--ignore-missing", hook, "--", &name];
            if hook == "prepare-commit-msg" {
                args.push("message");
            }
            run(args, hook)?;
        }
        let message = std::fs::read_to_string(&file).context("read the message")?;
        std::fs::remove_file(&file)?;
        Ok(message)
    }
}
