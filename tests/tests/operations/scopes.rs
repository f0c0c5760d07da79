//! Narrowed callers, and the history of who asked.

use serde_json::{Value, json};
use watershed::api::http::ROUTES;

use crate::http::{SHOP, Served, call, send};
use crate::project::Place;
use crate::roles::told;

const CALLER: &str = "x-caller";
const NARROWED: &str = "x-narrowed";

#[tokio::test(flavor = "multi_thread")]
async fn s_api14_a_token_narrowed_to_operations_may_nothing_else() {
    let place = Place::new(&[]);
    let served = Served::with(&place, told).await;
    let narrowed = json!({"operations": ["pause", "list"]}).to_string();
    let headers = [(CALLER, "admin"), (NARROWED, narrowed.as_str())];
    let mut troubles = Vec::new();
    for route in ROUTES.iter().filter(|route| route.path != "/requests/{id}") {
        let (path, body) = call(route);
        let answer = send(served.client, route, &path, &body, &headers).await;
        let is_listed = ["pause", "list"].contains(&route.name());
        if is_listed == (answer.status == 403) {
            troubles.push(format!("{path}: {}", answer.status));
        }
    }
    served.close().await;
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
}

/// Shows that the stream tells of `tested` alone, also when another resource goes.
async fn only_tested_is_streamed(served: &Served, place: &Place, headers: &[(&str, &str)]) {
    let client = served.client;
    let mut events = client.events_of(&format!("{SHOP}/watch"), headers).await;
    while let Some(event) = events.next().await {
        match event.name.as_str() {
            "listed" => break,
            _ => assert_eq!(event.data["name"], "tested"),
        }
    }
    std::fs::remove_file(place.root().join("models/gone.sql")).expect("it is there");
    std::fs::write(
        place.root().join("models/tested.yaml"),
        "type: model\nmaterialize: true\nsql: SELECT day, delay + 1 AS delay FROM late\n",
    )
    .expect("a file");
    let run = client
        .send(
            "POST",
            &format!("{SHOP}/run"),
            &[(CALLER, "owner"), ("prefer", "wait=60")],
            Some(&json!({})),
        )
        .await;
    assert_eq!(run.status, 200);
    loop {
        let event = events.next().await.expect("the stream goes on");
        assert_eq!(event.data["name"], "tested", "{event:?}");
        if event.name == "changed" && event.data["phase"] == "idle" && event.data["spec_version"] == 2 {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api14_a_token_narrowed_to_resources_names_and_finds_no_others() {
    let place = Place::new(&[]);
    let served = Served::with(&place, told).await;
    let client = served.client;
    let narrowed = json!({"select": ["tested"]}).to_string();
    let headers = [(CALLER, "admin"), (NARROWED, narrowed.as_str())];
    let get = async |path: &str| client.send("GET", &format!("{SHOP}{path}"), &headers, None).await;
    let post = async |path: &str, body: Value| {
        client
            .send("POST", &format!("{SHOP}{path}"), &headers, Some(&body))
            .await
    };
    let names = |page: &Value| -> Vec<String> {
        let resources = page["resources"].as_array().expect("resources").iter();
        resources
            .map(|one| one["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    assert_eq!(names(&get("/resources").await.json()), ["tested"]);
    assert_eq!(names(&get("/resources?all=true").await.json()), ["tested"]);
    assert!(names(&get("/resources?select=late").await.json()).is_empty());
    assert_eq!(get("/resources/model/tested").await.status, 200);
    // What is there and what is not are told apart by nothing.
    let (there, nowhere) = (
        get("/resources/model/late").await,
        get("/resources/model/lath").await,
    );
    assert_eq!((there.status, nowhere.status), (404, 404));
    assert_eq!(
        String::from_utf8_lossy(&there.body).replace("late", "NAME"),
        String::from_utf8_lossy(&nowhere.body).replace("lath", "NAME")
    );
    let mut troubles = Vec::new();
    for route in ROUTES {
        let (path, body) = call(route);
        if ["/resources", "/watch", "/resources/model/tested"]
            .iter()
            .any(|end| path.ends_with(end))
            || path.contains("/tested/")
            || route.path.starts_with("/resources:")
        {
            continue;
        }
        let answer = send(client, route, &path, &body, &headers).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        if !matches!(answer.status, 403 | 404) || text.contains("did you mean") {
            troubles.push(format!("{path}: {} {text}", answer.status));
        }
    }
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
    // Nor by what a selection answers.
    for ask in [
        "select=NAME",
        "select=NAME%2B",
        "select=tested&select=NAME",
        "exclude=NAME",
    ] {
        let answer = async |name: &str| {
            let answer = get(&format!("/resources?{}", ask.replace("NAME", name))).await;
            (answer.status, answer.json())
        };
        let (there, nowhere) = (answer("late").await, answer("lath").await);
        assert_eq!(
            (there.0, names(&there.1)),
            (nowhere.0, names(&nowhere.1)),
            "{ask}"
        );
        assert_eq!(there.0, 200, "{ask}");
        assert_eq!(
            answer("thing").await.1["resources"],
            nowhere.1["resources"],
            "{ask}"
        );
    }
    for ask in ["late", "lath", "late+"] {
        let touched = post("/resources:pause", json!({"select": [ask]})).await;
        assert_eq!(
            (touched.status, &touched.json()["confirm"]),
            (200, &json!(0)),
            "{ask}"
        );
    }
    assert_eq!(get("/resources?select=state:nonsense").await.status, 400);
    let paused = post("/resources:pause", json!({})).await.json();
    assert_eq!(paused["confirm"], 1, "{paused}");
    assert_eq!(
        post("/resources/model/tested/refresh", json!({"downstream": true}))
            .await
            .status,
        403
    );
    let done = client
        .send(
            "POST",
            &format!("{SHOP}/resources/model/tested/refresh"),
            &[headers[0], headers[1], ("prefer", "wait=60")],
            Some(&json!({})),
        )
        .await;
    assert_eq!(names(&done.json()["document"]), ["tested"], "{}", done.json());
    only_tested_is_streamed(&served, &place, &headers).await;
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api20_the_history_says_who_asked_over_which_protocol_and_in_which_request() {
    let place = Place::new(&[]);
    let served = Served::with(&place, told).await;
    let client = served.client;
    let headers = [(CALLER, "operate"), ("prefer", "wait=60")];
    let done = client
        .send(
            "POST",
            &format!("{SHOP}/resources/model/late/refresh"),
            &headers,
            Some(&json!({})),
        )
        .await;
    let id = done.json()["id"].as_str().expect("an id").to_owned();
    let history = async |role: &str| {
        let path = format!("{SHOP}/resources/model/late/history");
        client.send("GET", &path, &[(CALLER, role)], None).await.json()
    };
    let origins = |history: &Value| -> Vec<String> {
        let runs = history["runs"].as_array().expect("runs").iter();
        let links = runs.flat_map(|run| run["chain"].as_array().expect("a chain"));
        links
            .filter_map(|link| link["origin"].as_str().map(str::to_owned))
            .collect()
    };
    let told = origins(&history("operate").await);
    assert!(
        told.contains(&format!("CAUSE-MARK over HTTP, request {id}")),
        "{told:?}"
    );
    // The first build is older than any caller.
    assert_eq!(
        told.iter().filter(|origin| origin.contains("HTTP")).count(),
        1,
        "{told:?}"
    );
    assert!(origins(&history("read").await).is_empty());
    served.close().await;
}
