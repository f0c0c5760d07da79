//! Messages: the document that each notifier gets, and its forms for people.

use std::fmt;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use watershed_controller::{Timestamp, Uid};
use watershed_schedule::jiff;

/// The schema of the document.
pub const SCHEMA: &str = "watershed.notification/1";
/// The most rows that a message shows: it says that there is something to look at, and is no place to look at it.
pub const ROWS_MAX: usize = 10;
/// The most characters of one value that a message shows.
pub const VALUE_MAX: usize = 200;

/// The identity of a message to one receiver: the same for each attempt, so that who honours it gets it once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key(String);

impl Key {
    /// Returns the key of what a sender says to a receiver about a moment.
    #[must_use]
    pub fn new(sender: Uid, moment: Timestamp, verdict: &str, receiver: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in [
            sender.to_string().as_str(),
            moment.0.to_string().as_str(),
            verdict,
            receiver,
        ] {
            // Lengths keep parts apart, whatever they hold.
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let text = hasher.finalize().to_hex();
        Self(text.chars().take(32).collect())
    }

    /// Returns it as text: letters and digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The resource that a message is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// The kind.
    pub kind: String,
    /// The name, as of the message.
    pub name: String,
}

impl Sender {
    /// Returns the sender of a kind and name.
    pub fn new(kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            name: name.into(),
        }
    }
}

/// Something that is known, with a word for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// The word.
    pub label: String,
    /// The value.
    pub value: String,
}

/// The rows that a message is about; the first of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, as texts.
    pub rows: Vec<Vec<String>>,
}

/// The largest file that is sent with a mail, in bytes: servers refuse more.
pub const ATTACHED_MAX: u64 = 10 << 20;

/// A file that a message is about. It stays where it is until the message is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Its name, as receivers see it.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Its size.
    pub bytes: u64,
    /// The BLAKE3 digest of its content, in hexadecimal digits.
    pub hash: String,
    /// The place where people find it: its path, or a link.
    pub link: String,
    /// Its path on the machine that sends.
    pub path: String,
}

impl Attachment {
    /// Returns true if it goes with a mail; a larger one is only linked.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.bytes <= ATTACHED_MAX
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The schema of this document.
    pub schema: String,
    /// The identity.
    pub key: Key,
    /// The project's name.
    pub project: String,
    /// The sender.
    pub sender: Sender,
    /// The verdict, as a word: `fail`, `error`, `recovered`; `report` for a report.
    pub verdict: String,
    /// The moment that it is about (RFC 3339).
    pub moment: String,
    /// The line that says it.
    pub title: String,
    /// More for people; may be empty.
    pub text: String,
    /// More that is known.
    pub facts: Vec<Fact>,
    /// The rows that it is about.
    pub table: Option<Table>,
    /// The file that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment: Option<Attachment>,
    /// Set if somebody tries the message out.
    pub is_test: bool,
}

/// Returns an instant as RFC 3339 writes it; empty if it is beyond what can be written.
#[must_use]
pub fn instant(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| String::new(), |at| at.to_string())
}

/// Returns a text on one line, cut where it is too long for a message.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(VALUE_MAX)
        .collect();
    if text.chars().count() > VALUE_MAX {
        shown.push('…');
    }
    shown
}

