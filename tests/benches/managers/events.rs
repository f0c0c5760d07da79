//! Events of several senders.

use std::time::Instant;

use watershed_managers::{CloudEvent, Desired, EventDoor, EventMatch, Manager as _, Rule};
use watershed_tests::measure::{Report, Unit};

use super::thing::{Shape, Stand, Thing, declared};

const SENDERS: usize = 8;
const EACH: usize = 125;

pub(super) async fn measure(report: &Report) {
    if !report.wants("event_p50_ms") && !report.wants("event_p99_ms") {
        return;
    }
    let stand = Stand::new().await;
    for sender in 0..SENDERS {
        let desired = Desired::stage("active").on_event(Rule::looks(EventMatch::of("lab.*")));
        let new = declared(&format!("t{sender}"), desired, Shape::default());
        stand.controller.create(new).await.unwrap();
    }
    stand.idle().await;
    let door = EventDoor::new(stand.controller.handle(), [Thing::KIND]);
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let door = door.clone();
            tokio::spawn(async move {
                let mut took = Vec::new();
                for number in 0..EACH {
                    let id = format!("{sender}-{number}");
                    let event = CloudEvent::new(id, "/bench", "lab.told").about(format!("t{sender}"));
                    let begun = Instant::now();
                    assert_eq!(door.deliver(&event).await.unwrap(), 1);
                    took.push(begun.elapsed().as_secs_f64() * 1_000.0);
                }
                took
            })
        })
        .collect();
    let mut took = Vec::new();
    for sender in senders {
        took.extend(sender.await.unwrap());
    }
    took.sort_by(f64::total_cmp);
    report.print(
        "event_p99_ms",
        Unit::Milliseconds,
        vec![took[took.len() * 99 / 100]],
    );
    report.print("event_p50_ms", Unit::Milliseconds, took);
    drop(stand.folder);
}
