//! The operations over HTTP: the documents of the socket, requests that survive, a stream that misses nothing.

use std::num::NonZeroU32;
use std::sync::Arc;

use axum::http::request::Parts;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use watershed::api::Problem;
use watershed::api::Request;
use watershed::api::http::routes::Words;
use watershed::api::http::{At, Does, Method, ROUTES, Route};
use watershed::api::operations::Manner;
use watershed::http::{Caller, Limits, Service, bind, local_user, router, serve};

use crate::client::{Client, Response};
use crate::project::{Owner, Place, VARIABLES};

/// A project that is served.
pub(crate) struct Served {
    pub(crate) client: Client,
    pub(crate) owner: Owner,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
    pub(crate) service: Service,
}

/// The path of the instance.
pub(crate) const SHOP: &str = "/v1/instances/shop";

impl Served {
    pub(crate) async fn new(place: &Place) -> Self {
        Self::with(place, local_user).await
    }

    /// A project that is served to callers as `identify` knows them.
    pub(crate) async fn with<F>(place: &Place, identify: F) -> Self
    where
        F: Fn(&Parts) -> Result<Caller, Problem> + Send + Sync + 'static,
    {
        let owner = place.owned().await;
        let service = Service::new().with("shop", Arc::clone(&owner.instance));
        // Tests ask faster than callers may.
        let rate = NonZeroU32::new(1_000_000).expect("a number");
        service.set_limits(Limits {
            requests_per_second: rate,
            requests_at_once: rate,
            ..Limits::default()
        });
        let listener = bind("127.0.0.1:0".parse().expect("an address"))
            .await
            .expect("a socket");
        let client = Client(listener.local_addr().expect("an address"));
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve(listener, router(service.clone(), identify), stop.clone()));
        Self {
            client,
            owner,
            stop,
            serving,
            service,
        }
    }

    pub(crate) async fn close(self) {
        self.service.stop();
        self.stop.cancel();
        self.serving.await.expect("it ends in order");
        drop(self.service);
        self.owner.close().await;
    }
}

/// Returns the path of a route about something of the project, and what is sent there.
pub(crate) fn call(route: &Route) -> (String, Value) {
    let (kind, name, body) = match route.path.rsplit('/').next().unwrap_or_default() {
        "partitions" => ("model", "parts", json!({})),
        "output" | "restart" | "rollback" => ("service", "steady", json!({})),
        "scale" => ("service", "steady", json!({"replicas": 1})),
        "set" => ("managed", "thing", json!({"desired": "active"})),
        "snooze" => ("alert", "bad", json!({"until": null})),
        "evaluate" => ("alert", "bad", json!({})),
        "tree" => ("managed", "thing", json!({})),
        "board" => ("", "board", json!({})),
        "bounds" | "{view}" => ("", "delays", json!({})),
        "query" if route.path == "/query" => ("", "", json!({"sql": "SELECT delay FROM late"})),
        "query" => (
            "",
            "delays",
            json!({"query": {"measures": [{"name": "flights"}]}}),
        ),
        "test" => ("model", "tested", json!({})),
        "empty" => ("", "", json!({"names": [], "dry_run": true})),
        "restore" => ("", "gone", json!({"dry_run": true})),
        "events" => (
            "",
            "",
            json!({"specversion": "1.0", "id": "1", "source": "/a", "type": "b"}),
        ),
        ".env" => ("", "", json!(VARIABLES)),
        "rename-file" => (
            "",
            "",
            json!({"from": "models/made.sql", "to": "models/renamed.sql"}),
        ),
        "check" => ("", "", json!({"files": {"models/late.sql": "SELECT 1"}})),
        "{*path}" if route.method == Method::Put => ("", "models/made.sql", json!("SELECT 1 AS made\n")),
        "{*path}" if route.method == Method::Delete => ("", "models/renamed.sql", json!({})),
        "{*path}" if route.path.starts_with("/files/") => ("", "models/late.sql", json!({})),
        "{*path}" => ("", "public/logo.svg", json!({})),
        _ if route.path.starts_with("/api/") => ("", "by_origin", json!({"origin": "JFK"})),
        _ if route.path.ends_with("/run") && route.path.starts_with("/resources") => {
            ("report", "late", json!({}))
        }
        _ => ("model", "late", json!({})),
    };
    let path = route.path.replace("{kind}", kind);
    let path = ["{name}", "{view}", "{id}", "{*path}"]
        .iter()
        .fold(path, |path, word| path.replace(word, name));
    let query = match (route.words(), body.as_object()) {
        (Words::Query, Some(words)) if !words.is_empty() => {
            let pairs: Vec<String> = words
                .iter()
                .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
                .collect();
            format!("?{}", pairs.join("&"))
        }
        _ => String::new(),
    };
    (format!("{SHOP}{path}{query}"), body)
}

