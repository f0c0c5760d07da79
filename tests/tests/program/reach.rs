//! Stores and web servers that an operator lists for a confined project.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::Signal;
use serde_json::Value;
use watershed_tests::s3::Store;

use crate::sandbox::Sandbox;
use crate::serving::Serving;

const CONNECTOR: &str = "type: connector\ndriver: s3\naws_access_key_id: key-of-a-test\naws_secret_access_key: secret-of-a-test\npath_style: true\n";

fn run(service: &Serving) -> Value {
    let more = "content-type: application/json\r\nprefer: wait=60\r\n";
    let (status, _, body) = service.ask("POST", "/v1/instances/shop/run", more);
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).expect("a document")
}

/// Returns the error's code of each resource that failed, by name, with its text.
fn errors(service: &Serving) -> Vec<(String, String, String)> {
    let list = service.json("/v1/instances/shop/resources?limit=1000&all=true");
    let resources = list["resources"].as_array().expect("resources");
    let failed = resources.iter().filter(|it| it["error"].is_object());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    failed
        .map(|it| {
            (
                text(&it["name"]),
                text(&it["error"]["code"]),
                it["error"].to_string(),
            )
        })
        .collect()
}

/// Answers each request on a port with the same bytes; returns the port and the number of connections.
fn server(answer: String) -> (u16, Arc<AtomicUsize>) {
    let number = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&number);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            counted.fetch_add(1, Ordering::Relaxed);
            let mut asked = [0; 4096];
            let length = stream.read(&mut asked).unwrap_or_default();
            let is_head = asked
                .get(..length)
                .is_some_and(|asked| asked.starts_with(b"HEAD"));
            let sent = match is_head {
                true => answer.split_inclusive("\r\n\r\n").next().unwrap_or(&answer),
                false => &answer,
            };
            let _ = stream.write_all(sent.as_bytes());
        }
    });
    (port, number)
}

#[test]
fn s_api40_a_confined_project_reads_and_writes_listed_addresses_and_no_others() {
    let Some(store) = Store::start() else { return };
    let (elsewhere, asked_elsewhere) =
        server("HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nx\n1\n".to_owned());
    let (redirects, _) = server(format!(
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{elsewhere}/x.csv\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    ));
    for bucket in ["lake", "other"] {
        store.create_bucket(bucket);
    }
    store.write("lake", "raw/day=1/a.csv", b"word\none\n");
    store.write("lake", "raw/day=2/b.csv", b"word\ntwo\n");
    for key in ["secret/a.csv", "rawer/a.csv"] {
        store.write("lake", key, b"word\nhidden\n");
    }
    store.write("other", "raw/a.csv", b"word\nhidden\n");
    let url = store.url();
    let listed = format!("http://127.0.0.1:{redirects}/data/");
    let sandbox = Sandbox::with(&[
        ("shop/watershed.yaml", ""),
        ("shop/connectors/lake.yaml", &format!("{CONNECTOR}endpoint: '{url}'\n")),
        (
            "shop/connectors/evil.yaml",
            &format!("{CONNECTOR}endpoint: 'http://127.0.0.1:{elsewhere}'\n"),
        ),
        (
            "server.yaml",
            &format!(
                "listen: 127.0.0.1:0\negress: {{allow: [127.0.0.1]}}\ninstances:\n  shop:\n    project: shop\n    reach: ['s3://lake/raw/', 's3://lake/out/', '{url}', '{listed}']\n"
            ),
        ),
    ])
    .extended()
    .with_variable("AWS_ACCESS_KEY_ID", "key-of-the-service")
    .with_variable("AWS_SECRET_ACCESS_KEY", "secret-of-the-service");
    let source = |name: &str, connector: &str, path: &str| {
        let text = format!("type: source\nconnector: {connector}\npath: '{path}'\nformat: csv\n");
        sandbox.write(&format!("shop/sources/{name}.yaml"), &text);
    };
    source("inside", "lake", "s3://lake/raw/*/*.csv");
    let outside = [
        ("secret", "lake", "s3://lake/secret/a.csv".to_owned()),
        ("sibling", "lake", "s3://lake/rawer/a.csv".to_owned()),
        ("pattern", "lake", "s3://lake/*/a.csv".to_owned()),
        ("upwards", "lake", "s3://lake/raw/../secret/a.csv".to_owned()),
        ("bucket", "lake", "s3://other/raw/a.csv".to_owned()),
        ("endpoint", "evil", "s3://lake/raw/day=1/a.csv".to_owned()),
        ("web", "https", format!("http://127.0.0.1:{elsewhere}/x.csv")),
        ("dots", "https", format!("{listed}../x.csv")),
        ("encoded", "https", format!("{listed}%2e%2e/x.csv")),
    ];
    for (name, connector, path) in &outside {
        source(name, connector, path);
    }
    source("moved", "https", &format!("{listed}x.csv"));
    sandbox.write(
        "shop/models/by_engine.sql",
        "-- @materialize: true\nSELECT * FROM read_csv('s3://lake/raw/day=1/a.csv')",
    );
    for (name, path) in [
        ("written", "s3://lake/out/words.csv"),
        ("leaked", "s3://other/words.csv"),
    ] {
        let text = format!(
            "type: model\nsql: FROM inside\nmaterialize: true\noutput:\n  connector: lake\n  path: {path}\n"
        );
        sandbox.write(&format!("shop/models/{name}.yaml"), &text);
    }
    let service = Serving::begin(&sandbox, &["serve", "-c", "server.yaml"]);
    while service.ask("GET", "/readyz", "").0 != 200 {}
    run(&service);
    let failed = errors(&service);
    let code = |name: &str| {
        let found = failed.iter().find(|(failed, ..)| failed == name);
        found.map_or("none", |(_, code, _)| code.as_str())
    };
    assert_eq!(code("inside"), "none", "{failed:?}");
    let asked = sandbox.call(&[
        "query",
        "-C",
        "shop",
        "--format",
        "csv",
        "SELECT word, day FROM inside ORDER BY ALL",
    ]);
    assert_eq!(asked.stdout, "word,day\none,1\ntwo,2\n", "{}", asked.stderr);
    for (name, ..) in &outside {
        assert_eq!(code(name), "outside-sandbox", "{name}: {failed:?}");
    }
    assert_eq!(code("moved"), "store-failed", "a redirect leads out: {failed:?}");
    assert_ne!(code("by_engine"), "none", "the engine reaches no network");
    assert_eq!(code("written"), "none", "{failed:?}");
    assert_eq!(
        store
            .keys("lake")
            .iter()
            .filter(|key| key.starts_with("out/"))
            .count(),
        1
    );
    assert_eq!(code("leaked"), "outside-sandbox", "{failed:?}");
    assert_eq!(store.keys("other"), ["raw/a.csv"]);
    assert_eq!(
        asked_elsewhere.load(Ordering::Relaxed),
        0,
        "nothing outside was asked"
    );
    let fetched = sandbox.path().join("shop/.watershed/dev/exports/parts");
    let left = std::fs::read_dir(fetched).map_or(0, Iterator::count);
    assert_eq!(left, 0, "what was fetched is removed after the build");
    assert!(!service.end(Signal::TERM).1.contains("of-the-service"));
}

