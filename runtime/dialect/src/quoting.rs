//! Quotes.

/// The way in which names and texts are quoted.
pub trait Quoting: Sync {
    /// Appends a name that stays one name whatever it holds. One that the system can't have (of no letter, or with a NUL) is
    /// refused there.
    fn put_name(&self, name: &str, out: &mut String);

    /// Appends a constant of text.
    fn put_text(&self, text: &str, out: &mut String);

    /// Returns a name between quotes.
    #[must_use]
    fn name(&self, name: &str) -> String {
        let mut out = String::with_capacity(name.len() + 2);
        self.put_name(name, &mut out);
        out
    }

    /// Returns a constant of text.
    #[must_use]
    fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 2);
        self.put_text(text, &mut out);
        out
    }

    /// Returns a name of several parts.
    #[must_use]
    fn path(&self, parts: &[&str]) -> String {
        let parts: Vec<String> = parts.iter().map(|part| self.name(part)).collect();
        parts.join(".")
    }
}

/// Returns a piece of what stands between quotes, where a doubled one stands for itself.
#[must_use]
pub fn doubled(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len());
    put_doubled(text, quote, &mut out);
    out
}

/// Returns a text whose backslashes stand for themselves where they escape.
#[must_use]
pub fn backslashed(text: &str) -> String {
    text.replace('\\', r"\\")
}

/// Appends a text between quotes that are doubled in it.
pub(crate) fn put_quoted(text: &str, quote: char, out: &mut String) {
    out.push(quote);
    put_doubled(text, quote, out);
    out.push(quote);
}

fn put_doubled(text: &str, quote: char, out: &mut String) {
    for letter in text.chars() {
        if letter == quote {
            out.push(quote);
        }
        out.push(letter);
    }
}
