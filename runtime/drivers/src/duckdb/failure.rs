//! Classification of the engine's errors into the cases that callers distinguish.
//!
//! Connections have `errors_as_json` set, so most errors are `Class Error: {...}` with fields; some of the engine's
//! layers know nothing of the setting and write `Class Error: text`. Both are read here and nowhere else.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::sys::RawError;
use super::{confine, csv_error, json_error};
use crate::olap::{Failure, OpenError, SoleError, SqlError};

/// A statement as sent to the engine: the caller's SQL behind our prefix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    /// Our text before the caller's SQL.
    pub(super) prefix: &'a str,
    /// The caller's SQL.
    pub(super) sql: &'a str,
}

/// A parsed error message of the engine.
#[derive(Debug, Default, Deserialize)]
struct Said {
    #[serde(rename = "exception_type", default)]
    class: String,
    #[serde(rename = "exception_message", default)]
    message: String,
    position: Option<String>,
}

impl Said {
    fn read(raw: &RawError) -> Self {
        let text = raw.0.trim();
        let json = text.find('{').and_then(|at| text.get(at..));
        if let Some(said) = json.and_then(|json| serde_json::from_str::<Self>(json).ok()) {
            return said.with_inner();
        }
        match text.split_once(" Error: ") {
            Some((class, message)) => Self {
                class: class.to_owned(),
                message: message.to_owned(),
                position: None,
            },
            None => Self {
                class: String::new(),
                message: text.to_owned(),
                position: None,
            },
        }
    }

    /// Parses the error that this one quotes at its end, as errors of attached lakes do.
    fn with_inner(mut self) -> Self {
        let inner = self.message.find(r#"{"exception_type""#);
        let inner = inner.and_then(|at| Some((at, self.message.get(at..)?)));
        if let Some((at, json)) = inner
            && let Ok(inner) = serde_json::from_str::<Self>(json)
        {
            self.message.truncate(at);
            self.message.push_str(&inner.message);
        }
        self
    }

    /// Returns the error's class in lower case with hyphens: `out-of-memory`.
    fn class(&self) -> String {
        self.class.to_lowercase().replace(' ', "-")
    }

    /// Returns the position of the error in the caller's SQL, in bytes; none if unknown.
    fn offset(&self, source: Source<'_>) -> Option<usize> {
        let position: usize = self.position.as_deref()?.parse().ok()?;
        if self.class() == "parser" {
            // The parser counts characters, everything behind it bytes.
            let index = position.checked_sub(source.prefix.chars().count())?;
            let byte = source.sql.char_indices().nth(index).map(|(byte, _)| byte);
            return Some(byte.unwrap_or(source.sql.len()));
        }
        Some(position.checked_sub(source.prefix.len())?.min(source.sql.len()))
    }
}

/// Classifies the error of a statement, and the state in which it leaves the engine.
pub(super) fn classify(raw: &RawError, source: Option<Source<'_>>) -> (Failure, Aftermath) {
    let said = Said::read(raw);
    let class = said.class();
    let fatal = matches!(class.as_str(), "fatal" | "internal");
    let aftermath = if fatal {
        Aftermath::Broken
    } else {
        Aftermath::Usable
    };
    let message = said.message.trim().to_owned();
    if is_disk_full(&message) {
        return (Failure::DiskFull { message }, aftermath);
    }
    if message.contains("Corrupt database file") {
        let path = PathBuf::new();
        return (Failure::Open(OpenError::Damaged { path, message }), aftermath);
    }
    if message.contains(SIGNALLED) {
        return (Failure::Interrupted, aftermath);
    }
    let failure = match class.as_str() {
        "interrupt" => Failure::Interrupted,
        "out-of-memory" => out_of_memory(message),
        "fatal" | "internal" => Failure::Fatal { message },
        _ => match missing_extension(&message) {
            Some(extension) => Failure::MissingExtension {
                extension,
                confined: message.contains("disabled by configuration"),
                message,
                refused: None,
            },
            None => Failure::Sql(sql_error(&said, class, source)),
        },
    };
    (failure, aftermath)
}

/// The system's message for a call that a signal interrupted, which happens only to interrupted work.
const SIGNALLED: &str = "Interrupted system call";

/// Returns true if a change failed because other objects depend on the changed one: the engine renames no table with an
/// index.
pub(super) fn is_of_dependents(failure: &Failure) -> bool {
    matches!(failure, Failure::Sql(error) if error.class == "dependency")
}

/// The state of the engine after an error, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Aftermath {
    /// The connection and the engine remain usable.
    Usable,
    /// The connection is unusable, but the engine remains usable.
    Spent,
    /// The engine refuses all work until its file is reopened.
    Broken,
}

