//! The watermark of a partition of files: their times and sizes with a hash of their content, or the versions of
//! objects.

use std::path::Path;
use watershed_drivers::files::{self, FileNow, FilesError};

use super::{Listed, MAX_PARTITIONS, hex};
use crate::model::plan::{CLOCK_GRAIN_NS, LIST, is_address};

/// Returns one file that stands for all matches of a pattern and differs if any match does.
pub(in crate::model) fn as_one_file(pattern: &str, found: &[FileNow]) -> FileNow {
    let stamp = stamp(found);
    // A time that no clock moved: it differs where the stamp does, so that the stamps are compared.
    let mut time = [0; 8];
    time.iter_mut().zip(stamp).for_each(|(to, from)| *to = from);
    FileNow {
        path: format!("{LIST}{pattern}"),
        modified_ns: i64::from_le_bytes(time),
        size: found.iter().map(|file| file.size).sum(),
        content: Some(stamp),
    }
}

fn stamp(files: &[FileNow]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("watershed 2026 stamp of files");
    for file in files {
        hasher.update(&(file.path.len() as u64).to_le_bytes());
        hasher.update(file.path.as_bytes());
        hasher.update(&file.modified_ns.to_le_bytes());
        hasher.update(&file.size.to_le_bytes());
        // The version of an object.
        hasher.update(
            file.content
                .as_ref()
                .map(<[u8; 32]>::as_slice)
                .unwrap_or_default(),
        );
    }
    hasher.finalize().into()
}

/// A stored watermark: the stamp, true if files were settled when inspected, and the content hash.
struct Watermark<'a> {
    stamp: &'a str,
    settled: bool,
    content: &'a str,
}

impl<'a> Watermark<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let mut parts = text.split(':');
        let (stamp, settled, content) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self {
            stamp,
            settled: settled == "settled",
            content,
        })
    }
}

/// A partition with its watermark, and true if the watermark equals the previous one.
pub(in crate::model) struct Stamped {
    pub(in crate::model) listed: Listed,
    pub(in crate::model) same: bool,
}

/// Compares partitions with the watermarks of their last builds. Files are hashed if times don't decide, or if a build
/// follows. Blocks.
///
/// # Errors
/// When a file can't be read.
pub(in crate::model) fn restamp(
    root: &Path,
    all: Vec<(Listed, Option<Option<String>>)>,
    looked_at_ns: i64,
) -> Result<Vec<Stamped>, FilesError> {
    debug_assert!(all.len() <= MAX_PARTITIONS);
    let one = |(mut listed, before): (Listed, Option<Option<String>>)| {
        if listed.files.is_empty() {
            let same = before.is_some_and(|before| before == listed.partition.watermark);
            return Ok(Stamped { listed, same });
        }
        let stamp = hex(&stamp(&listed.files));
        if listed.files.iter().all(|file| is_address(&file.path)) {
            let same = before.flatten().as_deref() == Some(stamp.as_str());
            listed.partition.watermark = Some(stamp);
            return Ok(Stamped { listed, same });
        }
        let before = before.flatten();
        let then = before.as_deref().and_then(Watermark::read);
        if then
            .as_ref()
            .is_some_and(|then| then.settled && then.stamp == stamp)
        {
            listed.partition.watermark = before;
            return Ok(Stamped { listed, same: true });
        }
        let newest = listed.files.iter().map(|file| file.modified_ns).max();
        let settled = newest.unwrap_or_default().saturating_add(CLOCK_GRAIN_NS) < looked_at_ns;
        let mut hasher = blake3::Hasher::new();
        for file in &listed.files {
            hasher.update(&files::hash(root, &file.path)?);
        }
        let content = hasher.finalize().to_hex();
        let same = then.is_some_and(|then| then.content == content.as_str());
        let settled = if settled { "settled" } else { "fresh" };
        listed.partition.watermark = Some(format!("{stamp}:{settled}:{content}"));
        Ok(Stamped { listed, same })
    };
    all.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::super::listed;
    use super::*;
    use crate::model::plan;

    fn look(root: &Path) -> Listed {
        listed(
            [("uri".to_owned(), "a".into())].into(),
            None,
            files::look(root, "a").unwrap(),
        )
    }

    fn stamped(root: &Path, before: Option<String>, at: i64) -> Stamped {
        restamp(root, vec![(look(root), Some(before))], at)
            .unwrap()
            .remove(0)
    }

    #[test]
    fn a_touched_file_is_the_same_and_an_edited_one_is_not() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a");
        fs::write(&file, "1").unwrap();
        let touch = |seconds| {
            let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            fs::File::open(&file).unwrap().set_modified(time).unwrap();
        };
        touch(100);
        let first = stamped(root.path(), None, i64::MAX);
        assert!(!first.same);
        let mark = first.listed.partition.watermark;
        assert!(stamped(root.path(), mark.clone(), i64::MAX).same);
        touch(150);
        assert!(stamped(root.path(), mark.clone(), i64::MAX).same);
        fs::write(&file, "2").unwrap();
        touch(150);
        assert!(!stamped(root.path(), mark.clone(), i64::MAX).same);
        touch(100);
        assert!(
            cfg!(not(unix)) || !stamped(root.path(), mark, i64::MAX).same,
            "its time and size are those of before"
        );
    }

    #[test]
    fn a_file_that_was_just_written_is_hashed_again() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a");
        fs::write(&file, "1").unwrap();
        let modified = look(root.path()).files.remove(0).modified_ns;
        let mark = |at| stamped(root.path(), None, at).listed.partition.watermark.unwrap();
        assert!(mark(modified + CLOCK_GRAIN_NS).contains(":fresh:"));
        assert!(mark(modified + CLOCK_GRAIN_NS + 1).contains(":settled:"));
        assert!(stamped(root.path(), Some(mark(modified)), modified).same);
        let same_stamp = mark(modified).replace("fresh:", "fresh:of another content");
        assert!(!stamped(root.path(), Some(same_stamp.clone()), modified).same);
        let settled = same_stamp.replace("fresh", "settled");
        assert!(stamped(root.path(), Some(settled), modified).same);
    }

    #[test]
    fn a_list_of_files_is_another_when_one_of_them_is() {
        let file = |path: &str, modified_ns, size| FileNow {
            path: path.into(),
            modified_ns,
            size,
            content: None,
        };
        let list = |files: &[FileNow]| as_one_file("*.csv", files);
        let (a, b) = (file("a.csv", 1, 1), file("b.csv", 2, 2));
        let both = list(&[a.clone(), b.clone()]);
        assert_eq!(both, list(&[a.clone(), b]));
        // Sum of sizes and last time are those of before.
        let swapped = list(&[file("a.csv", 2, 2), file("b.csv", 1, 1)]);
        assert_ne!(both.content, swapped.content);
        assert_ne!(both.modified_ns, swapped.modified_ns);
        assert!(plan::is_list(&both.path) && !plan::is_list(&a.path));
    }
}
