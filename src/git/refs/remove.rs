//! Taking oxundo's own refs away, and old lines out of their logs. git could do both; but what it leaves of its locks when it is
//! killed nobody can tell from what a living git has.

use crate::git::refs::lockfile::RefLocks;
use crate::git::refs::{Edit, Refs, full_name};
use anyhow::Result;
use gix::bstr::ByteSlice;
use gix::refs::file::log::LineRef;

impl Refs<'_> {
    /// Deletes all of oxundo's refs, of all worktrees.
    pub fn delete_own_refs(&self) -> Result<()> {
        let mut edits = Vec::new();
        for name in self.own_refs()? {
            let name = full_name(&name)?;
            if let Some(from) = self.repo.ref_value(name.as_ref())? {
                edits.push(Edit { name, from: Some(from), to: None, logged: None, always_logged: false });
            }
        }
        if edits.is_empty() { Ok(()) } else { self.edit(&edits, "", || Ok(())) }
    }

    /// Takes the lines out of the reflog of one of them that are older than a time.
    pub fn expire_log(&self, name: &str, limit: i64) -> Result<()> {
        if self.repo.has_tables() {
            return self.expire_log_in_tables(name, limit);
        }
        let mut locks = RefLocks::begin(*self, &[name])?;
        locks.take(name)?;
        let Some(text) = self.log_text(name)? else { return Ok(()) };
        let left = since(&text, limit);
        if left.len() == text.len() { Ok(()) } else { locks.put(&self.repo.log_file(name), &left) }
    }
}

/// The lines of a reflog that are not older than a time, nor damaged: these stay as well.
fn since(text: &[u8], limit: i64) -> Vec<u8> {
    let is_old = |line: &&[u8]| {
        let line = LineRef::from_bytes(line.trim_end_with(|end| end == '\n'));
        line.is_ok_and(|line| line.signature.time().is_ok_and(|time| time.seconds < limit))
    };
    text.lines_with_terminator().filter(|line| !is_old(line)).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;

    #[test]
    fn of_a_reflog_what_is_younger_stays_and_what_nobody_can_read() {
        let zero = "0".repeat(40);
        let line = |time: i64| format!("{zero} {zero} A <a@b> {time} +0000\tline {time}\n");
        let text = format!("{}no line\n{}{}", line(1), line(5), line(2));
        assert_eq!(since(text.as_bytes(), 5), format!("no line\n{}", line(5)).as_bytes());
        assert_eq!(since(text.as_bytes(), 0), text.as_bytes());
    }

    #[test]
    fn a_log_loses_the_lines_that_git_would_take_out_and_no_lock_is_left() {
        for tables in [false, true] {
            // git brings no reflogs along until 2.48.
            let f = Fixture::with(&["core.logAllRefUpdates=false"]);
            let ids = ["1", "2", "3"].map(|name| f.commit(name, name));
            if tables && !f.git_agrees(&["refs", "migrate", "--ref-format=reftable"]) {
                return;
            }
            let f = f.reopened();
            let name = "refs/oxundo/timeline";
            for id in ids {
                f.git(&["update-ref", "--create-reflog", name, &id.to_string()]);
            }
            let refs = Refs::new(&f.repo);
            let lines = || refs.log_text(name).expect("read it").unwrap_or_default().lines().count();
            for (limit, left) in [(0, 3), (i64::from(u32::MAX), 0)] {
                refs.expire_log(name, limit).expect("expire them");
                assert_eq!(lines(), left, "{tables}");
                assert_eq!(refs.ref_id(name).expect("read it"), Some(ids[2]), "it stays where it is");
            }
            refs.delete_own_refs().expect("delete them");
            assert_eq!(refs.own_refs().expect("list them"), [""; 0]);
            assert_eq!(lines(), 0);
            assert!(!refs.has_marked_locks(), "{tables}");
        }
    }
}
