//! Requests that no program of ours sends: each is refused with a code, and the owner goes on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use watershed::Code;
use watershed::api::operations::{Info, TABLE};
use watershed::api::{Problem, Reply};

use crate::cases::{case, request};
use crate::project::{Owner, Place};

/// Longer than any refusal takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);
/// The longest request that an owner reads.
const LONGEST: usize = 16 << 20;
/// Huge requests that are sent at once.
const AT_ONCE: usize = 4;
/// More than any problem has to say.
const LONGEST_MESSAGE: usize = 64 << 10;

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts panics, wherever they are.
fn count_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        usual(panic);
    }));
}

/// Sends bytes after a greeting, and returns the last reply; none if the connection was closed without one.
async fn send(owner: &Owner, body: &[u8], ends: bool) -> Option<Reply> {
    let stream = UnixStream::connect(owner.address.path())
        .await
        .expect("it listens");
    let (read, mut write) = stream.into_split();
    let hello = json!({"program": "watershed", "version": env!("CARGO_PKG_VERSION")});
    let body = [hello.to_string().as_bytes(), b"\n", body].concat();
    let sending = tokio::spawn(async move {
        // An owner that has read enough closes the connection.
        let _ = write.write_all(&body).await;
        if ends {
            let _ = write.shutdown().await;
        }
        write
    });
    let mut lines = BufReader::new(read).lines();
    let reading = async {
        let mut last = None;
        let mut is_greeted = false;
        while let Ok(Some(line)) = lines.next_line().await {
            if std::mem::replace(&mut is_greeted, true) {
                last = Some(serde_json::from_str(&line).expect("a reply"));
            }
        }
        last
    };
    let last = tokio::time::timeout(LONG, reading).await;
    sending.abort();
    last.expect("the owner answers or closes the connection")
}

#[track_caller]
fn refusal(reply: Option<Reply>, story: &str) -> Problem {
    match reply {
        Some(Reply::Refused(problem)) => {
            assert!(
                problem.message.len() <= LONGEST_MESSAGE,
                "{story}: {} bytes",
                problem.message.len()
            );
            problem
        }
        other => panic!("{story}: {other:?}"),
    }
}

fn line_of(line: &Info, input: &Value) -> Vec<u8> {
    (json!({ line.name: input }).to_string() + "\n").into_bytes()
}

/// Inputs of wrong types: as a whole, and in each of its keys.
fn wrong_types(input: &Value) -> Vec<Value> {
    let mut wrong = vec![json!("text"), json!(7), json!([7]), Value::Null];
    for (key, value) in input.as_object().into_iter().flatten() {
        let mut other = input.clone();
        other[key] = match value {
            Value::Array(_) => json!(7),
            _ => json!([[]]),
        };
        wrong.push(other);
    }
    wrong
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_types_and_unknown_keys_are_bad_arguments() {
    count_panics();
    let place = Place::new(&[]);
    let owner = place.owned().await;
    for line in TABLE {
        let input = case(line).0;
        let mut unknown = input.clone();
        unknown["unknown"] = json!(1);
        for wrong in wrong_types(&input).into_iter().chain([unknown]) {
            let story = format!("{}: {wrong}", line.name);
            let problem = refusal(send(&owner, &line_of(line, &wrong), false).await, &story);
            assert_eq!(problem.code, Code::BadArgument, "{story}: {problem:?}");
        }
    }
    for strange in [
        "",
        "7",
        "\"gc\"",
        "{}",
        "{\"drop-everything\":{}}",
        "\u{0}",
        &"[".repeat(100_000),
    ] {
        let body = format!("{strange}\n");
        let problem = refusal(send(&owner, body.as_bytes(), false).await, strange);
        assert_eq!(problem.code, Code::BadArgument, "{strange}");
    }
    goes_on(owner, &place).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_requests_are_refused() {
    count_panics();
    let place = Place::new(&[]);
    let owner = place.owned().await;
    // No name, and as SQL no statement: the comment has no end.
    let huge = format!("/*{}", "x".repeat(LONGEST - (4 << 10)));
    let refusals = TABLE.iter().map(|line| {
        let (owner, mut input) = (&owner, case(line).0);
        // What is a language of its own is read with patience: by the engine, and by its names.
        let is_language = matches!(line.name, "query" | "metrics");
        if is_language || !put(&mut input, "HUGE") {
            input["unknown"] = json!("HUGE");
        }
        let body = String::from_utf8(line_of(line, &input))
            .expect("it is JSON")
            .replace("HUGE", &huge);
        async move {
            let problem = refusal(send(owner, body.as_bytes(), false).await, line.name);
            let is_ours = matches!(problem.code, Code::Defect | Code::Stopping);
            assert!(!is_ours, "{}: {problem:?}", line.name);
        }
    });
    futures::stream::iter(refusals)
        .buffer_unordered(AT_ONCE)
        .collect::<()>()
        .await;
    let beyond = vec![b' '; LONGEST + 1];
    let problem = refusal(send(&owner, &beyond, false).await, "more than is read");
    assert_eq!(problem.code, Code::BadArgument);
    goes_on(owner, &place).await;
}

/// Puts a text in the place of the first one of an input, a path where that is one. Returns false if there is none.
pub(crate) fn put(input: &mut Value, text: &str) -> bool {
    match input {
        Value::String(old) => {
            text.clone_into(old);
            true
        }
        Value::Array(values) => values.iter_mut().any(|value| put(value, text)),
        Value::Object(fields) => fields.iter_mut().any(|(key, value)| match key.as_str() {
            "file" if value.is_string() => put(value, &format!("/nowhere/{text}")),
            _ => put(value, text),
        }),
        _ => false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_cut_off_are_not_carried_out() {
    count_panics();
    let place = Place::new(&[]);
    let owner = place.owned().await;
    for line in TABLE {
        let whole = line_of(line, &case(line).0);
        for cut in [1, whole.len() / 2, whole.len() - 2] {
            let story = format!("{} cut at {cut}", line.name);
            let problem = refusal(send(&owner, &whole[..cut], true).await, &story);
            assert_eq!(problem.code, Code::BadArgument, "{story}");
        }
        // Nobody waits for the answer.
        let mut stream = UnixStream::connect(owner.address.path())
            .await
            .expect("it listens");
        stream
            .write_all(&whole[..whole.len() / 2])
            .await
            .expect("it listens");
    }
    goes_on(owner, &place).await;
}

/// Sees that the owner answers as if nothing had been.
async fn goes_on(owner: Owner, place: &Place) {
    let status = TABLE.iter().find(|line| line.name == "status").expect("a line");
    let told = owner.ask(&request(status, place)).await;
    let resources = &told.end().expect("an answer")["resources"];
    assert!(
        resources.as_array().is_some_and(|all| all.len() > 10),
        "{resources}"
    );
    owner.close().await;
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
}
