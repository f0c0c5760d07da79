//! Serving projects over HTTP: address, host names and authentication.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use watershed::http::{
    Door, Listener, Peers, Proxies, Service, Tls, bind, local_user, router, router_by_link,
};
use watershed::sql;
use watershed_api::Exit;
use watershed_api::http::encoded;
use watershed_compilers::configuration::{is_host, plain_base};

use super::args::{Auth, Reached};
use super::console::Console;
use super::failure::Failure;
use watershed::program::Stop;

/// Default address of a service. The port is fixed, so that bookmarks last.
pub(super) const ADDRESS: &str = "127.0.0.1:7437";

/// The place at which a service listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum At {
    /// An address of this machine alone.
    Loopback(SocketAddr),
    /// Any address: the configuration says who gets in.
    Anywhere(SocketAddr),
    /// A Unix socket.
    File(PathBuf),
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback(address) | Self::Anywhere(address) => address.fmt(f),
            Self::File(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The network of a service: where it listens, its certificate and the proxies before it.
#[derive(Debug, Clone)]
pub(super) struct Network {
    pub(super) at: At,
    pub(super) tls: Option<Tls>,
    pub(super) proxies: Arc<Proxies>,
    /// Address at which SQL clients connect; none if they are not let in.
    pub(super) sql: Option<SocketAddr>,
}

impl Network {
    /// Returns the network of a service on loopback.
    pub(super) fn loopback(address: SocketAddr) -> Self {
        Self {
            at: At::Loopback(address),
            tls: None,
            proxies: Arc::default(),
            sql: None,
        }
    }
}

/// The network, path prefix, host names and authentication of a service.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) network: Network,
    pub(super) base: String,
    pub(super) hosts: Vec<String>,
    pub(super) auth: Auth,
    /// Authentication by the configuration; none if one person is let in, as `auth` says.
    pub(super) gate: Option<Gate>,
}

/// Routes of a service behind the authentication of its configuration.
#[derive(Clone)]
pub(super) struct Gate(pub(super) Arc<dyn Fn(Service) -> Router + Send + Sync>);

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

impl Place {
    /// Validates the options for a service's address; options override the given defaults.
    ///
    /// # Errors
    /// A path or name that can't be one.
    pub(super) fn new(
        network: Network,
        base: &str,
        hosts: &[String],
        options: &Reached,
    ) -> Result<Self, Failure> {
        let base = options.base.as_deref().unwrap_or(base);
        let Some(base) = plain_base(base) else {
            let message = format!("`{base}` is no path to stand below");
            let hint = "write a slash and plain names, as in `--base /data`";
            return Err(Failure::usage(message).hint(hint));
        };
        if let Some(host) = options.hosts.iter().find(|host| !is_host(host)) {
            let message = format!("`{host}` is no name of a host");
            let hint = "write a name alone, as in `--host data.example.org`";
            return Err(Failure::usage(message).hint(hint));
        }
        Ok(Self {
            network,
            base: base.to_owned(),
            hosts: hosts.iter().chain(&options.hosts).cloned().collect(),
            auth: options.auth.unwrap_or_default(),
            gate: None,
        })
    }

    /// Creates a service without instances, with this path prefix and these host names.
    pub(super) fn service(&self) -> Service {
        Service::new().below(&self.base).known_as(self.hosts.clone())
    }

    /// Binds the address of SQL clients; none if they are not let in. Whether others may reach it was checked with the rest of the
    /// configuration, which says who gets in.
    async fn bind_sql(&self) -> Result<Option<(TcpListener, SocketAddr)>, Failure> {
        let Some(address) = self.network.sql else {
            return Ok(None);
        };
        let bound = TcpListener::bind(address).await;
        let bound = bound.and_then(|listener| Ok((listener.local_addr()?, listener)));
        match bound {
            Ok((address, listener)) => Ok(Some((listener, address))),
            Err(error) => Err(refused(&At::Anywhere(address), &error)),
        }
    }

    async fn bind(&self) -> io::Result<Bound> {
        let (listener, port) = match &self.network.at {
            At::Loopback(address) => with_port(bind(*address).await?)?,
            At::Anywhere(address) => with_port(TcpListener::bind(address).await?)?,
            At::File(path) => (Listener::at_file(path).await?, None),
        };
        let scheme = match self.network.tls {
            Some(_) => "https",
            None => "http",
        };
        let here = match port {
            Some(bound) => format!("{scheme}://{bound}"),
            None => self.network.at.to_string(),
        };
        let is_behind_proxy = port.is_none() || *self.network.proxies != Proxies::default();
        let for_people = match (self.hosts.first(), &self.network.at, port) {
            // The port is the proxy's.
            (Some(host), ..) if is_behind_proxy => format!("https://{host}"),
            (Some(host), At::Anywhere(_), Some(bound)) if !host.contains(':') => {
                format!("{scheme}://{host}:{}", bound.port())
            }
            (Some(host), At::Anywhere(_), _) => format!("{scheme}://{host}"),
            _ => here.clone(),
        };
        Ok(Bound {
            listener,
            name: port.map_or("socket".to_owned(), |bound| bound.port().to_string()),
            here,
            for_people,
        })
    }
}

