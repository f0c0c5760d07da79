//! The order of a resource's refs, which renames of their targets don't change.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::{kind::Kind, spec::Spec};

impl Spec {
    /// Returns refs as (kind, name in lower case) in an order that renames of their targets don't change: inputs of a
    /// model by number, refs of other kinds by first mention in the spec, then the rest.
    pub fn ordered_refs<'r>(&self, refs: impl Iterator<Item = (&'r str, &'r str)>) -> Vec<(String, String)> {
        let refs: Vec<_> = refs
            .map(|(kind, name)| (kind.to_owned(), name.to_lowercase()))
            .collect();
        if let Spec::Model(spec) = self {
            let model = |name: &String| (Kind::Model.as_str().to_owned(), name.to_lowercase());
            let inputs: Vec<_> = spec.inputs.iter().map(model).collect();
            let rest: Vec<_> = refs.into_iter().filter(|to| !inputs.contains(to)).collect();
            return inputs.into_iter().chain(rest).collect();
        }
        let order = order_of_names(&self.said(), refs.iter().map(|(_, name)| name.as_str()));
        let mut refs = refs;
        refs.sort_by_cached_key(|to| {
            let place = order.iter().position(|name| *name == to.1).unwrap_or(order.len());
            (place, to.clone())
        });
        refs
    }
}

/// Returns the `names` that occur as texts in a document, in lower case, by first occurrence.
pub(crate) fn order_of_names<'n>(said: &Json, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let names: BTreeSet<String> = names.map(str::to_lowercase).collect();
    let mut order = Vec::new();
    each_text(said, &mut |text| {
        let text = text.to_lowercase();
        if names.contains(&text) && !order.contains(&text) {
            order.push(text);
        }
    });
    order
}

fn each_text(said: &Json, visit: &mut impl FnMut(&str)) {
    match said {
        Json::String(text) => visit(text),
        Json::Array(items) => items.iter().for_each(|item| each_text(item, visit)),
        Json::Object(map) => map.values().for_each(|value| each_text(value, visit)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use watershed_proto::ExploreSpec;

    use super::*;

    #[test]
    fn refs_stand_in_the_order_in_which_the_spec_names_them() {
        let spec = Spec::Explore(Box::new(ExploreSpec {
            metrics_view: "Zeta".into(),
            theme: "alpha".into(),
            ..ExploreSpec::default()
        }));
        let refs = [("model", "beside"), ("theme", "alpha"), ("metrics_view", "zeta")];
        let ordered = spec.ordered_refs(refs.into_iter());
        let names: Vec<_> = ordered.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["zeta", "alpha", "beside"]);
    }
}
