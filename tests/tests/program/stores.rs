//! Sources in stores of objects: read, asked for changes without being read, and their credentials.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use watershed_tests::s3::Store;

use crate::connected::has_extension;
use crate::sandbox::Sandbox;
use crate::stand_in::StandIn;

const SECRET: &str = "hush-hush-4711";

const CONNECTOR: &str = r#"type: connector
driver: s3
aws_access_key_id: key-of-a-test
aws_secret_access_key: "{{ .env.lake_secret }}"
endpoint: STORE
path_prefixes: s3://lake/
"#;

/// A project that reads all days of a bucket.
fn project(store: &str) -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        (".env", &format!("lake_secret={SECRET}\n")),
        ("connectors/lake.yaml", &CONNECTOR.replace("STORE", store)),
        (
            "sources/days.yaml",
            "connector: lake\npath: s3://lake/days/*.csv\n",
        ),
        (
            "models/total.sql",
            "-- @materialize: true\nSELECT sum(n) AS total FROM days",
        ),
    ])
    .extended()
}

/// The outcomes of a run by name.
fn run(sandbox: &Sandbox, arguments: &[&str], code: i32) -> Vec<(String, String)> {
    let said = sandbox.call(arguments);
    assert_eq!(said.code, Some(code), "{}{}", said.stdout, said.stderr);
    let document = said.json();
    let resources = document["resources"].as_array().expect("a list of resources");
    let word = |resource: &Value, key: &str| resource[key].as_str().unwrap_or_default().to_owned();
    let of = |resource: &Value| match resource["error"]["code"].as_str() {
        Some(code) => code.to_owned(),
        None => word(resource, "work"),
    };
    let all = resources
        .iter()
        .filter(|resource| resource["kind"] != "project_parser");
    all.map(|resource| (word(resource, "name"), of(resource)))
        .collect()
}

fn outcome<'a>(outcomes: &'a [(String, String)], name: &str) -> &'a str {
    let found = outcomes.iter().find(|(other, _)| other == name);
    found.map_or("", |(_, outcome)| outcome)
}

fn total(sandbox: &Sandbox) -> Value {
    sandbox.rows("SELECT total FROM total")[0][0].clone()
}

#[test]
fn a_refresh_builds_what_reads_changed_objects_and_nothing_else() {
    let Some(store) = Store::start() else { return };
    store.create_bucket("lake");
    store.write("lake", "days/a.csv", b"n\n1\n");
    store.write("lake", "days/b.csv", b"n\n2\n");
    store.write("lake", "other/c.csv", b"n\n100\n");
    let sandbox = project(&store.url());
    let first = run(&sandbox, &["run", "--json"], 0);
    assert_eq!(outcome(&first, "days"), "built");
    assert_eq!(total(&sandbox), 3);
    let asked = sandbox.rows("SELECT sum(n) FROM 's3://lake/days/*.csv'");
    assert_eq!(asked[0][0], 3, "questions have the connector's credentials");

    let idle = run(&sandbox, &["run", "--json"], 0);
    assert_eq!(outcome(&idle, "days"), "none");
    let asked = run(&sandbox, &["refresh", "days", "--json"], 0);
    assert_eq!(outcome(&asked, "days"), "checked", "the store has nothing new");

    // The same size within the same second: its tag alone says that it is another.
    store.write("lake", "days/b.csv", b"n\n7\n");
    let not_asked = run(&sandbox, &["run", "--json"], 0);
    assert_eq!(
        outcome(&not_asked, "days"),
        "none",
        "a run asks no store by itself"
    );
    let changed = run(&sandbox, &["refresh", "days", "--json"], 0);
    assert_eq!(
        (outcome(&changed, "days"), outcome(&changed, "total")),
        ("built", "built")
    );
    assert_eq!(total(&sandbox), 8);

    store.write("lake", "days/c.csv", b"n\n10\n");
    run(&sandbox, &["refresh", "days", "--json"], 0);
    assert_eq!(total(&sandbox), 18, "a new object of the pattern is read");
}

