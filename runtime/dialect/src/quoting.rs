//! Quoting of names and texts in statements.

/// The rules by which a system quotes names and texts.
pub trait Quoting: Sync {
    /// Appends a quoted name, which stays one name whatever it contains. The system refuses a name that it can't have
    /// (empty, or with a NUL).
    fn put_name(&self, name: &str, out: &mut String);

    /// Appends a quoted string constant.
    fn put_text(&self, text: &str, out: &mut String);

    /// Returns a quoted name.
    #[must_use]
    fn name(&self, name: &str) -> String {
        let mut out = String::with_capacity(name.len() + 2);
        self.put_name(name, &mut out);
        out
    }

    /// Returns a quoted string constant.
    #[must_use]
    fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 2);
        self.put_text(text, &mut out);
        out
    }

    /// Returns a qualified name: its parts quoted, with dots between them.
    #[must_use]
    fn path(&self, parts: &[&str]) -> String {
        let parts: Vec<String> = parts.iter().map(|part| self.name(part)).collect();
        parts.join(".")
    }
}

/// Returns a text with each occurrence of the quote doubled, without surrounding quotes.
#[must_use]
pub fn doubled(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len());
    put_doubled(text, quote, &mut out);
    out
}

/// Returns a text with each backslash doubled.
#[must_use]
pub fn backslashed(text: &str) -> String {
    text.replace('\\', r"\\")
}

/// Appends a text in quotes, with each quote inside it doubled.
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
