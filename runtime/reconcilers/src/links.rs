//! Links to files of reports, as an embedder serves them.

use std::path::Path;
use std::pin::Pin;

/// A file that a report made. It is whole, and stays for 31 days, within 1 GiB for all reports together.
#[derive(Debug, Clone, Copy)]
pub struct ReportFile<'a> {
    /// The report's name.
    pub report: &'a str,
    /// The file's name, as receivers see it.
    pub name: &'a str,
    /// Its path.
    pub path: &'a Path,
    /// Its media type.
    pub media_type: &'a str,
    /// Its size in bytes.
    pub bytes: u64,
    /// The BLAKE3 digest of its content, in hexadecimal digits.
    pub hash: &'a str,
}

/// The address of a file; none where receivers are told its path.
pub type Link<'a> = Pin<Box<dyn Future<Output = Option<String>> + Send + 'a>>;

/// Makes links to files of reports. It is asked once for each file, before its messages are stored: all of them have the
/// same link, however often they are tried. After a crash in between it is asked again.
pub trait Links: Send + Sync + 'static {
    /// Returns the address at which receivers find a file: an `https://` one is a link in mails.
    fn link<'a>(&'a self, file: ReportFile<'a>) -> Link<'a>;
}
