//! Files of reports over HTTP: by a signed address, and by role.

use std::fs;

use serde_json::{Value, json};
use watershed::http::ExportLinks;
use watershed_api::request::RunRequest;

use crate::access::{FAR_MS, Guarded};
use crate::client::Response;
use crate::project::{LONG, Place};

/// The URL of the service for receivers.
const ADDRESS: &str = "https://data.example.org/base";

/// A service whose instance `shop` has sent a report with a link to its file.
struct Sent {
    place: Place,
    folder: tempfile::TempDir,
    served: Guarded,
    /// The path and query of the link.
    link: String,
    /// The content of the file.
    content: Vec<u8>,
}

impl Sent {
    async fn new() -> Self {
        let (place, folder) = (Place::new(&[]), tempfile::tempdir().expect("a folder"));
        let owner = place
            .owned_by(|runtime, options| {
                let links = ExportLinks::new(options, "shop", ADDRESS).expect("a state folder");
                runtime.clone().with_links(links)
            })
            .await;
        let mut run = owner.instance.run_report("late").await.expect("it is a report");
        run.outcome(LONG).await.expect("it is made");
        owner
            .instance
            .controller()
            .wait_until_idle(LONG)
            .await
            .expect("it comes to rest");
        let told = fs::read_dir(place.root().join("told")).expect("messages are there");
        let messages = told.map(|entry| fs::read(entry.expect("a file").path()).expect("a message"));
        let attachment = messages
            .filter_map(|text| serde_json::from_slice::<Value>(&text).ok())
            .map(|message| message["attachment"].clone())
            .find(|attachment| attachment["link"].is_string())
            .expect("a message with a file");
        let link = attachment["link"].as_str().expect("a link");
        let path = attachment["path"].as_str().expect("a path");
        let content = fs::read(path).expect("the file is there");
        Self {
            link: link
                .strip_prefix(ADDRESS)
                .expect("it begins with the address")
                .to_owned(),
            content,
            served: Guarded::over(owner, &folder.path().join("s.db")).await,
            place,
            folder,
        }
    }

    async fn get(&self, path: &str) -> Response {
        self.served.client.get(path).await
    }

    /// Returns the path of the link without its signature, and the signature.
    fn parts(&self) -> (&str, &str) {
        self.link.split_once("?signature=").expect("a signature")
    }

    fn id(&self) -> &str {
        self.parts().0.rsplit_once('/').expect("an id").1
    }

    async fn close(self) {
        self.served.close().await;
        drop((self.place, self.folder));
    }
}

