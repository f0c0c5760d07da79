//! The program as a person calls it, on a project of its own.

use std::fs;
use std::process::Command;

use tempfile::TempDir;
use watershed_tests::server;

/// A project in a folder that goes away.
pub(crate) struct Project(TempDir);

impl Project {
    /// Makes one of these files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = Self(folder);
        project.write("watershed.yaml", "");
        for (path, text) in files {
            project.write(path, text);
        }
        project
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Calls the program. Panics if it fails.
    pub(crate) fn call(&self, arguments: &[&str]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_watershed-under-test"));
        command
            .args(arguments)
            .current_dir(self.0.path())
            .env("NO_COLOR", "1")
            .env("WATERSHED_NO_EXTENSION_INSTALL", "true")
            .env("WATERSHED_EXTENSIONS", server::extensions());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
    }
}
