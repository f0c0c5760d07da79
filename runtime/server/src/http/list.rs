//! Lists of resources by page, and single resources.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_api::documents::{Health, Phase, ResourceDocument};
use watershed_api::http::Page;
use watershed_api::http::forms::Entries;
use watershed_api::request::Selection;
use watershed_api::{Code, Problem};
use watershed_compilers::Kind;
use watershed_core::{Key, Row, Uid};

use super::answers;
use super::caller::Caller;
use super::offered::{self, is_offered};
use super::scope::Scope;
use super::service::Open;
use super::token::{Place, Token, sign};
use super::visibility::Visibility;
use super::words;
use crate::columns::described;
use crate::instance::Instance;
use crate::out::without_secrets;
use crate::projection::{Projection, Slot, Table};
use crate::report::hints::nearest;
use crate::report::kinds::{self, PROJECT_PARSER, checks};
use crate::report::{Entry, Hidden, names};
use crate::service::problems::of_query;

/// The kind of managed resources, whose name selects a tree.
pub(super) const MANAGED: &str = watershed_reconcilers::managed::KIND;

/// The query parameters that filter resources, the same for lists and streams.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Filter {
    select: Vec<String>,
    exclude: Vec<String>,
    kind: Vec<String>,
    health: Vec<Health>,
    phase: Vec<Phase>,
    all: bool,
    fields: Vec<String>,
    /// Name of a managed resource: selects the resource with all its descendants.
    tree: Option<String>,
}

/// The query parameters of a list.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Words {
    #[serde(flatten)]
    filter: Filter,
    limit: Entries,
    page: Option<String>,
}

/// The query parameters of a single resource.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Look {
    include: Vec<String>,
    fields: Vec<String>,
}

/// A filter with its selection resolved to resources.
pub(super) struct Chosen {
    filter: Filter,
    uids: Option<BTreeSet<Uid>>,
}

impl Filter {
    /// Resolves the filter's selection to resources in the caller's scope.
    ///
    /// # Errors
    /// When the selection can't be read, or nothing matches it.
    pub(super) fn chosen(&self, table: &Table, scope: &Scope) -> Result<Chosen, Problem> {
        check_kinds(&self.kind, table).map_err(|problem| scope.problem(problem))?;
        let selection = Selection {
            select: self.select.clone(),
            exclude: self.exclude.clone(),
        };
        let uids = match &self.tree {
            None if selection.is_empty() => scope.among(|| table.entries()),
            None => scope.select(&selection, &table.entries())?,
            Some(name) => match (tree(table, name), scope.among(|| table.entries())) {
                (Ok(tree), Some(allowed)) => Some(&tree & &allowed),
                (Err(_), Some(_)) => Some(BTreeSet::new()),
                (tree, None) => Some(tree?),
            },
        };
        Ok(Chosen {
            filter: self.clone(),
            uids,
        })
    }

    /// Returns the filter with an empty selection.
    pub(super) fn of_nothing(&self) -> Chosen {
        Chosen {
            filter: self.clone(),
            uids: Some(BTreeSet::new()),
        }
    }

    /// Returns true if other resources can change which ones match, as with a selection or a tree.
    pub(super) fn is_selective(&self) -> bool {
        !self.select.is_empty() || !self.exclude.is_empty() || self.tree.is_some()
    }

    /// Returns a hash of the filter, which tokens carry.
    pub(super) fn sign(&self) -> u64 {
        // The keys that are wanted change nothing of what is meant.
        sign(&Self {
            fields: Vec::new(),
            ..self.clone()
        })
    }
}

impl Chosen {
    /// Returns true if the filter matches the resource.
    pub(super) fn keeps(&self, slot: &Slot) -> bool {
        let filter = &self.filter;
        let row = &slot.entry.row;
        let is_listed = Table::is_listed(slot, Hidden::unless(filter.all || filter.tree.is_some()));
        let is_of = |kinds: &[String]| {
            let is_kind = |kind: &String| kind.eq_ignore_ascii_case(row.kind.as_str());
            kinds.is_empty() || kinds.iter().any(is_kind)
        };
        is_listed
            && is_of(&filter.kind)
            && (filter.health.is_empty() || filter.health.contains(&slot.standing.health))
            && (filter.phase.is_empty() || filter.phase.contains(&slot.standing.phase))
            && self.uids.as_ref().is_none_or(|uids| uids.contains(&row.uid))
    }

