//! Pods: a folder, a place on a worker, and a process that listens.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::{sleep, timeout};
use watershed_controller::{Error, Uid};
use watershed_managers::{
    Action, DiscoveredItem, Done, Manager, Observation, Policy, Stage, Stages, Step, Tries, View,
};

use crate::effects;
use crate::spec::{Address, Pod};
use crate::worker::{failed, leave_place, stages, take_place};

/// The time that a process has to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// The time between two looks at something that is about to change.
const AGAIN: Duration = Duration::from_millis(20);

/// The manager of pods.
#[derive(Debug, Clone)]
pub(crate) struct Pods {
    pub(crate) lab: PathBuf,
}

impl Pods {
    fn folder(&self, uid: Uid) -> PathBuf {
        self.lab.join("pods").join(uid.to_string())
    }
}

impl Manager for Pods {
    const KIND: &'static str = "pod";
    type Spec = Pod;
    type Details = Address;

    fn stages(&self, _: &Pod) -> Stages {
        let all = stages(["absent", "prepared", "active", "gone"]);
        all.clone().with_early("prepared").unwrap_or(all)
    }

    async fn observe(&self, view: &View<Self>) -> Result<Observation<Address>, Error> {
        let folder = self.folder(view.uid());
        if !folder.exists() {
            return Ok(Observation::Absent);
        }
        Ok(match answers(&folder, view.uid()).await {
            Some(address) => Observation::at("active", address),
            None => Observation::at(
                "prepared",
                Address {
                    pid: None,
                    port: None,
                },
            ),
        })
    }

    fn next(&self, view: &View<Self>, goal: &Stage) -> Option<Step> {
        let to = view.stages().step(view.stage(), goal)?;
        Some(match to.as_str() {
            // A place may come free at any time, and a person waits for it.
            "active" => Step::pipeline(
                to,
                [
                    Action::new("place").with_tries(patient()),
                    Action::new("boot").after(["place"]).with_tries(patient()),
                ],
            ),
            _ => Step::to(to),
        })
    }

    async fn act(&self, view: &View<Self>, step: &Step) -> Result<Done, Error> {
        let (folder, mark) = (self.folder(view.uid()), view.uid().to_string());
        let worker = view.spec().worker.as_str();
        match view.action() {
            "place" => {
                let taken = take_place(&self.lab, worker, &mark);
                if !taken.map_err(|error| failed("take a place", &error))? {
                    return Err(Error::transient("lab", format!("no room on {worker}")));
                }
            }
            "boot" => boot(&folder, view.name(), view.uid()).await?,
            "prepared" => {
                let made = effects::make(&folder).map_err(|error| failed("make a folder", &error))?;
                self.note(made, "prepare", view.name())?;
            }
            _ => {
                end(&folder).await.map_err(|error| failed("end it", &error))?;
                let gone = effects::remove(&self.lab, &folder, &mark);
                let gone = gone.map_err(|error| failed("remove its folder", &error))?;
                self.note(gone, "remove", view.name())?;
                leave_place(&self.lab, worker, &mark).map_err(|error| failed("leave", &error))?;
            }
        }
        Ok(Done::At(step.to.clone()))
    }

    /// Folders are marked with the pods that they belong to.
    async fn discover(&self) -> Result<Vec<DiscoveredItem>, Error> {
        let Ok(entries) = fs::read_dir(self.lab.join("pods")) else {
            return Ok(Vec::new());
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names
            .map(|name| DiscoveredItem {
                uid: name.parse().ok().map(Uid),
                name,
            })
            .collect())
    }

    fn policy(&self) -> Policy {
        Policy {
            observe_every: Duration::from_secs(1),
            ..Policy::default()
        }
    }
}

impl Pods {
    #[expect(clippy::result_large_err, reason = "managers return errors of the core")]
    fn note(&self, is_first: bool, word: &str, name: &str) -> Result<(), Error> {
        match is_first {
            true => {
                effects::note(&self.lab, &format!("{word} {name}")).map_err(|error| failed("write", &error))
            }
            false => Ok(()),
        }
    }
}

fn patient() -> Tries {
    Tries {
        timeout: Duration::from_secs(5),
        attempts: 100,
        base: Duration::from_millis(200),
        cap: Duration::from_secs(1),
    }
}

fn address(folder: &Path) -> Option<Address> {
    serde_json::from_slice(&fs::read(folder.join("address")).ok()?).ok()
}

/// Returns the address of the process if it answers with its own mark; a port alone may be anybody's by now.
async fn answers(folder: &Path, uid: Uid) -> Option<Address> {
    let address = address(folder)?;
    let port = address.port?;
    let ask = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
        let mut mark = String::new();
        stream.read_to_string(&mut mark).await.ok()?;
        (mark == uid.to_string()).then_some(address)
    };
    timeout(ANSWER_WITHIN, ask).await.ok().flatten()
}

/// Starts the process, unless it lives. A second one finds the lock taken, and leaves.
async fn boot(folder: &Path, name: &str, uid: Uid) -> Result<(), Error> {
    if answers(folder, uid).await.is_some() {
        return Ok(());
    }
    let program = std::env::current_exe().map_err(|error| failed("find this program", &error))?;
    let started = Command::new(program)
        .arg("pod")
        .args([folder.as_os_str(), name.as_ref()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    let mut process = started.map_err(|error| failed("start it", &error))?;
    // The timeout of the step bounds this.
    loop {
        if answers(folder, uid).await.is_some() {
            return Ok(());
        }
        if let Ok(Some(status)) = process.try_wait()
            && !status.success()
        {
            return Err(Error::transient(
                "lab",
                format!("its process ended with {status}"),
            ));
        }
        sleep(AGAIN).await;
    }
}

/// Ends the process that has the folder's lock, if there is one, and waits until it is gone.
async fn end(folder: &Path) -> io::Result<()> {
    let lock = match File::open(folder.join("lock")) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    while lock.try_lock().is_err() {
        // It may have taken the lock, and not have said yet who it is.
        let pid = address(folder).and_then(|address| Pid::from_raw(address.pid?));
        if let Some(pid) = pid {
            // It may end by itself meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
        sleep(AGAIN).await;
    }
    Ok(())
}
