//! The configuration, read again at SIGHUP: certificate, tokens, limits, roles, attributes and instances take effect at once, the rest is named.
//!
//! A file with a mistake changes nothing.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use watershed::http::{Service, Tls, Tokens};

use super::configuration::{self, Checked, Served};
use super::people::People;
use crate::args::Format;
use crate::console::Console;
use crate::failure::Failure;

/// The parts of a running service that a configuration can change.
pub(super) struct Reload {
    file: PathBuf,
    hangup: Signal,
    running: Fixed,
    pub(super) tls: Option<Tls>,
    pub(super) tokens: Option<Arc<Tokens>>,
    pub(super) people: Option<Arc<People>>,
}

/// The part of a configuration that takes effect when the service starts.
#[derive(PartialEq)]
struct Fixed {
    keys: Vec<(&'static str, String)>,
}

impl Fixed {
    fn of(checked: &Checked) -> Self {
        let network = &checked.network;
        // With and without a slash at its end.
        let state = checked.state.iter().flat_map(|folder| folder.components());
        let state = state.collect::<PathBuf>().display().to_string();
        let mut keys = vec![
            ("listen", network.at.to_string()),
            ("tls", network.tls.is_some().to_string()),
            ("proxies", format!("{:?}", network.proxies)),
            ("hosts", format!("{:?}", checked.hosts)),
            ("base", checked.base.clone()),
            ("egress", format!("{:?}", checked.egress)),
            ("state", state),
            ("sql", format!("{:?}", network.sql)),
            ("mcp", checked.mcp.to_string()),
            ("auth", checked.tokens.is_some().to_string()),
        ];
        let people = checked.people.as_ref();
        let [oidc, header] = people.map(|people| people.fixed()).unwrap_or_default();
        keys.extend([("oidc", oidc), ("header", header)]);
        Self { keys }
    }

    /// Returns the keys that differ.
    fn but(&self, other: &Self) -> Vec<&'static str> {
        let pairs = self.keys.iter().zip(&other.keys);
        pairs
            .filter(|(one, other)| one != other)
            .map(|(one, _)| one.0)
            .collect()
    }
}

impl Reload {
    /// Listens for the signal from now on.
    ///
    /// # Errors
    /// When the system refuses the signal's handler.
    pub(super) fn new(file: PathBuf, checked: &Checked) -> Result<Self, Failure> {
        let refused = |error: std::io::Error| Failure::usage(format!("can't listen for SIGHUP: {error}"));
        Ok(Self {
            file,
            hangup: signal(SignalKind::hangup()).map_err(refused)?,
            running: Fixed::of(checked),
            tls: checked.network.tls.clone(),
            tokens: None,
            people: None,
        })
    }

    /// Waits for the signal. Cancel-safe.
    pub(super) async fn asked(&mut self) {
        if self.hangup.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Reads the configuration again, says what came of it, and returns the instances to keep; none if nothing changes.
    pub(super) fn read(&self, console: &mut Console, service: &Service) -> Option<Vec<Served>> {
        let checked = match configuration::check(console, &self.file, false, Format::Text) {
            Ok(Some(checked)) => checked,
            Ok(None) => {
                console.say("the configuration has mistakes: nothing was changed\n");
                return None;
            }
            Err(failure) => {
                console.say(&format!("{}: nothing was changed\n", failure.message()));
                return None;
            }
        };
        if let (Some(running), Some(read)) = (&self.tls, &checked.network.tls) {
            running.replace(read);
        }
        service.set_limits(checked.limits);
        let restart = self.running.but(&Fixed::of(&checked));
        if let (Some(running), Some(of_file)) = (&self.tokens, checked.tokens) {
            running.replace_file(of_file);
        }
        if let (Some(running), Some(read)) = (&self.people, checked.people) {
            running.map(read.mapping);
        }
        console.say("the configuration was read again\n");
        if !restart.is_empty() {
            let keys = restart.join("`, `");
            console.say(&format!(
                "  `{keys}` changed: that takes effect when the service starts again\n"
            ));
        }
        Some(checked.instances)
    }
}
