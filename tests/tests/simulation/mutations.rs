//! Deliberate breaks of the core: each must be noticed by its unit tests or by the simulator.
//!
//! They are made in a copy, so nothing of them is in the core itself. Run by hand, for it compiles the core once for
//! each: `cargo test -p watershed-tests --test simulation -- --ignored --nocapture every_mutation`.
//! `WATERSHED_MUTATIONS` picks those whose name contains it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Enough for what the unit tests leave to the simulator.
const STEPS: &str = "400000";

/// The tests of the simulator that run worlds; the one that looks at this list would notice anything.
const WORLDS: [&str; 6] = [
    "--test",
    "simulation",
    "--",
    "seeds_that_once",
    "one_seed_decides",
    "every_rule_holds",
];

struct Mutation {
    name: &'static str,
    file: &'static str,
    before: &'static str,
    after: &'static str,
}

fn mutations() -> Vec<Mutation> {
    let blocks = include_str!("mutations.txt").split("\n\n");
    let parse = |block: &'static str| {
        let mut lines = block.trim_matches('\n').lines();
        Some(Mutation {
            name: lines.next()?,
            file: lines.next()?,
            before: lines.next()?.strip_prefix("- ")?,
            after: lines.next()?.strip_prefix('+')?.trim_start(),
        })
    };
    blocks
        .filter(|block| !block.starts_with('#'))
        .map(|block| parse(block).unwrap_or_else(|| panic!("not a mutation:\n{block}")))
        .collect()
}

fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the workspace").to_owned()
}

/// A workspace of its own with a copy of the core and the simulator over it.
fn workspace() -> PathBuf {
    let (root, copy) = (root(), root().join("target/mutations"));
    let core = copy.join("core");
    let _ = fs::remove_dir_all(&core);
    copy_folder(&root.join("runtime/core"), &core);
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the manifest");
    let (start, rest) = manifest.split_once("members = [").expect("members");
    let (_, rest) = rest.split_once(']').expect("the end of the members");
    let manifest = format!("{start}members = [\"core\", \"simulation\"]{rest}");
    let manifest = manifest.replace("path = \"runtime/core\"", "path = \"core\"");
    fs::write(copy.join("Cargo.toml"), manifest).expect("a manifest");
    fs::copy(root.join("Cargo.lock"), copy.join("Cargo.lock")).expect("a lock file");
    let simulation = copy.join("simulation");
    fs::create_dir_all(&simulation).expect("a folder");
    fs::write(simulation.join("lib.rs"), "").expect("a library");
    let main = root.join("tests/tests/simulation/main.rs");
    let manifest = format!(
        "[package]\nname = \"simulation\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[lib]\npath = \"lib.rs\"\n\n\
         [dependencies]\nrand.workspace = true\nuuid.workspace = true\nwatershed-core.workspace = true\n\n\
         [[test]]\nname = \"simulation\"\npath = {main:?}\n"
    );
    fs::write(simulation.join("Cargo.toml"), manifest).expect("a manifest");
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => {
                fs::copy(entry.path(), target).expect("a copy");
            }
        }
    }
}

/// Whether the tests of a package of the copy pass; what does not compile is no mutation.
fn passes(workspace: &Path, package: &str, arguments: &[&str]) -> bool {
    let cargo = |build: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(workspace).args(["test", "-q", "-p", package]);
        command.args(build).args(arguments);
        command.env("CARGO_TARGET_DIR", workspace.join("target"));
        command
            .env("WATERSHED_SIM_STEPS", STEPS)
            .env("RUST_BACKTRACE", "0");
        command.output().expect("cargo runs")
    };
    let built = cargo(&["--no-run"]);
    let errors = String::from_utf8_lossy(&built.stderr).into_owned();
    assert!(built.status.success(), "it does not compile:\n{errors}");
    cargo(&[]).status.success()
}

#[test]
#[ignore = "compiles the core once for each mutation"]
fn every_mutation_of_the_core_is_noticed() {
    let picked = std::env::var("WATERSHED_MUTATIONS").unwrap_or_default();
    let workspace = workspace();
    let mut survived = Vec::new();
    for mutation in mutations().iter().filter(|it| it.name.contains(&picked)) {
        let path = workspace.join("core/src").join(mutation.file);
        let sound = fs::read_to_string(&path).expect("a file of the core");
        let places = sound.matches(mutation.before).count();
        assert_eq!(places, 1, "{}: its text is there {places} times", mutation.name);
        fs::write(&path, sound.replace(mutation.before, mutation.after)).expect("a mutant");
        let by = if !passes(&workspace, "watershed-core", &["--lib"]) {
            "unit tests"
        } else if !passes(&workspace, "simulation", &WORLDS) {
            "the simulator"
        } else {
            survived.push(mutation.name);
            "NOBODY"
        };
        println!("{:55} {by}", mutation.name);
        fs::write(&path, sound).expect("the sound file");
    }
    assert!(survived.is_empty(), "not noticed: {survived:?}");
}

#[test]
fn every_mutation_still_fits_the_core() {
    let mutations = mutations();
    assert!(mutations.len() >= 20, "{} mutations", mutations.len());
    for mutation in mutations {
        let path = root().join("runtime/core/src").join(mutation.file);
        let text = fs::read_to_string(path).expect("a file of the core");
        let places = text.matches(mutation.before).count();
        assert_eq!(places, 1, "{}: its text is there {places} times", mutation.name);
    }
}
