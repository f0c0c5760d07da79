//! Addresses of services, as the programs that refer to them get them (rule W17).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The addresses that one start of a process gets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// Those of ready replicas, by variable.
    pub variables: BTreeMap<String, String>,
    /// The files in which they stand from then on, by variable. A container can't see them.
    pub files: BTreeMap<String, PathBuf>,
}

/// Returns the variable with the addresses of a port of a service: `API_PORT` for the port `PORT` of the service `api`.
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

/// Returns the addresses of ports of the loopback interface, as programs get them.
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
