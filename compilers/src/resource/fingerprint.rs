//! Fingerprints of the meaning of resources.

use std::sync::Arc;

/// A 128-bit digest of a meaning, with the version of the rules that produced it.
///
/// Two fingerprints of one version are equal when what they stand for means the same. Fingerprints of different
/// versions say nothing about one another: make the old text's anew with [`Project`] and compare those.
///
/// [`Project`]: crate::Project
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint {
    /// The version of the compiler's rules and of the engine's parser.
    pub version: Arc<str>,
    /// The 128-bit hash of the fingerprinted meaning.
    pub digest: [u8; 16],
}

impl Fingerprint {
    /// Returns the fingerprint as the message that specs carry.
    pub fn to_proto(&self) -> watershed_proto::Fingerprint {
        watershed_proto::Fingerprint {
            version: self.version.to_string(),
            digest: self.digest.to_vec(),
        }
    }
}
