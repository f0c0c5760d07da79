//! The network of a configuration: where a service listens, its certificate and its proxies.

use std::net::SocketAddr;
use std::sync::Arc;

use watershed::http::{Proxies, Tls};
use watershed_compilers::Code;
use watershed_compilers::configuration::{self, Listen};

use super::configuration::Reading;
use crate::listen::{ADDRESS, At, Network};

impl Reading<'_> {
    /// Reads the certificate of a service, and returns the service's network; none after a mistake.
    pub(super) fn network(
        &mut self,
        read: &configuration::Network,
        sql: Option<SocketAddr>,
    ) -> Option<Network> {
        let tls = match &read.tls {
            Some(files) => Some(self.certificate(files)?),
            None => None,
        };
        let at = match &read.listen {
            None => At::Loopback(ADDRESS.parse().ok()?),
            Some(Listen::Address(address)) if address.ip().is_loopback() => At::Loopback(*address),
            Some(Listen::Address(address)) => At::Anywhere(*address),
            Some(Listen::File(path)) => At::File(std::path::absolute(self.path(path)).ok()?),
        };
        Some(Network {
            at,
            tls,
            proxies: Arc::new(Proxies::new(read.proxies.iter().copied())),
            sql,
        })
    }

    fn certificate(&mut self, files: &configuration::Tls) -> Option<Tls> {
        let (certificate, key) = (self.read_file(&files.certificate), self.private_file(&files.key));
        match Tls::new(&certificate?, &key?) {
            Ok(tls) => Some(tls),
            Err(error) => {
                let hint = "`certificate` has the service's own first, then those of its authorities";
                self.mistake(&files.certificate, Code::InvalidValue, error.to_string(), hint);
                None
            }
        }
    }
}
