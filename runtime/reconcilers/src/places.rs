//! Places in the YAML file of a resource, as specs hold them.

use std::sync::Arc;

use watershed_core::SourcePosition;
use watershed_proto::{Spot, SqlSource};

pub(crate) mod source;

/// The YAML file among a resource's files.
pub fn yaml(paths: &[Arc<str>]) -> &str {
    let is_yaml = |path: &&Arc<str>| path.ends_with(".yaml") || path.ends_with(".yml");
    let path = paths.iter().find(is_yaml).or_else(|| paths.first());
    path.map(AsRef::as_ref).unwrap_or_default()
}

/// A spot as a place; the beginning of the file where it is not known.
pub(crate) fn from_spot(paths: &[Arc<str>], spot: Option<&Spot>) -> SourcePosition {
    let at = spot.copied().unwrap_or(Spot { line: 1, column: 1 });
    SourcePosition {
        path: yaml(paths).into(),
        line: at.line,
        column: at.column,
    }
}

/// The place of a byte of a text that was sent, which is that of `source` with its templates executed.
pub(crate) fn from_source(
    paths: &[Arc<str>],
    source: &SqlSource,
    sent: &str,
    offset: Option<usize>,
) -> SourcePosition {
    source::in_file(source, yaml(paths), sent, offset)
}
