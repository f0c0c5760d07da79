//! Boards: canvases as their viewers may see them, with every `if` decided and every query ready to be asked.
//!
//! A row, a tab or an item is shown if its condition holds for the viewer and the values of the canvas's variables; what
//! can't be decided is not shown. A component whose queries name what the viewer may not see is withheld as a whole, since
//! its settings name the same. The owner of a project, to whom no rule applies, counts as an administrator in conditions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use watershed_compilers::{Kind, Scope, nearest_name, render_rule};
use watershed_core::{Key, Row};
use watershed_metrics::jiff::Timestamp;
use watershed_metrics::plan::{self, Bounds};
use watershed_metrics::query::Code;
use watershed_metrics::{Policy, Query};
use watershed_proto::{
    CanvasItem, CanvasRow, CanvasSpec, CanvasState, CanvasTab, ComponentSpec, ComponentState, MapValue,
    Message as _, Value,
};

use super::metrics::{MetricsError, Offered, Question, Seen, Views};
use super::viewer::{Rules, Viewer};
use super::{condition, rendered};

/// A canvas as a viewer may see it.
pub struct Board {
    /// The canvas's name, as its file spells it.
    pub name: String,
    /// The canvas, with the rows, filters and defaults that the viewer may see.
    pub spec: CanvasSpec,
    /// Values of the canvas's variables by name, in the order of the file.
    pub variables: Vec<(String, Value)>,
    /// The shown components by name.
    pub components: BTreeMap<String, Component>,
    /// Metrics views of the shown components by name, with the fields that the viewer may see.
    pub views: BTreeMap<String, Offered>,
}

/// A component on a board.
pub enum Component {
    /// It can be drawn.
    Shown {
        /// The component, whose settings have no templates.
        spec: Box<ComponentSpec>,
        /// The metrics view that it reads, or empty.
        view: String,
        /// Its queries in their JSON form.
        queries: Vec<Json>,
    },
    /// It names something that the viewer may not see.
    Withheld,
    /// It can't be drawn, for a reason that is told to the owner alone.
    Broken(String),
}

/// The reason why there is no board.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BoardError {
    /// No canvas has this name, or the viewer may not see the canvas.
    #[error("there is no canvas \"{0}\"")]
    Unknown(String),
    /// The canvas was never valid.
    #[error("canvas \"{0}\" has not been found to be valid")]
    NotValid(String),
    /// The canvas has no variable of this name.
    #[error("the canvas has no variable \"{name}\"")]
    UnknownVariable {
        /// The given name.
        name: String,
        /// Advice on what to give.
        hint: String,
    },
    /// The canvas's rules can't be evaluated.
    #[error(transparent)]
    Rules(#[from] MetricsError),
}

/// The eyes with which a canvas is looked at.
struct Look<'a> {
    views: &'a Views<'a>,
    canvas: Key,
    viewer: &'a Viewer,
    scope: Scope,
    now: Timestamp,
    /// Metrics views with what is seen of them; none where nothing is.
    seen: BTreeMap<String, Option<Seen>>,
}

