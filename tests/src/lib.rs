//! Helpers for tests that need more than one crate: end to end, simulation, crashes, benchmarks.

pub mod azure;
pub mod docker;
pub mod gcs;
pub mod line;
pub mod mariadb;
pub mod measure;
pub mod postgres;
pub mod s3;
pub mod server;
