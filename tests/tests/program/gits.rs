//! Projects from git: fetched at the start, by `checkout` and by signed webhooks, and left as they were by what fails.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use base64::Engine as _;
use ring::hmac;
use rustls::{ServerConnection, StreamOwned};
use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::serving::Serving;
use crate::tls::certified;

const SECRET: &str = "a-secret-of-more-than-16-signs";

/// A bare repository with a work tree beside it.
struct Upstream(PathBuf);

impl Upstream {
    fn new(folder: &Path) -> Self {
        let upstream = Self(folder.to_owned());
        fs::create_dir_all(folder.join("work")).expect("a folder");
        upstream.git(&["init", "--quiet", "--bare", "-b", "main", "../ops.git"]);
        upstream.git(&["init", "--quiet", "-b", "main", "."]);
        upstream.write("watershed.yaml", "");
        upstream.write("models/a.sql", "-- @materialize: true\nSELECT 1 AS a\n");
        upstream.push();
        upstream
    }

    fn git(&self, arguments: &[&str]) {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=ann",
                "-c",
                "user.email=ann@example.org",
                "-c",
                "protocol.file.allow=always",
            ])
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(self.0.join("work"))
            .output()
            .expect("git can be started");
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join("work").join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("it can be written");
    }

    fn push(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "edit"]);
        self.git(&["push", "--quiet", "--force", "../ops.git", "HEAD:main"]);
    }

    fn undo(&self) {
        self.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
        self.git(&["push", "--quiet", "--force", "../ops.git", "HEAD:main"]);
    }
}

/// A service with one project, from a repository.
fn service() -> (Sandbox, Upstream) {
    let sandbox = Sandbox::with(&[("git.secret", SECRET)]);
    let secret = sandbox.path().join("git.secret");
    fs::set_permissions(secret, fs::Permissions::from_mode(0o600)).expect("the mode can be set");
    let upstream = Upstream::new(&sandbox.path().join("upstream"));
    let url = format!("file://{}", sandbox.path().join("upstream/ops.git").display());
    let configuration = format!(
        "listen: 127.0.0.1:0\nstate: state\ninstances:\n  ops: {{git: {{url: \"{url}\", revision: main, secret_file: git.secret}}}}\n"
    );
    sandbox.write("server.yaml", &configuration);
    (sandbox, upstream)
}

/// Name and password for the server of the repository.
const CREDENTIALS: &str = "ann:a-password-of-ann";

/// Serves the repositories of a folder over HTTPS, to whoever has the credentials. Returns its port and its certificate.
fn web(folder: &Path) -> (u16, String) {
    let (certificate, config) = certified(&["localhost"]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (config, folder) = (Arc::clone(&config), folder.clone());
            std::thread::spawn(move || {
                let connection = ServerConnection::new(config).expect("a connection");
                // Whoever does not trust it goes away.
                let _ = exchange(StreamOwned::new(connection, stream), &folder);
            });
        }
    });
    (port, certificate)
}

