//! TLS for servers of tests: a certificate that they make for themselves.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Returns a new certificate for these hosts, as a client that trusts it reads it, and the server's side of it.
pub(crate) fn certified(hosts: &[&str]) -> (String, Arc<ServerConfig>) {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(hosts).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a certificate and its key");
    (made.cert.pem(), Arc::new(config))
}
