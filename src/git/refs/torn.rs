//! What a power cut leaves of tables of refs: git waits for the disk with none of them, and reads no ref at all where one that
//! is listed is empty or gone.

use crate::git::refs::Refs;
use crate::git::refs::lists::table_names;
use crate::git::repo::scratch::{KEPT, replace};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// How a table and its last part begin.
const MAGIC: &[u8] = b"REFT";

/// How long the last part of a table is, by its version.
const FOOTERS: [(u8, usize); 2] = [(1, 68), (2, 72)];

/// A table: the first and the last update that are in it, and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Table {
    first: u64,
    last: u64,
    name: String,
}

impl Table {
    /// By its name, in which git says what is in it.
    fn of(name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(".ref")?.split('-');
        let mut number = || u64::from_str_radix(parts.next()?.strip_prefix("0x")?, 16).ok();
        let (first, last) = (number()?, number()?);
        (first <= last).then(|| Self { first, last, name: name.to_owned() })
    }
}

impl Refs<'_> {
    /// The lists that name what is no whole table.
    pub fn torn_lists(&self) -> Vec<PathBuf> {
        let lists = self.table_lists();
        let files = lists.iter().map(|list| self.ref_file(list));
        files.filter(|file| !is_sound(file)).collect()
    }

    /// Takes out of the lists what is no whole table, and puts in what has the same updates. The list that was there is kept.
    pub fn mend_tables(&self) -> Result<bool> {
        let torn = self.torn_lists();
        for list in &torn {
            let place = list.parent().unwrap_or(list);
            let names = table_names(list).unwrap_or_default();
            let mut whole = BTreeSet::new();
            for entry in std::fs::read_dir(place).with_context(|| format!("read '{}'", place.display()))?.flatten() {
                let table = entry.file_name().to_str().and_then(Table::of);
                whole.extend(table.filter(|table| is_whole(&place.join(&table.name))));
            }
            let kept = self.repo.scratch_path(KEPT).join("tables.list");
            kept.parent().map_or(Ok(()), |above| self.repo.make_private(above))?;
            if list.exists() {
                std::fs::copy(list, &kept).with_context(|| format!("write '{}'", kept.display()))?;
            }
            let text: String = chosen(&names, &whole).iter().map(|name| format!("{name}\n")).collect();
            replace(list, text.as_bytes()).with_context(|| format!("write '{}'", list.display()))?;
        }
        Ok(!torn.is_empty())
    }
}

/// The tables that have, together, what the listed ones had, as far as they are whole: of those that begin with the same
/// update a listed one, else the one with most in it. Where no list says which count, all do.
fn chosen(listed: &[String], whole: &BTreeSet<Table>) -> Vec<String> {
    let end = listed.iter().filter_map(|name| Table::of(name)).map(|table| table.last).max().unwrap_or(u64::MAX);
    let (mut names, mut done) = (Vec::new(), 0);
    loop {
        let next = whole.iter().filter(|table| table.first > done && table.last <= end);
        let best = next.min_by_key(|table| (table.first, !listed.contains(&table.name), u64::MAX - table.last));
        let Some(table) = best else { return names };
        names.push(table.name.clone());
        done = table.last;
    }
}

fn is_sound(list: &Path) -> bool {
    let place = list.parent().unwrap_or(list);
    match table_names(list) {
        Ok(names) if names.is_empty() => {
            let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
            !entries.into_iter().any(|entry| entry.path().extension() == Some(OsStr::new("ref")))
        }
        Ok(names) => names.iter().all(|name| is_whole(&place.join(name))),
        Err(_) => false,
    }
}

/// Whether all of a table is there. What another user may read alone is theirs to judge.
fn is_whole(path: &Path) -> bool {
    let bytes = match std::fs::read(path) {
        Err(error) => return error.kind() == std::io::ErrorKind::PermissionDenied,
        Ok(bytes) => bytes,
    };
    let version = bytes.get(MAGIC.len()).copied();
    let footer = FOOTERS.iter().find(|(of, _)| Some(*of) == version).and_then(|(_, length)| {
        let start = bytes.len().checked_sub(*length)?;
        bytes.get(start..)
    });
    let Some((text, sum)) = footer.and_then(|footer| footer.split_last_chunk::<4>()) else { return false };
    bytes.starts_with(MAGIC) && text.starts_with(MAGIC) && crc32(text) == u32::from_be_bytes(*sum)
}

/// The checksum that git has at the end of a table.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xEDB8_8320 & 0u32.wrapping_sub(sum & 1)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(first: u64, last: u64) -> String {
        format!("0x{first:012x}-0x{last:012x}-0badcafe.ref")
    }

    #[test]
    fn of_what_is_whole_the_listed_tables_count_and_in_their_place_what_has_the_same_updates() {
        let all = |tables: &[(u64, u64)]| tables.iter().map(|(first, last)| table(*first, *last)).collect::<Vec<_>>();
        for (listed, whole, wanted) in [
            (vec![(1, 4), (5, 5)], vec![(1, 4), (5, 5), (6, 6)], vec![(1, 4), (5, 5)]),
            (vec![(1, 4), (5, 5)], vec![(1, 4)], vec![(1, 4)]),
            (vec![(1, 4), (5, 5), (6, 6)], vec![(1, 4), (6, 6)], vec![(1, 4), (6, 6)]),
            (vec![(1, 1), (2, 2), (3, 3)], vec![(1, 3)], vec![(1, 3)]),
            (vec![(1, 3)], vec![(1, 1), (2, 2), (3, 3)], vec![(1, 1), (2, 2), (3, 3)]),
            (vec![], vec![(1, 1), (1, 3), (2, 2), (4, 4)], vec![(1, 3), (4, 4)]),
        ] {
            let whole = all(&whole).iter().filter_map(|name| Table::of(name)).collect();
            assert_eq!(chosen(&all(&listed), &whole), all(&wanted), "{listed:?}");
        }
    }

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }
}
