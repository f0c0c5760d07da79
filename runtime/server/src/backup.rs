//! The file format of backups: one file with all state of an environment.
//!
//! A line that says what it is, a line of JSON with the names and sizes of the parts, the parts one after another, a digest
//! of each, and a digest of all that. It appears under its name when it is whole, and is checked whole before any of it is
//! used.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use watershed_api::documents::Time;
use watershed_drivers::crash_point;

/// The first line of a backup in this format; another format has another number.
const FIRST_LINE: &str = "watershed backup 1\n";
/// The beginning of the first line of a backup, whatever its format.
const PROGRAM: &str = "watershed backup ";
/// Longest second line that is read, in bytes; a manifest is always shorter.
const LONGEST_LINE: u64 = 64 << 10;
/// Size of the buffer for copying, in bytes.
const CHUNK: usize = 1 << 20;
/// Length of a digest, in bytes.
const DIGEST: usize = blake3::OUT_LEN;

/// The description of a backup: its origin and its parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Version of the program that wrote the backup.
    pub(crate) version: String,
    /// Name of the project.
    pub(crate) project: String,
    /// Name of the project's environment.
    pub(crate) environment: String,
    /// The time of the backup.
    pub(crate) created_at: Time,
    /// The parts, in the order in which they follow in the file.
    pub(crate) parts: Vec<Part>,
}

/// A file within a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// The file's name in the state folder.
    pub(crate) name: String,
    /// The file's size, in bytes.
    pub(crate) bytes: u64,
}

/// The reasons for which a backup can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The backup can't be opened, or the copy of a part can't be written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is no backup.
    #[error("it is no backup of watershed")]
    Other,
    /// A newer version of the program wrote the backup.
    #[error("a newer version of watershed wrote it")]
    Newer,
    /// The content is not as it was written; the text says where.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
}

/// Writes a backup of some files, and replaces the file at `to` once the new one is whole.
///
/// # Errors
/// When a file can't be read, or the backup not be written; then what stood at `to` is there as it was.
pub(crate) fn write(to: &Path, about: Manifest, files: &[(&str, PathBuf)]) -> io::Result<(Manifest, u64)> {
    let mut parts = Vec::new();
    for (name, path) in files {
        parts.push(Part {
            name: (*name).to_owned(),
            bytes: fs::metadata(path)?.len(),
        });
    }
    let manifest = Manifest { parts, ..about };
    let partial = beside(to, ".part");
    let written = write_whole(&partial, &manifest, files);
    let bytes = written.inspect_err(|_| drop(fs::remove_file(&partial)))?;
    crash_point("backup::before_rename");
    fs::rename(&partial, to)?;
    sync_folder_of(to)?;
    crash_point("backup::after_rename");
    Ok((manifest, bytes))
}

fn write_whole(partial: &Path, manifest: &Manifest, files: &[(&str, PathBuf)]) -> io::Result<u64> {
    let file = File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(partial)?;
    let mut out = BufWriter::with_capacity(CHUNK, file);
    let mut all = blake3::Hasher::new();
    let mut line = serde_json::to_vec(manifest).map_err(io::Error::other)?;
    line.push(b'\n');
    out.write_all(FIRST_LINE.as_bytes())?;
    out.write_all(&line)?;
    all.update(&line);
    let mut digests = Vec::new();
    for ((_, path), part) in files.iter().zip(&manifest.parts) {
        let digest = copy(&mut File::open(path)?, &mut out, part.bytes)?;
        let digest = digest.ok_or_else(|| io::Error::other("a file became shorter while it was copied"))?;
        all.update(digest.as_bytes());
        digests.push(digest);
    }
    for digest in digests.into_iter().chain([all.finalize()]) {
        out.write_all(digest.as_bytes())?;
    }
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

/// Copies exactly `bytes` bytes and returns their digest; none if the input ends earlier.
fn copy(from: &mut impl Read, to: &mut impl Write, bytes: u64) -> io::Result<Option<blake3::Hash>> {
    let (mut hasher, mut left) = (blake3::Hasher::new(), bytes);
    let mut chunk = vec![0; CHUNK];
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        let Some(wanted) = chunk.get_mut(..most) else {
            break;
        };
        let read = from.read(wanted)?;
        let Some(read) = wanted.get(..read).filter(|read| !read.is_empty()) else {
            return Ok(None);
        };
        hasher.update(read);
        to.write_all(read)?;
        left -= read.len() as u64;
    }
    Ok(Some(hasher.finalize()))
}

