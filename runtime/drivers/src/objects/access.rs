//! Drivers and credentials for object stores.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use watershed_outside::http::Egress;

/// The protocol of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Driver {
    /// Amazon S3, or any store with its protocol.
    #[default]
    S3,
    /// Google Cloud Storage, with HMAC keys in the form of S3.
    Gcs,
    /// Azure Blob Storage.
    Azure,
    /// Plain files on web servers.
    Https,
}

impl Driver {
    /// Returns the driver of this name in connectors; none if it is not for an object store.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "s3" => Some(Self::S3),
            "gcs" => Some(Self::Gcs),
            "azure" => Some(Self::Azure),
            "https" => Some(Self::Https),
            _ => None,
        }
    }

    /// Returns the driver's name in connectors.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gcs => "gcs",
            Self::Azure => "azure",
            Self::Https => "https",
        }
    }

    /// Returns the URL schemes of the store's addresses, the usual one first.
    #[must_use]
    pub fn schemes(self) -> &'static [&'static str] {
        match self {
            Self::S3 => &["s3", "s3a", "s3n"],
            Self::Gcs => &["gs", "gcs"],
            Self::Azure => &["azure", "az"],
            Self::Https => &["https", "http"],
        }
    }

    /// Returns the engine's extension for reading from the store.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::S3 | Self::Gcs | Self::Https => "httpfs",
            Self::Azure => "azure",
        }
    }
}

/// A store's driver and credentials. Debug output omits the secrets.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// Protocol of the store.
    pub driver: Driver,
    /// Key id for S3 and Google HMAC keys, or account of Azure; none for anonymous access.
    pub key: Option<String>,
    /// Secret of the key; none for anonymous access.
    pub secret: Option<String>,
    /// Session token of temporary credentials; none for permanent ones.
    pub session_token: Option<String>,
    /// Region of the bucket; none for the default.
    pub region: Option<String>,
    /// Endpoint as a URL or `host:port`; none for the provider's own.
    pub endpoint: Option<String>,
    /// True if the bucket is in the URL's path, false if in the host name; none for the default.
    pub path_style: Option<bool>,
    /// HTTP headers of requests, for web servers only.
    pub headers: BTreeMap<String, String>,
    /// PEM file with certificates that are trusted beside public authorities, if any.
    pub authorities: Option<PathBuf>,
    /// Policy of the connections to the store.
    pub egress: Egress,
}

impl Access {
    /// Returns the endpoint as a URL; none for the provider's own.
    #[must_use]
    pub fn endpoint_url(&self) -> Option<String> {
        let endpoint = self.endpoint.as_deref()?.trim_end_matches('/');
        Some(if endpoint.contains("://") {
            endpoint.to_owned()
        } else {
            format!("https://{endpoint}")
        })
    }

    /// Returns true if there are no credentials.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.key.is_none() && self.secret.is_none()
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("driver", &self.driver)
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .field("anonymous", &self.is_anonymous())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_debug_form_shows_no_secret() {
        let access = Access {
            key: Some("AKIAKEY".into()),
            secret: Some("hush".into()),
            session_token: Some("token-of-a-day".into()),
            headers: BTreeMap::from([("Authorization".into(), "Bearer xyz".into())]),
            ..Access::default()
        };
        let shown = format!("{access:?}");
        for secret in ["AKIAKEY", "hush", "token-of-a-day", "xyz"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
