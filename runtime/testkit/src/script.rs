//! Scripts of plays, generated from seeds.
//!
//! A script says what is tried in terms of places, not of what is there: putting a spec to a place creates or edits,
//! deleting an empty place does nothing. So any part of a script is a script, which is what shrinking needs.

use crate::roll::Roll;

/// Number of places for resources of the tested kind.
pub(super) const PLACES: usize = 3;

/// Number of places for given resources of each kind.
pub(super) const GIVENS: usize = 2;

/// Last await at which random plays interrupt an invocation.
const LAST_POINT: usize = 7;

/// Steps of a play, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) steps: Vec<Step>,
}

/// A step of a play: an action, with interruptions while it takes effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) action: Action,
    /// True if the outside fails during the step.
    pub(super) trouble: bool,
    /// Interruptions of the step, each counted from the one before.
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

/// A change to resources, processes or time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Creates or edits the resource in this place, with a spec generated from `seed`.
    Put {
        place: usize,
        seed: u64,
        refs: Vec<Named>,
    },
    /// Deletes the resource in this place.
    Delete { place: usize },
    /// Renames a resource to the name of another place, swapping names if that is taken. To its own place, only the
    /// case of the name changes.
    Rename { place: usize, to: usize },
    /// Gives a given resource another state, creating it if it is missing.
    Give { given: usize, seed: u64 },
    /// Makes a given resource fail.
    Fail { given: usize },
    /// Deletes a given resource.
    TakeAway { given: usize },
    /// Requests a reconcile.
    Ask { place: usize },
    /// Stops the process in order, at rest, and starts another one.
    Restart,
    /// Lets time pass.
    Wait { seconds: u64 },
}

/// Target of a ref in a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Named {
    /// A given resource, by its index.
    Given(usize),
    /// A resource of the tested kind, always in an earlier place.
    Place(usize),
}

/// An interruption of an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) at: Point,
    pub(super) how: How,
}

/// A point in an invocation; the first invocation that reaches it is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Point {
    /// After this many awaits; 0 is before the first poll.
    Await(usize),
    /// After the last poll, before the result is known.
    End,
    /// At the first commit after the invocation began; only for the death of its process.
    Commit {
        /// True if the commit becomes durable, although nobody learns of it.
        durable: bool,
    },
}

/// Way of an interruption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum How {
    /// Requests a reconcile, which cancels the invocation.
    Ask,
    /// Gives the resource another spec, which cancels the invocation.
    Edit { seed: u64 },
    /// Deletes the resource, which cancels the invocation.
    Delete,
    /// Renames the resource like [`Action::Rename`], which cancels the invocation.
    Rename { to: usize },
    /// Gives a given resource another state, which cancels invocations that read it.
    Give { given: usize, seed: u64 },
    /// Stops the process without waiting, which drops the invocation.
    Stop,
    /// Takes the lease away, so that nothing more is stored, and drops the invocation.
    Lose,
    /// Kills the process: nothing more happens in it, not even a drop.
    Crash,
    /// Freezes the process until another one has taken the lease, edited the spec and come to rest; then the first
    /// continues.
    Freeze { seed: u64 },
}

/// Resources that a kit's scripts may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cast {
    /// Number of given resources, of all kinds.
    pub(super) givens: usize,
    /// True if resources of the kind may read each other.
    pub(super) chained: bool,
    /// True if a former leader may still act.
    pub(super) fenced: bool,
}

impl Script {
    /// Generates a random script.
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
