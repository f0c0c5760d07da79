//! Words for people in place of those of documents: reasons, causal chains, sources.

use std::collections::BTreeSet;

use watershed::program::PROJECT_PARSER;
use watershed_api::documents::{
    ExplainDocument, GraphDocument, HistoryDocument, Link, LogLine, Reason, ResourceName, RunDocument,
};

use super::units::grouped;

/// The kind of models in documents, even of those that files declare as sources.
const MODEL: &str = "model";
/// The type of such a model in its file.
const SOURCE: &str = "source";

/// Renders the reason for a run.
pub(crate) fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Start => "the program started",
        Reason::Created => "new",
        Reason::Edited => "edited",
        Reason::Renamed => "renamed",
        Reason::Deleted => "removed",
        Reason::RefChanged => "what it reads came or went",
        Reason::Parent => "after what it reads",
        Reason::Requested => "asked for",
        Reason::Refresh => "refreshed",
        Reason::Retrigger => "it was time",
        Reason::Resync => "looked at from time to time",
        Reason::Retry => "tried again",
        Reason::Nudge => "something outside changed",
        Reason::Recovered => "nothing is in the way any more",
    }
}

/// Renders the reason for a run, with the resources that caused it.
pub(crate) fn reason_and_causes(because: Reason, causes: &str) -> String {
    match (because, causes) {
        (_, "") => reason(because).to_owned(),
        (Reason::Parent, causes) => format!("after {causes}"),
        (because, causes) => format!("{}: {causes}", reason(because)),
    }
}

