//! Connection to a container engine, with bounds on concurrent requests.

use std::future::Future;
use std::time::Duration;

use bollard::errors::Error as Bollard;
use bollard::{API_DEFAULT_VERSION, Docker};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::NAME;
use super::address::Address;
use crate::backend::Error;

/// The most requests that wait for the beginning of their answer at once.
const CALLS_AT_ONCE: usize = 8;
/// The most images that are pulled at once, equal to the engine's own default.
const PULLS_AT_ONCE: usize = 3;
/// Time limit for the beginning of an answer. With some storage drivers, creating a container copies its image.
const PATIENCE: Duration = Duration::from_secs(120);

/// The error of a request to the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failed {
    /// The engine did not answer. The request may have been carried out.
    Unreachable(String),
    /// The engine answered with an error.
    Answered {
        /// HTTP status; 500 for an error in the middle of an answer.
        status: u16,
        /// The engine's message.
        message: String,
    },
}

impl Failed {
    /// Returns true if the container, image or network does not exist.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Answered { status: 404, .. })
    }

    /// Returns true if the state of the container does not permit the request.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Answered { status: 409, .. })
    }

    /// Returns true if another request is doing the same already.
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self, Self::Answered { status: 409, message } if message.contains("already in progress"))
    }

    /// Returns true if the engine does not have the image.
    pub(super) fn is_missing_image(&self) -> bool {
        matches!(self, Self::Answered { status: 404, message } if message.to_lowercase().contains("no such image"))
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Unreachable(message) => Self::Unreachable {
                backend: NAME,
                message,
            },
            // An engine that stumbles may not the next time.
            Failed::Answered {
                status: 500..,
                message,
            } => Self::Unreachable {
                backend: NAME,
                message,
            },
            Failed::Answered { message, .. } => Self::Refused {
                backend: NAME,
                message,
            },
        }
    }
}

/// The connection to a container engine.
#[derive(Debug)]
pub(super) struct Engine {
    address: Address,
    /// Client with a negotiated API version; none before the first request and after a request without an answer.
    client: Mutex<Option<Docker>>,
    calls: Semaphore,
    pulls: Semaphore,
}

impl Engine {
    pub(super) fn new(address: Address) -> Self {
        Self {
            address,
            client: Mutex::new(None),
            calls: Semaphore::new(CALLS_AT_ONCE),
            pulls: Semaphore::new(PULLS_AT_ONCE),
        }
    }

    /// Returns true if the engine's socket exists.
    pub(super) fn is_there(&self) -> bool {
        self.address.socket().is_ok_and(std::path::Path::exists)
    }

    /// Returns a client with an API version that the engine supports.
    pub(super) async fn client(&self) -> Result<Docker, Failed> {
        let mut client = self.client.lock().await;
        if let Some(known) = client.as_ref() {
            return Ok(known.clone());
        }
        let socket = self.address.socket().map_err(Failed::Unreachable)?;
        let path = socket.to_string_lossy();
        let found = Docker::connect_with_unix(&path, PATIENCE.as_secs(), API_DEFAULT_VERSION);
        let found = found.map_err(|error| self.failed(error))?;
        let agreed = timeout(PATIENCE, found.negotiate_version()).await;
        let agreed = agreed.map_err(|_| self.failed(Bollard::RequestTimeoutError))?;
        let agreed = agreed.map_err(|error| self.failed(error))?;
        *client = Some(agreed.clone());
        Ok(agreed)
    }

    /// Sends a request once fewer than the permitted number are waiting.
    pub(super) async fn call<T>(
        &self,
        request: impl Future<Output = Result<T, Bollard>>,
    ) -> Result<T, Failed> {
        // The semaphore is never closed.
        let permit = self.calls.acquire().await.ok();
        let answer = timeout(PATIENCE, request).await;
        drop(permit);
        let answer = answer.unwrap_or(Err(Bollard::RequestTimeoutError));
        match answer.map_err(|error| self.failed(error)) {
            Err(failed @ Failed::Unreachable(_)) => {
                // Another engine may answer next, of another version.
                *self.client.lock().await = None;
                Err(failed)
            }
            answered => answered,
        }
    }

    /// Waits for a free slot among the concurrent pulls.
    pub(super) async fn room_for_pull(&self) -> Option<SemaphorePermit<'_>> {
        self.pulls.acquire().await.ok()
    }

    /// Converts an error of the client library.
    pub(super) fn failed(&self, error: Bollard) -> Failed {
        let cause = match error {
            Bollard::DockerResponseServerError { status_code, message } => {
                return Failed::Answered {
                    status: status_code,
                    message,
                };
            }
            Bollard::DockerStreamError { error } => {
                return Failed::Answered {
                    status: 500,
                    message: error,
                };
            }
            Bollard::RequestTimeoutError => format!("no answer within {} s", PATIENCE.as_secs()),
            Bollard::SocketNotFoundError(_) => "there is no such file".to_owned(),
            other => innermost(&other),
        };
        let socket = self.address.socket().unwrap_or_else(|_| std::path::Path::new(""));
        Failed::Unreachable(format!(
            "no container engine answers at `{}` ({cause}); start Docker, or set `DOCKER_HOST` to the socket of an engine that this \
             user may use",
            socket.display()
        ))
    }
}

/// Returns the message of the innermost cause, which is the system's; outer ones only say that a request failed.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_engine_that_is_not_there_is_named_with_what_to_do() {
        let engine = Engine::new(Address::from_host(Some("unix:///nowhere/docker.sock")));
        assert!(!engine.is_there());
        let Err(Failed::Unreachable(message)) = engine.client().await else {
            panic!("nothing answers")
        };
        assert!(message.contains("/nowhere/docker.sock"), "{message}");
        assert!(message.contains("DOCKER_HOST"), "{message}");
        let engine = Engine::new(Address::from_host(Some("tcp://10.0.0.1:2375")));
        let Err(Failed::Unreachable(message)) = engine.client().await else {
            panic!("it is not supported")
        };
        assert!(message.contains("tcp://10.0.0.1:2375"), "{message}");
    }

    #[test]
    fn an_engine_that_stumbles_may_not_the_next_time() {
        let answered = |status| Failed::Answered {
            status,
            message: String::new(),
        };
        assert!(Error::from(answered(503)).is_transient());
        assert!(!Error::from(answered(400)).is_transient());
        assert!(Error::from(Failed::Unreachable(String::new())).is_transient());
    }
}
