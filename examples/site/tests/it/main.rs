//! The site program against the real file system and process table, also killed at every moment.
#![allow(clippy::unwrap_used)] // whole files of tests, which the option for tests does not see

mod bench;
mod crash;
mod drift;
mod life;
