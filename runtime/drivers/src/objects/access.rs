//! Access to stores: the driver, and the credentials.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The protocol of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Driver {
    /// S3, of Amazon or any store that speaks it.
    #[default]
    S3,
    /// Google Cloud Storage, by its keys of the S3 form (HMAC).
    Gcs,
    /// Azure's Blob Storage.
    Azure,
    /// Plain files on web servers.
    Https,
}

impl Driver {
    /// Returns the driver of this name in connectors; none if it is no store's.
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

    /// Returns its name in connectors.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gcs => "gcs",
            Self::Azure => "azure",
            Self::Https => "https",
        }
    }

    /// Returns the schemes of its addresses, the usual one first.
    #[must_use]
    pub fn schemes(self) -> &'static [&'static str] {
        match self {
            Self::S3 => &["s3", "s3a", "s3n"],
            Self::Gcs => &["gs", "gcs"],
            Self::Azure => &["azure", "az"],
            Self::Https => &["https", "http"],
        }
    }

    /// Returns the extension with which the engine reads from it.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::S3 | Self::Gcs | Self::Https => "httpfs",
            Self::Azure => "azure",
        }
    }
}

/// A store's driver and credentials. Its `Debug` form shows no secret.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// The protocol.
    pub driver: Driver,
    /// The key id of S3 and of Google's HMAC form; the account of Azure.
    pub key: Option<String>,
    /// The secret of that key.
    pub secret: Option<String>,
    /// The token of a session.
    pub session_token: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// The place at which the store is asked, if it is not the provider's own: a URL or `host:port`.
    pub endpoint: Option<String>,
    /// The bucket stands in the path, not in the host's name.
    pub path_style: Option<bool>,
    /// Headers of requests, of web servers alone.
    pub headers: BTreeMap<String, String>,
    /// A file of certificates (PEM) that are trusted beside those of public authorities.
    pub authorities: Option<PathBuf>,
}

impl Access {
    /// Returns the endpoint as a URL, if there is one.
    #[must_use]
    pub fn endpoint_url(&self) -> Option<String> {
        let endpoint = self.endpoint.as_deref()?.trim_end_matches('/');
        Some(if endpoint.contains("://") {
            endpoint.to_owned()
        } else {
            format!("https://{endpoint}")
        })
    }

    /// Returns true if nobody logs in.
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
