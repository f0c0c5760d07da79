//! Prefixes of addresses, which bound what a confined project may ask stores and web servers for.

use std::fmt;
use std::str::FromStr;

use watershed_outside::http::Url;

use super::{Access, Driver, Location};

/// A prefix of addresses, such as `s3://lake/raw/` or `https://rates.example.org/daily/`.
///
/// Scheme and bucket (or host and port) are exact, and a path is compared by whole parts: `s3://lake/raw` holds
/// `s3://lake/raw/a.csv` and not `s3://lake/raw-of-others/a.csv`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    text: String,
    location: Location,
}

impl Prefix {
    /// Returns true if an address, or a pattern of addresses, begins with the prefix. An address that could be read in two
    /// ways does not.
    pub fn holds(&self, address: &str) -> bool {
        let Some(asked) = exact(address) else { return false };
        let Location {
            driver,
            scheme,
            bucket,
            key,
        } = &self.location;
        let is_same = (asked.driver, &asked.scheme, &asked.bucket) == (*driver, scheme, bucket);
        let rest = asked.key.strip_prefix(key.as_str());
        let is_whole = |rest: &str| {
            rest.is_empty() || key.is_empty() || key.ends_with('/') || rest.starts_with(['/', '?'])
        };
        is_same && rest.is_some_and(is_whole)
    }
}

/// Returns true if an address, the endpoint of its store, and the name of the store's host are all within prefixes.
///
/// A project writes its connectors itself, and an endpoint of its own would make `s3://lake` a store of anybody's.
pub fn is_within(prefixes: &[Prefix], access: &Access, address: &str) -> bool {
    let holds = |address: &str| prefixes.iter().any(|prefix| prefix.holds(address));
    let is_name = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let account = access.key.as_deref().unwrap_or_default();
    let endpoint = match (access.endpoint_url(), access.driver) {
        (Some(endpoint), _) => Some(endpoint),
        (None, Driver::Azure) => Some(format!("https://{account}.blob.core.windows.net")),
        (None, _) => None,
    };
    let is_plain = access.region.as_deref().is_none_or(is_name)
        && (access.driver != Driver::Azure || is_name(account) && !account.is_empty());
    is_plain && holds(address) && endpoint.is_none_or(|endpoint| holds(&endpoint))
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let location = exact(text).ok_or(PrefixError)?;
        if location.key.contains(['*', '?', '[', '{']) {
            return Err(PrefixError);
        }
        let text = text.to_owned();
        Ok(Self { text, location })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The error of a text that is no prefix of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no address of a store or a web server without patterns")]
pub struct PrefixError;

/// Returns the parts of an address in their one spelling; none if the address has another meaning to some reader.
fn exact(address: &str) -> Option<Location> {
    let location = Location::parse(address)?;
    if location.driver == Driver::Https {
        return of_web(address);
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_odd = |part: &str| matches!(part, "." | "..");
    if !location.bucket.bytes().all(is_plain) || location.key.contains('\\') {
        return None;
    }
    if location.key.split('/').any(is_odd) || location.key.chars().any(char::is_control) {
        return None;
    }
    let scheme = location.driver.schemes().first()?;
    Some(Location {
        scheme: (*scheme).to_owned(),
        ..location
    })
}

/// Returns the parts of an address of the web, as the client that asks for it reads it.
fn of_web(address: &str) -> Option<Location> {
    let url = Url::parse(address).ok()?;
    let is_odd = !url.username().is_empty() || url.password().is_some() || url.fragment().is_some();
    let path = url.path();
    let lower = path.to_ascii_lowercase();
    if is_odd || lower.contains("%2f") || lower.contains("%5c") {
        return None;
    }
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    Some(Location {
        driver: Driver::Https,
        scheme: url.scheme().to_owned(),
        bucket: format!("{}:{}", url.host_str()?, url.port_or_known_default()?),
        key: format!("{}{query}", path.trim_start_matches('/')),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn s_api40_a_prefix_holds_what_begins_with_its_whole_parts() {
        let lake = prefix("s3://lake/raw/");
        let web = prefix("https://rates.example.org/daily");
        for inside in [
            "s3://lake/raw/a.csv",
            "s3a://lake/raw/*/b.parquet",
            "S3://lake/raw/day=1/a b.csv",
        ] {
            assert!(lake.holds(inside), "{inside}");
        }
        for outside in [
            "s3://lake/rawer/a.csv",
            "s3://lake/*/a.csv",
            "s3://lake/raw/../b/a.csv",
            "s3://lake/./raw/a.csv",
            "s3://other/raw/a.csv",
            "gs://lake/raw/a.csv",
            "s3://lake\\raw/a.csv",
            "https://lake/raw/a.csv",
        ] {
            assert!(!lake.holds(outside), "{outside}");
        }
        for inside in [
            "https://rates.example.org/daily",
            "https://RATES.example.org:443/daily/x.csv?day=1",
            "https://rates.example.org/a/../daily/x.csv",
        ] {
            assert!(web.holds(inside), "{inside}");
        }
        for outside in [
            "http://rates.example.org/daily/x.csv",
            "https://rates.example.org/daily/../x.csv",
            "https://rates.example.org/daily/%2e%2e/x.csv",
            "https://rates.example.org/daily/..%2fx.csv",
            "https://rates.example.org/daily\\..\\x.csv",
            "https://rates.example.org/dailyx",
            "https://rates.example.org:444/daily/x.csv",
            "https://rates.example.org@evil.example/daily/x.csv",
            "https://a@rates.example.org/daily/x.csv",
            "https://rates.example.org.evil.example/daily/x.csv",
        ] {
            assert!(!web.holds(outside), "{outside}");
        }
    }

    #[test]
    fn patterns_and_paths_are_no_prefixes() {
        for text in [
            "s3://lake/*",
            "/srv/data",
            "s3://",
            "ftp://host/",
            "https://a b/",
            "https://host/x?y=1",
        ] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }

    #[test]
    fn s_api40_endpoints_regions_and_accounts_have_to_be_listed_too() {
        let prefixes = [
            prefix("s3://lake/"),
            prefix("azure://lake/"),
            prefix("https://minio.example.org"),
        ];
        let s3 = Access::default();
        let with = |endpoint: &str| Access {
            endpoint: Some(endpoint.to_owned()),
            ..Access::default()
        };
        let region = |region: &str| Access {
            region: Some(region.to_owned()),
            ..Access::default()
        };
        let azure = |account: Option<&str>| Access {
            driver: Driver::Azure,
            key: account.map(str::to_owned),
            ..Access::default()
        };
        let asked = "s3://lake/a.csv";
        for (access, address, expected) in [
            (s3, asked, true),
            (with("https://minio.example.org"), asked, true),
            (with("minio.example.org"), asked, true),
            (with("https://evil.example"), asked, false),
            (with("http://minio.example.org"), asked, false),
            (region("eu-west-1"), asked, true),
            (region("evil.example/#"), asked, false),
            (azure(Some("ours")), "azure://lake/a.csv", false),
            (azure(Some("evil.example/")), "azure://lake/a.csv", false),
            (azure(None), "azure://lake/a.csv", false),
        ] {
            assert_eq!(
                is_within(&prefixes, &access, address),
                expected,
                "{access:?} {address}"
            );
        }
        let more = [&prefixes[..], &[prefix("https://ours.blob.core.windows.net")]].concat();
        assert!(is_within(&more, &azure(Some("ours")), "az://lake/a.csv"));
    }
}
