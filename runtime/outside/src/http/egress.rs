//! The policy of outgoing connections.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;
use reqwest::Url;

use super::addresses::Addresses;
use super::{Names, Refused};

/// The destinations that may be connected to. Cheap to clone.
///
/// By default all of them. A restricted policy allows encrypted connections to the public internet, and any connection to
/// the destinations that the operator lists; it follows no redirect and uses no proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Egress(Option<Arc<Listed>>);

/// A destination that the operator lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// All addresses of a network, at any port.
    Network(IpNet),
    /// A host by its name, at one port, whatever address it has.
    Host {
        /// The name of the host.
        name: String,
        /// The port.
        port: u16,
    },
}

#[derive(Debug, PartialEq, Eq)]
struct Listed {
    networks: Vec<IpNet>,
    hosts: Vec<(String, u16)>,
}

/// The reason why a host has no address to connect to.
#[derive(Debug, thiserror::Error)]
pub enum Unreached {
    /// The name can't be looked up.
    #[error("the host has no address: {0}")]
    Unknown(#[from] io::Error),
    /// None of its addresses may be connected to.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl Egress {
    /// Creates a policy of the public internet and the destinations of a list.
    #[must_use]
    pub fn public_and(listed: impl IntoIterator<Item = Destination>) -> Self {
        let (mut networks, mut hosts) = (Vec::new(), Vec::new());
        for destination in listed {
            match destination {
                Destination::Network(network) => networks.push(network),
                Destination::Host { name, port } => hosts.push((plain(&name), port)),
            }
        }
        Self(Some(Arc::new(Listed { networks, hosts })))
    }

    /// Returns true unless all destinations are allowed.
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the addresses that a connection to a host and port may go to.
    pub(super) fn addresses(&self, host: &str, port: u16, is_encrypted: bool) -> Addresses {
        let Some(listed) = &self.0 else {
            return Addresses::Any;
        };
        let host = plain(host);
        if listed.hosts.iter().any(|(name, of)| *name == host && *of == port) {
            return Addresses::Any;
        }
        match is_encrypted {
            true => Addresses::PublicAnd(listed.networks.clone()),
            false => Addresses::Only(listed.networks.clone()),
        }
    }

    /// Returns the addresses that a request to a URL may go to.
    ///
    /// # Errors
    /// When the URL has an address in the place of a host name, and that is not allowed; or when it has neither.
    pub(super) fn addresses_of(&self, url: &Url) -> Result<Addresses, Refused> {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        let addresses = self.addresses(host, port, url.scheme() == "https");
        match (literal(host), &addresses) {
            (Some(address), _) => addresses.check(address)?,
            // Nobody is asked for the address of a name that no address could make right.
            (None, Addresses::Only(networks)) if networks.is_empty() => return Err(Refused::Unencrypted),
            (None, _) => {}
        }
        Ok(addresses)
    }

    /// Looks up a host once and returns its addresses that may be connected to, those of IPv4 first. To be used for the
    /// connection itself: a second look-up may have another result.
    ///
    /// # Errors
    /// When the host has no address, or none that may be connected to.
    pub async fn look_up(
        &self,
        names: &dyn Names,
        (host, port): (&str, u16),
        is_encrypted: bool,
    ) -> Result<Vec<SocketAddr>, Unreached> {
        let addresses = self.addresses(host, port, is_encrypted);
        let found = match literal(host) {
            Some(address) => vec![address],
            None => names.look_up(host).await?,
        };
        let mut allowed = addresses.allowed(found)?;
        if allowed.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no address").into());
        }
        allowed.sort_by_key(IpAddr::is_ipv6);
        Ok(allowed
            .into_iter()
            .map(|address| SocketAddr::new(address, port))
            .collect())
    }

    /// Checks a host that something else connects to, such as the engine, which looks it up again.
    ///
    /// # Errors
    /// When an address of the host may not be connected to, or it has none.
    pub async fn check_before(
        &self,
        names: &dyn Names,
        (host, port): (&str, u16),
        is_encrypted: bool,
    ) -> Result<(), Unreached> {
        if !self.is_restricted() {
            return Ok(());
        }
        let addresses = self.addresses(host, port, is_encrypted);
        if addresses == Addresses::Any {
            return Ok(());
        }
        let found = match literal(host) {
            Some(address) => vec![address],
            None => names.look_up(host).await?,
        };
        // Whichever of them is connected to must be allowed.
        for address in found {
            addresses.check(address)?;
        }
        Ok(())
    }
}

impl Addresses {
    /// Returns those of the addresses that are allowed.
    ///
    /// # Errors
    /// When there are addresses, and none of them is allowed.
    pub(super) fn allowed(&self, found: Vec<IpAddr>) -> Result<Vec<IpAddr>, Refused> {
        let (mut allowed, mut refused) = (Vec::new(), None);
        for address in found {
            match self.check(address) {
                Ok(()) => allowed.push(address),
                Err(why) => refused = Some(why),
            }
        }
        match refused {
            Some(why) if allowed.is_empty() => Err(why),
            _ => Ok(allowed),
        }
    }
}

/// Returns the address that stands in the place of a host name; none for names.
fn literal(host: &str) -> Option<IpAddr> {
    // The parser of URLs has written every form of an address in its plain one; those of IPv6 stand in brackets.
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Returns a host's name in the form in which names are compared.
fn plain(host: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.trim_end_matches('.').to_ascii_lowercase()
}