/// Sends a route's call with these headers.
pub(crate) async fn send(
    client: Client,
    route: &Route,
    path: &str,
    body: &Value,
    headers: &[(&str, &str)],
) -> Response {
    let mut headers = headers.to_vec();
    if path.ends_with("/rename-file") || route.method == Method::Delete {
        headers.push(("if-match", "*"));
    }
    let headers = headers.as_slice();
    match route.method {
        Method::Put => {
            client
                .put(path, headers, body.as_str().unwrap_or_default().as_bytes())
                .await
        }
        Method::Get => client.send("GET", path, headers, None).await,
        Method::Delete => client.send("DELETE", path, headers, None).await,
        Method::Post => client.send("POST", path, headers, Some(body)).await,
    }
}

/// Returns the request that a path stands for.
fn request(route: &Route) -> Option<Request> {
    let Does::Answers(offer) = &route.does else {
        return None;
    };
    let (path, body) = call(route);
    let named: Vec<&str> = path
        .split('?')
        .next()
        .unwrap_or_default()
        .trim_start_matches(SHOP)
        .split('/')
        .collect();
    let at = match (route.path.contains("{kind}"), route.path.contains('{')) {
        (true, _) => At::resource(named[2], named[3]),
        (false, true) => At::plain(named[2]),
        (false, false) => At::nothing(),
    };
    Some((offer.read)(body, &at).expect("the body can be read"))
}

/// Returns how the handler's own answer differs from that of the socket.
fn other_than(
    asked: &Result<Value, watershed::Problem>,
    handled: Result<watershed::api::Answer, watershed::Problem>,
    folder: &str,
) -> Option<String> {
    let handled = handled.map(|answer| {
        let answer = serde_json::to_value(answer).expect("an answer is JSON");
        let named = answer.as_object().and_then(|named| named.values().next());
        named.cloned().unwrap_or_default()
    });
    let plain = |end: &Result<Value, watershed::Problem>| match end {
        Ok(document) => {
            let mut document = document.clone();
            plain(&mut document, folder);
            document
        }
        Err(problem) => json!({ "code": problem.code.name() }),
    };
    let (asked, handled) = (plain(asked), plain(&handled));
    (asked != handled).then(|| format!("the handler says {handled}, the socket {asked}"))
}

