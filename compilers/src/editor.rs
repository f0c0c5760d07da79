//! Completion and key documentation for editors of project files.
//!
//! Start at [`complete`] and [`meaning`]. Both work on a text that need not compile: the way to a key is found by
//! indentation, what may stand there by the tables of keys that the readers use.

mod keys;
mod outline;
mod query;
mod settings;
mod suggestion;

pub use suggestion::{Completion, Suggested, Suggestion};

use crate::{
    file::{MANIFESTS, Part, part},
    project::Project,
    text::Span,
};
use suggestion::Suggestions;

/// Returns proposals for a place of a project file that has the path `path` and the content `text`. Lines and columns
/// are 1-based, columns count Unicode scalar values.
pub fn complete(project: &Project, path: &str, text: &str, line: u32, column: u32) -> Completion {
    let mut found = Suggestions::default();
    let cursor = outline::Cursor::new(text, line, column);
    match part(path) {
        Some(Part::Member { .. } | Part::Manifest) if path.ends_with(".sql") => {
            query::suggest(project, text, &cursor, &mut found);
        }
        Some(Part::Member { .. } | Part::Manifest) => {
            settings::complete(project, path, &cursor, &mut found);
        }
        Some(Part::Env(_) | Part::Document { .. }) | None => {}
    }
    found.finish(&cursor)
}

/// The meaning of a key, and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meaning {
    /// The place of the key in the file.
    pub span: Span,
    /// The key, as files write it.
    pub key: &'static str,
    /// The key's meaning, in a sentence.
    pub text: &'static str,
    /// The key to use instead, if this one is deprecated.
    pub instead: Option<&'static str>,
}

/// Returns the meaning of the key at a place of a YAML file.
pub fn meaning(project: &Project, path: &str, text: &str, line: u32, column: u32) -> Option<Meaning> {
    if path.ends_with(".sql") || !matches!(part(path)?, Part::Member { .. } | Part::Manifest) {
        return None;
    }
    settings::meaning(project, path, &outline::Cursor::new(text, line, column))
}

/// Returns true if a path is that of the project's manifest.
fn is_manifest(path: &str) -> bool {
    MANIFESTS.contains(&path)
}

#[cfg(test)]
mod tests;
