//! `run; undo` gives exactly the state before, `redo` exactly the state after, and again, whatever
//! the turn did and wherever it began.
//!
//! A new case is one line in [`CASES`].

use crate::form::is_thorough;
use crate::sandbox::{Mode, Sandbox, State, check_all};

/// What a case needs to make sense.
mod need {
    /// A commit below HEAD, and one below that.
    pub(super) const HISTORY: u8 = 1;
    /// HEAD on a branch.
    pub(super) const BRANCH: u8 = 2;
    /// The user's uncommitted work, untracked files among it.
    pub(super) const WORK: u8 = 4;
    /// A tree without uncommitted work.
    pub(super) const CLEAN: u8 = 8;
    /// The reflog of the stash, which `git reflog expire --expire=now --all` empties.
    pub(super) const STASH: u8 = 16;
    /// No auto-commit of all that is tracked: the turn moved HEAD or the index and left the files as they were, or brought what is the user's.
    pub(super) const LOOSE: u8 = 32;
}
use need::{BRANCH, CLEAN, HISTORY, LOOSE, STASH, WORK};

/// What an agent does in a turn.
struct Case {
    needs: u8,
    name: &'static str,
    script: &'static str,
}

const fn case(name: &'static str, script: &'static str) -> Case {
    Case { needs: 0, name, script }
}

const fn case_with(needs: u8, name: &'static str, script: &'static str) -> Case {
    Case { needs, name, script }
}

/// Where a turn begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// Nothing uncommitted.
    Clean,
    /// Staged, unstaged, both, untracked, and with every flag of the index.
    Work,
    /// No commit yet, and work as above.
    Unborn,
    /// No branch, and work as above.
    Detached,
    /// In a directory below the root, and work as above.
    Subdirectory,
    /// In a linked worktree, nothing uncommitted.
    Linked,
    /// Refs in tables, and work as above.
    Tables,
    /// In a linked worktree, refs in tables, nothing uncommitted.
    LinkedTables,
}

/// A conflict in the making: a branch that changed the same line.
macro_rules! conflict {
    ($script:literal) => {
        concat!(
            "git checkout -q -b theirs; echo theirs >a.txt; git commit -qm theirs a.txt; git checkout -q -; ",
            "echo ours >a.txt; git commit -qm ours a.txt; ",
            $script
        )
    };
}

