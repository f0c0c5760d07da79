//! The work of an assistant from end to end: a failure is found, mended and followed, and what was built is asked.

use serde_json::{Value, json};

use super::Service;
use super::piped::Piped;
use crate::sandbox::Sandbox;

/// The most calls that the work takes, and bytes that are read for it.
const MOST: (usize, usize) = (10, 40 << 10);

/// A copy of a sample project with a model that reads a table which does not exist.
fn broken() -> Sandbox {
    let project = Sandbox::from_project("flights");
    let file = "models/4_summaries/best_hours.sql";
    project.edit(file, "FROM delays_by_hour", "FROM delays_by_huor");
    project
}

/// Mends the model by tools alone, asks a metrics view, and returns the name of its first measure with the rows.
fn mend(metrics: &str, call: &mut dyn FnMut(&str, Value) -> Value) -> (String, Value) {
    let (mut calls, mut bytes) = (0, 0);
    let mut call = |tool: &str, given: Value| {
        let document = call(tool, given);
        assert_ne!(document, Value::Null, "{tool}");
        (calls, bytes) = (calls + 1, bytes + document.to_string().len());
        document
    };
    let failed = call("list_resources", json!({"health": ["failed"], "kind": ["model"]}));
    assert_eq!(failed["resources"][0]["name"], "best_hours", "{failed}");
    let path = failed["resources"][0]["paths"][0]
        .as_str()
        .expect("a path")
        .to_owned();
    let why = call("explain", json!({"kind": "model", "name": "best_hours"}));
    assert!(
        why.to_string().contains("delays_by_hour"),
        "the nearest name: {why}"
    );
    let file = call("read_file", json!({"path": path}));
    let text = file["text"].as_str().expect("a text").to_owned();
    let wrong = text.replace("FROM delays_by_huor", "FORM delays_by_hour");
    let found = call("check_files", json!({"files": {(path.clone()): wrong}}));
    assert!(
        !found["diagnostics"].as_array().expect("a list").is_empty(),
        "{found}"
    );
    let right = text.replace("delays_by_huor", "delays_by_hour");
    let found = call("check_files", json!({"files": {(path.clone()): right}}));
    assert_eq!(found["diagnostics"], json!([]), "{found}");
    // Assistants leave quotes within quotes out.
    let etag = file["etag"].as_str().expect("a version").trim_matches('"');
    let written = call("write_file", json!({"path": path, "text": right, "etag": etag}));
    let ended = call("get_request", json!({"id": written["request"]}));
    assert_eq!(ended["state"], "done", "{ended}");
    assert_eq!(ended["document"]["resources"], json!([]), "{ended}");
    let view = call("describe_metrics", json!({"view": metrics}));
    let query = view["examples"][0]["query"].clone();
    let answer = call("query_metrics", json!({"view": metrics, "query": query}));
    let measure = view["measures"][0]["name"]
        .as_str()
        .expect("a measure")
        .to_owned();
    assert!(calls <= MOST.0 && bytes <= MOST.1, "{calls} calls, {bytes} bytes");
    (measure, answer["rows"].clone())
}

/// The rows that the command line has for a measure.
fn by_command(project: &Sandbox, metrics: &str, measure: &str) -> Value {
    let said = project.call(&["metrics", metrics, "-m", measure, "--format", "json"]);
    let document: Value = serde_json::from_str(&said.stdout).expect("a document");
    document["rows"].clone()
}

#[test]
fn s_api41_an_assistant_mends_a_broken_model_on_pipes() {
    let project = broken();
    let mut piped = Piped::begin(&project, &[]);
    piped.call("run", json!({}));
    let (measure, rows) = mend("departures", &mut |tool, given| piped.call(tool, given));
    piped.end();
    assert_eq!(rows, by_command(&project, "departures", &measure));
}

#[test]
fn s_api41_an_assistant_mends_a_broken_model_over_http_and_one_who_only_reads_learns_where() {
    let project = broken();
    let service = Service::of(project.path());
    let document = |role: &str, tool: &str, given: Value| {
        let answer = service.call(role, tool, given);
        answer["result"]["structuredContent"].clone()
    };
    let listed = service.listed("read");
    for tool in ["explain", "read_file", "check_files", "write_file"] {
        assert!(!listed.contains(tool), "{listed:?}");
        let refused = service.call("read", tool, json!({}));
        assert_eq!(refused["error"]["code"], -32602, "{tool}: {refused}");
    }
    let found = document("read", "list_resources", json!({"health": ["failed"]}));
    assert_eq!(found["resources"][0]["name"], "best_hours", "{found}");
    assert_eq!(
        document("read", "diagnostics", json!({}))["diagnostics"],
        json!([])
    );
    // A token is nobody's, so a view whose rows depend on the user has none for it.
    let (measure, rows) = mend("airport_days", &mut |tool, given| document("edit", tool, given));
    drop(service);
    assert_eq!(rows, by_command(&project, "airport_days", &measure));
}
