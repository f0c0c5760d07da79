//! A new release of a service of a hundred replicas.

use std::time::{Duration, Instant};

use watershed_proto::{HealthCheck, ServiceSpec};
use watershed_tests::measure::{Report, Unit};
use watershed_workloads::Service;
use watershed_workloads::service::{self, ServiceReconciler};

use super::stand::{Stand, sleeper};

/// The replicas.
const REPLICAS: u32 = 100;
/// Rounds.
const ROUNDS: u64 = 5;
/// The pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Longer than it takes.
const LONG: Duration = Duration::from_secs(600);

pub(super) async fn measure(report: &Report) {
    if !report.wants("rollout_100_s") {
        return;
    }
    let stand = Stand::new().await;
    let services = stand.controller.resources::<ServiceReconciler>();
    services.apply("api", &Service(release(1))).await.unwrap();
    stand.until_ready(1, Instant::now()).await;
    stand.idle().await;
    let mut took = Vec::new();
    for number in 2..2 + ROUNDS {
        let begun = Instant::now();
        services.apply("api", &Service(release(number))).await.unwrap();
        loop {
            let record = stand.record("api");
            if record.active == number && record.candidate.is_none() {
                break;
            }
            assert!(begun.elapsed() < LONG, "{} rolls out", service::KIND);
            tokio::time::sleep(LOOK_EVERY).await;
        }
        took.push(begun.elapsed().as_secs_f64());
        stand.idle().await;
    }
    report.print("rollout_100_s", Unit::Seconds, took);
    stand.stop().await;
}

fn release(number: u64) -> ServiceSpec {
    let mut spec = sleeper();
    spec.replicas = REPLICAS;
    let program = spec.program.as_mut().unwrap();
    program.environment.insert("RELEASE".into(), number.to_string());
    spec.checks = vec![HealthCheck {
        command: vec!["true".into()],
        readiness: true,
        interval_ms: 10_000,
        timeout_ms: 2_000,
        threshold: 3,
        on_failure: "alert".into(),
        ..HealthCheck::default()
    }];
    spec
}
