//! The specs of all kinds.

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
        /// The spec of a resource, by kind.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Spec {
            $(
                #[doc = concat!("Of the kind `", $word, "`.")]
                $kind(Box<watershed_proto::$message>),
            )+
            /// No spec: the kind is not supported yet, or the files do not compile.
            None,
        }

        impl Spec {
            /// Returns the bytes of the spec as the catalog stores them; equal specs have equal bytes.
            pub fn encode(&self) -> Vec<u8> {
                match self {
                    $(Spec::$kind(spec) => spec.encode_to_vec(),)+
                    Spec::None => Vec::new(),
                }
            }

            /// Decodes the bytes of a kind's spec; none for kinds without a spec and for invalid bytes.
            pub fn decode(kind: Kind, bytes: &[u8]) -> Option<Self> {
                match kind {
                    $(Kind::$kind => watershed_proto::$message::decode(bytes).ok().map(Box::new).map(Spec::$kind),)+
                    _ => None,
                }
            }

            /// Returns the fingerprint of the whole spec, if it has one.
            pub fn meaning(&self) -> Option<&Fingerprint> {
                match self {
                    $(Spec::$kind(spec) => spec.meaning.as_ref(),)+
                    Spec::None => None,
                }
            }

            /// Returns the fault of files that do not compile, if there is one; the spec is then the last valid one.
            pub fn fault(&self) -> Option<&Fault> {
                match self {
                    $(Spec::$kind(spec) => spec.fault.as_ref(),)+
                    Spec::None => None,
                }
            }

            /// Returns the spec, marked with a fault of its files.
            #[must_use]
            pub fn with_fault(mut self, fault: Fault) -> Self {
                match &mut self {
                    $(Spec::$kind(spec) => spec.fault = Some(fault),)+
                    Spec::None => {}
                }
                self
            }

            /// Sets the fingerprint of the whole spec.
            pub fn set_meaning(&mut self, meaning: Fingerprint) {
                match self {
                    $(Spec::$kind(spec) => spec.meaning = Some(meaning),)+
                    Spec::None => {}
                }
            }

            /// Sets the values of the variables that the spec's templates read.
            pub fn set_variables(&mut self, variables: BTreeMap<String, String>) {
                match self {
                    $(Spec::$kind(spec) => spec.variables = variables,)+
                    Spec::None => {}
                }
            }

            /// Returns the values of the variables that the spec's templates read; none if there is no spec.
            pub fn variables(&self) -> Option<&BTreeMap<String, String>> {
                match self {
                    $(Spec::$kind(spec) => Some(&spec.variables),)+
                    Spec::None => None,
                }
            }

            /// Returns the spec as a JSON value without places; null for models.
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
    /// Returns the empty spec of a kind; none for kinds without a spec.
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
