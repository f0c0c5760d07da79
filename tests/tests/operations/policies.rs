//! Answers under policies, over HTTP as with `--as`.

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Map, Value, json};
use watershed::api::Request;

use crate::http::{SHOP, Served};
use crate::project::Place;
use crate::roles::told;

const CALLER: &str = "x-caller";
const ATTRIBUTES: &str = "x-attributes";

const FILES: &[(&str, &str)] = &[
    (
        "models/flown.sql",
        "-- @materialize: true\nSELECT * FROM (VALUES (DATE '2024-03-01', 'JFK', 'a', 1), (DATE '2024-03-02', 'LGA', 'a', 2), \
         (DATE '2024-03-03', 'JFK', 'b', 4), (DATE '2024-03-04', 'EWR', 'b', 8)) AS t(day, origin, team, n)\n",
    ),
    (
        "metrics/filtered.yaml",
        "version: 1\ntype: metrics_view\nmodel: flown\ntimeseries: day\nsmallest_time_grain: day\n\
         dimensions: [{name: origin, column: origin}, {name: team, column: team}]\nmeasures: [{name: n, expression: sum(n)}]\n\
         security:\n  access: \"'{{ .user.domain }}' = 'example.org'\"\n\
         \x20 row_filter: \"{{ if .user.admin }}true{{ else }}team IN ({{ .user.groups }}){{ end }}\"\n\
         \x20 exclude:\n    - {if: \"NOT {{ .user.admin }}\", names: [origin]}\n",
    ),
    (
        "explores/front.yaml",
        "type: explore\nmetrics_view: filtered\ndimensions: '*'\nmeasures: '*'\nsecurity: {access: \"'{{ .user.name }}' <> 'out'\"}\n",
    ),
    (
        "apis/own.yaml",
        "type: api\nsql: \"SELECT origin, n FROM flown WHERE team IN ({{ .user.groups }}) ORDER BY n\"\n\
         security: {access: \"'{{ .user.name }}' <> 'out'\"}\n",
    ),
];

/// A viewer with some attributes, some of them of another type than policies expect.
fn viewer(random: &mut SmallRng) -> Map<String, Value> {
    let some = |random: &mut SmallRng, of: &[Value]| of.choose(random).cloned().expect("one");
    let mut viewer = Map::new();
    let emails = [
        json!("a@example.org"),
        json!("b@elsewhere.org"),
        json!("' OR true --@example.org"),
    ];
    let groups = [
        json!(["a"]),
        json!(["a", "b"]),
        json!([]),
        json!("b"),
        json!(["') OR (true"]),
    ];
    let names = [json!("in"), json!("out"), json!("o'ut"), json!(7)];
    for (key, values) in [
        ("email", &emails[..]),
        ("groups", &groups[..]),
        ("name", &names[..]),
    ] {
        if random.random_bool(0.8) {
            let value = some(random, values);
            viewer.insert(key.to_owned(), value);
        }
    }
    if random.random_bool(0.3) {
        viewer.insert("admin".to_owned(), random.random_bool(0.5).into());
    }
    viewer
}

