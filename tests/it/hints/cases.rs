//! What each refusal is provoked by, and what the user wanted who met it.

/// The exit code of a script that cannot make it happen on this machine.
pub(super) const SKIPPED: i32 = 77;

/// A refusal, and how somebody comes to it.
pub(super) struct Case {
    /// Its row in docs/errors.md.
    pub(super) message: &'static str,
    /// What was before, by a shell that has oxundo.
    pub(super) before: &'static str,
    /// What the user types.
    pub(super) line: &'static str,
    /// Says whether the user has what they wanted; none where it is not to be had.
    pub(super) wanted: Option<&'static str>,
    /// Where the user is, and in which environment.
    pub(super) place: &'static str,
    /// What a hint says in words: to wait until something is done, to make something come about that is not there.
    pub(super) deed: &'static str,
    /// What the superuser did besides, where the user is another.
    pub(super) by_root: Option<&'static str>,
}

const fn case(message: &'static str, before: &'static str, line: &'static str, wanted: &'static str) -> Case {
    Case { message, before, line, wanted: Some(wanted), place: "", deed: "", by_root: None }
}

/// Where what was wanted is not to be had.
const fn none(message: &'static str, before: &'static str, line: &'static str) -> Case {
    Case { wanted: None, ..case(message, before, line, "") }
}

impl Case {
    const fn at(self, place: &'static str) -> Self {
        Self { place, ..self }
    }

    const fn doing(self, deed: &'static str) -> Self {
        Self { deed, ..self }
    }

    const fn of_nobody(self, by_root: &'static str) -> Self {
        Self { by_root: Some(by_root), ..self }
    }
}

const CONFLICT: &str = "… would overwrite changes in …";
const FOREIGN: &str = "commit … on '…' was not made by a turn";
const DROPPED: &str = "turn … is not done any more: commit … is not in HEAD's history";
const DROPPING: &str = "GIT_SEQUENCE_EDITOR='sed -i 1d' git rebase -qi HEAD~2";
const NOTHING: &str = "nothing to …: …";
const IN_PROGRESS: &str = "a … is in progress";
const NO_COMMAND: &str = "'…' is no command";
const NO_NUMBER: &str = "'…' is no number of turns";
const NONE_DONE: &str = "'…' is the last turn done, and none is done here";
const NAME: &str = "'…' …";

/// A turn of two sessions with a call of each, while which a file came.
const BOTH: &str = "tell s UserPromptSubmit; tell t UserPromptSubmit; begins s; begins t; echo 3 >three; ends s; ends t; tell s Stop; tell t Stop";

/// A turn of one session, with a step.
const STEP: &str = "tell s UserPromptSubmit; begins s; echo 3 >three; ends s; tell s Stop; rm three";

/// A directory that is in no repository.
const PLAIN: &str = "mkdir ../plain; echo a >../plain/a";

/// What a turn did in a directory, and there is a mode to be set.
const DIRECTORY: &str =
    "mkdir d; echo 1 >d/x; echo 1 >g; git add -A; git commit -qm d; turn 'echo 2 >d/x; echo n >d/n; chmod 755 g'";

