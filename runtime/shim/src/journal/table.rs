//! The table of all starts in the journal.
//!
//! Invariants: an entry is changed by records alone, so a replay gives the same table; a start lives at most once, and
//! ends at most once; of one uid at most one start lives.

use std::collections::BTreeMap;

use super::record::{Record, StopOrder};
use crate::protocol::{End, Exit, Failure, Lifetime, MemoryGuard, Output, Phase, Process};
use crate::start_id::StartId;

/// The most starts in the table. Bounds memory and journal even if clients never forget a start.
pub(crate) const MAX_STARTS: usize = 16_384;

/// A start with its stored state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Epoch of the client that ordered the start.
    pub(crate) epoch: u64,
    /// Time of the order, in milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// Output file of the process; none if output is discarded.
    pub(crate) output: Option<Box<Output>>,
    /// Ordered stop; none before one is ordered.
    pub(crate) stop: Option<Box<StopOrder>>,
    /// Enforcement of the memory limit.
    pub(crate) memory: MemoryGuard,
    /// Stage of the process's life.
    pub(crate) life: Life,
}

/// The stage of a process's life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Life {
    /// The start is stored; the process does not exist yet.
    Starting,
    /// The process exists.
    Running {
        /// Process id.
        pid: u32,
        /// Clock ticks between boot and the start of the process.
        start_time: u64,
    },
    /// The process could not be started.
    Failed(Failure),
    /// The process has ended.
    Exited(Exit),
}

impl Entry {
    /// Returns true if a process exists or is about to be started.
    pub(crate) fn lives(&self) -> bool {
        matches!(self.life, Life::Starting | Life::Running { .. })
    }
}

/// The state that the journal's records yield.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// Identity of the journal.
    pub(crate) instance: String,
    /// Identity of the boot under which the last shim ran.
    pub(crate) boot: String,
    /// The highest epoch seen, and the fate of processes without its holder; none before the first.
    pub(crate) epoch: Option<(u64, Lifetime)>,
    /// True once the highest epoch has ended.
    pub(crate) epoch_is_over: bool,
    entries: BTreeMap<StartId, Entry>,
    living: usize,
}

impl Table {
    /// Applies a record to the table. A record that doesn't fit changes nothing.
    pub(crate) fn apply(&mut self, record: &Record) {
        let before = record.id().map(|id| self.lives(id));
        self.change(record);
        self.living = match (record.id().map(|id| self.lives(id)), before) {
            (Some(true), Some(false)) => self.living + 1,
            (Some(false), Some(true)) => self.living.saturating_sub(1),
            (Some(_), _) => self.living,
            (None, _) => self.entries.values().filter(|entry| entry.lives()).count(),
        };
    }

    fn change(&mut self, record: &Record) {
        match record {
            Record::Head { instance, .. } => {
                *self = Self {
                    instance: instance.clone(),
                    ..Self::default()
                };
            }
            Record::Boot { boot, at_ms } => self.begin_boot(boot, *at_ms),
            Record::Epoch { epoch, lifetime } => {
                if self.epoch.is_none_or(|(highest, _)| *epoch > highest) {
                    self.epoch_is_over = false;
                }
                self.epoch = Some((*epoch, *lifetime));
            }
            Record::EpochOver { epoch } => {
                self.epoch_is_over |= self.epoch.is_some_and(|(highest, _)| highest == *epoch);
            }
            Record::Start {
                id,
                epoch,
                at_ms,
                output,
            } => {
                let entry = Entry {
                    epoch: *epoch,
                    at_ms: *at_ms,
                    output: output.clone().map(Box::new),
                    stop: None,
                    memory: MemoryGuard::None,
                    life: Life::Starting,
                };
                self.entries.entry(id.clone()).or_insert(entry);
            }
            Record::Started {
                id,
                pid,
                start_time,
                memory,
            } => {
                if let Some(entry) = self.starting(id) {
                    entry.memory = *memory;
                    entry.life = Life::Running {
                        pid: *pid,
                        start_time: *start_time,
                    };
                }
            }
            Record::Failed { id, failure } => {
                if let Some(entry) = self.starting(id) {
                    entry.life = Life::Failed(failure.clone());
                }
            }
            Record::Stop { id, order } => {
                if let Some(entry) = self.entries.get_mut(id) {
                    entry.stop = Some(Box::new(order.clone()));
                }
            }
            Record::Exit { id, exit } => {
                if let Some(entry) = self.entries.get_mut(id).filter(|entry| entry.lives()) {
                    entry.life = Life::Exited(exit.clone());
                }
            }
            Record::Forget { id } => drop(self.entries.remove(id)),
        }
    }

