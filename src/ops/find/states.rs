//! The states of a timeline by the words that mean them, the newest first.

use crate::git::objects::Objects;
use crate::git::timeline::stored::{Side, Stored};
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::ByteSlice;

/// Since when a state is known.
enum Since {
    Unknown,
    Told(String),
    Began(u64),
    Ended(u64),
    Step(u64, u64),
}

/// A state that a timeline has.
pub struct State {
    /// The words that mean it.
    pub words: String,
    /// The tree of its checkpoint.
    pub checkpoint: ObjectId,
    /// The tree of its files.
    pub files: ObjectId,
    /// The tree of what was staged.
    pub index: ObjectId,
    since: Since,
}

impl State {
    /// Since when it is known, RFC 3339, where that is known.
    pub fn at(&self, timeline: &Stored<'_>) -> Result<Option<String>> {
        Ok(match &self.since {
            Since::Unknown => None,
            Since::Told(at) => Some(at.clone()),
            Since::Began(turn) => Some(timeline.require_turn(*turn)?.began_at),
            Since::Ended(turn) => timeline.require_turn(*turn)?.ended_at,
            Since::Step(turn, step) => timeline.step(*turn, *step)?.map(|step| step.ended_at),
        })
    }
}

/// Gives each state of a timeline, the newest first: rescues, named ones, and those of turns and steps. `whose` stands before
/// their names.
pub fn each(timeline: &Stored<'_>, whose: &str, mut take: impl FnMut(State) -> Result<()>) -> Result<()> {
    let at = |checkpoint: Option<ObjectId>, words: String, since: Since| {
        let state = checkpoint.map(|tree| read(timeline, tree, format!("{whose}{words}"), since)).transpose()?;
        Ok::<_, anyhow::Error>(state.flatten())
    };
    for number in timeline.rescue_numbers()?.into_iter().rev() {
        at(timeline.rescue_tree(number)?, format!("rescue:{number}"), Since::Unknown)?.map_or(Ok(()), &mut take)?;
    }
    for (name, named) in &timeline.state.named {
        let since = Since::Told(named.at.clone());
        at(timeline.named_tree(named.number)?, name.clone(), since)?.map_or(Ok(()), &mut take)?;
    }
    let mut above: Option<State> = None;
    for number in timeline.turn_numbers()?.into_iter().rev() {
        let after = at(timeline.checkpoint_id(number, Side::After)?, number.to_string(), Since::Ended(number))?;
        // A state that the turn below left has that turn's name.
        let is_same = after.as_ref().zip(above.as_ref()).is_some_and(|(after, above)| after.files == above.files);
        let ends = if is_same { [after, above] } else { [above, after] };
        ends.into_iter().flatten().try_for_each(&mut take)?;
        for step in (1..=timeline.last_step(number)?).rev() {
            for (side, end) in [(Side::After, ""), (Side::Before, ":before")] {
                let tree = timeline.step_tree(number, step, side)?;
                let words = format!("{number}.{step}{end}");
                at(tree, words, Since::Step(number, step))?.map_or(Ok(()), &mut take)?;
            }
        }
        above = at(timeline.checkpoint_id(number, Side::Before)?, format!("{number}:before"), Since::Began(number))?;
    }
    above.map_or(Ok(()), take)
}

fn read(timeline: &Stored<'_>, checkpoint: ObjectId, words: String, since: Since) -> Result<Option<State>> {
    let (mut files, mut index) = (None, None);
    for (name, id, _) in Objects::new(timeline.repo).level(checkpoint)? {
        match name.as_bytes() {
            b"worktree" => files = Some(id),
            b"index" => index = Some(id),
            _ => {}
        }
    }
    let (Some(files), Some(index)) = (files, index) else { return Ok(None) };
    Ok(Some(State { words, checkpoint, files, index, since }))
}
