//! `metrics`: a query of a metrics view.

use std::path::Path;

use serde_json::{Map, Value, json};
use watershed_api::operations::ops;
use watershed_api::request::{AnswerOptions, MetricsBoundsRequest, MetricsRequest};
use watershed_api::{Exit, Operation as _};
use watershed_compilers::nearest_name;
use watershed_reconcilers::project_parser::compilation;

use super::args::{Format, Metrics, Shared};
use super::ask::ask_at;
use super::console::Console;
use super::failure::Failure;
use super::input;
use super::look;
use super::project::Location;
use watershed::program::compiler_options;

/// Largest file of a query or of attributes, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// Runs the command `metrics`.
pub(super) fn metrics(console: &mut Console, shared: &Shared, args: &Metrics) -> Result<Exit, Failure> {
    let is_picture = look::is_picture(console, &args.out)?;
    let format = match is_picture {
        true => Format::Chart,
        false => look::form_of_rows(shared, &args.form)?,
    };
    let location = Location::find(shared, None)?;
    let user = match &args.user {
        Some(typed) => Some(attributes(shared, &location, typed)?),
        None => None,
    };
    if let Some(name) = args.name.as_deref().filter(|_| args.bounds) {
        let view = name.strip_prefix("metrics_view/").unwrap_or(name).to_owned();
        let through = args.through.clone();
        let request = MetricsBoundsRequest { view, user, through };
        return ask_at(
            console,
            shared,
            &location,
            format,
            ops::MetricsBounds::request(request),
        );
    }
    let shown = look::most_rows(console, format);
    let file = args.out.out.as_deref().filter(|_| !is_picture);
    let file = file.map(look::file_of_rows).transpose()?;
    let request = MetricsRequest {
        query: query(args)?,
        sql: None,
        condition: args.condition.clone(),
        having: args.having.clone(),
        shows_change: args.compare.is_some() && !args.measures.is_empty(),
        user,
        through: args.through.clone(),
        options: AnswerOptions {
            at: args.at.clone(),
            shown: Some(shown).filter(|_| file.is_none()),
            sql: args.sql,
            show_values: args.show_values,
            file,
            force: args.out.force,
        },
    };
    let request = ops::Metrics::request(request);
    ask_at(console, shared, &location, format, request)
}

/// Returns the query as JSON: that of the file, overlaid with the options.
fn query(args: &Metrics) -> Result<Value, Failure> {
    let mut query = match &args.query {
        Some(file) => match serde_json::from_str(&input::text(file, LARGEST_FILE)?) {
            Ok(Value::Object(query)) => query,
            Ok(_) => return Err(Failure::usage(format!("`{}` holds no mapping", file.display()))),
            Err(error) => {
                return Err(Failure::usage(format!(
                    "`{}` is no JSON: {error}",
                    file.display()
                )));
            }
        },
        None => Map::new(),
    };
    let mut set = |key: &str, value: Value| query.insert(key.to_owned(), value);
    if let Some(name) = &args.name {
        set(
            "metrics_view",
            json!(name.strip_prefix("metrics_view/").unwrap_or(name)),
        );
    }
    if !args.dimensions.is_empty() {
        set(
            "dimensions",
            args.dimensions.iter().map(|typed| dimension(typed)).collect(),
        );
    }
    if !args.measures.is_empty() {
        set("measures", json!(trimmed(&args.measures)));
    }
    if let Some(range) = &args.time_range {
        set("time_range", json!(range));
    }
    match args.compare.as_deref() {
        None => {}
        Some("previous") => drop(set("comparison_time_range", json!({"offset": "-1P"}))),
        Some(offset) if offset.starts_with('-') => {
            set("comparison_time_range", json!({ "offset": offset }));
        }
        Some(range) => drop(set("comparison_time_range", json!(range))),
    }
    if let Some(zone) = &args.time_zone {
        set("time_zone", json!(zone));
    }
    if !args.sort.is_empty() {
        set("sort", args.sort.iter().map(|typed| sort(typed)).collect());
    }
    if let Some(limit) = args.limit {
        set("limit", json!(limit));
    }
    if let Some(offset) = args.offset {
        set("offset", json!(offset));
    }
    if !args.pivot.is_empty() {
        set("pivot_on", json!(trimmed(&args.pivot)));
    }
    if args.fill {
        set("spine", json!({"time": true}));
    }
    if args.totals {
        set("totals", json!(true));
    }
    Ok(Value::Object(query))
}

fn trimmed(typed: &[String]) -> Vec<&str> {
    typed.iter().map(|one| one.trim()).collect()
}

/// Parses a dimension; `name:grain` cuts its times to a grain.
fn dimension(typed: &str) -> Value {
    match typed.trim().rsplit_once(':') {
        Some((name, grain)) => json!({"name": name, "grain": grain}),
        None => json!(typed.trim()),
    }
}

/// Parses a column to sort by; `-name` sorts from the largest.
fn sort(typed: &str) -> Value {
    match typed.trim().strip_prefix('-') {
        Some(name) => json!({"name": name, "desc": true}),
        None => json!({"name": typed.trim()}),
    }
}

/// Returns the attributes of the user on whose behalf the query runs; none for the owner.
pub(super) fn attributes(
    shared: &Shared,
    location: &Location,
    typed: &str,
) -> Result<Map<String, Value>, Failure> {
    let read = |text: &str, what: &str| match serde_json::from_str(text) {
        Ok(Value::Object(attributes)) => Ok(attributes),
        Ok(_) => Err(Failure::usage(format!("{what} holds no mapping of attributes"))),
        Err(error) => Err(Failure::usage(format!("{what} is no JSON: {error}"))),
    };
    if typed.trim_start().starts_with('{') {
        return read(typed, "the user");
    }
    let users = mock_users(shared, location)?;
    let email = |user: &Map<String, Value>| user.get("email").and_then(Value::as_str).map(str::to_owned);
    let is_meant =
        |user: &Map<String, Value>| email(user).is_some_and(|email| email.eq_ignore_ascii_case(typed));
    if let Some(user) = users.iter().find(|user| is_meant(user)) {
        return Ok(user.clone());
    }
    let file = Path::new(typed);
    if typed == "-" || file.is_file() {
        return read(&input::text(file, LARGEST_FILE)?, &format!("`{typed}`"));
    }
    let emails: Vec<String> = users.iter().filter_map(email).collect();
    let failure = Failure::usage(format!("no mock user has the e-mail `{typed}`"));
    let hint = match nearest_name(typed, emails.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "list users under `mock_users` in the manifest, or give attributes: `--as '{\"email\": \"a@example.org\"}'`".to_owned(),
    };
    Err(failure.hint(hint))
}

/// Returns the mock users in the manifest.
fn mock_users(shared: &Shared, location: &Location) -> Result<Vec<Map<String, Value>>, Failure> {
    let options = compiler_options(&super::options(shared, location));
    let users = compilation::mock_users(&location.root, options).map_err(|error| Failure {
        exit: Exit::ProjectError,
        error: anyhow::Error::new(error).context("can't read the manifest"),
        hint: None,
    })?;
    let attributes = |user| match Value::from(&user) {
        Value::Object(attributes) => attributes,
        _ => Map::new(),
    };
    Ok(users.into_iter().map(attributes).collect())
}
