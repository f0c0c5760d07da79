//! Deliberate breaks of the workloads, of the managers and of the planner of metrics: each must be noticed by the tests of
//! their crate, its simulation included.
//!
//! As with those of the core, they are made in a copy, all at once and each behind a switch. Run by hand:
//! `scripts/prove mutations`. `WATERSHED_MUTATIONS` picks those whose name contains it.

use std::fs;
use std::path::PathBuf;

use crate::mutations::{
    Mutation, assert_fits, assert_noticed, build, cargo, copy_folder, ends_well, parse, plant, root,
};

/// A crate with deliberate breaks.
struct Subject {
    /// Its folder below `runtime/`; the package is `watershed-` and that.
    name: &'static str,
    /// The breaks.
    list: &'static str,
    /// The rounds of its simulation in one run: enough for what other tests leave to it.
    rounds: (&'static str, &'static str),
    /// The tests that are to notice them.
    tests: &'static [&'static str],
}

const WORKLOADS: Subject = Subject {
    name: "workloads",
    list: include_str!("workload_mutations.txt"),
    rounds: ("WATERSHED_WORKLOAD_ROUNDS", "150"),
    tests: &["--lib"],
};

const MANAGERS: Subject = Subject {
    name: "managers",
    list: include_str!("manager_mutations.txt"),
    rounds: ("WATERSHED_MANAGERS_ROUNDS", "300"),
    tests: &["--lib"],
};

/// Answers are compared with those of the naive evaluator, and with those over the visible rows alone.
const METRICS: Subject = Subject {
    name: "metrics",
    list: include_str!("metrics_mutations.txt"),
    rounds: ("PROPTEST_CASES", "300"),
    tests: &["--lib", "--test", "it"],
};

impl Subject {
    fn mutations(&self) -> Vec<Mutation> {
        parse(self.list)
    }

    fn package(&self) -> String {
        format!("watershed-{}", self.name)
    }

    /// A workspace of its own with a copy of the crate; other crates are those of the repository.
    fn workspace(&self) -> PathBuf {
        let name = self.name;
        let (root, copy) = (root(), root().join(format!("target/{name}-mutations")));
        let own = copy.join(name);
        let _ = fs::remove_dir_all(&own);
        copy_folder(&root.join("runtime").join(name), &own);
        let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the manifest");
        let (start, rest) = manifest.split_once("members = [").expect("members");
        let (_, rest) = rest.split_once(']').expect("the end of the members");
        let others = format!("path = \"{}/", root.display());
        let rest = rest
            .replace(&format!("path = \"runtime/{name}\""), "PATH")
            .replace("path = \"", &others)
            .replace("PATH", &format!("path = \"{name}\""));
        fs::write(
            copy.join("Cargo.toml"),
            format!("{start}members = [\"{name}\"]{rest}"),
        )
        .expect("a manifest");
        fs::copy(root.join("Cargo.lock"), copy.join("Cargo.lock")).expect("a lock file");
        // The engine that was fetched, where its build looks for it.
        let engine = copy.join("target/duckdb-download");
        let fetched = root.join("target/duckdb-download");
        if fetched.exists() && !engine.exists() {
            copy_folder(&fetched, &engine);
        }
        copy
    }

    fn assert_every_one_is_noticed(&self) {
        let (workspace, mutations) = (self.workspace(), self.mutations());
        plant(&workspace.join(self.name).join("src"), &mutations);
        let package = self.package();
        build(&workspace, &package, self.tests);
        assert_noticed(&mutations, |number| {
            let mut tests = cargo(&workspace, &package, self.tests, Some(number));
            tests.env(self.rounds.0, self.rounds.1);
            // That it fails is enough; nobody reads how.
            tests.env("PROPTEST_MAX_SHRINK_ITERS", "0");
            (!ends_well(tests)).then_some("tests of the crate")
        });
    }
}

#[test]
#[ignore = "compiles the workloads anew, and runs their tests once for each mutation"]
fn every_mutation_of_the_workloads_is_noticed() {
    WORKLOADS.assert_every_one_is_noticed();
}

#[test]
#[ignore = "compiles the managers anew, and runs their tests once for each mutation"]
fn every_mutation_of_the_managers_is_noticed() {
    MANAGERS.assert_every_one_is_noticed();
}

#[test]
#[ignore = "compiles the planner of metrics anew, and runs its tests once for each mutation"]
fn every_mutation_of_the_metrics_is_noticed() {
    METRICS.assert_every_one_is_noticed();
}

#[test]
fn every_mutation_still_fits_its_crate() {
    for subject in [WORKLOADS, MANAGERS, METRICS] {
        assert_fits(&subject.mutations(), &format!("runtime/{}/src", subject.name));
    }
}
