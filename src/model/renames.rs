//! Which new file is an old one under another name, as git finds it: the same content, or half of it.

use gix::ObjectId;
use gix::bstr::BString;
use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// With more files that are gone, or new, only the same content is found: each pair would be compared.
const MOST: usize = 200;

/// A file that is gone or new.
pub struct Candidate<'a> {
    pub path: &'a BString,
    /// What it holds.
    pub id: ObjectId,
    /// Whether it is a link: that is never a file under another name.
    pub is_link: bool,
}

impl Candidate<'_> {
    fn name(&self) -> &[u8] {
        name_of(self.path)
    }
}

/// The bytes of a text by its lines, of what has no lines by pieces, as git weighs them.
pub struct Weighed {
    total: u64,
    pieces: HashMap<u64, u64>,
}

/// A piece ends here where no line does.
const PIECE: usize = 64;

/// The whole of a file.
const ALL: u64 = 1_000_000;

impl Weighed {
    pub fn new(content: &[u8]) -> Self {
        let mut pieces = HashMap::new();
        for line in content.split_inclusive(|byte| *byte == b'\n') {
            for piece in line.chunks(PIECE) {
                let mut hasher = DefaultHasher::new();
                piece.hash(&mut hasher);
                *pieces.entry(hasher.finish()).or_default() += piece.len() as u64;
            }
        }
        Self { total: content.len() as u64, pieces }
    }

    /// How much of the larger one the two have in common, of a million: of large files little tells which is nearer. None below a half.
    pub fn alike(&self, other: &Self) -> Option<u64> {
        let (least, most) = (self.total.min(other.total), self.total.max(other.total));
        if most == 0 || least * 2 < most {
            return None;
        }
        Some(self.common(other).saturating_mul(ALL) / most).filter(|common| *common >= ALL / 2)
    }

    /// Whether a quarter of the smaller one is in the other, too: one may have come from the other, with much else done to it.
    pub fn is_akin(&self, other: &Self) -> bool {
        let least = self.total.min(other.total);
        least > 0 && self.common(other).saturating_mul(4) >= least
    }

    fn common(&self, other: &Self) -> u64 {
        let both = |(piece, bytes): (&u64, &u64)| other.pieces.get(piece).map_or(0, |theirs| *theirs.min(bytes));
        self.pieces.iter().map(both).sum()
    }
}