/// Checks a backup and writes the parts whose names are in `known` into a folder.
///
/// # Errors
/// When anything of it is not as it was written; the folder may hold some of the parts then.
pub(crate) fn unpack(from: &Path, into: &Path, known: &[&str]) -> Result<Manifest, ReadError> {
    let mut file = BufReader::with_capacity(CHUNK, File::open(from)?);
    let mut first = Vec::new();
    file.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut first)?;
    if first != FIRST_LINE.as_bytes() {
        return Err(match first.starts_with(PROGRAM.as_bytes()) {
            true => ReadError::Newer,
            false => ReadError::Other,
        });
    }
    let mut line = Vec::new();
    file.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
    let manifest: Manifest =
        serde_json::from_slice(&line).map_err(|_| ReadError::Damaged("its list of parts can't be read"))?;
    let mut all = blake3::Hasher::new();
    all.update(&line);
    let mut digests = Vec::new();
    for part in &manifest.parts {
        if !known.contains(&part.name.as_str()) {
            return Err(ReadError::Damaged("it holds a part that no version knows"));
        }
        let mut out = File::options()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(into.join(&part.name))?;
        let digest = copy(&mut file, &mut out, part.bytes)?;
        let digest = digest.ok_or(ReadError::Damaged("it ends too early"))?;
        out.sync_all()?;
        all.update(digest.as_bytes());
        digests.push(digest);
    }
    for digest in digests.into_iter().chain([all.finalize()]) {
        let mut said = [0; DIGEST];
        file.read_exact(&mut said)
            .map_err(|_| ReadError::Damaged("it ends too early"))?;
        if blake3::Hash::from_bytes(said) != digest {
            return Err(ReadError::Damaged("a digest differs"));
        }
    }
    match file.read(&mut [0])? {
        0 => Ok(manifest),
        _ => Err(ReadError::Damaged("something follows its end")),
    }
}

/// Returns the path with `end` appended to its name.
pub(crate) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Syncs the folder of a path, which makes a rename in it durable.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            version: "1".into(),
            project: "shop".into(),
            environment: "dev".into(),
            created_at: Time::from_millis(0),
            parts: Vec::new(),
        }
    }

    /// Returns a backup of two files, and its temporary folder.
    fn backed_up() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (a, b, to) = (
            folder.path().join("a"),
            folder.path().join("b"),
            folder.path().join("kept"),
        );
        fs::write(&a, "one").unwrap();
        fs::write(&b, "").unwrap();
        write(&to, manifest(), &[("a", a), ("b", b)]).unwrap();
        (folder, to)
    }

    fn unpacked(from: &Path) -> Result<Vec<String>, ReadError> {
        let into = tempfile::tempdir().unwrap();
        let manifest = unpack(from, into.path(), &["a", "b"])?;
        let parts = manifest.parts.iter();
        Ok(parts
            .map(|part| fs::read_to_string(into.path().join(&part.name)).unwrap())
            .collect())
    }

    #[test]
    fn a_backup_is_read_as_it_was_written() {
        let (_folder, to) = backed_up();
        assert_eq!(unpacked(&to).unwrap(), ["one", ""]);
    }

    #[test]
    fn every_other_byte_and_every_other_length_is_noticed() {
        let (_folder, to) = backed_up();
        let good = fs::read(&to).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x20;
            fs::write(&to, &bad).unwrap();
            assert!(unpacked(&to).is_err(), "byte {at}");
            fs::write(&to, &good[..at]).unwrap();
            assert!(unpacked(&to).is_err(), "{at} bytes");
        }
        fs::write(&to, [good.as_slice(), b"x"].concat()).unwrap();
        assert!(unpacked(&to).is_err());
        fs::write(&to, "watershed backup 2\n").unwrap();
        assert!(matches!(unpacked(&to), Err(ReadError::Newer)));
    }
}
