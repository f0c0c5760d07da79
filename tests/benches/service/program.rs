//! Figures of the program and of the crate as others take them.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::Instant;

use watershed_tests::measure::{Report, Unit};

use super::ROUNDS;
use super::projects::write_small;
use super::serving::Serving;

/// Measures the time from a start of the program until it is ready.
pub(crate) fn ready(report: &Report, instances: usize) {
    let folder = tempfile::tempdir().unwrap();
    write_small(folder.path(), instances);
    let mut configuration = "listen: 127.0.0.1:0\ninstances:\n".to_owned();
    for n in 0..instances {
        configuration.push_str(&format!("  p{n}: {{project: p{n}, trust: full}}\n"));
    }
    fs::write(folder.path().join("server.yaml"), configuration).unwrap();
    let mut times = Vec::new();
    // The first one builds everything, which is not what is measured.
    for round in 0..=ROUNDS {
        let begun = Instant::now();
        let serving = Serving::start(folder.path());
        serving.wait_until_ready();
        if round > 0 {
            times.push(begun.elapsed().as_secs_f64() * 1_000.0);
        }
        serving.stop();
    }
    report.print("ready_100_ms", Unit::Milliseconds, times);
}

/// Counts the crates of the runtime without its web server.
pub(crate) fn crates(report: &Report) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--package",
            "watershed",
            "--no-default-features",
            "--edges",
            "normal,build",
        ])
        .args(["--prefix", "none", "--no-dedupe", "--format", "{p}"])
        .current_dir(root)
        .output()
        .unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    let crates: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(" (").next()).collect();
    assert!(!crates.iter().any(|name| name.starts_with("axum")), "{crates:?}");
    #[expect(clippy::cast_precision_loss, reason = "there are hundreds")]
    let number = crates.len() as f64;
    report.print("embed_crates_without", Unit::Number, vec![number]);
}
