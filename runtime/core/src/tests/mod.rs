//! Tests of the whole machine, by the part of the contract that they hold it to.

mod scheduling;
