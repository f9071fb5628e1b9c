//! What git said of refs that it keeps in tables: each question starts a git, and a command asks for HEAD and its branch a dozen
//! times. A table is never written again, and its name never used again, so that an answer holds while the lists of tables are
//! what they were.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// The file that names the tables, from the oldest to the newest.
pub const LIST: &str = "reftable/tables.list";

/// What is in the list of all worktrees, and in that of this one.
pub type Tables = [Vec<u8>; 2];

/// git's exit code, and what it printed.
pub type Answer = (i32, Vec<u8>);

/// Answers to questions, and the tables of which they are true.
#[derive(Debug, Default)]
pub struct Told {
    tables: Tables,
    answers: BTreeMap<Vec<OsString>, Answer>,
}

impl Told {
    /// What was answered when the tables were these.
    pub fn known(&self, tables: &Tables, question: &[OsString]) -> Option<Answer> {
        if self.tables == *tables { self.answers.get(question).cloned() } else { None }
    }

    /// Keeps an answer; those of other tables go.
    pub fn keep(&mut self, tables: Tables, question: Vec<OsString>, answer: Answer) {
        if self.tables != tables {
            *self = Self { tables, answers: BTreeMap::new() };
        }
        self.answers.insert(question, answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_for_the_tables_that_were_asked() {
        let tables = |text: &str| [text.into(), Vec::new()];
        let question = ["for-each-ref".into()];
        let mut told = Told::default();
        told.keep(tables("1.ref\n"), question.to_vec(), (0, b"one".to_vec()));
        assert_eq!(told.known(&tables("1.ref\n"), &question), Some((0, b"one".to_vec())));
        assert_eq!(told.known(&tables("1.ref\n2.ref\n"), &question), None);
        told.keep(tables("1.ref\n2.ref\n"), vec!["reflog".into()], (1, Vec::new()));
        assert_eq!(told.known(&tables("1.ref\n2.ref\n"), &question), None, "it is not of these");
    }
}