#[test]
fn s_api40_listed_extensions_are_loaded_and_hold_to_the_sandbox() {
    let sandbox = Sandbox::with(&[
        ("shop/watershed.yaml", ""),
        (
            "shop/models/book.sql",
            "-- @materialize: true\nSELECT * FROM read_xlsx('data/book.xlsx')",
        ),
        (
            "server.yaml",
            "listen: 127.0.0.1:0\ninstances:\n  shop: {project: shop, extensions: [excel]}\n",
        ),
        ("made/watershed.yaml", ""),
        ("made/connectors/outbox.yaml", "type: connector\ndriver: file\npath: outbox\n"),
        (
            "made/reports/words.yaml",
            "type: report\nrefresh: {every: 24h}\ndata: {sql: SELECT 'mine' AS word}\nexport: {format: xlsx}\nnotify: {file: outbox}\n",
        ),
    ])
    .extended();
    let made = sandbox.path().join("shop/data");
    std::fs::create_dir_all(&made).expect("a folder");
    let book = made.join("book.xlsx").display().to_string();
    assert_eq!(sandbox.call(&["run", "-C", "made"]).code, Some(0));
    let written = sandbox.call(&["report", "run", "-C", "made", "words", "--out", &book]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    std::fs::copy(made.join("book.xlsx"), sandbox.path().join("outside.xlsx")).expect("a copy");
    sandbox.write(
        "shop/models/outside.sql",
        &format!(
            "-- @materialize: true\nSELECT * FROM read_xlsx('{}')",
            sandbox.path().join("outside.xlsx").display()
        ),
    );
    let service = Serving::begin(&sandbox, &["serve", "-c", "server.yaml"]);
    while service.ask("GET", "/readyz", "").0 != 200 {}
    run(&service);
    let failed = errors(&service);
    let codes: Vec<_> = failed
        .iter()
        .map(|(name, code, _)| (name.as_str(), code.as_str()))
        .collect();
    assert_eq!(codes, [("outside", "outside-sandbox")], "{failed:?}");
    assert_eq!(service.end(Signal::TERM).0, Some(143));
}
