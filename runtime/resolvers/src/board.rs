//! Boards: canvases as their viewers may see them, with every `if` decided and every query ready to be asked.
//!
//! A row, a tab or an item is shown if its condition holds for the viewer and the values of the canvas's variables; what
//! can't be decided is not shown. A component that names what the viewer may not see, in a query or in a setting that is not
//! its author's prose, is withheld as a whole. The owner of a project, to whom no rule applies, counts as an administrator in
//! conditions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value as Json, json};
use watershed_compilers::{Kind, Scope, nearest_name, render_rule};
use watershed_core::{Key, Row};
use watershed_metrics::jiff::Timestamp;
use watershed_metrics::plan::{self, Bounds, PlanError};
use watershed_metrics::query::Code;
use watershed_metrics::{Policy, Query};
use watershed_proto::value::Kind as Of;
use watershed_proto::{
    CanvasItem, CanvasRow, CanvasSpec, CanvasState, CanvasTab, ComponentSpec, ComponentState, MapValue,
    Message as _, Value,
};

use super::front::{STATEMENTS, statements, words};
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

/// The most components of a board.
const MOST_COMPONENTS: usize = 1_000;
/// The most queries in SQL of a board.
const MOST_STATEMENTS: usize = 200;
/// The most conditions of a board, and the time for those that can't be evaluated together.
const MOST_CONDITIONS: (usize, Duration) = (500, Duration::from_secs(2));

