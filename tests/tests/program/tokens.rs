//! Tokens of a service: from a file, over HTTP, revoked, and after the service was killed.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;

use crate::care::SmallDisk;
use crate::sandbox::{Said, Sandbox, assert_kept};
use crate::serving::Serving;

/// Outputs that are kept.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/tokens");

const PROJECT: &[(&str, &str)] = &[
    ("one/watershed.yaml", ""),
    ("one/models/a.sql", "-- @materialize: true\nSELECT 1 AS x\n"),
    (
        "server.yaml",
        "listen: 127.0.0.1:0\nauth: {tokens: tokens.yaml}\ninstances:\n  one: {project: one, trust: full}\n",
    ),
];

/// Calls the program as the holder of a token.
fn call_as(project: &Sandbox, token: &str, arguments: &[&str]) -> Said {
    let output = project
        .command(arguments)
        .env("WATERSHED_TOKEN", token)
        .output()
        .expect("the program can be called");
    Said::from(output)
}

/// Makes a token in the file of tokens, and returns its secret.
fn from_file(project: &Sandbox, name: &str, role: &str) -> String {
    let said = project.call(&[
        "token",
        "create",
        "--file",
        "tokens.yaml",
        "--name",
        name,
        "--role",
        role,
    ]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    said.stdout.trim().to_owned()
}

/// Returns an output with what is another each time in the form of a mask of the same width.
fn masked(text: &str, ids: &[&str]) -> String {
    let masked = ids.iter().fold(text.to_owned(), |text, id| {
        text.replace(id, &"i".repeat(id.len()))
    });
    let mut out = String::new();
    for word in masked.split_inclusive(|sign: char| sign.is_whitespace()) {
        let is_day =
            word.len() > 10 && word.is_char_boundary(10) && word[..10].parse::<jiff::civil::Date>().is_ok();
        out.push_str(&if is_day {
            format!("yyyy-mm-dd{}", &word[10..])
        } else {
            word.to_owned()
        });
    }
    out
}

#[test]
fn s_api17_an_operator_begins_with_a_file_and_goes_on_over_http() {
    let project = Sandbox::with(PROJECT);
    let root = from_file(&project, "root", "*=admin");
    let reader = from_file(&project, "reader", "one=read");
    let file = project.path().join("tokens.yaml");
    let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(&file).expect("text");
    for secret in [&root, &reader] {
        assert!(!text.contains(secret.rsplit('_').next().expect("a secret")));
    }
    let service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    let url = format!("http://{}", service.address);
    let asks = |token: &str| {
        let (status, _, _) = service.ask("GET", "/v1/me", &format!("authorization: Bearer {token}\r\n"));
        status
    };
    assert_eq!(
        [
            asks(&root),
            asks(&reader),
            asks("wsd_x_y"),
            service.ask("GET", "/v1/me", "").0
        ],
        [200, 200, 401, 401]
    );
    let create = [
        "token",
        "create",
        "--url",
        &url,
        "--name",
        "nightly job",
        "--role",
        "one=operate+query",
        "--operation",
        "run",
        "--days",
        "7",
        "--json",
    ];
    let made = call_as(&project, &root, &create);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let made: Value = serde_json::from_str(&made.stdout).expect("a document");
    let (job, id) = (
        made["secret"].as_str().expect("a secret"),
        made["token"]["id"].as_str().expect("an id"),
    );
    let ids = [root.as_str(), reader.as_str()].map(|token| token.split('_').nth(1).expect("an id"));
    let listed = call_as(&project, &root, &["token", "list", "--url", &url]);
    assert_kept(
        &Path::new(KEPT).join("list.expected.txt"),
        &masked(&listed.stdout, &[ids[0], ids[1], id]),
    );
    assert_eq!(asks(job), 200);
    // Who may not is told why, and what to do.
    let mut told = String::new();
    for (token, arguments) in [
        ("", vec!["token", "list"]),
        (reader.as_str(), vec!["token", "list"]),
        (
            job,
            vec!["token", "create", "--name", "more", "--role", "one=read"],
        ),
        (root.as_str(), vec!["token", "revoke", "0123456789abcdef"]),
        (root.as_str(), vec!["token", "revoke", ids[1]]),
        (
            root.as_str(),
            vec!["token", "create", "--name", "x", "--role", "two=read"],
        ),
    ] {
        let said = call_as(
            &project,
            token,
            &[arguments.as_slice(), &["--url", &url]].concat(),
        );
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.stderr);
        told.push_str(&said.stderr);
    }
    for arguments in [
        vec!["token", "list", "--url", "http://data.example.org"],
        vec!["token", "create", "--name", "x", "--role", "reader"],
        vec!["token", "create", "--name", "x", "--role", "one=reader"],
        vec![
            "token", "create", "--name", "x", "--role", "one=read", "--days", "0",
        ],
        vec![
            "token",
            "create",
            "--name",
            "x",
            "--role",
            "one=read",
            "--role",
            "one=edit",
            "--file",
            "tokens.yaml",
        ],
    ] {
        let said = project.call(&arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.stderr);
        told.push_str(&said.stderr);
    }
    assert_kept(
        &Path::new(KEPT).join("refused.expected.txt"),
        &masked(&told, &[ids[1]]),
    );
    let revoked = call_as(&project, &root, &["token", "revoke", id, "--url", &url]);
    assert_eq!((revoked.code, asks(job)), (Some(0), 401), "{}", revoked.stderr);
    // The state is its owner's, and lies beside the configuration.
    let state = project.path().join("server.state");
    let mode = std::fs::metadata(&state).expect("a folder").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    drop(service);
    // What was revoked stays so, and what leaves the file is let in no more.
    let kept: String = text.lines().take(1).map(|line| format!("{line}\n")).collect();
    std::fs::write(&file, kept).expect("the file can be written");
    let service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    let asks = |token: &str| {
        service
            .ask("GET", "/v1/me", &format!("authorization: Bearer {token}\r\n"))
            .0
    };
    assert_eq!([asks(&root), asks(&reader), asks(job)], [200, 401, 401]);
}

