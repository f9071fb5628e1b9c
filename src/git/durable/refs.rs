//! Refs after a power cut.

use crate::git::durable::log::{Content, Entry};
use crate::git::durable::{Durable, RefState};
use crate::git::refs::mend::LOG_END;
use crate::git::refs::{NOTES, Refs, STASH};
use crate::git::repo::clock::boot_time;
use crate::git::repo::scratch::checksum;
use anyhow::Result;
use gix::ObjectId;
use std::collections::{BTreeMap, BTreeSet};

/// What the reflogs say of it.
const MESSAGE: &str = "oxundo: after a power cut";

/// How many nanoseconds it has.
const SECOND: u64 = 1_000_000_000;

/// Where a log says that each ref was, the last one last.
type States = BTreeMap<String, Vec<Option<ObjectId>>>;

/// What the log has of a reflog.
#[derive(Clone, Copy, Debug)]
struct Recorded {
    /// How long it was.
    length: usize,
    /// The checksum of its end.
    sum: [u8; 8],
    /// By when, in seconds since 1970.
    by: u64,
}

impl Durable<'_> {
    /// What the log is to have of refs: where they are, and of others' how far their reflogs go, by which what somebody does
    /// later is known.
    pub(super) fn states(&self, refs: &[RefState]) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for (name, id) in refs {
            entries.push(Entry::Ref(name.clone(), *id));
            let end = if is_own(name) { None } else { Refs::new(self.repo).log_end(name)? };
            entries.extend(end.map(|(length, end)| Entry::Reflog(name.clone(), length, checksum(&end))));
        }
        Ok(entries)
    }

    /// Puts refs where the log says that they were, if they are where they were before, or nowhere; gives those that it moved.
    pub(super) fn mend_refs(&self, content: &Content) -> Result<Vec<String>> {
        let (mut states, mut reflogs, mut mended) = (States::new(), BTreeMap::new(), Vec::new());
        for entry in &content.entries {
            match entry {
                Entry::Ref(name, id) => {
                    states.entry(name.clone()).or_default().push(*id);
                    reflogs.remove(name);
                }
                Entry::Reflog(name, length, sum) => {
                    let recorded = Recorded { length: usize::try_from(*length)?, sum: *sum, by: content.mark / SECOND };
                    reflogs.insert(name, recorded);
                }
                Entry::Object(..) | Entry::Cut(_) => {}
            }
        }
        for (name, states) in &states {
            let is_mended = self.mend_ref(name, states, reflogs.get(name).copied(), content.begun)?;
            mended.extend(is_mended.then(|| name.clone()));
        }
        Ok(mended)
    }

    /// Gives refs that hold nothing, or an object that is gone, what the logs or else the reflog know of them.
    pub(super) fn mend_damaged_refs(&self, entries: &[Entry]) -> Result<Vec<String>> {
        let refs = Refs::new(self.repo);
        let mut mended = Vec::new();
        for name in refs.damaged()? {
            let mut known = entries.iter().rev().filter_map(|entry| match entry {
                Entry::Ref(of, id) if *of == name => Some(*id),
                _ => None,
            });
            let is_gone = known.clone().next() == Some(None);
            let logged = refs.logged(&name).into_iter().map(|moved| moved.to);
            // The reflog of a branch may tell of more than oxundo knows.
            let mut all: Vec<ObjectId> = if is_own(&name) {
                known.by_ref().flatten().chain(logged).collect()
            } else {
                logged.chain(known.by_ref().flatten()).collect()
            };
            all.retain(|id| self.repo.has_object(*id));
            let to = all.first().copied().filter(|_| !(is_gone && is_own(&name)));
            match to {
                _ if self.repo.has_tables() => refs.move_own_ref(&name, refs.ref_id(&name)?, to, MESSAGE)?,
                Some(to) => refs.replace_damaged(&name, to)?,
                None => refs.take_away(&name)?,
            }
            mended.push(name);
        }
        Ok(mended)
    }

    fn mend_ref(&self, name: &str, states: &[Option<ObjectId>], log: Option<Recorded>, begun: u64) -> Result<bool> {
        let refs = Refs::new(self.repo);
        let (Some(last), now) = (states.last().copied(), refs.ref_id(name)?) else { return Ok(false) };
        let is_lost = last.is_some_and(|last| !self.repo.has_object(last));
        if now == last || is_lost || !self.is_earlier(name, now, states)? {
            return Ok(false);
        }
        let has_moved_on = match log {
            Some(log) => self.goes_on(name, now, log)?,
            None => self.has_moved_on(name, now, last, begun),
        };
        if has_moved_on {
            return Ok(false);
        }
        refs.move_own_ref(name, now, last, MESSAGE)?;
        Ok(true)
    }

    /// Whether a reflog goes on from where the log says that it ended, or has a line of later that tells of what is there.
    fn goes_on(&self, name: &str, now: Option<ObjectId>, log: Recorded) -> Result<bool> {
        // Without a reflog nobody knows. In a table a ref comes with a line of it, which somebody has taken out then.
        let text = Refs::new(self.repo).log_text(name)?.filter(|text| !(text.is_empty() && self.repo.has_tables()));
        let Some(text) = text else { return Ok(now.is_some()) };
        let end = text.get(log.length.saturating_sub(LOG_END)..log.length);
        if end.is_some_and(|end| checksum(end) == log.sum) {
            return Ok(text.len() > log.length);
        }
        // Who has taken lines out of it since the system was started may have taken what they name out of the repository.
        if Refs::new(self.repo).is_log_written_since(name, boot_time()) {
            return Ok(now.is_some());
        }
        // A power cut takes the end away, and nothing of the time behind it is there.
        let newest = Refs::new(self.repo).logged(name).first().copied();
        Ok(newest.is_some_and(|newest| newest.at > log.by && Some(newest.to) == now))
    }

    /// Whether somebody has moved a ref on from where the log says that it was last, and has said so in its reflog.
    fn has_moved_on(&self, name: &str, now: Option<ObjectId>, last: Option<ObjectId>, begun: u64) -> bool {
        let (mut logged, begun) = (Refs::new(self.repo).logged(name), begun / SECOND);
        logged.reverse();
        let came = logged.iter().rposition(|moved| Some(moved.to) == last && moved.at >= begun);
        let was_left = came.is_some_and(|came| came + 1 < logged.len());
        // Without a reflog nobody knows.
        was_left || !is_own(name) && now.is_some() && logged.is_empty()
    }

    /// Whether a ref is where it was before the last move. A branch that is gone may have been deleted, but not HEAD's.
    fn is_earlier(&self, name: &str, now: Option<ObjectId>, states: &[Option<ObjectId>]) -> Result<bool> {
        if is_own(name) {
            return Ok(now.is_none() || states.contains(&now));
        }
        let is_head = || Ok::<_, anyhow::Error>(Refs::new(self.repo).head()?.branch.as_deref() == Some(name));
        match states {
            [.., Some(_)] if now.is_none() => is_head(),
            [.., Some(_)] => Ok(states.contains(&now)),
            _ => Ok(false),
        }
    }

    /// Takes what git would stop at out of the reflogs of these refs.
    pub(super) fn mend_reflogs(&self, entries: &[Entry]) -> Result<bool> {
        let named = entries.iter().filter_map(|entry| match entry {
            Entry::Ref(name, _) => Some(name.as_str()),
            _ => None,
        });
        let mut any = false;
        let head = Refs::new(self.repo).head().ok().and_then(|head| head.branch);
        for name in named.chain([NOTES, STASH, "HEAD"]).chain(head.as_deref()).collect::<BTreeSet<_>>() {
            any |= Refs::new(self.repo).mend_log(name)?;
        }
        Ok(any)
    }
}

/// Whether nobody but oxundo moves a ref.
fn is_own(name: &str) -> bool {
    name == NOTES || name.starts_with("refs/oxundo/")
}
