//! The manager of managed resources in project files.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use watershed_compilers::{Scope, render_text};
use watershed_controller::{Error, Ref, Uid};
use watershed_core::ErrorKind;
use watershed_managers::outside::{Answer, Call, ClientError, Commands, Egress, Http, Request};
use watershed_managers::{
    DiscoveredItem, Done, Manager, Observation, Part, Policy, Stage, Stages, Step, View,
};
use watershed_outputs::{failure, secrets::Secrets, selection::Chosen};
use watershed_proto::{ManagedCall, ManagedSpec, Value};

use super::{KIND, Known, needs, wish};
use crate::messages::Proto;

/// The interval at which every resource is looked at, whatever its file says. [`look_after`](super::look_after) looks
/// more often.
const AT_LEAST_EVERY: Duration = Duration::from_secs(24 * 3600);

/// The manager that takes steps by the commands and HTTP calls in project files.
#[derive(Debug)]
pub struct Calls {
    commands: Commands,
    http: Http,
    secrets: Secrets,
    environment: String,
    chosen: Chosen,
    is_confined: bool,
    /// The command that lists the things that exist outside; empty for none.
    discover: Vec<String>,
    /// The environment variables of the discovery command.
    discover_environment: BTreeMap<String, String>,
}

/// The reason why the calls of a project can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum CallsError {
    /// The folder for records of running commands can't be created.
    #[error("can't make the folder \"{path}\"")]
    Folder {
        /// The path of the folder that can't be created.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The HTTP client can't be created.
    #[error(transparent)]
    Http(#[from] ClientError),
}

impl Calls {
    /// Creates the manager of the project in `root`. Records of running commands are kept in `notes`, a folder used for
    /// nothing else.
    ///
    /// # Errors
    /// When the folder or the HTTP client can't be made.
    pub fn new(
        root: &Path,
        notes: &Path,
        environment: &str,
        secrets: Secrets,
        chosen: Chosen,
        egress: Egress,
    ) -> Result<Self, CallsError> {
        let commands = Commands::new(root, notes).map_err(|source| CallsError::Folder {
            path: notes.display().to_string(),
            source,
        })?;
        Ok(Self {
            commands,
            http: Http::new(egress)?,
            secrets,
            environment: environment.to_owned(),
            chosen,
            is_confined: false,
            discover: Vec::new(),
            discover_environment: BTreeMap::new(),
        })
    }

    /// Sets the command that lists the things that exist outside, with its environment variables.
    #[must_use]
    pub fn discovering(mut self, command: Vec<String>, environment: BTreeMap<String, String>) -> Self {
        (self.discover, self.discover_environment) = (command, environment);
        self
    }

    /// Makes the manager refuse every call if the project is confined to its own folder, as a program of the project
    /// would not be.
    #[must_use]
    pub fn confined(mut self, is_confined: bool) -> Self {
        self.is_confined = is_confined;
        self
    }

    /// Makes a call; secrets are removed from its errors.
    async fn call(&self, view: &View<Self>, said: &ManagedCall, is_step: bool) -> Result<Answer, Error> {
        let made = self.make(view, said, is_step).await;
        made.map_err(|error| self.secrets.redact_error(error))
    }

    async fn make(&self, view: &View<Self>, said: &ManagedCall, is_step: bool) -> Result<Answer, Error> {
        if self.is_confined {
            return Err(confined());
        }
        let spec = &view.spec().0;
        let known = view.details().cloned().unwrap_or_default();
        let values = spec
            .values
            .as_ref()
            .map_or_else(|| serde_json::json!({}), Into::into);
        let call = Call::new(view, values, known.data.clone(), is_step);
        let data = known
            .data
            .into_iter()
            .map(|(key, value)| (key, Value::from(value)));
        let scope = Scope {
            environment: self.environment.clone(),
            variables: self.secrets.open(&spec.variables)?,
            name: view.name().to_owned(),
            data: data.collect(),
            ..Scope::default()
        };
        let Some(http) = &said.http else {
            let command: Vec<String> = said
                .command
                .iter()
                .map(|text| filled(text, &scope))
                .collect::<Result<_, _>>()?;
            let environment = filled_all(&said.environment, &scope)?;
            return self.commands.run(&command, &environment, view.uid(), &call).await;
        };
        let request = Request {
            method: http.method.clone(),
            url: filled(&http.url, &scope)?,
            headers: filled_all(&http.headers, &scope)?,
        };
        self.http.call(&request, &call).await
    }

    fn shown(&self, message: Option<String>) -> String {
        self.secrets.redact(&message.unwrap_or_default()).into_owned()
    }
}

/// Renders a template. Errors are transient, as missing values may be known at the next attempt.
fn filled(text: &str, scope: &Scope) -> Result<String, Error> {
    render_text(text, scope).map_err(|error| Error {
        kind: ErrorKind::Transient,
        ..failure::from_render(&error)
    })
}

fn filled_all(texts: &BTreeMap<String, String>, scope: &Scope) -> Result<BTreeMap<String, String>, Error> {
    let filled = texts
        .iter()
        .map(|(key, text)| Ok((key.clone(), filled(text, scope)?)));
    filled.collect()
}

impl Manager for Calls {
    const KIND: &'static str = KIND;
    type Spec = Proto<ManagedSpec>;
    type Details = Known;

    fn stages(&self, spec: &Self::Spec) -> Stages {
        wish::stages(&spec.0)
    }

    async fn observe(&self, view: &View<Self>) -> Result<Observation<Known>, Error> {
        let Some(look) = &view.spec().0.observe else {
            return Ok(remembered(view));
        };
        let mut answer = self.call(view, look, false).await?;
        let message = match answer.message.take() {
            Some(message) => self.shown(Some(message)),
            // What the last step said is still the last that is known.
            None => view
                .details()
                .map_or_else(String::new, |known| known.message.clone()),
        };
        Ok(match answer.observation()? {
            // At both ends of a lifecycle there is nothing, whichever word is said for it.
            Observation::At(stage, _) if view.stages().is_nothing(&stage) => Observation::Absent,
            Observation::At(stage, data) => Observation::At(stage, Known { data, message }),
            Observation::Absent => Observation::Absent,
            Observation::Unclear(why) => Observation::Unclear(why),
        })
    }

    fn next(&self, view: &View<Self>, goal: &Stage) -> Option<Step> {
        let to = view.stages().step(view.stage(), goal)?;
        wish::step(&view.spec().0, to.as_str())
    }

    async fn act(&self, view: &View<Self>, step: &Step) -> Result<Done, Error> {
        let spec = &view.spec().0;
        let stated = spec.steps.iter().find(|stated| stated.to == step.to.as_str());
        let action = stated.and_then(|stated| stated.actions.iter().find(|one| one.name == view.action()));
        let Some(call) = action.and_then(|action| action.call.as_ref()) else {
            let message = format!(
                "\"{}\" is not an action of the step to \"{}\"",
                view.action(),
                step.to
            );
            return Err(Error::permanent("no-step", message));
        };
        let mut answer = self.call(view, call, true).await?;
        let (data, message) = (answer.data.take(), answer.message.take());
        if data.is_some() || message.is_some() {
            let mut known = view.details().cloned().unwrap_or_default();
            known.data.extend(data.unwrap_or_default());
            known.message = self.shown(message);
            view.report(known);
        }
        answer
            .done(&step.to)
            .map_err(|error| self.secrets.redact_error(error))
    }

    fn parts(&self, view: &View<Self>) -> Vec<Part> {
        let spec = &view.spec().0;
        let known: Vec<&Ref> = view.refs().iter().map(|view| &view.reference).collect();
        let parts = spec.parts.iter().map(|part| {
            let mut own = part.spec.clone().unwrap_or_default();
            own.variables = spec.variables.clone();
            let name = format!("{}.{}", view.name(), part.name);
            let made = Part::managed::<Self>(name, wish::desired(&own), &Proto(own));
            let made = made.in_order(part.order).with_refs(needs::of_part(part, &known));
            match part.gates_next.as_str() {
                "" => made,
                stage => made.gates_next(stage),
            }
        });
        parts.collect()
    }

    async fn discover(&self) -> Result<Vec<DiscoveredItem>, Error> {
        if self.discover.is_empty() || self.is_confined {
            return Ok(Vec::new());
        }
        let scope = Scope {
            environment: self.environment.clone(),
            variables: self.secrets.open_given(&BTreeMap::new()),
            ..Scope::default()
        };
        let environment = filled_all(&self.discover_environment, &scope)?;
        let listed = self.commands.list(&self.discover, &environment).await;
        listed.map_err(|error| self.secrets.redact_error(error))
    }

    fn refuse(&self, spec: &Self::Spec) -> Option<Error> {
        let makes_calls = spec.0.observe.is_some() || !spec.0.steps.is_empty();
        let confined = || (self.is_confined && makes_calls).then(confined);
        spec.0.fault.as_ref().map(failure::from_fault).or_else(confined)
    }

    fn chooses(&self, root: Uid) -> bool {
        self.chosen.holds(root)
    }

    fn policy(&self) -> Policy {
        Policy {
            observe_every: AT_LEAST_EVERY,
            ..Policy::default()
        }
    }
}

/// Returns the error by which calls of a confined project are refused.
fn confined() -> Error {
    Error {
        hint: Some(failure::confined().into()),
        ..Error::permanent("outside-sandbox", "a confined project makes no calls")
    }
}

/// Returns the stage that the steps reached, for a resource without a look.
fn remembered(view: &View<Calls>) -> Observation<Known> {
    match view.stages().is_nothing(view.stage()) {
        true => Observation::Absent,
        false => Observation::At(view.stage().clone(), view.details().cloned().unwrap_or_default()),
    }
}
