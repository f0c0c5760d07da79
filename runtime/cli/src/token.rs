//! `token`: tokens of a service, over HTTP or in a file.

mod file;
mod remote;

use std::collections::BTreeMap;

use watershed_api::Exit;
use watershed_api::documents::Time;
use watershed_api::http::access::{TokenMade, TokenRequest};
use watershed_callers::token::LIFE_DAYS;

use super::args::{Format, Shared, Token, TokenAction, TokenCreate};
use super::console::{Console, choose_format};
use super::failure::Failure;
use crate::render::tokens;

/// A day, in milliseconds.
const DAY_MS: i64 = 24 * 3_600_000;

/// Runs the command `token`.
pub(super) fn token(console: &mut Console, shared: &Shared, args: &Token) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    match &args.action {
        TokenAction::Create(args) => create(console, format, args),
        TokenAction::List(args) => {
            let listed = super::block_on(remote::list(&args.at))?;
            match format {
                Format::Json => console.document(&listed)?,
                _ => {
                    let width = console.result_width();
                    write!(console.writer(), "{}", tokens::list(&listed, Time::now(), width))?;
                }
            }
            Ok(Exit::Converged)
        }
        TokenAction::Revoke(args) => {
            let revoked = super::block_on(remote::revoke(&args.at, &args.id))?;
            match format {
                Format::Json => console.document(&revoked)?,
                _ => writeln!(console.writer(), "revoked {} ({})", revoked.id, revoked.name)?,
            }
            Ok(Exit::Converged)
        }
    }
}

fn create(console: &mut Console, format: Format, args: &TokenCreate) -> Result<Exit, Failure> {
    let mut roles = BTreeMap::new();
    for role in &args.roles {
        if roles
            .insert(role.instance.clone(), role.role.to_string())
            .is_some()
        {
            let message = format!("`--role` names `{}` twice", role.instance);
            return Err(Failure::usage(message).hint("a token has one role on each instance"));
        }
    }
    // A service decides itself, and makes no token that ends after the one that asks.
    let days = args.days.or(args.file.is_some().then_some(LIFE_DAYS));
    let end = |days| Time::from_millis(Time::now().millis() + i64::from(days) * DAY_MS);
    let request = TokenRequest {
        name: args.name.clone(),
        roles,
        operations: (!args.operations.is_empty()).then(|| args.operations.clone()),
        select: args.select.clone(),
        expires_at: days.map(end),
    };
    let made = match &args.file {
        Some(path) => file::add(path, request)?,
        None => super::block_on(remote::create(&args.at, &request))?,
    };
    match format {
        Format::Json => console.document(&made)?,
        _ => show(console, &made)?,
    }
    Ok(Exit::Converged)
}

/// Prints the secret alone, for `TOKEN=$(watershed token create ...)`, and what is to be known of it beside.
fn show(console: &mut Console, made: &TokenMade) -> Result<(), Failure> {
    if let Some(secret) = &made.secret {
        writeln!(console.writer(), "{secret}")?;
    }
    console.note(&tokens::made(&made.token));
    Ok(())
}
