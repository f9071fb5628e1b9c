//! The processes of agents: what carries their calls out, and what these leave running.

use crate::agents::process::{is_of_any, may_be_of_call, own_line, processes_below, processes_of, without_hooks};
use crate::git::repo::Repo;
use crate::model::call::ToolCall;
use crate::model::turn::Participant;
use crate::ops::turn::reach::is_any_at_large;
use std::slice::from_ref;
use std::time::Duration;

/// For so long something has to be there to go on after a call: what the agent is just starting is not known by its name yet.
const MOMENT: Duration = Duration::from_millis(10);

/// The processes of a session's agent, but for those by which this one comes about: a terminal of the agent's, in which this
/// is typed, carries out no call, and no hook does.
pub fn others_of(repo: &Repo, part: &Participant) -> Option<Vec<u32>> {
    let mut own = own_line();
    own.extend(processes_below());
    let now = processes_of(&part.agent, part.process.as_ref(), repo.top())?;
    Some(without_hooks(now.into_iter().filter(|id| !own.contains(id)).collect()))
}

/// Which of a call that has ended, and of those that were at work beside it, have left something running: of each session the last
/// one, where a process is here that was not there before any of them. While another may do anything, what is at work may be that
/// one's: it is looked at as that ends.
pub fn left_running<'c>(
    repo: &Repo,
    parts: &[Participant],
    told: &'c [ToolCall],
    call: &'c ToolCall,
) -> Vec<&'c ToolCall> {
    let together = at_work_together(repo, told, call);
    if together.iter().any(|call| call.ended_at.is_none()) {
        return Vec::new();
    }
    let line = own_line();
    let new = |part: &Participant| {
        let own = || together.iter().filter(|call| call.session == part.session);
        let was_there = |id: &u32| own().all(|call| call.beside.contains(id));
        let mut now = if own().next().is_some() { others_of(repo, part).unwrap_or_default() } else { Vec::new() };
        let is_server = |id: &u32| was_there(id) && !line.contains(id);
        now.retain(|id| !was_there(id) && may_be_of_call(part, *id, repo.top()) && !is_of_any(*id, is_server));
        now
    };
    let first: Vec<_> = parts.iter().map(|part| (part, new(part))).filter(|(_, new)| !new.is_empty()).collect();
    if first.is_empty() {
        return Vec::new();
    }
    std::thread::sleep(MOMENT);
    let still = first.iter().filter(|(part, first)| new(part).iter().any(|id| first.contains(id)));
    let last = |part: &Participant| together.iter().copied().rfind(|call| call.session == part.session);
    still.filter_map(|(part, _)| last(part)).collect()
}

/// The calls that may do anything and were in flight at one time with this one, or with one that was, in the order in which they
/// began.
fn at_work_together<'c>(repo: &Repo, told: &'c [ToolCall], call: &'c ToolCall) -> Vec<&'c ToolCall> {
    let is_before_end = |other: &&ToolCall| call.told.1.is_none_or(|end| other.told.0 < end);
    let others = told.iter().filter(|other| other.told != call.told).filter(is_before_end);
    let mut others: Vec<&ToolCall> = others.filter(|other| is_any_at_large(repo, from_ref(*other).iter())).collect();
    // The latest end first.
    others.sort_by_key(|other| std::cmp::Reverse(other.told.1.unwrap_or(usize::MAX)));
    let (mut together, mut began) = (vec![call], call.told.0);
    for other in others {
        if other.told.1.is_none_or(|end| end > began) {
            began = began.min(other.told.0);
            together.push(other);
        }
    }
    together.sort_by_key(|call| call.told.0);
    together
}
