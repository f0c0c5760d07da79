//! Connections, and the fate of processes whose holder is gone.

use std::io::ErrorKind;

use rustix::process::Signal;

use super::Shim;
use super::connection::Connection;
use super::poll::Token;
use crate::clock;
use crate::journal::Record;
use crate::protocol::{Event, Lifetime, Message, StopReason};

/// The most connections at a time. The program uses one, and each command another.
const MAX_CONNECTIONS: usize = 64;

impl Shim {
    /// Accepts all waiting connections.
    pub(super) fn accept(&mut self) {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            if self.connections.len() >= MAX_CONNECTIONS {
                continue;
            }
            let Ok(connection) = Connection::new(stream) else {
                self.log.line("a connection of another user was refused");
                continue;
            };
            if let Ok(token) = self.poll.add(connection.stream()) {
                self.connections.insert(token, connection);
            }
        }
    }

    /// Sends queued messages, and closes connections that have ended.
    pub(super) fn flush(&mut self) {
        let mut over = Vec::new();
        for (token, connection) in &mut self.connections {
            if let Some(wants) = connection.flush() {
                self.poll.want_room(connection.stream(), *token, wants);
            }
            if connection.is_over() {
                over.push(*token);
            }
        }
        for token in over {
            self.disconnected(token);
        }
        if !self.connections.is_empty() {
            self.idle_since = None;
        }
    }

    fn disconnected(&mut self, token: Token) {
        let Some(connection) = self.connections.remove(&token) else {
            return;
        };
        self.poll.remove(connection.stream());
        if let Some(Lifetime::Connected { linger_ms }) = self.lifetime()
            && !self.is_held()
        {
            let due = clock::since_boot_ms().saturating_add(linger_ms);
            self.lifetime_deadline.get_or_insert(due);
        }
        if self.connections.is_empty() && self.table.living() == 0 {
            self.idle_since = Some(clock::since_boot_ms());
        }
    }

    /// Returns true while a connection of the highest epoch is open.
    fn is_held(&self) -> bool {
        let highest = self.table.epoch.map(|(epoch, _)| epoch);
        let mut hellos = self.connections.values().filter_map(Connection::hello);
        highest.is_some() && hellos.any(|hello| hello.epoch == highest)
    }

    /// Sends an event to all subscribed connections.
    pub(super) fn publish(&mut self, event: &Event) {
        for connection in self.connections.values_mut() {
            if connection.hello().is_some_and(|hello| hello.subscribe) {
                connection.send(&Message::Event(event.clone()));
            }
        }
    }

    /// Ends the highest epoch: its commands are refused from now on, and its processes killed before another holder may
    /// start any.
    pub(super) fn lifetime_ended(&mut self) {
        self.lifetime_deadline = None;
        let (Some(lifetime), Some((epoch, _))) = (self.lifetime(), self.table.epoch) else {
            return;
        };
        let reason = match lifetime {
            Lifetime::Keep => return,
            Lifetime::Lease { .. } => StopReason::LeaseExpired,
            Lifetime::Connected { .. } => StopReason::HolderGone,
        };
        self.log.line(&format!(
            "epoch {epoch} is over: {} processes are killed",
            self.table.living()
        ));
        self.record(Record::EpochOver { epoch });
        self.stop_all(reason, Signal::KILL, 0);
    }

    /// Restarts the lifetime's deadline for processes of an earlier shim.
    pub(super) fn recover_lifetime(&mut self) {
        let now = clock::since_boot_ms();
        self.lifetime_deadline = match self.lifetime() {
            Some(Lifetime::Lease { ttl_ms }) => Some(now.saturating_add(ttl_ms)),
            Some(Lifetime::Connected { linger_ms }) => Some(now.saturating_add(linger_ms)),
            Some(Lifetime::Keep) | None => None,
        };
    }
}
