//! The local socket on which the owner of a state folder answers other commands.
//!
//! A connection carries one request. Both sides say hello first, so that two versions never talk past each other;
//! then the client sends its request and the owner streams replies. Every message is one line of JSON of bounded
//! length.

mod address;
mod client;
mod listener;
mod wire;

pub use address::Address;
pub use client::{ConnectError, Connection};
pub use listener::Listener;

use tokio::sync::mpsc;
use watershed_api::{Owner, Reply, Request};

/// Most replies that wait for a slow reader; beyond that the service waits.
const REPLIES_IN_FLIGHT: usize = 256;

/// The sender of a service's replies.
pub type Replies = mpsc::Sender<Reply>;

/// Returns a bounded channel of replies.
pub fn replies() -> (Replies, mpsc::Receiver<Reply>) {
    mpsc::channel(REPLIES_IN_FLIGHT)
}

/// A service that answers requests, in this process or at the other end of a socket.
pub trait Service: Send + Sync + 'static {
    /// Answers one request. The last reply is `Done` or `Refused`.
    ///
    /// A closed channel means that nobody listens any more, which ends reads and leaves builds alone.
    fn serve(&self, request: Request, replies: Replies) -> impl Future<Output = ()> + Send;

    /// Carries out the call of a tool, in the name of a user of this machine.
    ///
    /// # Errors
    /// `unattended` from a service without tools; and when nobody carried the call out.
    fn tool(
        &self,
        user: watershed_api::http::calls::LocalUser,
        called: watershed_api::http::calls::Called,
    ) -> impl Future<Output = Result<watershed_api::http::calls::Answered, watershed_api::Problem>> + Send
    {
        drop((user, called));
        let message = "the process that owns the folder has no tools for assistants";
        std::future::ready(Err(watershed_api::Problem::new(
            watershed_api::Code::Unattended,
            message,
        )))
    }

    /// Returns the owner that answers; none if the service has no state folder.
    fn owner(&self) -> Option<Owner> {
        None
    }
}

#[cfg(test)]
mod tests;
