//! The engine's version is pinned in several places, which agree.

use crate::{read, root};

/// Files that name the engine's version, and the text around it.
const NAMED_IN: &[(&str, &str, &str)] = &[
    ("scripts/fetch-duckdb", "\nVERSION=", "\n"),
    ("scripts/fetch-duckdb", "\nPACKAGE_VERSION=", "-r."),
    ("runtime/server/src/cli/mod.rs", "const ENGINE: &str = \"", "\""),
    ("README.md", "(DuckDB ", ";"),
    ("docs/troubleshooting.md", "`libduckdb.so` of DuckDB ", " "),
    ("docs/troubleshooting.md", "<target triple>/", "/"),
];

#[test]
fn every_place_that_names_the_engine_names_the_pinned_version() {
    let pinned = pinned();
    for (file, before, after) in NAMED_IN {
        let text = read(&root().join(file));
        let (_, rest) = text
            .split_once(before)
            .unwrap_or_else(|| panic!("{file} has no `{before}`"));
        let named = rest.split_once(after).map(|(version, _)| version);
        assert_eq!(named, Some(pinned.as_str()), "in {file} after `{before}`");
    }
}

/// The version in the manifest of the workspace: the crate's `1.10505.0` links DuckDB 1.5.5.
fn pinned() -> String {
    let manifest = read(&root().join("Cargo.toml"));
    let (_, rest) = manifest
        .split_once("libduckdb-sys = { version = \"=1.")
        .expect("the manifest pins the engine");
    let (number, _) = rest.split_once('.').expect("the pin has three parts");
    let number: u32 = number.parse().expect("the second part is a number");
    format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100)
}
