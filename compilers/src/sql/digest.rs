//! Digests of 128 bits.

/// Returns the first half of a hash; 128 bits suffice against accidental collisions, and nobody gains from others.
pub(crate) fn digest(hasher: &blake3::Hasher) -> [u8; 16] {
    let mut digest = [0; 16];
    hasher.finalize_xof().fill(&mut digest);
    digest
}
