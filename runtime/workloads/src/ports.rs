//! Free ports of the loopback interface.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Mutex;

use crate::program::{Port, Ports};
use crate::sync::Unpoisoned;

/// Draws that meet a port which was given away already, at most.
const DRAWS: usize = 64;

/// The ports that were given to starts of this process, so that two starts at once don't get the same one before
/// either listens.
#[derive(Debug, Default)]
pub(crate) struct PortPool(Mutex<BTreeSet<u16>>);

/// A port that can't be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoPort {
    /// Another process listens on it.
    #[error("port {0} is used by another process")]
    Busy(u16),
    /// The system has none.
    #[error("the system has no free port: {0}")]
    None(String),
}

impl PortPool {
    /// Finds a number for each port of a program.
    ///
    /// # Errors
    /// When a fixed one is used by another process, or no free one is left.
    pub(crate) fn take(&self, wanted: &[Port]) -> Result<Ports, NoPort> {
        let mut given = self.0.lock().unpoisoned();
        let mut ports = Ports::new();
        for port in wanted {
            let number = match port.fixed {
                0 => free(&given)?,
                fixed if TcpListener::bind((Ipv4Addr::LOCALHOST, fixed)).is_err() => {
                    return Err(NoPort::Busy(fixed));
                }
                fixed => fixed,
            };
            given.insert(number);
            ports.insert(port.name.clone(), number);
        }
        Ok(ports)
    }

    /// Gives ports back whose process has ended.
    pub(crate) fn give_back(&self, ports: &Ports) {
        let mut given = self.0.lock().unpoisoned();
        for number in ports.values() {
            given.remove(number);
        }
    }

    /// Returns the number of ports that are given away.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unpoisoned().len()
    }
}

fn free(given: &BTreeSet<u16>) -> Result<u16, NoPort> {
    for _ in 0..DRAWS {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let address = listener.and_then(|listener| listener.local_addr());
        match address {
            Ok(address) if !given.contains(&address.port()) => return Ok(address.port()),
            Ok(_) => {}
            Err(error) => return Err(NoPort::None(error.to_string())),
        }
    }
    Err(NoPort::None("all that were drawn are given away".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(name: &str, fixed: u16) -> Port {
        Port {
            name: name.into(),
            fixed,
            container: 0,
        }
    }

    #[test]
    fn starts_at_once_get_different_ports_and_a_busy_one_is_refused() {
        let pool = PortPool::default();
        let mut seen = BTreeSet::new();
        for _ in 0..100 {
            let ports = pool.take(&[port("A", 0), port("B", 0)]).unwrap();
            assert!(ports.values().all(|number| seen.insert(*number)));
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let busy = listener.local_addr().unwrap().port();
        assert_eq!(pool.take(&[port("A", busy)]), Err(NoPort::Busy(busy)));
        drop(listener);
        assert_eq!(pool.take(&[port("A", busy)]).unwrap()["A"], busy);
    }
}
