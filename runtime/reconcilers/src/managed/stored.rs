//! Encoding of the specs of parsed kinds for the catalog.
//!
//! Of most kinds that is the message of the compiler. A managed resource has what is desired of it in front, which people
//! set by hand and owners edit; a file that says the same of it as before leaves that alone.

use std::borrow::Cow;

use watershed_compilers::{Kind, Spec};
use watershed_controller::Resource;
use watershed_controller::message::Message;
use watershed_core::Row;
use watershed_managers::Wanted;
use watershed_proto::ManagedSpec;

use super::{KIND, wish};
use crate::messages::Proto;

/// Returns the bytes of a declared spec, keeping what people set by hand on the existing resource.
#[must_use]
pub fn encode(spec: &Spec, row: Option<&Row>) -> Vec<u8> {
    match spec {
        Spec::Managed(spec) => managed(spec, row),
        spec => with_operator(spec, row).encode(),
    }
}

/// Decodes the spec of a row; none for kinds without a spec and for invalid bytes.
#[must_use]
pub fn decode(row: &Row) -> Option<Spec> {
    decode_as(row.kind.as_str(), &row.spec)
}

/// Decodes a stored spec of the given kind; returns none if it is invalid.
pub(crate) fn decode_as(kind: &str, bytes: &[u8]) -> Option<Spec> {
    if kind == KIND {
        let wanted = super::Spec::decode(super::Spec::FORMAT, bytes).ok()?;
        return Some(Spec::Managed(Box::new(wanted.spec.0.clone())));
    }
    Spec::decode(Kind::read(kind)?, bytes)
}

/// Returns the bytes of a managed resource. A stage set by hand holds until the file names another stage than before.
fn managed(spec: &ManagedSpec, row: Option<&Row>) -> Vec<u8> {
    let mut desired = wish::desired(spec);
    let stored = row.and_then(|row| Resource::spec_of::<super::Spec>(row).ok());
    if let Some(stored) = stored {
        let (set, said) = (&stored.desired, &stored.spec.0);
        let is_known = wish::stages(spec).index(&set.stage).is_some();
        desired.edits = set.edits;
        if said.desired == spec.desired && is_known {
            desired.stage = set.stage.clone();
        } else {
            let stage = desired.stage.clone();
            desired.set(stage);
        }
    }
    // Of messages that are built here nothing can fail.
    Wanted::new(desired, Proto(spec.clone()))
        .encode()
        .unwrap_or_default()
}

/// Returns a spec with the settings that a person made by hand, which no file contains. The reconciler decides which of
/// them still apply.
fn with_operator<'a>(spec: &'a Spec, row: Option<&Row>) -> Cow<'a, Spec> {
    let Spec::Service(service) = spec else {
        return Cow::Borrowed(spec);
    };
    match row.and_then(decode) {
        Some(Spec::Service(stored)) if stored.operator.is_some() => {
            let mut service = service.clone();
            service.operator = stored.operator;
            Cow::Owned(Spec::Service(service))
        }
        _ => Cow::Borrowed(spec),
    }
}
