//! An editor: it speaks the protocol over a pipe, and checks what it hears.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::Path,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use futures::executor::block_on;
use serde_json::{Value, json};
use tempfile::TempDir;
use watershed_lsp::{Frames, Handle, Host, ServeError, Server};

use crate::project::{OnDisk, Opened};

/// The longest that an answer may take before the test fails: far longer than any does.
const PATIENCE: Duration = Duration::from_secs(60);

/// An editor with a server of its own.
pub(crate) struct Editor {
    folder: TempDir,
    pipe: UnixStream,
    input: BufReader<UnixStream>,
    server: Option<JoinHandle<Result<(), ServeError>>>,
    opened: Opened,
    next: u64,
    /// Notifications that came while something else was awaited.
    heard: Vec<Value>,
}

impl Editor {
    /// An editor that shows a project of these files, and has said hello.
    pub(crate) fn on(files: &[(&str, &str)]) -> Self {
        let mut editor = Self::silent(files);
        let hello = editor.ask(
            "initialize",
            &json!({"processId": null, "rootUri": editor.uri(""), "capabilities": {}}),
        );
        assert_eq!(hello["capabilities"]["positionEncoding"], "utf-16");
        editor.tell("initialized", &json!({}));
        editor
    }

    /// An editor that has said nothing yet.
    pub(crate) fn silent(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let opened = Opened::default();
        let (ours, theirs) = UnixStream::pair().expect("a pipe");
        ours.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let server = thread::spawn(serve(theirs, Arc::clone(&opened)));
        let editor = Self {
            input: BufReader::new(ours.try_clone().expect("a pipe")),
            pipe: ours,
            server: Some(server),
            opened,
            folder,
            next: 0,
            heard: Vec::new(),
        };
        for (path, content) in files {
            editor.write(path, content);
        }
        editor
    }

    /// Writes a file, of which the editor says nothing.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("writes");
    }

    /// The handle with which the host tells of files.
    pub(crate) fn handle(&self) -> Handle {
        let opened = self.opened.lock().expect("no panic").clone();
        opened.expect("a project was opened")
    }

    pub(crate) fn uri(&self, path: &str) -> String {
        format!("file://{}", self.folder.path().join(path).display())
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.pipe, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server listens");
    }

    /// Writes bytes that may be no message.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.pipe.write_all(bytes).expect("the server listens");
    }

    pub(crate) fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Asks and waits for the whole answer: with `result` or with `error`.
    pub(crate) fn answer(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.receive();
            if message["id"] == json!(id) {
                return message;
            }
            self.heard.push(message);
        }
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(
                self.input.read_line(&mut line).expect("the server speaks") > 0,
                "the server is gone"
            );
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().expect("a number");
            }
        }
        let mut bytes = vec![0; length];
        self.input.read_exact(&mut bytes).expect("a whole message");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    /// The next findings that the server tells of a file.
    pub(crate) fn findings(&mut self, path: &str) -> Vec<Value> {
        let uri = self.uri(path);
        let is_it = |message: &Value| {
            message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == json!(uri)
        };
        if let Some(at) = self.heard.iter().position(is_it) {
            return list(&self.heard.remove(at)["params"]["diagnostics"]);
        }
        loop {
            let message = self.receive();
            if is_it(&message) {
                return list(&message["params"]["diagnostics"]);
            }
            self.heard.push(message);
        }
    }

    /// The codes of the next findings of a file.
    pub(crate) fn codes(&mut self, path: &str) -> Vec<String> {
        let found = self.findings(path);
        found.iter().map(|one| text(&one["code"])).collect()
    }

    pub(crate) fn open(&mut self, path: &str, content: &str) {
        let document = json!({"uri": self.uri(path), "languageId": "sql", "version": 1, "text": content});
        self.tell("textDocument/didOpen", &json!({"textDocument": document}));
    }

    /// Replaces a range, or all of a document.
    pub(crate) fn edit(&mut self, path: &str, range: Option<[u32; 4]>, content: &str) {
        let range = range.map(|[line, character, end_line, end_character]| {
            json!({"start": {"line": line, "character": character}, "end": {"line": end_line, "character": end_character}})
        });
        let mut change = json!({"text": content});
        if let Some(range) = range {
            change["range"] = range;
        }
        let document = json!({"uri": self.uri(path), "version": 2});
        self.tell(
            "textDocument/didChange",
            &json!({"textDocument": document, "contentChanges": [change]}),
        );
    }

    pub(crate) fn close(&mut self, path: &str) {
        let document = json!({"uri": self.uri(path)});
        self.tell("textDocument/didClose", &json!({"textDocument": document}));
    }

    /// Asks about a place; `line` and `character` count from 0.
    pub(crate) fn at(&mut self, method: &str, path: &str, line: u32, character: u32) -> Value {
        let params = json!({
            "textDocument": {"uri": self.uri(path)},
            "position": {"line": line, "character": character},
            "context": {"includeDeclaration": true, "triggerKind": 1},
        });
        self.ask(method, &params)
    }

    /// The labels that are proposed at the mark `|` of a text, which is laid over the file.
    pub(crate) fn proposals(&mut self, path: &str, marked: &str) -> Vec<Value> {
        let (before, after) = marked.split_once('|').expect("a mark");
        self.open(path, &format!("{before}{after}"));
        let line = before.matches('\n').count();
        let character = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .encode_utf16()
            .count();
        let (line, character) = (
            u32::try_from(line).expect("small"),
            u32::try_from(character).expect("small"),
        );
        let found = self.at("textDocument/completion", path, line, character);
        list(&found["items"])
    }

    /// Ends as editors do, and returns how the server ended.
    pub(crate) fn leave(mut self) -> Result<(), ServeError> {
        self.ask("shutdown", &Value::Null);
        self.tell("exit", &Value::Null);
        self.ended()
    }

    /// Closes the pipe, and returns how the server ended.
    pub(crate) fn ended(mut self) -> Result<(), ServeError> {
        let _ = self.pipe.shutdown(Shutdown::Write);
        let server = self.server.take().expect("it ends once");
        server.join().expect("no panic")
    }
}

fn serve(pipe: UnixStream, opened: Opened) -> impl FnOnce() -> Result<(), ServeError> + Send {
    move || {
        let opener = Box::new(move |place: &Path, handle: Handle| {
            let root = place
                .ancestors()
                .find(|folder| folder.join("rill.yaml").is_file())?;
            *opened.lock().expect("no panic") = Some(handle);
            Some(Box::new(OnDisk::open(root)) as Box<dyn Host>)
        });
        let input = Frames::read(pipe.try_clone().expect("a pipe")).expect("a thread");
        let done = block_on(Server::new(opener, None).run(input, &pipe));
        let _ = pipe.shutdown(Shutdown::Both);
        done
    }
}

/// The items of a list; none of anything else.
pub(crate) fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// A text.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The labels of proposals.
pub(crate) fn labels(items: &[Value]) -> Vec<String> {
    items.iter().map(|item| text(&item["label"])).collect()
}