impl Views<'_> {
    /// Returns a canvas as a viewer may see it. `given` replaces values of its variables.
    ///
    /// # Errors
    /// A canvas that is not there, was never valid or is closed to the viewer, rules that can't be evaluated, and a value for a
    /// variable that the canvas lacks.
    pub async fn board(
        &self,
        name: &str,
        viewer: &Viewer,
        given: &BTreeMap<String, Value>,
        now: Timestamp,
    ) -> Result<Board, BoardError> {
        let key = Key::new(Kind::Canvas.as_str(), name);
        let unknown = || BoardError::Unknown(name.to_owned());
        let row = self.resources.find(&key).ok_or_else(unknown)?;
        let own = CanvasSpec::decode(row.spec.as_ref()).map_err(|_| unknown())?;
        if !self.opens(&key, &own, viewer).await? {
            return Err(unknown());
        }
        let mut spec = valid(&row).ok_or_else(|| BoardError::NotValid(name.to_owned()))?;
        let variables = variables(&spec, given)?;
        let scope = Scope {
            environment: self.environment.to_owned(),
            variables: self.secrets.open_given(&spec.variables),
            user: attributes(viewer),
            args: variables.iter().cloned().collect(),
            ..Scope::default()
        };
        let shown = self.shown(&spec, &scope).await;
        spec.rows = rows(std::mem::take(&mut spec.rows), &shown);
        let mut look = Look {
            views: self,
            canvas: row.key(),
            viewer,
            scope,
            now,
            seen: BTreeMap::new(),
        };
        let mut names = BTreeSet::new();
        each_item(&spec.rows, &mut |item| {
            names.insert(item.component.clone());
        });
        let mut components = BTreeMap::new();
        for name in names {
            let component = look.component(&name).await?;
            components.insert(name, component);
        }
        look.narrow(&mut spec);
        let seen = look.seen.into_iter();
        Ok(Board {
            name: row.name.to_string(),
            spec,
            variables,
            components,
            views: seen
                .filter_map(|(name, seen)| Some((name, seen?.offered)))
                .collect(),
        })
    }

    /// Returns true if the canvas's own rules let the viewer see it.
    async fn opens(&self, key: &Key, spec: &CanvasSpec, viewer: &Viewer) -> Result<bool, MetricsError> {
        let refused = |message: String| MetricsError::Policy {
            view: key.to_string(),
            message,
        };
        if spec.fault.is_some() && *viewer != Viewer::Owner {
            return Err(refused("its file does not compile".to_owned()));
        }
        let scope = Scope {
            environment: self.environment.to_owned(),
            variables: self.secrets.open_given(&spec.variables),
            ..Scope::default()
        };
        let rules = [spec.security_rules.as_slice()];
        let layers = Rules::evaluated(&rules, viewer, &scope, &self.conditions).await;
        Ok(Policy::of(&layers.map_err(refused)?).has_access())
    }

    /// Returns the conditions of a canvas that hold.
    async fn shown(&self, spec: &CanvasSpec, scope: &Scope) -> BTreeSet<String> {
        let mut texts = BTreeSet::new();
        each_condition(&spec.rows, &mut |text| {
            texts.insert(text.to_owned());
        });
        let rendered = texts.into_iter().filter_map(|text| {
            let rendered = render_rule(&text, scope).ok()?;
            Some((text, rendered))
        });
        let (texts, rendered): (Vec<_>, Vec<_>) = rendered.unzip();
        if texts.is_empty() {
            return BTreeSet::new();
        }
        let conditions = Arc::clone(&self.conditions);
        let evaluated = tokio::task::spawn_blocking(move || match conditions.evaluate(&rendered) {
            Ok(values) => values,
            // One that fails hides what stands below it, and nothing else.
            Err(_) => rendered
                .iter()
                .map(|one| conditions.evaluate(std::slice::from_ref(one)).ok()?.pop()?)
                .collect(),
        });
        let values = evaluated.await.unwrap_or_default();
        let held = texts
            .into_iter()
            .zip(values)
            .filter(|(_, value)| *value == Some(true));
        held.map(|(text, _)| text).collect()
    }
}

