//! The content of files, piece by piece. Where there is a hole nothing is copied.

use anyhow::Result;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Whether to stop: it may take long.
pub type Stops<'a> = &'a dyn Fn() -> Result<()>;

/// How much is copied or compared before anybody is asked again whether to go on.
pub const PIECE: usize = 1 << 20;

/// Copies the content of a file into an empty one, with its holes.
pub fn copy_content(from: &File, to: &File, stops: Stops<'_>) -> Result<()> {
    let mut piece = piece_of(from.metadata()?.len());
    let mut at = data_from(from, 0)?;
    loop {
        stops()?;
        let most = usize::try_from(hole_from(from, at) - at).unwrap_or(PIECE).min(piece.len());
        let read = from.read_at(&mut piece[..most], at)?;
        if read == 0 {
            break;
        }
        to.write_all_at(&piece[..read], at)?;
        at = data_from(from, at + read as u64)?;
    }
    Ok(to.set_len(from.metadata()?.len())?)
}

/// Whether two files have the same content. What is a hole is read as well: nobody's word for it is taken where this is the last
/// look at something that is then deleted.
pub fn has_same_content(one: &File, other: &File, stops: Stops<'_>) -> Result<bool> {
    let length = one.metadata()?.len();
    if length != other.metadata()?.len() {
        return Ok(false);
    }
    let [mut a, mut b] = [(); 2].map(|()| piece_of(length));
    let mut at = 0;
    loop {
        stops()?;
        let read = one.read_at(&mut a, at)?;
        if read == 0 {
            return Ok(other.read_at(&mut b, at)? == 0);
        }
        if other.read_exact_at(&mut b[..read], at).is_err() || a[..read] != b[..read] {
            return Ok(false);
        }
        at += read as u64;
    }
}

fn piece_of(length: u64) -> Vec<u8> {
    vec![0; usize::try_from(length).unwrap_or(PIECE).clamp(1, PIECE)]
}

/// Where a file has something else than a hole, from an offset on; its end where it has not.
fn data_from(file: &File, at: u64) -> Result<u64> {
    match seek(file, SeekFrom::Data(at)) {
        Ok(data) => Ok(data),
        Err(Errno::NXIO) => Ok(file.metadata()?.len().max(at)),
        // The file system knows of no holes.
        Err(_) => Ok(at),
    }
}

/// Where the next hole begins, behind an offset; far away where nobody knows.
fn hole_from(file: &File, at: u64) -> u64 {
    seek(file, SeekFrom::Hole(at)).ok().filter(|hole| *hole > at).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    /// A file of so many bytes with a few of them at these offsets, and holes between.
    fn file(length: u64, bytes: &[(u64, &str)]) -> File {
        let file = tempfile::tempfile().expect("make a file");
        file.set_len(length).expect("give it a length");
        for (at, text) in bytes {
            file.write_all_at(text.as_bytes(), *at).expect("write to it");
        }
        file
    }

    #[test]
    fn a_copy_has_the_same_bytes_and_holes() {
        const FAR: u64 = 1 << 28;
        for (length, bytes) in
            [(0, &[][..]), (FAR, &[]), (9, &[(0, "nine char")]), (FAR, &[(0, "a"), (FAR / 2, "b"), (FAR - 1, "c")])]
        {
            let (from, to) = (file(length, bytes), file(0, &[]));
            copy_content(&from, &to, &|| Ok(())).expect("copy it");
            assert!(has_same_content(&from, &to, &|| Ok(())).expect("compare them"));
            assert_eq!(to.metadata().expect("look at it").len(), length);
            for (at, text) in bytes {
                let mut read = vec![0; text.len()];
                to.read_exact_at(&mut read, *at).expect("read it");
                assert_eq!(read, text.as_bytes());
            }
            let blocks = [&from, &to].map(|file| file.metadata().expect("look at it").blocks());
            assert_eq!(blocks[0], blocks[1]);
        }
    }

    #[test]
    fn holes_are_compared_as_zeros() {
        let large = PIECE as u64 * 3;
        let zeros = file(0, &[]);
        zeros.write_all_at(&vec![0; PIECE * 3], 0).expect("write to it");
        let with = |bytes: &[(u64, &str)]| file(large, bytes);
        let cases = [
            (with(&[]), zeros, true),
            (with(&[(large - 1, "x")]), with(&[]), false),
            (with(&[]), with(&[(large - 1, "x")]), false),
            (with(&[]), file(large - 1, &[]), false),
            (file(large - 1, &[]), with(&[]), false),
            (with(&[(7, "x")]), with(&[(7, "y")]), false),
            (with(&[(7, "x")]), with(&[(7, "x")]), true),
        ];
        for (at, (one, other, same)) in cases.iter().enumerate() {
            assert_eq!(has_same_content(one, other, &|| Ok(())).expect("compare them"), *same, "case {at}");
        }
    }
}
