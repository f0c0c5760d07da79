//! `serve`: a configuration that is checked whole, and many projects in one process.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::sandbox::{Sandbox, assert_kept};

/// Configurations, each with what is said about it.
const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/configurations");

/// A service that goes on while a test asks it. Dropping it kills it.
pub(crate) struct Serving {
    child: Child,
    said: BufReader<ChildStderr>,
    /// The address.
    pub(crate) address: SocketAddr,
}

impl Serving {
    /// Begins a command that answers over HTTP, and waits for its address.
    pub(crate) fn begin(project: &Sandbox, arguments: &[&str]) -> Self {
        Self::of(project.command(arguments))
    }

    /// Begins a command as it is put together, and waits for its address.
    pub(crate) fn of(mut command: std::process::Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let said = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut serving = Self {
            child,
            said,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        let line = serving.line("answers at http");
        let address = line.split("://").nth(1).expect("an address");
        let address = address.trim().split('/').next().expect("an address");
        serving.address = address.parse().expect("an address");
        serving
    }

    /// The next line with a text in it.
    pub(crate) fn line(&mut self, text: &str) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            let read = self.said.read_line(&mut line).expect("it says something");
            assert!(read > 0, "it ended before it said {text:?}: {all}");
            if line.contains(text) {
                return line;
            }
            all.push_str(&line);
        }
    }

    /// Sends a request, and returns the status, the head and the body.
    pub(crate) fn ask(&self, method: &str, path: &str, more: &str) -> (u16, String, String) {
        self.send(method, path, more, "")
    }

    /// Sends a request with a body of JSON, and returns the status, the head and the body of the answer.
    pub(crate) fn send(&self, method: &str, path: &str, more: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n{more}\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), head.to_owned(), body.to_owned())
    }

    /// Reads a document.
    pub(crate) fn json(&self, path: &str) -> Value {
        let (_, _, body) = self.ask("GET", path, "");
        serde_json::from_str(&body).unwrap_or_else(|_| panic!("no JSON: {body}"))
    }

    /// Lets it read its configuration again.
    pub(crate) fn hang_up(&self) {
        kill_process(Pid::from_child(&self.child), Signal::HUP).expect("it can be signalled");
    }

    /// Ends it with a signal, and returns its exit code and what it said.
    pub(crate) fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), signal).expect("it can be signalled");
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).expect("it says something");
        (self.child.wait().expect("it ends").code(), rest)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // One that was ended already needs no signal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn close(file: &Path, mode: u32) {
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).expect("the mode can be set");
}

#[test]
fn s_api45_every_mistake_of_a_configuration_is_told_at_once_with_its_place() {
    let project = Sandbox::with(&[]);
    let mut cases: Vec<PathBuf> = Vec::new();
    copy(Path::new(CASES), project.path(), &mut cases);
    close(&project.path().join("open.env"), 0o644);
    close(&project.path().join("closed.env"), 0o600);
    close(&project.path().join("broken.env"), 0o600);
    close(&project.path().join("open.tokens"), 0o644);
    close(&project.path().join("good.tokens"), 0o600);
    close(&project.path().join("broken.tokens"), 0o600);
    cases.retain(|file| {
        file.parent() == Some(Path::new("")) && file.extension().is_some_and(|it| it == "yaml")
    });
    assert!(cases.len() > 10, "{cases:?}");
    for case in cases {
        let name = case.display().to_string();
        let said = project.call(&["serve", "-c", &name, "--check"]);
        let is_good = name == "good.yaml";
        assert_eq!(
            said.code,
            Some(if is_good { 0 } else { 2 }),
            "{name}: {}",
            said.stderr
        );
        assert_kept(
            &Path::new(CASES).join(case.with_extension("expected.txt")),
            &said.stderr,
        );
        let document = project.call(&["serve", "-c", &name, "--check", "--json"]);
        let document: Value = serde_json::from_str(&document.stdout).expect("a document");
        let found = document["diagnostics"].as_array().map_or(0, Vec::len);
        assert_eq!(found == 0, is_good, "{name}: {document}");
    }
    // Nothing was opened.
    for folder in ["shop", "ops"] {
        assert!(
            !project.path().join(folder).join(".watershed").exists(),
            "{folder}"
        );
    }
}

/// Copies a folder, and lists its files.
fn copy(from: &Path, to: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(from).expect("it can be listed") {
        let (path, name) = entry.map(|it| (it.path(), it.file_name())).expect("an entry");
        if path.is_dir() {
            fs::create_dir(to.join(&name)).expect("a folder");
            copy(&path, &to.join(&name), &mut Vec::new());
        } else {
            fs::copy(&path, to.join(&name)).expect("a copy");
            files.push(name.into());
        }
    }
}

