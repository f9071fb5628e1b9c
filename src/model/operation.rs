//! What git is in the middle of: a merge, a rebase, a cherry-pick, a revert, an am, a bisect. git says it by files of its own
//! directory, and so does a checkpoint.

use crate::model::bytes::exact;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// What git is in the middle of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The contents of the files that say it, by their paths in the worktree's own git directory.
    #[serde(with = "files")]
    pub files: BTreeMap<BString, ObjectId>,
    /// Where they are too large, or closed, they are not kept: git's word for it, and by what it is known whether they have changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

/// What git is in the middle of, and how it comes to an end.
#[derive(Clone, Copy, Debug)]
pub struct InProgress {
    /// git's word for it.
    pub word: &'static str,
    /// Whether what git needs to go on with it, or back, is not there, as where a rebase has failed at its start.
    pub is_torn: bool,
}

/// Where git tells how an operation is brought to its end.
pub const FINISH: &str = "run 'git status': it says how to finish it";

/// The directories that such files are in.
pub const DIRECTORIES: [&str; 5] = ["rebase-apply", "rebase-merge", "refs/bisect", "refs/rewritten", "sequencer"];

/// The files of which one says that git is in the middle of something, beside what is in a directory that is no ref's.
pub const MARKS: [&str; 4] = ["BISECT_LOG", "CHERRY_PICK_HEAD", "MERGE_HEAD", "REVERT_HEAD"];

/// What is prepared for the next commit, be it of an operation's or of the user's own.
pub const PREPARED: [&str; 2] = ["MERGE_MSG", "SQUASH_MSG"];

/// What says more of an operation. git leaves some of it behind.
pub const MORE: [&str; 14] = [
    "AUTO_MERGE",
    "BISECT_ANCESTORS_OK",
    "BISECT_EXPECTED_REV",
    "BISECT_FIRST_PARENT",
    "BISECT_HEAD",
    "BISECT_NAMES",
    "BISECT_RUN",
    "BISECT_START",
    "BISECT_TERMS",
    "MERGE_AUTOSTASH",
    "MERGE_MODE",
    "MERGE_RR",
    ORIG_HEAD,
    "REBASE_HEAD",
];

/// Where HEAD was before git's last step of some kinds. Only `git am --abort` needs it.
pub const ORIG_HEAD: &str = "ORIG_HEAD";

/// Those of these files that are refs where git keeps refs in tables.
const REFS: [&str; 8] = [
    "AUTO_MERGE",
    "BISECT_EXPECTED_REV",
    "BISECT_HEAD",
    "CHERRY_PICK_HEAD",
    "MERGE_AUTOSTASH",
    ORIG_HEAD,
    "REBASE_HEAD",
    "REVERT_HEAD",
];

/// git's words for all of this.
const WORDS: [&str; 6] = ["am", "bisect", "cherry-pick", "merge", "rebase", "revert"];

/// The files that say where a rebase goes back to.
const REBASED: [&str; 2] = ["rebase-apply/head-name", "rebase-merge/head-name"];

/// The files in which a stash is that is to come back in the end, and is nowhere else.
const AUTOSTASHES: [&str; 3] = ["MERGE_AUTOSTASH", "rebase-apply/autostash", "rebase-merge/autostash"];

/// Whether a file's path is one of git's for an operation, and leads nowhere else.
pub fn is_operations(path: &BStr) -> bool {
    let is_named = |names: &[&str]| names.iter().any(|name| path == name.as_bytes());
    let is_plain = |part: &[u8]| !part.is_empty() && part != b"." && part != b".." && !part.contains(&0);
    let is_in = |directory: &&str| {
        let inside = path.strip_prefix(directory.as_bytes()).and_then(|rest| rest.strip_prefix(b"/"));
        inside.is_some_and(|rest| rest.split(|byte| *byte == b'/').all(is_plain))
    };
    is_named(&MARKS) || is_named(&PREPARED) || is_named(&MORE) || DIRECTORIES.iter().any(is_in)
}

/// Whether what such a file says is said by a ref where git keeps refs in tables.
pub fn is_ref(path: &BStr) -> bool {
    path.starts_with(b"refs/") || REFS.iter().any(|name| path == name.as_bytes())
}

/// Whether such a file says that git is in the middle of something.
pub fn is_mark(path: &BStr) -> bool {
    let is_in = |directory: &&str| !directory.starts_with("refs/") && is_below(path, directory);
    MARKS.iter().any(|name| path == name.as_bytes()) || DIRECTORIES.iter().any(is_in)
}

/// Whether git may leave such a file behind when it is in the middle of nothing any more: then nobody minds what is in it.
pub fn is_left_behind(path: &BStr) -> bool {
    !is_mark(path) && !PREPARED.iter().any(|name| path == name.as_bytes())
}

