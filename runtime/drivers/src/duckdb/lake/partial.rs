//! A file that a lake could not finish for want of room: removed at once, for it takes what room there is.

use std::path::{Component, Path};

use super::Lake;
use super::keeping::FILE;

/// Removes the file that a message about a full disk names, if a lake was writing that: no snapshot has it, and none
/// will. Others that the same statement had finished go with those that are in no snapshot.
pub(in crate::duckdb) fn remove_partial(lake: &Lake, message: &str) {
    let lake = lake.home.database.lake.as_ref();
    let Some(place) = lake.and_then(|lake| lake.data_path.as_deref()) else {
        return;
    };
    let Some(file) = partial(message, Path::new(place)) else {
        return;
    };
    match std::fs::remove_file(file) {
        Ok(()) => tracing::debug!(file = %file.display(), "removed what there was no room for"),
        Err(error) => tracing::debug!(%error, file = %file.display(), "an unfinished file stays"),
    }
}

/// Returns the file of a lake in a place that a message names in quotes.
fn partial<'m>(message: &'m str, place: &Path) -> Option<&'m Path> {
    let is_ours = |file: &&Path| {
        let name = file.file_name().and_then(|name| name.to_str());
        let is_named = name.is_some_and(|name| name.starts_with(FILE) && name.ends_with(".parquet"));
        let is_plain = file.components().all(|part| part != Component::ParentDir);
        is_named && is_plain && place.is_absolute() && file.starts_with(place)
    };
    message.split('"').map(Path::new).find(is_ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_of_the_lake_is_taken_from_a_message() {
        let found = |file: &str| {
            let message = format!("Could not write file \"{file}\": No space left on device");
            partial(&message, Path::new("/srv/lake/")).map(Path::to_owned)
        };
        let ours = "/srv/lake/main/days/ducklake-0198.parquet";
        assert_eq!(found(ours).as_deref(), Some(Path::new(ours)));
        for other in [
            "/srv/lake/main/days/theirs.parquet",
            "/srv/other/ducklake-0198.parquet",
            "/srv/lake/../other/ducklake-0198.parquet",
            "/srv/lake/ducklake-0198.tmp",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
        assert_eq!(partial("No space left on device", Path::new("/srv/lake")), None);
    }
}