pub(super) const CASES: &[Case] = &[
    case(
        "turn …, the last one done at '…', has expired",
        "oxundo -q checkpoint -m cp; oxundo -q undo 2; turn 'echo 3 >three'; oxundo gc --keep now",
        "oxundo undo --to cp",
        "test -e one && test -e two",
    ),
    case(
        "… is not UTF-8, as only a path may be",
        "f=$(printf 'n\\351`'); echo 1 >\"$f\"; git add -A; git commit -qm f; turn 'rm n*'; echo 2 >n",
        "oxundo undo \"$(printf 'n\\351`')\"",
        "test -e \"$(printf 'n\\351`')\"",
    ),
    // Turns of other worktrees
    case(
        "'…' is a turn of the worktree '…', which was removed",
        "git worktree add -q ../tree; (cd ../tree; turn 'echo 3 >three'); git worktree remove --force ../tree",
        "oxundo redo --to tree:1",
        "test -e three",
    ),
    case(
        "'…' is a turn of the worktree '…', which was removed",
        "git worktree add -q ../tree; (cd ../tree; turn 'echo 3 >three'; turn 'echo 4 >three'); git worktree remove --force ../tree",
        "oxundo undo --only tree:2",
        "grep 3 three",
    ),
    case(
        "'…' is a turn of the worktree '…', and is undone and changed there",
        "git worktree add -q ../tree; (cd ../tree; turn 'echo 3 >three'; turn 'echo 4 >four')",
        "oxundo undo --only tree:1",
        "! test -e ../tree/three && test -e ../tree/four",
    ),
    // published, merge and foreign
    case(
        "commit … has been published (…)",
        "git init -q --bare ../o.git; git push -q ../o.git main; git remote add o ../o.git; git fetch -q; git reset -q --hard HEAD~1; echo mine >mine; git add mine; git commit -qm mine; turn 'git reset -q --hard o/main'",
        "oxundo undo",
        "test -e mine",
    ),
    case(
        "commit … has been published (…)",
        "git init -q --bare ../up; git push -q ../up main; git remote add up ../up; git fetch -q up",
        "oxundo undo",
        "! test -e two",
    ),
    case(
        "commit … has been published (…)",
        "git init -q --bare ../up; git push -q ../up HEAD~1:refs/heads/main; git remote add up ../up; git fetch -q up; turn 'echo 3 >three'",
        "oxundo squash 1..",
        "test \"$(git rev-list --count HEAD)\" = 3",
    ),
    case(
        "commit … is a merge",
        "git switch -qc o HEAD~1; own; git merge -q --no-edit main",
        "oxundo undo",
        "! test -e two",
    ),
    case(
        "commit … is a merge",
        "git switch -qc side HEAD~1; own; git switch -q main; turn 'git merge -q --no-edit side'",
        "oxundo undo",
        "! test -e own",
    ),
    case(CONFLICT, "turn 'echo 3 >>two'; git reset -q --soft HEAD~2", "oxundo redo", "git show HEAD:two"),
    case(FOREIGN, "own", "oxundo undo --steps 2 --edits=refuse", "! test -e one && ! test -e two"),
    case(FOREIGN, "oxundo -q squash 1..; own", "oxundo undo", "! test -e two && test -e one && test -e own"),
    case(FOREIGN, "oxundo -q undo; own", "oxundo redo", "test -e two"),
    case(
        "commit … was rewritten since turn … made it as …",
        "oxundo -q undo; echo other >>README.txt; git commit -q --amend -am other",
        "oxundo redo --to 2",
        "test -e two",
    ),
    case(FOREIGN, "own", "oxundo restore --exact 1", "! test -e two && test -e one && test -e own"),
    case(FOREIGN, "oxundo -q branch x 1; own", "oxundo undo", "git symbolic-ref HEAD | grep main"),
    case(
        FOREIGN,
        "echo mine >>README.txt; turn 'echo 3 >three'; oxundo -q squash 1.. -m all; git reset -q --hard HEAD~1",
        "oxundo redo",
        "test -e three && grep mine README.txt",
    ),
    case(FOREIGN, "turn 'git switch -qc x'; own", "oxundo undo", "git symbolic-ref HEAD | grep main && git show x:own"),
    case(
        FOREIGN,
        "ghost 'git branch -m x; echo g >>README.txt'; git restore README.txt; own",
        "oxundo undo",
        "git symbolic-ref HEAD | grep main && test -e own",
    ),
    case(
        FOREIGN,
        "git switch -q --detach; echo mine >mine; git add mine; git commit -qm mine",
        "oxundo undo",
        "! test -e two && test -e mine",
    ),
    case(
        FOREIGN,
        "oxundo -q undo --only 1; git revert --no-edit HEAD",
        "oxundo undo",
        "! test -e one && test -e two",
    ),
    case(FOREIGN, "git revert --no-edit HEAD", "oxundo undo", "! test -e one && ! test -e two"),
    case(FOREIGN, "git revert --no-edit HEAD", "oxundo undo 2", "! test -e one && ! test -e two"),
    none(FOREIGN, "git revert --no-edit HEAD HEAD~1", "oxundo undo --to 0"),
    none(FOREIGN, "own", "oxundo squash 1.."),
    case(
        "commit … was rewritten since turn … made it as …",
        "git commit -qa --amend -C HEAD --allow-empty; echo x >two; git commit -qa --amend --no-edit",
        "oxundo undo --edits=overwrite",
        "! test -e two",
    ),
    case(
        "commit … was rewritten since turn … made it as …",
        "own; git reset -q --soft HEAD~2; git commit -q -C ORIG_HEAD~1; turn 'echo 3 >three'",
        "oxundo undo 2",
        "! test -e two && ! test -e three && test -e one",
    ),
    case(
        "commit … was rewritten since turn … made it as …",
        "own; git reset -q --soft HEAD~2; git commit -q -C ORIG_HEAD~1; turn 'echo 3 >three'; oxundo -q undo --only 2",
        "oxundo undo 3",
        "! test -e two && ! test -e three && test -e one",
    ),
    case(DROPPED, DROPPING, "oxundo redo --to 1", "test -e one && test -e two"),
    case(
        DROPPED,
        "GIT_SEQUENCE_EDITOR='sed -i 1d' git rebase -qi HEAD~2; echo mine >>README.txt; git add README.txt",
        "oxundo redo --to 1",
        "test -e one && test -e two && grep mine README.txt",
    ),
    case(
        DROPPED,
        "GIT_SEQUENCE_EDITOR='sed -i 1d' git rebase -qi HEAD~2; echo mine >one",
        "oxundo redo --to 1",
        "test -e two && git show stash@{0}^3:one | grep mine",
    ),
    none(DROPPED, DROPPING, "oxundo undo --only 1"),
    case(
        "commit … belongs to turn …, which ended on '…'",
        "echo mine >>README.txt; turn 'git switch -qc topic; echo t >topic.txt'; git switch -q main",
        "oxundo undo",
        "! test -e two",
    ),
    case(
        "commit … was made by turn … of the worktree '…'",
        "git worktree add -q -b w ../w && (cd ../w && turn 'echo w >w.txt'); git merge -q --ff-only w",
        "oxundo undo",
        "! test -e w.txt",
    ),
    case(
        "commit … (…) would be on no branch: '…' has it now",
        "git switch -qc feat; echo f >mine; git add mine; git commit -qm mine; git switch -q -; turn 'git merge -q --ff-only feat'; git branch -qD feat",
        "oxundo undo",
        "! test -e mine && git grep -q f $(git branch --list 'kept-*' --format='%(refname)') -- mine",
    ),
    case(
        "'…' is another branch since turn …, which was renamed to that",
        "git branch older HEAD~1; turn 'git branch nw; echo z >>one'; s=$(date +%s); until test $(date +%s) -gt $s; do sleep 0.05; done; git branch -M older nw; git branch -f nw HEAD~1",
        "oxundo undo",
        "! git rev-parse -q --verify nw && git rev-parse -q --verify nw-kept",
    ),
    case(
        "'…', which was '…', has the name of a branch that turn … moved beside it",
        "turn 'git branch nw; echo 3 >three'; oxundo -q undo; git branch -m nw",
        "oxundo redo",
        "test -e three",
    ),
    case(
        "turn … changed … as well as …, where HEAD is to be",
        "turn 'echo c >c; git add c; git commit -qm c; git branch x'; git switch -q x; git branch -m main m2",
        "oxundo undo",
        "test $(git branch --show-current) = m2 && ! git rev-parse -q --verify x",
    ),
    case(
        "commit … of turn … has lost its note in refs/notes/oxundo",
        "git update-ref -d refs/notes/oxundo",
        "oxundo undo",
        "! test -e two",
    ),
    case(
        "commit … has your work from before turn …, which is undone",
        "git config oxundo.dirty keep; echo mine >>README.txt; turn 'echo 3 >three'; oxundo -q undo",
        "oxundo undo",
        "! test -e two && grep mine README.txt",
    ),
    case(
        "commit … has your work from before turn …, which is undone",
        "git config oxundo.dirty keep; echo mine >>README.txt; turn 'echo 3 >three'; oxundo -q undo",
        "oxundo squash 1..",
        "test $(git rev-list --count HEAD) = 2 && grep mine README.txt",
    ),
    case(
        "commit … is what is left here of the commits of turn …",
        "turn 'echo 3 >three; git add three; git commit -qm its; echo 4 >four'; git reset -q --keep HEAD~1",
        "oxundo undo",
        "! test -e three && test -e two",
    ),
    // branch
    case(
        "turn … left a … in progress, which is over since",
        "echo u >three; git add three; git commit -qm u; git switch -qc f HEAD~1; echo x >three; git add three; git commit -qm x; \
         git switch -q main; oxundo -q run -- git rebase -q f || true; echo mine >three; git add three; \
         GIT_EDITOR=true git rebase --continue",
        "oxundo undo",
        "! git merge-base --is-ancestor f main && git grep mine main-kept -- three",
    ),
    case(
        "turn … switched branches, and HEAD is not on …, where it is to be",
        "oxundo -q run -- git switch -qc theirs; git switch -q main",
        "oxundo undo",
        "! git rev-parse -q --verify theirs",
    ),
    case(
        "turn … switched branches, and HEAD is not on …, where it is to be",
        "git branch side HEAD~1; turn 'git switch -qc theirs; echo 3 >three'; oxundo -q undo; git switch -q --detach; ghost 'git branch z'; ghost 'git switch -q side; echo 4 >four'",
        "oxundo redo --to 3",
        "test -e three",
    ),
    case(
        "turn … began …, and the turns below it are those of …",
        "oxundo -q branch re 1; turn 'echo 4 >n4'; own; git branch -M main",
        "oxundo undo --to 1",
        "test -e one && ! test -e two && ! test -e n4",
    ),
    case(
        "turn … began …, and the turns below it are those of …",
        "oxundo -q branch x 1",
        "oxundo undo --steps 2",
        "! test -e two && test -e one && ! git rev-parse -q --verify x",
    ),
    case(
        "turn … began …, and the turns below it are those of …",
        "oxundo -q branch x 1; turn 'echo 3 >three'; own; turn 'echo 4 >four'",
        "oxundo undo --to 1",
        "git symbolic-ref HEAD | grep main && git show x:own",
    ),
    case(
        "… has no turns: turn …, the last one, was made on …",
        "git switch -q --orphan o; own",
        "oxundo undo",
        "! test -e two",
    ),
    case(
        "… has no turns: turn …, the last one, was made on …",
        "git symbolic-ref HEAD refs/heads/o",
        "oxundo undo",
        "! test -e two",
    ),
    case(
        "… has no turns: turn …, the last one, was made on …",
        "git switch -q --orphan o; own; git worktree add -q ../w main; echo mine >two",
        "oxundo undo",
        "! test -e two && git show stash@{0}^3:two | grep mine",
    ),
    case(
        "the commits of turn … are off this branch, and … here as it left …",
        "oxundo -q run --ghost -- sh -c 'echo 3 >three; git add three; git commit -qm three; echo 4 >four'; git reset -q --keep HEAD~1",
        "oxundo undo",
        "test -e two && ! test -e four",
    ),
    case(
        "commit … was on '…' before turn …, which brought it to …",
        "git switch -qc f HEAD~2; git switch -q -; own; git switch -q f; turn 'git merge -q main; echo 3 >three'; git switch -q main; git merge -q f",
        "oxundo undo",
        "! test -e three && test -e own && test -e two",
    ),
    none(
        "turn … was merged: nothing that is done in … stands above it",
        "git switch -qc third HEAD~1; turn 'echo 3 >n3'; git switch -q -; turn 'git merge -q --no-ff -m mg third'",
        "oxundo undo --revert --to 3",
    ),
    case(
        "'…' is not where the turn left it",
        "turn 'git switch -qc theirs; echo 3 >three'; oxundo -q undo; git branch theirs HEAD~1",
        "oxundo redo",
        "test -e three",
    ),
    case(
        "'…' is not where the turn left it",
        "turn 'echo 3 >three'; oxundo -q undo; own; turn 'git switch -qc topic; echo 4 >four'",
        "oxundo redo --to 3",
        "test -e three && git rev-parse -q --verify main && git merge-base --is-ancestor main topic",
    ),
    case(
        "turn … is not among the turns of …",
        "turn 'echo 3 >three'; oxundo -q undo; oxundo -q branch b3 3; turn 'echo 5 >five'",
        "oxundo undo --to 3",
        "test -e three && ! test -e five && test $(git branch --show-current) = main",
    ),
    case(
        "turn … is not among the turns of …",
        "turn 'echo 3 >three'; oxundo -q undo; oxundo -q branch b3 3; turn 'echo 5 >five'; oxundo -q branch b5 5; turn 'echo 7 >seven'",
        "oxundo undo --to 3",
        "test -e three && ! test -e five && test $(git branch --show-current) = main",
    ),
    case(
        "turn … is not among the turns of …",
        "oxundo -q undo; turn 'echo 3 >three'",
        "oxundo undo --to 2",
        "test -e two",
    ),
    case(
        "turn … is not among the turns of …",
        "git switch -q --orphan o; turn 'echo 3 >three'; git switch -q main",
        "oxundo undo --to 3",
        "test -e three",
    ),
    case(
        "turn … began on … before its first commit, and HEAD is not there",
        "git switch -q --orphan o; turn 'echo 3 >three'; oxundo -q undo; git switch -q main",
        "oxundo redo --to 3",
        "test -e three",
    ),
    case(
        "turn … began on … before its first commit, and HEAD is not there",
        "git switch -q --orphan o; turn 'echo 3 >three'; git switch -q main",
        "oxundo redo --to 3",
        "test -e three",
    ),
    case(
        "'…' is not where the turn left it",
        "turn 'git switch -qc f; echo 3 >three; git add .; git commit -qm three'; turn 'echo 4 >four'; git switch -q main; turn 'echo 5 >five'",
        "oxundo redo --to 4",
        "test -e three && test -e four && git show main:five",
    ),
    case(
        "turn … began at commit … (…), which '…' does not have now",
        "own; turn 'echo 3 >three'; git reset -q --hard HEAD~2",
        "oxundo redo",
        "test -e three",
    ),
    case(
        "'…' is a state of …, and HEAD is not there",
        "oxundo -q run -- git switch -qc theirs; own; git switch -q main",
        "oxundo restore --exact 3",
        "git rev-parse --abbrev-ref HEAD | grep theirs",
    ),
    case(
        "'…' is a state of …, and HEAD is not there",
        "oxundo -q run -- git switch -qc theirs; own; git switch -q main; git worktree add -q ../w theirs",
        "oxundo restore --exact 3",
        "git rev-parse --abbrev-ref HEAD | grep theirs",
    ),
    case(
        "'…' is a state of …, and HEAD is not there",
        "oxundo -q run -- git switch -qc theirs; own; git switch -q main; echo mine >own",
        "oxundo restore --exact 3",
        "git rev-parse --abbrev-ref HEAD | grep theirs && git show stash@{0}^3:own | grep mine",
    ),
    case(
        "'…' is a state of …, and HEAD is not there",
        "oxundo -q run -- git switch -qc theirs; echo t >>README.txt; git commit -qam t; git switch -q main; echo mine >>README.txt",
        "oxundo restore --exact 3",
        "git rev-parse --abbrev-ref HEAD | grep theirs && git show stash@{0}:README.txt | grep mine",
    ),
    case(
        "'…' is a state of …, and HEAD is not there",
        "git switch -q --orphan oo; git branch -qD main; oxundo -q restore 0",
        "oxundo restore --exact 0",
        "git rev-parse --abbrev-ref HEAD | grep main && test -e README.txt",
    ),
    case(
        "'…' is a state of …, and HEAD is not there",
        "git switch -q --detach; turn 'echo d >d.txt'; git switch -q --orphan oo; oxundo -q restore 3",
        "oxundo restore --exact 3",
        "git rev-parse HEAD && ! git symbolic-ref -q HEAD && test -e d.txt",
    ),
    case(
        "commit … of '…' is gone: git has deleted it",
        "own; c=$(git rev-parse HEAD); oxundo -q checkpoint -m here; git reset -q --hard HEAD~1; rm .git/objects/$(echo $c | sed 's|^..|&/|')",
        "oxundo restore --exact here",
        "test -e own",
    ),
    case(
        "commit … of … is gone: git has deleted it",
        "turn 'echo 3 >three'; c=$(git rev-parse HEAD); oxundo -q undo; rm .git/objects/$(echo $c | sed 's|^..|&/|')",
        "oxundo branch b @rescue",
        "test -e three",
    ),
    case(
        "commit … of turn … is gone: git has deleted it",
        "c=$(git rev-parse HEAD); git reset -q --hard HEAD~1; rm .git/objects/$(echo $c | sed 's|^..|&/|')",
        "oxundo redo",
        "test -e two",
    ),
    none(
        "turn … is not among the turns of this branch",
        "git switch -qc o HEAD~2; turn 'echo 3 >three'",
        "oxundo undo --only 2",
    ),
    case(
        "'…' is not where the turn left it",
        "git branch side HEAD~1; turn 'git branch -f side; echo 3 >three'; git branch -f side HEAD~3",
        "oxundo undo",
        "! test -e three",
    ),
    case(
        "'…' is not where the turn left it",
        "own; oxundo -q branch x 2; git reset -q --keep main; turn 'echo 3 >three'",
        "oxundo undo --to 2",
        "! test -e three && test -e own && git merge-base --is-ancestor main x",
    ),
    case(
        "'…' is not where the turn left it",
        "git switch -qc side; turn 'echo 3 >three'; own; turn 'git switch -q main; echo 4 >four'; git branch -f side main~1",
        "oxundo undo --steps 2",
        "! test -e four && git show side:own",
    ),
    case(
        "'…' is not where the turn left it",
        "own; oxundo -q branch x 2; git reset -q --keep main",
        "oxundo undo",
        "git symbolic-ref HEAD | grep main && test -e own",
    ),
    case(
        "HEAD is on '…', which would be deleted",
        "turn 'git branch nw'; git switch -q nw",
        "oxundo undo",
        "! git rev-parse -q --verify nw && git rev-parse -q --verify HEAD",
    ),
    case(
        "'…' is checked out in another worktree, at '…'",
        "git branch o; turn 'echo 3 >three; git add three; git commit -qm three; git branch -f o'; git worktree add -q '../it is' o",
        "oxundo undo",
        "! test -e three",
    ),
    case(
        "'…' is checked out in another worktree, at '…'",
        "git worktree add -qb w '../it is'; git -C '../it is' switch -q --orphan o; git switch -q --orphan o; echo u >u; turn 'git switch -qc p; echo 3 >three'",
        "oxundo undo",
        "! test -e three",
    ),
    case("there is a branch '…' already", "", "oxundo branch main 1", "! test -e two"),
    none("there is no turn '…' here", "", "oxundo branch main 99"),
    case(
        "there is a branch '…', beside which git cannot keep one '…'",
        "",
        "oxundo branch main/x 1",
        "! test -e two",
    ),
    case(
        "there is a branch '…', beside which git cannot keep one '…'",
        "turn 'git branch z; echo z >>one'; oxundo undo -q; git branch z/q",
        "oxundo redo",
        "git rev-parse -q --verify z && git rev-parse -q --verify z-q",
    ),
    case(
        "HEAD is on '…', which is no branch",
        "git update-ref refs/x/y HEAD; git symbolic-ref HEAD refs/x/y",
        "oxundo run -- sh -c 'echo 3 >three'",
        "test -e three",
    ),
    case(
        "… would move HEAD, and '…', where it was, is no branch",
        "git update-ref refs/x/y HEAD; git symbolic-ref HEAD refs/x/y",
        "oxundo undo",
        "! test -e two",
    ),
    none(
        "there is no commit yet at …",
        "git init -q ../unborn; cd ../unborn; identify; ghost 'echo 1 >f'",
        "oxundo branch x 1",
    )
    .at("cd ../unborn; "),
    case(
        "'…', to which HEAD would go, has new commits",
        "turn 'git switch -qc topic; echo t >topic.txt'; git update-ref refs/heads/main $(git commit-tree -p main -m own 'main^{tree}')",
        "oxundo undo",
        "! test -e topic.txt",
    ),
    case(
        "'…', to which HEAD would go, is no branch any more",
        "turn 'git switch -qc topic; echo t >topic.txt'; git branch -q trunk main; git branch -qD main",
        "oxundo undo",
        "! test -e topic.txt",
    ),
    case(
        "'…', to which HEAD would go, was put back",
        "turn 'git switch -qc topic; echo t >topic.txt'; git switch -q main; oxundo -q undo; git switch -q topic",
        "oxundo undo",
        "! test -e topic.txt",
    ),
    case(
        "'…' has commits now, and had none then",
        "git init -q -b main ../unborn; cd ../unborn; identify; turn 'git switch -qc topic; echo t >topic.txt'; git branch main topic",
        "oxundo undo",
        "test \"$(git symbolic-ref --short HEAD)\" = main",
    )
    .at("cd ../unborn; "),
    none(
        "these turns do not follow each other on this branch",
        "oxundo -q undo; turn 'echo 3 >three'",
        "oxundo squash 2..",
    ),
    // in_progress
    case(
        IN_PROGRESS,
        "git switch -qc o HEAD~1; echo x >two; git add two; git commit -qm x; git switch -q main; git merge -q o || true",
        "oxundo undo",
        "! test -e two",
    ),
    case(
        "a … is in progress that turn … did not begin",
        // git fails in the middle of the stashing, and leaves a part of what it needs.
        "git branch side HEAD~1; git rm -q --cached f; echo x >>README.txt; ! git rebase -q --autostash side",
        "oxundo undo",
        "! test -e two",
    ),
    case("a … is in progress that turn … did not begin", "git bisect start -q", "oxundo undo", "! test -e two"),
    case(
        "turn … left a … in progress, and it is so still",
        "git switch -qc o HEAD~1; echo x >two; git add two; git commit -qm x; git switch -q main
         turn 'git merge -q o || true'",
        "oxundo undo --only 3",
        "! test -e .git/MERGE_HEAD",
    ),
    case(
        "the … in progress is not as it was …",
        "git switch -qc o HEAD~1; echo x >two; git add two; git commit -qm x; git switch -q main
         turn 'git merge -q o || true'; echo more >>.git/MERGE_MSG",
        "oxundo undo",
        "! test -e .git/MERGE_HEAD",
    ),
    case(
        "what git was in the middle of … is too large, closed to others, or not recorded here",
        "git switch -qc o HEAD~1; echo x >two; git add two; git commit -qm x; git switch -q main
         git config oxundo.maxFileSize 10; turn 'git merge -q o || true'",
        "oxundo undo",
        "! test -e .git/MERGE_HEAD",
    ),
    case(
        "… is unmerged",
        "echo s >one; git stash -q; echo t >one; git commit -qam t; git stash pop -q || true",
        "oxundo run -- sh -c 'echo 3 >three'",
        "test -e three",
    ),
    // busy
    case(
        "another oxundo is at work in this worktree: …",
        "oxundo -q run -- sh -c 'touch ../home/started; while test -e ../home/started && ! test -e ../home/go; do sleep 0.05; done' >/dev/null 2>&1 &
         until test -e ../home/started; do sleep 0.05; done",
        "oxundo undo",
        "! test -e two",
    )
    .doing("touch ../home/go; until oxundo status --json | grep -q '\"open_turn\":null'; do sleep 0.05; done"),
    case(
        "a turn is running in '…'",
        "mkdir ../plain; cd ../plain
         oxundo -q run -- sh -c 'touch ../home/started; while test -e ../home/started && ! test -e ../home/go; do sleep 0.05; done' >/dev/null 2>&1 &
         until test -e ../home/started; do sleep 0.05; done",
        "oxundo gc --stores --remove ../plain",
        "oxundo gc --stores | grep 'no stores'",
    )
    .doing("touch ../home/go; cd ../plain; until oxundo status --json | grep -q '\"open_turn\":null'; do sleep 0.05; done"),
    // agent
    case(
        "'…' is not for an agent to say: … is at work in turn …",
        "",
        "oxundo -q run -- oxundo undo",
        "! test -e two",
    ),
    // stale
    case(
        "plan '…' would not do now what it was to do",
        "oxundo -q undo; oxundo redo --to 2 --plan --json | sed 's/.*\"plan\":\"\\([^\"]*\\)\".*/\\1/' >../home/plan; oxundo -q undo",
        "oxundo apply $(cat ../home/plan)",
        "oxundo apply $(oxundo redo --to 2 --plan --json | sed 's/.*\"plan\":\"\\([^\"]*\\)\".*/\\1/')",
    ),
    // conflict
    case(
        "the only copy of something of yours may be in …, and would be deleted",
        "echo mine >mine; ghost 'rm mine'",
        "oxundo uninstall --purge",
        "! git rev-parse -q --verify refs/oxundo/timeline",
    ),
    case(
        "… changed while … may have been at work: nobody can tell whose it is",
        BOTH,
        "oxundo undo --session s",
        "! test -e four",
    ),
    case(
        "… has what you saved during turn … beside what its calls wrote",
        "tell s UserPromptSubmit; begins s; echo 3 >three; ends s; ticks; echo mine >>three; ticks; begins s; echo 4 >four; ends s; tell s Stop",
        "oxundo undo --session s",
        "! test -e three",
    ),
    case(
        "… has what you saved during turn … beside what its calls wrote",
        "tell s UserPromptSubmit; begins s; echo 3 >three; ends s; ticks; echo mine >>three; ticks; begins s; echo 4 >four; ends s; tell s Stop",
        "oxundo undo",
        "! test -e four",
    ),
    case(
        "… has what you saved during turn … beside what its calls wrote",
        "tell s UserPromptSubmit; begins s; echo 3 >three; ends s; ticks; echo mine >>three; tell s Stop",
        "oxundo undo",
        "! test -e three",
    ),
    case(
        "… is what turn … made as …, and would stay",
        "mv two moved",
        "oxundo undo",
        "! test -e moved",
    ),
    case(
        "… has what session '…' wrote beside it",
        "tell s UserPromptSubmit; tell t UserPromptSubmit; begins s; echo 3 >three; ends s; ticks; begins t; echo 4 >>three; ends t; tell s Stop; tell t Stop",
        "oxundo undo --session s",
        "! test -e three",
    ),
    case(
        "… changed in turn …, and no call tells whose it is",
        "tell s UserPromptSubmit; tell t UserPromptSubmit; echo 3 >three; tell s Stop; tell t Stop",
        "oxundo undo --session s",
        "! test -e three",
    ),
    case(
        "… cannot be read, and a turn changed what is in it",
        "mkdir d; echo 1 >d/x; git add d; git commit -qm d; turn 'echo 2 >d/x'; chmod 0 d",
        "oxundo undo",
        "grep 1 d/x",
    )
    .of_nobody(""),
    case(
        CONFLICT,
        "echo mine >two; echo new >new; git add -N new",
        "oxundo undo",
        "! test -e two && test -e new && git show stash@{0}:two | grep mine",
    ),
    case(
        CONFLICT,
        "mkdir gen; seq 9 >gen/api; echo gen >.gitignore; git add -f gen/api .gitignore; git commit -qm gen; \
         turn 'sed -i s/3/its/ gen/api'; sed -i s/its/mine/ gen/api",
        "oxundo undo",
        "grep -x 3 gen/api && test $(git stash list | wc -l) = 1",
    ),
    case(
        CONFLICT,
        "turn 'echo 3 >>README.txt'; git rm -q README.txt",
        "oxundo undo",
        "! git show HEAD:README.txt | grep -x 3 && git show stash@{0} --stat | grep README.txt",
    ),
    case(
        CONFLICT,
        "mkdir q; echo q >q/b; git add q; git commit -qm q; turn 'echo 3 >>q/b'; git sparse-checkout set nothing",
        "oxundo undo",
        "test $(git show HEAD:q/b) = q",
    ),
    case(
        CONFLICT,
        "mkdir q; echo q >q/b; git add q; git commit -qm q; ghost 'echo 3 >>q/b'; git commit -qam mine; git sparse-checkout set nothing",
        "oxundo undo",
        "test \"$(cat q/b)\" = q",
    ),
    case(
        CONFLICT,
        "mkdir q; echo q >q/b; git add q; git commit -qm q; turn 'echo 3 >>q/b'; git update-index --skip-worktree q/b; rm q/b",
        "oxundo undo",
        "test \"$(cat q/b)\" = q",
    ),
    case(
        CONFLICT,
        "turn 'echo 3 >>README.txt'; git update-index --skip-worktree README.txt; rm README.txt",
        "oxundo undo",
        "test -e README.txt && ! grep -x 3 README.txt",
    ),
    // A stash would take the agent's other line along.
    case(
        CONFLICT,
        "seq 9 >g; git add g; git commit -qm g; ghost 'sed -i \"s/2/two/; s/7/seven/\" g'; sed -i s/two/mine/ g",
        "oxundo undo",
        "! grep seven g && test -z \"$(git stash list)\"",
    ),
    // And this the user's, upon which the turn was made.
    case(
        CONFLICT,
        "seq 9 >g; git add g; git commit -qm g; sed -i s/7/mine/ g; ghost 'sed -i s/2/two/ g'; sed -i s/two/my/ g",
        "oxundo undo",
        "! grep two g && grep mine g",
    ),
    case(CONFLICT, "echo mine >f", "oxundo undo --to 0", "! test -e one && ! test -e f"),
    case(CONFLICT, "echo mine >f", "oxundo undo --to 0", "! test -e one && ! test -e f")
        .at("export GIT_LITERAL_PATHSPECS=1; "),
    case(CONFLICT, "echo mine >f", "oxundo undo --only 1", "! test -e one && test -e two"),
    case(
        CONFLICT,
        "seq 9 >s; git add s; git commit -qm s; turn 'sed -i s/2/2a/ s'; turn 'sed -i s/8/8a/ s; echo 4 >four'; sed -i s/2a/mine/ s",
        "oxundo undo --only 3",
        "grep -x 2 s && test -e four",
    ),
    case(
        CONFLICT,
        "echo mine >f; git commit -qam mine",
        "oxundo undo --only 1 --edits=merge",
        "! test -e f || grep 0 f",
    ),
    case(
        CONFLICT,
        "oxundo -q run --ghost -- sh -c 'echo g >f'; oxundo -q undo; echo m >f; git commit -qam m",
        "oxundo redo",
        "grep g f",
    ),
    case(
        "your own changes in … build on what a turn did there",
        "echo mine >>one; turn 'echo 3 >three'",
        "oxundo squash 1..",
        "test \"$(git rev-list --count HEAD)\" = 2",
    ),
    // locked
    case(
        "'…' exists: git holds …",
        "git config oxundo.lockTimeout 0; touch .git/index.lock",
        "oxundo undo",
        "! test -e two",
    )
    .doing("rm .git/index.lock"),
    case("'…' exists: git holds …", "touch .git/refs/heads/main.lock", "oxundo undo", "! test -e two")
        .doing("rm .git/refs/heads/main.lock"),
    // nothing
    none("nothing to …: no turn is recorded here", "git clone -q . ../new; cd ../new; identify", "oxundo undo")
        .at("cd ../new; "),
    case(NOTHING, "", "oxundo undo 5", "! test -e one"),
    case(NOTHING, "oxundo -q undo", "oxundo redo 3", "test -e two"),
    case(NOTHING, "oxundo -q checkpoint -m here; rm one", "oxundo undo --to here", "test -e one"),
    none("turn … is undone already", "oxundo -q undo", "oxundo undo --only 2"),
    // usage
    case(NO_COMMAND, "", "oxundo checkout 1", "! test -e two"),
    case(NO_COMMAND, "", "oxundo rollback", "! test -e two"),
    case(NO_COMMAND, "", "oxundo revert 2", "! test -e two"),
    none(NO_COMMAND, "", "oxundo xyzzy"),
    case("… has no option '…'", "", "oxundo undo --setps 2", "! test -e one"),
    none("… has no option '…'", "", "oxundo squash --nope"),
    case("'…' is one word too many for '…'", "rm one", "oxundo restore 1 one", "test -e one"),
    case("'…' takes a number of turns without '-'", "", "oxundo undo -2", "! test -e one"),
    case("… is … to …", "", "oxundo undo 0", "! test -e two"),
    case("'…' is no age", "", "oxundo gc --keep x", "true"),
    case(NO_NUMBER, "", "oxundo undo two", "! test -e two"),
    case(NO_NUMBER, "", "oxundo undo @~1", "! test -e two"),
    case("'…' takes no value", "", "oxundo undo --quiet=1", "! test -e two"),
    none("'…' needs a value", "", "oxundo undo --to"),
    none("'…' needs …", "", "oxundo restore"),
    none("'…' needs …", "", "oxundo run"),
    case("'…' is none of …", "", "oxundo undo --edits=mrege", "! test -e two"),
    case("'…' cannot be …", "", "oxundo log -n -1", "oxundo log -h | grep -q -e -n"),
    case("'help' takes one command", "", "oxundo help undo log", "oxundo help undo | grep -q undo"),
    case("there is no path behind '--'", "", "oxundo undo --", "! test -e two"),
    case("… stands behind '--', where paths are", "", "oxundo undo -- two --quiet", "! test -e two"),
    none("'…' was given twice", "", "oxundo undo --to 1 --to 1"),
    none("'…' and '…' do not go together", "", "oxundo undo --to 1 --steps 1"),
    case("turn … is undone already", "oxundo -q undo", "oxundo undo --to 2", "test -e two"),
    case("turn … is not undone", "", "oxundo redo --to 1", "! test -e two"),
    case(
        "what turn … took out comes back first, by a redo of its own",
        "oxundo -q undo --only 2",
        "oxundo redo --steps 2",
        "test -e two",
    ),
    case(
        "what turn … took out comes back first, by a redo of its own",
        "turn 'echo 3 >three'; oxundo -q undo --only 2",
        "oxundo redo --to 2",
        "test -e two",
    ),
    none("0 is the state before the first turn, not a turn", "", "oxundo undo --only 0"),
    case(
        "--edits=overwrite would take out later turns' work too",
        "",
        "oxundo undo --only 1 --edits=overwrite",
        "! test -e one",
    ),
    case(
        "turn … is not the last one done: … is",
        "",
        "oxundo squash 1..1",
        "test \"$(git rev-list --count HEAD)\" = 2",
    ),
    case(
        "turn … is not the last one done: … is",
        "turn 'echo 3 >three'",
        "oxundo squash 1..2",
        "test \"$(git rev-list --count HEAD)\" = 2",
    ),
    case(
        "0 is the state before the first turn, not a turn",
        "",
        "oxundo squash 0..",
        "test \"$(git rev-list --count HEAD)\" = 2",
    ),
    case(
        "turn … is undone already",
        "oxundo -q undo",
        "oxundo squash 1..2",
        "test -e two && test \"$(git rev-list --count HEAD)\" = 2",
    ),
    case("GIT_DIR is '…', where there is nothing", "", "oxundo undo", "! test -e two").at("export GIT_DIR=/nowhere; "),
    case("GIT_DIR is '…', which is no git directory", "", "oxundo undo", "! test -e two").at("export GIT_DIR=/; "),
    case(
        "GIT_DIR is set, and GIT_WORK_TREE is not: git takes '…' for the worktree of '…'",
        "mkdir sub",
        "oxundo undo",
        "! test -e two",
    )
    .at("export GIT_DIR=$PWD/.git; cd sub; "),
    case("'…' is not in '…', the worktree of what GIT_DIR names", "", "oxundo undo", "! test -e two")
        .at("export GIT_DIR=$PWD/.git GIT_WORK_TREE=$PWD; cd ../home; "),
    case("'…' is not in '…', the worktree of what GIT_DIR names", "", "oxundo undo", "! test -e two")
        .at("cd ..; export GIT_DIR=repo/.git GIT_WORK_TREE=repo; "),
    case("… is '…', which is not of the repository here, '…'", "", "oxundo undo", "! test -e two")
        .at("export GIT_INDEX_FILE=$PWD/../home/index; "),
    case(
        "'…' is no author",
        "",
        "oxundo squash 1.. --author me",
        "git log -1 --format=%an | grep A",
    ),
    case(NAME, "oxundo -q checkpoint -m here", "oxundo checkpoint -m here", "oxundo checkpoint --list"),
    case(NAME, "", "oxundo checkpoint -m 17", "oxundo checkpoint --list"),
    case("'…' cannot be a branch's name", "", "oxundo branch a..b 1", "! test -e two"),
    case("'…' would be the new branch's name", "", "oxundo branch 1", "! test -e two"),
    none("'…' is no regular expression: …", "", "oxundo find -G '['"),
    none("'…' is no regular expression: …", "", "oxundo log --grep '['"),
    none("'…' is no time that git knows", "", "oxundo log --since=blah"),
    none("'…' is no placeholder of a turn", "", "oxundo log --format '%h %q'"),
    none("'…' is no form of dates", "", "oxundo log --date=tomorrow"),
    none("'…' is no range of lines here: …", "", "oxundo blame -L 7,9 one"),
    none("'…' is no range of lines here: …", "echo x >new", "oxundo blame -L :main new"),
    none("… is no pathspec: git knows no such magic", "", "oxundo undo -- ':(bad)x'"),
    none("an empty word is no pathspec", "", "oxundo undo -- ''"),
    none("… leads out of the worktree", "", "oxundo undo -- ../x"),
    none("the report cannot be written to '…', which is a directory", "", "oxundo run --report . -- true"),
    case("there is no directory '…' for the report", "", "oxundo run --report ../no/x -- true", "test -e ../no/x"),
    case(
        "a range of turns begins with the older one",
        "",
        "oxundo undo --only 2..1",
        "! test -e one && ! test -e two",
    ),
    case("a range of turns begins with the older one", "", "oxundo squash 2..1", "test \"$(git rev-list --count HEAD)\" = 2"),
    case("'--to …' goes back to a step as a whole", STEP, "oxundo undo --to 3.1 -- three", "test -e three"),
    case("'--to …' goes back to a step as a whole", STEP, "oxundo undo --to 3.1 --revert", "test -e three"),
    none("… leads out of the worktree", "", "oxundo show 1:../x"),
    none("'…' is not an agent that oxundo knows", "", "oxundo init sh"),
    none("no agent was named, and there is no terminal to ask on", "", "oxundo init"),
    case("there is no terminal to choose a turn on", "", "oxundo rewind", "! test -e two"),
    case("there is no home directory to install into", "", "oxundo man --install", "test -e man/man1/oxundo.1")
        .at("unset HOME XDG_DATA_HOME; "),
    case(
        "two directories were at '…', and each has a store",
        "for n in 1 2; do mkdir ../plain; (cd ../plain; ghost 'echo 1 >one'); rm -r ../plain; mkdir ../taken$n; done",
        "oxundo gc --stores --remove ../plain",
        "oxundo gc --stores | grep 'no stores'",
    ),
    case("… is '…': … is wanted", "git config oxundo.include '[x'", "oxundo undo", "! test -e two"),
    case("… is '…': … is wanted", "git config oxundo.skipDir 'out/*'", "oxundo undo", "! test -e two"),
    case("… is '…': … is wanted", "git config oxundo.edits x", "oxundo undo", "! test -e two"),
    case("… is '…': … is wanted", "", "oxundo undo", "! test -e two").at("export OXUNDO_EDITS=x; "),
    case("… is '…': … is wanted", "", "oxundo undo", "! test -e two").at(
        "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=oxundo.edits GIT_CONFIG_VALUE_0=x; ",
    ),
    case("… is '…': … is wanted", "", "oxundo undo", "! test -e two")
        .at("export GIT_CONFIG_PARAMETERS=\"'oxundo.edits=x'\"; "),
    case(
        "… is '…': … is wanted",
        "git config extensions.worktreeConfig true; git config --worktree oxundo.edits x",
        "oxundo undo",
        "! test -e two",
    ),
    case(
        "… is '…': … is wanted",
        "git config oxundo.edits merge; git config --add oxundo.edits x",
        "oxundo undo",
        "! test -e two",
    ),
    // not_found
    none("turn … has no steps", "", "oxundo show 1.1"),
    case(
        NOTHING,
        "oxundo -q run --session s -- sh -c 'echo 3 >three'; oxundo -q undo",
        "oxundo undo --session s",
        "test -e three",
    ),
    case(
        NOTHING,
        "oxundo -q run --session s -- sh -c 'echo 3 >three; git add three; git commit -qm three'; git switch -qc o HEAD~1; turn 'echo 4 >four'",
        "oxundo undo --session s",
        "! test -e three && test $(git branch --show-current) = main",
    ),
    case(
        NOTHING,
        "oxundo -q run --session s -- sh -c 'echo 3 >three'; oxundo -q undo; turn 'echo 4 >four'",
        "oxundo undo --session s",
        "test -e three",
    ),
    case(
        "git has not shown all of it, and says why above",
        "git config diff.external false",
        "oxundo diff 1",
        "oxundo diff 1",
    ).doing("git config --unset diff.external"),
    none("session '…' has no turn here", "", "oxundo undo --session x"),
    none("there are no turns of a worktree '…'", "", "oxundo log --worktree x"),
    none("there is no step '…': the last one of turn … is ….…", STEP, "oxundo show 3.9"),
    none("there is no turn '…' here", "", "oxundo show 9"),
    case(NONE_DONE, "oxundo -q undo --steps 2", "oxundo branch other @", "git rev-parse -q --verify other"),
    case(NONE_DONE, "oxundo -q uninstall --purge --yes", "oxundo show", "oxundo log --all"),
    none(NONE_DONE, "oxundo -q undo --steps 2; oxundo -q run -- touch x; git switch -qc o HEAD~1", "oxundo diff @"),
    case("turn … has no steps", "", "oxundo undo --revert --to 1.1", "true"),
    case("'--' stands before the command", "", "oxundo -- -- undo", "! test -e two"),
    case("'--' stands before the command", "", "oxundo -- undo --steps 2", "! test -e one"),
    case(
        "commit … has been published (…)",
        "git clone -q --bare . ../home/o.git; git remote add o ../home/o.git; git switch -qc other HEAD~2; echo z >one; git add one; \
         git commit -qm z; git switch -q main; git cherry-pick other >&2 || true; \
         oxundo -q run --ghost -- sh -c 'git update-ref HEAD $(git commit-tree -p HEAD -m x HEAD^{tree})'; git push -q o HEAD",
        "oxundo undo",
        "! test -e .git/CHERRY_PICK_HEAD",
    ),
    none("'…' is a range of turns, and one turn is wanted", "", "oxundo restore 1..2"),
    none("'…' is not a turn: a range has two ends, with two dots between them", "", "oxundo show 1...2"),
    case("… is a state, and a turn is wanted", "", "oxundo undo --to 2:before", "! test -e two"),
    case("… is a state, and a turn is wanted", "oxundo undo", "oxundo redo --to @rescue", "test -e two"),
    none("'…' is not a turn: give a number, @, @~N or a commit id", "", "oxundo show 'x y'"),
    none("'…' has no turn before its colon", "", "oxundo show :one"),
    case("'…' is not a turn: give a number, @, @~N or a commit id", "rm f", "oxundo restore one", "test -e one"),
    case("'…' is a step, and a whole turn is wanted: …", STEP, "oxundo squash @.1", "oxundo show @.1 | grep three"),
    none("there is no plan '…' here", "", "oxundo apply x"),
    none("there is no rescue checkpoint '…' here", "", "oxundo restore @rescue"),
    none("there is no operation '…' here that kept a state", "", "oxundo diff op:99"),
    none("there is no state '…'", "git worktree add -q ../w; cd ../w; turn 'echo w >w'", "oxundo restore w:9"),
    none(
        "there is no first turn, or it has expired",
        "git clone -q . ../new; cd ../new; identify",
        "oxundo restore 0",
    )
    .at("cd ../new; "),
    none("turn … has no prompt on record", "", "oxundo show --prompt 1"),
    none("there is no checkpoint '…'", "", "oxundo checkpoint --delete x"),
    none("there is no file … here", "", "oxundo blame nope"),
    none("there was no file … then", "", "oxundo show 1:nope"),
    none("that state has no file that the pathspec matches", "", "oxundo restore 1 -- nope"),
    case(
        "that state has no file that the pathspec matches",
        "oxundo -q checkpoint \"it's\"",
        "oxundo restore \"it's\" -- nope",
        "test -e two",
    ),
    case(
        "turn … changed no file that the pathspec matches: turn … (…) did",
        "",
        "oxundo undo -- one",
        "! test -e one && test -e two",
    ),
    none("turn … changed no file that the pathspec matches, nor did any turn below it", "", "oxundo undo -- nope"),
    case(
        "turn … changed no file",
        "oxundo run -- git branch its",
        "oxundo undo -p",
        "! git rev-parse -q --verify its",
    )
    .doing("oxundo undo"),
    case("'…': …", "", "oxundo run -- nope", "oxundo log | grep nope")
        .at("export PATH=$PWD/../home:$PATH; ")
        .doing("printf '#!/bin/sh\\necho 3 >three\\n' >../home/nope; chmod +x ../home/nope"),
    case("cannot go to '…': …", "", "oxundo -C nowhere undo", "! test -e two"),
    case(
        "a directory without git has no branches",
        "mkdir ../plain; cd ../plain; ghost 'echo b >b'; ghost 'echo c >c'",
        "oxundo branch x 1",
        "test -e ../plain/b && ! test -e ../plain/c",
    )
    .at("cd ../plain; "),
    case(
        "… is for git, and this directory has none",
        "mkdir ../plain; cd ../plain; ghost 'echo b >b'",
        "oxundo init --alias",
        "git config --get alias.undo",
    )
    .at("cd ../plain; "),
    none("'…' is in no git repository, and no turn is recorded for it", PLAIN, "oxundo undo").at("cd ../plain; "),
    none(
        "'…' is in no git repository, and no turn is recorded for it as it is: …",
        "",
        "oxundo run -- true",
    )
    .at("cd /; ")
    .doing("true"),
    case(
        "there is a '.git' in '…' that is no repository",
        "mkdir ../broken; echo x >../broken/.git",
        "oxundo run -- touch x",
        "test -e ../broken/x",
    )
    .at("cd ../broken; ")
    .doing("rm -f ../broken/.git"),
    case(
        "this repository is bare: it has no worktree",
        "git clone -q --bare . ../bare.git",
        "oxundo checkpoint -m here",
        "cd ../worktree; oxundo checkpoint --list | grep here",
    )
    .at("cd ../bare.git; "),
    case("'…' is in a git directory", "", "oxundo undo", "! test -e two").at("cd .git; "),
    case(
        "this repository keeps its refs in the reftable format, for which oxundo needs git ….…; this is git …",
        "git init -q --ref-format=reftable ../t || exit 77; cd ../t; identify; mkdir ../old
         printf '#!/bin/sh\\n[ \"$1\" = --version ] && echo git version 2.45.2 && exit\\nexec %s \"$@\"\\n' \"$(command -v git)\" >../old/git
         chmod +x ../old/git",
        "oxundo run -- touch x",
        "test -e ../t/x",
    )
    .at("export PATH=$PWD/../old:$PATH; cd ../t; ")
    .doing("rm ../old/git"),
    case("there is no place for a store: HOME is not set", PLAIN, "oxundo run -- touch x", "test -e ../plain/x")
        .at("unset HOME; cd ../plain; "),
    none("'…' has no store", PLAIN, "oxundo gc --stores --remove ../plain"),
    none("there is no page '…'", "", "oxundo man nope"),
    // no_identity
    case(
        "no name and e-mail address for commits is configured",
        "git config --remove-section user; git config user.useConfigOnly true",
        "oxundo run -- sh -c 'echo 3 >three'",
        "test -e three",
    ),
    case(
        "no name and e-mail address for commits is configured",
        "git config --remove-section user; git config user.useConfigOnly true",
        "oxundo squash",
        "test \"$(git rev-list --count HEAD)\" = 2",
    ),
    // corrupt
    case(
        "the timeline in … cannot be read: …",
        "git update-ref -d refs/oxundo/timeline",
        "oxundo undo",
        "! test -e two",
    ),
    case(
        "the journal of an interrupted command cannot be read: …",
        "git update-ref refs/oxundo/pending HEAD",
        "oxundo undo",
        "! test -e two",
    ),
    case(
        "'…' is a link: oxundo makes none there, and follows none",
        "mv .git/oxundo ../home/oxundo; ln -s ../../home/oxundo .git/oxundo",
        "oxundo undo",
        "! test -e two",
    ),
    none(
        "something that git keeps is missing or damaged: …",
        "rm .git/objects/$(git rev-parse HEAD~1^{tree} | sed 's|^..|&/|')",
        "oxundo undo",
    ),
    // io
    case(
        "cannot record the turn: '…' was moved away, removed or made anew meanwhile",
        "",
        "oxundo run -- sh -c 'mv .git ../gone; echo 3 >three'",
        "oxundo log | grep 3",
    )
    .doing("mv ../gone .git"),
    case("cannot …: …", "chmod 500 .git", "oxundo undo", "! test -e two")
        .of_nobody("")
        .doing("chmod 700 .git"),
    case("… is …: nothing may change it", "chattr +i two || exit 77", "oxundo undo", "! test -e two"),
    case(
        "… is another user's, and only they may remove what is theirs from …",
        DIRECTORY,
        "oxundo undo",
        "grep 1 d/x",
    )
    .of_nobody("chmod 1777 d; chmod 666 d/x; chown root d d/x")
    .doing("chown 65534 d d/x"),
    case("… is another user's, and nothing in it may be changed", DIRECTORY, "oxundo undo", "grep 1 d/x")
        .of_nobody("chown root d; chmod 755 d")
        .doing("chown 65534 d"),
    case("… is another user's, who alone can change its mode", DIRECTORY, "oxundo undo", "grep 1 d/x")
        .of_nobody("chown root g")
        .doing("chown 65534 g"),
    case(
        "… is another user's now, and cannot be read",
        "echo 1 >g; git add -A; git commit -qm g; turn 'echo 2 >g; chmod 600 g'",
        "oxundo undo",
        "grep 1 g",
    )
    .of_nobody("chown root g")
    .doing("chown 65534 g"),
    case(
        "… is another user's directory, and only who may write to it can move it",
        "git config --add oxundo.skipDir nm; mkdir -p node_modules/a; ghost 'mv node_modules nm; chmod 755 nm; echo 3 >three'",
        "oxundo undo",
        "! test -e nm",
    )
    .of_nobody("chown root nm")
    .doing("chown 65534 nm"),
    case(
        "git …: …",
        "seq 9 >g; git add g; git commit -qm g; ghost 'sed -i s/1/one/ g'; sed -i s/9/nine/ g; mkdir ../old
         printf '#!/bin/sh\ncase \"$*\" in *merge-file*) echo broken >&2; exit 255;; esac; exec %s \"$@\"\n' \"$(command -v git)\" >../old/git
         chmod +x ../old/git",
        "oxundo undo",
        "grep 1 g && grep nine g",
    )
    .at("export PATH=$PWD/../old:$PATH; ")
    .doing("rm -f ../old/git"),
    case(
        "the repository at '…' cannot be opened: …",
        "cp .git/config ../home/config; git config core.repositoryformatversion 99",
        "oxundo undo",
        "! test -e two",
    )
    .doing("cp ../home/config .git/config"),
    case(
        "the repository at '…' is unsafe: not all of it is yours",
        "git clone -q . ../theirs; chown 12345 ../theirs 2>/dev/null || exit 77",
        "oxundo status",
        "cd ../theirs; oxundo status",
    )
    .at("cd ../theirs; "),
    case(
        "cannot sign the commit: …",
        "git config commit.gpgSign true; git config gpg.program false",
        "oxundo undo --revert",
        "! test -e two",
    ),
    case(
        "git does not use the bare repository '…' here (safe.bareRepository)",
        "mkdir -p sub; git clone -q --bare . sub/inner; git --git-dir=sub/inner config core.bare false
         git --git-dir=sub/inner config core.worktree .; git config --global safe.bareRepository explicit",
        "oxundo status",
        "cd sub/inner; oxundo status",
    )
    .at("cd sub/inner; "),
];

