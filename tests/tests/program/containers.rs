//! Jobs and services in containers, end to end: a real engine, the program killed and the engine restarted.

use std::collections::BTreeSet;

use serde_json::Value;
use watershed_tests::docker::Engine;

use crate::going::Going;
use crate::processes::until;
use crate::sandbox::{Said, Sandbox};

/// A service of two containers that say their label and wait.
const SERVICE: &str = "type: service
docker: {image: 'tool:1', pull: never, network: none}
run: |
  echo \"begun $LABEL $KEY\"; exec sleep 100000
environment: {LABEL: first, KEY: '{{ .env.KEY }}'}
replicas: 2
restart: {base: 100ms}
stop: {grace: 1s}
";

/// A job in a container that writes a file of the project.
const JOB: &str = "type: job
docker: {image: 'tool:1', pull: never, network: none, mounts: [{from: out, to: /out}]}
cwd: /tmp
run: |
  echo working; echo 'k,v' > /out/rows.csv && echo '1,10' >> /out/rows.csv && echo done >> /out/runs
";

const MODEL: &str = "type: model
materialize: true
refs: [import]
sql: SELECT k, v FROM read_csv('out/rows.csv')
";

fn project(engine: &Engine, files: &[(&str, &str)]) -> Sandbox {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("out/kept", ""),
        (".env", "KEY=hush-hush-value\n"),
    ]);
    for (file, text) in files {
        project.write(file, text);
    }
    project.with_engine(engine.host())
}

#[track_caller]
fn ends(said: &Said, code: i32) {
    assert_eq!(said.code, Some(code), "{}\n{}", said.stdout, said.stderr);
}

fn replicas(project: &Sandbox) -> Vec<Value> {
    let document = project.call(&["status", "api", "--json"]).json();
    let replicas = &document["resources"][0]["result"]["replicas"];
    replicas.as_array().cloned().unwrap_or_default()
}

fn stages(project: &Sandbox) -> Vec<String> {
    let replicas = replicas(project).into_iter();
    replicas
        .map(|one| one["stage"].as_str().unwrap_or_default().to_owned())
        .collect()
}

fn running(engine: &Engine) -> BTreeSet<String> {
    engine.names("running").into_iter().collect()
}

#[test]
fn a_job_runs_in_a_container_once_and_its_output_is_kept() {
    let Some(engine) = Engine::start() else { return };
    let project = project(
        &engine,
        &[("programs/import.yaml", JOB), ("models/rows.yaml", MODEL)],
    );
    let done = project.run(0);
    assert_eq!(done["rows"], "built");
    let rows = project.query("SELECT v FROM rows");
    assert_eq!(rows["rows"], serde_json::json!([[10]]));
    assert!(running(&engine).is_empty());
    let done = project.run(0);
    assert!(done.is_empty(), "{done:?}");
    let logs = project.call(&["logs", "import"]);
    assert_eq!(logs.stdout, "import | working\n", "{}", logs.stderr);
    ends(&project.call(&["refresh", "import"]), 0);
    let runs = std::fs::read_to_string(project.path().join("out/runs")).unwrap();
    assert_eq!(runs, "done\ndone\n");
    assert_eq!(engine.containers().len(), 1, "that of the last run");

    project.write(
        "programs/import.yaml",
        &JOB.replace("echo working", "echo broken; exit 3"),
    );
    let said = project.call(&["run"]);
    ends(&said, 1);
    let document = project.call(&["status", "import", "--json"]).json();
    assert_eq!(document["resources"][0]["error"]["code"], "exited", "{document}");
    project.remove("programs/import.yaml");
    project.remove("models/rows.yaml");
    project.run(0);
    assert!(engine.containers().is_empty(), "a deleted job leaves nothing");
}

