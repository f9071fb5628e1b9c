//! Directories in each other by the thousand: more than the system takes in one path, and than git takes in a tree.

use crate::sandbox::{Mode, Sandbox};

/// Makes directories in each other, with a file in each of so many, and one in the last.
fn made(levels: u32, filled: u32) -> String {
    format!(
        "perl -e 'for $n (1..{levels}) {{ mkdir \"d\" or die; chdir \"d\" or die; \
         if ($n <= {filled}) {{ open F, \">f\"; print F \"$n\\n\"; close F }} }} open F, \">leaf\"; print F \"x\"'"
    )
}

/// How deep the directories are.
fn depth(repo: &Sandbox) -> String {
    repo.sh("perl -e '$n = 0; while (chdir \"d\") { $n++ } print $n, -e \"leaf\" ? \" leaf\" : \"\"'")
}

#[test]
fn directories_in_each_other_by_the_thousand_come_and_go() {
    for (mode, levels, filled) in [(Mode::Commit, 5000, 0), (Mode::Ghost, 1900, 100)] {
        let repo = Sandbox::new();
        let before = repo.state();
        repo.turn(mode, &made(levels, filled));
        repo.undo();
        repo.state().assert_is(&before, "undo");
        repo.redo();
        assert_eq!(depth(&repo), format!("{levels} leaf"), "redo");
        repo.undo();
        // git reads all that a turn made, and what was moved aside can be deleted.
        repo.sh("git gc -q --prune=now");
        repo.oxundo(["uninstall", "--purge", "--yes"]).success();
    }
}
