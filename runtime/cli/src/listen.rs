//! Serving projects over HTTP: address, host names and authentication.

use std::net::SocketAddr;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use watershed::http::{Bearers, Door, Peers, Service, bind, local_user, router, router_by_link, router_with};
use watershed_api::Exit;
use watershed_api::http::encoded;
use watershed_compilers::configuration::{is_host, plain_base};

use super::args::{Auth, Reached};
use super::console::Console;
use super::failure::Failure;
use watershed::program::Stop;

/// Default address of a service. The port is fixed, so that bookmarks last.
pub(super) const ADDRESS: &str = "127.0.0.1:7437";

/// The address, path prefix, host names and authentication of a service.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) address: SocketAddr,
    pub(super) base: String,
    pub(super) hosts: Vec<String>,
    pub(super) auth: Auth,
    /// Authentication by the configuration; none if one person is let in, as `auth` says.
    pub(super) gate: Option<Gate>,
}

/// Authentication of callers by the configuration of a service.
#[derive(Clone)]
pub(super) struct Gate(pub(super) Bearers);

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

impl Place {
    /// Validates the options for a service's address; options override the given defaults.
    ///
    /// # Errors
    /// A path or name that can't be one.
    pub(super) fn new(
        address: SocketAddr,
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
            address,
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
}

/// A service that is listening, until ended.
pub(super) struct Listening {
    /// URL of the service with its path prefix, without a slash at the end.
    address: String,
    service: Service,
    stop: CancellationToken,
    serving: JoinHandle<()>,
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
        let address = place.address;
        let listener = bind(address).await.map_err(|error| refused(address, &error))?;
        let bound = listener.local_addr().unwrap_or(address);
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
        let address = format!("http://{bound}{base}");
        console.note(&format!("answers at {address}\n"));
        let (routes, peers) = match (&place.gate, place.auth) {
            (Some(Gate(tokens)), _) => (router_with(service.clone(), tokens.clone()), Peers::All),
            (None, Auth::User) => (router(service.clone(), local_user), Peers::OfUser),
            (None, Auth::Link) => {
                let linked = router_by_link(service.clone(), &bound.port().to_string());
                // Without this line nobody gets in.
                console.say(&format!("open this link, once: http://{bound}{}\n", linked.path));
                (linked.routes, Peers::All)
            }
        };
        let routes = match base {
            "" => routes,
            // With and without a slash at its end.
            base => axum::Router::new().nest_service(base, routes),
        };
        let door = Door {
            peers,
            ..Door::default()
        };
        let serving = tokio::spawn(door.serve(listener, routes, stop.clone()));
        Ok(Self {
            address,
            service,
            stop,
            serving,
        })
    }

    /// Returns a function from an instance's name to the URL of its console page.
    pub(super) fn pages(&self) -> impl Fn(&str) -> String + Clone + Send + Sync + use<> {
        let address = self.address.clone();
        move |instance| format!("{address}/ui/{}", encoded(instance))
    }

    /// Ends streams, accepts no more requests, and waits for running ones.
    pub(super) async fn end(self) {
        self.service.stop();
        self.stop.cancel();
        let _ = self.serving.await;
    }
}

fn refused(address: SocketAddr, error: &std::io::Error) -> Failure {
    let (exit, hint) = match error.kind() {
        std::io::ErrorKind::AddrInUse => (
            Exit::NotNow,
            "another process listens there: end it, or choose another address, such as `127.0.0.1:PORT`",
        ),
        std::io::ErrorKind::InvalidInput => (
            Exit::Usage,
            "listen on 127.0.0.1, and put a proxy that signs people in before it",
        ),
        _ => (Exit::NotNow, "choose another address, such as `127.0.0.1:PORT`"),
    };
    Failure {
        exit,
        error: anyhow::anyhow!("can't listen on {address}: {error}"),
        hint: Some(hint.into()),
    }
}
