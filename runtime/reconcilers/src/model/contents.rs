//! Checks of the contents of files before a build. Files that the engine would misread or crash on fail the build
//! before it starts, so that the last good rows stay.

use std::{collections::HashMap, path::Path};

use watershed_compilers::{
    Scope,
    sql::{files_in, names_in},
};
use watershed_core::Error;
use watershed_dialect::{DataFormat, ENGINE, FileFunction, TableFunction, Words as _};
use watershed_drivers::data_file::{self, Flaw, Form, MOST_COLUMN_LEVELS, MOST_LEVELS};
use watershed_drivers::files::{self, FileNow, FilesError};
use watershed_drivers::objects::{Driver, Location};
use watershed_drivers::regular::ReadError;
use watershed_proto::{ModelSpec, Value};

use super::{failure, plan::is_list, record::Record, source};

/// The properties of a model's reader that decide which contents are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    /// The format of all files; none if each path decides.
    form: Option<Form>,
    /// The format of files whose path decides none; if none, they are not checked.
    other: Option<Form>,
    /// True if columns are given, so that an empty file is valid and has no rows.
    names_columns: bool,
    /// The largest nesting depth of JSON values.
    most_levels: usize,
    /// True if an encoding other than `utf-16` is declared, so that a big-endian file is accepted.
    says_encoding: bool,
    /// True if the engine guesses how a CSV file is written, so that all rows must have equally many values.
    guesses_rows: bool,
}

/// Options that say how a CSV file is written, or allow rows with more or fewer values: then uneven rows are not refused here.
const SAYS_ROWS: [&str; 19] = [
    "allow_quoted_nulls",
    "auto_detect",
    "columns",
    "comment",
    "delim",
    "delimiter",
    "duckdb",
    "encoding",
    "escape",
    "ignore_errors",
    "names",
    "new_line",
    "null_padding",
    "quote",
    "sep",
    "skip",
    "store_rejects",
    "strict_mode",
    "compression",
];

/// Returns true if a name of an encoding means UTF-16, which the engine reads as little-endian.
fn is_utf16(encoding: &str) -> bool {
    ["utf-16", "utf16"]
        .iter()
        .any(|name| encoding.eq_ignore_ascii_case(name))
}

impl Reading {
    /// Returns the properties of a model's reader; none if the model does not read files as tables.
    pub(super) fn from_spec(spec: &ModelSpec, scope: &Scope) -> Option<Self> {
        match &spec.sql {
            Some(sql) => Self::of_statement(&sql.text, &spec.uses),
            None => Self::of_source(spec, scope),
        }
    }

    fn of_source(spec: &ModelSpec, scope: &Scope) -> Option<Self> {
        let form = source::form(spec, scope)?;
        let says = |option: &str| source::option(spec, option).is_some();
        let names_columns = says("columns") || says("names");
        Some(Self {
            form: Some(form),
            other: None,
            names_columns,
            most_levels: match says("maximum_depth") || says("columns") {
                true => MOST_LEVELS,
                false => MOST_COLUMN_LEVELS,
            },
            says_encoding: source::option(spec, "encoding")
                .and_then(Value::as_str)
                .is_some_and(|said| !is_utf16(said)),
            guesses_rows: !SAYS_ROWS.iter().any(|option| says(option)),
        })
    }

    fn of_statement(text: &str, uses: &[String]) -> Option<Self> {
        let functions = uses.iter().filter_map(|used| match ENGINE.table_function(used) {
            TableFunction::Files(files) => Some(files),
            _ => None,
        });
        let functions: Vec<FileFunction> = functions.collect();
        if functions.contains(&FileFunction::Whole) {
            return None;
        }
        let reads = |format| functions.contains(&FileFunction::Rows(format));
        let says = |argument: &str| has_argument(text, argument);
        let columns = says("columns");
        Some(Self {
            form: None,
            other: match () {
                () if reads(DataFormat::Csv) => Some(Form::Csv),
                () if reads(DataFormat::Json) => Some(Form::Json),
                () => None,
            },
            names_columns: columns || says("names"),
            most_levels: match columns
                || says("maximum_depth")
                || functions.contains(&FileFunction::Documents)
            {
                true => MOST_LEVELS,
                false => MOST_COLUMN_LEVELS,
            },
            says_encoding: argument(text, "encoding").is_some_and(|at| {
                let said = text.get(at..).and_then(|rest| rest.split('\'').nth(1));
                !said.is_some_and(is_utf16)
            }),
            guesses_rows: !SAYS_ROWS.iter().any(|option| says(option)),
        })
    }

    /// Returns true if an empty file is valid and has no rows.
    pub(super) fn names_columns(self) -> bool {
        self.names_columns
    }

    /// Returns an error for the first file, relative to the project's folder, that must not be read. Files that the
    /// last build read are known to be valid.
    ///
    /// # Errors
    /// The first of them, or a file that can't be read.
    pub(super) fn refuse(
        self,
        root: &Path,
        files: &[FileNow],
        last: Option<&Record>,
    ) -> Result<(), FilesError> {
        let known = last.map(|record| record.files.as_slice()).unwrap_or_default();
        let known: HashMap<&str, _> = known.iter().map(|file| (file.path.as_str(), file)).collect();
        let is_known = |file: &FileNow| match (known.get(file.path.as_str()), file.content) {
            (None, _) => false,
            (Some(before), Some(content)) => before.content == Some(content),
            (Some(before), None) => before.modified_ns == file.modified_ns && before.size == file.size,
        };
        files
            .iter()
            .filter(|file| !is_list(&file.path) && !is_known(file))
            .try_for_each(|file| match file.path.contains("://") {
                true => self.refuse_object(&file.path, file.size),
                false => self.refuse_file(root, &file.path),
            })
    }

