//! Debouncing of nudges before the core sees them: the first counts at once, later ones after a pause, or after a long
//! wait.

use std::collections::{BTreeSet, HashMap, VecDeque};

use watershed_core::{Kind, KindOptions, Mono, Nudging, Uid};

/// Recent nudges of one resource.
#[derive(Debug, Clone, Copy)]
struct Nudged {
    nudging: Nudging,
    /// Time of the last accepted nudge.
    last: Mono,
    /// Arrival of the first waiting nudge, and the time at which it will be accepted; none if none waits.
    waiting: Option<(Mono, Mono)>,
}

impl Nudged {
    /// Returns true if the next nudge is accepted at once.
    fn rests(&self, now: Mono) -> bool {
        self.waiting.is_none() && now.since(self.last) >= self.nudging.interval
    }
}

/// Recent nudges of all resources. A resource is forgotten after its interval, which bounds the memory.
#[derive(Debug)]
pub(crate) struct Debouncer {
    kinds: HashMap<Kind, Nudging>,
    nudged: HashMap<Uid, Nudged>,
    /// Waiting nudges, in order of the time at which each is accepted.
    due: BTreeSet<(Mono, Uid)>,
    /// Resources with the time at which each may be forgotten, in the order of accepted nudges.
    forget: VecDeque<(Mono, Uid)>,
}

impl Debouncer {
    pub(crate) fn new(kinds: &[KindOptions]) -> Self {
        let kinds = kinds
            .iter()
            .map(|options| (options.kind.clone(), options.nudging));
        Self {
            kinds: kinds.collect(),
            nudged: HashMap::new(),
            due: BTreeSet::new(),
            forget: VecDeque::new(),
        }
    }

    /// Takes a nudge; returns true if it is accepted now. Otherwise [`take`](Self::take) returns it later.
    pub(crate) fn admit(&mut self, now: Mono, uid: Uid, kind: &Kind) -> bool {
        self.forget_old(now);
        let nudging = self.kinds.get(kind).copied().unwrap_or_default();
        let Some(nudged) = self.nudged.get_mut(&uid).filter(|nudged| !nudged.rests(now)) else {
            self.count(now, uid, nudging);
            return true;
        };
        let since = match nudged.waiting {
            None => now,
            Some((since, due)) => {
                self.due.remove(&(due, uid));
                since
            }
        };
        let due = now.after(nudging.interval).min(since.after(nudging.longest_wait));
        let due = due.max(nudged.last.after(nudging.interval));
        nudged.waiting = Some((since, due));
        self.due.insert((due, uid));
        false
    }

    /// Returns the time at which the next waiting nudge is accepted.
    pub(crate) fn due(&self) -> Option<Mono> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Takes a resource whose waiting nudge is due.
    pub(crate) fn take(&mut self, now: Mono) -> Option<Uid> {
        self.due().filter(|due| *due <= now)?;
        let (_, uid) = self.due.pop_first()?;
        let nudging = self.nudged.get(&uid).map(|nudged| nudged.nudging);
        self.count(now, uid, nudging.unwrap_or_default());
        Some(uid)
    }

    fn count(&mut self, now: Mono, uid: Uid, nudging: Nudging) {
        let nudged = Nudged {
            nudging,
            last: now,
            waiting: None,
        };
        self.nudged.insert(uid, nudged);
        self.forget.push_back((now.after(nudging.interval), uid));
    }

    fn forget_old(&mut self, now: Mono) {
        while let Some((at, uid)) = self.forget.front().copied()
            && at <= now
        {
            self.forget.pop_front();
            // One that waits, or has counted since, has another entry to come.
            if self.nudged.get(&uid).is_some_and(|nudged| nudged.rests(now)) {
                self.nudged.remove(&uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn debouncer() -> Debouncer {
        Debouncer::new(&[KindOptions::new("page")])
    }

    fn uid(number: u128) -> Uid {
        Uid(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn the_first_counts_at_once_and_those_within_an_interval_count_once() {
        let (mut debouncer, page) = (debouncer(), Kind::new("page"));
        assert!(debouncer.admit(Mono(0), uid(1), &page));
        assert!(!debouncer.admit(Mono(10), uid(1), &page));
        assert!(!debouncer.admit(Mono(20), uid(1), &page));
        assert!(
            debouncer.admit(Mono(20), uid(2), &page),
            "each resource by itself"
        );
        assert_eq!(debouncer.due(), Some(Mono(1_020)));
        assert_eq!(debouncer.take(Mono(1_019)), None);
        assert_eq!(debouncer.take(Mono(1_020)), Some(uid(1)));
        assert_eq!((debouncer.take(Mono(1_020)), debouncer.due()), (None, None));
        assert!(
            debouncer.admit(Mono(2_020), uid(1), &page),
            "its interval is over"
        );
    }

    #[test]
    fn one_that_never_pauses_counts_when_it_has_waited_for_long() {
        let (mut debouncer, page) = (debouncer(), Kind::new("page"));
        assert!(debouncer.admit(Mono(0), uid(1), &page));
        let mut now = Mono(0);
        while debouncer.take(now).is_none() {
            now = now.after(Duration::from_millis(500));
            assert!(!debouncer.admit(now, uid(1), &page));
        }
        assert_eq!(now, Mono(5_500), "5 s after the first that had to wait");
    }

    #[test]
    fn each_kind_has_its_own_interval() {
        let slow = KindOptions {
            nudging: Nudging {
                interval: Duration::from_secs(10),
                longest_wait: Duration::from_secs(20),
            },
            ..KindOptions::new("slow")
        };
        let (mut debouncer, slow) = (Debouncer::new(&[slow]), Kind::new("slow"));
        assert!(debouncer.admit(Mono(0), uid(1), &slow));
        assert!(!debouncer.admit(Mono(1), uid(1), &slow));
        assert_eq!(debouncer.due(), Some(Mono(10_001)));
    }

    #[test]
    fn what_is_nudged_no_more_is_forgotten() {
        let (mut debouncer, page) = (debouncer(), Kind::new("page"));
        for number in 0..100 {
            assert!(debouncer.admit(Mono(0), uid(number), &page));
        }
        assert!(!debouncer.admit(Mono(999), uid(7), &page));
        assert!(debouncer.admit(Mono(1_000), uid(1_000), &page));
        assert_eq!(
            (debouncer.nudged.len(), debouncer.forget.len()),
            (2, 1),
            "one waits, one is new"
        );
        assert_eq!(debouncer.take(Mono(1_999)), Some(uid(7)));
        assert!(debouncer.admit(Mono(9_000), uid(2_000), &page));
        assert_eq!((debouncer.nudged.len(), debouncer.forget.len()), (1, 1));
    }
}
