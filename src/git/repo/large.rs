//! Files that are too large for memory, as blobs.

use anyhow::Result;
use gix::ObjectId;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::sync::atomic::AtomicBool;

/// Larger files are never held in memory as a whole.
pub const IN_MEMORY: u64 = 4 << 20;

/// Exactly as many bytes of a file as it had when it was opened, since an object begins with its size.
pub struct Exactly<'a> {
    file: BufReader<&'a File>,
    /// How many there are still to read.
    pub left: u64,
    /// Whether there were fewer, since something writes to it.
    pub shorter: bool,
}

impl<'a> Exactly<'a> {
    /// All bytes of a file.
    pub fn of(mut file: &'a File) -> Result<Self> {
        file.rewind()?;
        Ok(Self { left: file.metadata()?.len(), shorter: false, file: BufReader::with_capacity(1 << 16, file) })
    }
}

impl Read for Exactly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = match self.file.read(&mut buffer[..most]) {
            Ok(0) if most > 0 => {
                self.shorter = true;
                Err(std::io::Error::other("the file became shorter"))
            }
            read => read,
        };
        self.left -= read.as_ref().map_or(0, |read| *read as u64);
        read
    }
}

/// The id that these bytes have as a blob.
pub fn blob_id(bytes: &[u8], hash: gix::hash::Kind) -> Result<ObjectId> {
    Ok(gix::objs::compute_hash(hash, gix::objs::Kind::Blob, bytes)?)
}

/// The id that a file's bytes have as a blob, however large it is; none where it became shorter while it was read.
pub fn file_id(file: &File, hash: gix::hash::Kind) -> Result<Option<ObjectId>> {
    let mut bytes = Exactly::of(file)?;
    let (size, progress, go_on) = (bytes.left, &mut gix::progress::Discard, AtomicBool::new(false));
    let id = gix::objs::compute_stream_hash(hash, gix::objs::Kind::Blob, &mut bytes, size, progress, &go_on);
    // Asked of the reader: what gix makes of a reader's error does not lead back to it.
    if bytes.shorter {
        return Ok(None);
    }
    Ok(Some(id?))
}
