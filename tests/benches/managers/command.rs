//! Steps by commands.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Instant;

use watershed_controller::{Resource, Uid};
use watershed_managers::outside::{Call, CalledResource, Commands, VERSION};
use watershed_tests::measure::{Report, Unit};

const RUNS: usize = 100;

pub(super) async fn measure(report: &Report) {
    if !report.wants("command_overhead_ms") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let commands = Commands::new(folder.path(), folder.path().join("notes")).unwrap();
    let command = ["true".to_owned()];
    let uid = Resource::fresh_uid();
    let call = call(uid);
    let (mut own, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let begun = Instant::now();
        commands
            .run(&command, &BTreeMap::new(), uid, &call)
            .await
            .unwrap();
        own.push(begun.elapsed().as_secs_f64() * 1_000.0);
        let begun = Instant::now();
        let status = tokio::process::Command::new("true").stdin(Stdio::null()).status();
        assert!(status.await.unwrap().success());
        bare.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    own.sort_by(f64::total_cmp);
    bare.sort_by(f64::total_cmp);
    report.print(
        "command_overhead_ms",
        Unit::Milliseconds,
        vec![own[RUNS / 2] - bare[RUNS / 2]],
    );
}

fn call(uid: Uid) -> Call {
    Call {
        version: VERSION,
        resource: CalledResource {
            name: "one".to_owned(),
            uid: uid.to_string(),
            epoch: 1,
            values: serde_json::json!({}),
        },
        desired: "active".to_owned(),
        stage: "absent".to_owned(),
        step: Some("active".to_owned()),
        attempt: 1,
        force: false,
        data: serde_json::Map::new(),
        window: None,
        parts: Vec::new(),
        event: None,
    }
}
