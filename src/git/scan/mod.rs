//! One pass over the worktree, merged with the sorted index: what differs from
//! the index, what is not in it, and which permission bits are unusual.
//! Directories are read in parallel; only names that are not in the index are matched
//! with the ignore rules.

pub mod budget;
pub mod dircache;
pub mod found;
pub mod fsmonitor;
pub mod glance;
pub mod ignore;
pub mod nested;
pub mod read;
pub mod scanner;
pub mod tracked;
pub mod untracked;

use crate::git::scan::found::{Earlier, Knows, Scan};
use crate::git::scan::ignore::Rules;
use crate::git::scan::scanner::Scanner;
use crate::git::scan::untracked::UntrackedWalk;
use crate::git::worktree::privacy::Privacy;
use anyhow::Result;
use gix::bstr::ByteSlice;

/// Scans with `rules`. Without an `earlier` capture in the same turn, which froze them, the
/// `.gitignore` files that the scan meets are added to them.
pub fn scan<'b>(
    scanner: &Scanner<'b>,
    rules: &mut Rules,
    earlier: Option<&Earlier<'b>>,
    knows: Knows<'_>,
    privacy: Option<&Privacy<'b>>,
) -> Result<Scan> {
    let mut found = scanner.walk_tracked()?;
    if earlier.is_none() {
        for path in std::mem::take(&mut found.ignore_files) {
            if let Some(text) = scanner.worktree.read_plain_file(path.as_bstr())? {
                rules.add(path, text);
            }
        }
    }
    // A repository in the worktree is scanned like the worktree itself.
    let nested = |path: &_, rules: &Rules| {
        nested::repository_state(scanner, rules, path, &|s, r| scan(s, r, None, &|_| true, None))
    };
    let mut scan = UntrackedWalk::new(scanner, rules, earlier, &nested, (knows, privacy)).run(found)?;
    scan.tracked.sort_by_key(|(at, _)| *at);
    Ok(scan)
}
