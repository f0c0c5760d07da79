//! The remote end of a connection on this machine, with its user.

use std::fs;
use std::net::{IpAddr, SocketAddr};

/// The remote end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Address of the remote end; none over a Unix socket.
    pub address: Option<SocketAddr>,
    /// User id of the process that connected; none if the system does not report it.
    pub user: Option<u32>,
}

impl Peer {
    /// Looks up the user of the remote end; known only on Linux.
    pub(super) fn find(address: SocketAddr, ours: SocketAddr) -> Self {
        Self {
            address: Some(address),
            user: user_of(address, ours),
        }
    }

    /// Returns true if the user of this process connected. If the user is unknown, any connection from this machine
    /// counts.
    pub fn is_ours(&self) -> bool {
        match (cfg!(target_os = "linux"), self.user, self.address) {
            (true, user, _) | (_, user, None) => user == Some(rustix::process::geteuid().as_raw()),
            (false, _, Some(address)) => address.ip().is_loopback(),
        }
    }
}

fn user_of(peer: SocketAddr, ours: SocketAddr) -> Option<u32> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    #[cfg(target_os = "linux")]
    if let Some(user) = system::user_of(peer, ours) {
        return Some(user);
    }
    // A kernel that can't be asked about one socket, or does not find it under that family: the tables list all. A socket of
    // both families is among the newer ones, whatever it carries.
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .find_map(|table| find_user(&table, peer, ours))
}

/// Queries of the kernel about a single socket (`sock_diag(7)`), at a cost independent of the number of sockets.
#[cfg(target_os = "linux")]
mod system {
    use std::net::{IpAddr, SocketAddr};

    use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

    /// Length of a netlink message's header, in bytes.
    const HEAD: usize = 16;
    /// Message type of `SOCK_DIAG_BY_FAMILY`, in queries and replies.
    const BY_FAMILY: u16 = 20;
    /// Offsets of a socket's addresses and user in a reply, in bytes.
    const ADDRESSES: usize = HEAD + 4;
    const USER: usize = HEAD + 64;
    /// The byte at which the number of the file begins that a process has of a socket.
    const FILE: usize = USER + 4;

    /// Returns the user id of a connection whose local end is `peer`; none if the kernel does not report it.
    pub(super) fn user_of(peer: SocketAddr, ours: SocketAddr) -> Option<u32> {
        let flags = SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(SOCK_DIAG)).ok()?;
        let (family, addresses) = (family(peer), addresses(peer, ours));
        let question = question(family, &addresses);
        let kernel = SocketAddrNetlink::new(0, 0);
        rustix::net::sendto(&socket, &question, SendFlags::empty(), &kernel).ok()?;
        let mut answer = [0_u8; 1024];
        // It is there before the question is sent.
        let (read, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::DONTWAIT).ok()?;
        let answer = answer.get(..read)?;
        let kind = answer.get(4..6)?.try_into().ok().map(u16::from_ne_bytes)?;
        let is_it = kind == BY_FAMILY && answer.get(ADDRESSES..ADDRESSES + addresses.len())? == addresses;
        let user = answer.get(USER..FILE)?.try_into().ok()?;
        // A socket that its process has closed is told as root's, whoever opened it.
        let is_held = answer.get(FILE..FILE + 4)? != [0; 4];
        (is_it && is_held).then(|| u32::from_ne_bytes(user))
    }

    fn family(address: SocketAddr) -> u8 {
        match address.ip().to_canonical() {
            IpAddr::V4(_) => 2,
            IpAddr::V6(_) => 10,
        }
    }

    /// Encodes both ends of a socket as the kernel does, the own end first.
    fn addresses(own: SocketAddr, other: SocketAddr) -> Vec<u8> {
        let mut bytes = [own.port().to_be_bytes(), other.port().to_be_bytes()].concat();
        for end in [own, other] {
            match end.ip().to_canonical() {
                IpAddr::V4(ip) => {
                    bytes.extend(ip.octets());
                    bytes.extend([0; 12]);
                }
                IpAddr::V6(ip) => bytes.extend(ip.octets()),
            }
        }
        bytes
    }

    fn question(family: u8, addresses: &[u8]) -> Vec<u8> {
        /// Protocol number of TCP.
        const TCP: u8 = 6;
        /// Flag that marks a netlink message as a request.
        const REQUEST: u16 = 1;
        let any = u32::MAX.to_ne_bytes();
        // Every state; no interface and no cookie are named.
        let body = [&[family, TCP, 0, 0], &any[..], addresses, &[0; 4], &any, &any].concat();
        let length = u32::try_from(HEAD + body.len()).unwrap_or_default();
        let (kind, flags) = (BY_FAMILY.to_ne_bytes(), REQUEST.to_ne_bytes());
        [&length.to_ne_bytes()[..], &kind, &flags, &[0; 8], &body].concat()
    }
}

/// Finds the user of a connection in a table of `/proc/net`, by its local end `peer` and remote end `ours`.
fn find_user(table: &str, peer: SocketAddr, ours: SocketAddr) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let mut columns = line.split_ascii_whitespace().skip(1);
        let local = read_address(columns.next()?)?;
        let remote = read_address(columns.next()?)?;
        let (user, file) = (columns.nth(4)?, columns.nth(1)?);
        // A socket that its process has closed is told as root's, whoever opened it.
        let is_it = same(local, peer) && same(remote, ours) && file != "0";
        is_it.then(|| user.parse().ok()).flatten()
    })
}

/// Returns true if two addresses are equal, also if one is IPv4 mapped to IPv6.
fn same(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
}

/// Parses an address of a table of `/proc/net`: hexadecimal 32-bit words in native byte order, and the port.
fn read_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let word = u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    let ip = match ip.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let mut bytes = [0; 16];
            for (index, four) in bytes.chunks_exact_mut(4).enumerate() {
                four.copy_from_slice(&word(index * 8)?);
            }
            IpAddr::from(bytes)
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_user_of_a_connection_is_found_in_both_families() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, peer) = listener.accept().unwrap();
            let found = Peer::find(peer, server.local_addr().unwrap());
            assert!(found.is_ours(), "{address}: {found:?}");
            drop(client);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_connection_that_nobody_has_opened_is_not_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = listener.local_addr().unwrap();
        for other in ["127.0.0.1:1", "192.0.2.1:80", "[::1]:1"] {
            assert_eq!(user_of(other.parse().unwrap(), ours), None, "{other}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_connection_that_its_owner_has_closed_is_nobodys() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = listener.local_addr().unwrap();
        let client = TcpStream::connect(ours).unwrap();
        let (_server, peer) = listener.accept().unwrap();
        drop(client);
        // Otherwise whoever sends a request and goes would be taken for root.
        assert_eq!(user_of(peer, ours), None);
    }

    #[test]
    fn a_connection_that_nobody_lists_is_nobodys() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 1 1\n";
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let table = if cfg!(target_endian = "little") {
            table
        } else {
            return;
        };
        assert_eq!(find_user(table, at(0x1F90), at(0xC350)), Some(1_000));
        let closed = table.replace("1000        0 1 1", "0        0 0 1");
        assert_eq!(find_user(&closed, at(0x1F90), at(0xC350)), None);
        assert_eq!(find_user(table, at(0xC350), at(0x1F90)), None);
        assert_eq!(find_user("", at(1), at(2)), None);
    }
}
