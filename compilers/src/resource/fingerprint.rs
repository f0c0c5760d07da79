//! Fingerprints of meaning.

use std::sync::Arc;

/// 128 bits that stand for a meaning, with the version of the rules that made them.
///
/// Two fingerprints of one version are equal when what they stand for means the same. Fingerprints of different
/// versions say nothing about one another: make the old text's anew with [`Project`] and compare those.
///
/// [`Project`]: crate::Project
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint {
    /// Version of the rules: ours and the engine's parser.
    pub version: Arc<str>,
    /// The bits.
    pub digest: [u8; 16],
}

impl Fingerprint {
    /// The message that specs carry.
    pub fn to_proto(&self) -> watershed_proto::Fingerprint {
        watershed_proto::Fingerprint {
            version: self.version.to_string(),
            digest: self.digest.to_vec(),
        }
    }
}
