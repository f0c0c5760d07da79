//! Systematic scripts, which come before random ones: each phase of a resource's life, interrupted in each way at each
//! of its points.

use crate::script::{Action, Cast, Cut, How, Named, Point, Script, Step};

/// Number of seeds reserved for systematic scripts; higher seeds are random.
pub(super) const SEEDS: u64 = 3_000;

/// Maximum number of awaits at which an invocation is interrupted, in order until one is not reached.
const AWAITS: u64 = 24;

/// Number of points per series: the awaits, the end, and a commit before and after it is durable.
const POINTS: u64 = AWAITS + 3;

/// Number of phases of a resource's life that are interrupted.
const PHASES: u64 = 8;

/// Number of ways: no interruption, each way to interrupt, and a failing outside.
const WAYS: u64 = 11;

/// Index of the way with a failing outside.
const TROUBLE: u64 = WAYS - 1;

/// Returns the series of a systematic seed: one phase, one way; none for other seeds.
///
/// Once a point of a series was not reached, the later ones are not there either.
pub(super) fn series(seed: u64) -> Option<u64> {
    let (series, point) = (seed / POINTS, seed % POINTS);
    (seed < SEEDS && point < AWAITS).then_some(series)
}

/// Returns the script of a systematic seed; none if this kit has none.
pub(super) fn script(seed: u64, cast: Cast) -> Option<Script> {
    let (series, point) = (seed / POINTS, seed % POINTS);
    // The mildest ways first, so that a fault is met by the least that shows it.
    let (way, phase) = (series / PHASES, series % PHASES);
    let mut steps = phase_of(phase, cast)?;
    let last = steps.last_mut()?;
    match (way, point) {
        (0, 0) => {}
        (TROUBLE, 0) => last.trouble = true,
        (0 | TROUBLE.., _) => return None,
        _ => last.cuts = cuts(way, point, cast)?,
    }
    Some(Script { steps })
}

/// Returns the steps that lead to a phase; the last one is the phase itself.
fn phase_of(phase: u64, cast: Cast) -> Option<Vec<Step>> {
    let refs: Vec<Named> = (0..cast.givens).map(Named::Given).collect();
    let put = |seed| {
        let refs = refs.clone();
        Action::Put { place: 0, seed, refs }.into()
    };
    let other = || {
        let refs = refs.clone();
        Action::Put {
            place: 1,
            seed: 5,
            refs,
        }
        .into()
    };
    let give = |given, seed| Action::Give { given, seed }.into();
    let mut steps: Vec<Step> = (0..cast.givens).map(|given| give(given, 1)).collect();
    steps.push(put(1));
    match phase {
        0 => {}
        // Other seeds need not make another spec; three of them seldom make one.
        1 => steps.extend([put(2), put(3)]),
        2 => steps.push(Action::Rename { place: 0, to: 1 }.into()),
        3 => steps.push(Action::Delete { place: 0 }.into()),
        4 => steps.push(Action::Wait { seconds: 600 }.into()),
        6 if cast.givens > 0 => steps.extend([give(0, 2), give(0, 3)]),
        // Two that swap their names.
        5 => steps.extend([other(), Action::Rename { place: 0, to: 1 }.into()]),
        7 if cast.givens > 0 => steps.extend([Action::TakeAway { given: 0 }.into(), give(0, 2)]),
        _ => return None,
    }
    Some(steps)
}

fn cuts(way: u64, point: u64, cast: Cast) -> Option<Vec<Cut>> {
    let how = match way {
        1 => How::Ask,
        2 => How::Edit { seed: 4 },
        3 | 9 => How::Delete,
        4 => How::Rename { to: 2 },
        5 => How::Stop,
        6 => How::Lose,
        7 => How::Crash,
        8 if cast.fenced => How::Freeze { seed: 4 },
        _ => return None,
    };
    let at = match point {
        0..AWAITS => Point::Await(point as usize),
        AWAITS => Point::End,
        _ if how == How::Crash => Point::Commit {
            durable: point == POINTS - 1,
        },
        _ => return None,
    };
    let mut cuts = vec![Cut { at, how }];
    if way == 9 {
        // What was deleted in the middle does not come to its end either.
        let at = Point::Await(point as usize + 1);
        cuts.push(Cut { at, how: How::Crash });
    }
    Some(cuts)
}
