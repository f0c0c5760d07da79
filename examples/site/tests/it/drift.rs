//! Drift: changes by somebody else are found and mended, and nothing more is touched.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::bench::{Bench, end, first_site};

#[test]
fn a_file_deleted_by_hand_comes_back() {
    let bench = Bench::new();
    bench.apply(Some(&first_site()));
    std::fs::remove_file(bench.root().join("public/css/main.css")).unwrap();
    assert_eq!(bench.run(), ["create file/public/css/main.css"]);
    bench.check(Some(&first_site()));
}

#[test]
fn a_file_changed_by_hand_is_put_right() {
    let bench = Bench::new();
    bench.apply(Some(&first_site()));
    std::fs::write(bench.root().join("public/index.html"), "defaced").unwrap();
    assert_eq!(bench.run(), ["modify file/public/index.html"]);
    bench.check(Some(&first_site()));
}

#[test]
fn a_link_that_was_turned_is_turned_back() {
    let bench = Bench::new();
    bench.apply(Some(&first_site()));
    let link = bench.root().join("latest");
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("/etc", &link).unwrap();
    assert_eq!(bench.run(), ["modify link/latest"]);
    bench.check(Some(&first_site()));
}

#[test]
fn a_server_that_was_killed_is_started_again() {
    let bench = Bench::new();
    bench.apply(Some(&first_site()));
    bench.servers().into_iter().for_each(end);
    assert_eq!(bench.run(), ["create server/main"]);
    bench.check(Some(&first_site()));
}

#[test]
fn a_tree_that_was_wiped_out_is_built_again() {
    let bench = Bench::new();
    bench.apply(Some(&first_site()));
    std::fs::remove_dir_all(bench.root()).unwrap();
    bench.run();
    bench.check(Some(&first_site()));
}

#[test]
fn whoever_stays_finds_drift_by_itself() {
    let bench = Bench::new();
    bench.declare(Some(&first_site()));
    let mut command = bench.keep(20);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut wait_for = |what: &str| while !lines.next().unwrap().unwrap().contains(what) {};
    (0..9).for_each(|_| wait_for("after create"));
    std::fs::remove_file(bench.root().join("settings")).unwrap();
    wait_for("after create file/settings");
    bench.servers().into_iter().for_each(end);
    wait_for("after create server/main");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    bench.check(Some(&first_site()));
}
