//! Which turns of a timeline are meant: by what they changed, who made them, when, and what for.

use crate::error::{Code, Refusal};
use crate::git::index::Index;
use crate::git::index::pathspec::Selection;
use crate::git::repo::Repo;
use crate::git::repo::clock::{parse_rfc3339, unix_now};
use crate::git::timeline::stored::Stored;
use crate::model::bytes::{instead, unquoted};
use crate::model::turn::{Participant, Turn};
use anyhow::Result;
use gix::bstr::ByteSlice;
use regex::Regex;
use std::ffi::OsString;

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Wanted<'a> {
    /// Turns that changed one of these.
    pub pathspecs: &'a [OsString],
    /// Of this agent.
    pub agent: Option<&'a str>,
    /// Of this session.
    pub session: Option<&'a str>,
    /// That ended not before this.
    pub since: Option<&'a str>,
    /// Nor after this.
    pub until: Option<&'a str>,
    /// Whose message or prompt this regular expression matches.
    pub grep: Option<&'a str>,
}

/// The turns that are meant.
pub struct Filter<'a, 'r> {
    wanted: Wanted<'a>,
    selection: Option<Selection<'r>>,
    since: Option<i64>,
    until: Option<i64>,
    grep: Option<Regex>,
}

impl<'a, 'r> Filter<'a, 'r> {
    /// Reads what was asked for; none where that is all of them.
    pub fn of(repo: &'r Repo, wanted: Wanted<'a>) -> Result<Option<Self>> {
        let Wanted { pathspecs, agent, session, since, until, grep } = wanted;
        let words = [agent, session, since, until, grep];
        if pathspecs.is_empty() && words.iter().all(Option::is_none) {
            return Ok(None);
        }
        let selection = (!pathspecs.is_empty()).then(|| Index::new(repo).selection(pathspecs)).transpose()?;
        let time = |words: Option<&str>| words.map(|words| time(repo, words)).transpose();
        let (since, until) = (time(since)?, time(until)?);
        let grep = grep.map(pattern).transpose()?;
        Ok(Some(Self { wanted, selection, since, until, grep }))
    }

    /// Whether a turn is meant.
    pub fn takes(&mut self, timeline: &Stored<'_>, turn: &Turn) -> Result<bool> {
        Ok(self.is_whose(turn) && self.is_when(turn) && self.is_about(turn) && self.has_changed(timeline, turn)?)
    }

    fn is_whose(&self, turn: &Turn) -> bool {
        let parts = &turn.origin.parts;
        let is_agent = |wanted: &str| {
            let is_it = |part: &Participant| part.agent.eq_ignore_ascii_case(wanted);
            turn.agent.eq_ignore_ascii_case(wanted) || parts.iter().any(is_it)
        };
        let is_session = |wanted: &str| {
            let is_it = |part: &Participant| part.session.as_deref() == Some(wanted);
            turn.session.as_deref() == Some(wanted) || parts.iter().any(is_it)
        };
        self.wanted.agent.is_none_or(is_agent) && self.wanted.session.is_none_or(is_session)
    }

    fn is_when(&self, turn: &Turn) -> bool {
        let at = parse_rfc3339(turn.ended_at.as_ref().unwrap_or(&turn.began_at));
        self.since.is_none_or(|since| at.is_some_and(|at| at >= since))
            && self.until.is_none_or(|until| at.is_some_and(|at| at <= until))
    }

    fn is_about(&self, turn: &Turn) -> bool {
        let Some(grep) = &self.grep else { return true };
        let own = [Some(turn.title()), turn.message.clone(), turn.prompt.clone()];
        let asked = turn.origin.parts.iter().flat_map(|part| &part.asked);
        let theirs = asked.flat_map(|asked| [&asked.message, &asked.prompt]).flatten();
        own.iter().flatten().chain(theirs).any(|text| grep.is_match(text))
    }

    fn has_changed(&mut self, timeline: &Stored<'_>, turn: &Turn) -> Result<bool> {
        let Some(selection) = &mut self.selection else { return Ok(true) };
        Ok(timeline.turn_files(turn.turn)?.iter().any(|file| {
            let path = unquoted(&file.path).unwrap_or_else(|| file.path.as_str().into());
            selection.takes(path.as_bstr())
        }))
    }
}

/// The time that these words mean.
fn time(repo: &Repo, words: &str) -> Result<i64> {
    let time = repo.time_meant(words)?;
    let says_one = |word: &str| words.to_ascii_lowercase().contains(word);
    // For git, words in which it finds nothing mean the present.
    let is_now = (unix_now() - time).abs() < 5 && !words.contains(|c: char| c.is_ascii_digit());
    if is_now && !["now", "today", "second"].into_iter().any(says_one) {
        let refusal = Refusal::new(Code::Usage, format!("'{words}' is no time that git knows"));
        return Err(refusal.hint(instead(words, "yesterday")).into());
    }
    Ok(time)
}

fn pattern(text: &str) -> Result<Regex> {
    Ok(Regex::new(text).map_err(|error| {
        let why = error.to_string();
        let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Refusal::new(Code::Usage, format!("'{text}' is no regular expression: {why}"))
            .hint(instead(text, regex::escape(text)))
    })?)
}
