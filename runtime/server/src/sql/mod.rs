//! The outputs of instances by the protocol of Postgres: for psql, drivers and tools that know it.
//!
//! The user is the id of a token of the service, the password the token's secret, and the database an instance. What a caller may
//! ask, how often and for how long is decided where it is for HTTP.
//!
//! | module | holds |
//! |---|---|
//! | [`door`] | the listener: addresses, encryption, limits on connections |
//! | [`users`] | users and databases |
//! | [`reader`] | statements of a caller |
//! | [`seat`] | the place of a caller among the readers |
//! | [`views`] | statements over metrics views |
//! | [`catalogs`] | the catalog of Postgres, with what a caller sees |
//! | [`words`], [`tree`] | statements of clients about the catalog, in the engine's words |
//! | [`oids`] | numbers of relations |

mod catalogs;
mod door;
mod oids;
mod reader;
mod seat;
mod tree;
mod users;
mod views;
mod words;

pub use door::Door;
