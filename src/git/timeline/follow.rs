//! The operations on a timeline as they happen: the ref says what did, and its reflog how it came to that.

use crate::git::refs::{OwnRef, Refs};
use crate::git::timeline::Timelines;
use crate::git::timeline::oplog::Operation;
use anyhow::Result;
use gix::ObjectId;
use std::path::PathBuf;

/// Something that happened to a timeline.
#[derive(Debug)]
pub enum Happened {
    /// An operation.
    Operation(Operation),
    /// What led to the next operation is not known any more: the reflog was cut, or the ref set to something else.
    Unknown,
    /// The timeline is gone.
    Gone,
}

/// One who has seen the timeline up to some commit.
#[derive(Clone, Copy, Debug)]
pub struct Follower {
    seen: Option<ObjectId>,
}

impl Follower {
    /// Has seen it up to here.
    pub fn from(seen: Option<ObjectId>) -> Self {
        Self { seen }
    }

    /// What happened since, the oldest first.
    pub fn news(&mut self, timelines: &Timelines<'_>) -> Result<Vec<Happened>> {
        let tip = timelines.tip()?;
        if tip == self.seen {
            return Ok(Vec::new());
        }
        let seen = std::mem::replace(&mut self.seen, tip);
        let Some(tip) = tip else { return Ok(vec![Happened::Gone]) };
        let mut news = led_to(tip, seen, timelines.operations()?);
        if news.is_empty() {
            news = vec![Happened::Unknown, Happened::Operation(timelines.operation_of(tip))];
        }
        Ok(news)
    }
}

/// The operations that led from one commit to another, of all that the reflog has, the newest first. A line that the ref never
/// came to, since whoever wrote it was killed, is in between: each names what it was made on.
fn led_to(tip: ObjectId, seen: Option<ObjectId>, operations: Vec<Operation>) -> Vec<Happened> {
    let (mut news, mut at) = (Vec::new(), Some(tip));
    for operation in operations {
        if at == seen {
            break;
        }
        if Some(operation.commit) == at {
            at = operation.previous;
            news.push(Happened::Operation(operation));
        }
    }
    if at != seen && !news.is_empty() {
        // Only the last one is new for sure.
        news.truncate(1);
        news.push(Happened::Unknown);
    }
    news.reverse();
    news
}

impl Timelines<'_> {
    /// Directories in one of which something changes when the timeline does: those of them that are there.
    pub fn places(&self) -> Vec<PathBuf> {
        let common = self.repo.common_dir();
        let name = Refs::new(self.repo).own_ref(OwnRef::Timeline);
        let file = common.join(name);
        // The refs in tables, the packed ones, and the directories in which those above the ref are made.
        let above = file.ancestors().skip(1).take_while(|path| path.starts_with(common)).map(ToOwned::to_owned);
        above.chain([common.join("reftable")]).filter(|path| path.is_dir()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> ObjectId {
        ObjectId::from_bytes_or_panic(&[number; 20])
    }

    /// Lines `from>to`, the newest first, as what is told of them to one who saw `seen`.
    fn told(seen: Option<u8>, tip: u8, lines: &[(u8, u8)]) -> Vec<String> {
        let line = |(from, to): &(u8, u8)| Operation {
            commit: id(*to),
            previous: (*from > 0).then(|| id(*from)),
            at: String::new(),
            what: to.to_string(),
        };
        let told = |happened: Happened| match happened {
            Happened::Operation(operation) => operation.what,
            Happened::Unknown => "unknown".to_owned(),
            Happened::Gone => "gone".to_owned(),
        };
        led_to(id(tip), seen.map(id), lines.iter().map(line).collect()).into_iter().map(told).collect()
    }

    #[test]
    fn what_led_to_the_ref_is_told_in_its_order() {
        let lines = [(3, 4), (2, 3), (1, 2), (0, 1)];
        assert_eq!(told(Some(2), 4, &lines), ["3", "4"]);
        assert_eq!(told(None, 4, &lines), ["1", "2", "3", "4"], "from the beginning");
        assert_eq!(told(Some(2), 4, &lines[..2]), ["3", "4"], "what was seen has expired");
        assert_eq!(told(Some(1), 4, &lines[..2]), ["unknown", "4"], "what was not seen has expired");
        assert_eq!(told(Some(9), 4, &lines), ["unknown", "4"], "the ref was set back and led elsewhere");
    }

    #[test]
    fn a_line_of_a_writer_that_was_killed_never_happened() {
        assert_eq!(told(Some(1), 2, &[(2, 7), (1, 2), (0, 1)]), ["2"], "above what the ref is");
        assert_eq!(told(Some(2), 8, &[(2, 8), (2, 7), (1, 2)]), ["8"], "below it");
        assert_eq!(told(Some(2), 1, &[(2, 1), (1, 2), (0, 1)]), ["1"], "taken back is an operation too");
    }
}
