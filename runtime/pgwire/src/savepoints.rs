//! Savepoints of a transaction: as nothing is written, they say how far a failed transaction goes back to be good again.

use crate::state::{NO_SAVEPOINT, SqlError, TOO_MANY};

/// The most savepoints of a transaction.
const MOST: usize = 256;

/// A step with a savepoint of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Sets it.
    Set(String),
    /// Forgets it, and all behind it.
    Release(String),
    /// Goes back to it, and forgets all behind it.
    Back(String),
}

/// The savepoints of a transaction, the last at the end, each with the number of portals that were made before.
#[derive(Debug, Default)]
pub(crate) struct Savepoints {
    all: Vec<(String, u64)>,
    begun: u64,
}

impl Savepoints {
    /// Begins a transaction, after a number of portals.
    pub(crate) fn begin(&mut self, made: u64) {
        self.all.clear();
        self.begun = made;
    }

    /// Returns the number of portals that were made before the last savepoint, or else before the transaction: a failure ends
    /// the others.
    pub(crate) fn made_before(&self) -> u64 {
        self.all.last().map_or(self.begun, |(_, made)| *made)
    }

    /// Takes a step, after a number of portals; returns the word that answers it.
    ///
    /// # Errors
    /// For a savepoint that does not exist, and for too many.
    pub(crate) fn take(&mut self, step: Step, made: u64) -> Result<&'static str, SqlError> {
        match step {
            Step::Set(_) if self.all.len() >= MOST => {
                let message = format!("a transaction has at most {MOST} savepoints");
                Err(SqlError::new(TOO_MANY, message).hint("release some of them"))
            }
            Step::Set(name) => {
                self.all.push((name, made));
                Ok("SAVEPOINT")
            }
            Step::Release(name) => {
                let at = self.place(&name)?;
                self.all.truncate(at);
                Ok("RELEASE")
            }
            Step::Back(name) => {
                let at = self.place(&name)?;
                self.all.truncate(at + 1);
                Ok("ROLLBACK")
            }
        }
    }

    fn place(&self, name: &str) -> Result<usize, SqlError> {
        let found = self.all.iter().rposition(|(own, _)| own == name);
        found.ok_or_else(|| SqlError::new(NO_SAVEPOINT, format!("there is no savepoint \"{name}\"")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_api28_savepoints_are_those_of_their_names() {
        let mut all = Savepoints::default();
        let set = |name: &str| Step::Set(name.to_owned());
        all.begin(7);
        assert_eq!(all.made_before(), 7);
        for (name, made) in [("a", 8), ("b", 9), ("a", 10)] {
            assert_eq!(all.take(set(name), made), Ok("SAVEPOINT"));
        }
        assert_eq!(all.take(Step::Back("b".to_owned()), 11), Ok("ROLLBACK"));
        assert_eq!(all.made_before(), 9);
        assert_eq!(all.take(Step::Release("a".to_owned()), 11), Ok("RELEASE"));
        assert_eq!(all.made_before(), 7);
        let gone = all.take(Step::Back("a".to_owned()), 11);
        assert_eq!(gone.map_err(|error| error.state), Err(NO_SAVEPOINT));
        for _ in 0..MOST {
            assert!(all.take(set("a"), 12).is_ok());
        }
        assert_eq!(all.take(set("a"), 12).map_err(|error| error.state), Err(TOO_MANY));
        all.begin(20);
        assert_eq!(all.made_before(), 20);
    }
}
