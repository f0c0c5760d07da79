//! Digests over several parts.

/// Returns a 16-byte digest of the parts in their order. Equal parts have different digests in different contexts.
pub fn digest<'a>(context: &str, parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for part in parts {
        // So that parts are told apart.
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}
