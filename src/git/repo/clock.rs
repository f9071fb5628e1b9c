//! Times: in records as RFC 3339, in commits as git has them, in the log as how long ago.

use crate::git::repo::platform::nanoseconds;
use gix::date::Time;
use gix::date::time::format::{ISO8601, ISO8601_STRICT};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::SystemTime;

/// The time now, RFC 3339.
pub fn rfc3339_now() -> String {
    local_time().format_or_unix(ISO8601_STRICT)
}

/// A time in seconds since 1970, RFC 3339.
pub fn rfc3339_of(seconds: i64) -> String {
    Time { seconds, offset: 0 }.format_or_unix(ISO8601_STRICT)
}

/// A time in seconds since 1970; the end of all times where it is not known.
pub fn seconds(at: Option<&String>) -> i64 {
    at.and_then(|at| parse_rfc3339(at)).unwrap_or(i64::MAX)
}

/// The time now, in seconds since 1970.
pub fn unix_now() -> i64 {
    Timestamp::now().as_second()
}

/// When the system was started, in nanoseconds since 1970: what was there before was read from the disk.
pub fn boot_time() -> u64 {
    // Both clocks are read to the second.
    nanoseconds(unix_now() - since_boot() - 2, 0)
}

/// How long the system has been running, in seconds: nobody sets this clock back.
pub fn since_boot() -> i64 {
    use rustix::time::{ClockId, clock_gettime};
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    clock_gettime(clock).tv_sec
}

/// A recorded time in seconds since 1970.
pub fn parse_rfc3339(time: &str) -> Option<i64> {
    time.parse().ok().map(Timestamp::as_second)
}

/// A recorded time as people read it, in the user's time zone.
pub fn local(time: &str) -> String {
    let Some(seconds) = parse_rfc3339(time) else {
        return crate::model::bytes::sanitized(time);
    };
    let offset = Timestamp::from_second(seconds).map_or(0, |then| zone().to_offset(then).seconds());
    Time { seconds, offset }.format_or_unix(ISO8601)
}

/// How long ago a recorded time was, in git's short words.
pub fn ago(time: &str) -> String {
    let Some(then) = parse_rfc3339(time) else {
        return crate::model::bytes::sanitized(time);
    };
    seconds_ago(unix_now().saturating_sub(then).max(0))
}

/// How long ago a file's time was, in one unit.
pub fn ago_of(time: SystemTime) -> String {
    let seconds = time.elapsed().unwrap_or_default().as_secs();
    seconds_ago(i64::try_from(seconds).unwrap_or(i64::MAX))
}

/// How long ago so many seconds were, in one unit.
pub fn seconds_ago(seconds: i64) -> String {
    let (n, unit) = match seconds {
        0..60 => (seconds, "s"),
        60..3_600 => (seconds / 60, "min"),
        3_600..86_400 => (seconds / 3_600, "h"),
        _ => (seconds / 86_400, "d"),
    };
    format!("{n} {unit} ago")
}

/// The time now in the user's time zone.
pub fn local_time() -> Time {
    let now = Timestamp::now();
    Time { seconds: now.as_second(), offset: zone().to_offset(now).seconds() }
}

/// A time in seconds since 1970, in the user's time zone.
pub fn in_zone(seconds: i64) -> Zoned {
    Timestamp::from_second(seconds).unwrap_or_default().to_zoned(zone().clone())
}

/// The user's time zone, from its file alone: jiff would search all zone files, which takes longer than the rest of a start.
fn zone() -> &'static TimeZone {
    static ZONE: LazyLock<TimeZone> = LazyLock::new(|| {
        let name = std::env::var_os("TZ");
        let file = name.as_deref().map_or_else(|| PathBuf::from("/etc/localtime"), zone_file);
        let zone = std::fs::read(file).ok().and_then(|bytes| TimeZone::tzif("", &bytes).ok());
        zone.unwrap_or_else(|| if name.is_some() { TimeZone::system() } else { TimeZone::UTC })
    });
    &ZONE
}

/// Where most systems have the zone of this name. A value that is no name (`CET-1CEST`, `:/etc/localtime`) is not there.
fn zone_file(name: &OsStr) -> PathBuf {
    Path::new("/usr/share/zoneinfo").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_times_are_read_as_they_were_written() {
        assert_eq!(parse_rfc3339("2026-11-21T13:00:00+01:00"), Some(1_795_262_400));
        assert_eq!(parse_rfc3339(&rfc3339_of(-1)), Some(-1));
        let (before, now, after) = (unix_now(), parse_rfc3339(&rfc3339_now()), unix_now());
        assert!(now.is_some_and(|now| (before..=after).contains(&now)), "{now:?}");
        assert_eq!(parse_rfc3339("yesterday"), None);
        assert!(!ago("\u{1b}[2J").contains('\u{1b}'), "what is no time is shown without harm");
        assert_eq!(ago(&rfc3339_of(unix_now() - 7_300)), "2 h ago");
    }
}
