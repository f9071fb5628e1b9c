//! The agents' sessions that take part in a turn, and what each of their signals does to it.
//!
//! A turn is bounded either by a `run`, and lasts as long as that process, or by hooks alone: then no process holds it
//! open, and it lasts while one of its sessions is at work. Inside a `run` with hooks there is always an open turn,
//! which the next prompt claims.

use crate::model::turn::{Bounds, Participant};

/// A signal from an agent about its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A prompt was given.
    Begin,
    /// It is at work; whether on a new prompt is not known.
    Work,
    /// It goes on, though it is or was done with the prompt: what it has started is still at work, or tells of its end.
    GoOn,
    /// A call of a tool begins.
    Call,
    /// A call of a tool is over.
    Called,
    /// It is done with the prompt, or was cut off.
    End {
        /// Whether it was cut off.
        interrupted: bool,
    },
    /// It is done with the prompt once more: after its first end, somebody's hook made it go on.
    EndAgain,
    /// The session is over, and its agent goes on with another.
    Left,
    /// The session is over, and so is its agent.
    Gone,
}

impl Signal {
    /// Whether it ends a turn, and begins none: where nothing is to be recorded any more, this is heard still, so that
    /// what comes later does not go into the turn that is open.
    pub fn only_ends(self) -> bool {
        matches!(self, Self::End { .. } | Self::EndAgain | Self::Left | Self::Gone)
    }
}

/// What a signal does to the open turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStep {
    /// Nothing.
    Nothing,
    /// Begin a turn.
    Open,
    /// The turn that a `run` opened, and in which no session is at work, is this session's.
    Claim,
    /// What was done since the session's last turn is a turn of its own.
    Late,
    /// Close the open turn, as interrupted unless its session goes on, and begin one, which others share that go on.
    Renew,
    /// What is told of the call of a tool is kept with the open turn.
    Record,
    /// The session takes part in the open turn.
    Join,
    /// The session goes on, and so does the turn: whichever prompt of the session's ends next, it is the end.
    GoOn,
    /// The session is done, and the turn goes on.
    Leave,
    /// The open turn, which waits for a sign that its agent is still at work, is taken back.
    Drop,
    /// The agent of a `run` is gone, which had waited for a prompt: what changed since is the user's, and what comes is the `run`'s.
    Rest,
    /// End the open turn.
    Close {
        /// Whether it was cut off.
        interrupted: bool,
    },
}

/// The situation in which a signal comes.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is seen by itself")]
pub struct Context<'a> {
    /// The open turn.
    pub open: Option<&'a Bounds>,
    /// Whether the process of a `run` is at work here.
    pub running: bool,
    /// Whether the signal comes from within that `run`.
    pub inside: bool,
    /// Whether another session than the signal's is at work in the open turn.
    pub others: bool,
    /// Whether all of these are done with their prompts, and have no more than something in the background.
    pub others_rest: bool,
    /// Whether the session took part in the open turn, or in one of the last: it has told of a prompt here, and will tell
    /// of an end.
    pub known: bool,
    /// Whether the prompt's own turn is the last one, and nobody else's: the state at the prompt's first end is known.
    pub follows: bool,
    /// Whether the beginning of the session's prompt was told of, and could not be recorded.
    pub unrecorded: bool,
}

