//! Objects in an engine: outputs with their owners, and foreign objects.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Location;

/// The owner of an output and the build that made it, stored in the engine at the output itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tag {
    /// Uid of the owning resource.
    pub uid: Uuid,
    /// Id of the build, unique for every build that replaced the output.
    pub build: Uuid,
}

/// Prefix of every tag's text, which tells readers its origin.
const TAG_PREFIX: &str = "watershed:";

impl Tag {
    /// Parses a tag; `None` for any other text, such as a person's comment.
    pub fn parse(text: &str) -> Option<Self> {
        let (uid, build) = text.strip_prefix(TAG_PREFIX)?.split_once(':')?;
        Some(Self {
            uid: Uuid::try_parse(uid).ok()?,
            build: Uuid::try_parse(build).ok()?,
        })
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{TAG_PREFIX}{}:{}", self.uid, self.build)
    }
}

/// The type of an output in the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    /// A view, whose query runs at each read.
    View,
    /// A table, which holds its rows.
    Table,
}

impl OutputKind {
    /// Returns the SQL keyword in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Table => "table",
        }
    }
}

impl fmt::Display for OutputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An output: a tagged object with its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Location, spelled as in the engine.
    pub location: Location,
    /// Type of the output: table or view.
    pub kind: OutputKind,
    /// Owner and build.
    pub tag: Tag,
    /// The owner's record beside the output; `None` unless it is of this very build.
    pub record: Option<Vec<u8>>,
    /// Number of rows that the build wrote; `None` for a view.
    pub rows: Option<u64>,
}

/// The object that has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// An output with a tag.
    Ours {
        /// Owner and build.
        tag: Tag,
        /// Type of the output: table or view.
        kind: OutputKind,
    },
    /// An object of somebody else, which is never touched.
    Foreign {
        /// Type of the object: table or view.
        kind: OutputKind,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_reads_back_as_it_was_written() {
        let tag = Tag {
            uid: Uuid::from_u128(1),
            build: Uuid::from_u128(2),
        };
        assert_eq!(Tag::parse(&tag.to_string()), Some(tag));
    }

    #[test]
    fn a_persons_comment_is_no_tag() {
        for text in ["", "watershed", "watershed:", "watershed:1:2", "our best table"] {
            assert_eq!(Tag::parse(text), None, "{text}");
        }
    }
}
