//! Imports run one way, and the crates that promise to know little keep the promise.

use std::collections::{BTreeMap, BTreeSet};

use crate::{list, metadata, text};

/// For each crate of ours, which others of ours it may depend on.
const MAY_USE: &[(&str, &[&str])] = &[
    ("watershed-proto", &[]),
    ("watershed-api", &[]),
    ("watershed-callers", &["watershed-api", "watershed-locks"]),
    ("watershed-core", &[]),
    ("watershed-dialect", &[]),
    ("watershed-locks", &[]),
    ("watershed-outside", &[]),
    ("watershed-stategraph", &[]),
    (
        "watershed-drivers",
        &[
            "watershed-api",
            "watershed-dialect",
            "watershed-locks",
            "watershed-outside",
        ],
    ),
    ("watershed-schedule", &[]),
    ("watershed-shim", &[]),
    ("watershed-metrics", &["watershed-dialect", "watershed-schedule"]),
    (
        "watershed-compilers",
        &[
            "watershed-dialect",
            "watershed-metrics",
            "watershed-proto",
            "watershed-schedule",
        ],
    ),
    (
        "watershed-controller",
        &["watershed-core", "watershed-locks", "watershed-stategraph"],
    ),
    (
        "watershed-delivery",
        &[
            "watershed-controller",
            "watershed-locks",
            "watershed-outside",
            "watershed-schedule",
        ],
    ),
    (
        "watershed-managers",
        &["watershed-controller", "watershed-outside", "watershed-schedule"],
    ),
    (
        "watershed-outputs",
        &[
            "watershed-api",
            "watershed-compilers",
            "watershed-core",
            "watershed-dialect",
            "watershed-drivers",
            "watershed-locks",
            "watershed-proto",
        ],
    ),
    (
        "watershed-resolvers",
        &[
            "watershed-compilers",
            "watershed-controller",
            "watershed-core",
            "watershed-dialect",
            "watershed-drivers",
            "watershed-locks",
            "watershed-metrics",
            "watershed-outputs",
            "watershed-proto",
        ],
    ),
    (
        "watershed-reconcilers",
        &[
            "watershed-api",
            "watershed-proto",
            "watershed-compilers",
            "watershed-controller",
            "watershed-core",
            "watershed-delivery",
            "watershed-dialect",
            "watershed-drivers",
            "watershed-locks",
            "watershed-managers",
            "watershed-metrics",
            "watershed-outputs",
            "watershed-resolvers",
            "watershed-schedule",
            "watershed-workloads",
        ],
    ),
    ("watershed-conform", &["watershed-dialect", "watershed-drivers"]),
    ("watershed-testkit", &["watershed-controller", "watershed-core"]),
    (
        "watershed-workloads",
        &[
            "watershed-api",
            "watershed-controller",
            "watershed-core",
            "watershed-locks",
            "watershed-outside",
            "watershed-proto",
            "watershed-schedule",
            "watershed-shim",
        ],
    ),
    ("watershed-lsp", &["watershed-compilers", "watershed-dialect"]),
    (
        "watershed-pgwire",
        &[
            "watershed-api",
            "watershed-callers",
            "watershed-dialect",
            "watershed-drivers",
            "watershed-locks",
        ],
    ),
    (
        "watershed",
        &[
            "watershed-api",
            "watershed-callers",
            "watershed-proto",
            "watershed-compilers",
            "watershed-conform",
            "watershed-controller",
            "watershed-core",
            "watershed-delivery",
            "watershed-dialect",
            "watershed-drivers",
            "watershed-locks",
            "watershed-lsp",
            "watershed-managers",
            "watershed-metrics",
            "watershed-outputs",
            "watershed-outside",
            "watershed-pgwire",
            "watershed-reconcilers",
            "watershed-resolvers",
            "watershed-shim",
            "watershed-workloads",
        ],
    ),
    (
        "watershed-cli",
        &[
            "watershed",
            "watershed-api",
            "watershed-callers",
            "watershed-compilers",
            "watershed-controller",
            "watershed-delivery",
            "watershed-dialect",
            "watershed-drivers",
            "watershed-locks",
            "watershed-lsp",
            "watershed-managers",
            "watershed-metrics",
            "watershed-outputs",
            "watershed-outside",
            "watershed-reconcilers",
            "watershed-shim",
        ],
    ),
    ("folders", &["watershed-controller"]),
    ("lab", &["watershed-controller", "watershed-managers"]),
    ("notifier", &["watershed-controller", "watershed-delivery"]),
    ("site", &["watershed-controller", "watershed-stategraph"]),
    (
        "supervisor",
        &[
            "watershed-controller",
            "watershed-proto",
            "watershed-shim",
            "watershed-workloads",
        ],
    ),
];

/// Nothing depends on these crates.
const TESTS: [&str; 3] = [EVERYTHING, "watershed-house", "watershed-simulation"];

/// The tests that may use all crates.
const EVERYTHING: &str = "watershed-tests";

/// All crates of ours that the other tests may use, so that they are built and run before most of the workspace is.
const EARLY_TESTS_MAY_USE: [(&str, &[&str]); 2] = [
    ("watershed-house", &[]),
    ("watershed-simulation", &["watershed-core"]),
];

/// Crates that hold plain data and do nothing by themselves: all that the core may use.
const PLAIN_DATA: &[&str] = &[
    "serde",
    "thiserror",
    "uuid",
    "hashbrown",
    "indexmap",
    "jiff",
    "smallvec",
    "rustc-hash",
];

