use std::collections::{BTreeSet, VecDeque};

use super::*;

const OLD: u64 = 1;
const NEW: u64 = 2;

use Availability::{Completed, Ready, Stopping, Unready};

fn bounds(replicas: u32, surge: u32, unavailable: u32) -> Bounds {
    Bounds {
        replicas,
        surge,
        unavailable,
    }
}

/// Parses replicas from text: `oOxp` are unready, ready, stopping and completed replicas of the old release, `nNyq` of
/// the new one, `dDz` of a discarded release in between. Numbers ascend from 0.
fn replicas(text: &str) -> Vec<Replica> {
    let of = |sign| match sign {
        'o' => (OLD, Unready),
        'O' => (OLD, Ready),
        'x' => (OLD, Stopping),
        'p' => (OLD, Completed),
        'n' => (NEW, Unready),
        'N' => (NEW, Ready),
        'y' => (NEW, Stopping),
        'q' => (NEW, Completed),
        'd' => (9, Unready),
        'D' => (9, Ready),
        'z' => (9, Stopping),
        _ => panic!("`{sign}` is no replica"),
    };
    (0..)
        .zip(text.chars().map(of))
        .map(|(number, (release, availability))| Replica {
            number,
            release,
            availability,
        })
        .collect()
}

/// W11: by the bounds and what is there.
#[test]
fn a_step_starts_and_stops_what_the_bounds_allow() {
    for (bounds, there, start, stop, complete) in [
        // The defaults: one more, none less.
        (bounds(3, 1, 0), "OOO", 1, &[][..], false),
        (bounds(3, 1, 0), "OOOn", 0, &[], false),
        (bounds(3, 1, 0), "OOON", 0, &[2], false),
        (bounds(3, 1, 0), "OOxN", 0, &[], false),
        (bounds(3, 1, 0), "OON", 1, &[], false),
        (bounds(3, 1, 0), "ONN", 1, &[], false),
        (bounds(3, 1, 0), "ONNN", 0, &[0], false),
        (bounds(3, 1, 0), "xNNN", 0, &[], true),
        (bounds(3, 1, 0), "NNN", 0, &[], true),
        (bounds(3, 1, 0), "NNn", 0, &[], false),
        // Unready ones of the old release go first, and none while they may be needed.
        (bounds(3, 1, 0), "oOO", 1, &[], false),
        (bounds(3, 1, 0), "oOON", 0, &[0], false),
        (bounds(3, 1, 0), "ooo", 1, &[], false),
        // More room.
        (bounds(3, 3, 0), "OOO", 3, &[], false),
        (bounds(3, 3, 0), "OOONNn", 0, &[2, 1], false),
        (bounds(3, 0, 1), "OOO", 0, &[2], false),
        (bounds(3, 0, 1), "OOx", 0, &[], false),
        (bounds(3, 0, 1), "OO", 1, &[], false),
        (bounds(3, 0, 1), "oOO", 0, &[0], false),
        (bounds(3, 1, 1), "OOO", 1, &[2], false),
        (bounds(3, 0, 3), "OOO", 0, &[2, 1, 0], false),
        (bounds(1, 0, 1), "O", 0, &[0], false),
        // With neither, one more.
        (bounds(2, 0, 0), "OO", 1, &[], false),
        // A discarded candidate goes before what is active.
        (bounds(2, 2, 0), "ODNn", 0, &[1], false),
        (bounds(2, 2, 0), "OdNn", 0, &[1], false),
        // One that was discarded and serves nobody goes, whatever became of the others.
        (bounds(1, 1, 0), "od", 0, &[1], false),
        (bounds(2, 2, 0), "ooddn", 0, &[2, 3], false),
        // What is completed has come as far as it can, and stands for nothing that is needed.
        (bounds(2, 1, 0), "Oq", 1, &[], false),
        (bounds(2, 1, 0), "OOq", 0, &[1], false),
        (bounds(2, 1, 0), "qq", 0, &[], true),
        (bounds(2, 1, 0), "Nq", 0, &[], true),
        (bounds(2, 1, 0), "pp", 1, &[0, 1], false),
        (bounds(2, 1, 0), "pO", 1, &[0], false),
        // Scaled meanwhile.
        (bounds(1, 1, 0), "OONN", 0, &[3, 1, 0], false),
        (bounds(0, 1, 0), "ON", 0, &[1, 0], false),
        (bounds(0, 1, 0), "", 0, &[], true),
    ] {
        let plan = converge(bounds, NEW, OLD, &replicas(there));
        let expected = Plan {
            start,
            stop: stop.to_vec(),
            complete,
        };
        assert_eq!(plan, expected, "{bounds:?} {there}");
    }
}

