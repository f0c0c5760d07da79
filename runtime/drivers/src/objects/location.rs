//! The parts of an object's address.

use super::Driver;

/// An address of objects: `s3://bucket/folder/*.parquet`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The protocol that its scheme names.
    pub driver: Driver,
    /// Its scheme.
    pub scheme: String,
    /// The bucket or container; of web servers the host, with its port.
    pub bucket: String,
    /// The key within it, perhaps a pattern; without a slash at its beginning.
    pub key: String,
}

impl Location {
    /// Reads an address; none if its scheme is no store's.
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

    /// Returns the whole address.
    #[must_use]
    pub fn address(&self) -> String {
        self.address_of(&self.key)
    }

    /// Returns the address of a key in the same bucket.
    #[must_use]
    pub fn address_of(&self, key: &str) -> String {
        format!("{}://{}/{key}", self.scheme, self.bucket)
    }

    /// Returns the folder in which the matches of a pattern lie; none for the key of one object. On web servers nothing is
    /// a pattern: `?` begins a query.
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