/// Two projects that can be opened, one whose folder is not there, and one that another process has.
const PROJECTS: &[(&str, &str)] = &[
    ("one/watershed.yaml", ""),
    (
        "one/models/a.sql",
        "-- @materialize: true\nSELECT '{{ .env.GREETING }}' AS greeting\n",
    ),
    ("two/watershed.yaml", ""),
    ("two/models/b.sql", "SELECT * FROM nowhere\n"),
    ("taken/watershed.yaml", ""),
    ("secrets.env", "GREETING=hello-from-a-file\n"),
    (
        "server.yaml",
        "listen: 127.0.0.1:0\nbase: /data\nhosts: data.example.org\ninstances:\n  one: {project: one, env_file: secrets.env, trust: full}\n  two: {project: two, trust: full}\n  gone: {project: gone, trust: full}\n  taken: {project: taken, trust: full}\n",
    ),
];

#[test]
fn what_fails_in_a_service_is_logged_and_folders_without_a_project_are_warned_of() {
    let project = Sandbox::with(PROJECTS);
    close(&project.path().join("secrets.env"), 0o600);
    let check = project.call(&["serve", "-c", "server.yaml", "--check"]);
    assert_eq!(check.code, Some(0), "{}", check.stderr);
    assert!(
        check.stderr.contains("gone`: it has no `watershed.yaml`"),
        "{}",
        check.stderr
    );
    for option in ["--project=one", "--environment=prod"] {
        let said = project.call(&["serve", "-c", "server.yaml", option]);
        assert_eq!(said.code, Some(2), "{option}: {}", said.stderr);
    }
    let mut service = Serving::begin(
        &project,
        &["serve", "-c", "server.yaml", "--log-format=json", "-v"],
    );
    let log = |service: &mut Serving, text: &str| -> Value {
        serde_json::from_str(&service.line(text)).expect("a line of the log")
    };
    let failed = log(&mut service, "unknown-table");
    let field = |line: &Value, name: &str| line["fields"][name].clone();
    assert_eq!(
        (&failed["level"], field(&failed, "project")),
        (&"WARN".into(), "two".into())
    );
    assert_eq!(field(&failed, "resource"), "model/b");
    let (_, _, page) = service.ask("GET", "/data/metrics", "");
    assert!(page.contains("watershed_up{instance=\"gone\"} 0"), "{page}");
    project.write("two/models/b.sql", "SELECT 1 AS x\n");
    let mended = log(&mut service, "\"model/b\"");
    assert_eq!(field(&mended, "work"), "built");
}

#[test]
fn s_api31_a_folder_that_can_not_be_opened_costs_itself_alone() {
    let project = Sandbox::with(PROJECTS);
    close(&project.path().join("secrets.env"), 0o600);
    let state = watershed::state_folder::StateFolder::new(project.path().join("taken/.watershed"), "dev");
    let lock = state.expect("a state folder").try_own().expect("a lock");
    let mut service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    let ready = |service: &Serving| service.ask("GET", "/data/readyz", "").0;
    while ready(&service) != 200 {}
    let (_, _, verbose) = service.ask("GET", "/data/readyz?verbose", "");
    let lines: Vec<&str> = verbose.lines().collect();
    assert_eq!(
        (lines[0], lines[2], lines[4]),
        ("ready", "one: open, full", "two: open, full"),
        "{verbose}"
    );
    assert!(lines[1].starts_with("gone: failed: no project in"), "{verbose}");
    assert!(
        lines[3].starts_with("taken: failed: the state folder"),
        "{verbose}"
    );
    assert_eq!(service.ask("GET", "/data/livez", "").0, 200);
    // One that failed says why, wherever it is asked.
    let listed = service.json("/data/v1/instances");
    let health = |name: &str| {
        let all = listed["instances"].as_array().expect("instances");
        all.iter()
            .find(|it| it["name"] == name)
            .expect("it is listed")
            .clone()
    };
    assert_eq!(health("gone")["problem"]["code"], "unavailable");
    // No path of the machine leaves.
    let folder = project.path().display().to_string();
    assert!(
        !verbose.contains(&folder) && !listed.to_string().contains(&folder),
        "{verbose} {listed}"
    );
    // Both may be there at the next call, unlike an instance whose name is wrong.
    for (name, status) in [("taken", 503), ("gone", 503), ("gon", 404)] {
        let path = format!("/data/v1/instances/{name}/resources");
        assert_eq!(service.ask("GET", &path, "").0, status, "{name}");
    }
    // The others do their work, each with its own variables.
    let run = |name: &str| {
        let path = format!("/data/v1/instances/{name}/run");
        let (status, _, body) = service.ask(
            "POST",
            &path,
            "content-type: application/json\r\nprefer: wait=60\r\n",
        );
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Value>(&body).expect("a document")
    };
    assert_eq!(run("one")["document"]["exit_code"], 0);
    assert_eq!(run("two")["document"]["exit_code"], 1);
    assert_eq!(
        service
            .ask("GET", "/data/v1/instances", "host: data.example.org\r\n")
            .0,
        421,
        "two hosts"
    );
    // Commands ask the service as they ask `start`.
    let shown = project.call(&["show", "a", "--json", "-C", "one"]);
    assert!(shown.stdout.contains("hello-from-a-file"), "{shown:?}");
    // What becomes possible is done without a start.
    fs::create_dir(project.path().join("gone")).expect("a folder");
    project.write("gone/watershed.yaml", "");
    drop(lock);
    let (mut missing, mut tries) = (vec!["gone: open", "taken: open"], 0);
    while !missing.is_empty() {
        let line = service.line(": open");
        missing.retain(|name| !line.contains(name));
        tries += 1;
        assert!(tries < 10);
    }
    let (code, said) = service.end(Signal::TERM);
    assert_eq!(code, Some(143), "{said}");
}

