//! Whether a commit has been published: exactly, whatever the commits' dates
//! say, and without reading history where a commit-graph says enough.

use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::model::bytes::lossless;
use crate::model::bytes::quoted;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::refs::file::log::iter::forward;
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
        let Some(object) = self.repo.try_find_object(id)? else {
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

    /// Every commit that a remote-tracking ref points to or, by its reflog, has pointed
    /// to, and those that the pre-push hook recorded.
    fn remote_tips(&self) -> Result<BTreeMap<ObjectId, String>> {
        let mut tips = BTreeMap::new();
        for (full, id) in self.repo.refs_below("refs/remotes/")? {
            let name = quoted(full.shorten());
            if let Some(id) = id {
                tips.insert(id, name.clone());
            }
            if let Ok(Some(log)) = self.repo.log_text(&lossless::encode(full.as_bstr())) {
                for line in forward(&log).flatten() {
                    if !line.new_oid().is_null() {
                        tips.entry(line.new_oid()).or_insert_with(|| format!("{name}, as its reflog tells"));
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
        Ok(self.repo.refs_below("refs/remotes/")?.into_iter().filter_map(|(_, id)| id).collect())
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
        self.repo.make_private(&self.repo.common_dir.join("oxundo"))?;
        let mut file = std::fs::File::options().create(true).append(true).open(&path)?;
        self.repo.sharing().share(&path)?;
        Ok(file.write_all(&added)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;

    #[test]
    fn what_a_remote_has_or_had_is_published_and_nothing_above_it() {
        let f = Fixture::new();
        let [first, second, third] = ["1", "2", "3"].map(|name| f.commit(name, name));
        let all = [first, second, third];
        let published = || Objects::new(&f.repo).published(&all).expect("look");
        assert!(published().is_empty(), "there is no remote");
        f.git(&["update-ref", "--create-reflog", "refs/remotes/origin/main", &second.to_string()]);
        let told = published();
        assert_eq!(told.get(&first).map(String::as_str), Some("origin/main"), "what the remote branch reaches");
        assert_eq!(told.get(&second).map(String::as_str), Some("origin/main"));
        assert!(!told.contains_key(&third), "what is above it was never pushed");
        assert_eq!(Objects::new(&f.repo).remote_tip_ids().expect("look"), [second]);
        f.git(&["update-ref", "refs/remotes/origin/main", &third.to_string()]);
        f.git(&["update-ref", "refs/remotes/origin/main", &first.to_string()]);
        let told = published();
        assert_eq!(told.get(&third).map(String::as_str), Some("origin/main, as its reflog tells"), "it was there once");
        assert_eq!(told.len(), 3);
        f.git(&["pack-refs", "--all"]);
        assert_eq!(published().len(), 3, "packed refs count");
        assert!(Objects::new(&f.repo).published(&[]).expect("look").is_empty());
    }

    #[test]
    fn a_side_that_the_remote_does_not_have_is_not_published_whatever_the_dates_say() {
        let f = Fixture::new();
        let base = f.commit("base", "");
        f.git(&["switch", "-q", "-c", "side"]);
        let side = f.commit("side", "");
        f.git(&["switch", "-q", "main"]);
        let ahead = f.commit("ahead", "");
        f.git(&["update-ref", "refs/remotes/origin/main", &ahead.to_string()]);
        for graph in [false, true] {
            if graph {
                f.git(&["commit-graph", "write", "--reachable"]);
            }
            let repo = Repo::open(f.repo.top()).expect("open the repository");
            let told = Objects::new(&repo).published(&[base, side, ahead]).expect("look");
            for id in [base, side, ahead] {
                let has = !f.lines(&["for-each-ref", "--contains", &id.to_string(), "refs/remotes"]).is_empty();
                assert_eq!(told.contains_key(&id), has, "{id}, with a commit-graph: {graph}");
            }
            assert!(!told.contains_key(&side));
        }
    }

    #[test]
    fn what_a_hook_was_told_of_a_push_is_remembered_once() {
        let f = Fixture::new();
        let [first, second] = ["1", "2"].map(|name| f.commit(name, name));
        let objects = Objects::new(&f.repo);
        let null = ObjectId::null(f.repo.hash_kind());
        let told = format!(
            "refs/heads/main {first} refs/heads/main {null}\n(delete) {null} refs/heads/old {second}\nnonsense\n\nx y z\n"
        );
        for _ in 0..2 {
            objects.record_pushed(told.as_bytes()).expect("remember");
        }
        let record = f.repo.git_dir().join("oxundo/pushed");
        let text = std::fs::read_to_string(&record).expect("read the record");
        assert_eq!(text, format!("{first} refs/heads/main\n"), "once, and nothing that is no commit");
        let told = objects.published(&[first, second]).expect("look");
        assert_eq!(told.into_iter().collect::<Vec<_>>(), [(first, "recorded as pushed".to_owned())]);
        std::fs::write(&record, b"\xff\n\n12 x\nzz").expect("damage it");
        assert!(objects.published(&[first]).expect("what makes no sense says nothing").is_empty());
    }
}
