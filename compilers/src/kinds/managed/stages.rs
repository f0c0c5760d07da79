//! The stages of a managed resource, and checks of all settings that name a stage.

use watershed_proto::ManagedSpec;

use crate::{
    diagnostics::{At, Code},
    text::names,
    yaml::Fields,
};

/// The largest number of stages of a lifecycle.
const STAGES_MAX: usize = 32;

/// The places of settings that a resource or part makes itself, noted before they are taken.
pub(super) struct Said {
    /// The place of the resource or part.
    at: At,
    stages: Option<At>,
    early: Option<At>,
    desired: Option<At>,
    observe: Option<At>,
    steps: Option<At>,
    has_parts: bool,
}

impl Said {
    pub(super) fn of(fields: &Fields<'_>) -> Self {
        Self {
            at: fields.at(),
            stages: fields.value_at("stages"),
            early: fields.value_at("early"),
            desired: fields.value_at("desired"),
            observe: fields.key_at("observe"),
            steps: fields.key_at("steps"),
            has_parts: fields.has("parts"),
        }
    }
}

/// Checks the settings of a resource or part against its stages. Inherited settings are checked again only if the
/// stages are its own.
pub(super) fn check(fields: &mut Fields<'_>, spec: &ManagedSpec, said: &Said) {
    if spec.stages.is_empty() {
        let message = "a managed resource needs `stages`";
        let hint =
            "list them from what there is at first to what is left at last, as in `[absent, active, gone]`";
        let at = said.stages.unwrap_or(said.at);
        fields
            .findings()
            .add_with_hint(at, Code::MissingKey, message, hint);
        return;
    }
    if let Some(at) = said.stages {
        check_list(fields, &spec.stages, at);
    }
    if spec.desired.is_empty() {
        let message = "a managed resource needs `desired`, the stage that is wanted";
        fields.findings().add(said.at, Code::MissingKey, message);
    } else if let Some(at) = said.desired.or(said.stages) {
        refuse_unknown(fields, &spec.stages, &spec.desired, at);
    }
    if let Some(at) = said.early.or(said.stages).filter(|_| !spec.early.is_empty()) {
        refuse_unknown(fields, &spec.stages, &spec.early, at);
        if spec.stages.len() > 1 && spec.stages.last() == Some(&spec.early) {
            let message = "`early` can't be the last stage, at which it is gone for good";
            fields.findings().add(at, Code::InvalidValue, message);
        }
    }
    check_steps(fields, spec, said);
}

fn check_list(fields: &mut Fields<'_>, stages: &[String], at: At) {
    let message = match stages.len() {
        1 => Some(
            "a lifecycle needs at least two stages: one for what is absent, one for what is gone".to_owned(),
        ),
        count if count > STAGES_MAX => Some(format!(
            "a lifecycle has at most {STAGES_MAX} stages, not {count}"
        )),
        _ => {
            let is_taken = |(n, stage): &(usize, &String)| {
                stage.trim().is_empty() || stages.iter().take(*n).any(|other| other == *stage)
            };
            let taken = stages.iter().enumerate().find(is_taken);
            taken.map(|(_, stage)| format!("the stage \"{stage}\" has no name of its own"))
        }
    };
    if let Some(message) = message {
        fields.findings().add(at, Code::InvalidValue, message);
    }
}

/// Checks that steps lead to every stage but the first, and that a look or the steps report the stage reached.
fn check_steps(fields: &mut Fields<'_>, spec: &ManagedSpec, said: &Said) {
    let at = said.steps.or(said.stages).unwrap_or(said.at);
    let is_own = said.steps.is_some() || said.stages.is_some();
    if spec.steps.is_empty() {
        if is_own && !said.has_parts {
            let message = "a managed resource needs `steps`, or `parts` that have some";
            fields.findings().add(at, Code::MissingKey, message);
        }
        return;
    }
    if spec.observe.is_none() && said.observe.is_none() && is_own {
        let message = "a managed resource with `steps` needs `observe`, which tells the stage";
        let hint = "what is there decides, whatever a step has said: write `observe: {command: [program]}`";
        fields
            .findings()
            .add_with_hint(at, Code::MissingKey, message, hint);
    }
    if !is_own {
        return;
    }
    for step in &spec.steps {
        if spec.stages.first() == Some(&step.to) {
            let message = format!("no step leads to \"{}\", where there is nothing yet", step.to);
            let hint = "what removes it is the step to the last stage";
            fields
                .findings()
                .add_with_hint(at, Code::InvalidValue, message, hint);
        } else {
            refuse_unknown(fields, &spec.stages, &step.to, at);
        }
    }
    let is_reached = |stage: &String| spec.steps.iter().any(|step| step.to == *stage);
    for stage in spec.stages.iter().skip(1).filter(|stage| !is_reached(stage)) {
        let message = format!("no step leads to \"{stage}\"");
        fields.findings().add(at, Code::MissingKey, message);
    }
}

/// Reports a word that is not one of the stages, if stages are known.
pub(super) fn refuse_unknown(fields: &mut Fields<'_>, stages: &[String], word: &str, at: At) {
    if stages.is_empty() || stages.iter().any(|stage| stage == word) {
        return;
    }
    let message = format!("\"{word}\" is none of the stages");
    let hint = match names::nearest(word, stages.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("one of `{}`", stages.join("`, `")),
    };
    fields
        .findings()
        .add_with_hint(at, Code::InvalidValue, message, hint);
}
