//! The parts of a managed resource, which inherit settings from their owner.

use watershed_proto::{ManagedPart, ManagedRef, ManagedSpec};

use super::{keys::PART, stages, take as take_spec};
use crate::{
    blocks::refs,
    diagnostics::Code,
    draft::RawRef,
    resource::Requirement,
    yaml::{Fields, Node, item},
};

/// The largest depth of nested parts.
const LEVELS_MAX: u32 = 4;
/// The largest number of parts of one owner.
const PARTS_MAX: usize = 100;

/// Takes the parts of an owner. Returns refs to the resources that parts at any level need; the owner does not wait for
/// them.
pub(super) fn take(fields: &mut Fields<'_>, owner: &mut ManagedSpec, level: u32) -> Vec<RawRef> {
    let Some(at) = fields.key_at("parts") else {
        return Vec::new();
    };
    let nodes = fields.list("parts").unwrap_or_default();
    let message = match nodes.len() {
        count if count > PARTS_MAX => {
            format!("a managed resource has at most {PARTS_MAX} parts, not {count}")
        }
        1.. if level > LEVELS_MAX => format!("parts have parts down to {LEVELS_MAX} levels"),
        _ => String::new(),
    };
    if !message.is_empty() {
        fields.findings().add(at, Code::InvalidValue, message);
        return Vec::new();
    }
    let (mut parts, mut needed): (Vec<ManagedPart>, Vec<RawRef>) = (Vec::new(), Vec::new());
    for node in nodes {
        parts.extend(part(fields, node, owner, &parts, level, &mut needed));
    }
    owner.parts = parts;
    needed
}

fn part(
    fields: &mut Fields<'_>,
    node: Node,
    owner: &ManagedSpec,
    before: &[ManagedPart],
    level: u32,
    needed: &mut Vec<RawRef>,
) -> Option<ManagedPart> {
    let (map, at) = item(node, "a part", fields.findings())?;
    let mut block = Fields::new(map, at, fields.findings());
    let name_at = block.value_at("name").unwrap_or(at);
    let gate_at = block.value_at("gates_next");
    let inherited = ManagedSpec {
        description: String::new(),
        parts: Vec::new(),
        ..owner.clone()
    };
    let mut part = ManagedPart {
        name: block.text("name").unwrap_or_default(),
        order: block.count("order").unwrap_or_default(),
        gates_next: block.text("gates_next").unwrap_or_default(),
        spec: None,
        refs: Vec::new(),
    };
    if let Some(entry) = block.take("refs") {
        let said = refs::read(&entry.value, block.findings());
        part.refs = said.iter().map(needed_by).collect();
        needed.extend(said.into_iter().map(|one| RawRef {
            required: Some(Requirement::Exists),
            ..one
        }));
    }
    let mut spec = take_spec(&mut block, inherited);
    needed.extend(take(&mut block, &mut spec, level + 1));
    if let Some(at) = gate_at.filter(|_| !part.gates_next.is_empty()) {
        stages::refuse_unknown(&mut block, &spec.stages, &part.gates_next, at);
    }
    let is_taken = |other: &ManagedPart| other.name.eq_ignore_ascii_case(&part.name);
    let wrong = match part.name.trim() {
        "" => Some((Code::MissingKey, "a part needs a `name`".to_owned())),
        name if name.contains(['/', '.']) => Some((
            Code::InvalidValue,
            format!("\"{name}\" is no name for a part: it can't hold `/` or `.`"),
        )),
        name if before.iter().any(is_taken) => {
            Some((Code::InvalidValue, format!("there is another part \"{name}\"")))
        }
        _ => None,
    };
    if let Some((code, message)) = wrong {
        block.findings().add(name_at, code, message);
    }
    block.finish(&PART);
    part.spec = Some(spec);
    Some(part)
}

fn needed_by(said: &RawRef) -> ManagedRef {
    ManagedRef {
        kind: said
            .kind
            .map_or_else(String::new, |kind| kind.as_str().to_owned()),
        name: said.name.clone(),
        exists: said.required == Some(Requirement::Exists),
    }
}
