//! The files of objects that this process has written, so that nobody has to read them again to make them durable.

use std::mem::take;

/// So many bytes are kept in mind at most; nobody puts more into the log of `durable` at once.
pub const MOST: u64 = 4 << 20;

/// The files of objects: their names, without the slash, and all that is in them.
#[derive(Debug, Default)]
pub struct Written {
    files: Vec<(String, Vec<u8>)>,
    size: u64,
}

impl Written {
    /// Adds one; forgets all of them where they are too much together.
    pub fn add(&mut self, name: String, content: Vec<u8>) {
        self.size += content.len() as u64;
        self.files.push((name, content));
        if self.size > MOST {
            self.files.clear();
        }
    }

    /// Gives what was added since this was last asked; none if that was too much.
    pub fn give(&mut self) -> Option<Vec<(String, Vec<u8>)>> {
        let Self { files, size } = take(self);
        (size <= MOST).then_some(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_said_once_and_none_of_it_is_given() {
        let mut written = Written::default();
        let half = usize::try_from(MOST / 2).expect("a size");
        for name in ["a", "b", "c"] {
            written.add(name.to_owned(), vec![0; half]);
        }
        assert_eq!(written.give(), None);
        written.add("d".to_owned(), vec![0; half]);
        assert_eq!(written.give(), Some(vec![("d".to_owned(), vec![0; half])]));
        assert_eq!(written.give(), Some(Vec::new()));
    }
}
