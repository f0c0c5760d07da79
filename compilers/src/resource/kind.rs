//! The kinds of resources.

use std::fmt;

/// A kind of resource that project files can declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Evaluation of an assistant's answers.
    AiEval,
    /// A condition that people are told about.
    Alert,
    /// A query that programs call.
    Api,
    /// A board of components.
    Canvas,
    /// One part of a canvas.
    Component,
    /// Access to another system.
    Connector,
    /// A dashboard over one metrics view.
    Explore,
    /// A program that runs once to completion.
    Job,
    /// Measures and dimensions over a table.
    MetricsView,
    /// SQL that is run once.
    Migration,
    /// A table or view; sources are models too.
    Model,
    /// A query that people are sent the result of.
    Report,
    /// A program that is kept running.
    Service,
    /// Instructions to an assistant.
    Skill,
    /// Colours.
    Theme,
    /// Words in another language.
    Translation,
}

impl Kind {
    /// Every kind, in the order of their names.
    pub const ALL: [Kind; 16] = [
        Kind::AiEval,
        Kind::Alert,
        Kind::Api,
        Kind::Canvas,
        Kind::Component,
        Kind::Connector,
        Kind::Explore,
        Kind::Job,
        Kind::MetricsView,
        Kind::Migration,
        Kind::Model,
        Kind::Report,
        Kind::Service,
        Kind::Skill,
        Kind::Theme,
        Kind::Translation,
    ];

    /// The kind as project files, documents and the catalog write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::AiEval => "ai_eval",
            Kind::Alert => "alert",
            Kind::Api => "api",
            Kind::Canvas => "canvas",
            Kind::Component => "component",
            Kind::Connector => "connector",
            Kind::Explore => "explore",
            Kind::Job => "job",
            Kind::MetricsView => "metrics_view",
            Kind::Migration => "migration",
            Kind::Model => "model",
            Kind::Report => "report",
            Kind::Service => "service",
            Kind::Skill => "skill",
            Kind::Theme => "theme",
            Kind::Translation => "translation",
        }
    }

    /// The kind that documents and the catalog write so.
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