    /// Returns true if the filter lists hidden resources.
    pub(super) fn shows_hidden(&self) -> bool {
        self.filter.all || self.filter.tree.is_some()
    }

    /// Returns the document of a resource as a role sees it, with the requested fields.
    pub(super) fn document(
        &self,
        table: &Table,
        slot: &Slot,
        instance: &Instance,
        visibility: Visibility,
    ) -> Arc<[u8]> {
        let bytes = document(table, slot, instance, visibility);
        match self.filter.fields.is_empty() {
            true => bytes,
            false => only(&bytes, &self.filter.fields),
        }
    }
}

/// Returns a managed resource with all its descendants.
fn tree(table: &Table, name: &str) -> Result<BTreeSet<Uid>, Problem> {
    let key = Key::new(MANAGED, name);
    let unknown = || {
        Problem::new(
            Code::UnknownName,
            format!("there is no managed resource `{name}`"),
        )
    };
    let root = table.find(&key).ok_or_else(unknown)?;
    Ok(table.with_owned(root.entry.row.uid))
}

/// Refuses an unknown kind, so that a typo does not look like an empty list. A kind of an embedder's is known while a
/// resource of that kind exists.
fn check_kinds(kinds: &[String], table: &Table) -> Result<(), Problem> {
    let known = Kind::ALL.map(Kind::as_str);
    let of_ours = [
        PROJECT_PARSER,
        watershed_delivery::KIND,
        watershed_workloads::replica::KIND,
    ];
    let is_known = |kind: &str| {
        known
            .iter()
            .chain(&of_ours)
            .any(|one| one.eq_ignore_ascii_case(kind))
    };
    let is_there = |kind: &str| {
        let mut slots = table.after(None);
        slots.any(|((key, _), _)| key.kind.as_str().eq_ignore_ascii_case(kind))
    };
    let Some(wrong) = kinds.iter().find(|kind| !is_known(kind) && !is_there(kind)) else {
        return Ok(());
    };
    let problem = Problem::new(Code::BadArgument, format!("there is no kind `{wrong}`"));
    Err(match nearest(wrong, known.into_iter()) {
        _ if wrong.eq_ignore_ascii_case("source") => {
            problem.hint("sources are models: `select=kind:source` chooses those alone")
        }
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None => problem.hint("kinds are those of documents, such as `model` and `metrics_view`"),
    })
}

/// Refuses names in `fields` that no resource document has.
fn check_fields(fields: &[String]) -> Result<(), Problem> {
    if fields.is_empty() {
        // The schema takes longer to make than most answers.
        return Ok(());
    }
    let schema = schemars::schema_for!(ResourceDocument);
    let keys = schema.get("properties").and_then(Value::as_object);
    let keys: Vec<&str> = keys.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    let Some(wrong) = fields.iter().find(|field| !keys.contains(&field.as_str())) else {
        return Ok(());
    };
    let problem = Problem::new(Code::BadArgument, format!("resources have no key `{wrong}`"));
    Err(match nearest(wrong, keys.into_iter()) {
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None => problem.hint("say each key for itself: `fields=health&fields=phase`"),
    })
}

/// Parses the filter of a stream.
///
/// # Errors
/// `bad-argument`, for a health or a phase that there is not.
pub(super) fn filter(words: Value) -> Result<Filter, Problem> {
    let filter: Filter = words::form(words)?;
    check_fields(&filter.fields)?;
    Ok(filter)
}

/// Returns an id of the catalog, by which tokens of other catalogs are refused: the uid of the project parser.
pub(super) fn catalog(table: &Table) -> Uuid {
    let mut parsers = table
        .after(None)
        .filter(|((key, _), _)| key.kind.as_str() == PROJECT_PARSER);
    parsers.next().map_or(Uuid::nil(), |((_, uid), _)| uid.0)
}

