//! Parts: the resources that a managed resource owns, as its manager declares them.

use std::sync::Arc;

use watershed_controller::message::{EncodeError, Message};
use watershed_controller::{Key, Ref};

use crate::desired::Desired;
use crate::manager::Manager;
use crate::stages::Stage;

/// A resource that a managed resource creates, moves and removes.
///
/// The [`Desired`] of a managed part says how far it is to go; the owner decides when.
#[derive(Clone, Debug)]
pub struct Part {
    pub(crate) key: Key,
    pub(crate) order: u32,
    pub(crate) gates_next: Option<Stage>,
    pub(crate) refs: Vec<Ref>,
    pub(crate) format: u32,
    /// The encoded spec of the kind, or the error that prevented its encoding.
    pub(crate) own: Result<Arc<[u8]>, Arc<str>>,
    /// The desired stage of the part; none for kinds without stages.
    pub(crate) desired: Option<Desired>,
}

impl Part {
    /// Returns a part that is a managed resource.
    pub fn managed<M: Manager>(name: impl Into<Arc<str>>, desired: Desired, spec: &M::Spec) -> Self {
        let encoded = (M::Spec::FORMAT, spec.encode());
        Self::of(Key::new(M::KIND, name.into().as_ref()), encoded, Some(desired))
    }

    /// Returns a part of a kind without stages, such as a service.
    pub fn other<S: Message>(kind: &str, name: impl Into<Arc<str>>, spec: &S) -> Self {
        let encoded = (S::FORMAT, spec.encode());
        Self::of(Key::new(kind, name.into().as_ref()), encoded, None)
    }

    fn of(key: Key, (format, own): (u32, Result<Vec<u8>, EncodeError>), desired: Option<Desired>) -> Self {
        Self {
            key,
            order: 0,
            gates_next: None,
            refs: Vec::new(),
            format,
            own: own.map(Into::into).map_err(|error| error.to_string().into()),
            desired,
        }
    }

    /// Returns the part at another place in the order. Parts in the same place move together.
    #[must_use]
    pub fn in_order(mut self, order: u32) -> Self {
        self.order = order;
        self
    }

    /// Returns the part with a gate: the stage that it must reach before later parts go beyond their early stage.
    #[must_use]
    pub fn gates_next(mut self, stage: impl Into<Stage>) -> Self {
        self.gates_next = Some(stage.into());
        self
    }

    /// Returns the part with these references to other resources.
    #[must_use]
    pub fn with_refs(mut self, refs: impl IntoIterator<Item = Ref>) -> Self {
        self.refs = refs.into_iter().collect();
        self
    }
}
