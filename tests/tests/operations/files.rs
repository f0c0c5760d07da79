//! Files of the project over HTTP: those that the format reads, and nothing beside them.

use serde_json::{Value, json};

use crate::http::{SHOP, Served};
use crate::project::{Place, SECRET};

#[tokio::test(flavor = "multi_thread")]
async fn s_api4_files_are_listed_with_what_they_declare_and_read_by_version() {
    let place = Place::new(&[("notes.md", "# Notes\n"), ("notes.txt", "not the format's\n")]);
    let served = Served::new(&place).await;
    let listed = served.client.get(&format!("{SHOP}/files")).await.json();
    let find = |path: &str| -> Value {
        let files = listed["files"].as_array().expect("files");
        let found = files.iter().find(|file| file["path"] == path);
        found.cloned().unwrap_or_default()
    };
    let late = find("models/late.sql");
    assert_eq!(late["declares"], json!([{"kind": "model", "name": "late"}]));
    assert_eq!(find("notes.md")["bytes"], 8);
    assert_eq!(find("watershed.yaml")["declares"], json!([]));
    for path in ["notes.txt", ".env", "data/1.csv", "thing.sh", "public/logo.svg"] {
        assert_eq!(find(path), Value::Null, "{path}");
    }

    let path = format!("{SHOP}/files/models/late.sql");
    let read = served.client.get(&path).await;
    let text = std::fs::read(place.root().join("models/late.sql")).expect("it is there");
    assert_eq!((read.status, read.body.as_slice()), (200, text.as_slice()));
    let version = read.header("etag").expect("a version").to_owned();
    assert_eq!(late["etag"], version.as_str());
    let named = format!("\"other\", W/{version}");
    let again = served
        .client
        .send("GET", &path, &[("if-none-match", named.as_str())], None)
        .await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    place.write("models/late.sql", "-- @materialize: true\nSELECT 1 AS day\n");
    let headers = [("if-none-match", version.as_str())];
    let edited = served.client.send("GET", &path, &headers, None).await;
    assert_eq!(edited.status, 200);
    assert_ne!(edited.header("etag"), Some(version.as_str()));
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api9_a_resource_has_a_version_that_changes_with_its_document() {
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let path = format!("{SHOP}/resources/model/late");
    let version = |response: &crate::client::Response| response.header("etag").map(str::to_owned);
    let first = served.client.get(&path).await;
    let known = version(&first).expect("a version");
    let headers = [("if-none-match", known.as_str())];
    let again = served.client.send("GET", &path, &headers, None).await;
    assert_eq!(
        (again.status, again.body.len(), version(&again)),
        (304, 0, version(&first))
    );
    let paused = served.client.post(&format!("{path}/pause"), &json!({})).await;
    assert_eq!(paused.status, 200);
    let changed = served.client.send("GET", &path, &headers, None).await;
    assert_eq!(
        (changed.status, &changed.json()["health"]),
        (200, &json!("paused"))
    );
    // What is left out or added is another document.
    let other = served
        .client
        .send("GET", &format!("{path}?fields=health"), &headers, None)
        .await;
    assert_eq!(other.status, 200);
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api22_nothing_but_files_of_the_format_is_served_however_the_path_is_spelt() {
    let place = Place::new(&[
        ("shop.env", "OTHER=1\n"),
        ("models/.git/inner.sql", "SELECT 'git'\n"),
        ("tmp/inner.sql", "SELECT 'tmp'\n"),
        ("../beside.sql", "SELECT 'beside'\n"),
        ("public/.hidden/a.txt", "hidden"),
    ]);
    let links = [
        ("beside.sql", "models/out.sql"),
        ("shop/models/late.sql", "models/in.sql"),
    ];
    for (to, link) in links {
        let beside = place.root().parent().expect("a folder").join(to);
        std::os::unix::fs::symlink(beside, place.root().join(link)).expect("a link can be made");
    }
    let served = Served::new(&place).await;
    let spelt = [
        "files/.env",
        "files/%2eenv",
        "files/shop.env",
        "files/../beside.sql",
        "files/..%2fbeside.sql",
        "files/%2e%2e/beside.sql",
        "files/%2e%2e%2fbeside.sql",
        "files/%252e%252e/beside.sql",
        "files/..%5cbeside.sql",
        "files/models/../../beside.sql",
        "files/models/%2e%2e/.env",
        "files/./models/late.sql",
        "files//models/late.sql",
        "files/models//late.sql",
        "files/models%2flate.sql",
        "files/models/late.sql%00",
        "files/models/late.sql%00.md",
        "files/%2fetc/passwd",
        "files//etc/passwd",
        "files/etc/passwd",
        "files/%c0%ae%c0%ae/beside.sql",
        "files/%ff.sql",
        "files/models/late.sql/",
        "files/models/late.sql/..",
        "files/models/late.sql/x.sql",
        "files/models/out.sql",
        "files/models/in.sql",
        "files/models/.git/inner.sql",
        "files/tmp/inner.sql",
        "files/.watershed/dev/catalog.db",
        "files/.watershed/key",
        "files/.git/config",
        "files/data/1.csv",
        "files/thing.sh",
        "files/public/logo.svg",
        "files/models",
        "files/models/LATE.sql",
        "files/models/late.SQL",
        "files/models/none.sql",
        "files/%E2%80%AEmodels/late.sql",
        "files/models/la%CC%81te.sql",
        "public/.env",
        "public/models/late.sql",
        "public/public/../.env",
        "public/public/%2e%2e/.env",
        "public/public/.hidden/a.txt",
        "public/logo.svg",
        "public/public",
        "public/public/",
        "public/watershed.yaml",
    ];
    for path in spelt {
        let line = format!("GET {SHOP}/{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let answer = served.client.raw(line.as_bytes()).await.expect("an answer");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(
            matches!(answer.status, 400 | 404),
            "{path}: {} {text}",
            answer.status
        );
        let code = answer.json()["code"].clone();
        assert!(code == "unknown-name" || code == "bad-argument", "{path}: {code}");
        let folder = place.root().display().to_string();
        assert!(
            !text.contains(SECRET) && !text.contains(&folder),
            "{path}: {text}"
        );
    }
    // A long one is refused as well, and the service goes on.
    let long = format!("{SHOP}/files/{}.sql", "x".repeat(5_000));
    assert_eq!(served.client.get(&long).await.status, 404);
    let plain = served.client.get(&format!("{SHOP}/files/models/late.sql")).await;
    assert_eq!(
        (plain.status, plain.header("x-content-type-options")),
        (200, Some("nosniff"))
    );
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn public_files_run_nothing_where_they_are_opened() {
    let place = Place::new(&[("public/page.html", "<script>alert(1)</script>")]);
    let served = Served::new(&place).await;
    let picture = served.client.get(&format!("{SHOP}/public/public/logo.svg")).await;
    assert_eq!(
        (picture.status, picture.header("content-type")),
        (200, Some("image/svg+xml"))
    );
    let policy = picture.header("content-security-policy").unwrap_or_default();
    assert!(
        policy.contains("default-src 'none'") && policy.contains("sandbox"),
        "{policy}"
    );
    let page = served
        .client
        .get(&format!("{SHOP}/public/public/page.html"))
        .await;
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, Some("application/octet-stream"))
    );
    served.close().await;
}
