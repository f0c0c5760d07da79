//! One project with a resource of every kind that an operation is about, run by this process or by nobody.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;
use tracing_subscriber::layer::SubscriberExt as _;
use watershed::api::request::RunRequest;
use watershed::api::{Problem, Reply, Request};
use watershed::program::{AtRest, Hold};
use watershed::socket::{Address, Connection, Listener, Service, replies};
use watershed::state_folder::StateFolder;
use watershed::{Files, Instance, Options, Runtime};

/// Longer than anything here takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A secret that looks otherwise in SQL, in JSON and in an address.
pub(crate) const SECRET: &str = "S3CR'ET\"pl/ant ed&9x";
/// The name that stands in its place.
pub(crate) const NAME: &str = "[PLANTED]";

/// The variables of the project, with the secret.
pub(crate) const VARIABLES: &str = "PLANTED=\"S3CR'ET\\\"pl/ant ed&9x\"\n";

/// A service that says something and waits.
pub(crate) const STEADY: &str =
    "type: service\nrun: echo begun; exec sleep 100000\nreplicas: 1\nstop: {grace: 1s}\n";

const FILES: &[(&str, &str)] = &[
    (
        "watershed.yaml",
        "mock_users:\n  - {email: head@example.org, admin: true}\nmanaged:\n  stages: [absent, active, gone]\n  desired: active\n\
         \x20 observe: {command: [sh, thing.sh, observe]}\n  steps:\n    active: {command: [sh, thing.sh, active], attempts: 1}\n\
         \x20   gone: {command: [sh, thing.sh, gone], attempts: 1}\n",
    ),
    (".env", VARIABLES),
    (
        "thing.sh",
        "case $1 in observe) printf '{\"stage\": \"%s\"}' \"$(cat thing 2>/dev/null || echo absent)\";; *) echo \"$1\" > thing;; esac\n",
    ),
    ("public/logo.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n"),
    ("data/1.csv", "id,v\n1,10\n"),
    ("data/2.csv", "id,v\n2,20\n"),
    (
        "connectors/archive.yaml",
        "type: connector\ndriver: file\npath: told\n",
    ),
    (
        "connectors/hook.yaml",
        "type: connector\ndriver: webhook\nurl: 'http://127.0.0.1:9/{{ .env.PLANTED | urlquery }}'\nsecret: '{{ .env.PLANTED }}'\n",
    ),
    (
        "connectors/store.yaml",
        "type: connector\ndriver: s3\naws_secret_access_key: 'statedS3CR/ET77'\n",
    ),
    (
        "models/late.sql",
        "-- @materialize: true\nSELECT * FROM (VALUES (DATE '2024-03-01', 'JFK', 10), (DATE '2024-03-02', 'LGA', 50)) AS t(day, origin, delay)\n",
    ),
    (
        "models/parts.yaml",
        "type: model\nincremental: true\npartitions: {glob: 'data/*.csv'}\n\
         sql: SELECT id::BIGINT AS id, v::BIGINT AS v FROM read_csv('{{ .partition.uri }}', header = true)\n",
    ),
    (
        "models/tested.yaml",
        "type: model\nmaterialize: true\nsql: SELECT day, delay FROM late\ntests:\n  - {name: small, assert: delay < 300}\n",
    ),
    ("models/gone.sql", "-- @materialize: true\nSELECT 1 AS x\n"),
    (
        "metrics/delays.yaml",
        "version: 1\ntype: metrics_view\nmodel: late\ntimeseries: day\nsmallest_time_grain: day\n\
         dimensions: [{name: origin, column: origin}]\nmeasures: [{name: flights, expression: count(*)}]\n",
    ),
    (
        "canvases/board.yaml",
        "type: canvas\nrows: [{items: [{kpi: {metrics_view: delays, measure: flights}}]}]\n",
    ),
    (
        "apis/by_origin.yaml",
        "type: api\nsql: SELECT delay FROM late WHERE origin = '{{ .args.origin }}' ORDER BY 1\n",
    ),
    (
        "alerts/bad.yaml",
        "type: alert\nrefresh: {ref_update: true}\ndata: {sql: 'SELECT origin, delay FROM late WHERE delay > 30'}\nnotify: {file: archive}\n",
    ),
    (
        "reports/late.yaml",
        "type: report\nrefresh: {ref_update: true}\ndata: {sql: 'SELECT origin FROM late ORDER BY 1'}\nexport: {format: csv}\nnotify: {file: archive}\n",
    ),
    ("programs/steady.yaml", STEADY),
    ("managed/thing.yaml", "type: managed\n"),
];

/// A project in a folder that goes away.
pub(crate) struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
    /// True if callers may change files that run programs.
    remote_edit: bool,
}

impl Place {
    /// The project of these tests, with these files beside its own.
    pub(crate) fn new(more: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let place = Self {
            root: folder.path().join("shop"),
            _folder: folder,
            remote_edit: true,
        };
        for (file, text) in FILES.iter().chain(more) {
            place.write(file, text);
        }
        place
    }