impl Look<'_> {
    /// Returns a component as the viewer may see it.
    async fn component(&mut self, name: &str) -> Result<Component, BoardError> {
        let broken = |reason: &str| Ok(Component::Broken(reason.to_owned()));
        let row = self
            .views
            .resources
            .find(&Key::new(Kind::Component.as_str(), name));
        let state = row.as_ref().and_then(|row| row.state.clone());
        let state = state.and_then(|state| ComponentState::decode(state.as_ref()).ok());
        let valid = state.and_then(|mut state| Some((state.valid_spec.take()?, state)));
        let Some((mut spec, state)) = valid else {
            let error = row.as_ref().and_then(|row| row.error.as_ref());
            return broken(error.map_or("it was never built", |error| &error.message));
        };
        let mut scope = self.scope.clone();
        scope
            .variables
            .extend(self.views.secrets.open_given(&spec.variables));
        let mut queries: Vec<Json> = state.queries.iter().map(Json::from).collect();
        for sql in texts(spec.renderer_properties.as_ref(), METRICS_SQL) {
            let sql = match render_rule(&sql, &scope) {
                Ok(sql) => sql,
                Err(error) => return broken(&error.message),
            };
            match self.views.json_of_sql(&sql) {
                Ok(query) => queries.push(query),
                Err(error) => return broken(&error.to_string()),
            }
        }
        for query in &queries {
            if let Some(refused) = self.refused(query).await? {
                return Ok(refused);
            }
        }
        match filled(spec.renderer_properties.as_ref(), &scope) {
            Ok(properties) => spec.renderer_properties = Some(properties),
            Err(message) => return broken(&message),
        }
        Ok(Component::Shown {
            spec: Box::new(spec),
            view: state.metrics_view,
            queries,
        })
    }

    /// Returns what stands in the place of a component whose query is refused; none if the query can be asked.
    async fn refused(&mut self, query: &Json) -> Result<Option<Component>, BoardError> {
        let broken = |reason: String| Ok(Some(Component::Broken(reason)));
        let parsed = match Query::from_json(query) {
            Ok(parsed) => parsed,
            Err(error) => return broken(error.to_string()),
        };
        let name = parsed.metrics_view.clone();
        if !self.seen.contains_key(&name) {
            let question = Question {
                query: &Query::of(&name),
                viewer: self.viewer,
                through: Some(&self.canvas),
                now: self.now,
                execution_time: None,
            };
            match self.views.seen(question).await {
                Ok(found) => self.seen.insert(name.clone(), Some(found)),
                Err(MetricsError::Refused(_)) => self.seen.insert(name.clone(), None),
                Err(error @ MetricsError::Policy { .. }) => return Err(error.into()),
                Err(error) => return broken(error.to_string()),
            };
        }
        let Some(Some(seen)) = self.seen.get(&name) else {
            return Ok(Some(Component::Withheld));
        };
        // Ranges of time are laid over the query later: nothing is read for them here.
        match plan::plan(&seen.view, &seen.policy, &parsed, &Bounds::at(self.now)) {
            Ok(_) => Ok(None),
            Err(plan::PlanError::Refused(error)) if error.code == Code::NotAllowed => {
                Ok(Some(Component::Withheld))
            }
            Err(error) => broken(error.to_string()),
        }
    }

    /// Takes out of a canvas what is about fields that the viewer may not see.
    fn narrow(&self, spec: &mut CanvasSpec) {
        let seen = || self.seen.values().flatten();
        let shows = |name: &String| seen().any(|one| one.offered.shows(name));
        spec.pinned_filters.retain(shows);
        spec.required_filters.retain(shows);
        let Some(defaults) = &mut spec.defaults else {
            return;
        };
        if !defaults.comparison_dimension.is_empty() && !shows(&defaults.comparison_dimension) {
            defaults.comparison_dimension.clear();
        }
        defaults.filters.retain(|view, sql| {
            let seen = self.seen.get(view).and_then(Option::as_ref);
            seen.is_some_and(|seen| may_filter(seen, view, sql, self.now))
        });
    }
}

/// Returns true if a viewer may filter a view by a condition in SQL.
fn may_filter(seen: &Seen, view: &str, sql: &str, now: Timestamp) -> bool {
    let Some(measure) = seen
        .view
        .measures
        .iter()
        .find(|one| seen.offered.shows(&one.name))
    else {
        return false;
    };
    let query = condition::filter(sql).ok().and_then(|filter| {
        Query::from_json(&json!({"metrics_view": view, "measures": [measure.name], "where": filter})).ok()
    });
    query.is_some_and(|query| plan::plan(&seen.view, &seen.policy, &query, &Bounds::at(now)).is_ok())
}

/// The setting of a component that has its queries in SQL.
const METRICS_SQL: &str = "metrics_sql";

/// Returns the spec of a canvas that is in force.
fn valid(row: &Row) -> Option<CanvasSpec> {
    let state = CanvasState::decode(row.state.as_ref()?.as_ref()).ok()?;
    state.valid_spec
}

/// Returns the attributes of a viewer for conditions: the owner is an administrator.
fn attributes(viewer: &Viewer) -> BTreeMap<String, Value> {
    match viewer {
        Viewer::Owner => Viewer::user(Map::from_iter([("admin".to_owned(), Json::Bool(true))])).attributes(),
        user => user.attributes(),
    }
}

