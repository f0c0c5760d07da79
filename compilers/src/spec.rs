//! What is wanted of a resource, whatever its kind.

use std::collections::BTreeMap;

use prost::Message;
use serde_json::Value;
use watershed_proto::{
    CanvasSpec, ComponentSpec, ConnectorSpec, ExploreSpec, Fault, Fingerprint, MetricsViewSpec,
    MigrationSpec, ModelSpec, ThemeSpec,
};

use crate::resource::Kind;

macro_rules! specs {
    ($($(#[doc = $doc:literal])+ $kind:ident($message:ident)),+ $(,)?) => {
        /// What is wanted of a resource.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Spec {
            $($(#[doc = $doc])+ $kind(Box<$message>),)+
            /// Nothing is known: the kind is not supported yet, or the files do not compile.
            None,
        }

        impl Spec {
            /// The spec's bytes as the catalog stores them; equal specs have equal bytes.
            pub fn encode(&self) -> Vec<u8> {
                match self {
                    $(Spec::$kind(spec) => spec.encode_to_vec(),)+
                    Spec::None => Vec::new(),
                }
            }

            /// Reads the bytes of a kind's spec; none for kinds without one, and where they can't be read.
            pub fn decode(kind: Kind, bytes: &[u8]) -> Option<Self> {
                match kind {
                    $(Kind::$kind => $message::decode(bytes).ok().map(Box::new).map(Spec::$kind),)+
                    _ => None,
                }
            }

            /// The fingerprint of all that the spec says.
            pub fn meaning(&self) -> Option<&Fingerprint> {
                match self {
                    $(Spec::$kind(spec) => spec.meaning.as_ref(),)+
                    Spec::None => None,
                }
            }

            /// Why the files do not compile, if they don't: the spec is then what they last said.
            pub fn fault(&self) -> Option<&Fault> {
                match self {
                    $(Spec::$kind(spec) => spec.fault.as_ref(),)+
                    Spec::None => None,
                }
            }

            /// The spec with this fault.
            #[must_use]
            pub fn with_fault(mut self, fault: Fault) -> Self {
                match &mut self {
                    $(Spec::$kind(spec) => spec.fault = Some(fault),)+
                    Spec::None => {}
                }
                self
            }

            pub(crate) fn set_meaning(&mut self, meaning: Fingerprint) {
                match self {
                    $(Spec::$kind(spec) => spec.meaning = Some(meaning),)+
                    Spec::None => {}
                }
            }

            pub(crate) fn set_variables(&mut self, variables: BTreeMap<String, String>) {
                match self {
                    $(Spec::$kind(spec) => spec.variables = variables,)+
                    Spec::None => {}
                }
            }

            pub(crate) fn variables(&self) -> Option<&BTreeMap<String, String>> {
                match self {
                    $(Spec::$kind(spec) => Some(&spec.variables),)+
                    Spec::None => None,
                }
            }
        }

        impl Kind {
            /// Whether resources of the kind have a spec here; the others are recognised and do nothing yet.
            pub const fn is_supported(self) -> bool {
                matches!(self, $(Kind::$kind)|+)
            }
        }
    };
}

specs! {
    /// Of a model or source.
    Model(ModelSpec),
    /// Of a metrics view.
    MetricsView(MetricsViewSpec),
    /// Of an explore.
    Explore(ExploreSpec),
    /// Of a canvas.
    Canvas(CanvasSpec),
    /// Of a component.
    Component(ComponentSpec),
    /// Of a theme.
    Theme(ThemeSpec),
    /// Of a connector.
    Connector(ConnectorSpec),
    /// Of a migration.
    Migration(MigrationSpec),
}

impl Spec {
    /// The spec of a kind before anything is known of it; none for kinds without one.
    pub fn empty(kind: Kind) -> Option<Self> {
        Self::decode(kind, &[])
    }

    /// What the spec says, without places; null for a model, whose document is made elsewhere.
    pub(crate) fn said(&self) -> Value {
        let said = match self {
            Spec::MetricsView(spec) => serde_json::to_value(spec),
            Spec::Explore(spec) => serde_json::to_value(spec),
            Spec::Canvas(spec) => serde_json::to_value(spec),
            Spec::Component(spec) => serde_json::to_value(spec),
            Spec::Theme(spec) => serde_json::to_value(spec),
            Spec::Connector(spec) => serde_json::to_value(spec),
            Spec::Migration(spec) => serde_json::to_value(spec),
            Spec::Model(_) | Spec::None => Ok(Value::Null),
        };
        said.unwrap_or_default()
    }

    /// Refs, as (kind, name in lower case), in an order that no rename of what they name changes: a model's inputs as
    /// they are numbered, other kinds' as the spec first names them; then the rest.
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
        let order = crate::meaning::order_of_names(&self.said(), refs.iter().map(|(_, name)| name.as_str()));
        let mut refs = refs;
        refs.sort_by_cached_key(|to| {
            let place = order.iter().position(|name| *name == to.1).unwrap_or(order.len());
            (place, to.clone())
        });
        refs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_reads_back_and_keeps_what_it_last_said_beside_a_fault() {
        for kind in Kind::ALL {
            let Some(spec) = Spec::empty(kind) else {
                assert!(!kind.is_supported(), "{kind}");
                continue;
            };
            let fault = Fault {
                message: "no".into(),
                ..Fault::default()
            };
            let faulty = spec.clone().with_fault(fault.clone());
            let read = Spec::decode(kind, &faulty.encode()).expect("bytes of our own making");
            assert_eq!((read.fault(), read.meaning()), (Some(&fault), None), "{kind}");
            assert_ne!(read, spec, "{kind}");
        }
    }

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
