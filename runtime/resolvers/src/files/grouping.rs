//! Files one by one or by folder, as rows and as a query of constants.

use std::collections::BTreeMap;
use std::path::Path;

use watershed_dialect::{Dialect as _, ENGINE, Literal};
use watershed_drivers::files::{self, FileNow, FilesError};
use watershed_drivers::sandbox::Sandbox;
use watershed_outputs::literal::literal;
use watershed_proto::Value;

/// The column that says when a file, or the newest of a folder, was written.
pub const UPDATED_ON: &str = "updated_on";

/// The extent of a row of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Each file.
    File,
    /// Each folder.
    Folder,
    /// Each folder; `name=value` in its path are columns.
    Hive,
}

impl By {
    /// Reads what a project file says.
    #[must_use]
    pub fn named(name: &str) -> Self {
        match name {
            "directory" => Self::Folder,
            "hive" => Self::Hive,
            _ => Self::File,
        }
    }
}

/// A row: a file, or all of a folder.
#[derive(Debug, Clone)]
pub struct Group {
    /// The values of the row, by column, without the time.
    pub data: BTreeMap<String, Value>,
    /// The files that it consists of.
    pub files: Vec<FileNow>,
}

impl Group {
    /// Returns the newest time of its files, microseconds since the epoch.
    #[must_use]
    pub fn updated_on(&self) -> i64 {
        let newest = self.files.iter().map(|file| file.modified_ns / 1_000).max();
        newest.unwrap_or_default()
    }
}

/// A list of files as rows.
#[derive(Debug, Clone)]
pub struct Grouping {
    /// The path or pattern.
    pub pattern: String,
    /// The extent of a row.
    pub by: By,
    /// A row holds the paths of its files.
    pub rollup: bool,
    /// A query over the rows, which makes other rows of them.
    pub transform: Option<String>,
}

impl Grouping {
    /// Groups files, ordered by path.
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

    /// Returns the query that stands for the files: `uri`, `path`, `updated_on`, and the columns of `name=value`.
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

/// Returns the query that stands for the local files that match a pattern, one row for each file or, by `by`, folder.
/// Blocks for as long as listing them takes.
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

/// Returns the folder of a path.
#[must_use]
pub fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The `name=value` in a path, as columns.
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
