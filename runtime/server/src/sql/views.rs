//! Statements over metrics views, which are tables of the schema `metrics`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use watershed_api::{Code, Problem};
use watershed_compilers::sql::{Allowed, guard};
use watershed_compilers::{SqlError, SqlParser as _, Tree};
use watershed_controller::resource::Revision;
use watershed_dialect::ENGINE;
use watershed_drivers::olap::{Query, Statement, Statements as _};
use watershed_locks::Unpoisoned as _;
use watershed_resolvers::view_table::{self, Fields, Named, Taken};

use super::catalogs::Catalogs;
use crate::columns::of_view;
use crate::fenced::Known;
use crate::http::Entered;
use crate::report::kinds;
use crate::service::problems::of_statement;
use crate::slots::Slot;

/// The schema of the metrics views.
pub(super) const SCHEMA: &str = "metrics";
/// The schema of the outputs.
pub(super) const OUTPUTS: &str = "main";

/// The names of the metrics views that a caller may name, listed anew when a resource has changed.
#[derive(Default)]
pub(super) struct Names(Mutex<Option<(Revision, Arc<[String]>)>>);

impl Names {
    pub(super) fn of(&self, entered: &Entered) -> Arc<[String]> {
        let revision = entered.instance().controller().revision();
        let mut kept = self.0.lock().unpoisoned();
        match &*kept {
            Some((then, names)) if *then == revision => Arc::clone(names),
            _ => {
                let names: Arc<[String]> = entered.view_names().into();
                *kept = Some((revision, Arc::clone(&names)));
                names
            }
        }
    }
}

/// A statement over a metrics view as the engine runs it, with its slot.
pub(super) struct Asked {
    pub(super) query: Query,
    pub(super) slot: Slot,
}

/// Returns the statement that the engine runs for one over a metrics view; none for a statement that reads none.
///
/// # Errors
/// What can't be asked of a view, a view that the caller may not ask, and what callers may not use.
pub(super) async fn statement(
    entered: &Entered,
    (names, catalogs, prefers_views): (&Names, &Catalogs, bool),
    sql: &str,
) -> Result<Option<Asked>, Problem> {
    let views = names.of(entered);
    let lower = sql.to_ascii_lowercase();
    let is_named = |view: &String| lower.contains(&view.to_ascii_lowercase());
    if !lower.contains(SCHEMA) && !views.iter().any(is_named) {
        return Ok(None);
    }
    let known = entered.instance().slots.fence.known().await?;
    let parsed = parse(known.clone(), sql.to_owned()).await?;
    let Some(Ok(tree)) = parsed else {
        return match (parsed, entered.check_query()) {
            // Others are told by whoever reads outputs.
            (Some(Err(SqlError::Syntax { message, .. })), Err(_)) => {
                Err(Problem::new(Code::BadArgument, message).at("sql-syntax", None))
            }
            _ => Ok(None),
        };
    };
    let Ok(mut document) = serde_json::from_str::<Value>(tree.document()) else {
        // Whoever reads outputs says how deep a statement may be.
        return match entered.check_query() {
            Ok(()) => Ok(None),
            Err(_) => Err(Problem::new(
                Code::BadArgument,
                "the statement is nested too deep",
            )),
        };
    };
    let asked = asked(entered, &document, (&views, prefers_views)).await?;
    let answer = format!("answer_{}", uuid::Uuid::new_v4().simple());
    let find = |named: &Named| asked.get(&key(named)).cloned();
    let is_aggregate = |name: &str| known.vocabulary.aggregates.contains(name);
    let taken = view_table::take(&mut document, &answer, &find, &is_aggregate);
    let Some(Taken { fields, query }) = taken.map_err(of_statement)? else {
        return Ok(None);
    };
    // Whoever plans asks the engine too.
    let slot = entered.instance().slots.take().await?;
    let text = catalogs.text(document.to_string()).await?;
    judge(known, &text, &answer).await?;
    let (place, attributes) = match query {
        Some(query) => {
            let planned = entered.plan(&query).await?;
            (ENGINE.write(&Statement::Sealed(&planned.sql)), planned.attributes)
        }
        None => (of_types(entered, &fields).await?, BTreeMap::new()),
    };
    // The name stands in the statement once, where the view stood.
    let mut parts = text.split(&answer);
    let (Some(before), Some(after), None) = (parts.next(), parts.next(), parts.next()) else {
        return Err(Problem::new(Code::Defect, "the place of the answer is lost"));
    };
    let query = Query {
        timeout: Some(entered.time_limit()),
        attributes,
        ..Query::new(format!("{before}({place}){after}"))
    };
    Ok(Some(Asked { query, slot }))
}

fn key(named: &Named) -> (String, String) {
    (named.schema.clone(), named.table.to_ascii_lowercase())
}

async fn parse(known: Known, sql: String) -> Result<Option<Result<Tree, SqlError>>, Problem> {
    let parsing = move || known.parser.parse(&[&sql]).pop();
    let parsed = tokio::task::spawn_blocking(parsing).await;
    parsed.map_err(|_| Problem::new(Code::Defect, "the parser panicked"))
}

/// Returns the fields of the views that a statement names. Of one name without a schema, an output is meant before a view.
async fn asked(
    entered: &Entered,
    document: &Value,
    (views, prefers_views): (&[String], bool),
) -> Result<BTreeMap<(String, String), Arc<Fields>>, Problem> {
    // For whoever may not ask the outputs there are none.
    let may_ask = entered.check_query();
    let outputs = may_ask.map_or_else(|_| BTreeSet::new(), |()| kinds::outputs(&entered.entries()));
    let mut found = BTreeMap::new();
    for (named, _) in view_table::tables(document) {
        let key = key(&named);
        let view = views.iter().find(|view| view.eq_ignore_ascii_case(&named.table));
        let is_meant = match named.schema.as_str() {
            SCHEMA => true,
            "" => view.is_some() && (prefers_views || !outputs.contains(&key.1)),
            _ => false,
        };
        if is_meant && !found.contains_key(&key) {
            let fields = entered.fields(view.map_or(&named.table, |view| view)).await;
            found.insert(key, Arc::new(fields?));
        }
    }
    Ok(found)
}

/// Judges what is left of a statement: it reads the answer and nothing else.
async fn judge(known: Known, text: &str, answer: &str) -> Result<(), Problem> {
    let parsed = parse(known.clone(), text.to_owned()).await?;
    let parsed = parsed.ok_or_else(|| Problem::new(Code::Defect, "the parser gave no answer"))?;
    let outputs: BTreeSet<String> = [answer.to_owned()].into();
    let allowed = Allowed {
        outputs: &outputs,
        functions: &known.vocabulary.functions,
        macros: &BTreeSet::new(),
        types: &known.vocabulary.types,
        database: answer,
    };
    guard(&parsed, allowed).map_err(|refusal| {
        let problem = Problem::new(Code::NotAllowed, refusal.to_string()).at("not-allowed-sql", None);
        match (refusal.what.starts_with("the table `"), refusal.hint) {
            (true, _) => problem.hint("a statement asks one metrics view or the outputs, and not both"),
            (false, Some(hint)) => problem.hint(hint.into_owned()),
            (false, None) => problem,
        }
    })
}

/// Returns a query for the columns of a view with their types, without rows.
async fn of_types(entered: &Entered, fields: &Fields) -> Result<String, Problem> {
    let view = entered.view(&fields.view).await?;
    Ok(ENGINE.write(&Statement::NoRows(&of_view(&view))))
}
