//! Local files and object stores that SQL names.

/// Returns true if a path means local files.
pub(crate) fn is_local(path: &str) -> bool {
    !path.is_empty() && !path.contains("://")
}

/// Drivers of object stores, with the schemes of their addresses.
pub(crate) const STORES: [(&str, &[&str]); 3] = [
    ("s3", &["s3", "s3a", "s3n"]),
    ("gcs", &["gs", "gcs"]),
    ("azure", &["azure", "az"]),
];

/// Returns the driver of the object store that an address lies in, if it does.
pub(crate) fn store_of(address: &str) -> Option<&'static str> {
    let (scheme, _) = address.split_once("://")?;
    let is_its = |(_, schemes): &&(&str, &[&str])| schemes.contains(&scheme.to_ascii_lowercase().as_str());
    STORES.iter().find(is_its).map(|(driver, _)| *driver)
}
