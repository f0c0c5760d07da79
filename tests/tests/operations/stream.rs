//! The stream of changes: whoever reads it believes what a list says.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::client::{Client, Events};
use crate::http::{SHOP, Served};
use crate::project::Place;

/// Applies the next event to the belief of a reader, and returns its name.
pub(crate) async fn believe(
    events: &mut Events,
    believed: &mut BTreeMap<String, Value>,
    last: &mut String,
) -> Option<String> {
    let event = events.next().await?;
    let key = format!(
        "{}/{}",
        event.data["kind"].as_str().unwrap_or_default(),
        event.data["name"].as_str().unwrap_or_default()
    );
    match event.name.as_str() {
        "changed" => drop(believed.insert(key, event.data)),
        "gone" => drop(believed.remove(&key)),
        "status" => {
            let known = believed.get_mut(&key);
            // Keys that were not asked for stay away.
            for (key, value) in known.and_then(Value::as_object_mut).into_iter().flatten() {
                if matches!(key.as_str(), "phase" | "health") {
                    *value = event.data[key].clone();
                }
            }
        }
        _ => {}
    }
    if !event.id.is_empty() {
        *last = event.id;
    }
    Some(event.name)
}

/// Returns all resources, read page by page, and the token to watch from.
async fn listed(client: Client, filter: &str) -> (BTreeMap<String, Value>, String) {
    let (mut all, mut page) = (BTreeMap::new(), String::new());
    loop {
        let read = client
            .get(&format!("{SHOP}/resources?limit=3{filter}{page}"))
            .await;
        let read = read.json();
        for resource in read["resources"].as_array().into_iter().flatten() {
            let name = |key: &str| resource[key].as_str().unwrap_or_default().to_owned();
            all.insert(format!("{}/{}", name("kind"), name("name")), resource.clone());
        }
        match read["next"].as_str() {
            Some(next) => page = format!("&page={next}"),
            None => return (all, read["watch"].as_str().unwrap_or_default().to_owned()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_the_stream_believes_what_a_list_says() {
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    for filter in ["", "&kind=model", "&select=late%2B", "&health=paused"] {
        let (mut believed, from) = listed(served.client, filter).await;
        let mut last = from.clone();
        let path = |from: &str| format!("{SHOP}/watch?from={from}{filter}");
        let mut events = served.client.events(&path(&from), None).await;
        for round in 0..6 {
            let verb = if round % 2 == 0 { "pause" } else { "resume" };
            let name = ["late", "tested", "parts"][round % 3];
            let done = served
                .client
                .post(&format!("{SHOP}/resources/model/{name}/{verb}"), &json!({}))
                .await;
            assert_eq!(done.status, 200);
            if round == 3 {
                // The line is cut, and the reader comes back with the last id.
                drop(events);
                events = served
                    .client
                    .events(
                        &format!("{SHOP}/watch?{}", filter.trim_start_matches('&')),
                        Some(&last),
                    )
                    .await;
            }
        }
        let mut heard = 0;
        while believed != listed(served.client, filter).await.0 {
            let name = believe(&mut events, &mut believed, &mut last)
                .await
                .expect("the stream goes on");
            heard += 1;
            assert!(name != "lagged" && heard < 1_000, "{filter}: {name}, {heard}");
        }
        for name in ["late", "tested", "parts"] {
            served
                .client
                .post(&format!("{SHOP}/resources/model/{name}/resume"), &json!({}))
                .await;
        }
    }
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_a_place_tells_everything_and_says_bye() {
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let mut events = served.client.events(&format!("{SHOP}/watch"), None).await;
    let (mut believed, mut last) = (BTreeMap::new(), String::new());
    while believe(&mut events, &mut believed, &mut last)
        .await
        .expect("events")
        != "listed"
    {}
    assert_eq!(believed, listed(served.client, "").await.0);
    let foreign = served.client.get(&format!("{SHOP}/watch?from=AAAA")).await;
    assert_eq!(foreign.status, 400);
    let other = served
        .client
        .get(&format!("{SHOP}/watch?kind=model&from={last}"))
        .await;
    assert_eq!(
        (other.status, &other.json()["code"]),
        (400, &json!("bad-argument"))
    );
    let closing = tokio::spawn(served.close());
    let mut names = Vec::new();
    while let Some(name) = believe(&mut events, &mut believed, &mut last).await {
        names.push(name);
    }
    assert_eq!(names.last().map(String::as_str), Some("bye"));
    closing.await.expect("it ends in order");
}