/// Packages that must not be reachable from a crate, by any path: engines, runtimes, databases, the network.
const PURE: &[(&str, &[&str])] = &[
    (
        "watershed-core",
        &["tokio", "duckdb", "sqlx", "rand", "tracing-subscriber"],
    ),
    (
        "watershed-compilers",
        &["tokio", "duckdb", "sqlx", "libduckdb-sys"],
    ),
    ("watershed-proto", &["tokio", "duckdb", "sqlx"]),
    // The library has nothing of the command line.
    ("watershed", &["clap", "watershed-cli"]),
    (
        "watershed-schedule",
        &[
            "tokio",
            "duckdb",
            "sqlx",
            "libduckdb-sys",
            "rand",
            "jiff-tzdb-platform",
        ],
    ),
];

#[test]
fn crates_of_ours_depend_on_one_another_in_one_direction_only() {
    let allowed: BTreeMap<_, BTreeSet<_>> = MAY_USE
        .iter()
        .map(|(name, uses)| (*name, uses.iter().copied().collect()))
        .collect();
    let metadata = metadata(&["--no-deps"]);
    for package in packages(&metadata) {
        let name = text(package, "name");
        if TESTS.contains(&name) {
            continue;
        }
        let Some(allowed) = allowed.get(name) else {
            panic!("`{name}` is not listed here: say what it may depend on");
        };
        for dependency in direct(package) {
            let ours = dependency.starts_with("watershed");
            assert!(
                !ours || allowed.contains(dependency),
                "`{name}` must not depend on `{dependency}`"
            );
        }
    }
}

#[test]
fn nothing_depends_on_the_tests() {
    let metadata = metadata(&["--no-deps"]);
    for package in packages(&metadata) {
        let used = list(package, "dependencies")
            .iter()
            .any(|dependency| TESTS.contains(&text(dependency, "name")));
        assert!(!used, "`{}` depends on tests", text(package, "name"));
    }
}

#[test]
fn the_tests_that_fail_first_need_next_to_nothing_of_ours() {
    let metadata = metadata(&["--no-deps"]);
    for (name, may_use) in EARLY_TESTS_MAY_USE {
        let package = packages(&metadata)
            .iter()
            .find(|package| text(package, "name") == name);
        let package = package.unwrap_or_else(|| panic!("the workspace has no `{name}`"));
        let all = list(package, "dependencies").iter();
        let ours = all
            .map(|dependency| text(dependency, "name"))
            .filter(|name| name.starts_with("watershed"));
        let ours: Vec<&str> = ours.collect();
        assert_eq!(ours, may_use, "dependencies of `{name}`");
    }
}

#[test]
fn the_core_depends_on_plain_data_only() {
    let metadata = metadata(&["--no-deps"]);
    let core = packages(&metadata)
        .iter()
        .find(|package| text(package, "name") == "watershed-core");
    for dependency in direct(core.expect("the workspace has a core")) {
        assert!(
            PLAIN_DATA.contains(&dependency),
            "the core must not depend on `{dependency}`"
        );
    }
}

#[test]
fn pure_crates_reach_no_engine_and_no_runtime() {
    let host = host();
    let metadata = metadata(&["--filter-platform", &host]);
    let names: BTreeMap<_, _> = packages(&metadata)
        .iter()
        .map(|package| (text(package, "id"), text(package, "name")))
        .collect();
    let edges: BTreeMap<_, Vec<&str>> = list(&metadata["resolve"], "nodes")
        .iter()
        .map(|node| {
            (
                text(node, "id"),
                list(node, "deps").iter().filter_map(linked).collect(),
            )
        })
        .collect();
    for (name, unwanted) in PURE {
        let start = names.iter().find(|(_, of)| *of == name).map(|(id, _)| *id);
        let mut seen = BTreeSet::new();
        let mut todo = vec![start.unwrap_or_else(|| panic!("the workspace has no `{name}`"))];
        while let Some(id) = todo.pop() {
            if seen.insert(id) {
                todo.extend(edges.get(id).into_iter().flatten());
            }
        }
        let reached: BTreeSet<_> = seen.iter().filter_map(|id| names.get(id).copied()).collect();
        for unwanted in *unwanted {
            assert!(
                !reached.contains(unwanted),
                "`{name}` must not reach `{unwanted}`"
            );
        }
    }
}

/// The names of what a package is built from: dependencies of its tests are left out.
fn direct(package: &serde_json::Value) -> Vec<&str> {
    list(package, "dependencies")
        .iter()
        .filter(|dependency| dependency["kind"].is_null())
        .map(|dependency| text(dependency, "name"))
        .collect()
}

/// The id of a resolved dependency that ends up in the built crate.
fn linked(dependency: &serde_json::Value) -> Option<&str> {
    let normal = list(dependency, "dep_kinds")
        .iter()
        .any(|kind| kind["kind"].is_null());
    normal.then(|| text(dependency, "pkg"))
}

fn packages(metadata: &serde_json::Value) -> &[serde_json::Value] {
    list(metadata, "packages")
}

/// The target triple of this machine, as the compiler names it.
pub(crate) fn host() -> String {
    let output = std::process::Command::new("rustc")
        .arg("-vV")
        .output()
        .expect("rustc can be started");
    let version = String::from_utf8_lossy(&output.stdout);
    let line = version.lines().find_map(|line| line.strip_prefix("host: "));
    line.expect("rustc names its host").to_owned()
}
