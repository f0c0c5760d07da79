//! Several processes of one instance: one holds the lease and leads, the others follow its commits.

mod call_server;
mod follower;
mod lease_keeper;
pub(crate) mod participant;
