//! The stash list, entry by entry.

use crate::git::refs::Refs;
use crate::model::bytes::lossless;
use crate::model::checkpoint;
use crate::model::checkpoint::StashEntry;
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

impl Refs<'_> {
    /// The stash list, newest first.
    pub fn stash(&self) -> Result<Vec<StashEntry>> {
        if self.ref_id("refs/stash")?.is_none() {
            return Ok(Vec::new());
        }
        let mut buffer = [0; 4096];
        let Some(lines) = self.repo.gix.refs.reflog_iter_rev("refs/stash", &mut buffer)? else {
            return Ok(Vec::new());
        };
        lines
            .map(|line| {
                let line = line?;
                Ok(StashEntry {
                    id: line.new_oid,
                    name: lossless::encode(&line.signature.name),
                    email: lossless::encode(&line.signature.email),
                    date: line.signature.time.to_string(),
                    message: lossless::encode(&line.message),
                })
            })
            .collect()
    }

    /// Makes the stash list what a change leads to, entry by entry, keeping entries that are there already.
    pub fn set_stash(&self, change: &checkpoint::Change<Vec<StashEntry>>) -> Result<()> {
        let (now, to) = (self.stash()?, &change.to);
        if now.is_empty()
            && let Some(id) = self.ref_id("refs/stash")?
            && change.from.iter().chain(to).any(|entry| entry.id == id)
        {
            // Its reflog was wiped, or git was killed when it had dropped the last entry from it:
            // git would log no move to where the ref is already.
            self.repo.git(["update-ref", "-d", "refs/stash"]).run(b"")?;
        }
        let shared = now.iter().rev().zip(to.iter().rev()).take_while(|(a, b)| a == b).count();
        for _ in shared..now.len() {
            self.repo.git(["stash", "drop", "-q", "stash@{0}"]).run(b"")?;
        }
        let exactly = |text: &str| OsString::from_vec(lossless::decode(text));
        for entry in to[..to.len() - shared].iter().rev() {
            let store = ["stash", "store", "-q", "-m"].map(OsString::from);
            self.repo
                .git(store.into_iter().chain([exactly(&entry.message), entry.id.to_string().into()]))
                .env("GIT_COMMITTER_NAME", exactly(&entry.name))
                .env("GIT_COMMITTER_EMAIL", exactly(&entry.email))
                .env("GIT_COMMITTER_DATE", format!("@{}", entry.date))
                .run(b"")?;
        }
        // git calls it a success when it has dropped the last entry and could not delete the ref.
        let left = self.ref_id("refs/stash")?;
        if to.is_empty() && left.is_some_and(|id| change.from.iter().any(|entry| entry.id == id)) {
            bail!("git stash drop: refs/stash is still there");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;
    use crate::model::checkpoint::Change;

    /// A repository with so many stashes, and git's word for them.
    fn stashed(count: usize) -> Fixture {
        let f = Fixture::new();
        f.commit("a", "one");
        for number in 0..count {
            f.write("a", format!("edit {number}"));
            f.git(&["stash", "push", "-q", "-m", &format!("stash: {number} \u{e9}")]);
        }
        f
    }

    fn listed(f: &Fixture) -> Vec<String> {
        f.lines(&["reflog", "show", "--date=raw", "--format=%H %gn <%ge> %gd %gs", "refs/stash", "--"])
    }

    #[test]
    fn the_list_is_what_git_stash_list_shows_newest_first() {
        let f = stashed(3);
        let found = Refs::new(&f.repo).stash().expect("read the list");
        let line = |entry: &StashEntry| {
            let StashEntry { id, name, email, date, message } = entry;
            format!("{id} {name} <{email}> stash@{{{date}}} {message}")
        };
        assert_eq!(
            found.iter().map(line).collect::<Vec<_>>(),
            listed(&f).iter().map(|l| l.replace("refs/", "")).collect::<Vec<_>>()
        );
        let none = stashed(0);
        assert_eq!(Refs::new(&none.repo).stash().expect("there is none"), []);
    }

    #[test]
    fn a_list_becomes_any_other_one_line_by_line() {
        let f = stashed(3);
        let refs = Refs::new(&f.repo);
        let all = refs.stash().expect("read the list");
        let [c, b, a] = &all[..] else { panic!("three of them") };
        let of_bytes = StashEntry {
            name: "N\0e9".into(),
            message: "odd \0ff".into(),
            date: "1600000000 -0730".into(),
            ..a.clone()
        };
        let lists: [&[&StashEntry]; 8] =
            [&[c, b, a], &[b, a], &[], &[a, b], &[c, &of_bytes], &[&of_bytes], &[], &[c, b, a]];
        let original = listed(&f);
        let mut now = all.clone();
        for wanted in lists {
            let to: Vec<StashEntry> = wanted.iter().map(|entry| (*entry).clone()).collect();
            refs.set_stash(&Change::new(now, to.clone())).expect("set the list");
            let shown = f.git(&["stash", "list", "--format=%H"]);
            let ids: Vec<String> = to.iter().map(|entry| entry.id.to_string()).collect();
            assert_eq!(String::from_utf8_lossy(&shown).lines().collect::<Vec<_>>(), ids, "git shows these");
            if let Ok(found) = refs.stash() {
                assert_eq!(found, to, "with their names, dates and messages");
            }
            now = to;
        }
        assert_eq!(listed(&f), original, "back at the beginning, git sees no difference");
    }
}
