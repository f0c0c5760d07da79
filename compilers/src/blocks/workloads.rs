//! Settings of all jobs and services together, in a manifest.

use crate::yaml::{Fields, keys::blocks};

blocks! {
    /// Keys of the block `workloads`.
    pub(crate) static WORKLOADS = "workloads" Refused {
        "interval": Duration, "The time between two looks at all processes; `0s` for none.";
        "jobs_at_once": Count, "The most jobs that run at once.";
    }
}

/// Settings of all jobs and services, as far as they are said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkloadSettings {
    /// The time between two scans, in milliseconds.
    pub interval_ms: Option<u64>,
    /// The most jobs that run at once.
    pub jobs_at_once: Option<u32>,
}

/// Takes the block `workloads`.
pub(crate) fn take(fields: &mut Fields<'_>) -> WorkloadSettings {
    let Some((map, at)) = fields.map("workloads") else {
        return WorkloadSettings::default();
    };
    let mut block = Fields::new(map, at, fields.findings());
    let settings = WorkloadSettings {
        interval_ms: block.milliseconds("interval"),
        jobs_at_once: block.count("jobs_at_once"),
    };
    block.finish(&WORKLOADS);
    settings
}
