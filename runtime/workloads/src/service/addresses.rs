//! Current addresses of services, and the files that keep them up to date for programs (rule W17).
//!
//! Each start of a process gets those of that moment. What changes while it runs stands in files, one for each port of a
//! service, which its service keeps: the same text as the variable has.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use watershed_controller::{Handle, Resource};
use watershed_core::{RefView, Uid};

use super::record::ServiceRecord;
use crate::addresses::{Addresses, text, variable};
use crate::message::Service;

/// Name of the folder with the address files, below the output folder.
const FOLDER: &str = "addresses";

impl Addresses {
    /// Returns the current addresses of services.
    pub(crate) fn now(handle: &Handle, folder: &Path, services: &[String]) -> Self {
        let mut all = Self::default();
        for name in services {
            if let Ok(service) = handle.get(super::key(name)) {
                all.add(name, &service, folder);
            }
        }
        all
    }

    fn add(&mut self, name: &str, service: &Resource, folder: &Path) {
        let record = service.state::<ServiceRecord>().ok().flatten();
        self.variables
            .extend(record.map(|record| record.addresses(name)).unwrap_or_default());
        // Its ports are known before it is ready.
        let spec = service.spec::<Service>().map(|spec| spec.0).unwrap_or_default();
        for port in spec.program.unwrap_or_default().ports {
            let variable = format!("{}_FILE", variable(name, &port.name));
            self.files
                .insert(variable, file_of(folder, service.row.uid, &port.name));
        }
    }
}

/// Returns the names of the services among the refs.
pub(crate) fn services(refs: &[RefView]) -> Vec<String> {
    let services = refs.iter().map(|view| &view.reference);
    services
        .filter(|reference| reference.kind.as_str() == super::KIND)
        .map(|reference| reference.name.to_string())
        .collect()
}

fn file_of(folder: &Path, service: Uid, port: &str) -> PathBuf {
    folder.join(FOLDER).join(service.to_string()).join(port)
}

/// Updates the address files of a service's ports. Correct files are not written.
///
/// # Errors
/// When a file can't be written.
pub(super) fn keep_files<'a>(
    folder: &Path,
    service: Uid,
    ports: impl IntoIterator<Item = &'a str>,
    record: &ServiceRecord,
) -> io::Result<()> {
    for port in ports {
        let path = file_of(folder, service, port);
        let numbers = record.ports.get(port).map(Vec::as_slice).unwrap_or_default();
        let wanted = format!("{}\n", text(numbers));
        if fs::read_to_string(&path).is_ok_and(|found| found == wanted) {
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        // Whole or not at all: programs read it at any time.
        let part = path.with_extension("part");
        fs::write(&part, wanted)?;
        fs::rename(part, path)?;
    }
    Ok(())
}

/// Removes the address files of a service.
pub(super) fn remove_files(folder: &Path, service: Uid) {
    let folder = folder.join(FOLDER);
    // There are none if it has no ports.
    let _ = fs::remove_dir_all(folder.join(service.to_string()));
    // It stays where there are others.
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_service_say_what_is_ready_and_go_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let uid = Resource::fresh_uid();
        let read = |port: &str| fs::read_to_string(file_of(folder.path(), uid, port)).unwrap();
        let mut record = ServiceRecord::default();
        for (numbers, expected) in [
            (vec![], "\n"),
            (vec![40_113], "127.0.0.1:40113\n"),
            (vec![1, 2], "127.0.0.1:1,127.0.0.1:2\n"),
            (vec![], "\n"),
        ] {
            record.ports.insert("PORT".to_owned(), numbers);
            keep_files(folder.path(), uid, ["PORT", "OTHER"], &record).unwrap();
            assert_eq!((read("PORT").as_str(), read("OTHER").as_str()), (expected, "\n"));
        }
        remove_files(folder.path(), uid);
        assert!(!folder.path().join(FOLDER).exists());
    }
}
