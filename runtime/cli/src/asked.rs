//! `call`, `alert`, `report`: questions that resources define.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use watershed_api::operations::ops;
use watershed_api::request::{AlertTestRequest, AnswerOptions, CallRequest, ReportRequest, SnoozeRequest};
use watershed_api::{Exit, Operation as _};

use super::args::{AlertAction, AlertTest, Call, Format, Refresh, ReportAction, ReportRun, Shared, Snooze};
use super::ask::{ask, ask_at};
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::project::Location;
use super::{look, metrics, work};

/// Runs the command `call`.
pub(super) fn call(console: &mut Console, shared: &Shared, args: &Call) -> Result<Exit, Failure> {
    let location = Location::find(shared, None)?;
    let user = match &args.user {
        Some(typed) => Some(metrics::attributes(shared, &location, typed)?),
        None => None,
    };
    let given: Map<String, Value> = args
        .args
        .iter()
        .map(|argument| (argument.name.clone(), argument.value.clone()))
        .collect();
    let format = look::form_of_rows(shared, &args.form)?;
    let request = CallRequest {
        api: args.name.clone(),
        args: given,
        user,
        options: AnswerOptions {
            at: args.at.clone(),
            shown: Some(args.limit.unwrap_or(look::most_rows(console, format))),
            sql: args.sql,
            show_values: args.show_values,
            file: args.out.out.as_deref().map(look::file_of_rows).transpose()?,
            force: args.out.force,
        },
    };
    ask_at(console, shared, &location, format, ops::Call::request(request))
}

/// Runs the command `alert`.
pub(super) fn alert(console: &mut Console, shared: &Shared, action: &AlertAction) -> Result<Exit, Failure> {
    match action {
        AlertAction::Test(args) => test(console, shared, args),
        AlertAction::Snooze(args) => snooze(console, shared, args),
    }
}

fn test(console: &mut Console, shared: &Shared, args: &AlertTest) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let request = AlertTestRequest {
        name: args.name.clone(),
        at: args.at.clone(),
        send: args.send,
        exit_code: args.exit_code,
    };
    ask(console, shared, format, ops::AlertTest::request(request))
}

fn snooze(console: &mut Console, shared: &Shared, args: &Snooze) -> Result<Exit, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let until = args.duration.map(|wait| now.saturating_add(wait.0));
    let until_ms = until.map(|until| i64::try_from(until.as_millis()).unwrap_or(i64::MAX));
    let name = args.name.clone();
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let request = ops::Snooze::request(SnoozeRequest { name, until_ms });
    ask(console, shared, format, request)
}

/// Runs the command `report`.
pub(super) fn report(console: &mut Console, shared: &Shared, action: &ReportAction) -> Result<Exit, Failure> {
    let ReportAction::Run(args) = action;
    if args.send {
        let name = match args.name.contains('/') {
            true => args.name.clone(),
            false => format!("report/{}", args.name),
        };
        return work::refresh(
            console,
            shared,
            &Refresh {
                names: vec![name],
                ..Refresh::default()
            },
        );
    }
    rows(console, shared, args)
}

fn rows(console: &mut Console, shared: &Shared, args: &ReportRun) -> Result<Exit, Failure> {
    let format = look::form_of_rows(shared, &args.form)?;
    let request = ReportRequest {
        name: args.name.clone(),
        options: AnswerOptions {
            at: args.at.clone(),
            shown: Some(look::most_rows(console, format)),
            sql: args.sql,
            show_values: args.show_values,
            file: args.out.out.as_deref().map(look::file_of_rows).transpose()?,
            force: args.out.force,
        },
    };
    ask(console, shared, format, ops::Report::request(request))
}
