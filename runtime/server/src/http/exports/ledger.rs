//! The addresses of an instance's exported files, recorded in its state folder.
//!
//! A record is sealed with a key of the instance, as the signature of an address is: neither can be made by somebody who can
//! write into the folder and can't read the key. A record names a file of the instance's exports and nothing else.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::time::Duration;

use blake3::Hash;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use watershed_drivers::regular;

use crate::state_folder::StateFolder;

/// The time after which an address ends, equal to that of the files.
const KEPT: Duration = Duration::from_secs(31 * 24 * 3_600);
/// The most addresses of an instance. The oldest one ends when another one is made.
const ADDRESSES_MAX: usize = 10_000;
/// The largest record, in bytes.
const RECORD_MAX: usize = 16 << 10;
/// The size of the instance's key, in bytes.
const KEY_BYTES: usize = 32;

/// The addresses of an instance's exported files.
#[derive(Debug, Clone)]
pub(super) struct Ledger {
    folder: PathBuf,
    exports: PathBuf,
    key: PathBuf,
}

/// The record of an exported file with an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Exported {
    /// Id of the address.
    pub(super) id: Uuid,
    /// Name of the instance.
    pub(super) instance: String,
    /// Identity of the report that made the file.
    pub(super) report: Uuid,
    /// Name of the file in the folder of exports.
    pub(super) file: String,
    /// Name of the file for its receivers.
    pub(super) name: String,
    /// Media type of the file.
    pub(super) media_type: String,
    /// Size of the file in bytes.
    pub(super) bytes: u64,
    /// Modification time of the file in nanoseconds since 1970, by which another file in its place is told from it.
    pub(super) modified_ns: i128,
    /// Hash of the file's content.
    pub(super) hash: String,
    /// Time at which the address ends, in milliseconds since 1970.
    pub(super) ends_ms: i64,
}

/// A record as it is stored.
#[derive(Serialize, Deserialize)]
struct Sealed {
    record: Exported,
    seal: String,
}

/// A secret with which records are sealed and addresses are signed.
struct Key([u8; KEY_BYTES]);

impl Key {
    /// Returns the code of a text for a purpose.
    fn code(&self, purpose: &str, text: &[u8]) -> Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(purpose.as_bytes()).update(&[0]).update(text);
        hasher.finalize()
    }
}

impl Ledger {
    /// Returns the addresses of an instance by its state folder, without touching a file.
    pub(super) fn new(state: &StateFolder) -> Self {
        Self {
            folder: state.links(),
            exports: state.exports(),
            key: state.key(),
        }
    }

    /// Records a file and returns the signature of its address. Blocks.
    ///
    /// # Errors
    /// When the file is another one by now, or the disk refuses.
    pub(super) fn add(&self, mut record: Exported, now_ms: i64) -> io::Result<String> {
        let found = fs::symlink_metadata(self.exports.join(&record.file))?;
        if !found.is_file() || found.len() != record.bytes {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file was changed"));
        }
        record.modified_ns = modified_ns(&found);
        record.ends_ms = now_ms.saturating_add(i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX));
        let key = self.key()?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        self.make_room(now_ms)?;
        let text = serde_json::to_vec(&record)?;
        let seal = key.code("record", &text).to_hex().to_string();
        let signature = signature(&key, &record, &text);
        let (path, part) = (
            self.path(record.id),
            self.folder.join(format!("{}.part", record.id)),
        );
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&part)?;
        file.write_all(&serde_json::to_vec(&Sealed { record, seal })?)?;
        file.sync_all()?;
        fs::rename(part, path)?;
        Ok(signature)
    }

    /// Returns a record that has not ended; none if there is none of this id, or it is not one that was made here. Blocks.
    pub(super) fn get(&self, id: Uuid, now_ms: i64) -> Option<Exported> {
        self.read(id, now_ms).map(|(record, ..)| record)
    }

    /// Returns a record that has not ended, if the signature is that of its address. Blocks.
    pub(super) fn get_signed(&self, id: Uuid, given: &str, now_ms: i64) -> Option<Exported> {
        let (record, key, text) = self.read(id, now_ms)?;
        // Hashes are compared in constant time.
        let given = Hash::from_hex(given).ok()?;
        let signature = Hash::from_hex(signature(&key, &record, &text)).ok()?;
        (given == signature).then_some(record)
    }

    /// Opens the file of a record; none if another file or none is in its place. Blocks.
    pub(super) fn open(&self, record: &Exported) -> Option<File> {
        if record.file.contains('/') {
            return None;
        }
        let whole = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(&self.exports, whole | OFlags::DIRECTORY, Mode::empty()).ok()?;
        let flags = whole | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::openat(folder.as_fd(), &*record.file, flags, Mode::empty()).ok()?;
        let file = File::from(file);
        let found = file.metadata().ok()?;
        let is_same =
            found.is_file() && found.len() == record.bytes && modified_ns(&found) == record.modified_ns;
        is_same.then_some(file)
    }

    /// Removes a record; returns false if there was none. Blocks.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn remove(&self, id: Uuid) -> io::Result<bool> {
        match fs::remove_file(self.path(id)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn read(&self, id: Uuid, now_ms: i64) -> Option<(Exported, Key, Vec<u8>)> {
        let stored: Sealed = serde_json::from_slice(&regular::read(&self.path(id), RECORD_MAX).ok()?).ok()?;
        let (key, text) = (self.key().ok()?, serde_json::to_vec(&stored.record).ok()?);
        let is_own = Hash::from_hex(&stored.seal).ok()? == key.code("record", &text);
        let record = stored.record;
        (is_own && record.id == id && record.ends_ms > now_ms).then_some((record, key, text))
    }

    /// Removes the records that have ended, and the oldest ones of too many. Ids begin with the time at which they were made.
    fn make_room(&self, now_ms: i64) -> io::Result<()> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let id = name
                .to_str()
                .and_then(|name| name.split('.').next()?.parse::<Uuid>().ok());
            ids.extend(id);
        }
        ids.sort_unstable();
        let over = (ids.len() + 1).saturating_sub(ADDRESSES_MAX);
        let kept_ms = i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX);
        for (place, id) in ids.into_iter().enumerate() {
            let made_s = id.get_timestamp().map_or(0, |made| made.to_unix().0);
            let made_ms = i64::try_from(made_s).unwrap_or(i64::MAX).saturating_mul(1_000);
            if place < over || made_ms.saturating_add(kept_ms) < now_ms {
                self.remove(id)?;
                // Of a process that was killed.
                let _ = fs::remove_file(self.folder.join(format!("{id}.part")));
            }
        }
        Ok(())
    }

    fn path(&self, id: Uuid) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    /// Reads the key of the instance, from which that of its addresses is derived.
    fn key(&self) -> io::Result<Key> {
        let bytes = regular::read(&self.key, KEY_BYTES).map_err(io::Error::other)?;
        if bytes.len() != KEY_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the key of the state is damaged",
            ));
        }
        Ok(Key(blake3::derive_key(
            "watershed 2026 addresses of exported files",
            &bytes,
        )))
    }
}