const CASES: &[Case] = &[
    // Edits
    case("edit", "echo more >>a.txt"),
    case("edit several", "echo more >>a.txt; echo more >>b.txt; echo more >>dir/x.txt; echo more >>dir/deep/y.txt"),
    case("edit to the same size", "printf 'ONE\\n' >b.txt"),
    // git counts whole seconds, and nobody can set the time at which a file was changed.
    case(
        "edit keeping size and time",
        "sleep 1.1; touch -r b.txt ../home/t; printf 'ONE\\n' >b.txt; touch -r ../home/t b.txt",
    ),
    case("edit by replacing the file", "sed -i s/two/2/ a.txt"),
    case("edit without a last newline", "printf 'no newline' >>a.txt"),
    case("edit to CRLF and a BOM", "printf '\\357\\273\\277one\\r\\ntwo\\tend' >a.txt"),
    case("empty a file", ": >a.txt"),
    case("fill an empty file", "echo full >empty.txt"),
    case("edit a binary", "printf 'corrupted' >bin.dat"),
    case("make a text binary", "printf '\\000\\001\\377' >a.txt"),
    case("delete and make again", "rm a.txt; echo again >a.txt; echo new >new.txt"),
    case("edit a 0600 file", "echo more >>private.txt"),
    case("edit a 0444 file", "chmod u+w read-only.txt; echo more >>read-only.txt; chmod 444 read-only.txt"),
    // New files
    case("new file", "echo new >new.txt"),
    case("new empty file", ": >new.txt"),
    case("new binary", "printf '\\211PNG' >image.png"),
    case("new executable", "echo new >new.sh; chmod 755 new.sh"),
    case("new 0600 file", "(umask 077; echo new >new.txt)"),
    case("new file in a new directory", "mkdir made; echo new >made/file.txt"),
    case("new file in an empty directory", "echo new >hollow/file.txt; echo new >e1/e2/file.txt"),
    case(
        "new deep directories",
        "p=d; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do p=$p/d$i; done; mkdir -p $p; echo leaf >$p/leaf.txt",
    ),
    case("new large file", "dd if=/dev/zero of=large.bin bs=1024 count=1024 2>/dev/null"),
    case("new file over the size limit", "dd if=/dev/zero of=huge.bin bs=1024 count=11264 2>/dev/null"),
    case(
        "new node_modules",
        "mkdir -p node_modules/p/lib; echo 1 >node_modules/p/index.js; echo 2 >node_modules/p/lib/x.js",
    ),
    case("new directory with 300 files", "mkdir many; for i in $(seq 300); do echo $i >many/f$i; done"),
    case("new secrets", "echo k >.env; echo k >server.pem; mkdir keys; echo k >keys/id_rsa; chmod 600 keys/id_rsa"),
    // Deletions
    case("delete", "rm a.txt"),
    case("delete a directory", "rm -r dir"),
    case("delete a file, keep its directory", "rm dir/deep/y.txt"),
    case("delete a 0600 file", "rm private.txt"),
    case("delete every tracked file", "git ls-files -z | xargs -0 rm -f --"),
    case("delete everything", "git ls-files -z -co --exclude-standard | xargs -0 rm -f --; rm -rf dir odd hollow e1"),
    // Renames
    case("rename", "mv a.txt renamed.txt"),
    case("rename and edit", "mkdir moved; mv a.txt moved/a2.txt; echo more >>moved/a2.txt"),
    case("rename by git", "git mv -f a.txt renamed.txt"),
    case("rename a directory", "mv dir dir2"),
    case("rename to another case", "mv a.txt A.TXT"),
    case("swap two files", "mv a.txt t; mv b.txt a.txt; mv t b.txt"),
    case("rename over another file", "mv a.txt b.txt"),
    // Modes
    case("set the exec bit", "chmod +x a.txt"),
    case("clear the exec bit", "chmod -x run.sh"),
    case("set the exec bit and edit", "chmod +x a.txt; echo more >>a.txt"),
    case("make a file private", "chmod 600 a.txt"),
    case("make a private file public", "chmod 644 private.txt"),
    case("make a file read-only", "chmod 444 a.txt; chmod 400 b.txt"),
    case("odd modes", "chmod 640 a.txt; chmod 764 b.txt; chmod 711 run.sh"),
    // Symlinks
    case("new symlinks", "ln -s a.txt l1; ln -s dir l2; ln -s nowhere l3; ln -s l4 l4; ln -s \"$PWD/a.txt\" l5"),
    case("retarget a symlink", "ln -sfn b.txt link; ln -sfn odd dirlink; ln -sfn elsewhere dangling"),
    case("delete symlinks", "rm link dirlink dangling"),
    case("symlink becomes file", "rm link; echo file >link"),
    case("file becomes symlink", "rm a.txt; ln -s b.txt a.txt"),
    case("symlink to a directory becomes the directory", "rm dirlink; mkdir dirlink; echo new >dirlink/x.txt"),
    case("directory becomes symlink", "mv dir dir2; ln -s dir2 dir"),
    case("directory becomes dangling symlink", "rm -r dir; ln -s nowhere dir"),
    case("directory becomes symlink elsewhere", "rm -r dir; ln -s ../home dir"),
    case("symlink becomes directory with the target's files", "rm dirlink; cp -r dir dirlink"),
    // Files and directories
    case("file becomes directory", "rm a.txt; mkdir a.txt; echo new >a.txt/y.txt"),
    case("file becomes empty directory", "rm a.txt; mkdir a.txt"),
    case("directory becomes file", "rm -r dir; echo file >dir"),
    case("deep directory becomes file", "rm -r dir/deep; echo file >dir/deep"),
    case("file and directory swap", "mv a.txt t; mv dir a.txt; mv t dir"),
    case("empty directory becomes file", "rmdir hollow; echo file >hollow"),
    case("empty directory becomes symlink", "rmdir hollow; ln -s dir hollow"),
    case("only make an empty directory", "mkdir void"),
    case("make nested empty directories", "mkdir -p v1/v2/v3 v1/w dir/void"),
    case("only remove an empty directory", "rmdir hollow"),
    case("remove nested empty directories", "rm -r e1"),
    case("move an empty directory", "mv e1 dir/e1"),
    case("leave a directory empty", "rm dir/deep/y.txt dir/x.txt"),
    // Names
    case("edit every odd name", "for f in odd/* odd/.[!.]*; do echo more >>\"$f\"; done"),
    case("delete every odd name", "rm -r odd"),
    case("rename every odd name", "for f in odd/*; do mv \"$f\" \"$f~\"; done"),
    case("make every odd name executable", "chmod +x odd/*"),
    case("copy every odd name to the top", "for f in odd/*; do cp \"$f\" \"./${f#odd/}\"; done"),
    case(
        "new directory of every odd name",
        "for f in odd/*; do mkdir -p \"made/${f#odd/}\"; echo new >\"made/${f#odd/}/in\"; done",
    ),
    case("link every odd name", "for f in odd/*; do ln -s \"$f\" \"./${f#odd/}\"; done"),
    case(
        "odd names by git",
        "for f in odd/*; do git mv -f \"$f\" \"./${f#odd/}\"; done; git add -A; git commit -qm odd",
    ),
    case("edit two names in other scripts", "echo more >>odd/文件.txt; echo more >>odd/файл.txt"),
    case(
        "new name that is no UTF-8",
        "n=$(printf 'n\\303\\050\\377'); echo new >\"$n\"; mkdir \"dir/$n\"; echo new >\"dir/$n/$n\"; ln -s \"$n\" link2",
    ),
    case("new name of 255 bytes", "n=$(printf '%0255d' 0); echo new >$n; mkdir dir/$n; echo new >dir/$n/$n"),
    case(
        "new names that git uses",
        "mkdir refs; echo x >HEAD; echo x >refs/heads; echo x >dir/HEAD; echo x >.gitkeep; echo x >git",
    ),
    // Tracked though ignored
    case("edit a tracked but ignored file", "echo more >>kept.log"),
    case("delete a tracked but ignored file", "rm kept.log"),
    case("uncache a tracked but ignored file", "git rm -q --cached kept.log"),
    // The agent commits
    case("commit once", "echo more >>a.txt; git add a.txt; git commit -qm one a.txt"),
    case(
        "commit many",
        "for i in 1 2 3 4 5; do echo $i >>a.txt; echo $i >n$i; git add n$i; git commit -qm c$i a.txt n$i; done",
    ),
    case(
        "commit some, leave some",
        "echo 1 >>a.txt; git commit -qm one a.txt; echo 2 >>a.txt; echo 2 >>b.txt; echo n >new.txt",
    ),
    case("commit everything", "echo more >>a.txt; echo new >new.txt; rm b.txt; git add -A; git commit -qm all"),
    case("commit nothing", "git commit -q --allow-empty -m nothing"),
    case(
        "commit, then take it back in the worktree",
        "cp a.txt ../home/a; echo more >>a.txt; git commit -qm one a.txt; cp ../home/a a.txt",
    ),
    case(
        "commit a deletion and make the file again",
        "cp a.txt ../home/a; git rm -qf a.txt; git commit -qm gone; cp ../home/a a.txt",
    ),
    case("commit as somebody else", "echo more >>a.txt; git -c user.name=Bot -c user.email=b@x commit -qm one a.txt"),
    case_with(HISTORY, "amend the user's commit", "echo more >>a.txt; git commit -q --amend -am amended"),
    case_with(HISTORY, "amend the user's message", "git commit -q --amend --only -m reworded"),
    case_with(HISTORY, "squash the user's commits", "git reset -q --soft HEAD~1; git commit -q --amend -m squashed"),
    case_with(HISTORY | CLEAN, "cherry-pick", "git cherry-pick other >/dev/null"),
    case_with(HISTORY | CLEAN, "revert", "git revert --no-edit HEAD >/dev/null"),
    case_with(
        HISTORY,
        "commit, then commit away",
        "echo 1 >>b.txt; git commit -qm one b.txt; git reset -q --soft HEAD~1; echo 2 >>b.txt; git commit -qam two",
    ),
    // The index
    case("stage", "echo more >>a.txt; git add a.txt"),
    case("stage a new file", "echo new >new.txt; git add new.txt"),
    case("stage, then edit", "echo 1 >>a.txt; git add a.txt; echo 2 >>a.txt"),
    case_with(
        LOOSE,
        "stage, then take it back in the worktree",
        "cp b.txt ../home/b; echo 1 >>b.txt; git add b.txt; cp ../home/b b.txt",
    ),
    case("stage everything", "echo more >>a.txt; echo new >new.txt; git add -A"),
    case_with(
        LOOSE,
        "stage a blob without a file",
        "id=$(echo ghost | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$id,phantom.txt",
    ),
    case_with(WORK, "stage the user's work", "echo more >>b.txt; git add -A"),
    case_with(WORK, "stage the user's untracked files", "git add untracked.txt udir"),
    case_with(HISTORY, "unstage", "echo more >>b.txt; git reset -q"),
    case("rm --cached", "git rm -qf --cached a.txt"),
    case("rm --cached, then edit", "git rm -qf --cached a.txt; echo more >>a.txt"),
    case("rm --cached everything", "git rm -rqf --cached ."),
    case("rm", "git rm -qf a.txt dir/x.txt"),
    case("add -N", "echo new >new.txt; git add -N new.txt"),
    case("add -N an empty file", ": >new.txt; git add -N new.txt"),
    case_with(LOOSE, "update-index --chmod", "git update-index --chmod=+x a.txt"),
    case("set skip-worktree and edit", "git update-index --skip-worktree b.txt; echo more >>b.txt"),
    case("set assume-unchanged and edit", "git update-index --assume-unchanged b.txt; echo more >>b.txt"),
    case("set skip-worktree and delete", "git update-index --skip-worktree b.txt; rm b.txt"),
    case("only set flags", "git update-index --skip-worktree b.txt; git update-index --assume-unchanged a.txt"),
    case_with(
        WORK,
        "clear flags",
        "git update-index --no-skip-worktree skipped.txt skipped-gone.txt; git update-index --no-assume-unchanged assumed.txt",
    ),
    case_with(
        WORK,
        "edit files with flags",
        "echo more >>skipped.txt; echo more >>assumed.txt; echo back >skipped-gone.txt",
    ),
    case_with(WORK, "delete files with flags", "rm skipped.txt assumed.txt"),
    case("write the index anew", "rm \"$(git rev-parse --git-path index)\"; git add -A"),
    // The user's untracked files
    case_with(WORK, "edit untracked files", "echo more >>untracked.txt; echo more >>udir/one; printf x >>ubin"),
    case_with(WORK, "delete untracked files", "rm -r untracked.txt udir ulink ubin uempty"),
    case_with(WORK, "rename untracked files", "mv untracked.txt u2.txt; mv udir udir2"),
    case_with(WORK, "untracked modes", "chmod 644 uprivate; chmod 600 untracked.txt; chmod -x uexec"),
    case_with(WORK, "delete an untracked 0600 file", "rm uprivate"),
    case_with(
        WORK,
        "untracked file becomes directory",
        "rm untracked.txt; mkdir untracked.txt; echo new >untracked.txt/in",
    ),
    case_with(WORK, "untracked directory becomes file", "rm -r udir; echo file >udir"),
    case_with(WORK, "untracked directory becomes symlink", "rm -r udir; ln -s dir udir"),
    case_with(WORK, "untracked symlink becomes file", "rm ulink; echo file >ulink"),
    case_with(WORK, "untracked symlink becomes directory", "rm ulink; mkdir ulink; echo in >ulink/in"),
    case_with(WORK, "retarget an untracked symlink", "ln -sfn a.txt ulink"),
    case_with(WORK, "untracked file replaces a tracked one", "mv untracked.txt a.txt"),
    case_with(WORK, "tracked file goes into an untracked directory", "mv a.txt udir/a.txt"),
    case_with(WORK, "commit untracked files", "git add untracked.txt udir; git commit -qm theirs untracked.txt udir"),
    case_with(WORK, "add -N an untracked file", "git add -N untracked.txt"),
    case_with(
        WORK,
        "edit the user's work",
        "for f in staged unstaged mixed fresh fresh-edited ita moved-to kept-gone chmodded; do echo more >>$f.txt; done",
    ),
    case_with(
        WORK,
        "delete the user's work",
        "rm staged.txt unstaged.txt mixed.txt fresh.txt fresh-edited.txt ita.txt moved-to.txt",
    ),
    case_with(
        WORK,
        "make what the user deleted",
        "echo back >staged-gone.txt; echo back >unstaged-gone.txt; echo back >moved-from.txt",
    ),
    // What destroys work
    case_with(HISTORY, "reset --hard", "echo more >>a.txt; echo new >new.txt; git reset -q --hard"),
    case_with(HISTORY, "reset --hard HEAD~1", "git reset -q --hard HEAD~1"),
    case_with(
        HISTORY,
        "reset --hard HEAD~1, then commit",
        "git reset -q --hard HEAD~1; echo other >>a.txt; git commit -qam instead",
    ),
    case_with(HISTORY | LOOSE, "reset HEAD~1", "git reset -q HEAD~1"),
    case_with(HISTORY | LOOSE, "reset --soft HEAD~1", "git reset -q --soft HEAD~1"),
    case_with(
        HISTORY,
        "checkout of everything",
        "echo more >>a.txt; rm b.txt; git checkout -qf HEAD -- .; echo new >new.txt",
    ),
    case_with(WORK, "clean -fd", "git clean -fdq"),
    case_with(WORK, "clean -fd and edit", "git clean -fdq; echo more >>a.txt; echo new >new.txt"),
    case_with(WORK | HISTORY, "reset --hard and clean -fd", "git reset -q --hard; git clean -fdq"),
    case_with(WORK, "checkout -- .", "git checkout -q -- . ; echo more >>b.txt"),
    // The stash
    case_with(
        HISTORY | STASH,
        "stash push",
        "[ ! -e ita.txt ] || git add ita.txt; echo more >>a.txt; git stash push -q",
    ),
    case_with(
        HISTORY | STASH,
        "stash push -u",
        "[ ! -e ita.txt ] || git add ita.txt; echo more >>a.txt; echo new >new.txt; git stash push -qu",
    ),
    case_with(
        HISTORY | STASH,
        "stash push and pop",
        "[ ! -e ita.txt ] || git add ita.txt; echo more >>a.txt; git stash push -q; git stash pop -q --index; echo new >new.txt",
    ),
    case_with(HISTORY | STASH | LOOSE, "stash pop", "[ ! -e ita.txt ] || git add ita.txt; git stash pop -q"),
    case_with(
        HISTORY | STASH | LOOSE,
        "stash pop with untracked files",
        "[ ! -e ita.txt ] || git add ita.txt; git stash pop -q stash@{1}",
    ),
    case_with(HISTORY | STASH, "stash drop", "git stash drop -q"),
    case_with(HISTORY | STASH, "stash drop in the middle", "git stash drop -q stash@{1}; echo more >>a.txt"),
    case_with(HISTORY | STASH, "stash clear", "git stash clear"),
    case_with(
        HISTORY | STASH,
        "stash clear, then push",
        "[ ! -e ita.txt ] || git add ita.txt; git stash clear; echo more >>b.txt; git stash push -q -m mine",
    ),
    case_with(HISTORY, "stash apply", "[ ! -e ita.txt ] || git add ita.txt; git stash apply -q"),
    // Branches
    case_with(HISTORY, "switch to a branch", "rm -f kept-gone.txt; git checkout -q other"),
    case_with(
        HISTORY,
        "switch to a branch and work",
        "rm -f kept-gone.txt; git checkout -q other; echo more >>b.txt; echo new >new.txt",
    ),
    case_with(
        HISTORY,
        "switch to a branch and commit",
        "rm -f kept-gone.txt; git checkout -q other; echo more >>other.txt; git commit -qm there other.txt; echo more >>b.txt",
    ),
    case_with(
        HISTORY,
        "work, commit, and switch away",
        "rm -f kept-gone.txt; echo more >>b.txt; git commit -qm here b.txt; git checkout -q other",
    ),
    case_with(
        HISTORY | BRANCH,
        "switch there and back",
        "rm -f kept-gone.txt; git checkout -q other; git checkout -q main; echo more >>b.txt",
    ),
    case_with(HISTORY, "create a branch", "git branch made"),
    case_with(HISTORY, "create a branch in the past", "git branch made HEAD~1; echo more >>a.txt"),
    case_with(HISTORY, "create a branch and switch", "git checkout -q -b made"),
    case_with(
        HISTORY,
        "create a branch and commit",
        "git checkout -q -b made; echo more >>a.txt; git commit -qm made a.txt",
    ),
    case_with(HISTORY, "create nested branches", "git branch made/one; git branch made/two/three; echo more >>a.txt"),
    case_with(HISTORY, "delete a branch", "git branch -qD spare"),
    case_with(HISTORY, "delete a branch for a nested one", "git branch -qD spare; git branch spare/nested"),
    case_with(HISTORY, "move a branch", "git branch -f spare ':/^base'"),
    case_with(HISTORY, "rename a branch", "git branch -m spare renamed"),
    case_with(HISTORY | BRANCH, "rename the branch of HEAD", "git branch -m main trunk"),
    case_with(
        HISTORY | BRANCH,
        "rename the branch of HEAD and commit",
        "git branch -m main trunk; echo more >>a.txt; git commit -qam trunk",
    ),
    case_with(HISTORY | LOOSE, "switch to an orphan branch", "git checkout -q --orphan fresh-start"),
    case_with(HISTORY | BRANCH, "detach HEAD", "git checkout -q --detach"),
    case_with(
        HISTORY | BRANCH,
        "detach HEAD and commit",
        "git checkout -q --detach; echo more >>b.txt; git commit -qm loose b.txt",
    ),
    // Operations of git's
    case_with(HISTORY | CLEAN | LOOSE, "leave a merge", conflict!("git merge -q theirs >/dev/null || :")),
    case_with(
        HISTORY | CLEAN | LOOSE,
        "leave a rebase",
        conflict!("git checkout -q -b ours; git rebase -q theirs >/dev/null 2>&1 || :; echo new >new.txt"),
    ),
    case_with(
        HISTORY | CLEAN | LOOSE,
        "leave a rebase by patches",
        conflict!("git checkout -q -b ours; git rebase -q --apply theirs >/dev/null 2>&1 || :"),
    ),
    case_with(
        HISTORY | CLEAN | LOOSE,
        "leave a cherry-pick",
        conflict!("git cherry-pick theirs other >/dev/null 2>&1 || :"),
    ),
    case_with(
        HISTORY | CLEAN | LOOSE,
        "leave a revert",
        conflict!("echo more >a.txt; git commit -qam more; git revert --no-edit HEAD~1 >/dev/null 2>&1 || :"),
    ),
    case_with(
        HISTORY | CLEAN | LOOSE,
        "leave a bisect",
        "git bisect start >/dev/null; git bisect bad >/dev/null; echo new >new.txt",
    ),
    case_with(
        HISTORY | CLEAN,
        "end a merge",
        conflict!("git merge -q theirs >/dev/null || :; git merge --abort; echo new >new.txt"),
    ),
    case_with(HISTORY | CLEAN, "go into the past", "git checkout -q --detach HEAD~1"),
    // Ignore rules
    case("loosen .gitignore", ": >.gitignore"),
    case("remove .gitignore", "rm .gitignore"),
    case("loosen .gitignore by a negation", "echo '!secret.env' >>.gitignore; echo new >new.txt"),
    case("loosen .gitignore and stage all", ": >.gitignore; git add -A"),
    case("loosen .gitignore and commit all", ": >.gitignore; git add -A; git commit -qm loose"),
    case("tighten .gitignore", "echo 'hidden*' >>.gitignore; echo x >hidden.txt; echo x >seen.txt"),
    case("tighten .gitignore to everything", "echo '*' >.gitignore; echo x >new.txt; echo more >>a.txt"),
    case("hide a new directory", "echo made/ >>.gitignore; mkdir -p made/deep; echo x >made/deep/f; mkdir made/void"),
    case("hide a tracked file and edit it", "echo a.txt >>.gitignore; echo more >>a.txt"),
    case("hide a tracked file and delete it", "echo a.txt >>.gitignore; rm a.txt"),
    case("hide by a new .gitignore", "printf '*\\n' >dir/.gitignore; echo x >dir/new.txt"),
    case(
        "hide by info/exclude",
        "f=$(git rev-parse --git-path info/exclude); mkdir -p \"$(dirname \"$f\")\"; echo hidden.txt >>\"$f\"; echo x >hidden.txt",
    ),
    case(
        "commit a tighter .gitignore",
        "echo 'hidden*' >>.gitignore; echo x >hidden.txt; git add .gitignore; git commit -qm ignore .gitignore",
    ),
    case_with(
        WORK,
        "hide the user's untracked file and edit it",
        "echo untracked.txt >>.gitignore; echo more >>untracked.txt",
    ),
    case_with(
        WORK,
        "hide the user's untracked file and delete it",
        "echo 'u*' >>.gitignore; rm untracked.txt udir/one",
    ),
    case("swap ignored and not", "printf '*.txt\\n' >.gitignore; echo x >new.txt; echo more >>b.txt"),
    // Attributes
    case(
        "new attributes and CRLF",
        "printf '*.crlf text eol=crlf\\n*.auto text=auto\\n' >.gitattributes; printf 'a\\r\\nb\\r\\n' >x.crlf; printf 'a\\nb\\n' >y.crlf; printf 'a\\r\\nb\\n' >z.auto",
    ),
    case(
        "new attributes for old files",
        "printf '*.txt text eol=crlf\\n' >.gitattributes; printf 'a\\r\\nb\\n' >a.txt",
    ),
    case("new ident", "printf '*.id ident\\n' >.gitattributes; printf '$Id$\\n' >x.id; printf '$Id: old $\\n' >y.id"),
];

