//! One module per kind of resource.
