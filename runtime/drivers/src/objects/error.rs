//! Errors of object stores.

use std::error::Error;

use thiserror::Error;
use watershed_outside::http::{CallError, Failure, Refused};

/// The error of a request to an object store.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoreError {
    /// No object exists at the address, or none matches.
    #[error("there is no object \"{0}\"")]
    Missing(String),
    /// The number of matching objects exceeds the limit.
    #[error("more than {max} objects match \"{0}\"", max = super::MAX_OBJECTS)]
    TooMany(String),
    /// Another object has appeared where one was to be written.
    #[error("\"{0}\" is somebody else's object")]
    Taken(String),
    /// The pattern is not valid.
    #[error("can't read the pattern \"{0}\"")]
    Pattern(String),
    /// The bucket or container does not exist.
    #[error("there is no bucket \"{0}\"")]
    NoBucket(String),
    /// The store does not accept the key or its secret.
    #[error("the store refuses the credentials")]
    Login,
    /// The credentials are valid but lack the permission.
    #[error("the credentials give no right to list or read \"{0}\"")]
    Forbidden(String),
    /// The clock of this machine is wrong, so the store refuses signatures.
    #[error("the clock of this machine differs too much from the store's")]
    ClockSkew,
    /// The host name has no address.
    #[error("the host of \"{0}\" is unknown")]
    UnknownHost(String),
    /// Nobody listens at the address.
    #[error("the store of \"{0}\" refuses connections")]
    Refused(String),
    /// The policy of outgoing connections does not allow the address.
    #[error("the store of \"{0}\" may not be asked: {1}")]
    NotAllowed(String, Refused),
    /// The certificate of the host is not trusted.
    #[error("the certificate of the store of \"{0}\" is not trusted")]
    Certificate(String),
    /// The store did not answer in time.
    #[error("the store of \"{0}\" did not answer in time")]
    Timeout(String),
    /// The store is overloaded or broken: address and message.
    #[error("the store of \"{0}\" is busy or out of order: {1}")]
    Busy(String, String),
    /// Any other error: address and message.
    #[error("can't ask the store of \"{0}\": {1}")]
    Other(String, String),
    /// The caller cancelled the request.
    #[error("cancelled")]
    Cancelled,
}

/// The most characters of a store's answer in an error.
const SHOWN: usize = 300;

