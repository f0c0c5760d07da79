//! Managed resources of project files, whose steps and looks are commands and HTTP calls.
//!
//! The loop is that of [`watershed_managers`]; here is the manager that it drives, [`Calls`]. All that it decides is read
//! from the spec, and everything else is asked outside. Templates are filled in at the last moment, so that no stored spec and no
//! message holds a secret.

mod calls;
mod known;
mod looks;
mod needs;
mod stored;
mod wish;

pub use calls::{Calls, CallsError};
pub use known::Known;
pub use looks::look_after;
pub(crate) use stored::decode_as;
pub use stored::{decode, encode};

use watershed_compilers::Kind;
use watershed_managers::Wanted;
use watershed_proto::ManagedSpec;

use crate::messages::Proto;

/// The kind by which the controller knows managed resources.
pub const KIND: &str = Kind::Managed.as_str();

/// The stored spec of a managed resource.
pub type Spec = Wanted<Proto<ManagedSpec>>;
