//! The trait of what hands messages over, and the notifiers there are.
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
pub use watershed_outside::http::{Client, ClientError};
pub use webhook::Webhook;

/// A future of a notifier.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One attempt to hand a message over.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// The number, from 1.
    pub number: u32,
    /// The epoch of the controller: a later holder of the lease has a higher one.
    pub epoch: u64,
    /// The receiver, where the notifier has several: an address, a channel, a user; else empty.
    pub to: &'a str,
}

/// The end of an attempt that succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Receipt {
    /// The receiver's answer in a line, without secrets: a status, an id.
    pub said: String,
}

/// A failed attempt. Its message holds no secret and no whole address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DeliveryError {
    /// True if another attempt may succeed.
    pub class: Class,
    /// The failure, for people.
    pub message: String,
    /// The wait that the receiver asked for.
    pub retry_after: Option<Duration>,
}

impl DeliveryError {
    /// Returns a failure after which another attempt may succeed.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::of(Class::Transient, message)
    }

    /// Returns a failure that no other attempt changes.
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

/// A failure of input or output is transient: what a disk or a connection refuses now may go well the next time.
impl From<io::Error> for DeliveryError {
    fn from(error: io::Error) -> Self {
        Self::transient(error.to_string())
    }
}

/// Hands messages over.
///
/// The same message may come again after a crash, with the same [key](Message::key): whoever is at the other end tells
/// repetitions by it. A future that is dropped ends what it began.
pub trait Notifier: Send + Sync {
    /// Makes one attempt.
    fn deliver<'a>(
        &'a self,
        message: &'a Message,
        attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Receipt, DeliveryError>>;
}
