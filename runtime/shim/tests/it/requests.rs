//! Tests of the socket: accepted requests and peers.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::support::{Rig, id};

fn connect(rig: &Rig) -> UnixStream {
    let stream = UnixStream::connect(rig.state().join("shim/socket")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn ask(stream: &mut UnixStream, line: &str) -> String {
    stream.write_all(line.as_bytes()).unwrap();
    stream.write_all(b"\n").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer
}

/// W17: the folder is for one user.
#[tokio::test]
async fn the_folder_is_closed_to_others() {
    let rig = Rig::new();
    let client = rig.client(1);
    client.list().await.unwrap();
    let mode = |path: &str| {
        let found = std::fs::metadata(rig.state().join(path)).unwrap();
        found.permissions().mode() & 0o777
    };
    assert_eq!(mode("shim"), 0o700);
    assert_eq!(mode("shim/journal"), 0o600);
}

#[tokio::test]
async fn what_is_no_request_costs_its_connection_and_no_other() {
    let rig = Rig::new();
    let client = rig.client(1);
    client.spawn(rig.order(&id("a", 1), &["wait"])).await.unwrap();
    let shim = client.shim().await.unwrap();
    for wrong in [
        b"{}\n".to_vec(),
        b"\xff\xfe\n".to_vec(),
        vec![b'x'; (4 << 20) + 70_000],
    ] {
        let mut stream = connect(&rig);
        // The shim may close it before all is written.
        let _ = stream.write_all(&wrong);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty());
    }
    assert_eq!(client.list().await.unwrap().len(), 1);
    assert_eq!(client.shim().await.unwrap(), shim);
}

#[tokio::test]
async fn nothing_is_done_before_hello_or_in_another_version() {
    let rig = Rig::new();
    let client = rig.client(1);
    client.list().await.unwrap();
    let mut stream = connect(&rig);
    let list = r#"{"number":1,"call":{"list":{"after":null}}}"#;
    assert!(ask(&mut stream, list).contains("no_epoch"));
    let hello = |protocol: u32, epoch: &str| {
        format!(
            r#"{{"number":2,"call":{{"hello":{{"protocol":{protocol},"epoch":{epoch},"lifetime":"keep","subscribe":false}}}}}}"#
        )
    };
    assert!(ask(&mut stream, &hello(99, "1")).contains(r#""protocol":{"supported":1}"#));
    assert!(ask(&mut stream, &hello(1, "null")).contains("pid"));
    assert!(ask(&mut stream, list).contains("processes"));
    let forget = r#"{"number":3,"call":{"forget":{"id":"a:1","remove_output":false}}}"#;
    assert!(
        ask(&mut stream, forget).contains("no_epoch"),
        "a reader changes nothing"
    );
}

/// W2: one call lists everything, in as many pages as it takes.
#[tokio::test]
async fn a_list_of_many_pages_is_whole() {
    let rig = Rig::new();
    let client = rig.client(1);
    let count = 2_300;
    for chunk in (0..count).collect::<Vec<_>>().chunks(200) {
        let calls = chunk.iter().map(|index| {
            let mut order = rig.order(&id(&format!("u{index}"), 1), &[]);
            order.command = vec!["/no/such/program".to_owned()];
            let client = client.clone();
            tokio::spawn(async move { client.spawn(order).await.unwrap() })
        });
        for call in calls.collect::<Vec<_>>() {
            call.await.unwrap();
        }
    }
    let all = client.list().await.unwrap();
    assert_eq!(all.len(), count);
    assert!(all.windows(2).all(|pair| pair[0].id < pair[1].id));
}
