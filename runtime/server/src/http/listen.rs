//! The listener of a service: addresses and files, TLS, limits on connections and, by default, for the user of the process.

mod peer;
mod socket;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;
use watershed_api::http::ProblemDocument;
use watershed_api::{Code, Problem, hint};
use watershed_locks::Unpoisoned;

pub use self::peer::Peer;
pub use self::socket::Listener;
use self::socket::Stream;
use super::answers::Refused;
use super::caller::Caller;
use super::held::Held;
use super::limits::{Counts, Limits, Passed};
use super::proxies::{Client, Proxies};
use super::tls::Tls;

/// The time that running requests have when the service stops.
const GRACE: Duration = Duration::from_secs(30);
/// The most refused connections that are answered at the same time; others are closed without an answer.
const MOST_TURNED_AWAY: usize = 64;
/// The time for which a refused connection is read, so that its client gets the answer.
const FAREWELL: Duration = Duration::from_secs(1);
/// The delay after a connection could not be accepted, most likely for too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// The users whose connections are accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Peers {
    /// Only the user of this process.
    #[default]
    OfUser,
    /// All users of this machine; the routes authenticate them.
    All,
}

/// The rules by which a listener accepts connections.
#[derive(Debug, Clone, Default)]
pub struct Door {
    /// The users whose connections are accepted.
    pub peers: Peers,
    /// Limits of the listener, whose rest is the [service's](super::Service::set_limits).
    pub limits: Limits,
    /// Counts of refused connections, shared with the [service's](super::Service::counts).
    pub counts: Counts,
    /// Certificate of the listener; none for plain HTTP.
    pub tls: Option<Tls>,
    /// Proxies whose reports about clients are believed.
    pub proxies: Arc<Proxies>,
}

/// Serves routes for the user of this process until stopped, then lets running requests finish within a time limit.
/// Connections of other users are refused at once and count against no limit.
pub async fn serve(listener: TcpListener, routes: Router, stop: CancellationToken) {
    Door::default().serve(listener, routes, stop).await;
}

