//! Fixture: a state folder with its shim and the processes of a test.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use watershed_shim::protocol::{Exit, Lifetime, Limits, Output, Phase, Process, Spawn, Stop, Then};
use watershed_shim::{Client, Launch, Options, StartId};

/// Path of the program that acts as shim and as test processes.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_watershed-shim-under-test");

/// Time limit for expected events, far above their usual delay.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time without use after which a shim ends, in milliseconds.
pub(crate) const IDLE_MS: &str = "3000";

/// A state folder with its shim. Dropping the value kills all processes that the test has started.
pub(crate) struct Rig {
    folder: TempDir,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("state")).expect("a folder");
        Self { folder }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Returns a path for a file of the test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.state().join("shim/journal")
    }

    pub(crate) fn client(&self, epoch: u64) -> Client {
        self.client_with(Some(epoch), Lifetime::Keep)
    }

    pub(crate) fn client_with(&self, epoch: Option<u64>, lifetime: Lifetime) -> Client {
        let arguments = ["shim".into(), self.state().into(), IDLE_MS.into()];
        self.launched(epoch, lifetime, PROGRAM, arguments.into())
    }

    /// Returns a client whose first shim dies at a crash point, given in the syntax of the crate `fail`; later ones
    /// don't.
    pub(crate) fn dying_client(&self, points: &str) -> Client {
        let script = "if mkdir \"$0\" 2>/dev/null; then FAILPOINTS=\"$1\" exec \"$2\" shim \"$3\" \"$4\"; fi; \
                      exec \"$2\" shim \"$3\" \"$4\"";
        let arguments = [
            "-c".into(),
            script.into(),
            self.path("armed").into(),
            points.into(),
            PROGRAM.into(),
            self.state().into(),
            IDLE_MS.into(),
        ];
        self.launched(Some(1), Lifetime::Keep, "/bin/sh", arguments.into())
    }

    /// Returns a client whose shims are started by a shell after these commands.
    pub(crate) fn client_in_shell(&self, before: &str) -> Client {
        let script = format!("{before} exec \"$0\" shim \"$1\" \"$2\"");
        let arguments = [
            "-c".into(),
            script.into(),
            PROGRAM.into(),
            self.state().into(),
            IDLE_MS.into(),
        ];
        self.launched(Some(1), Lifetime::Keep, "/bin/sh", arguments.into())
    }

    fn launched(
        &self,
        epoch: Option<u64>,
        lifetime: Lifetime,
        program: &str,
        arguments: Vec<std::ffi::OsString>,
    ) -> Client {
        let launch = Launch {
            program: program.into(),
            arguments,
        };
        let options = Options {
            state_folder: self.state(),
            launch: Some(launch),
            epoch,
            lifetime,
        };
        Client::new(options).expect("the folder is there")
    }

    /// Returns an order to run a mode of the program.
    pub(crate) fn order(&self, id: &StartId, mode: &[&str]) -> Spawn {
        let command = std::iter::once(PROGRAM).chain(mode.iter().copied());
        Spawn {
            id: id.clone(),
            command: command.map(str::to_owned).collect(),
            environment: vec![
                ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
                ("RIG".to_owned(), self.mark()),
            ],
            cwd: self.folder.path().to_owned(),
            output: None,
            limits: Limits::default(),
        }
    }

    pub(crate) fn output(&self, max_size: u64, keep: u32) -> Output {
        Output {
            path: self.path("logs/out"),
            max_size,
            keep,
        }
    }

    fn mark(&self) -> String {
        self.folder.path().to_string_lossy().into_owned()
    }

    /// Returns all living processes of the test except the shim, tagged or not, found by a variable or an argument.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let (mark, folder, state) = (
            format!("RIG={}", self.mark()),
            format!("{}/", self.mark()),
            self.state().to_string_lossy().into_owned(),
        );
        let mut found = processes_with("environ", |entry| entry == mark.as_bytes());
        let shims = processes_with("cmdline", |entry| entry == state.as_bytes());
        found.extend(processes_with("cmdline", |entry| {
            entry.starts_with(folder.as_bytes())
        }));
        found.retain(|pid| !shims.contains(pid));
        found
    }

    /// Returns all shims of the folder.
    pub(crate) fn shims(&self) -> Vec<u32> {
        let state = self.state().to_string_lossy().into_owned();
        processes_with("cmdline", |entry| entry == state.as_bytes())
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // The shim first, which reports to nobody; then twice, as a process that has just begun shows no environment.
        for _ in 0..2 {
            self.shims().into_iter().for_each(kill);
            self.processes().into_iter().for_each(kill);
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }
}

/// Returns the processes for which an entry in this file below `/proc` satisfies `is_meant`. Ended processes have no
/// entries.
fn processes_with(file: &str, is_meant: impl Fn(&[u8]) -> bool) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("processes are listed").flatten();
    let pids = all.filter_map(|found| found.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes.split(|byte| *byte == 0).any(&is_meant)
    })
    .collect()
}

pub(crate) fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    let _ = kill_process(pid, signal);
}

/// Returns true while a process exists and has not ended.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

pub(crate) fn id(uid: &str, counter: u64) -> StartId {
    StartId::new(uid, counter).expect("an id")
}

pub(crate) fn stop(id: &StartId, signal: &str, grace_ms: u64, then: Then) -> Stop {
    Stop {
        id: id.clone(),
        signal: signal.to_owned(),
        grace_ms,
        then,
    }
}

/// Returns the pid of a running process.
pub(crate) fn pid(process: &Process) -> u32 {
    match process.phase {
        Phase::Running { pid, .. } => pid,
        ref other => panic!("it does not run: {other:?}"),
    }
}

/// Waits until a function returns a value.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn until_true(what: &str, mut look: impl FnMut() -> bool) {
    until(what, || std::future::ready(look().then_some(()))).await;
}

/// Waits for a file with content, and returns the content.
pub(crate) async fn text_of(path: &Path) -> String {
    let read = || fs::read_to_string(path).ok().filter(|text| !text.is_empty());
    until(&format!("{} is written", path.display()), || {
        std::future::ready(read())
    })
    .await
}

pub(crate) async fn exit_of(client: &Client, id: &StartId) -> Exit {
    until(&format!("{id} has ended"), || async {
        match find(client, id).await?.phase {
            Phase::Exited(exit) => Some(exit),
            _ => None,
        }
    })
    .await
}

pub(crate) async fn find(client: &Client, id: &StartId) -> Option<Process> {
    let all = client.list().await.expect("a list");
    all.into_iter().find(|process| process.id == *id)
}

pub(crate) async fn all(client: &Client) -> BTreeMap<StartId, Process> {
    let all = client.list().await.expect("a list");
    all.into_iter()
        .map(|process| (process.id.clone(), process))
        .collect()
}
