//! Grouping of files by file or folder, as rows and as a query over constants.

use std::collections::BTreeMap;
use std::path::Path;

use watershed_dialect::{Dialect as _, ENGINE, Literal};
use watershed_drivers::files::{self, FileNow, FilesError};
use watershed_drivers::sandbox::Sandbox;
use watershed_outputs::literal::literal;
use watershed_proto::Value;

/// The column with the modification time of a file, or of the newest file in a folder.
pub const UPDATED_ON: &str = "updated_on";

/// Grouping of files into rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A row for each file.
    File,
    /// A row for each folder.
    Folder,
    /// A row for each folder, with `name=value` parts of the path as columns.
    Hive,
}

impl By {
    /// Parses the grouping in a project file; one row per file by default.
    #[must_use]
    pub fn named(name: &str) -> Self {
        match name {
            "directory" => Self::Folder,
            "hive" => Self::Hive,
            _ => Self::File,
        }
    }
}

/// A row of the list: a file, or all files of a folder.
#[derive(Debug, Clone)]
pub struct Group {
    /// Values of the row by column, without the modification time.
    pub data: BTreeMap<String, Value>,
    /// Files in this row.
    pub files: Vec<FileNow>,
}

impl Group {
    /// Returns the latest modification time of the group's files, in microseconds since the epoch.
    #[must_use]
    pub fn updated_on(&self) -> i64 {
        let newest = self.files.iter().map(|file| file.modified_ns / 1_000).max();
        newest.unwrap_or_default()
    }
}

/// A list of files with its grouping into rows.
#[derive(Debug, Clone)]
pub struct Grouping {
    /// Path or pattern of the files.
    pub pattern: String,
    /// Grouping of the files into rows.
    pub by: By,
    /// True if a row contains the paths of all its files.
    pub rollup: bool,
    /// SQL query that transforms the rows; none for the rows as they are.
    pub transform: Option<String>,
}

impl Grouping {
    /// Groups files into rows, ordered by path.
    #[must_use]
    pub fn group(&self, files: Vec<FileNow>) -> Vec<Group> {
        let mut groups: BTreeMap<String, Vec<FileNow>> = BTreeMap::new();
        for file in files {
            let path = match self.by {
                By::File => file.path.clone(),
                By::Folder | By::Hive => folder_of(&file.path).to_owned(),
            };
            groups.entry(path).or_default().push(file);
        }
        groups
            .into_iter()
            .map(|(path, files)| {
                let mut data = BTreeMap::new();
                if self.by == By::Hive {
                    data.extend(hive_columns(&path));
                }
                if self.rollup {
                    let paths = files.iter().map(|file| Value::from(file.path.as_str()));
                    data.insert("files".to_owned(), paths.collect::<Vec<_>>().into());
                }
                data.insert("uri".to_owned(), path.as_str().into());
                data.insert("path".to_owned(), path.as_str().into());
                Group { data, files }
            })
            .collect()
    }

    /// Returns a query over constants with the columns `uri`, `path`, `updated_on`, and `name=value` parts of the
    /// paths.
    #[must_use]
    pub fn as_query(&self, groups: &[Group]) -> String {
        let names = groups.first().map(|one| one.data.keys().map(String::as_str));
        let names: Vec<&str> = names.into_iter().flatten().collect();
        let row = |one: &Group| -> Vec<String> {
            let values = names.iter();
            let values = values.map(|name| one.data.get(*name).map_or(Literal::Null, literal));
            let values = values.chain([Literal::Timestamp(one.updated_on())]);
            values.map(|value| ENGINE.literal(&value)).collect()
        };
        let rows: Vec<Vec<String>> = groups.iter().map(row).collect();
        let columns: Vec<&str> = names.iter().copied().chain([UPDATED_ON]).collect();
        format!("(SELECT * FROM {})", ENGINE.rows(&rows, "files", &columns))
    }
}

/// Returns a query over constants for the local files that match a pattern, one row for each file or folder according
/// to `by`. Blocks while files are listed.
///
/// # Errors
/// When nothing matches, something can't be read, or the pattern begins outside a sandbox.
pub fn listed_files(
    root: &Path,
    sandbox: Option<&Sandbox>,
    pattern: &str,
    by: &str,
    rollup: bool,
) -> Result<String, FilesError> {
    if let Some(sandbox) = sandbox {
        files::refuse_outside(sandbox, root, pattern)?;
    }
    let grouping = Grouping {
        pattern: pattern.to_owned(),
        by: By::named(by),
        rollup,
        transform: None,
    };
    let listed = grouping.group(files::look(root, pattern)?);
    Ok(grouping.as_query(&listed))
}

/// Returns the folder part of a path.
#[must_use]
pub fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the `name=value` parts of a path as columns.
fn hive_columns(path: &str) -> impl Iterator<Item = (String, Value)> {
    path.split('/')
        .filter_map(|part| part.split_once('='))
        .map(|(name, value)| (name.to_owned(), Value::from(value)))
}

#[cfg(test)]
mod tests {
    use watershed_proto::MapValue;

    use super::*;

    fn file(path: &str) -> FileNow {
        FileNow {
            path: path.into(),
            modified_ns: 5_000,
            size: 1,
            content: None,
        }
    }

    fn grouping(by: By, rollup: bool) -> Grouping {
        Grouping {
            pattern: "**".into(),
            by,
            rollup,
            transform: None,
        }
    }

    fn data(grouping: &Grouping) -> Vec<String> {
        let paths = ["d/y=1/m=2/a", "d/y=1/m=2/b", "d/y=1/m=3/a"];
        let groups = grouping.group(paths.into_iter().map(file).collect());
        let json = |one: Group| serde_json::Value::from(&MapValue { fields: one.data }).to_string();
        groups.into_iter().map(json).collect()
    }

    #[test]
    fn files_are_partitions_one_by_one_or_by_folder() {
        assert_eq!(data(&grouping(By::File, false)).len(), 3);
        assert_eq!(
            data(&grouping(By::Folder, false)),
            [
                r#"{"path":"d/y=1/m=2","uri":"d/y=1/m=2"}"#,
                r#"{"path":"d/y=1/m=3","uri":"d/y=1/m=3"}"#
            ]
        );
        assert_eq!(
            data(&grouping(By::Hive, true))[0],
            r#"{"files":["d/y=1/m=2/a","d/y=1/m=2/b"],"m":"2","path":"d/y=1/m=2","uri":"d/y=1/m=2","y":"1"}"#
        );
    }

    #[test]
    fn files_are_a_query_too() {
        let grouping = grouping(By::File, false);
        let query = grouping.as_query(&grouping.group(vec![file("it's")]));
        assert_eq!(
            query,
            "(SELECT * FROM (VALUES ('it''s', 'it''s', make_timestamp(5))) AS files(\"path\", \"uri\", \"updated_on\"))"
        );
    }
}