#[test]
fn s_api17_a_file_of_tokens_that_others_reach_or_that_is_a_link_is_refused() {
    let project = Sandbox::with(PROJECT);
    from_file(&project, "root", "*=admin");
    let file = project.path().join("tokens.yaml");
    let add = || {
        project.call(&[
            "token",
            "create",
            "--file",
            "tokens.yaml",
            "--name",
            "x",
            "--role",
            "one=read",
        ])
    };
    let check = || project.call(&["serve", "-c", "server.yaml", "--check"]);
    assert_eq!(check().code, Some(0), "{}", check().stderr);
    for mode in [0o640, 0o602, 0o644] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("the mode can be set");
        for said in [add(), check()] {
            assert_eq!(said.code, Some(2));
            assert!(said.stderr.contains("chmod 600"), "{}", said.stderr);
        }
    }
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("the mode can be set");
    std::fs::rename(&file, project.path().join("real.yaml")).expect("the file can be moved");
    std::os::unix::fs::symlink("real.yaml", &file).expect("a link can be made");
    for said in [add(), check()] {
        assert_eq!(said.code, Some(2));
        assert!(said.stderr.contains("is a link"), "{}", said.stderr);
    }
    std::fs::remove_file(&file).expect("the link can be removed");
    project.write("tokens.yaml", "tokens: here\n");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("the mode can be set");
    for said in [add(), check()] {
        assert_eq!(said.code, Some(2), "{}", said.stderr);
    }
    assert_eq!(std::fs::read_to_string(&file).expect("text"), "tokens: here\n");
}

