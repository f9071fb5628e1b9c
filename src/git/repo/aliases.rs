//! The symbolic refs in tables. git lists none that leads nowhere, and answers only whoever knows its name; so the tables are
//! read, as far as refs are in them (git's `Documentation/technical/reftable.adoc`).

use crate::git::repo::told::LIST;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeMap;
use std::path::Path;

/// How long the parts of a table are of which the first is at its beginning, by its version.
const LENGTHS: [(u8, Lengths); 2] = [(1, Lengths { header: 24, footer: 68 }), (2, Lengths { header: 28, footer: 72 })];

#[derive(Clone, Copy)]
struct Lengths {
    header: usize,
    footer: usize,
}

/// What a block of refs begins with.
const REFS: u8 = b'r';

/// What a ref is in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    /// It is in none any more.
    Gone,
    /// An object's id.
    Object,
    /// Another ref's name.
    Symbolic(BString),
}

/// Every symbolic ref in the tables of a git directory, and for which it stands. What cannot be read is left out: git says what
/// is wrong there.
pub fn symbolic_refs(git_dir: &Path) -> BTreeMap<BString, BString> {
    let list = git_dir.join(LIST);
    let place = list.parent().unwrap_or(git_dir);
    let names = std::fs::read_to_string(&list).unwrap_or_default();
    let mut found = BTreeMap::new();
    for table in names.lines().filter(|name| !name.contains('/')) {
        let bytes = std::fs::read(place.join(table)).unwrap_or_default();
        for (name, value) in refs_in(&bytes).unwrap_or_default() {
            match value {
                Value::Symbolic(target) => drop(found.insert(name, target)),
                Value::Object | Value::Gone => drop(found.remove(&name)),
            }
        }
    }
    found
}

/// The refs in a table; none where it is no whole one.
fn refs_in(bytes: &[u8]) -> Option<Vec<(BString, Value)>> {
    let version = *bytes.strip_prefix(b"REFT")?.first()?;
    let Lengths { header, footer } = LENGTHS.iter().find(|(of, _)| *of == version)?.1;
    let end = bytes.len().checked_sub(footer)?;
    let hash = if version == 2 && bytes.get(24..28)? == b"s256" { 32 } else { 20 };
    let aligned = number(bytes.get(5..8)?);
    let (mut refs, mut at) = (Vec::new(), 0);
    while at < end {
        // The first one has the table's header in it.
        let start = if at == 0 { header } else { 0 };
        let block = bytes.get(at..end)?;
        if *block.get(start)? != REFS {
            break;
        }
        let length = number(block.get(start + 1..start + 4)?);
        read_block(block.get(..length)?, start + 4, hash, &mut refs)?;
        // Behind it there are zeros, or the next one.
        let is_padded = block.get(length).is_none_or(|next| *next == 0);
        at += if aligned > length && is_padded { aligned } else { length.max(1) };
    }
    Some(refs)
}

/// The refs in a block, which begin there. At its end are the places of some of them, and how many these are.
fn read_block(block: &[u8], start: usize, hash: usize, refs: &mut Vec<(BString, Value)>) -> Option<()> {
    let (rest, restarts) = block.split_last_chunk::<2>()?;
    let end = rest.len().checked_sub(3 * usize::from(u16::from_be_bytes(*restarts)))?;
    let mut rest = block.get(start..end)?;
    let mut name: Vec<u8> = Vec::new();
    while !rest.is_empty() {
        let (shared, kind) = (varint(&mut rest)?, varint(&mut rest)?);
        name.truncate(shared);
        name.extend_from_slice(taken(&mut rest, kind >> 3)?);
        varint(&mut rest)?;
        let value = match kind & 7 {
            0 => Value::Gone,
            1 => taken(&mut rest, hash).map(|_| Value::Object)?,
            2 => taken(&mut rest, 2 * hash).map(|_| Value::Object)?,
            3 => {
                let length = varint(&mut rest)?;
                Value::Symbolic(taken(&mut rest, length)?.as_bstr().to_owned())
            }
            _ => return None,
        };
        refs.push((name.clone().into(), value));
    }
    Some(())
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

fn taken<'b>(rest: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

/// A number as git has it in packs, too.
fn varint(rest: &mut &[u8]) -> Option<usize> {
    let mut byte = *taken(rest, 1)?.first()?;
    let mut number = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = *taken(rest, 1)?.first()?;
        number = number.checked_add(1)?.checked_mul(0x80)? | usize::from(byte & 0x7f);
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;

    /// With so many refs that there are many blocks, and of both kinds of ids.
    #[test]
    fn of_tables_the_symbolic_refs_are_read_as_git_has_them() {
        for format in ["sha1", "sha256"] {
            let f = Fixture::of_format(format);
            // git brings no reflogs along until 2.48.
            f.git(&["config", "core.logAllRefUpdates", "false"]);
            let commit = f.commit("1", "1").to_string();
            if !f.git_agrees(&["refs", "migrate", "--ref-format=reftable"]) {
                return;
            }
            let f = f.reopened();
            let made: String =
                (0..2000).map(|n| format!("create refs/heads/some/longer/name-{n} {commit}\n")).collect();
            f.git_fed(&["update-ref", "--stdin"], made.as_bytes());
            f.git(&["tag", "-a", "-m", "tag", "annotated"]);
            for (name, target) in
                [("alias", "main"), ("none", "nowhere"), ("some/longer/name-7", "x"), ("gone", "main")]
            {
                f.git(&["symbolic-ref", &format!("refs/heads/{name}"), &format!("refs/heads/{target}")]);
            }
            f.git(&["symbolic-ref", "-d", "refs/heads/gone"]);
            let name = |name: &str| BString::from(format!("refs/heads/{name}"));
            let wanted = |head: &str| {
                let branches = [("alias", "main"), ("none", "nowhere"), ("some/longer/name-7", "x")];
                let branches = branches.map(|(from, to)| (name(from), name(to)));
                branches.into_iter().chain([(BString::from("HEAD"), name(head))]).collect::<BTreeMap<_, _>>()
            };
            assert_eq!(symbolic_refs(f.repo.git_dir()), wanted("main"), "{format}");
            f.git(&["symbolic-ref", "HEAD", "refs/heads/new"]);
            f.git(&["pack-refs", "--all"]);
            assert_eq!(symbolic_refs(f.repo.git_dir()), wanted("new"), "{format}, one table");
        }
    }

    #[test]
    fn what_is_no_table_has_no_refs() {
        for bytes in [&b""[..], b"REFT", b"REFT\x01", &[b'R'; 200], &[&b"REFT\x01"[..], &[0xff; 200]].concat()] {
            assert_eq!(refs_in(bytes).unwrap_or_default(), Vec::new());
        }
    }
}
