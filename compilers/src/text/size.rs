//! Parsing of sizes in project files and on the command line.

/// The units with their sizes in bytes; longer names first, as some end in shorter ones.
const UNITS: [(&str, u64); 9] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("b", 1),
];

/// Parses a size to bytes, such as `512MB` or `1.5 GiB`; zero needs no unit.
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    if lower == "0" {
        return Some(0);
    }
    let (digits, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| Some((lower.strip_suffix(name)?, *unit)))?;
    let number: f64 = digits.trim().parse().ok()?;
    let bytes = number * unit as f64;
    // Beyond 2^53 a float has no exact bytes, and no machine has as many.
    (0.0..=9_007_199_254_740_992.0)
        .contains(&bytes)
        .then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_know_both_families_of_units() {
        let read = ["2GB", "1.5 GiB", "0", "0b", "12kb"].map(parse_size);
        assert_eq!(
            read,
            [
                Some(2_000_000_000),
                Some(1_610_612_736),
                Some(0),
                Some(0),
                Some(12_000)
            ]
        );
        assert_eq!(["", "2", "-1GB", "GB", "much"].map(parse_size), [None; 5]);
    }
}
