//! The interface of notifiers, and all notifiers.
//!
//! A notifier decides nothing. It makes one attempt and says how that went; when the next one is made, and whether, is
//! [`policy`](crate::policy)'s. It alone knows addresses and secrets: neither stands in what it returns.

mod client;
mod command;
mod file;
mod signature;
mod slack;
mod smtp;
mod webhook;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::message::Message;
use crate::policy::Class;

pub use client::{AddressError, client, is_loopback};
pub use command::Command;
pub use file::File;
pub use signature::{Secret, SecretError, sign};
pub use slack::Slack;
pub use smtp::{Login, Settings as SmtpSettings, Smtp, SmtpError, Tls};
pub use watershed_outside::http::{Client, ClientError, Egress, Names, SystemNames};
pub use webhook::Webhook;

/// The future type of notifiers' methods.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The context of one attempt to deliver a message.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// Number of the attempt, from 1.
    pub number: u32,
    /// Epoch of the controller's lease; a later holder has a higher one.
    pub epoch: u64,
    /// Address, channel or user; empty if the notifier has only one receiver.
    pub to: &'a str,
}

/// Proof of a successful delivery.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Receipt {
    /// The receiver's answer in one line without secrets, such as a status or an id.
    pub said: String,
}

/// The error of a failed attempt. Its text contains no secret and no whole address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DeliveryError {
    /// Class of the failure: transient or permanent.
    pub class: Class,
    /// Failure as text for people.
    pub message: String,
    /// Delay that the receiver requested; none if it did not.
    pub retry_after: Option<Duration>,
}

impl DeliveryError {
    /// Creates an error after which a retry may succeed.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::of(Class::Transient, message)
    }

    /// Creates an error after which no retry can succeed.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::of(Class::Permanent, message)
    }

    pub(crate) fn of(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            retry_after: None,
        }
    }
}

/// Converts an I/O error to a transient failure, since a disk or connection may work at the next attempt.
impl From<io::Error> for DeliveryError {
    fn from(error: io::Error) -> Self {
        Self::transient(error.to_string())
    }
}

/// A way to deliver messages, such as mail or a webhook.
///
/// The same message may come again after a crash, with the same [key](Message::key): whoever is at the other end tells
/// repetitions by it. A future that is dropped ends what it began.
pub trait Notifier: Send + Sync {
    /// Makes one attempt to deliver a message.
    fn deliver<'a>(
        &'a self,
        message: &'a Message,
        attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Receipt, DeliveryError>>;
}
