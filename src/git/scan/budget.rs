//! What is left out of a checkpoint where there is too much to read into it.

use crate::git::scan::found::Candidate;
use crate::model::checkpoint::Reason;
use crate::model::path::parents;
use gix::bstr::{BStr, BString, ByteSlice};
use std::collections::{HashMap, HashSet};

/// Bytes and files.
type Amount = (u64, u64);

/// What to leave out, so that no more than these bytes and files that are new have to be read: the largest directories, and
/// files that are in none which can be left out as a whole. Gives the bytes or the files that are new in each.
pub fn over_budget<'d, D: Iterator<Item = &'d BString>>(
    files: &[Candidate],
    budget: Amount,
    is_new: impl Fn(&Candidate) -> bool,
    directories: impl FnOnce() -> D,
) -> Vec<(BString, Reason, u64)> {
    let sum = |files: &[&Candidate]| (files.iter().map(|file| file.size).sum::<u64>(), files.len() as u64);
    let is_over = |(bytes, files): Amount| bytes > budget.0 || files > budget.1;
    let mut new: Vec<&Candidate> = files.iter().collect();
    if !is_over(sum(&new)) {
        return Vec::new();
    }
    new.retain(|file| is_new(file));
    let mut left_out = Vec::new();
    let directories: HashSet<&BStr> = directories().map(|directory| directory.as_bstr()).collect();
    while is_over(sum(&new)) {
        let by_bytes = sum(&new).0 > budget.0;
        let measure = |(bytes, files): Amount| if by_bytes { bytes } else { files };
        let largest = largest(&new, &directories, measure);
        let goes = |file: &Candidate| {
            file.path == largest || parents(file.path.as_bstr()).any(|directory| directory == largest)
        };
        let (gone, rest): (Vec<_>, Vec<_>) = new.into_iter().partition(|file| goes(file));
        let (reason, amount) = if by_bytes { (Reason::TooMuch, sum(&gone).0) } else { (Reason::TooMany, sum(&gone).1) };
        left_out.push((largest.to_owned(), reason, amount));
        new = rest;
    }
    left_out
}

/// The directory of which most is new. Where most of that is in one directory in it, that one: the rest is captured.
fn largest<'f>(new: &[&'f Candidate], directories: &HashSet<&BStr>, measure: impl Fn(Amount) -> u64) -> &'f BStr {
    let mut all: HashMap<&BStr, u64> = HashMap::new();
    for file in new {
        let amount = measure((file.size, 1));
        let mut places = vec![file.path.as_bstr()];
        places.extend(parents(file.path.as_bstr()).filter(|directory| directories.contains(directory)));
        for place in places {
            *all.entry(place).or_default() += amount;
        }
    }
    // Of the same size, the first by name; of one in the other, the outer.
    let of = |place: &BStr| all.get(place).copied().unwrap_or_default();
    let best = |places: &mut dyn Iterator<Item = &'f BStr>| places.max_by(|a, b| of(a).cmp(&of(b)).then(b.cmp(a)));
    let Some(mut found) = best(&mut all.keys().copied()) else { return BStr::new("") };
    loop {
        let is_inside = |place: &&BStr| directories.contains(*place) && parents(place).any(|above| above == found);
        let most_of_it =
            |place: &&BStr| of(place) < of(found) && of(place).saturating_mul(4) >= of(found).saturating_mul(3);
        match best(&mut all.keys().copied().filter(is_inside).filter(most_of_it)) {
            Some(inner) => found = inner,
            None => return found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::checkpoint::Kind;

    fn left_out(files: &[(&str, u64)], directories: &[&str], budget: Amount) -> Vec<(String, u64)> {
        let file = |(path, size): &(&str, u64)| Candidate {
            path: (*path).into(),
            kind: Kind::File,
            size: *size,
            stamp: None,
            private: false,
        };
        let files: Vec<_> = files.iter().map(file).collect();
        let directories: Vec<BString> = directories.iter().map(|path| (*path).into()).collect();
        let is_new = |file: &Candidate| !file.path.starts_with(b"known");
        let found = over_budget(&files, budget, is_new, || directories.iter());
        found.into_iter().map(|(path, _, amount)| (path.to_string(), amount)).collect()
    }

    #[test]
    fn the_largest_directories_go_and_no_more_than_must() {
        let files =
            [("a", 5), ("d/small", 1), ("d/big/x", 300), ("d/big/y", 300), ("e/x", 40), ("e/y", 45), ("known", 900)];
        let directories = ["d", "d/big", "e"];
        assert_eq!(left_out(&files, &directories, (2000, 7)), [], "there is room");
        assert_eq!(left_out(&files, &directories, (700, 7)), [], "what is known is not read");
        assert_eq!(left_out(&files, &directories, (100, 7)), [("d/big".into(), 600)], "the rest of d is captured");
        assert_eq!(left_out(&files, &directories, (50, 7)), [("d/big".into(), 600), ("e".into(), 85)]);
        assert_eq!(left_out(&files, &directories, (700, 3)), [("d".into(), 3)], "too many files");
        assert_eq!(left_out(&files, &["e"], (400, 7)), [("d/big/x".into(), 300)], "d was there: only a file goes");
        assert_eq!(left_out(&[("a", 5)], &[], (4, 1)), [("a".into(), 5)]);
    }
}
