//! The program as people and editors start it, on 1,000 models.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use watershed_tests::measure::{Report, Unit, time};

use crate::generated;

const SAMPLES: usize = 15;
const MODELS: usize = 1_000;

pub(crate) fn measure(report: &Report) {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, content) in generated::models(MODELS) {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("writes");
    }
    validate(report, folder.path());
    if report.wants("lsp_keystroke_1k_ms") {
        report.print(
            "lsp_keystroke_1k_ms",
            Unit::Milliseconds,
            keystrokes(folder.path()),
        );
    }
}

fn program(folder: &Path, argument: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_watershed-under-test"));
    command.arg(argument).current_dir(folder).env("NO_COLOR", "1");
    command
}

fn validate(report: &Report, folder: &Path) {
    let once = || {
        let (took, output) = time(|| program(folder, "validate").output().expect("it starts"));
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        took.as_secs_f64() * 1e3
    };
    if report.wants("validate_1k_cold_ms") {
        let cold = |_| {
            let _ = fs::remove_dir_all(folder.join(".watershed"));
            once()
        };
        report.print(
            "validate_1k_cold_ms",
            Unit::Milliseconds,
            (0..SAMPLES).map(cold).collect(),
        );
    }
    if report.wants("validate_1k_warm_ms") {
        once();
        report.print(
            "validate_1k_warm_ms",
            Unit::Milliseconds,
            (0..SAMPLES).map(|_| once()).collect(),
        );
    }
}

/// Milliseconds from each edit of an open model to what is said of it.
fn keystrokes(folder: &Path) -> Vec<f64> {
    let root = folder.canonicalize().expect("it is there");
    let mut editor = Editor::begin(&root);
    let (path, content) = generated::models(MODELS).swap_remove(MODELS / 2);
    let uri = format!("file://{}", root.join(path).display());
    let document = json!({"uri": uri, "languageId": "sql", "version": 1, "text": content});
    editor.tell("textDocument/didOpen", &json!({"textDocument": document}));
    let keystroke = |at: usize| {
        // A word that is a mistake comes and goes, with a number that nobody has seen before.
        let text = match at % 2 {
            0 => format!("{content} FROM {at}"),
            _ => content.replace(")::BIGINT", &format!(" + {at})::BIGINT")),
        };
        let change = json!({
            "textDocument": {"uri": uri, "version": at + 2},
            "contentChanges": [{"text": text}],
        });
        let (took, found) = time(|| {
            editor.tell("textDocument/didChange", &change);
            editor.findings(&uri)
        });
        assert_eq!(found == 0, at % 2 == 1);
        took.as_secs_f64() * 1e3
    };
    (0..SAMPLES * 4).map(keystroke).collect()
}

/// An editor of one project.
struct Editor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Editor {
    fn begin(root: &Path) -> Self {
        let mut command = program(root, "lsp");
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut editor = Self {
            input: child.stdin.take().expect("it is piped"),
            output: BufReader::new(child.stdout.take().expect("it is piped")),
            child,
        };
        let said =
            json!({"processId": null, "rootUri": format!("file://{}", root.display()), "capabilities": {}});
        editor.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": said}));
        while editor.receive()["id"] != json!(1) {}
        editor.tell("initialized", &json!({}));
        editor
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let sent = write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len());
        sent.and_then(|()| self.input.flush()).expect("it listens");
    }

    fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).expect("it speaks") > 0,
                "it ended"
            );
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().expect("a number");
            }
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes).expect("a whole message");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    /// The number of findings that are told of a file.
    fn findings(&mut self, uri: &str) -> usize {
        loop {
            let message = self.receive();
            if message["params"]["uri"] == uri {
                return message["params"]["diagnostics"].as_array().map_or(0, Vec::len);
            }
        }
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
