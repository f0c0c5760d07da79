//! Bounds on the texts that are stored on a resource and with each run.

use std::sync::Arc;

/// Maximum number of bytes of a stored text: more than anybody reads, and a bound on every history entry.
pub const TEXT_MAX: usize = 64 * 1024;

/// Cuts a text that is too long, and appends its full length.
pub(crate) fn bounded(text: Arc<str>) -> Arc<str> {
    if text.len() <= TEXT_MAX {
        return text;
    }
    let end = text.floor_char_boundary(TEXT_MAX);
    let beginning = text.get(..end).unwrap_or_default();
    Arc::from(format!("{beginning}... ({} bytes, cut off here)", text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_where_a_character_ends_and_says_how_long_it_was() {
        let short: Arc<str> = Arc::from("x".repeat(TEXT_MAX));
        assert!(Arc::ptr_eq(&bounded(Arc::clone(&short)), &short));
        let long: Arc<str> = Arc::from("\u{e4}".repeat(TEXT_MAX) + "x");
        let cut = bounded(Arc::from(format!("x{long}")));
        let (text, said) = cut.split_once("...").expect("it says so");
        assert_eq!(text, format!("x{}", "\u{e4}".repeat(TEXT_MAX / 2 - 1)));
        assert_eq!(said, format!(" ({} bytes, cut off here)", 2 * TEXT_MAX + 2));
    }
}
