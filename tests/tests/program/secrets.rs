//! Values of variables and connectors are neither printed nor stored.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::sandbox::{Sandbox, files_below};

/// In the `.env` file, by hand, and written into a connector.
const FILE: &str = "S3CRETfile'x9";
const HAND: &str = "S3CREThand77";
const STATED: &str = "S3CRETstated55";

/// A project in which everything that can quote a value does.
fn project() -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            ".env",
            "db_password=\"S3CRETfile'x9\"\nshort=abc\nnumber=1234567\nmodel_name=customers\n",
        ),
        (
            "connectors/store.yaml",
            "type: connector\ndriver: s3\naws_secret_access_key: S3CRETstated55\n",
        ),
        (
            "connectors/other.yaml",
            "type: connector\ndriver: postgres\npassword: \"{{ .env.db_password }}\"\n",
        ),
        (
            "models/customers.sql",
            "-- @materialize: true\nSELECT 1234567 AS number",
        ),
        (
            "models/good.sql",
            "-- @materialize: true\nSELECT length('{{ .env.hand }}') AS n",
        ),
        (
            "models/cast.sql",
            "-- @materialize: true\nSELECT '{{ .env.hand }}'::INTEGER AS n",
        ),
        ("models/table.sql", "SELECT * FROM \"nope_{{ .env.hand }}\""),
        (
            "models/error.sql",
            "-- @materialize: true\nSELECT error('{{ .env.hand }} and {{ .env.hand }}')",
        ),
        ("models/syntax.sql", "SELECT FROM FROM '{{ .env.hand }}'"),
        (
            "init.sql",
            "CREATE OR REPLACE TABLE made AS SELECT length('{{ .env.hand }}') AS n",
        ),
    ])
}

const VARIABLE: [&str; 2] = ["-e", "hand=S3CREThand77"];

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn assert_nothing_stored(sandbox: &Sandbox, story: &str) {
    let files = files_below(&sandbox.path().join(".watershed"));
    assert!(files.iter().any(|path| path.ends_with("catalog.db")), "{files:?}");
    assert!(
        files.iter().any(|path| path.ends_with("parse-cache")),
        "{files:?}"
    );
    assert!(
        files.iter().any(|path| path.ends_with("main.duckdb")),
        "{files:?}"
    );
    for path in files {
        let Ok(bytes) = fs::read(&path) else { continue };
        for secret in [FILE, "S3CRETfile", HAND, STATED] {
            assert!(
                !holds(&bytes, secret),
                "{story}: {secret} stands in {}",
                path.display()
            );
        }
    }
}

#[test]
fn no_output_and_no_file_holds_a_secret() {
    let sandbox = project();
    let commands: [&[&str]; 22] = [
        &["run"],
        &["run", "-v"],
        &["run", "-vvv", "--log-format", "json"],
        &["run", "--json"],
        &["run", "--format", "jsonl"],
        &["validate"],
        &["validate", "--json", "--spec"],
        &["status"],
        &["status", "--json", "--all"],
        &["history"],
        &["history", "--json"],
        &["explain"],
        &["explain", "cast", "--json"],
        &["logs", "cast"],
        &["logs", "cast", "--json"],
        &["show", "connector/store"],
        &["show", "connector/other"],
        &["show", "project_parser/parser"],
        &["compile", "good"],
        &["compile", "table", "--json"],
        &["retry", "cast", "-v"],
        &["debug", "check"],
    ];
    for command in commands {
        let said = sandbox.call(&[command, VARIABLE.as_slice()].concat());
        let text = format!("{}{}", said.stdout, said.stderr);
        for secret in ["S3CRET", "S3CRETfile", HAND, STATED] {
            assert!(!text.contains(secret), "{command:?}: {text}");
        }
        assert!(
            !text.contains("sealed:"),
            "{command:?} shows what stands for a value: {text}"
        );
    }
    let said = sandbox.call(&["run", "--json", "-e", "hand=S3CREThand77"]);
    assert!(
        said.stdout.contains("[hand]"),
        "names stand for values: {}",
        said.stdout
    );
    assert!(
        !said.stdout.contains("[number]") && !said.stdout.contains("[model_name]"),
        "{}",
        said.stdout
    );
    // Rows are what was asked for.
    assert_eq!(sandbox.query("SELECT n FROM good")["rows"][0][0], 12);
    assert_eq!(
        sandbox.query("SELECT number FROM customers")["rows"][0][0],
        1_234_567
    );
    assert_nothing_stored(&sandbox, "after all commands");
}