/// Names that some tool once got wrong; under `odd/`.
const ODD_NAMES: &[&[u8]] = &[
    b"sp ace.txt",
    b" lead",
    b"trail ",
    b"quo\"te",
    b"apo'strophe",
    b"tab\there",
    b"new\nline",
    b"cr\rhere",
    b"back\\slash",
    b"-dash",
    b"--help",
    b":x",
    b":(top)y",
    b"!bang",
    b"#hash",
    b"glob*",
    b"glob?",
    b"[ab]",
    b"{a,b}",
    b"$dollar",
    b"`tick`",
    b"a;b&c|d",
    b"%s%n",
    b"~tilde",
    b"a..b",
    b"@{0}",
    b"ctrl\x01\x1b[31m",
    b"del\x7f",
    b".hidden",
    b"latin\xe9",
    b"bad\xff\xfe",
    "文件.txt".as_bytes(),
    "файл.txt".as_bytes(),
    "café.txt".as_bytes(),
    "cafe\u{301}.txt".as_bytes(),
    "🚀rocket".as_bytes(),
    "bom\u{feff}".as_bytes(),
];

impl Start {
    /// Those that differ from the others in where a turn begins.
    const ELSEWHERE: [Self; 4] = [Self::Unborn, Self::Detached, Self::Subdirectory, Self::Linked];

