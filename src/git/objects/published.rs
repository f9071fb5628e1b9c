//! Whether a commit has been published: exactly, whatever the commits' dates
//! say, and without reading history where a commit-graph tells enough.

use crate::git::objects::Objects;
use crate::git::repo::Repo;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::ByteSlice;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::io::Write;

/// How many ancestors of the commits in question are looked at before the remote side is.
const NEAR: usize = 5000;

struct PublishedWalk<'a> {
    repo: &'a Repo,
    graph: Option<gix::commitgraph::Graph>,
}

impl PublishedWalk<'_> {
    /// The commit's generation; commits that the graph does not know come after all it knows.
    fn generation(&self, id: ObjectId) -> u32 {
        let known = self.graph.as_ref().and_then(|graph| graph.commit_by_id(id));
        known.map_or(u32::MAX, |commit| commit.generation())
    }

    /// The parents; none for a commit that is not there, as beyond a shallow clone's edge.
    fn parents(&mut self, id: ObjectId) -> Result<Vec<ObjectId>> {
        let Some(object) = self.repo.gix.try_find_object(id)? else {
            return Ok(Vec::new());
        };
        if object.kind != gix::objs::Kind::Commit {
            return Ok(Vec::new());
        }
        Ok(object.into_commit().parent_ids().map(gix::Id::detach).collect())
    }

    /// Ancestors of the targets, near ones first. None of them can reach a target, so a
    /// remote tip among them is settled and taken off.
    fn ancestors(
        &mut self,
        targets: &HashSet<ObjectId>,
        tips: &mut BTreeMap<ObjectId, String>,
    ) -> Result<HashSet<ObjectId>> {
        let mut near = HashSet::new();
        let mut queue = VecDeque::new();
        for target in targets {
            queue.extend(self.parents(*target)?);
        }
        while let Some(id) = queue.pop_front() {
            if tips.keys().all(|tip| targets.contains(tip)) || near.len() >= NEAR {
                break;
            }
            if targets.contains(&id) || !near.insert(id) {
                continue;
            }
            tips.remove(&id);
            queue.extend(self.parents(id)?);
        }
        Ok(near)
    }

    fn reached(
        &mut self,
        tip: ObjectId,
        targets: &HashSet<ObjectId>,
        seen: &mut HashSet<ObjectId>,
        lowest: u32,
    ) -> Result<Vec<ObjectId>> {
        let mut reached = Vec::new();
        let mut stack = vec![tip];
        while let Some(id) = stack.pop() {
            if !seen.insert(id) {
                continue;
            }
            if targets.contains(&id) {
                reached.push(id);
            }
            if self.generation(id) >= lowest {
                stack.extend(self.parents(id)?);
            }
        }
        Ok(reached)
    }
}

impl Objects<'_> {
    /// Those of these commits that a remote has or had, each with the ref that shows it.
    pub fn published(&self, commits: &[ObjectId]) -> Result<HashMap<ObjectId, String>> {
        let mut found = HashMap::new();
        if commits.is_empty() {
            return Ok(found);
        }
        let tips = self.remote_tips()?;
        if tips.is_empty() {
            return Ok(found);
        }
        let mut walk = PublishedWalk { repo: self.repo, graph: self.repo.gix.commit_graph_if_enabled()? };
        let targets: HashSet<ObjectId> = commits.iter().copied().collect();
        let lowest = targets.iter().map(|id| walk.generation(*id)).min().unwrap_or_default();
        let mut tips: BTreeMap<ObjectId, String> =
            tips.into_iter().filter(|(id, _)| targets.contains(id) || walk.generation(*id) >= lowest).collect();
        let near = walk.ancestors(&targets, &mut tips)?;
        let mut seen = near;
        for (tip, name) in &tips {
            for id in walk.reached(*tip, &targets, &mut seen, lowest)? {
                found.entry(id).or_insert_with(|| name.clone());
            }
        }
        Ok(found)
    }

    /// Every commit that a remote-tracking ref points to or, as its reflog tells, has pointed
    /// to, and those that the pre-push hook recorded.
    fn remote_tips(&self) -> Result<BTreeMap<ObjectId, String>> {
        let mut tips = BTreeMap::new();
        for reference in self.repo.gix.references()?.remote_branches()? {
            let reference = reference.map_err(|error| anyhow::anyhow!("read the remote branches: {error}"))?;
            let name = reference.name().shorten().to_string();
            if let Some(id) = reference.target().try_id() {
                tips.insert(id.to_owned(), name.clone());
            }
            let mut log = reference.log_iter();
            if let Ok(Some(lines)) = log.rev() {
                for line in lines.flatten() {
                    if !line.new_oid.is_null() {
                        tips.entry(line.new_oid).or_insert_with(|| format!("{name}, as its reflog tells"));
                    }
                }
            }
        }
        if let Ok(recorded) = std::fs::read(self.repo.common_dir.join("oxundo/pushed")) {
            for line in recorded.lines() {
                if let Ok(id) = ObjectId::from_hex(line.split(|b| *b == b' ').next().unwrap_or_default()) {
                    tips.entry(id).or_insert_with(|| "recorded as pushed".to_owned());
                }
            }
        }
        Ok(tips)
    }

    /// Where every remote-tracking branch points.
    pub fn remote_tip_ids(&self) -> Result<Vec<ObjectId>> {
        let mut ids = Vec::new();
        for reference in self.repo.gix.references()?.remote_branches()? {
            let reference = reference.map_err(|error| anyhow::anyhow!("read the remote branches: {error}"))?;
            ids.extend(reference.target().try_id().map(ToOwned::to_owned));
        }
        Ok(ids)
    }

    /// Records what git is about to push, from the lines that git gives its pre-push hook.
    pub fn record_pushed(&self, told: &[u8]) -> Result<()> {
        let path = self.repo.common_dir.join("oxundo/pushed");
        let known = std::fs::read(&path).unwrap_or_default();
        let known: BTreeSet<&[u8]> = known.lines().filter_map(|line| line.split(|byte| *byte == b' ').next()).collect();
        let mut added = Vec::new();
        for line in told.lines() {
            let mut words = line.split(|byte| *byte == b' ');
            let (Some(_), Some(id), Some(remote)) = (words.next(), words.next(), words.next()) else { continue };
            let is_commit = ObjectId::from_hex(id).is_ok_and(|id| !id.is_null());
            if is_commit && !known.contains(id) {
                writeln!(added, "{} {}", id.to_str_lossy(), remote.to_str_lossy())?;
            }
        }
        if added.is_empty() {
            return Ok(());
        }
        std::fs::create_dir_all(self.repo.common_dir.join("oxundo"))?;
        let mut file = std::fs::File::options().create(true).append(true).open(path)?;
        Ok(file.write_all(&added)?)
    }
}
