//! Reading of files: groups of one stem, the manifest, `.env` files.

mod annotations;
pub(crate) mod env_file;
pub(crate) mod group;
pub(crate) mod manifest;
pub(crate) mod problem;
