//! Trees of parts.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use watershed_controller::{Key, Select};
use watershed_managers::{Desired, Manager as _, OnPartFailure, set_desired};
use watershed_tests::measure::{Report, Unit};

use super::thing::{Shape, Stand, Thing, declared};

/// Failures of leaves.
const FAILURES: usize = 100;

pub(super) async fn measure(report: &Report) {
    if report.wants("cascade_1k_ms") {
        let mut took = Vec::new();
        for _ in 0..5 {
            took.push(cascade().await.as_secs_f64() * 1_000.0);
        }
        report.print("cascade_1k_ms", Unit::Milliseconds, took);
    }
    if report.wants("leaf_change_p99_ms") {
        let mut took = leaf_changes().await;
        took.sort_by(f64::total_cmp);
        report.print(
            "leaf_change_p99_ms",
            Unit::Milliseconds,
            vec![took[took.len() * 99 / 100]],
        );
    }
}

async fn cascade() -> Duration {
    let stand = Stand::new().await;
    let shape = Shape { below: vec![10, 100] };
    let new = declared("top", Desired::stage("absent"), shape);
    stand.controller.create(new).await.unwrap();
    stand.idle().await;
    let begun = Instant::now();
    let top = Key::new(Thing::KIND, "top");
    set_desired(&stand.controller.handle(), top, "active".into())
        .await
        .unwrap();
    loop {
        stand.idle().await;
        let listed = stand.controller.list(Select::kind(Thing::KIND)).resources;
        let ready = listed
            .iter()
            .filter(|one| one.row.unready.is_none() && one.row.last_success.is_some());
        if listed.len() == 1_011 && ready.count() == 1_011 {
            return begun.elapsed();
        }
        tokio::task::yield_now().await;
    }
}

/// Leaves of a tree of 10,000 that fail one after another, each until its owner names it.
async fn leaf_changes() -> Vec<f64> {
    let stand = Stand::new().await;
    let shape = Shape { below: vec![100, 99] };
    let desired = Desired::stage("active").on_part_failure(OnPartFailure::Continue);
    stand
        .controller
        .create(declared("top", desired, shape))
        .await
        .unwrap();
    loop {
        stand.idle().await;
        if stand.controller.list(Select::kind(Thing::KIND)).resources.len() == 10_001 {
            break;
        }
        tokio::task::yield_now().await;
    }
    let mut took = Vec::new();
    for number in 0..FAILURES {
        let (owner, leaf) = (format!("top.{number}"), format!("top.{number}.7"));
        *stand.thing.0.broken.lock().unwrap() = Some(leaf.clone());
        stand.thing.0.is_broken.store(true, Ordering::Relaxed);
        let owner = Key::new(Thing::KIND, owner.as_str());
        let runs = stand.controller.get(owner.clone()).unwrap().row.last_run.clone();
        let begun = Instant::now();
        stand
            .controller
            .reconcile(Key::new(Thing::KIND, leaf.as_str()))
            .await
            .unwrap();
        while stand.controller.get(owner.clone()).unwrap().row.last_run == runs {
            tokio::time::sleep(Duration::from_micros(100)).await;
            if begun.elapsed() > Duration::from_secs(5) {
                break;
            }
        }
        took.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    took
}
