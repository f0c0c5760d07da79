//! Rows that a transformation made of files, and the files that they stand for.

use std::collections::BTreeMap;

use watershed_proto::Value;
use watershed_resolvers::files::Group;
use watershed_schedule::jiff;

use super::Listed;

/// Gives rows of a transformation the files that they stand for, so that these are compared one by one. The newest time alone
/// does not tell of a file that is gone, nor of one that was written again within the store's second. A row stands for
/// files as long as it has their path and time: what a transformation says itself of how fresh it is counts.
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

/// Reads a time as the engine writes it, microseconds since the epoch.
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
