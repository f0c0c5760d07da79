//! HTTP client with bounds: certificates, proxies, redirects, deadlines, size of answers and refused addresses.

mod addresses;
mod answer;
mod client;
mod egress;
mod names;

pub use addresses::Refused;
pub use answer::{Answer, BodyError, CallError, Failure, chain, retry_after};
pub use client::{Client, ClientError, Request, Route, Settings};
pub use egress::{Destination, Egress, Unreached};
pub use ipnet::IpNet;
pub use names::{Names, Resolving, SystemNames};
pub use reqwest::{Method, StatusCode, Url, header};
