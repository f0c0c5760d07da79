//! A line to a server, which a test cuts after some bytes: on loopback, on a port of its own.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes that are carried at once.
const CHUNK: usize = 4096;

/// The work of a test when its line is cut.
type Then = Box<dyn FnOnce() + Send>;

/// The end of the line at which a server listens.
#[derive(Debug, Clone)]
pub enum End {
    /// A host and port.
    Tcp(String),
    /// A socket of this machine.
    Unix(PathBuf),
}

/// A line that carries connections to a server, until it is cut. Clones are the same line.
#[derive(Clone)]
pub struct Line {
    port: u16,
    state: Arc<Mutex<State>>,
    /// Held from before anybody can see a cut until the work at that is done.
    cutting: Arc<Mutex<()>>,
}

#[derive(Default)]
struct State {
    /// Number of bytes carried so far.
    carried: u64,
    /// Bytes until the line is cut; none if it will not be.
    left: Option<u64>,
    was_cut: bool,
    then: Option<Then>,
    /// Both ends of each open connection, by number.
    open: BTreeMap<u64, [Socket; 2]>,
    /// Number of the last connection.
    last: u64,
}

/// The bytes of a chunk that may pass.
struct Passes {
    bytes: usize,
    /// True if the line is cut behind them.
    cuts: bool,
}

impl State {
    fn pass(&mut self, read: usize) -> Passes {
        let Some(left) = self.left else {
            self.carried += read as u64;
            return Passes {
                bytes: read,
                cuts: false,
            };
        };
        let bytes = usize::try_from(left).unwrap_or(read).min(read);
        self.carried += bytes as u64;
        self.left = Some(left - bytes as u64);
        let cuts = !self.was_cut && self.left == Some(0);
        self.was_cut |= cuts;
        Passes { bytes, cuts }
    }
}

impl Line {
    /// Starts a line to a server.
    ///
    /// # Panics
    /// If there is no port for it.
    pub fn to(end: End) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let line = Self {
            port: listener.local_addr().expect("an address").port(),
            state: Arc::default(),
            cutting: Arc::default(),
        };
        let this = line.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // Whoever comes while it is cut is sent away.
                drop(this.connect(&end, client));
            }
        });
        line
    }

    /// Returns the port of the line.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the number of bytes that it has carried.
    pub fn carried(&self) -> u64 {
        held(&self.state).carried
    }

    /// Cuts the line after more bytes, in either direction: nobody is connected then until it is mended. Does `then` when
    /// it is cut.
    pub fn cut_after(&self, bytes: u64, then: impl FnOnce() + Send + 'static) {
        let mut state = held(&self.state);
        (state.left, state.was_cut) = (Some(bytes.max(1)), false);
        state.then = Some(Box::new(then));
    }

    /// Lets connections through again.
    pub fn let_through(&self) {
        held(&self.state).left = None;
    }

    /// Lets connections through again once all work of a cut is done. Returns true if it was cut.
    pub fn mend(&self) -> bool {
        let _done = held(&self.cutting);
        let mut state = held(&self.state);
        (state.left, state.then) = (None, None);
        std::mem::take(&mut state.was_cut)
    }

    fn connect(&self, end: &End, client: TcpStream) -> io::Result<()> {
        let server = match end {
            End::Tcp(address) => Socket::Tcp(TcpStream::connect(address)?),
            End::Unix(path) => Socket::Unix(UnixStream::connect(path)?),
        };
        let client = Socket::Tcp(client);
        let ways = [
            (client.beside()?, server.beside()?),
            (server.beside()?, client.beside()?),
        ];
        let mut state = held(&self.state);
        if state.left == Some(0) {
            return Ok(());
        }
        state.last += 1;
        let number = state.last;
        state.open.insert(number, [client, server]);
        drop(state);
        for (from, to) in ways {
            let this = self.clone();
            std::thread::spawn(move || {
                this.carry(from, to);
                let gone = held(&this.state).open.remove(&number);
                gone.iter().flatten().for_each(Socket::close);
            });
        }
        Ok(())
    }

    /// Carries bytes until one end closes or the line is cut.
    fn carry(&self, mut from: Socket, mut to: Socket) {
        let mut chunk = [0; CHUNK];
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            let passes = held(&self.state).pass(read);
            let sent = to.write_all(&chunk[..passes.bytes]);
            if passes.cuts {
                return self.cut();
            }
            if passes.bytes < read || sent.is_err() {
                return;
            }
        }
    }

    fn cut(&self) {
        let _cutting = held(&self.cutting);
        let mut state = held(&self.state);
        let (open, then) = (std::mem::take(&mut state.open), state.then.take());
        drop(state);
        open.values().flatten().for_each(Socket::close);
        if let Some(then) = then {
            then();
        }
    }
}

fn held<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().expect("no thread of the line panics")
}

/// An end of a connection.
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    fn beside(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
        })
    }

    fn close(&self) {
        // The other side may have closed it.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(chunk),
            Self::Unix(stream) => stream.read(chunk),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Unix(stream) => stream.write_all(bytes),
        }
    }
}
