//! `lsp` over its pipes, as an editor starts it; `schema`; the forms of findings that other systems read.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::going::Going;
use crate::sandbox::Sandbox;

/// The longest that something may take that is bound to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// `watershed lsp` and what an editor hears of it.
struct Editor<'p> {
    project: &'p Sandbox,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
    heard: Vec<Value>,
}

impl<'p> Editor<'p> {
    fn begin(project: &'p Sandbox) -> Self {
        let mut command = project.command(&["lsp", "--stdio"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let mut editor = Self {
            project,
            input: child.stdin.take().expect("it is piped"),
            output: BufReader::new(child.stdout.take().expect("it is piped")),
            child,
            next: 0,
            heard: Vec::new(),
        };
        let root = editor.uri("");
        let hello = editor.ask(
            "initialize",
            &json!({"processId": null, "rootUri": root, "capabilities": {}}),
        );
        assert_eq!(hello["serverInfo"]["name"], "watershed");
        editor.tell("initialized", &json!({}));
        editor
    }

    fn uri(&self, path: &str) -> String {
        let root = self.project.path().canonicalize().expect("it is there");
        format!("file://{}", root.join(path).display())
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let sent = write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len());
        sent.and_then(|()| self.input.flush()).expect("it listens");
    }

    fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.receive();
            if message["id"] == json!(id) {
                return message["result"].clone();
            }
            self.heard.push(message);
        }
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).expect("it speaks");
            assert!(read > 0, "it ended");
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().expect("a number");
            }
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes).expect("a whole message");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    /// The codes of the next findings of a file.
    fn codes(&mut self, path: &str) -> Vec<Value> {
        let uri = json!(self.uri(path));
        loop {
            let at = self
                .heard
                .iter()
                .position(|message| message["params"]["uri"] == uri);
            if let Some(at) = at {
                let found = self.heard.remove(at)["params"]["diagnostics"].clone();
                let found = found.as_array().cloned().unwrap_or_default();
                return found.iter().map(|one| one["code"].clone()).collect();
            }
            let message = self.receive();
            self.heard.push(message);
        }
    }

    fn open(&mut self, path: &str, text: &str) {
        let document = json!({"uri": self.uri(path), "languageId": "sql", "version": 1, "text": text});
        self.tell("textDocument/didOpen", &json!({"textDocument": document}));
    }

    fn at(&mut self, method: &str, path: &str, line: u32, character: u32) -> Value {
        let place = json!({
            "textDocument": {"uri": self.uri(path)},
            "position": {"line": line, "character": character},
        });
        self.ask(&format!("textDocument/{method}"), &place)
    }

    /// Asks until the answer holds a text: what is known of tables is looked at beside the questions.
    fn until(&mut self, method: &str, path: &str, (line, character): (u32, u32), part: &str) {
        let begun = Instant::now();
        loop {
            let answer = self.at(method, path, line, character).to_string();
            if answer.contains(part) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{method} never told {part}: {answer}");
        }
    }

    fn leave(mut self) {
        self.ask("shutdown", &Value::Null);
        self.tell("exit", &Value::Null);
        let ended = self.child.wait().expect("it ends");
        assert_eq!(ended.code(), Some(0));
    }
}

fn shop() -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "models/orders.sql",
            "-- @materialize: true\nSELECT 1 AS id, 2.5 AS amount\n",
        ),
        ("models/daily.sql", "SELECT id FROM orders\n"),
    ])
}