impl Door {
    /// Serves routes until stopped, then lets running requests finish within a time limit.
    pub async fn serve(self, listener: impl Into<Listener>, routes: Router, stop: CancellationToken) {
        let listener = listener.into();
        let (tasks, open) = (TaskTracker::new(), Connections::new(self.limits));
        let outside = Arc::new(Semaphore::new(MOST_TURNED_AWAY));
        loop {
            // Both arms are cancel-safe: a connection is returned at once or stays in the backlog.
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok(stream) => match self.admit(&stream, &open) {
                    Ok((peer, place)) => {
                        let served =
                            self.clone()
                                .connection(stream, peer, routes.clone(), stop.clone(), place);
                        tasks.spawn(served);
                    }
                    // Of a crowd most are hung up on. Over TLS nobody would understand the answer.
                    Err(problem) if self.tls.is_none() => {
                        if let Ok(place) = Arc::clone(&outside).try_acquire_owned() {
                            tokio::spawn(async move {
                                turn_away(stream, problem).await;
                                drop(place);
                            });
                        }
                    }
                    Err(_) => {}
                },
                Err(error) => {
                    tracing::warn!(%error, "can't accept a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        drop(listener);
        tasks.close();
        let _ = tokio::time::timeout(GRACE, tasks.wait()).await;
    }

    /// Decides whether a new connection is accepted.
    fn admit(&self, stream: &Stream, open: &Connections) -> Result<(Peer, Place), Problem> {
        let peer = match self.peers {
            Peers::All => Peer {
                address: stream.address(),
                user: None,
            },
            Peers::OfUser => stream.peer().filter(Peer::is_ours).ok_or_else(not_ours)?,
        };
        // All clients of a proxy share its address.
        let one = peer.address.filter(|_| !self.proxies.has(peer.address));
        let place = open.take(one.map(|address| address.ip())).ok_or_else(|| {
            self.counts.add(Passed::Connections);
            too_many()
        })?;
        Ok((peer, place))
    }

    async fn connection(
        self,
        stream: Stream,
        peer: Peer,
        routes: Router,
        stop: CancellationToken,
        _place: Place,
    ) {
        let opened = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            opened = tokio::time::timeout(self.limits.head_within, self.opened(stream)) => opened,
        };
        let Ok(Some(stream)) = opened else {
            return;
        };
        let is_encrypted = stream.is_encrypted();
        let (held, proxies) = (Held::default(), self.proxies);
        let service = service_fn(move |mut request: Request<Incoming>| {
            let told = proxies.client(request.headers(), peer.address, is_encrypted);
            let (routes, held) = (routes.clone(), held.clone());
            async move {
                let client = match told {
                    Ok(client) => client,
                    Err(problem) => return Ok::<Response, _>(Refused::new(problem, "").into_response()),
                };
                // The name under which the client knows the service is the one to be checked, and to stand in links.
                if let Some(host) = client
                    .host
                    .as_ref()
                    .and_then(|host| HeaderValue::try_from(host).ok())
                {
                    request.headers_mut().insert(HOST, host);
                }
                request.extensions_mut().insert(client);
                request.extensions_mut().insert(peer);
                request.extensions_mut().insert(held);
                routes.oneshot(request).await
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head_within)
            .max_buf_size(self.limits.head_bytes)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            // A client that went away, or sent what is no request.
            tracing::debug!(%error, "a connection ended early");
        }
    }

    /// Encrypts a connection, if the listener has a certificate; none if the client does not.
    async fn opened(&self, stream: Stream) -> Option<Stream> {
        let Some(tls) = &self.tls else {
            return Some(stream);
        };
        match stream.encrypted(tls).await {
            Ok(stream) => Some(stream),
            Err(Ok(plain)) => {
                let problem = Problem::new(Code::BadArgument, "the service speaks HTTPS alone")
                    .hint("write `https://` in the place of `http://`");
                turn_away(plain, problem).await;
                None
            }
            Err(Err(error)) => {
                tracing::debug!(%error, "a connection was not encrypted");
                None
            }
        }
    }
}

/// Returns the user of this process as a caller with all roles; refuses other users of the machine.
///
/// # Errors
/// `not-allowed`, for every other user, and for a connection whose user nobody knows.
pub fn local_user(head: &Parts) -> Result<Caller, Problem> {
    let peer = head.extensions.get::<Peer>().copied();
    // A proxy of the user's own is the user, and whom it speaks for is not.
    let client = head.extensions.get::<Client>();
    let is_for_another = |peer: Peer| {
        let own = peer.address.map(|address| address.ip().to_canonical());
        client.is_some_and(|client| client.address != own)
    };
    match peer.is_some_and(|peer| peer.is_ours() && !is_for_another(peer)) {
        true => Ok(Caller::owner("local")),
        false => Err(not_ours()),
    }
}

fn not_ours() -> Problem {
    let message = "only the user who started this process may ask it";
    let link = hint::option("auth", "link");
    Problem::new(Code::NotAllowed, message).hint(format!(
        "ask as that user, or start the service with {link}, which lets in whoever opens the link"
    ))
}

fn too_many() -> Problem {
    Problem::new(Code::Busy, "too many connections are open already").hint("close some of them")
}

/// Answers a refused connection, and reads on for a moment: closing a socket with unread data would discard the answer.
async fn turn_away(mut stream: Stream, problem: Problem) {
    let document = ProblemDocument::new(problem, "");
    let body = serde_json::to_string(&document).unwrap_or_default();
    let answer = format!(
        "HTTP/1.1 {} {}\r\ncontent-type: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        document.status,
        document.title,
        ProblemDocument::MEDIA_TYPE,
        body.len()
    );
    let saying = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        let mut rest = [0; 4096];
        while stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(FAREWELL, saying).await;
}

/// Binds a socket on a loopback address.
///
/// # Errors
/// When the address is not of this machine alone, or the socket is taken.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    if !address.ip().is_loopback() {
        let message =
            format!("`{address}` can be reached from other machines, and nobody would be asked who they are");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    TcpListener::bind(address).await
}

/// Counts of open connections, by address.
#[derive(Clone)]
pub(crate) struct Connections {
    open: Arc<Mutex<Open>>,
    limits: Limits,
}

#[derive(Default)]
struct Open {
    all: usize,
    from: HashMap<IpAddr, usize>,
}

/// An open connection's place in the counts, released when dropped.
pub(crate) struct Place {
    connections: Connections,
    /// Address under which the connection is counted; none for one of a proxy.
    address: Option<IpAddr>,
}

impl Connections {
    /// Returns the counts of a listener without connections.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            open: Arc::default(),
            limits,
        }
    }

    /// Counts a new connection; none if there are too many.
    pub(crate) fn take(&self, address: Option<IpAddr>) -> Option<Place> {
        let mut open = self.open.lock().unpoisoned();
        let address = address.filter(|address| !address.to_canonical().is_loopback());
        let of_one = address.and_then(|address| open.from.get(&address).copied());
        let of_one = of_one.unwrap_or_default();
        if open.all >= self.limits.connections || of_one >= self.limits.connections_from_one {
            return None;
        }
        open.all += 1;
        if let Some(address) = address {
            open.from.insert(address, of_one + 1);
        }
        Some(Place {
            connections: self.clone(),
            address,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock().unpoisoned();
        open.all -= 1;
        let Some(address) = self.address else {
            return;
        };
        if let Some(number) = open.from.get_mut(&address) {
            *number -= 1;
            if *number == 0 {
                open.from.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_bounded_by_address_and_in_all() {
        let limits = Limits::default();
        let open = Connections::new(limits);
        let address = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        let mut places: Vec<Place> = (0..limits.connections_from_one)
            .filter_map(|_| open.take(address(1)))
            .collect();
        assert_eq!(places.len(), limits.connections_from_one);
        assert!(open.take(address(1)).is_none());
        places.pop();
        assert!(open.take(address(1)).is_some());
        for last in 2..=16 {
            places.extend((0..limits.connections_from_one).filter_map(|_| open.take(address(last))));
        }
        assert!(places.len() < limits.connections + 1 && open.take(address(200)).is_some());
        places.push(open.take(address(200)).unwrap());
        assert!(open.take(address(201)).is_none());
        drop(places);
        let open = open.open.lock().unpoisoned();
        assert!(open.all == 0 && open.from.is_empty());
    }

    #[tokio::test]
    async fn addresses_that_others_reach_are_refused() {
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let refused = bind(address.parse().unwrap()).await.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{address}");
        }
        assert!(bind("127.0.0.1:0".parse().unwrap()).await.is_ok());
    }
}
