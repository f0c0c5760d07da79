//! The result of trying an alert out, for people.

use std::fmt::Write as _;

use watershed_api::documents::AlertTestDocument;
use watershed_delivery::Table;

/// Renders the result of `alert test`.
pub(crate) fn alert_test(document: &AlertTestDocument) -> String {
    let mut text = format!(
        "{}/{}: {}",
        document.resource.kind, document.resource.name, document.verdict
    );
    if let Some(error) = &document.error {
        let _ = write!(text, ": {error}");
    }
    let count = document.rows.len();
    match (document.truncated, count) {
        (_, 0) => {}
        (true, _) => {
            let _ = write!(text, ", more than {count} rows");
        }
        (false, 1) => text.push_str(", 1 row"),
        (false, _) => {
            let _ = write!(text, ", {count} rows");
        }
    }
    let _ = writeln!(text, " (for {})", document.moment);
    if count > 0 {
        let table = Table {
            columns: document.columns.clone(),
            rows: document.rows.clone(),
        };
        let _ = write!(text, "\n{}", table.plain());
    }
    if !document.receivers.is_empty() {
        text.push('\n');
    }
    for receiver in &document.receivers {
        let said = receiver.answer.as_deref().filter(|answer| !answer.is_empty());
        let said = said.map(|answer| format!(": {answer}")).unwrap_or_default();
        let _ = match receiver.delivered {
            None => writeln!(text, "would tell {}", receiver.receiver),
            Some(true) => writeln!(text, "sent to {}{said}", receiver.receiver),
            Some(false) => writeln!(text, "not sent to {}{said}", receiver.receiver),
        };
    }
    text
}