#[test]
fn an_editor_is_told_of_mistakes_columns_and_files_that_change() {
    let project = shop();
    assert_eq!(project.call(&["run"]).code, Some(0));
    let mut editor = Editor::begin(&project);
    editor.open("models/daily.sql", "SELECT o. FROM orders AS o\n");
    assert_eq!(editor.codes("models/daily.sql"), ["sql-syntax"]);
    editor.until("hover", "models/daily.sql", (0, 17), "| amount | ");
    editor.until("hover", "models/daily.sql", (0, 17), "last run");
    editor.until("completion", "models/daily.sql", (0, 9), "\"amount\"");
    let found = editor.at("definition", "models/daily.sql", 0, 17);
    assert_eq!(found["uri"], json!(editor.uri("models/orders.sql")));
    // Nobody says that this file is written: it is watched.
    project.write("models/odd.sql", "SELECT FROM FROM\n");
    assert_eq!(editor.codes("models/odd.sql"), ["sql-syntax"]);
    project.remove("models/odd.sql");
    assert!(editor.codes("models/odd.sql").is_empty());
    editor.leave();
}

#[test]
fn an_editor_works_beside_a_program_that_owns_the_project() {
    let project = shop();
    let mut start = Going::settled(&project);
    let mut editor = Editor::begin(&project);
    editor.open("models/daily.sql", "SELECT id FROM orders\n");
    editor.until("hover", "models/daily.sql", (0, 16), "| amount | ");
    project.write(
        "models/orders.sql",
        "-- @materialize: true\nSELECT 1 AS id, 2 AS price\n",
    );
    start.until_done(&["orders:built"]);
    editor.until("hover", "models/daily.sql", (0, 16), "| price | ");
    editor.leave();
}

#[test]
fn an_editor_of_a_project_that_was_never_run_leaves_nothing_behind() {
    let project = shop();
    let mut editor = Editor::begin(&project);
    editor.open("models/daily.sql", "SELECT id FROM orders\n");
    editor.until("hover", "models/daily.sql", (0, 16), "**model** `orders`");
    editor.leave();
    assert!(!project.is_known());
}

#[test]
fn what_is_no_editor_gets_a_hint() {
    let project = shop();
    let mut command = project.command(&["lsp"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(b"SELECT 1;\n").expect("it listens");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Language Server Protocol"), "{said}");
}

/// A project with one finding of each severity.
fn findings() -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/orders.sql", "SELECT 1 AS id\n"),
        ("models/a, b.yaml", "name: orders\nsql: SELECT 2\n"),
        ("models/late.yaml", "sql: SELECT 3\nmaterialise: true\n"),
    ])
}

/// The parts of SARIF's schema that a document of findings must keep to, each as a path and a check.
fn check_sarif(document: &Value) {
    let text = |value: &Value, what: &str| {
        assert!(
            value.as_str().is_some_and(|text| !text.is_empty()),
            "{what}: {value}"
        );
    };
    let object_keys = |value: &Value, required: &[&str], known: &[&str]| {
        let object = value.as_object().unwrap_or_else(|| panic!("an object: {value}"));
        for key in required {
            assert!(object.contains_key(*key), "{key} is missing: {value}");
        }
        for key in object.keys() {
            assert!(
                required.contains(&key.as_str()) || known.contains(&key.as_str()),
                "{key} is no key: {value}"
            );
        }
    };
    object_keys(document, &["version", "runs"], &["$schema"]);
    assert_eq!(document["version"], "2.1.0");
    for run in document["runs"].as_array().expect("runs") {
        object_keys(run, &["tool"], &["results", "columnKind"]);
        let driver = &run["tool"]["driver"];
        object_keys(driver, &["name"], &["version", "rules"]);
        let rules: Vec<&Value> = driver["rules"].as_array().into_iter().flatten().collect();
        for rule in &rules {
            object_keys(
                rule,
                &["id"],
                &["shortDescription", "help", "defaultConfiguration"],
            );
            text(&rule["shortDescription"]["text"], "a rule's description");
            text(&rule["help"]["text"], "a rule's help");
        }
        let ids: Vec<&str> = rules.iter().filter_map(|rule| rule["id"].as_str()).collect();
        let mut once = ids.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), ids.len(), "rules are unique");
        for result in run["results"].as_array().expect("results") {
            object_keys(
                result,
                &["message", "ruleId", "level", "locations"],
                &["relatedLocations"],
            );
            text(&result["message"]["text"], "a message");
            assert!(
                ids.contains(&result["ruleId"].as_str().expect("a text")),
                "{result}"
            );
            let level = result["level"].as_str().expect("a text");
            assert!(["none", "note", "warning", "error"].contains(&level), "{level}");
            let related = result["relatedLocations"].as_array();
            let places = result["locations"]
                .as_array()
                .into_iter()
                .chain(related)
                .flatten();
            for place in places {
                object_keys(place, &["physicalLocation"], &["message"]);
                check_place(&place["physicalLocation"]);
            }
        }
    }
}

