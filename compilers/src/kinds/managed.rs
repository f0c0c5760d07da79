//! Managed resources: long-lived things that commands and HTTP calls move from stage to stage.

mod keys;
mod parts;
mod stages;
mod steps;
mod window;

use watershed_proto::{ManagedRule, ManagedSpec};

pub(super) use keys::MANAGED;

use self::keys::{MEANINGS, RULE};
use super::reader::{Declared, Reader};
use crate::{
    diagnostics::Code,
    resource::{Kind, Spec},
    yaml::{Fields, Node, item, word},
};

/// The default interval between two looks at a managed resource, in milliseconds.
const OBSERVE_EVERY_MS: u64 = 300_000;
/// The shortest interval between two looks, in milliseconds, as each may start a program.
const OBSERVE_EVERY_LEAST_MS: u64 = 1_000;
/// The longest interval between two looks, in milliseconds: a day.
const OBSERVE_EVERY_MOST_MS: u64 = 86_400_000;

/// Keys whose values may contain templates.
const TEMPLATED: [&str; 3] = ["observe", "steps", "parts"];

/// Reads a managed resource from its settings.
pub(super) fn read(reader: &mut Reader<'_, '_>) -> Declared {
    reader.refuse_sql(Kind::Managed);
    TEMPLATED.iter().for_each(|key| reader.templates_of(key));
    let description = reader.text("description");
    let base = ManagedSpec {
        on_part_failure: "abort".to_owned(),
        observe_every_ms: OBSERVE_EVERY_MS,
        ..ManagedSpec::default()
    };
    let mut spec = take(&mut reader.fields, base);
    spec.description = description;
    let needed = parts::take(&mut reader.fields, &mut spec, 1);
    reader.finish(&MANAGED);
    let mut declared = Declared::new(Spec::Managed(Box::new(spec)));
    declared.refs = needed;
    declared
}

/// Takes the settings of a managed resource or of a part, except its parts; missing ones are those of `base`.
fn take(fields: &mut Fields<'_>, base: ManagedSpec) -> ManagedSpec {
    let said = stages::Said::of(fields);
    let mut spec = base;
    if let Some(stages) = fields.texts("stages") {
        spec.stages = stages;
    }
    if let Some(early) = fields.text("early") {
        spec.early = early;
    }
    if let Some(desired) = fields.text("desired") {
        spec.desired = desired;
    }
    if fields.has("window") {
        spec.window = window::take(fields);
    }
    if let Some(values) = fields.value_map("values") {
        spec.values = Some(values);
    }
    if fields.has("observe") {
        spec.observe = steps::look(fields);
    }
    if let Some(every) = observe_every(fields) {
        spec.observe_every_ms = every;
    }
    if fields.has("steps") {
        spec.steps = steps::take(fields);
    }
    if fields.has("on_events") {
        spec.on_events = rules(fields, &spec.stages);
    }
    if let Some(meaning) = word(fields, "on_part_failure", &MEANINGS) {
        spec.on_part_failure = meaning;
    }
    // Steps are kept in the order of their stages: equal ones have equal bytes.
    let place = |to: &str| spec.stages.iter().position(|stage| stage == to);
    spec.steps.sort_by_key(|step| place(&step.to));
    stages::check(fields, &spec, &said);
    spec
}

fn observe_every(fields: &mut Fields<'_>) -> Option<u64> {
    let at = fields.value_at("observe_every");
    let every = fields.milliseconds("observe_every")?;
    if let Some(at) = at.filter(|_| !(OBSERVE_EVERY_LEAST_MS..=OBSERVE_EVERY_MOST_MS).contains(&every)) {
        let message = "a managed resource is looked at every second at most, and every day at least";
        fields.findings().add(at, Code::InvalidValue, message);
    }
    Some(every)
}

fn rules(fields: &mut Fields<'_>, stages: &[String]) -> Vec<ManagedRule> {
    let nodes = fields.list("on_events").unwrap_or_default();
    nodes
        .into_iter()
        .filter_map(|node| rule(fields, node, stages))
        .collect()
}

fn rule(fields: &mut Fields<'_>, node: Node, stages: &[String]) -> Option<ManagedRule> {
    let (map, at) = item(node, "a rule for events", fields.findings())?;
    let mut block = Fields::new(map, at, fields.findings());
    let desired_at = block.value_at("desired");
    let rule = ManagedRule {
        r#type: block.text("type").unwrap_or_default(),
        source: block.text("source").unwrap_or_default(),
        subject: block.text("subject").unwrap_or_default(),
        desired: block.text("desired").unwrap_or_default(),
    };
    if rule.r#type.trim().is_empty() {
        let message = "a rule for events needs their `type`";
        let hint = "one that ends in `*` stands for all types that begin so";
        block
            .findings()
            .add_with_hint(at, Code::MissingKey, message, hint);
    }
    if let Some(at) = desired_at.filter(|_| !rule.desired.is_empty()) {
        stages::refuse_unknown(&mut block, stages, &rule.desired, at);
    }
    block.finish(&RULE);
    Some(rule)
}
