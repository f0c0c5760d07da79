//! How resources move from stage to stage: they are asked for, cancelled, abandoned, tried again and paused.

pub(crate) mod abandoning;
pub(crate) mod asking;
pub(crate) mod pausing;
pub(crate) mod retries;
