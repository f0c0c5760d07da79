//! Places in the YAML file of a resource, as stored in specs.

use std::sync::Arc;

use watershed_core::SourcePosition;
use watershed_proto::{Spot, SqlSource};

pub(crate) mod source;

/// Returns the path of the YAML file among a resource's files, or else of the first file.
pub fn yaml(paths: &[Arc<str>]) -> &str {
    let is_yaml = |path: &&Arc<str>| path.ends_with(".yaml") || path.ends_with(".yml");
    let path = paths.iter().find(is_yaml).or_else(|| paths.first());
    path.map(AsRef::as_ref).unwrap_or_default()
}

/// Returns the position of a spot in the YAML file; the start of the file if there is no spot.
pub(crate) fn from_spot(paths: &[Arc<str>], spot: Option<&Spot>) -> SourcePosition {
    let at = spot.copied().unwrap_or(Spot { line: 1, column: 1 });
    SourcePosition {
        path: yaml(paths).into(),
        line: at.line,
        column: at.column,
    }
}

/// Returns the position in the file for a byte of a sent text, which was rendered from `source`.
pub(crate) fn from_source(
    paths: &[Arc<str>],
    source: &SqlSource,
    sent: &str,
    offset: Option<usize>,
) -> SourcePosition {
    source::in_file(source, yaml(paths), sent, offset)
}
