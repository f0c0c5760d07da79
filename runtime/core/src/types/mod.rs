//! Types of the core: inputs, effects and stored rows, as plain values without behaviour.

pub(crate) mod bytes;
pub(crate) mod consistency;
pub(crate) mod edit;
pub(crate) mod effect;
pub(crate) mod error;
pub(crate) mod explanation;
pub(crate) mod ids;
pub(crate) mod index;
pub(crate) mod input;
pub(crate) mod kind;
pub(crate) mod name;
pub(crate) mod no_op;
pub(crate) mod options_problem;
pub(crate) mod reason;
pub(crate) mod row;
pub(crate) mod run;
pub(crate) mod stage;
pub(crate) mod text;
pub(crate) mod time;
