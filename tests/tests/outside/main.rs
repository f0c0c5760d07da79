//! Everything that reaches outside, held against servers and programs that misbehave: bounded, or refused.
//!
//! | module | shows |
//! |---|---|
//! | `addresses` | addresses that are refused, by name, in figures and after redirects |
//! | `callers` | those that call services and run programs, each with its own policy |
//! | `host` | a server on loopback that says whatever a test wants |
//! | `programs` | programs without end, that ignore their end or leave their group |
//! | `services` | bodies, heads, redirects, certificates, proxies and deadlines of services |
//! | `tls` | certificates that tests make for themselves |

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod addresses;
mod callers;
mod host;
mod programs;
mod services;
#[path = "../program/tls.rs"]
mod tls;
