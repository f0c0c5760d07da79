//! Tokens, the audit log, and keys of calls, as callers with rights of their own meet them.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use watershed::http::{Bearers, Door, Grants, Peers, Service, State, Tokens, Wanted, bind, router_with};

use crate::client::{Client, Response};
use crate::http::SHOP;
use crate::project::{Owner, Place};

/// A moment that is far away, in milliseconds since 1970.
pub(crate) const FAR_MS: i64 = 4_000_000_000_000;

/// A service whose callers have tokens.
pub(crate) struct Guarded {
    pub(crate) client: Client,
    pub(crate) owner: Owner,
    tokens: Arc<Tokens>,
    state: Arc<State>,
    service: Service,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

impl Guarded {
    async fn new(place: &Place, state: &Path) -> Self {
        Self::over(place.owned().await, state).await
    }

    /// Serves an open project as two instances.
    pub(crate) async fn over(owner: Owner, state: &Path) -> Self {
        let state = Arc::new(State::open(state).await.expect("the state can be opened"));
        let tokens = Tokens::open(Arc::clone(&state), Vec::new()).await;
        let tokens = Arc::new(tokens.expect("the tokens can be read"));
        let service = Service::new()
            .keeping(Arc::clone(&state))
            .with_tokens(Arc::clone(&tokens))
            .with("shop", Arc::clone(&owner.instance))
            .with("depot", Arc::clone(&owner.instance));
        let listener = bind("127.0.0.1:0".parse().expect("an address")).await;
        let listener = listener.expect("a socket");
        let client = Client(listener.local_addr().expect("an address"));
        let stop = CancellationToken::new();
        let door = Door {
            peers: Peers::All,
            ..Door::default()
        };
        let routes = router_with(service.clone(), Bearers::new(Arc::clone(&tokens)));
        Self {
            client,
            owner,
            tokens,
            state,
            service,
            serving: tokio::spawn(door.serve(listener, routes, stop.clone())),
            stop,
        }
    }

    /// Makes a token with roles such as `{"shop": "operate"}`, and returns its text.
    pub(crate) async fn token(&self, roles: Value, operations: Option<&[&str]>, expires_ms: i64) -> String {
        let roles: Grants = serde_json::from_value(roles).expect("roles");
        let wanted = Wanted {
            name: "a test's".into(),
            roles,
            operations: operations.map(|all| all.iter().map(ToString::to_string).collect()),
            select: Vec::new(),
            expires_ms,
        };
        let made = self.tokens.create(wanted, "a test", 0).await;
        made.expect("the state can be written")
            .expect("there is room")
            .text
    }

