//! Listening sockets and their connections: of an address or of a file, plain or encrypted.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_rustls::server::TlsStream;

use super::super::tls::Tls;
use super::peer::Peer;

/// First byte of a TLS connection: a record of the handshake.
const HANDSHAKE: u8 = 0x16;
/// Mode of a socket file: its owner and group, so that a proxy in the group can connect.
const MODE: u32 = 0o660;

/// A listening socket of a service.
#[derive(Debug)]
pub struct Listener(Kind);

#[derive(Debug)]
enum Kind {
    Address(TcpListener),
    File {
        listener: UnixListener,
        /// Removed with the listener.
        _file: SocketFile,
    },
}

/// A socket file, removed when dropped.
#[derive(Debug)]
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self(Kind::Address(listener))
    }
}

impl Listener {
    /// Binds a Unix socket, for a proxy on this machine that is in the file's group. What a process that was killed has left
    /// under the name is replaced.
    ///
    /// # Errors
    /// When somebody listens there, the name is that of another file, or the folder can't be written.
    pub async fn at_file(path: &Path) -> io::Result<Self> {
        if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
            match UnixStream::connect(path).await {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
                _ => return Err(io::ErrorKind::AddrInUse.into()),
            }
        }
        // Nobody connects between the binding and the mode: until then the file is its owner's.
        let listener = private(|| UnixListener::bind(path))?;
        let _file = SocketFile(path.to_owned());
        fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
        Ok(Self(Kind::File { listener, _file }))
    }

    /// Accepts the next connection. Cancel-safe: a connection is returned at once or stays in the backlog.
    pub(super) async fn accept(&self) -> io::Result<Stream> {
        match &self.0 {
            Kind::Address(listener) => {
                let (stream, address) = listener.accept().await?;
                // Answers are small, and wait for nothing.
                let _ = stream.set_nodelay(true);
                Ok(Stream::Address(stream, address))
            }
            Kind::File { listener, .. } => Ok(Stream::File(listener.accept().await?.0)),
        }
    }
}

/// Creates a file that only its owner can access.
fn private<T>(create: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let made = create();
    rustix::process::umask(before);
    made
}

/// An accepted connection.
pub(super) enum Stream {
    /// Over TCP, from an address.
    Address(TcpStream, SocketAddr),
    /// Over a Unix socket.
    File(UnixStream),
    /// Over TCP and TLS.
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Returns the address of the remote end; none over a Unix socket.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(_, address) => Some(*address),
            Self::File(_) | Self::Encrypted(_) => None,
        }
    }

    /// Returns true if the connection is encrypted by the listener.
    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self, Self::Encrypted(_))
    }

    /// Looks up the remote end with its user; none if the system does not report it.
    pub(super) fn peer(&self) -> Option<Peer> {
        match self {
            Self::Address(stream, address) => Some(Peer::find(*address, stream.local_addr().ok()?)),
            Self::File(stream) => Some(Peer {
                address: None,
                user: Some(stream.peer_cred().ok()?.uid()),
            }),
            Self::Encrypted(_) => None,
        }
    }

    /// Encrypts a connection over TCP. A Unix socket stays as it is.
    ///
    /// # Errors
    /// The connection itself, if the client speaks without TLS; or else the error of the handshake.
    pub(super) async fn encrypted(self, tls: &Tls) -> Result<Self, Result<Self, io::Error>> {
        let Self::Address(stream, address) = self else {
            return Ok(self);
        };
        let mut first = [0];
        let read = stream.peek(&mut first).await.map_err(Err)?;
        if read == 1 && first != [HANDSHAKE] {
            return Err(Ok(Self::Address(stream, address)));
        }
        let stream = tls.acceptor().accept(stream).await.map_err(Err)?;
        Ok(Self::Encrypted(Box::new(stream)))
    }
}

macro_rules! each {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Stream::Address($stream, _) => $call,
            Stream::File($stream) => $call,
            Stream::Encrypted($stream) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_read(cx, into))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Address(stream, _) => stream.is_write_vectored(),
            Self::File(stream) => stream.is_write_vectored(),
            Self::Encrypted(stream) => stream.is_write_vectored(),
        }
    }
}
