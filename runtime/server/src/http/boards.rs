//! Boards: canvases as a caller may see them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::runtime::Handle;
use watershed_api::http::boards::{
    BoardComponent, BoardDocument, BoardFilters, BoardItem, BoardRow, BoardState, BoardTab, BoardVariable,
};
use watershed_api::{Code, Problem};
use watershed_compilers::{Spec, spec_json};
use watershed_core::{Key, Row};
use watershed_outputs::secrets::Secrets;
use watershed_proto::{CanvasRow, Value as Stored};
use watershed_reconcilers::canvas;
use watershed_resolvers::board::{Board, BoardError, Component};
use watershed_resolvers::{Resources, Viewer};

use super::caller::Caller;
use super::offered::of_view;
use super::scope::Scope;
use super::service::Open;
use crate::out::without_secrets;
use crate::report::Entry;
use crate::service::problems::of_metrics;
use crate::service::questions::{Asking, Moment, viewer};

/// The most bytes that values of variables take.
const VALUES_MAX: usize = 8 << 10;

/// Returns a canvas as the caller may see it.
///
/// # Errors
/// `unknown-name` where the canvas is not there or is closed to the caller, `project-error` where it was never valid or its
/// rules can't be evaluated, and `bad-argument` for values of variables that it lacks.
pub(super) async fn board(
    open: &Open,
    (caller, scope): (&Caller, &Scope),
    typed: &str,
    mut query: Value,
) -> Result<BoardDocument, Problem> {
    let given = values(query.get_mut("variables").map(Value::take))?;
    let asking = Asking::of(&open.instance);
    let entries = open.instance.entries();
    scope.check_name(&format!("{}/{typed}", canvas::KIND), || entries.clone())?;
    let viewer = viewer(caller.user());
    let now = Moment::read(None)?.now;
    // Queries in SQL and policies are judged by engines, beside as many questions as run.
    let slot = open.instance.slots.take().await?;
    let (typed, handle) = (typed.to_owned(), Handle::current());
    let looking = move || {
        let _slot = slot;
        let listed = Listed::of(&entries);
        let views = asking.views(&listed);
        let board = views.board(&typed, &viewer, &given, now);
        let board = handle.block_on(board).map_err(problem)?;
        let is_owner = viewer == Viewer::Owner;
        Ok(document(board, is_owner, &asking.secrets))
    };
    let looked = tokio::task::spawn_blocking(looking).await;
    looked.map_err(|_| Problem::new(Code::Defect, "the making of the board panicked"))?
}

/// The live resources of a project by key.
struct Listed(HashMap<Key, Arc<Row>>);

impl Listed {
    fn of(entries: &[Entry]) -> Self {
        let live = entries.iter().filter(|entry| !entry.row.intents.is_deleted());
        Self(
            live.map(|entry| (entry.row.key(), Arc::clone(&entry.row)))
                .collect(),
        )
    }
}

impl Resources for Listed {
    fn find(&self, key: &Key) -> Option<Arc<Row>> {
        self.0.get(key).cloned()
    }

    fn rows(&self) -> Vec<Arc<Row>> {
        self.0.values().filter(|row| !row.hidden).cloned().collect()
    }
}

/// Reads the values of variables: a JSON object.
fn values(given: Option<Value>) -> Result<BTreeMap<String, Stored>, Problem> {
    let wrong = |message: &str| {
        Problem::new(Code::BadArgument, message).hint("write `variables={\"country\": \"DE\"}`")
    };
    let given = match given {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::String(text)) if text.len() > VALUES_MAX => return Err(wrong("`variables` is too long")),
        Some(Value::String(text)) => serde_json::from_str(&text).unwrap_or_default(),
        Some(other) => other,
    };
    let Value::Object(given) = given else {
        return Err(wrong("`variables` is no JSON object"));
    };
    Ok(given
        .into_iter()
        .map(|(name, value)| (name, Stored::from(value)))
        .collect())
}