    pub(crate) async fn send(
        &self,
        token: &str,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Response {
        let bearer = format!("Bearer {token}");
        let headers = [&[("authorization", bearer.as_str())], more].concat();
        self.client.send(method, path, &headers, body).await
    }

    async fn get(&self, token: &str, path: &str) -> Response {
        self.send(token, "GET", path, &[], None).await
    }

    pub(crate) async fn audit(&self) -> Vec<Value> {
        let page = self.state.audited(None, 100).await.expect("the log can be read");
        let entries = page.entries.iter();
        entries
            .map(|entry| serde_json::to_value(entry).expect("JSON"))
            .collect()
    }

    pub(crate) async fn close(self) {
        self.service.stop();
        self.stop.cancel();
        self.serving.await.expect("it ends in order");
        drop((self.service, self.tokens, self.state));
        self.owner.close().await;
    }
}

fn id_of(token: &str) -> &str {
    token.split('_').nth(1).expect("an id")
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api17_whoever_has_no_valid_token_gets_one_answer_and_learns_nothing() {
    let (place, folder) = (Place::new(&[]), tempfile::tempdir().expect("a folder"));
    let served = Guarded::new(&place, &folder.path().join("s.db")).await;
    let good = served.token(json!({"shop": "read"}), None, FAR_MS).await;
    let over = served.token(json!({"shop": "read"}), None, 1).await;
    let revoked = served.token(json!({"shop": "read"}), None, FAR_MS).await;
    served
        .tokens
        .revoke(id_of(&revoked), 5)
        .await
        .expect("it is written");
    let other = tempfile::tempdir().expect("a folder");
    let elsewhere = State::open(&other.path().join("s.db")).await.expect("a state");
    let elsewhere = Tokens::open(Arc::new(elsewhere), Vec::new())
        .await
        .expect("tokens");
    let wanted = Wanted {
        name: "foreign".into(),
        roles: serde_json::from_value(json!({"*": "admin"})).expect("roles"),
        operations: None,
        select: Vec::new(),
        expires_ms: FAR_MS,
    };
    let foreign = elsewhere
        .create(wanted, "a test", 0)
        .await
        .expect("it is written");
    let foreign = foreign.expect("there is room").text;
    let mixed = format!(
        "wsd_{}_{}",
        id_of(&good),
        foreign.rsplit('_').next().expect("a secret")
    );
    let bearer = |token: &str| format!("authorization: Bearer {token}\r\n");
    let path = format!("{SHOP}/stats");
    let mut lines = vec![
        String::new(),
        "authorization:\r\n".to_owned(),
        "authorization: Bearer\r\n".to_owned(),
        format!("authorization: {good}\r\n"),
        format!("authorization: Basic {good}\r\n"),
        format!("authorization: Basic d3NkOg==\r\n"),
        format!("authorization: Bearer{good}\r\n"),
        bearer(&good) + &bearer(&good),
        bearer(&foreign) + &bearer(&good),
        bearer(&format!("{good},{good}")),
        bearer(&format!("{good} {good}")),
        bearer(&format!("\"{good}\"")),
        bearer(&"x".repeat(20_000)),
        format!("cookie: authorization=Bearer {good}\r\n"),
        format!("x-authorization: Bearer {good}\r\nproxy-authorization: Bearer {good}\r\n"),
    ];
    lines.extend([&over, &revoked, &foreign, &mixed, &good.to_uppercase()].map(|token| bearer(token)));
    lines.extend((0..good.len()).step_by(7).map(|end| bearer(&good[..end])));
    let mut bodies = std::collections::BTreeSet::new();
    for line in lines {
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{line}\r\n");
        let answer = served.client.raw(head.as_bytes()).await.expect("an answer");
        assert_eq!(answer.status, 401, "{line:?}");
        assert_eq!(answer.header("www-authenticate"), Some("bearer"), "{line:?}");
        assert_eq!(answer.json()["code"], "unauthenticated");
        bodies.insert(answer.body);
    }
    assert_eq!(bodies.len(), 1, "one answer, whatever is wrong");
    // Addresses are logged by proxies: a token there is none.
    for word in ["token", "access_token", "authorization", "bearer"] {
        let asked = served.client.get(&format!("{path}?{word}={good}")).await;
        assert_eq!(asked.status, 401);
    }
    // No path is left out, and none tells whether it is there.
    for path in [
        "/",
        "/v1/me",
        "/v1/instances",
        "/openapi.json",
        "/readyz?verbose",
        "/nothing",
        "/v1/audit",
    ] {
        assert_eq!(served.client.get(path).await.status, 401, "{path}");
    }
    for probe in ["/livez", "/readyz"] {
        assert_eq!(served.client.get(probe).await.status, 200, "{probe}");
    }
    let huge = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\n{}\r\n",
        bearer(&"x".repeat(10 << 20))
    );
    assert_eq!(
        served
            .client
            .raw(huge.as_bytes())
            .await
            .expect("an answer")
            .status,
        431
    );
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let sent = [("authorization", format!("{scheme} {good}"))];
        let sent = [(sent[0].0, sent[0].1.as_str())];
        let answer = served.client.send("GET", &path, &sent, None).await;
        assert_eq!(answer.status, 200, "{scheme}");
    }
    let me = served.get(&good, "/v1/me").await.json();
    assert_eq!(me["principal"], format!("token:{}", id_of(&good)));
    assert_eq!(
        (&me["authentication"], &me["instances"]),
        (&json!("token"), &json!({"shop": "read"}))
    );
    assert_eq!(me["expires_at"], "2096-10-02T07:06:40.000Z");
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api17_a_token_is_made_and_revoked_by_an_admin_of_all_that_it_names_and_of_no_more() {
    let (place, folder) = (Place::new(&[]), tempfile::tempdir().expect("a folder"));
    let served = Guarded::new(&place, &folder.path().join("s.db")).await;
    let all = served.token(json!({"*": "admin"}), None, FAR_MS).await;
    let shop = served.token(json!({"shop": "admin"}), None, FAR_MS).await;
    let edits = served.token(json!({"*": "edit"}), None, FAR_MS).await;
    let narrow = served
        .token(json!({"*": "admin"}), Some(&["pause"]), FAR_MS)
        .await;
    let depot = served.token(json!({"depot": "read"}), None, FAR_MS).await;
    let wanted = |roles: Value| json!({"name": "made", "roles": roles});
    for (token, roles, status) in [
        (&edits, json!({"shop": "read"}), 403),
        (&narrow, json!({"shop": "read"}), 403),
        (&shop, json!({"shop": "read", "depot": "read"}), 404),
        (&shop, json!({"*": "read"}), 403),
        (&all, json!({"nowhere": "read"}), 404),
        (&all, json!({"shop": "owner"}), 400),
        (&all, json!({}), 400),
        (&shop, json!({"shop": "admin"}), 201),
        (&all, json!({"*": "admin"}), 201),
    ] {
        let answer = served
            .send(token, "POST", "/v1/tokens", &[], Some(&wanted(roles.clone())))
            .await;
        assert_eq!(
            answer.status,
            status,
            "{roles}: {}",
            String::from_utf8_lossy(&answer.body)
        );
    }
    // A token that ends sooner makes none that ends later, and with none said both end together.
    let sooner = served.token(json!({"*": "admin"}), None, FAR_MS - 1).await;
    let mut later = wanted(json!({"shop": "read"}));
    later["expires_at"] = json!("2096-10-02T07:06:40.000Z");
    let answer = served
        .send(&sooner, "POST", "/v1/tokens", &[], Some(&later))
        .await;
    assert_eq!(answer.status, 403);
    // Whoever looks as somebody else manages nothing.
    let view_as = [("watershed-view-as", "head@example.org")];
    let answer = served.send(&all, "GET", "/v1/tokens", &view_as, None).await;
    assert_eq!(answer.status, 400);
    for wrong in [
        json!({"name": "", "roles": {"shop": "read"}}),
        json!({"name": "a\nb", "roles": {"shop": "read"}}),
        json!({"name": "a", "roles": {"shop": "read"}, "operations": []}),
        json!({"name": "a", "roles": {"shop": "read"}, "operations": ["walk"]}),
        json!({"name": "a", "roles": {"shop": "read"}, "expires_at": "2020-01-01T00:00:00Z"}),
        json!({"name": "a", "roles": {"shop": "read"}, "select": [""]}),
        json!({"name": "a", "roles": {"shop": "read"}, "rolls": {}}),
    ] {
        let answer = served.send(&all, "POST", "/v1/tokens", &[], Some(&wrong)).await;
        assert_eq!(answer.status, 400, "{wrong}");
    }
    let made = served
        .send(
            &shop,
            "POST",
            "/v1/tokens",
            &[],
            Some(&wanted(json!({"shop": "operate"}))),
        )
        .await;
    assert_eq!(made.header("cache-control"), Some("no-store"));
    let made = made.json();
    let secret = made["secret"].as_str().expect("a secret").to_owned();
    assert_eq!(served.get(&secret, &format!("{SHOP}/stats")).await.status, 200);
    assert_eq!(served.get(&secret, "/v1/instances/depot/stats").await.status, 404);
    // Whoever administers one instance knows of no other's tokens.
    let listed = served.get(&shop, "/v1/tokens").await.json();
    let ids = |listed: &Value| -> Vec<String> {
        let all = listed["tokens"].as_array().expect("tokens").iter();
        all.map(|token| token["id"].as_str().expect("an id").to_owned())
            .collect()
    };
    let seen = ids(&listed);
    assert!(seen.contains(&id_of(&secret).to_owned()) && !seen.contains(&id_of(&all).to_owned()));
    assert!(!seen.contains(&id_of(&depot).to_owned()), "{seen:?}");
    assert!(
        !listed
            .to_string()
            .contains(secret.rsplit('_').next().expect("a secret"))
    );
    assert_eq!(ids(&served.get(&all, "/v1/tokens").await.json()).len(), 9);
    let revoke = async |token: &str, id: &str| {
        served
            .send(token, "DELETE", &format!("/v1/tokens/{id}"), &[], None)
            .await
    };
    for other in [id_of(&all), id_of(&depot), "0123456789abcdef"] {
        assert_eq!(revoke(&shop, other).await.status, 404, "{other}");
    }
    assert_eq!(revoke(&edits, id_of(&secret)).await.status, 403);
    assert_eq!(revoke(&secret, id_of(&secret)).await.status, 403);
    for _ in 0..2 {
        let answer = revoke(&shop, id_of(&secret)).await;
        assert_eq!((answer.status, &answer.json()["state"]), (200, &json!("revoked")));
        assert_eq!(served.get(&secret, &format!("{SHOP}/stats")).await.status, 401);
    }
    for token in [&edits, &shop, &narrow] {
        assert_eq!(served.get(token, "/v1/audit").await.status, 403);
    }
    // The log has what was refused too, and no secret.
    let lines = served.get(&all, "/v1/audit?limit=1000").await;
    let text = String::from_utf8_lossy(&lines.body).into_owned();
    assert!(
        !text.contains(secret.rsplit('_').next().expect("a secret")),
        "{text}"
    );
    let lines = lines.json();
    let lines = lines["entries"].as_array().expect("entries");
    let of = |operation: &str, outcome: &str| {
        let found = lines
            .iter()
            .filter(|line| line["operation"] == operation && line["outcome"] == outcome);
        found.count()
    };
    assert_eq!(
        (of("token-create", "done"), of("token-create", "not-allowed")),
        (3, 4)
    );
    assert_eq!(
        (of("token-revoke", "done"), of("token-revoke", "unknown-name")),
        (2, 3)
    );
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api17_revoking_a_token_ends_its_streams_and_no_others() {
    let (place, folder) = (Place::new(&[]), tempfile::tempdir().expect("a folder"));
    let served = Guarded::new(&place, &folder.path().join("s.db")).await;
    let admin = served.token(json!({"*": "admin"}), None, FAR_MS).await;
    let [one, two] = [(); 2].map(|()| served.token(json!({"shop": "read"}), None, FAR_MS));
    let (one, two) = (one.await, two.await);
    let watch = async |token: &str| {
        let head = format!("authorization: Bearer {token}\r\n");
        let mut events = served.client.events_with(&format!("{SHOP}/watch"), &head).await;
        while events.next().await.expect("an event").name != "listed" {}
        events
    };
    let (mut ended, mut kept) = (watch(&one).await, watch(&two).await);
    let path = format!("/v1/tokens/{}", id_of(&one));
    assert_eq!(served.send(&admin, "DELETE", &path, &[], None).await.status, 200);
    // The client waits for a minute at most: a stream that goes on fails the test.
    while ended.next().await.is_some() {}
    let paused = served
        .send(
            &admin,
            "POST",
            &format!("{SHOP}/resources/model/tested/pause"),
            &[],
            Some(&json!({})),
        )
        .await;
    assert_eq!(paused.status, 200);
    assert!(kept.next().await.is_some(), "another's stream goes on");
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api8_a_key_gives_the_first_answer_again_also_after_a_restart() {
    let (place, folder) = (Place::new(&[]), tempfile::tempdir().expect("a folder"));
    let file = folder.path().join("s.db");
    let served = Guarded::new(&place, &file).await;
    let [ann, bob] = [(); 2].map(|()| served.token(json!({"shop": "operate"}), None, FAR_MS));
    let (ann, bob) = (ann.await, bob.await);
    let run = format!("{SHOP}/run");
    let key = [("idempotency-key", "nightly-1")];
    let body = json!({"select": ["late"]});
    let post = async |served: &Guarded, token: &str, path: &str, body: &Value| {
        served.send(token, "POST", path, &key, Some(body)).await
    };
    // Many at once: one is carried out, the others get its answer or are told to wait.
    let crowd = (0..8).map(|_| post(&served, &ann, &run, &body));
    let crowd = futures::future::join_all(crowd).await;
    let ids: std::collections::BTreeSet<String> = crowd
        .iter()
        .filter(|answer| answer.status == 202)
        .map(|answer| answer.json()["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    assert!(crowd.iter().all(|answer| matches!(answer.status, 202 | 409)));
    let again = post(&served, &ann, &run, &body).await;
    assert_eq!(
        (again.status, again.header("idempotency-replayed")),
        (202, Some("true"))
    );
    assert!(ids.contains(&again.json()["id"].to_string()));
    assert!(
        again
            .header("location")
            .is_some_and(|place| place.contains("/requests/"))
    );
    for (path, body) in [
        (run.clone(), json!({"select": ["tested"]})),
        (format!("{SHOP}/resources/model/late/refresh"), body.clone()),
    ] {
        let answer = post(&served, &ann, &path, &body).await;
        assert_eq!(
            (answer.status, &answer.json()["code"]),
            (422, &json!("key-reused")),
            "{path}"
        );
    }
    let other = post(&served, &bob, &run, &body).await;
    assert_eq!(
        (other.status, other.header("idempotency-replayed")),
        (202, None),
        "each has keys of their own"
    );
    assert!(!ids.contains(&other.json()["id"].to_string()));
    // A refusal of the work is an answer too; one of access is none, and is asked anew.
    let wrong = [("idempotency-key", "nightly-2")];
    let scaled = format!("{SHOP}/resources/model/late/scale");
    for replayed in [None, Some("true")] {
        let answer = served
            .send(&ann, "POST", &scaled, &wrong, Some(&json!({"replicas": 2})))
            .await;
        assert_eq!(
            (answer.status, answer.header("idempotency-replayed")),
            (409, replayed)
        );
    }
    for key in ["", "\"\"", &"k".repeat(256)] {
        let answer = served
            .send(&ann, "POST", &run, &[("idempotency-key", key)], Some(&body))
            .await;
        assert_eq!(answer.status, 400, "{key:?}");
    }
    let twice = [("idempotency-key", "a"), ("idempotency-key", "b")];
    assert_eq!(
        served.send(&ann, "POST", &run, &twice, Some(&body)).await.status,
        400
    );
    let acts = served
        .audit()
        .await
        .iter()
        .filter(|line| line["operation"] == "run" && line["outcome"] == "done")
        .count();
    assert_eq!(acts, 2, "what is given again was not done again");
    served.close().await;
    let served = Guarded::new(&place, &file).await;
    let again = post(&served, &ann, &run, &body).await;
    assert_eq!(
        (again.status, again.header("idempotency-replayed")),
        (202, Some("true"))
    );
    assert!(ids.contains(&again.json()["id"].to_string()));
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api8_the_secret_of_a_token_is_not_given_again_under_a_key() {
    let (place, folder) = (Place::new(&[]), tempfile::tempdir().expect("a folder"));
    let file = folder.path().join("s.db");
    let served = Guarded::new(&place, &file).await;
    let admin = served.token(json!({"*": "admin"}), None, FAR_MS).await;
    let key = [("idempotency-key", "\"one\"")];
    let wanted = json!({"name": "job", "roles": {"shop": "read"}});
    let first = served
        .send(&admin, "POST", "/v1/tokens", &key, Some(&wanted))
        .await;
    let again = served
        .send(&admin, "POST", "/v1/tokens", &key, Some(&wanted))
        .await;
    assert_eq!((first.status, again.status), (201, 201));
    let (first, again) = (first.json(), again.json());
    assert_eq!(
        (&first["token"], &again["secret"]),
        (&again["token"], &Value::Null)
    );
    let secret = first["secret"]
        .as_str()
        .and_then(|text| text.rsplit('_').next())
        .expect("a secret");
    served.close().await;
    for entry in std::fs::read_dir(folder.path()).expect("a folder") {
        let bytes = std::fs::read(entry.expect("a file").path()).expect("bytes");
        let holds = bytes.windows(32).any(|part| part == &secret.as_bytes()[..32]);
        assert!(!holds, "the secret lies on the disk");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api20_what_changes_something_is_in_the_log_with_its_caller_and_outcome() {
    let (place, folder) = (Place::new(&[]), tempfile::tempdir().expect("a folder"));
    let served = Guarded::new(&place, &folder.path().join("s.db")).await;
    let operates = served.token(json!({"shop": "operate"}), None, FAR_MS).await;
    let reads = served.token(json!({"shop": "read"}), None, FAR_MS).await;
    let post = async |token: &str, path: &str, body: Value| {
        served
            .send(token, "POST", &format!("{SHOP}{path}"), &[], Some(&body))
            .await
            .status
    };
    assert_eq!(
        post(&operates, "/resources/model/tested/pause", json!({})).await,
        200
    );
    assert_eq!(
        post(&reads, "/resources/model/tested/resume", json!({})).await,
        403
    );
    assert_eq!(
        post(&operates, "/resources:resume", json!({"select": ["tested"]})).await,
        200
    );
    assert_eq!(
        post(
            &operates,
            "/resources:resume",
            json!({"select": ["tested"], "confirm": 1})
        )
        .await,
        200
    );
    assert_eq!(post(&operates, "/run", json!({"select": ["late"]})).await, 202);
    assert_eq!(post(&operates, "/plan", json!({})).await, 200);
    assert_eq!(served.get(&operates, &format!("{SHOP}/graph")).await.status, 200);
    let mut lines = served.audit().await;
    let operator = json!(format!("token:{}", id_of(&operates)));
    let run = lines.remove(0);
    assert!(run["request"].as_str().is_some_and(|id| id.len() == 36), "{run}");
    assert_eq!((&run["operation"], &run["principal"]), (&json!("run"), &operator));
    let told: Vec<[&Value; 4]> = lines
        .iter()
        .map(|line| {
            [
                &line["operation"],
                &line["subject"],
                &line["outcome"],
                &line["instance"],
            ]
        })
        .collect();
    let [tested, shop] = ["model/tested", "shop"].map(Value::from);
    let (pause, resume, done, refused) = (
        json!("pause"),
        json!("resume"),
        json!("done"),
        json!("not-allowed"),
    );
    assert_eq!(
        told,
        [
            [&resume, &tested, &done, &shop],
            [&resume, &tested, &refused, &shop],
            [&pause, &tested, &done, &shop],
        ],
        "reads, and looks at what would be touched, are no lines"
    );
    served.close().await;
}
