//! The script of a play, made from a seed.
//!
//! A script says what is tried in terms of places, not of what is there: putting a spec to a place creates or edits,
//! deleting an empty place does nothing. So any part of a script is a script, which is what shrinking needs.

use crate::roll::Roll;

/// Places for resources of the kind that is tested.
pub(super) const PLACES: usize = 3;

/// Places for given resources of each kind.
pub(super) const GIVENS: usize = 2;

/// The last point of an invocation at which random plays interrupt it.
const LAST_POINT: usize = 7;

/// A list of events, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) steps: Vec<Step>,
}

/// One thing that happens, and what comes in between while it is worked off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) action: Action,
    /// The outside fails meanwhile.
    pub(super) trouble: bool,
    /// Each counts from the one before.
    pub(super) cuts: Vec<Cut>,
}

impl From<Action> for Step {
    fn from(action: Action) -> Self {
        Self {
            action,
            trouble: false,
            cuts: Vec::new(),
        }
    }
}

/// An action on the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// A resource with a spec: created, or edited if it is there.
    Put {
        place: usize,
        seed: u64,
        refs: Vec<Named>,
    },
    /// A resource is deleted.
    Delete { place: usize },
    /// A resource gets the name of another place, and gives it its own if there is one. Onto itself, only the case of
    /// its name changes.
    Rename { place: usize, to: usize },
    /// A given resource gets another state; it is created if it is not there.
    Give { given: usize, seed: u64 },
    /// A given resource fails.
    Fail { given: usize },
    /// A given resource is deleted.
    TakeAway { given: usize },
    /// A reconcile is asked for.
    Ask { place: usize },
    /// The process stops in order, at rest, and another one starts.
    Restart,
    /// Time passes.
    Wait { seconds: u64 },
}

/// The target of a ref in a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Named {
    /// A given resource.
    Given(usize),
    /// A resource of the kind that is tested; always of an earlier place.
    Place(usize),
}

/// An invocation is interrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) at: Point,
    pub(super) how: How,
}

/// A point in the first invocation that gets there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Point {
    /// After so many waits; 0 is before it does anything.
    Await(usize),
    /// After it has done everything, before its end is known.
    End,
    /// At the first commit after it began: only for what dies there.
    Commit {
        /// The commit is durable, and nobody hears of it.
        durable: bool,
    },
}

/// By what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum How {
    /// A reconcile is asked for, which cancels it.
    Ask,
    /// Its resource gets another spec, which cancels it.
    Edit { seed: u64 },
    /// Its resource is deleted, which cancels it.
    Delete,
    /// Its resource is renamed, as by the action, which cancels it.
    Rename { to: usize },
    /// A given resource gets another state, which cancels it if it reads that.
    Give { given: usize, seed: u64 },
    /// The process is told to stop and does not wait: it is dropped where it stands.
    Stop,
    /// The lease is lost: nothing more is stored, and it is dropped where it stands.
    Lose,
    /// The process dies: nothing more happens in it, not even a drop.
    Crash,
    /// The process stands still; another one takes the lease, gets another spec and comes to rest; then the first
    /// goes on.
    Freeze { seed: u64 },
}

/// The resources that a kit's scripts may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cast {
    /// The number of given resources.
    pub(super) givens: usize,
    /// True if resources of the kind read one another.
    pub(super) chained: bool,
    /// True if a holder of yesterday may still act.
    pub(super) fenced: bool,
}

impl Script {
    /// A random one.
    pub(super) fn random(seed: u64, cast: Cast) -> Self {
        let mut roll = Roll::seeded(seed);
        let count = 3 + roll.index(9);
        let mut steps = Vec::with_capacity(count + cast.givens);
        for given in 0..cast.givens {
            steps.push(
                Action::Give {
                    given,
                    seed: roll.any(),
                }
                .into(),
            );
        }
        steps.extend((0..count).map(|_| Step::random(&mut roll, cast)));
        Self { steps }
    }
}

impl Step {
    fn random(roll: &mut Roll, cast: Cast) -> Self {
        let cuts = [0, 0, 1, 1, 1, 2, 2, 3][roll.index(8)];
        Self {
            action: Action::random(roll, cast),
            trouble: roll.percent(8),
            cuts: (0..cuts).map(|_| Cut::random(roll, cast)).collect(),
        }
    }
}

impl Action {
    fn random(roll: &mut Roll, cast: Cast) -> Self {
        let place = roll.index(PLACES);
        match roll.below(20) {
            0..7 => Self::put(place, roll, cast),
            7..9 => Action::Delete { place },
            9..11 => Action::Rename {
                place,
                to: roll.index(PLACES),
            },
            11..15 if cast.givens > 0 => Self::given(roll, cast),
            11..16 => Action::Ask { place },
            16 => Action::Restart,
            _ => Action::Wait {
                seconds: [1, 7, 60, 600][roll.index(4)],
            },
        }
    }

    fn put(place: usize, roll: &mut Roll, cast: Cast) -> Self {
        let mut refs = Vec::new();
        refs.extend((0..cast.givens).map(Named::Given));
        if cast.chained {
            refs.extend((0..place).map(Named::Place));
        }
        refs.retain(|_| roll.percent(60));
        Action::Put {
            place,
            seed: roll.any(),
            refs,
        }
    }

    fn given(roll: &mut Roll, cast: Cast) -> Self {
        let given = roll.index(cast.givens);
        match roll.below(6) {
            0 => Action::Fail { given },
            1 => Action::TakeAway { given },
            _ => Action::Give {
                given,
                seed: roll.any(),
            },
        }
    }
}

impl Cut {
    fn random(roll: &mut Roll, cast: Cast) -> Self {
        let how = match roll.below(12) {
            10 => How::Delete,
            11 => How::Rename {
                to: roll.index(PLACES),
            },
            0 | 1 => How::Ask,
            2 | 3 => How::Edit { seed: roll.any() },
            4 if cast.givens > 0 => How::Give {
                given: roll.index(cast.givens),
                seed: roll.any(),
            },
            4 | 5 => How::Stop,
            6 => How::Lose,
            7 if cast.fenced => How::Freeze { seed: roll.any() },
            _ => How::Crash,
        };
        let at = match roll.below(10) {
            0 | 1 if how == How::Crash => Point::Commit {
                durable: roll.percent(50),
            },
            0..3 => Point::End,
            _ => Point::Await(roll.index(LAST_POINT)),
        };
        Self { at, how }
    }
}
