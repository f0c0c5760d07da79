//! Notifiers of a project, made from its connectors; only they see the secrets.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use watershed_compilers::{Scope, render_text};
use watershed_controller::{Handle, Resource};
use watershed_core::{Key, Uid};
use watershed_delivery::{
    Connect, DeliveryError, Notifier, Receiver,
    notify::{self, Client, Command, Egress, File, Login, Secret, Slack, Smtp, SmtpSettings, Tls, Webhook},
};
use watershed_outputs::secrets::{Secrets, Unknown};
use watershed_proto::{ConnectorSpec, Value};
use watershed_resolvers::Resources;

use crate::{
    alert::{self, record::AlertRecord},
    connector,
    messages::Proto,
    report::{self, record::ReportRecord},
};

/// A factory of the notifiers that a project's alerts and reports use.
pub struct ProjectNotifiers {
    root: PathBuf,
    environment: String,
    secrets: Secrets,
    /// True if messages may only go to files of the project.
    is_confined: bool,
    /// The policy of connections to receivers.
    egress: Egress,
    /// The HTTP client, created for the first message that needs one.
    client: OnceLock<Result<Client, String>>,
}

impl ProjectNotifiers {
    /// Creates the notifiers of the project in `root`, for one environment.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>, environment: impl Into<String>, secrets: Secrets) -> Self {
        Self {
            root: root.into(),
            environment: environment.into(),
            secrets,
            is_confined: false,
            egress: Egress::default(),
            client: OnceLock::new(),
        }
    }

    /// Restricts messages to files of the project, for projects that are not trusted.
    #[must_use]
    pub fn confined(mut self, is_confined: bool) -> Self {
        self.is_confined = is_confined;
        self
    }

    /// Sets the policy of connections to receivers.
    #[must_use]
    pub fn with_egress(mut self, egress: Egress) -> Self {
        self.egress = egress;
        self
    }

    /// Returns an error if the project is confined to its own files.
    fn refuse_confined(&self) -> Result<(), DeliveryError> {
        match self.is_confined {
            true => Err(DeliveryError::permanent(
                "a project in a sandbox sends messages to its own files alone",
            )),
            false => Ok(()),
        }
    }

    fn client(&self) -> Result<Client, DeliveryError> {
        let made = self
            .client
            .get_or_init(|| notify::client(self.egress.clone()).map_err(|error| error.to_string()));
        made.clone().map_err(DeliveryError::transient)
    }

    /// Executes the templates of a text, and replaces placeholders of secrets.
    fn render(&self, text: &str, variables: &BTreeMap<String, String>) -> Result<String, DeliveryError> {
        let unknown = |error: Unknown| DeliveryError::transient(error.to_string());
        let stated = BTreeMap::from([(String::new(), text.to_owned())]);
        let mut stated = self.secrets.open(&stated).map_err(unknown)?;
        let text = stated.remove("").unwrap_or_default();
        if !text.contains("{{") {
            return Ok(text);
        }
        let scope = Scope {
            environment: self.environment.clone(),
            variables: self.secrets.open(variables).map_err(unknown)?,
            ..Scope::default()
        };
        render_text(&text, &scope).map_err(|error| DeliveryError::permanent(error.message))
    }

    fn make(&self, spec: &ConnectorSpec, name: &str) -> Result<Arc<dyn Notifier>, DeliveryError> {
        if !matches!(spec.driver.as_str(), "file" | "local_file") {
            self.refuse_confined()?;
        }
        let settings = Settings { of: self, spec, name };
        match spec.driver.as_str() {
            "webhook" => settings.webhook(),
            "slack" => settings.slack(),
            "smtp" => settings.smtp(),
            "command" => settings.command(),
            "file" | "local_file" => {
                let folder = settings.text("path")?.unwrap_or_default();
                Ok(Arc::new(File::new(&self.root, folder)))
            }
            driver => Err(DeliveryError::permanent(format!(
                "connector \"{name}\" has the driver `{driver}`, which tells nobody"
            ))),
        }
    }
}

impl ProjectNotifiers {
    /// Returns the notifier for a receiver, found among the project's connectors, and the receiver's address with
    /// templates executed.
    ///
    /// # Errors
    /// When there is none, or its settings can't be used.
    pub fn among(
        &self,
        resources: &dyn Resources,
        receiver: &Receiver,
    ) -> Result<(Arc<dyn Notifier>, String), DeliveryError> {
        let to = self.render(&receiver.to, &receiver.variables)?;
        if to.contains("://") {
            self.refuse_confined()?;
            let slack = Slack::webhook(self.client()?, &to);
            let slack = slack.map_err(|error| DeliveryError::permanent(error.to_string()))?;
            return Ok((Arc::new(slack), String::new()));
        }
        let name = receiver.connector.as_str();
        let found = resources.find(&Key::new(connector::KIND, name));
        let found = found.ok_or_else(|| {
            // It may be declared in a file that does not compile at the moment.
            DeliveryError::transient(format!("connector \"{name}\" does not exist"))
        })?;
        let spec = Resource::spec_of::<Proto<ConnectorSpec>>(&found)
            .map_err(|error| DeliveryError::transient(error.to_string()))?;
        Ok((self.make(&spec.0, name)?, to))
    }
}

