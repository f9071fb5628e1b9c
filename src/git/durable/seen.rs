//! Which objects each directory of git's held when all of them were known to be on the disk: where nothing was added since,
//! none of its files need be asked when it came. Without this record, a look only takes longer.

use crate::git::repo::Repo;
use crate::git::repo::platform::boot_id;
use crate::git::repo::scratch::{take_number, verify, write_record};

/// How many directories there are.
const DIRECTORIES: usize = 256;

/// How long a name is at most, without the directory's.
const LONGEST: usize = 62;

/// The names in a directory, as one: each bit says whether it is set in an odd number of them.
type Fold = [u8; LONGEST];

/// That of a directory with nothing in it.
const EMPTY: Fold = [0; LONGEST];

/// What is known of each directory.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen(Vec<Fold>);

impl Seen {
    /// What was last recorded, if that was when the log ended with this mark; else nothing.
    pub fn read(repo: &Repo, mark: Option<u64>) -> Self {
        let read = || {
            let record = std::fs::read(repo.scratch_path(&file_name())).ok()?;
            let mut rest = verify(&record)?.strip_prefix(boot_id().as_bytes())?;
            (take_number(&mut rest) == Some(mark?)).then_some(())?;
            let folds: Vec<Fold> = rest.chunks(LONGEST).map_while(|fold| fold.try_into().ok()).collect();
            (folds.len() == DIRECTORIES).then_some(Self(folds))
        };
        read().unwrap_or_else(|| Self(vec![EMPTY; DIRECTORIES]))
    }

    /// Records it, for a log that ends with this mark.
    pub fn write(&self, repo: &Repo, mark: u64) {
        let record = [boot_id().as_bytes(), &mark.to_be_bytes(), self.0.as_flattened()].concat();
        write_record(repo, &file_name(), &record);
    }

    /// Whether exactly these files were in a directory: all objects in it are known.
    pub fn has<'n>(&self, directory: u8, names: impl Iterator<Item = &'n str>) -> bool {
        self.0[usize::from(directory)] == fold(names)
    }

    /// Exactly these files are in a directory, all of them known.
    pub fn set<'n>(&mut self, directory: u8, names: impl Iterator<Item = &'n str>) {
        self.0[usize::from(directory)] = fold(names);
    }

    /// This object has come, and is known. One that was known is then taken for unknown, which does no harm.
    pub fn add(&mut self, name: &str) {
        let Some((directory, name)) = name.split_at_checked(2) else { return };
        if let Ok(directory) = u8::from_str_radix(directory, 16) {
            toggle(&mut self.0[usize::from(directory)], name);
        }
    }
}

/// Each user has a log of their own.
fn file_name() -> String {
    format!("seen-{}", rustix::process::geteuid().as_raw())
}

fn fold<'n>(names: impl Iterator<Item = &'n str>) -> Fold {
    let mut all = EMPTY;
    names.for_each(|name| toggle(&mut all, name));
    all
}

fn toggle(fold: &mut Fold, name: &str) {
    fold.iter_mut().zip(name.as_bytes()).for_each(|(all, byte)| *all ^= byte);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;

    const ONE: &str = "00112233445566778899aabbccddeeff00112233";
    const TWO: &str = "00ffeeddccbbaa99887766554433221100ffeedd";

    fn below(names: &[&'static str]) -> impl Iterator<Item = &'static str> {
        names.iter().map(|name| &name[2..]).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn a_directory_is_known_by_exactly_the_files_that_were_in_it() {
        let f = Fixture::new();
        let mut seen = Seen::read(&f.repo, None);
        assert!(seen.has(0, below(&[])) && !seen.has(0, below(&[ONE])));
        seen.set(0, below(&[ONE]));
        assert!(seen.has(0, below(&[ONE])) && !seen.has(0, below(&[TWO])) && !seen.has(0, below(&[])));
        seen.add(TWO);
        assert!(seen.has(0, below(&[TWO, ONE])) && !seen.has(0, below(&[ONE])));
        assert!(!seen.has(1, below(&[ONE])));
    }

    #[test]
    fn a_record_counts_for_one_end_of_the_log_only_and_a_damaged_one_for_nothing() {
        let f = Fixture::new();
        let nothing = Seen::read(&f.repo, Some(7));
        let mut seen = Seen::read(&f.repo, Some(7));
        seen.add(ONE);
        assert_ne!(seen, nothing);
        seen.write(&f.repo, 7);
        assert_eq!(Seen::read(&f.repo, Some(7)), seen);
        assert_eq!(Seen::read(&f.repo, Some(8)), nothing);
        assert_eq!(Seen::read(&f.repo, None), nothing);
        let path = f.repo.scratch_path(&file_name());
        let mut bytes = std::fs::read(&path).expect("read a file");
        bytes[100] ^= 1;
        std::fs::write(&path, bytes).expect("write a file");
        assert_eq!(Seen::read(&f.repo, Some(7)), nothing);
    }
}
