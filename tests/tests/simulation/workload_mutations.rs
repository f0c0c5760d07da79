//! Deliberate breaks of the workloads: each must be noticed by the tests of their crate, its simulation included.
//!
//! As with those of the core, they are made in a copy, all at once and each behind a switch. Run by hand:
//! `scripts/prove mutations`. `WATERSHED_MUTATIONS` picks those whose name contains it.

use std::fs;
use std::path::PathBuf;

use crate::mutations::{
    Mutation, assert_fits, assert_noticed, build, cargo, copy_folder, ends_well, parse, plant, root,
};

/// Worlds of one run of the simulation: enough for what other tests leave to it.
const WORLDS: &str = "150";

fn mutations() -> Vec<Mutation> {
    parse(include_str!("workload_mutations.txt"))
}

/// A workspace of its own with a copy of the workloads; other crates are those of the repository.
fn workspace() -> PathBuf {
    let (root, copy) = (root(), root().join("target/workload-mutations"));
    let workloads = copy.join("workloads");
    let _ = fs::remove_dir_all(&workloads);
    copy_folder(&root.join("runtime/workloads"), &workloads);
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the manifest");
    let (start, rest) = manifest.split_once("members = [").expect("members");
    let (_, rest) = rest.split_once(']').expect("the end of the members");
    let others = format!("path = \"{}/", root.display());
    let rest = rest
        .replace("path = \"runtime/workloads\"", "PATH")
        .replace("path = \"", &others)
        .replace("PATH", "path = \"workloads\"");
    fs::write(
        copy.join("Cargo.toml"),
        format!("{start}members = [\"workloads\"]{rest}"),
    )
    .expect("a manifest");
    fs::copy(root.join("Cargo.lock"), copy.join("Cargo.lock")).expect("a lock file");
    copy
}

#[test]
#[ignore = "compiles the workloads anew, and runs their tests once for each mutation"]
fn every_mutation_of_the_workloads_is_noticed() {
    let (workspace, mutations) = (workspace(), mutations());
    plant(&workspace.join("workloads/src"), &mutations);
    build(&workspace, "watershed-workloads", &["--lib"]);
    assert_noticed(&mutations, |number| {
        let mut tests = cargo(&workspace, "watershed-workloads", &["--lib"], Some(number));
        tests.env("WATERSHED_WORKLOAD_ROUNDS", WORLDS);
        (!ends_well(tests)).then_some("tests of the crate")
    });
}

#[test]
fn every_mutation_still_fits_the_workloads() {
    assert_fits(&mutations(), "runtime/workloads/src");
}
