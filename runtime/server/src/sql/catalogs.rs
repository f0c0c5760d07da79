//! Catalogs of what callers see, made from the listing of an instance and kept until that changes.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use watershed_api::{Code, Problem};
use watershed_compilers::sql::{Allowed, guard};
use watershed_compilers::{SqlError, SqlParser as _, Tree};
use watershed_drivers::olap::{Attribute, Catalog, Olap, QueryError, Relation, Schema, Seen};
use watershed_locks::Unpoisoned as _;
use watershed_pgwire::client_type;

use super::oids::{self, Oids};
use super::{tree, words};
use crate::columns::{described, of_view};
use crate::fenced::{Known, Moment};
use crate::http::{Entered, Offered};
use crate::report::{Entry, kinds};
use crate::service::problems::of_query;

/// The most catalogs that are kept, each of a few megabytes: as many as callers look around at the same time.
const MOST: usize = 8;

/// A catalog with what it was made of.
struct Kept {
    seen: Arc<Seen>,
    catalog: Arc<dyn Catalog>,
    /// The last moment at which this was what the caller saw; none if the engine does not count its changes.
    at: Option<Moment>,
}

/// The catalogs of a service, the last that were asked at the end.
#[derive(Default)]
pub(super) struct Catalogs {
    kept: Mutex<VecDeque<Kept>>,
    oids: Oids,
    /// A catalog of nothing, which writes statements.
    writer: OnceCell<Arc<dyn Catalog>>,
}

impl Catalogs {
    /// Returns the catalog of what a caller sees in an instance.
    ///
    /// # Errors
    /// When the engine can't tell the columns, or make the catalog.
    pub(super) async fn of(
        &self,
        entered: &Entered,
        entries: &[Entry],
        cancel: &CancellationToken,
    ) -> Result<Arc<dyn Catalog>, Problem> {
        let instance = entered.instance();
        // What changes while the catalog is made makes a later moment.
        let revision = instance.controller().revision();
        let at = instance
            .engine
            .changes()
            .map(|changes| Moment { revision, changes });
        let databases = entered.instances().into_iter();
        let databases: Vec<_> = databases.map(|name| (oids::of_name(&name), name)).collect();
        let is_of = |kept: &Kept| {
            let seen = &*kept.seen;
            let is_of_now = kept.at.is_some() && kept.at == at && seen.databases == databases;
            is_of_now && seen.user == entered.user() && seen.database == entered.name()
        };
        if let Some(kept) = self.find(is_of, at) {
            return Ok(kept);
        }
        let mut relations = match entered.check_query() {
            Ok(()) => self.relations(&instance.engine, entries, cancel).await?,
            // The outputs are not there for others.
            Err(_) => Vec::new(),
        };
        relations.extend(self.views(entered).await);
        let seen = Arc::new(Seen {
            user: entered.user().to_owned(),
            database: entered.name().to_owned(),
            databases,
            relations,
        });
        if let Some(kept) = self.find(|kept| kept.seen == seen, at) {
            return Ok(kept);
        }
        let catalog = make(Arc::clone(&seen)).await?;
        let mut kept = self.kept.lock().unpoisoned();
        if kept.len() >= MOST {
            kept.pop_front();
        }
        kept.push_back(Kept {
            seen,
            catalog: Arc::clone(&catalog),
            at,
        });
        Ok(catalog)
    }

    /// Returns the metrics views that a caller may ask, as tables.
    async fn views(&self, entered: &Entered) -> Vec<Relation> {
        let relation = |Offered { uid, document }: Offered| {
            let fields = document.dimensions.iter().chain(&document.measures);
            let described = fields.map(|field| field.description.clone());
            let columns = of_view(&document).into_iter().map(attribute).zip(described);
            Relation {
                oid: self.oids.of(uid.0),
                schema: Schema::Metrics,
                description: document.description.clone(),
                is_view: true,
                rows: None,
                columns: columns
                    .map(|(column, description)| Attribute {
                        description,
                        ..column
                    })
                    .collect(),
                name: document.name,
            }
        };
        entered.views().await.into_iter().map(relation).collect()
    }