    /// A repository in which every case of the table has what it needs.
    fn sandbox(self) -> Sandbox {
        let mut repo = if self.is_in_tables() {
            let repo = Sandbox::init(&["--ref-format=reftable"]);
            repo.identify();
            repo
        } else {
            Sandbox::unborn()
        };
        for (path, content) in [
            ("a.txt", "one\ntwo\nthree\n"),
            ("b.txt", "one\n"),
            ("dir/x.txt", "x\n"),
            ("dir/deep/y.txt", "y\n"),
            ("sub/here.txt", "here\n"),
            ("run.sh", "true\n"),
            ("empty.txt", ""),
            ("private.txt", "private\n"),
            ("read-only.txt", "read\n"),
            ("kept.log", "tracked though ignored\n"),
            (".gitignore", "*.log\nignored/\nsecret.env\n"),
            ("ignored/cache", "cache\n"),
            ("build.log", "log\n"),
            ("secret.env", "the only copy\n"),
        ] {
            repo.write(path, content);
        }
        for name in
            "staged unstaged mixed staged-gone unstaged-gone kept-gone moved-from chmodded skipped skipped-gone \
                     assumed stashed"
                .split(' ')
        {
            repo.write(format!("{name}.txt"), format!("{name}\n"));
        }
        for name in ODD_NAMES {
            repo.write([b"odd/", *name].concat(), [*name, b"\n"].concat());
        }
        repo.write("bin.dat", (0..=255).cycle().take(1024).collect::<Vec<u8>>());
        repo.chmod("run.sh", 0o755).chmod("private.txt", 0o600).chmod("read-only.txt", 0o444);
        repo.link("link", "a.txt").link("dirlink", "dir").link("dangling", "nowhere");
        repo.sh("git add -A; git add -f kept.log");
        // What is secret is not committed, which is another test's matter.
        repo.git(["config", "oxundo.secret", "!secret.env"]);
        if self != Self::Unborn {
            repo.sh(HISTORY_SCRIPT);
        }
        repo.sh("mkdir -p hollow e1/e2/e3");
        match self {
            Self::Clean => {}
            Self::Linked | Self::LinkedTables => {
                // What git does not track is not in a new worktree.
                let linked = repo.linked("linked");
                linked.sh("mkdir -p hollow e1/e2/e3 ignored; echo log >build.log; echo only >secret.env; chmod 600 private.txt");
                return linked;
            }
            Self::Work | Self::Unborn | Self::Subdirectory | Self::Tables => drop(repo.sh(WORK_SCRIPT)),
            Self::Detached => {
                repo.sh("git checkout -q --detach");
                repo.sh(WORK_SCRIPT);
            }
        }
        if self == Self::Subdirectory {
            repo.start_in("sub");
        }
        repo
    }

