//! Which files each of git's directories of objects held when all of them were known to be on the disk: where nothing was added
//! since, none of them need be asked when it came. Without this record, a look only takes longer.

use crate::git::repo::Repo;
use crate::git::repo::platform::boot_id;
use crate::git::repo::scratch::{checksum, take_number, verify, write_record};

/// How many directories there are.
const DIRECTORIES: usize = 256;

/// The files in a directory, in any order, as one number: the sum of one for each.
type Sum = u64;

/// What is known of each directory.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen(Vec<Sum>);

impl Seen {
    /// What was last recorded, if that was when the log ended with this mark; else nothing.
    pub fn read(repo: &Repo, mark: Option<u64>) -> Self {
        let read = || {
            let record = std::fs::read(repo.scratch_path(&file_name())).ok()?;
            let mut rest = verify(&record)?.strip_prefix(boot_id().as_bytes())?;
            (take_number(&mut rest) == Some(mark?)).then_some(())?;
            let sums: Vec<Sum> = std::iter::from_fn(|| take_number(&mut rest)).collect();
            (sums.len() == DIRECTORIES).then_some(Self(sums))
        };
        read().unwrap_or_else(Self::nothing)
    }

    /// Nothing is known.
    pub fn nothing() -> Self {
        Self(vec![0; DIRECTORIES])
    }

    /// Records it, for a log that ends with this mark.
    pub fn write(&self, repo: &Repo, mark: u64) {
        let sums: Vec<u8> = self.0.iter().flat_map(|sum| sum.to_be_bytes()).collect();
        write_record(repo, &file_name(), &[boot_id().as_bytes(), &mark.to_be_bytes(), &sums].concat());
    }

    /// Whether exactly these files were in a directory: all objects in it are known.
    pub fn has(&self, directory: u8, files: &[(String, u64)]) -> bool {
        self.0[usize::from(directory)] == sum(files)
    }

    /// Exactly these files are in a directory, all of them known.
    pub fn set(&mut self, directory: u8, files: &[(String, u64)]) {
        self.0[usize::from(directory)] = sum(files);
    }

    /// The file of this object has come, and is known. One that was known already is then taken for unknown, which does no harm.
    pub fn add(&mut self, name: &str, inode: u64) {
        let Some((directory, name)) = name.split_at_checked(2) else { return };
        if let Ok(directory) = u8::from_str_radix(directory, 16) {
            let all = &mut self.0[usize::from(directory)];
            *all = all.wrapping_add(number(name, inode));
        }
    }
}

/// Each user has a log of their own.
fn file_name() -> String {
    format!("seen-{}", rustix::process::geteuid().as_raw())
}

fn sum(files: &[(String, u64)]) -> Sum {
    files.iter().fold(0, |all, (name, inode)| all.wrapping_add(number(name, *inode)))
}

/// With its inode: git may have pruned an object that comes again.
fn number(name: &str, inode: u64) -> u64 {
    u64::from_be_bytes(checksum(&[name.as_bytes(), &inode.to_be_bytes()].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;

    const ONE: &str = "00112233445566778899aabbccddeeff00112233";
    const TWO: &str = "00ffeeddccbbaa99887766554433221100ffeedd";

    fn below(names: &[&str]) -> Vec<(String, u64)> {
        names.iter().map(|name| (name[2..].to_owned(), 7)).collect()
    }

    #[test]
    fn a_directory_is_known_by_exactly_the_files_that_were_in_it() {
        let mut seen = Seen::nothing();
        assert!(seen.has(0, &below(&[])) && !seen.has(0, &below(&[ONE])));
        seen.set(0, &below(&[ONE]));
        assert!(seen.has(0, &below(&[ONE])) && !seen.has(0, &below(&[TWO])) && !seen.has(0, &below(&[])));
        assert!(!seen.has(0, &[(ONE[2..].to_owned(), 8)]), "it is another file of that name");
        seen.add(TWO, 7);
        assert!(seen.has(0, &below(&[TWO, ONE])) && !seen.has(0, &below(&[ONE])));
        assert!(!seen.has(1, &below(&[ONE])));
    }

    #[test]
    fn a_record_counts_for_one_end_of_the_log_only_and_a_damaged_one_for_nothing() {
        let f = Fixture::new();
        let (nothing, mut seen) = (Seen::nothing(), Seen::read(&f.repo, Some(7)));
        assert_eq!(seen, nothing);
        seen.add(ONE, 7);
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
