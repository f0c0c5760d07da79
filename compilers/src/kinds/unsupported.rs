//! Kinds that are recognised and do nothing yet: their names, and those of what comes with them.

use crate::{
    diagnostics::{At, Code, Findings, Role},
    draft::{Body, Draft},
    resource::Kind,
};

/// The resource that a file of a kind declares, with one warning that it does nothing yet.
pub(crate) fn declare(kind: Kind, mut draft: Draft, findings: &mut Findings) -> Draft {
    let (code, message) = match kind {
        Kind::Skill | Kind::Translation | Kind::AiEval => (
            Code::DoesNothing,
            format!("{} \"{}\" is kept and does nothing here", kind, draft.name),
        ),
        _ => (
            Code::NotSupportedYet,
            format!("{} \"{}\" is not supported yet", kind, draft.name),
        ),
    };
    findings.add(draft.name_at, code, message);
    draft.body = Body::Unsupported;
    draft
}

/// The resource that a file is by where it stands.
pub(crate) fn document(kind: Kind, name: &str, findings: &mut Findings) -> Draft {
    let name_at = At::start(Role::Yaml);
    let message = format!("{kind} \"{name}\" is kept and does nothing here");
    findings.add(name_at, Code::DoesNothing, message);
    Draft::new(kind, name.to_owned(), name_at)
}