    fn is_in_tables(self) -> bool {
        [Self::Tables, Self::LinkedTables].contains(&self)
    }

    fn has(self, needs: u8) -> bool {
        let lacks = match self {
            Self::Clean | Self::Linked | Self::LinkedTables => WORK,
            Self::Work | Self::Subdirectory | Self::Tables => CLEAN,
            Self::Unborn => CLEAN | HISTORY,
            Self::Detached => CLEAN | BRANCH,
        };
        // The branch is called `main` in a script, and cannot be checked out twice.
        let lacks = if [Self::Linked, Self::LinkedTables].contains(&self) { lacks | BRANCH } else { lacks };
        needs & lacks == 0
    }

    /// The script, at the root of the worktree.
    fn script(self, script: &str) -> String {
        if self == Self::Subdirectory { format!("cd ..; {script}") } else { script.to_owned() }
    }
}

/// Two commits on `main`, branches `other` and `spare`, two stash entries.
const HISTORY_SCRIPT: &str = "\
git commit -qm base
echo second >>a.txt; git commit -qam second
git checkout -q -b other; echo other >other.txt; git add other.txt; git commit -qm other; git checkout -q main
git branch spare
echo stashed >>stashed.txt; echo u >stash-untracked.txt; git stash push -qu -m older
echo stashed >>stashed.txt; git stash push -q -m newer";

