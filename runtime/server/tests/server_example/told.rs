//! Events over HTTP: the vectors of the specification, the stream of a tree, and kills of the server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use watershed::{Options, Runtime};
use watershed_controller::{Resource, Select};
use watershed_managers::{EVENT_KIND, Received, record_of};

use crate::routes::{Projects, routes};
use crate::{DEADLINE, Site};

/// A resource that an event brings to its third stage. Its part does all that there is to do, which is nothing.
const THING: &str = "type: managed
stages: [absent, active, done, gone]
desired: active
parts: [{name: low}]
on_events: [{type: com.example.someevent, desired: done}, {type: \"look.*\"}]
";

/// Sends a request with a body, and returns the status and the answer. None if the server went away meanwhile.
async fn post(port: u16, headers: &[(&str, &str)], body: &[u8]) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let mut request = "POST /shop/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n".to_owned();
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    stream.write_all(request.as_bytes()).await.ok()?;
    // A server that has read enough to refuse it does not read on.
    let _ = stream.write_all(body).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let text = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, serde_json::from_str(body).unwrap_or(Value::Null)))
}

/// The attributes of the examples of the specification, about our thing.
const ATTRIBUTES: [(&str, &str); 5] = [
    ("ce-specversion", "1.0"),
    ("ce-type", "com.example.someevent"),
    ("ce-id", "A234-1234-1234"),
    ("ce-source", "https://github.com/cloudevents/spec/pull"),
    ("ce-subject", "thing"),
];

/// A request, and what is answered to it: the status, and a word of the answer.
struct Vector {
    what: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
    status: u16,
    says: &'static str,
}

