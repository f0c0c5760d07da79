//! `open`: the address of the project's pages, and the browser that is given it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::going::Going;
use crate::sandbox::Sandbox;

fn project() -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/one more.sql", "SELECT 1 AS id\n"),
        ("dashboards/board.yaml", "type: canvas\nrows: []\n"),
    ])
}

#[test]
fn open_starts_nothing_where_nobody_serves_the_project() {
    let project = project();
    let message = "nobody serves the project";
    let at_rest = project.call(&["open"]);
    assert_eq!((at_rest.code, at_rest.stdout.as_str()), (Some(3), ""));
    assert!(
        at_rest.stderr.contains(message) && at_rest.stderr.contains("watershed start --listen"),
        "{}",
        at_rest.stderr
    );
    let blank = project.call(&["start", "--listen", "127.0.0.1:0"]);
    assert_eq!(blank.code, Some(2));
    assert!(
        blank.stderr.contains("`--listen=127.0.0.1:0`"),
        "{}",
        blank.stderr
    );
    let start = Going::settled(&project);
    let unserved = project.call(&["open"]);
    assert_eq!(unserved.code, Some(3));
    assert!(unserved.stderr.contains(message), "{}", unserved.stderr);
    start.stop();
}

#[test]
fn open_gives_the_browser_the_page_of_the_project_or_of_a_resource() {
    let project = project();
    let mut start = Going::with_arguments(
        &project,
        &[
            "start",
            "--listen=127.0.0.1:0",
            "--base",
            "/data",
            "--format",
            "jsonl",
        ],
    );
    start.round();
    let home = project.call(&["open"]);
    assert_eq!(home.code, Some(0));
    let address = home.stdout.trim_end();
    let name = project
        .path()
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    assert!(
        address.starts_with("http://127.0.0.1:") && address.ends_with(&format!("/data/ui/{name}")),
        "{address}"
    );
    assert!(home.stderr.contains("no browser"), "{}", home.stderr);
    let one = project.call(&["open", "one more"]);
    assert_eq!(one.stdout.trim_end(), format!("{address}/model/one%20more"));
    let board = project.call(&["open", "canvas/board"]);
    assert_eq!(board.stdout.trim_end(), format!("{address}/canvases/board"));
    let unknown = project.call(&["open", "one mroe"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""));

    // A browser that tells what it was given.
    let tools = tempfile::tempdir().expect("a folder");
    let (browser, told) = (tools.path().join("xdg-open"), tools.path().join("told"));
    assert!(
        Command::new("mkfifo")
            .arg(&told)
            .status()
            .expect("mkfifo")
            .success()
    );
    fs::write(
        &browser,
        format!("#!/bin/sh\nprintf '%s' \"$*\" > '{}'\n", told.display()),
    )
    .expect("it is written");
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).expect("it can be run");
    let path = format!(
        "{}:{}",
        tools.path().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut open = project.command(&["open", "one more"]);
    let mut opened = open
        .env("PATH", path)
        .env("DISPLAY", ":0")
        .spawn()
        .expect("the program can be started");
    assert_eq!(
        fs::read_to_string(&told).expect("it is told"),
        format!("{address}/model/one%20more")
    );
    assert!(opened.wait().expect("it ends").success());
    start.stop();
}