/// Returns a page of resources.
///
/// # Errors
/// Words that can't be read, and a token that is not ours.
pub(super) async fn page(
    open: &Open,
    words: Value,
    visibility: Visibility,
    scope: &Scope,
) -> Result<Vec<u8>, Problem> {
    let words: Words = words::form(words)?;
    check_fields(&words.filter.fields)?;
    let limit = usize::try_from(words.limit.get()).unwrap_or(usize::MAX);
    let projection = open.instance.projection().await;
    let table = projection.table();
    let catalog = catalog(&table);
    let chosen = words.filter.chosen(&table, scope)?;
    let first = begin(&projection, &table, &words, catalog)?;
    let after = first.after.as_ref();
    let after = after.map(|place| (Key::new(place.kind.as_str(), place.name.as_str()), Uid(place.uid)));
    let mut kept = table.after(after.as_ref()).filter(|(_, slot)| chosen.keeps(slot));
    let mut body = b"{\"schema\":\"".to_vec();
    body.extend(Page::SCHEMA.as_bytes());
    body.extend(b"\",\"resources\":[");
    let mut last = None;
    for (index, (place, slot)) in kept.by_ref().take(limit).enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend(chosen.document(&table, slot, &open.instance, visibility).iter());
        last = Some(place.clone());
    }
    body.push(b']');
    if kept.next().is_some()
        && let Some((key, uid)) = last
    {
        let next = Token {
            after: Some(Place {
                kind: key.kind.to_string(),
                name: key.name.to_string(),
                uid: uid.0,
            }),
            ..first.clone()
        };
        body.extend(format!(",\"next\":\"{}\"", next.write(catalog)).as_bytes());
    }
    let watch = Token { after: None, ..first };
    body.extend(format!(",\"watch\":\"{}\"", watch.write(catalog)).as_bytes());
    // Counting looks at all resources, as such a list does.
    let is_of_standing = !words.filter.health.is_empty() || !words.filter.phase.is_empty();
    let unsettled = if is_of_standing {
        open.instance.unsettled()
    } else {
        0
    };
    if unsettled > 0 {
        body.extend(format!(",\"unsettled\":{unsettled}").as_bytes());
    }
    body.push(b'}');
    Ok(body)
}

/// Returns the position at which a page begins, from the page's token if there is one.
fn begin(projection: &Projection, table: &Table, words: &Words, catalog: Uuid) -> Result<Token, Problem> {
    let sign = words.filter.sign();
    let Some(text) = &words.page else {
        return Ok(Token {
            projection: projection.id(),
            change: table.last(),
            filter: sign,
            after: None,
        });
    };
    let token = Token::read(text, catalog)?;
    if token.filter != sign || token.after.is_none() {
        let message = "the page's token is that of another list";
        return Err(
            Problem::new(Code::BadArgument, message).hint("give the filter of the first page with each page")
        );
    }
    Ok(token)
}

/// Returns the document of one resource.
///
/// # Errors
/// `unknown-name`, with the nearest name, and `not-allowed` for a hidden spec or state.
pub(super) async fn one(
    (open, caller): (&Open, &Caller),
    kind: &str,
    name: &str,
    words: Value,
    visibility: Visibility,
) -> Result<Arc<[u8]>, Problem> {
    let mut look: Look = words::form(words)?;
    let has_columns = look.include.iter().any(|it| it == "columns");
    look.include.retain(|it| it != "columns");
    if let Some(wrong) = look
        .include
        .iter()
        .find(|it| !matches!(it.as_str(), "spec" | "state" | "checks"))
    {
        let problem = Problem::new(Code::BadArgument, format!("`include` takes no `{wrong}`"));
        return Err(problem.hint("it takes `spec`, `state`, `checks` and `columns`"));
    }
    let is_part = !look.include.is_empty() && !visibility.shows_specs();
    if is_part && !(look.include == ["spec"] && is_offered(&kind.to_lowercase())) {
        let message = "specs, states and checks need the role `operate`";
        return Err(Problem::new(Code::NotAllowed, message).hint(
            "ask without `include`; of metrics views, explores, themes and APIs a part of the spec is for all",
        ));
    }
    check_fields(&look.fields)?;
    let projection = open.instance.projection().await;
    let (bytes, row) = looked_up(open, &projection, kind, name, (&look, visibility))?;
    let bytes = match is_part {
        true => {
            let mut value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            value["spec"] = offered::spec(open, caller, &row).await?;
            serde_json::to_vec(&value).unwrap_or_default().into()
        }
        false => bytes,
    };
    let bytes = match has_columns {
        true => {
            let mut value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            value["columns"] = columns(open, &row).await?;
            serde_json::to_vec(&value).unwrap_or_default().into()
        }
        false => bytes,
    };
    Ok(match look.fields.is_empty() {
        true => bytes,
        false => only(&bytes, &look.fields),
    })
}

