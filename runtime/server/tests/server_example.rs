//! The example server, called as a browser would.

#![expect(
    clippy::unwrap_used,
    reason = "what fails here fails the test, with its place"
)]

#[path = "../examples/server/door.rs"]
mod door;
#[path = "../examples/server/events.rs"]
mod events;
#[path = "../examples/server/routes.rs"]
mod routes;
#[path = "server_example/told.rs"]
mod told;
#[path = "../examples/server/trees.rs"]
mod trees;
#[path = "../examples/server/view.rs"]
mod view;

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use axum::response::IntoResponse as _;
use routes::Projects;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use watershed::{Options, Runtime};

const DEADLINE: Duration = Duration::from_secs(60);

/// A server over one project of two models.
struct Site {
    folder: tempfile::TempDir,
    projects: Projects,
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Site {
    async fn start() -> Self {
        let two = "-- @materialize: true\nSELECT n + 1 AS n FROM one";
        Self::of(&[("models/one.sql", "SELECT 1 AS n"), ("models/two.sql", two)]).await
    }

    /// Starts over a project called `shop` of these files.
    async fn of(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("shop");
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("watershed.yaml"), "").unwrap();
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let instance = Runtime::new().open(Options::new(&root)).await.unwrap();
        instance.controller().wait_until_idle(DEADLINE).await.unwrap();
        let mut projects = Projects::default();
        projects.add(instance);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = routes::routes(projects.clone());
        let stop = CancellationToken::new();
        let stopped = projects.stopped_by(stop.clone().cancelled_owned());
        let serving = tokio::spawn(async move {
            axum::serve(listener, app)
                .with_graceful_shutdown(stopped)
                .await
                .unwrap();
        });
        Self {
            folder,
            projects,
            address,
            stop,
            serving,
        }
    }

    /// Sends a request whose connection ends with its answer, and gives back status line and body.
    async fn ask(&self, method: &str, path: &str) -> (String, serde_json::Value) {
        let (head, body) = read(self.send(method, path).await).await;
        (head.lines().next().unwrap().to_owned(), body)
    }

    /// Sends an operation, and gives back the head and the body of the answer.
    async fn operate(&self, request: serde_json::Value) -> (String, serde_json::Value) {
        let body = request.to_string();
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!(
            "POST /shop/operations HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await.unwrap();
        read(BufReader::new(stream)).await
    }

    async fn send(&self, method: &str, path: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        BufReader::new(stream)
    }

    async fn stop(self) {
        self.stop.cancel();
        self.serving.await.unwrap();
        self.projects.close(DEADLINE).await.unwrap();
    }
}

/// Reads an answer to its end: head and body.
async fn read(mut stream: BufReader<TcpStream>) -> (String, serde_json::Value) {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), serde_json::from_str(body).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_list_ask_and_are_told_what_is_wrong() {
    let site = Site::start().await;
    let (status, listing) = site.ask("GET", "/shop/resources").await;
    assert!(status.ends_with("200 OK"), "{status}");
    let names: Vec<_> = listing["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| &r["name"])
        .collect();
    assert_eq!(names, ["one", "two"]);

    let (status, answer) = site.ask("POST", "/shop/reconcile/model/two").await;
    assert!(status.ends_with("200 OK"), "{status}");
    assert_eq!(answer["outcome"], "done");

    let (status, answer) = site.ask("POST", "/shop/reconcile/tow").await;
    assert!(status.contains("404"), "{status}");
    assert_eq!(
        (&answer["code"], &answer["hint"]),
        (&json!("unknown-name"), &json!("did you mean `two`?"))
    );
    let (status, _) = site.ask("GET", "/sohp/resources").await;
    assert!(status.contains("404"), "{status}");
    site.stop().await;
}

/// Status and body follow from the code of the problem alone.
#[tokio::test(flavor = "multi_thread")]
async fn the_code_of_a_problem_decides_the_status() {
    let view = "type: metrics_view\nmodel: two\ndimensions:\n  - column: n\nmeasures:\n  - name: all\n    expression: count(*)\n";
    let two = "SELECT n + 1 AS n FROM one";
    let site = Site::of(&[
        ("models/one.sql", "SELECT 1 AS n"),
        ("models/two.sql", two),
        ("metrics/two.yaml", view),
    ])
    .await;

    let (status, answer) = site.ask("POST", "/shop/reconcile/two").await;
    assert!(status.contains("400"), "{status}");
    assert_eq!(answer["code"], "ambiguous-name");
    let kinds = ["explore", "metrics_view", "model"];
    let candidates = json!(kinds.map(|kind| json!({"kind": kind, "name": "two"})));
    assert_eq!(answer["candidates"], candidates);

    let scale = json!({"scale": {"names": ["one"], "replicas": 2}});
    let (head, answer) = site.operate(scale).await;
    assert!(head.contains("409"), "{head}");
    assert_eq!(answer["code"], "wrong-state");

    let (head, answer) = site.operate(json!({"pause": {"names": ["one"]}})).await;
    assert!(head.contains("200"), "{head}");
    assert_eq!(answer["pause"]["resources"][0]["paused"], true);

    let waited = watershed_controller::WaitError::Deadline(DEADLINE);
    let refused = routes::Refused(watershed::unfinished(&waited)).into_response();
    assert_eq!(refused.status().as_u16(), 504);

    let instance = site.projects.find("shop").unwrap();
    instance.close(DEADLINE).await.unwrap();
    let (head, answer) = site.operate(json!({"resume": {"names": ["one"]}})).await;
    assert!(head.contains("503") && head.contains("retry-after: 5"), "{head}");
    assert_eq!(answer["code"], "stopping");
    site.stop.cancel();
    site.serving.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_see_what_changes_after_their_listing_and_end_with_the_server() {
    let site = Site::start().await;
    let (_, listing) = site.ask("GET", "/shop/resources").await;
    let path = format!("/shop/events?from={}", listing["revision"]);
    let mut lines = site.send("GET", &path).await.lines();
    fs::write(site.folder.path().join("shop/models/three.sql"), "SELECT 3 AS n").unwrap();
    let shop = site.projects.find("shop").unwrap();
    shop.controller()
        .nudge(watershed_controller::Key::new("project_parser", "parser"))
        .await
        .unwrap();
    let told = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.starts_with("data:") && line.contains("\"three\"") {
                return true;
            }
        }
        false
    };
    assert!(tokio::time::timeout(DEADLINE, told).await.unwrap());
    site.stop().await;
}