/// W11: a candidate that has failed is removed, also where the release before it serves nobody.
#[test]
fn what_is_left_of_a_failed_candidate_goes_unless_it_serves() {
    for (count, there, start, stop) in [
        (1, "on", 0, &[1][..]),
        (1, "On", 0, &[1]),
        (1, "oN", 0, &[]),
        (1, "ON", 0, &[1]),
        (3, "oonNn", 0, &[2, 4]),
        (3, "OOoNn", 0, &[4]),
        (1, "qo", 0, &[0]),
    ] {
        let plan = converge(bounds(count, 1, 0), OLD, OLD, &replicas(there));
        assert_eq!((plan.start, &plan.stop[..]), (start, stop), "{count} {there}");
    }
}

/// Covers rule W12.
#[test]
fn scaling_starts_all_missing_and_stops_the_newest_at_once() {
    for (count, there, start, stop) in [
        (5, "", 5, &[][..]),
        (5, "NN", 3, &[]),
        (5, "nn", 3, &[]),
        (2, "NNNNN", 0, &[4, 3, 2]),
        (2, "nNNNN", 0, &[4, 3, 2]),
        (0, "NnN", 0, &[2, 1, 0]),
        (2, "NNyyy", 0, &[]),
        (3, "NNy", 1, &[]),
    ] {
        let plan = converge(bounds(count, 1, 0), NEW, NEW, &replicas(there));
        assert_eq!((plan.start, &plan.stop[..]), (start, stop), "{count} {there}");
    }
}

/// Covers rule W11.
#[test]
fn a_replacement_stops_all_others_and_starts_when_they_are_gone() {
    for (count, there, start, stop, complete) in [
        (2, "OO", 0, &[0, 1][..], false),
        (2, "Ox", 0, &[0], false),
        (2, "xx", 0, &[], false),
        (2, "", 2, &[], false),
        (2, "n", 1, &[], false),
        (2, "nN", 0, &[], false),
        (2, "NN", 0, &[], true),
        (1, "NN", 0, &[1], false),
        (2, "NNO", 0, &[2], false),
    ] {
        let expected = Plan {
            start,
            stop: stop.to_vec(),
            complete,
        };
        assert_eq!(replace(count, NEW, &replicas(there)), expected, "{count} {there}");
    }
}

/// Covers rule W11.
#[test]
fn a_release_is_replaced_at_once_for_the_first_reason_that_applies() {
    for (force, checks, port, expected) in [
        (true, true, true, Some("force")),
        (true, true, false, Some("force")),
        (true, false, true, Some("force")),
        (true, false, false, Some("force")),
        (false, false, true, Some("no_health_checks")),
        (false, false, false, Some("no_health_checks")),
        (false, true, true, Some("fixed_port")),
        (false, true, false, None),
    ] {
        let found = match manner(force, checks, port) {
            Manner::Rolling => None,
            Manner::Replace(forced) => Some(forced.as_str()),
        };
        assert_eq!(found, expected, "{force} {checks} {port}");
    }
}

/// Covers rule W11.
#[test]
fn only_what_goes_beyond_the_furthest_point_is_progress() {
    let begun = Progress::begin(NEW, &replicas("OOO"), Timestamp(0));
    let mut progress = begun;
    for (there, at, last) in [
        ("OOOn", 10, 0),
        ("OOON", 20, 20),
        ("OOOn", 30, 20),
        ("OOON", 40, 20),
        ("OOxN", 50, 50),
        ("OONN", 60, 60),
        ("OOON", 70, 60),
    ] {
        progress = progress.with(NEW, &replicas(there), Timestamp(at));
        assert_eq!(progress.at, Timestamp(last), "{there} {at}");
    }
    let judge = |action, now| {
        let [period, deadline] = [1, 2].map(Duration::from_secs);
        begun.deadline(period, deadline, action, Timestamp(now))
    };
    for (action, now, expected) in [
        (OnDeadline::Fail, 2_999, Deadline::Until(Timestamp(3_000))),
        (OnDeadline::Force, 2_999, Deadline::Until(Timestamp(3_000))),
        (OnDeadline::Fail, 3_000, Deadline::RollBack),
        (OnDeadline::Force, 3_000, Deadline::Drain),
    ] {
        assert_eq!(judge(action, now), expected, "{action:?} {now}");
    }
}

/// The crashes that a search includes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Crashes {
    None,
    Any,
}

/// A state in a search: sorted availabilities of each release, and the target.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct State {
    old: Vec<Availability>,
    new: Vec<Availability>,
    target: u64,
}

impl State {
    fn replicas(&self) -> Vec<Replica> {
        let old = self.old.iter().map(|availability| (OLD, *availability));
        let new = self.new.iter().map(|availability| (NEW, *availability));
        (0..)
            .zip(old.chain(new))
            .map(|(number, (release, availability))| Replica {
                number,
                release,
                availability,
            })
            .collect()
    }

    fn of(mut replicas: Vec<Replica>, target: u64) -> Self {
        replicas.sort_unstable_by_key(|one| (one.release, one.availability));
        let standings = |release| {
            let of_it = replicas.iter().filter(|one| one.release == release);
            of_it.map(|one| one.availability).collect()
        };
        Self {
            old: standings(OLD),
            new: standings(NEW),
            target,
        }
    }

