//! Messages: the document that each notifier gets, and its renderings as text and HTML.

use std::fmt;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use watershed_controller::{Timestamp, Uid};
use watershed_schedule::{Zone, jiff};

/// Version of the message document's schema.
pub const SCHEMA: &str = "watershed.notification/1";
/// The most rows of data that a message shows.
pub const ROWS_MAX: usize = 10;
/// The most characters of a single value in a message.
pub const VALUE_MAX: usize = 200;

/// The identity of a message to one receiver, the same for each attempt, so that the receiver can drop duplicates.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key(String);

impl Key {
    /// Returns the key of a message from its sender, moment, verdict and receiver.
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

/// Content id of the picture inside a mail.
pub const PICTURE: &str = "line@watershed";

/// The largest file that is attached to a mail, in bytes; mail servers refuse more.
pub const ATTACHED_MAX: u64 = 10 << 20;

/// A file that a message refers to. The file is kept until the message is delivered.
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

    /// Returns the URL of the file; none if the file is reachable only on the sending machine.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        Some(self.link.as_str()).filter(|link| *link != self.path)
    }

    /// Returns a sentence on where the file is found, without its URL and without local paths.
    #[must_use]
    pub fn described(&self, is_attached: bool) -> String {
        let name = format!("{} ({})", shown(&self.name), size(self.bytes));
        match (is_attached, self.address()) {
            (true, _) => format!("Attached: {name}"),
            (false, Some(_)) => name,
            (false, None) => format!("{name} is kept where the project runs"),
        }
    }
}

/// Formats a size for people: `640 bytes`, `12.4 kB`.
fn size(bytes: u64) -> String {
    const STEPS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match STEPS.into_iter().find(|(step, _)| bytes >= *step) {
        // A tenth is as exact as a reader needs it.
        Some((step, unit)) => format!("{}.{} {unit}", bytes / step, bytes % step * 10 / step),
        None if bytes == 1 => "1 byte".to_owned(),
        None => format!("{bytes} bytes"),
    }
}

/// A time series, as the chart in a mail shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Name of the measured value.
    pub label: String,
    /// First and last time, formatted for people.
    pub times: [String; 2],
    /// Lowest and highest value, formatted for people.
    pub bounds: [String; 2],
    /// Values in the order of time, scaled from 0 (the lowest) to 1,000 (the highest).
    pub heights: Vec<u16>,
}

