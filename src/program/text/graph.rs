//! The lanes that turns are drawn in: one for each worktree and branch, and one
//! for each session at work beside others.

use crate::ops::list::State;
use crate::program::text::line::Line;
use crate::program::ui::Look;
use renderdag::{Ancestor, GraphRowRenderer, Renderer};
use std::collections::{HashMap, HashSet};

/// Stands in what is drawn where the turn itself comes.
pub const PLACE: char = '\0';

/// What is drawn for each line, newest first.
pub fn drawn(lines: &[Line], look: Look) -> Vec<String> {
    let below = below(lines);
    let builder = GraphRowRenderer::new().output().with_min_row_height(1);
    let mut renderer: Box<dyn Renderer<usize, Output = String>> =
        if look.unicode { Box::new(builder.build_box_drawing()) } else { Box::new(builder.build_ascii()) };
    let rows = lines.iter().zip(below).enumerate().map(|(at, (line, below))| {
        let below = below.map(Ancestor::Parent).into_iter().collect();
        renderer.next_row(at, below, glyph(line.state, look).to_owned(), PLACE.to_string())
    });
    rows.collect()
}

/// For each line the one below it in its lane: the session's last turn of the same line of turns, else
/// the turn that it was made on.
fn below(lines: &[Line]) -> Vec<Option<usize>> {
    let at: HashMap<_, _> =
        lines.iter().enumerate().map(|(at, line)| ((line.worktree(), line.turn.turn), at)).collect();
    let mut below = vec![None; lines.len()];
    // A turn that another one took the place of ends its line of turns: the other one starts its own.
    let mut lane = vec![0; lines.len()];
    let mut continued = HashSet::new();
    let mut last = HashMap::new();
    for (here, line) in lines.iter().enumerate().rev() {
        let previous = match line.state {
            // Where it belongs is known when it ends.
            State::Open => lines.iter().position(|other| other.state == State::Done && other.is_beside(line)),
            _ => line.turn.previous.and_then(|previous| at.get(&(line.worktree(), previous)).copied()),
        };
        lane[here] = match previous {
            Some(previous) if continued.insert(previous) => lane[previous],
            _ => here,
        };
        let own = last.insert((lane[here], line.turn.session.as_deref()), here);
        below[here] = own.or(previous);
    }
    below
}

fn glyph(state: State, look: Look) -> &'static str {
    match (state, look.unicode) {
        (State::Done, true) => "●",
        (State::Done, false) => "*",
        (State::Open, true) => "◉",
        (State::Open, false) => "@",
        (State::Undone | State::UndoneByHand | State::Left, true) => "○",
        (State::Undone | State::UndoneByHand | State::Left, false) => "o",
    }
}
