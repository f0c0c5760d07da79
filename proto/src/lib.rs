//! Messages of resources and of the API, and their Rust types.
