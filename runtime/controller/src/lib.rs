//! The tokio host of the core: typed reconcilers, stores, watching.
