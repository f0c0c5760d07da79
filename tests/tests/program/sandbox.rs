//! A copy of a sample project in a folder that goes away, and the program called on it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use watershed_drivers::duckdb::ByHand;
use watershed_tests::server;

/// The connector of a lake in the project's folder.
const LAKE_OF_FILES: &str =
    "driver: ducklake\ncatalog: sqlite\npath: lake/catalog.sqlite\ndata_path: lake/files\n";

/// The state folder.
const STATE: &str = ".watershed";

/// A project of its own for one test.
pub(crate) struct Sandbox {
    _folder: tempfile::TempDir,
    path: PathBuf,
    /// The address of the engine that runs containers.
    containers: String,
    /// The program finds the extensions that were fetched for tests.
    extended: bool,
    /// Variables of the program's environment.
    environment: Vec<(&'static str, String)>,
    /// Statements by which another program attaches the lake in which models are built, `{project}` for the project's folder;
    /// none for the engine's file.
    lake: Vec<String>,
}

/// An address where no engine answers: tests without one must not meet that of the machine.
const NO_ENGINE: &str = "unix:///nowhere/docker.sock";

/// The output and the exit code of a command.
#[derive(Debug)]
pub(crate) struct Said {
    /// Its standard output.
    pub(crate) stdout: String,
    /// Its standard error.
    pub(crate) stderr: String,
    /// Its exit code; none if a signal ended it.
    pub(crate) code: Option<i32>,
}

impl Sandbox {
    /// A copy of `testdata/projects/NAME`.
    pub(crate) fn from_project(name: &str) -> Self {
        let sandbox = Self::named(name);
        copy(&sample(name), sandbox.path());
        sandbox
    }

    /// An empty folder of that name: what the program calls the project.
    fn named(name: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join(name);
        fs::create_dir(&path).expect("a folder can be made");
        Self {
            _folder: folder,
            path,
            containers: NO_ENGINE.to_owned(),
            extended: false,
            environment: Vec::new(),
            lake: Vec::new(),
        }
    }

    /// The same project with an engine that runs its containers.
    pub(crate) fn with_engine(mut self, host: String) -> Self {
        self.containers = host;
        self
    }

    /// A project of these files: path and content.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let sandbox = Self::named("project");
        for (file, text) in files {
            sandbox.write(file, text);
        }
        sandbox
    }

    /// The same project, whose engine finds the extensions that were fetched for tests.
    pub(crate) fn extended(self) -> Self {
        Self {
            extended: true,
            ..self
        }
    }

    /// The same project, which is built in a lake: a connector, and how another program attaches that under the name `lake`.
    pub(crate) fn in_lake(self, connector: &str, attach: Vec<String>) -> Self {
        self.write("connectors/duckdb.yaml", connector);
        Self { lake: attach, ..self }.extended()
    }

    /// The same project, which is built in a lake with its catalog in a file.
    pub(crate) fn in_lake_of_files(self) -> Self {
        let attach =
            "ATTACH 'ducklake:sqlite:{project}/lake/catalog.sqlite' AS lake (META_JOURNAL_MODE 'WAL')";
        self.in_lake(LAKE_OF_FILES, vec![attach.to_owned()])
    }

    /// Declares the connector `bucket`, by which the bucket `lake` of a test's store is reached: its secret, as it stands in the
    /// file, and the store's address.
    pub(crate) fn write_bucket(&self, secret: &str, endpoint: &str) {
        self.write(
            "connectors/bucket.yaml",
            &format!(
                "driver: s3\nkey_id: key-of-a-test\nsecret: {secret}\nregion: us-east-1\n\
                 endpoint: {endpoint}\npath_prefixes: s3://lake/\n"
            ),
        );
    }

    /// The same project, whose program has a variable in its environment, in the place of one of that name.
    pub(crate) fn with_variable(mut self, name: &'static str, value: &str) -> Self {
        self.environment.retain(|(other, _)| *other != name);
        self.environment.push((name, value.to_owned()));
        self
    }

    /// The same project, whose program asks other machines through a proxy.
    pub(crate) fn through(self, proxy: &str) -> Self {
        self.with_variable("HTTPS_PROXY", proxy)
    }

    /// A copy of this one as it stands, state folder included.
    pub(crate) fn copied(&self) -> Self {
        let sandbox = Self {
            extended: self.extended,
            environment: self.environment.clone(),
            lake: self.lake.clone(),
            ..Self::named("project")
        };
        copy(self.path(), sandbox.path());
        let state = sandbox.path().join(STATE);
        if self.path().join(STATE).is_dir() {
            fs::create_dir(&state).expect("a folder can be made");
            copy(&self.path().join(STATE), &state);
        }
        sandbox
    }

