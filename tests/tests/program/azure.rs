//! Azure's store: read, asked for changes, and written to.

use tokio_util::sync::CancellationToken;
use watershed_drivers::objects::{self, Access, Driver, Over};
use watershed_tests::azure::{ACCOUNT, KEY, Store};

use crate::connected::has_extension;
use crate::sandbox::Sandbox;

const CONNECTOR: &str = r#"driver: azure
azure_storage_account: devstoreaccount1
azure_storage_key: "{{ .env.blobs_key }}"
endpoint: STORE
path_prefixes: azure://lake/
"#;

/// A person who writes and removes objects.
struct Person(Access);

impl Person {
    fn write(&self, key: &str, content: &str) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), content).expect("it is written");
        let address = format!("azure://lake/{key}");
        let cancel = CancellationToken::new();
        let put = async {
            let there = objects::find(&self.0, &address, &cancel)
                .await
                .expect("the store answers");
            let over = there.map_or(Over::Nothing, |there| Over::Version(there.version));
            objects::put(&self.0, &address, file.path(), "a person", &over, &cancel).await
        };
        Self::wait(put).expect("the store takes it");
    }

    fn is_there(&self, key: &str) -> bool {
        let (address, cancel) = (format!("azure://lake/{key}"), CancellationToken::new());
        let found = objects::find(&self.0, &address, &cancel);
        Self::wait(found).expect("the store answers").is_some()
    }

    fn wait<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(work)
    }
}

#[test]
fn objects_of_a_container_are_read_and_written() {
    if !has_extension("azure") {
        return;
    }
    let Some(store) = Store::start() else { return };
    store.create_container("lake");
    let person = Person(Access {
        driver: Driver::Azure,
        key: Some(ACCOUNT.into()),
        secret: Some(KEY.into()),
        endpoint: Some(store.url()),
        ..Access::default()
    });
    person.write("days/a.csv", "n\n1\n");
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (".env", &format!("blobs_key={KEY}\n")),
        ("connectors/blobs.yaml", &CONNECTOR.replace("STORE", &store.url())),
        (
            "sources/days.yaml",
            "connector: blobs\npath: azure://lake/days/*.csv\n",
        ),
        (
            "models/total.yaml",
            "type: model\nsql: SELECT sum(n)::INTEGER AS total FROM days\n\
             output: {connector: blobs, path: azure://lake/out/total.csv}\n",
        ),
    ])
    .extended();
    assert_eq!(sandbox.outcome(&["run", "--json"], "total"), "built");
    assert_eq!(sandbox.rows("SELECT total FROM total"), serde_json::json!([[1]]));
    assert!(person.is_there("out/total.csv"));
    assert_eq!(sandbox.outcome(&["refresh", "days", "--json"], "days"), "checked");
    person.write("days/b.csv", "n\n2\n");
    assert_eq!(sandbox.outcome(&["refresh", "days", "--json"], "total"), "built");
    assert_eq!(sandbox.rows("SELECT total FROM total"), serde_json::json!([[3]]));
    sandbox.assert_nowhere(&[KEY], "blobs");

    person.write("out/total.csv", "mine\n");
    person.write("days/b.csv", "n\n3\n");
    assert_eq!(
        sandbox.outcome(&["refresh", "days", "--json"], "total"),
        "export-taken"
    );
    sandbox.remove("models/total.yaml");
    sandbox.run(0);
    assert!(person.is_there("out/total.csv"), "it is somebody's");
    sandbox.write(".env", "blobs_key=b3RoZXI=\n");
    let refused = sandbox.outcome(&["refresh", "blobs", "--json"], "blobs");
    // The stand-in says of a signature what the real store says of missing rights.
    assert!(
        ["credentials-refused", "access-denied"].contains(&refused.as_str()),
        "{refused}"
    );
}