impl Message {
    /// Returns a message that says one line about a moment and nothing else.
    #[must_use]
    pub fn one_line(key: Key, sender: Sender, moment: Timestamp, title: impl Into<String>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            key,
            project: String::new(),
            sender,
            verdict: "fail".to_owned(),
            moment: instant(moment),
            title: title.into(),
            text: String::new(),
            facts: Vec::new(),
            table: None,
            attachment: None,
            is_test: false,
        }
    }

    /// Returns the title on one line: a header of a mail, the first line of a text.
    #[must_use]
    pub fn headline(&self) -> String {
        let title = shown(&self.title);
        match self.is_test {
            true => format!("[test] {title}"),
            false => title,
        }
    }

    /// Returns the plain text.
    #[must_use]
    pub fn plain(&self) -> String {
        let mut text = format!("{}\n", self.headline());
        if !self.text.is_empty() {
            let _ = write!(text, "\n{}\n", self.text);
        }
        if !self.facts.is_empty() {
            text.push('\n');
        }
        for fact in &self.facts {
            let _ = writeln!(text, "{}: {}", fact.label, shown(&fact.value));
        }
        if let Some(table) = &self.table {
            let _ = write!(text, "\n{}", table.plain());
        }
        if let Some(file) = &self.attachment {
            let _ = writeln!(text, "\n{}: {}", shown(&file.name), file.link);
        }
        text
    }

    /// Returns the HTML of a mail.
    #[must_use]
    pub fn html(&self) -> String {
        let mut html = format!("<h3>{}</h3>\n", escaped(&self.headline()));
        if !self.text.is_empty() {
            let _ = writeln!(html, "<p>{}</p>", escaped(&self.text));
        }
        for fact in &self.facts {
            let (label, value) = (escaped(&fact.label), escaped(&shown(&fact.value)));
            let _ = writeln!(html, "<p>{label}: {value}</p>");
        }
        if let Some(table) = &self.table {
            html.push_str(&table.html());
        }
        if let Some(file) = &self.attachment {
            let (name, link) = (escaped(&shown(&file.name)), escaped(&file.link));
            let _ = match file.link.starts_with("https://") {
                true => writeln!(html, "<p><a href=\"{link}\">{name}</a></p>"),
                false => writeln!(html, "<p>{name}: {link}</p>"),
            };
        }
        html
    }
}

impl Table {
    /// Returns the table in plain text, columns below one another.
    #[must_use]
    pub fn plain(&self) -> String {
        let lines: Vec<Vec<String>> = std::iter::once(&self.columns)
            .chain(&self.rows)
            .map(|line| line.iter().map(|value| shown(value)).collect())
            .collect();
        let width = |column: usize| {
            let of = lines.iter().filter_map(|line| line.get(column));
            of.map(|value| value.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = String::new();
        for line in &lines {
            let cells: Vec<String> = line
                .iter()
                .zip(&widths)
                .map(|(value, width)| format!("{value:width$}"))
                .collect();
            let _ = writeln!(text, "{}", cells.join("  ").trim_end());
        }
        text
    }

    fn html(&self) -> String {
        let row = |cells: &[String], tag: &str| {
            let cells: String = cells
                .iter()
                .map(|value| format!("<{tag}>{}</{tag}>", escaped(&shown(value))))
                .collect();
            format!("<tr>{cells}</tr>\n")
        };
        let rows: String = self.rows.iter().map(|cells| row(cells, "td")).collect();
        format!("<table>\n{}{rows}</table>\n", row(&self.columns, "th"))
    }
}

/// A text as HTML shows it.
fn escaped(text: &str) -> String {
    text.chars()
        .fold(String::with_capacity(text.len()), |mut into, c| {
            match c {
                '&' => into.push_str("&amp;"),
                '<' => into.push_str("&lt;"),
                '>' => into.push_str("&gt;"),
                '"' => into.push_str("&quot;"),
                '\'' => into.push_str("&#39;"),
                other => into.push(other),
            }
            into
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::message;

    #[test]
    fn parts_of_a_key_are_kept_apart() {
        let uid = watershed_controller::Resource::fresh_uid();
        let key = |verdict: &str, receiver: &str| Key::new(uid, Timestamp(1), verdict, receiver);
        assert_eq!(key("fail", "ops"), key("fail", "ops"));
        assert_ne!(key("fail", "ops"), key("failo", "ps"));
        assert_ne!(key("fail", "ops"), Key::new(uid, Timestamp(2), "fail", "ops"));
        assert_eq!(key("fail", "ops").as_str().len(), 32);
    }

    #[test]
    fn values_are_one_line_in_text_and_escaped_in_html() {
        let mut message = message("k");
        message.title = "late\nBcc: all@example.org".to_owned();
        message.table = Some(Table {
            columns: vec!["a".to_owned(), "b".to_owned()],
            rows: vec![vec!["<b>\n".to_owned(), "x".repeat(300)]],
        });
        assert_eq!(message.headline(), "late Bcc: all@example.org");
        assert!(
            message.html().contains("<td>&lt;b&gt; </td>"),
            "{}",
            message.html()
        );
        assert!(message.plain().contains(&format!("{}…", "x".repeat(VALUE_MAX))));
        assert!(!message.plain().contains(&"x".repeat(VALUE_MAX + 1)));
    }

    #[test]
    fn a_message_that_is_tried_out_says_so() {
        let mut message = message("k");
        message.is_test = true;
        assert!(message.headline().starts_with("[test] "));
    }
}
