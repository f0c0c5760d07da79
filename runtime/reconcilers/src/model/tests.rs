//! Models in a real controller and a real engine: what is built, and what stands in the engine after it.

mod cuts;
mod engine;
mod errors;
mod following;
mod hooks;
mod hostile;
mod incremental;
mod partitions;
mod reading;
mod restarts;
mod world;
