//! Several processes of one instance: one leads under the lease, the others follow its commits.

mod call_server;
mod follower;
mod lease_keeper;
pub(crate) mod participant;
