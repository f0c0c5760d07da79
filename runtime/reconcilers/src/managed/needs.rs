//! The refs of parts: stated by the part, or else those of its owner.

use watershed_core::{Kind, Ref, Required};
use watershed_proto::{ManagedPart, ManagedRef};

/// Returns the refs of a part, chosen from its owner's. An owner refers to everything that its parts need, at any
/// level, but waits for none of it.
pub(super) fn of_part(part: &ManagedPart, known: &[&Ref]) -> Vec<Ref> {
    let own = known.iter().filter_map(|known| match part.refs.is_empty() {
        // What its owner does not wait for is another part's.
        true => (known.required != Required::Exists).then(|| (*known).clone()),
        false => {
            let said = part.refs.iter().find(|said| means(said, known))?;
            let required = match said.exists {
                true => Required::Exists,
                false => Required::Completed,
            };
            Some(with(known, required))
        }
    });
    let mut refs: Vec<Ref> = own.collect();
    for known in known {
        let is_there = refs.iter().any(|one| one.key() == known.key());
        if !is_there && is_needed_below(part, known) {
            refs.push(with(known, Required::Exists));
        }
    }
    refs
}

fn is_needed_below(part: &ManagedPart, known: &Ref) -> bool {
    let parts = part.spec.iter().flat_map(|spec| &spec.parts);
    parts
        .into_iter()
        .any(|part| part.refs.iter().any(|said| means(said, known)) || is_needed_below(part, known))
}

fn means(said: &ManagedRef, known: &Ref) -> bool {
    let is_kind = said.kind.is_empty() || known.kind == Kind::from(said.kind.as_str());
    is_kind && known.name.as_str().eq_ignore_ascii_case(&said.name)
}

fn with(known: &Ref, required: Required) -> Ref {
    Ref {
        required,
        ..known.clone()
    }
}

#[cfg(test)]
mod tests {
    use watershed_proto::ManagedSpec;

    use super::*;

    fn part(refs: &[&str], parts: Vec<ManagedPart>) -> ManagedPart {
        let said = |name: &&str| ManagedRef {
            name: (*name).to_owned(),
            ..ManagedRef::default()
        };
        ManagedPart {
            refs: refs.iter().map(said).collect(),
            spec: Some(ManagedSpec {
                parts,
                ..ManagedSpec::default()
            }),
            ..ManagedPart::default()
        }
    }

    fn names(part: &ManagedPart) -> Vec<String> {
        let own = Ref::completed("managed", "worker");
        let others = ["disk", "net"].map(|name| with(&Ref::completed("managed", name), Required::Exists));
        let known: Vec<&Ref> = std::iter::once(&own).chain(&others).collect();
        let text = |one: &Ref| format!("{} {:?}", one.name, one.required);
        of_part(part, &known).iter().map(text).collect()
    }

    #[test]
    fn a_part_needs_what_it_says_or_what_its_owner_waits_for() {
        assert_eq!(names(&part(&[], Vec::new())), ["worker Completed"]);
        assert_eq!(names(&part(&["disk"], Vec::new())), ["disk Completed"]);
        assert_eq!(
            names(&part(&["Disk", "worker"], Vec::new())),
            ["worker Completed", "disk Completed"]
        );
        let nested = part(&[], vec![part(&["net"], Vec::new())]);
        assert_eq!(
            names(&nested),
            ["worker Completed", "net Exists"],
            "for its own part"
        );
        assert_eq!(names(&part(&["gone"], Vec::new())), Vec::<String>::new());
    }
}