/// Parses the process in `... held in /usr/bin/python3.11 (PID 12) ...`.
fn process_in(message: &str) -> Option<String> {
    let (before, after) = message.split_once(" (PID ")?;
    let (process, _) = after.split_once(')')?;
    let program = before.rsplit_once(" in ").map(|(_, path)| path);
    let program = program.and_then(|path| path.rsplit('/').next());
    Some(match program.filter(|program| !program.is_empty()) {
        Some(program) => format!("process {process} ({program})"),
        None => format!("process {process}"),
    })
}

/// Classifies the error of opening a file.
pub(super) fn classify_open(raw: &RawError, path: &Path) -> OpenError {
    let path = path.to_owned();
    let message = Said::read(raw).message.trim().to_owned();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if says(&["Could not set lock", "Conflicting lock"]) {
        let holder = process_in(&message);
        OpenError::Locked { path, holder }
    } else if says(&["can only read version", "newer version of DuckDB"]) {
        OpenError::Newer { path, message }
    } else if says(&[
        "not a valid DuckDB database",
        "Corrupt",
        "corrupt",
        "checksum",
        "replaying WAL",
        "Failed to deserialize",
        "could not read enough bytes",
        "Could not read enough bytes",
        "Could not read all bytes",
        "INTERNAL",
    ]) || Said::read(raw).class().starts_with("seriali")
    {
        OpenError::Damaged { path, message }
    } else {
        OpenError::Io { path, message }
    }
}

fn is_disk_full(message: &str) -> bool {
    ["No space left on device", "Disk quota exceeded", "File too large"]
        .iter()
        .any(|words| message.contains(words))
}

/// Parses limit and use from `... (95.2 MiB/95.3 MiB used) ...`.
fn out_of_memory(message: String) -> Failure {
    let used = message
        .split_once(" used)")
        .and_then(|(before, _)| before.rsplit_once('('));
    let (peak, limit) = used
        .and_then(|(_, pair)| pair.split_once('/'))
        .unwrap_or(("an unknown use", "the limit"));
    let setting = if message.contains("max_temp_directory_size") {
        "max_temp_directory_size"
    } else {
        "memory_limit"
    };
    Failure::OutOfMemory {
        setting,
        limit: limit.to_owned(),
        peak: peak.to_owned(),
        message: first_line(&message),
    }
}

/// Returns the name of a missing extension in an error message; none for other errors.
fn missing_extension(message: &str) -> Option<String> {
    let between = |before: &str, after: &str| {
        let (_, rest) = message.split_once(before)?;
        let (name, _) = rest.split_once(after)?;
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        plain.then(|| name.to_owned())
    };
    between("required extension '", "'")
        .or_else(|| between("but it exists in the ", " extension"))
        .or_else(|| between("exists in the ", " extension").filter(|name| name == "encodings"))
        .or_else(|| between("Install it first using \"INSTALL ", "\""))
}

/// The most characters of a hint; longer advice becomes details.
const LONGEST_HINT: usize = 240;

/// Converts an error message: its first line is the message, and the rest a hint, or details if long.
fn sql_error(said: &Said, class: String, source: Option<Source<'_>>) -> SqlError {
    if let Some(message) = confine::refusal(&said.message) {
        return SqlError {
            class: confine::CLASS.to_owned(),
            message,
            hint: Some(confine::hint()),
            offset: source.and_then(|source| said.offset(source)),
            ..SqlError::default()
        };
    }
    if let Some(error) = csv_error::read(&said.message) {
        return SqlError {
            class,
            message: error.message,
            hint: error.hint,
            offset: source.and_then(|source| said.offset(source)),
            details: Some(said.message.trim().to_owned()),
            data: error.place.map(Box::new),
        };
    }
    let mut lines = said
        .message
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("the engine gave no reason");
    let (message, place) = match json_error::read(first) {
        Some(error) => (error.message, Some(error.place)),
        None => (first.to_owned(), None),
    };
    let hint: Vec<_> = lines.take_while(|line| !line.starts_with("LINE ")).collect();
    let hint = (!hint.is_empty()).then(|| hint.join(" "));
    let is_long = hint.as_ref().is_some_and(|hint| hint.len() > LONGEST_HINT);
    SqlError {
        class,
        message,
        hint: hint.filter(|_| !is_long),
        offset: source.and_then(|source| said.offset(source)),
        details: is_long.then(|| said.message.trim().to_owned()),
        data: place.map(Box::new),
    }
}

fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim().to_owned()
}

/// Returns the failure of a text that is not a single statement.
pub(super) fn not_one(error: SoleError) -> Failure {
    Failure::Sql(plain_error(&error.to_string()))
}

