//! `token` for people.

use watershed_api::documents::Time;
use watershed_api::http::access::{TokenEntry, TokenState, TokensDocument};

use super::columns::{Cell, fitting};
use super::palette::{BAD, DIM, STRONG};
use super::units::{ago, count};

/// Renders the tokens of a service.
pub(crate) fn list(document: &TokensDocument, now: Time, width: Option<u16>) -> String {
    if document.tokens.is_empty() {
        return "there are no tokens that you may revoke\n".to_owned();
    }
    let title = |text: &str| Cell::left(text, DIM);
    let mut rows = vec![vec![
        title("NAME"),
        title("ID"),
        title("ROLES"),
        title("STATE"),
        title("ENDS"),
        title("USED"),
    ]];
    rows.extend(document.tokens.iter().map(|token| line(token, now)));
    let number = count(document.tokens.len() as u64, "token");
    format!("{}{STRONG}{number}{STRONG:#}\n", fitting("", &rows, width))
}

fn line(token: &TokenEntry, now: Time) -> Vec<Cell> {
    let style = match token.state {
        TokenState::Valid => anstyle::Style::new(),
        TokenState::Expired | TokenState::Revoked => BAD,
    };
    let used = token.used_at.map_or("-".to_owned(), |used| ago(used, now));
    vec![
        Cell::left(token.name.as_str(), STRONG),
        Cell::left(token.id.as_str(), DIM),
        Cell::left(roles(token), anstyle::Style::new()),
        Cell::left(token.state.as_str(), style),
        Cell::left(day(token.expires_at), DIM),
        Cell::left(used, DIM),
    ]
}

/// Renders what is to be known of a token that was made.
pub(crate) fn made(token: &TokenEntry) -> String {
    format!(
        "the token {} (\"{}\") has {} until {}; its secret is shown this once\n",
        token.id,
        token.name,
        roles(token),
        day(token.expires_at)
    )
}

/// Returns the roles of a token as the command line takes them, and a mark where the token is narrower.
fn roles(token: &TokenEntry) -> String {
    let roles = token
        .roles
        .iter()
        .map(|(instance, role)| format!("{instance}={role}"));
    let mut text = roles.collect::<Vec<_>>().join(" ");
    if token.operations.is_some() || !token.select.is_empty() {
        text.push_str(" (narrowed)");
    }
    text
}

fn day(time: Time) -> String {
    time.to_string().chars().take(10).collect()
}
