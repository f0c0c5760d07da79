//! The list of instances, read again while the service runs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use rustix::process::Signal;
use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::serving::Serving;

const KEPT: &str = "  kept: {project: kept}\n";
const MOVED: &str = "  moved: {project: moved}\n";
const GONE: &str = "  gone: {project: gone}\n";

fn configured(instances: &[&str]) -> String {
    format!("listen: 127.0.0.1:0\ninstances:\n{}", instances.concat())
}

fn projects() -> Sandbox {
    let project = Sandbox::with(&[("server.yaml", &configured(&[KEPT, MOVED, GONE]))]);
    for name in ["kept", "moved", "gone", "added"] {
        project.write(&format!("{name}/watershed.yaml"), "");
        project.write(&format!("{name}/models/a.sql"), "SELECT 1 AS x\n");
    }
    project
}

/// A stream on an instance, read until everything is listed.
fn watch(service: &Serving, name: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(service.address).expect("it listens");
    let head = format!("GET /v1/instances/{name}/watch HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("it reads");
    let mut events = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains("event: listed") {
        line.clear();
        assert!(events.read_line(&mut line).expect("a line") > 0, "{name}");
    }
    events
}

fn begin(project: &Sandbox) -> Serving {
    let service = Serving::begin(project, &["serve", "-c", "server.yaml"]);
    while service.ask("GET", "/readyz", "").0 != 200 {}
    service
}

fn instances(service: &Serving) -> Vec<(String, Value)> {
    let page = service.json("/v1/instances");
    let all = page["instances"].as_array().expect("instances").iter();
    all.map(|one| {
        let name = one["name"].as_str().expect("a name");
        (name.to_owned(), one["environment"].clone())
    })
    .collect()
}

#[test]
fn s_api45_instances_are_added_removed_and_opened_anew_at_a_hangup() {
    let project = projects();
    let mut service = begin(&project);
    let [kept, moved, gone] = ["kept", "moved", "gone"].map(|name| watch(&service, name));
    project.write(
        "server.yaml",
        &configured(&[
            KEPT,
            "  moved: {project: moved, environment: prod}\n",
            "  added: {project: added}\n",
        ]),
    );
    service.hang_up();
    service.line("the configuration was read again");
    service.line("gone: removed");
    service.line("moved: closed");
    for mut left in [moved, gone] {
        let mut rest = String::new();
        left.read_to_string(&mut rest).expect("the stream ends in order");
        assert!(rest.contains("event: bye"), "{rest}");
    }
    // For callers it is an instance that never was.
    let (status, _, body) = service.ask("GET", "/v1/instances/gone/resources", "");
    let (_, _, never) = service.ask("GET", "/v1/instances/neve/resources", "");
    assert_eq!((status, body.replace("gone", "neve")), (404, never));
    while service.ask("GET", "/readyz", "").0 != 200 {}
    let expected = [("added", "dev"), ("kept", "dev"), ("moved", "prod")];
    let expected = expected.map(|(name, environment)| (name.to_owned(), Value::from(environment)));
    assert_eq!(instances(&service), expected);
    // It is closed: another process may have it.
    let ran = project.call(&["run", "-C", "gone"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // Nobody else noticed.
    let mut kept = kept;
    assert_eq!(service.ask("GET", "/v1/instances/kept/resources", "").0, 200);
    let run = service.ask(
        "POST",
        "/v1/instances/kept/resources/model/a/refresh",
        "content-type: application/json\r\n",
    );
    assert_eq!(run.0, 202, "{}", run.2);
    let mut line = String::new();
    while !line.contains("event: status") && !line.contains("event: changed") {
        line.clear();
        assert!(
            kept.read_line(&mut line).expect("a line") > 0,
            "the stream goes on"
        );
    }
    // One that was removed may come back, also with one that takes the folder of another.
    project.write(
        "server.yaml",
        &configured(&[KEPT, GONE, "  twin: {project: added}\n"]),
    );
    service.hang_up();
    service.line("added: removed");
    while service.ask("GET", "/v1/instances/twin/resources", "").0 != 200 {}
    while service.ask("GET", "/v1/instances/gone/resources", "").0 != 200 {}
    assert_eq!(service.ask("GET", "/v1/instances/added/resources", "").0, 404);
    assert_eq!(service.end(Signal::TERM).0, Some(143));
}

#[test]
fn s_api45_a_list_with_a_mistake_removes_and_opens_nothing() {
    let project = projects();
    let mut service = begin(&project);
    for mistake in [
        configured(&[KEPT, "  added: {project: added, trust: ful}\n"]),
        configured(&[KEPT, "  added: {project: kept}\n"]),
        configured(&[]),
    ] {
        project.write("server.yaml", &mistake);
        service.hang_up();
        service.line("nothing was changed");
        let names: Vec<String> = instances(&service).into_iter().map(|one| one.0).collect();
        assert_eq!(names, ["gone", "kept", "moved"], "{mistake}");
        assert_eq!(service.ask("GET", "/v1/instances/gone/resources", "").0, 200);
    }
    assert_eq!(service.end(Signal::TERM).0, Some(143));
}

#[test]
fn s_api40_the_trust_of_each_instance_is_shown_to_those_who_may_know_it() {
    let project = projects();
    project.write(
        "server.yaml",
        &configured(&[
            KEPT,
            "  moved: {project: moved, trust: full}\n",
            "  gone: {project: gone, trust: full, remote_edit: true}\n",
        ]),
    );
    let service = begin(&project);
    let me = service.json("/v1/me");
    assert_eq!(
        (&me["trust"], &me["remote_edit"]),
        (
            &serde_json::json!({"gone": "full", "kept": "sandbox", "moved": "full"}),
            &serde_json::json!(["gone"])
        )
    );
    let (_, _, verbose) = service.ask("GET", "/readyz?verbose", "");
    assert_eq!(
        verbose,
        "ready\ngone: open, full, remote edit\nkept: open, sandbox\nmoved: open, full\n"
    );
    assert_eq!(service.end(Signal::TERM).0, Some(143));
}

#[test]
fn s_api37_a_quiet_instance_builds_while_a_neighbour_of_more_weight_has_much_to_do() {
    let project = Sandbox::with(&[(
        "server.yaml",
        &configured(&[
            "  loud: {project: loud, weight: 9}\n",
            "  quiet: {project: quiet}\n",
        ]),
    )]);
    for name in ["loud", "quiet"] {
        project.write(&format!("{name}/watershed.yaml"), "");
    }
    for number in 0..60 {
        project.write(
            &format!("loud/models/m{number}.sql"),
            "-- @materialize: true\nSELECT sum(a.range * b.range % 7) AS x FROM range(20000) a, range(2000) b\n",
        );
    }
    project.write("quiet/models/a.sql", "-- @materialize: true\nSELECT 1 AS x\n");
    let service = Serving::begin(&project, &["serve", "-c", "server.yaml", "--jobs", "1"]);
    while service.ask("GET", "/readyz", "").0 != 200 {}
    let more = "content-type: application/json\r\nprefer: wait=60\r\n";
    let (status, _, body) = service.ask("POST", "/v1/instances/quiet/run", more);
    assert_eq!(status, 200, "{body}");
    let loud = service.json("/v1/instances/loud/resources?kind=model&limit=1000");
    let models = loud["resources"].as_array().expect("resources").iter();
    let waiting = models.filter(|model| model["phase"] != "idle").count();
    assert!(waiting > 0, "the neighbour is done already: {loud}");
    assert_eq!(service.end(Signal::TERM).0, Some(143));
}