#[test]
fn other_credentials_build_nothing_and_stand_nowhere() {
    let Some(store) = Store::start() else { return };
    store.create_bucket("lake");
    store.write("lake", "days/a.csv", b"n\n1\n");
    let sandbox = project(&store.url());
    run(&sandbox, &["run", "--json"], 0);
    sandbox.write(".env", "lake_secret=another-4712\n");
    let outcomes = run(&sandbox, &["run", "--json", "--verbose"], 0);
    assert_eq!(outcome(&outcomes, "days"), "none");
    sandbox.assert_nowhere(&[SECRET, "another-4712"], "lake");
}

#[test]
fn what_is_wrong_is_said_and_the_last_good_table_stays() {
    let Some(mut store) = Store::start() else { return };
    store.create_bucket("lake");
    store.write("lake", "days/a.csv", b"n\n1\n");
    let sandbox = project(&store.url());
    run(&sandbox, &["run", "--json"], 0);

    sandbox.edit("sources/days.yaml", "days/*", "none/*");
    let missing = run(&sandbox, &["run", "--json"], 1);
    assert_eq!(outcome(&missing, "days"), "object-missing");
    sandbox.edit("sources/days.yaml", "s3://lake/none/*", "s3://pond/days/*");
    let no_bucket = run(&sandbox, &["run", "--json"], 1);
    assert_eq!(outcome(&no_bucket, "days"), "bucket-missing");
    sandbox.edit("sources/days.yaml", "s3://pond", "https://pond");
    let address = run(&sandbox, &["run", "--json"], 1);
    assert_eq!(outcome(&address, "days"), "bad-address");
    sandbox.edit("sources/days.yaml", "https://pond", "s3://lake");
    let confined = run(&sandbox, &["refresh", "days", "--sandbox", "--json"], 1);
    assert_eq!(outcome(&confined, "days"), "outside-sandbox");

    store.stop();
    let gone = run(&sandbox, &["refresh", "lake", "days", "--json"], 1);
    assert_eq!(outcome(&gone, "lake"), "connection-refused");
    assert_eq!(total(&sandbox), 1);
}

/// A web server with one file, whose tag is its content.
fn web(content: &str) -> (String, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let content = Arc::new(Mutex::new(content.to_owned()));
    let shown = Arc::clone(&content);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            answer(stream, &shown.lock().expect("nobody panicked"));
        }
    });
    (format!("http://{address}/rows.csv"), content)
}

/// Answers one request: HEAD, or GET of the whole or of a range.
fn answer(mut stream: TcpStream, content: &str) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let range = head.split_once("range: bytes=").and_then(|(_, rest)| {
        let (from, to) = rest.split("\r\n").next()?.split_once('-')?;
        Some((
            from.parse::<usize>().ok()?,
            to.parse::<usize>().unwrap_or(usize::MAX),
        ))
    });
    let tag = content.len().to_string() + &content.replace('\n', "-");
    let (status, body) = match range {
        Some((from, to)) => (
            "206 Partial Content",
            &content[from..content.len().min(to.saturating_add(1))],
        ),
        None => ("200 OK", content),
    };
    let length = body.len();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nETag: \"{tag}\"\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    if !head.starts_with("head") {
        answer.push_str(body);
    }
    let _ = stream.write_all(answer.as_bytes());
}

#[test]
fn a_file_of_a_web_server_is_read_again_when_its_tag_changes() {
    if !has_extension("httpfs") {
        return;
    }
    let (url, content) = web("n\n4\n");
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("sources/days.yaml", &format!("connector: https\npath: {url}\n")),
        (
            "models/total.sql",
            "-- @materialize: true\nSELECT sum(n) AS total FROM days",
        ),
    ])
    .extended();
    run(&sandbox, &["run", "--json"], 0);
    assert_eq!(total(&sandbox), 4);
    let asked = run(&sandbox, &["refresh", "days", "--json"], 0);
    assert_eq!(outcome(&asked, "days"), "checked");
    "n\n5\n".clone_into(&mut content.lock().expect("nobody panicked"));
    let changed = run(&sandbox, &["refresh", "days", "--json"], 0);
    assert_eq!(outcome(&changed, "days"), "built");
    assert_eq!(total(&sandbox), 5);
}