/// Returns names and types of the columns of a resource's table; null if it has none.
async fn columns(open: &Open, row: &Row) -> Result<Value, Problem> {
    let Some(table) = kinds::output(row) else {
        return Ok(Value::Null);
    };
    let cancel = CancellationToken::new();
    let named = described(&open.instance.engine, &[table.to_ascii_lowercase()], &cancel).await;
    let named = named.map_err(|error| of_query(&error))?;
    let columns = named.into_iter().flat_map(|(_, columns)| columns);
    Ok(columns
        .map(|(name, data_type)| json!({ "name": name, "type": data_type }))
        .collect())
}

/// Returns the document and the row of one resource.
fn looked_up(
    open: &Open,
    projection: &Projection,
    kind: &str,
    name: &str,
    (look, visibility): (&Look, Visibility),
) -> Result<(Arc<[u8]>, Arc<Row>), Problem> {
    let table = projection.table();
    let key = Key::new(kind.to_lowercase(), name);
    let Some(slot) = table.find(&key) else {
        let entries = table.entries();
        return Err(match names::resolve(&entries, &format!("{kind}/{name}")) {
            Err(problem) => problem,
            // A source is a model under another word.
            Ok(found) => Problem::new(Code::UnknownName, format!("there is no resource `{kind}/{name}`"))
                .hint(format!("did you mean `{}`?", found.row.key())),
        });
    };
    let row = Arc::clone(&slot.entry.row);
    let bytes = match look.include.is_empty() || !visibility.shows_specs() {
        true => document(&table, slot, &open.instance, visibility),
        false => {
            let document = table.document(slot);
            let entries = match look.include.iter().any(|it| it == "checks") {
                true => table.entries(),
                false => Vec::new(),
            };
            // Results of checks stand in files: nothing waits for the table while they are read.
            drop(table);
            with(
                document,
                &row,
                &entries,
                &open.instance,
                visibility,
                &look.include,
            )
        }
    };
    Ok((bytes, row))
}

/// Returns the document of a resource as JSON, cached for all readers of the same visibility.
pub(super) fn document(table: &Table, slot: &Slot, instance: &Instance, visibility: Visibility) -> Arc<[u8]> {
    table.bytes(slot, visibility.number(), |document| {
        write(document, instance, visibility)
    })
}

fn write(document: ResourceDocument, instance: &Instance, visibility: Visibility) -> Arc<[u8]> {
    let document = without_secrets(document, instance.outputs.secrets());
    let value = visibility.show(answers::document(&document, instance));
    serde_json::to_vec(&value).unwrap_or_default().into()
}

/// Returns the document of a resource with its stored spec or state, or the results of its checks.
fn with(
    mut document: ResourceDocument,
    row: &Row,
    entries: &[Entry],
    instance: &Instance,
    visibility: Visibility,
    include: &[String],
) -> Arc<[u8]> {
    checks::show_of(&mut document, entries, &instance.state.programs());
    let document = without_secrets(document, instance.outputs.secrets());
    let mut value = answers::document(&document, instance);
    let parts = [("spec", kinds::spec(row)), ("state", kinds::state(row))];
    for (key, part) in parts
        .into_iter()
        .filter(|(key, _)| include.iter().any(|it| it == key))
    {
        let part = without_secrets(part, instance.outputs.secrets());
        value[key] = answers::document(&part, instance);
    }
    let value = visibility.show(value);
    serde_json::to_vec(&value).unwrap_or_default().into()
}

/// Returns a document with some of its fields. Kind and name are always included.
fn only(bytes: &[u8], fields: &[String]) -> Arc<[u8]> {
    let mut value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    if let Value::Object(object) = &mut value {
        object.retain(|key, _| {
            matches!(key.as_str(), "kind" | "name") || fields.iter().any(|field| field == key)
        });
    }
    serde_json::to_vec(&value).unwrap_or_default().into()
}
