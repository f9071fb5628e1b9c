//! A word for a plan where the timeline stands, by which a later look knows whether it would still do the same.

use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::repo::scratch::checksum;
use crate::git::timeline::Timelines;
use crate::model::plan::Plan;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;

/// The word. `is_made` is for a plan that makes a turn of oxundo's own.
pub fn fingerprint(plan: &Plan, is_made: bool, view: &View<'_>) -> Result<String> {
    let mut plan = plan.clone();
    let objects = Objects::new(view.repo);
    let tree = |commit: &mut Option<ObjectId>| -> Result<()> {
        *commit = commit.map(|commit| objects.commit_tree(commit)).transpose()?;
        Ok(())
    };
    if is_made {
        tree(&mut plan.head.to.commit)?;
        plan.branches.iter_mut().try_for_each(|branch| tree(&mut branch.to))?;
    }
    if view.as_if_ended.is_some() {
        // The commit that an open turn would get is another one each time.
        tree(&mut plan.head.from.commit)?;
        plan.branches.iter_mut().try_for_each(|branch| tree(&mut branch.from))?;
    }
    let stands = (last_deed(&Timelines::new(view.repo))?, Refs::new(view.repo).head()?);
    // The edits that it keeps are none of its business.
    let told = (&plan.unstaged, &plan.overwritten, stands);
    let text = format!("{}\n{told:?}", serde_json::to_string(&plan)?);
    Ok(checksum(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The last operation that did more than to give something a name, or take one away.
fn last_deed(timelines: &Timelines<'_>) -> Result<Option<ObjectId>> {
    let tip = timelines.tip()?;
    let Some(named) = tip.filter(|tip| timelines.operation_of(*tip).only_names()) else { return Ok(tip) };
    let mut at = named;
    for operation in timelines.operations()? {
        match operation.previous {
            Some(previous) if operation.commit == at && operation.only_names() => at = previous,
            _ if operation.commit == at => break,
            _ => {}
        }
    }
    Ok(Some(at))
}
