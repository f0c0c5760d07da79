//! `watershed mcp` on its pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// `watershed mcp` and its pipes.
pub(super) struct Piped {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Piped {
    pub(super) fn begin(project: &Sandbox, more: &[&str]) -> Self {
        let mut command = project.command(&[&["mcp"], more].concat());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let mut piped = Self {
            input: child.stdin.take().expect("it is piped"),
            output: BufReader::new(child.stdout.take().expect("it is piped")),
            child,
            next: 0,
        };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        assert_eq!(
            piped.ask("initialize", &hello)["result"]["serverInfo"]["name"],
            "watershed"
        );
        piped.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        piped
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("it listens");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).expect("it speaks") > 0,
                "it ended"
            );
            let message: Value =
                serde_json::from_str(&line).unwrap_or_else(|_| panic!("no protocol: {line}"));
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            if message["id"] == json!(id) {
                return message;
            }
        }
    }

    /// Calls a tool, and returns its document.
    pub(super) fn call(&mut self, tool: &str, given: Value) -> Value {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": given}));
        let document = answer["result"]["structuredContent"].clone();
        assert_ne!(document, Value::Null, "{tool}: {answer}");
        document
    }

    pub(super) fn end(mut self) {
        drop(self.input);
        let mut rest = String::new();
        while self.output.read_line(&mut rest).expect("it ends") > 0 {}
        assert_eq!(rest, "", "standard output has the protocol alone");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0));
    }
}

#[test]
fn s_api41_the_first_answer_about_a_folder_that_nobody_owns_has_all_that_the_files_declare() {
    let project = Sandbox::with(&[("watershed.yaml", ""), ("models/a.sql", "SELECT 1 AS x\n")]);
    for (file, names) in [("models/b.sql", 2), ("models/c.sql", 3)] {
        project.write(file, "SELECT x FROM a\n");
        let mut piped = Piped::begin(&project, &[]);
        let listed = piped.call("list_resources", json!({}));
        assert_eq!(
            listed["resources"].as_array().map(Vec::len),
            Some(names),
            "{listed}"
        );
        piped.end();
    }
}

#[test]
fn s_api41_questions_of_every_view_of_a_sample_run_as_they_stand() {
    let project = Sandbox::from_project("flights");
    project.run(0);
    let mut piped = Piped::begin(&project, &["--role", "read"]);
    let views = piped.call("list_metrics", json!({}));
    let views = views["metrics_views"].as_array().cloned().expect("a list");
    assert!(!views.is_empty());
    for view in views {
        let described = piped.call("describe_metrics", json!({"view": view["name"]}));
        let examples = described["examples"].as_array().cloned().unwrap_or_default();
        assert!(!examples.is_empty(), "{described}");
        for example in examples {
            let answer = piped.call(
                "query_metrics",
                json!({"view": view["name"], "query": example["query"]}),
            );
            assert!(
                answer["rows"].as_array().is_some_and(|rows| !rows.is_empty()),
                "{example}: {answer}"
            );
        }
    }
    piped.end();
}

#[test]
fn s_api41_the_role_on_pipes_is_a_bound_and_who_may_start_nothing_builds_nothing() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/a.sql", "-- @materialize: true\nSELECT 1 AS x\n"),
    ]);
    let mut piped = Piped::begin(&project, &["--role", "read"]);
    let listed = piped.ask("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().expect("tools");
    assert!(tools.len() > 3, "{listed}");
    assert!(tools.iter().all(|tool| tool["name"] != "write_file"), "{listed}");
    let refused = piped.ask(
        "tools/call",
        &json!({"name": "write_file", "arguments": {"path": "models/b.sql", "text": ""}}),
    );
    assert_eq!(refused["error"]["code"], -32602);
    // The files are read while the first calls are answered.
    let is_read = |shown: &Value| shown["resources"].as_array().is_some_and(|all| !all.is_empty());
    while !is_read(&piped.call("list_resources", json!({}))) {}
    piped.end();
    assert_eq!(project.tables(), Vec::<String>::new());
    assert_eq!(project.call(&["mcp", "--role", "admin"]).code, Some(2));
}

#[test]
fn s_api41_who_owns_the_folder_is_asked() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/a.sql", "-- @materialize: true\nSELECT 1 AS x\n"),
    ]);
    project.run(0);
    let mut first = Piped::begin(&project, &[]);
    first.call("list_resources", json!({}));
    let mut second = Piped::begin(&project, &[]);
    let written = second.call("write_file", json!({"path": "models/b.sql", "text": "-- \u{1b}]0;{\"jsonrpc\":\"2.0\"}\nSELECT x + 1 AS y FROM a"}));
    let ended = second.call("get_request", json!({"id": written["request"]}));
    assert_eq!(ended["state"], "done", "{ended}");
    let rows = first.call("query_sql", json!({"sql": "SELECT y FROM b"}));
    assert_eq!(rows["rows"], json!([[2]]));
    let past = second.call("history", json!({"kind": "model", "name": "b"}));
    assert!(
        past["runs"].is_array() || past["entries"].is_array() || past.is_object(),
        "{past}"
    );
    second.end();
    first.end();
}
