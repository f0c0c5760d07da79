//! Addresses of container engines.

use std::path::{Path, PathBuf};

/// Default socket of a container engine.
const SOCKET: &str = "/var/run/docker.sock";

/// The address of a container engine: a Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(Result<PathBuf, String>);

impl Address {
    /// Parses the value of `DOCKER_HOST`; the default is `/var/run/docker.sock`. An address other than a Unix socket is
    /// refused at its first use.
    pub fn from_host(host: Option<&str>) -> Self {
        let host = host.map(str::trim).filter(|host| !host.is_empty());
        Self(match host {
            None => Ok(SOCKET.into()),
            Some(host) => match host.strip_prefix("unix://") {
                Some(path) if Path::new(path).is_absolute() => Ok(path.into()),
                _ => Err(format!(
                    "`DOCKER_HOST` is \"{host}\", and only the address of a Unix socket is supported, such as `unix://{SOCKET}`"
                )),
            },
        })
    }

    /// Returns the path of the socket, or the reason why the address can't be used.
    ///
    /// # Errors
    /// A sentence for a person, when the address is none of a Unix socket.
    pub(super) fn socket(&self) -> Result<&Path, String> {
        self.0.as_deref().map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_that_of_a_unix_socket() {
        for (host, expected) in [
            (None, Some(SOCKET)),
            (Some(""), Some(SOCKET)),
            (
                Some("unix:///run/user/1000/docker.sock"),
                Some("/run/user/1000/docker.sock"),
            ),
            (Some("unix://docker.sock"), None),
            (Some("tcp://10.0.0.1:2375"), None),
            (Some("ssh://host"), None),
            (Some("/var/run/docker.sock"), None),
        ] {
            let address = Address::from_host(host);
            assert_eq!(address.socket().ok(), expected.map(Path::new), "{host:?}");
        }
        let refused = Address::from_host(Some("tcp://a")).socket().unwrap_err();
        assert!(refused.contains("tcp://a"), "{refused}");
    }
}
