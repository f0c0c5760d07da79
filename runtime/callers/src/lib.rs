//! Callers of a service: who asks, and what they may do there.
//!
//! | module | holds |
//! |---|---|
//! | [`grants`] | roles per instance: start at [`Grants`] |
//! | [`jwt`] | tokens of an identity provider: [`jwt::Believer`] |
//! | [`people`] | what claims make of somebody: [`people::Mapping`] |
//! | [`state`] | what a service keeps of all that: [`State`](state::State) |
//! | [`token`] | tokens that scripts come with: [`Token::mint`] makes one, [`Presented`] is one that somebody sent |
//! | [`verifier`] | what is stored of a secret: a digest, and the verifier of SQL clients |
//!
//! The crate knows no instance, no protocol and no operation but by its role. It reads no clock: times are handed in.

pub mod grants;
pub mod jwt;
pub mod people;
pub mod state;
pub mod token;
pub mod verifier;

pub use grants::{Grant, Grants, Level};
pub use token::{Presented, Token};
pub use verifier::{Digest, Verifier};
