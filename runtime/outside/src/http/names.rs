//! Names of hosts, looked up once for each connection.

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve};

use super::Addresses;

/// A look-up under way.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks up the addresses of hosts.
pub trait Names: Debug + Send + Sync {
    /// Begins to look up a name.
    fn look_up(&self, host: &str) -> Resolving;
}

/// The names that the system knows.
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

/// Looks up names and hands on the addresses that may be connected to.
#[derive(Debug)]
pub(super) struct Guarded {
    pub(super) names: Arc<dyn Names>,
    pub(super) addresses: Addresses,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> reqwest::dns::Resolving {
        let (found, addresses) = (self.names.look_up(name.as_str()), self.addresses.clone());
        Box::pin(async move {
            let (mut allowed, mut refused) = (Vec::new(), None);
            for address in found.await? {
                match addresses.check(address) {
                    // The port is that of the URL.
                    Ok(()) => allowed.push(SocketAddr::new(address, 0)),
                    Err(why) => refused = Some(why),
                }
            }
            match refused {
                Some(why) if allowed.is_empty() => Err(why.into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}
