//! Shared by tests of connectors: extensions of the engine, outcomes of one resource, and the search for secrets.

use std::fs;

use serde_json::Value;
use watershed_tests::server::{extensions, skip};

use crate::sandbox::{Sandbox, files_below};

/// Returns true if the engine's extension is there; says so where it is not.
pub(crate) fn has_extension(name: &str) -> bool {
    let files = files_below(&extensions());
    let there = files.iter().any(|file| {
        file.file_name()
            .is_some_and(|file| file == format!("{name}.duckdb_extension").as_str())
    });
    if !there {
        skip(&format!(
            "the engine's extension `{name}` is missing (scripts/fetch-extensions)"
        ));
    }
    there
}

impl Sandbox {
    /// The outcome of a resource in a run: the work that was done, or the code of its error.
    pub(crate) fn outcome(&self, arguments: &[&str], name: &str) -> String {
        let said = self.call(arguments);
        let document = said.json();
        let resources = document["resources"].as_array().cloned().unwrap_or_default();
        let found = resources.iter().find(|resource| resource["name"] == name);
        let found = found.unwrap_or_else(|| panic!("{name} is listed: {}{}", said.stdout, said.stderr));
        let code = found["error"]["code"].as_str();
        code.or(found["work"].as_str()).unwrap_or_default().to_owned()
    }

    /// The rows of a query.
    pub(crate) fn rows(&self, sql: &str) -> Value {
        self.query(sql)["rows"].clone()
    }

    /// Asserts that secrets stand in no file of the project but `.env`, that no command shows them, and that nothing stays
    /// attached.
    pub(crate) fn assert_nowhere(&self, secrets: &[&str], connector: &str) {
        let connector_key = format!("connector/{connector}");
        let mut texts = String::new();
        for arguments in [
            &["run", "--json", "--verbose"] as &[&str],
            &["refresh", connector, "--json"],
            &["show", &connector_key, "--json", "--spec"],
            &["compile", "--json"],
            &["plan", "--json"],
            &["history", "--json"],
            &["status", "--json"],
            &["explain", "--json"],
            &["logs", &connector_key, "--json"],
            &["run", "-vvv", "--log-format", "json"],
            &["query", "FROM duckdb_secrets()", "--json"],
            &["query", "SELECT path FROM duckdb_databases()", "--json"],
        ] {
            let said = self.call(arguments);
            texts.push_str(&said.stdout);
            texts.push_str(&said.stderr);
        }
        for file in files_below(self.path()) {
            if file.file_name().is_some_and(|name| name != ".env") {
                let content = fs::read(&file).expect("a file of the project");
                texts.push_str(&String::from_utf8_lossy(&content));
            }
        }
        for secret in secrets {
            assert!(!texts.contains(secret), "{secret} is somewhere");
        }
        let attached =
            "SELECT database_name FROM duckdb_databases() WHERE starts_with(database_name, '_watershed')";
        assert_eq!(self.rows(attached), serde_json::json!([]));
    }
}