/// Every kind of uncommitted work at once.
const WORK_SCRIPT: &str = "\
echo staged >>staged.txt; git add staged.txt
echo unstaged >>unstaged.txt
echo 1 >>mixed.txt; git add mixed.txt; echo 2 >>mixed.txt
echo fresh >fresh.txt; echo fresh >fresh-edited.txt; git add fresh.txt fresh-edited.txt; echo more >>fresh-edited.txt
echo ita >ita.txt; git add -N ita.txt
git rm -qf staged-gone.txt; rm unstaged-gone.txt; git rm -qf --cached kept-gone.txt
git mv moved-from.txt moved-to.txt
chmod +x chmodded.txt
echo local >>skipped.txt; rm skipped-gone.txt; git update-index --skip-worktree skipped.txt skipped-gone.txt
echo local >>assumed.txt; git update-index --assume-unchanged assumed.txt
echo u >untracked.txt; mkdir -p udir/sub udir/void; echo 1 >udir/one; echo 2 >udir/sub/two
ln -s untracked.txt ulink; printf '\\000\\001\\002' >ubin; : >uempty
echo k >uprivate; chmod 600 uprivate; echo x >uexec; chmod 755 uexec";

/// A case on its way: a repository of its own, and the state in which it is.
struct Trip<'a> {
    repo: &'a Sandbox,
    before: &'a State,
    case: &'a Case,
    start: Start,
    mode: Mode,
    /// Whether it is gone twice, and another turn begins at its end.
    long: bool,
    /// Which of the cases it is.
    number: usize,
}

/// One turn, undone and redone, and again.
fn round_trip(trip: &Trip<'_>) {
    let Trip { repo, before, case, start, mode, long, .. } = *trip;
    let ran = repo.turn(mode, &start.script(case.script));
    let after = repo.state();
    assert!(after != *before, "the case changes something\n{ran:?}");
    if mode == Mode::Commit && case.needs & LOOSE == 0 {
        assert_eq!(after.tracked_changes(), Vec::<String>::new(), "all that is tracked is committed\n{ran:?}");
    }
    for _ in 0..if long { 2 } else { 1 } {
        repo.undo();
        repo.state().assert_is(before, "undo gives exactly the state before the turn");
        repo.redo();
        repo.state().assert_is(&after, "redo gives exactly the state after the turn");
    }
    if long {
        // In the middle of what git is at no turn makes commits.
        let status = repo.git(["status"]);
        let is_at_it = ["currently", "unmerged", "merging"].iter().any(|word| status.contains(word));
        repo.turn(if is_at_it { Mode::Ghost } else { mode }, "true");
        repo.state().assert_is(&after, "another turn can begin there, and leaves no trace when it is empty");
    }
}

/// One turn, undone and redone when git has thrown away all that no ref holds; in the short form before one of the two, by turns,
/// and mostly what is in no pack.
fn round_trip_with_gc(trip: &Trip<'_>) {
    let Trip { repo, before, case, start, mode, number, .. } = *trip;
    let prune_at = |turn: usize| {
        if is_thorough() || number % 8 == turn {
            repo.prune();
        } else if number % 2 == turn {
            repo.sh("git reflog expire --expire=now --all && git prune --expire=now");
        }
    };
    // The entries of the stash are in its reflog, and the user has just emptied that.
    let state = || repo.state().without("git stash list");
    let before = before.clone().without("git stash list");
    repo.turn(mode, &start.script(case.script));
    let after = state();
    prune_at(0);
    repo.undo();
    state().assert_is(&before, "undo works when git has pruned all it could");
    prune_at(1);
    repo.redo();
    state().assert_is(&after, "redo works when git has pruned all it could");
    repo.assert_sound();
}

