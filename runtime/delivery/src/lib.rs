//! Delivery of messages to people and programs outside: stored before sending, retried, in order, and deduplicated by
//! key.
//!
//! A message to one receiver is a resource of the hidden kind [`notification`]. Whoever has something to say creates it
//! under the message's [key](message::Key), so that saying it again creates nothing. What the network does to it is
//! decided by [`policy`]: pure functions with no clock, no randomness and no IO of their own.
//!
//! | start at | for |
//! |---|---|
//! | [`Notification`] | one message to one receiver, as it is stored |
//! | [`notification::Notifications`] | the kind, registered with a controller |
//! | [`notify::Notifier`] | what hands a message over: a trait, open to notifiers of one's own |
//! | [`notify`] | those there are: file, command, webhook, Slack, SMTP |
//! | [`policy`] | another attempt or none, whose turn it is, and for how long a message is kept |

#![allow(
    clippy::result_large_err,
    reason = "an error of a run is made once and stored on its resource"
)]

pub mod crash;
pub mod message;
pub mod notification;
pub mod notify;
mod picture;
pub mod policy;

#[cfg(test)]
mod tests;

pub use crash::CRASH_POINTS;
pub use message::{Attachment, Fact, Key, Message, Sender, Series, Table};
pub use notification::record::{Record, Standing};
pub use notification::{Connect, KIND, Notification, Notifications, Receiver};
pub use notify::{Attempt, BoxFuture, DeliveryError, Notifier, Receipt};
