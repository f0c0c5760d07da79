//! Real clients: code that generators make of `docs/openapi.json` plays a journey on the flights project.
//!
//! The generators come from `scripts/fetch-test-servers`; who lacks one gets a line that says so.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use watershed::api::request::RunRequest;
use watershed::http::{Service, State, Tokens, bind, local_user, router, serve};
use watershed::{Instance, Options, Runtime};
use watershed_tests::server::{fetched, skip};

use crate::http::{SHOP, Served};
use crate::project::{LONG, Place, copy};

/// The folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the folder of what was fetched for clients, if it is there.
fn clients(name: &str) -> Option<PathBuf> {
    let folder = fetched().join(name);
    if !folder.exists() {
        skip(&format!("{name} are missing (scripts/fetch-test-servers)"));
        return None;
    }
    Some(folder)
}

/// Runs a program to its end, which must be a good one, and returns what it wrote.
async fn run(command: &mut Command) -> String {
    let told = format!("{command:?}");
    let mut command = tokio::process::Command::from(std::mem::replace(command, Command::new("true")));
    let running = command.kill_on_drop(true).output();
    let ended = tokio::time::timeout(3 * LONG, running).await;
    let output = ended.expect("the client ends").expect("the client runs");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{told}\n{text}");
    text
}

/// A copy of flights that is built, watched and served.
struct Flights {
    _folder: tempfile::TempDir,
    project: PathBuf,
    url: String,
    instance: Arc<Instance>,
    service: Service,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

impl Flights {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let project = folder.path().join("flights");
        copy(&root().join("testdata/projects/flights"), &project);
        let _ = std::fs::remove_dir_all(project.join(".watershed"));
        let options = Options {
            shim: env!("CARGO_BIN_EXE_watershed-under-test").into(),
            ..Options::new(&project)
        };
        let opened = Runtime::new().open(options).await;
        let instance = Arc::new(opened.expect("the project can be opened"));
        let built = instance.run(RunRequest::default()).await;
        built.expect("the project comes to rest");
        let state = State::open(&folder.path().join("service.db")).await;
        let state = Arc::new(state.expect("the state can be opened"));
        let tokens = Tokens::open(Arc::clone(&state), Vec::new()).await;
        let tokens = Arc::new(tokens.expect("the tokens can be read"));
        let service = Service::new()
            .keeping(state)
            .with_tokens(tokens)
            .with("flights", Arc::clone(&instance));
        let address = "127.0.0.1:0".parse().expect("an address");
        let listener = bind(address).await.expect("a socket");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve(listener, router(service.clone(), local_user), stop.clone()));
        Self {
            _folder: folder,
            project,
            url,
            instance,
            service,
            stop,
            serving,
        }
    }

    async fn close(self) {
        self.service.stop();
        self.stop.cancel();
        self.serving.await.expect("it ends in order");
        drop(self.service);
        self.instance.close(LONG).await.expect("it stops in order");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_client_made_of_the_openapi_document_plays_a_journey() {
    let Some(python) = clients("python-clients") else {
        return;
    };
    let openapi = root().join("docs/openapi.json");
    let with_packages = || {
        let mut command = Command::new("python3");
        let path = std::env::var("PATH").unwrap_or_default();
        // The generator tidies its code up with the formatter that came with it.
        command.env("PATH", format!("{}:{path}", python.join("bin").display()));
        command
            .env("PYTHONPATH", &python)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    run(with_packages()
        .args(["-m", "openapi_spec_validator"])
        .arg(&openapi))
    .await;
    let made = tempfile::tempdir().expect("a folder can be made");
    let mut generate = with_packages();
    generate.args([
        "-m",
        "openapi_python_client",
        "generate",
        "--meta",
        "none",
        "--fail-on-warning",
        "--path",
    ]);
    generate
        .arg(&openapi)
        .arg("--output-path")
        .arg(made.path().join("watershed_client"));
    run(&mut generate).await;
    let flights = Flights::new().await;
    let mut journey = with_packages();
    journey
        .arg(root().join("tests/clients/journey.py"))
        .arg(made.path());
    journey.arg(&flights.url).arg("flights").arg(&flights.project);
    let told = run(&mut journey).await;
    assert!(told.ends_with("done\n"), "{told}");
    flights.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_compiles_with_the_types_of_the_openapi_document_plays_a_journey() {
    let Some(node) = clients("node-clients") else {
        return;
    };
    let made = tempfile::tempdir().expect("a folder can be made");
    for file in ["journey.ts", "node.d.ts"] {
        let from = root().join("tests/clients").join(file);
        std::fs::copy(from, made.path().join(file)).expect("a file can be copied");
    }
    let modules = node.join("node_modules");
    std::os::unix::fs::symlink(&modules, made.path().join("node_modules")).expect("a link can be made");
    std::fs::write(made.path().join("package.json"), r#"{"type": "module"}"#).expect("a file can be written");
    let mut types = Command::new(modules.join(".bin/openapi-typescript"));
    // What has a usual value may be left out.
    types.arg("--default-non-nullable=false");
    types
        .arg(root().join("docs/openapi.json"))
        .arg("-o")
        .arg(made.path().join("api.d.ts"));
    run(&mut types).await;
    let mut compile = Command::new(modules.join(".bin/tsc"));
    compile.current_dir(made.path()).args([
        "--strict",
        "--noUncheckedIndexedAccess",
        "--target",
        "es2022",
        "--module",
        "nodenext",
        "--lib",
        "es2022,dom",
        "journey.ts",
        "node.d.ts",
    ]);
    run(&mut compile).await;
    let flights = Flights::new().await;
    let mut journey = Command::new("node");
    journey.arg(made.path().join("journey.js")).arg(&flights.url);
    journey.arg("flights").arg(&flights.project);
    let told = run(&mut journey).await;
    assert!(told.ends_with("done\n"), "{told}");
    flights.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api44_events_of_a_real_client_are_taken_in_three_modes() {
    let Some(python) = clients("python-clients") else {
        return;
    };
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let mut send = Command::new("python3");
    send.env("PYTHONPATH", &python)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    send.arg(root().join("tests/clients/events.py"));
    send.arg(format!("http://{}{SHOP}/events", served.client.0));
    let told = run(&mut send).await;
    assert!(told.ends_with("done\n"), "{told}");
    served.close().await;
}

/// Returns the lines of a page that call the service, with the project's address in the place of the page's.
fn lines_of(page: &str, url: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("docs").join(page)).expect("the page is there");
    // Edits need a file here and the version of one there: they have journeys of their own.
    let is_edit = |line: &str| line.contains(" -T ") || line.contains("If-Match");
    let lines = text
        .lines()
        .filter(|line| line.starts_with("curl -s") && !is_edit(line));
    let lines = lines.map(|line| {
        let at = format!("{url}/v1/instances/flights");
        line.replace("http://127.0.0.1:7437", url).replace("$at", &at)
    });
    lines.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lines_for_curl_on_the_pages_are_answered() {
    if Command::new("curl").arg("--version").output().is_err() {
        return skip("curl is missing");
    }
    let flights = Flights::new().await;
    let mut id = String::new();
    let lines = ["api.md", "service.md"]
        .map(|page| lines_of(page, &flights.url))
        .concat();
    assert!(lines.len() > 15, "{lines:?}");
    for line in lines {
        let line = line.replace("/requests/ID", &format!("/requests/{id}"));
        let script = match line.contains("curl -sN") {
            // A stream has no end: its first event will do, and the reader hangs up then.
            true => format!("{} | head -n 1", line.split(" #").next().unwrap_or_default()),
            false => format!("{} --fail-with-body", line.split(" #").next().unwrap_or_default()),
        };
        let told = run(Command::new("sh").args(["-c", &script])).await;
        assert!(!told.is_empty(), "{script}");
        let said: Option<serde_json::Value> = serde_json::from_str(&told).ok();
        if let Some(accepted) = said.as_ref().and_then(|said| said["id"].as_str()) {
            id = accepted.to_owned();
        }
    }
    flights.close().await;
}