/// What a test takes of the table in the short form. The long form has each case in each mode on each start.
#[derive(Clone, Copy, Debug)]
enum Share {
    /// What is tried in this mode: in one mode a case is gone twice; in the other it meets git's pruning, but where it
    /// needs what that takes.
    In(Mode),
    /// What meets git's pruning.
    Pruned,
    /// Each case, in one of the modes: which, the cases take in turns.
    Each,
    /// One case in so many, in a mode that they take in turns: there git is asked for each ref, which takes its time.
    Of(usize),
    /// As [`Self::Each`], and of such starts a case has one, in turns as well: they differ in where a turn begins, and
    /// hardly in what it did.
    Some,
}

impl Share {
    /// The modes in which a case is tried on a start.
    fn modes(self, number: usize, case: &Case, start: Start) -> Vec<Mode> {
        let (one, other) = (Mode::BOTH[number % 2], Mode::BOTH[(number + 1) % 2]);
        let elsewhere = |start: &Start| start.has(case.needs);
        match self {
            Self::In(mode) if is_thorough() => vec![mode],
            _ if is_thorough() => Mode::BOTH.to_vec(),
            Self::In(mode) if mode == one || case.needs & STASH != 0 => vec![mode],
            Self::In(_) => vec![],
            Self::Pruned => vec![other],
            Self::Of(many) if number % many != start as usize % many => vec![],
            Self::Of(many) => vec![Mode::BOTH[number / many % 2]],
            Self::Each => vec![Mode::BOTH[(number + start as usize) % 2]],
            Self::Some => {
                let places: Vec<Start> = Start::ELSEWHERE.into_iter().filter(elsewhere).collect();
                let chosen = places.get(number % places.len().max(1));
                chosen.filter(|chosen| **chosen == start).map(|_| Mode::BOTH[number / 3 % 2]).into_iter().collect()
            }
        }
    }
}

/// Checks the cases of a share on a start.
fn every_case(start: Start, share: Share, not: u8, check: fn(&Trip<'_>)) {
    if start.is_in_tables() && !Sandbox::has_tables() {
        return;
    }
    let template = start.sandbox();
    let before = template.state();
    let mut table = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
        if !start.has(case.needs) || case.needs & not != 0 {
            continue;
        }
        for mode in share.modes(number, case, start) {
            // What does not depend on where a turn began, that it can be gone once more, is tried over work.
            let long = is_thorough() || (start == Start::Work && mode == Mode::BOTH[number % 2]);
            table.push((format!("{} ({start:?}, {mode:?})", case.name), (case, mode, long, number)));
        }
    }
    check_all(table, |(case, mode, long, number)| {
        let repo = &template.copy();
        check(&Trip { repo, before: &before, case, start, mode: *mode, long: *long, number: *number });
    });
}

macro_rules! round_trips {
    ($($name:ident: $start:ident, $share:expr;)*) => {$(
        #[test]
        fn $name() {
            every_case(Start::$start, $share, 0, round_trip);
        }
    )*};
}

round_trips! {
    every_turn_comes_and_goes_over_work: Work, Share::In(Mode::Commit);
    every_turn_comes_and_goes_over_work_without_commits: Work, Share::In(Mode::Ghost);
    every_turn_comes_and_goes_on_a_clean_tree: Clean, Share::Each;
    every_turn_comes_and_goes_on_an_unborn_branch: Unborn, Share::Some;
    every_turn_comes_and_goes_on_a_detached_head: Detached, Share::Some;
    every_turn_comes_and_goes_in_a_subdirectory: Subdirectory, Share::Some;
    every_turn_comes_and_goes_in_a_linked_worktree: Linked, Share::Some;
    every_turn_comes_and_goes_where_refs_are_in_tables: Tables, Share::Of(16);
    every_turn_comes_and_goes_in_a_linked_worktree_with_tables: LinkedTables, Share::Of(16);
}

#[test]
fn every_turn_survives_an_expired_reflog_and_gc() {
    every_case(Start::Work, Share::Pruned, STASH, round_trip_with_gc);
}

#[test]
fn a_dropped_stash_entry_survives_an_expired_reflog_and_gc() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.sh("echo precious >>README.txt; git stash push -q -m mine");
        let before = repo.printed();
        repo.turn(mode, "git stash drop -q");
        repo.prune();
        repo.undo();
        repo.printed().assert_is(&before, "the stash entry that the turn dropped is back");
        assert!(repo.git(["stash", "show", "-p"]).contains("+precious"), "with its content ({mode:?})");
    }
}

#[test]
fn a_repository_with_sha256_goes_there_and_back() {
    for (mode, in_tables) in Mode::tried().into_iter().flat_map(|mode| [(mode, false), (mode, true)]) {
        if in_tables && !Sandbox::has_tables() {
            continue;
        }
        let formats = ["--object-format=sha256", "--ref-format=reftable"];
        let repo = Sandbox::init(&formats[..if in_tables { 2 } else { 1 }]);
        repo.identify();
        repo.commit("a.txt", "one\n");
        repo.sh("echo two >>a.txt; git add a.txt; echo u >untracked.txt");
        let before = repo.printed();
        repo.turn(mode, "echo three >>a.txt; git commit -qam three; echo four >>a.txt; echo new >new.txt");
        let after = repo.printed();
        repo.undo();
        repo.printed().assert_is(&before, "undo in a SHA-256 repository");
        repo.redo();
        repo.printed().assert_is(&after, "redo in a SHA-256 repository");
        repo.assert_sound();
    }
}

/// Turns of a day on one branch; what each does depends on those before it.
const DAY: &[&str] = &[
    "echo more >>a.txt; echo new >day.txt",
    "rm -r dir; echo file >dir; git mv -f b.txt b2.txt",
    "echo 1 >>a.txt; git commit -qm one a.txt; echo 2 >>a.txt; echo n >day2.txt; git add -A; git commit -qm two; echo 3 >>a.txt",
    "chmod 600 a.txt; chmod +x day.txt; ln -sfn b2.txt link; echo b >bin.dat; echo 'n*.tmp' >>.gitignore; echo x >now.tmp",
    "rm dir; mkdir -p dir/deep/void; echo back >dir/x.txt; rm day.txt; git add -N dir/x.txt",
    "for f in odd/*; do mv \"$f\" \"$f.bak\"; done; git commit -q --amend -am amended",
];

