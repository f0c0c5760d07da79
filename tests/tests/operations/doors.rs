//! The door of the service, as strangers find it: other users, other hosts, pages of others, and clients that hold on to what
//! they can.

use std::num::NonZeroU32;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use watershed::http::{Caller, Door, Grant, Grants, Level, Limits, Service, bind, local_user, router};

use crate::client::Client;
use crate::http::SHOP;
use crate::project::{Owner, Place};

/// A service with a door of its own.
struct Behind {
    client: Client,
    owner: Owner,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

impl Behind {
    async fn new(place: &Place, limits: Limits) -> Self {
        let owner = place.owned().await;
        let service = Service::new()
            .known_as(["data.example.org".to_owned()])
            .with("shop", Arc::clone(&owner.instance));
        service.set_limits(limits);
        let listener = bind("127.0.0.1:0".parse().expect("an address")).await;
        let listener = listener.expect("a socket");
        let client = Client(listener.local_addr().expect("an address"));
        let stop = CancellationToken::new();
        let door = Door {
            limits,
            ..Door::default()
        };
        let serving = tokio::spawn(door.serve(listener, router(service, local_user), stop.clone()));
        Self {
            client,
            owner,
            stop,
            serving,
        }
    }

    /// A service with the usual limits.
    async fn usual(place: &Place) -> Self {
        Self::new(place, Limits::default()).await
    }

