//! Tests of the socket with both ends, without a project.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use watershed_api::answers::RowsEnd;
use watershed_api::documents::Column;
use watershed_api::operations::ops;
use watershed_api::request::QueryRequest;
use watershed_api::{Code, Operation as _, Problem};

use super::*;
use crate::state_folder::StateFolder;

/// Answers a query with as many rows as its text says, and everything else with a refusal.
struct Counting;

impl Service for Counting {
    async fn serve(&self, request: Request, replies: Replies) {
        let Request::Query(query) = request else {
            let _ = replies
                .send(Reply::Refused(Problem::new(Code::BadArgument, "only queries")))
                .await;
            return;
        };
        let column = Column {
            name: "n".into(),
            data_type: "BIGINT".into(),
        };
        let _ = replies.send(Reply::Columns(vec![column])).await;
        for number in 0..query.sql.parse().unwrap_or(0_u64) {
            if replies
                .send(Reply::Rows(vec![vec![number.into()]]))
                .await
                .is_err()
            {
                return;
            }
        }
        let _ = replies
            .send(Reply::Done(Box::new(ops::Query::answer(RowsEnd { more: false }))))
            .await;
    }
}

/// Longer than any answer of an owner that lives.
const WAIT: Duration = Duration::from_secs(60);

struct Place {
    _temp: tempfile::TempDir,
    address: Address,
}

fn place() -> Place {
    let temp = tempfile::tempdir().unwrap();
    let state = StateFolder::new(temp.path().join(".watershed"), "dev").unwrap();
    state.create().unwrap();
    Place {
        address: Address::for_folder(&state),
        _temp: temp,
    }
}

fn query(sql: &str) -> Request {
    ops::Query::request(QueryRequest::new(sql))
}

async fn all(mut replies: tokio::sync::mpsc::Receiver<Reply>) -> Vec<Reply> {
    let mut all = Vec::new();
    while let Some(reply) = replies.recv().await {
        all.push(reply);
    }
    all
}

#[tokio::test]
async fn a_request_is_answered_in_order_and_ends() {
    let place = place();
    let listener = Listener::bind(place.address.clone(), Arc::new(Counting)).unwrap();
    let connection = Connection::open(&place.address, WAIT).await.unwrap();
    let replies = all(connection.ask(&query("1000")).await).await;
    assert_eq!(replies.len(), 1002);
    assert!(matches!(replies[0], Reply::Columns(_)));
    assert_eq!(replies[1000], Reply::Rows(vec![vec![999.into()]]));
    assert!(matches!(replies.last(), Some(Reply::Done(_))));
    listener.finish().await;
    assert!(!place.address.path().exists(), "the socket goes with its owner");
}

#[tokio::test]
async fn the_socket_is_for_its_user_alone() {
    let place = place();
    let _listener = Listener::bind(place.address.clone(), Arc::new(Counting)).unwrap();
    let mode = std::fs::metadata(place.address.path())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_socket_that_nobody_answers_is_replaced_by_the_next_owner() {
    let place = place();
    drop(std::os::unix::net::UnixListener::bind(place.address.path()).unwrap());
    assert!(place.address.path().exists());
    assert!(matches!(
        Connection::open(&place.address, WAIT).await,
        Err(ConnectError::Nobody)
    ));
    let _listener = Listener::bind(place.address.clone(), Arc::new(Counting)).unwrap();
    assert!(Connection::open(&place.address, WAIT).await.is_ok());
}

#[tokio::test]
async fn another_version_is_told_apart_before_anything_is_asked() {
    let place = place();
    let other = std::os::unix::net::UnixListener::bind(place.address.path()).unwrap();
    other.set_nonblocking(true).unwrap();
    let other = tokio::net::UnixListener::from_std(other).unwrap();
    let greeting = tokio::spawn(async move {
        let (mut stream, _) = other.accept().await.unwrap();
        stream
            .write_all(b"{\"program\":\"watershed\",\"version\":\"99.0.0\"}\n")
            .await
            .unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        said
    });
    let Err(ConnectError::OtherVersion { theirs, ours }) = Connection::open(&place.address, WAIT).await
    else {
        panic!("another version was taken for ours");
    };
    assert_eq!(
        (theirs.as_str(), ours.as_str()),
        ("99.0.0", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(
        greeting.await.unwrap().lines().count(),
        1,
        "only the greeting was sent"
    );
}

#[tokio::test]
async fn a_stranger_on_the_socket_is_hung_up_on() {
    let place = place();
    let _listener = Listener::bind(place.address.clone(), Arc::new(Counting)).unwrap();
    let mut stream = UnixStream::connect(place.address.path()).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).await.unwrap();
    assert!(said.is_empty());
}

#[tokio::test]
async fn a_reader_who_leaves_ends_the_answer() {
    let place = place();
    let listener = Listener::bind(place.address.clone(), Arc::new(Counting)).unwrap();
    let connection = Connection::open(&place.address, WAIT).await.unwrap();
    let mut replies = connection.ask(&query("18446744073709551615")).await;
    assert!(replies.recv().await.is_some());
    drop(replies);
    // Would wait for ever if the service went on counting.
    listener.finish().await;
}

#[tokio::test]
async fn an_owner_that_ends_answers_who_is_waiting() {
    let place = place();
    let listener = Listener::bind(place.address.clone(), Arc::new(Counting)).unwrap();
    let connection = Connection::open(&place.address, WAIT).await.unwrap();
    let replies = connection.ask(&query("3")).await;
    let (replies, ()) = tokio::join!(all(replies), listener.finish());
    assert!(matches!(replies.last(), Some(Reply::Done(_))), "{replies:?}");
}

#[tokio::test]
async fn the_protocol_is_lines_of_json() {
    let place = place();
    let _listener = Listener::bind(place.address.clone(), Arc::new(Counting)).unwrap();
    let stream = UnixStream::connect(place.address.path()).await.unwrap();
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    let hello = format!(
        "{{\"program\":\"watershed\",\"version\":\"{}\"}}\n",
        env!("CARGO_PKG_VERSION")
    );
    write.write_all(hello.as_bytes()).await.unwrap();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), hello.trim_end());
    write
        .write_all(b"{\"status\":{\"names\":[],\"all\":false}}\n")
        .await
        .unwrap();
    let answer = lines.next_line().await.unwrap().unwrap();
    assert!(
        answer.starts_with("{\"refused\":{\"code\":\"bad-argument\""),
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_says_nothing_is_given_up_by_the_number_of_its_process() {
    let place = place();
    // The system takes connections for a process that is stopped.
    let _listener = tokio::net::UnixListener::bind(place.address.path()).unwrap();
    let silent = Connection::open(&place.address, Duration::ZERO).await;
    let Err(ConnectError::Silent { pid: Some(pid) }) = silent else {
        panic!("nobody answers");
    };
    assert_eq!(pid.cast_unsigned(), std::process::id());
}