    fn refuse_object(self, address: &str, size: u64) -> Result<(), FilesError> {
        // A web server may not say how large its file is.
        let is_sized = Location::parse(address).is_some_and(|at| at.driver != Driver::Https);
        match is_sized && size == 0 && !self.names_columns {
            true => Err(FilesError::Empty {
                path: address.to_owned(),
            }),
            false => Ok(()),
        }
    }

    /// Returns an error if a file must not be read.
    pub(super) fn refuse_file(self, root: &Path, path: &str) -> Result<(), FilesError> {
        let place = root.join(path);
        let path = || path.to_owned();
        let form = self.form.or_else(|| Form::from_path(&path())).or(self.other);
        let Some(form) = form else { return Ok(()) };
        let failed = |error| match error {
            ReadError::Odd(oddity) => FilesError::Odd { path: path(), oddity },
            error => FilesError::Io {
                path: path(),
                source: error.into(),
            },
        };
        let most = self.most_levels;
        match data_file::flaw(&place, form, most).map_err(failed)? {
            Some(Flaw::TooDeep) => return Err(FilesError::TooDeep { path: path(), most }),
            Some(Flaw::CutOff(line)) => return Err(FilesError::CutOff { path: path(), line }),
            Some(Flaw::Utf16BigEndian) if !self.says_encoding => {
                return Err(FilesError::Utf16BigEndian { path: path() });
            }
            Some(Flaw::Utf16BigEndian) | None => {}
        }
        if !self.names_columns && data_file::is_blank(&place, form).map_err(failed)? {
            return Err(FilesError::Empty { path: path() });
        }
        if self.guesses_rows && form == Form::Csv {
            let uneven = data_file::uneven(&place).map_err(failed)?;
            return uneven.map_or(Ok(()), |row| {
                Err(FilesError::Uneven {
                    path: path(),
                    line: row.line,
                    expected: row.expected,
                    found: row.found,
                })
            });
        }
        Ok(())
    }
}

/// Returns an error if a statement names a file that the engine must not open: a pipe, too deeply nested JSON, or a
/// file of which it would silently read only a part. The engine itself reports other mistakes. Blocks.
///
/// # Errors
/// The first of these files.
pub fn refuse_files_of_statement(root: &Path, sql: &str) -> Result<(), Error> {
    let names: Vec<String> = names_in(sql).into_iter().collect();
    let reading = Reading::of_statement(sql, &names);
    let reading = reading.map(|reading| Reading {
        names_columns: true,
        ..reading
    });
    let refused = |error| match error {
        error @ (FilesError::Odd { .. }
        | FilesError::TooDeep { .. }
        | FilesError::CutOff { .. }
        | FilesError::Utf16BigEndian { .. }) => Err(failure::from_files(&error)),
        _ => Ok(()),
    };
    for pattern in files_in(sql) {
        let found = match files::look(root, &pattern) {
            Ok(found) => found,
            Err(error) => {
                refused(error)?;
                continue;
            }
        };
        let read = reading.map_or(Ok(()), |reading| reading.refuse(root, &found, None));
        read.or_else(refused)?;
    }
    Ok(())
}

/// Returns true if a text passes an argument of the given name.
fn has_argument(text: &str, name: &str) -> bool {
    argument(text, name).is_some()
}

/// Returns the byte offset at which a text passes an argument by its name.
pub(super) fn argument(text: &str, name: &str) -> Option<usize> {
    let lower = text.to_ascii_lowercase();
    let mut places = lower.match_indices(name).map(|(at, _)| at);
    places.find(|&at| {
        let before = lower.get(..at).and_then(|before| before.chars().next_back());
        let behind = lower.get(at + name.len()..).unwrap_or_default().trim_start();
        let is_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !is_word && [":=", "=>", "="].iter().any(|sign| behind.starts_with(sign))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_found_by_its_name_alone() {
        for text in [
            "FROM read_csv('a.csv', columns = {'a': 'INT'})",
            "read_csv('a.csv', COLUMNS={'a': 'INT'})",
            "read_csv('a.csv', columns := {})",
        ] {
            assert!(has_argument(text, "columns"), "{text}");
        }
        for text in [
            "SELECT COLUMNS('a.*') FROM t",
            "SELECT my_columns = 1",
            "SELECT 1",
        ] {
            assert!(!has_argument(text, "columns"), "{text}");
        }
    }

    #[test]
    fn files_that_are_read_as_texts_may_be_empty() {
        let reading = |text: &str, uses: &[&str]| {
            let uses: Vec<String> = uses.iter().map(|used| (*used).to_owned()).collect();
            Reading::of_statement(text, &uses)
        };
        assert_eq!(reading("FROM read_text('VERSION')", &["read_text"]), None);
        let plain = reading("FROM 'a.csv'", &[]).unwrap();
        assert!(!plain.names_columns);
        assert_eq!(plain.most_levels, MOST_COLUMN_LEVELS);
        let bounded = reading("FROM read_json('a.json', maximum_depth = 3)", &["read_json"]).unwrap();
        assert_eq!(bounded.most_levels, MOST_LEVELS);
    }
}
