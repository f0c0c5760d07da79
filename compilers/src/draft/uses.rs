//! Variables and refs that the templates of a resource use.

use std::collections::{BTreeMap, BTreeSet};

use super::{RawRef, context::Context, place::TextPlace};
use crate::{
    diagnostics::{Code, Findings},
    resource::FileKind,
    template::Facts,
};

/// Facts collected from the templates of a resource.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    pub(crate) variables: BTreeSet<String>,
    pub(crate) any_variable: bool,
    /// Variables that decide how the resource is compiled though no template reads them.
    pub(crate) decisive: BTreeSet<String>,
    /// True if the text depends on the environment's name.
    pub(crate) environment: bool,
    pub(crate) refs: Vec<RawRef>,
}

impl Uses {
    /// Adds the variables and refs of a template, and reports variables that are not set.
    pub(crate) fn add(
        &mut self,
        facts: &Facts,
        text: &str,
        place: &TextPlace,
        looks_at_itself: bool,
        context: &Context<'_>,
        findings: &mut Findings,
    ) {
        let tokens = place.tokens(text);
        self.any_variable |= facts.any_variable;
        self.environment |= facts.environment;
        for (name, offset) in &facts.variables {
            if !findings.is_full() && context.are_variables_known && !is_set(context, name) {
                let at = tokens.at(*offset);
                let message = format!("variable \"{name}\" is not set");
                let hint = "set it in `.env`, in the manifest under `env:`, or with `--env NAME=VALUE`";
                findings.add_with_hint(at, Code::UnknownVariable, message, hint);
            }
            self.variables.insert(name.to_lowercase());
        }
        let defaulted = facts.defaulted.iter().map(|name| name.to_lowercase());
        self.variables.extend(defaulted);
        for found in &facts.refs {
            let kind = match found.kind.as_deref().map(FileKind::read) {
                None => None,
                Some(Some(kind)) => Some(kind.kind()),
                Some(None) => {
                    let at = tokens.at(found.offset);
                    let message = format!("unknown kind \"{}\"", found.kind.as_deref().unwrap_or_default());
                    findings.add(at, Code::InvalidRef, message);
                    continue;
                }
            };
            let own_look = found.incremental || looks_at_itself;
            self.refs.push(RawRef {
                kind,
                name: found.name.clone(),
                own_look,
                expected: found.sure && !own_look,
                at: Some(tokens.at(found.offset)),
                listed: false,
                required: None,
            });
        }
    }

    /// Returns the values of the used variables that are set.
    pub(crate) fn values(&self, context: &Context<'_>) -> BTreeMap<String, String> {
        let used = context
            .variables
            .iter()
            .filter(|(name, _)| self.any_variable || self.variables.iter().any(|used| reads(used, name)));
        used.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// Returns true if a use in lower case refers to a variable: by its name, or as the prefix of its dotted name.
pub(crate) fn reads(used: &str, variable: &str) -> bool {
    let (Some(start), Some(rest)) = (variable.get(..used.len()), variable.get(used.len()..)) else {
        return false;
    };
    start.eq_ignore_ascii_case(used) && (rest.is_empty() || rest.starts_with('.'))
}

fn is_set(context: &Context<'_>, name: &str) -> bool {
    context.variables.keys().any(|known| reads(name, known))
}
