//! Look-up of an embedder's users, for alerts and reports that run on behalf of a user.

use std::pin::Pin;

use serde_json::{Map, Value};

/// A future of a user's attributes; none for an unknown user.
pub type Found<'a> = Pin<Box<dyn Future<Output = Option<Map<String, Value>>> + Send + 'a>>;

/// An embedder's directory of users. Asked before each evaluation on behalf of a user, so that changes count at once.
pub trait Directory: Send + Sync + 'static {
    /// Finds a user by the id or e-mail address in `for`.
    fn find<'a>(&'a self, user: &'a str) -> Found<'a>;
}