    /// Returns a statement as text, from the document of its syntax tree.
    ///
    /// # Errors
    /// A document that is none of a statement.
    pub(super) async fn text(&self, document: String) -> Result<String, Problem> {
        let writer = self.writer.get_or_try_init(|| make(Seen::default())).await?;
        let writer = Arc::clone(writer);
        let writing = tokio::task::spawn_blocking(move || writer.text(&document)).await;
        let written =
            writing.map_err(|_| Problem::new(Code::Defect, "the writing of a statement panicked"))?;
        written.map_err(|failure| Problem::new(Code::Defect, failure.to_string()))
    }

    /// Finds a catalog, which is what its caller sees at this moment too.
    fn find(&self, is_it: impl Fn(&Kept) -> bool, at: Option<Moment>) -> Option<Arc<dyn Catalog>> {
        let mut kept = self.kept.lock().unpoisoned();
        let found = kept.iter().position(is_it)?;
        let found = kept.remove(found)?;
        let catalog = Arc::clone(&found.catalog);
        kept.push_back(Kept { at, ..found });
        Some(catalog)
    }

    /// Returns the outputs with their columns, as the engine has them.
    async fn relations(
        &self,
        engine: &Arc<dyn Olap>,
        entries: &[Entry],
        cancel: &CancellationToken,
    ) -> Result<Vec<Relation>, Problem> {
        let live = entries.iter().filter(|entry| !entry.row.intents.is_deleted());
        let outputs: HashMap<String, &Entry> = live
            .filter_map(|entry| Some((kinds::output(&entry.row)?.to_ascii_lowercase(), entry)))
            .collect();
        let names: Vec<String> = outputs.keys().cloned().collect();
        let described = described(engine, &names, cancel).await;
        let described = described.map_err(|error| of_query(&error))?;
        let mut relations = Vec::new();
        for (name, columns) in described {
            let own = outputs.get(&name.to_ascii_lowercase());
            let Some(entry) = own else { continue };
            relations.push(Relation {
                oid: self.oids.of(entry.row.uid.0),
                schema: Schema::Main,
                description: String::new(),
                name,
                is_view: kinds::is_view(&entry.row),
                rows: kinds::rows(&entry.row),
                columns: columns.into_iter().map(attribute).collect(),
            });
        }
        Ok(relations)
    }
}

/// Makes a catalog in an engine of its own.
async fn make(seen: impl std::borrow::Borrow<Seen> + Send + 'static) -> Result<Arc<dyn Catalog>, Problem> {
    let made = tokio::task::spawn_blocking(move || watershed_drivers::catalog(seen.borrow())).await;
    let made = made.map_err(|_| Problem::new(Code::Defect, "the making of a catalog panicked"))?;
    let made = made.map_err(|failure| of_query(&QueryError::Failed(failure)))?;
    Ok(made.into())
}

/// Returns a column as clients are told it.
fn attribute((name, data_type): (String, String)) -> Attribute {
    let told = client_type(&data_type);
    Attribute {
        name,
        description: String::new(),
        oid: told.oid,
        size: told.size,
        modifier: told.modifier,
    }
}

/// Returns the statement that the catalog's engine runs for a caller's; none for a statement that is about outputs.
///
/// # Errors
/// `project-error` for a text that is no SQL, and `not-allowed` for what is no part of the catalog.
pub(super) fn statement(
    sql: &str,
    catalog: &dyn Catalog,
    (outputs, all_constant): (&BTreeSet<String>, bool),
    known: &Known,
) -> Result<Option<String>, Problem> {
    let Some(written) = words::about_catalog(sql, catalog, outputs, all_constant) else {
        return Ok(None);
    };
    let parsed = known.parser.parse(&[&written]).pop();
    let parsed = match parsed {
        Some(Ok(parsed)) => parsed,
        Some(Err(SqlError::Syntax { message, .. })) => {
            return Err(Problem::new(Code::ProjectError, message).at("sql-syntax", None));
        }
        _ => {
            return Err(refused(
                "callers may not use anything but one SELECT in a statement",
            ));
        }
    };
    let unread = || refused("the statement can't be read");
    let mut document = serde_json::from_str(parsed.document()).map_err(|_| unread())?;
    tree::adapt(&mut document, catalog);
    let adapted = catalog.text(&document.to_string()).map_err(|_| unread())?;
    let again: Result<Tree, SqlError> = known.parser.parse(&[&adapted]).pop().ok_or_else(unread)?;
    let own = catalog.functions().iter().map(|name| catalog.function(name));
    let functions = known.vocabulary.functions.iter().cloned().chain(own).collect();
    let allowed = Allowed {
        outputs: catalog.relations(),
        functions: &functions,
        macros: &BTreeSet::new(),
        types: &known.vocabulary.types,
        database: "memory",
    };
    match guard(&again, allowed) {
        Ok(()) => Ok(Some(adapted)),
        Err(refusal) => {
            let refused = refused(&refusal.to_string());
            Err(match refusal.what.starts_with("the table `") {
                true => refused.hint("a statement asks the catalog or the outputs, and not both"),
                false => refused,
            })
        }
    }
}

