//! The listener's end of encrypted connections.

use std::sync::{Arc, RwLock};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;
use watershed_locks::Unpoisoned;

/// The protocol that is offered over TLS. HTTP/2 is not: its streams, resets and continued heads would need bounds of their own.
const PROTOCOL: &[u8] = b"http/1.1";

/// A certificate with its key, both replaceable while the listener runs. Clones share them.
#[derive(Clone)]
pub struct Tls(Arc<RwLock<Arc<ServerConfig>>>);

/// An error of a certificate or key. Its message never contains the key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TlsError {
    /// The text has no certificate.
    #[error("there is no certificate in PEM form")]
    NoCertificate,
    /// The text has no private key.
    #[error("there is no private key in PEM form")]
    NoKey,
    /// The certificate and the key can't be used together.
    #[error("the certificate and the key can't be used: {0}")]
    Unusable(String),
}

impl Tls {
    /// Creates the server's end of TLS 1.2 and 1.3 from a chain of certificates and a private key, both in PEM form.
    ///
    /// # Errors
    /// When one of them is missing, or the key belongs to another certificate.
    pub fn new(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
        let chain = chain
            .ok()
            .filter(|chain| !chain.is_empty())
            .ok_or(TlsError::NoCertificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::NoKey)?;
        let unusable = |error: rustls::Error| TlsError::Unusable(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?;
        let mut config = builder
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(unusable)?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Self(Arc::new(RwLock::new(Arc::new(config)))))
    }

    /// Replaces certificate and key for new connections; open ones keep theirs.
    pub fn replace(&self, by: &Self) {
        let config = Arc::clone(&by.0.read().unpoisoned());
        *self.0.write().unpoisoned() = config;
    }

    /// Returns the acceptor of new connections by another protocol, to which no client of HTTP is led astray.
    #[cfg(feature = "pgwire")]
    pub(crate) fn acceptor_of(&self, protocol: &[u8]) -> TlsAcceptor {
        let mut config = ServerConfig::clone(&self.0.read().unpoisoned());
        config.alpn_protocols = vec![protocol.to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    /// Returns the acceptor of new connections.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.read().unpoisoned()))
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}
