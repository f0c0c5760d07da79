//! Connections that a service refuses to make: managed resources, stores, databases and messages.

use std::io;
use std::net::TcpListener;

use rustix::process::Signal;
use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::serving::Serving;

/// The most runs after which a message has been tried.
const RUNS: usize = 20;

fn project(listed: &str, port: u16) -> Sandbox {
    let managed = format!(
        "managed:\n  stages: [absent, active]\n  desired: active\n  observe: {{http: {{url: 'http://127.0.0.1:{port}/look'}}}}\n  steps:\n    active: {{http: {{url: 'http://127.0.0.1:{port}/step'}}, attempts: 1}}\n"
    );
    let hook = format!("type: connector\ndriver: webhook\nurl: 'http://127.0.0.1:{port}/hook'\n");
    let store = format!("type: connector\ndriver: https\npath_prefixes: ['http://127.0.0.1:{port}/data/']\n");
    let database = format!(
        "type: connector\ndriver: postgres\nhost: localhost\nport: {port}\nuser: ann\ndbname: shop\n"
    );
    let service = format!("listen: 127.0.0.1:0\n{listed}instances:\n  one: {{project: one, trust: full}}\n");
    Sandbox::with(&[
        ("one/watershed.yaml", &managed),
        ("one/managed/thing.yaml", "type: managed\n"),
        ("one/connectors/hook.yaml", &hook),
        ("one/connectors/store.yaml", &store),
        ("one/connectors/database.yaml", &database),
        ("one/models/a.sql", "-- @materialize: true\nSELECT 1 AS x\n"),
        (
            "one/alerts/bad.yaml",
            "type: alert\nrefresh: {ref_update: true}\ndata: {sql: SELECT x FROM a}\nnotify: {webhook: hook}\n",
        ),
        ("server.yaml", &service),
    ])
}

fn run(service: &Serving) {
    let more = "content-type: application/json\r\nprefer: wait=60\r\n";
    let (status, _, body) = service.ask("POST", "/v1/instances/one/run", more);
    assert!(status < 300, "{body}");
}

fn explained(project: &Sandbox, name: &str) -> String {
    let said = project.call(&["explain", name, "-C", "one"]);
    format!("{}{}", said.stdout, said.stderr)
}

/// Returns the name of the alert's message; none before the message was made.
fn message(project: &Sandbox) -> Option<String> {
    let said = project.call(&["status", "--all", "--json", "-C", "one"]);
    let document: Value = serde_json::from_str(&said.stdout).expect("a document");
    let resources = document["resources"].as_array().expect("resources");
    let message = resources.iter().find(|one| one["kind"] == "notification")?;
    Some(format!("notification/{}", message["name"].as_str()?))
}

#[test]
fn s_api35_what_a_service_refuses_to_connect_to_is_told_with_its_reason() {
    let inside = TcpListener::bind("127.0.0.1:0").expect("a socket");
    inside.set_nonblocking(true).expect("it waits for nobody");
    let project = project("", inside.local_addr().expect("an address").port());
    let mut service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    service.line("one: open");
    run(&service);
    for name in ["thing", "store", "database"] {
        let told = explained(&project, name);
        assert!(
            told.contains("egress-refused") || told.contains("not allowed"),
            "{name}: {told}"
        );
    }
    // The reason of a message is that of the message itself, which is hidden unless it is named.
    let mut tries = 0;
    let told = loop {
        let told = message(&project).map(|name| explained(&project, &name));
        if let Some(told) = told.filter(|told| told.contains("egress-refused")) {
            break told;
        }
        tries += 1;
        assert!(tries < RUNS, "{:?}", message(&project));
        run(&service);
    };
    assert!(told.contains("not allowed"), "{told}");
    let reached = inside.accept().map(|(_, from)| from);
    assert_eq!(
        reached.map_err(|error| error.kind()),
        Err(io::ErrorKind::WouldBlock)
    );
    assert_eq!(service.end(Signal::TERM).0, Some(143));
}

#[test]
fn s_api35_a_listed_address_is_connected_to_and_a_change_of_the_list_needs_a_start() {
    let inside = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = inside.local_addr().expect("an address").port();
    let project = project(&format!("egress: {{allow: ['127.0.0.1:{port}']}}\n"), port);
    let mut service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    service.line("one: open");
    // Whoever comes first hangs up on nobody's answer, and comes again or not: it has connected.
    let (stream, _) = inside.accept().expect("a connection");
    drop((stream, inside));
    let text = std::fs::read_to_string(project.path().join("server.yaml")).expect("the configuration");
    project.write(
        "server.yaml",
        &text.replace(&format!("127.0.0.1:{port}"), "10.0.0.0/8"),
    );
    service.hang_up();
    let line = service.line("changed: that takes effect");
    assert!(line.contains("`egress`"), "{line}");
    assert_eq!(service.end(Signal::TERM).0, Some(143));
}