    /// Runs the program with a crash point armed, at its first visit or a later one. Says whether it died there.
    pub(crate) fn dies_at(&self, point: &str, visits_before: u32) -> bool {
        let action = match visits_before {
            0 => "return".to_owned(),
            visits => format!("{visits}*off->return"),
        };
        let mut command = self.command(&["run"]);
        let output = command.env("FAILPOINTS", format!("{point}={action}")).output();
        let output = output.expect("the program can be started");
        output.status.code().is_none()
    }

    /// Writes a file, its folder too where that is missing.
    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.path().join(file);
        let folder = path.parent().expect("a file stands in a folder");
        fs::create_dir_all(folder).expect("a folder can be made");
        fs::write(path, text).expect("the file can be written");
    }

    /// Removes a file.
    pub(crate) fn remove(&self, file: &str) {
        fs::remove_file(self.path().join(file)).expect("the file can be removed");
    }

    /// Gives a file another name.
    pub(crate) fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path().join(from), self.path().join(to)).expect("the file can be renamed");
    }

    /// The engine's file or the lake, as another program would open it while nobody runs.
    pub(crate) fn engine(&self) -> ByHand {
        if self.lake.is_empty() {
            return ByHand::open(&self.engine_file());
        }
        let engine = ByHand::in_memory();
        let folder = server::extensions();
        engine.run(&format!("SET extension_directories = ['{}']", folder.display()));
        let project = self.path().display().to_string();
        for sql in &self.lake {
            engine.run(&sql.replace("{project}", &project));
        }
        engine.run("USE lake");
        engine
    }

    /// Returns the path of the engine's file.
    pub(crate) fn engine_file(&self) -> PathBuf {
        self.path().join(".watershed/dev/main.duckdb")
    }

    /// The project's folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Calls the program in the project's folder and waits for its end.
    pub(crate) fn call(&self, arguments: &[&str]) -> Said {
        let output = self.command(arguments).output();
        output.expect("the program can be started").into()
    }

    /// Starts the program in the project's folder; what it says is lost.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program can be started")
    }

    /// The program, with nothing of the caller's environment that it would read.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_watershed-under-test"));
        command
            .args(arguments)
            .current_dir(self.path())
            .stdin(Stdio::null());
        for variable in [
            "WATERSHED_PROJECT",
            "WATERSHED_ENVIRONMENT",
            "WATERSHED_STATE_DIR",
            "WATERSHED_SANDBOX",
            "DISPLAY",
            "WAYLAND_DISPLAY",
        ] {
            command.env_remove(variable);
        }
        if self.extended {
            command.env("WATERSHED_EXTENSIONS", server::extensions());
        }
        for proxy in ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"] {
            command.env_remove(proxy).env_remove(proxy.to_ascii_lowercase());
        }
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        // Tests fetch nothing from anywhere.
        command
            .env("NO_COLOR", "1")
            .env("DOCKER_HOST", &self.containers)
            .env("WATERSHED_NO_EXTENSION_INSTALL", "true");
        command
    }

    /// Removes the state folder, and a lake in the project's folder: nothing is known any more.
    pub(crate) fn forget(&self) {
        fs::remove_dir_all(self.path().join(".watershed")).expect("the state folder can be removed");
        // Of another home there is none.
        let _ = fs::remove_dir_all(self.path().join("lake"));
    }

    /// Removes the catalog: what was built is there, and nobody knows of it.
    pub(crate) fn forget_catalog(&self) {
        let state = self.path().join(STATE).join("dev");
        for entry in fs::read_dir(state).expect("the state folder can be listed") {
            let path = entry.expect("a folder's entry can be read").path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if name.starts_with("catalog.db") {
                fs::remove_file(path).expect("the catalog can be removed");
            }
        }
    }

    /// Returns true if there is a state folder.
    pub(crate) fn is_known(&self) -> bool {
        self.path().join(STATE).is_dir()
    }

    /// Every table and view in the engine with all of its rows, each as one line.
    pub(crate) fn tables(&self) -> Vec<String> {
        let engine = self.engine();
        let names = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' \
                     AND table_catalog = current_database() AND NOT starts_with(table_name, '_watershed_trash_') ORDER BY 1";
        let table = |name: String| {
            let quoted = name.replace('"', "\"\"");
            let rows = engine.lines(&format!("SELECT t::VARCHAR FROM \"{quoted}\" t ORDER BY 1"));
            format!("{name}: {}", rows.join(" "))
        };
        engine.lines(names).into_iter().map(table).collect()
    }

    /// The rows of each table, in order; none before anything was built.
    pub(crate) fn table_rows(&self) -> BTreeMap<String, Vec<String>> {
        if !self.engine_file().exists() {
            return BTreeMap::new();
        }
        let engine = self.engine();
        let tables = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' \
                      AND NOT starts_with(table_name, '_watershed_trash_') ORDER BY ALL";
        let rows = |name: String| {
            let rows = engine.lines(&format!("SELECT * FROM \"{name}\" ORDER BY ALL"));
            (name, rows)
        };
        engine.lines(tables).into_iter().map(rows).collect()
    }

    /// Brings the project up to date, which must end with `code`, and returns what was done: resource to work,
    /// without those for which nothing was to be done.
    pub(crate) fn run(&self, code: i32) -> BTreeMap<String, String> {
        self.expect_run(code, "a run")
    }

    /// As [`run`](Self::run), with what came before for the message of a failure.
    pub(crate) fn expect_run(&self, code: i32, story: &str) -> BTreeMap<String, String> {
        let said = self.call(&["run", "--json"]);
        assert_eq!(said.code, Some(code), "{story}: {}\n{}", said.stderr, said.stdout);
        let document = said.json();
        let resources = document["resources"]
            .as_array()
            .expect("the document lists resources");
        let done = resources
            .iter()
            .map(|resource| (text(resource, "name"), text(resource, "work")));
        let idle = ["none", "checked"];
        done.filter(|(_, work)| !idle.contains(&work.as_str())).collect()
    }

    /// As [`run`](Self::run), written as `name:work name:work`, ordered by name.
    pub(crate) fn done(&self, code: i32) -> String {
        let done = self
            .run(code)
            .into_iter()
            .map(|(name, work)| format!("{name}:{work}"));
        done.collect::<Vec<_>>().join(" ")
    }

    /// The rows of a query, as JSON values.
    pub(crate) fn query(&self, sql: &str) -> Value {
        let said = self.call(&["query", "--json", sql]);
        assert_eq!(said.code, Some(0), "{sql}: {}", said.stderr);
        said.json()
    }

    /// Replaces the one occurrence of `from` in a file.
    pub(crate) fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.path().join(file);
        let text = fs::read_to_string(&path).expect("the file can be read");
        assert_eq!(text.matches(from).count(), 1, "`{from}` stands once in {file}");
        fs::write(&path, text.replace(from, to)).expect("the file can be written");
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
            code: output.status.code(),
        }
    }
}