#[test]
fn another_value_is_another_spec_and_a_restart_with_the_same_one_is_none() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (".env", "greeting=bonjour-monde\n"),
        (
            "models/a.sql",
            "-- @materialize: true\nSELECT '{{ .env.greeting }}' AS x",
        ),
        ("models/b.sql", "-- @materialize: true\nSELECT x FROM a"),
    ]);
    assert_eq!(sandbox.done(0), "a:built b:built");
    assert_eq!(sandbox.done(0), "");
    sandbox.write(".env", "greeting=guten-morgen\n");
    assert_eq!(sandbox.done(0), "a:built b:built");
    assert_eq!(sandbox.query("SELECT x FROM b")["rows"][0][0], "guten-morgen");
    // The engine is asked to build with the value after a restart as well.
    let refreshed = sandbox.call(&["refresh", "a"]);
    assert_eq!(refreshed.code, Some(0), "{}", refreshed.stderr);
    assert_eq!(sandbox.query("SELECT x FROM a")["rows"][0][0], "guten-morgen");
    // Values set by hand go and come.
    let by_hand = sandbox.call(&["run", "-e", "greeting=hello-there"]);
    assert_eq!(by_hand.code, Some(0), "{}", by_hand.stderr);
    assert_eq!(sandbox.query("SELECT x FROM b")["rows"][0][0], "hello-there");
    assert_eq!(sandbox.done(0), "a:restored b:restored");
    assert_eq!(sandbox.query("SELECT x FROM b")["rows"][0][0], "guten-morgen");
}

#[test]
fn a_key_that_is_lost_costs_a_build_and_nothing_else() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (".env", "greeting=bonjour-monde\n"),
        (
            "models/a.sql",
            "-- @materialize: true\nSELECT '{{ .env.greeting }}' AS x",
        ),
        ("models/plain.sql", "-- @materialize: true\nSELECT 1 AS x"),
    ]);
    sandbox.run(0);
    sandbox.remove(".watershed/dev/key");
    assert_eq!(sandbox.done(0), "a:built");
    assert_eq!(sandbox.query("SELECT x FROM a")["rows"][0][0], "bonjour-monde");
    assert_eq!(sandbox.done(0), "");
}

#[test]
fn a_manifest_that_is_broken_keeps_what_was_built_and_says_why() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", "env:\n  greeting: bonjour-monde\n"),
        (
            "models/a.sql",
            "-- @materialize: true\nSELECT '{{ .env.greeting }}' AS x",
        ),
    ]);
    sandbox.run(0);
    let before = sandbox.tables();
    sandbox.write("watershed.yaml", "env: [\n");
    let said = sandbox.call(&["run"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert_eq!(sandbox.tables(), before);
    sandbox.write("watershed.yaml", "env:\n  greeting: bonjour-monde\n");
    assert_eq!(sandbox.done(0), "");
}

#[test]
fn a_place_can_be_found_though_a_variable_has_its_folder_for_a_value() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (".env", "LAYER=models\n"),
        (
            "models/bad.sql",
            "SELECT day FROM nowhere WHERE '{{ .env.LAYER }}' <> ''\n",
        ),
    ]);
    let said = sandbox.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("--> models/bad.sql:1:"), "{}", said.stderr);
}

#[test]
fn the_state_folder_is_for_its_owner_alone() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/a.sql", "-- @materialize: true\nSELECT 1 AS x"),
    ]);
    sandbox.run(0);
    let state = sandbox.path().join(".watershed");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    // As an earlier version left it.
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).expect("modes can be set");
    let catalog = state.join("dev/catalog.db");
    fs::set_permissions(&catalog, fs::Permissions::from_mode(0o644)).expect("modes can be set");
    sandbox.run(0);
    assert_eq!((mode(&state), mode(&state.join("dev"))), (0o700, 0o700));
    let files = files_below(&state.join("dev"))
        .into_iter()
        .chain([state.join("parse-cache")]);
    for path in files.filter(|path| path.is_file()) {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}
