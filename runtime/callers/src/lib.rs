//! Callers of a service: their authentication and access.
//!
//! | module | holds |
//! |---|---|
//! | [`grants`] | access by instance: start at [`Grants`] |
//! | [`jwt`] | tokens of an identity provider: [`jwt::Believer`] |
//! | [`people`] | attributes and access from claims: [`people::Mapping`] |
//! | [`state`] | the stored state of a service: [`State`](state::State) |
//! | [`tokens`] | the valid tokens, in memory: [`Tokens`] |
//! | [`token`] | access tokens: [`Token::mint`] creates a token, [`Presented`] is an unverified one from a request |
//! | [`verifier`] | stored forms of a secret: a digest, and the verifier for SQL clients |
//!
//! The crate knows no instance, no protocol and no operation but by its role. It reads no clock: times are handed in.

pub mod grants;
pub mod jwt;
pub mod people;
pub mod state;
pub mod token;
pub mod tokens;
pub mod verifier;

pub use grants::{Grant, Grants, Level};
pub use token::{Presented, Token};
pub use tokens::Tokens;
pub use verifier::{Digest, Verifier};
