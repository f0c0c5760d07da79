//! The SQLSTATE of each problem.

use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::ErrorResponse;
use watershed_api::{Code, Problem};

/// Anything that does more than read.
pub(crate) const READ_ONLY: &str = "25006";
/// A statement that is none.
pub(crate) const SYNTAX: &str = "42601";
/// A part of the language that is not offered.
pub(crate) const NOT_OFFERED: &str = "0A000";
/// A message that does not belong where it came, or is none.
pub(crate) const PROTOCOL: &str = "08P01";
/// A wrong secret.
pub(crate) const WRONG_SECRET: &str = "28P01";
/// Nobody may enter so.
pub(crate) const NO_ENTRY: &str = "28000";
/// Too many things of a kind.
pub(crate) const TOO_MANY: &str = "54000";
/// A prepared statement that does not exist.
pub(crate) const NO_STATEMENT: &str = "26000";
/// A portal that does not exist.
pub(crate) const NO_PORTAL: &str = "34000";
/// A transaction in which a statement failed.
pub(crate) const FAILED: &str = "25P02";
/// A savepoint that does not exist.
pub(crate) const NO_SAVEPOINT: &str = "3B001";
/// A part of a transaction outside of one.
pub(crate) const NO_TRANSACTION: &str = "25P01";
/// A statement that its client called off.
pub(crate) const CALLED_OFF: &str = "57014";
/// A session that ends with access, or with the service.
pub(crate) const ENDED: &str = "57P01";
/// A session that asked nothing for too long.
pub(crate) const IDLE: &str = "57P05";
/// A transaction that asked nothing for too long.
pub(crate) const IDLE_IN_TRANSACTION: &str = "25P03";
/// A value that is none of its type.
pub(crate) const BAD_VALUE: &str = "22023";

/// An error in the words of Postgres.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SqlError {
    pub(crate) state: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// Place in the statement, in signs from 1.
    pub(crate) position: Option<usize>,
}

impl SqlError {
    pub(crate) fn new(state: &'static str, message: impl Into<String>) -> Self {
        Self {
            state,
            message: message.into(),
            hint: None,
            position: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the error of a problem with a statement; the place is left out of a statement that was changed.
    pub(crate) fn of(problem: &Problem, sql: Option<&str>) -> Self {
        let offset = problem.at.as_ref().and_then(|at| at.offset);
        let before = sql.zip(offset).and_then(|(sql, offset)| sql.get(..offset));
        Self {
            state: of(problem),
            message: problem.message.clone(),
            hint: problem.hint.as_ref().map(ToString::to_string),
            position: before.map(|before| before.chars().count() + 1),
        }
    }

    /// Returns the message that tells the error; a fatal one ends the session.
    pub(crate) fn message(self, is_fatal: bool) -> PgWireBackendMessage {
        let severity = if is_fatal { "FATAL" } else { "ERROR" };
        let mut fields = vec![
            (b'S', severity.to_owned()),
            (b'V', severity.to_owned()),
            (b'C', self.state.to_owned()),
            (b'M', cut(self.message)),
        ];
        fields.extend(self.hint.map(|hint| (b'H', cut(hint))));
        fields.extend(self.position.map(|position| (b'P', position.to_string())));
        PgWireBackendMessage::ErrorResponse(ErrorResponse::new(fields))
    }
}

/// Returns a text that fits into a message: clients refuse longer ones.
fn cut(text: String) -> String {
    const LONGEST: usize = 8 << 10;
    let text = text.replace('\0', " ");
    let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= LONGEST);
    text[..end.unwrap_or(text.len())].to_owned()
}

fn is_of_statement(problem: &Problem) -> bool {
    let code = problem.at.as_ref().map(|mistake| mistake.code.as_str());
    code.is_some_and(|code| ["sql-syntax", "bad-metrics-query"].contains(&code))
}

/// Returns the SQLSTATE of a problem.
fn of(problem: &Problem) -> &'static str {
    match problem.code {
        Code::UnknownName | Code::NotBuilt => "42P01",
        Code::AmbiguousName => "42702",
        // A mistake of the statement, whoever found it.
        Code::BadArgument if is_of_statement(problem) => SYNTAX,
        Code::BadArgument | Code::VersionRequired | Code::StaleVersion | Code::KeyReused => BAD_VALUE,
        Code::AlreadyExists => "42710",
        Code::WrongState | Code::OwnedByGit => "55000",
        Code::NotAllowed | Code::RemoteEditOff => "42501",
        Code::Unauthenticated => NO_ENTRY,
        Code::ProjectError => SYNTAX,
        Code::DeadlinePassed | Code::Interrupted => CALLED_OFF,
        Code::Busy => "53300",
        Code::Stopping => ENDED,
        Code::HeldElsewhere | Code::Unattended | Code::Unavailable => "57P03",
        Code::NoSpace => "53100",
        Code::OutcomeUnknown | Code::StateUnreadable => "58000",
        Code::Defect => "XX000",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_signs() {
        let problem = Problem::new(Code::ProjectError, "wrong").at("sql-syntax", Some(10));
        let sql = "SELECT 'é' x";
        assert_eq!(SqlError::of(&problem, Some(sql)).position, Some(10));
        assert_eq!(SqlError::of(&problem, None).position, None);
        // A place that is none is not told.
        assert_eq!(SqlError::of(&problem, Some("é")).position, None);
    }
}
