//! Sessions of SQL clients: how many there may be, and counts of them and their statements.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use watershed_api::{Code, Problem};
use watershed_controller::stats::Page;
use watershed_locks::Unpoisoned as _;

/// The most sessions of a service: each has a connection, and little memory besides.
const MOST: usize = 512;
/// The most sessions of one caller: pools of clients keep ten or twenty.
const MOST_OF_ONE: usize = 64;

/// The sessions of a service. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Sessions(Arc<Mutex<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    open: usize,
    /// Open sessions by caller.
    of: HashMap<String, usize>,
    /// Counts by instance, which grow alone but for the open sessions.
    on: BTreeMap<String, OfInstance>,
}

#[derive(Debug, Default)]
struct OfInstance {
    open: usize,
    opened: u64,
    statements: u64,
}

/// The place of an open session, which is given back when the value is dropped.
#[derive(Debug)]
pub(super) struct SessionPlace {
    sessions: Sessions,
    caller: String,
    instance: String,
}

impl Sessions {
    /// Takes a place for a session.
    ///
    /// # Errors
    /// `busy`, when the caller or the service has too many.
    pub(super) fn take(&self, caller: &str, instance: &str) -> Result<SessionPlace, Problem> {
        let mut counted = self.0.lock().unpoisoned();
        let of = counted.of.get(caller).copied().unwrap_or_default();
        let message = match (counted.open >= MOST, of >= MOST_OF_ONE) {
            (_, true) => format!("`{caller}` has {of} sessions open already"),
            (true, _) => format!("{MOST} sessions are open already"),
            _ => {
                counted.open += 1;
                counted.of.insert(caller.to_owned(), of + 1);
                let on = counted.on.entry(instance.to_owned()).or_default();
                (on.open, on.opened) = (on.open + 1, on.opened + 1);
                return Ok(SessionPlace {
                    sessions: self.clone(),
                    caller: caller.to_owned(),
                    instance: instance.to_owned(),
                });
            }
        };
        Err(Problem::new(Code::Busy, message).hint("close some of them"))
    }

    /// Adds the counts to a page; nothing if there never was a session.
    pub(super) fn add_numbers(&self, page: &mut Page) {
        let counted = self.0.lock().unpoisoned();
        for (instance, on) in &counted.on {
            page.set_labels(&[("instance", instance)]);
            page.gauge("sql_sessions", "Open sessions of SQL clients.", on.open as u64);
            let help = "Sessions of SQL clients since the service began.";
            page.counter("sql_sessions_total", help, on.opened);
            let help = "Statements of SQL clients since the service began.";
            page.counter("sql_statements_total", help, on.statements);
        }
    }
}

impl SessionPlace {
    /// Counts a statement of the session.
    pub(super) fn count_statement(&self) {
        let mut counted = self.sessions.0.lock().unpoisoned();
        if let Some(on) = counted.on.get_mut(&self.instance) {
            on.statements += 1;
        }
    }
}

impl Drop for SessionPlace {
    fn drop(&mut self) {
        let mut counted = self.sessions.0.lock().unpoisoned();
        counted.open -= 1;
        if let Some(on) = counted.on.get_mut(&self.instance) {
            on.open -= 1;
        }
        if let Some(of) = counted.of.get_mut(&self.caller) {
            *of -= 1;
            if *of == 0 {
                counted.of.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_api27_sessions_are_bounded_by_caller_and_in_all_and_counted() {
        let sessions = Sessions::default();
        let page = || {
            let mut page = Page::default();
            sessions.add_numbers(&mut page);
            page.into_text()
        };
        assert_eq!(page(), "");
        let mut open: Vec<SessionPlace> = (0..MOST_OF_ONE)
            .filter_map(|_| sessions.take("ann", "shop").ok())
            .collect();
        assert_eq!(open.len(), MOST_OF_ONE);
        let refused = sessions.take("ann", "shop").unwrap_err();
        assert_eq!(refused.code, Code::Busy);
        for caller in 1..=MOST / MOST_OF_ONE {
            open.extend((0..MOST_OF_ONE).filter_map(|_| sessions.take(&caller.to_string(), "ops").ok()));
        }
        assert_eq!(open.len(), MOST);
        assert!(sessions.take("bob", "shop").is_err());
        open[0].count_statement();
        open.pop();
        open.push(sessions.take("bob", "shop").unwrap());
        let told = page();
        for line in [
            "watershed_sql_sessions{instance=\"shop\"} 65",
            "watershed_sql_sessions_total{instance=\"shop\"} 65",
            "watershed_sql_statements_total{instance=\"shop\"} 1",
        ] {
            assert!(told.lines().any(|own| own == line), "{line}\n{told}");
        }
        drop(open);
        assert!(page().contains("watershed_sql_sessions{instance=\"shop\"} 0\n"));
        assert!(sessions.0.lock().unpoisoned().of.is_empty());
    }
}
