//! Who writes a commit or moves a ref, and when: determined as git does, from the environment and the
//! configuration, and anew each time, since an agent may work for hours between two commits.

use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::git::repo::clock::local_time;
use anyhow::Result;
use gix::actor::Signature;
use gix::bstr::{BString, ByteSlice};
use std::os::unix::ffi::OsStringExt;

impl Repo {
    /// The user's name and e-mail address for commits.
    pub fn check_identity(&self) -> Result<()> {
        let known = |role: &str, field: &str| self.identity(role, field).is_some();
        let missing = ["author", "committer"].iter().any(|role| !known(role, "name") || !known(role, "email"));
        if missing {
            return Err(Refusal::new(Code::NoIdentity, "no name and e-mail address for commits is configured")
                .hint("run 'git config user.name NAME' and 'git config user.email ADDRESS'")
                .into());
        }
        Ok(())
    }

    fn identity(&self, role: &str, field: &str) -> Option<BString> {
        let given = |variable: &str| {
            let value = std::env::var_os(variable).filter(|value| !value.is_empty())?;
            Some(BString::from(value.into_vec()))
        };
        given(&format!("GIT_{}_{}", role.to_uppercase(), field.to_uppercase()))
            .or_else(|| self.setting(&format!("{role}.{field}")))
            .or_else(|| self.setting(&format!("user.{field}")))
            .or_else(|| given("EMAIL").filter(|_| field == "email"))
    }

    /// The author of a commit that is made now.
    pub fn author(&self) -> Signature {
        self.signature("author")
    }

    /// The committer of a commit that is made now, also for reflogs. Where none is configured, it is oxundo: its
    /// own commits and reflogs need one.
    pub fn committer(&self) -> Signature {
        self.signature("committer")
    }

    fn signature(&self, role: &str) -> Signature {
        let field = |field: &str, otherwise: &str| {
            let value = self.identity(role, field).map(|value| without_crud(&value));
            value.filter(|value| !value.is_empty()).unwrap_or_else(|| otherwise.into())
        };
        let date = std::env::var(format!("GIT_{}_DATE", role.to_uppercase())).ok();
        let date = date.and_then(|date| gix::date::parse(&date, None).ok());
        Signature {
            name: field("name", "oxundo"),
            email: field("email", "oxundo@localhost"),
            time: date.unwrap_or_else(local_time),
        }
    }
}

/// A name or address as git writes it: without characters that have a meaning in a commit.
fn without_crud(value: &BString) -> BString {
    let crud = |byte: u8| byte <= b' ' || b".,:;<>\"\\'".contains(&byte);
    let value = value.trim_start_with(|char| u8::try_from(char).is_ok_and(crud));
    let value = value.trim_end_with(|char| u8::try_from(char).is_ok_and(crud));
    value.iter().copied().filter(|byte| !b"\n<>".contains(byte)).collect::<Vec<_>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_git_writes_them() {
        for (given, written) in [
            ("A U Thor", "A U Thor"),
            (" \"A. U. Thor.\" ", "A. U. Thor"),
            ("A <a@b>\nThor", "A a@bThor"),
            ("Ä Ö", "Ä Ö"),
            ("...", ""),
        ] {
            assert_eq!(without_crud(&given.into()), written);
        }
    }
}
