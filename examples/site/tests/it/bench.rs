//! A place for one site: its project, its catalog, and what is really there.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The number of starts of a program that finds the catalog in use.
const TRIES: usize = 100;

pub(crate) struct Bench {
    folder: TempDir,
}

/// The thing at a path.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    Folder,
    File(String),
    Link(PathBuf),
    /// The file that a server writes its address to.
    Address,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Writes the project, with one site or none.
    pub(crate) fn declare(&self, site: Option<&Value>) {
        let sites = match site {
            Some(site) => {
                let mut site = site.clone();
                site["root"] = json!(self.root());
                json!({"docs": site})
            }
            None => json!({}),
        };
        std::fs::write(self.project(), json!({"sites": sites}).to_string()).unwrap();
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project.json")
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_site"));
        command
            .arg("run")
            .arg(self.project())
            .arg(self.folder.path().join("catalog"));
        command.env("SITE_TRACE", "1").stdin(Stdio::null());
        command
    }

    /// The program as it stays and looks again so often.
    pub(crate) fn keep(&self, millis: u64) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_site"));
        command
            .arg("keep")
            .arg(self.project())
            .arg(self.folder.path().join("catalog"));
        command.arg(millis.to_string()).env("SITE_TRACE", "1");
        command
    }

    /// Runs the program to its end; says what it did, operation by operation.
    ///
    /// A program that was killed while it started a server leaves a process behind that has its lock until it has
    /// become that server; so it is tried again while it says that the catalog is in use.
    pub(crate) fn run(&self) -> Vec<String> {
        let is_in_use = |output: &Output| String::from_utf8_lossy(&output.stderr).contains("is in use by");
        let mut output = self.command().output().unwrap();
        for _ in 0..TRIES {
            if !is_in_use(&output) {
                break;
            }
            output = self.command().output().unwrap();
        }
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        operations(&output)
    }

    /// Declares and runs.
    pub(crate) fn apply(&self, site: Option<&Value>) -> Vec<String> {
        self.declare(site);
        self.run()
    }

    /// Everything below the root, and the root as `.`.
    pub(crate) fn tree(&self) -> BTreeMap<String, Found> {
        let mut tree = BTreeMap::new();
        if self.root().exists() {
            tree.insert(".".to_owned(), Found::Folder);
            walk(&self.root(), &self.root(), &mut tree);
        }
        tree
    }

    /// The servers of this site: their arguments name its folder.
    pub(crate) fn servers(&self) -> Vec<Pid> {
        let address = self.root().join(".address");
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let is_ours = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = line.split(|&byte| byte == 0).collect();
            words.get(1) == Some(&&b"serve"[..]) && words.contains(&address.as_os_str().as_encoded_bytes())
        };
        pids.filter(is_ours).filter_map(Pid::from_raw).collect()
    }

    /// Asks the server for a file; the title and the file.
    pub(crate) fn get(&self, path: &str) -> (String, String) {
        let address = std::fs::read_to_string(self.root().join(".address")).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /{path} HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let title = head
            .lines()
            .find_map(|line| line.strip_prefix("X-Title: "))
            .unwrap();
        (title.to_owned(), body.to_owned())
    }

    /// Everything is as declared, and nothing else is there.
    pub(crate) fn check(&self, site: Option<&Value>) {
        assert_eq!(self.tree(), site.map(expected).unwrap_or_default());
        let server = site.and_then(|site| site.get("server"));
        assert_eq!(self.servers().len(), usize::from(server.is_some()));
        if let Some((site, server)) = site.zip(server) {
            let settings = server["settings"].as_str().unwrap();
            let title = site["files"][settings]
                .as_str()
                .unwrap()
                .lines()
                .next()
                .unwrap()
                .to_owned();
            assert_eq!(self.get("index.html").0, title);
        }
    }
}

/// A test that fails leaves no server behind.
impl Drop for Bench {
    fn drop(&mut self) {
        self.servers().into_iter().for_each(end);
    }
}

/// Ends a process and waits until it is gone.
pub(crate) fn end(pid: Pid) {
    let handle = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    pidfd_send_signal(&handle, Signal::KILL).unwrap();
    poll(&mut [PollFd::new(&handle, PollFlags::IN)], None).unwrap();
}

/// The operations of a run in the order in which they began.
pub(crate) fn operations(output: &Output) -> Vec<String> {
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    lines
        .lines()
        .filter_map(|line| {
            line.split_once(" before ")
                .map(|(_, operation)| operation.to_owned())
        })
        .collect()
}

fn walk(root: &Path, folder: &Path, tree: &mut BTreeMap<String, Found>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let kind = std::fs::symlink_metadata(&path).unwrap().file_type();
        let found = if name == ".address" {
            Found::Address
        } else if kind.is_symlink() {
            Found::Link(std::fs::read_link(&path).unwrap())
        } else if kind.is_dir() {
            walk(root, &path, tree);
            Found::Folder
        } else {
            Found::File(std::fs::read_to_string(&path).unwrap())
        };
        tree.insert(name, found);
    }
}

/// Returns a declared site as it looks on disk.
fn expected(site: &Value) -> BTreeMap<String, Found> {
    let mut tree = BTreeMap::from([(".".to_owned(), Found::Folder)]);
    let texts = |field: &str| {
        site.get(field)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    };
    for folder in site
        .get("folders")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        tree.insert(folder.as_str().unwrap().to_owned(), Found::Folder);
    }
    for (path, text) in texts("files") {
        tree.insert(path, Found::File(text.as_str().unwrap().to_owned()));
    }
    for (path, to) in texts("links") {
        tree.insert(path, Found::Link(to.as_str().unwrap().into()));
    }
    if site.get("server").is_some() {
        tree.insert(".address".to_owned(), Found::Address);
    }
    tree
}

/// A site with everything.
pub(crate) fn first_site() -> Value {
    json!({
        "folders": ["public", "public/css"],
        "files": {
            "public/index.html": "hello",
            "public/css/main.css": "h1 {}",
            "settings": "First\n"
        },
        "links": {"public/home.html": "index.html", "latest": "public/css"},
        "server": {"serves": "public", "settings": "settings"}
    })
}

/// The same with something added, changed, re-pointed and taken away.
pub(crate) fn second_site() -> Value {
    json!({
        "folders": ["public", "public/img"],
        "files": {
            "public/index.html": "hello again",
            "public/img/logo.svg": "<svg/>",
            "settings": "Second\n"
        },
        "links": {"public/home.html": "img/logo.svg", "latest": "public"},
        "server": {"serves": "public", "settings": "settings"}
    })
}
