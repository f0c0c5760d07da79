//! The format options of a CSV source that its author does not set: detected from the start of the file, or guessed by
//! the engine from the first rows.

use std::{collections::BTreeMap, path::Path};

use watershed_core::Error;
use watershed_drivers::data_file::{self, Beginning, Form, SAMPLE_ROWS};
use watershed_drivers::files;
use watershed_drivers::olap::{Guess, Value as Cell};
use watershed_outputs::secrets::Secrets;
use watershed_proto::{ModelSpec, ModelState, Value};

use super::{plan::is_list, source, statement};

/// Delimiters that the engine tries when it guesses.
pub(super) const DELIMITERS: &[u8] = b",;|\t";

/// The engine's word for no quote character.
pub(super) const NO_QUOTE: &str = "(empty)";

/// The options that are guessed, each with other options that also set it.
const OPTIONS: [(&str, Guess, &[&str]); 6] = [
    ("delim", Guess::Delimiter, &["sep", "delimiter"]),
    ("quote", Guess::Quote, &[]),
    ("header", Guess::Header, &["columns", "names"]),
    ("dateformat", Guess::Dates, &["date_format"]),
    ("timestampformat", Guess::Times, &["timestamp_format"]),
    ("skip", Guess::Skipped, &[]),
];

/// Sets the options that the engine would not guess from the start of a file.
pub(super) fn tell(spec: &mut ModelSpec, beginning: Beginning) {
    let (option, value) = match beginning {
        Beginning::Plain => ("quote", "\""),
        Beginning::Utf16 => ("encoding", "utf-16"),
        Beginning::Quoted | Beginning::Unknown => return,
    };
    if source::option(spec, option).is_none() {
        let properties = spec.input_properties.get_or_insert_default();
        properties.fields.insert(option.to_owned(), Value::from(value));
    }
}

/// The query for the options that the engine guesses for a source's file.
#[derive(Debug)]
pub struct Guesses {
    /// The path of the file, as the build read it.
    pub file: String,
    /// The statement that asks the engine to guess.
    pub sql: String,
    /// The options that the author does not set, with values detected from the file itself.
    open: BTreeMap<&'static str, Option<String>>,
}

impl Guesses {
    /// Returns the query about the first file of a source; none for other models, and if the file has changed since.
    /// Blocks.
    ///
    /// # Errors
    /// When a value of a variable is not known.
    pub fn about(
        root: &Path,
        (name, environment): (&str, &str),
        (spec, state): (&ModelSpec, &ModelState),
        secrets: &Secrets,
    ) -> Result<Option<Self>, Error> {
        let scope = statement::scope(secrets.open(&spec.variables)?, name, environment);
        let is_off = source::option(spec, "auto_detect").and_then(Value::as_bool) == Some(false);
        if spec.sql.is_some() || is_off || source::form(spec, &scope) != Some(Form::Csv) {
            return Ok(None);
        }
        let first = state
            .local_files
            .iter()
            .find(|(path, _)| !is_list(path) && !path.contains("://"));
        let Some((file, built)) = first else {
            return Ok(None);
        };
        let is_same = files::look_at(root, file)
            .is_ok_and(|now| now.size == built.size && now.modified_ns == built.modified_ns);
        if !is_same {
            return Ok(None);
        }
        let says = |names: &[&str]| names.iter().any(|name| source::option(spec, name).is_some());
        let open = OPTIONS
            .iter()
            .filter(|(name, _, others)| !says(&[name]) && !says(others));
        let mut open: BTreeMap<_, _> = open.map(|(name, ..)| (*name, None)).collect();
        let mut told = spec.clone();
        let beginning = data_file::beginning(&root.join(file), SAMPLE_ROWS, DELIMITERS);
        tell(&mut told, beginning.unwrap_or(Beginning::Unknown));
        for option in ["quote", "encoding"] {
            let value = source::option(&told, option).and_then(Value::as_str);
            if !says(&[option])
                && let Some(value) = value
            {
                open.insert(option, Some(value.to_owned()));
            }
        }
        let asked = OPTIONS.map(|(_, guess, _)| guess);
        let sql = source::sniff(&told, &scope, file, &asked);
        Ok(sql.ok().map(|sql| Self {
            file: file.clone(),
            sql,
            open,
        }))
    }

    /// Returns the guessed options with their values, given the engine's answer.
    #[must_use]
    pub fn read(self, answer: &[Cell]) -> BTreeMap<String, String> {
        let mut read = BTreeMap::new();
        for (option, known) in self.open {
            let at = OPTIONS.iter().position(|(name, ..)| *name == option);
            let said = at.and_then(|at| answer.get(at)).map(|cell| match cell {
                Cell::Text(text) if text == NO_QUOTE => String::new(),
                Cell::Null => String::new(),
                other => other.to_string(),
            });
            let value = known.or(said).unwrap_or_default();
            // No quote is a guess; no format of dates is none, as there are no dates.
            if option == "quote" || !["", "0"].contains(&value.as_str()) {
                read.insert(option.to_owned(), value);
            }
        }
        read
    }
}