/// The old places in the list of what is gone, by those of what is new. `weigh` looks at a file's content; none of what is
/// too large.
pub fn found<E>(
    gone: &[Candidate<'_>],
    new: &[Candidate<'_>],
    mut weigh: impl FnMut(ObjectId) -> Result<Option<Weighed>, E>,
) -> Result<BTreeMap<usize, usize>, E> {
    let mut renames = same_content(gone, new);
    let taken: Vec<usize> = renames.values().copied().collect();
    let old: Vec<usize> = (0..gone.len()).filter(|at| !taken.contains(at) && !gone[*at].is_link).collect();
    let fresh: Vec<usize> = (0..new.len()).filter(|at| !renames.contains_key(at) && !new[*at].is_link).collect();
    if old.is_empty() || fresh.is_empty() || old.len() > MOST || fresh.len() > MOST {
        return Ok(renames);
    }
    let mut weighed = |all: &[usize], of: &[Candidate<'_>]| -> Result<Vec<(usize, Weighed)>, E> {
        let mut one = |at: &usize| Ok(weigh(of[*at].id)?.map(|weighed| (*at, weighed)));
        all.iter().filter_map(|at| one(at).transpose()).collect()
    };
    let (old, fresh) = (weighed(&old, gone)?, weighed(&fresh, new)?);
    let mut pairs = Vec::new();
    for (to, theirs) in &fresh {
        let alike = old.iter().filter_map(|(from, ours)| Some((ours.alike(theirs)?, *from)));
        pairs.extend(alike.map(|(score, from)| (Reverse(score), gone[from].name() != new[*to].name(), *to, from)));
    }
    pairs.sort_unstable();
    let mut used = Vec::new();
    for (_, _, to, from) in pairs {
        if !renames.contains_key(&to) && !used.contains(&from) {
            used.push(from);
            renames.insert(to, from);
        }
    }
    Ok(renames)
}

/// Of these old places, by the new ones, those that no other file could have, or have had: none is alike, but one that is the same
/// as a third, or does not keep the name that both have.
pub fn certain<E>(
    gone: &[Candidate<'_>],
    new: &[Candidate<'_>],
    pairs: &BTreeMap<BString, BString>,
    mut weigh: impl FnMut(ObjectId) -> Result<Option<Weighed>, E>,
) -> Result<BTreeMap<BString, BString>, E> {
    let content = |of: &[Candidate<'_>]| of.iter().map(|it| (it.path.clone(), it.id)).collect::<HashMap<_, _>>();
    let (is, was) = (content(new), content(gone));
    let same = || pairs.iter().filter(|(to, from)| is.get(*to) == was.get(*from));
    let same_to: HashSet<&BString> = same().map(|(to, _)| to).collect();
    let same_from: HashSet<&BString> = same().map(|(_, from)| from).collect();
    let mut weighed: HashMap<ObjectId, Option<Weighed>> = HashMap::new();
    let are_few = gone.len() <= MOST && new.len() <= MOST;
    for it in gone.iter().chain(new).filter(|it| are_few && !it.is_link) {
        if let Entry::Vacant(entry) = weighed.entry(it.id) {
            entry.insert(weigh(it.id)?);
        }
    }
    let are_alike = |one: ObjectId, other: ObjectId| {
        let of = |id| weighed.get(&id).and_then(Option::as_ref);
        one == other || of(one).zip(of(other)).is_some_and(|(one, other)| one.alike(other).is_some())
    };
    let is_certain = |to: &BString, from: &BString| {
        let (Some(id), Some(was)) = (is.get(to).copied(), was.get(from).copied()) else { return false };
        if id != was && !are_few {
            return false;
        }
        let is_named = name_of(to) == name_of(from);
        // One that is the same as a file that is gone is that one.
        let is_rival_to = |it: &&Candidate<'_>| {
            let is_another = same_to.contains(it.path) && (it.id != was || is_named);
            it.path != to && !is_another && are_alike(it.id, was)
        };
        let is_rival_from = |it: &&Candidate<'_>| {
            let is_another = same_from.contains(it.path) && (it.id != id || is_named);
            it.path != from && !is_another && if id == was { it.id == id } else { are_alike(it.id, id) }
        };
        let to_others = new.iter().filter(is_rival_to).all(|it| is_named && it.name() != name_of(from));
        to_others && gone.iter().filter(is_rival_from).all(|it| is_named && it.name() != name_of(to))
    };
    Ok(pairs.iter().filter(|(to, from)| is_certain(to, from)).map(|(to, from)| (to.clone(), from.clone())).collect())
}

fn name_of(path: &BString) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// Those that hold the same; where there are several, the one of the same name, else the first.
fn same_content(gone: &[Candidate<'_>], new: &[Candidate<'_>]) -> BTreeMap<usize, usize> {
    let mut by_content: HashMap<(ObjectId, bool), Vec<usize>> = HashMap::new();
    for (at, old) in gone.iter().enumerate() {
        by_content.entry((old.id, old.is_link)).or_default().push(at);
    }
    let mut renames = BTreeMap::new();
    for same_name in [true, false] {
        for (at, new) in new.iter().enumerate() {
            let Some(olds) = by_content.get_mut(&(new.id, new.is_link)).filter(|_| !renames.contains_key(&at)) else {
                continue;
            };
            let best = olds.iter().position(|old| !same_name || gone[*old].name() == new.name());
            if let Some(best) = best {
                renames.insert(at, olds.remove(best));
            }
        }
    }
    renames
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// The renames between files of this content, told as `old -> new`.
    fn told(gone: &[(&str, &str)], new: &[(&str, &str)]) -> Vec<String> {
        all_and_certain(gone, new).0
    }

    /// All of them, and those of which it is certain.
    fn all_and_certain(gone: &[(&str, &str)], new: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let id =
            |content: &str| gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, content.as_bytes());
        let contents: HashMap<ObjectId, &str> =
            gone.iter().chain(new).map(|(_, content)| (id(content).expect("hash"), *content)).collect();
        let paths: Vec<BString> = gone.iter().chain(new).map(|(path, _)| BString::from(*path)).collect();
        let candidates: Vec<Candidate<'_>> = (paths.iter().zip(gone.iter().chain(new)))
            .map(|(path, (_, content))| Candidate { path, id: id(content).expect("hash"), is_link: false })
            .collect();
        let (old, fresh) = candidates.split_at(gone.len());
        let weigh = |id| Ok::<_, Infallible>(Some(Weighed::new(contents[&id].as_bytes())));
        let Ok(renames) = found(old, fresh, weigh);
        let pairs: BTreeMap<BString, BString> =
            renames.iter().map(|(to, from)| (fresh[*to].path.clone(), old[*from].path.clone())).collect();
        let Ok(sure) = certain(old, fresh, &pairs, weigh);
        let all = renames.into_iter().map(|(to, from)| format!("{} -> {}", old[from].path, fresh[to].path));
        (all.collect(), sure.into_iter().map(|(to, from)| format!("{from} -> {to}")).collect())
    }

    #[test]
    fn a_rename_is_certain_where_no_other_file_could_be_meant() {
        let ten: String = (0..10).map(|n| format!("line {n}\n")).collect();
        let (changed, other) = (ten.replace("line 3", "LINE 3"), ten.replace("line 4", "LINE 4"));
        let sure = |gone: &[(&str, &str)], new: &[(&str, &str)]| all_and_certain(gone, new).1;
        assert_eq!(sure(&[("a", &ten)], &[("b", &changed), ("c", "another\n")]), ["a -> b"]);
        assert!(sure(&[("a", &ten)], &[("b", &ten), ("c", &ten)]).is_empty(), "a copy too");
        assert!(sure(&[("a", &ten)], &[("b", &ten), ("c", &changed)]).is_empty(), "a copy with changes");
        assert!(sure(&[("a", &ten), ("b", &other)], &[("c", &changed)]).is_empty(), "it may be either");
        let moved = [("d/a", &*ten), ("d/b", &other)];
        assert_eq!(sure(&moved, &[("e/a", &changed), ("e/b", &other)]), ["d/a -> e/a", "d/b -> e/b"], "by their names");
    }

    #[test]
    fn the_same_content_is_a_rename_and_the_same_name_comes_first() {
        assert_eq!(told(&[("a", "one\n")], &[("d/a", "one\n")]), ["a -> d/a"]);
        assert_eq!(told(&[("a", "x\n"), ("b", "x\n")], &[("d/b", "x\n"), ("d/c", "x\n")]), ["b -> d/b", "a -> d/c"]);
        assert!(told(&[("a", "one\n")], &[("b", "two\n")]).is_empty());
    }

    #[test]
    fn a_quarter_of_the_smaller_one_makes_two_files_akin() {
        let weighed = |content: &[u8]| Weighed::new(content);
        let large = weighed(&b"one\ntwo\n".repeat(50));
        assert!(weighed(b"one\nabc\nabc\nabc\n").is_akin(&large));
        assert!(!weighed(b"one\nabc\nabc\nabc\nabc\n").is_akin(&large));
        assert!(!weighed(b"").is_akin(&large), "what is empty tells nothing");
    }

    #[test]
    fn half_of_the_content_is_enough_and_the_most_alike_wins() {
        let ten: String = (0..10).map(|n| format!("line {n}\n")).collect();
        let changed = ten.replace("line 3", "LINE 3");
        let other = changed.replace("line 4", "LINE 4");
        assert_eq!(told(&[("a", &ten)], &[("b", &other), ("c", &changed)]), ["a -> c"]);
        assert!(told(&[("a", &ten)], &[("b", &ten[..30])]).is_empty(), "less than a half");
    }
}
