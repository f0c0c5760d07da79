//! `call`, `alert`, `report`: questions that resources ask, and what is told of them.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use watershed_api::request::{AlertTestRequest, CallRequest, Callee, ChangeByHand};
use watershed_api::{Exit, Request};

use super::args::{AlertAction, AlertTest, Call, Format, Refresh, ReportAction, ReportRun, Shared, Snooze};
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::project::Location;
use super::{look, managed, metrics, work};

/// `call`
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
    let callee = Callee::Api {
        name: args.name.clone(),
        args: given,
    };
    let format = look::form_of_rows(shared, args.vertical)?;
    let request = CallRequest {
        callee,
        user,
        at: args.at.clone(),
        shown: args.limit.unwrap_or(shown(console, format)),
        sql: args.sql,
        show_values: args.show_values,
        file: args.out.out.as_deref().map(look::file_of_rows).transpose()?,
        force: args.out.force,
    };
    look::look_at(
        console,
        shared,
        &location,
        format,
        Request::Call(Box::new(request)),
    )
}

/// `alert`
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
    look::look(console, shared, format, Request::TestAlert(request))
}

fn snooze(console: &mut Console, shared: &Shared, args: &Snooze) -> Result<Exit, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let until = args.duration.map(|wait| now.saturating_add(wait.0));
    let until_ms = until.map(|until| i64::try_from(until.as_millis()).unwrap_or(i64::MAX));
    let name = args.name.clone();
    managed::operate(console, shared, ChangeByHand::Snooze { name, until_ms })
}

/// `report`
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
    let format = look::form_of_rows(shared, args.vertical)?;
    let request = CallRequest {
        callee: Callee::Report(args.name.clone()),
        user: None,
        at: args.at.clone(),
        shown: shown(console, format),
        sql: args.sql,
        show_values: args.show_values,
        file: args.out.out.as_deref().map(look::file_of_rows).transpose()?,
        force: args.out.force,
    };
    look::look(console, shared, format, Request::Call(Box::new(request)))
}

/// Rows that are shown at most.
fn shown(console: &Console, format: Format) -> u64 {
    match console.result_is_terminal() && !look::is_for_programs(format) {
        true => look::SCREEN_LIMIT,
        false => look::TABLE_LIMIT,
    }
}
