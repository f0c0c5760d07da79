//! The checks of the connectors that resources name.

use crate::{
    diagnostics::{At, Code, Findings},
    draft::Context,
    template::is_template,
    text::names,
    yaml::Node,
};

/// Returns the name of a connector that a resource uses, and reports an undeclared one.
pub(crate) fn name(node: &Node, context: &Context<'_>, findings: &mut Findings) -> String {
    let name = node.scalar_text().unwrap_or_default();
    if context.driver(&name).is_some() || is_template(&name) {
        return name;
    }
    let known = context.drivers.keys().map(String::as_str);
    let known = known.chain(["duckdb", "local_file", "postgres", "https"]);
    let declare = format!("declare it in `connectors/{name}.yaml`");
    unknown(&name, node.at, known, declare, findings);
    name
}

/// Reports an undeclared connector, with the nearest of the suitable names or else the way to declare one.
pub(super) fn unknown<'n>(
    name: &str,
    at: At,
    suitable: impl Iterator<Item = &'n str>,
    declare: String,
    findings: &mut Findings,
) {
    let near = names::nearest(name, suitable);
    let hint = near.map_or(declare, |near| format!("did you mean `{near}`?"));
    let message = format!("unknown connector \"{name}\"");
    findings.add_with_hint(at, Code::UnknownConnector, message, hint);
}