/// Returns the variables that a canvas declares, with the given values.
fn variables(spec: &CanvasSpec, given: &BTreeMap<String, Value>) -> Result<Vec<(String, Value)>, BoardError> {
    let declared = spec.variables_declared.iter().filter_map(|one| {
        let one = one.as_map()?;
        let name = one.get("name")?.as_str()?.to_owned();
        let value = given.get(&name).or_else(|| one.get("value"));
        Some((name, value.cloned().unwrap_or_default()))
    });
    let declared: Vec<_> = declared.collect();
    let names = || declared.iter().map(|(name, _)| name.as_str());
    match given.keys().find(|name| !names().any(|known| known == *name)) {
        None => Ok(declared),
        Some(name) => Err(BoardError::UnknownVariable {
            name: name.clone(),
            hint: match nearest_name(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if declared.is_empty() => "it has none".to_owned(),
                None => format!("it has `{}`", names().collect::<Vec<_>>().join("`, `")),
            },
        }),
    }
}

/// Leaves of rows what is shown, where `shown` has the conditions that hold. What has nothing left to show goes too.
fn rows(rows: Vec<CanvasRow>, shown: &BTreeSet<String>) -> Vec<CanvasRow> {
    let holds = |condition: &str| condition.is_empty() || shown.contains(condition);
    let row = |mut row: CanvasRow| {
        row.items.retain(|item| holds(&item.condition));
        row.tabs.retain(|tab| holds(&tab.condition));
        for tab in &mut row.tabs {
            tab.rows = self::rows(std::mem::take(&mut tab.rows), shown);
        }
        row.tabs.retain(|tab| !tab.rows.is_empty());
        row
    };
    let rows = rows.into_iter().filter(|row| holds(&row.condition)).map(row);
    rows.filter(|row| !row.items.is_empty() || !row.tabs.is_empty())
        .collect()
}

fn each_item(rows: &[CanvasRow], visit: &mut impl FnMut(&CanvasItem)) {
    for row in rows {
        row.items.iter().for_each(&mut *visit);
        for tab in &row.tabs {
            each_item(&tab.rows, visit);
        }
    }
}

fn each_condition(rows: &[CanvasRow], visit: &mut dyn FnMut(&str)) {
    let mut said = |text: &str| {
        if !text.is_empty() {
            visit(text);
        }
    };
    for CanvasRow {
        items,
        tabs,
        condition,
        ..
    } in rows
    {
        said(condition);
        items.iter().for_each(|item| said(&item.condition));
        for CanvasTab { rows, condition, .. } in tabs {
            said(condition);
            each_condition(rows, &mut said);
        }
    }
}

/// Returns the texts of a setting: one, or a list.
fn texts(properties: Option<&MapValue>, key: &str) -> Vec<String> {
    let value = properties.and_then(|all| all.get(key)).map(Json::from);
    let text = |one: &Json| one.as_str().map(str::to_owned);
    match &value {
        Some(Json::Array(items)) => items.iter().filter_map(text).collect(),
        one => one.iter().filter_map(text).collect(),
    }
}

/// Executes the templates in a component's settings. A text that only looks like a template stays as it is.
fn filled(properties: Option<&MapValue>, scope: &Scope) -> Result<MapValue, String> {
    let mut fields = BTreeMap::new();
    for (key, value) in properties.into_iter().flat_map(|all| &all.fields) {
        // Its queries are asked for by their JSON form.
        if key == METRICS_SQL {
            continue;
        }
        let value = match reads_values(value) {
            true => {
                Value::from(rendered(value, scope).map_err(|error| format!("`{key}`: {}", error.message))?)
            }
            false => value.clone(),
        };
        fields.insert(key.clone(), value);
    }
    Ok(MapValue { fields })
}

/// Returns true if a text of a value is a template that can be read.
fn reads_values(value: &Value) -> bool {
    let mut found = false;
    super::api::each_text(value, &mut |text| {
        found |= watershed_compilers::is_readable_template(text)
    });
    found
}