/// Answers one request by git's own program for web servers.
fn exchange(mut stream: StreamOwned<ServerConnection, TcpStream>, folder: &Path) -> io::Result<()> {
    let mut reader = BufReader::new(&mut stream);
    let mut head: Vec<String> = Vec::new();
    for line in reader.by_ref().lines() {
        match line? {
            line if line.is_empty() => break,
            line => head.push(line),
        }
    }
    let header = |name: &str| {
        let lines = head.iter().filter_map(|line| line.split_once(": "));
        let mut found = lines.filter(|(own, _)| own.eq_ignore_ascii_case(name));
        found.next().map_or("", |(_, value)| value).to_owned()
    };
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let basic = base64::engine::general_purpose::STANDARD.encode(CREDENTIALS);
    let answer = match header("authorization") == format!("Basic {basic}") {
        true => {
            let [method, address] =
                [0, 1].map(|at| head[0].split(' ').nth(at).unwrap_or_default().to_owned());
            let (path, query) = address.split_once('?').unwrap_or((&address, ""));
            let mut backend = Command::new("git")
                .arg("http-backend")
                .env("GIT_PROJECT_ROOT", folder)
                .env("GIT_HTTP_EXPORT_ALL", "1")
                .env("PATH_INFO", path)
                .env("QUERY_STRING", query)
                .env("REQUEST_METHOD", method)
                .env("CONTENT_TYPE", header("content-type"))
                .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
                .env("HTTP_GIT_PROTOCOL", header("git-protocol"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            backend.stdin.take().expect("it is piped").write_all(&body)?;
            [
                &b"HTTP/1.1 200 OK\r\nconnection: close\r\n"[..],
                &backend.wait_with_output()?.stdout,
            ]
            .concat()
        }
        false => b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
    };
    stream.write_all(&answer)?;
    stream.conn.send_close_notify();
    stream.flush()
}

#[test]
fn s_api46_a_repository_is_fetched_over_https_from_a_server_that_is_trusted_by_its_certificate_alone() {
    let (sandbox, _upstream) = service();
    let (port, certificate) = web(&sandbox.path().join("upstream"));
    sandbox.write("own.pem", &certificate);
    for (file, text) in [("good", CREDENTIALS), ("bad", "ann:another")] {
        sandbox.write(file, text);
        fs::set_permissions(sandbox.path().join(file), fs::Permissions::from_mode(0o600)).expect("a mode");
    }
    let configure = |more: &str| {
        let configuration = format!(
            "listen: 127.0.0.1:0\nstate: state\ninstances:\n  ops: {{git: {{url: \"https://localhost:{port}/ops.git\", revision: main{more}}}}}\n"
        );
        sandbox.write("server.yaml", &configuration);
    };
    for refused in [
        ", credentials_file: good",
        ", credentials_file: bad, ca_cert_file: own.pem",
        ", ca_cert_file: own.pem",
    ] {
        configure(refused);
        let mut serving = Serving::begin(&sandbox, &["serve", "-c", "server.yaml"]);
        let said = serving.line("can't be fetched");
        assert!(!said.contains("a-password-of-ann"), "{said}");
        assert!(
            !sandbox.path().join("state/git/ops/ops/models").exists(),
            "{refused}"
        );
    }
    configure(", credentials_file: good, ca_cert_file: own.pem");
    let serving = begin(&sandbox);
    assert!(model(&serving).contains("SELECT 1"));
}

const OPS: &str = "/v1/instances/ops";

fn begin(sandbox: &Sandbox) -> Serving {
    let mut serving = Serving::begin(sandbox, &["serve", "-c", "server.yaml"]);
    serving.line("ops: open");
    serving
}

fn model(serving: &Serving) -> String {
    serving.ask("GET", &format!("{OPS}/files/models/a.sql"), "").2
}

fn checkout(serving: &Serving) -> (u16, Value) {
    let (status, _, body) = serving.ask("POST", &format!("{OPS}/checkout"), "");
    (status, serde_json::from_str(&body).expect("a document"))
}

#[test]
fn s_api46_a_project_is_fetched_at_the_start_and_at_checkout_and_swapped_in_whole() {
    let (sandbox, upstream) = service();
    let serving = begin(&sandbox);
    assert!(model(&serving).contains("SELECT 1"));
    let project = sandbox.path().join("state/git/ops/ops");
    assert!(!project.join(".git").exists());

    // Nothing new is nothing changed.
    let (status, document) = checkout(&serving);
    assert_eq!(
        (status, &document["is_changed"]),
        (200, &Value::Bool(false)),
        "{document}"
    );
    upstream.write("models/a.sql", "-- @materialize: true\nSELECT 2 AS a\n");
    upstream.write("models/b.sql", "-- @materialize: true\nSELECT * FROM a\n");
    upstream.push();
    assert!(model(&serving).contains("SELECT 1"), "only a checkout fetches");
    let (status, document) = checkout(&serving);
    assert_eq!(
        (status, &document["is_changed"]),
        (200, &Value::Bool(true)),
        "{document}"
    );
    assert!(model(&serving).contains("SELECT 2"));
    let run = serving.ask("POST", &format!("{OPS}/run"), "prefer: wait=60\r\n");
    assert_eq!(run.0, 200, "{}", run.2);
    let b = serving.json(&format!("{OPS}/resources/model/b"));
    assert_eq!(b["health"], "ok", "{b}");

    // Files are edited in the repository.
    for (method, path) in [
        ("PUT", "files/models/a.sql"),
        ("DELETE", "files/models/a.sql"),
        ("PUT", "files/.env"),
    ] {
        let (status, _, body) = serving.ask(method, &format!("{OPS}/{path}"), "if-match: *\r\n");
        assert_eq!(status, 409, "{method} {path}: {body}");
        assert!(body.contains("\"owned-by-git\""), "{body}");
    }
    drop(serving);

    // A repository that is gone leaves what was fetched.
    fs::rename(
        sandbox.path().join("upstream/ops.git"),
        sandbox.path().join("upstream/gone.git"),
    )
    .expect("a move");
    let serving = begin(&sandbox);
    assert!(model(&serving).contains("SELECT 2"));
    let (status, document) = checkout(&serving);
    assert_eq!(
        (status, &document["code"]),
        (503, &Value::from("unavailable")),
        "{document}"
    );
    let folder = sandbox.path().display().to_string();
    assert!(
        !document.to_string().contains(&format!("{folder}/state")),
        "{document}"
    );
    assert!(model(&serving).contains("SELECT 2"));
}

#[test]
fn s_api46_what_must_not_be_served_leaves_the_files_of_before() {
    let (sandbox, upstream) = service();
    let work = sandbox.path().join("upstream/work");
    let serving = begin(&sandbox);
    let left = |story: &str| {
        let (status, document) = checkout(&serving);
        assert_eq!(
            (status, &document["code"]),
            (422, &Value::from("project-error")),
            "{story}: {document}"
        );
        assert!(model(&serving).contains("SELECT 1"), "{story}");
    };
    for to in ["/etc/passwd", "../../../../git.secret", "nowhere.sql"] {
        symlink(to, work.join("models/link.sql")).expect("a link");
        upstream.push();
        left(to);
        upstream.undo();
    }
    let file = fs::File::create(work.join("huge.bin")).expect("a file");
    file.set_len(300 << 20).expect("room");
    upstream.push();
    left("a file of 300 MiB");
    upstream.undo();

    // Hooks and filters of a repository run nowhere, and a submodule is an empty folder.
    let marks = sandbox.path().join("ran");
    let hook = format!("#!/bin/sh\ntouch {}\n", marks.display());
    for folder in [
        work.join("hooks"),
        work.join(".githooks"),
        sandbox.path().join("upstream/ops.git/hooks"),
    ] {
        fs::create_dir_all(&folder).expect("a folder");
        for name in ["post-checkout", "post-merge", "reference-transaction"] {
            fs::write(folder.join(name), &hook).expect("it can be written");
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).expect("a mode");
        }
    }
    let _ = fs::remove_file(&marks);
    upstream.write(".gitattributes", "*.sql filter=run\n");
    upstream.write(
        ".gitmodules",
        "[submodule \"inner\"]\n\tpath = inner\n\turl = ../ops.git\n",
    );
    upstream.write("models/a.sql", "-- @materialize: true\nSELECT 3 AS a\n");
    upstream.git(&["add", "--all"]);
    let head = Command::new("git")
        .args(["rev-parse", "HEAD"])
        .current_dir(&work)
        .output()
        .expect("git can be started");
    let head = String::from_utf8_lossy(&head.stdout).trim().to_owned();
    upstream.git(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{head},inner"),
    ]);
    upstream.git(&["commit", "--quiet", "--message", "edit"]);
    upstream.git(&["push", "--quiet", "--force", "../ops.git", "HEAD:main"]);
    let _ = fs::remove_file(&marks);
    let (status, document) = checkout(&serving);
    assert_eq!(status, 200, "{document}");
    assert!(model(&serving).contains("SELECT 3"));
    let inner = sandbox.path().join("state/git/ops/ops/inner");
    assert!(!inner.exists() || fs::read_dir(inner).expect("a folder").next().is_none());
    assert!(!marks.exists(), "something of the repository was run");
}

