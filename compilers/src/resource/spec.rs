//! Specs of all kinds.

use std::collections::BTreeMap;

use prost::Message;
use serde_json::Value;
use watershed_proto::{Fault, Fingerprint};

use super::{kind::Kind, table::kinds};

macro_rules! specs {
    // The document of a model is made of more than its spec, elsewhere.
    (@document Model) => { |_| Ok(Value::Null) };
    (@document $kind:ident) => { serde_json::to_value };
    ($($(#[doc = $doc:literal])+ $kind:ident = $word:literal $(| $other:literal)* {
        $(keys: $module:ident::$keys:ident, spec: $message:ident $(, defaults: $($key:literal)|+)?)?
    })+) => {
        specs! { @with_spec $($($kind $word $message,)?)+ }
    };
    (@with_spec $($kind:ident $word:literal $message:ident,)+) => {
        /// The spec of a resource.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Spec {
            $(
                #[doc = concat!("Of the kind `", $word, "`.")]
                $kind(Box<watershed_proto::$message>),
            )+
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
                    $(Kind::$kind => watershed_proto::$message::decode(bytes).ok().map(Box::new).map(Spec::$kind),)+
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

            /// The reason why the files do not compile, if they don't: the spec is then what they last said.
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

            /// Sets the fingerprint of all that the spec says.
            pub fn set_meaning(&mut self, meaning: Fingerprint) {
                match self {
                    $(Spec::$kind(spec) => spec.meaning = Some(meaning),)+
                    Spec::None => {}
                }
            }

            /// Sets the values of the variables that its templates read.
            pub fn set_variables(&mut self, variables: BTreeMap<String, String>) {
                match self {
                    $(Spec::$kind(spec) => spec.variables = variables,)+
                    Spec::None => {}
                }
            }

            /// The values of the variables that its templates read; none where nothing is known.
            pub fn variables(&self) -> Option<&BTreeMap<String, String>> {
                match self {
                    $(Spec::$kind(spec) => Some(&spec.variables),)+
                    Spec::None => None,
                }
            }

            /// Returns the spec as a value, without places; null for a model, whose document is made elsewhere.
            pub(crate) fn said(&self) -> Value {
                let said: serde_json::Result<Value> = match self {
                    $(Spec::$kind(spec) => specs!(@document $kind)(spec),)+
                    Spec::None => Ok(Value::Null),
                };
                said.unwrap_or_default()
            }
        }
    };
}

kinds!(specs);

impl Spec {
    /// The spec of a kind before anything is known of it; none for kinds without one.
    pub fn empty(kind: Kind) -> Option<Self> {
        Self::decode(kind, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_reads_back_and_keeps_what_it_last_said_beside_a_fault() {
        for kind in Kind::ALL {
            let Some(spec) = Spec::empty(kind) else {
                assert!(!kind.has_spec(), "{kind}");
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
}
