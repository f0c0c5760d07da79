//! Hashing of what the core itself hands out, and of names: a few multiplications, because that is all it takes.
//!
//! Uids are random and slots, invocations and calls are counted, so nobody can choose them to collide. Names are
//! chosen by people; who may fill a catalog with names made to collide can fill it with names in any case.

use std::hash::{BuildHasherDefault, Hasher};

/// For maps with such keys.
pub type QuickHash = BuildHasherDefault<QuickHasher>;

/// Mixes words by multiplication.
#[derive(Debug, Default, Clone, Copy)]
pub struct QuickHasher(u64);

/// An odd number with bits all over, as multiplicative hashing wants it: 2^64 divided by the golden ratio.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

impl QuickHasher {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(29) ^ word).wrapping_mul(MIX);
    }
}

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            // Big-endian: what tells uids apart comes last in them, and products carry upwards.
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_be_bytes(word));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.mix(u64::from(byte));
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    fn write_usize(&mut self, _length: usize) {
        // The length of bytes that follow, which tells nothing apart that they don't.
    }

    fn finish(&self) -> u64 {
        // Maps look at the low bits, and a product has its good ones on top.
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, Hash};

    use uuid::Uuid;

    use super::*;
    use crate::{InvocationId, Kind, Name, Uid};

    fn buckets<T: Hash>(keys: impl Iterator<Item = T>) -> usize {
        keys.map(|key| QuickHash::default().hash_one(key) & 0xfff)
            .collect::<HashSet<u64>>()
            .len()
    }

    #[test]
    fn keys_that_count_up_spread_over_the_low_bits() {
        // A random function fills 63 % of as many buckets.
        assert!(buckets((0..4_096_u128).map(|n| Uid(Uuid::from_u128(n)))) > 2_300);
        assert!(buckets((0..4_096_u128).map(|n| Uid(Uuid::from_u128(n << 64 | 7)))) > 2_300);
        assert!(buckets((0..4_096).map(InvocationId)) > 2_300);
        assert!(buckets((0..4_096).map(|n| Name::new(format!("thing{n:06}")))) > 2_300);
        assert!(buckets((0..4_096).map(|n| Kind::new(format!("kind{n:06}")))) > 2_300);
        assert_eq!(buckets(0..=255_u8), 256);
        assert!(buckets(0..4_096_u32) > 2_300);
    }
}
