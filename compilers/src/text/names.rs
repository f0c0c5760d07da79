//! Names of resources, and words that are nearly right.

/// The longest name, in bytes: what file systems and engines take without complaint.
pub(crate) const MAX_NAME: usize = 255;

/// Returns the reason why a name can't be used, if it can't. Blanks, quotes, keywords and any alphabet are fine: names
/// are quoted wherever they meet SQL.
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

/// A name as people read it: `auction_data` is `Auction Data`, `foo:e1` is `Foo: E1`.
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

/// Returns the known word that an unknown one was likely meant to be: at most two letters missing, too many, wrong or
/// swapped, fewer in short words.
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