    fn ready(&self) -> u32 {
        let all = self.old.iter().chain(&self.new);
        all.filter(|availability| **availability == Ready).count() as u32
    }

    /// Performs one step and checks the bounds.
    fn step(&self, bounds: Bounds) -> Self {
        let mut there = self.replicas();
        let plan = converge(bounds, self.target, OLD, &there);
        for replica in &mut there {
            if plan.stop.contains(&replica.number) {
                assert_ne!(replica.availability, Stopping, "{self:?} is stopped once");
                replica.availability = Stopping;
            }
        }
        for _ in 0..plan.start {
            there.push(Replica {
                number: 0,
                release: self.target,
                availability: Unready,
            });
        }
        let is_useless = |one: &Replica| {
            let is_left = one.release == NEW && one.availability == Unready;
            self.target == OLD && is_left || one.release != self.target && one.availability == Completed
        };
        assert!(
            !there.iter().any(is_useless),
            "{bounds:?} {self:?} {plan:?}: a step leaves what is of no use"
        );
        let after = Self::of(there, self.target);
        let target = if self.target == NEW { &self.new } else { &self.old };
        let completed = target.iter().filter(|one| **one == Completed).count() as u32;
        let floor = bounds.needed().saturating_sub(completed).min(self.ready());
        assert!(
            after.ready() >= floor,
            "{bounds:?} {self:?} {plan:?}: a step takes away what is needed"
        );
        let count = (after.old.len() + after.new.len()) as u32;
        let before = (self.old.len() + self.new.len()) as u32;
        assert!(
            count <= bounds.most().max(before),
            "{bounds:?} {self:?} {plan:?}: a step starts too many"
        );
        after
    }

    /// Returns all states after one event: a replica becomes ready, crashes or is gone, or the deadline passes.
    fn events(&self, crashes: Crashes) -> Vec<Self> {
        let mut after = Vec::new();
        if self.target == NEW {
            after.push(Self {
                target: OLD,
                ..self.clone()
            });
        }
        let there = self.replicas();
        for at in 0..there.len() {
            let mut changed = there.clone();
            match there[at].availability {
                Unready => changed[at].availability = Ready,
                Ready if crashes == Crashes::Any => {
                    let mut completed = there.clone();
                    completed[at].availability = Completed;
                    after.push(Self::of(completed, self.target));
                    changed[at].availability = Unready;
                }
                Ready | Completed => continue,
                Stopping => drop(changed.remove(at)),
            }
            after.push(Self::of(changed, self.target));
        }
        after
    }

    /// Lets all replicas become ready and all stops finish, until nothing changes.
    fn at_rest(&self, bounds: Bounds) -> Self {
        let mut state = self.clone();
        for _ in 0..40 {
            let mut there = state.step(bounds).replicas();
            there.retain(|one| one.availability != Stopping);
            for one in there.iter_mut().filter(|one| one.availability != Completed) {
                one.availability = Ready;
            }
            let next = Self::of(there, state.target);
            if next == state {
                return state;
            }
            state = next;
        }
        panic!("{bounds:?} {self:?} comes to no rest");
    }
}

/// Explores all states of a rollout with these bounds; returns their number.
fn search(bounds: Bounds, crashes: Crashes) -> usize {
    let count = bounds.replicas as usize;
    let first = State {
        old: vec![Ready; count],
        new: Vec::new(),
        target: NEW,
    };
    let mut seen = BTreeSet::from([first.clone()]);
    let mut open = VecDeque::from([first]);
    while let Some(state) = open.pop_front() {
        let stepped = state.step(bounds);
        if crashes == Crashes::None {
            let ready = state.ready().min(stepped.ready());
            assert!(
                ready >= bounds.needed(),
                "{bounds:?} {state:?}: too few ready without a crash"
            );
        }
        let rest = state.at_rest(bounds);
        let (all, none) = match state.target {
            NEW => (&rest.new, &rest.old),
            _ => (&rest.old, &rest.new),
        };
        assert!(
            none.is_empty() && all.len() == count && all.iter().all(|one| one.is_done()),
            "{bounds:?} {state:?}"
        );
        assert!(converge(bounds, state.target, OLD, &rest.replicas()).complete);
        // A pass may come after each event, or only after several of them.
        let next = state.events(crashes).into_iter().chain([stepped]);
        open.extend(next.filter(|next| seen.insert(next.clone())));
    }
    seen.len()
}

/// W11: never fewer ready than `replicas - unavailable` while rolling; at rest the active release has all replicas.
#[test]
fn all_orders_of_ready_crash_and_deadline_keep_the_bounds_and_end_with_all_replicas() {
    let mut states = 0;
    for replicas in 1..=3 {
        for surge in 0..=3 {
            for unavailable in 0..=replicas {
                for crashes in [Crashes::None, Crashes::Any] {
                    states += search(bounds(replicas, surge, unavailable), crashes);
                }
            }
        }
    }
    assert!(states > 5_000, "{states}");
}
