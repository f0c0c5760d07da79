//! Hashing of uids: they are random already, so a few multiplications do.

use std::hash::{BuildHasherDefault, Hasher};

/// For maps whose keys are uids.
pub(crate) type UidHash = BuildHasherDefault<UidHasher>;

/// Mixes the two halves of a uid.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct UidHasher(u64);

/// An odd number with bits all over, as multiplicative hashing wants it: 2^64 divided by the golden ratio.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for UidHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            // Big-endian: what tells uids apart comes last in them, and products carry upwards.
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0.rotate_left(29) ^ u64::from_be_bytes(word)).wrapping_mul(MIX);
        }
    }

    fn write_usize(&mut self, _length: usize) {
        // The length prefix of the bytes, the same for all.
    }

    fn finish(&self) -> u64 {
        // Maps look at the low bits, and a product has its good ones on top.
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use uuid::Uuid;
    use watershed_core::Uid;

    use super::*;

    #[test]
    fn uids_that_count_up_or_were_made_together_spread_over_the_low_bits() {
        let counted = (0..4_096_u128).map(|n| Uid(Uuid::from_u128(n)));
        let made = (0..4_096).map(|_| Uid(Uuid::now_v7()));
        for uids in [counted.collect::<Vec<_>>(), made.collect()] {
            let buckets: HashSet<u64> = uids
                .iter()
                .map(|uid| UidHash::default().hash_one(uid) & 0xfff)
                .collect();
            // A random function fills 63 % of as many buckets.
            assert!(buckets.len() > 2_300, "{}", buckets.len());
        }
    }
}
