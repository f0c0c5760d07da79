//! Projects that a service confines: each reads and writes its own folder alone, and nothing is started or sent.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use rustix::process::Signal;
use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::serving::Serving;

/// A text in a file of the neighbour, and in the environment of the service.
const SECRET: &str = "the-neighbours-42";

/// Attempts of an author in SQL to read the neighbour, the machine and the environment. `ROOT` is the folder with both
/// projects.
const READS: [&str; 19] = [
    "read_text('../two/data/x.csv')",
    "read_text('data/../../two/data/x.csv')",
    "read_text('ROOT/two/data/x.csv')",
    "read_text('ROOT/one/../two/data/x.csv')",
    "read_text('ROOT/tw' || 'o/data/x.csv')",
    "glob('ROOT/two/**')",
    "glob('../two/*')",
    "read_text('ROOT/*/data/x.csv')",
    "read_text('data/link.csv')",
    "read_text('data/' || 'link.csv')",
    "read_text('data/folder/x.csv')",
    "read_text('data/*/' || 'x.csv')",
    "query('FROM read_text(''../two/data/x.csv'')')",
    "read_text('/proc/self/environ')",
    "read_text('/proc/self/cwd/../' || 'x')",
    "(SELECT getenv('NEIGHBOUR'))",
    "read_text('file://ROOT/two/data/x.csv')",
    "read_text('https://localhost:1/x')",
    "read_text('s3://lake/x')",
];

/// Attempts of an author in statements.
const STATEMENTS: [&str; 27] = [
    "COPY (SELECT 1) TO 'ROOT/two/data/written.csv'",
    "COPY (SELECT 1) TO '../two/data/written.csv'",
    "COPY (SELECT 1) TO 'data/link.csv'",
    "COPY (SELECT 1) TO 'ROOT/one/data/link.csv'",
    "COPY (SELECT 1) TO 'ROOT/one/data/folder/written.csv'",
    "COPY (SELECT 1) TO 'data/folder/written.csv'",
    "COPY (SELECT 1) TO 'written.csv'",
    "EXPORT DATABASE 'ROOT/two/exported'",
    "EXPORT DATABASE 'exported'",
    "ATTACH 'ROOT/two/.watershed/dev/engine.duckdb' AS two (READ_ONLY)",
    "ATTACH 'data/../../two/data/new.db' AS two",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET allowed_directories = ['/']",
    "SET file_search_path = 'ROOT/two'",
    "SET GLOBAL extension_directory = 'ROOT/two'",
    // What the service has open there, and would be ended by.
    "COPY (SELECT repeat('x', 100000)) TO 'ROOT/one/.watershed/dev/catalog.db-shm'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO 'ROOT/one/data/explained.csv'",
    "SELECT 1 --\r; COPY (SELECT 1) TO 'ROOT/one/data/hidden.csv'",
    "ATTACH 'ROOT/one/data/own.db' AS own",
    "IMPORT DATABASE 'ROOT/one/data/import'",
    "PREPARE later AS SELECT 1",
    "CALL pragma_version()",
    "PRAGMA enable_logging",
    "CALL enable_logging('QueryLog', storage='file', storage_path='ROOT/two')",
    "CREATE TABLE made AS FROM query('FROM en' || 'able_logging()')",
];

const MANIFEST: &str = "trust: full\nsandbox: false\n";

fn services(more: &str) -> String {
    format!(
        "listen: 127.0.0.1:0\ninstances:\n  one: {{project: one}}\n  two: {{project: ./two, trust: sandbox}}\n{more}"
    )
}

fn projects(more: &str) -> Sandbox {
    let project = Sandbox::with(&[
        ("one/watershed.yaml", ""),
        ("one/data/x.csv", "word\nmine\n"),
        (
            "one/models/direct.sql",
            "-- @materialize: true\nSELECT * FROM 'data/x.csv'",
        ),
        (
            "one/models/pattern.sql",
            "-- @materialize: true\nSELECT * FROM read_csv('data/?.csv')",
        ),
        ("two/watershed.yaml", ""),
        (
            "two/models/direct.sql",
            "-- @materialize: true\nSELECT * FROM 'data/x.csv'",
        ),
        (
            "two/models/pattern.sql",
            "-- @materialize: true\nSELECT * FROM read_csv('data/?.csv')",
        ),
        ("server.yaml", &services(more)),
    ]);
    project.write("two/data/x.csv", &format!("word\n{SECRET}\n"));
    project.with_variable("NEIGHBOUR", SECRET)
}

fn run(service: &Serving, name: &str) -> Value {
    let path = format!("/v1/instances/{name}/run");
    let more = "content-type: application/json\r\nprefer: wait=60\r\n";
    let (status, _, body) = service.ask("POST", &path, more);
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).expect("a document")
}

