//! The house: rules about the repository itself that no compiler checks.
//!
//! | module | rule |
//! |---|---|
//! | `circles` | modules import one another in one direction |
//! | `fields` | fields of the core are private to their folder |
//! | `diagnostics` | every code that is printed is explained |
//! | `engines` | nothing above the drivers names the engine, quoting has one home |
//! | `format` | the page on the project format names the kinds and keys that there are |
//! | `imports` | crates depend on one another in one direction, and the pure ones stay pure |
//! | `documents` | every dependency is explained, no link is dead |
//! | `orchestration` | the core's own type stays small beside its components |
//! | `openings` | summaries begin with a verb or a noun phrase |
//! | `operations` | handlers know no command line, and no type grows over many files |
//! | `outside` | licences and sources of crates from outside |
//! | `readme` | the README names the commands that there are, and none as missing |
//! | `rules` | rules of the HTTP API have tests that name them |
//! | `settings` | targets are compiled as tests where they have some |
//! | `sources` | files stay short and say what they are, locks are taken in one way |
//! | `statements` | statements in an engine's own words have one home |
//! | `types` | no type has methods in many files |
//! | `versions` | the engine's version is the same everywhere |

mod circles;
mod code;
mod diagnostics;
mod documents;
mod engines;
mod fields;
mod format;
mod imports;
mod openings;
mod operations;
mod orchestration;
mod outside;
mod programs;
mod readme;
mod rules;
mod settings;
mod sources;
mod statements;
mod types;
mod versions;

use std::path::{Path, PathBuf};
use std::{fs, process::Command};

/// The root of the repository.
fn root() -> PathBuf {
    // As the run has it: what was built may have been copied from another clone.
    let house = std::env::var_os("CARGO_MANIFEST_DIR");
    let house = house.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&house)
        .ancestors()
        .nth(2)
        .map(Path::to_path_buf)
        .expect("the house stands in the repository")
}

/// Returns the output of `cargo metadata` for the workspace, on the platform of this machine.
fn metadata(extra: &[&str]) -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(extra)
        .current_dir(root())
        .output()
        .expect("cargo can be started");
    assert!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

/// The repository's files whose names end in `.extension`, in order. Build outputs, generated files, state
/// folders and hidden folders are left out.
fn files(extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries.map(|entry| entry.expect("a folder's entry can be read")) {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if !["target", "generated", "node_modules"].contains(&name.as_str()) && !name.starts_with('.')
                {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|end| end == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the sources below some folders and outside of others, each with its text; tests are left out.
fn sources(below: &[&str], except: &[&str]) -> Vec<(String, String)> {
    let stands = |path: &Path, folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    let all = files("rs").into_iter().filter(|path| {
        let inside = path.strip_prefix(root()).unwrap_or(path);
        let is_test = inside.components().any(|part| part.as_os_str() == "tests")
            || inside.file_stem().is_some_and(|stem| stem == "tests");
        stands(inside, below) && !stands(inside, except) && !is_test
    });
    all.map(|path| (shown(&path), read(&path))).collect()
}

/// Returns a source up to the tests at its end.
fn of_program(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default()
}

/// A path as it is written in messages: relative to the repository.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The text of a file of the repository.
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", shown(path)))
}

/// A list of what cargo says.
fn list<'a>(value: &'a serde_json::Value, key: &str) -> &'a [serde_json::Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// A text of what cargo says.
fn text<'a>(value: &'a serde_json::Value, key: &str) -> &'a str {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("cargo metadata has no `{key}`"))
}
