//! Every route, role and refusal over HTTP.

use axum::http::request::Parts;
use serde_json::{Value, json};
use watershed::Code;
use watershed::api::Problem;
use watershed::api::http::{ROUTES, Route};
use watershed::http::{Caller, Grant, Grants, Narrowing};

use crate::client::Response;
use crate::http::{SHOP, Served, call, send};
use crate::project::Place;

/// The header by which the tests say who asks: `ROLE[@INSTANCE]`.
pub(crate) const CALLER: &str = "x-caller";
/// The header with attributes for policies, in JSON.
const ATTRIBUTES: &str = "x-attributes";
/// The header with the limits of a narrowed token, in JSON: `{"operations": [...], "select": [...]}`.
const NARROWED: &str = "x-narrowed";
/// The name of every caller, which only some roles may see in causes.
const NAME: &str = "CAUSE-MARK";

/// Reads who asks from the headers of the tests.
pub(crate) fn told(head: &Parts) -> Result<Caller, Problem> {
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    let text = header(CALLER).ok_or_else(|| Problem::new(Code::NotAllowed, "nobody asks"))?;
    if text == "owner" {
        return Ok(Caller::owner(NAME));
    }
    let (role, instance) = text.split_once('@').unwrap_or((text, "shop"));
    let grant: Grant = role.parse().expect("a role");
    let mut caller = Caller::with(NAME, Grants::one(instance, grant));
    if let Some(attributes) = header(ATTRIBUTES) {
        caller = caller.seen_as(serde_json::from_str(attributes).expect("attributes"));
    }
    if let Some(narrowed) = header(NARROWED) {
        let narrowed: Value = serde_json::from_str(narrowed).expect("limits");
        let list = |key: &str| serde_json::from_value(narrowed[key].clone()).ok();
        caller = caller.narrowed(Narrowing {
            operations: list("operations"),
            select: list("select").unwrap_or_default(),
        });
    }
    Ok(caller)
}

/// All roles, the least first.
const ROLES: [&str; 6] = ["read", "read+query", "operate", "operate+query", "edit", "admin"];

fn may(role: &str, route: &Route) -> bool {
    let grant: Grant = role.parse().expect("a role");
    grant.allows(route.role)
}

