//! A thousand messages to a receiver on this machine.

use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use watershed_controller::store::SqliteStore;
use watershed_controller::{Batch, Controller, Edit, Resource, Timestamp};
use watershed_delivery::notify::{self, Secret, Webhook};
use watershed_delivery::{Key, Message, Notification, Notifications, Receiver, Sender};
use watershed_tests::measure::{Report, Unit};

use super::instance::DEADLINE;

const MESSAGES: i64 = 1_000;

pub(super) async fn measure(report: &Report) {
    if !report.wants("deliver_1000_s") {
        return;
    }
    let mut took = Vec::new();
    for _ in 0..3 {
        took.push(delivered().await);
    }
    report.print("deliver_1000_s", Unit::Seconds, took);
}

async fn delivered() -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let receiver = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let webhook = Webhook::new(notify::client(Default::default()).unwrap(), &url, vec![secret]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("catalog.sqlite"))
        .await
        .unwrap();
    let builder = Controller::builder().store(store);
    let kind = Notifications::over(webhook);
    let controller = kind.register(builder).start().await.unwrap();
    let new = (0..MESSAGES).map(|number| notification(number).declare().unwrap());
    let batch = Batch {
        edits: new.map(Edit::create).collect(),
    };
    let begun = Instant::now();
    controller.edit(batch).await.unwrap();
    controller.wait_until_idle(DEADLINE).await.unwrap();
    let took = begun.elapsed().as_secs_f64();
    controller.shutdown(DEADLINE).await.unwrap();
    receiver.abort();
    took
}

/// Reads requests to their ends, and accepts each.
async fn answer(mut stream: TcpStream) {
    let mut read = Vec::new();
    let mut part = [0; 8192];
    loop {
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return,
            Ok(length) => read.extend_from_slice(&part[..length]),
        }
        let text = String::from_utf8_lossy(&read).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        if body.len() < length {
            continue;
        }
        read.clear();
        let said = stream.write_all(b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n");
        if said.await.is_err() {
            return;
        }
    }
}

/// A message of a sender of its own: none waits for another.
fn notification(number: i64) -> Notification {
    let sender = Resource::fresh_uid();
    let moment = Timestamp(1_800_000_000_000 + number);
    let name = Sender {
        kind: "alert".to_owned(),
        name: format!("a{number}"),
    };
    Notification {
        message: Message::one_line(Key::new(sender, moment, "fail", "hook"), name, moment, "3 rows"),
        receiver: Receiver {
            connector: format!("hook{}", number % 8),
            to: String::new(),
            variables: Default::default(),
        },
        sender,
        order: 0,
    }
}
