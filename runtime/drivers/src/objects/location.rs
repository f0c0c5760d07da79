//! Addresses of objects, split into their parts.

use super::Driver;

/// The address of objects, such as `s3://bucket/folder/*.parquet`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Protocol of the address's scheme.
    pub driver: Driver,
    /// URL scheme of the address.
    pub scheme: String,
    /// Bucket or container; for web servers host and port.
    pub bucket: String,
    /// Key in the bucket without a leading slash; may be a pattern.
    pub key: String,
}

impl Location {
    /// Parses an address; none if its scheme is not that of a store.
    #[must_use]
    pub fn parse(address: &str) -> Option<Self> {
        let (scheme, rest) = address.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let drivers = [Driver::S3, Driver::Gcs, Driver::Azure, Driver::Https];
        let driver = drivers
            .into_iter()
            .find(|driver| driver.schemes().contains(&scheme.as_str()))?;
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return None;
        }
        Some(Self {
            driver,
            scheme,
            bucket: bucket.to_owned(),
            key: key.to_owned(),
        })
    }

    /// Returns the full address.
    #[must_use]
    pub fn address(&self) -> String {
        self.address_of(&self.key)
    }

    /// Returns the full address of a key in the same bucket.
    #[must_use]
    pub fn address_of(&self, key: &str) -> String {
        format!("{}://{}/{key}", self.scheme, self.bucket)
    }

    /// Returns the base folder of a pattern's matches; none for the key of one object. Web servers have no patterns,
    /// since `?` begins a query.
    #[must_use]
    pub fn folder(&self) -> Option<&str> {
        if self.driver == Driver::Https {
            return None;
        }
        let special = self.key.find(['*', '?', '[', '{'])?;
        let before = self.key.get(..special)?;
        Some(before.rsplit_once('/').map_or("", |(folder, _)| folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let location = Location::parse("s3://lake/a/b=1/*.parquet").unwrap();
        assert_eq!(
            (location.bucket.as_str(), location.folder()),
            ("lake", Some("a/b=1"))
        );
        assert_eq!(location.address_of("a/x"), "s3://lake/a/x");
        let whole = Location::parse("gs://lake/*.csv").unwrap();
        assert_eq!((whole.driver, whole.folder()), (Driver::Gcs, Some("")));
        assert_eq!(Location::parse("s3://lake/a.csv").unwrap().folder(), None);
        let query = Location::parse("HTTPS://host:8443/a.csv?day=1").unwrap();
        assert_eq!(
            (query.driver, query.bucket.as_str(), query.folder()),
            (Driver::Https, "host:8443", None)
        );
    }

    #[test]
    fn paths_and_other_schemes_are_no_addresses() {
        for text in ["data/a.csv", "/data/a.csv", "ftp://host/a", "s3:///a", "C://"] {
            assert_eq!(Location::parse(text), None, "{text}");
        }
    }
}