/// Converts the reason why there is no board. One that is closed is as one that is not there.
fn problem(error: BoardError) -> Problem {
    let message = error.to_string();
    match error {
        BoardError::Unknown(_) => Problem::new(Code::UnknownName, message)
            .hint("`GET resources?kind=canvas` lists the canvases that there are"),
        BoardError::NotValid(_) => {
            Problem::new(Code::NotBuilt, message).hint("its own page has the findings")
        }
        BoardError::UnknownVariable { hint, .. } => Problem::new(Code::BadArgument, message).hint(hint),
        BoardError::Rules(error) => of_metrics(error),
    }
}

fn document(board: Board, is_owner: bool, secrets: &Secrets) -> BoardDocument {
    let Board {
        name,
        spec,
        variables,
        components,
        views,
    } = board;
    let declared = spec_json::declared(&Spec::Canvas(Box::new(spec.clone())), &name);
    let part = |key: &str| without_secrets(declared.get(key).cloned().unwrap_or_default(), secrets);
    let of_component = |(name, component)| (name, self::component(component, is_owner, secrets));
    let of_variable = |(name, value): (String, Stored)| BoardVariable {
        name,
        value: Value::from(&value),
    };
    BoardDocument {
        schema: BoardDocument::SCHEMA.to_owned(),
        display_name: spec.display_name,
        banner: spec.banner,
        max_width: spec.max_width,
        gap_x: spec.gap_x,
        gap_y: spec.gap_y,
        theme: spec.theme,
        embedded_theme: part("embedded_theme"),
        allow_custom_time_range: spec.allow_custom_time_range,
        time_ranges: part("time_ranges").as_array().cloned().unwrap_or_default(),
        time_zones: spec.time_zones,
        filters: BoardFilters {
            enable: spec.filters_enabled,
            pinned: spec.pinned_filters,
            required: spec.required_filters,
        },
        defaults: part("defaults"),
        variables: variables.into_iter().map(of_variable).collect(),
        rows: rows(spec.rows),
        components: components.into_iter().map(of_component).collect(),
        views: views
            .iter()
            .map(|(name, seen)| (name.clone(), without_secrets(of_view(seen), secrets)))
            .collect(),
        name,
    }
}

fn rows(rows: Vec<CanvasRow>) -> Vec<BoardRow> {
    let row = |row: CanvasRow| BoardRow {
        height: row.height,
        items: row
            .items
            .into_iter()
            .map(|item| BoardItem {
                width: item.width,
                component: item.component,
            })
            .collect(),
        name: row.name,
        tabs: row
            .tabs
            .into_iter()
            .map(|tab| BoardTab {
                name: tab.name,
                label: tab.label,
                rows: self::rows(tab.rows),
            })
            .collect(),
    };
    rows.into_iter().map(row).collect()
}

fn component(component: Component, is_owner: bool, secrets: &Secrets) -> BoardComponent {
    let (spec, view, queries) = match component {
        Component::Shown { spec, view, queries } => (spec, view, queries),
        Component::Withheld => {
            return BoardComponent {
                state: BoardState::Withheld,
                ..BoardComponent::default()
            };
        }
        // The reason may name what the caller may not see.
        Component::Broken(reason) => {
            return BoardComponent {
                state: BoardState::Broken,
                problem: is_owner.then(|| secrets.redact(&reason).into_owned()),
                ..BoardComponent::default()
            };
        }
    };
    let object = |value: Value| match value {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    let properties = spec.renderer_properties.unwrap_or_default();
    BoardComponent {
        state: BoardState::Shown,
        problem: None,
        display_name: spec.display_name,
        description: spec.description,
        subtitle: spec.subtitle,
        renderer: spec.renderer,
        properties: object(Value::from(&properties)),
        metrics_view: view,
        queries: queries.into_iter().map(object).collect(),
        input: spec.input.iter().map(Value::from).collect(),
        output: spec.output.as_ref().map(Value::from).unwrap_or_default(),
    }
}
