//! Numbers of relations and databases, which stay over restarts and renames.

use std::collections::HashMap;
use std::sync::Mutex;

use uuid::Uuid;
use watershed_locks::Unpoisoned as _;

/// The first number that is not the catalog's own.
const FIRST: u32 = 20_000;
/// The end of the numbers: clients read them as positive numbers of 32 bits.
const END: u32 = i32::MAX as u32;

/// The numbers that were given. Each comes from the resource's id; of two that would share one, the later asked takes the next.
#[derive(Debug, Default)]
pub(super) struct Oids(Mutex<Given>);

#[derive(Debug, Default)]
struct Given {
    of: HashMap<Uuid, u32>,
    has: HashMap<u32, Uuid>,
}

impl Oids {
    /// Returns the number of a resource.
    pub(super) fn of(&self, uid: Uuid) -> u32 {
        let mut given = self.0.lock().unpoisoned();
        if let Some(known) = given.of.get(&uid) {
            return *known;
        }
        let mut number = hashed(uid.as_bytes());
        while given.has.contains_key(&number) {
            number = next(number);
        }
        given.of.insert(uid, number);
        given.has.insert(number, uid);
        number
    }
}

/// Returns the number of a database.
pub(super) fn of_name(name: &str) -> u32 {
    hashed(name.as_bytes())
}

fn hashed(bytes: &[u8]) -> u32 {
    let hash = blake3::hash(bytes);
    let [a, b, c, d, ..] = *hash.as_bytes();
    FIRST + u32::from_be_bytes([a, b, c, d]) % (END - FIRST)
}

fn next(number: u32) -> u32 {
    match number + 1 < END {
        true => number + 1,
        false => FIRST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_api29_a_number_stays_and_belongs_to_one_resource() {
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let oids = Oids::default();
        let number = oids.of(one);
        assert!((FIRST..END).contains(&number) && number == oids.of(one));
        // After a restart.
        assert_eq!(Oids::default().of(one), number);
        // Somebody else has the number already.
        let taken = Oids::default();
        let own = hashed(other.as_bytes());
        taken.0.lock().unpoisoned().has.insert(own, one);
        assert_eq!(taken.of(other), next(own));
        assert_eq!(next(END - 1), FIRST);
    }
}