/// A bound socket with its addresses, which end before the path prefix.
struct Bound {
    listener: Listener,
    /// Name that is unique among the services of this machine.
    name: String,
    /// Address at which the socket is bound.
    here: String,
    /// Address by which people reach the service, through a proxy if there is one.
    for_people: String,
}

fn with_port(listener: TcpListener) -> io::Result<(Listener, Option<SocketAddr>)> {
    let bound = listener.local_addr()?;
    Ok((listener.into(), Some(bound)))
}

/// A service that is listening, until ended.
pub(super) struct Listening {
    /// URL of the service with its path prefix, without a slash at the end.
    address: String,
    /// True if the address is one that others know, and not that of the socket.
    is_known: bool,
    service: Service,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    /// The listener of SQL clients; none if they are not let in.
    serving_sql: Option<JoinHandle<()>>,
}

impl Listening {
    /// Binds the address and starts to serve.
    ///
    /// # Errors
    /// When the address is taken, or can be reached from other machines.
    pub(super) async fn begin(
        console: &mut Console,
        place: &Place,
        service: Service,
        ending: &Stop,
    ) -> Result<Self, Failure> {
        let at = &place.network.at;
        let bound = place.bind().await.map_err(|error| refused(at, &error))?;
        let sql = place.bind_sql().await?;
        let base = place.base.as_str();
        let stop = CancellationToken::new();
        // Streams say good-bye before anything is stopped that they tell of.
        tokio::spawn({
            let (service, stop, ending) = (service.clone(), stop.clone(), ending.clone());
            async move {
                tokio::select! {
                    () = ending.asked() => {}
                    () = stop.cancelled() => {}
                }
                service.stop();
                stop.cancel();
            }
        });
        let address = format!("{}{base}", bound.for_people);
        console.note(&format!("answers at {}{base}\n", bound.here));
        let serving_sql = match sql {
            Some((listener, address)) => {
                console.note(&format!("answers SQL at {address}\n"));
                let door = sql::Door {
                    tls: place.network.tls.clone(),
                    proxies: Arc::clone(&place.network.proxies),
                };
                Some(tokio::spawn(door.serve(listener, service.clone(), stop.clone())))
            }
            None => None,
        };
        let (routes, peers) = match (&place.gate, place.auth) {
            (Some(Gate(routes)), _) => (routes(service.clone()), Peers::All),
            (None, Auth::User) => (router(service.clone(), local_user), Peers::OfUser),
            (None, Auth::Link) => {
                let linked = router_by_link(service.clone(), &bound.name);
                // Without this line nobody gets in.
                let link = format!("{}{}", bound.for_people, linked.path);
                console.say(&format!("open this link, once: {link}\n"));
                (linked.routes, Peers::All)
            }
        };
        let routes = match base {
            "" => routes,
            // With and without a slash at its end.
            base => Router::new().nest_service(base, routes),
        };
        let door = Door {
            peers,
            tls: place.network.tls.clone(),
            proxies: Arc::clone(&place.network.proxies),
            limits: service.limits(),
            counts: service.counts(),
        };
        let serving = tokio::spawn(door.serve(bound.listener, routes, stop.clone()));
        Ok(Self {
            address,
            is_known: bound.for_people != bound.here,
            service,
            stop,
            serving,
            serving_sql,
        })
    }

    /// Returns a function from an instance's name to the URL of its console page.
    pub(super) fn pages(&self) -> impl Fn(&str) -> String + Clone + Send + Sync + use<> {
        let address = self.address.clone();
        move |instance| format!("{address}/ui/{}", encoded(instance))
    }

    /// Returns the URL by which others than this machine's users reach the service; none if the configuration names no host.
    pub(super) fn known_address(&self) -> Option<String> {
        self.is_known.then(|| self.address.clone())
    }

    /// Ends streams, accepts no more requests, and waits for running ones.
    pub(super) async fn end(self) {
        self.service.stop();
        self.stop.cancel();
        let _ = self.serving.await;
        if let Some(serving) = self.serving_sql {
            let _ = serving.await;
        }
    }
}

fn refused(at: &At, error: &io::Error) -> Failure {
    let (exit, hint) = match error.kind() {
        io::ErrorKind::AddrInUse => (
            Exit::NotNow,
            "another process listens there: end it, or choose another address, such as `127.0.0.1:PORT`",
        ),
        io::ErrorKind::InvalidInput => (
            Exit::Usage,
            "listen on 127.0.0.1, and put a proxy that signs people in before it",
        ),
        _ => (Exit::NotNow, "choose another address, such as `127.0.0.1:PORT`"),
    };
    Failure {
        exit,
        error: anyhow::anyhow!("can't listen on {at}: {error}"),
        hint: Some(hint.into()),
    }
}
