//! Commands and HTTP calls for real: programs of the shell, servers on loopback.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use watershed_controller::reconciler::ErrorKind;
use watershed_controller::{Error, Resource, Timestamp, Uid, json_message};
use watershed_outside::program::MARK_VARIABLE;

use super::{ANSWER_MAX, Answer, Call, Commands, Http, Request};
use crate::{CloudEvent, Desired, Done, Manager, Observation, Stage, Stages, Step, View, Wanted};

/// Long enough for anything that is to end by itself.
const LONG: Duration = Duration::from_secs(60);

#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Nothing {}
json_message!(Nothing, format = 1);

struct Sketched;

impl Manager for Sketched {
    const KIND: &'static str = "sketched";
    type Spec = Nothing;
    type Details = Nothing;

    fn stages(&self, _: &Nothing) -> Stages {
        Stages::new(["absent", "active", "gone"]).unwrap()
    }

    async fn observe(&self, _: &View<Self>) -> Result<Observation<Nothing>, Error> {
        Ok(Observation::Absent)
    }

    async fn act(&self, _: &View<Self>, step: &Step) -> Result<Done, Error> {
        Ok(Done::At(step.to.clone()))
    }
}

fn call(uid: Uid) -> Call {
    let wanted = Wanted::new(Desired::stage("active"), Nothing {});
    let stages = Sketched.stages(&Nothing {});
    let mut view = View::<Sketched>::sketch("monday", uid, wanted, stages, "absent".into());
    view.action = "active".into();
    view.event = Some(CloudEvent::new("1", "/lab", "lab.go").about("monday"));
    Call::new(&view, json!({"image": "shell"}), Map::new(), true)
}

/// A project's root with a folder for notes.
struct Place {
    folder: TempDir,
    commands: Commands,
    uid: Uid,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let commands = Commands::new(folder.path(), folder.path().join("notes")).unwrap();
        let uid = Resource::fresh_uid();
        Self {
            folder,
            commands,
            uid,
        }
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    async fn run(&self, script: &str) -> Result<Answer, Error> {
        let command = ["sh", "-c", script].map(str::to_owned);
        let environment = BTreeMap::from([("MODE".to_owned(), "test".to_owned())]);
        let asked = call(self.uid);
        let run = self.commands.run(&command, &environment, self.uid, &asked);
        tokio::time::timeout(LONG, run).await.expect("it ends")
    }

    fn notes(&self) -> usize {
        fs::read_dir(self.root().join("notes")).unwrap().count()
    }

