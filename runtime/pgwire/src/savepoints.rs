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

/// The savepoints of a transaction, the last at the end.
#[derive(Debug, Default)]
pub(crate) struct Savepoints(Vec<String>);

impl Savepoints {
    /// Takes a step; returns the word that answers it.
    ///
    /// # Errors
    /// For a savepoint that does not exist, and for too many.
    pub(crate) fn take(&mut self, step: Step) -> Result<&'static str, SqlError> {
        match step {
            Step::Set(_) if self.0.len() >= MOST => {
                let message = format!("a transaction has at most {MOST} savepoints");
                Err(SqlError::new(TOO_MANY, message).hint("release some of them"))
            }
            Step::Set(name) => {
                self.0.push(name);
                Ok("SAVEPOINT")
            }
            Step::Release(name) => {
                let at = self.place(&name)?;
                self.0.truncate(at);
                Ok("RELEASE")
            }
            Step::Back(name) => {
                let at = self.place(&name)?;
                self.0.truncate(at + 1);
                Ok("ROLLBACK")
            }
        }
    }

    /// Forgets all of them, as the transaction ends.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    fn place(&self, name: &str) -> Result<usize, SqlError> {
        let found = self.0.iter().rposition(|own| own == name);
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
        for name in ["a", "b", "a"] {
            assert_eq!(all.take(set(name)), Ok("SAVEPOINT"));
        }
        assert_eq!(all.take(Step::Back("b".to_owned())), Ok("ROLLBACK"));
        assert_eq!(all.0, ["a", "b"]);
        assert_eq!(all.take(Step::Release("a".to_owned())), Ok("RELEASE"));
        let gone = all.take(Step::Back("a".to_owned()));
        assert_eq!(gone.map_err(|error| error.state), Err(NO_SAVEPOINT));
        for _ in 0..MOST {
            assert!(all.take(set("a")).is_ok());
        }
        assert_eq!(all.take(set("a")).map_err(|error| error.state), Err(TOO_MANY));
        all.clear();
        assert!(all.0.is_empty());
    }
}