impl Said {
    /// Standard output as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }
}

/// The files in a folder and those below it.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files_below(&entry.path())),
            _ => found.push(entry.path()),
        }
    }
    found
}

/// `testdata/projects/NAME` in the repository.
pub(crate) fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../testdata/projects")
        .join(name)
}

/// Compares with a kept output, or keeps this one when `WATERSHED_BLESS` is set.
pub(crate) fn assert_kept(file: &Path, actual: &str) {
    if std::env::var_os("WATERSHED_BLESS").is_some() {
        return fs::write(file, actual).expect("the kept output can be written");
    }
    let kept = fs::read_to_string(file).unwrap_or_default();
    let hint = "review the difference; WATERSHED_BLESS=1 accepts it";
    assert_eq!(actual, kept, "{} differs: {hint}", file.display());
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// Copies a folder's content, state folders left out.
fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a sample project can be listed") {
        let entry = entry.expect("a folder's entry can be read");
        let target = to.join(entry.file_name());
        if entry.file_name() == STATE {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            fs::create_dir(&target).expect("a folder can be made");
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).expect("a file can be copied");
        }
    }
}

/// Returns the causal chain of a run as documents have it: `kind/name reason origin` for each step.
pub(crate) fn chain_of(run: &Value) -> Vec<String> {
    let links = run["chain"].as_array().cloned().unwrap_or_default();
    let say = |link: &Value| {
        let resource = format!("{}/{}", link["resource"]["kind"], link["resource"]["name"]);
        let origin = link["origin"].as_str().unwrap_or_default();
        format!("{resource} {} {origin}", link["reason"]).replace('"', "")
    };
    links.iter().map(say).collect()
}

/// Returns the crash points of the catalog, the engine and other systems whose names have one of these parts.
pub(crate) fn crash_points<'a>(parts: &'a [&str]) -> impl Iterator<Item = &'static str> + 'a {
    let points = watershed_controller::store::CRASH_POINTS
        .iter()
        .chain(watershed_drivers::CRASH_POINTS)
        .chain(watershed_drivers::REMOTE_CRASH_POINTS)
        .copied();
    points.filter(|point| parts.iter().any(|part| point.contains(part)))
}
