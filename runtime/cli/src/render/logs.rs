//! Logs of runs, for people.

use anstyle::Style;
use serde_json::Value;
use watershed_api::documents::{LogLevel, LogLine, OutputLine};

use super::palette::{BAD, DIM, GOOD, WARN};
use super::paragraph::paragraph;

/// Renders a log line; further lines of its text are indented below the first.
pub(crate) fn line(line: &LogLine) -> String {
    let (style, of_text) = match line.level {
        LogLevel::Error => (BAD, BAD),
        LogLevel::Warn => (WARN, Style::new()),
        LogLevel::Info => (GOOD, Style::new()),
        LogLevel::Debug | LogLevel::Trace => (DIM, DIM),
    };
    let at = line.at.to_string();
    let at = at.replace('T', " ");
    let begin = format!("{DIM}{at}{DIM:#} {style}{:<5}{style:#} ", line.level.as_str());
    let indent = at.len() + 7;
    let fields: Vec<String> = line
        .fields
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        })
        .collect();
    let text = match (line.message.is_empty(), fields.is_empty()) {
        (_, true) => line.message.clone(),
        (true, false) => fields.join(" "),
        (false, false) => format!("{} ({})", line.message, fields.join(", ")),
    };
    // Lines are for pipes too: they are broken where they are broken, and by the terminal.
    paragraph(&begin, indent, &text, of_text, None)
}

/// Renders a line of a program's output.
pub(crate) fn output(line: &OutputLine) -> String {
    format!("{DIM}{} |{DIM:#} {}\n", line.program, line.text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use watershed_api::documents::{ResourceName, Time};

    #[test]
    fn a_line_says_when_how_much_it_matters_and_what() {
        let said = LogLine {
            id: 1,
            at: Time::from_millis(1_767_225_600_000),
            level: LogLevel::Info,
            resource: ResourceName {
                kind: "model".into(),
                name: "a".into(),
            },
            run: "1-1".into(),
            message: "done".into(),
            fields: BTreeMap::from([("work".to_owned(), "Built".into()), ("rows".to_owned(), 3.into())]),
            target: "t".into(),
        };
        let text = anstream::adapter::strip_str(&line(&said)).to_string();
        assert_eq!(text, "2026-01-01 00:00:00.000Z info  done (rows=3, work=Built)\n");
    }
}