/// The refusals that no line of a shell's provokes, and where they are provoked, or why nobody meets them.
pub(super) const ELSEWHERE: &[(&str, &str)] = &[
    ("… was not there then", "on a terminal alone: screen.rs"),
    ("HEAD is not where turn … left it", "`branch` goes another way then, and says nothing"),
    ("'…' was moved by something else meanwhile", "another program has to act in one instant: saves.rs"),
    ("git has begun or ended a merge, or the like, meanwhile", "another program has to act in one instant: torn.rs"),
    ("'oxundo mcp' is for agents to start, and here is a terminal", "on a terminal alone: mcp.rs"),
    ("'…' cannot be called with that: …", "a client's: mcp.rs"),
    ("another session is at work in turn …: …", "a client's: mcp.rs"),
    ("oxundo.mcp is 'off' here", "a client's: mcp.rs"),
    ("oxundo.mcp is 'read': an agent can plan, and the user applies", "a client's: mcp.rs"),
    ("turn … (…) is …, and out of an agent's reach", "a client's: mcp.rs"),
    ("oxundo.… changed what it was asked about", "another program acts while it is asked: side_effects.rs"),
    ("oxundo.… refused: …", "what would lead on, the command says: side_effects.rs"),
    ("… was changed meanwhile", "another program has to act in one instant: saves.rs"),
    ("something has changed since this … was planned", "the library's: library.rs"),
    ("… changed since you were asked", "while git asks: hunks.rs"),
    ("oxundo.enabled is false: nothing is recorded", "the library's: enabled.rs"),
    ("… has no paths: it goes as a whole", "the library's: library.rs"),
    ("this goes as a whole: there are no hunks to choose", "the library's: `-p` takes no such request"),
    ("what was edited of … fits no part of it", "on a terminal alone: hunks.rs"),
    ("'oxundo acp' is for editors to start, and here is a terminal", "on a terminal alone: acp.rs"),
    ("there is no method '_oxundo/…'", "an editor's: acp.rs"),
    ("'_oxundo/…' cannot be asked for like that: …", "an editor's: acp.rs"),
    ("no session with this 'sessionId' is open here", "an editor's: acp.rs"),
    ("plan '…' is for …, and not for …", "an editor's: acp.rs"),
    ("no answer came from oxundo itself: …", "its own program has to be gone: acp.rs"),
    ("the turn did not begin", "the library's: library.rs"),
    ("there is no home directory", "init says it of the file that it leaves, and goes on: init.rs"),
    ("a tool call is in flight in turn …: … (…)", "an agent's process has to be at work: living.rs waits, and aborts"),
    ("nothing was chosen", "on a terminal alone: init.rs"),
    (
        "this repository keeps its refs in the '…' format, which oxundo cannot read",
        "no git has a third format: repositories.rs",
    ),
    ("git cannot read …", "tables have to be torn: tables.rs types 'oxundo doctor --fix'"),
    (
        "… is the journal of a command that was interrupted in another git directory",
        "a command has to be killed: hostile.rs types 'oxundo doctor --finish'",
    ),
    ("a tree has more than … levels of directories", "somebody has to forge it: hostile.rs"),
    ("oxundo's records name …, which no turn can have changed", "somebody has to forge it: hostile.rs"),
    (
        "something is mounted at …, and what is there would be deleted",
        "a directory has to be mounted: kept_aside.rs unmounts it",
    ),
    (
        "… is open in another program, and it would be copied to another file system",
        "two file systems: kept_aside.rs closes it",
    ),
    ("something is mounted at …: nothing can take its place", "a file has to be mounted: foreseen.rs unmounts it"),
    (
        "there is not enough space: … are to be written, and … are free",
        "a full disk: foreseen.rs frees some and goes on",
    ),
    (
        "cannot look for what a power cut may have left: '…' cannot be read: …",
        "the system has to be started anew: reboot.rs mounts it and goes on",
    ),
    (
        "of what was done between turn … and turn … there is no record any more",
        "more than fifty turns: gc.rs types 'oxundo branch'",
    ),
    ("interrupted: nothing is changed", "a signal has to come: signals.rs"),
    (
        "… is done, and the next command finishes what is left of it: …",
        "a disk has to fail at the end: moved_whole.rs types 'oxundo status'",
    ),
    (
        "the next command finishes …, or takes back what is done of it: …",
        "a disk has to fail while somebody looks whether it is done",
    ),
];