#[test]
fn s_api20_where_the_log_can_not_be_written_nothing_is_done() {
    let project = Sandbox::with(PROJECT);
    let token = from_file(&project, "root", "*=admin");
    let state = project.path().join("server.state");
    let Some(disk) = SmallDisk::mount(&state, "4m") else {
        println!("mounting is not allowed here");
        return;
    };
    let mut service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    service.line("one: open");
    let bearer = format!("authorization: Bearer {token}\r\n");
    let one = "/v1/instances/one/resources/model/a";
    let pause = |more: &str| {
        let more = format!("{bearer}{more}");
        let (status, _, body) = service.ask("POST", &format!("{one}/pause"), &more);
        (status, body)
    };
    let health = || service.ask("GET", &format!("{one}?fields=health"), &bearer).2;
    let filler = state.join("filler");
    let mut file = std::fs::File::create(&filler).expect("a file");
    let full = std::io::copy(&mut std::io::repeat(7), &mut file);
    assert!(full.is_err(), "the disk is full");
    for more in ["", "idempotency-key: a\r\n"] {
        let (status, body) = pause(more);
        assert_eq!(status, 503, "{body}");
        assert!(body.contains("so nothing was done"), "{body}");
        assert!(!health().contains("paused"));
    }
    drop(file);
    std::fs::remove_file(&filler).expect("the file can be removed");
    for more in ["idempotency-key: a\r\n", ""] {
        assert_eq!(pause(more).0, 200);
    }
    assert!(health().contains("paused"));
    drop(service);
    drop(disk);
}

/// The number of kills unless `WATERSHED_KILLS` sets another.
const KILLS: u64 = 3;

/// Posts without a body, and returns the answer's head and body; none if there was no whole answer.
fn post(address: SocketAddr, path: &str, token: &str, key: &str) -> Option<(String, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\nauthorization: Bearer {token}\r\nidempotency-key: {key}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.to_owned(), serde_json::from_str(body).ok()?))
}

#[test]
fn s_api8_killed_at_any_moment_a_service_gives_the_answer_that_it_gave() {
    let kills = std::env::var("WATERSHED_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok());
    let seed = std::env::var("WATERSHED_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(8);
    eprintln!("seed {seed}");
    let mut rng = SmallRng::seed_from_u64(seed);
    let project = Sandbox::with(PROJECT);
    let token = from_file(&project, "job", "*=admin");
    let path = "/v1/instances/one/run";
    let begin = || {
        let mut service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
        service.line("one: open");
        service
    };
    let mut service = begin();
    let mut answers = 0;
    for round in 0..kills.unwrap_or(KILLS) {
        let (address, token_of, key) = (service.address, token.clone(), format!("round-{round}"));
        let asking = std::thread::spawn(move || post(address, path, &token_of, &key));
        // The moment of the kill is what is tried: no outcome depends on it.
        #[allow(clippy::disallowed_methods, reason = "the kill comes at any moment")]
        std::thread::sleep(Duration::from_millis(rng.random_range(0..60)));
        drop(service);
        let first = asking.join().expect("the thread ends");
        service = begin();
        let key = format!("round-{round}");
        let (head, body) = post(service.address, path, &token, &key).expect("an answer");
        assert!(head.starts_with("HTTP/1.1 202"), "{head}");
        if let Some((_, first)) = first {
            assert_eq!(body["id"], first["id"], "round {round}");
            assert!(head.contains("idempotency-replayed: true"), "{head}");
            answers += 1;
        }
        let (_, again) = post(service.address, path, &token, &key).expect("an answer");
        assert_eq!(body["id"], again["id"], "round {round}");
    }
    eprintln!("{answers} answers came before the kill");
    let bearer = format!("authorization: Bearer {token}\r\n");
    let (_, _, log) = service.ask("GET", "/v1/audit?limit=1000", &bearer);
    let log: Value = serde_json::from_str(&log).expect("a document");
    let lines = log["entries"].as_array().expect("entries");
    assert!(lines.len() as u64 >= kills.unwrap_or(KILLS), "{log}");
    assert!(lines.iter().all(|line| line["operation"] == "run"), "{log}");
}
