//! Lets the program find the DuckDB library wherever it is started from, and say which commit it was built from.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    name_commit();
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

/// The commit is that of the last full build: a new commit alone is no reason to build again.
fn name_commit() {
    println!("cargo:rerun-if-env-changed=WATERSHED_COMMIT");
    let given = std::env::var("WATERSHED_COMMIT").ok();
    if let Some(commit) = given.or_else(|| git(&["rev-parse", "--short=10", "HEAD"])) {
        println!("cargo:rustc-env=WATERSHED_COMMIT={commit}");
    }
}

/// What git says; nothing outside of a repository.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !said.trim().is_empty()).then(|| said.trim().to_owned())
}
