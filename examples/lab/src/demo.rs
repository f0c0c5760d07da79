//! The demo: one session from its booking to its end, driven from outside, with everything that goes wrong.
//!
//! The program that keeps the lab is a process of its own, for it is killed. What it says is shown once, whatever it
//! repeats; what it did is read from the lab's folder.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant as Moment, sleep_until};
use watershed_managers::CloudEvent;

use crate::keep::Change;
use crate::spec::{Booking, Plan, Session, Worker};
use crate::{Fallible, effects, left};

/// The time between the booking and the lead.
const BEFORE: Duration = Duration::from_secs(1);
/// The margins of the session.
const MARGIN: Duration = Duration::from_secs(5);
/// The time that a demo may take beyond its window. A kill while something is removed costs a second look at it.
const BEYOND: Duration = Duration::from_secs(20);

/// The parts of the session, and what each does.
const FIRST: &str = "monday.shell";
const SECOND: &str = "monday.web";

/// The moments of the story at which the demo does something, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scene {
    /// The first pod runs: it is killed by hand.
    KillPod,
    /// The first pod runs again: an event says that the first part is done, and the program is killed.
    Submit,
    /// The second pod runs.
    Second,
    /// The session is gone: everything is taken down.
    Clear,
    /// Nothing more is to happen.
    End,
}

/// Plays the story of a session of a length. At `kill_at` after the beginning the program is killed besides.
pub(crate) async fn run(length: Duration, kill_at: Vec<Duration>) -> Fallible<()> {
    let lab = Lab::new()?;
    println!(
        "the lab is {}, its session takes {} s",
        lab.0.display(),
        length.as_secs()
    );
    let deadline = BEFORE + MARGIN + length + MARGIN;
    plan(length)?.write(&lab.0)?;
    let mut demo = Demo::new(&lab.0, kill_at)?;
    tokio::select! {
        ended = demo.play() => ended?,
        () = tokio::time::sleep(deadline + BEYOND) => return Err("it did not end in time".into()),
        pressed = tokio::signal::ctrl_c() => {
            pressed?;
            return Err("interrupted".into());
        }
    }
    for line in effects::all(&lab.0) {
        println!("effect  {line}");
    }
    let left = left::all(&lab.0);
    if !left.is_empty() {
        return Err(format!("left behind: {}", left.join(", ")).into());
    }
    println!("nothing is left: no process, no folder, no port");
    Ok(())
}

/// Books a session that begins in a moment.
fn plan(length: Duration) -> Fallible<Plan> {
    let start = Timestamp::now().checked_add(SignedDuration::try_from(BEFORE + MARGIN)?)?;
    let end = start.checked_add(SignedDuration::try_from(length)?)?;
    let local = |at: Timestamp| at.to_zoned(TimeZone::UTC).datetime().to_string();
    Ok(Plan {
        worker: Some(Worker { room: 1 }),
        sessions: vec![Booking {
            name: "monday".to_owned(),
            start: local(start),
            end: local(end),
            lead: MARGIN,
            teardown: MARGIN,
            session: Session {
                parts: vec!["shell".to_owned(), "web".to_owned()],
            },
        }],
    })
}

/// A folder of its own, which goes with it together with the processes that live in it.
struct Lab(PathBuf);

impl Lab {
    fn new() -> Fallible<Self> {
        let path = env::temp_dir().join(format!(
            "lab-{}-{}",
            std::process::id(),
            Timestamp::now().as_nanosecond()
        ));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for line in effects::all(&self.0) {
            if let ["boot", _, pid, _] = line.split(' ').collect::<Vec<_>>().as_slice()
                && left::lives(pid, &self.0)
            {
                kill(pid);
            }
        }
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("lab: can't remove {}: {error}", self.0.display());
        }
    }
}

fn kill(pid: &str) {
    if let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) {
        // It may end by itself meanwhile.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The program that keeps the lab, while it lives.
struct Keeper {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Keeper {
    fn start(lab: &Path) -> Fallible<Self> {
        let mut child = Command::new(env::current_exe()?)
            .arg("keep")
            .arg(lab)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err("it has no input or no output".into());
        };
        Ok(Self {
            child,
            input,
            lines: BufReader::new(output).lines(),
        })
    }
}

/// The story as far as it has come.
struct Demo<'a> {
    lab: &'a Path,
    begin: Instant,
    keeper: Keeper,
    kills: VecDeque<Moment>,
    scene: Scene,
    stages: BTreeMap<String, String>,
    shown: BTreeSet<String>,
    /// The event that was sent, until it is stored.
    unanswered: Option<CloudEvent>,
}

