//! The rules for events: the events meant, and their effect on a resource.

use serde::{Deserialize, Serialize};

use crate::cloud::CloudEvent;
use crate::stages::Stage;

/// A condition on events: their type, source and subject.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EventMatch {
    /// The type of the events; a final `*` stands for any ending.
    #[serde(rename = "type")]
    pub kind: String,
    /// The source of the events; any source if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The subject of the events; the name of the resource if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// The effect of the events that meet a condition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// The condition that events must meet.
    #[serde(flatten)]
    pub on: EventMatch,
    /// The stage that the events set as desired, until the spec's desired stage is edited; if none, events only cause a
    /// look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<Stage>,
}

impl EventMatch {
    /// Returns the condition for events of a type, from any source, whose subject is the resource.
    pub fn of(kind: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            source: None,
            subject: None,
        }
    }

    /// Returns the condition, limited to one source.
    #[must_use]
    pub fn from(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the condition with a subject other than the name of the resource.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Returns true if an event meets the condition, for a resource of this name.
    pub fn matches(&self, event: &CloudEvent, name: &str) -> bool {
        let is_of_type = match self.kind.strip_suffix('*') {
            Some(beginning) => event.kind.starts_with(beginning),
            None => event.kind == self.kind,
        };
        let is_from = self.source.as_ref().is_none_or(|source| *source == event.source);
        let subject = self.subject.as_deref().unwrap_or(name);
        is_of_type && is_from && event.subject.as_deref() == Some(subject)
    }
}

impl Rule {
    /// Returns a rule by which events set the desired stage.
    pub fn sets(on: EventMatch, desired: impl Into<Stage>) -> Self {
        Self {
            on,
            desired: Some(desired.into()),
        }
    }

    /// Returns a rule by which events only cause a look at the resource.
    pub fn looks(on: EventMatch) -> Self {
        Self { on, desired: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks all combinations of type, source and subject (rule M12).
    #[test]
    fn an_event_is_matched_by_type_source_and_subject_in_every_combination() {
        let event = |kind: &str, source: &str, subject: Option<&str>| {
            let mut event = CloudEvent::new("1", source, kind);
            event.subject = subject.map(str::to_owned);
            event
        };
        let types = [
            ("lab.done", "lab.done", true),
            ("lab.*", "lab.done", true),
            ("*", "x", true),
        ];
        let others = [
            ("lab.done", "lab.don", false),
            ("lab.*", "la.b", false),
            ("lab.done*", "lab.do", false),
        ];
        let sources = [
            (None, "/a", true),
            (Some("/a"), "/a", true),
            (Some("/a"), "/A", false),
        ];
        let subjects = [
            (None, Some("web"), true),
            (None, Some("db"), false),
            (None, None, false),
            (Some("db"), Some("db"), true),
            (Some("db"), Some("web"), false),
            (Some("db"), None, false),
        ];
        for (pattern, kind, by_type) in types.into_iter().chain(others) {
            for (from, source, by_source) in sources {
                for (about, subject, by_subject) in subjects {
                    let mut on = EventMatch::of(pattern);
                    on.source = from.map(str::to_owned);
                    on.subject = about.map(str::to_owned);
                    let found = on.matches(&event(kind, source, subject), "web");
                    let expected = by_type && by_source && by_subject;
                    assert_eq!(found, expected, "{on:?} of {kind} {source} {subject:?}");
                }
            }
        }
    }
}
