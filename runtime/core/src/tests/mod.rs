//! Tests of the whole machine, by the part of the contract that they hold it to.

mod abandoning;
mod asking;
mod batches;
mod chains;
mod cost;
mod durability;
mod edits;
mod endings;
mod exhaustive;
mod explain;
mod found;
mod marks;
mod named;
mod owners;
mod places;
mod progress;
mod quiet;
mod reasons;
mod requests;
mod retries;
mod scheduling;
mod starts;
mod times;
mod waiting;
mod words;
