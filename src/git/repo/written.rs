//! The files of objects that this process has written, so that nobody has to read them again to make them durable.

use std::mem::take;

/// So many bytes are kept in mind at most; nobody puts more into the log of `durable` at once.
pub const MOST: u64 = 4 << 20;

/// The file of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenFile {
    /// The object's name.
    pub name: String,
    /// The file's number.
    pub inode: u64,
    /// All that is in it.
    pub content: Vec<u8>,
}

/// The files of objects.
#[derive(Debug, Default)]
pub struct Written {
    files: Vec<WrittenFile>,
    size: u64,
    /// What no ref led to when it was written.
    unsure: Vec<WrittenFile>,
    unsure_size: u64,
}

impl Written {
    /// Adds one; forgets all of them where they are too much together. `flushes` says whether anybody makes it durable.
    pub fn add(&mut self, file: WrittenFile, flushes: bool) {
        self.unsure_size += file.content.len() as u64;
        if self.unsure_size <= MOST {
            self.unsure.push(file.clone());
        }
        if !flushes {
            return;
        }
        self.size += file.content.len() as u64;
        self.files.push(file);
        if self.size > MOST {
            self.files.clear();
        }
    }

    /// Gives what was added since this was last asked; none if that was too much.
    pub fn give(&mut self) -> Option<Vec<WrittenFile>> {
        let (files, size) = (take(&mut self.files), take(&mut self.size));
        (size <= MOST).then_some(files)
    }

    /// Gives what no ref led to when it was written, as far as it is not too much, since this was last asked.
    pub fn give_unsure(&mut self) -> Vec<WrittenFile> {
        self.unsure_size = 0;
        take(&mut self.unsure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_said_once_and_none_of_it_is_given() {
        let mut written = Written::default();
        let half = usize::try_from(MOST / 2).expect("a size");
        let file = |name: &str| WrittenFile { name: name.to_owned(), inode: 1, content: vec![0; half] };
        for name in ["a", "b", "c"] {
            written.add(file(name), true);
        }
        assert_eq!(written.give(), None);
        written.add(file("d"), true);
        assert_eq!(written.give(), Some(vec![file("d")]));
        assert_eq!(written.give(), Some(Vec::new()));
        assert_eq!(written.give_unsure(), ["a", "b"].map(file), "of what is too much only the first");
        assert_eq!(written.give_unsure(), []);
    }
}
