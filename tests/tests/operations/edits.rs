//! Files that callers write, delete and rename over HTTP.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::client::{Client, Response};
use crate::http::{SHOP, Served};
use crate::project::{Place, SECRET};
use crate::roles::{CALLER, told};

/// Returns the path of a file over HTTP.
fn at(file: &str) -> String {
    format!("{SHOP}/files/{file}")
}

/// Returns the ETag in the head of an answer.
fn version(answer: &Response) -> String {
    answer.header("etag").map(str::to_owned).unwrap_or_default()
}

async fn rename(client: Client, from: &str, to: &str, version: &str) -> Response {
    let body = json!({ "from": from, "to": to });
    let headers = [("if-match", version)];
    client
        .send("POST", &format!("{SHOP}/rename-file"), &headers, Some(&body))
        .await
}

#[track_caller]
fn is_refused(answer: &Response, status: u16, code: &str) {
    let text = String::from_utf8_lossy(&answer.body);
    assert_eq!(
        (answer.status, &answer.json()["code"]),
        (status, &json!(code)),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api9_a_file_is_changed_in_the_version_that_the_caller_names() {
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let client = served.client;
    let file = at("models/new/made.sql");
    let made = client
        .put(&file, &[("if-none-match", "*")], b"SELECT 1 AS a\n")
        .await;
    assert_eq!(made.status, 200, "{}", String::from_utf8_lossy(&made.body));
    let first = version(&made);
    assert_eq!(made.json()["etag"], first.as_str());
    assert_eq!(version(&client.get(&file).await), first);

    // What is there is named, and the loser sees what it is.
    let again = client
        .put(&file, &[("if-none-match", "*")], b"SELECT 2 AS a\n")
        .await;
    is_refused(&again, 412, "already-exists");
    let unnamed = client.put(&file, &[], b"SELECT 2 AS a\n").await;
    is_refused(&unnamed, 428, "version-required");
    for stale in ["\"0\"", "\"0\", \"1\"", &format!("W/{first}")] {
        let refused = client
            .put(&file, &[("if-match", stale)], b"SELECT 2 AS a\n")
            .await;
        is_refused(&refused, 412, "stale-version");
        assert_eq!(version(&refused), first);
    }
    let edited = client
        .put(&file, &[("if-match", &first)], b"SELECT 2 AS a\n")
        .await;
    assert_eq!(edited.status, 200);
    let second = version(&edited);
    assert_ne!(first, second);
    // An edit by hand is another version as well.
    place.write("models/new/made.sql", "SELECT 3 AS a\n");
    let refused = client
        .put(&file, &[("if-match", &second)], b"SELECT 4 AS a\n")
        .await;
    is_refused(&refused, 412, "stale-version");
    let third = version(&refused);
    let text = || std::fs::read_to_string(place.root().join("models/new/made.sql"));
    assert_eq!(text().expect("a file"), "SELECT 3 AS a\n");

    is_refused(
        &rename(client, "models/new/made.sql", "models/late.sql", &third).await,
        412,
        "already-exists",
    );
    is_refused(
        &rename(client, "models/new/made.sql", "models/other.sql", &second).await,
        412,
        "stale-version",
    );
    is_refused(
        &rename(client, "models/none.sql", "models/other.sql", "*").await,
        404,
        "unknown-name",
    );
    let renamed = rename(client, "models/new/made.sql", "models/deep/er/other.sql", &third).await;
    assert_eq!((renamed.status, version(&renamed)), (200, third.clone()));
    assert!(text().is_err());
    let other = at("models/deep/er/other.sql");
    let delete = async |headers: &[(&str, &str)]| client.send("DELETE", &other, headers, None).await;
    is_refused(&delete(&[]).await, 428, "version-required");
    is_refused(&delete(&[("if-match", &second)]).await, 412, "stale-version");
    assert_eq!(delete(&[("if-match", &third)]).await.status, 200);
    is_refused(&delete(&[("if-match", &third)]).await, 404, "unknown-name");
    is_refused(
        &client.put(&other, &[("if-match", &third)], b"SELECT 5\n").await,
        412,
        "stale-version",
    );
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api9_of_writers_at_once_exactly_one_wins_and_the_others_see_its_version() {
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let client = served.client;
    let file = at("models/late.sql");
    for round in 0..5 {
        let before = version(&client.get(&file).await);
        let writers = (0..8).map(|writer| {
            let (file, before) = (file.clone(), before.clone());
            tokio::spawn(async move {
                let text = format!("-- @materialize: true\nSELECT {round} AS day, {writer} AS delay\n");
                client.put(&file, &[("if-match", &before)], text.as_bytes()).await
            })
        });
        let mut answers = Vec::new();
        for writer in writers.collect::<Vec<_>>() {
            answers.push(writer.await.expect("an answer"));
        }
        let won: Vec<&Response> = answers.iter().filter(|answer| answer.status == 200).collect();
        assert_eq!(
            won.len(),
            1,
            "{:?}",
            answers.iter().map(|it| it.status).collect::<Vec<_>>()
        );
        for lost in answers.iter().filter(|answer| answer.status != 200) {
            is_refused(lost, 412, "stale-version");
            assert_eq!(version(lost), version(won[0]));
        }
        assert_eq!(version(&client.get(&file).await), version(won[0]));
    }
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api23_the_answer_to_an_edit_has_its_mistakes_and_the_history_names_who_asked() {
    let place = Place::new(&[]);
    let served = Served::with(&place, told).await;
    let client = served.client;
    let write = async |text: &str| {
        let file = at("models/late.sql");
        let headers = [(CALLER, "edit"), ("if-match", "*")];
        client.put(&file, &headers, text.as_bytes()).await.json()
    };
    let broken = write("-- @materialize: true\nSELEC 1 AS day\n").await;
    let found = broken["diagnostics"].as_array().expect("findings");
    assert_eq!(
        (found.len(), &found[0]["path"], &found[0]["line"]),
        (1, &json!("models/late.sql"), &json!(2))
    );
    assert_eq!(found[0]["severity"], "error");
    let good =
        write("-- @materialize: true\nSELECT DATE '2024-03-01' AS day, 'JFK' AS origin, 10 AS delay\n").await;
    assert_eq!(
        (&good["diagnostics"], &good["is_applied"]),
        (&json!([]), &json!(true)),
        "{good}"
    );
    let id = good["request"].as_str().expect("an id");
    let settled = [(CALLER, "operate"), ("prefer", "wait=60")];
    let run = client
        .send("POST", &format!("{SHOP}/run"), &settled, Some(&json!({})))
        .await;
    assert_eq!(run.status, 200);
    let history = format!("{SHOP}/resources/model/late/history");
    let history = client.send("GET", &history, &[(CALLER, "operate")], None).await;
    let text = String::from_utf8_lossy(&history.body).into_owned();
    assert!(
        text.contains(id) && text.contains("models/late.sql, by CAUSE-MARK over HTTP"),
        "{text}"
    );
    // What is there already sets nothing going.
    let same =
        write("-- @materialize: true\nSELECT DATE '2024-03-01' AS day, 'JFK' AS origin, 10 AS delay\n").await;
    assert_eq!(same["request"], Value::Null);
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api22_nothing_but_files_of_the_format_is_written_however_the_path_is_spelt() {
    let place = Place::new(&[
        ("../beside.sql", "SELECT 'beside'\n"),
        ("models/.git/inner.sql", "x"),
    ]);
    let outside = place.root().parent().expect("a folder").join("outside");
    std::fs::create_dir(&outside).expect("a folder can be made");
    for (to, link) in [("outside", "models/out"), ("beside.sql", "models/out.sql")] {
        let beside = place.root().parent().expect("a folder").join(to);
        symlink(beside, place.root().join(link)).expect("a link can be made");
    }
    let served = Served::new(&place).await;
    let before = list(place.root().parent().expect("a folder"));
    let long = format!("files/{}.sql", "x".repeat(300));
    let spelt = [
        "files/%2eenv",
        "files/shop.env",
        "files/models/.env",
        "files/.ENV",
        "files/../beside.sql",
        "files/..%2fbeside.sql",
        "files/%2e%2e/beside.sql",
        "files/%2e%2e%2fbeside.sql",
        "files/..%5cbeside.sql",
        "files/models/../../beside.sql",
        "files/./models/a.sql",
        "files//models/a.sql",
        "files/models//a.sql",
        "files/models%2fa.sql",
        "files/models/a.sql%00",
        "files/models/a.sql%00.md",
        "files/%2fetc/x.sql",
        "files//etc/x.sql",
        "files/%c0%ae%c0%ae/a.sql",
        "files/%ff.sql",
        "files/models/a.sql/",
        "files/models/late.sql/x.sql",
        "files/models/out.sql",
        "files/models/out/x.sql",
        "files/models/.git/inner.sql",
        "files/models/.GIT/other.sql",
        "files/.git/config",
        "files/.git/hooks/a.sql",
        "files/tmp/a.sql",
        "files/.watershed/dev/a.sql",
        "files/.WATERSHED/dev/a.sql",
        "files/.watershed/key",
        "files/data/1.csv",
        "files/thing.sh",
        "files/models",
        "files/models/LATE.sql",
        "files/Models/a.sql",
        "files/models/a.SQL",
        "files/models/.#a.sql",
        "files/models/._a.sql",
        "files/models/%20a.sql",
        "files/models/a%20/b.sql",
        "files/models/a./b.sql",
        "files/models/%E2%80%AEa.sql",
        "files/models/e%CC%81te.sql",
        "files/models/a%3Cb.sql",
        "files/models/a%0Ab.sql",
        long.as_str(),
    ];
    for path in spelt {
        for headers in [vec![], vec![("if-match", "*")], vec![("if-none-match", "*")]] {
            let answer = served
                .client
                .put(&format!("{SHOP}/{path}"), &headers, b"SELECT 1 AS a\n")
                .await;
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert!(
                matches!(answer.status, 400 | 404 | 409 | 412),
                "{path}: {} {text}",
                answer.status
            );
            let folder = place.root().display().to_string();
            assert!(
                !text.contains(SECRET) && !text.contains(&folder),
                "{path}: {text}"
            );
        }
        for method in ["DELETE", "GET"] {
            let line = format!(
                "{method} {SHOP}/{path} HTTP/1.1\r\nhost: localhost\r\nif-match: *\r\nconnection: close\r\n\r\n"
            );
            let answer = served.client.raw(line.as_bytes()).await.expect("an answer");
            assert!(
                matches!(answer.status, 400 | 404),
                "{method} {path}: {}",
                answer.status
            );
        }
    }
    assert_eq!(list(place.root().parent().expect("a folder")), before);
    let large = vec![b'-'; (128 << 10) + 1];
    assert_eq!(
        served.client.put(&at("models/a.sql"), &[], &large).await.status,
        413
    );
    let whole = vec![b'-'; 128 << 10];
    assert_eq!(
        served.client.put(&at("models/a.sql"), &[], &whole).await.status,
        200
    );
    served.close().await;
}

/// Lists the files and folders below a folder, without those of the state.
fn list(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("it can be listed") {
        let entry = entry.expect("an entry");
        let path = entry.path();
        if entry.file_name() == ".watershed" {
            continue;
        }
        found.push(path.display().to_string());
        if entry.file_type().expect("a type").is_dir() {
            found.extend(list(&path));
        }
    }
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api22_folders_that_are_swapped_for_links_during_writes_lead_nowhere() {
    let place = Place::new(&[("swapped/a.sql", "SELECT 1 AS a\n")]);
    let outside = place.root().parent().expect("a folder").join("outside");
    std::fs::create_dir(&outside).expect("a folder can be made");
    let served = Served::new(&place).await;
    let ended = Arc::new(AtomicBool::new(false));
    let swapping = {
        let (root, outside, ended) = (place.root().to_owned(), outside.clone(), Arc::clone(&ended));
        std::thread::spawn(move || {
            let mut swapped = 0;
            while !ended.load(Ordering::Acquire) {
                // Where a write has made the folder anew meanwhile, the next round takes that one.
                let _ = std::fs::remove_dir_all(root.join("aside"));
                let _ = std::fs::rename(root.join("swapped"), root.join("aside"));
                if symlink(&outside, root.join("swapped")).is_ok() {
                    swapped += 1;
                    std::fs::remove_file(root.join("swapped")).expect("it can be removed");
                    let _ = std::fs::rename(root.join("aside"), root.join("swapped"));
                }
            }
            swapped
        })
    };
    for number in 0..60 {
        let text = format!("SELECT {number} AS a\n");
        let file = at(&format!("swapped/{}.sql", number % 7));
        let answer = served
            .client
            .put(&file, &[("if-match", "*")], text.as_bytes())
            .await;
        assert!(
            matches!(answer.status, 200 | 404 | 412 | 503),
            "{}",
            answer.status
        );
        let answer = served
            .client
            .put(&file, &[("if-none-match", "*")], text.as_bytes())
            .await;
        assert!(
            matches!(answer.status, 200 | 404 | 412 | 503),
            "{}",
            answer.status
        );
    }
    ended.store(true, Ordering::Release);
    let swapped = swapping.join().expect("it ends");
    assert!(swapped > 0, "the folder was swapped at no time");
    assert_eq!(list(&outside), Vec::<String>::new());
    let left = list(place.root());
    assert!(!left.iter().any(|path| path.ends_with(".tmp")), "{left:?}");
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api19_variables_are_replaced_by_an_admin_and_read_by_nobody() {
    let place = Place::new(&[]);
    let served = Served::with(&place, told).await;
    let client = served.client;
    let file = at(".env");
    let put = async |role: &str, more: &[(&str, &str)], text: &str| {
        let headers = [&[(CALLER, role)], more].concat();
        client.put(&file, &headers, text.as_bytes()).await
    };
    for role in ["read", "operate", "edit"] {
        assert_eq!(
            put(role, &[], "PLANTED=other-value\n").await.status,
            403,
            "{role}"
        );
    }
    let planted = "PLANTED=another-secret-value\n";
    assert_eq!(put("admin", &[("if-none-match", "*")], planted).await.status, 412);
    assert_eq!(put("admin", &[("if-match", "\"0\"")], planted).await.status, 400);
    let written = put("admin", &[], planted).await;
    assert_eq!((written.status, written.header("etag")), (200, None));
    let text = String::from_utf8_lossy(&written.body);
    assert!(!text.contains("another-secret-value"), "{text}");
    let on_disk = std::fs::read_to_string(place.root().join(".env"));
    assert_eq!(on_disk.expect("a file"), planted);
    for (method, path) in [("GET", file.as_str()), ("DELETE", &file)] {
        let answer = client
            .send(method, path, &[(CALLER, "admin"), ("if-match", "*")], None)
            .await;
        is_refused(&answer, 404, "unknown-name");
    }
    let listed = client
        .send("GET", &format!("{SHOP}/files"), &[(CALLER, "admin")], None)
        .await;
    assert!(!String::from_utf8_lossy(&listed.body).contains(".env"));
    // The new value is hidden as the old one was.
    let broken = "-- @materialize: true\nSELECT '{{ .env.PLANTED }}' AS day FROM nowhere_at_all\n";
    let headers = [(CALLER, "edit"), ("if-match", "*")];
    client
        .put(&at("models/late.sql"), &headers, broken.as_bytes())
        .await;
    let spec = format!("{SHOP}/resources/model/late?include=spec");
    let spec = client.send("GET", &spec, &[(CALLER, "admin")], None).await;
    let spec = String::from_utf8_lossy(&spec.body);
    assert!(!spec.contains("another-secret-value"), "{spec}");
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api40_files_that_run_programs_are_changed_by_the_services_own_user_alone() {
    let place = Place::new(&[]).without_remote_edit();
    let served = Served::with(&place, told).await;
    let client = served.client;
    let before = list(place.root());
    let file = at("models/late.sql");
    let (admin, any) = ((CALLER, "admin"), ("if-match", "*"));
    let renaming = json!({"from": "models/late.sql", "to": "models/later.sql"});
    for refused in [
        client.put(&file, &[admin, any], b"SELECT 1 AS a\n").await,
        client
            .put(&at("models/new.sql"), &[admin], b"SELECT 1 AS a\n")
            .await,
        client.put(&at(".env"), &[admin], b"A=1\n").await,
        client.send("DELETE", &file, &[admin, any], None).await,
        client
            .send(
                "POST",
                &format!("{SHOP}/rename-file"),
                &[admin, any],
                Some(&renaming),
            )
            .await,
    ] {
        is_refused(&refused, 403, "remote-edit-off");
    }
    assert_eq!(list(place.root()), before);
    // Reading changes nothing, and so does a check.
    let checked = json!({"files": {"models/late.sql": "SELECT 1"}});
    let checked = client
        .send("POST", &format!("{SHOP}/check"), &[admin], Some(&checked))
        .await;
    assert_eq!(checked.status, 200);
    let text = b"SELECT 1 AS day, 'a' AS origin, 1 AS delay\n";
    let by_owner = client.put(&file, &[(CALLER, "owner"), any], text).await;
    assert_eq!(by_owner.status, 200);
    served.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api23_unsaved_texts_are_compiled_over_the_project_and_nothing_is_touched() {
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let client = served.client;
    let before = list(place.root());
    let resources = client.get(&format!("{SHOP}/resources")).await.body;
    let check = async |files: Value| {
        client
            .post(&format!("{SHOP}/check"), &json!({ "files": files }))
            .await
    };
    let codes = |answer: &Response| -> Vec<(String, String)> {
        let found = answer.json()["diagnostics"]
            .as_array()
            .cloned()
            .expect("findings");
        let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let all = found.iter().filter(|it| it["severity"] == "error");
        all.map(|one| (text(one, "path"), text(one, "code"))).collect()
    };
    let now = codes(&check(json!({})).await);
    let broken = check(json!({"models/late.sql": "SELEC 1", "models/added.sql": "SELECT 1 AS a"})).await;
    assert_eq!(broken.status, 200);
    assert!(
        codes(&broken).iter().any(|(path, _)| path == "models/late.sql"),
        "{:?}",
        codes(&broken)
    );
    let without = check(json!({ "watershed.yaml": null })).await.json();
    assert_eq!(without["not_applied"]["code"], "manifest-missing", "{without}");
    // What a check laid over is gone with its answer.
    assert_eq!(codes(&check(json!({})).await), now);
    for path in [
        ".env",
        "../a.sql",
        "data/1.csv",
        ".git/a.sql",
        "models/../late.sql",
        "/a.sql",
        "",
    ] {
        let answer = check(json!({ path: "SELECT 1" })).await;
        is_refused(&answer, 400, "bad-argument");
    }
    let large = "-".repeat((128 << 10) + 1);
    is_refused(
        &check(json!({ "models/late.sql": large })).await,
        400,
        "bad-argument",
    );
    let many: serde_json::Map<String, Value> = (0..1_001)
        .map(|number| (format!("models/m{number}.sql"), json!("SELECT 1")))
        .collect();
    is_refused(&check(many.into()).await, 400, "bad-argument");
    assert_eq!(list(place.root()), before);
    assert_eq!(client.get(&format!("{SHOP}/resources")).await.body, resources);
    served.close().await;
}
