//! A span of the past, a page at a time from its end.

use std::ops::Range;

use watershed_api::documents::{HistoryTransition, Time};
use watershed_api::request::HistoryRequest;
use watershed_api::{Code, Problem};
use watershed_controller::history::HistoryRow;

/// A span of the past, and the place in it at which a page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    from: Option<Time>,
    until: Option<Time>,
    /// The time at which the page before ends, and the number of entries of that time that it told.
    told: Option<(Time, usize)>,
}

/// A page: what it has of runs and of transitions, each the latest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) runs: Range<usize>,
    pub(super) transitions: Range<usize>,
    /// The token of the next page; none on the last one.
    pub(super) next: Option<String>,
}

impl Span {
    /// Reads the span that is asked for.
    ///
    /// # Errors
    /// `bad-argument`, for one that ends before it begins, and for a token that is none.
    pub(super) fn read(request: &HistoryRequest) -> Result<Self, Problem> {
        let (from, until) = (request.from, request.until);
        if from.zip(until).is_some_and(|(from, until)| from > until) {
            return Err(Problem::new(Code::BadArgument, "`from` is later than `until`"));
        }
        let told = request.page.as_deref().map(place_of).transpose()?;
        Ok(Self { from, until, told })
    }

    /// Returns true if an entry of that time can be in the page.
    pub(super) fn has(&self, at: Time) -> bool {
        self.from.is_none_or(|from| from <= at)
            && self.until.is_none_or(|until| at < until)
            && self.told.is_none_or(|(told, _)| at <= told)
    }

    /// Returns the page of both together, which are ordered, the latest first. Of one time, transitions come first.
    pub(super) fn page(&self, runs: &[HistoryRow], transitions: &[HistoryTransition], limit: usize) -> Page {
        let mut place = (0, 0);
        let mut skipped = 0;
        while let Some((told, number)) = self.told
            && skipped < number
            && let Some((at, next)) = following(runs, transitions, place)
            && at == told
        {
            place = next;
            skipped += 1;
        }
        let begin = place;
        let mut last: Option<(Time, usize)> = self.told.filter(|_| skipped > 0).map(|(at, _)| (at, skipped));
        while place.0 + place.1 - begin.0 - begin.1 < limit
            && let Some((at, next)) = following(runs, transitions, place)
        {
            let before = last
                .filter(|(told, _)| *told == at)
                .map_or(0, |(_, number)| number);
            last = Some((at, before + 1));
            place = next;
        }
        let has_more = following(runs, transitions, place).is_some();
        let next = last
            .filter(|_| has_more)
            .map(|(at, number)| format!("{}-{number}", at.millis()));
        Page {
            runs: begin.0..place.0,
            transitions: begin.1..place.1,
            next,
        }
    }
}

/// Returns the time of the entry at a place, and the place behind it.
fn following(
    runs: &[HistoryRow],
    transitions: &[HistoryTransition],
    (run, transition): (usize, usize),
) -> Option<(Time, (usize, usize))> {
    let began = runs.get(run).map(|run| Time::from_millis(run.started_at.0));
    let changed = transitions.get(transition).map(|transition| transition.at);
    match (began, changed) {
        (None, None) => None,
        (Some(began), None) => Some((began, (run + 1, transition))),
        (Some(began), Some(changed)) if began > changed => Some((began, (run + 1, transition))),
        (_, Some(changed)) => Some((changed, (run, transition + 1))),
    }
}

/// Reads the token of a page.
fn place_of(token: &str) -> Result<(Time, usize), Problem> {
    let read = || {
        let (at, number) = token.rsplit_once('-')?;
        Some((Time::from_millis(at.parse().ok()?), number.parse().ok()?))
    };
    read().ok_or_else(|| {
        Problem::new(Code::BadArgument, "the token of the page was not given out here")
            .hint("begin again without a token")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_api::documents::ResourceName;

    fn transition(at: i64, number: usize) -> HistoryTransition {
        HistoryTransition {
            at: Time::from_millis(at),
            resource: ResourceName::new("service", "web"),
            from: String::new(),
            to: number.to_string(),
            reason: String::new(),
            detail: String::new(),
            run: String::new(),
            moment: None,
            rows: None,
            messages: Vec::new(),
        }
    }

    #[test]
    fn s_api10_pages_from_the_newest_tell_everything_once() {
        let times = [9, 9, 9, 7, 5, 5, 5, 5, 5, 2, 1, 1];
        let all: Vec<HistoryTransition> = times
            .iter()
            .enumerate()
            .map(|(number, at)| transition(*at, number))
            .collect();
        for limit in 1..=times.len() + 1 {
            let (mut told, mut page) = (Vec::new(), None);
            loop {
                let request = HistoryRequest {
                    page,
                    ..HistoryRequest::default()
                };
                let span = Span::read(&request).unwrap();
                let left: Vec<HistoryTransition> =
                    all.iter().filter(|past| span.has(past.at)).cloned().collect();
                let found = span.page(&[], &left, limit);
                told.extend(left[found.transitions].iter().map(|past| past.to.clone()));
                match found.next {
                    Some(next) => page = Some(next),
                    None => break,
                }
            }
            let expected: Vec<String> = (0..times.len()).map(|number| number.to_string()).collect();
            assert_eq!(told, expected, "{limit} at a time");
        }
    }

    #[test]
    fn tokens_and_spans_that_are_none_are_refused() {
        for page in ["", "-", "x-1", "5-", "5--1", "99999999999999999999-1", "5"] {
            let request = HistoryRequest {
                page: Some(page.into()),
                ..HistoryRequest::default()
            };
            assert_eq!(
                Span::read(&request).unwrap_err().code,
                Code::BadArgument,
                "{page}"
            );
        }
        let turned = HistoryRequest {
            from: Some(Time::from_millis(2)),
            until: Some(Time::from_millis(1)),
            ..HistoryRequest::default()
        };
        assert!(Span::read(&turned).is_err());
    }
}