/// W13: whatever the program dies at, a job runs once, and its end counts once.
#[test]
fn a_job_in_a_container_runs_once_whatever_the_program_dies_at() {
    let Some(engine) = Engine::start() else { return };
    let points = watershed_workloads::CRASH_POINTS;
    // Nothing is stopped here; what is left after an order depends on the moment most of all.
    let points = points.iter().filter(|point| !point.contains("stop"));
    let again = points.clone().filter(|point| point.contains("start-after"));
    for point in points.clone().chain(again) {
        let project = project(&engine, &[("programs/import.yaml", JOB)]);
        assert!(project.dies_at(point, 0), "{point} is visited");
        project.run(0);
        let runs = std::fs::read_to_string(project.path().join("out/runs"));
        assert_eq!(runs.expect("it ran"), "done\n", "{point}");
        assert!(running(&engine).is_empty(), "{point}");
        project.remove("programs/import.yaml");
        project.run(0);
        assert!(engine.containers().is_empty(), "{point}");
    }
}

#[test]
fn containers_are_adopted_after_a_kill_and_each_end_in_between_counts_once() {
    let Some(mut engine) = Engine::start() else { return };
    let project = project(&engine, &[("programs/api.yaml", SERVICE)]);
    let start = Going::settled(&project);
    until("both are ready", || stages(&project) == ["ready", "ready"]);
    let first = running(&engine);
    assert_eq!(first.len(), 2);

    // One is killed while the program lives, one while it does not.
    engine.kill(first.first().unwrap(), "KILL");
    until("another one took its place", || {
        running(&engine).len() == 2 && running(&engine) != first && stages(&project) == ["ready", "ready"]
    });
    let second = running(&engine);
    start.kill();
    assert_eq!(running(&engine), second, "they go on");
    let victim = second.difference(&first).next().unwrap();
    engine.kill(victim, "KILL");
    let start = Going::settled(&project);
    until("both are ready again", || {
        running(&engine).len() == 2 && stages(&project) == ["ready", "ready"]
    });
    let third = running(&engine);
    assert_eq!(
        third.intersection(&second).count(),
        1,
        "the living one was adopted"
    );
    let failures: u64 = replicas(&project)
        .iter()
        .filter_map(|one| one["failures"].as_u64())
        .sum();
    assert_eq!(failures, 2, "each end counts once");

    // Somebody removes one by hand.
    engine.remove(third.first().unwrap());
    until("another one took its place", || {
        let now = running(&engine);
        now.len() == 2 && now != third && stages(&project) == ["ready", "ready"]
    });
    engine.restart();
    until("both are ready after the engine was away", || {
        running(&engine).len() == 2 && stages(&project) == ["ready", "ready"]
    });
    start.stop();
    assert_eq!(running(&engine).len(), 2, "they outlive the program");

    // Its image is gone when the file is deleted.
    let start = Going::settled(&project);
    engine.remove_image("tool:1");
    project.remove("programs/api.yaml");
    until("nothing is left of a deleted service", || {
        engine.containers().is_empty()
    });
    start.stop();
}