/// Things that a refused caller must not have changed: files, specs, pauses, goals, and runs of models.
async fn standing(served: &Served) -> Value {
    let owner = [(CALLER, "owner")];
    let get = async |path: &str| {
        let path = format!("{SHOP}{path}");
        served.client.send("GET", &path, &owner, None).await.json()
    };
    let resources = get("/resources?limit=1000").await;
    let resources = resources["resources"].as_array().expect("resources").iter();
    let standing = resources.map(|one| {
        let runs = (one["kind"] == "model").then(|| one["runs_total"].clone());
        let is_paused = one["health"] == "paused";
        json!([
            one["name"],
            one["spec_version"],
            is_paused,
            one["result"]["desired"],
            runs
        ])
    });
    let standing: Vec<Value> = standing.collect();
    json!([standing, get("/files").await, get("/trash").await["tables"]])
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api14_who_may_may_and_who_may_not_is_refused_and_changes_nothing() {
    let place = Place::new(&[]);
    place.owned().await.close().await;
    std::fs::remove_file(place.root().join("models/gone.sql")).expect("it is there");
    let served = Served::with(&place, told).await;
    let mut troubles = Vec::new();
    let before = standing(&served).await;
    for route in ROUTES {
        let (path, body) = call(route);
        for role in ROLES.into_iter().filter(|role| !may(role, route)) {
            for headers in [
                vec![(CALLER, role)],
                vec![(CALLER, role), ("watershed-view-as", "head@example.org")],
            ] {
                let answer = send(served.client, route, &path, &body, &headers).await;
                let text = String::from_utf8_lossy(&answer.body).into_owned();
                if answer.status != 403 || !text.contains("\"not-allowed\"") || text.contains("JFK") {
                    troubles.push(format!("{role} {path}: {} {text}", answer.status));
                }
            }
        }
    }
    assert_eq!(
        standing(&served).await,
        before,
        "a refused call has changed something"
    );
    for route in ROUTES.iter().filter(|route| !route.path.ends_with("/watch")) {
        let (path, body) = call(route);
        let least = ROLES.into_iter().find(|role| may(role, route)).expect("a role");
        let headers = [(CALLER, least), ("prefer", "wait=60")];
        let answer = match route.path {
            "/events" => {
                let content = [
                    (CALLER, least),
                    ("ce-id", "1"),
                    ("ce-source", "/a"),
                    ("ce-type", "b"),
                    ("ce-specversion", "1.0"),
                ];
                send(served.client, route, &path, &body, &content).await
            }
            _ => send(served.client, route, &path, &body, &headers).await,
        };
        // There is no request or file of that id, nothing in the trash of that name, and no earlier release.
        let is_there = !matches!(
            route.path,
            "/requests/{id}" | "/exports/{id}" | "/trash/{id}/restore"
        ) && !path.ends_with("/rollback");
        if matches!(answer.status, 403 | 500..) || is_there && answer.status == 404 {
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            troubles.push(format!("{least} may {path}: {} {text}", answer.status));
        }
    }
    served.close().await;
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api14_who_has_no_role_gets_the_bytes_of_an_instance_that_does_not_exist() {
    let place = Place::new(&[]);
    let served = Served::with(&place, told).await;
    let stranger = [(CALLER, "admin@other")];
    let without_date = |answer: &Response, name: &str| {
        let head = answer.head.lines().filter(|line| !line.starts_with("date:"));
        let head: Vec<&str> = head.collect();
        let body = String::from_utf8_lossy(&answer.body).replace(name, "NAME");
        (answer.status, head.join("\n"), body)
    };
    let mut troubles = Vec::new();
    for route in ROUTES {
        let (path, body) = call(route);
        let paths = [
            path.clone(),
            format!("{path}?nonsense=1"),
            format!("{path}/nothing"),
            path.replace("late", "%00"),
        ];
        for path in paths {
            for method in ["GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"] {
                let body = (method == "POST").then_some(&body);
                let there = served.client.send(method, &path, &stranger, body).await;
                // A name as long, which nothing has.
                let nowhere = path.replacen("/shop", "/shoq", 1);
                let not_there = served.client.send(method, &nowhere, &stranger, body).await;
                let (there, not_there) = (without_date(&there, "shop"), without_date(&not_there, "shoq"));
                if there != not_there || there.0 < 400 {
                    troubles.push(format!("{method} {path}: {there:?}\n  nowhere: {not_there:?}"));
                }
            }
        }
    }
    for path in ["/v1/instances", "/v1/me", "/readyz", "/openapi.json", "/"] {
        let answer = served.client.send("GET", path, &stranger, None).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        if answer.status != 200 || text.contains("\"shop\"") || text.contains("/shop/") {
            troubles.push(format!("{path}: {} {text}", answer.status));
        }
    }
    let verbose = served
        .client
        .send("GET", "/readyz?verbose", &stranger, None)
        .await;
    assert_eq!(verbose.status, 403);
    let everywhere = [(CALLER, "read@*")];
    let verbose = served
        .client
        .send("GET", "/readyz?verbose", &everywhere, None)
        .await;
    assert_eq!(
        String::from_utf8_lossy(&verbose.body),
        "ready\nshop: open, full, remote edit\n"
    );
    served.close().await;
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
}

/// Words that stand where only some roles may look, each with the place that it is planted in.
const MARKS: [(&str, &str); 6] = [
    ("SPEC-MARK", "operate"),
    ("ENGINE-MARK", "operate"),
    (NAME, "operate"),
    ("KEPT-MARK", "query"),
    ("TEST-MARK", "query"),
    ("PART-MARK", "query"),
];

const MARKED: &[(&str, &str)] = &[
    ("data/engine.csv", "v\nENGINE-MARK\n"),
    ("data/kept.csv", "v\nKEPT-MARK\n"),
    ("data/test.csv", "v\nTEST-MARK\n"),
    ("data/part.csv", "v\nPART-MARK\n"),
    (
        "models/spec.sql",
        "-- @materialize: true\nSELECT 'SPEC-MARK' AS x\n",
    ),
    ("models/unread.sql", "SELECT FROM FROM 'SPEC-MARK'\n"),
    (
        "models/engine.sql",
        "-- @materialize: true\nSELECT v::INTEGER AS n FROM read_csv('data/engine.csv', header = true)\n",
    ),
    (
        "models/kept.sql",
        "-- @materialize: true\nSELECT v FROM read_csv('data/kept.csv', header = true)\n",
    ),
    (
        "models/checked.yaml",
        "type: model\nmaterialize: true\nsql: SELECT v FROM read_csv('data/test.csv', header = true)\n\
         tests:\n  - {name: short, assert: \"v <> 'SPEC-MARK' AND length(v) < 3\", severity: warn}\n",
    ),
    (
        "models/parted.yaml",
        "type: model\nincremental: true\npartitions: {sql: \"SELECT v FROM read_csv('data/part.csv', header = true)\"}\n\
         sql: SELECT '{{ .partition.v }}' AS v\n",
    ),
    (
        "connectors/archive.yaml",
        "type: connector\ndriver: file\npath: told\n",
    ),
    (
        "alerts/kept.yaml",
        "type: alert\nrefresh: {ref_update: true}\ndata: {sql: 'SELECT v FROM kept'}\nnotify: {file: archive}\n",
    ),
    (
        "reports/kept.yaml",
        "type: report\nrefresh: {ref_update: true}\ndata: {sql: 'SELECT v FROM kept'}\nexport: {format: csv}\nnotify: {file: archive}\n",
    ),
    (
        "apis/engine.yaml",
        "type: api\nsql: SELECT v::INTEGER FROM read_csv('data/engine.csv', header = true)\n",
    ),
];

/// The forms in which a mark may leave.
fn forms(mark: &str) -> [String; 3] {
    use base64::Engine as _;
    let plain = mark.to_owned();
    let encoded = base64::engine::general_purpose::STANDARD.encode(mark);
    [
        plain.clone(),
        plain.replace('-', "%2D"),
        encoded.trim_end_matches('=').to_owned(),
    ]
}

/// Everything that may be looked at, with its method.
fn looks() -> Vec<(&'static str, String)> {
    let about = [
        "model/spec",
        "model/unread",
        "model/engine",
        "model/checked",
        "model/parted",
        "alert/kept",
        "report/kept",
        "model/kept",
        "api/engine",
    ];
    let mut paths = Vec::new();
    for path in [
        "/resources",
        "/resources?all=true&limit=1000",
        "/graph?all=true",
        "/diagnostics",
        "/stats",
        "/engine",
        "/history",
        "/plan",
        "/test",
        "/trash",
        "/resources?fields=result&fields=error&fields=tests&fields=last_run",
    ] {
        let method = if matches!(path, "/plan" | "/test") {
            "POST"
        } else {
            "GET"
        };
        paths.push((method, format!("{SHOP}{path}")));
    }
    for name in about {
        for path in [
            "",
            "?include=spec&include=state",
            "/history",
            "/explain",
            "/logs",
            "/partitions",
            "/tree",
        ] {
            paths.push(("GET", format!("{SHOP}/resources/{name}{path}")));
        }
    }
    paths.push(("POST", format!("{SHOP}/resources/report/kept/run")));
    paths.push(("POST", format!("{SHOP}/resources/model/checked/test")));
    paths.push(("GET", format!("{SHOP}/api/engine")));
    paths.push(("GET", "/v1/instances".to_owned()));
    paths
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api14_no_role_finds_in_any_answer_what_only_a_greater_one_may_see() {
    let place = Place::new(MARKED);
    let served = Served::with(&place, told).await;
    let client = served.client;
    // Work in somebody's name, whose outcome is asked for too.
    let mut requests = Vec::new();
    for path in [
        "/resources/model/spec/refresh",
        "/resources/model/engine/refresh",
        "/run",
    ] {
        let headers = [(CALLER, "admin"), ("prefer", "wait=60")];
        let done = client
            .send("POST", &format!("{SHOP}{path}"), &headers, Some(&json!({})))
            .await;
        requests.push(done.header("location").expect("a place").to_owned());
    }
    let mut paths = looks();
    paths.extend(requests.into_iter().map(|path| ("GET", path)));
    let mut troubles = Vec::new();
    for role in ROLES {
        let mut seen: Vec<(String, String)> = Vec::new();
        for (method, path) in &paths {
            let body = (*method == "POST").then(|| json!({}));
            let answer = client.send(method, path, &[(CALLER, role)], body.as_ref()).await;
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            seen.push((path.clone(), answer.head.clone() + &text));
        }
        let mut events = client
            .events_of(&format!("{SHOP}/watch?all=true"), &[(CALLER, role)])
            .await;
        let mut text = String::new();
        while let Some(event) = events.next().await {
            text.push_str(&event.data.to_string());
            if event.name == "listed" {
                break;
            }
        }
        seen.push(("watch".to_owned(), text));
        let grant: Grant = role.parse().expect("a role");
        for (mark, needs) in MARKS {
            let is_allowed = match needs {
                "query" => grant.allows(watershed::api::operations::Role::Query),
                _ => grant.allows(watershed::api::operations::Role::Operate),
            };
            let found = seen
                .iter()
                .filter(|(_, text)| forms(mark).iter().any(|form| text.contains(form)));
            let places: Vec<&str> = found.map(|(path, _)| path.as_str()).collect();
            if !is_allowed && !places.is_empty() {
                troubles.push(format!("{role} sees {mark} in {places:?}"));
            }
            // Otherwise the mark stands nowhere, and nothing was looked at.
            if role == "admin" && places.is_empty() {
                troubles.push(format!("nobody sees {mark}"));
            }
        }
    }
    served.close().await;
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
}