/// Returns the causes without the project parser, which is behind every edited file and tells a person nothing.
pub(crate) fn told_causes(causes: &[String]) -> Vec<String> {
    let is_told = |cause: &&String| {
        !cause
            .strip_prefix(PROJECT_PARSER)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    causes.iter().filter(is_told).cloned().collect()
}

/// Renders a causal chain in one line, first step first: `models/a.sql was edited → model/b`.
pub(crate) fn chain(links: &[Link]) -> String {
    let told = links.iter().filter(|link| link.resource.kind != PROJECT_PARSER);
    let steps = told.enumerate().map(|(at, link)| {
        let left_out = match link.omitted {
            0 => String::new(),
            omitted => format!("({} more) → ", grouped(omitted)),
        };
        let step = match (&link.origin, at, link.reason) {
            (Some(files), ..) => changed(files, link.reason),
            (None, 0, because) => begun(&link.resource, because),
            (None, _, Reason::Parent) => link.resource.to_string(),
            (None, _, because) => format!("{} ({})", link.resource, reason(because)),
        };
        left_out + &step
    });
    steps.collect::<Vec<_>>().join(" → ")
}

/// Renders the first step of a chain that no file of the project began. Others ran after it, so it has found something new.
fn begun(resource: &ResourceName, because: Reason) -> String {
    match (resource.kind.as_str(), because) {
        (MODEL | SOURCE, Reason::Start) => format!("{resource} was out of date when the program started"),
        (MODEL | SOURCE, Reason::Nudge) => format!("the data that {resource} reads changed"),
        ("replica", Reason::Nudge) => format!("the process of {resource} changed"),
        _ => format!("{resource}: {}", reason(because)),
    }
}

fn changed(files: &str, because: Reason) -> String {
    match because {
        Reason::Created => format!("{files} is new"),
        Reason::Edited => format!("{files} was edited"),
        Reason::Renamed => format!("{files} was renamed"),
        Reason::Deleted => format!("{files} was removed"),
        because => format!("{files}: {}", reason(because)),
    }
}

/// The names of models that files declare as sources, and that people call so.
#[derive(Debug, Default, Clone)]
pub(crate) struct Sources(BTreeSet<String>);

impl Sources {
    /// Returns the sources with these names.
    pub(crate) fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().collect())
    }

    /// Returns the sources among the resources of a document.
    pub(crate) fn of(document: &RunDocument) -> Self {
        let is_source = |declared: &Option<String>| declared.as_deref() == Some(SOURCE);
        let sources = document
            .resources
            .iter()
            .filter(|one| is_source(&one.declared_as));
        Self::new(sources.map(|one| one.name.clone()))
    }

    /// Returns the name with the kind that people use: `source` for a source.
    pub(crate) fn name(&self, name: &ResourceName) -> ResourceName {
        let mut said = name.clone();
        self.rename(&mut said);
        said
    }

    fn rename(&self, name: &mut ResourceName) {
        self.kind(&mut name.kind, &name.name);
    }

    fn kind(&self, kind: &mut String, name: &str) {
        if kind == MODEL && self.0.contains(name) {
            SOURCE.clone_into(kind);
        }
    }

    /// Replaces `model/NAME` in a path by `source/NAME` if that model is a source.
    fn path(&self, path: &mut String) {
        if let Some(name) = path.strip_prefix("model/").filter(|name| self.0.contains(*name)) {
            *path = format!("{SOURCE}/{name}");
        }
    }

    /// Replaces the kind of the first model in a message, `model "NAME"` or `model/NAME` in backquotes, if it is a
    /// source.
    fn message(&self, text: &mut String) {
        for (begin, end) in [("model \"", '"'), ("model/", '`')] {
            let Some((before, rest)) = text.split_once(begin) else {
                continue;
            };
            if rest
                .split_once(end)
                .is_some_and(|(name, _)| self.0.contains(name))
            {
                let joint = &begin[MODEL.len()..];
                *text = format!("{before}{SOURCE}{joint}{rest}");
            }
        }
    }

    /// Replaces the kind of a source in a line of a log.
    pub(crate) fn in_log_line(&self, mut line: LogLine) -> LogLine {
        self.message(&mut line.message);
        line
    }

    /// Replaces the kinds of sources in an answer to `explain`.
    pub(crate) fn in_explanation(&self, mut document: ExplainDocument) -> ExplainDocument {
        if let Some(about) = &mut document.resource {
            self.kind(&mut about.kind, &about.name);
            about.cause.iter_mut().for_each(|cause| self.path(cause));
            about
                .chain
                .iter_mut()
                .for_each(|link| self.rename(&mut link.resource));
            let ran = about.last_run.iter_mut().flat_map(|run| &mut run.chain);
            ran.for_each(|link| self.rename(&mut link.resource));
        }
        for cause in &mut document.causes {
            self.rename(&mut cause.resource);
            self.message(&mut cause.message);
            cause.hint.iter_mut().for_each(|hint| self.message(hint));
            cause
                .error
                .iter_mut()
                .for_each(|error| self.message(&mut error.message));
        }
        document
    }

    /// Replaces the kinds of sources in an answer to `history`.
    pub(crate) fn in_history(&self, mut document: HistoryDocument) -> HistoryDocument {
        for run in &mut document.runs {
            self.rename(&mut run.resource);
            run.cause.iter_mut().for_each(|cause| self.path(cause));
            run.error
                .iter_mut()
                .for_each(|error| self.message(&mut error.message));
        }
        document
    }

    /// Replaces the kinds of sources in an answer to `graph`.
    pub(crate) fn in_graph(&self, mut document: GraphDocument) -> GraphDocument {
        for node in &mut document.nodes {
            self.kind(&mut node.kind, &node.name);
        }
        for edge in &mut document.edges {
            self.rename(&mut edge.from);
            self.rename(&mut edge.to);
        }
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(kind: &str, name: &str, reason: Reason, origin: Option<&str>) -> Link {
        Link {
            resource: ResourceName::new(kind, name),
            reason,
            origin: origin.map(str::to_owned),
            omitted: 0,
        }
    }

    #[test]
    fn a_chain_begins_with_the_file_and_names_no_part_of_the_program() {
        let parser = link(PROJECT_PARSER, "parser", Reason::Nudge, None);
        let edited = link("model", "a", Reason::Edited, Some("models/a.sql"));
        let below = link("model", "b", Reason::Parent, None);
        assert_eq!(
            chain(&[parser.clone(), edited.clone()]),
            "models/a.sql was edited"
        );
        assert_eq!(
            chain(&[parser, edited, below.clone()]),
            "models/a.sql was edited → model/b"
        );
        let due = link("source", "s", Reason::Retrigger, None);
        let far = Link { omitted: 3, ..below };
        assert_eq!(chain(&[due, far]), "source/s: it was time → (3 more) → model/b");
    }

    #[test]
    fn reasons_are_words_of_people() {
        for because in Reason::ALL {
            let said = reason(because);
            assert!(!["nudge", "retrigger", "resync", "parent"].contains(&said) && !said.contains('_'));
        }
        assert_eq!(reason_and_causes(Reason::Parent, "model/a"), "after model/a");
    }

    #[test]
    fn sources_are_called_so_also_in_messages() {
        let sources = Sources::new(["orders".to_owned()]);
        let said = |kind, name| sources.name(&ResourceName::new(kind, name)).to_string();
        assert_eq!(said("model", "orders"), "source/orders");
        assert_eq!(said("model", "order"), "model/order");
        assert_eq!(said("metrics_view", "orders"), "metrics_view/orders");
        let told = |message: &str| {
            let mut text = message.to_owned();
            sources.message(&mut text);
            text
        };
        let blocked = "not built, because model \"orders\" has failed";
        assert_eq!(told(blocked), "not built, because source \"orders\" has failed");
        assert_eq!(
            told("model \"order\" is on a cycle"),
            "model \"order\" is on a cycle"
        );
        assert_eq!(
            told("it needs `model/orders`, which waits"),
            "it needs `source/orders`, which waits"
        );
    }
}