fn refused(message: &str) -> Problem {
    Problem::new(Code::NotAllowed, message).at("not-allowed-sql", None)
}

#[cfg(test)]
mod tests {
    use watershed_outputs::sql_parser::EngineParser;

    use super::*;

    fn known() -> Known {
        let parser = EngineParser::default();
        let vocabulary = Arc::new(parser.vocabulary().unwrap());
        Known {
            parser: Arc::new(parser),
            vocabulary,
        }
    }

    #[test]
    fn s_api29_statements_about_the_catalog_are_told_and_judged_as_they_are_run() {
        let catalog = watershed_drivers::catalog(&Seen::default()).unwrap();
        let outputs: BTreeSet<String> = ["flights", "pg_views"].map(str::to_owned).into();
        let known = known();
        let put = |sql: &str| statement(sql, &*catalog, (&outputs, false), &known);
        for (sql, part) in [
            ("SELECT * FROM pg_catalog.pg_class", "pg_class"),
            (
                "SELECT 'pg_catalog.x' FROM \"pg_catalog\".\"pg_class\"",
                "'pg_catalog.x'",
            ),
            (
                "SELECT 1 FROM PG_CLASS WHERE relname ~ 'a'",
                "regexp_matches(relname, 'a')",
            ),
            ("SELECT 1 FROM pg_class WHERE relname ~* 'a'", "'i'"),
            ("SELECT pg_catalog.version()", "_pg_version()"),
            ("SELECT current_user", "_pg_current_user()"),
            ("SELECT 'pg_class'::regclass::oid", "_pg_regclass('pg_class')"),
            (
                "SELECT oid::regclass::text FROM pg_class",
                "_pg_regclass_text(oid)",
            ),
            (
                "SELECT table_name FROM information_schema.tables",
                "information_schema_tables",
            ),
            ("SELECT 1 FROM pg_catalog.pg_views", "pg_views"),
            (
                "SELECT information_schema._pg_expandarray(indkey) FROM pg_index",
                "_pg__pg_expandarray(",
            ),
        ] {
            let written = put(sql).unwrap().unwrap_or_default();
            assert!(written.contains(part), "{sql}: {written}");
        }
        for other in [
            "SELECT * FROM flights",
            // An output has this name.
            "SELECT * FROM pg_views",
            "SELECT user, version FROM flights",
            "SELECT 'pg_catalog.pg_class'",
            "SELECT 1 -- FROM pg_class",
            "SELECT pg_class FROM flights",
        ] {
            assert_eq!(put(other), Ok(None), "{other}");
        }
        // What reads nothing is for those who may not ask the outputs, too.
        let constant = |sql: &str| statement(sql, &*catalog, (&outputs, true), &known);
        assert_eq!(
            constant("SELECT 1 + 1").unwrap().as_deref(),
            Some("SELECT (1 + 1)")
        );
        assert_eq!(constant("SELECT * FROM flights"), Ok(None));
        assert!(constant("SELECT getenv('HOME')").is_err());
        for refused in [
            "SELECT * FROM pg_class, read_csv('/etc/passwd')",
            "SELECT * FROM pg_class, flights",
            "SELECT * FROM pg_class, seen.session",
            "SELECT * FROM pg_class, duckdb_settings()",
            "SELECT * FROM pg_class, '/etc/passwd'",
            "SELECT * FROM pg_class, OPERATOR(read_csv)('/etc/passwd')",
            "SELECT getenv('HOME') FROM pg_class",
            "SELECT current_setting('home_directory') FROM pg_class, information_schema.\"tables\" LIMIT (SELECT count(*) FROM read_text('/etc/passwd'))",
            "SELECT * FROM pg_catalog.pg_class; SELECT 1",
            "CREATE TABLE pg_catalog.x AS SELECT * FROM pg_class",
            "SELECT * FROM pg_class WHERE",
        ] {
            assert!(put(refused).is_err(), "{refused}: {:?}", put(refused));
        }
    }
}
