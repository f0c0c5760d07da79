//! Free ports of the loopback interface.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Mutex;

use watershed_locks::Unpoisoned;

use crate::program::{Port, Ports};

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
    /// Finds a number for each port of a program: the one of `kept`, where it is still free. Those of the start before, `held`,
    /// are given back.
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

/// Returns true if a program that begins may listen on a port, as servers do: also where connections of the one before it
/// are not quite over.
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