#[test]
fn s_api15_a_link_lets_one_in_and_nobody_without_it() {
    let project = Sandbox::with(&[("watershed.yaml", ""), ("models/a.sql", "SELECT 1 AS x\n")]);
    let arguments = [
        "start",
        "--listen=127.0.0.1:0",
        "--auth",
        "link",
        "--base",
        "/data",
    ];
    let mut service = Serving::begin(&project, &arguments);
    let link = service.line("open this link, once: ");
    let path = link
        .split(&service.address.to_string())
        .nth(1)
        .expect("a path")
        .trim()
        .to_owned();
    assert!(path.starts_with("/data/link/"), "{link}");
    let refused = |path: &str, more: &str| {
        let (status, head, body) = service.ask("GET", path, more);
        assert_eq!(status, 403, "{path} {more}: {body}");
        assert!(!head.contains("set-cookie"), "{head}");
    };
    refused("/data/v1/me", "");
    refused("/data/v1/me", "cookie: watershed_1=x; a=b\r\n");
    refused("/data/link/0000", "");
    // What looks ahead does not use it up.
    assert_eq!(service.ask("HEAD", &path, "").0, 403);
    refused(&path, "sec-purpose: prefetch;prerender\r\n");
    let (status, head, _) = service.ask("GET", &path, "");
    assert_eq!((status, head.contains("location: /data/")), (303, true), "{head}");
    let cookie = head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .expect("a cookie");
    assert!(
        cookie.ends_with("; Path=/data; HttpOnly; SameSite=Lax"),
        "{cookie}"
    );
    let pair = cookie.split(';').next().expect("a pair");
    let (status, _, me) = service.ask("GET", "/data/v1/me", &format!("cookie: theme=dark; {pair}\r\n"));
    assert_eq!(status, 200, "{me}");
    assert!(me.contains("admin"), "{me}");
    refused(&path, "");
    refused("/data/v1/me", &format!("cookie: {pair}0\r\n"));
    // A cookie is no leave for the pages of others.
    let foreign =
        format!("cookie: {pair}\r\norigin: http://evil.example\r\ncontent-type: application/json\r\n");
    let run = format!(
        "/data/v1/instances/{}/run",
        project.path().file_name().expect("a name").display()
    );
    assert_eq!(service.ask("POST", &run, &foreign).0, 403);
    assert_eq!(service.end(Signal::INT).0, Some(130));
}

#[test]
fn s_api32_a_service_that_stops_is_not_ready_and_says_bye() {
    let project = Sandbox::with(&[("watershed.yaml", ""), ("models/a.sql", "SELECT 1 AS x\n")]);
    let service = Serving::begin(&project, &["start", "--listen=127.0.0.1:0"]);
    let name = project.path().file_name().expect("a name").display().to_string();
    let mut stream = TcpStream::connect(service.address).expect("it listens");
    let head = format!("GET /v1/instances/{name}/watch HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("it reads");
    let mut events = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains("event: listed") {
        line.clear();
        assert!(
            events.read_line(&mut line).expect("a line") > 0,
            "the stream goes on"
        );
    }
    let address = service.address;
    let (code, _) = service.end(Signal::TERM);
    let mut rest = String::new();
    events
        .read_to_string(&mut rest)
        .expect("the stream ends in order");
    assert!(rest.contains("event: bye"), "{rest}");
    assert_eq!(code, Some(143));
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
}
