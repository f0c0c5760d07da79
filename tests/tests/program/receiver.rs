//! A receiver of webhooks on loopback. What it takes is on the disk before it answers, so that nothing which it has
//! acknowledged is ever in doubt; and it kills the program in the middle of an exchange if a test wants that.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::processes::kill;
use crate::sandbox::Sandbox;

/// A step of an exchange, as the receiver sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The message is read, and not taken.
    Read,
    /// It is taken, and not answered.
    Taken,
    /// The answer is sent.
    Answered,
}

/// The steps at which it kills the program.
pub(crate) const STEPS: [Step; 3] = [Step::Read, Step::Taken, Step::Answered];

/// A receiver, which answers as it is told.
#[derive(Clone)]
pub(crate) struct Receiver {
    port: u16,
    /// Keys and titles of messages, a line for each, as they came.
    taken: Arc<tempfile::NamedTempFile>,
    status: Arc<Mutex<&'static str>>,
    /// The process that is killed, and when.
    victim: Arc<Mutex<Option<(Step, u32)>>>,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let receiver = Self {
            port: listener.local_addr().expect("it is bound").port(),
            taken: Arc::new(tempfile::NamedTempFile::new().expect("a file can be made")),
            status: Arc::new(Mutex::new("204 No Content")),
            victim: Arc::default(),
        };
        let serving = receiver.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Whoever goes away in the middle sent nothing.
                let _ = serving.exchange(stream);
            }
        });
        receiver
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    fn exchange(&self, mut stream: TcpStream) -> io::Result<()> {
        let (headers, body) = read(&stream)?;
        self.pass(Step::Read);
        let status = *lock(&self.status);
        if status.starts_with("204") {
            assert!(headers.contains_key("webhook-signature"), "it is signed");
            let message: Value = serde_json::from_slice(&body)?;
            self.take(&headers["webhook-id"], &message["title"])?;
        }
        self.pass(Step::Taken);
        write!(
            stream,
            "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )?;
        self.pass(Step::Answered);
        Ok(())
    }

    fn take(&self, key: &str, title: &Value) -> io::Result<()> {
        let mut file = File::options().append(true).open(self.taken.path())?;
        writeln!(file, "{}", serde_json::json!([key, title]))?;
        file.sync_all()
    }

    /// Kills the program if this is the step for it.
    fn pass(&self, step: Step) {
        let mut victim = lock(&self.victim);
        if let Some((_, pid)) = victim.take_if(|(when, _)| *when == step) {
            kill(i32::try_from(pid).expect("a pid"));
        }
    }

    /// Runs the program, and kills it at a step of its first exchange. Returns true if it came to that.
    pub(crate) fn kills_at(&self, step: Step, project: &Sandbox) -> bool {
        let mut program = {
            // No message is looked at before it is known whose it is.
            let mut victim = lock(&self.victim);
            let program = project.start(&["run"]);
            *victim = Some((step, program.id()));
            program
        };
        let ended = program.wait().expect("it ends");
        *lock(&self.victim) = None;
        ended.code().is_none()
    }

    pub(crate) fn answer(&self, status: &'static str) {
        *lock(&self.status) = status;
    }

    /// The keys and titles of what it took, as it came.
    pub(crate) fn got(&self) -> Vec<(String, String)> {
        let text = fs::read_to_string(self.taken.path()).expect("the file can be read");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("each line is whole"))
            .collect()
    }

    /// The titles of what came first under its key.
    pub(crate) fn distinct(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let mut got = self.got();
        got.retain(|(key, _)| seen.insert(key.clone()));
        got.into_iter().map(|(_, title)| title).collect()
    }

    pub(crate) fn titles(&self) -> Vec<String> {
        self.got().into_iter().map(|(_, title)| title).collect()
    }
}

/// Reads a request: headers, names in lower case, and body.
pub(crate) fn read(stream: &TcpStream) -> io::Result<(BTreeMap<String, String>, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.insert(name.to_lowercase(), value.trim().to_owned()),
            None if line.trim_end().is_empty() => break,
            None => continue,
        };
    }
    let length = headers
        .get("content-length")
        .map_or(0, |text| text.parse().unwrap_or(0));
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((headers, body))
}
