//! How a date is shown: the forms of git's `--date` and `log.date`. Times are in the user's zone.

use crate::error::{Code, Refusal};
use crate::git::repo::clock::{in_zone, parse_rfc3339, seconds_ago, unix_now};
use crate::model::bytes::sanitized;
use jiff::Zoned;
use jiff::fmt::strtime::{BrokenDownTime, Config, PosixCustom};

/// A form of dates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DateForm {
    /// How long ago, in few letters: what is shown where nothing is configured.
    Brief,
    /// As git has them, each by its name there.
    Relative,
    Human,
    /// As `strftime` has it; git's other forms are such patterns.
    Pattern(String),
}

/// What git calls its forms, and their patterns. What ends in `-local` differs where it leaves the zone out.
const NAMED: [(&str, &str); 16] = [
    ("default", "%a %b %-d %H:%M:%S %Y %z"),
    ("normal", "%a %b %-d %H:%M:%S %Y %z"),
    ("local", "%a %b %-d %H:%M:%S %Y"),
    ("default-local", "%a %b %-d %H:%M:%S %Y"),
    ("normal-local", "%a %b %-d %H:%M:%S %Y"),
    ("iso", ISO),
    ("iso8601", ISO),
    ("iso-strict", ISO_STRICT),
    ("iso8601-strict", ISO_STRICT),
    ("rfc", RFC),
    ("rfc2822", RFC),
    ("short", "%Y-%m-%d"),
    ("unix", "%s"),
    ("raw", "%s %z"),
    ("human", ""),
    ("relative", ""),
];

/// As git's `%ai`, `%aI`, `%aD`.
pub const ISO: &str = "%Y-%m-%d %H:%M:%S %z";
pub const ISO_STRICT: &str = "%Y-%m-%dT%H:%M:%S%:z";
pub const RFC: &str = "%a, %-d %b %Y %H:%M:%S %z";

impl DateForm {
    /// As git's `iso`.
    pub fn iso() -> Self {
        Self::Pattern(ISO.to_owned())
    }

    /// The form of this name, where answers go to a terminal or not.
    ///
    /// # Errors
    ///
    /// `usage` where git has none of that name.
    pub fn named(name: &str, is_terminal: bool) -> Result<Self, Refusal> {
        if let Some(name) = name.strip_prefix("auto:") {
            return Self::named(if is_terminal { name } else { "default" }, is_terminal);
        }
        if let Some(pattern) = name.strip_prefix("format:").or_else(|| name.strip_prefix("format-local:")) {
            return Ok(Self::Pattern(in_c(pattern)));
        }
        let plain = name.strip_suffix("-local").unwrap_or(name);
        let known = |wanted: &str| NAMED.iter().find(|(known, _)| *known == wanted);
        match known(name).or_else(|| known(plain)) {
            Some(("human", _)) => Ok(Self::Human),
            Some(("relative", _)) => Ok(Self::Relative),
            Some((_, pattern)) => Ok(Self::Pattern((*pattern).to_owned())),
            None => Err(Refusal::new(Code::Usage, format!("'{}' is no form of dates", sanitized(name)))
                .hint("'oxundo log --date=iso' has one; others are relative, local, iso-strict, rfc, short, raw, human, unix, default and format:PATTERN")),
        }
    }

    /// A recorded time in this form, in one line.
    pub fn of(&self, time: &str) -> String {
        self.in_lines(time).replace(['\n', '\t'], " ")
    }

    /// A recorded time in this form, with the newlines and tabs that it asks for.
    pub fn in_lines(&self, time: &str) -> String {
        let Some(then) = parse_rfc3339(time) else { return sanitized(time) };
        let shown = self.shown(then, unix_now());
        shown
            .split_inclusive(['\n', '\t'])
            .map(|part| match part.strip_suffix(['\n', '\t']) {
                Some(text) => sanitized(text) + &part[text.len()..],
                None => sanitized(part),
            })
            .collect()
    }

    fn shown(&self, then: i64, now: i64) -> String {
        match self {
            Self::Brief => seconds_ago(now.saturating_sub(then).max(0)),
            Self::Relative => relative(then, now),
            Self::Human => human(then, now),
            // git has no other sign for UTC.
            Self::Pattern(pattern) if pattern == ISO_STRICT => {
                let text = patterned(pattern, then);
                text.strip_suffix("+00:00").map_or_else(|| text.clone(), |text| format!("{text}Z"))
            }
            Self::Pattern(pattern) => patterned(pattern, then),
        }
    }
}

fn patterned(pattern: &str, then: i64) -> String {
    let config = Config::new().custom(PosixCustom::new()).lenient(true);
    // What is no pattern is shown as it is.
    BrokenDownTime::from(&in_zone(then)).to_string_with_config(&config, pattern).unwrap_or_else(|_| pattern.to_owned())
}

