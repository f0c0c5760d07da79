//! The engine's version is pinned in several places, which agree; so do the files in which crates outside the workspace
//! keep their versions.

use crate::{files, read, root, shown};

/// Files that name the engine's version, and the text around it.
const NAMED_IN: &[(&str, &str, &str)] = &[
    ("scripts/fetch-duckdb", "\nVERSION=", "\n"),
    ("scripts/fetch-duckdb", "\nPACKAGE_VERSION=", "-r."),
    ("runtime/cli/src/lib.rs", "const ENGINE: &str = \"", "\""),
    ("README.md", "(DuckDB ", ";"),
    ("scripts/fetch-extensions", "\nVERSION=", "\n"),
    ("docs/connectors/README.md", "exactly its version (", ")"),
    ("docs/connectors/README.md", "`v", "/linux_amd64"),
    ("docs/connectors/s3.md", "`v", "/linux_amd64"),
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

#[test]
fn the_lock_files_of_crates_outside_the_workspace_have_what_our_crates_need() {
    let manifests = files("toml")
        .into_iter()
        .filter(|path| path.ends_with("Cargo.toml"));
    let manifests: Vec<String> = manifests.map(|path| read(&path)).collect();
    let locks: Vec<_> = files("lock")
        .into_iter()
        .filter(|path| path.ends_with("Cargo.lock") && path.parent() != Some(&root()))
        .collect();
    assert!(locks.len() > 2, "the examples are found: {locks:?}");
    for path in locks {
        let lock = read(&path);
        let entries = lock.split("[[package]]\n").skip(1);
        for entry in entries.filter(|entry| !entry.contains("\nsource = ")) {
            let name = entry.lines().next().unwrap_or_default();
            let manifest = manifests
                .iter()
                .find(|text| text.contains(&format!("[package]\n{name}\n")));
            let needed = manifest.map_or_else(Vec::new, |text| needed_by(text));
            for dependency in needed {
                let is_there = entry.contains(&format!("\n \"{dependency}\""))
                    || entry.contains(&format!("\n \"{dependency} "));
                assert!(
                    is_there,
                    "{}: {name} needs {dependency}; `cargo update --workspace --offline` beside it adds that",
                    shown(&path)
                );
            }
        }
    }
}

/// The dependencies that a crate always has, on every system.
fn needed_by(manifest: &str) -> Vec<&str> {
    let (_, rest) = manifest.split_once("\n[dependencies]\n").unwrap_or_default();
    let lines = rest.lines().take_while(|line| !line.starts_with('['));
    let lines = lines.filter(|line| !line.contains("optional = true") && !line.contains("package = "));
    let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
    names
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .collect()
}
