//! Objects in an engine: outputs with their owners, and objects that are not ours.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Location;

/// The owner of an output and the build that made it. Stored in the engine at the output itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Tag {
    /// The resource.
    pub uid: Uuid,
    /// The build; fresh for every build that replaced the output.
    pub build: Uuid,
}

/// Opens every tag, so that a person who reads it knows what it is.
const TAG_PREFIX: &str = "watershed:";

impl Tag {
    /// Reads a tag; `None` when the text is anything else, such as a person's comment.
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

/// The form of an output in the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    /// A query, run whenever it is read.
    View,
    /// Rows.
    Table,
}

impl OutputKind {
    /// As SQL and people call it.
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

/// A tagged object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its place, as it stands in the engine.
    pub location: Location,
    /// Table or view.
    pub kind: OutputKind,
    /// The owner and the build.
    pub tag: Tag,
    /// The owner's record beside it; `None` if there is no record of this very build.
    pub record: Option<Vec<u8>>,
    /// The rows that the build wrote; `None` for a view.
    pub rows: Option<u64>,
}

/// The object at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// A tagged object.
    Ours {
        /// The owner and the build.
        tag: Tag,
        /// Table or view.
        kind: OutputKind,
    },
    /// Somebody else's: never touched.
    Foreign {
        /// Table or view.
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
