//! Numbers and times as people read them.

pub(crate) use watershed::program::units::{ago, count, duration, grouped};
use watershed_api::documents::Time;

/// Renders the number of resources, and how many of them are selected unless all are.
pub(crate) fn chosen_of(selected: Option<u64>, resources: u64) -> String {
    match selected {
        Some(selected) => format!(
            "{} of {} selected",
            grouped(selected),
            count(resources, "resource")
        ),
        None => count(resources, "resource"),
    }
}

/// Renders the time of day in the local zone: `14:03:22`.
pub(crate) fn clock(at: Time) -> String {
    let stamp = jiff::Timestamp::from_millisecond(at.millis()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    stamp
        .to_zoned(jiff::tz::TimeZone::system())
        .strftime("%H:%M:%S")
        .to_string()
}

/// Renders the time until a moment: `now`, `in 12 s`, `in 5 min`.
pub(crate) fn ahead(then: Time, now: Time) -> String {
    match then.since_ms(now) {
        0 => "now".to_owned(),
        ms @ 1..60_000 => format!("in {} s", ms.div_ceil(1_000)),
        ms @ 60_000..3_600_000 => format!("in {} min", ms / 60_000),
        ms @ 3_600_000..86_400_000 => format!("in {} h", ms / 3_600_000),
        ms => format!("in {}", count(ms / 86_400_000, "day")),
    }
}

/// Renders a length of time: `7 days`, `12 hours`, `5 minutes`.
pub(crate) fn kept_for(ms: u64) -> String {
    match ms / 60_000 {
        minutes @ 0..120 => count(minutes, "minute"),
        minutes @ 120..2_880 => count(minutes / 60, "hour"),
        minutes => count(minutes / 1_440, "day"),
    }
}

/// Renders a short duration, given in microseconds: `850us`, `1.9ms`, `2.1s`.
pub(crate) fn micros(us: u64) -> String {
    match us {
        0..1_000 => format!("{us}us"),
        1_000..1_000_000 => format!("{}.{}ms", us / 1_000, us % 1_000 / 100),
        _ => duration(us / 1_000),
    }
}

/// Renders a list of names, at most `most` of them: `a`, `a and b`, `a, b and 3 more`.
pub(crate) fn some_of(names: &[String], most: usize) -> String {
    let rest = names.len().saturating_sub(most);
    let shown = &names[..names.len() - rest];
    match (shown, rest) {
        ([], _) => String::new(),
        (shown, 0) => match shown.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, first)) => format!("{} and {last}", first.join(", ")),
            None => String::new(),
        },
        (shown, rest) => format!("{} and {rest} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1, "model"), "1 model");
        assert_eq!(count(336_776, "row"), "336,776 rows");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(duration(999), "999ms");
        assert_eq!(duration(1_250), "1.2s");
        assert_eq!(duration(200_000), "3m20s");
        assert_eq!(duration(7_200_000), "2h00m");
        assert_eq!([999, 1_950, 2_100_000].map(micros), ["999us", "1.9ms", "2.1s"]);
        let then = Time::from_millis(61_000);
        let now = [61_000, 60_500, 1_000].map(Time::from_millis);
        assert_eq!(now.map(|now| ahead(then, now)), ["now", "in 1 s", "in 1 min"]);
    }

    #[test]
    fn lists_are_cut_where_they_tire() {
        let names: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        assert_eq!(some_of(&names[..1], 2), "a");
        assert_eq!(some_of(&names[..2], 2), "a and b");
        assert_eq!(some_of(&names, 2), "a, b and 2 more");
    }
}