fn assert_same(one: &Response, other: &Response) {
    assert_eq!((one.status, &one.body), (other.status, &other.body));
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api43_a_signed_address_gives_one_file_to_who_has_no_role() {
    let sent = Sent::new().await;
    let (path, signature) = sent.parts();
    let given = sent.get(&sent.link).await;
    assert_eq!((given.status, &given.body), (200, &sent.content));
    for (name, value) in [
        ("content-type", "text/csv"),
        ("cache-control", "private, no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "default-src 'none'; sandbox"),
        ("content-length", &sent.content.len().to_string()),
    ] {
        assert_eq!(given.header(name), Some(value), "{}", given.head);
    }
    let disposition = given.header("content-disposition").expect("a name");
    assert!(
        disposition.starts_with("attachment; filename=\"late-"),
        "{disposition}"
    );
    let version = given.header("etag").expect("a version").to_owned();
    assert_eq!(version, format!("\"{}\"", blake3::hash(&sent.content).to_hex()));
    let known = [("if-none-match", version.as_str())];
    let again = sent.served.client.send("GET", &sent.link, &known, None).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    let head = sent.served.client.send("HEAD", &sent.link, &[], None).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    // Nothing else is reached with it.
    for other in [
        "/v1/instances/shop/resources",
        "/v1/instances",
        "/v1/me",
        "/v1/instances/shop/files/watershed.yaml",
    ] {
        let answer = sent.get(&format!("{other}?signature={signature}")).await;
        assert_eq!(answer.status, 401, "{other}");
    }
    let posted = sent.served.client.send("DELETE", &sent.link, &[], None).await;
    assert_eq!(posted.status, 401, "it gives no right to revoke");
    assert_eq!(sent.get(path).await.status, 401, "without the signature");
    let log = serde_json::to_string(&sent.served.audit().await).expect("JSON");
    let principal = format!("\"principal\":\"link:{}\"", sent.id());
    assert!(log.contains(&principal) && log.contains("export-open"), "{log}");
    assert!(!log.contains(signature), "a signature is in no log");
    sent.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api43_addresses_that_are_altered_or_of_others_are_as_if_they_had_never_been() {
    let sent = Sent::new().await;
    let (path, signature) = sent.parts();
    let id = sent.id();
    let never = format!(
        "/v1/instances/shop/exports/{}?signature={signature}",
        uuid::Uuid::now_v7()
    );
    let never = sent.get(&never).await;
    assert_eq!(never.status, 404);
    let last = if signature.ends_with('0') { "1" } else { "0" };
    let altered = format!("{}{last}", &signature[..signature.len() - 1]);
    for other in [
        format!("{path}?signature={altered}"),
        format!("{path}?signature={}", &signature[1..]),
        format!("{path}?signature={signature}&a=1"),
        format!("{path}?signature="),
        format!("{path}x?signature={signature}"),
        format!(
            "{}?signature={signature}",
            path.to_uppercase()
                .replace("/V1/INSTANCES/SHOP/EXPORTS", "/v1/instances/shop/exports")
        ),
        // The same project under another name, and no instance at all.
        format!("/v1/instances/depot/exports/{id}?signature={signature}"),
        format!("/v1/instances/nobody/exports/{id}?signature={signature}"),
        format!("/v1/instances/shop/exports/..%2f..%2fkey?signature={signature}"),
    ] {
        assert_same(&sent.get(&other).await, &never);
    }
    // The record of the link in another instance's state is that of no address there.
    let elsewhere = Sent::new().await;
    let links = |sent: &Sent| sent.place.root().join(".watershed/dev/links");
    let record = format!("{id}.json");
    fs::copy(links(&sent).join(&record), links(&elsewhere).join(&record)).expect("it can be copied");
    assert_same(&elsewhere.get(&sent.link).await, &never);
    assert_eq!(elsewhere.get(&elsewhere.link).await.status, 200);
    elsewhere.close().await;
    assert_eq!(sent.get(&sent.link).await.status, 200);
    sent.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api43_an_address_ends_when_an_admin_revokes_it_and_roles_are_asked_otherwise() {
    let sent = Sent::new().await;
    let (path, _) = sent.parts();
    let served = &sent.served;
    let token = async |role: &str| {
        served
            .token(json!({"shop": role, "depot": role}), None, FAR_MS)
            .await
    };
    let (reader, asker, admin) = (
        token("read").await,
        token("read+query").await,
        token("admin").await,
    );
    let get = async |token: &str, path: &str| served.send(token, "GET", path, &[], None).await;
    assert_eq!(get(&reader, path).await.status, 403);
    let given = get(&asker, path).await;
    assert_eq!((given.status, &given.body), (200, &sent.content));
    let at_depot = path.replace("/shop/", "/depot/");
    let never = format!("/v1/instances/shop/exports/{}", uuid::Uuid::now_v7());
    assert_same(&get(&asker, &at_depot).await, &get(&asker, &never).await);
    assert_eq!(served.send(&asker, "DELETE", path, &[], None).await.status, 403);
    assert_eq!(sent.get(&sent.link).await.status, 200);
    assert_eq!(served.send(&admin, "DELETE", path, &[], None).await.status, 204);
    assert_eq!(served.send(&admin, "DELETE", path, &[], None).await.status, 404);
    let signed_never = sent.get(&format!("{never}?signature={}", sent.parts().1)).await;
    assert_same(&sent.get(&sent.link).await, &signed_never);
    assert_same(&get(&asker, path).await, &get(&asker, &never).await);
    let log = serde_json::to_string(&served.audit().await).expect("JSON");
    assert!(log.contains("export-revoke"), "{log}");
    sent.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api43_an_address_survives_a_rename_of_its_report_and_ends_with_the_report() {
    let sent = Sent::new().await;
    let file = |name: &str| sent.place.root().join(format!("reports/{name}.yaml"));
    let settle = async || {
        let run = sent.served.owner.instance.run(RunRequest::default()).await;
        run.expect("the project comes to rest");
    };
    fs::rename(file("late"), file("later")).expect("it can be renamed");
    settle().await;
    let select = watershed_controller::Select::kind("report");
    let found = sent.served.owner.instance.controller().list(select).resources;
    let found = found.iter().find(|report| report.row.name.as_str() == "later");
    assert!(found.is_some(), "the report has its new name");
    assert_eq!(sent.get(&sent.link).await.status, 200);
    let never = sent
        .get(&sent.link.replace(sent.id(), &uuid::Uuid::now_v7().to_string()))
        .await;
    fs::remove_file(file("later")).expect("it can be removed");
    settle().await;
    assert_same(&sent.get(&sent.link).await, &never);
    sent.close().await;
}