fn signature(key: &Key, record: &Exported, text: &[u8]) -> String {
    let purpose = format!("address {} {}", record.instance, record.id);
    key.code(&purpose, text).to_hex().to_string()
}

fn modified_ns(found: &fs::Metadata) -> i128 {
    i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;

    fn ledger(folder: &std::path::Path) -> Ledger {
        let state = StateFolder::new(folder.to_owned(), "dev").unwrap();
        fs::create_dir_all(state.exports()).unwrap();
        fs::write(state.key(), [7; KEY_BYTES]).unwrap();
        fs::write(state.exports().join("a.csv"), "id\n1\n").unwrap();
        Ledger::new(&state)
    }

    fn record() -> Exported {
        Exported {
            id: Uuid::now_v7(),
            instance: "shop".to_owned(),
            report: Uuid::nil(),
            file: "a.csv".to_owned(),
            name: "a.csv".to_owned(),
            media_type: "text/csv".to_owned(),
            bytes: 5,
            modified_ns: 0,
            hash: "00".to_owned(),
            ends_ms: 0,
        }
    }

    #[test]
    fn s_api43_an_address_ends_with_its_time_its_file_and_its_record() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = ledger(folder.path());
        let record = record();
        let signature = ledger.add(record.clone(), NOW_MS).unwrap();
        let found = ledger.get_signed(record.id, &signature, NOW_MS).unwrap();
        assert!(ledger.open(&found).is_some());
        let last_ms = NOW_MS + i64::try_from(KEPT.as_millis()).unwrap();
        assert!(ledger.get(record.id, last_ms - 1).is_some());
        assert_eq!(ledger.get(record.id, last_ms), None, "it has ended");
        fs::write(ledger.exports.join("a.csv"), "id\n2\n").unwrap();
        let file = File::options()
            .write(true)
            .open(ledger.exports.join("a.csv"))
            .unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert!(ledger.open(&found).is_none(), "another file is in its place");
        fs::remove_file(ledger.exports.join("a.csv")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", ledger.exports.join("a.csv")).unwrap();
        assert!(ledger.open(&found).is_none(), "a link is in its place");
        assert!(ledger.remove(record.id).unwrap());
        assert!(!ledger.remove(record.id).unwrap());
        assert_eq!(ledger.get_signed(record.id, &signature, NOW_MS), None);
    }

    #[test]
    fn s_api43_records_and_signatures_that_were_not_made_here_are_none() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (ours, other) = (ledger(folder.path()), ledger(elsewhere.path()));
        fs::write(&other.key, [8; KEY_BYTES]).unwrap();
        let record = record();
        let signature = ours.add(record.clone(), NOW_MS).unwrap();
        let theirs = other.add(record.clone(), NOW_MS).unwrap();
        for given in [
            theirs.as_str(),
            &signature[..63],
            &format!("{signature}0"),
            "",
            &"0".repeat(64),
            &format!("{}é", &signature[..62]),
        ] {
            assert_eq!(ours.get_signed(record.id, given, NOW_MS), None, "{given}");
        }
        let path = ours.path(record.id);
        let text = fs::read_to_string(&path).unwrap();
        for altered in [
            text.replace("a.csv", "../key"),
            text.replace("\"ends_ms\":1", "\"ends_ms\":9"),
            text.replace("shop", "depot"),
            text.replace("\"bytes\":5", "\"bytes\":6"),
            "{}".to_owned(),
            String::new(),
        ] {
            assert_ne!(altered, text);
            fs::write(&path, altered).unwrap();
            assert_eq!(ours.get(record.id, NOW_MS), None);
        }
        fs::copy(other.path(record.id), &path).unwrap();
        assert_eq!(ours.get(record.id, NOW_MS), None, "it is another instance's");
        fs::write(&path, &text).unwrap();
        assert!(ours.get_signed(record.id, &signature, NOW_MS).is_some());
        let mode = fs::metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn records_that_have_ended_are_removed_when_another_one_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = ledger(folder.path());
        let (old, new) = (record(), record());
        ledger.add(old.clone(), NOW_MS).unwrap();
        let made_s = i64::try_from(old.id.get_timestamp().unwrap().to_unix().0).unwrap();
        let later_ms = made_s * 1_000 + 40 * 24 * 3_600_000;
        ledger.add(new.clone(), later_ms).unwrap();
        assert!(!ledger.path(old.id).exists());
        assert!(ledger.path(new.id).exists());
    }
}
