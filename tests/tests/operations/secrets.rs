//! Planted secrets: in no answer, event or error of any operation, in none of the forms in which they are hidden.

use std::time::Duration;

use serde_json::{Value, json};
use watershed::Runtime;
use watershed::api::operations::TABLE;
use watershed::api::request::RunRequest;
use watershed::api::{Reply, Request};

use crate::attacks::put;
use crate::cases::{case, request};
use crate::project::{NAME, Place, SECRET, Told, ask_at_rest};

/// A secret that can stand in a text of SQL.
const PLAIN: &str = "S3CRETplain/ed é77";
/// A secret that a connector's file states.
const STATED: &str = "statedS3CR/ET77";

/// Everything that quotes a secret where it can.
const FILES: &[(&str, &str)] = &[
    (
        ".env",
        "PLANTED=\"S3CR'ET\\\"pl/ant ed&9x\"\nPLAIN='S3CRETplain/ed é77'\n",
    ),
    (
        "models/cast.sql",
        "-- @materialize: true\nSELECT '{{ .env.PLAIN }}'::INTEGER AS n",
    ),
    ("models/syntax.sql", "SELECT FROM FROM '{{ .env.PLANTED }}'"),
    ("models/missing.sql", "SELECT * FROM \"nope_{{ .env.PLAIN }}\""),
    (
        "models/said.sql",
        "-- @materialize: true\nSELECT error('{{ .env.PLAIN }} ' || url_encode('{{ .env.PLAIN }}') || to_json('{{ .env.PLAIN }}'))",
    ),
    ("models/view.sql", "SELECT length('{{ .env.PLAIN }}') AS n"),
    (
        "apis/leaks.yaml",
        "type: api\nsql: SELECT '{{ .args.x }}' AS x, error('{{ .env.PLAIN }}') AS y FROM late\n",
    ),
    (
        "alerts/told.yaml",
        "type: alert\nrefresh: {ref_update: true}\ndata: {sql: \"SELECT error('{{ .env.PLAIN }}') AS x FROM late\"}\nnotify: {file: archive}\n",
    ),
    (
        "alerts/hooked.yaml",
        "type: alert\nrefresh: {ref_update: true}\ndata: {sql: 'SELECT origin FROM late'}\nnotify: {webhook: hook}\n",
    ),
    (
        "programs/says.yaml",
        "type: job\nrun: |\n  echo \"out $PLAIN $AWKWARD\"; echo \"err $PLAIN $AWKWARD\" >&2; exit 3\n\
         environment: {PLAIN: '{{ .env.PLAIN }}', AWKWARD: '{{ .env.PLANTED }}'}\nretries: {attempts: 1, base: 10ms}\n",
    ),
];

/// Resources that hold or tell a secret where they can.
const TELLING: &[&str] = &[
    "cast",
    "syntax",
    "missing",
    "said",
    "view",
    "leaks",
    "told",
    "hooked",
    "says",
    "connector/hook",
    "connector/store",
];

/// Returns the forms in which secrets are hidden: as they are, in SQL, in JSON and in addresses.
fn forms() -> Vec<String> {
    let percent = |text: &str| -> String {
        let encoded = text.bytes().map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        });
        encoded.collect()
    };
    let all = [SECRET, PLAIN, STATED].into_iter().flat_map(|secret| {
        let json = Value::from(secret).to_string();
        [
            secret.to_owned(),
            secret.replace('\'', "''"),
            json.trim_matches('"').to_owned(),
            percent(secret),
            percent(secret).replace("%20", "+"),
        ]
    });
    all.collect()
}

/// The questions beside those of the table that are about what tells secrets.
fn questions() -> Vec<Request> {
    let options = json!({"at": null, "shown": 10, "sql": false, "file": null, "force": false});
    let shown = json!({"at": null, "shown": 10, "sql": true, "file": null, "force": false});
    let mut all = vec![
        json!({"history": {"name": null, "limit": 1000}}),
        json!({"explain": {"name": null}}),
        json!({"status": {"names": TELLING, "all": true}}),
        json!({"call": {"api": "leaks", "args": {"x": PLAIN}, "user": null, "options": options}}),
        json!({"call": {"api": "leaks", "args": {"x": "1"}, "user": null, "options": shown}}),
        json!({"query": {"sql": format!("SELECT '{PLAIN}'::INTEGER"), "limit": null, "timeout_ms": null}}),
        json!({"alert-test": {"name": "told", "at": null, "send": false, "exit_code": false}}),
        json!({"alert-test": {"name": "hooked", "at": null, "send": true, "exit_code": false}}),
        json!({"logs": {"name": "says", "limit": 100, "follow": false, "program": {"replica": null, "previous": false}}}),
        json!({"metrics": {"query": {"metrics_view": "delays", "measures": ["flights"]}, "condition": format!("'{PLAIN}'::INTEGER > 1"),
            "having": null, "user": null, "options": options}}),
        json!({"metrics": {"query": {"metrics_view": "delays", "measures": ["flights"]}, "condition": format!("origin = '{PLAIN}'"),
            "having": null, "user": null, "options": shown}}),
    ];
    for name in TELLING {
        all.extend([
            json!({"explain": {"name": name}}),
            json!({"history": {"name": name, "limit": 100}}),
            json!({"show": {"name": name, "limit": 10}}),
            json!({"compile": {"name": name}}),
            json!({"logs": {"name": name, "limit": 100, "follow": false}}),
        ]);
    }
    all.into_iter().map(read).collect()
}

