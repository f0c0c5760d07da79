//! The other end of a connection on this machine, and whose it is.

use std::fs;
use std::net::{IpAddr, SocketAddr};

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The address.
    pub address: SocketAddr,
    /// The user who opened the connection; none where the system does not say.
    pub user: Option<u32>,
}

impl Peer {
    /// Looks up whose the other end is. Only Linux says.
    pub(super) fn find(address: SocketAddr, ours: SocketAddr) -> Self {
        Self {
            address,
            user: user_of(address, ours),
        }
    }

    /// Returns true if the other end is the user's of this process. Where the system does not say, it is enough that the
    /// connection comes from this machine.
    pub fn is_ours(&self) -> bool {
        match (cfg!(target_os = "linux"), self.user) {
            (true, user) => user == Some(rustix::process::geteuid().as_raw()),
            (false, _) => self.address.ip().is_loopback(),
        }
    }
}

fn user_of(peer: SocketAddr, ours: SocketAddr) -> Option<u32> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    // A socket of both families is listed among the newer ones, whatever it carries.
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .find_map(|table| find_user(&table, peer, ours))
}

/// Finds the user of a connection in one of the system's tables: one whose own end is `peer` and whose other end is `ours`.
fn find_user(table: &str, peer: SocketAddr, ours: SocketAddr) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let mut columns = line.split_ascii_whitespace().skip(1);
        let local = read_address(columns.next()?)?;
        let remote = read_address(columns.next()?)?;
        let user = columns.nth(4)?;
        let is_it = same(local, peer) && same(remote, ours);
        is_it.then(|| user.parse().ok()).flatten()
    })
}

/// Returns true if two addresses are one, whichever family they are written in.
fn same(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
}

/// Reads an address as the system's tables write it: words of 32 bits in the order of the machine, and the port.
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
        assert_eq!(find_user(table, at(0xC350), at(0x1F90)), None);
        assert_eq!(find_user("", at(1), at(2)), None);
    }
}
