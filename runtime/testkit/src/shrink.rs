//! Shrinking of a failed play to a minimal one, from which the fault is named.

use crate::fault::{Fault, What};
use crate::script::{Action, Cut, How, Named, PLACES, Point, Script, Step};

/// Maximum number of plays for shrinking: more than short scripts need, few enough that nobody waits.
const ATTEMPTS: usize = 600;

/// Returns the shortest script found that still fails in the same way: no step can be left out.
pub(super) fn shrink(script: Script, mut fails: impl FnMut(&Script) -> bool) -> Script {
    let mut script = script;
    let mut attempts = 0;
    'again: loop {
        for simpler in simpler(&script) {
            attempts += 1;
            if attempts > ATTEMPTS {
                return script;
            }
            if fails(&simpler) {
                script = simpler;
                continue 'again;
            }
        }
        return script;
    }
}

/// Returns slightly simpler scripts, simplest first.
fn simpler(script: &Script) -> Vec<Script> {
    let mut all = Vec::new();
    let count = script.steps.len();
    if count > 3 {
        all.push(without(script, 0..count / 2));
        all.push(without(script, count / 2..count));
    }
    all.extend((0..count).rev().map(|at| without(script, at..at + 1)));
    all.extend((0..count).flat_map(|at| at_rest(script, at)));
    for (at, step) in script.steps.iter().enumerate() {
        for simpler in simpler_steps(step) {
            let mut script = script.clone();
            script.steps[at] = simpler;
            all.push(script);
        }
    }
    all
}

fn without(script: &Script, range: std::ops::Range<usize>) -> Script {
    let mut script = script.clone();
    script.steps.drain(range);
    script
}

/// Returns smaller scripts, each of which ends a step before an interruption and acts after the step instead.
fn at_rest(script: &Script, at: usize) -> Vec<Script> {
    let step = &script.steps[at];
    let mut all = Vec::new();
    for (number, cut) in step.cuts.iter().enumerate() {
        for action in actions_of(&cut.how, step) {
            let mut script = script.clone();
            script.steps[at].cuts.truncate(number);
            let mut after = Step::from(action);
            after.cuts = step.cuts[number + 1..].to_vec();
            script.steps.insert(at + 1, after);
            all.push(script);
        }
    }
    all
}

/// Returns actions with the same effect as an interruption, for each place, because the interrupted resource is not
/// known.
fn actions_of(how: &How, step: &Step) -> Vec<Action> {
    let places = 0..PLACES;
    match (how, &step.action) {
        (How::Edit { seed }, Action::Put { refs, .. }) => {
            let put = |place| Action::Put {
                place,
                seed: *seed,
                refs: refs.clone(),
            };
            places.map(put).collect()
        }
        (How::Delete, _) => places.map(|place| Action::Delete { place }).collect(),
        (How::Rename { to }, _) => places.map(|place| Action::Rename { place, to: *to }).collect(),
        (How::Give { given, seed }, _) => vec![Action::Give {
            given: *given,
            seed: *seed,
        }],
        (How::Stop | How::Lose | How::Crash, _) => vec![Action::Restart],
        _ => Vec::new(),
    }
}

fn simpler_steps(step: &Step) -> Vec<Step> {
    let mut all = Vec::new();
    if step.trouble {
        all.push(Step {
            trouble: false,
            ..step.clone()
        });
    }
    for at in 0..step.cuts.len() {
        let mut fewer = step.clone();
        fewer.cuts.remove(at);
        all.push(fewer);
    }
    for (at, cut) in step.cuts.iter().enumerate() {
        for simpler in simpler_cuts(cut) {
            let mut step = step.clone();
            step.cuts[at] = simpler;
            all.push(step);
        }
    }
    let simpler = simpler_actions(&step.action);
    all.extend(simpler.into_iter().map(|action| Step {
        action,
        ..step.clone()
    }));
    all
}

/// Lists simpler interruptions: a cancel instead of a lost lease, a lost lease instead of a death.
fn simpler_cuts(cut: &Cut) -> Vec<Cut> {
    let hows: &[How] = match cut.how {
        How::Ask => &[],
        How::Stop | How::Edit { .. } | How::Delete | How::Rename { .. } | How::Give { .. } => &[How::Ask],
        How::Lose => &[How::Ask, How::Stop],
        How::Crash | How::Freeze { .. } => &[How::Ask, How::Stop, How::Lose],
    };
    let is_of_crash = matches!(cut.at, Point::Commit { .. });
    let at = |at: Point| Cut {
        at,
        how: cut.how.clone(),
    };
    let how = |how: &How| Cut {
        at: cut.at,
        how: how.clone(),
    };
    let mut all: Vec<Cut> = if is_of_crash {
        vec![at(Point::End)]
    } else {
        hows.iter().map(how).collect()
    };
    if let Point::Await(waited @ 1..) = cut.at {
        all.push(at(Point::Await(waited - 1)));
    }
    all
}

