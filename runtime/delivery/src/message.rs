//! Messages: the document that each notifier gets, and its renderings as text and HTML.

use std::fmt;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use watershed_controller::{Timestamp, Uid};
use watershed_schedule::jiff;

/// Version of the message document's schema.
pub const SCHEMA: &str = "watershed.notification/1";
/// The most rows that a message shows. A message points to data; it is no place to study them.
pub const ROWS_MAX: usize = 10;
/// The most characters of a single value in a message.
pub const VALUE_MAX: usize = 200;

/// The identity of a message to one receiver: the same for each attempt, so that the receiver can drop repetitions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key(String);

impl Key {
    /// Returns the key of a sender's message to a receiver about a moment.
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

    /// Returns the key as text: letters and digits.
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

/// The resource that sends a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// Kind of the sending resource.
    pub kind: String,
    /// Name of the sending resource when the message was created.
    pub name: String,
}

impl Sender {
    /// Creates the sender with this kind and name.
    pub fn new(kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            name: name.into(),
        }
    }
}

/// A labelled value in a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// Label in front of the value.
    pub label: String,
    /// The value as text.
    pub value: String,
}

/// The first rows of a message's data.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Table {
    /// Column names, in the order of the values.
    pub columns: Vec<String>,
    /// Rows as formatted texts, one for each column.
    pub rows: Vec<Vec<String>>,
}

/// The largest file that is attached to a mail, in bytes; mail servers refuse more.
pub const ATTACHED_MAX: u64 = 10 << 20;

/// A file that a message refers to. The file stays in place until the message is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// File name that receivers see.
    pub name: String,
    /// Media type, such as `text/csv`.
    pub media_type: String,
    /// Size in bytes.
    pub bytes: u64,
    /// BLAKE3 digest of the content, in hexadecimal digits.
    pub hash: String,
    /// Path or link under which people find the file.
    pub link: String,
    /// Path on the machine that sends the message.
    pub path: String,
}

impl Attachment {
    /// Returns true if the file is small enough to be attached to a mail; a larger one is only linked.
    #[must_use]
    pub fn is_attached(&self) -> bool {
        self.bytes <= ATTACHED_MAX
    }
}

/// The document that notifiers deliver to a receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Version of the document's schema.
    pub schema: String,
    /// Identity of the message, the same for each attempt.
    pub key: Key,
    /// The project's name, for receivers of several projects.
    pub project: String,
    /// The resource that sends the message.
    pub sender: Sender,
    /// Verdict in a word: `fail`, `error`, `recovered`; `report` for a report.
    pub verdict: String,
    /// Time that the message is about (RFC 3339).
    pub moment: String,
    /// Title: the message in one line.
    pub title: String,
    /// Further text for people; may be empty.
    pub text: String,
    /// Further labelled values.
    pub facts: Vec<Fact>,
    /// Rows that the message is about; none if there are none.
    pub table: Option<Table>,
    /// File that the message is about; none if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment: Option<Attachment>,
    /// True for a message that somebody sends to try out the delivery.
    pub is_test: bool,
}

/// Formats an instant as RFC 3339; empty if out of range.
#[must_use]
pub fn instant(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| String::new(), |at| at.to_string())
}

/// Puts a text on one line, truncated to the length that a message shows.
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
    /// Creates a message of a single line about a moment.
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

    /// Returns the title on one line, for the subject of a mail or the first line of a text.
    #[must_use]
    pub fn headline(&self) -> String {
        let title = shown(&self.title);
        match self.is_test {
            true => format!("[test] {title}"),
            false => title,
        }
    }

    /// Renders the message as plain text.
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

    /// Renders the message as the HTML of a mail.
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
    /// Renders the table as plain text with aligned columns.
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

/// Escapes a text for HTML.
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
