//! Events of other programs, one beyond each bound, and what programs write, as it is written.

use serde_json::{Value, json};

use crate::client::{Client, Response};
use crate::http::{SHOP, Served};
use crate::project::Place;

fn event(number: usize) -> Value {
    json!({"specversion": "1.0", "id": number.to_string(), "source": "/a", "type": "b"})
}

/// Sends bytes as events of a media type.
async fn send(client: Client, media: &str, body: &str) -> Response {
    let head = format!(
        "POST {SHOP}/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    client
        .raw(&[head.as_bytes(), body.as_bytes()].concat())
        .await
        .expect("an answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api44_one_event_beyond_a_bound_costs_itself_alone() {
    const ONE: &str = "application/cloudevents+json";
    const MANY: &str = "application/cloudevents-batch+json";
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let client = served.client;
    let batch = |number: usize| Value::Array((0..number).map(event).collect()).to_string();
    let long =
        json!({"specversion": "1.0", "id": "1", "source": "/a", "type": "b", "data": "x".repeat(256 << 10)});
    for (media, body, status) in [
        (MANY, batch(1_000), 202),
        (MANY, batch(1_001), 413),
        (ONE, long.to_string(), 413),
        (ONE, "[".repeat(100_000), 400),
        (
            ONE,
            json!({"specversion": "1.0", "id": "1", "type": "b"}).to_string(),
            400,
        ),
        (ONE, "\0".to_owned(), 400),
        ("text/plain", event(1).to_string(), 415),
    ] {
        let answer = send(client, media, &body).await;
        let told = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(answer.status, status, "{media} of {} bytes: {told}", body.len());
    }
    let unnamed = send(
        client,
        ONE,
        &json!({"specversion": "1.0", "id": "1", "type": "b"}).to_string(),
    )
    .await;
    assert!(
        unnamed.json()["detail"]
            .as_str()
            .unwrap_or_default()
            .contains("source")
    );
    // Many at once are taken, and the same twice is the same.
    let twenty = batch(20);
    let flood = (0..40).map(|_| send(client, MANY, &twenty));
    for answer in futures::future::join_all(flood.collect::<Vec<_>>()).await {
        assert!(matches!(answer.status, 202 | 503), "{}", answer.status);
    }
    assert_eq!(client.get(&format!("{SHOP}/stats")).await.status, 200);
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api11_a_tree_is_followed_and_so_is_what_a_program_writes() {
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let client = served.client;
    let mut tree = client.events(&format!("{SHOP}/watch?tree=thing"), None).await;
    let first = tree.next().await.expect("the tree has a root");
    assert_eq!(
        (first.name.as_str(), &first.data["name"]),
        ("changed", &json!("thing"))
    );
    assert_eq!(
        client.get(&format!("{SHOP}/watch?tree=nothing")).await.status,
        404
    );
    let set = client
        .post(
            &format!("{SHOP}/resources/managed/thing/set"),
            &json!({"desired": "gone"}),
        )
        .await;
    assert_eq!(set.status, 200);
    while tree.next().await.expect("the tree changes").name == "listed" {}

    let mut output = client
        .events(
            &format!("{SHOP}/resources/service/steady/output?follow=true"),
            None,
        )
        .await;
    let mut text = String::new();
    while !text.contains("begun") {
        let event = output.next().await.expect("the program wrote something");
        text.push_str(&event.data.to_string());
    }
    served.close().await;
}
