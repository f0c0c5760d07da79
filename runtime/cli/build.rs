//! The build script of the program.
//!
//! Lets the program find the DuckDB library wherever it is started from, and say which commit it was built from; lists
//! the files of the flights project, which `init` writes.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The project that the README goes through and tests build.
const FLIGHTS: &str = "../../testdata/projects/flights";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    name_commit();
    list_flights();
    // Cargo leaves the library in `deps`, beside the program; who hands the program on puts it right beside.
    let beside = match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => "@loader_path",
        Ok("windows") => return,
        _ => "$ORIGIN",
    };
    println!("cargo:rustc-link-arg=-Wl,-rpath,{beside}");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{beside}/deps");
    // Packages install `bin/watershed` and `lib/watershed/libduckdb.so`.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{beside}/../lib/watershed");
}

/// Writes the table of files that `cli/init.rs` includes.
fn list_flights() {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo names it"));
    let folder = here.join(FLIGHTS);
    let mut files = Vec::new();
    find(&folder, &mut files);
    files.sort();
    // What every project keeps out of a repository, and what this one does besides.
    let ignored = ["templates/empty/gitignore".into(), folder.join(".gitignore")];
    let ignored = ignored.map(|file| fs::read_to_string(here.join(file)).expect("the list can be read"));
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo names it"));
    let all_ignored = out.join("gitignore");
    fs::write(&all_ignored, ignored.concat()).expect("the list can be written");
    let mut table = format!("&[\n    (\".gitignore\", include_bytes!({all_ignored:?})),\n");
    for file in files {
        let name = file.strip_prefix(&folder).expect("it was found there");
        // Writing to a text can't fail.
        let _ = writeln!(table, "    ({name:?}, include_bytes!({file:?})),");
    }
    table.push_str("]\n");
    fs::write(out.join("flights.rs"), table).expect("the table can be written");
}

/// Folders that a run leaves in the project.
const LEFT_BY_RUNS: [&str; 2] = [".watershed", "exports"];

/// The files of a folder, without what a run leaves there.
fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a folder's entry can be read").path();
        if path.is_dir() {
            if !LEFT_BY_RUNS.iter().any(|left| path.ends_with(left)) {
                find(&path, files);
            }
        } else if path.is_file() && !path.ends_with(".gitignore") {
            files.push(path);
        }
    }
}

/// The commit is that of the last full build: a new commit alone is no reason to build again.
fn name_commit() {
    println!("cargo:rerun-if-env-changed=WATERSHED_COMMIT");
    let given = std::env::var("WATERSHED_COMMIT").ok();
    if let Some(commit) = given.or_else(|| git(&["rev-parse", "--short=10", "HEAD"])) {
        println!("cargo:rustc-env=WATERSHED_COMMIT={commit}");
    }
}

/// Returns the output of git; nothing outside of a repository.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !said.trim().is_empty()).then(|| said.trim().to_owned())
}
