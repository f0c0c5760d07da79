//! The server from outside: what is put is on the disk, also after a restart, and watchers see it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_folders"))
            .args([&folder.join("catalog.db"), &folder.join("root")])
            .arg("127.0.0.1:0")
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stdout = process.stdout.take().expect("it is piped");
        let line = BufReader::new(stdout)
            .lines()
            .next()
            .expect("a line")
            .expect("text");
        let address = line.strip_prefix("listening on ").expect("an address").to_owned();
        Self { process, address }
    }

    fn send(&self, method: &str, path: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .expect("it reads");
        BufReader::new(stream)
    }

    fn call(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut answer = String::new();
        let read = self.send(method, path, body).read_to_string(&mut answer);
        read.expect("it answers");
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (
            status.expect("a status"),
            serde_json::from_str(body).unwrap_or(Value::Null),
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn what_is_put_is_on_the_disk_and_stays_so_over_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("root");
    std::fs::create_dir(&root).expect("it can be made");
    let file = r#"{"folder": "notes", "text": "hello"}"#;
    let server = Server::start(folder.path());
    let watched = server.send("GET", "/watch", "");

    // Its folder is not declared yet.
    let (status, early) = server.call("PUT", "/file/today", file);
    assert_eq!((status, early["error"].is_null()), (200, false), "{early}");
    let (status, put) = server.call("PUT", "/folder/notes", "");
    assert_eq!(
        (status, put),
        (200, json!({ "resource": "folder/notes", "error": null }))
    );
    let text = || std::fs::read_to_string(root.join("notes/today")).ok();
    assert_eq!(
        text().as_deref(),
        Some("hello"),
        "it was waited for with its folder"
    );
    let mut lines = watched.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains(r#""changed":["folder/notes"]"#)));

    drop(server);
    std::fs::remove_file(root.join("notes/today")).expect("it is there");
    let server = Server::start(folder.path());
    let (status, again) = server.call("POST", "/file/today", "");
    assert_eq!((status, &again["error"]), (200, &Value::Null), "{again}");
    assert_eq!(
        text().as_deref(),
        Some("hello"),
        "what was removed is written again"
    );

    let changed = r#"{"folder": "notes", "text": "bye"}"#;
    assert_eq!(server.call("PUT", "/file/today", changed).0, 200);
    assert_eq!(text().as_deref(), Some("bye"));
    assert_eq!(server.call("PUT", "/file/today", "{").0, 409);

    assert_eq!(server.call("DELETE", "/file/other", "").0, 409);
    let watched = server.send("GET", "/watch", "");
    assert_eq!(server.call("DELETE", "/file/today", "").0, 204);
    let mut lines = watched.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains(r#""gone":["file/today"]"#)));
    assert_eq!(text(), None);
    let (_, left) = server.call("GET", "/resources", "");
    assert_eq!(left["resources"], json!(["folder/notes"]));
    let outside = r#"{"folder": "..", "text": "x"}"#;
    assert_eq!(server.call("PUT", "/file/outside", outside).0, 409);
}
