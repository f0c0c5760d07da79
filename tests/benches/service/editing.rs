//! Edits of a project from elsewhere: saved, unsaved, and as an editor types them.

use std::time::Instant;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use watershed_tests::measure::{Report, Unit};

use super::client::Client;
use super::projects::models;
use super::{PLACE, ROUNDS, Served, percentile};

/// Edits of a round.
const EDITS: usize = 20;

/// Measures edits in a project of so many files.
pub(crate) async fn edits(report: &Report, files: usize) {
    let served = Served::new(models(files)).await;
    let (mut saved, mut checked, mut typed) = (Vec::new(), Vec::new(), Vec::new());
    let mut connection = served.client.connect().await;
    let mut editor = Editor::open(served.client).await;
    // The first one compiles the whole project.
    connection
        .send("POST", &format!("{PLACE}/check"), "", "{\"files\": {}}")
        .await;
    for round in 0..ROUNDS {
        let (mut puts, mut checks) = (Vec::new(), Vec::new());
        for edit in 0..EDITS {
            let file = format!("models/m{}.sql", (round * EDITS + edit) % files);
            // Not materialized, so that no build stands in the way of the next one.
            let text = format!("SELECT {round} AS n, {edit} AS edit\n");
            let begun = Instant::now();
            let path = format!("{PLACE}/files/{file}");
            connection.send("PUT", &path, "if-match: *\r\n", &text).await;
            puts.push(begun.elapsed().as_secs_f64() * 1_000.0);
            let unsaved = json!({"files": {file: "SELECT 1 AS x FROM nowhere\n"}}).to_string();
            let begun = Instant::now();
            connection
                .send("POST", &format!("{PLACE}/check"), "", &unsaved)
                .await;
            checks.push(begun.elapsed().as_secs_f64() * 1_000.0);
        }
        saved.push(percentile(puts, 50));
        checked.push(percentile(checks, 50));
        let mut keys = Vec::new();
        for key in 0..EDITS {
            keys.push(editor.key(round * EDITS + key).await);
        }
        typed.push(percentile(keys, 95));
    }
    report.print("put_to_diagnostics_ms", Unit::Milliseconds, saved);
    report.print("check_ms", Unit::Milliseconds, checked);
    report.print("lsp_keystroke_ms", Unit::Milliseconds, typed);
    served.close().await;
}

/// An editor with one file open.
struct Editor(TcpStream);

const FILE: &str = "watershed://it/models/m0.sql";

impl Editor {
    async fn open(client: Client) -> Self {
        let mut stream = TcpStream::connect(client.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let head = format!(
            "GET {PLACE}/lsp HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{}\r\n",
            client.bearer
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.unwrap());
        }
        assert!(answer.starts_with(b"HTTP/1.1 101"));
        let mut editor = Self(stream);
        editor
            .send(&json!({"id": 1, "method": "initialize", "params": {"capabilities": {}}}))
            .await;
        editor.send(&json!({"method": "initialized", "params": {}})).await;
        let document = json!({"uri": FILE, "languageId": "sql", "version": 1, "text": "SELECT 0 FROM m1\n"});
        editor
            .send(&json!({"method": "textDocument/didOpen", "params": {"textDocument": document}}))
            .await;
        editor
    }

    /// Types a key that changes the findings, and returns the milliseconds until they are there.
    async fn key(&mut self, number: usize) -> f64 {
        // A mistake at another place each time.
        let text = format!("{}SELEC {number}\n", " ".repeat(number + 1));
        let version = number + 2;
        let begun = Instant::now();
        self.send(&json!({"method": "textDocument/didChange", "params": {
            "textDocument": {"uri": FILE, "version": version},
            "contentChanges": [{"text": text}],
        }}))
        .await;
        loop {
            let message = self.next().await;
            let params = &message["params"];
            if params["uri"] == FILE && params["version"] == version {
                return begun.elapsed().as_secs_f64() * 1_000.0;
            }
        }
    }

    async fn send(&mut self, message: &Value) {
        let mut message = message.clone();
        message["jsonrpc"] = json!("2.0");
        let bytes = message.to_string().into_bytes();
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend(u16::try_from(bytes.len()).unwrap().to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(bytes);
        self.0.write_all(&frame).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        loop {
            let first = self.0.read_u8().await.unwrap();
            let length = match self.0.read_u8().await.unwrap() {
                126 => u64::from(self.0.read_u16().await.unwrap()),
                127 => self.0.read_u64().await.unwrap(),
                short => u64::from(short),
            };
            let mut bytes = vec![0; usize::try_from(length).unwrap()];
            self.0.read_exact(&mut bytes).await.unwrap();
            if first & 0x0f == 1 {
                return serde_json::from_slice(&bytes).unwrap();
            }
        }
    }
}
