//! The journal file: appending, syncing and compaction.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::record::Record;
use super::table::Table;
use crate::folder::JOURNAL;
use crate::procfs;

/// Version of the journal's format.
const VERSION: u32 = 1;

/// Minimum size of a journal for compaction, in bytes; it must also be four times as large as the result. This bounds
/// the file, and keeps the amortised cost of a record constant.
const COMPACT_FROM: u64 = 1 << 20;

/// A folder's journal, open for writing.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    /// Bytes on disk.
    size: u64,
    /// Size after the last compaction, in bytes.
    compacted: u64,
    /// Whole lines that are not yet written.
    pending: Vec<u8>,
    head: Record,
    /// True once the folder is gone, after which nothing is written.
    is_lost: bool,
}

/// An opened journal with its content.
pub(crate) struct Opened {
    /// The journal, ready for appending.
    pub(crate) journal: Journal,
    /// Table of starts that the records yield.
    pub(crate) table: Table,
    /// Description of damage found in the file, for the log; none if intact.
    pub(crate) damage: Option<String>,
}

impl Journal {
    /// Opens a folder's journal, or creates one. The caller holds the folder's lock.
    ///
    /// The last line may be torn: a shim or machine that died while it wrote had told nobody of it. A journal with other
    /// lines that can't be read is set aside, and what could be read goes into a new one.
    ///
    /// # Errors
    /// When it can't be read or written.
    pub(crate) fn open(folder: &Path) -> io::Result<Opened> {
        let path = folder.join(JOURNAL);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let Read {
            head,
            table,
            mut damage,
            whole,
        } = read(&bytes);
        let is_ours = matches!(&head, Some(Record::Head { folder: of, .. }) if of == folder);
        let (head, table) = match head {
            Some(head) if !is_copy(&head, folder) => (moved(head, folder), table),
            found => {
                if found.is_some() {
                    damage =
                        Some("the journal was copied from another folder: it owns no process".to_owned());
                }
                let head = Record::Head {
                    version: VERSION,
                    instance: procfs::fresh_id()?,
                    folder: folder.to_owned(),
                };
                let mut table = Table::default();
                table.apply(&head);
                (head, table)
            }
        };
        if damage.is_some() {
            fs::rename(&path, folder.join("journal.damaged"))?;
        }
        let (file, size) = match write_anew(&path, &head, &table) {
            // A full disk is no reason to lose sight of what runs.
            Err(_) if is_ours && damage.is_none() => append_to(&path, whole)?,
            written => written?,
        };
        let journal = Self {
            path,
            file,
            size,
            compacted: size,
            pending: Vec::new(),
            head,
            is_lost: false,
        };
        Ok(Opened {
            journal,
            table,
            damage,
        })
    }

    /// Adds a record to the buffer that the next [`sync`](Self::sync) writes.
    pub(crate) fn append(&mut self, record: &Record) {
        let before = self.pending.len();
        if serde_json::to_writer(&mut self.pending, record).is_err() {
            self.pending.truncate(before);
        } else {
            self.pending.push(b'\n');
        }
    }