#[test]
fn of_partitions_that_are_objects_only_new_and_changed_ones_are_built() {
    let Some(store) = Store::start() else { return };
    store.create_bucket("lake");
    for day in 1..=3 {
        store.write(
            "lake",
            &format!("days/day={day}/a.csv"),
            format!("n\n{day}\n").as_bytes(),
        );
    }
    let sandbox = project(&store.url());
    sandbox.remove("sources/days.yaml");
    sandbox.write(
        "models/days.yaml",
        "type: model\nincremental: true\npartitions:\n  glob: {connector: lake, path: 's3://lake/days/*/*.csv', partition: hive}\n\
         output: {incremental_strategy: partition_overwrite}\n\
         sql: SELECT n, '{{ .partition.day }}' AS day FROM read_csv('{{ .partition.uri }}/*.csv')\n",
    );
    let first = run(&sandbox, &["run", "--json"], 0);
    assert_eq!(outcome(&first, "days"), "built");
    assert_eq!(total(&sandbox), 6);
    let numbers = "SELECT string_agg(day || ':' || n, ' ' ORDER BY day) FROM days";
    assert_eq!(sandbox.rows(numbers)[0][0], "1:1 2:2 3:3");
    let runs = || {
        let said = sandbox.call(&["partitions", "days", "--json"]).json();
        said["partitions"].as_array().cloned().unwrap_or_default()
    };
    let before = runs();
    assert_eq!(before.len(), 3);
    let same = run(&sandbox, &["refresh", "days", "--json"], 0);
    assert_eq!(
        (outcome(&same, "days"), outcome(&same, "total")),
        ("checked", "none")
    );
    assert_eq!(runs(), before);

    store.write("lake", "days/day=2/a.csv", b"n\n9\n");
    store.write("lake", "days/day=4/a.csv", b"n\n4\n");
    let changed = run(&sandbox, &["refresh", "days", "--json"], 0);
    assert_eq!(
        (outcome(&changed, "days"), outcome(&changed, "total")),
        ("built", "built")
    );
    assert_eq!(sandbox.rows(numbers)[0][0], "1:1 2:9 3:3 4:4");
    let again = runs();
    let kept = before.iter().filter(|run| again.contains(run)).count();
    assert_eq!((again.len(), kept), (4, 2), "{before:?} {again:?}");
    let confined = run(&sandbox, &["refresh", "days", "--sandbox", "--json"], 1);
    assert_eq!(outcome(&confined, "days"), "outside-sandbox");
}

#[test]
fn a_connector_that_answered_is_not_asked_at_the_next_start_and_one_that_failed_is() {
    let Some(store) = Store::start() else { return };
    store.create_bucket("lake");
    let stand_in = StandIn::start(&store);
    let connector = CONNECTOR.replace("endpoint: STORE", "ca_cert_file: proxy.pem");
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (".env", &format!("lake_secret={SECRET}\n")),
        ("connectors/lake.yaml", &connector),
        ("proxy.pem", stand_in.certificate()),
    ])
    .extended()
    .through(stand_in.url());
    let asked = |arguments: &[&str], code: i32| {
        let outcomes = run(&sandbox, arguments, code);
        let requests = stand_in.requests();
        assert!(
            requests.iter().all(|url| url.starts_with("GET https://lake.s3.")),
            "{requests:?}"
        );
        (outcome(&outcomes, "lake").to_owned(), requests.len())
    };
    let (said, none, one) = (|word: &str, times| (word.to_owned(), times), 0, 1);
    let start = ["run", "--json"];
    assert_eq!(asked(&start, 0), said("checked", one));
    assert_eq!(asked(&start, 0), said("none", none));
    sandbox.write("models/a.sql", "SELECT 1 AS x");
    assert_eq!(
        asked(&start, 0),
        said("none", none),
        "others' changes are not its own"
    );
    sandbox.write(".env", "lake_secret=another-4713\n");
    assert_eq!(asked(&start, 0), said("checked", one), "it logs in otherwise");

    store.know_no_key(true);
    assert_eq!(asked(&start, 0), said("none", none));
    let refresh = ["refresh", "lake", "--json"];
    assert_eq!(asked(&refresh, 1), said("credentials-refused", one));
    assert_eq!(
        asked(&start, 1),
        said("credentials-refused", one),
        "it failed last"
    );
    store.know_no_key(false);
    assert_eq!(asked(&start, 0), said("checked", one));
    assert_eq!(asked(&start, 0), said("none", none));
}
