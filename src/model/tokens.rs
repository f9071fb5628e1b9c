//! Globs of words that are secrets. To make a set of them ready takes longer than all that a hook does among a thousand
//! files, and most words are too short for any, or begin otherwise: a glob is made ready for a word that may be its own.

use globset::{Error, Glob};

/// Globs of words.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Vec<Token>);

#[derive(Clone, Debug)]
struct Token {
    glob: Glob,
    form: Form,
}

/// What can be told of each word that a glob matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Form {
    /// It begins with this.
    prefix: String,
    /// It has at least so many characters.
    least: usize,
}

impl Tokens {
    /// Adds one.
    pub fn add(&mut self, pattern: &str) -> Result<(), Error> {
        self.0.push(Token { glob: Glob::new(pattern)?, form: Form::of(pattern) });
        Ok(())
    }

    /// Whether any of them matches a word.
    pub fn is_match(&self, word: &str) -> bool {
        let length = word.chars().count();
        let may_be = |form: &Form| form.least <= length && word.starts_with(&form.prefix);
        self.0.iter().any(|token| may_be(&token.form) && token.glob.compile_matcher().is_match(word))
    }
}

impl Form {
    fn of(pattern: &str) -> Self {
        let mut form = Self::default();
        // Between slashes two asterisks stand for none of them too.
        if pattern.contains('/') {
            return form;
        }
        let (mut rest, mut is_plain) = (pattern.chars(), true);
        while let Some(c) = rest.next() {
            let is_known = match c {
                '*' => true,
                '?' => {
                    form.least += 1;
                    true
                }
                '[' => {
                    form.least += 1;
                    skip_class(&mut rest)
                }
                '{' => skip_choice(&mut rest),
                '\\' => false,
                c => {
                    form.least += 1;
                    if is_plain {
                        form.prefix.push(c);
                    }
                    continue;
                }
            };
            is_plain = false;
            if !is_known {
                break;
            }
        }
        form
    }
}

/// Goes on behind a class of characters.
fn skip_class(rest: &mut std::str::Chars<'_>) -> bool {
    if rest.as_str().starts_with(['!', '^']) {
        rest.next();
    }
    // The first one is in the class, also where it is a bracket.
    rest.next();
    rest.by_ref().any(|c| c == ']')
}

/// Goes on behind a choice, where nothing in it may have a brace of its own.
fn skip_choice(rest: &mut std::str::Chars<'_>) -> bool {
    rest.by_ref().find(|c| matches!(c, '{' | '}' | '[' | '\\')) == Some('}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use globset::{GlobSet, GlobSetBuilder};
    use proptest::prelude::*;

    fn both<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Option<(Tokens, GlobSet)> {
        let (mut tokens, mut set) = (Tokens::default(), GlobSetBuilder::new());
        for pattern in patterns {
            tokens.add(pattern).ok()?;
            set.add(Glob::new(pattern).ok()?);
        }
        Some((tokens, set.build().ok()?))
    }

    #[test]
    fn what_can_be_told_of_a_word_is_told() {
        let form = |pattern| {
            let Form { prefix, least } = Form::of(pattern);
            (prefix, least)
        };
        assert_eq!(form("ACME-*"), ("ACME-".to_owned(), 5));
        assert_eq!(form("A[KS]IA??*"), ("A".to_owned(), 6));
        assert_eq!(form("gl{pat,ptt}-??*"), ("gl".to_owned(), 5));
        assert_eq!(form("[]a]b[!]]c"), (String::new(), 4));
        assert_eq!(form("a{b,{c,d}}e"), ("a".to_owned(), 1));
        assert_eq!(form("a\\*b"), ("a".to_owned(), 1));
        assert_eq!(form("**/a"), (String::new(), 0));
    }

    proptest! {
        #[test]
        fn a_word_matches_as_in_a_set(
            patterns in prop::collection::vec("[ab?*!{},/\\[\\]\\\\-]{0,8}", 1..4),
            words in prop::collection::vec("[ab!,-]{0,7}", 1..8),
        ) {
            for pattern in &patterns {
                let Some((tokens, set)) = both([pattern.as_str()]) else { continue };
                for word in &words {
                    prop_assert_eq!(tokens.is_match(word), set.is_match(word), "{:?} {:?}", pattern, word);
                }
            }
        }

        #[test]
        fn the_defaults_match_as_a_set_does(
            start in "(AKIA|ghp_|github_pat_|glpat-|gla-|xoxb-|xapp-|sk-|sk_live_|rk_test_|AIza|ya29\\.|eyJ|npm_|hf_|SG\\.|shpat_|hvs\\.|word)",
            rest in "[A-Za-z0-9._-]{0,40}",
        ) {
            let defaults = crate::config::keys::default("secretText");
            let (tokens, set) = both(defaults.split_whitespace()).expect("the defaults are globs");
            let word = start + &rest;
            prop_assert_eq!(tokens.is_match(&word), set.is_match(&word), "{}", word);
        }
    }
}
