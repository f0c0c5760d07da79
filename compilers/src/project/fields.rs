//! Checks of field names in dashboards without the engine, which alone resolves patterns and expressions.

use std::collections::BTreeSet;

use watershed_proto::Spot;

use super::{Project, Source, work::Work};
use crate::{
    diagnostics::{Code, Diagnostic, DiagnosticResource},
    fields::{self, Fields, Unknown},
    resource::{Health, Kind, Resource, ResourceKey, Spec},
    text::Span,
};

/// The depth to which parents of metrics views are followed; a longer chain is likely a cycle.
const DEEPEST: usize = 16;

impl Project {
    /// Checks the touched dashboards again, and those that read a touched metrics view.
    pub(super) fn settle_fields(&mut self, work: &mut Work) {
        let touched: Vec<ResourceKey> = work
            .before
            .keys()
            .filter(|key| is_dashboard(key.kind))
            .cloned()
            .collect();
        for key in &touched {
            let before = work.before.get(key).and_then(Option::as_ref);
            // All first, then the walk: it follows who reads whom as of now.
            self.rebind(key, before);
        }
        let mut affected = BTreeSet::new();
        let mut next = touched;
        while let Some(key) = next.pop() {
            if affected.insert(key.clone()) {
                next.extend(self.dashboards.get(&key).into_iter().flatten().cloned());
            }
        }
        for key in affected {
            let found = self.unknown_fields(&key);
            self.report(Source::Fields(key), found, work);
        }
    }

    /// Records which metrics views and components a dashboard reads.
    fn rebind(&mut self, key: &ResourceKey, before: Option<&Resource>) {
        for target in before.into_iter().flat_map(read_by) {
            if let Some(readers) = self.dashboards.get_mut(&target) {
                readers.remove(key);
                if readers.is_empty() {
                    self.dashboards.remove(&target);
                }
            }
        }
        let now = self.resources.get(key).map(read_by).unwrap_or_default();
        for target in now {
            self.dashboards.entry(target).or_default().insert(key.clone());
        }
    }

    fn unknown_fields(&self, key: &ResourceKey) -> Vec<Diagnostic> {
        let Some(resource) = self.resources.get(key).filter(|one| one.health == Health::Ok) else {
            return Vec::new();
        };
        let unknown = match &resource.spec {
            Spec::Explore(spec) => self
                .view(&spec.metrics_view, DEEPEST)
                .map(|view| fields::unknown_in_explore(spec, &view)),
            Spec::Component(spec) => fields::metrics_view_of(spec)
                .and_then(|name| self.view(name, DEEPEST))
                .map(|view| fields::unknown_in_component(spec, &view)),
            Spec::Canvas(spec) => self
                .dimensions_of(resource)
                .map(|dimensions| fields::unknown_in_canvas(spec, &dimensions)),
            _ => None,
        };
        let unknown = unknown.unwrap_or_default();
        unknown.iter().map(|one| tell(resource, one)).collect()
    }

    /// Returns the fields of a metrics view; none if only the engine can tell.
    fn view(&self, name: &str, deepest: usize) -> Option<Fields> {
        let key = ResourceKey::new(Kind::MetricsView, name);
        let resource = self.resources.get(&key).filter(|one| one.health == Health::Ok)?;
        let Spec::MetricsView(spec) = &resource.spec else {
            return None;
        };
        if spec.parent.is_empty() {
            return Some(Fields::from_metrics_view(spec));
        }
        let parent = self.view(&spec.parent, deepest.checked_sub(1)?)?;
        parent.given_to(spec)
    }

    /// Returns the dimensions of all metrics views on a canvas; none if only the engine can tell.
    fn dimensions_of(&self, canvas: &Resource) -> Option<Vec<String>> {
        let mut dimensions = Vec::new();
        for to in canvas.refs.iter().filter(|to| to.kind == Kind::Component) {
            let component = self.resources.get(&to.key())?;
            let Spec::Component(spec) = &component.spec else {
                return None;
            };
            if let Some(name) = fields::metrics_view_of(spec) {
                dimensions.extend(self.view(name, DEEPEST)?.dimensions);
            }
        }
        Some(dimensions)
    }
}

fn is_dashboard(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::MetricsView | Kind::Explore | Kind::Component | Kind::Canvas
    )
}

fn read_by(resource: &Resource) -> Vec<ResourceKey> {
    let read = resource.refs.iter().filter(|to| is_dashboard(to.kind));
    read.map(|to| to.key()).collect()
}

fn tell(resource: &Resource, unknown: &Unknown) -> Diagnostic {
    let is_yaml = |path: &&String| path.ends_with(".yaml") || path.ends_with(".yml");
    let path = resource
        .paths
        .iter()
        .find(is_yaml)
        .or_else(|| resource.paths.first());
    let Spot { line, column } = unknown.at.unwrap_or(Spot { line: 1, column: 1 });
    let code = Code::UnknownField;
    Diagnostic {
        path: path.cloned().unwrap_or_default(),
        span: Span {
            line,
            column,
            end_line: line,
            end_column: column + crate::text::narrow(unknown.name.chars().count()),
        },
        severity: code.severity(),
        code,
        message: unknown.message.clone(),
        hint: unknown.hint.clone(),
        resource: Some(DiagnosticResource {
            key: resource.key(),
            name: resource.name.clone(),
        }),
        related: Vec::new(),
    }
}
