//! Boards over HTTP: canvases as their viewers may see them.

use serde_json::{Map, Value, json};

use crate::client::Response;
use crate::http::{SHOP, Served};
use crate::project::Place;
use crate::roles::told;

const FILES: &[(&str, &str)] = &[
    (
        "models/flown.sql",
        "-- @materialize: true\nSELECT * FROM (VALUES (DATE '2024-03-01', 'JFK', 'a', 1), (DATE '2024-03-02', 'LGA', 'b', 2)) \
         AS t(day, origin, team, n)\n",
    ),
    (
        "metrics/filtered.yaml",
        "version: 1\ntype: metrics_view\nmodel: flown\ntimeseries: day\n\
         dimensions: [{name: origin, column: origin}, {name: team, column: team}]\nmeasures: [{name: n, expression: sum(n)}]\n\
         security:\n  access: \"'{{ .user.domain }}' = 'example.org'\"\n\
         \x20 exclude:\n    - {if: \"NOT {{ .user.admin }}\", names: [origin]}\n",
    ),
    (
        "canvases/front.yaml",
        "type: canvas\nvariables: [{name: team, type: string, value: a}]\n\
         filters: {pinned: [origin, team], required: [origin]}\n\
         defaults: {time_range: P7D, comparison_mode: dimension, comparison_dimension: origin, filters: {filtered: \"origin = 'JFK'\"}}\n\
         security: {access: \"'{{ .user.name }}' <> 'out'\"}\n\
         rows:\n\
         \x20 - height: 160px\n\
         \x20   items:\n\
         \x20     - {width: 3, kpi: {metrics_view: filtered, measure: n, title: \"Flown by {{ .args.team }}\"}}\n\
         \x20     - leaderboard: {metrics_view: filtered, dimensions: [origin], measures: [n]}\n\
         \x20     - {if: \"{{ .user.admin }}\", markdown: {content: \"For {{ .user.name }} alone\"}}\n\
         \x20     - {if: \"CAST('x' AS INTEGER) = 1\", markdown: {content: Undecided}}\n\
         \x20 - items:\n\
         \x20     - custom_chart: {metrics_sql: \"SELECT team, n FROM filtered WHERE team = '{{ .args.team }}'\", vega_spec: \"{}\"}\n\
         \x20     - custom_chart: {metrics_sql: [\"SELECT team, n FROM filtered\", \"SELECT origin, n FROM filtered\"], vega_spec: \"{}\"}\n\
         \x20     - markdown: {content: \"{{ nonsense .user }} Layoffs\"}\n\
         \x20     - kpi: {metrics_view: filtered, measure: n, dimension_filters: \"Origin IN ('JFK')\"}\n\
         \x20     - bar_chart: {metrics_view: filtered, x: {field: team}, y: {field: n}, color: {type: value, field: origin}}\n\
         \x20     - kpi: {metrics_view: filtered, measure: n, title: \"{{ if .user.admin }}Of heads{{ else }}Of all{{ end }}\"}\n\
         \x20     - markdown: {content: \"{{ .env.secret }}\"}\n\
         \x20 - if: \"'{{ .args.team }}' = 'b'\"\n\
         \x20   items: [{markdown: {content: Team B}}]\n\
         \x20 - name: more\n\
         \x20   tabs:\n\
         \x20     - {label: Heads, if: \"{{ .user.admin }}\", rows: [{items: [{markdown: {content: Heads}}]}]}\n\
         \x20     - {label: All, rows: [{items: [{markdown: {content: All}}]}]}\n",
    ),
];

/// A project with a board, as one user after another sees it.
struct Seen(Served);

impl Seen {
    async fn get(&self, role: &str, user: &Value, path: &str) -> Response {
        let user = user.to_string();
        let headers = [("x-caller", role), ("x-attributes", user.as_str())];
        self.0
            .client
            .send("GET", &format!("{SHOP}{path}"), &headers, None)
            .await
    }

    async fn board(&self, user: &Value) -> Value {
        let answer = self.get("read", user, "/canvases/front/board").await;
        assert_eq!(answer.status, 200, "{}", answer.json());
        answer.json()
    }
}

fn ann() -> Value {
    json!({"email": "a@example.org", "domain": "example.org", "name": "ann"})
}

fn boss() -> Value {
    json!({"email": "b@example.org", "domain": "example.org", "name": "bo", "admin": true})
}

fn component<'v>(board: &'v Value, place: &str) -> &'v Value {
    &board["components"][format!("front--component-{place}")]
}