fn simpler_actions(action: &Action) -> Vec<Action> {
    match action {
        Action::Put { place, seed, refs } => {
            let fewer = (0..refs.len()).map(|at| {
                let mut refs = refs.clone();
                refs.remove(at);
                Action::Put {
                    place: *place,
                    seed: *seed,
                    refs,
                }
            });
            fewer.collect()
        }
        Action::Restart => (0..3).map(|place| Action::Ask { place }).collect(),
        Action::TakeAway { given } => vec![Action::Fail { given: *given }],
        Action::Fail { given } => vec![Action::Give {
            given: *given,
            seed: 1,
        }],
        _ => Vec::new(),
    }
}

/// Names the fault by the finding of the shortest play, and the steps that it needs.
pub(super) fn name(what: What, script: &Script, has_complained: bool) -> Fault {
    let interrupted = |script| interrupted(script, has_complained);
    match what {
        What::Torn => Fault::Torn,
        What::Asleep => Fault::LosesRetrigger,
        What::Late => Fault::IgnoresCancel,
        What::Panicked => Fault::Panics,
        What::Endless => Fault::Endless,
        What::Fails => Fault::Fails,
        What::Again => interrupted(script).unwrap_or(Fault::NotIdempotent),
        What::Left if !has(script, |action| matches!(action, Action::Rename { .. })) => {
            interrupted(script).unwrap_or(Fault::LeavesBehind)
        }
        What::Differs | What::State | What::Stuck | What::Left => {
            interrupted(script).unwrap_or_else(|| by_actions(script))
        }
    }
}

/// Returns the fault if the play needs an interruption or a failing outside.
fn interrupted(script: &Script, has_complained: bool) -> Option<Fault> {
    let cuts = || script.steps.iter().flat_map(|step| &step.cuts);
    if cuts().any(|cut| matches!(cut.how, How::Freeze { .. })) {
        Some(Fault::IgnoresEpoch)
    } else if cuts().any(|cut| matches!(cut.how, How::Crash | How::Lose)) {
        Some(Fault::NotCrashSafe)
    } else if cuts().any(|cut| matches!(cut.how, How::Give { .. })) {
        Some(Fault::StaleRef)
    } else if cuts().next().is_some() {
        Some(Fault::NotCancelSafe)
    } else if script.steps.iter().any(|step| step.trouble) {
        Some(if has_complained {
            Fault::NotRetrySafe
        } else {
            Fault::SwallowsError
        })
    } else {
        None
    }
}

/// Returns the fault according to the actions at rest.
fn by_actions(script: &Script) -> Fault {
    if has(script, |action| matches!(action, Action::Rename { .. })) {
        return Fault::LosesRename;
    }
    let gives = |action: &Action| {
        matches!(
            action,
            Action::Give { .. } | Action::Fail { .. } | Action::TakeAway { .. }
        )
    };
    if has(script, gives) {
        return if reads(script) {
            Fault::StaleRef
        } else {
            Fault::UndeclaredRead
        };
    }
    if has(script, |action| matches!(action, Action::Delete { .. })) {
        return Fault::LeavesBehind;
    }
    if has(script, |action| *action == Action::Restart) {
        return Fault::MemoryOnly;
    }
    if has(script, |action| {
        matches!(action, Action::Ask { .. } | Action::Wait { .. })
    }) {
        return Fault::NotIdempotent;
    }
    if reads_places(script) {
        Fault::StaleRef
    } else {
        Fault::StaleSpec
    }
}

fn has(script: &Script, is_it: impl Fn(&Action) -> bool) -> bool {
    script.steps.iter().any(|step| is_it(&step.action))
}

fn any_ref(script: &Script, is_it: impl Fn(&Named) -> bool) -> bool {
    let of = |action: &Action| match action {
        Action::Put { refs, .. } => refs.iter().any(&is_it),
        _ => false,
    };
    has(script, of)
}

/// Returns true if the script has a resource that reads a given one.
fn reads(script: &Script) -> bool {
    let given = |given: usize| any_ref(script, |named| *named == Named::Given(given));
    has(script, |action| match action {
        Action::Give { given: it, .. } | Action::Fail { given: it } | Action::TakeAway { given: it } => {
            given(*it)
        }
        _ => false,
    })
}

fn reads_places(script: &Script) -> bool {
    any_ref(script, |named| matches!(named, Named::Place(_)))
}
