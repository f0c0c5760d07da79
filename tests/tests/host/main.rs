//! The host of the core: its stores, its public interface, its threads.
//!
//! | module | shows |
//! |---|---|
//! | `conformance` | one contract for all stores, over the trait |
//! | `consistency` | the check of a running controller, and of its store |
//! | `disk` | a disk that is full in the middle of a write |
//! | `edits` | edits awaited to what comes of them, and refused at the door |
//! | `instances` | projects that share a store of the embedder's |
//! | `interface` | the public interface: edits, requests, waits, reads, watching |
//! | `invocations` | what a reconciler may do and what becomes of it |
//! | `durability` | failing commits, lost leases, restarts, shutdown |
//! | `handover` | an instance that is given back is taken on the announcement |
//! | `options` | options that make no sense |
//! | `panics` | code of embedders that panics outside of an invocation, and a runtime that goes |
//! | `postgres` | leases that run out, takeovers, many processes over one database |
//! | `seeded` | the whole host in virtual time, from one seed |
//! | `sequential` | eight threads against a sequential model |
//! | `faults` | a store that fails when asked to |
//! | `task` | a kind whose specs say how its runs go |

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod conformance;
mod consistency;
mod disk;
mod durability;
mod edits;
mod faults;
mod handover;
mod instances;
mod interface;
mod invocations;
mod options;
mod panics;
mod postgres;
mod seeded;
mod sequential;
mod task;