impl Series {
    /// Returns the caption below the chart.
    #[must_use]
    pub fn caption(&self) -> String {
        let ([from, until], [least, most]) = (&self.times, &self.bounds);
        shown(&format!("{}, {from} to {until}: {least} to {most}", self.label))
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
    /// Verdict as one word: `fail`, `error`, `recovered`; `report` for a report.
    pub verdict: String,
    /// Time that the message is about (RFC 3339).
    pub moment: String,
    /// Title: the message in one line.
    pub title: String,
    /// Further text for people; may be empty.
    pub text: String,
    /// Further labelled values.
    pub facts: Vec<Fact>,
    /// Rows that the message shows; none for messages without data.
    pub table: Option<Table>,
    /// File that the message refers to; none for messages without a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment: Option<Attachment>,
    /// Time series that the message's rows form; none for other rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// True for a message that somebody sends to try out the delivery.
    pub is_test: bool,
}

/// Formats an instant as RFC 3339; empty if out of range.
#[must_use]
pub fn instant(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map_or_else(|_| String::new(), |at| at.to_string())
}

/// Formats an instant in a time zone for people: `26 November 2026, 17:02 (Berlin)`. An unknown zone counts as UTC.
#[must_use]
pub fn in_words(at: Timestamp, zone: &str) -> String {
    let Ok(at) = jiff::Timestamp::from_millisecond(at.0) else {
        return String::new();
    };
    let zone = Zone::find(zone).unwrap_or(Zone::UTC);
    let place = zone
        .name()
        .and_then(|name| name.rsplit('/').next())
        .unwrap_or("UTC");
    let local = zone.local(at).strftime("%-d %B %Y, %H:%M");
    format!("{local} ({})", place.replace('_', " "))
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
            series: None,
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
            let _ = writeln!(text, "\n{}", file.described(file.is_attached()));
            if let Some(address) = file.address() {
                let _ = writeln!(text, "{address}");
            }
        }
        text
    }

    /// Renders the message as the HTML of a mail.
    #[must_use]
    pub fn html(&self) -> String {
        let mut html = format!(
            "<div style=\"font-family: sans-serif; font-size: 14px\">\n<h3>{}</h3>\n",
            escaped(&self.headline())
        );
        if !self.text.is_empty() {
            let _ = writeln!(html, "<p>{}</p>", escaped(&self.text));
        }
        let fact = |fact: &Fact| format!("{}: {}", escaped(&fact.label), escaped(&shown(&fact.value)));
        let facts: Vec<String> = self.facts.iter().map(fact).collect();
        if !facts.is_empty() {
            let _ = writeln!(html, "<p>{}</p>", facts.join("<br>\n"));
        }
        if let Some(series) = &self.series {
            let caption = escaped(&series.caption());
            let _ = writeln!(
                html,
                "<p><img src=\"cid:{PICTURE}\" width=\"480\" height=\"80\" alt=\"{caption}\"><br>\n<small>{caption}</small></p>"
            );
        }
        if let Some(table) = &self.table {
            html.push_str(&table.html());
        }
        if let Some(file) = &self.attachment {
            let said = escaped(&file.described(file.is_attached()));
            let address = file.address().map(escaped);
            let _ = match address.filter(|address| address.starts_with("https://")) {
                Some(address) => writeln!(html, "<p><a href=\"{address}\">{said}</a></p>"),
                None => writeln!(html, "<p>{said}</p>"),
            };
        }
        html.push_str("</div>\n");
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
        // Programs that show mails read styles on elements alone.
        const CELL: &str = "border: 1px solid #ccc; padding: 3px 8px";
        let row = |cells: &[String], tag: &str| {
            let cells: String = cells
                .iter()
                .map(|value| format!("<{tag} style=\"{CELL}\">{}</{tag}>", escaped(&shown(value))))
                .collect();
            format!("<tr>{cells}</tr>\n")
        };
        let rows: String = self.rows.iter().map(|cells| row(cells, "td")).collect();
        let head = row(&self.columns, "th");
        format!("<table style=\"border-collapse: collapse; font-size: 13px\">\n{head}{rows}</table>\n")
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
            message.html().contains("\">&lt;b&gt; </td>"),
            "{}",
            message.html()
        );
        assert!(message.plain().contains(&format!("{}…", "x".repeat(VALUE_MAX))));
        assert!(!message.plain().contains(&"x".repeat(VALUE_MAX + 1)));
    }

    #[test]
    fn a_moment_is_told_by_the_clock_of_its_zone() {
        let at = Timestamp(1_795_708_953_670);
        assert_eq!(in_words(at, "Europe/Berlin"), "26 November 2026, 17:02 (Berlin)");
        assert_eq!(
            in_words(at, "America/New_York"),
            "26 November 2026, 11:02 (New York)"
        );
        assert_eq!(in_words(at, ""), "26 November 2026, 16:02 (UTC)");
    }

    #[test]
    fn a_file_is_told_without_the_path_where_it_lies() {
        let mut message = message("k");
        let mut file = Attachment {
            name: "weekly.xlsx".to_owned(),
            media_type: String::new(),
            bytes: 12_400,
            hash: String::new(),
            link: "/srv/state/exports/weekly.xlsx".to_owned(),
            path: "/srv/state/exports/weekly.xlsx".to_owned(),
        };
        let said = |message: &mut Message, file: &Attachment| {
            message.attachment = Some(file.clone());
            [message.plain(), message.html()]
        };
        for text in said(&mut message, &file) {
            assert!(text.contains("Attached: weekly.xlsx (12.4 kB)"), "{text}");
            assert!(!text.contains("/srv"), "{text}");
        }
        file.bytes = ATTACHED_MAX + 1;
        for text in said(&mut message, &file) {
            assert!(
                text.contains("weekly.xlsx (10.4 MB) is kept where the project runs"),
                "{text}"
            );
            assert!(!text.contains("/srv"), "{text}");
        }
        file.link = "https://example.org/weekly.xlsx".to_owned();
        for text in said(&mut message, &file) {
            assert!(text.contains("https://example.org/weekly.xlsx"), "{text}");
        }
    }

    #[test]
    fn a_message_that_is_tried_out_says_so() {
        let mut message = message("k");
        message.is_test = true;
        assert!(message.headline().starts_with("[test] "));
    }
}
