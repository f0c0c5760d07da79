//! The data runtime and the watershed program.