/// Returns the error of a statement that was refused without asking the engine.
pub(super) fn plain_error(message: &str) -> SqlError {
    SqlError {
        class: "parser".to_owned(),
        message: message.to_owned(),
        ..SqlError::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(raw: &str, source: Source<'_>) -> SqlError {
        match classify(&RawError(raw.to_owned()), Some(source)).0 {
            Failure::Sql(error) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn places_are_bytes_of_the_callers_sql() {
        let source = Source {
            prefix: "create view \"ü\" as\n",
            sql: "select 'ü', nope",
        };
        let parser = r#"Parser Error: {"exception_type":"Parser","exception_message":"m","position":"30"}"#;
        assert_eq!(
            sql(parser, source).offset,
            Some(12),
            "19 characters of ours, then 11"
        );
        let binder = r#"Binder Error: {"exception_type":"Binder","exception_message":"m","position":"32"}"#;
        assert_eq!(sql(binder, source).offset, Some(12), "20 bytes of ours, then 12");
        let ours = r#"Binder Error: {"exception_type":"Binder","exception_message":"m","position":"3"}"#;
        assert_eq!(sql(ours, source).offset, None);
    }

    #[test]
    fn files_of_newer_engines_are_told_from_damaged_ones() {
        let open = |raw: &str| classify_open(&RawError(raw.to_owned()), Path::new("f"));
        for newer in [
            "IO Error: Trying to read a database file with version number 200, but we can only read versions between 64 and 67.",
            "IO Error: Error opening \"f\": file was written with a storage version greater than the latest version \
             supported by this DuckDB instance. Try opening the file with a newer version of DuckDB.",
            "IO Error: Failed to read WAL of version 9 - can only read version 1, 2 and 3 (encrypted)",
        ] {
            assert!(matches!(open(newer), OpenError::Newer { .. }), "{newer}");
        }
        let damaged = "IO Error: The file \"f\" exists, but it is not a valid DuckDB database file!";
        assert!(matches!(open(damaged), OpenError::Damaged { .. }));
    }

    #[test]
    fn what_follows_the_first_line_is_a_hint() {
        let raw = r#"{"exception_type":"Catalog","exception_message":"Table x does not exist!\nDid you mean \"y\"?"}"#;
        let error = sql(raw, Source { prefix: "", sql: "" });
        assert_eq!(error.message, "Table x does not exist!");
        assert_eq!(error.hint.as_deref(), Some("Did you mean \"y\"?"));
        assert_eq!(error.class, "catalog");
    }

    #[test]
    fn an_error_in_an_error_is_read_as_well() {
        let raw = r#"IO Error: {"exception_type":"IO","exception_message":"can't attach \"x\": {\"exception_type\":\"IO\",\"exception_message\":\"role \\\"a\\\" does not exist\"}"}"#;
        let error = sql(raw, Source { prefix: "", sql: "" });
        assert_eq!(error.message, r#"can't attach "x": role "a" does not exist"#);
    }

    #[test]
    fn memory_errors_name_use_limit_and_setting() {
        let raw =
            "Out of Memory Error: failed to allocate data of size 16.0 MiB (95.2 MiB/95.3 MiB used)\nhelp";
        let (failure, _) = classify(&RawError(raw.to_owned()), None);
        let Failure::OutOfMemory {
            setting, limit, peak, ..
        } = failure
        else {
            panic!("{failure:?}")
        };
        assert_eq!(
            (setting, limit.as_str(), peak.as_str()),
            ("memory_limit", "95.3 MiB", "95.2 MiB")
        );
    }

    #[test]
    fn an_error_without_fields_keeps_its_text() {
        let (failure, aftermath) = classify(&RawError("FATAL Error: gone".to_owned()), None);
        assert_eq!(
            failure,
            Failure::Fatal {
                message: "gone".to_owned()
            }
        );
        assert_eq!(aftermath, Aftermath::Broken);
    }

    #[test]
    fn the_process_that_has_the_file_open_is_named() {
        let said = |message: &str| {
            let raw = RawError(format!("IO Error: {message}"));
            classify_open(&raw, Path::new("main.duckdb")).to_string()
        };
        let message = "Could not set lock on file \"main.duckdb\": Conflicting lock is held in /usr/bin/python3.11 \
                       (PID 12) by user ada. See also https://duckdb.org/docs";
        assert_eq!(said(message), "process 12 (python3.11) has `main.duckdb` open");
        let nameless = said("Conflicting lock is held in  (PID 12)");
        assert_eq!(nameless, "process 12 has `main.duckdb` open");
        assert_eq!(
            said("Could not set lock"),
            "another process has `main.duckdb` open"
        );
    }
}