/// The eyes with which a canvas is looked at.
struct Look<'a> {
    views: &'a Views<'a>,
    canvas: Key,
    viewer: &'a Viewer,
    scope: Scope,
    now: Timestamp,
    /// Metrics views by name in lower case, with what is seen of them; none where nothing is.
    seen: BTreeMap<String, Option<Seen>>,
    /// Number of queries in SQL that were read.
    statements: usize,
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
        // What is shown may be anybody's to read: variables of the project decide conditions alone.
        let scope = Scope {
            environment: self.environment.to_owned(),
            user: attributes(viewer),
            args: variables.iter().cloned().collect(),
            ..Scope::default()
        };
        let deciding = Scope {
            variables: self.secrets.open_given(&spec.variables),
            ..scope.clone()
        };
        let shown = self.shown(&spec, &deciding).await;
        spec.rows = rows(std::mem::take(&mut spec.rows), &shown);
        let mut look = Look {
            views: self,
            canvas: row.key(),
            viewer,
            scope,
            now,
            seen: BTreeMap::new(),
            statements: 0,
        };
        let mut names = BTreeSet::new();
        each_item(&spec.rows, &mut |item| {
            names.insert(item.component.clone());
        });
        let mut components = BTreeMap::new();
        for (number, name) in names.into_iter().enumerate() {
            let component = match number < MOST_COMPONENTS {
                true => look.component(&name).await,
                false => Component::Broken(format!("a board has at most {MOST_COMPONENTS} components")),
            };
            components.insert(name, component);
        }
        look.narrow(&mut spec);
        let seen = look.seen.into_values().flatten();
        Ok(Board {
            name: row.name.to_string(),
            spec,
            variables,
            components,
            views: seen.map(|seen| (seen.view.name, seen.offered)).collect(),
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
        let (most, longest) = MOST_CONDITIONS;
        let rendered = texts.into_iter().take(most).filter_map(|text| {
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
            Err(_) => {
                let begun = Instant::now();
                let alone = |one: &String| conditions.evaluate(std::slice::from_ref(one)).ok()?.pop()?;
                let values = rendered
                    .iter()
                    .map(|one| (begun.elapsed() < longest).then(|| alone(one))?);
                values.collect()
            }
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
    async fn component(&mut self, name: &str) -> Component {
        let row = self
            .views
            .resources
            .find(&Key::new(Kind::Component.as_str(), name));
        let state = row.as_ref().and_then(|row| row.state.clone());
        let state = state.and_then(|state| ComponentState::decode(state.as_ref()).ok());
        let valid = state.and_then(|mut state| Some((state.valid_spec.take()?, state)));
        let Some((spec, state)) = valid else {
            let error = row.as_ref().and_then(|row| row.error.as_ref());
            return Component::Broken(
                error
                    .map_or("it was never built", |error| &error.message)
                    .to_owned(),
            );
        };
        self.drawn(spec, &state).await.unwrap_or_else(|instead| instead)
    }

    /// Returns a valid component, or what stands in its place.
    async fn drawn(
        &mut self,
        mut spec: ComponentSpec,
        state: &ComponentState,
    ) -> Result<Component, Component> {
        let mut queries: Vec<Json> = state.queries.iter().map(Json::from).collect();
        for sql in statements(&spec) {
            queries.push(self.read(&sql)?);
        }
        let mut read = BTreeSet::new();
        if !state.metrics_view.is_empty() {
            read.insert(self.view(&state.metrics_view).await?);
        }
        for query in &mut queries {
            let view = self.check(query).await?;
            query["metrics_view"] = json!(self.seen[&view].as_ref().map(|seen| &seen.view.name));
            read.insert(view);
        }
        let properties = self.filled(&spec)?;
        if read.iter().any(|view| self.names_hidden(view, &properties)) {
            return Err(Component::Withheld);
        }
        let text = |key: &str| properties.str(key).unwrap_or_default().to_owned();
        for (own, key) in [
            (&mut spec.display_name, "title"),
            (&mut spec.description, "description"),
        ] {
            // Of one that stands in its canvas these are settings.
            *own = match spec.defined_in_canvas {
                true => text(key),
                false => self.text(own)?,
            };
        }
        spec.subtitle = self.text(&spec.subtitle)?;
        spec.renderer_properties = Some(properties);
        let view = self.seen.get(&state.metrics_view.to_lowercase());
        let view = view.and_then(Option::as_ref).map(|seen| seen.view.name.clone());
        Ok(Component::Shown {
            spec: Box::new(spec),
            view: view.unwrap_or_default(),
            queries,
        })
    }

    /// Reads a query in SQL, with the values of the canvas's variables.
    fn read(&mut self, sql: &str) -> Result<Json, Component> {
        let broken = |reason: String| Component::Broken(reason);
        self.statements += 1;
        if self.statements > MOST_STATEMENTS {
            return Err(broken(format!(
                "a board has at most {MOST_STATEMENTS} queries in SQL"
            )));
        }
        let sql = self.views.secrets.redact(sql);
        let sql = render_rule(&sql, &self.scope).map_err(|error| broken(error.message))?;
        self.views
            .json_of_sql(&sql)
            .map_err(|error| broken(error.to_string()))
    }

    /// Looks up what is seen of a metrics view; returns its name in lower case.
    async fn view(&mut self, name: &str) -> Result<String, Component> {
        let lower = name.to_lowercase();
        if !self.seen.contains_key(&lower) {
            let question = Question {
                query: &Query::of(name),
                viewer: self.viewer,
                through: Some(&self.canvas),
                now: self.now,
                execution_time: None,
            };
            let found = match self.views.seen(question).await {
                Ok(found) => Some(found),
                Err(MetricsError::Refused(_)) => None,
                Err(error) => return Err(Component::Broken(error.to_string())),
            };
            self.seen.insert(lower.clone(), found);
        }
        match self.seen.get(&lower) {
            Some(Some(_)) => Ok(lower),
            _ => Err(Component::Withheld),
        }
    }

    /// Refuses a query that the viewer may not ask; returns the name of its view in lower case.
    async fn check(&mut self, query: &Json) -> Result<String, Component> {
        let parsed = Query::from_json(query).map_err(|error| Component::Broken(error.to_string()))?;
        let view = self.view(&parsed.metrics_view).await?;
        let Some(Some(seen)) = self.seen.get(&view) else {
            return Err(Component::Withheld);
        };
        match plan::plan(&seen.view, &seen.policy, &parsed, &Bounds::at(self.now)) {
            Err(PlanError::Refused(error)) if error.code == Code::NotAllowed => Err(Component::Withheld),
            // Ranges of time, and what they are compared with, are laid over the query later.
            Err(PlanError::Refused(error)) if error.code != Code::MissingKey => {
                Err(Component::Broken(error.to_string()))
            }
            _ => Ok(view),
        }
    }

    /// Returns true if settings name a field of a view that the viewer may not see.
    fn names_hidden(&self, view: &str, properties: &MapValue) -> bool {
        let Some(Some(Seen { offered, .. })) = self.seen.get(view) else {
            return true;
        };
        let hidden = hidden(offered);
        let texts = properties
            .fields
            .iter()
            .filter(|(key, _)| !PROSE.contains(&key.as_str()));
        !hidden.is_empty()
            && texts
                .into_iter()
                .any(|(key, value)| names_one(&hidden, key, value))
    }

    /// Returns the settings of a component with its templates executed, and without its queries in SQL.
    fn filled(&self, spec: &ComponentSpec) -> Result<MapValue, Component> {
        let mut fields = BTreeMap::new();
        for (key, value) in spec.renderer_properties.iter().flat_map(|all| &all.fields) {
            if !STATEMENTS.contains(&key.as_str()) {
                fields.insert(key.clone(), self.value(value)?);
            }
        }
        Ok(MapValue { fields })
    }

    fn value(&self, value: &Value) -> Result<Value, Component> {
        Ok(match &value.kind {
            Some(Of::String(text)) => match text.contains("{{") {
                true => Value::from(self.template(text)?),
                false => Value::from(&*self.views.secrets.redact(text)),
            },
            Some(Of::List(list)) => {
                let items = list.values.iter().map(|item| self.value(item));
                Value::from(items.collect::<Result<Vec<_>, _>>()?)
            }
            Some(Of::Map(map)) => {
                let fields = map
                    .fields
                    .iter()
                    .filter(|(key, _)| !STATEMENTS.contains(&key.as_str()));
                let fields = fields.map(|(key, value)| Ok((key.clone(), self.value(value)?)));
                Value {
                    kind: Some(Of::Map(MapValue {
                        fields: fields.collect::<Result<_, _>>()?,
                    })),
                }
            }
            _ => value.clone(),
        })
    }

    /// Executes a template; a sole argument keeps its type.
    fn template(&self, text: &str) -> Result<Json, Component> {
        let text = Value::from(&*self.views.secrets.redact(text));
        rendered(&text, &self.scope).map_err(|error| Component::Broken(error.message))
    }

    fn text(&self, text: &str) -> Result<String, Component> {
        let value = self.value(&Value::from(text))?;
        Ok(value.as_str().unwrap_or_default().to_owned())
    }

    /// Takes out of a canvas what is about fields that the viewer may not see, and executes its templates.
    fn narrow(&self, spec: &mut CanvasSpec) {
        for text in [&mut spec.display_name, &mut spec.banner] {
            *text = self.text(text).unwrap_or_default();
        }
        for tab in spec.rows.iter_mut().flat_map(|row| &mut row.tabs) {
            tab.label = self.text(&tab.label).unwrap_or_default();
        }
        let seen = || self.seen.values().flatten();
        let shows = |name: &String| seen().any(|one| one.offered.shows(name));
        spec.pinned_filters.retain(shows);
        spec.required_filters.retain(shows);
        let Some(defaults) = &mut spec.defaults else {
            return;
        };
        if !defaults.comparison_dimension.is_empty() && !shows(&defaults.comparison_dimension) {
            defaults.comparison_dimension.clear();
            defaults.comparison_mode.clear();
        }
        let filters = std::mem::take(&mut defaults.filters);
        defaults.filters = filters
            .into_iter()
            .filter_map(|(view, sql)| {
                let seen = self.seen.get(&view.to_lowercase())?.as_ref()?;
                may_filter(seen, &sql, self.now).then(|| (seen.view.name.clone(), sql))
            })
            .collect();
    }
}

/// Returns true if a viewer may filter a view by a condition in SQL, which names nothing hidden in its comments either.
fn may_filter(seen: &Seen, sql: &str, now: Timestamp) -> bool {
    if names_one(&hidden(&seen.offered), "", &Value::from(sql)) {
        return false;
    }
    let query = condition::filter(sql).ok().and_then(|filter| {
        let counted = json!([{"name": "counted rows", "compute": {"count": true}}]);
        let query = json!({"metrics_view": seen.view.name, "measures": counted, "where": filter});
        Query::from_json(&query).ok()
    });
    query.is_some_and(|query| plan::plan(&seen.view, &seen.policy, &query, &Bounds::at(now)).is_ok())
}

/// Settings that are their author's words.
const PROSE: [&str; 3] = ["title", "description", "content"];

/// Returns the names of a view's fields that its viewer may not see, in lower case.
fn hidden(offered: &Offered) -> Vec<String> {
    let dimensions = offered.spec.dimensions.iter().map(|one| &one.name);
    let names = dimensions.chain(offered.spec.measures.iter().map(|one| &one.name));
    let names = names.filter(|name| !offered.shows(name));
    names.map(|name| name.to_lowercase()).collect()
}

/// Returns true if a setting has one of the names, in its key or in a text.
fn names_one(names: &[String], key: &str, value: &Value) -> bool {
    let has = |text: &str| {
        let text = text.to_lowercase();
        let is_word = |name: &String| words(&text).any(|word| word == name);
        // A name of several words is looked for as it is.
        let is_part = |name: &String| words(name).nth(1).is_some() && text.contains(name.as_str());
        names.iter().any(|name| is_word(name) || is_part(name))
    };
    has(key)
        || match &value.kind {
            Some(Of::String(text)) => has(text),
            Some(Of::List(list)) => list.values.iter().any(|item| names_one(names, "", item)),
            Some(Of::Map(map)) => map.fields.iter().any(|(key, value)| names_one(names, key, value)),
            _ => false,
        }
}

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