#[test]
fn s_api46_a_webhook_fetches_if_it_is_signed_and_chooses_nothing() {
    let (sandbox, upstream) = service();
    let serving = begin(&sandbox);
    upstream.write("models/a.sql", "-- @materialize: true\nSELECT 2 AS a\n");
    upstream.push();
    upstream.git(&["push", "--quiet", "../ops.git", "HEAD~1:refs/heads/other"]);
    let body = "{\"ref\": \"refs/heads/other\", \"revision\": \"other\"}";
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = hmac::sign(&key, body.as_bytes());
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let send = |body: &str, signature: &str| {
        let more = format!("x-hub-signature-256: {signature}\r\n");
        serving.send("POST", &format!("{OPS}/checkout"), &more, body)
    };
    // The user who started the service is known without a signature, and says nothing in the body.
    let (status, _, answer) = send(body, "sha256=00");
    assert_eq!(status, 400, "{answer}");
    let good = format!("sha256={digits}");
    for round in 0..3 {
        let (status, _, answer) = serving.send("POST", &format!("{OPS}/checkout"), "", "{}");
        assert_eq!(status, 200, "{round}: {answer}");
        assert!(model(&serving).contains("SELECT 2"), "{round}");
    }
    drop(serving);

    // With tokens, a webhook has none: its signature is all that it has.
    let configuration = fs::read_to_string(sandbox.path().join("server.yaml")).expect("a file");
    sandbox.write(
        "server.yaml",
        &format!("auth: {{tokens: tokens.yaml}}\n{configuration}"),
    );
    let made = sandbox.call(&[
        "token",
        "create",
        "--file",
        "tokens.yaml",
        "--name",
        "other",
        "--role",
        "ops=read",
    ]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let serving = begin(&sandbox);
    let send = |body: &str, signature: &str| {
        let more = format!("x-hub-signature-256: {signature}\r\n");
        serving.send("POST", &format!("{OPS}/checkout"), &more, body)
    };
    upstream.write("models/a.sql", "-- @materialize: true\nSELECT 4 AS a\n");
    upstream.push();
    for (body, signature) in [
        (body, "sha256=00"),
        (body, ""),
        ("{}", good.as_str()),
        (body, &good.replace("sha256", "sha1")),
    ] {
        let (status, _, answer) = send(body, signature);
        assert_eq!(status, 401, "{signature}: {answer}");
    }
    let commit = sandbox.path().join("state/git/ops/commit");
    let before = fs::read_to_string(&commit).expect("a file");
    let (status, _, answer) = send(body, &good);
    assert_eq!(status, 200, "{answer}");
    let after = fs::read_to_string(&commit).expect("a file");
    assert_ne!(before, after);
    // Sent again it changes nothing.
    let (status, _, answer) = send(body, &good);
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("\"is_changed\":false"), "{answer}");
    assert_eq!(fs::read_to_string(&commit).expect("a file"), after);
    let text = fs::read_to_string(sandbox.path().join("state/git/ops/ops/models/a.sql"));
    assert!(
        text.expect("a file").contains("SELECT 4"),
        "the configured branch is served"
    );
    let (status, _, _) = serving.send(
        "POST",
        &format!("{OPS}/run"),
        &format!("x-hub-signature-256: {good}\r\n"),
        body,
    );
    assert_eq!(status, 401, "a webhook may do nothing else");
}
