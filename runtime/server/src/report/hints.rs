//! What was most likely meant.

/// The known name that a typed one most likely stands for.
pub(crate) fn nearest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    known
        .map(|name| (strsim::jaro_winkler(&typed, &name.to_lowercase()), name))
        // Below this two names have little in common but their length.
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_nonsense_finds_none() {
        let known = ["daily_delays", "carriers"];
        assert_eq!(nearest("dayly_delays", known.into_iter()), Some("daily_delays"));
        assert_eq!(nearest("zzz", known.into_iter()), None);
    }
}
