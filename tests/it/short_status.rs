//! What a prompt shows of the worktree.

use crate::sandbox::Sandbox;

/// What the user does, from all committed on.
const DONE: &[&str] = &[
    "true",
    "touch -d yesterday a d/b d/e/c",
    "echo more >>a",
    "echo 9 >d/e/c; touch -d yesterday d/e/c",
    "chmod +x a",
    "rm d/b",
    "rm -r d",
    "rm -r d; echo file >d",
    "rm -r d; ln -s . d",
    "rm a; mkdir a; echo new >a/a",
    "rm link; ln -s b link",
    "rm link; cp a link",
    "echo new >new; mkdir n; echo new >n/new",
    "echo new >new; git add -N new",
    "echo new >new; git add new",
    "git rm -q --cached d/b",
    "echo 2 >a; git add a",
    "echo 2 >a; git add a; git show HEAD:a >a",
    "rm a; git add a; git show HEAD:a >a; git add a",
    "git update-index --assume-unchanged a; echo 2 >a",
    "git update-index --skip-worktree a; echo 2 >a",
    "git update-index --skip-worktree a; rm a",
    "git switch -q -c x; git rm -q d/b; git commit -qm x; git switch -q main; echo 3 >d/b; git commit -qam m; ! git merge x",
    // What is in these files is not what git has.
    "touch -d yesterday crlf upper",
    "touch -d yesterday crlf; echo more >>upper",
    "printf 'two\\r\\n' >crlf; touch -d yesterday crlf",
    "echo TWO >upper; touch -d yesterday upper",
    "chmod 0 a; touch -d yesterday a; chmod 644 a",
];

#[test]
fn what_a_prompt_calls_dirty_is_what_git_calls_changed() {
    let repo = Sandbox::new();
    repo.sh("printf 'crlf text eol=crlf\\nupper filter=case\\n' >.gitattributes
        git config filter.case.clean 'tr A-Z a-z'; git config filter.case.smudge 'tr a-z A-Z'
        mkdir -p d/e; echo 1 >a; echo 1 >d/b; echo 1 >d/e/c; ln -s a link; printf 'one\\r\\n' >crlf; echo ONE >upper
        git add -A; git commit -qm base; git branch base; touch -d yesterday a; echo more >>d/b");
    assert_eq!(repo.oxundo(["status", "--short"]).out(), "", "nothing is recorded here");
    repo.agent("echo turn >turn");
    repo.sh("git branch -f base");
    for done in DONE {
        repo.sh(done);
        let changed = repo.sh("GIT_OPTIONAL_LOCKS=0 git status --porcelain -uno");
        let shown = repo.oxundo(["status", "--short"]).out();
        assert_eq!(shown.contains("dirty"), !changed.is_empty(), "{done}: {changed}");
        repo.sh("git update-index --no-assume-unchanged a; git update-index --no-skip-worktree a; git reset -q --hard base; git clean -qfd; git branch -D -q x || :");
    }
}
