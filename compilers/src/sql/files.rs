//! Files of data that SQL names.

/// Returns true if a path stands for files of this machine.
pub(crate) fn is_local(path: &str) -> bool {
    !path.is_empty() && !path.contains("://")
}

/// Drivers of stores of objects, with the schemes of their addresses.
pub(crate) const STORES: [(&str, &[&str]); 3] = [
    ("s3", &["s3", "s3a", "s3n"]),
    ("gcs", &["gs", "gcs"]),
    ("azure", &["azure", "az"]),
];

/// Returns the driver of the store in which an address lies; none if it lies in none.
pub(crate) fn store_of(address: &str) -> Option<&'static str> {
    let (scheme, _) = address.split_once("://")?;
    let is_its = |(_, schemes): &&(&str, &[&str])| schemes.contains(&scheme.to_ascii_lowercase().as_str());
    STORES.iter().find(is_its).map(|(driver, _)| *driver)
}