fn contents(board: &Value) -> Vec<&str> {
    let components = board["components"]
        .as_object()
        .map(Map::values)
        .into_iter()
        .flatten();
    components
        .filter_map(|one| one["properties"]["content"].as_str())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api4_a_board_shows_what_its_viewer_may_see_and_names_nothing_else() {
    let place = Place::new(FILES);
    let seen = Seen(Served::with(&place, told).await);
    let board = seen.board(&ann()).await;
    let text = board.to_string();
    for hidden in [
        "origin",
        "JFK",
        "Heads",
        "alone",
        "Undecided",
        "Team B",
        "access",
        "if",
    ] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
    assert_eq!(component(&board, "0-0")["state"], "shown");
    assert_eq!(component(&board, "0-0")["properties"]["title"], "Flown by a");
    assert_eq!(component(&board, "0-1")["state"], "withheld");
    for (place, state) in [
        ("1-1", "withheld"),
        ("1-2", "broken"),
        ("1-3", "withheld"),
        ("1-4", "withheld"),
        ("1-5", "shown"),
        ("1-6", "broken"),
    ] {
        let one = component(&board, place);
        assert_eq!(
            (&one["state"], &one["problem"]),
            (&json!(state), &Value::Null),
            "{place} {one}"
        );
    }
    assert_eq!(component(&board, "1-5")["display_name"], "Of all");
    assert_eq!(contents(&board), ["All"]);
    assert_eq!(
        board["filters"],
        json!({"enable": true, "pinned": ["team"], "required": []})
    );
    assert_eq!(board["defaults"]["filters"], json!({}));
    assert_eq!(
        board["rows"][0]["items"][0],
        json!({"width": 3, "component": "front--component-0-0"})
    );
    assert_eq!(board["rows"][0]["height"], 160);
    assert_eq!(board["rows"].as_array().map(Vec::len), Some(3));
    let asked = &component(&board, "1-0")["queries"][0];
    assert_eq!(asked["metrics_view"], "filtered");
    assert_eq!(asked["measures"], json!(["n"]), "{asked}");

    let board = seen.board(&boss()).await;
    assert_eq!(
        component(&board, "0-1")["queries"][0]["dimensions"],
        json!(["origin"])
    );
    assert_eq!(
        component(&board, "1-1")["queries"].as_array().map(Vec::len),
        Some(2)
    );
    assert_eq!(contents(&board), ["For bo alone", "Heads", "All"]);
    assert_eq!(board["filters"]["required"], json!(["origin"]));
    assert_eq!(
        board["defaults"]["filters"],
        json!({"filtered": "origin = 'JFK'"})
    );
    assert_eq!(board["views"]["filtered"]["timeseries"], "day");
    seen.0.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api4_a_closed_board_is_as_one_that_is_not_there() {
    let place = Place::new(FILES);
    let seen = Seen(Served::with(&place, told).await);
    let mut out = ann();
    out["name"] = "out".into();
    let closed = seen.get("read", &out, "/canvases/front/board").await;
    let missing = seen.get("read", &out, "/canvases/fronts/board").await;
    assert_eq!((closed.status, missing.status), (404, 404));
    let text = |answer: &Response| String::from_utf8_lossy(&answer.body).replace("fronts", "front");
    assert_eq!(text(&closed), text(&missing));
    // Its policy closes the metrics view, and with the view all that reads the view.
    let guest = json!({"email": "g@elsewhere.org", "domain": "elsewhere.org", "name": "guest"});
    let board = seen.board(&guest).await;
    assert_eq!(component(&board, "0-0"), component(&board, "0-1"));
    assert_eq!(
        (&component(&board, "0-0")["state"], &board["views"]),
        (&json!("withheld"), &json!({}))
    );
    assert_eq!(contents(&board), ["All"]);
    seen.0.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api4_variables_of_a_board_are_values_and_never_sql() {
    let place = Place::new(FILES);
    let seen = Seen(Served::with(&place, told).await);
    let with = async |values: &Value| {
        let values: String = values
            .to_string()
            .bytes()
            .map(|byte| format!("%{byte:02X}"))
            .collect();
        seen.get(
            "read",
            &ann(),
            &format!("/canvases/front/board?variables={values}"),
        )
        .await
    };
    let board = with(&json!({"team": "b"})).await.json();
    assert!(contents(&board).contains(&"Team B"), "{board}");
    assert_eq!(board["variables"], json!([{"name": "team", "value": "b"}]));
    for hostile in [
        "b' OR '1'='1",
        "b'; DROP TABLE flown; --",
        "{{ .env.secret }}",
        "\\",
    ] {
        let board = with(&json!({"team": hostile})).await.json();
        let asked = component(&board, "1-0");
        assert_eq!(asked["state"], "shown", "{board}");
        assert!(
            asked["queries"][0]["where"]
                .to_string()
                .contains(&json!(hostile).to_string()),
            "{asked}"
        );
        assert!(!contents(&board).contains(&"Team B"), "{board}");
        let query = asked["queries"][0].as_object().cloned().map(|mut query| {
            query.remove("metrics_view");
            json!({"query": query, "through": "canvas/front"})
        });
        let user = ann().to_string();
        let headers = [("x-caller", "read"), ("x-attributes", user.as_str())];
        let path = format!("{SHOP}/metrics/filtered/query");
        let answer = seen.0.client.send("POST", &path, &headers, query.as_ref()).await;
        assert_eq!(
            (answer.status, &answer.json()["rows"]),
            (200, &json!([])),
            "{}",
            answer.json()
        );
    }
    for (wrong, hint) in [
        (json!({"teem": "b"}), "did you mean `team`?"),
        (json!(["b"]), "variables="),
        (json!({"team": "b".repeat(9_000)}), "variables="),
    ] {
        let refused = with(&wrong).await;
        assert_eq!(refused.status, 400, "{}", refused.json());
        assert!(
            refused.json()["hint"].to_string().contains(hint),
            "{}",
            refused.json()
        );
    }
    seen.0.close().await;
}