    /// Marks all processes of an earlier boot as ended.
    fn begin_boot(&mut self, boot: &str, at_ms: u64) {
        if self.boot == boot {
            return;
        }
        boot.clone_into(&mut self.boot);
        for entry in self.entries.values_mut().filter(|entry| entry.lives()) {
            entry.life = Life::Exited(Exit {
                end: End::Reboot,
                at_ms,
                stop: entry.stop.as_ref().map(|order| order.reason),
            });
        }
    }

    fn starting(&mut self, id: &StartId) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(id)?;
        matches!(entry.life, Life::Starting).then_some(entry)
    }

    fn lives(&self, id: &StartId) -> bool {
        self.entries.get(id).is_some_and(Entry::lives)
    }

    /// Restores a start's entry after a record that could not be stored.
    pub(crate) fn put_back(&mut self, id: StartId, before: Option<Entry>) {
        match before {
            Some(entry) => drop(self.entries.insert(id, entry)),
            None => drop(self.entries.remove(&id)),
        }
        self.living = self.entries.values().filter(|entry| entry.lives()).count();
    }

    /// Looks up the entry of a start.
    pub(crate) fn get(&self, id: &StartId) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// Returns the number of starts.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of processes that exist or are about to be started.
    pub(crate) fn living(&self) -> usize {
        self.living
    }

    /// Returns all starts in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&StartId, &Entry)> {
        self.entries.iter()
    }

    /// Returns the starts with ids after this one; all without one.
    pub(crate) fn after(&self, id: Option<&StartId>) -> impl Iterator<Item = (&StartId, &Entry)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = id.map_or(Unbounded, Excluded);
        self.entries.range::<StartId, _>((from, Unbounded))
    }

    /// Returns all starts with the uid of this one.
    pub(crate) fn starts_of<'a>(&'a self, id: &StartId) -> impl Iterator<Item = (&'a StartId, &'a Entry)> {
        let uid = id.uid().to_owned();
        let first = StartId::new(&uid, 0).unwrap_or_else(|_| id.clone());
        self.entries
            .range(first..)
            .take_while(move |(other, _)| *other.uid() == *uid)
    }

    /// Returns a start in the form that clients see.
    pub(crate) fn show(&self, id: &StartId, is_adopted: bool) -> Option<Process> {
        let entry = self.entries.get(id)?;
        let phase = match &entry.life {
            Life::Starting => Phase::Starting,
            Life::Running { pid, .. } => Phase::Running {
                pid: *pid,
                adopted: is_adopted,
            },
            Life::Failed(failure) => Phase::Failed(failure.clone()),
            Life::Exited(exit) => Phase::Exited(exit.clone()),
        };
        Some(Process {
            id: id.clone(),
            epoch: entry.epoch,
            started_at_ms: entry.at_ms,
            phase,
            stopping: entry.stop.as_ref().map(|order| order.reason),
            memory: entry.memory,
        })
    }

    /// Returns the records that yield this table: the content of a compacted journal after its head.
    pub(crate) fn records(&self) -> Vec<Record> {
        let mut records = vec![Record::Boot {
            boot: self.boot.clone(),
            at_ms: 0,
        }];
        if let Some((epoch, lifetime)) = self.epoch {
            records.push(Record::Epoch { epoch, lifetime });
            records.extend(self.epoch_is_over.then_some(Record::EpochOver { epoch }));
        }
        for (id, entry) in &self.entries {
            entry.records(id, &mut records);
        }
        records
    }
}

impl Entry {
    fn records(&self, id: &StartId, into: &mut Vec<Record>) {
        let id = id.clone();
        into.push(Record::Start {
            id: id.clone(),
            epoch: self.epoch,
            at_ms: self.at_ms,
            output: self.output.as_deref().cloned(),
        });
        let (pid, start_time) = match self.life {
            Life::Running { pid, start_time } => (Some(pid), start_time),
            // The pid is of no use any more; the record carries the guard.
            Life::Exited(_) if self.memory != MemoryGuard::None => (Some(0), 0),
            _ => (None, 0),
        };
        into.extend(pid.map(|pid| Record::Started {
            id: id.clone(),
            pid,
            start_time,
            memory: self.memory,
        }));
        into.extend(self.stop.as_deref().map(|order| Record::Stop {
            id: id.clone(),
            order: order.clone(),
        }));
        match &self.life {
            Life::Exited(exit) => into.push(Record::Exit {
                id,
                exit: exit.clone(),
            }),
            Life::Failed(failure) => into.push(Record::Failed {
                id,
                failure: failure.clone(),
            }),
            Life::Starting | Life::Running { .. } => {}
        }
    }
}
