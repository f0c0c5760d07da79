//! The tag in the environment of every process, by which it and its descendants are found again.

use std::fmt;
use std::str::FromStr;

use crate::start_id::StartId;

/// Name of the environment variable with the tag.
pub const TAG_VARIABLE: &str = "WATERSHED_PROCESS";

/// The tag of a process and its descendants: state folder, start and epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Identity of the journal, so that shims of different folders ignore each other's processes.
    pub(crate) instance: String,
    /// Start id of the process or its tagged ancestor.
    pub(crate) id: StartId,
    /// Epoch of the client that ordered the start.
    pub(crate) epoch: u64,
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.instance, self.id, self.epoch)
    }
}

impl FromStr for Tag {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(3, '/');
        let mut next = || parts.next().ok_or(());
        let (instance, id, epoch) = (next()?, next()?, next()?);
        Ok(Self {
            instance: instance.to_owned(),
            id: id.parse().map_err(drop)?,
            epoch: epoch.parse().map_err(drop)?,
        })
    }
}

impl Tag {
    /// Finds the tag in an environment in the kernel's form: entries that each end in a zero byte.
    pub(crate) fn in_environment(bytes: &[u8]) -> Option<Self> {
        let entries = bytes.split(|byte| *byte == 0);
        let values = entries.filter_map(|entry| {
            let entry = std::str::from_utf8(entry).ok()?;
            entry.strip_prefix(TAG_VARIABLE)?.strip_prefix('=')
        });
        values.filter_map(|value| value.parse().ok()).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_among_other_variables_and_only_whole() {
        let tag = Tag {
            instance: "a1".to_owned(),
            id: StartId::new("u", 3).unwrap(),
            epoch: 9,
        };
        let environment = format!("A=1\0{TAG_VARIABLE}={tag}\0B=\0");
        assert_eq!(Tag::in_environment(environment.as_bytes()), Some(tag));
        let other = format!("X{TAG_VARIABLE}=a/u:1/2\0{TAG_VARIABLE}=a/u\0\u{0}");
        assert_eq!(Tag::in_environment(other.as_bytes()), None);
    }
}