#[test]
fn a_person_reads_scales_restarts_and_rolls_back_a_service_of_containers() {
    let Some(engine) = Engine::start() else { return };
    let project = project(&engine, &[("programs/api.yaml", SERVICE)]);
    let start = Going::settled(&project);
    until("both are ready", || stages(&project) == ["ready", "ready"]);
    let logs = project.call(&["logs", "api"]);
    assert!(
        logs.stdout.contains("api.0 | begun first"),
        "{} {}",
        logs.stdout,
        logs.stderr
    );
    assert!(!logs.stdout.contains("hush-hush-value"), "{}", logs.stdout);
    let status = project.call(&["status", "api"]);
    let ids: Vec<String> = replicas(&project)
        .iter()
        .map(|one| one["process"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(
        ids.iter().all(|id| id.len() == 12 && status.stdout.contains(id)),
        "{ids:?} {}",
        status.stdout
    );

    ends(&project.call(&["scale", "api", "3"]), 0);
    until("three run", || {
        running(&engine).len() == 3 && stages(&project) == ["ready"; 3]
    });
    ends(&project.call(&["scale", "api", "file"]), 0);
    until("two run", || {
        running(&engine).len() == 2 && stages(&project) == ["ready"; 2]
    });
    let before = running(&engine);
    ends(&project.call(&["restart", "api", "--now"]), 0);
    until("others run", || {
        let now = running(&engine);
        now.len() == 2 && now.is_disjoint(&before) && stages(&project) == ["ready"; 2]
    });
    let previous = project.call(&["logs", "api", "--replica", "0", "--previous"]);
    assert_eq!(
        previous.stdout.lines().count(),
        1,
        "{} {}",
        previous.stdout,
        previous.stderr
    );
    project.edit("programs/api.yaml", "LABEL: first", "LABEL: second");
    until("the new release runs", || {
        let found = replicas(&project);
        found.len() == 2
            && found
                .iter()
                .all(|one| one["release"] == 2 && one["stage"] == "ready")
    });
    ends(&project.call(&["rollback", "api"]), 0);
    until("the first release is back", || {
        let found = replicas(&project);
        found.len() == 2
            && found
                .iter()
                .all(|one| one["release"] == 1 && one["stage"] == "ready")
    });
    start.stop();
    let at_rest = project.call(&["logs", "api", "--tail", "1"]);
    assert!(
        at_rest.stdout.contains("begun first"),
        "{} {}",
        at_rest.stdout,
        at_rest.stderr
    );
    project.remove("programs/api.yaml");
    project.run(0);
    assert!(engine.containers().is_empty());
}

#[test]
fn checks_ask_a_container_by_its_port_and_inside_of_it() {
    let Some(engine) = Engine::start() else { return };
    let service = "type: service
docker: {image: 'tool:1', network: host, mounts: [{from: out, to: /www, read_only: true}]}
command: [httpd, -f, -p, '127.0.0.1:${PORT}', -h, /www]
ports: [{name: PORT}]
checks:
  - {http: {port: PORT, path: /kept}, readiness: true, interval: 100ms, min_healthy_time: 0s}
  - {command: [test, -f, /www/kept], readiness: true, interval: 100ms, min_healthy_time: 0s}
stop: {grace: 0s}
";
    let project = project(&engine, &[("programs/api.yaml", service)]);
    let start = Going::settled(&project);
    until("it is ready", || stages(&project) == ["ready"]);
    std::fs::remove_file(project.path().join("out/kept")).unwrap();
    until("it is not ready any more", || stages(&project) == ["running"]);
    start.stop();
    project.remove("programs/api.yaml");
    project.run(0);
    assert!(engine.containers().is_empty());
}

#[test]
fn an_image_that_is_missing_and_an_engine_that_is_away_are_told_with_what_to_do() {
    let Some(engine) = Engine::start() else { return };
    let missing = "type: job\ndocker: {image: 'none:1', pull: never, network: none}\ncommand: ['true']\n";
    let project = project(&engine, &[("programs/a.yaml", missing)]);
    let error = |project: &Sandbox| {
        let document = project.call(&["status", "a", "--json"]).json();
        document["resources"][0]["error"].clone()
    };
    ends(&project.call(&["run"]), 1);
    assert_eq!(error(&project)["code"], "image-missing", "{}", error(&project));
    let confined = project.call(&["run", "--sandbox"]);
    ends(&confined, 1);
    assert_eq!(error(&project)["code"], "outside-sandbox", "{}", error(&project));
    assert!(engine.containers().is_empty());

    let away = project.with_engine("unix:///nowhere/docker.sock".to_owned());
    away.write("programs/a.yaml", &missing.replace("'true'", "'false'"));
    let mut start = Going::start(&away);
    until("it says that no engine answers", || {
        let error = error(&away);
        let message = error["message"].as_str().unwrap_or_default();
        error["code"] == "engine-unreachable" && message.contains("/nowhere/docker.sock")
    });
    // Local programs don't wait for it.
    away.write("programs/b.yaml", "type: job\nrun: echo here\n");
    until("a local job runs", || {
        away.call(&["logs", "b"]).stdout == "b | here\n"
    });
    start.signal(rustix::process::Signal::KILL);
    drop(start.next());
}
