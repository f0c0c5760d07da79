//! Look-ups of host names, once for each connection.

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve};

use super::addresses::Addresses;

/// A future of the addresses of a host.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// A resolver of host names.
pub trait Names: Debug + Send + Sync {
    /// Starts the look-up of a host name.
    fn look_up(&self, host: &str) -> Resolving;
}

/// The resolver of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNames;

impl Names for SystemNames {
    fn look_up(&self, host: &str) -> Resolving {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A resolver that removes addresses to which connections are not allowed.
#[derive(Debug)]
pub(super) struct Guarded {
    pub(super) names: Arc<dyn Names>,
    pub(super) addresses: Addresses,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> reqwest::dns::Resolving {
        let (found, addresses) = (self.names.look_up(name.as_str()), self.addresses.clone());
        Box::pin(async move {
            let allowed = addresses.allowed(found.await?)?;
            // The port is that of the URL.
            let allowed = allowed.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(allowed) as Addrs)
        })
    }
}
