//! Settings in a manifest for all jobs and services.

use crate::yaml::{
    Fields,
    bounds::{self, Counts},
    keys::blocks,
};

blocks! {
    /// Keys of the block `workloads`.
    pub(crate) static WORKLOADS = "workloads" Refused {
        "interval": Duration, "The time between two looks at all processes; `0s` for none.";
        "jobs_at_once": Count, "The most jobs that run at once.";
    }
}

/// Settings for all jobs and services; unset ones are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkloadSettings {
    /// The interval between two scans of all processes, in milliseconds; 0 for no scans.
    pub interval_ms: Option<u64>,
    /// The largest number of jobs that run at once.
    pub jobs_at_once: Option<u32>,
}

/// The bounds of the number of jobs that run at once.
const JOBS: Counts = Counts {
    least: 1,
    most: 1_000,
};
/// The shortest interval between two scans of all processes, in milliseconds.
const LEAST_INTERVAL_MS: u64 = 100;

/// Takes the interval between two scans, in milliseconds; 0 for no scans.
fn interval(block: &mut Fields<'_>) -> Option<u64> {
    let entry = block.take("interval")?;
    let is_off = entry
        .value
        .scalar_text()
        .is_some_and(|text| crate::text::duration::milliseconds(&text) == Some(0));
    if is_off {
        return Some(0);
    }
    block.put_back("interval", entry);
    bounds::milliseconds(
        block,
        "interval",
        LEAST_INTERVAL_MS,
        "`0s` is for none: what happens is told all the same",
    )
}

/// Takes the block `workloads`.
pub(crate) fn take(fields: &mut Fields<'_>) -> WorkloadSettings {
    let Some((map, at)) = fields.map("workloads") else {
        return WorkloadSettings::default();
    };
    let mut block = Fields::new(map, at, fields.findings());
    let settings = WorkloadSettings {
        interval_ms: interval(&mut block),
        jobs_at_once: bounds::count(&mut block, "jobs_at_once", JOBS),
    };
    block.finish(&WORKLOADS);
    settings
}
