//! An object store with Azure's protocol, for one test: on loopback, on a port of its own, in memory.

use std::process::Command;

use crate::server::{Says, Server, fetched, skip};

/// The account that the store knows, which its makers publish.
pub const ACCOUNT: &str = "devstoreaccount1";
/// The published key of [`ACCOUNT`].
pub const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// A script that creates a container with a signed request.
const MAKE_CONTAINER: &str = r#"
import base64, email.utils, hashlib, hmac, sys, urllib.request
url, account, key, container = sys.argv[1:]
date = email.utils.formatdate(usegmt=True)
what = f"PUT{chr(10) * 12}x-ms-date:{date}\nx-ms-version:2021-08-06\n/{account}/{account}/{container}\nrestype:container"
signed = base64.b64encode(hmac.new(base64.b64decode(key), what.encode(), hashlib.sha256).digest()).decode()
headers = {"x-ms-date": date, "x-ms-version": "2021-08-06", "Authorization": f"SharedKey {account}:{signed}"}
urllib.request.urlopen(urllib.request.Request(f"{url}/{container}?restype=container", method="PUT", headers=headers))
"#;

/// A running store, at first without containers.
#[derive(Debug)]
pub struct Store(Server);

impl Store {
    /// Starts a store; none, with a message, if its program is missing on this machine.
    ///
    /// # Panics
    /// If it does not start, or is missing where [`REQUIRED`](crate::server::REQUIRED) is set.
    pub fn start() -> Option<Self> {
        let program = fetched().join("azure/node_modules/.bin/azurite-blob");
        if !program.exists() {
            skip("the Azure server is missing (scripts/fetch-test-servers)");
            return None;
        }
        let mut command = Command::new(program);
        command
            .args(["--blobHost", "127.0.0.1", "--blobPort", "0"])
            .args([
                "--inMemoryPersistence",
                "--skipApiVersionCheck",
                "--disableTelemetry",
            ]);
        Some(Self(Server::start(&mut command, Says::Out)))
    }

    /// Returns the URL of the store's account.
    pub fn url(&self) -> String {
        format!("http://{}/{ACCOUNT}", self.0.address())
    }

    /// Creates a container.
    ///
    /// # Panics
    /// If the store refuses.
    pub fn create_container(&self, name: &str) {
        let made = Command::new("python3")
            .args(["-c", MAKE_CONTAINER, &self.url(), ACCOUNT, KEY, name])
            .status();
        assert!(made.expect("python3 runs").success(), "the container is made");
    }
}
