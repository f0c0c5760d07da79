//! The language server over a WebSocket: all that an editor gets by `watershed lsp`, and what keeps others out.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use watershed::http::{Authentication, Caller, Grant, Grants};

use crate::http::{SHOP, Served};
use crate::project::Place;
use crate::socket::{Frame, Socket};

/// The longest that something may take that is bound to happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// The origin of the service's own pages.
const OWN: (&str, &str) = ("origin", "http://localhost");

/// The way to a language server.
enum Way {
    Pipe(Child, ChildStdin, BufReader<ChildStdout>),
    Socket(Socket),
}

/// An editor with a language server behind it.
struct Editor {
    way: Way,
    /// The address of the project's folder, without a slash at its end.
    root: String,
    next: u64,
    /// The findings as they were last published, by address.
    findings: BTreeMap<String, Value>,
}

impl Editor {
    /// An editor with `watershed lsp`.
    fn at_home(root: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_watershed-under-test"))
            .args(["lsp", "--stdio"])
            .current_dir(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program can be started");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = BufReader::new(output.expect("it is piped"));
        let real = root.canonicalize().expect("it is there");
        let way = Way::Pipe(child, input.expect("it is piped"), output);
        Self::begin(way, format!("file://{}", real.display()))
    }

    /// An editor with the service's language server.
    fn elsewhere(address: SocketAddr) -> Self {
        let socket = Socket::open(address, &format!("{SHOP}/lsp"), &[OWN]);
        let socket = socket.unwrap_or_else(|refused| panic!("{refused:?}"));
        Self::begin(Way::Socket(socket), "watershed://shop".to_owned())
    }

    fn begin(way: Way, root: String) -> Self {
        let mut editor = Self {
            way,
            root,
            next: 0,
            findings: BTreeMap::new(),
        };
        let about = json!({"processId": null, "rootUri": editor.root, "capabilities": {}});
        let hello = editor.ask("initialize", &about);
        assert_eq!(hello["serverInfo"]["name"], "watershed");
        editor.tell("initialized", &json!({}));
        editor
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        match &mut self.way {
            Way::Pipe(_, input, _) => {
                let sent = write!(input, "Content-Length: {}\r\n\r\n{text}", text.len());
                sent.and_then(|()| input.flush()).expect("it listens");
            }
            Way::Socket(socket) => assert!(socket.send(&text), "it listens"),
        }
    }

    fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.receive();
            if message["id"] == json!(id) {
                return message["result"].clone();
            }
            let uri = message["params"]["uri"].as_str().unwrap_or_default().to_owned();
            self.findings
                .insert(uri, message["params"]["diagnostics"].clone());
        }
    }

    fn receive(&mut self) -> Value {
        let (_, output) = match &mut self.way {
            Way::Pipe(child, _, output) => (child, output),
            Way::Socket(socket) => match socket.next() {
                Frame::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                Frame::End => panic!("the connection ended"),
            },
        };
        let mut length = 0;
        loop {
            let mut line = String::new();
            let read = output.read_line(&mut line).expect("it speaks");
            assert!(read > 0, "it ended");
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().expect("a number");
            }
        }
        let mut bytes = vec![0; length];
        output.read_exact(&mut bytes).expect("a whole message");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    fn uri(&self, path: &str) -> String {
        format!("{}/{path}", self.root)
    }

    fn open(&mut self, path: &str, text: &str) {
        let document = json!({"uri": self.uri(path), "languageId": "sql", "version": 1, "text": text});
        self.tell("textDocument/didOpen", &json!({"textDocument": document}));
    }

    fn at(&mut self, method: &str, path: &str, line: usize, character: usize) -> Value {
        let place = json!({
            "textDocument": {"uri": self.uri(path)},
            "position": {"line": line, "character": character},
            "context": {"includeDeclaration": true},
        });
        let answer = self.ask(&format!("textDocument/{method}"), &place);
        plain(&answer.to_string(), &self.root)
    }

    /// The findings of all files, without the address of the project.
    fn all_findings(&mut self) -> Value {
        let found = json!(self.findings);
        plain(&found.to_string(), &self.root)
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        if let Way::Pipe(child, _, _) = &mut self.way {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns an answer without the address of the project and the time since the last run.
fn plain(text: &str, root: &str) -> Value {
    let text = text.replace(root, "ROOT");
    let mut rest = text.as_str();
    let mut told = String::new();
    while let Some((before, after)) = rest.split_once("last run ") {
        told.push_str(before);
        rest = after.split_once(": ").map_or(after, |(_, after)| after);
    }
    told.push_str(rest);
    serde_json::from_str(&told).expect("it stays JSON")
}

/// Lists the files of a project that are compiled.
fn files(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("it can be listed") {
        let path = entry.expect("an entry").path();
        let is_file = path.extension().is_some_and(|end| end == "sql" || end == "yaml");
        match path.is_dir() {
            true if !path.ends_with(".watershed") => files(root, &path, found),
            false if is_file => found.push(path.strip_prefix(root).expect("below").to_owned()),
            _ => {}
        }
    }
}

/// Compares the answers of both servers about all files of a project.
fn compare(root: &Path, home: &mut Editor, away: &mut Editor) -> usize {
    let mut paths = Vec::new();
    files(root, root, &mut paths);
    paths.sort();
    let mut compared = 0;
    let mut troubles = Vec::new();
    for path in &paths {
        let Ok(text) = std::fs::read_to_string(root.join(path)) else {
            continue;
        };
        let path = path.display().to_string();
        home.open(&path, &text);
        away.open(&path, &text);
        for (number, line) in text.lines().enumerate() {
            let width = line.encode_utf16().count();
            let places = [0, width / 3, width / 2, width];
            for (method, character) in [
                ("hover", places[1]),
                ("hover", places[2]),
                ("completion", places[3]),
                ("completion", places[2]),
                ("definition", places[2]),
                ("references", places[1]),
            ] {
                let begun = Instant::now();
                loop {
                    let answers = [&mut *home, &mut *away].map(|it| it.at(method, &path, number, character));
                    compared += usize::from(answers[0] != Value::Null && answers[0] != json!([]));
                    if answers[0] == answers[1] {
                        break;
                    }
                    // What is known of tables is looked at beside the questions.
                    if begun.elapsed() > PATIENCE {
                        troubles.push(format!("{method} {path}:{number}:{character}: {answers:?}"));
                        break;
                    }
                }
                assert!(troubles.is_empty(), "{troubles:?}");
            }
        }
    }
    assert_eq!(home.all_findings(), away.all_findings());
    compared
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api23_an_editor_elsewhere_gets_what_watershed_lsp_answers() {
    let mut findings = 0;
    for project in ["flights", "broken"] {
        let projects = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/projects");
        let place = Place::of(&Path::new(projects).join(project));
        let served = Served::new(&place).await;
        let (address, root) = (served.client.0, place.root().to_owned());
        let comparing = tokio::task::spawn_blocking(move || {
            let (mut home, mut away) = (Editor::at_home(&root), Editor::elsewhere(address));
            let compared = compare(&root, &mut home, &mut away);
            (compared, away.findings.len())
        });
        let (compared, found) = comparing.await.expect("both agree");
        assert!(compared > 100, "{project}: {compared} answers say something");
        findings += found;
        served.close().await;
    }
    assert!(findings > 5, "{findings} files have findings");
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api23_edits_of_an_open_text_and_of_files_are_told_and_nothing_is_written() {
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let (client, root) = (served.client, place.root().to_owned());
    let editing = tokio::task::spawn_blocking(move || {
        let mut editor = Editor::elsewhere(client.0);
        let before = std::fs::read_to_string(root.join("models/late.sql")).expect("a file");
        editor.open("models/late.sql", &before);
        let change = json!({
            "textDocument": {"uri": editor.uri("models/late.sql"), "version": 2},
            "contentChanges": [{"text": "SELEC 1"}],
        });
        editor.tell("textDocument/didChange", &change);
        editor.at("hover", "models/late.sql", 0, 0);
        let found = &editor.findings["watershed://shop/models/late.sql"];
        assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
        // A file beside the text is compiled as it is saved.
        std::fs::write(root.join("models/beside.sql"), "SELEC 2").expect("it can be written");
        let begun = Instant::now();
        while !editor.findings.contains_key("watershed://shop/models/beside.sql") {
            editor.at("hover", "models/late.sql", 0, 0);
            assert!(begun.elapsed() < PATIENCE, "{:?}", editor.findings);
        }
        // Addresses outside of the project are of no file.
        for path in ["..%2f..%2fbeside.sql", "%2e%2e%2f.env"] {
            editor.open(path, "SELECT 1");
            let saved = json!({"textDocument": {"uri": editor.uri(path)}});
            editor.tell("textDocument/didSave", &saved);
            assert_eq!(editor.at("hover", path, 0, 0), Value::Null);
        }
        let text = json!(editor.findings).to_string();
        assert!(!text.contains(&root.display().to_string()), "{text}");
        let after = std::fs::read_to_string(root.join("models/late.sql")).expect("a file");
        assert_eq!(before, after);
    });
    editing.await.expect("it goes well");
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api16_a_websocket_is_for_the_services_own_pages_and_for_tokens() {
    let ended = CancellationToken::new();
    let caller = {
        let ended = ended.clone();
        move |head: &axum::http::request::Parts| {
            let grant: Grant = match head.headers.contains_key("x-reader") {
                true => "operate".parse().expect("a role"),
                false => "edit".parse().expect("a role"),
            };
            let caller = Caller::with("ann", Grants::one("shop", grant)).until(ended.clone());
            Ok(match head.headers.contains_key("authorization") {
                true => caller.known_by(Authentication::Token),
                false => caller.known_by(Authentication::Session),
            })
        }
    };
    let place = Place::new(&[]);
    let served = Served::with(&place, caller).await;
    let address = served.client.0;
    let path = format!("{SHOP}/lsp");
    let token = ("authorization", "Bearer x");
    let trying = tokio::task::spawn_blocking(move || {
        let open = |headers: &[(&str, &str)]| Socket::open(address, &path, headers);
        for refused in [
            vec![],
            vec![("origin", "http://evil.example")],
            vec![("origin", "null")],
            vec![("origin", "http://localhost.evil.example")],
            vec![token, ("origin", "http://evil.example")],
            vec![OWN, ("sec-fetch-site", "cross-site")],
            vec![OWN, ("x-reader", "1")],
        ] {
            let (status, body) = open(&refused).err().unwrap_or_default();
            assert_eq!(status, 403, "{refused:?}: {body}");
        }
        assert!(open(&[OWN]).is_ok());
        // One message beyond the bound ends the connection, and no other.
        let (mut large, mut other) = (
            open(&[token]).expect("a socket"),
            open(&[token]).expect("a socket"),
        );
        large.send(&" ".repeat((32 << 20) + 1));
        assert_eq!(large.next(), Frame::End);
        let hello =
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}});
        assert!(other.send(&hello.to_string()));
        assert!(matches!(other.next(), Frame::Text(text) if text.contains("serverInfo")));
        // What is no message ends the conversation.
        let mut odd = open(&[token]).expect("a socket");
        odd.send("no JSON");
        assert_eq!(odd.next(), Frame::End);
        other
    });
    let mut other = trying.await.expect("it goes well");
    ended.cancel();
    let begun = Instant::now();
    let end = tokio::task::spawn_blocking(move || {
        let mut frame = other.next();
        while frame != Frame::End {
            frame = other.next();
        }
    });
    end.await.expect("it ends");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api32_a_websocket_ends_when_the_service_stops() {
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let address = served.client.0;
    let opening = tokio::task::spawn_blocking(move || {
        let socket = Socket::open(address, &format!("{SHOP}/lsp"), &[OWN]);
        socket.unwrap_or_else(|refused| panic!("{refused:?}"))
    });
    let mut socket = opening.await.expect("a socket");
    let reading = tokio::task::spawn_blocking(move || socket.next());
    served.close().await;
    assert_eq!(reading.await.expect("it ends"), Frame::End);
}