/// A walk over the states of a day; a position is the number of done turns.
fn walk_over_a_day(start: Start, mode: Mode) {
    let repo = start.sandbox();
    let mut states = vec![repo.printed()];
    for script in DAY {
        repo.turn(mode, &start.script(script));
        states.push(repo.printed());
    }
    let walk: &[(&[&str], usize)] = &[
        (&["undo"], 5),
        (&["undo", "2"], 3),
        (&["redo"], 4),
        (&["undo", "--to", "1"], 1),
        (&["redo", "--to", "6"], 6),
        (&["undo", "--steps", "6"], 0),
        (&["redo", "--steps", "3"], 3),
        (&["redo", "--steps=3"], 6),
        (&["undo", "--to", "0"], 0),
        (&["redo", "--to=2"], 2),
        (&["undo", "-n", "1"], 1),
        (&["redo"], 2),
        (&["redo", "--steps", "4"], 6),
        (&["undo", "--to", "@~2"], 4),
    ];
    for (position, step) in walk.iter().enumerate() {
        let (args, wanted) = step;
        repo.oxundo(*args).success();
        repo.printed().assert_is(&states[*wanted], &format!("step {position}, {args:?}, leads to turn {wanted}"));
        let (_, now) = repo.json(["status"]);
        assert_eq!(now["undo_depth"], *wanted, "what can be undone after {args:?}: {now}");
        assert_eq!(now["redo_depth"], DAY.len() - wanted, "what can be redone after {args:?}: {now}");
    }
    repo.prune();
    repo.oxundo(["undo", "--to", "0"]).success();
    repo.printed().without("git stash").assert_is(&states[0].clone().without("git stash"), "the beginning, after gc");
    repo.assert_sound();
}

#[test]
fn any_walk_leads_to_the_very_state_of_each_turn() {
    let mut walks = Vec::new();
    for start in [Start::Clean, Start::Work, Start::Unborn, Start::Detached, Start::Subdirectory, Start::Linked] {
        // The short form has each start, and over work both modes.
        let both = is_thorough() || start == Start::Work;
        let chosen = Mode::BOTH.into_iter().filter(|mode| both || *mode == Mode::BOTH[start as usize % 2]);
        walks.extend(chosen.map(|mode| (format!("{start:?}, {mode:?}"), (start, mode))));
    }
    // The last turn amends, for which there has to be a commit.
    walks.retain(|(_, walk)| *walk != (Start::Unborn, Mode::Ghost));
    assert!(walks.iter().any(|(_, walk)| *walk == (Start::Unborn, Mode::Commit)), "each start has its walk");
    check_all(walks, |(start, mode)| walk_over_a_day(*start, *mode));
}

#[test]
fn commit_and_ghost_turns_mix_on_one_timeline() {
    let repo = Start::Work.sandbox();
    let mut states = vec![repo.printed()];
    for (index, script) in DAY.iter().enumerate() {
        let mode = if index % 2 == 0 { Mode::Ghost } else { Mode::Commit };
        repo.turn(mode, script);
        states.push(repo.printed());
    }
    for position in (0..DAY.len()).rev() {
        repo.undo();
        repo.printed().assert_is(&states[position], "undo, one by one");
    }
    for state in &states[1..] {
        repo.redo();
        repo.printed().assert_is(state, "redo, one by one");
    }
}

#[test]
fn a_new_turn_after_undo_takes_the_place_of_the_undone_ones() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.turn(mode, "echo 1 >>README.txt");
        let one = repo.printed();
        repo.turn(mode, "echo 2 >>README.txt");
        repo.turn(mode, "echo 3 >>README.txt");
        repo.oxundo(["undo", "--steps", "2"]).success();
        repo.turn(mode, "echo other >>README.txt");
        let other = repo.printed();
        repo.refuses(&["redo"], "nothing");
        assert_eq!(repo.log()[0]["turn"], 4, "a number is never used again");
        repo.undo();
        repo.printed().assert_is(&one, "undo goes to the turn below");
        repo.redo();
        repo.printed().assert_is(&other, "redo brings the new turn back, not the old");
        repo.oxundo(["undo", "--steps", "2"]).success();
        repo.refuses(&["undo"], "nothing");
    }
}

#[test]
fn an_empty_turn_after_undo_leaves_the_undone_ones() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.turn(mode, "echo 1 >>README.txt");
        let after = repo.printed();
        repo.undo();
        repo.turn(mode, "true");
        repo.redo();
        repo.printed().assert_is(&after, "a turn that changed nothing drops nothing");
    }
}

#[test]
fn a_walk_over_branches_goes_step_by_step() {
    for mode in Mode::tried() {
        let repo = Start::Clean.sandbox();
        let mut states = vec![repo.printed()];
        for script in [
            "echo 1 >>a.txt",
            "git checkout -q -b topic; echo 2 >>a.txt",
            "echo 3 >>a.txt; git add -A; git commit -qm three",
            "git branch -qD spare; git checkout -q other; echo 4 >>other.txt",
            "git checkout -q --detach; echo 5 >>b.txt",
        ] {
            repo.turn(mode, &format!("{script}\n{COMMIT}"));
            states.push(repo.printed());
        }
        for position in (0..states.len() - 1).rev() {
            repo.undo();
            repo.printed().assert_is(&states[position], "undo, one by one");
        }
        for (position, state) in states.iter().enumerate().skip(1) {
            repo.redo();
            repo.printed().assert_is(state, &format!("redo, one by one, to turn {position}"));
        }
    }
}

/// So that a branch can be left without a conflict, in ghost mode too.
const COMMIT: &str = "git add -A; git commit -q --allow-empty -m done";