    /// A copy of another project.
    pub(crate) fn of(project: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let root = folder.path().join("shop");
        copy(project, &root);
        Self {
            _folder: folder,
            root,
            remote_edit: true,
        }
    }

    /// The project, whose files the user of the process alone may change.
    pub(crate) fn without_remote_edit(mut self) -> Self {
        self.remote_edit = false;
        self
    }

    /// The folder of the project.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Writes a file, its folder too where that is missing.
    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.root.join(file);
        let folder = path.parent().expect("a file stands in a folder");
        fs::create_dir_all(folder).expect("a folder can be made");
        fs::write(path, text).expect("the file can be written");
    }

    /// Copies the project as it stands, state included.
    pub(crate) fn copied(&self) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let root = folder.path().join("shop");
        copy(&self.root, &root);
        Self {
            _folder: folder,
            root,
            remote_edit: true,
        }
    }

    fn options(&self) -> Options {
        Options {
            files: Files::Once,
            remote_edit: self.remote_edit,
            shim: env!("CARGO_BIN_EXE_watershed-under-test").into(),
            ..Options::new(&self.root)
        }
    }

    fn state(&self) -> StateFolder {
        StateFolder::new(self.root.join(".watershed"), "dev").expect("a state folder")
    }

    /// Opens the project in this process and brings it to rest.
    pub(crate) async fn owned(&self) -> Owner {
        self.owned_by(|runtime, _| runtime.clone()).await
    }

    /// Opens the project by a runtime that is made of the usual one, and brings it to rest.
    pub(crate) async fn owned_by(&self, make: impl FnOnce(&Runtime, &Options) -> Runtime) -> Owner {
        static RUNTIME: OnceLock<Runtime> = OnceLock::new();
        let runtime = RUNTIME.get_or_init(|| {
            let runtime = Runtime::new();
            let logging = tracing_subscriber::registry().with(runtime.log_layer());
            tracing::subscriber::set_global_default(logging).expect("nothing else logs here");
            runtime
        });
        let instance = make(runtime, &self.options())
            .open(self.options())
            .await
            .expect("the project can be opened");
        let instance = Arc::new(instance);
        let run = instance.run(RunRequest::default()).await;
        run.expect("the project comes to rest");
        let address = Address::for_folder(&self.state());
        let listener = Listener::bind(address.clone(), Arc::clone(&instance)).expect("a socket");
        Owner {
            instance,
            listener,
            address,
        }
    }

    /// Returns the project as nobody runs it.
    pub(crate) fn at_rest(&self) -> AtRest {
        let state = self.state();
        let lock = state.try_own().expect("the lock can be tried");
        let lock = lock.expect("nobody has the folder");
        AtRest::new(self.options(), state, Hold::Locked(lock))
    }
}

/// Copies a folder with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("the folder can be listed") {
        let entry = entry.expect("an entry can be read");
        let target = to.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => copy(&entry.path(), &target),
            Ok(kind) if kind.is_file() => {
                fs::copy(entry.path(), &target).expect("a file can be copied");
            }
            _ => {}
        }
    }
}

/// A project that this process runs and answers for on its socket.
pub(crate) struct Owner {
    pub(crate) instance: Arc<Instance>,
    listener: Listener,
    pub(crate) address: Address,
}

impl Owner {
    /// Asks through the socket.
    pub(crate) async fn ask(&self, request: &Request) -> Told {
        let connection = Connection::open(&self.address, LONG).await.expect("it listens");
        Told::all(connection.ask(request).await).await
    }

    /// Stops in order.
    pub(crate) async fn close(self) {
        self.instance.end_followers();
        self.listener.finish().await;
        self.instance.close(LONG).await.expect("it stops in order");
    }
}

/// Asks where nobody runs the project.
pub(crate) async fn ask_at_rest(place: &AtRest, request: Request) -> Told {
    let (sender, parts) = replies();
    let (told, ()) = tokio::join!(Told::all(parts), place.serve(request, sender));
    told
}

/// The parts of an answer.
#[derive(Debug)]
pub(crate) struct Told(pub(crate) Vec<Reply>);

impl Told {
    async fn all(mut parts: tokio::sync::mpsc::Receiver<Reply>) -> Self {
        let mut all = Vec::new();
        let hearing = async {
            while let Some(part) = parts.recv().await {
                all.push(part);
            }
        };
        let heard = tokio::time::timeout(LONG, hearing).await;
        assert!(heard.is_ok(), "no end came: {all:?}");
        Self(all)
    }

    /// Returns the end: the document, or the problem.
    pub(crate) fn end(&self) -> Result<Value, Problem> {
        match self.0.last() {
            Some(Reply::Done(answer)) => {
                let answer = serde_json::to_value(answer).expect("an answer is JSON");
                let Value::Object(answer) = answer else {
                    panic!("an answer has its operation's name: {answer}");
                };
                Ok(answer.into_values().next().expect("an answer has an output"))
            }
            Some(Reply::Refused(problem)) => Err(problem.clone()),
            other => panic!("an answer has an end: {other:?}"),
        }
    }
}