impl<'a> Demo<'a> {
    fn new(lab: &'a Path, mut kill_at: Vec<Duration>) -> Fallible<Self> {
        kill_at.sort_unstable();
        let now = Moment::now();
        Ok(Self {
            lab,
            begin: Instant::now(),
            keeper: Keeper::start(lab)?,
            kills: kill_at.into_iter().map(|after| now + after).collect(),
            scene: Scene::KillPod,
            stages: BTreeMap::new(),
            shown: BTreeSet::new(),
            unanswered: None,
        })
    }

    fn say(&self, line: &str) {
        println!("{:6.2} s  {line}", self.begin.elapsed().as_secs_f64());
    }

    async fn play(&mut self) -> Fallible<()> {
        while self.scene != Scene::End {
            let kill = self.kills.front().copied();
            let kill_time = async {
                match kill {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = kill_time => {
                    self.kills.pop_front();
                    self.restart("at a moment of its own").await?;
                }
                line = self.keeper.lines.next_line() => match line? {
                    Some(line) => self.hear(&line).await?,
                    None => return Err("the program ended by itself".into()),
                },
            }
        }
        drop(self.keeper.child.kill().await);
        Ok(())
    }

    /// Kills the program as a crash would, and starts it again.
    async fn restart(&mut self, when: &str) -> Fallible<()> {
        self.say(&format!("kill -9 of the program, {when}"));
        self.keeper.child.kill().await?;
        self.keeper = Keeper::start(self.lab)?;
        // Nobody knows whether it was stored: sent again, it counts once.
        if let Some(event) = self.unanswered.clone() {
            self.send(&event).await?;
        }
        Ok(())
    }

    async fn send(&mut self, event: &CloudEvent) -> Fallible<()> {
        self.write(&event.to_structured().to_string()).await
    }

    /// A program that was killed meanwhile is asked again when it has been started again.
    async fn write(&mut self, line: &str) -> Fallible<()> {
        self.keeper
            .input
            .write_all(format!("{line}\n").as_bytes())
            .await?;
        Ok(self.keeper.input.flush().await?)
    }

    /// Takes in what the program says.
    async fn hear(&mut self, line: &str) -> Fallible<()> {
        let said: Value = serde_json::from_str(line)?;
        if said["cleared"] == json!(true) {
            self.scene = Scene::End;
        } else if let Some(event) = said["event"].as_str() {
            self.unanswered = None;
            self.say(&format!("event {event} is stored for {} resources", said["told"]));
            if self.scene == Scene::Submit {
                self.scene = Scene::Second;
                self.restart("half-way").await?;
            }
        } else {
            self.see(serde_json::from_value(said)?);
        }
        self.act().await
    }

    fn see(&mut self, seen: Change) {
        let Change { kind, name, change } = seen;
        let detail = match change.detail.as_str() {
            "" => String::new(),
            detail => format!(": {detail}"),
        };
        let line = format!("{kind:8} {name:18} {} -> {}", change.from, change.to);
        self.stages.insert(name, change.to.to_string());
        // A program that was started again says it again.
        if self.shown.insert(format!("{line} {}", change.at.0)) {
            self.say(&format!("{line} ({}{detail})", change.reason.as_str()));
        }
    }

    fn is(&self, name: &str, stage: &str) -> bool {
        self.stages.get(name).is_some_and(|found| found == stage)
    }

    /// Does what the story has next, if its moment has come.
    async fn act(&mut self) -> Fallible<()> {
        let pod = format!("{FIRST}.pod");
        let boots = effects::all(self.lab).into_iter();
        let boots: Vec<String> = boots
            .filter(|line| line.starts_with(&format!("boot {pod} ")))
            .collect();
        match self.scene {
            Scene::KillPod if self.is(&pod, "active") => {
                self.scene = Scene::Submit;
                if let Some(pid) = boots.last().and_then(|line| line.split(' ').nth(2)) {
                    self.say(&format!("kill -9 of the process of {pod}"));
                    kill(pid);
                }
            }
            Scene::Submit if boots.len() > 1 && self.is(&pod, "active") && self.unanswered.is_none() => {
                let event = CloudEvent::new("1", "/demo", "lab.submitted").about(FIRST);
                self.say(&format!("an event says that {FIRST} is submitted"));
                self.unanswered = Some(event.clone());
                self.send(&event).await?;
            }
            Scene::Second if self.is(&format!("{SECOND}.pod"), "active") => {
                self.scene = Scene::Clear;
                self.say(&format!("{SECOND} is open, and waits for the end of the session"));
            }
            Scene::Clear if self.is("monday", "gone") => {
                Plan::default().write(self.lab)?;
                self.write("plan").await?;
            }
            _ => {}
        }
        Ok(())
    }
}
