//! Rows of partitions that a transformation makes from files, and their assignment to the files.

use std::collections::BTreeMap;

use watershed_proto::Value;
use watershed_resolvers::files::Group;
use watershed_schedule::jiff;

use super::Listed;

/// Assigns files to the rows of a transformation, so that changes are detected file by file and not by the newest time
/// alone. Only rows with the path and time of a group get its files, since a transformation may state its own
/// freshness.
pub(in crate::model) fn with_files(rows: Vec<Listed>, groups: Vec<Group>) -> Vec<Listed> {
    let groups: BTreeMap<String, Group> = groups
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
            group.filter(|group| micros(row.partition.watermark.as_deref()) == Some(group.updated_on()))
        {
            row.files.clone_from(&group.files);
        }
        row
    };
    rows.into_iter().map(with_files).collect()
}

/// Parses a timestamp as the engine writes it, to microseconds since the epoch.
fn micros(timestamp: Option<&str>) -> Option<i64> {
    let time: jiff::civil::DateTime = timestamp?.parse().ok()?;
    let instant = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    Some(instant.as_microsecond())
}

#[cfg(test)]
mod tests {
    use watershed_drivers::files::FileNow;
    use watershed_resolvers::files::{By, Grouping};

    use super::*;
    use crate::model::partitions::listed;

    fn file(path: &str) -> FileNow {
        FileNow {
            path: path.into(),
            modified_ns: 5_000,
            size: 1,
            content: None,
        }
    }

    #[test]
    fn rows_of_a_transformation_stand_for_files_by_path_and_time() {
        let grouping = Grouping {
            pattern: "**".into(),
            by: By::File,
            rollup: false,
            transform: None,
        };
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