/// What a signal of this session does.
pub fn step(context: Context<'_>, who: &Participant, signal: Signal) -> SessionStep {
    let Some(origin) = context.open else {
        return match signal {
            Signal::Begin | Signal::Work | Signal::GoOn => SessionStep::Open,
            // Another hook, or what it has started, made it go on after its end.
            Signal::Call if context.known => SessionStep::Open,
            Signal::EndAgain if context.follows => SessionStep::Late,
            Signal::Call | Signal::Called | Signal::End { .. } | Signal::EndAgain | Signal::Left | Signal::Gone => {
                SessionStep::Nothing
            }
        };
    };
    let mine = origin.part_of(who);
    let at_work = mine.is_some_and(|part| part.at_work);
    let held = !origin.by_hooks && context.running;
    let claimable = held && context.inside && !at_work && !context.others;
    // The run's agent waits for a prompt.
    let idle = held && origin.waiting;
    // A command closed the turn before it in the middle of a prompt. Only the end of that prompt shows that what changed
    // since is the agent's.
    let unproven = origin.by_hooks && origin.waiting;
    match signal {
        Signal::Begin if mine.is_some_and(|part| part.is_prompt_of(who)) => SessionStep::Nothing,
        Signal::Called if at_work => SessionStep::Record,
        Signal::Call if !context.known => SessionStep::Nothing,
        Signal::Call if at_work && !unproven => SessionStep::Record,
        Signal::Call if claimable && !origin.waiting => SessionStep::GoOn,
        Signal::Begin | Signal::Work | Signal::Call if unproven => SessionStep::Claim,
        Signal::Work if at_work => SessionStep::Nothing,
        Signal::GoOn if at_work || claimable || idle => SessionStep::GoOn,
        Signal::Begin | Signal::Work | Signal::GoOn | Signal::Call => match () {
            // What a session did that has left, or is dead, is not the user's.
            () if claimable && !origin.waiting && !origin.parts.is_empty() => SessionStep::Renew,
            () if claimable || unproven || idle => SessionStep::Claim,
            // What is in the background goes on in the next turn as it did in this.
            () if signal == Signal::Begin && origin.tells() && context.others_rest => SessionStep::Renew,
            () if context.others || (held && !context.inside) => SessionStep::Join,
            () => SessionStep::Renew,
        },
        Signal::End { .. } if mine.is_some_and(|part| part.is_other_prompt_than(who)) && at_work => {
            SessionStep::Nothing
        }
        Signal::End { interrupted } if at_work => leave_or_close(context, held, interrupted),
        Signal::Left | Signal::Gone if at_work && unproven && !context.others => SessionStep::Drop,
        Signal::Left | Signal::Gone if at_work => leave_or_close(context, held, true),
        Signal::Gone if idle && context.inside && mine.is_some() && origin.run_tells() => SessionStep::Rest,
        // Between two prompts what changes is the user's. Where this one began nobody knows.
        Signal::End { .. } if idle && context.unrecorded => SessionStep::Nothing,
        // Inside a run, an end whose beginning no hook announced.
        Signal::End { interrupted } if claimable && !mine.is_some_and(|part| part.is_prompt_of(who)) => {
            SessionStep::Close { interrupted }
        }
        Signal::Called | Signal::End { .. } | Signal::EndAgain | Signal::Left | Signal::Gone => SessionStep::Nothing,
    }
}

fn leave_or_close(context: Context<'_>, held: bool, interrupted: bool) -> SessionStep {
    // That of a `run` which tells of nothing may be at work.
    let may_be = held && !context.inside && !context.open.is_some_and(Bounds::run_tells);
    if context.others || may_be { SessionStep::Leave } else { SessionStep::Close { interrupted } }
}

/// How a command comes about whose process descends from an agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descent {
    /// Whether it reads from a terminal.
    pub reads_terminal: bool,
    /// Whether that is the agent's own, on which the user types, or the agent has none: an editor opens some for the
    /// user. An agent opens others for the commands of its tools.
    pub has_agents_terminal: bool,
    /// Whether it has what the agent sets in what its tools run.
    pub in_call: bool,
}