/// What glibc's `strftime` knows: plain, behind `E`, behind `O`.
const LETTERS: [(&str, &str); 3] = [
    ("", "%aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ"),
    ("E", "cCnpPrRstTuxXyYzZ"),
    ("O", "bBCdegGhHIjklmMnpPrRsStTuUVwWyzZ"),
];

/// The pattern as C has it, for one who knows other letters besides, and neither `E` nor `O`, which say nothing in C's locale.
fn in_c(pattern: &str) -> String {
    let (mut text, mut rest) = (String::new(), pattern);
    while let Some((before, behind)) = rest.split_once('%') {
        let word = behind.trim_start_matches(['_', '-', '0', '^', '#']);
        // Of several flags the last one is what counts.
        let flag = behind[..behind.len() - word.len()].chars().next_back();
        let letters = word.trim_start_matches(|c: char| c.is_ascii_digit());
        let width = &word[..word.len() - letters.len()];
        let modifier = ["E", "O"].into_iter().find(|modifier| letters.starts_with(modifier)).unwrap_or_default();
        let letter = letters[modifier.len()..].chars().next();
        let knows = |letter: &char| LETTERS.iter().any(|(known, all)| *known == modifier && all.contains(*letter));
        text.push_str(before);
        rest = if let Some(letter) = letter.filter(knows) {
            text.push('%');
            text.extend(flag);
            text.push_str(width);
            text.push(letter);
            &letters[modifier.len() + letter.len_utf8()..]
        } else {
            text.push_str("%%");
            behind
        };
    }
    text + rest
}

/// How long ago, in git's words.
fn relative(then: i64, now: i64) -> String {
    if then > now {
        return "in the future".to_owned();
    }
    let counted = |number: i64, unit: &str| format!("{number} {unit}{}", if number == 1 { "" } else { "s" });
    let ago = |number, unit| format!("{} ago", counted(number, unit));
    let seconds = now - then;
    let (minutes, hours) = ((seconds + 30) / 60, ((seconds + 30) / 60 + 30) / 60);
    let days = (hours + 12) / 24;
    match () {
        () if seconds < 90 => ago(seconds, "second"),
        () if minutes < 90 => ago(minutes, "minute"),
        () if hours < 36 => ago(hours, "hour"),
        () if days < 14 => ago(days, "day"),
        () if days < 70 => ago((days + 3) / 7, "week"),
        () if days < 365 => ago((days + 15) / 30, "month"),
        () if days < 1825 => {
            let months = (days * 12 * 2 + 365) / (365 * 2);
            match months % 12 {
                0 => ago(months / 12, "year"),
                rest => format!("{}, {}", counted(months / 12, "year"), ago(rest, "month")),
            }
        }
        () => ago((days + 183) / 365, "year"),
    }
}

/// As little as tells one date from others, in git's words.
fn human(then: i64, now: i64) -> String {
    let (date, today) = (in_zone(then), in_zone(now));
    let day = |date: &Zoned| (date.year(), date.month(), date.day());
    let same_month = date.year() == today.year() && date.month() == today.month();
    if day(&date) == day(&today) {
        return relative(then, now);
    }
    let zone = if date.offset() == today.offset() { "" } else { " %z" };
    let pattern = if same_month && date.day() < today.day() && date.day() + 5 > today.day() {
        format!("%a %H:%M{zone}")
    } else if date.year() == today.year() {
        "%a %b %-d %H:%M".to_owned()
    } else {
        "%b %-d %Y".to_owned()
    };
    patterned(&pattern, then)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_gits_words() {
        let now = 1_795_262_400;
        // Each as git 2.47 tells it.
        for (age, told) in [
            (-5, "in the future"),
            (1, "1 second ago"),
            (89, "89 seconds ago"),
            (90, "2 minutes ago"),
            (3_600, "60 minutes ago"),
            (5_400, "2 hours ago"),
            (130_000, "2 days ago"),
            (1_209_600, "2 weeks ago"),
            (6_048_000, "2 months ago"),
            (34_560_000, "1 year, 1 month ago"),
            (63_072_000, "2 years ago"),
            (189_216_000, "6 years ago"),
        ] {
            assert_eq!(relative(now - age, now), told, "{age}");
        }
    }

    #[test]
    fn a_form_has_the_names_that_git_has() {
        for (name, _) in NAMED {
            assert!(DateForm::named(name, true).is_ok(), "{name}");
        }
        assert_eq!(DateForm::named("iso-local", true), Ok(DateForm::Pattern(ISO.to_owned())));
        assert_eq!(DateForm::named("auto:relative", true), Ok(DateForm::Relative));
        assert_eq!(DateForm::named("auto:relative", false), DateForm::named("default", false));
        assert!(DateForm::named("tomorrow", true).is_err());
    }
}
