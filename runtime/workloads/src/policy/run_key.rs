//! Run keys, by which a job knows the runs that it has made (rule W8).

use std::fmt;

use serde::{Deserialize, Serialize};
use watershed_core::Timestamp;

/// The identity of a job's run, a hash of all its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunKey([u8; 16]);

/// The cause of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A request of a person or program: the number of requests so far. 0 for the first run of a job without a
    /// schedule.
    Refresh(u64),
    /// A tick of the schedule, given by its scheduled time.
    Scheduled(Timestamp),
}

/// The version of a resource that a job may have read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// State version, for kinds without a better identity.
    State(u64),
    /// Identity of the last build or run, unaffected by checks that change nothing.
    Made(Vec<u8>),
}

/// A ref as part of a run key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ref<'a> {
    /// Uid of the resource that the job refers to.
    pub uid: &'a [u8],
    /// Version of the resource.
    pub standing: &'a Standing,
    /// True for a service, which is left out of the key: a service's restart triggers no run.
    pub is_service: bool,
}

impl RunKey {
    /// Computes the key of a run from the job's meaning, refs and trigger (W8).
    ///
    /// `meaning` is the spec in an encoding in which equal meanings have equal bytes, without policies (timeout,
    /// retries, success codes, schedule, logs). The order of refs does not matter.
    pub fn new(meaning: &[u8], refs: &[Ref<'_>], trigger: Trigger) -> Self {
        let mut refs: Vec<_> = refs.iter().filter(|one| !one.is_service).collect();
        refs.sort_unstable();
        refs.dedup();
        let mut hasher = blake3::Hasher::new_derive_key("watershed 2026 run key of a job");
        part(&mut hasher, meaning);
        hasher.update(&count(refs.len()));
        for one in refs {
            match one.standing {
                Standing::State(version) => {
                    part(&mut hasher, one.uid);
                    hasher.update(&version.to_le_bytes());
                }
                // Longer than any uid, so it stands for no other one.
                Standing::Made(made) => part(&mut hasher, &[one.uid, b" made ", made].concat()),
            }
        }
        match trigger {
            Trigger::Refresh(count) => hasher.update(&[0]).update(&count.to_le_bytes()),
            Trigger::Scheduled(time) => hasher.update(&[1]).update(&time.0.to_le_bytes()),
        };
        let mut key = [0; 16];
        hasher.finalize_xof().fill(&mut key);
        Self(key)
    }
}

/// Adds bytes with their length in front, so that different lists of parts never have equal bytes.
fn part(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&count(bytes.len())).update(bytes);
}

fn count(length: usize) -> [u8; 8] {
    u64::try_from(length).unwrap_or(u64::MAX).to_le_bytes()
}

impl RunKey {
    /// Returns the key as bytes.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The decision about a wanted run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// No action: the run has finished, successfully or not.
    Finished,
    /// Adopt the living process of the run.
    Adopt,
    /// Stop the living process of another run, then start.
    Replace,
    /// Start the run.
    Start,
}

/// Decides about a run from the last finished key and the key of the living process (W8).
///
/// A finished key never runs again, whatever restarts or is edited; a process that lives on after its key was finished
/// is one that is being stopped.
pub fn decide(wanted: RunKey, finished: Option<RunKey>, living: Option<RunKey>) -> Decision {
    match living {
        _ if finished == Some(wanted) => Decision::Finished,
        None => Decision::Start,
        Some(living) if living == wanted => Decision::Adopt,
        Some(_) => Decision::Replace,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use Standing::{Made, State};

    fn of<'a>(uid: &'a [u8], standing: &'a Standing) -> Ref<'a> {
        Ref {
            uid,
            standing,
            is_service: false,
        }
    }

    /// Covers W8: the inputs of a key.
    #[test]
    fn keys_differ_by_meaning_refs_and_trigger_and_by_nothing_else() {
        let refresh = Trigger::Refresh(0);
        let [one, two, nine, made, other] = [State(1), State(2), State(9), Made(vec![1]), Made(vec![2])];
        let service = |standing| Ref {
            is_service: true,
            ..of(b"s", standing)
        };
        let key = RunKey::new(b"spec", &[of(b"a", &one), of(b"b", &two)], refresh);
        for (meaning, refs, trigger) in [
            (&b"spec"[..], &[of(b"a", &one), of(b"b", &two)][..], refresh),
            (b"spec", &[of(b"b", &two), of(b"a", &one)], refresh),
            (
                b"spec",
                &[of(b"b", &two), of(b"a", &one), of(b"a", &one)],
                refresh,
            ),
            (b"spec", &[of(b"a", &one), service(&one), of(b"b", &two)], refresh),
            (
                b"spec",
                &[of(b"a", &one), of(b"b", &two), service(&nine)],
                refresh,
            ),
        ] {
            assert_eq!(RunKey::new(meaning, refs, trigger), key, "{refs:?}");
        }
        let both = [of(b"a", &one), of(b"b", &two)];
        let others = [
            (&b"spec2"[..], &both[..], refresh),
            (b"", &both, refresh),
            (b"spec", &[of(b"a", &two), of(b"b", &two)], refresh),
            (b"spec", &[of(b"a", &two), of(b"b", &one)], refresh),
            (b"spec", &[of(b"ab", &one), of(b"", &two)], refresh),
            (b"spec", &[of(b"a", &one)], refresh),
            (b"spec", &[of(b"a", &made)], refresh),
            (b"spec", &[of(b"a", &other)], refresh),
            (b"spec", &[], refresh),
            (b"spec", &both, Trigger::Refresh(1)),
            (b"spec", &both, Trigger::Scheduled(Timestamp(0))),
            (b"spec", &both, Trigger::Scheduled(Timestamp(1))),
        ];
        let keys: std::collections::BTreeSet<RunKey> = others
            .iter()
            .map(|(meaning, refs, trigger)| RunKey::new(meaning, refs, *trigger))
            .collect();
        assert_eq!(keys.len(), others.len());
        assert!(!keys.contains(&key));
        assert_eq!(key.to_string().len(), 32);
    }

    /// Covers W8: decisions by the finished and the living run.
    #[test]
    fn a_finished_key_never_runs_again_and_a_process_of_another_one_is_replaced() {
        let [one, other] = [1, 2].map(|byte| RunKey([byte; 16]));
        for (finished, living, expected) in [
            (None, None, Decision::Start),
            (None, Some(one), Decision::Adopt),
            (None, Some(other), Decision::Replace),
            (Some(other), None, Decision::Start),
            (Some(other), Some(one), Decision::Adopt),
            (Some(other), Some(other), Decision::Replace),
            (Some(one), None, Decision::Finished),
            (Some(one), Some(one), Decision::Finished),
            (Some(one), Some(other), Decision::Finished),
        ] {
            assert_eq!(decide(one, finished, living), expected, "{finished:?} {living:?}");
        }
    }
}
