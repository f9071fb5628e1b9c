//! The names of a turn's branches, where they have others by now: which are the turn's, and a state with those.

use crate::model::checkpoint::{Checkpoint, Head, branch_changes};
use gix::ObjectId;
use std::collections::{BTreeMap, BTreeSet};

/// The names that branches had, and those that they have.
pub type Names = BTreeMap<String, String>;

/// The names that these branches of a turn have now, by what tells that of one. A branch that had such a name then has another
/// now as well, or is gone: where that was the turn's too, nobody knows which is which.
pub fn names_now(
    own: &BTreeSet<String>,
    before: &Checkpoint,
    after: &Checkpoint,
    called: impl Fn(&str) -> Option<String>,
) -> Names {
    let is_known = |name: &String| before.branches.contains_key(name) || after.branches.contains_key(name);
    let (mut names, mut left) = (Names::new(), Vec::from_iter(own.clone()));
    while let Some(from) = left.pop() {
        let Some(to) = called(&from) else { continue };
        if is_known(&to) && !names.contains_key(&to) {
            left.push(to.clone());
        }
        names.insert(from, to);
    }
    let on = [&before.head.branch, &after.head.branch];
    let is_bound = |name: &String| own.contains(name) || on.contains(&&Some(name.clone()));
    loop {
        let taken: BTreeSet<String> =
            names.values().filter(|to| is_bound(to) && !names.contains_key(*to)).cloned().collect();
        if taken.is_empty() {
            return names;
        }
        names.retain(|_, to| !taken.contains(to));
    }
}

/// Gives the branches of a state other names, all at once. One that has such a name in it, and gets no other, is gone by now.
pub fn rename(state: &mut Checkpoint, names: &Names) {
    let Checkpoint { head, branches, .. } = state;
    let on = head.branch.clone();
    let mut take = |from: &String| branches.remove(from).or(head.commit.filter(|_| on.as_ref() == Some(from)));
    let tips: Vec<(&String, ObjectId)> = names.iter().filter_map(|(from, to)| Some((to, take(from)?))).collect();
    for to in names.values() {
        branches.remove(to);
    }
    branches.extend(tips.into_iter().map(|(to, tip)| (to.clone(), tip)));
    if let Some(to) = on.and_then(|on| names.get(&on)) {
        *head = Head { branch: Some(to.clone()), through: None, ..head.clone() };
    }
}

/// Whether a turn changed names with each other, and these give them back: then those of its beginning are as they were.
pub fn give_back(names: &Names, before: &Checkpoint, after: &Checkpoint) -> bool {
    let moved = |name: &String| before.branches.get(name) != after.branches.get(name);
    let is_as_before = || names.iter().all(|(from, to)| after.branches.get(from) == before.branches.get(to));
    let (was, is) = (&before.head.branch, &after.head.branch);
    let is_heads_as_before = || was != is && is.as_ref().and_then(|is| names.get(is)) == was.as_ref();
    names.values().all(|to| names.contains_key(to))
        && names.keys().any(moved)
        && (is_as_before() || is_heads_as_before())
}

/// The branches that a turn moved beside HEAD's, and those that it switched between. Those of other worktrees are no matter.
pub fn branches_of(before: &Checkpoint, after: &Checkpoint) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = branch_changes(before, after).into_keys().collect();
    let (was, is) = (&before.head.branch, &after.head.branch);
    if was == is {
        names.retain(|name| is.as_ref() != Some(name));
    } else {
        names.extend(was.iter().chain(is).cloned());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::checkpoint::{IndexState, Modes, UsualModes};
    use crate::model::operation::Operation;

    fn id(n: u8) -> ObjectId {
        ObjectId::from_bytes_or_panic(&[n; 20])
    }

    fn state(on: &str, branches: &[(&str, u8)]) -> Checkpoint {
        let usual = UsualModes { file: 0o644, executable: 0o755, directory: 0o755 };
        let branches: BTreeMap<_, _> = branches.iter().map(|(name, at)| ((*name).to_owned(), id(*at))).collect();
        Checkpoint {
            head: Head { branch: Some(on.to_owned()), commit: branches.get(on).copied(), through: None },
            branches,
            symbolic: BTreeMap::new(),
            elsewhere: BTreeSet::new(),
            stash: Vec::new(),
            operation: Operation::default(),
            index: IndexState { tree: id(0), sparse: BTreeSet::new(), special: BTreeMap::new() },
            worktree: id(0),
            modes: Modes { usual, unusual: BTreeMap::new() },
            directories: BTreeSet::new(),
            skipped: Vec::new(),
            uncaptured: BTreeMap::new(),
            rules: id(0),
        }
    }

    fn names(pairs: &[(&str, &str)]) -> Names {
        pairs.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect()
    }

    /// The names by these renames, for a turn that moves `side` and, where it is asked for, `other`.
    fn known(renames: &[(&str, &str)], other: u8) -> Names {
        let before = state("main", &[("main", 1), ("side", 1), ("other", 1)]);
        let after = state("main", &[("main", 2), ("side", 3), ("other", other)]);
        let renames = names(renames);
        names_now(&branches_of(&before, &after), &before, &after, |name| renames.get(name).cloned())
    }

    #[test]
    fn names_that_change_hands_change_all_at_once() {
        let swapped = [("side", "other"), ("other", "side")];
        assert_eq!(known(&swapped, 1), names(&swapped));
        let mut after = state("side", &[("main", 2), ("side", 3), ("other", 1)]);
        rename(&mut after, &names(&swapped));
        assert_eq!(after.branches, state("main", &[("main", 2), ("side", 1), ("other", 3)]).branches);
        assert_eq!(after.head.branch.as_deref(), Some("other"));
        // HEAD's own branch has another name where its name is taken.
        let with_main = [("side", "main"), ("main", "side")];
        assert_eq!(known(&with_main, 1), names(&with_main));
    }

    #[test]
    fn a_name_is_not_taken_from_what_the_turn_moved_and_what_has_no_other() {
        assert_eq!(known(&[("side", "other")], 1), names(&[("side", "other")]), "it is gone, and was not the turn's");
        for (renames, other) in [([("side", "other")], 4), ([("side", "main")], 1)] {
            assert_eq!(known(&renames, other), Names::new(), "{renames:?}");
        }
        let mut state = state("main", &[("main", 2), ("side", 3), ("other", 1)]);
        rename(&mut state, &names(&[("side", "other")]));
        assert_eq!(
            state.branches.into_iter().collect::<Vec<_>>(),
            [("main".to_owned(), id(2)), ("other".to_owned(), id(3))]
        );
    }

    #[test]
    fn names_that_a_turn_changed_are_given_back() {
        let swapped = Names::from([("main".into(), "other".into()), ("other".into(), "main".into())]);
        let began = state("main", &[("main", 1), ("other", 2)]);
        let on = |on: &str, main, other| state(on, &[("main", main), ("other", other)]);
        assert!(give_back(&swapped, &began, &on("other", 2, 1)), "by the turn, and back");
        assert!(give_back(&swapped, &began, &on("other", 2, 3)), "with a commit on it");
        assert!(
            !give_back(&swapped, &began, &on("other", 1, 2)),
            "the turn has switched, and the user changed the names"
        );
        assert!(!give_back(&swapped, &began, &on("main", 3, 2)), "the turn has committed");
        let renamed = Names::from([("side".into(), "main".into())]);
        assert!(!give_back(&renamed, &began, &on("main", 1, 2)));
    }
}
