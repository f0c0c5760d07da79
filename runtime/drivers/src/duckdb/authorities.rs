//! Certificate bundle for the engine: public authorities, and authorities that connectors name.
//!
//! The engine takes one file for all that it reads, in the place of the public authorities. So that a project with a server of
//! its own goes on reading public ones, that file is a bundle, beside the engine's: the system's authorities, which it would take
//! by itself, and what connectors name.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use watershed_dialect::{DuckDb, Quoting as _};

use super::proof::Stamp;
use crate::olap::Session;
use crate::regular;

/// File name of the bundle, in the folder of the engine's file.
const NAME: &str = "authorities.pem";
/// The most bytes of a certificate file; the system's own has a quarter of a million.
const MAX_BYTES: usize = 4 << 20;

/// Files in the bundle, with their stamps when the bundle was written.
#[derive(Debug, Default)]
pub(super) struct Authorities(Vec<(PathBuf, Option<Stamp>)>);

impl Authorities {
    /// Writes the bundle of the public authorities and those in sessions, and returns the statement that makes the
    /// engine trust it; none if sessions name no authority.
    ///
    /// # Errors
    /// When a file can't be read, or the bundle can't be written.
    pub(super) fn trust(&mut self, sessions: &[Session], engine: &Path) -> io::Result<Option<String>> {
        let own = sessions.iter().filter_map(|session| session.authorities.clone());
        // What can't be read there must not keep a server inside from being read.
        let public = openssl_probe::probe().cert_file;
        let mut files: Vec<_> = public
            .filter(|file| regular::read(file, MAX_BYTES).is_ok())
            .into_iter()
            .collect();
        let public = files.len();
        files.extend(own);
        if files.len() == public {
            self.0.clear();
            return Ok(None);
        }
        self.0 = files.into_iter().map(|file| (file, None)).collect();
        self.write(engine)?;
        let path = bundle(engine);
        let path = path.to_str().ok_or(io::ErrorKind::InvalidFilename)?;
        Ok(Some(format!("SET GLOBAL ca_cert_file = {}", DuckDb.text(path))))
    }

    /// Rewrites the bundle if a file has changed since.
    ///
    /// # Errors
    /// When a file can't be read, or the bundle can't be written: then it stays as it was.
    pub(super) fn look(&mut self, engine: &Path) -> io::Result<()> {
        let is_same = |(file, stamp): &(PathBuf, Option<Stamp>)| Stamp::read(file).ok().flatten() == *stamp;
        if self.0.iter().all(is_same) {
            return Ok(());
        }
        self.write(engine)
    }

    fn write(&mut self, engine: &Path) -> io::Result<()> {
        let mut all = Vec::new();
        for (file, stamp) in &mut self.0 {
            let named =
                |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
            *stamp = Stamp::read(file).map_err(named)?;
            all.extend(regular::read(file, MAX_BYTES).map_err(|error| named(io::Error::other(error)))?);
            all.push(b'\n');
        }
        let bundle = bundle(engine);
        if fs::read(&bundle).is_ok_and(|before| before == all) {
            return Ok(());
        }
        // Another process may read it at this moment, or write the same.
        let fresh = bundle.with_extension(format!("{}.pem", std::process::id()));
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(&fresh)?.write_all(&all)?;
        fs::rename(fresh, bundle)
    }
}

fn bundle(engine: &Path) -> PathBuf {
    engine.with_file_name(NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(file: &Path) -> Session {
        Session {
            connector: "own".to_owned(),
            authorities: Some(file.to_owned()),
            ..Session::default()
        }
    }

    #[test]
    fn what_connectors_name_stands_beside_the_public_authorities_and_follows_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let (engine, bundle) = (
            folder.path().join("main.duckdb"),
            folder.path().join("authorities.pem"),
        );
        let (one, two) = (folder.path().join("one.pem"), folder.path().join("two.pem"));
        fs::write(&one, "first of ours").unwrap();
        fs::write(&two, "second of ours").unwrap();
        let mut authorities = Authorities::default();
        assert_eq!(authorities.trust(&[Session::default()], &engine).unwrap(), None);
        assert!(!bundle.exists());

        let sessions = [session(&one), session(&two)];
        let statement = authorities.trust(&sessions, &engine).unwrap().unwrap();
        assert!(statement.contains(bundle.to_str().unwrap()), "{statement}");
        let public = openssl_probe::probe()
            .cert_file
            .map(|file| fs::read(file).unwrap());
        let text = fs::read(&bundle).unwrap();
        assert!(text.starts_with(&public.unwrap_or_default()));
        assert!(text.ends_with(b"first of ours\nsecond of ours\n"));

        fs::write(&two, "another of ours").unwrap();
        authorities.look(&engine).unwrap();
        assert!(fs::read(&bundle).unwrap().ends_with(b"another of ours\n"));
        fs::remove_file(&two).unwrap();
        authorities.look(&engine).unwrap_err();
        assert!(fs::read(&bundle).unwrap().ends_with(b"another of ours\n"));
    }
}