fn is_below(path: &BStr, directory: &str) -> bool {
    path.strip_prefix(directory.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
}

impl InProgress {
    /// By git's word for it, and which of its files are there.
    pub fn of(word: &'static str, has: impl Fn(&str) -> bool) -> Self {
        Self { word, is_torn: word == "rebase" && !REBASED.iter().any(|name| has(name)) }
    }

    /// The line of git's that gives it up.
    pub fn giving_up(self) -> String {
        match self.word {
            "bisect" => "git bisect reset".to_owned(),
            word if self.is_torn => format!("git {word} --quit"),
            word => format!("git {word} --abort"),
        }
    }

    /// How it comes to an end: the first way, and the other one where there are two.
    pub fn hints(self) -> (String, Option<String>) {
        let line = self.giving_up();
        if self.is_torn {
            return (
                format!("run '{line}' to put away what is left of it: no other command of git's can end it"),
                None,
            );
        }
        // That is a hard reset, or one of what is staged.
        let goes = match self.word {
            "bisect" => "",
            "rebase" => ", with all that is uncommitted",
            _ => ", with all that is staged",
        };
        (FINISH.to_owned(), Some(format!("or run '{line}' to give it up{goes}")))
    }
}

impl Operation {
    /// Whether git is in the middle of something; else there is at most a message for the next commit.
    pub fn is_under_way(&self) -> bool {
        self.unread.is_some() || self.files.keys().any(|path| is_mark(path.as_bstr()))
    }

    /// Whether another one is over, and nothing has come in its place: at most what git leaves behind is there, as it was.
    pub fn is_rest_of(&self, other: &Self) -> bool {
        let is_over = other.is_under_way() && !self.is_under_way();
        is_over && self.files.iter().all(|(path, id)| other.files.get(path) == Some(id))
    }

    /// Whether git's next commit is the operation's.
    pub fn commits_next(&self) -> bool {
        let marks = ["CHERRY_PICK_HEAD", "MERGE_HEAD", "REVERT_HEAD"];
        marks.iter().any(|name| self.files.contains_key(name.as_bytes().as_bstr()))
    }

    /// Whether git, going on with it, may run commands that its files name.
    pub fn runs_commands(&self) -> bool {
        let is_in = |path: &BString| DIRECTORIES.iter().any(|directory| is_below(path.as_bstr(), directory));
        self.files.keys().any(|path| is_in(path) && !path.starts_with(b"refs/") || path.as_slice() == b"BISECT_RUN")
    }

    /// What git is in the middle of by it.
    pub fn in_progress(&self) -> InProgress {
        // Of what is not read nobody knows.
        let has = |name: &str| self.unread.is_some() || self.files.contains_key(name.as_bytes().as_bstr());
        InProgress::of(self.word(), has)
    }

    /// In git's word.
    pub fn word(&self) -> &'static str {
        let unread = self.unread.as_deref().and_then(|unread| unread.split_once(' '));
        if let Some(word) = unread.and_then(|(unread, _)| WORDS.into_iter().find(|word| *word == unread)) {
            return word;
        }
        let has = |name: &str| self.files.contains_key(name.as_bytes().as_bstr());
        let is_in = |directory: &str| self.files.keys().any(|path| is_below(path.as_bstr(), directory));
        match () {
            () if has("rebase-apply/applying") => "am",
            () if is_in("rebase-apply") || is_in("rebase-merge") => "rebase",
            () if has("REVERT_HEAD") => "revert",
            () if has("CHERRY_PICK_HEAD") || is_in("sequencer") => "cherry-pick",
            () if has("BISECT_LOG") && !has("MERGE_HEAD") => "bisect",
            () => "merge",
        }
    }

    /// Whether it holds a stash that comes back when it ends.
    pub fn has_autostash(&self) -> bool {
        self.autostashes().next().is_some()
    }

    /// The contents of the files that name such a stash.
    pub fn autostashes(&self) -> impl Iterator<Item = ObjectId> {
        AUTOSTASHES.iter().filter_map(|name| self.files.get(name.as_bytes().as_bstr()).copied())
    }
}

/// What an earlier operation may have left behind that would be taken for a part of one that comes back. It is in no state in which
/// git was in the middle of nothing.
pub fn left_before(to: &Operation) -> impl Iterator<Item = &'static BStr> {
    let names = MORE.iter().filter(|_| to.is_under_way()).map(|name| BStr::new(*name));
    names.filter(|name| *name != ORIG_HEAD && !to.files.contains_key(*name))
}

/// The paths that go on the way from one operation to another, what says that there is one first.
pub fn removed<'a>(from: &'a Operation, to: &Operation) -> Vec<&'a BString> {
    let gone = from.files.keys().filter(|path| !to.files.contains_key(*path) && *path != ORIG_HEAD);
    let (marks, others): (Vec<&BString>, Vec<&BString>) = gone.partition(|path| is_mark(path.as_bstr()));
    [marks, others].concat()
}