impl Descent {
    /// Whether the agent gave the command, and not a user who types it on a terminal within the agent's.
    pub fn is_agents_word(self) -> bool {
        !self.reads_terminal || !self.has_agents_terminal || self.in_call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(session: &str, prompt: Option<&str>, at_work: bool) -> Participant {
        Participant {
            agent: "claude".to_owned(),
            session: Some(session.to_owned()),
            prompt: prompt.map(str::to_owned),
            at_work,
            ..Participant::default()
        }
    }

    fn turn(by_hooks: bool, parts: &[Participant]) -> Bounds {
        Bounds { by_hooks, parts: parts.to_vec(), ..Bounds::default() }
    }

    const END: Signal = Signal::End { interrupted: false };
    const CLOSE: SessionStep = SessionStep::Close { interrupted: false };

    /// The context when the other sessions' processes are alive.
    fn scene<'a>(open: Option<&'a Bounds>, who: &Participant, running: bool, inside: bool) -> Context<'a> {
        let others = open.is_some_and(|origin| origin.parts.iter().any(|p| p.at_work && !p.is_session_of(who)));
        let others_rest = others
            && open.is_some_and(|origin| origin.parts.iter().all(|p| p.listed.is_some() || p.is_session_of(who)));
        Context { open, running, inside, others, others_rest, known: true, follows: false, unrecorded: false }
    }

    #[test]
    fn without_an_open_turn_only_a_beginning_does_anything() {
        let who = part("s", None, false);
        for (signal, wanted) in [
            (Signal::Begin, SessionStep::Open),
            (Signal::Work, SessionStep::Open),
            (END, SessionStep::Nothing),
            (Signal::Gone, SessionStep::Nothing),
        ] {
            assert_eq!(step(scene(None, &who, false, false), &who, signal), wanted);
        }
    }

    #[test]
    fn hooks_alone() {
        let open = turn(true, &[part("s", Some("1"), true)]);
        let at = |who: &Participant, signal| step(scene(Some(&open), who, false, false), who, signal);
        let first = part("s", Some("1"), false);
        let second = part("s", Some("2"), false);
        let other = part("o", None, false);
        assert_eq!(at(&first, Signal::Begin), SessionStep::Nothing, "fired twice");
        assert_eq!(at(&second, Signal::Begin), SessionStep::Renew, "the first was cut off and nothing told of it");
        assert_eq!(at(&part("s", None, false), Signal::Begin), SessionStep::Renew);
        assert_eq!(at(&second, Signal::Work), SessionStep::Nothing);
        assert_eq!(at(&first, END), CLOSE);
        assert_eq!(at(&part("s", None, false), END), CLOSE);
        assert_eq!(at(&second, END), SessionStep::Nothing, "the end of a prompt that is not the turn's");
        assert_eq!(at(&second, Signal::Gone), SessionStep::Close { interrupted: true });
        assert_eq!(at(&other, Signal::Begin), SessionStep::Join, "two sessions share the turn");
        assert_eq!(at(&other, END), SessionStep::Nothing);
        assert_eq!(at(&other, Signal::Gone), SessionStep::Nothing);
    }

    #[test]
    fn a_shared_turn_ends_with_the_last_of_its_sessions() {
        let both = turn(true, &[part("a", Some("1"), true), part("b", Some("1"), true)]);
        let (a, b) = (part("a", Some("1"), false), part("b", Some("1"), false));
        assert_eq!(step(scene(Some(&both), &a, false, false), &a, END), SessionStep::Leave);
        let one = turn(true, &[part("a", Some("1"), false), part("b", Some("1"), true)]);
        assert_eq!(step(scene(Some(&one), &a, false, false), &a, Signal::Begin), SessionStep::Nothing, "fired late");
        let again = part("a", Some("2"), false);
        assert_eq!(step(scene(Some(&one), &again, false, false), &again, Signal::Begin), SessionStep::Join);
        assert_eq!(step(scene(Some(&one), &a, false, false), &a, END), SessionStep::Nothing);
        assert_eq!(step(scene(Some(&one), &b, false, false), &b, END), CLOSE);
    }

    #[test]
    fn what_follows_a_command_needs_a_sign_that_the_agent_went_on() {
        let waiting = Bounds { waiting: true, ..turn(true, &[part("s", Some("1"), true)]) };
        let at = |who: &Participant, signal| step(scene(Some(&waiting), who, false, false), who, signal);
        let (first, second) = (part("s", Some("1"), false), part("s", Some("2"), false));
        assert_eq!(at(&first, END), CLOSE, "the same prompt ends: it did what was done since");
        assert_eq!(at(&second, Signal::Begin), SessionStep::Claim, "what was done since is the user's");
        assert_eq!(at(&first, Signal::Gone), SessionStep::Drop);
        assert_eq!(at(&second, END), SessionStep::Nothing);
        assert_eq!(at(&first, Signal::Work), SessionStep::Claim, "it is at work from now on");
        assert_eq!(at(&part("o", None, false), Signal::Begin), SessionStep::Claim, "nobody shares what is not proven");
        assert_eq!(at(&second, Signal::GoOn), SessionStep::GoOn, "what it has started is at work: it did that");
    }

    #[test]
    fn a_session_goes_on_until_any_prompt_of_its_own_ends() {
        let first = part("s", Some("1"), false);
        let second = part("s", Some("2"), false);
        let mut open = turn(true, &[part("s", Some("1"), true)]);
        let at = |open: &Bounds, who: &Participant, signal| step(scene(Some(open), who, false, false), who, signal);
        assert_eq!(step(scene(None, &first, false, false), &first, Signal::GoOn), SessionStep::Open);
        assert_eq!(at(&open, &first, Signal::GoOn), SessionStep::GoOn, "its end lists what is at work");
        assert_eq!(at(&open, &second, Signal::GoOn), SessionStep::GoOn, "a notification");
        assert_eq!(at(&open, &part("o", None, false), Signal::GoOn), SessionStep::Join, "two sessions share the turn");
        assert_eq!(at(&open, &second, END), SessionStep::Nothing);
        open.go_on(first.clone(), 0);
        assert_eq!(open.parts, [Participant { goes_on: true, listed: Some(0), ..part("s", Some("1"), true) }]);
        assert_eq!(at(&open, &second, END), CLOSE);
        assert_eq!(at(&open, &first, END), CLOSE);
        assert_eq!(at(&open, &part("o", Some("2"), false), END), SessionStep::Nothing);
        assert_eq!(at(&open, &second, Signal::Begin), SessionStep::Renew, "a prompt of the user's");
        assert_eq!(at(&open, &first, Signal::Gone), SessionStep::Close { interrupted: true });
    }

    #[test]
    fn a_prompt_beside_what_is_in_the_background_begins_a_turn() {
        let listed = |session| Participant { goes_on: true, listed: Some(2), ..part(session, Some("1"), true) };
        let at = |open: &Bounds, who: &Participant, signal| step(scene(Some(open), who, false, false), who, signal);
        let (first, second) = (part("b", Some("1"), false), part("b", Some("2"), false));
        let alone = turn(true, &[listed("a")]);
        assert_eq!(at(&alone, &first, Signal::Begin), SessionStep::Renew);
        assert_eq!(at(&alone, &first, Signal::Work), SessionStep::Join, "whether on a new prompt is not known");
        let both = turn(true, &[listed("a"), part("b", Some("1"), true)]);
        assert_eq!(at(&both, &second, Signal::Begin), SessionStep::Renew, "nothing told of the end of its last prompt");
        assert_eq!(at(&both, &first, END), SessionStep::Leave);
        let again = part("a", Some("2"), false);
        assert_eq!(at(&both, &again, Signal::Begin), SessionStep::Join, "the other is at work on a prompt");
        assert_eq!(at(&turn(true, &[listed("a"), listed("b")]), &again, Signal::Begin), SessionStep::Renew);
        let of_run = turn(false, &[listed("a")]);
        let begun = |open: &Bounds| step(scene(Some(open), &first, true, false), &first, Signal::Begin);
        assert_eq!(begun(&of_run), SessionStep::Join, "the run's agent may be at work");
        let told = Bounds { run_agent: Some("claude".to_owned()), ..of_run };
        assert_eq!(begun(&told), SessionStep::Renew);
    }

    #[test]
    fn inside_a_run_a_session_that_goes_on_has_made_what_is_there() {
        let who = part("s", Some("1"), false);
        for waiting in [false, true] {
            let parts = if waiting { vec![who.clone()] } else { Vec::new() };
            let mut open = Bounds { waiting, ..turn(false, &parts) };
            let at = |open: &Bounds, signal, inside| step(scene(Some(open), &who, true, inside), &who, signal);
            assert_eq!(at(&open, Signal::GoOn, true), SessionStep::GoOn, "and nothing counts as the user's");
            let beside = if waiting { SessionStep::GoOn } else { SessionStep::Join };
            assert_eq!(at(&open, Signal::GoOn, false), beside, "another session, beside the run");
            open.go_on(Participant { at_work: true, ..who.clone() }, 0);
            assert_eq!((open.waiting, open.shared), (false, false));
            assert_eq!(at(&open, END, true), CLOSE);
        }
    }

    #[test]
    fn a_dead_session_is_no_company() {
        let open = turn(true, &[part("dead", None, true)]);
        let who = part("s", None, false);
        let alone = Context {
            open: Some(&open),
            running: false,
            inside: false,
            others: false,
            others_rest: false,
            known: false,
            follows: false,
            unrecorded: false,
        };
        assert_eq!(step(alone, &who, Signal::Begin), SessionStep::Renew);
    }

    #[test]
    fn inside_a_run_each_prompt_claims_the_turn_that_is_open() {
        let fresh = turn(false, &[]);
        let who = part("s", Some("1"), false);
        let at =
            |open: &Bounds, who: &Participant, signal, inside| step(scene(Some(open), who, true, inside), who, signal);
        assert_eq!(at(&fresh, &who, Signal::Begin, true), SessionStep::Claim);
        assert_eq!(at(&fresh, &who, END, true), CLOSE, "its beginning was not told of");
        assert_eq!(at(&fresh, &who, Signal::Gone, true), SessionStep::Nothing);
        assert_eq!(at(&fresh, &who, Signal::Begin, false), SessionStep::Join, "another session, beside the run");
        assert_eq!(at(&fresh, &who, END, false), SessionStep::Nothing);
        let claimed = turn(false, &[part("s", Some("1"), true)]);
        assert_eq!(at(&claimed, &part("s", Some("2"), false), Signal::Begin, true), SessionStep::Renew);
        assert_eq!(at(&claimed, &who, END, true), CLOSE);
        assert_eq!(at(&claimed, &who, END, false), SessionStep::Leave, "the run goes on");
        let within = Participant { inside: true, ..part("o", None, false) };
        let both = turn(false, &[within, part("s", Some("1"), true)]);
        assert_eq!(at(&both, &who, END, false), CLOSE, "the run's agent has told that it is done");
        let claimed = Bounds { run_agent: Some("claude".to_owned()), ..claimed };
        assert_eq!(at(&claimed, &who, END, false), CLOSE, "it waits for a prompt");
        let left = turn(false, &[part("o", None, false)]);
        assert_eq!(at(&left, &who, Signal::Begin, true), SessionStep::Renew, "what the other did is no user's");
        let waiting = Bounds { waiting: true, ..turn(false, &[part("s", Some("1"), false)]) };
        assert_eq!(at(&waiting, &part("o", None, false), Signal::Begin, false), SessionStep::Claim, "beside it");
        assert_eq!(at(&waiting, &who, END, true), SessionStep::Nothing, "fired twice");
        assert_eq!(at(&waiting, &part("s", Some("2"), false), Signal::Begin, true), SessionStep::Claim);
        assert_eq!(at(&waiting, &part("s", Some("2"), false), END, true), CLOSE);
        let third = part("s", Some("3"), false);
        let unrecorded =
            |open| step(Context { unrecorded: true, ..scene(Some(open), &third, true, true) }, &third, END);
        assert_eq!(unrecorded(&waiting), SessionStep::Nothing, "since when it was at work is not known");
        assert_eq!(unrecorded(&fresh), CLOSE, "since the run began, at most");
    }

    #[test]
    fn a_call_is_a_sign_of_its_session() {
        let (who, other) = (part("s", Some("1"), false), part("o", None, false));
        let at = |open: Option<&Bounds>, who: &Participant, signal| step(scene(open, who, false, false), who, signal);
        let open = turn(true, &[part("s", Some("1"), true)]);
        assert_eq!(at(Some(&open), &who, Signal::Call), SessionStep::Record);
        assert_eq!(at(Some(&open), &who, Signal::Called), SessionStep::Record);
        assert_eq!(at(Some(&open), &other, Signal::Call), SessionStep::Join, "it is at work too");
        assert_eq!(at(Some(&open), &other, Signal::Called), SessionStep::Nothing);
        let waiting = Bounds { waiting: true, ..open.clone() };
        assert_eq!(at(Some(&waiting), &who, Signal::Call), SessionStep::Claim, "from here on it is the agent's");
        assert_eq!(at(Some(&waiting), &who, Signal::Called), SessionStep::Record, "which begins nothing");
        assert_eq!(at(None, &who, Signal::Call), SessionStep::Open, "it went on after its end");
        assert_eq!(at(None, &who, Signal::Called), SessionStep::Nothing);
        for open in [None, Some(&open), Some(&waiting)] {
            let context = Context { known: false, ..scene(open, &other, false, false) };
            assert_eq!(step(context, &other, Signal::Call), SessionStep::Nothing, "it tells of no prompts");
        }
    }

    #[test]
    fn a_second_end_makes_a_turn_only_of_what_follows_the_first() {
        let who = part("s", Some("1"), false);
        let context = Context {
            open: None,
            running: false,
            inside: false,
            others: false,
            others_rest: false,
            known: true,
            follows: true,
            unrecorded: false,
        };
        assert_eq!(step(context, &who, Signal::EndAgain), SessionStep::Late);
        assert_eq!(step(context, &who, END), SessionStep::Nothing, "the first end, told twice");
        let unknown = Context { follows: false, ..context };
        assert_eq!(step(unknown, &who, Signal::EndAgain), SessionStep::Nothing, "it is taken for the user's");
    }

    #[test]
    fn inside_a_run_a_call_claims_what_waits_and_takes_nothing_else_back() {
        let who = part("s", Some("1"), false);
        let at = |open: &Bounds| step(scene(Some(open), &who, true, true), &who, Signal::Call);
        let waiting = Bounds { waiting: true, ..turn(false, &[part("s", Some("1"), false)]) };
        assert_eq!(at(&waiting), SessionStep::Claim);
        assert_eq!(at(&turn(false, &[part("s", Some("1"), false)])), SessionStep::GoOn);
        assert_eq!(at(&turn(false, &[part("s", Some("1"), true)])), SessionStep::Record);
    }

    #[test]
    fn an_agent_that_is_gone_leaves_its_run_what_comes_after_and_the_user_what_came_before() {
        let who = part("s", Some("1"), false);
        let told = Some("claude".to_owned());
        let waiting = Bounds { waiting: true, run_agent: told, ..turn(false, std::slice::from_ref(&who)) };
        let at =
            |open: &Bounds, who: &Participant, inside, signal| step(scene(Some(open), who, true, inside), who, signal);
        assert_eq!(at(&waiting, &who, true, Signal::Gone), SessionStep::Rest);
        assert_eq!(at(&waiting, &who, true, Signal::Left), SessionStep::Nothing, "it waits for a prompt still");
        assert_eq!(at(&waiting, &who, false, Signal::Gone), SessionStep::Nothing, "it is not the run's");
        assert_eq!(at(&waiting, &part("o", None, false), true, Signal::Gone), SessionStep::Nothing);
        let silent = Bounds { run_agent: None, ..waiting.clone() };
        assert_eq!(at(&silent, &who, true, Signal::Gone), SessionStep::Nothing, "it may have been at work");
        let at_work = turn(false, &[part("s", Some("1"), true)]);
        assert_eq!(at(&at_work, &who, true, Signal::Left), SessionStep::Close { interrupted: true });
    }

    #[test]
    fn who_types_on_a_terminal_within_the_agents_is_the_user() {
        let user = Descent { reads_terminal: true, has_agents_terminal: true, in_call: false };
        assert!(!user.is_agents_word(), "in an editor's terminal, or a shell that is the agent");
        for agents in [
            Descent { reads_terminal: false, ..user },
            Descent { has_agents_terminal: false, ..user },
            Descent { in_call: true, ..user },
        ] {
            assert!(agents.is_agents_word(), "{agents:?}");
        }
    }

    #[test]
    fn a_turn_whose_run_is_gone_is_renewed() {
        let open = turn(false, &[]);
        let who = part("s", None, false);
        assert_eq!(step(scene(Some(&open), &who, false, false), &who, Signal::Begin), SessionStep::Renew);
        assert_eq!(step(scene(Some(&open), &who, false, false), &who, END), SessionStep::Nothing);
    }
}
