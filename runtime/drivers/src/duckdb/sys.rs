//! Safe wrapper of DuckDB's C API: handles that close themselves, and answers as [`Value`](crate::olap::Value)s.
//!
//! All unsafe code of the crate stands here. What each block leans on:
//! 1. A handle is made by the function that its type is named for, checked, and destroyed once, in `Drop`.
//! 2. A database outlives its connections (they hold it), a connection its statements and answers (they borrow it).
//! 3. A connection is used by one thread at a time (it is `Send` and not `Sync`); `duckdb_interrupt` alone may be
//!    called from another, and only while the connection is open, which the lock in [`Interrupt`] guards.
//! 4. A vector is read within its chunk's life, at rows below its size, as the type that the engine says it has.
//! 5. A thread is sent a signal only while it does the work for which it was noted, which the lock around the note guards.

#![expect(unsafe_code, reason = "the engine is reached through its C interface")]

mod answer;
mod appender;
#[cfg(feature = "arrow")]
mod arrow;
mod connection;
mod forbidden;
mod handle;
mod shape;
mod statement;
mod text;
mod unblock;
mod vector;

pub(super) use answer::{Answer, Chunk, Convert};
pub(super) use appender::ColumnValue;
#[cfg(feature = "arrow")]
pub(super) use arrow::ArrowConverter;
pub(super) use connection::{Connection, Database, Interrupt};
pub(super) use forbidden::WORDS as FORBIDDEN;
pub(super) use shape::Shape;
pub(super) use statement::{Effect, Param, Statement, StatementKind};
pub(super) use unblock::Worker;

/// Returns the engine's version, such as `v1.5.5`.
pub(super) fn library_version() -> String {
    // SAFETY: returns a static string, without any handle.
    unsafe { text::copy(libduckdb_sys::duckdb_library_version()) }
}

/// An error of the engine: its class and message in one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawError(pub(super) String);
