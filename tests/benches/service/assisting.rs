//! Calls of assistants, and scrapes of numbers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;
use watershed_tests::measure::{Report, Unit};

use super::client::{Client, Connection};
use super::idle::{configure, resident};
use super::projects::{models, write_small, write_views};
use super::serving::{Serving, program};
use super::{ROUNDS, percentile};

/// Calls of a round.
const CALLS: usize = 500;

/// Measures a tool's call over HTTP beside the same operation without the protocol of assistants.
pub(crate) async fn calls(report: &Report) {
    let folder = tempfile::tempdir().unwrap();
    write_small(folder.path(), 1);
    // The first start builds everything.
    configure(folder.path(), 1, "");
    resident(folder.path());
    configure(folder.path(), 1, "mcp: true\n");
    let serving = Serving::start(folder.path());
    serving.wait_until_ready();
    let mut connection = client(&serving).connect().await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "describe_resource", "arguments": {"kind": "model", "name": "m0"},
    }});
    let call = call.to_string();
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let (mut plain, mut called) = (Vec::new(), Vec::new());
        for _ in 0..CALLS {
            let begun = Instant::now();
            // What the tool asks for.
            connection
                .get("/v1/instances/p0/resources/model/m0?include=columns")
                .await;
            plain.push(begun.elapsed().as_secs_f64());
            let begun = Instant::now();
            tool(&mut connection, &call).await;
            called.push(begun.elapsed().as_secs_f64());
        }
        ratios.push(percentile(called, 50) / percentile(plain, 50));
    }
    report.print("mcp_over_http", Unit::Ratio, ratios);
    drop(connection);
    serving.stop();
}

async fn tool(connection: &mut Connection, call: &str) {
    let headers = "content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
                   mcp-protocol-version: 2025-11-25\r\n";
    let answer = connection.send("POST", "/mcp", headers, call).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.contains("structuredContent"), "{answer}");
}

/// Measures the time from a start of `watershed mcp` on a built project, which nobody owns, to its list of tools.
pub(crate) fn ready(report: &Report, number: usize) {
    let project = models(number);
    let mut building = Command::new(program());
    building.arg("run").current_dir(project.path());
    assert!(building.output().unwrap().status.success());
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let mut child = Command::new(program())
            .arg("mcp")
            .current_dir(project.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        for message in [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}),
        ] {
            writeln!(input, "{message}").unwrap();
        }
        let mut lines = BufReader::new(output).lines();
        while !lines.next().unwrap().unwrap().contains("list_resources") {}
        times.push(begun.elapsed().as_secs_f64() * 1_000.0);
        drop(input);
        child.wait().unwrap();
    }
    report.print("mcp_stdio_ready_ms", Unit::Milliseconds, times);
}

/// Measures a scrape of many instances with a hundred resources each.
pub(crate) async fn scrape(report: &Report, instances: usize) {
    let folder = tempfile::tempdir().unwrap();
    write_views(folder.path(), instances, 100);
    configure(folder.path(), instances, "");
    let serving = Serving::start(folder.path());
    serving.wait_until_ready();
    let mut connection = client(&serving).connect().await;
    // Whoever is ready may still build.
    let built = "health=\"ok\"} 100\n";
    loop {
        let page = String::from_utf8(connection.get("/metrics").await).unwrap();
        if page.matches(built).count() == instances && !page.contains("watershed_pending{") {
            break;
        }
    }
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let page = connection.get("/metrics").await;
        times.push(begun.elapsed().as_secs_f64() * 1_000.0);
        assert!(!page.is_empty());
    }
    report.print("scrape_10k_ms", Unit::Milliseconds, times);
    drop(connection);
    serving.stop();
}

fn client(serving: &Serving) -> Client {
    Client {
        address: serving.address,
        bearer: "",
    }
}
