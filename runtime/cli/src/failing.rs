//! Failures that repeat: `start` shows each once, and the number of repetitions when the failure is over.

use std::collections::BTreeMap;

use watershed_api::documents::{Event, LastRun, Outcome, ResourceName};

/// The number of equal ends of which `start` says how many there were; fewer are seen above.
const WORTH_TELLING: u64 = 3;

/// The failures that persist, with the number of times that each was repeated.
#[derive(Debug, Default)]
pub(super) struct Failing(BTreeMap<ResourceName, Standing>);

#[derive(Debug)]
struct Standing {
    outcome: Outcome,
    message: Option<String>,
    times: u64,
}

/// The novelty of a run's end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// The end says something new.
    News,
    /// The same failure came again by itself, without a person's request.
    Again,
    /// The end says something new, after the previous failure came this many times.
    Over(u64),
}

impl Failing {
    /// Records the end of a run, and returns its novelty.
    pub(super) fn hear(&mut self, event: &Event) -> Heard {
        let Event::ResourceFinished {
            resource, run, error, ..
        } = event
        else {
            return Heard::News;
        };
        let before = match run.outcome {
            Outcome::Failed | Outcome::Skipped => {
                let message = error.as_ref().map(|error| error.message.clone());
                if let Some(standing) = self.0.get_mut(resource)
                    && comes_by_itself(run)
                    && (standing.outcome, &standing.message) == (run.outcome, &message)
                {
                    standing.times += 1;
                    return Heard::Again;
                }
                let standing = Standing {
                    outcome: run.outcome,
                    message,
                    times: 1,
                };
                self.0.insert(resource.clone(), standing)
            }
            Outcome::Done | Outcome::Unchanged => self.0.remove(resource),
            Outcome::Cancelled | Outcome::NotSelected => None,
        };
        match before {
            Some(before) if before.times >= WORTH_TELLING => Heard::Over(before.times),
            _ => Heard::News,
        }
    }
}

/// Returns true if a timer, a retry or something outside triggered the run. Edits and requests are always reported.
fn comes_by_itself(run: &LastRun) -> bool {
    run.reason.is_timed() || run.chain.iter().any(|link| link.reason.is_timed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_api::documents::{Ended, Link, Reason, ResourceError, Time, Work};

    fn ended(name: &str, outcome: Outcome, message: &str, first: Reason) -> Event {
        let link = |reason| Link {
            resource: ResourceName::new("model", name),
            reason,
            origin: None,
            omitted: 0,
        };
        let error = (outcome == Outcome::Failed).then(|| ResourceError {
            code: "away".to_owned(),
            message: message.to_owned(),
            hint: None,
            details: None,
            at: None,
            retryable: true,
        });
        Event::ResourceFinished {
            at: Time::from_millis(1),
            resource: ResourceName::new("model", name),
            work: Work::None,
            error,
            about: Ended::default(),
            run: LastRun {
                id: "1.1".to_owned(),
                reason: Reason::Parent,
                cause: Vec::new(),
                chain: vec![link(first), link(Reason::Parent)],
                started_at: Time::from_millis(0),
                duration_ms: 1,
                outcome,
            },
        }
    }

    #[test]
    fn a_failure_is_told_once_and_counted_until_it_is_another_or_over() {
        let (by_clock, by_hand) = (Reason::Retrigger, Reason::Edited);
        let mut failing = Failing::default();
        let mut hear = |outcome, message, trigger| failing.hear(&ended("a", outcome, message, trigger));
        assert_eq!(hear(Outcome::Failed, "away", by_clock), Heard::News);
        for _ in 0..9 {
            assert_eq!(hear(Outcome::Failed, "away", by_clock), Heard::Again);
        }
        assert_eq!(hear(Outcome::Cancelled, "", by_clock), Heard::News);
        assert_eq!(hear(Outcome::Failed, "refused", by_clock), Heard::Over(10));
        assert_eq!(
            hear(Outcome::Failed, "refused", by_hand),
            Heard::News,
            "somebody waits for it"
        );
        assert_eq!(hear(Outcome::Done, "", by_clock), Heard::News);
        assert_eq!(hear(Outcome::Skipped, "", by_clock), Heard::News);
        assert_eq!(hear(Outcome::Skipped, "", by_clock), Heard::Again);
        assert_eq!(hear(Outcome::Unchanged, "", by_clock), Heard::News, "too few");
        assert_eq!(
            failing.hear(&ended("b", Outcome::Failed, "away", by_clock)),
            Heard::News
        );
    }
}