fn is_open(service: &Serving) {
    while service.ask("GET", "/readyz", "").0 != 200 {}
}

/// The code and the message of each resource that failed, by name.
fn errors(service: &Serving, name: &str) -> Vec<(String, String, String)> {
    let list = service.json(&format!("/v1/instances/{name}/resources?limit=1000&all=true"));
    let resources = list["resources"].as_array().unwrap_or_else(|| panic!("{list}"));
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

#[test]
fn s_api40_served_projects_are_confined_unless_told_and_each_reads_its_own_files() {
    let project = projects("  free: {project: free, trust: full}\n");
    project.write("free/watershed.yaml", "");
    project.write(
        "free/jobs/touch.yaml",
        "type: job\ncommand: [touch, touched.txt]\n",
    );
    project.write("free/data/x.csv", "word\nfree\n");
    project.write(
        "free/models/direct.sql",
        "-- @materialize: true\nSELECT * FROM 'data/x.csv'",
    );
    let service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    is_open(&service);
    for (name, word) in [("one", "mine"), ("two", SECRET), ("free", "free")] {
        assert_eq!(run(&service, name)["document"]["exit_code"], 0, "{name}");
        let asked = project.call(&["query", "-C", name, "--format", "csv", "FROM direct"]);
        assert_eq!(
            asked.stdout,
            format!("word\n{word}\n"),
            "{name}: {}",
            asked.stderr
        );
    }
    assert!(project.path().join("free/touched.txt").exists());
    let listed = service.json("/v1/instances");
    let trust: Vec<_> = listed["instances"]
        .as_array()
        .expect("instances")
        .iter()
        .map(|it| &it["trust"])
        .collect();
    assert_eq!(trust, ["full", "sandbox", "sandbox"]);
    let (_, _, verbose) = service.ask("GET", "/readyz?verbose", "");
    assert_eq!(
        verbose,
        "ready\nfree: open, full\none: open, sandbox\ntwo: open, sandbox\n"
    );
    assert_eq!(service.end(Signal::TERM).0, Some(143));
}

#[test]
fn s_api40_an_author_in_a_sandbox_reaches_neither_the_neighbour_nor_the_machine() {
    let project = projects("");
    let root = project
        .path()
        .canonicalize()
        .expect("a folder")
        .display()
        .to_string();
    symlink("../../two/data/x.csv", project.path().join("one/data/link.csv")).expect("a link");
    symlink("../../two/data", project.path().join("one/data/folder")).expect("a link");
    for (index, read) in READS.iter().enumerate() {
        let sql = format!(
            "-- @materialize: true\nSELECT * FROM {}",
            read.replace("ROOT", &root)
        );
        project.write(&format!("one/models/read_{index}.sql"), &sql);
    }
    for (index, statement) in STATEMENTS.iter().enumerate() {
        let sql = format!("-- @type: migration\n{}", statement.replace("ROOT", &root));
        project.write(&format!("one/migrations/do_{index}.sql"), &sql);
    }
    let command = |what: &str| format!("[sh, -c, 'touch {root}/two/data/{what}']");
    for (file, text) in [
        (
            "jobs/job.yaml",
            format!("type: job\ncommand: {}\n", command("job")),
        ),
        (
            "services/service.yaml",
            format!("type: service\ncommand: {}\n", command("service")),
        ),
        (
            "connectors/shell.yaml",
            format!("type: connector\ndriver: command\ncommand: {}\n", command("told")),
        ),
        (
            "connectors/store.yaml",
            "type: connector\ndriver: s3\npath_prefixes: ['s3://lake/']\n".to_owned(),
        ),
        (
            "connectors/database.yaml",
            "type: connector\ndriver: postgres\nhost: localhost\n".to_owned(),
        ),
        (
            "connectors/file.yaml",
            "type: connector\ndriver: duckdb\npath: ../two/.watershed/dev/engine.duckdb\n".to_owned(),
        ),
        (
            "alerts/any.yaml",
            "type: alert\ndata: {sql: SELECT 1 AS x}\nrefresh: {every: 24h}\nnotify: {command: shell}\n"
                .to_owned(),
        ),
    ] {
        project.write(&format!("one/{file}"), &text);
    }
    let before = files(&project, "two");
    let service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    is_open(&service);
    // The neighbour works, whatever this one tries.
    assert_eq!(run(&service, "two")["document"]["exit_code"], 0);
    assert_eq!(run(&service, "one")["document"]["exit_code"], 1);
    let failed = errors(&service, "one");
    let code = |name: &str| {
        let found = failed.iter().find(|(failed, ..)| failed == name);
        found
            .unwrap_or_else(|| panic!("{name} went well: {failed:?}"))
            .1
            .as_str()
    };
    for (index, read) in READS.iter().enumerate() {
        let told = code(&format!("read_{index}"));
        // The engine lacks the function, or the part that reads from elsewhere.
        let expected = match *read {
            _ if read.contains("getenv") => "sql",
            _ if read.contains("://lo") || read.contains("s3://") => "missing-extension",
            _ => "outside-sandbox",
        };
        assert!(
            told == expected || told == "outside-sandbox" || expected == "sql",
            "{read}: {told}"
        );
    }
    for (index, statement) in STATEMENTS.iter().enumerate() {
        let told = code(&format!("do_{index}"));
        assert_eq!(told, "outside-sandbox", "{statement}");
    }
    for written in ["data/explained.csv", "data/hidden.csv", "data/own.db"] {
        assert!(!project.path().join("one").join(written).exists(), "{written}");
    }
    for name in ["job", "service", "store", "database", "file"] {
        assert_eq!(code(name), "outside-sandbox", "{name}");
    }
    let (.., database) = failed
        .iter()
        .find(|(name, ..)| name == "database")
        .expect("it failed");
    assert!(database.contains("`trust: full`"), "{database}");
    let all = service
        .json("/v1/instances/one/resources?limit=1000&all=true")
        .to_string();
    assert!(!all.contains(SECRET));
    // A file of the project says nothing about trust.
    project.write("one/watershed.yaml", MANIFEST);
    assert_eq!(run(&service, "one")["document"]["exit_code"], 1);
    let failed = errors(&service, "one");
    assert!(
        failed.iter().any(|(_, code, _)| code == "unknown-key"),
        "{failed:?}"
    );
    assert_eq!(service.json("/v1/instances")["instances"][0]["trust"], "sandbox");
    assert_eq!(service.end(Signal::TERM).0, Some(143));
    let state = |name: &String| !name.contains("/.watershed");
    let after: Vec<String> = files(&project, "two").into_iter().filter(state).collect();
    assert_eq!(after, before, "the neighbour's folder was written to");
}

#[test]
fn s_api40_no_statement_writes_through_a_link_that_leads_to_nothing() {
    let project = projects("");
    let root = project.path().canonicalize().expect("a folder");
    symlink("../../two/data/new.csv", root.join("one/data/dangling.csv")).expect("a link");
    let file = root.join("one/data/dangling.csv");
    let sql = format!("-- @type: migration\nCOPY (SELECT 1) TO '{}'", file.display());
    project.write("one/migrations/write.sql", &sql);
    let service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    is_open(&service);
    assert_eq!(run(&service, "one")["document"]["exit_code"], 1);
    let failed = errors(&service, "one");
    assert!(
        failed
            .iter()
            .any(|(name, code, _)| name == "write" && code == "outside-sandbox"),
        "{failed:?}"
    );
    assert!(!root.join("two/data/new.csv").exists());
    assert_eq!(service.end(Signal::TERM).0, Some(143));
}

#[test]
fn s_api40_a_confined_project_uses_no_credential_of_the_services_environment() {
    let project = projects("")
        .with_variable("AWS_SECRET_ACCESS_KEY", SECRET)
        .with_variable("AWS_ACCESS_KEY_ID", SECRET);
    project.remove("two/data/x.csv");
    project.write(
        "one/connectors/store.yaml",
        "type: connector\ndriver: s3\npath_prefixes: ['s3://lake/']\n",
    );
    project.write("one/models/known.sql", "SELECT * FROM duckdb_secrets()");
    project.write(
        "one/models/env.sql",
        "SELECT '{{ .env.AWS_SECRET_ACCESS_KEY }}' AS x",
    );
    let service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    is_open(&service);
    assert_eq!(run(&service, "one")["document"]["exit_code"], 1);
    let failed = errors(&service, "one");
    assert!(failed.iter().any(|(name, ..)| name == "store"), "{failed:?}");
    let told = format!("{failed:?}");
    let asked = project.call(&["query", "-C", "one", "FROM known"]);
    let shown = project.call(&["query", "-C", "one", "FROM env"]);
    for text in [&told, &asked.stdout, &asked.stderr, &shown.stdout, &shown.stderr] {
        assert!(!text.contains(SECRET), "{text}");
    }
    assert_eq!(service.end(Signal::TERM).0, Some(143));
    assert!(
        !files(&project, "one").iter().any(|file| {
            let bytes = fs::read(file).unwrap_or_default();
            bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
        }),
        "a file has it"
    );
}

#[test]
fn s_api40_no_author_ends_the_service_by_a_log_of_the_engine() {
    let project = projects("");
    let model = "-- @materialize: true\nSELECT * FROM ";
    for (name, call) in [
        (
            "called",
            "enable_logging('QueryLog', storage='file', storage_path='/nowhere/x')",
        ),
        (
            "in_text",
            "query('FROM enable_logging(''QueryLog'', storage=''file'', storage_path=''/nowhere/x'')')",
        ),
        ("built", "query('FROM enable' || '_logging(''QueryLog'')')"),
    ] {
        project.write(&format!("one/models/{name}.sql"), &format!("{model}{call}"));
    }
    project.write(
        "one/models/before.yaml",
        "type: model\nmaterialize: true\nsql: SELECT 1 AS x\n\
         pre_exec: CALL enable_logging('QueryLog', storage='file', storage_path='/nowhere/x')\n",
    );
    project.write(
        "one/models/after.yaml",
        "type: model\nmaterialize: true\nsql: SELECT 1 AS x\n\
         post_exec: COPY (SELECT 1) TO 'ROOT/.watershed/dev/catalog.db-wal'\n",
    );
    let refused = ["after", "before", "built", "called", "in_text"];
    let service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    is_open(&service);
    assert_eq!(run(&service, "one")["document"]["exit_code"], 1);
    let failed = errors(&service, "one");
    for name in refused {
        let found = failed.iter().find(|(failed, ..)| failed == name);
        let (_, _, error) = found.unwrap_or_else(|| panic!("{name} went well: {failed:?}"));
        assert!(error.contains("the sandbox runs no "), "{name}: {error}");
        assert!(error.contains("trust: full"), "{name}: {error}");
    }
    // Both go on.
    for name in ["one", "two"] {
        let asked = project.call(&["query", "-C", name, "--format", "csv", "SELECT 1 AS x"]);
        assert_eq!(asked.stdout, "x\n1\n", "{name}: {}", asked.stderr);
    }
    assert_eq!(service.end(Signal::TERM).0, Some(143));
    // A project by itself may write files, and a log of the engine would end its process too.
    let said = project.call(&["run", "--sandbox", "-C", "one", "--json"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(
        said.stdout.contains("the sandbox runs no `enable_logging`"),
        "{}{}",
        said.stdout,
        said.stderr
    );
}

#[test]
fn s_api40_a_confined_projects_state_follows_no_link_out_of_it() {
    for (link, target) in [
        (".watershed", "../vault"),
        (".watershed/dev", "../../vault"),
        (".watershed/dev/main.duckdb", "../../../vault/main.duckdb"),
        (".watershed/dev/logs", "../../../vault"),
        (".watershed/.gitignore", "../../vault/new"),
    ] {
        let project = projects("");
        project.write("vault/main.duckdb", SECRET);
        let vault = project.path().join("vault");
        fs::set_permissions(&vault, fs::Permissions::from_mode(0o755)).expect("the folder's mode");
        let place = project.path().join("one").join(link);
        fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
        symlink(target, &place).expect("a link");
        let mut service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
        let told = service.line("one: failed");
        assert!(told.contains("symbolic link") && told.contains(link), "{told}");
        while service.ask("GET", "/readyz", "").0 != 200 {}
        assert_eq!(run(&service, "two")["document"]["exit_code"], 0, "{link}");
        assert_eq!(service.end(Signal::TERM).0, Some(143));
        let mode = fs::metadata(&vault).expect("the folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o755, "{link}");
        let found = files(&project, "vault");
        assert!(found.len() == 1 && found[0].ends_with("main.duckdb"), "{found:?}");
        let said = project.call(&["run", "--sandbox", "-C", "one"]);
        assert!(
            said.code != Some(0) && said.stderr.contains("symbolic link"),
            "{link}: {}",
            said.stderr
        );
        let text = fs::read_to_string(vault.join("main.duckdb")).expect("the file");
        assert_eq!(text, SECRET, "{link}");
        assert!(!vault.join("catalog.db").exists(), "{link}");
        // What the operator names may be a link.
        let state = project.path().join("named");
        symlink("vault", &state).expect("a link");
        project.remove("vault/main.duckdb");
        let state = state.display().to_string();
        let said = project.call(&["run", "--sandbox", "-C", "one", "--state-dir", &state]);
        assert_eq!(said.code, Some(0), "{link}: {}", said.stderr);
    }
}

/// The files below a folder of the project, in order.
fn files(project: &Sandbox, folder: &str) -> Vec<String> {
    let files = crate::sandbox::files_below(&project.path().join(folder));
    let mut names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    names.sort();
    names
}
