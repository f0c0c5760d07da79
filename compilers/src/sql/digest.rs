//! 128 bits of a hash.

/// The first half of a hash: 128 bits are enough against accident, and texts have no other adversary.
pub(crate) fn digest(hasher: &blake3::Hasher) -> [u8; 16] {
    let mut digest = [0; 16];
    hasher.finalize_xof().fill(&mut digest);
    digest
}
