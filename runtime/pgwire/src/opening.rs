//! The opening of a connection, before a session: encryption, cancel requests, and the names of user and database.

use std::collections::BTreeMap;
use std::io;

use bytes::{Buf as _, BytesMut};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::startup::NegotiateProtocolVersion;
use tokio_rustls::TlsAcceptor;

use crate::backend::Bounds;
use crate::wire::Wire;

/// The longest first message, in bytes, as in Postgres.
const LONGEST: usize = 10_000;
/// The version of the protocol, 3.0.
const VERSION: u32 = 3 << 16;
const CANCEL: u32 = 80_877_102;
const ENCRYPT: u32 = 80_877_103;
const ENCRYPT_BY_KERBEROS: u32 = 80_877_104;

/// The first message of a client, behind those about encryption.
pub(crate) enum First {
    /// The client wants a session, with these parameters.
    Session(BTreeMap<String, String>),
    /// The client wants the statement of another session to be called off.
    Cancel {
        /// Number of the session.
        session: i32,
        /// Key of the session.
        key: i32,
    },
}

/// Reads the first message, and encrypts the connection before if the client asks for that. Returns whether it is encrypted.
pub(crate) async fn first(
    mut wire: Wire,
    tls: Option<&TlsAcceptor>,
    bounds: &Bounds,
) -> io::Result<(Wire, bool, First)> {
    let mut is_encrypted = false;
    // A client asks for each kind of encryption once.
    for _ in 0..3 {
        let (code, mut body) = message(&mut wire).await?;
        match code {
            ENCRYPT | ENCRYPT_BY_KERBEROS if !body.is_empty() || is_encrypted => return Err(broken()),
            ENCRYPT => match tls {
                None => wire.put_bytes(b"N").await?,
                Some(tls) => {
                    wire.put_bytes(b"S").await?;
                    // What was sent ahead in the clear could be somebody else's.
                    let stream = wire.into_stream().ok_or_else(broken)?;
                    let stream = tls.accept(stream).await?;
                    wire = Wire::new(Box::new(stream), bounds.takes_nothing);
                    is_encrypted = true;
                }
            },
            ENCRYPT_BY_KERBEROS => wire.put_bytes(b"N").await?,
            CANCEL if body.len() == 8 => {
                let (session, key) = (body.get_i32(), body.get_i32());
                return Ok((wire, is_encrypted, First::Cancel { session, key }));
            }
            version if version >> 16 == 3 => {
                let parameters = parameters(&body).ok_or_else(broken)?;
                let extensions: Vec<String> = parameters
                    .keys()
                    .filter(|name| name.starts_with("_pq_."))
                    .cloned()
                    .collect();
                if version > VERSION || !extensions.is_empty() {
                    let older = NegotiateProtocolVersion::new(0, extensions);
                    wire.put(PgWireBackendMessage::NegotiateProtocolVersion(older))
                        .await?;
                }
                return Ok((wire, is_encrypted, First::Session(parameters)));
            }
            _ => return Err(broken()),
        }
    }
    Err(broken())
}

fn broken() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

async fn message(wire: &mut Wire) -> io::Result<(u32, BytesMut)> {
    wire.fill(8).await?;
    let length = usize::try_from(wire.peek().get_u32()).map_err(|_| broken())?;
    if !(8..=LONGEST).contains(&length) {
        return Err(broken());
    }
    wire.fill(length).await?;
    let mut message = wire.take(length);
    message.advance(4);
    Ok((message.get_u32(), message))
}

/// Reads names and values, each of which ends with NUL, up to an empty name.
fn parameters(body: &[u8]) -> Option<BTreeMap<String, String>> {
    let text = std::str::from_utf8(body).ok()?.strip_suffix("\0\0")?;
    let mut parts = text.split('\0');
    let mut all = BTreeMap::new();
    while let Some(name) = parts.next() {
        all.insert(name.to_owned(), parts.next()?.to_owned());
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_pairs() {
        let read = |body: &[u8]| parameters(body).map(|all| all.len());
        assert_eq!(read(b"user\0a\0database\0b\0\0"), Some(2));
        assert_eq!(read(b"user\0\0\0"), Some(1));
        for broken in [
            &b""[..],
            b"\0",
            b"user\0a\0",
            b"user\0a\0database\0\0",
            b"\xff\0a\0\0",
        ] {
            assert_eq!(read(broken), None, "{broken:?}");
        }
    }
}