    /// Writes the buffered records and waits until they are on disk.
    ///
    /// # Errors
    /// When that fails. The file then has what it had before, as far as the disk allows; what was appended is kept for
    /// the next time, or dropped by [`drop_pending`](Self::drop_pending).
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.put(File::sync_data)
    }

    /// Writes the buffered records without syncing, so that they survive the shim. Facts about living processes need no
    /// more, since processes end with the machine.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub(crate) fn write(&mut self) -> io::Result<()> {
        self.put(|_| Ok(()))
    }

    fn put(&mut self, sync: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.is_lost {
            self.pending.clear();
            return Ok(());
        }
        let written = self.file.write_all(&self.pending);
        if let Err(error) = written.and_then(|()| sync(&self.file)) {
            // Half a line would join the next one.
            self.file.set_len(self.size)?;
            return Err(error);
        }
        self.size += self.pending.len() as u64;
        self.pending.clear();
        self.pending.shrink_to(64 << 10);
        Ok(())
    }

    /// Returns the size of the buffered records, in bytes.
    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Drops the records that were buffered since [`pending`](Self::pending) returned `from`, after a failed write.
    pub(crate) fn drop_pending(&mut self, from: usize) {
        self.pending.truncate(from);
    }

    /// Compacts the journal if it has grown enough.
    ///
    /// # Errors
    /// When that fails; the old one is still there.
    pub(crate) fn compact(&mut self, table: &Table) -> io::Result<()> {
        let is_due = self.size > COMPACT_FROM && self.size > 4 * self.compacted;
        if !is_due || self.is_lost || !self.pending.is_empty() {
            return Ok(());
        }
        let (file, size) = write_anew(&self.path, &self.head, table)?;
        (self.file, self.size, self.compacted) = (file, size, size);
        Ok(())
    }

    /// Returns true while the path refers to the open file.
    pub(crate) fn is_in_place(&self) -> bool {
        let ours = self.file.metadata();
        let there = fs::symlink_metadata(&self.path);
        matches!((ours, there), (Ok(ours), Ok(there)) if ours.dev() == there.dev() && ours.ino() == there.ino())
    }

    /// Stops writing, since the folder is gone.
    pub(crate) fn lose(&mut self) {
        self.is_lost = true;
    }
}

/// The content of a journal file.
struct Read {
    head: Option<Record>,
    table: Table,
    damage: Option<String>,
    /// Length of all complete lines, in bytes.
    whole: usize,
}

fn read(bytes: &[u8]) -> Read {
    let (mut head, mut table, mut damage) = (None, Table::default(), None);
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let lines = bytes
        .get(..whole)
        .unwrap_or_default()
        .split(|byte| *byte == b'\n');
    for (index, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
        match serde_json::from_slice::<Record>(line) {
            Ok(record @ Record::Head { version, .. }) if head.is_none() && version == VERSION => {
                table.apply(&record);
                head = Some(record);
            }
            Ok(record) if head.is_some() && !matches!(record, Record::Head { .. }) => table.apply(&record),
            Ok(_) | Err(_) => {
                damage.get_or_insert_with(|| format!("line {} of the journal can't be read", index + 1));
            }
        }
    }
    Read {
        head,
        table,
        damage,
        whole,
    }
}

/// Opens a journal for appending behind its last complete line.
fn append_to(path: &Path, whole: usize) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().append(true).open(path)?;
    file.set_len(whole as u64)?;
    Ok((file, whole as u64))
}

/// Returns true if the journal is a copy: another folder still has the original.
fn is_copy(head: &Record, folder: &Path) -> bool {
    let Record::Head {
        folder: of, instance, ..
    } = head
    else {
        return false;
    };
    let same = |a: &Path, b: &Path| match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => a.dev() == b.dev() && a.ino() == b.ino(),
        _ => false,
    };
    if of == folder || same(of, folder) {
        return false;
    }
    let theirs = fs::read(of.join("journal")).unwrap_or_default();
    matches!(read(&theirs).head, Some(Record::Head { instance: there, .. }) if there == *instance)
}

/// Returns a journal's head with its new folder, in case the folder was moved.
fn moved(head: Record, to: &Path) -> Record {
    match head {
        Record::Head {
            version, instance, ..
        } => Record::Head {
            version,
            instance,
            folder: to.to_owned(),
        },
        other => other,
    }
}

/// Writes a new journal with the records of a table, atomically.
fn write_anew(path: &Path, head: &Record, table: &Table) -> io::Result<(File, u64)> {
    let part = path.with_extension("part");
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(&part)?;
    let mut bytes = Vec::new();
    for record in std::iter::once(head).chain(&table.records()) {
        serde_json::to_writer(&mut bytes, record)?;
        bytes.push(b'\n');
    }
    file.write_all(&bytes)?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok((file, bytes.len() as u64))
}

#[cfg(test)]
mod tests;
