//! Versions of agents, as their programs tell them.

/// The first number with points in what a program says of its version.
pub fn number_in(said: &str) -> Option<String> {
    let words = said.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-' | '+'));
    let plain = words.map(|word| word.trim_start_matches('v').split(['-', '+']).next().unwrap_or_default());
    let plain = plain.map(|word| word.trim_matches('.'));
    let is_number = |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u64>().is_ok());
    plain.into_iter().find(is_number).map(str::to_owned)
}

/// Whether the first is older than the second.
pub fn is_older(version: &str, other: &str) -> bool {
    let numbers = |text: &str| text.split('.').map(|part| part.parse::<u64>().unwrap_or_default()).collect::<Vec<_>>();
    numbers(version) < numbers(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_what_a_program_says() {
        for (said, version) in [
            ("2.1.330 (Claude Code)\n", Some("2.1.330")),
            ("codex-cli 0.169.0\n", Some("0.169.0")),
            ("GitHub Copilot CLI v1.0.102.\nCommit: 1", Some("1.0.102")),
            ("v0.61.0-nightly.1+a", Some("0.61.0")),
            ("", None),
            ("usage: droid", None),
            ("1.99999999999999999999999", None),
        ] {
            assert_eq!(number_in(said).as_deref(), version, "{said}");
        }
        assert!(is_older("0.99.9", "0.215.0") && !is_older("0.215.0", "0.215.0") && !is_older("1.0", "0.215.0"));
    }
}
