//! Addresses of services in the form that referring programs get (rule W17).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The addresses of services that one start of a process gets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// Addresses of ready replicas at the start, by environment variable.
    pub variables: BTreeMap<String, String>,
    /// Files that hold the current addresses, by environment variable. Containers can't see them.
    pub files: BTreeMap<String, PathBuf>,
}

/// Returns the name of the environment variable for a service's port: `API_PORT` for the port `PORT` of the service
/// `api`.
pub(crate) fn variable(service: &str, port: &str) -> String {
    let upper = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let prefix: String = service.chars().map(upper).collect();
    format!("{prefix}_{port}")
}

/// Formats loopback addresses of ports as programs get them: `127.0.0.1:8080,127.0.0.1:8081`.
pub(crate) fn text(numbers: &[u16]) -> String {
    let all: Vec<String> = numbers.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    all.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_named_after_its_service_and_the_port() {
        assert_eq!(variable("my-api", "PORT"), "MY_API_PORT");
    }
}