/// The files of an operation in the order in which they are written, what says that there is one last.
pub fn written(operation: &Operation) -> Vec<(&BString, ObjectId)> {
    let files = operation.files.iter().map(|(path, id)| (path, *id));
    let (marks, others): (Vec<_>, Vec<_>) = files.partition(|(path, _)| is_mark(path.as_bstr()));
    [others, marks].concat()
}

/// The files as records have them.
mod files {
    use super::{BString, BTreeMap, Deserialize, Deserializer, ObjectId, Serialize, Serializer, exact};
    use serde::de::Error;

    pub(super) fn serialize<S: Serializer>(files: &BTreeMap<BString, ObjectId>, to: S) -> Result<S::Ok, S::Error> {
        let named = files.iter().map(|(path, id)| (exact::encode(path), id.to_string()));
        named.collect::<BTreeMap<String, String>>().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<BString, ObjectId>, D::Error> {
        let file = |(path, id): (String, String)| {
            let path = exact::decode(&path).ok_or_else(|| D::Error::custom("a path is damaged"))?;
            Ok((path, ObjectId::from_hex(id.as_bytes()).map_err(D::Error::custom)?))
        };
        BTreeMap::<String, String>::deserialize(from)?.into_iter().map(file).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(names: &[&str]) -> Operation {
        let id = ObjectId::empty_tree(gix::hash::Kind::Sha1);
        Operation { files: names.iter().map(|name| ((*name).into(), id)).collect(), unread: None }
    }

    #[test]
    fn each_operation_has_its_word_and_a_message_alone_is_none() {
        for (names, word) in [
            (&["MERGE_HEAD", "MERGE_MSG"][..], "merge"),
            (&["CHERRY_PICK_HEAD", "MERGE_MSG", "sequencer/todo"], "cherry-pick"),
            (&["sequencer/todo"], "cherry-pick"),
            (&["REVERT_HEAD"], "revert"),
            (&["rebase-merge/done", "CHERRY_PICK_HEAD"], "rebase"),
            (&["rebase-apply/rebasing"], "rebase"),
            (&["rebase-apply/applying", "ORIG_HEAD"], "am"),
            (&["BISECT_LOG", "refs/bisect/bad"], "bisect"),
        ] {
            assert!(operation(names).is_under_way(), "{names:?}");
            assert_eq!(operation(names).word(), word, "{names:?}");
            let unread = Operation { files: BTreeMap::new(), unread: Some(format!("{word} id")) };
            assert!(unread.is_under_way() && unread.word() == word, "{word}");
        }
        for names in [&[][..], &["MERGE_MSG"], &["SQUASH_MSG", "MERGE_MSG"], &["refs/rewritten/a", "AUTO_MERGE"]] {
            assert!(!operation(names).is_under_way(), "{names:?}");
        }
    }

    #[test]
    fn only_gits_own_names_are_taken_from_a_record() {
        for name in
            ["MERGE_HEAD", "rebase-merge/git-rebase-todo", "refs/bisect/good-1", "sequencer/opts", "rebase-apply/a/b"]
        {
            assert!(is_operations(name.into()), "{name}");
        }
        for name in [
            "",
            "HEAD",
            "config",
            "hooks/post-merge",
            "rebase-merge",
            "rebase-merge/",
            "rebase-merge/../config",
            "rebase-merge//a",
            "rebase-merge/./a",
            "refs/heads/main",
            "rebase-mergex/a",
            "MERGE_HEAD/a",
        ] {
            assert!(!is_operations(name.into()), "{name}");
        }
    }

    #[test]
    fn what_says_that_there_is_an_operation_comes_last_and_goes_first() {
        let whole = operation(&["AUTO_MERGE", "MERGE_HEAD", "MERGE_MSG", "ORIG_HEAD"]);
        let names: Vec<_> = written(&whole).into_iter().map(|(path, _)| path.to_string()).collect();
        assert_eq!(names, ["AUTO_MERGE", "MERGE_MSG", "ORIG_HEAD", "MERGE_HEAD"]);
        let names: Vec<_> = removed(&whole, &operation(&["AUTO_MERGE"])).into_iter().map(ToString::to_string).collect();
        assert_eq!(names, ["MERGE_HEAD", "MERGE_MSG"], "git leaves the old HEAD behind, too");
    }

    #[test]
    fn it_is_read_from_json_as_it_was_written() {
        let mut operation = operation(&["MERGE_HEAD"]);
        operation.files.insert(b"refs/rewritten/\xff".as_slice().into(), operation.files[BStr::new("MERGE_HEAD")]);
        operation.unread = Some("why".to_owned());
        let text = serde_json::to_string(&operation).expect("write it");
        assert_eq!(serde_json::from_str::<Operation>(&text).expect("read it"), operation);
    }
}
