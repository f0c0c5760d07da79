//! Checks of names, display names, and suggestions for misspelled words.

/// The largest length of a name in bytes, which file systems and engines accept.
pub(crate) const MAX_NAME: usize = 255;

/// Returns the reason why a name is invalid, if it is. Blanks, quotes, keywords and any alphabet are allowed, as names
/// are always quoted in SQL.
pub(crate) fn problem(name: &str) -> Option<String> {
    if name.trim().is_empty() {
        Some("the name is empty".to_owned())
    } else if let Some(control) = name.chars().find(|c| c.is_control()) {
        Some(format!(
            "the name holds the control character {}",
            control.escape_unicode()
        ))
    } else if name.len() > MAX_NAME {
        Some(format!("the name has {} bytes, more than {MAX_NAME}", name.len()))
    } else {
        None
    }
}

/// Returns a display name: `Auction Data` for `auction_data`, `Foo: E1` for `foo:e1`.
pub fn for_people(name: &str) -> String {
    let words = name.replace(':', ": ");
    let words = words.split(['_', '-', ' ']).filter(|word| !word.is_empty());
    let capital = |word: &str| {
        let mut chars = word.chars();
        let first = chars.next().into_iter().flat_map(char::to_uppercase);
        first.chain(chars).collect::<String>()
    };
    words.map(capital).collect::<Vec<_>>().join(" ")
}

/// Returns the known word that a misspelled one likely means, within at most two edits, fewer in short words.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = match word.chars().count() {
        0..=2 => 0,
        3 | 4 => 1,
        _ => 2,
    };
    // What is longer or shorter by more can't be near, however long it took to see that.
    let longest = allowed * char::MAX.len_utf8();
    known
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= longest)
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .filter(|(distance, _)| (1..=allowed).contains(distance))
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let known = ["materialize", "refresh", "sql", "name", "path", "db"];
        let find = |word| nearest(word, known);
        assert_eq!(find("materialise"), Some("materialize"));
        assert_eq!(find("refesh"), Some("refresh"));
        assert_eq!(find("nmae"), Some("name"));
        assert_eq!(find("id"), None);
        assert_eq!(find("sql"), None);
        assert_eq!(find("limit"), None);
    }

    #[test]
    fn names_become_words() {
        assert_eq!(for_people("auction_data"), "Auction Data");
        assert_eq!(for_people("foo:e1"), "Foo: E1");
        assert_eq!(for_people("öl-preis  je_t"), "Öl Preis Je T");
    }

    #[test]
    fn names_that_can_be_quoted_are_fine() {
        for name in ["a", "select", "a b", "a\"b", "日本", "x; drop table y", "-"] {
            assert_eq!(problem(name), None, "{name}");
        }
        for name in ["", "  ", "a\nb", "a\0", &"x".repeat(256)] {
            assert!(problem(name).is_some(), "{name:?}");
        }
    }
}
