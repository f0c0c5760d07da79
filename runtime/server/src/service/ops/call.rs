//! Calls of APIs, and rows of reports.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value as Json};
use watershed_api::answers::CallAnswer;
use watershed_api::documents::{CallDocument, ResourceName};
use watershed_api::request::{AnswerOptions, CallRequest, ReportRequest};
use watershed_api::{Code, Problem};
use watershed_drivers::olap::{FileFormat, Layout, Value as Cell};
use watershed_proto::{DataResolver, Message as _, ReportSpec, Value};
use watershed_reconcilers::report::{self as reports, file::Making};
use watershed_resolvers::{Answer as Rows, Ask, Prepared, Resolvers, Viewer, api, metrics::LONGEST};

use super::export::write_answer;
use super::metrics_answer::{columns, range, rows, zone};
use super::query::until_closed;
use crate::out::Out;
use crate::service::Principal;
use crate::service::place::Place;
use crate::service::problems::{made_over, of_resource, unresolved};
use crate::service::questions::{Asking, Entries, Moment, StatementForm, file_of, layout, viewer};

/// A prepared question, with its limit and the layout of its columns.
struct Question {
    name: ResourceName,
    prepared: Prepared,
    /// Most rows, from the resource's file; none for all.
    limit: Option<u64>,
    layout: Layout,
    /// The arguments that the question reads and that were not given.
    missing: Vec<String>,
}

/// Runs the query of a declared API with the caller's arguments.
pub(crate) async fn call(
    place: &impl Place,
    _: &Principal,
    input: CallRequest,
    out: &Out,
) -> Result<CallAnswer, Problem> {
    let entries = place.listing().await?.entries;
    let asking = place.asking(&entries).await?;
    let entries = Entries(&entries);
    let (viewer, options) = (viewer(input.user), input.options);
    let answered = async {
        let moment = Moment::read(options.at.as_deref())?;
        let row = entries.of_kind(api::KIND, &input.api)?;
        let resolvers = asking.resolvers(&entries);
        let question = of_api(
            &resolvers,
            row.name.as_str(),
            input.args,
            &viewer,
            moment,
            options.file.is_some(),
        );
        answer(&asking, &resolvers, question.await?, &viewer, &options, out).await
    };
    let answered = until_closed(answered, out).await;
    asking.opened.give_back().await;
    answered
}

/// Returns the rows of a report without sending them.
pub(crate) async fn report(
    place: &impl Place,
    _: &Principal,
    input: ReportRequest,
    out: &Out,
) -> Result<CallAnswer, Problem> {
    let entries = place.listing().await?.entries;
    let asking = place.asking(&entries).await?;
    let entries = Entries(&entries);
    let answered = async {
        let moment = Moment::read(input.options.at.as_deref())?;
        let question = of_report(&asking, entries, &input.name, moment).await?;
        let resolvers = asking.resolvers(&entries);
        answer(&asking, &resolvers, question, &Viewer::Owner, &input.options, out).await
    };
    let answered = until_closed(answered, out).await;
    asking.opened.give_back().await;
    answered
}

/// Calls an API for a viewer, and returns at most `limit` rows.
pub(crate) async fn call_api(
    resolvers: &Resolvers<'_>,
    api: &str,
    args: Map<String, Json>,
    viewer: &Viewer,
    now: jiff::Timestamp,
    limit: u64,
) -> Result<CallDocument, Problem> {
    let moment = Moment { now, until: None };
    let question = of_api(resolvers, api, args, viewer, moment, false).await?;
    let answer = resolvers.rows(&question.prepared, viewer, limit, LONGEST).await;
    Ok(CallDocument {
        missing_arguments: question.missing,
        ..document(question.name, &answer.map_err(unresolved)?)
    })
}

/// Prepares a call of an API whose rows are written to a file.
pub(crate) async fn prepare_api(
    resolvers: &Resolvers<'_>,
    api: &str,
    args: Map<String, Json>,
    viewer: &Viewer,
    now: jiff::Timestamp,
) -> Result<Prepared, Problem> {
    let moment = Moment { now, until: None };
    let question = of_api(resolvers, api, args, viewer, moment, true).await?;
    Ok(question.prepared)
}

