//! Those that call services and run programs, each with its own policy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use watershed_controller::{Resource, Timestamp};
use watershed_delivery::notify::{self, Attempt, Notifier, Webhook};
use watershed_delivery::{Key, Message, Sender};
use watershed_drivers::objects::{Access, Driver, look};
use watershed_managers::outside::{Call, CalledResource, Commands, Http, Request, VERSION};
use watershed_outside::Program;
use watershed_outside::http::{Client, Egress, Method, Route, Settings, Url};
use watershed_outside::program::Keep;

/// Long enough for whatever is to end by itself.
const LONG: Duration = Duration::from_secs(100);
/// The bytes that the client and the runner keep where no caller of ours says how many.
pub(crate) const KEPT: usize = 1000;

/// A caller of services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A webhook of a notification.
    Webhook,
    /// A step of a managed resource.
    Step,
    /// A look at a web server's file.
    Objects,
    /// The client as it is.
    Plain,
}

pub(crate) const CALLERS: [Caller; 4] = [Caller::Webhook, Caller::Step, Caller::Objects, Caller::Plain];

impl Caller {
    /// Makes a call; a failure is in its words.
    pub(crate) async fn call(self, url: &str, authorities: Option<PathBuf>) -> Result<(), String> {
        self.call_under(&Egress::default(), url, authorities).await
    }

    /// Makes a call under a policy of connections; a failure is in its words.
    pub(crate) async fn call_under(
        self,
        egress: &Egress,
        url: &str,
        authorities: Option<PathBuf>,
    ) -> Result<(), String> {
        let egress = egress.clone();
        let called = async {
            match self {
                Self::Webhook => webhook(egress, url).await,
                Self::Step => step(egress, url).await,
                Self::Objects => object(egress, url, authorities).await,
                Self::Plain => plain(egress, url, authorities).await,
            }
        };
        tokio::time::timeout(LONG, called).await.expect("it ends")
    }
}

async fn webhook(egress: Egress, url: &str) -> Result<(), String> {
    let client = notify::client(egress).unwrap();
    let webhook = Webhook::new(client, url, Vec::new()).unwrap();
    deliver(&webhook).await
}

async fn step(egress: Egress, url: &str) -> Result<(), String> {
    let request = Request {
        url: url.to_owned(),
        ..Request::default()
    };
    let answer = Http::new(egress).unwrap().call(&request, &a_call()).await;
    answer.map(drop).map_err(|error| error.message.to_string())
}

async fn object(egress: Egress, url: &str, authorities: Option<PathBuf>) -> Result<(), String> {
    let access = Access {
        driver: Driver::Https,
        egress,
        authorities,
        ..Access::default()
    };
    let looked = look(&access, url, &CancellationToken::new()).await;
    looked.map(drop).map_err(|error| error.to_string())
}

async fn plain(egress: Egress, url: &str, authorities: Option<PathBuf>) -> Result<(), String> {
    let client = Client::new(Settings {
        authorities,
        body_max: KEPT,
        route: Route::Direct(egress),
        ..Settings::default()
    });
    let request = client.unwrap();
    let request = request.request(Method::GET, Url::parse(url).unwrap());
    let answer = request.send().await.map_err(|error| error.to_string())?;
    match answer.body().await {
        Ok(_) => Ok(()),
        Err(cut) => Err(format!("cut off after {}", cut.read.len())),
    }
}

/// A runner of programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runner {
    /// A command of a notification.
    Notifier,
    /// A step of a managed resource.
    Step,
    /// The runner as it is.
    Plain,
}

pub(crate) const RUNNERS: [Runner; 3] = [Runner::Notifier, Runner::Step, Runner::Plain];

impl Runner {
    /// Runs a script of the shell in a folder; a failure is in its words.
    pub(crate) async fn run(self, folder: &Path, script: &str, within: Duration) -> Result<(), String> {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        match self {
            Self::Notifier => deliver(&notify::Command::new(folder, command).within(within)).await,
            Self::Step => {
                let commands = Commands::new(folder, folder.join("notes")).unwrap();
                let call = a_call();
                let none = BTreeMap::new();
                let run = commands.run(&command, &none, Resource::fresh_uid(), &call);
                // The loop drops what takes longer than its step may.
                let ended = tokio::time::timeout(within, run).await;
                let ended = ended.map_err(|_| "it was dropped".to_owned())?;
                ended.map(drop).map_err(|error| error.message.to_string())
            }
            Self::Plain => {
                let mut program = Program::new(folder, &command).unwrap();
                program.pass_on();
                program.output = Keep::First(KEPT);
                program.within = Some(within);
                let ended = program.run().await.map_err(|error| error.to_string())?;
                match ended.status.success() {
                    true => Ok(()),
                    false => Err(ended.how()),
                }
            }
        }
    }
}

async fn deliver(notifier: &dyn Notifier) -> Result<(), String> {
    let key = Key::new(Resource::fresh_uid(), Timestamp(0), "fail", "one");
    let sender = Sender {
        kind: "alert".to_owned(),
        name: "late".to_owned(),
    };
    let message = Message::one_line(key, sender, Timestamp(0), "late: 3 rows");
    let attempt = Attempt {
        number: 1,
        epoch: 1,
        to: "",
    };
    let ended = notifier.deliver(&message, attempt).await;
    ended.map(drop).map_err(|error| error.message)
}

fn a_call() -> Call {
    Call {
        version: VERSION,
        resource: CalledResource {
            name: "one".to_owned(),
            uid: Resource::fresh_uid().to_string(),
            epoch: 1,
            values: serde_json::json!({}),
        },
        desired: "active".to_owned(),
        stage: "absent".to_owned(),
        step: Some("active".to_owned()),
        attempt: 1,
        force: false,
        data: serde_json::Map::new(),
        window: None,
        parts: Vec::new(),
        event: None,
    }
}
