//! Free ports of the loopback interface, assigned to programs.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Mutex;

use watershed_locks::Unpoisoned;

use crate::program::{Port, Ports};

/// The most draws of a port that was already assigned.
const DRAWS: usize = 64;

/// The ports assigned to starts by this process, so that two concurrent starts don't get the same port before either
/// listens.
#[derive(Debug, Default)]
pub(crate) struct PortPool(Mutex<BTreeSet<u16>>);

/// The error of a port that can't be assigned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoPort {
    /// Another process listens on the port.
    #[error("port {0} is used by another process")]
    Busy(u16),
    /// The system has no free port.
    #[error("the system has no free port: {0}")]
    None(String),
}

impl PortPool {
    /// Assigns a number to each port of a program, preferably the one in `kept` if still free. Releases the ports of
    /// the previous start, `held`.
    ///
    /// # Errors
    /// When a fixed one is used by another process, or no free one is left. Then it holds none.
    pub(crate) fn take(&self, wanted: &[Port], held: &Ports, kept: &Ports) -> Result<Ports, NoPort> {
        let mut given = self.0.lock().unpoisoned();
        for number in held.values() {
            given.remove(number);
        }
        let mut taken = given.clone();
        let mut ports = Ports::new();
        for port in wanted {
            let before = kept.get(&port.name).copied();
            let number = match port.fixed {
                0 => match before.filter(|number| !taken.contains(number) && is_free(*number)) {
                    Some(number) => number,
                    None => free(&taken)?,
                },
                fixed if !is_free(fixed) => return Err(NoPort::Busy(fixed)),
                fixed => fixed,
            };
            taken.insert(number);
            ports.insert(port.name.clone(), number);
        }
        *given = taken;
        Ok(ports)
    }

    /// Releases the ports of a process that has ended.
    pub(crate) fn give_back(&self, ports: &Ports) {
        let mut given = self.0.lock().unpoisoned();
        for number in ports.values() {
            given.remove(number);
        }
    }

    /// Returns the number of assigned ports.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unpoisoned().len()
    }
}

/// Returns true if a server could listen on a port, even while connections of its predecessor linger.
fn is_free(number: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok()
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

    fn take(pool: &PortPool, wanted: &[Port]) -> Result<Ports, NoPort> {
        pool.take(wanted, &Ports::new(), &Ports::new())
    }

    #[test]
    fn starts_at_once_get_different_ports_and_a_busy_one_is_refused() {
        let pool = PortPool::default();
        let mut seen = BTreeSet::new();
        for _ in 0..100 {
            let ports = take(&pool, &[port("A", 0), port("B", 0)]).unwrap();
            assert!(ports.values().all(|number| seen.insert(*number)));
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let busy = listener.local_addr().unwrap().port();
        let (before, wanted) = (pool.len(), [port("B", 0), port("A", busy)]);
        assert_eq!(take(&pool, &wanted), Err(NoPort::Busy(busy)));
        assert_eq!(pool.len(), before, "what was refused holds nothing");
        drop(listener);
        assert_eq!(take(&pool, &wanted).unwrap()["A"], busy);
    }

    #[test]
    fn a_start_gets_the_ports_of_the_one_before_unless_somebody_else_has_them() {
        let pool = PortPool::default();
        let wanted = [port("A", 0), port("B", 0)];
        let first = take(&pool, &wanted).unwrap();
        assert_eq!(pool.take(&wanted, &first, &first).unwrap(), first);
        assert_eq!(pool.len(), 2);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, first["A"])).unwrap();
        let second = pool.take(&wanted, &first, &first).unwrap();
        assert!(
            second["A"] != first["A"] && second["B"] == first["B"],
            "{second:?}"
        );
        drop(listener);
        // Nobody else is given a port that is held.
        let other = pool.take(&wanted, &Ports::new(), &second).unwrap();
        assert!(
            other
                .values()
                .all(|number| !second.values().any(|held| held == number))
        );
        let none = pool.take(&wanted, &second, &Ports::new()).unwrap();
        assert_eq!(none.len(), 2);
        assert_eq!(pool.len(), 4);
    }
}
