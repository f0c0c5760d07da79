//! Replicas of services, whose failures their services report.

use std::collections::HashMap;

use watershed_controller::Resource;
use watershed_core::{Row, Uid};
use watershed_workloads::replica::{self, ReplicaRecord, ReplicaSpec};
use watershed_workloads::service::{self, ServiceRecord, Trouble};

use super::Entry;

/// The replicas of all services in one reading of the catalog.
pub(crate) struct Copies<'a>(HashMap<Uid, Vec<&'a Row>>);

impl<'a> Copies<'a> {
    /// Groups all replicas by their service, in one pass.
    pub(crate) fn of(entries: &'a [Entry]) -> Self {
        let mut by_owner: HashMap<Uid, Vec<&Row>> = HashMap::new();
        let rows = entries.iter().map(|entry| entry.row.as_ref());
        for row in rows.filter(|row| row.kind.as_str() == replica::KIND && !row.intents.is_deleted()) {
            if let Some(owner) = row.owner {
                by_owner.entry(owner).or_default().push(row);
            }
        }
        Self(by_owner)
    }

    /// Returns the replicas of a service.
    pub(crate) fn of_service(&self, service: &Row) -> &[&'a Row] {
        self.0.get(&service.uid).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the trouble of the service's replica that is worst off; none for other kinds and deleted services.
    pub(crate) fn trouble(&self, service: &Row) -> Option<Trouble> {
        if service.kind.as_str() != service::KIND || service.intents.is_deleted() {
            return None;
        }
        let record = Resource::state_of::<ServiceRecord>(service).ok().flatten()?;
        let read = |row: &&Row| {
            let spec = Resource::spec_of::<ReplicaSpec>(row).ok()?;
            let record = Resource::state_of::<ReplicaRecord>(row).ok().flatten();
            Some((spec, record.unwrap_or_default()))
        };
        let copies = self.of_service(service).iter().filter_map(read);
        let copies: Vec<(ReplicaSpec, ReplicaRecord)> = copies.collect();
        service::trouble(&record, copies.iter().map(|(spec, record)| (spec, record)))
    }
}
