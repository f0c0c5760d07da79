//! Partitions that are local files, one by one or by folder.

use std::collections::BTreeMap;
use std::path::Path;

use watershed_dialect::{Dialect as _, ENGINE, Literal, Quoting as _};
use watershed_drivers::sandbox::Sandbox;
use watershed_proto::Value;
use watershed_schedule::jiff;

use super::{Listed, listed};
use crate::model::files::{self, FilesError};
use crate::model::plan::FileNow;
use crate::model::source;

/// The column that says when a file, or the newest of a folder, was written.
pub(in crate::model) const UPDATED_ON: &str = "updated_on";

/// The extent of a partition of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::model) enum By {
    /// Each file.
    File,
    /// Each folder.
    Folder,
    /// Each folder; `name=value` in its path are columns.
    Hive,
}

impl By {
    /// Reads what a project file says.
    pub(super) fn named(name: &str) -> Self {
        match name {
            "directory" => Self::Folder,
            "hive" => Self::Hive,
            _ => Self::File,
        }
    }
}

/// A list of files as partitions.
#[derive(Debug, Clone)]
pub(in crate::model) struct Grouping {
    /// The path or pattern.
    pub(in crate::model) pattern: String,
    /// The extent of a partition.
    pub(super) by: By,
    /// A row holds the paths of its files.
    pub(super) rollup: bool,
    /// A query over the rows, which makes other rows of them.
    pub(in crate::model) transform: Option<String>,
}

impl Grouping {
    /// Groups files to partitions, ordered by path.
    pub(in crate::model) fn group(&self, files: Vec<FileNow>) -> Vec<Listed> {
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
                listed(data, None, files)
            })
            .collect()
    }

    /// Returns the query that stands for the files: `uri`, `path`, `updated_on`, and the columns of `name=value`.
    pub(in crate::model) fn as_query(&self, partitions: &[Listed]) -> String {
        let names: Vec<&String> = partitions
            .first()
            .map(|one| one.data.keys().collect())
            .unwrap_or_default();
        let row = |one: &Listed| {
            let mut values: Vec<String> = names
                .iter()
                .map(|name| one.data.get(*name).map_or(Literal::Null, source::literal))
                .map(|value| ENGINE.literal(&value))
                .collect();
            values.push(ENGINE.literal(&Literal::Timestamp(updated_on(one))));
            format!("({})", values.join(", "))
        };
        let rows: Vec<String> = partitions.iter().map(row).collect();
        let columns: Vec<String> = names.iter().map(|name| ENGINE.name(name)).collect();
        let columns = columns.iter().map(String::as_str).chain([UPDATED_ON]);
        let columns: Vec<&str> = columns.collect();
        format!(
            "(SELECT * FROM (VALUES {}) AS files({}))",
            rows.join(", "),
            columns.join(", ")
        )
    }
}

/// Gives rows of a transformation the files that they stand for, so that these are compared one by one. The newest time alone
/// does not tell of a file that is gone, nor of one that was written again within the store's second. A row stands for
/// files as long as it has their path and time: what a transformation says itself of how fresh it is counts.
pub(in crate::model) fn with_files(rows: Vec<Listed>, groups: Vec<Listed>) -> Vec<Listed> {
    let groups: BTreeMap<String, Listed> = groups
        .into_iter()
        .filter_map(|one| Some((one.data.get("uri")?.as_str()?.to_owned(), one)))
        .collect();
    let with_files = |mut row: Listed| {
        let group = row
            .data
            .get("uri")
            .and_then(Value::as_str)
            .and_then(|uri| groups.get(uri));
        if let Some(group) =
            group.filter(|group| micros(row.partition.watermark.as_deref()) == Some(updated_on(group)))
        {
            row.files.clone_from(&group.files);
        }
        row
    };
    rows.into_iter().map(with_files).collect()
}

/// The newest time of a partition's files, microseconds since the epoch.
fn updated_on(one: &Listed) -> i64 {
    let newest = one.files.iter().map(|file| file.modified_ns / 1_000).max();
    newest.unwrap_or_default()
}

/// Reads a time as the engine writes it, microseconds since the epoch.
fn micros(timestamp: Option<&str>) -> Option<i64> {
    let time: jiff::civil::DateTime = timestamp?.parse().ok()?;
    let instant = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    Some(instant.as_microsecond())
}

/// Returns the query that stands for the local files that match a pattern, one row for each file or, by `by`, folder.
/// Blocks for as long as listing them takes.
///
/// # Errors
/// When nothing matches, something can't be read, or the pattern begins outside a sandbox.
pub(crate) fn listed_files(
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

pub(super) fn folder_of(path: &str) -> &str {
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
        groups.into_iter().map(|one| one.partition.data).collect()
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
            "(SELECT * FROM (VALUES ('it''s', 'it''s', make_timestamp(5))) AS files(\"path\", \"uri\", updated_on))"
        );
    }
    #[test]
    fn rows_of_a_transformation_stand_for_files_by_path_and_time() {
        let grouping = grouping(By::File, false);
        let groups = grouping.group(vec![file("a"), file("b"), file("c")]);
        let row = |uri: &str, watermark: Option<&str>| {
            let data = [("uri".to_owned(), Value::from(uri))].into();
            listed(data, watermark.map(str::to_owned), Vec::new())
        };
        let rows = vec![
            row("a", Some("1970-01-01 00:00:00.000005")),
            row("b", Some("1970-01-01 00:00:00")),
            row("c", None),
            row("d", Some("1970-01-01 00:00:00.000005")),
        ];
        let with: Vec<usize> = with_files(rows, groups)
            .iter()
            .map(|row| row.files.len())
            .collect();
        assert_eq!(with, [1, 0, 0, 0]);
    }
}