/// The questions: the path and body over HTTP, and the same as a request of the command line.
fn questions(user: &Map<String, Value>) -> Vec<(&'static str, String, Option<Value>, Value)> {
    let options = json!({"at": null, "shown": 10000, "sql": false, "file": null, "force": false});
    let mut all = Vec::new();
    for query in [
        json!({"measures": [{"name": "n"}], "dimensions": [{"name": "team"}]}),
        json!({"measures": [{"name": "n"}], "dimensions": [{"name": "origin"}]}),
        json!({"measures": [{"name": "n"}]}),
    ] {
        for through in [Value::Null, json!("explore/front")] {
            let mut whole = query.clone();
            whole["metrics_view"] = json!("filtered");
            all.push((
                "POST",
                "/metrics/filtered/query".to_owned(),
                Some(json!({"query": query, "through": through})),
                json!({"metrics": {"query": whole, "condition": null, "having": null, "user": user, "through": through,
                    "options": options}}),
            ));
        }
    }
    all.push((
        "GET",
        "/metrics/filtered/bounds".to_owned(),
        None,
        json!({"metrics-bounds": {"view": "filtered", "user": user}}),
    ));
    all.push((
        "GET",
        "/api/own".to_owned(),
        None,
        json!({"call": {"api": "own", "args": {}, "user": user, "options": options}}),
    ));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api18_two_hundred_viewers_see_over_http_what_they_see_with_as() {
    let place = Place::new(FILES);
    let served = Served::with(&place, told).await;
    let seed = std::env::var("WATERSHED_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed: u64 = seed.unwrap_or(18);
    println!("seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let (mut answered, mut refused) = (0, 0);
    for _ in 0..200 {
        let user = viewer(&mut random);
        let attributes = Value::Object(user.clone()).to_string();
        let role = ["read", "operate", "admin"].choose(&mut random).expect("a role");
        let headers = [(CALLER, *role), (ATTRIBUTES, attributes.as_str())];
        for (method, path, body, request) in questions(&user) {
            let path = format!("{SHOP}{path}");
            let over_http = served.client.send(method, &path, &headers, body.as_ref()).await;
            let request: Request = serde_json::from_value(request).expect("a request");
            let asked = served.owner.ask(&request).await.end();
            match asked {
                Ok(document) => {
                    let document = document.get("document").unwrap_or(&document).clone();
                    let mut told = over_http.json();
                    let mut wanted = document;
                    for one in [&mut told, &mut wanted] {
                        one.as_object_mut().expect("a document").remove("cached");
                    }
                    assert_eq!(told, wanted, "{attributes} {path} {body:?}");
                    answered += 1;
                }
                Err(problem) => {
                    assert_eq!(
                        over_http.json()["code"],
                        problem.code.name(),
                        "{attributes} {path} {problem:?}"
                    );
                    refused += 1;
                }
            }
        }
    }
    assert!(
        answered > 100 && refused > 100,
        "{answered} answers, {refused} refusals"
    );
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api18_nobody_chooses_whose_view_is_asked_but_an_admin_among_mock_users() {
    let team = "mock_users:\n  - {email: team@example.org, groups: [a]}\n";
    let place = Place::new(FILES);
    let manifest = std::fs::read_to_string(place.root().join("watershed.yaml"))
        .expect("the manifest")
        .replace("mock_users:\n", team);
    place.write("watershed.yaml", &manifest);
    let served = Served::with(&place, told).await;
    let client = served.client;
    let path = format!("{SHOP}/metrics/filtered/query");
    let query = json!({"query": {"measures": [{"name": "n"}]}});
    let sum = async |headers: &[(&str, &str)]| {
        let answer = client.send("POST", &path, headers, Some(&query)).await;
        (answer.status, answer.json()["rows"][0][0].clone())
    };
    // The owner sees all, and everybody else what the policies let through: an admin too.
    assert_eq!(sum(&[(CALLER, "owner")]).await, (200, json!(15)));
    assert_eq!(sum(&[(CALLER, "admin")]).await.0, 403);
    assert_eq!(sum(&[(CALLER, "admin"), (ATTRIBUTES, "{}")]).await.0, 403);
    let view_as = |name| [(CALLER, "admin"), ("watershed-view-as", name)];
    assert_eq!(sum(&view_as("team@example.org")).await, (200, json!(3)));
    assert_eq!(sum(&view_as("HEAD@example.org")).await, (200, json!(15)));
    assert_eq!(sum(&view_as("nobody@example.org")).await.0, 404);
    assert_eq!(
        sum(&[(CALLER, "edit"), ("watershed-view-as", "team@example.org")])
            .await
            .0,
        403
    );
    // With `read` only.
    let pause = format!("{SHOP}/resources/model/late/pause");
    let paused = client
        .send("POST", &pause, &view_as("head@example.org"), Some(&json!({})))
        .await;
    assert_eq!(paused.status, 403);
    for wrong in [
        json!({"query": {"measures": [{"name": "n"}]}, "user": {"admin": true}}),
        json!({"query": {"measures": [{"name": "n"}]}, "as": "head@example.org"}),
        json!({"query": {"measures": [{"name": "n"}]}, "options": {"sql": true}}),
    ] {
        assert_eq!(
            client
                .send("POST", &path, &[(CALLER, "admin")], Some(&wrong))
                .await
                .status,
            400
        );
    }
    let reader = [
        (CALLER, "read"),
        (ATTRIBUTES, "{\"email\": \"a@example.org\", \"groups\": [\"a\"]}"),
    ];
    let rows = json!({"query": {"rows": true}});
    assert_eq!(client.send("POST", &path, &reader, Some(&rows)).await.status, 403);
    let long = json!({"query": {"measures": [{"name": "n"}]}, "where": "/*".repeat(40_000)});
    assert_eq!(client.send("POST", &path, &reader, Some(&long)).await.status, 400);
    let of_api = format!("{SHOP}/api/own?user=a&groups=a");
    let answer = client.send("GET", &of_api, &[(CALLER, "read")], None).await;
    assert_eq!(answer.status, 400, "{}", answer.json());
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api4_who_may_ask_sees_the_part_of_a_spec_that_the_policies_show() {
    let place = Place::new(FILES);
    let served = Served::with(&place, told).await;
    let get = async |role: &str, user: Value, path: &str| {
        let user = user.to_string();
        let headers = [(CALLER, role), (ATTRIBUTES, user.as_str())];
        served
            .client
            .send("GET", &format!("{SHOP}/resources/{path}"), &headers, None)
            .await
    };
    let view = "metrics_view/filtered?include=spec";
    let ann = || json!({"email": "a@example.org", "domain": "example.org", "groups": ["a"]});
    let spec = get("read", ann(), view).await.json()["spec"].clone();
    let names = |spec: &Value, key: &str| -> Vec<String> {
        let all = spec[key].as_array().unwrap_or_else(|| panic!("{spec}")).iter();
        let name = |one: &Value| one["name"].as_str().or(one.as_str()).map(str::to_owned);
        all.map(|one| name(one).expect("a name")).collect()
    };
    let dimensions = names(&spec, "dimensions");
    assert!(
        dimensions.contains(&"team".to_owned()) && !dimensions.contains(&"origin".to_owned()),
        "{spec}"
    );
    assert_eq!(names(&spec, "measures"), ["n"], "{spec}");
    let explore = get("read", ann(), "explore/front?include=spec").await.json()["spec"].clone();
    assert_eq!(names(&explore, "measures"), ["n"], "{explore}");
    let api = get("read", ann(), "api/own?include=spec").await.json()["spec"].clone();
    assert_eq!(api["arguments"], json!([]), "{api}");
    for spec in [&spec, &explore, &api] {
        let text = spec.to_string();
        for hidden in [
            "origin",
            "sum(",
            "user",
            "SELECT",
            "flown",
            "access",
            "row_filter",
            "security",
        ] {
            assert!(!text.contains(hidden), "{hidden}: {text}");
        }
    }
    // Who sees the field finds it.
    let mut boss = ann();
    boss["admin"] = true.into();
    let spec = get("read", boss, view).await.json()["spec"].clone();
    assert!(
        names(&spec, "dimensions").contains(&"origin".to_owned()),
        "{spec}"
    );
    // Who has no access by the rules gets no part, and nobody gets more than the part.
    for (user, path) in [
        (json!({}), view),
        (
            json!({"domain": "elsewhere.org", "email": "a@elsewhere.org"}),
            view,
        ),
        (
            json!({"name": "out", "domain": "example.org", "email": "a@example.org"}),
            "explore/front?include=spec",
        ),
        (json!({"name": "in"}), "explore/front?include=spec"),
        (json!({"name": "out"}), "api/own?include=spec"),
        (ann(), "metrics_view/filtered?include=state"),
        (ann(), "metrics_view/filtered?include=spec&include=state"),
        (ann(), "METRICS_VIEW/filtered?include=state"),
        (ann(), "model/flown?include=spec"),
    ] {
        let answer = get("read", user.clone(), path).await;
        assert_eq!(answer.status, 403, "{user} {path}");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!text.contains("sum(") && !text.contains("team"), "{path}: {text}");
    }
    let whole = get("operate", ann(), view).await.json()["spec"].to_string();
    assert!(whole.contains("sum(n)"), "{whole}");
    served.close().await;
}
