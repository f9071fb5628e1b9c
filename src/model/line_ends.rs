//! The line ends of files, where these are all of one kind. An editor, or an agent, may write a file with others than it had.

/// What a line ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    /// A line feed.
    Lf,
    /// A carriage return and a line feed.
    CrLf,
}

impl LineEnd {
    /// The one that all lines of a text have.
    fn of(text: &[u8]) -> Option<Self> {
        let mut lines = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        let is_cr_lf = lines.next()?.ends_with(b"\r\n");
        let is_one = lines.all(|line| line.ends_with(b"\r\n") == is_cr_lf);
        is_one.then_some(if is_cr_lf { Self::CrLf } else { Self::Lf })
    }

    fn write(self, text: &[u8]) -> Vec<u8> {
        let mut written = Vec::with_capacity(text.len());
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let Some(line) = line.strip_suffix(b"\n") else {
                written.extend_from_slice(line);
                continue;
            };
            written.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
            written.extend_from_slice(if self == Self::CrLf { b"\r\n" } else { b"\n" });
        }
        written
    }
}

/// The sides of a merge (ours, the base, theirs) with the line ends that the one has which changed them; none where none did, or
/// the lines of one have several.
pub fn as_changed([ours, base, theirs]: &[Vec<u8>; 3]) -> Option<[Vec<u8>; 3]> {
    let (our, was, their) = (LineEnd::of(ours)?, LineEnd::of(base)?, LineEnd::of(theirs)?);
    let end = if our == was { their } else { our };
    (end != was).then(|| [end.write(ours), end.write(base), end.write(theirs)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(texts: [&str; 3]) -> [Vec<u8>; 3] {
        texts.map(|text| text.as_bytes().to_vec())
    }

    #[test]
    fn all_get_the_line_ends_that_one_side_has_changed_to() {
        let cr_lf = sides(["a\r\nx\r\n", "a\r\nb\r\n", "c\r\nb\r\n"]);
        let lf = sides(["a\nx\n", "a\nb\n", "c\nb\n"]);
        for (texts, expected) in [
            (["a\nx\n", "a\r\nb\r\n", "c\r\nb\r\n"], Some(&lf)),
            (["a\r\nx\r\n", "a\r\nb\r\n", "c\nb\n"], Some(&lf)),
            (["a\nx\n", "a\r\nb\r\n", "c\nb\n"], Some(&lf)),
            (["a\r\nx\r\n", "a\nb\n", "c\nb\n"], Some(&cr_lf)),
            (["a\nx\n", "a\nb\n", "c\nb\n"], None),
            (["a\nx\r\n", "a\r\nb\r\n", "c\nb\n"], None),
            (["", "a\r\nb\r\n", "c\nb\n"], None),
        ] {
            assert_eq!(as_changed(&sides(texts)).as_ref(), expected, "{texts:?}");
        }
        let open = as_changed(&sides(["a\r\nx", "a\r\nb", "a\nb"])).expect("it has changed");
        assert_eq!(open, sides(["a\nx", "a\nb", "a\nb"]), "an end that is not there is none");
    }
}
