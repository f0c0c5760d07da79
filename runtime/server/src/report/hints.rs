//! Hints at the name that a mistyped one most likely means.

/// Returns the known name that a mistyped one most likely means, ignoring case.
pub(crate) fn nearest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let names: Vec<(String, &str)> = known.map(|name| (name.to_lowercase(), name)).collect();
    let typed = typed.to_lowercase();
    let near = watershed_compilers::nearest_name(&typed, names.iter().map(|(lower, _)| lower.as_str()))?;
    names
        .iter()
        .find(|(lower, _)| lower == near)
        .map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_nonsense_finds_none() {
        let known = ["Daily_delays", "carriers"];
        assert_eq!(nearest("dayly_delays", known.into_iter()), Some("Daily_delays"));
        assert_eq!(nearest("zzz", known.into_iter()), None);
        assert_eq!(nearest(&"carriers".repeat(100_000), known.into_iter()), None);
    }
}
