//! Durations as project files write them.

/// Reads whole seconds: a number of seconds, a duration as Go writes it (`1h30m`), or ISO 8601 (`PT1H30M`). Months
/// and years, which have no fixed length, count 30 and 365 days.
pub(crate) fn seconds(text: &str) -> Option<u32> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(seconds);
    }
    let seconds = match text.strip_prefix(['P', 'p']) {
        Some(rest) => iso(rest)?,
        None => go(text)?,
    };
    (seconds.is_finite() && (0.0..=f64::from(u32::MAX)).contains(&seconds)).then_some(seconds.ceil() as u32)
}

/// Cuts a number and what follows it up to the next number.
fn part(text: &str) -> Option<(f64, &str, &str)> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let unit_at = text.find(|c| !is_number(c))?;
    let number = text.get(..unit_at)?.parse().ok()?;
    let rest = text.get(unit_at..)?;
    let end = rest.find(is_number).unwrap_or(rest.len());
    Some((number, rest.get(..end)?, rest.get(end..)?))
}

fn go(mut text: &str) -> Option<f64> {
    let mut sum = 0.0;
    while !text.is_empty() {
        let (number, unit, rest) = part(text)?;
        let unit = match unit {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        sum += number * unit;
        text = rest;
    }
    (sum > 0.0).then_some(sum)
}

fn iso(text: &str) -> Option<f64> {
    let upper = text.to_uppercase();
    let (date, time) = upper
        .split_once('T')
        .map_or((upper.as_str(), ""), |(date, time)| (date, time));
    let days = units(date, &[("Y", 365.0), ("M", 30.0), ("W", 7.0), ("D", 1.0)])?;
    let seconds = units(time, &[("H", 3600.0), ("M", 60.0), ("S", 1.0)])?;
    (!(date.is_empty() && time.is_empty())).then_some(days * 86_400.0 + seconds)
}

fn units(mut text: &str, known: &[(&str, f64)]) -> Option<f64> {
    let mut sum = 0.0;
    while !text.is_empty() {
        let (number, unit, rest) = part(text)?;
        let (_, size): &(&str, f64) = known.iter().find(|(name, _)| *name == unit)?;
        sum += number * size;
        text = rest;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_ways_to_write_a_duration() {
        assert_eq!(
            ["90", "1m30s", "PT1M30S", "1.5h", "P1D", "500ms"].map(seconds),
            [Some(90), Some(90), Some(90), Some(5400), Some(86_400), Some(1)]
        );
        assert_eq!(
            ["", "soon", "-5", "1x", "P", "5 m", "P1X"].map(seconds),
            [None; 7]
        );
    }
}
