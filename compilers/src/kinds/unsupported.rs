//! Kinds that are recognised and do nothing yet.

use crate::{
    diagnostics::{At, Code, Findings, Role},
    draft::Draft,
    resource::Kind,
};

/// Reports that resources of a kind do nothing here, or are not supported yet.
pub(crate) fn warn(kind: Kind, draft: &Draft, findings: &mut Findings) {
    let (code, message) = match kind {
        Kind::Skill | Kind::Translation | Kind::AiEval => (
            Code::DoesNothing,
            format!("{kind} \"{}\" is stored but has no effect", draft.name),
        ),
        _ => (
            Code::NotSupportedYet,
            format!("{kind} \"{}\" is not supported yet", draft.name),
        ),
    };
    findings.add(draft.name_at, code, message);
}

/// Returns the resource that a file is by its path alone, and reports that it does nothing.
pub(crate) fn document(kind: Kind, name: &str, findings: &mut Findings) -> Draft {
    let name_at = At::start(Role::Yaml);
    let message = format!("{kind} \"{name}\" is stored but has no effect");
    findings.add(name_at, Code::DoesNothing, message);
    Draft::new(kind, name.to_owned(), name_at)
}
