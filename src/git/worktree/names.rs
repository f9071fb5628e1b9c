//! Which names git would store.

use gix::bstr::{BStr, ByteSlice};

/// Whether git would store a file of this name, by the rules of every file system; for tracked paths without
/// those of Apple's, as in git itself.
pub fn is_storable(path: &BStr, protect_hfs: bool) -> bool {
    let options = gix::validate::path::component::Options { protect_windows: false, protect_hfs, protect_ntfs: true };
    path.split(|byte| *byte == b'/')
        .all(|component| gix::validate::path::component(component.as_bstr(), None, options).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;

    #[test]
    fn a_name_is_storable_when_git_stores_it_under_the_rules_of_every_file_system() {
        let f = Fixture::with(&["core.protectHFS=true", "core.protectNTFS=true"]);
        let blob = f.blob("").to_string();
        for name in [
            "a",
            "d/e/f",
            ".gitignore",
            ".github/x",
            "a.git",
            "git",
            "...",
            "-x",
            " ",
            "\u{e9}/\n",
            "git~10",
            ".git2",
            ".",
            "..",
            "a/..",
            "./a",
            "a//b",
            "/a",
            "a/",
            ".git",
            "a/.git",
            "a/.git/b",
            ".GIT",
            ".giT/x",
            "git~1",
            "GIT~1/x",
            ".git ",
            ".git.",
            ".git. .",
            ".git::$INDEX_ALLOCATION",
            ".g\u{200c}it",
            ".git\u{feff}/x",
        ] {
            let info = format!("100644,{blob},{name}");
            let stored = f.git_agrees(&["update-index", "--add", "--replace", "--cacheinfo", &info]);
            assert_eq!(is_storable(name.into(), true), stored, "{name:?}");
        }
    }

    #[test]
    fn what_only_apple_takes_for_gits_is_storable_where_git_says_so() {
        let f = Fixture::with(&["core.protectHFS=false"]);
        let blob = f.blob("").to_string();
        for name in [".g\u{200c}it/x", ".git\u{200d}", ".git", ".GIT/x", "ok"] {
            let info = format!("100644,{blob},{name}");
            let stored = f.git_agrees(&["update-index", "--add", "--cacheinfo", &info]);
            assert_eq!(is_storable(name.into(), false), stored, "{name:?}");
        }
    }
}