    /// Waits for a file of a process that runs.
    async fn appears(&self, name: &str) -> String {
        let begun = Instant::now();
        loop {
            match fs::read_to_string(self.root().join(name)) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                _ => assert!(begun.elapsed() < LONG, "{name} does not appear"),
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Waits until a process is gone, or only its exit status is left.
fn ends(pid: &str) {
    let begun = Instant::now();
    while let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) {
        if stat
            .rsplit_once(')')
            .is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
        {
            return;
        }
        assert!(begun.elapsed() < LONG, "{pid} lives on");
        std::thread::yield_now();
    }
}

fn is_alive(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

#[tokio::test]
async fn a_command_reads_its_call_and_its_answer_is_read() {
    let place = Place::new();
    let answer = place
        .run(r#"cat > call.json; env > env; echo "for people" >&2; echo '{"stage":"active","data":{"port":8080},"message":"up"}'"#)
        .await
        .unwrap();
    assert_eq!(answer.done(&"active".into()).unwrap(), Done::At("active".into()));
    let data = json!({"port": 8080}).as_object().cloned();
    assert_eq!((answer.data, answer.message.as_deref()), (data, Some("up")));
    let call: Value =
        serde_json::from_str(&fs::read_to_string(place.root().join("call.json")).unwrap()).unwrap();
    let expected = json!({
        "version": 1,
        "resource": {"name": "monday", "uid": place.uid.to_string(), "epoch": 0, "values": {"image": "shell"}},
        "desired": "active", "stage": "absent", "step": "active", "attempt": 1, "force": false,
        "data": {}, "parts": [],
        "event": {"specversion": "1.0", "id": "1", "source": "/lab", "type": "lab.go", "subject": "monday"},
    });
    assert_eq!(call, expected);
    let environment = fs::read_to_string(place.root().join("env")).unwrap();
    let known = [
        "PATH",
        "HOME",
        "LANG",
        "MODE",
        MARK_VARIABLE,
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
    ];
    for line in environment.lines() {
        let name = line.split('=').next().unwrap();
        assert!(known.contains(&name), "{line} was passed on");
    }
    assert_eq!(place.notes(), 0);
}

#[tokio::test]
async fn an_exit_code_means_the_same_everywhere() {
    let place = Place::new();
    let to = Stage::from("active");
    assert_eq!(
        place.run("true").await.unwrap().done(&to).unwrap(),
        Done::At(to.clone())
    );
    let table = [
        (
            "echo one >&2; echo no capacity >&2; exit 1",
            ErrorKind::Transient,
            "exit 1: no capacity",
            None,
        ),
        ("exit 75", ErrorKind::Transient, "exit 75", None),
        (
            r#"echo '{"requeue_after": "30s"}'; exit 75"#,
            ErrorKind::Transient,
            "exit 75",
            Some(30),
        ),
        (
            r#"echo '{"requeue_after": 2}'; exit 75"#,
            ErrorKind::Transient,
            "exit 75",
            Some(2),
        ),
        (
            r#"echo '{"error": {"message": "no"}}'; exit 3"#,
            ErrorKind::Transient,
            "no",
            None,
        ),
        (
            r#"echo '{"error": {"message": "never", "permanent": true}}'"#,
            ErrorKind::Permanent,
            "never",
            None,
        ),
        ("kill -9 $$", ErrorKind::Transient, "signal: 9 (SIGKILL)", None),
        (
            "echo noise; echo why >&2; exit 2",
            ErrorKind::Transient,
            "exit 2: why",
            None,
        ),
    ];
    for (script, kind, message, wait) in table {
        let error = match place.run(script).await {
            Err(error) => error,
            Ok(answer) => answer.done(&to).expect_err(script),
        };
        assert_eq!((error.kind, &*error.message), (kind, message), "{script}");
        assert_eq!(error.retry_after, wait.map(Duration::from_secs), "{script}");
    }
}

#[tokio::test]
async fn answers_say_how_a_step_goes_on() {
    let place = Place::new();
    let to = Stage::from("active");
    let done = place
        .run(r#"echo '{"requeue_after": "1m30s"}'"#)
        .await
        .unwrap()
        .done(&to);
    assert_eq!(done.unwrap(), Done::RequeueAfter(Duration::from_secs(90)));
    let script = r#"echo '{"await": {"type": "lab.done", "until": "2027-03-01T00:00:00Z"}}'"#;
    let Done::Await { event, until } = place.run(script).await.unwrap().done(&to).unwrap() else {
        panic!("it waits for an event");
    };
    assert_eq!(
        (event.kind.as_str(), until),
        ("lab.done", Timestamp(1_803_859_200_000))
    );
    for bad in [
        "echo '{\"requeue_after\": \"soon\"}'",
        "echo '{\"requeue_after\": -1}'",
        "echo '{\"await\": {\"type\": \"x\", \"until\": \"tomorrow\"}}'",
    ] {
        let error = place.run(bad).await.unwrap().done(&to).expect_err(bad);
        assert_eq!(&*error.code, "bad-answer", "{bad}");
    }
    let unstaged = place
        .run("true")
        .await
        .unwrap()
        .observation()
        .expect_err("no stage");
    assert_eq!(&*unstaged.code, "bad-answer");
}

#[tokio::test]
async fn output_that_is_no_answer_fails_and_is_bounded() {
    let place = Place::new();
    for script in [
        "echo hello",
        "echo '[1]'",
        "echo '{\"stages\": 1}'",
        "echo '{}{}'",
    ] {
        let error = place.run(script).await.expect_err(script);
        assert_eq!(&*error.code, "bad-answer", "{script}");
    }
    let error = place
        .run("head -c 10000000 /dev/zero | tr '\\0' x")
        .await
        .unwrap_err();
    assert_eq!(
        &*error.message,
        format!("its answer is longer than {ANSWER_MAX} bytes")
    );
    let error = place
        .run("head -c 10000000 /dev/zero | tr '\\0' x >&2; exit 1")
        .await
        .unwrap_err();
    assert!(
        error.message.len() < 600,
        "{} characters of a line",
        error.message.len()
    );
    assert_eq!(
        place.run("exec yes >&2 & kill $!; wait; true").await.unwrap(),
        Answer::default()
    );
}

#[tokio::test]
async fn of_a_command_that_takes_too_long_nothing_survives() {
    let place = Place::new();
    let script = "sleep 1000 & echo $! > child; echo $$ > leader; wait";
    let command = ["sh", "-c", script].map(str::to_owned);
    let none = BTreeMap::new();
    let asked = call(place.uid);
    let run = place.commands.run(&command, &none, place.uid, &asked);
    let pids = async {
        let child = place.appears("child").await;
        (child, place.appears("leader").await)
    };
    let (child, leader) = tokio::select! {
        _ = run => panic!("it does not end by itself"),
        pids = pids => pids,
    };
    ends(&child);
    ends(&leader);
    assert_eq!(place.notes(), 0);
}

#[tokio::test]
async fn what_a_command_leaves_running_on_purpose_stays_and_holds_nobody_up() {
    let place = Place::new();
    let begun = Instant::now();
    // The child keeps standard output open.
    place.run("sleep 1000 & echo $! > child").await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30));
    let child = place.appears("child").await;
    assert!(is_alive(&child));
    let pid = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    // Of a failed attempt nothing stays.
    fs::remove_file(place.root().join("child")).unwrap();
    place
        .run("sleep 1000 & echo $! > child; exit 1")
        .await
        .unwrap_err();
    ends(&place.appears("child").await);
}

#[tokio::test]
async fn a_command_that_a_crashed_program_left_is_ended_by_the_next_call() {
    let place = Place::new();
    // As a program that dies leaves it: the command runs, and its note is there.
    let mut left = std::process::Command::new("sleep");
    let mut child = left.arg("1000").env(MARK_VARIABLE, "left").spawn().unwrap();
    let notes = place.root().join("notes");
    std::mem::forget(super::orphans::Note::write(&notes, place.uid, "left").unwrap());
    // A note of what has ended meanwhile does no harm.
    let other = Resource::fresh_uid();
    std::mem::forget(super::orphans::Note::write(&notes, other, "gone").unwrap());
    super::orphans::end(&notes, other);
    place.run("true").await.unwrap();
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    assert_eq!(place.notes(), 0);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_not_tried_again() {
    let place = Place::new();
    let none = BTreeMap::new();
    for command in [
        vec![],
        vec!["lab/pod".to_owned()],
        vec!["no-such-program-anywhere".to_owned()],
    ] {
        let error = place
            .commands
            .run(&command, &none, place.uid, &call(place.uid))
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Permanent, "{command:?}");
    }
}

/// Answers every connection with the same bytes, and returns the address. It ends with the test's runtime.
async fn server(answer: Vec<u8>, is_hanging: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut request = Vec::new();
                let mut chunk = [0; 4096];
                // A call's document ends with its attempt's fields; all of it comes at once on loopback.
                while !request.ends_with(b"}") {
                    match socket.read(&mut chunk).await {
                        Ok(count @ 1..) => request.extend_from_slice(&chunk[..count]),
                        _ => return,
                    }
                }
                let _ = socket.write_all(&answer).await;
                if is_hanging {
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    format!("http://{address}/")
}

fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}")
        .into_bytes()
}

async fn post(url: &str) -> Result<Answer, Error> {
    let request = Request {
        url: url.to_owned(),
        ..Request::default()
    };
    let (http, call) = (
        Http::new(Default::default()).unwrap(),
        call(Resource::fresh_uid()),
    );
    tokio::time::timeout(LONG, http.call(&request, &call))
        .await
        .expect("it ends")
}

#[tokio::test]
async fn a_status_means_the_same_everywhere() {
    use ErrorKind::{Permanent, Transient};
    let ok = post(&server(response("200 OK", "", r#"{"data":{"a":1}}"#), false).await)
        .await
        .unwrap();
    assert_eq!(ok.data, json!({"a": 1}).as_object().cloned());
    let nothing = post(&server(response("204 No Content", "", ""), false).await)
        .await
        .unwrap();
    assert_eq!(nothing, Answer::default());
    let going = post(&server(response("202 Accepted", "", r#"{"requeue_after": 5}"#), false).await).await;
    let done = going.unwrap().done(&"active".into()).unwrap();
    assert_eq!(done, Done::RequeueAfter(Duration::from_secs(5)));
    let table = [
        ("202 Accepted", "", Transient, None),
        ("408 Request Timeout", "", Transient, None),
        ("425 Too Early", "", Transient, None),
        ("429 Too Many Requests", "retry-after: 7\r\n", Transient, Some(7)),
        (
            "429 Too Many Requests",
            "retry-after: 999999999\r\n",
            Transient,
            Some(3600),
        ),
        (
            "429 Too Many Requests",
            "retry-after: Wed, 21 Oct 2015 07:28:00 GMT\r\n",
            Transient,
            Some(0),
        ),
        ("429 Too Many Requests", "retry-after: soon\r\n", Transient, None),
        ("500 Internal Server Error", "", Transient, None),
        (
            "503 Service Unavailable",
            "retry-after: 120\r\n",
            Transient,
            Some(120),
        ),
        ("400 Bad Request", "", Permanent, None),
        ("404 Not Found", "", Permanent, None),
        ("302 Found", "location: http://127.0.0.1:1/\r\n", Permanent, None),
        (
            "307 Temporary Redirect",
            "location: http://127.0.0.1:1/\r\n",
            Permanent,
            None,
        ),
    ];
    for (status, headers, kind, wait) in table {
        let error = post(&server(response(status, headers, "why\n"), false).await)
            .await
            .expect_err(status);
        assert_eq!(error.kind, kind, "{status}");
        assert_eq!(
            error.retry_after,
            wait.map(Duration::from_secs),
            "{status} {headers}"
        );
        assert!(
            error.message.contains(&status[..3]),
            "{status}: {}",
            error.message
        );
    }
}

#[tokio::test]
async fn answers_of_servers_are_bounded_and_read_strictly() {
    let not_json = post(&server(response("200 OK", "", "<html>hello</html>"), false).await)
        .await
        .unwrap_err();
    assert_eq!(
        (&*not_json.code, not_json.details.as_deref()),
        ("bad-answer", Some("<html>hello</html>"))
    );
    let huge = response("200 OK", "", &"x".repeat(10_000_000));
    let error = post(&server(huge, false).await).await.unwrap_err();
    assert_eq!(
        &*error.message,
        format!("its answer is longer than {ANSWER_MAX} bytes")
    );
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_vec();
    assert_eq!(
        post(&server(cut, false).await).await.unwrap_err().kind,
        ErrorKind::Transient
    );
    // Nobody listens on a port that was just given back.
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let refused = post(&format!("http://{closed}/secret")).await.unwrap_err();
    assert!(
        refused.message.starts_with("can't connect"),
        "{}",
        refused.message
    );
    assert!(!refused.message.contains("secret"), "{}", refused.message);
    for bad in ["", "no address", "file:///etc/passwd"] {
        assert_eq!(post(bad).await.unwrap_err().kind, ErrorKind::Permanent, "{bad}");
    }
}

#[tokio::test]
async fn a_server_that_hangs_is_left_when_the_call_is_dropped() {
    let url = server(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{".to_vec(), true).await;
    let request = Request {
        url,
        ..Request::default()
    };
    let (http, call) = (
        Http::new(Default::default()).unwrap(),
        call(Resource::fresh_uid()),
    );
    let hung = tokio::time::timeout(Duration::from_millis(300), http.call(&request, &call)).await;
    assert!(hung.is_err(), "it hangs until it is dropped");
}
