//! The protocol of Postgres, version 3: sessions of SQL clients that read.
//!
//! The crate knows no instance and no catalog. [`Backend`] says who may sign in and answers statements; [`Server::session`]
//! speaks with one client until it leaves. Messages are those of the crate `pgwire`, which are decoded only after [`frame`]
//! has found them whole: a length that lies reaches no decoder.
//!
//! | module | holds |
//! |---|---|
//! | [`backend`] | the traits of those who answer, and limits |
//! | [`server`] | a connection from its first byte to its last, and cancel requests |
//! | [`opening`] | what comes before a session: encryption, cancel requests, the name of the database |
//! | [`scram`] | proof of a secret by SCRAM-SHA-256 |
//! | [`session`] | messages of a client who has signed in |
//! | [`portal`] | prepared statements and portals |
//! | [`reading`] | statements that are answered by rows |
//! | [`statement`] | what a statement asks for, told from its words |
//! | [`copy`] | rows as lines, for `COPY ... TO STDOUT` |
//! | [`cursor`] | portals that statements name, for `DECLARE` and `FETCH` |
//! | [`tokens`] | words, texts and parameters of a statement |
//! | [`savepoints`] | places to which a failed transaction goes back |
//! | [`settings`] | settings of a session |
//! | [`parameters`] | values of parameters as SQL |
//! | [`typing`] | types of parameters that nobody said |
//! | [`types`] | the table of types |
//! | [`text`], [`binary`] | values in both formats of the protocol |
//! | [`state`] | the SQLSTATE of each problem |
//! | [`frame`], [`wire`] | messages on a connection, within bounds |

mod backend;
mod binary;
mod copy;
mod cursor;
mod frame;
mod opening;
mod parameters;
mod portal;
mod reading;
mod savepoints;
mod scram;
mod server;
mod session;
mod settings;
mod state;
mod statement;
mod text;
mod tokens;
mod types;
mod typing;
mod wire;

pub use backend::{Answer, Backend, Bounds, Place, Session, Words};
pub use server::{Link, Server};
pub use tokens::{Kind, Token, tokens};
pub use types::{ClientType, client_type};
