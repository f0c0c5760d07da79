//! A store that speaks Azure's protocol, for one test: on loopback, on a port of its own, in memory.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::s3::{REQUIRED, target};

/// The account that the store knows, and its key, which its makers publish.
pub const ACCOUNT: &str = "devstoreaccount1";
/// The key of [`ACCOUNT`].
pub const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Makes a container: a request that is signed as the protocol wants it.
const MAKE_CONTAINER: &str = r#"
import base64, email.utils, hashlib, hmac, sys, urllib.request
url, account, key, container = sys.argv[1:]
date = email.utils.formatdate(usegmt=True)
what = f"PUT{chr(10) * 12}x-ms-date:{date}\nx-ms-version:2021-08-06\n/{account}/{account}/{container}\nrestype:container"
signed = base64.b64encode(hmac.new(base64.b64decode(key), what.encode(), hashlib.sha256).digest()).decode()
headers = {"x-ms-date": date, "x-ms-version": "2021-08-06", "Authorization": f"SharedKey {account}:{signed}"}
urllib.request.urlopen(urllib.request.Request(f"{url}/{container}?restype=container", method="PUT", headers=headers))
"#;

/// A running store without containers.
#[derive(Debug)]
pub struct Store {
    process: Child,
    address: String,
}

impl Store {
    /// Starts a store; none if it is not on this machine, which is said.
    ///
    /// # Panics
    /// If it does not start, or is missing where [`REQUIRED`] is set.
    pub fn start() -> Option<Self> {
        let program = target().join("test-servers/azure/node_modules/.bin/azurite-blob");
        if !program.exists() {
            let missing = "the Azure server is missing (scripts/fetch-test-servers)";
            assert!(std::env::var_os(REQUIRED).is_none(), "{missing}");
            #[allow(clippy::print_stderr, reason = "whoever runs the tests should see it")]
            {
                eprintln!("skipped: {missing}");
            }
            return None;
        }
        let mut process = Command::new(program)
            .args(["--blobHost", "127.0.0.1", "--blobPort", "0"])
            .args([
                "--inMemoryPersistence",
                "--skipApiVersionCheck",
                "--disableTelemetry",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node runs");
        let mut said = BufReader::new(process.stdout.take().expect("its output is a pipe")).lines();
        let address = said
            .by_ref()
            .map_while(Result::ok)
            .filter(|line| line.contains("listen"))
            .find_map(|line| Some(line.split_once("http://")?.1.trim().to_owned()))
            .expect("it says where it listens");
        // It writes a line for each request, and must not wait for a reader.
        std::thread::spawn(move || said.for_each(drop));
        Some(Self { process, address })
    }

    /// Returns the URL of its account.
    pub fn url(&self) -> String {
        format!("http://{}/{ACCOUNT}", self.address)
    }

    /// Makes a container.
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

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