impl Connect for ProjectNotifiers {
    fn connect(
        &self,
        handle: &Handle,
        receiver: &Receiver,
    ) -> Result<(Arc<dyn Notifier>, String), DeliveryError> {
        self.among(handle, receiver)
    }

    fn redact(&self, text: String) -> String {
        self.secrets.redact(&text).into_owned()
    }

    fn is_noted(&self, handle: &Handle, sender: Uid, key: &watershed_delivery::Key) -> bool {
        let Ok(found) = handle.get(sender) else {
            return true;
        };
        let outbox = match found.kind().as_str() {
            alert::KIND => {
                Resource::state_of::<AlertRecord>(&found.row).map(|record| record.map(|it| it.outbox))
            }
            report::KIND => {
                Resource::state_of::<ReportRecord>(&found.row).map(|record| record.map(|it| it.outbox))
            }
            _ => return true,
        };
        let outbox = outbox.ok().flatten().unwrap_or_default();
        !outbox.iter().any(|one| one.message.key == *key)
    }
}

/// The settings of a connector, with their templates.
struct Settings<'a> {
    of: &'a ProjectNotifiers,
    spec: &'a ConnectorSpec,
    name: &'a str,
}

impl Settings<'_> {
    fn text(&self, key: &str) -> Result<Option<String>, DeliveryError> {
        let value = self.spec.properties.as_ref().and_then(|all| all.get(key));
        let text = match value.and_then(Value::as_str) {
            Some(text) => self.of.render(text, &self.spec.variables)?,
            None => return Ok(value.and_then(Value::as_int).map(|number| number.to_string())),
        };
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    fn needed(&self, key: &str) -> Result<String, DeliveryError> {
        let missing = || self.wrong(&format!("`{key}` is missing"));
        self.text(key)?.ok_or_else(missing)
    }

    fn wrong(&self, what: &str) -> DeliveryError {
        DeliveryError::permanent(format!("connector \"{}\": {what}", self.name))
    }

    fn webhook(&self) -> Result<Arc<dyn Notifier>, DeliveryError> {
        let mut secrets = Vec::new();
        for key in ["secret", "previous_secret"] {
            if let Some(text) = self.text(key)? {
                let secret = Secret::new(&text).map_err(|error| self.wrong(&error.to_string()))?;
                secrets.push(secret);
            }
        }
        let webhook = Webhook::new(self.of.client()?, &self.needed("url")?, secrets);
        let webhook = webhook.map_err(|error| self.wrong(&error.to_string()))?;
        Ok(Arc::new(webhook))
    }

    fn slack(&self) -> Result<Arc<dyn Notifier>, DeliveryError> {
        let api = self.text("api")?;
        let bot = Slack::bot(self.of.client()?, self.needed("token")?, api.as_deref());
        let bot = bot.map_err(|error| self.wrong(&error.to_string()))?;
        Ok(Arc::new(bot))
    }

    fn smtp(&self) -> Result<Arc<dyn Notifier>, DeliveryError> {
        let tls = match self.text("tls")?.as_deref() {
            None | Some("starttls") => Tls::Starttls,
            Some("implicit") => Tls::Implicit,
            Some("none") => Tls::None,
            Some(_) => return Err(self.wrong("`tls` is one of `starttls`, `implicit`, `none`")),
        };
        let port = match self.text("port")? {
            None => None,
            Some(text) => Some(text.parse().map_err(|_| self.wrong("`port` is no port"))?),
        };
        let login = match (self.text("user")?, self.text("password")?) {
            (Some(user), Some(password)) => Some(Login { user, password }),
            (None, None) => None,
            _ => return Err(self.wrong("`user` and `password` belong together")),
        };
        let authorities = match self.text("ca_file")? {
            None => None,
            Some(file) => {
                let read = std::fs::read(self.of.root.join(file));
                Some(read.map_err(|error| self.wrong(&format!("`ca_file` can't be read: {error}")))?)
            }
        };
        let smtp = Smtp::new(&SmtpSettings {
            host: self.needed("host")?,
            port,
            tls,
            login,
            from: self.needed("from")?,
            authorities,
            egress: self.of.egress.clone(),
            ..SmtpSettings::default()
        });
        Ok(Arc::new(smtp.map_err(|error| self.wrong(&error.to_string()))?))
    }

    fn command(&self) -> Result<Arc<dyn Notifier>, DeliveryError> {
        let properties = self.spec.properties.clone().unwrap_or_default();
        let value = properties.get("command");
        let parts: Vec<String> = match value.and_then(Value::as_list) {
            Some(list) => list
                .iter()
                .filter_map(|one| one.as_str().map(str::to_owned))
                .collect(),
            None => value
                .and_then(Value::as_str)
                .map(str::to_owned)
                .into_iter()
                .collect(),
        };
        let mut arguments = Vec::new();
        for part in &parts {
            arguments.push(self.of.render(part, &self.spec.variables)?);
        }
        let mut command = Command::new(&self.of.root, arguments);
        let environment = properties.get("environment").and_then(Value::as_map).cloned();
        for (name, value) in environment.unwrap_or_default() {
            let text = value.as_str().unwrap_or_default();
            command = command.variable(name, self.of.render(text, &self.spec.variables)?);
        }
        Ok(Arc::new(command))
    }
}