impl StoreError {
    /// Returns the stable error code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing(_) => "object-missing",
            Self::TooMany(_) => "too-many-objects",
            Self::Taken(_) => "export-taken",
            Self::Pattern(_) => "bad-pattern",
            Self::NoBucket(_) => "bucket-missing",
            Self::Login => "credentials-refused",
            Self::Forbidden(_) => "access-denied",
            Self::ClockSkew => "clock-skew",
            Self::UnknownHost(_) => "host-unknown",
            Self::Refused(_) => "connection-refused",
            Self::NotAllowed(..) => "egress-refused",
            Self::Certificate(_) => "certificate-untrusted",
            Self::Timeout(_) => "store-timeout",
            Self::Busy(..) => "store-busy",
            Self::Other(..) => "store-failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns a hint for the user, if any.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Login => Some(
                "check the key and its secret in the connector or in `.env`, and that the key was not withdrawn",
            ),
            Self::Forbidden(_) => Some(
                "the key needs the rights to list the bucket and to read its objects, and of outputs to write and delete them",
            ),
            Self::NoBucket(_) => Some("check its name and the connector's `region` and `endpoint`"),
            Self::ClockSkew => Some("set the clock; stores refuse signatures that are minutes old"),
            Self::UnknownHost(_) | Self::Refused(_) => {
                Some("check the connector's `endpoint`, and that this machine reaches it")
            }
            Self::NotAllowed(..) => Some(Refused::HINT),
            Self::Certificate(_) => Some("its certificate must be signed by a public authority"),
            _ => None,
        }
    }

    /// Returns true if a retry may succeed soon.
    #[must_use]
    pub fn passes(&self) -> bool {
        matches!(self, Self::Timeout(_) | Self::Busy(..) | Self::Refused(_))
    }

    /// Converts a client's error about an address.
    pub(super) fn from_client(error: &(dyn Error + 'static), address: &str, bucket: &str) -> Self {
        let called = error.downcast_ref::<CallError>().map(CallError::failure);
        let refused = match called {
            Some(Failure::Refused(refused)) => Some(refused),
            _ => refusal(error),
        };
        if let Some(refused) = refused {
            return Self::NotAllowed(address.to_owned(), refused);
        }
        let mut said = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            let inner_said = inner.to_string();
            if !said.contains(&inner_said) {
                said.push_str(": ");
                said.push_str(&inner_said);
            }
            source = inner.source();
        }
        Self::from_words(&said, address, bucket)
    }

    /// Converts the text of an answer; the error codes are those of the stores' protocols.
    fn from_words(said: &str, address: &str, bucket: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
        let (at, of) = (address.to_owned(), bucket.to_owned());
        if has(&["RequestTimeTooSkewed", "RequestExpired"]) {
            Self::ClockSkew
        } else if has(&[
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "InvalidToken",
            "ExpiredToken",
            "AuthenticationFailed",
            "401 Unauthorized",
        ]) {
            Self::Login
        } else if has(&["NoSuchBucket", "ContainerNotFound"]) {
            Self::NoBucket(of)
        } else if has(&[
            "AccessDenied",
            "403 Forbidden",
            "AuthorizationFailure",
            "AuthorizationPermissionMismatch",
        ]) {
            Self::Forbidden(of)
        } else if has(&[
            "dns error",
            "failed to lookup address",
            "Name or service not known",
        ]) {
            Self::UnknownHost(at)
        } else if has(&["certificate", "UnknownIssuer"]) {
            Self::Certificate(at)
        } else if has(&["Connection refused"]) {
            Self::Refused(at)
        } else if has(&[
            "SlowDown",
            "429 Too Many",
            "500 Internal",
            "502 Bad",
            "503 Service",
            "504 Gateway",
            "connection closed",
            "Connection reset",
        ]) {
            Self::Busy(at, cut(said))
        } else if has(&["operation timed out", "deadline has elapsed"]) {
            Self::Timeout(at)
        } else {
            Self::Other(at, cut(said))
        }
    }
}

/// Returns the refusal by the policy of connections among an error's causes.
pub(super) fn refusal(error: &(dyn Error + 'static)) -> Option<Refused> {
    let mut cause = Some(error);
    while let Some(one) = cause {
        if let Some(refused) = one.downcast_ref::<Refused>() {
            return Some(*refused);
        }
        cause = one.source();
    }
    None
}

fn cut(said: &str) -> String {
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    match flat.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", flat.get(..end).unwrap_or(&flat)),
        None => flat,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_stores_are_said_in_words_for_people() {
        let read = |said: &str| StoreError::from_words(said, "s3://b/k", "b").code();
        for (said, code) in [
            (
                "403 Forbidden: <Code>InvalidAccessKeyId</Code>",
                "credentials-refused",
            ),
            ("403 Forbidden: <Code>AccessDenied</Code>", "access-denied"),
            ("403 Forbidden: <Code>RequestTimeTooSkewed</Code>", "clock-skew"),
            ("404 Not Found: <Code>NoSuchBucket</Code>", "bucket-missing"),
            (
                "error sending request: dns error: failed to lookup address information",
                "host-unknown",
            ),
            (
                "tcp connect error: Connection refused (os error 111)",
                "connection-refused",
            ),
            ("invalid peer certificate: UnknownIssuer", "certificate-untrusted"),
            ("Server returned 503 Service Unavailable", "store-busy"),
            ("operation timed out", "store-timeout"),
            ("418 I'm a teapot", "store-failed"),
        ] {
            assert_eq!(read(said), code, "{said}");
        }
    }

    #[test]
    fn long_answers_are_cut() {
        let StoreError::Other(_, said) = StoreError::from_words(&"ä ".repeat(10_000), "a", "b") else {
            panic!("another error");
        };
        assert!(said.chars().count() <= SHOWN + 1);
    }
}
