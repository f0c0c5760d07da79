//! Links to the files of reports, served by an embedder.

use std::path::Path;
use std::pin::Pin;

use watershed_core::Uid;

/// A complete file of a report, kept for 31 days, within 1 GiB for all reports together.
#[derive(Debug, Clone, Copy)]
pub struct ReportFile<'a> {
    /// The identity of the report that made the file, which stays the same through renames.
    pub uid: Uid,
    /// The name of the report.
    pub report: &'a str,
    /// The name of the file, as shown to receivers.
    pub name: &'a str,
    /// The path of the file on disk.
    pub path: &'a Path,
    /// The media type of the file, as in HTTP.
    pub media_type: &'a str,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The BLAKE3 hash of the content, in hexadecimal digits.
    pub hash: &'a str,
}

/// A future with the URL of a file; none if receivers are told the path instead.
pub type Link<'a> = Pin<Box<dyn Future<Output = Option<String>> + Send + 'a>>;

/// A source of links to report files. It is called once per file, before the messages are stored, so that all attempts
/// carry the same link; after a crash in between it is called again.
pub trait Links: Send + Sync + 'static {
    /// Returns the URL at which receivers find a file; mails show `https://` URLs as links.
    fn link<'a>(&'a self, file: ReportFile<'a>) -> Link<'a>;
}