/// Takes away what differs each time, and the folder, which HTTP does not tell.
fn plain(value: &mut Value, folder: &str) {
    const TIMES: [&str; 15] = [
        "health",
        "root",
        "run_id",
        "started_at",
        "duration_ms",
        "at",
        "until",
        "process_stats",
        "cached",
        "longest_running_ms",
        "revision",
        "changed",
        "phase",
        "engine_bytes_before",
        "engine_bytes_after",
    ];
    match value {
        Value::String(text) => {
            *text = text.replace(&format!("{folder}/"), "").replace(folder, ".");
            // How long a replica took to be ready.
            if let Some((told, _)) = text.split_once(" after ") {
                *text = told.to_owned();
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| plain(value, folder)),
        Value::Object(fields) => {
            fields.retain(|key, _| !TIMES.contains(&key.as_str()));
            fields.values_mut().for_each(|value| plain(value, folder));
        }
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api1_each_path_answers_with_the_document_and_the_code_of_its_operation() {
    let place = Place::new(&[]);
    place.owned().await.close().await;
    std::fs::remove_file(place.root().join("models/gone.sql")).expect("it is there");
    let served = Served::new(&place).await;
    let folder = place.root().display().to_string();
    let mut troubles = Vec::new();
    for route in ROUTES {
        let (path, body) = call(route);
        let response = match route.method {
            Method::Get if path.ends_with("/watch") => continue,
            Method::Get => served.client.get(&path).await,
            Method::Delete | Method::Put => send(served.client, route, &path, &body, &[]).await,
            Method::Post if path.ends_with("/rename-file") => {
                send(served.client, route, &path, &body, &[]).await
            }
            Method::Post if path.ends_with("/events") => served.client.event(&path, &body).await,
            Method::Post => {
                // Nothing runs any more while the next path is looked at.
                let wait = [("prefer", "wait=60")];
                served.client.send("POST", &path, &wait, Some(&body)).await
            }
        };
        let expected = match request(route) {
            Some(request) => {
                let asked = served.owner.ask(&request).await.end();
                if request.info().manner == Manner::Reads {
                    let handled = served.owner.instance.answer(request).await;
                    troubles.extend(other_than(&asked, handled, &folder).map(|it| format!("{path}: {it}")));
                }
                asked
            }
            None => {
                // The others have tests of their own; here they are there and say what they should.
                let fits = matches!(response.status, 200 | 202)
                    || matches!(route.path, "/requests/{id}" | "/exports/{id}") && response.status == 404
                    // No request here asks for a WebSocket.
                    || route.path == "/lsp" && response.status == 400
                    // The files are those of a folder.
                    || route.path == "/checkout" && response.status == 409;
                if !fits {
                    troubles.push(format!(
                        "{path}: {} {}",
                        response.status,
                        String::from_utf8_lossy(&response.body)
                    ));
                }
                continue;
            }
        };
        let mut told = response.json();
        let mut wanted = match expected {
            Ok(mut document) => {
                if let Some(inner) = document.get_mut("document") {
                    document = inner.take();
                }
                (200, document)
            }
            Err(problem) => {
                let code = told["code"].clone();
                told = Value::Null;
                if code != problem.code.name() {
                    troubles.push(format!("{path}: {code} for {problem:?}"));
                }
                (problem.code.http_status(), Value::Null)
            }
        };
        plain(&mut told, &folder);
        plain(&mut wanted.1, &folder);
        if (response.status, &told) != (wanted.0, &wanted.1) {
            troubles.push(format!(
                "{path}: {} {told}\n  wanted {} {}",
                response.status, wanted.0, wanted.1
            ));
        }
    }
    served.close().await;
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api7_work_is_accepted_under_an_id_that_answers_also_after_a_restart() {
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let accepted = served
        .client
        .post(&format!("{SHOP}/resources/model/late/refresh"), &json!({}))
        .await;
    assert_eq!(accepted.status, 202);
    let location = accepted.header("location").expect("it says where").to_owned();
    assert!(
        location.ends_with(accepted.json()["id"].as_str().expect("an id")),
        "{location}"
    );
    let waited = served
        .client
        .send(
            "POST",
            &format!("{SHOP}/run"),
            &[("prefer", "wait=60")],
            Some(&json!({})),
        )
        .await;
    let waited = (waited.status, waited.json());
    assert_eq!(
        (waited.0, &waited.1["state"], &waited.1["operation"]),
        (200, &json!("done"), &json!("run"))
    );
    assert_eq!(waited.1["document"]["schema"], "watershed.run/1");
    let ended = served.client.get(&location).await.json();
    assert_eq!(
        (&ended["state"], &ended["document"]["command"]),
        (&json!("done"), &json!("refresh"))
    );
    served.close().await;

    let served = Served::new(&place).await;
    assert_eq!(served.client.get(&location).await.json(), ended);
    let unknown = served
        .client
        .get(&format!("{SHOP}/requests/{}", uuid::Uuid::nil()))
        .await;
    assert_eq!(
        (unknown.status, &unknown.json()["code"]),
        (404, &json!("unknown-name"))
    );
    for (path, status) in [
        ("/resources/model/nothing/refresh", 404),
        ("/resources/nothing/late/refresh", 404),
    ] {
        assert_eq!(
            served
                .client
                .post(&format!("{SHOP}{path}"), &json!({}))
                .await
                .status,
            status,
            "{path}"
        );
    }
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verb_over_a_selection_acts_once_its_number_is_confirmed() {
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let path = format!("{SHOP}/resources:pause");
    let asked = served
        .client
        .post(&path, &json!({"select": ["tested", "parts"]}))
        .await
        .json();
    assert_eq!(
        (&asked["confirm"], &asked["resources"][0]["name"]),
        (&json!(2), &json!("parts"))
    );
    let still = served
        .client
        .get(&format!("{SHOP}/resources/model/late?fields=health"))
        .await
        .json();
    assert_eq!(still, json!({"kind": "model", "name": "late", "health": "ok"}));
    let wrong = served
        .client
        .post(&path, &json!({"select": ["tested"], "confirm": 2}))
        .await;
    assert_eq!(
        (wrong.status, &wrong.json()["code"]),
        (409, &json!("wrong-state"))
    );
    let done = served
        .client
        .post(&path, &json!({"select": ["tested", "parts"], "confirm": 2}))
        .await;
    assert_eq!(
        (done.status, &done.json()["schema"]),
        (200, &json!("watershed.operate/1"))
    );
    let paused = served
        .client
        .get(&format!("{SHOP}/resources?health=paused&fields=kind"))
        .await
        .json();
    assert_eq!(paused["resources"].as_array().map(Vec::len), Some(2));
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_requests_are_refused_and_cost_nothing_else() {
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let client = served.client;
    let head = |line: &str, more: &str| format!("{line} HTTP/1.1\r\nconnection: close\r\n{more}\r\n");
    let raw = [
        (head(&format!("GET {SHOP}/stats"), "host: evil.example\r\n"), 421),
        (head(&format!("GET {SHOP}/stats"), ""), 421),
        (
            head(
                &format!("GET {SHOP}/stats"),
                "host: localhost\r\nhost: localhost\r\n",
            ),
            421,
        ),
        (
            head(
                &format!("GET http://evil.example{SHOP}/stats"),
                "host: localhost\r\n",
            ),
            421,
        ),
        (
            head(
                &format!("POST {SHOP}/run"),
                "host: localhost\r\norigin: http://evil.example\r\ncontent-length: 0\r\n",
            ),
            403,
        ),
        (
            head(
                &format!("POST {SHOP}/run"),
                "host: localhost\r\nsec-fetch-site: cross-site\r\ncontent-type: application/json\r\ncontent-length: 0\r\n",
            ),
            403,
        ),
        (
            head(
                &format!("POST {SHOP}/run"),
                "host: localhost\r\ncontent-type: text/plain\r\ncontent-length: 0\r\n",
            ),
            415,
        ),
        (
            head(
                &format!("POST {SHOP}/run"),
                "host: localhost\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n",
            ),
            415,
        ),
        (
            head(
                &format!("POST {SHOP}/run"),
                "host: localhost\r\ncontent-type: application/json\r\ncontent-length: 1000000000\r\n",
            ),
            413,
        ),
        (
            head(
                &format!("DELETE {SHOP}/run"),
                "host: localhost\r\ncontent-type: application/json\r\n",
            ),
            405,
        ),
        (head(&format!("GET {SHOP}/nothing"), "host: localhost\r\n"), 404),
        (head("GET /v1/instances/other/stats", "host: localhost\r\n"), 404),
        (
            head(&format!("GET {SHOP}/resources?selct=a"), "host: localhost\r\n"),
            400,
        ),
        (
            head(&format!("GET {SHOP}/resources?page=AAAA"), "host: localhost\r\n"),
            400,
        ),
        (
            head(&format!("GET {SHOP}/resources/model/%ff"), "host: localhost\r\n"),
            400,
        ),
    ];
    for (bytes, status) in &raw {
        let response = client.raw(bytes.as_bytes()).await.expect("an answer");
        let problem = response.json();
        assert_eq!(response.status, *status, "{bytes}");
        assert_eq!(problem["status"], *status, "{bytes}");
        assert_eq!(response.header("content-type"), Some("application/problem+json"));
    }
    // No answer is due to what is no request; the door stays open.
    for broken in ["GET", "\0\0\0\0\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"] {
        let answer = client.raw(format!("{broken}\r\n\r\n").as_bytes()).await;
        assert!(answer.is_none_or(|answer| answer.status >= 400), "{broken:?}");
    }
    let long = format!(
        "GET {SHOP}/stats HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "a".repeat(64 << 10)
    );
    assert!(
        client
            .raw(long.as_bytes())
            .await
            .is_none_or(|answer| answer.status == 431)
    );
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep = format!(
        "POST {SHOP}/run HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{deep}",
        deep.len()
    );
    assert_eq!(client.raw(deep.as_bytes()).await.expect("an answer").status, 400);
    for name in [
        "'; drop table late; --",
        "..",
        "a/b",
        "\0",
        "\u{202e}late",
        &"x".repeat(512),
    ] {
        let encoded: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = client.get(&format!("{SHOP}/resources/model/{encoded}")).await;
        assert_eq!(
            (answer.status, &answer.json()["code"]),
            (404, &json!("unknown-name")),
            "{name:?}"
        );
    }
    assert_eq!(client.get(&format!("{SHOP}/stats")).await.status, 200);
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api5_nothing_that_leaves_has_a_path_of_the_machine() {
    let broken = ("models/broken.sql", "SELECT * FROM read_csv('data/none.csv')\n");
    let place = Place::new(&[broken]);
    let served = Served::new(&place).await;
    let folder = place.root().display().to_string();
    for route in ROUTES.iter().filter(|route| route.path != "/watch") {
        let (path, body) = call(route);
        let response = match route.method {
            Method::Get => served.client.get(&path).await,
            Method::Post => served.client.post(&path, &body).await,
            Method::Delete | Method::Put => send(served.client, route, &path, &body, &[]).await,
        };
        // The archive has what the catalog has.
        if !path.ends_with("/backup") {
            assert!(
                !String::from_utf8_lossy(&response.body).contains(&folder),
                "{path}"
            );
        }
    }
    let explained = served
        .client
        .get(&format!("{SHOP}/resources/model/broken/explain"))
        .await;
    assert!(String::from_utf8_lossy(&explained.body).contains("data/none.csv"));
    served.close().await;
}
