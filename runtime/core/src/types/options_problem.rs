//! Options with which no controller can work.

use std::sync::Arc;

use crate::{Kind, KindOptions, Limits, NameProblem};

/// Reason why no controller can work with its options: resources would silently never run.
///
/// ```
/// use watershed_core::{KindOptions, Limits, OptionsProblem};
///
/// let kinds = [KindOptions { concurrency: Some(0), ..KindOptions::new("page") }];
/// let problem = Limits::default().check(&kinds).unwrap_err();
/// assert_eq!(problem, OptionsProblem::KindConcurrency("page".into()));
/// assert_eq!(problem.to_string(), "kind \"page\" has a concurrency of 0, expected at least 1");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsProblem {
    /// The name of a kind is invalid.
    #[error("{:?} can't be a kind: it {problem}", kind.as_str())]
    Kind {
        /// Kind whose name is invalid.
        kind: Kind,
        /// Reason why the name of the kind is invalid.
        problem: NameProblem,
    },
    /// The kind's concurrency is 0, so none of its resources would ever run.
    #[error("kind \"{0}\" has a concurrency of 0, expected at least 1")]
    KindConcurrency(Kind),
    /// The pool's limit is 0, so nothing in it would ever run.
    #[error("pool {pool:?} of kind \"{kind}\" has a limit of 0, expected at least 1")]
    PoolLimit {
        /// Kind that names the pool.
        kind: Kind,
        /// Name of the pool with the limit of 0.
        pool: Arc<str>,
    },
    /// The controller's concurrency is 0, so nothing would ever run.
    #[error("the controller has a concurrency of 0, expected at least 1")]
    Concurrency,
    /// The backlog is 0, so no call would ever be accepted.
    #[error("the controller has a backlog of 0, expected at least 1")]
    Backlog,
}

impl Limits {
    /// Checks that a controller can work with these limits and kinds.
    ///
    /// # Errors
    /// If one of the limits is zero, or a kind's name is none that a resource could have.
    pub fn check(&self, kinds: &[KindOptions]) -> Result<(), OptionsProblem> {
        if self.concurrency == 0 {
            return Err(OptionsProblem::Concurrency);
        }
        if self.backlog == 0 {
            return Err(OptionsProblem::Backlog);
        }
        kinds.iter().try_for_each(KindOptions::check)
    }
}

impl KindOptions {
    fn check(&self) -> Result<(), OptionsProblem> {
        let kind = || self.kind.clone();
        if let Some(problem) = self.kind.problem() {
            return Err(OptionsProblem::Kind {
                kind: kind(),
                problem,
            });
        }
        // The other options of a kind without a reconciler count for nothing.
        if self.passive {
            return Ok(());
        }
        if self.concurrency == Some(0) {
            return Err(OptionsProblem::KindConcurrency(kind()));
        }
        match self.pool.as_ref().filter(|pool| pool.limit == 0) {
            Some(pool) => Err(OptionsProblem::PoolLimit {
                kind: kind(),
                pool: pool.name.clone(),
            }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Core, Now, OpenError, Pool, Stored};

    use super::*;

    fn refused(limits: Limits, options: KindOptions) -> Option<String> {
        let problem = limits.check(std::slice::from_ref(&options)).err();
        let opened = Core::open(Now::default(), limits, vec![options], Stored::default()).err();
        assert_eq!(
            opened,
            problem.clone().map(OpenError::Options),
            "the core says the same"
        );
        problem.map(|problem| problem.to_string())
    }

    #[test]
    fn a_limit_of_zero_is_refused_by_name() {
        let (limits, page) = (Limits::default(), || KindOptions::new("page"));
        assert_eq!(refused(limits, page()), None);
        let nothing_runs = refused(limits.concurrency(0), page());
        assert!(nothing_runs.is_some_and(|text| text.starts_with("the controller has a concurrency of 0")));
        let nothing_is_taken = refused(limits.backlog(0), page());
        assert!(nothing_is_taken.is_some_and(|text| text.starts_with("the controller has a backlog of 0")));
        let of_kind = |passive| KindOptions {
            concurrency: Some(0),
            passive,
            ..page()
        };
        let text = refused(limits, of_kind(false));
        assert!(text.is_some_and(|text| text.starts_with("kind \"page\" has a concurrency of 0")));
        assert_eq!(refused(limits, of_kind(true)), None, "it never runs in any case");
        let in_pool = KindOptions {
            pool: Some(Pool {
                name: "warehouse".into(),
                limit: 0,
                exclusive: false,
            }),
            ..page()
        };
        let text = refused(limits, in_pool);
        assert!(
            text.is_some_and(|text| text.starts_with("pool \"warehouse\" of kind \"page\" has a limit of 0"))
        );
    }

    #[test]
    fn a_kind_of_which_nothing_could_be_created_is_refused() {
        for (kind, said) in [
            ("", "\"\" can't be a kind: it "),
            ("a/b", "\"a/b\" can't be a kind: it "),
            ("a\nb", "\"a\\nb\" can't be a kind: it "),
        ] {
            for passive in [false, true] {
                let options = KindOptions {
                    passive,
                    ..KindOptions::new(kind)
                };
                let text = refused(Limits::default(), options).expect("it is refused");
                assert!(text.starts_with(said), "{text}");
            }
        }
    }
}
