//! Conversion of a managed resource's file to the terms of the manager loop.

use std::time::Duration;

use watershed_managers::{Action, Desired, EventMatch, OnPartFailure, Rule, Stages, Step, Timed, Tries};
use watershed_proto::{ManagedAction, ManagedRule, ManagedSpec, ManagedWindow, MapValue};

/// The stages of a file that never compiled, for which nothing is done.
const NOTHING: [&str; 2] = ["absent", "gone"];

/// Returns the lifecycle of a spec, which the compiler has validated.
pub(super) fn stages(spec: &ManagedSpec) -> Stages {
    let stated = || {
        let stages = Stages::new(spec.stages.iter().map(String::as_str)).ok()?;
        match spec.early.as_str() {
            "" => Some(stages),
            early => stages.with_early(early).ok(),
        }
    };
    stated().unwrap_or_else(|| match Stages::new(NOTHING) {
        Ok(stages) => stages,
        Err(error) => unreachable!("two names: {error}"),
    })
}

/// Returns the desired state that the file declares.
pub(super) fn desired(spec: &ManagedSpec) -> Desired {
    let stages = stages(spec);
    let mut desired = match spec.desired.as_str() {
        "" => Desired::stage(stages.first().clone()),
        stage => Desired::stage(stage),
    };
    desired.window = spec.window.as_ref().map(window);
    desired.on_part_failure = match spec.on_part_failure.as_str() {
        "continue" => OnPartFailure::Continue,
        _ => OnPartFailure::Abort,
    };
    desired.on_events = spec.on_events.iter().map(rule).collect();
    desired
}

fn window(said: &ManagedWindow) -> Timed {
    let timed = match said.cron.as_str() {
        "" => Timed::once(said.start.as_str(), said.end.as_str()),
        cron => Timed::cron(cron, ms(said.duration_ms)),
    };
    timed
        .in_zone(said.time_zone.as_str())
        .with_margins(ms(said.lead_ms), ms(said.teardown_ms))
}

fn rule(said: &ManagedRule) -> Rule {
    let mut on = EventMatch::of(said.r#type.as_str());
    if !said.source.is_empty() {
        on = on.from(said.source.as_str());
    }
    if !said.subject.is_empty() {
        on = on.about(said.subject.as_str());
    }
    match said.desired.as_str() {
        "" => Rule::looks(on),
        stage => Rule::sets(on, stage),
    }
}

/// Returns the step to a stage, if there is one. Without any steps, the parts do the work, and each step does nothing.
pub(super) fn step(spec: &ManagedSpec, to: &str) -> Option<Step> {
    if spec.steps.is_empty() {
        return Some(Step::pipeline(to, [Action::new(to).skipped("its parts do it")]));
    }
    let step = spec.steps.iter().find(|step| step.to == to)?;
    let actions = step.actions.iter().map(|said| action(said, spec.values.as_ref()));
    Some(Step::pipeline(to, actions))
}

fn action(said: &ManagedAction, values: Option<&MapValue>) -> Action {
    let mut action = Action::new(said.name.as_str())
        .after(said.needs.iter().map(String::as_str))
        .with_tries(Tries {
            timeout: ms(said.timeout_ms),
            attempts: said.attempts.max(1),
            base: ms(said.base_ms),
            cap: ms(said.cap_ms),
        });
    if said.optional {
        action = action.optional();
    }
    match said.skip_when.as_ref().filter(|when| holds(when, values)) {
        Some(when) => {
            let names: Vec<&str> = when.fields.keys().map(String::as_str).collect();
            action.skipped(format!("by the values of {}", names.join(", ")))
        }
        None => action,
    }
}

/// Returns true if a resource has all the given values; false if none are given.
fn holds(when: &MapValue, values: Option<&MapValue>) -> bool {
    let has = |(key, value): (&String, &_)| values.and_then(|values| values.get(key)) == Some(value);
    !when.fields.is_empty() && when.fields.iter().all(has)
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use watershed_proto::{ManagedStep, Value};

    use super::*;

    fn map(pairs: &[(&str, bool)]) -> MapValue {
        let fields = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), Value::from(*value)));
        MapValue {
            fields: fields.collect::<BTreeMap<_, _>>(),
        }
    }

    #[test]
    fn an_action_is_left_out_where_the_resource_has_all_of_its_values() {
        let table = [
            (&[("quiet", true)][..], &[("quiet", true), ("x", false)][..], true),
            (
                &[("quiet", true), ("x", true)],
                &[("quiet", true), ("x", false)],
                false,
            ),
            (&[("quiet", true)], &[], false),
            (&[], &[("quiet", true)], false),
        ];
        for (when, values, expected) in table {
            assert_eq!(
                holds(&map(when), Some(&map(values))),
                expected,
                "{when:?} {values:?}"
            );
        }
        assert!(!holds(&map(&[("quiet", true)]), None));
    }

    #[test]
    fn a_spec_that_never_compiled_wants_nothing() {
        let spec = ManagedSpec::default();
        let (stages, desired) = (stages(&spec), desired(&spec));
        assert_eq!(&desired.stage, stages.first());
        assert_eq!(stages.step(stages.first(), &desired.stage), None);
    }

    #[test]
    fn a_step_that_the_file_lacks_is_none_unless_it_has_no_steps_at_all() {
        let mut spec = ManagedSpec::default();
        let step_to = |spec: &ManagedSpec| step(spec, "active");
        assert!(step_to(&spec).is_some_and(|step| step.actions.iter().all(|one| one.skip.is_some())));
        spec.steps.push(ManagedStep {
            to: "gone".to_owned(),
            actions: vec![ManagedAction::default()],
        });
        assert_eq!(step_to(&spec), None);
    }
}
