//! Formatting of dates, times and decimals in the engine's own style.

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const NANOS_PER_DAY: i128 = 86_400 * NANOS_PER_SECOND;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAY: i64 = 719_468;
const DAYS_PER_ERA: i64 = 146_097;

/// Formats a decimal: an integer with the point before its last `scale` digits.
pub(crate) fn decimal(digits: i128, scale: u8) -> String {
    let scale = usize::from(scale);
    let sign = if digits < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if fraction.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

/// Formats a bit string, whose first byte is the number of unused bits in the second.
pub(crate) fn bits(bytes: &[u8]) -> String {
    let Some((padding, bytes)) = bytes.split_first() else {
        return String::new();
    };
    let bits = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
    bits.skip(usize::from(*padding))
        .map(|bit| if bit == 1 { '1' } else { '0' })
        .collect()
}

/// Formats a date, given in days since 1970.
pub(crate) fn date(days: i32) -> String {
    match days {
        i32::MAX => "infinity".to_owned(),
        n if n == -i32::MAX => "-infinity".to_owned(),
        _ => calendar_date(i64::from(days)),
    }
}

fn calendar_date(days: i64) -> String {
    let (year, month, day) = civil(days);
    if year > 0 {
        format!("{year:04}-{month:02}-{day:02}")
    } else {
        format!("{:04}-{month:02}-{day:02} (BC)", 1 - year)
    }
}

/// Returns year, month and day in the proleptic Gregorian calendar. Counts years from March internally, so that the
/// leap day is last.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + EPOCH_DAY;
    let era = shifted.div_euclid(DAYS_PER_ERA);
    let day_of_era = shifted.rem_euclid(DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Formats a time of day, given in nanoseconds since midnight.
pub(crate) fn time(nanos: i128) -> String {
    let seconds = nanos / NANOS_PER_SECOND;
    let mut out = format!(
        "{:02}:{:02}:{:02}",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    );
    let fraction = nanos % NANOS_PER_SECOND;
    if fraction != 0 {
        out.push_str(format!(".{fraction:09}").trim_end_matches('0'));
    }
    out
}

/// Formats a time of day with its offset: 40 bits of microseconds, then the offset in seconds, encoded so that it
/// sorts.
pub(crate) fn time_with_offset(bits: u64) -> String {
    const LARGEST_OFFSET: i64 = 16 * 3_600 - 1;
    let micros = i128::from(bits >> 24);
    let offset = LARGEST_OFFSET - i64::try_from(bits & 0xff_ffff).unwrap_or(0);
    let sign = if offset < 0 { '-' } else { '+' };
    let offset = offset.abs();
    let mut out = format!("{}{sign}{:02}", time(micros * 1_000), offset / 3_600);
    for (part, shown) in [
        (offset / 60 % 60, offset % 3_600 != 0),
        (offset % 60, offset % 60 != 0),
    ] {
        if shown {
            out.push_str(&format!(":{part:02}"));
        }
    }
    out
}

/// Formats a timestamp, given in nanoseconds since 1970; the largest and smallest number are infinite.
pub(crate) fn timestamp(nanos: i128) -> String {
    match nanos {
        i128::MAX => return "infinity".to_owned(),
        i128::MIN => return "-infinity".to_owned(),
        _ => {}
    }
    let days = i64::try_from(nanos.div_euclid(NANOS_PER_DAY)).unwrap_or(i64::MAX / 2);
    let date = calendar_date(days);
    let time = time(nanos.rem_euclid(NANOS_PER_DAY));
    match date.strip_suffix(" (BC)") {
        Some(date) => format!("{date} (BC) {time}"),
        None => format!("{date} {time}"),
    }
}

/// Formats an interval of months, days and microseconds, each with its own sign.
pub(crate) fn interval(months: i32, days: i32, micros: i64) -> String {
    let mut parts = Vec::new();
    for (count, unit) in [(months / 12, "year"), (months % 12, "month"), (days, "day")] {
        if count != 0 {
            let plural = if count.unsigned_abs() == 1 { "" } else { "s" };
            parts.push(format!("{count} {unit}{plural}"));
        }
    }
    if micros != 0 || parts.is_empty() {
        let sign = if micros < 0 { "-" } else { "" };
        parts.push(format!(
            "{sign}{}",
            time(i128::from(micros.unsigned_abs()) * 1_000)
        ));
    }
    parts.join(" ")
}
