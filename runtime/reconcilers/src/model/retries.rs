//! The `retry` settings of a model: times of retries, and the errors that are retried.

use std::time::Duration;

use regex::Regex;
use watershed_compilers::{
    Spec,
    spec_json::{DEFAULT_ATTEMPTS, DEFAULT_DELAY_SECONDS, DEFAULT_RETRIED},
};
use watershed_core::{Error, ErrorKind, RetryPolicy};
use watershed_proto::{ModelSpec, Retry};

/// The longest wait between attempts, unless a longer one is set.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Returns the retry policy that a spec sets; none if it sets none or is of another kind than model.
#[must_use]
pub fn policy(spec: &Spec) -> Option<RetryPolicy> {
    match spec {
        Spec::Model(spec) => spec.retry.as_ref().map(policy_of),
        _ => None,
    }
}

fn policy_of(retry: &Retry) -> RetryPolicy {
    let attempts = retry.attempts.unwrap_or(DEFAULT_ATTEMPTS);
    if attempts < 2 {
        return RetryPolicy::Never;
    }
    let base = Duration::from_secs(retry.delay_seconds.unwrap_or(DEFAULT_DELAY_SECONDS).into());
    let grows = retry.exponential_backoff.unwrap_or(true);
    RetryPolicy::Backoff {
        base,
        cap: if grows { base.max(LONGEST_WAIT) } else { base },
        attempts,
        reset_after: Duration::ZERO,
    }
}

/// Returns the error with its retriability set by the spec's patterns. Without patterns, transient errors and those of
/// the format's default patterns are retried.
pub(super) fn judged(spec: &ModelSpec, error: Error) -> Error {
    let Some(retry) = &spec.retry else {
        return error;
    };
    if spec.fault.is_some() || matches!(error.kind, ErrorKind::Dependency(_) | ErrorKind::Fenced) {
        return error;
    }
    let kind = match retry.if_error_matches.as_slice() {
        [] if matches(&DEFAULT_RETRIED, &error.message) => ErrorKind::Transient,
        [] => return error,
        patterns if matches(patterns, &error.message) => ErrorKind::Transient,
        _ => ErrorKind::Permanent,
    };
    Error { kind, ..error }
}

/// Returns true if a pattern matches a message; invalid patterns, which the compiler has reported, match nothing.
fn matches(patterns: &[impl AsRef<str>], message: &str) -> bool {
    let mut patterns = patterns.iter().filter_map(|it| Regex::new(it.as_ref()).ok());
    patterns.any(|pattern| pattern.is_match(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(retry: Retry) -> ModelSpec {
        ModelSpec {
            retry: Some(retry),
            ..ModelSpec::default()
        }
    }

    fn is_tried_again(patterns: &[&str], error: Error) -> bool {
        let retry = Retry {
            if_error_matches: patterns.iter().map(|it| (*it).to_owned()).collect(),
            ..Retry::default()
        };
        judged(&spec(retry), error).kind == ErrorKind::Transient
    }

    #[test]
    fn what_is_not_said_is_as_the_format_has_it() {
        let seconds = Duration::from_secs;
        let backoff = |base, cap, attempts| RetryPolicy::Backoff {
            base: seconds(base),
            cap: seconds(cap),
            attempts,
            reset_after: Duration::ZERO,
        };
        assert_eq!(policy_of(&Retry::default()), backoff(5, 300, 3));
        let said = |attempts, delay, exponential| {
            policy_of(&Retry {
                attempts: Some(attempts),
                delay_seconds: Some(delay),
                exponential_backoff: Some(exponential),
                ..Retry::default()
            })
        };
        assert_eq!(said(4, 600, true), backoff(600, 600, 4));
        assert_eq!(said(2, 0, false), backoff(0, 0, 2));
        assert_eq!(said(1, 5, true), RetryPolicy::Never);
        assert_eq!(said(0, 5, true), RetryPolicy::Never);
        assert_eq!(policy(&Spec::Model(Box::default())), None);
    }

    #[test]
    fn patterns_say_which_errors_are_worth_another_try() {
        let permanent = |message: &str| Error::permanent("sql-io", message);
        let transient = |message: &str| Error::transient("engine", message);
        assert!(is_tried_again(
            &["^HTTP 5\\d\\d"],
            permanent("HTTP 503 for the file")
        ));
        assert!(!is_tried_again(&["^HTTP 5\\d\\d"], permanent("not HTTP 503")));
        assert!(!is_tried_again(&["x"], transient("y")), "only those");
        assert!(is_tried_again(&[], transient("y")));
        assert!(is_tried_again(&[], permanent("502 Bad Gateway")));
        assert!(!is_tried_again(&[], permanent("no column x")));
        assert!(!is_tried_again(&["("], transient("(")), "no pattern at all");
    }

    #[test]
    fn a_failed_ref_is_no_matter_of_patterns() {
        let to = watershed_core::Ref::completed("model", "a");
        let error = super::super::failure::missing_ref(&to);
        assert!(!is_tried_again(&[".*"], error));
    }
}
