//! Users as an embedder knows them, for alerts and reports that run in their names.

use std::pin::Pin;

use serde_json::{Map, Value};

/// The attributes of a user; none of one that nobody knows.
pub type Found<'a> = Pin<Box<dyn Future<Output = Option<Map<String, Value>>> + Send + 'a>>;

/// A directory of users. It is asked each time that somebody's view is needed, so what it says counts from then on.
pub trait Directory: Send + Sync + 'static {
    /// Finds a user by the id or the e-mail that `for` names.
    fn find<'a>(&'a self, user: &'a str) -> Found<'a>;
}