fn vector(
    what: &'static str,
    headers: &[(&'static str, &'static str)],
    body: &[u8],
    (status, says): (u16, &'static str),
) -> Vector {
    Vector {
        what,
        headers: headers.to_vec(),
        body: body.to_vec(),
        status,
        says,
    }
}

/// One event in the structured mode, with some attributes put or, by null, left out.
fn structured(changes: &Value) -> Value {
    let mut event = json!({
        "specversion": "1.0", "type": "com.example.someevent", "source": "/mycontext", "id": "C234-1234-1234",
        "subject": "thing", "time": "2018-04-05T17:31:00Z", "comexampleextension1": "value",
        "comexampleothervalue": 5, "unsetextension": null, "datacontenttype": "application/json",
        "data": {"appinfoA": "abc", "appinfoB": 123, "appinfoC": true}
    });
    for (name, value) in changes.as_object().unwrap() {
        event[name] = value.clone();
    }
    event
}

fn binary_vectors() -> Vec<Vector> {
    let with = |more: &[(&'static str, &'static str)]| [&ATTRIBUTES[..], more].concat();
    let json_data = ("content-type", "application/json; charset=utf-8");
    let mut all = vec![
        vector("binary with JSON", &with(&[json_data]), b"{\"a\": 1}", (202, "")),
        vector("binary without data", &ATTRIBUTES, b"", (202, "")),
        vector(
            "binary with bytes",
            &with(&[("content-type", "image/png")]),
            b"\x89PNG\xff",
            (202, ""),
        ),
        vector(
            "binary with a text",
            &with(&[("content-type", "text/plain")]),
            b"hello",
            (202, ""),
        ),
        vector(
            "binary with an extension, percent-encoded and quoted",
            &with(&[
                ("ce-comexampleext", "\"Euro%20%E2%82%AC\""),
                ("ce-time", "2018-04-05T03:56:24.5Z"),
            ]),
            b"",
            (202, ""),
        ),
        vector(
            "binary with broken JSON",
            &with(&[json_data]),
            b"{",
            (400, "can't be read"),
        ),
        vector(
            "a time that is none",
            &with(&[("ce-time", "soon")]),
            b"",
            (400, "\"time\""),
        ),
        vector(
            "bad percent-encoding",
            &with(&[("ce-ext", "%E2%82")]),
            b"",
            (400, "\"ext\""),
        ),
        vector(
            "an extension of wrong letters",
            &with(&[("ce-my_ext", "x")]),
            b"",
            (400, "my_ext"),
        ),
        vector("no event at all", &[], b"hello", (400, "")),
    ];
    for left_out in ["specversion", "type", "id", "source"] {
        let header = format!("ce-{left_out}");
        let headers: Vec<_> = ATTRIBUTES
            .into_iter()
            .filter(|(name, _)| *name != header)
            .collect();
        all.push(vector(
            "a required attribute is missing",
            &headers,
            b"",
            (400, left_out),
        ));
    }
    all
}

fn json_vectors() -> Vec<Vector> {
    let one = [("content-type", "application/cloudevents+json; charset=UTF-8")];
    let batch = [("Content-Type", "application/cloudevents-batch+json")];
    let of = |changes: Value| structured(&changes).to_string().into_bytes();
    let list = |events: Value| events.to_string().into_bytes();
    let whole = structured(&json!({}));
    vec![
        vector("structured", &one, &of(json!({})), (202, "")),
        vector(
            "structured with a text",
            &one,
            &of(json!({"data": "text"})),
            (202, ""),
        ),
        vector(
            "structured with bytes",
            &one,
            &of(json!({"data": null, "data_base64": "/wA="})),
            (400, "data_base64"),
        ),
        vector(
            "another version",
            &one,
            &of(json!({"specversion": "0.3"})),
            (400, "specversion"),
        ),
        vector(
            "an id that is no text",
            &one,
            &of(json!({"id": 7})),
            (400, "\"id\""),
        ),
        vector(
            "an empty source",
            &one,
            &of(json!({"source": ""})),
            (400, "source"),
        ),
        vector(
            "a type that is null",
            &one,
            &of(json!({"type": null})),
            (400, "\"type\""),
        ),
        vector(
            "a schema that is no URI",
            &one,
            &of(json!({"dataschema": "x"})),
            (400, "dataschema"),
        ),
        vector(
            "an extension that is an object",
            &one,
            &of(json!({"ext": {"a": 1}})),
            (400, "\"ext\""),
        ),
        vector(
            "a list where one is expected",
            &one,
            &list(json!([whole])),
            (400, "can't be read"),
        ),
        vector("a batch of none", &batch, b"[]", (202, "")),
        vector(
            "a batch of two",
            &batch,
            &list(json!([whole, structured(&json!({"id": "2"}))])),
            (202, ""),
        ),
        vector(
            "a batch with a bad one",
            &batch,
            &list(json!([whole, {"id": "3"}])),
            (400, "specversion"),
        ),
        vector(
            "a batch that is no list",
            &batch,
            &of(json!({})),
            (400, "can't be read"),
        ),
        vector(
            "too many",
            &batch,
            &list(json!(vec![whole.clone(); 1_001])),
            (413, ""),
        ),
        vector(
            "too large",
            &one,
            &vec![b' '; 256 * 1024 + 1],
            (413, "larger than"),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_taken_in_by_the_words_of_their_specification() {
    let site = Site::of(&[("thing.yaml", THING)]).await;
    for vector in binary_vectors().into_iter().chain(json_vectors()) {
        let what = vector.what;
        let answer = post(site.address.port(), &vector.headers, &vector.body).await;
        let (status, answer) = answer.unwrap_or_else(|| panic!("{what}: no answer"));
        assert_eq!(status, vector.status, "{what}: {answer}");
        let said = answer["message"].as_str().unwrap_or_default();
        assert!(said.contains(vector.says), "{what}: {said}");
    }
    let told = post(site.address.port(), &ATTRIBUTES, b"").await.unwrap();
    assert_eq!(told, (202, json!({"events": 1, "told": 1})));
    let elsewhere: Vec<_> = ATTRIBUTES
        .into_iter()
        .filter(|(name, _)| *name != "ce-subject")
        .collect();
    let told = post(site.address.port(), &elsewhere, b"").await.unwrap();
    assert_eq!(
        told,
        (202, json!({"events": 1, "told": 0})),
        "it is about nothing of ours"
    );
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_of_a_tree_see_each_change_of_it_until_it_is_gone() {
    let site = Site::of(&[("thing.yaml", THING), ("other.yaml", THING)]).await;
    let (status, _) = site.ask("GET", "/shop/trees/nothing").await;
    assert!(status.contains("404"), "{status}");
    let mut lines = site.send("GET", "/shop/trees/thing").await.lines();
    let mut next = async || {
        let next = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if let Some(data) = line.strip_prefix("data: ") {
                    return serde_json::from_str::<Value>(data).unwrap();
                }
                if line == "event: gone" {
                    break;
                }
            }
            Value::Null
        };
        tokio::time::timeout(DEADLINE, next).await.unwrap()
    };
    let first = next().await;
    assert_eq!(
        (&first["stage"], &first["health"]),
        (&json!("active"), &json!("there")),
        "{first}"
    );
    assert_eq!(first["parts"][0]["name"], "thing.low", "{first}");
    assert_eq!(first["counts"], json!({"active": 2}));

    // Of another resource nothing is shown; of this one each change is.
    let about = |subject| {
        ATTRIBUTES.map(|(name, value)| {
            if name == "ce-subject" {
                (name, subject)
            } else {
                (name, value)
            }
        })
    };
    for subject in ["other", "thing"] {
        let (status, _) = post(site.address.port(), &about(subject), b"").await.unwrap();
        assert_eq!(status, 202);
    }
    let mut last = next().await;
    while last["stage"] != "done" {
        assert_eq!(last["name"], "thing");
        last = next().await;
    }
    let shop = site.projects.find("shop").unwrap();
    shop.controller()
        .delete(watershed_controller::Key::new("managed", "thing"))
        .await
        .unwrap();
    while !next().await.is_null() {}
    site.stop().await;
}

/// The variable with the folder of a server that is to be killed.
const SERVE: &str = "WATERSHED_TEST_SERVE";
/// The things that events are about: of each the newest 64 are kept.
const THINGS: usize = 20;
const EVENTS: usize = 1_000;
const SENDERS: usize = 8;
const KILLS: usize = 4;

/// Serves the project in a folder on a free port, which it writes down, until it is killed. No test by itself.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the server of the test after this one, in a process of its own"]
async fn serve_until_the_end() {
    let Some(folder) = std::env::var_os(SERVE).map(PathBuf::from) else {
        return;
    };
    let instance = Runtime::new()
        .open(Options::new(folder.join("shop")))
        .await
        .unwrap();
    let mut projects = Projects::default();
    projects.add(instance);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    fs::write(folder.join("port.new"), port.to_string()).unwrap();
    fs::rename(folder.join("port.new"), folder.join("port")).unwrap();
    axum::serve(listener, routes(projects)).await.unwrap();
}

fn serve(folder: &Path) -> Child {
    let _ = fs::remove_file(folder.join("port"));
    Command::new(std::env::current_exe().unwrap())
        .args(["told::serve_until_the_end", "--exact", "--ignored"])
        .env(SERVE, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Sends its share of the events, each until it is answered with 202, and some of them once more.
async fn send(sender: usize, folder: PathBuf, taken: Arc<Mutex<Vec<usize>>>) {
    for number in (sender..EVENTS).step_by(SENDERS) {
        let (id, subject) = (number.to_string(), format!("t{}", number % THINGS));
        let mut headers = vec![
            ("ce-specversion", "1.0"),
            ("ce-source", "/senders"),
            ("ce-type", "look.here"),
        ];
        headers.extend([("ce-id", id.as_str()), ("ce-subject", subject.as_str())]);
        let mut left = 1 + usize::from(number % 10 == 0);
        while left > 0 {
            let port = fs::read_to_string(folder.join("port"))
                .ok()
                .and_then(|port| port.parse().ok());
            let answer = match port {
                Some(port) => post(port, &headers, b"").await,
                None => None,
            };
            match answer {
                Some((202, told)) => {
                    assert_eq!(told["told"], 1, "{told}");
                    left -= 1;
                }
                Some((503, _)) | None => sleep(Duration::from_millis(20)).await,
                Some(other) => panic!("{other:?}"),
            }
        }
        taken.lock().unwrap().push(number);
    }
}

/// Kills the server whenever a share of the events is taken.
async fn kill_often(folder: &Path, taken: &Mutex<Vec<usize>>) -> Child {
    let mut server = serve(folder);
    for kill in 1..=KILLS {
        while taken.lock().unwrap().len() < EVENTS * kill / (KILLS + 1) {
            sleep(Duration::from_millis(2)).await;
        }
        server.kill().unwrap();
        server.wait().unwrap();
        server = serve(folder);
    }
    server
}

/// M12.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_with_202_counts_exactly_once_in_spite_of_kills() {
    let folder = tempfile::tempdir().unwrap();
    let shop = folder.path().join("shop");
    fs::create_dir_all(&shop).unwrap();
    fs::write(shop.join("watershed.yaml"), "").unwrap();
    for number in 0..THINGS {
        fs::write(shop.join(format!("t{number}.yaml")), THING).unwrap();
    }
    // All things are there before the first event.
    let instance = Runtime::new().open(Options::new(&shop)).await.unwrap();
    instance.controller().wait_until_idle(DEADLINE).await.unwrap();
    instance.close(DEADLINE).await.unwrap();
    drop(instance);

    let taken = Arc::new(Mutex::new(Vec::new()));
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| tokio::spawn(send(sender, folder.path().to_owned(), Arc::clone(&taken))))
        .collect();
    let killing = tokio::time::timeout(DEADLINE, kill_often(folder.path(), &taken));
    let mut server = killing.await.expect("senders go on");
    for sender in senders {
        sender.await.unwrap();
    }
    server.kill().unwrap();
    server.wait().unwrap();

    // The last ones are heard of by the next program.
    let instance = Runtime::new().open(Options::new(&shop)).await.unwrap();
    instance.controller().wait_until_idle(DEADLINE).await.unwrap();
    let (mut stored, mut counted) = (BTreeMap::new(), BTreeSet::new());
    for found in instance.controller().list(Select::all()).resources {
        let row = &found.row;
        if row.kind.as_str() == EVENT_KIND {
            let received = Resource::spec_of::<Received>(row).unwrap();
            let number: usize = received.event.id.parse().unwrap();
            assert_eq!(stored.insert(row.uid, number), None);
        } else if let Some(record) = row.state.as_deref().and_then(|state| record_of(state).ok()) {
            for uid in record.handled {
                assert!(counted.insert(uid), "{uid} has counted twice");
            }
        }
    }
    let numbers: BTreeSet<usize> = stored.values().copied().collect();
    assert_eq!(
        (stored.len(), numbers.len()),
        (EVENTS, EVENTS),
        "each is stored once"
    );
    assert_eq!(taken.lock().unwrap().len(), EVENTS);
    assert_eq!(counted, stored.keys().copied().collect(), "each has counted");
    instance.close(DEADLINE).await.unwrap();
}