async fn of_api(
    resolvers: &Resolvers<'_>,
    name: &str,
    args: Map<String, Json>,
    viewer: &Viewer,
    moment: Moment,
    is_export: bool,
) -> Result<Question, Problem> {
    let data: DataResolver = api::call(name);
    let own = watershed_core::Key::new(api::KIND, name);
    let ask = Ask {
        data: &data,
        own: &own,
        variables: &Default::default(),
        viewer,
        skips_policies: false,
        args: values(args),
        now: moment.now,
        execution_time: moment.until,
        is_export,
    };
    let prepared = resolvers.prepare(&ask).await.map_err(unresolved)?;
    Ok(Question {
        name: ResourceName::new(api::KIND, name),
        layout: layout(&prepared),
        prepared,
        limit: None,
        missing: missing(resolvers, name, &ask.args),
    })
}

async fn of_report(
    asking: &Asking,
    entries: Entries<'_>,
    typed: &str,
    moment: Moment,
) -> Result<Question, Problem> {
    let row = entries.of_kind(reports::KIND, typed)?;
    let spec = ReportSpec::decode(row.spec.as_ref());
    let spec = spec.map_err(|error| Problem::new(Code::StateUnreadable, error.to_string()))?;
    let making = Making {
        resolvers: asking.resolvers(&entries),
        spec: &spec,
        own: row.key(),
        now: watershed_core::Timestamp(moment.now.as_millisecond()),
        until: moment.until,
    };
    let export = making.export(Path::new(""), FileFormat::Csv).await;
    let export = export.map_err(|error| of_resource(&error))?;
    let prepared = making.prepare().await.map_err(|error| of_resource(&error))?;
    Ok(Question {
        name: ResourceName::new(row.kind.as_str(), row.name.as_str()),
        prepared,
        limit: export.query.limit,
        layout: export.layout,
        missing: Vec::new(),
    })
}

async fn answer(
    asking: &Asking,
    resolvers: &Resolvers<'_>,
    question: Question,
    viewer: &Viewer,
    options: &AnswerOptions,
    out: &Out,
) -> Result<CallAnswer, Problem> {
    let Question {
        name,
        prepared,
        limit,
        layout,
        missing,
    } = question;
    if options.sql {
        let form = StatementForm::of(options, viewer)?;
        return Ok(CallAnswer::Document(Box::new(CallDocument {
            sql: Some(form.write(prepared.statement(), &asking.secrets)),
            missing_arguments: missing,
            ..document(name, &Rows::default())
        })));
    }
    if options.file.is_some() && prepared.is_made_over() {
        return Err(made_over());
    }
    if let Some(file) = file_of(options, limit, layout)? {
        let written = write_answer(asking, &prepared, file, viewer, out).await?;
        return Ok(CallAnswer::File(written));
    }
    let wanted = options.shown.unwrap_or(u64::MAX);
    let shown = limit.map_or(wanted, |limit| limit.min(wanted));
    let mut answer = resolvers
        .rows(&prepared, viewer, shown, LONGEST)
        .await
        .map_err(unresolved)?;
    // A report that has no more rows by its file has shown them all.
    answer.truncated &= limit.is_none_or(|limit| limit > shown);
    Ok(CallAnswer::Document(Box::new(CallDocument {
        missing_arguments: missing,
        ..document(name, &answer)
    })))
}

/// Lists the arguments that an API reads, without a default and not given.
fn missing(resolvers: &Resolvers<'_>, api: &str, given: &BTreeMap<String, Value>) -> Vec<String> {
    let read = resolvers.arguments_of(api);
    let missing = read.needed().filter(|name| !given.contains_key(*name));
    missing.map(str::to_owned).collect()
}

/// Converts arguments to the values of templates.
fn values(args: Map<String, Json>) -> BTreeMap<String, Value> {
    args.into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect()
}

fn document(resource: ResourceName, answer: &Rows) -> CallDocument {
    CallDocument {
        schema: CallDocument::SCHEMA.to_owned(),
        resource,
        columns: columns(answer),
        rows: rows(answer),
        truncated: answer.truncated,
        cached: answer.cached,
        use_display_names: answer.use_display_names,
        sql: None,
        totals: answer
            .totals
            .as_ref()
            .map(|totals| totals.iter().map(Cell::to_json).collect()),
        missing_arguments: Vec::new(),
        time_range: answer.time_range.map(range),
        time_zone: answer.time_zone.as_ref().map(zone),
    }
}