    /// Shows that the service answers as before, and ends it.
    async fn close(self) {
        assert_eq!(self.client.get(&format!("{SHOP}/stats")).await.status, 200);
        self.stop.cancel();
        self.serving.await.expect("it ends in order");
        self.owner.close().await;
    }
}

fn head(line: &str, more: &str) -> String {
    format!("{line} HTTP/1.1\r\nconnection: close\r\n{more}\r\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api15_another_user_of_the_machine_is_refused_with_a_hint() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be another user");
        return;
    }
    let place = Place::new(&[]);
    let served = Behind::usual(&place).await;
    let port = served.client.0.port();
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET {SHOP}/stats HTTP/1.1\\r\\nhost: localhost\\r\\nconnection: close\\r\\n\\r\\n' >&3; cat <&3"
    );
    let asked = |user: &'static str| {
        let script = script.clone();
        tokio::task::spawn_blocking(move || {
            let mut command = Command::new("setpriv");
            command.args([
                "--reuid",
                user,
                "--regid",
                user,
                "--clear-groups",
                "bash",
                "-c",
                &script,
            ]);
            String::from_utf8(command.output().expect("it runs").stdout).expect("text")
        })
    };
    let stranger = asked("65534").await.expect("an answer");
    assert!(stranger.starts_with("HTTP/1.1 403 "), "{stranger}");
    assert!(stranger.contains("`--auth link`"), "{stranger}");
    assert!(!stranger.contains("watershed.stats"), "{stranger}");
    assert!(asked("0").await.expect("an answer").starts_with("HTTP/1.1 200 "));
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api16_only_names_of_the_service_are_served() {
    let place = Place::new(&[]);
    let served = Behind::usual(&place).await;
    let path = format!("{SHOP}/stats");
    let get = format!("GET {path}");
    let evil = format!("GET http://evil.example{path}");
    let both = format!("GET http://localhost{path}");
    for (line, hosts, status) in [
        (&get, "host: evil.example\r\n", 421),
        (&get, "host: localhost.evil.example\r\n", 421),
        (&get, "host: 127.0.0.1.nip.example:80\r\n", 421),
        (&get, "", 421),
        (&get, "host:\r\n", 421),
        (&get, "host: localhost\r\nhost: localhost\r\n", 421),
        (&get, "host: localhost\r\nhost: evil.example\r\n", 421),
        (&get, "host: localhost@evil.example\r\n", 421),
        (&evil, "host: localhost\r\n", 421),
        (&evil, "host: evil.example\r\n", 421),
        (&both, "host: evil.example\r\n", 421),
        (&get, "x-forwarded-host: localhost\r\nhost: evil.example\r\n", 421),
        (&both, "host: localhost\r\n", 200),
        (&get, "host: LOCALHOST:80\r\n", 200),
        (&get, "host: data.example.org\r\n", 200),
    ] {
        let answer = served.client.raw(head(line, hosts).as_bytes()).await;
        assert_eq!(answer.expect("an answer").status, status, "{line} {hosts:?}");
    }
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api16_pages_of_others_change_nothing() {
    let place = Place::new(&[]);
    let served = Behind::usual(&place).await;
    let body = r#"{"select":["tested"],"confirm":1}"#;
    let kinds = [
        "application/json",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain; x=application/json",
    ];
    let origins = [
        "origin: http://evil.example\r\n",
        "origin: null\r\n",
        "origin: http://localhost:1\r\n",
        "sec-fetch-site: cross-site\r\n",
        "sec-fetch-site: same-site\r\n",
        "origin: http://localhost\r\nsec-fetch-site: cross-site\r\n",
    ];
    let send = |kind: &str, more: &str| {
        let more = format!(
            "host: localhost\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n{more}",
            body.len()
        );
        let request = head(&format!("POST {SHOP}/resources:pause"), &more) + body;
        async move { served.client.raw(request.as_bytes()).await.expect("an answer") }
    };
    for kind in kinds {
        for origin in origins {
            let answer = send(kind, origin).await;
            assert_eq!(answer.status, 403, "{kind} {origin:?}");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
        // A form is refused also where nothing says whose it is.
        let expected = if kind == kinds[0] { continue } else { 415 };
        assert_eq!(send(kind, "").await.status, expected, "{kind}");
    }
    // What a browser asks for leave first is not given any.
    let ask = head(
        &format!("OPTIONS {SHOP}/resources:pause"),
        "host: localhost\r\norigin: http://evil.example\r\naccess-control-request-method: POST\r\n",
    );
    let answer = served.client.raw(ask.as_bytes()).await.expect("an answer");
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (403, None)
    );
    let late = served
        .client
        .get(&format!("{SHOP}/resources/model/tested?fields=health"))
        .await;
    assert_eq!(late.json()["health"], "ok");
    assert_eq!(send(kinds[0], "origin: http://localhost\r\n").await.status, 200);
    let late = served
        .client
        .get(&format!("{SHOP}/resources/model/tested?fields=health"))
        .await;
    assert_eq!(late.json()["health"], "paused");
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_beyond_their_bounds_are_refused_and_cost_nothing() {
    let place = Place::new(&[]);
    let served = Behind::usual(&place).await;
    let post = |more: &str| {
        head(
            &format!("POST {SHOP}/run"),
            &format!("host: localhost\r\ncontent-type: application/json\r\n{more}"),
        )
    };
    // 1 GB that is declared is not waited for.
    let declared = served
        .client
        .raw(post("content-length: 1000000000\r\n").as_bytes())
        .await;
    assert_eq!(declared.expect("an answer").status, 413);
    // 1 GB in pieces ends at the bound.
    let mut stream = TcpStream::connect(served.client.0).await.expect("it listens");
    stream
        .write_all(post("transfer-encoding: chunked\r\n").as_bytes())
        .await
        .expect("it reads");
    let chunk = format!("10000\r\n{}\r\n", "[".repeat(0x10000));
    let mut sent = 0;
    while sent < 1_000_000_000 && stream.write_all(chunk.as_bytes()).await.is_ok() {
        sent += 0x10000;
    }
    assert!(sent < 64 << 20, "{sent} bytes were taken");
    for (what, body, status) in [
        ("deep", "[".repeat(100_000) + &"]".repeat(100_000), 400),
        ("deep and no end", r#"{"a":"#.repeat(100_000), 400),
        ("long", json!({"select": ["x".repeat(1 << 20)]}).to_string(), 413),
        ("no text", "\u{0}\u{1}".to_owned(), 400),
    ] {
        let request = post(&format!("content-length: {}\r\n", body.len())) + &body;
        let answer = served.client.raw(request.as_bytes()).await.expect("an answer");
        assert_eq!(
            answer.status,
            status,
            "{what}: {}",
            String::from_utf8_lossy(&answer.body)
        );
    }
    // What would unfold to gigabytes is not unfolded.
    for coding in ["gzip", "deflate", "br", "identity, gzip"] {
        let bomb = post(&format!("content-encoding: {coding}\r\ncontent-length: 4\r\n")) + "\x1f\x08ab";
        let answer = served.client.raw(bomb.as_bytes()).await.expect("an answer");
        assert_eq!(answer.status, 415, "{coding}");
    }
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_two_meanings_are_not_guessed_at() {
    let place = Place::new(&[]);
    let served = Behind::usual(&place).await;
    let smuggled = format!("GET {SHOP}/stats HTTP/1.1\r\nhost: localhost\r\n\r\n");
    for lengths in [
        "content-length: 0\r\ncontent-length: 5\r\n",
        "content-length: 5, 0\r\n",
        "content-length: +5\r\n",
        "content-length: -1\r\n",
        "content-length: 99999999999999999999\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding: chunked, gzip\r\n",
        "content-length : 5\r\n",
        "\x0bhost: localhost\r\n",
    ] {
        let request = format!(
            "POST {SHOP}/run HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{lengths}\r\n{smuggled}"
        );
        // None but an error, and the connection ends with it: what follows is no request.
        let answer = served.client.raw(request.as_bytes()).await.expect("an answer");
        assert!(
            (400..500).contains(&answer.status),
            "{lengths:?}: {}",
            answer.status
        );
        let more = String::from_utf8_lossy(&answer.body).contains("HTTP/1.1");
        assert!(!more, "{lengths:?} let a second request through");
    }
    // The newer protocol is not spoken, and its names of hosts mean nothing.
    let newer = served.client.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(newer.is_none_or(|answer| answer.status >= 400));
    let many = format!(
        "GET {SHOP}/stats HTTP/1.1\r\nhost: localhost\r\n{}\r\n",
        "a: b\r\n".repeat(2_000)
    );
    let answer = served.client.raw(many.as_bytes()).await;
    assert_eq!(answer.expect("an answer").status, 431);
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_and_bodies_that_dribble_are_not_waited_for() {
    let place = Place::new(&[]);
    let limits = Limits {
        head_within: Duration::from_millis(20),
        body_within: Duration::from_millis(20),
        ..Limits::default()
    };
    let served = Behind::new(&place, limits).await;
    for beginning in ["", "GET /v1/me HTTP/1.1\r\nhost: local"] {
        let mut stream = TcpStream::connect(served.client.0).await.expect("it listens");
        stream.write_all(beginning.as_bytes()).await.expect("it reads");
        let mut answer = Vec::new();
        // It hangs up by itself: nothing more is sent.
        let _ = stream.read_to_end(&mut answer).await;
        assert!(!String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 200"));
    }
    let half = head(
        &format!("POST {SHOP}/run"),
        "host: localhost\r\ncontent-type: application/json\r\ncontent-length: 10\r\n",
    ) + "{";
    let answer = served.client.raw(half.as_bytes()).await.expect("an answer");
    assert_eq!(answer.status, 408);
    assert_eq!(answer.json()["code"], Value::from("deadline-passed"));
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_connections_than_allowed_are_told_so_and_take_nobodys_place() {
    let place = Place::new(&[]);
    let limits = Limits {
        connections: 3,
        ..Limits::default()
    };
    let served = Behind::new(&place, limits).await;
    let request = format!("GET {SHOP}/stats HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(served.client.0).await.expect("it listens");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.expect("an answer");
        assert_eq!(&status, b"HTTP/1.1 200");
        open.push(stream);
    }
    for _ in 0..5 {
        let answer = served.client.raw(request.as_bytes()).await.expect("an answer");
        assert_eq!((answer.status, &answer.json()["code"]), (503, &json!("busy")));
    }
    // Those that are in go on, and who leaves makes room.
    let first = open.first_mut().expect("it is open");
    first.write_all(request.as_bytes()).await.expect("it reads");
    drop(open);
    let close = head(&format!("GET {SHOP}/stats"), "host: localhost\r\n");
    while served
        .client
        .raw(close.as_bytes())
        .await
        .expect("an answer")
        .status
        != 200
    {}
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api21_a_caller_who_asks_too_often_waits_and_the_others_notice_nothing() {
    let place = Place::new(&[]);
    let owner = place.owned().await;
    let service = Service::new().with("shop", Arc::clone(&owner.instance));
    service.set_limits(Limits {
        requests_per_second: NonZeroU32::MIN,
        requests_at_once: NonZeroU32::MIN,
        watchers_of_one: 1,
        body_bytes: 1_024,
        ..Limits::default()
    });
    let routes = router(service, |head| {
        let name = head.headers.get("x-name").and_then(|name| name.to_str().ok());
        let admin = Grants::one("*", Grant::new(Level::Admin));
        Ok(name.map_or(Caller::owner("local"), |name| Caller::with(name, admin)))
    });
    let listener = bind("127.0.0.1:0".parse().expect("an address"))
        .await
        .expect("a socket");
    let client = Client(listener.local_addr().expect("an address"));
    let stop = CancellationToken::new();
    let serving = tokio::spawn(Door::default().serve(listener, routes, stop.clone()));
    let ask = async |name: &str| {
        let text = head("GET /v1/me", &format!("host: localhost\r\nx-name: {name}\r\n"));
        client.raw(text.as_bytes()).await.expect("an answer")
    };
    // At one in a second most of them pass the limit.
    let mut refused = Vec::new();
    for _ in 0..50 {
        refused.extend(Some(ask("ann").await).filter(|answer| answer.status != 200));
    }
    assert!(!refused.is_empty());
    for answer in &refused {
        assert_eq!((answer.status, &answer.json()["code"]), (429, &json!("busy")));
        assert!(
            answer
                .header("retry-after")
                .is_some_and(|it| it.parse::<u64>().is_ok_and(|it| it > 0))
        );
    }
    assert_eq!(ask("bob").await.status, 200);
    // The owner has streams without end, and another caller one.
    let mut streams = vec![client.events(&format!("{SHOP}/watch"), None).await];
    streams.push(client.events(&format!("{SHOP}/watch"), None).await);
    streams.push(
        client
            .events_with(&format!("{SHOP}/watch"), "x-name: eve\r\n")
            .await,
    );
    for stream in &mut streams {
        assert!(stream.next().await.is_some());
    }
    let long = json!({ "names": ["x".repeat(2_000)] });
    assert_eq!(client.post(&format!("{SHOP}/plan"), &long).await.status, 413);
    let metrics = client.get("/metrics").await;
    let page = String::from_utf8(metrics.body).expect("text");
    let count = |limit: &str| {
        let line = format!("watershed_http_refused_total{{limit=\"{limit}\"}} ");
        let number = page
            .lines()
            .find_map(|it| it.strip_prefix(&line))
            .expect("a line");
        number.parse::<usize>().expect("a number")
    };
    assert_eq!((count("requests"), count("body")), (refused.len(), 1), "{page}");
    drop(streams);
    stop.cancel();
    serving.await.expect("it ends in order");
    owner.close().await;
}