fn check_place(place: &Value) {
    let uri = place["artifactLocation"]["uri"].as_str().expect("an address");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/%".contains(c);
    assert!(uri.chars().all(is_plain), "{uri} is no address");
    let number = |key: &str| place["region"][key].as_u64().expect("a number");
    assert!(number("startLine") >= 1 && number("startColumn") >= 1 && number("endColumn") >= 1);
    assert!(number("endLine") >= number("startLine"));
}

#[test]
fn findings_as_sarif_keep_to_its_schema_and_tell_of_other_places() {
    let project = findings();
    let said = project.call(&["validate", "--format", "sarif"]);
    assert_eq!(said.code, Some(1));
    let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
    check_sarif(&document);
    let results = document["runs"][0]["results"].as_array().expect("results");
    let of = |rule: &str| {
        let found = results.iter().find(|result| result["ruleId"] == rule);
        found.unwrap_or_else(|| panic!("{rule} is missing: {results:?}"))
    };
    let collision = of("name-collision");
    let uri = &collision["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    let related = &collision["relatedLocations"][0];
    let both = [uri, &related["physicalLocation"]["artifactLocation"]["uri"]];
    let mut both = both.map(|uri| uri.as_str().unwrap_or_default().to_owned());
    both.sort();
    assert_eq!(both, ["models/a%2C%20b.yaml", "models/orders.sql"]);
    assert_eq!(related["message"]["text"], "first defined here");
    assert_eq!(of("misspelled-key")["level"], "warning");
    // Every code has its rule, and a project without findings is a whole document too.
    fs::remove_file(project.path().join("models/a, b.yaml")).expect("it is there");
    project.write("models/late.yaml", "sql: SELECT 3\nmaterialize: true\n");
    let said = project.call(&["validate", "--format", "sarif"]);
    assert_eq!(said.code, Some(0));
    check_sarif(&serde_json::from_str(&said.stdout).expect("JSON"));
}

#[test]
fn findings_for_github_are_one_command_each() {
    let said = findings().call(&["validate", "--format", "github"]);
    assert_eq!(said.code, Some(1));
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let of = |start: &str| lines.iter().any(|line| line.starts_with(start));
    assert!(of("::error file=models/"), "{lines:?}");
    assert!(
        of("::warning file=models/late.yaml,line=2,endLine=2,col=1,endColumn=12,title=misspelled-key::"),
        "{lines:?}"
    );
}

#[test]
fn every_kind_has_a_schema_and_a_name_that_is_none_gets_a_hint() {
    let project = Sandbox::with(&[("watershed.yaml", "")]);
    let names = project.call(&["schema"]);
    assert_eq!(names.code, Some(0));
    let names: Vec<&str> = names.stdout.lines().collect();
    for name in ["model", "metrics_view", "alert", "manifest"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for name in &names {
        let said = project.call(&["schema", name]);
        assert_eq!(said.code, Some(0), "{name}");
        let schema: Value = serde_json::from_str(&said.stdout).expect("JSON");
        assert_eq!(schema["title"], **name);
        assert!(schema["properties"].is_object(), "{name}");
    }
    let said = project.call(&["schema", "modle"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("did you mean `model`?"), "{}", said.stderr);
}
