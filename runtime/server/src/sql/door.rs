//! The listener of SQL clients.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use watershed_pgwire::{Bounds, Link, Server};

use super::users::Users;
use crate::http::{Connections, Proxies, Service, Tls};

/// The protocol that clients name who begin with TLS.
const PROTOCOL: &[u8] = b"postgresql";
/// First byte of a TLS connection: a record of the handshake. Messages of the protocol begin with a length that is below.
const HANDSHAKE: u8 = 0x16;
/// The time that sessions have to say good-bye when the service stops.
const GRACE: Duration = Duration::from_secs(5);
/// The delay after a connection could not be accepted, most likely for too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// The rules by which a listener of SQL clients accepts connections.
#[derive(Debug, Clone, Default)]
pub struct Door {
    /// Certificate of the listener. With one, nobody signs in without encryption; without one, this machine and the proxies
    /// alone connect.
    pub tls: Option<Tls>,
    /// Proxies that encrypt for their clients.
    pub proxies: Arc<Proxies>,
}

impl Door {
    /// Answers SQL clients until stopped.
    pub async fn serve(self, listener: TcpListener, service: Service, stop: CancellationToken) {
        let (tasks, open) = (TaskTracker::new(), Connections::new(service.limits()));
        let server = Arc::new(Server::new(
            Arc::new(Users::of(service.clone())),
            Bounds::default(),
        ));
        loop {
            // Both arms are cancel-safe: a connection is returned at once or stays in the backlog.
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    // All clients of a proxy share its address.
                    let one = Some(peer.ip()).filter(|_| !self.proxies.has(Some(peer)));
                    let Some(place) = open.take(one) else {
                        service.count_refused_connection();
                        continue;
                    };
                    let (door, server, stop) = (self.clone(), Arc::clone(&server), stop.clone());
                    tasks.spawn(async move {
                        if let Err(error) = door.connection(stream, peer, &server, stop).await {
                            tracing::debug!(%error, "an SQL connection was not opened");
                        }
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "can't accept an SQL connection");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        drop(listener);
        tasks.close();
        let _ = tokio::time::timeout(GRACE, tasks.wait()).await;
    }

    async fn connection(
        self,
        stream: TcpStream,
        peer: SocketAddr,
        server: &Server,
        stop: CancellationToken,
    ) -> io::Result<()> {
        // Rows are sent in whole buffers, and answers wait for nothing.
        let _ = stream.set_nodelay(true);
        let address = Some(peer.ip().to_canonical());
        let acceptor = self.tls.as_ref().map(|tls| tls.acceptor_of(PROTOCOL));
        let Some(acceptor) = acceptor else {
            let is_near = peer.ip().to_canonical().is_loopback() || self.proxies.has(Some(peer));
            let link = Link {
                address,
                tls: None,
                must_encrypt: !is_near,
            };
            server.session(stream, link, stop).await;
            return Ok(());
        };
        let opening = async {
            let mut first = [0];
            let is_direct = stream.peek(&mut first).await? == 1 && first == [HANDSHAKE];
            Ok(match is_direct {
                true => Err(acceptor.clone().accept(stream).await?),
                false => Ok(stream),
            })
        };
        let opened: io::Result<Result<_, _>> = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            opened = tokio::time::timeout(Bounds::default().opening, opening) => opened?,
        };
        match opened? {
            Ok(plain) => {
                let link = Link {
                    address,
                    tls: Some(acceptor),
                    must_encrypt: true,
                };
                server.session(plain, link, stop).await;
            }
            Err(encrypted) => {
                // Whoever names no protocol may have been led here on the way to another server of this name.
                if encrypted.get_ref().1.alpn_protocol() != Some(PROTOCOL) {
                    return Err(io::Error::other("the client did not name the protocol"));
                }
                let link = Link {
                    address,
                    tls: None,
                    must_encrypt: false,
                };
                server.session(encrypted, link, stop).await;
            }
        }
        Ok(())
    }
}
