//! The service on a socket of its own: bounded in what a client may hold, and for the user who started it.

mod peer;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use axum::http::request::Parts;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;
use watershed_api::http::ProblemDocument;
use watershed_api::{Code, Problem};
use watershed_locks::Unpoisoned;

pub use self::peer::Peer;
use super::caller::Caller;

/// The bytes of a request's head: browsers send less than half of that.
const LONGEST_HEAD: usize = 32 << 10;
/// The time in which the head has to come: a slow client holds a socket and nothing else.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// The most connections, below the usual number of open files.
const MOST_CONNECTIONS: usize = 4_096;
/// The most connections from one address, but for this machine's own: all of those are one user's.
const MOST_FROM_ONE: usize = 256;
/// The time that requests have to end when the service stops.
const GRACE: Duration = Duration::from_secs(30);
/// The most connections that are told at once why they are not let in.
const MOST_TURNED_AWAY: usize = 64;
/// The time for which one of them is listened to.
const FAREWELL: Duration = Duration::from_secs(1);
/// The pause after a connection could not be accepted: too many files are open, most likely.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves routes for the user of this process until it is told to stop; then takes no more, and waits a while for requests that
/// are under way. Whoever else connects is turned away at once, and takes nobody's place.
pub async fn serve(listener: TcpListener, routes: Router, stop: CancellationToken) {
    let (tasks, open) = (TaskTracker::new(), Connections::default());
    let outside = Arc::new(Semaphore::new(MOST_TURNED_AWAY));
    loop {
        // Both arms are cancel-safe: a connection is returned at once or stays in the backlog.
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                let ours = stream.local_addr().ok();
                let peer = ours.map(|ours| Peer::find(address, ours)).filter(Peer::is_ours);
                let place = peer.and_then(|peer| Some((peer, open.take(address.ip())?)));
                match (peer, place) {
                    (_, Some((peer, place))) => {
                        tasks.spawn(connection(stream, peer, routes.clone(), stop.clone(), place));
                    }
                    (peer, None) => {
                        let problem = peer.map_or_else(not_ours, |_| too_many());
                        // Of a crowd most are hung up on.
                        if let Ok(place) = Arc::clone(&outside).try_acquire_owned() {
                            tokio::spawn(turn_away(stream, problem, place));
                        }
                    }
                }
            }
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

/// Returns the one who asks on a machine of several users: the user of this process, who may do everything.
///
/// # Errors
/// `not-allowed`, for every other user, and for a connection whose user nobody knows.
pub fn local_user(head: &Parts) -> Result<Caller, Problem> {
    let peer = head.extensions.get::<Peer>().copied();
    match peer.is_some_and(|peer| peer.is_ours()) {
        true => Ok(Caller::owner("local")),
        false => Err(not_ours()),
    }
}

fn not_ours() -> Problem {
    let message = "only the user who started this process may ask it";
    Problem::new(Code::NotAllowed, message).hint("ask from this machine, as that user")
}

fn too_many() -> Problem {
    Problem::new(Code::Busy, "too many connections are open already").hint("close some of them")
}

/// Answers a connection that is not let in, and listens for a moment more: closing at once what has more to say would take the
/// answer back.
async fn turn_away(mut stream: TcpStream, problem: Problem, _place: OwnedSemaphorePermit) {
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

/// Takes a socket of this machine alone.
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

async fn connection(stream: TcpStream, peer: Peer, routes: Router, stop: CancellationToken, _place: Place) {
    // Answers are small, and wait for nothing.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        routes.clone().oneshot(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
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

/// The connections that are open, by address.
#[derive(Clone, Default)]
struct Connections(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A connection that is open, for as long as this lives.
struct Place {
    connections: Connections,
    address: IpAddr,
}

impl Connections {
    /// Enters a connection; none if there are too many.
    fn take(&self, address: IpAddr) -> Option<Place> {
        let mut open = self.0.lock().unpoisoned();
        let all: usize = open.values().sum();
        let of_one = open.get(&address).copied().unwrap_or_default();
        let most_from_one = if address.is_loopback() {
            MOST_CONNECTIONS
        } else {
            MOST_FROM_ONE
        };
        if all >= MOST_CONNECTIONS || of_one >= most_from_one {
            return None;
        }
        open.insert(address, of_one + 1);
        Some(Place {
            connections: self.clone(),
            address,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.connections.0.lock().unpoisoned();
        if let Some(number) = open.get_mut(&self.address) {
            *number -= 1;
            if *number == 0 {
                open.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_bounded_by_address_and_in_all() {
        let open = Connections::default();
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let mut places: Vec<Place> = (0..MOST_FROM_ONE).filter_map(|_| open.take(address(1))).collect();
        assert_eq!(places.len(), MOST_FROM_ONE);
        assert!(open.take(address(1)).is_none());
        places.pop();
        assert!(open.take(address(1)).is_some());
        for last in 2..=16 {
            places.extend((0..MOST_FROM_ONE).filter_map(|_| open.take(address(last))));
        }
        assert!(places.len() < MOST_CONNECTIONS + 1 && open.take(address(200)).is_some());
        places.push(open.take(address(200)).unwrap());
        assert!(open.take(address(201)).is_none());
        drop(places);
        assert!(open.0.lock().unpoisoned().is_empty());
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