fn read(request: Value) -> Request {
    serde_json::from_value(request.clone()).unwrap_or_else(|error| panic!("{error}: {request}"))
}

/// Each operation with a good input, then with a secret in the place of its first text.
fn table(place: &Place) -> Vec<Request> {
    let good = TABLE.iter().map(|line| request(line, place));
    let quoting = TABLE.iter().flat_map(|line| {
        [SECRET, PLAIN].into_iter().filter_map(|secret| {
            let mut input = case(line).0;
            put(&mut input, secret).then(|| read(json!({ line.name: input })))
        })
    });
    good.chain(quoting).collect()
}

/// Lists the texts of an answer, but for rows, and looks for secrets in them.
struct Look {
    forms: Vec<String>,
    found: Vec<String>,
    names: usize,
}

impl Look {
    fn new() -> Self {
        Self {
            forms: forms(),
            found: Vec::new(),
            names: 0,
        }
    }

    fn at(&mut self, story: &str, told: &Told) {
        for part in &told.0 {
            if !matches!(part, Reply::Rows(_)) {
                self.value(story, &serde_json::to_value(part).expect("a reply is JSON"));
            }
        }
    }

    fn value(&mut self, story: &str, value: &Value) {
        match value {
            Value::String(text) => self.text(story, text),
            Value::Array(values) => values.iter().for_each(|value| self.value(story, value)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.text(story, key);
                    if key != "rows" && key != "totals" {
                        self.value(story, value);
                    }
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, story: &str, text: &str) {
        self.names += usize::from(text.contains(NAME) || text.contains("[PLAIN]"));
        if self.forms.iter().any(|form| text.contains(form.as_str())) {
            self.found.push(format!("{story}: {text}"));
        }
    }

    #[track_caller]
    fn end(self, story: &str) {
        assert!(self.found.is_empty(), "{story}:\n{}", self.found.join("\n"));
        // Otherwise nothing told of a secret, and nothing was looked at.
        assert!(
            self.names > 20,
            "{story}: only {} texts have a name in its place",
            self.names
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_of_an_owner_or_a_folder_at_rest_has_a_planted_secret() {
    let place = Place::new(FILES);
    let owner = place.owned().await;
    let mut look = Look::new();
    for request in questions().into_iter().chain(table(&place)) {
        let told = owner.ask(&request).await;
        look.at(&format!("{request:?}"), &told);
    }
    owner.close().await;
    look.end("an owner");

    let mut look = Look::new();
    for request in questions().into_iter().chain(table(&place)) {
        let resting = place.at_rest();
        let told = ask_at_rest(&resting, request.clone()).await;
        look.at(&format!("{request:?}"), &told);
    }
    look.end("at rest");
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api3_a_runtime_hides_the_secrets_of_its_own_projects_alone() {
    let text = "the first is first-passphrase, the second second-passphrase";
    let runtimes = [Runtime::new(), Runtime::new()];
    let mut open = Vec::new();
    for (runtime, which) in runtimes.iter().zip(["first", "second"]) {
        assert_eq!(runtime.redact(text), text, "nothing is open");
        let folder = tempfile::tempdir().expect("a folder");
        for (file, text) in [
            ("watershed.yaml", ""),
            (".env", &format!("PHRASE={which}-passphrase\n")),
            ("a.sql", "SELECT '{{ .env.PHRASE }}' AS phrase\n"),
        ] {
            std::fs::write(folder.path().join(file), text).expect("a file");
        }
        let instance = runtime.open(folder.path()).await.expect("it opens");
        instance
            .run(RunRequest::default())
            .await
            .expect("it comes to rest");
        open.push((folder, instance));
    }
    let hidden = |runtime: &Runtime| runtime.redact(text).into_owned();
    assert_eq!(
        hidden(&runtimes[0]),
        "the first is [PHRASE], the second second-passphrase"
    );
    assert_eq!(
        hidden(&runtimes[1]),
        "the first is first-passphrase, the second [PHRASE]"
    );
    for (folder, instance) in open {
        instance.close(Duration::from_secs(10)).await.expect("it closes");
        drop((instance, folder));
    }
    assert_eq!(hidden(&runtimes[0]), text);
}
