//! The scope of a narrowed caller: some operations, and some resources.

use std::collections::BTreeSet;

use serde_json::Value;
use watershed_api::http::routes::{Does, Own};
use watershed_api::http::{Route, own::RequestDocument};
use watershed_api::request::Selection;
use watershed_api::{Code, Problem, Request};
use watershed_core::Uid;

use super::caller::Caller;
use crate::report::{Entry, names};
use crate::selection::{Evaluate as _, States};

/// The operations and resources that a caller may name. All of them, unless a token is narrowed.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    operations: Option<Vec<String>>,
    select: Option<Selection>,
}

impl Scope {
    /// Returns the scope of a caller.
    pub(super) fn of(caller: &Caller) -> Self {
        let Some(narrowing) = caller.narrowing() else {
            return Self::default();
        };
        let select = Selection {
            select: narrowing.select.clone(),
            exclude: Vec::new(),
        };
        Self {
            operations: narrowing.operations.clone(),
            select: Some(select).filter(|select| !select.is_empty()),
        }
    }

    /// Returns true if all resources are in the scope.
    pub(super) fn has_all(&self) -> bool {
        self.select.is_none()
    }

    /// Refuses a route whose operation is not in the scope, and one that is about the whole project if only some
    /// resources are.
    ///
    /// # Errors
    /// `not-allowed`.
    pub(super) fn check(&self, route: &Route) -> Result<(), Problem> {
        let name = route.name();
        let is_listed = |listed: &Vec<String>| listed.iter().any(|listed| listed == name);
        // Whoever may ask for work may see what came of it.
        let is_own_request = matches!(route.does, Does::Own(Own::Request));
        if !is_own_request && !self.operations.as_ref().is_none_or(is_listed) {
            let message = format!("this token is not for the operation `{name}`");
            return Err(Problem::new(Code::NotAllowed, message));
        }
        if !self.has_all() && is_of_whole_project(route) {
            let message =
                format!("this token is for some resources, and `{name}` is about the whole project");
            return Err(Problem::new(Code::NotAllowed, message));
        }
        Ok(())
    }

    /// Refuses work that reaches beyond the resource that was named, and questions through a resource outside of the
    /// scope. `entries` lists the resources, which only a scope of some needs.
    ///
    /// # Errors
    /// `not-allowed`, and `unknown-name`.
    pub(super) fn check_request(
        &self,
        request: &Request,
        entries: impl FnOnce() -> Vec<Entry>,
    ) -> Result<(), Problem> {
        if self.has_all() {
            return Ok(());
        }
        let through = match request {
            Request::Refresh(refresh) if refresh.downstream => {
                let message = "this token is for some resources, and `downstream` reaches others";
                return Err(Problem::new(Code::NotAllowed, message));
            }
            Request::Metrics(asked) => asked.through.as_deref(),
            Request::MetricsBounds(asked) => asked.through.as_deref(),
            _ => None,
        };
        match through {
            Some(through) => self.check_name(through, entries),
            None => Ok(()),
        }
    }

    /// Returns the resources in the scope; none if all are. Nothing is listed then.
    pub(super) fn among<E: AsRef<[Entry]>>(&self, entries: impl FnOnce() -> E) -> Option<BTreeSet<Uid>> {
        let select = self.select.as_ref()?;
        // A selection that matches nothing stands for nothing.
        let chosen = select.among(entries().as_ref(), States::Known).ok().flatten();
        Some(chosen.unwrap_or_default())
    }

    /// Returns the selected resources in the scope; none if all are. In a scope of some, a name outside of the scope is one
    /// that does not exist, and neither is an error: what is there would be told from what is not.
    ///
    /// # Errors
    /// When the selection can't be read; and in a scope of all, when nothing matches it.
    pub(super) fn select(
        &self,
        selection: &Selection,
        entries: &[Entry],
    ) -> Result<Option<BTreeSet<Uid>>, Problem> {
        let Some(allowed) = self.among(|| entries) else {
            return selection.among(entries, States::Known);
        };
        selection.check()?;
        let is_own = |entry: &&Entry| allowed.contains(&entry.row.uid);
        let own: Vec<Entry> = entries.iter().filter(is_own).cloned().collect();
        let chosen = selection
            .among(&own, States::Known)
            .unwrap_or_else(|_| Some(BTreeSet::new()));
        Ok(Some(chosen.unwrap_or(allowed)))
    }

    /// Refuses a resource outside of the scope, as one that does not exist.
    ///
    /// # Errors
    /// `unknown-name`, without a hint, which could name others.
    pub(super) fn check_name(&self, name: &str, entries: impl FnOnce() -> Vec<Entry>) -> Result<(), Problem> {
        if self.has_all() {
            return Ok(());
        }
        let entries = entries();
        let chosen = self.among(|| &entries);
        let found = names::resolve_with_deleted(&entries, name);
        let is_chosen = |entry: &Entry| chosen.is_none_or(|chosen| chosen.contains(&entry.row.uid));
        match found.is_ok_and(is_chosen) {
            true => Ok(()),
            false => Err(Problem::new(
                Code::UnknownName,
                format!("there is no resource `{name}`"),
            )),
        }
    }

    /// Returns a problem of a selection without names outside of the scope.
    pub(super) fn problem(&self, problem: Problem) -> Problem {
        match self.has_all() {
            true => problem,
            false => Problem::new(problem.code, "nothing is selected that this token is for"),
        }
    }

    /// Removes resources outside of the scope from the outcome of a request.
    pub(super) fn cut(&self, document: &mut RequestDocument, entries: impl FnOnce() -> Vec<Entry>) {
        let Some(run) = document.document.as_mut().filter(|_| !self.has_all()) else {
            return;
        };
        let entries = entries();
        let chosen = self.among(|| &entries).unwrap_or_default();
        let rows = entries.iter().map(|entry| &entry.row);
        let keys: BTreeSet<(&str, &str)> = rows
            .filter(|row| chosen.contains(&row.uid))
            .map(|row| (row.kind.as_str(), row.name.as_str()))
            .collect();
        let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
        if let Some(Value::Array(resources)) = run.get_mut("resources") {
            resources.retain(|one| keys.contains(&(text(one, "kind").as_str(), text(one, "name").as_str())));
        }
        if run.get("diagnostics").is_some() {
            run["diagnostics"] = Value::Array(Vec::new());
        }
        for key in ["removed", "paused"] {
            if run["summary"].get(key).is_some() {
                run["summary"][key] = Value::Array(Vec::new());
            }
        }
    }
}

/// Returns true if a route's answer or effect is not bounded by resources that the caller names.
fn is_of_whole_project(route: &Route) -> bool {
    let is_bounded = match route.does {
        Does::Selected(_) | Does::Own(Own::List | Own::Watch | Own::Request) => true,
        // The answer names the resources that hold others up.
        _ if route.path.ends_with("/explain") => false,
        _ => ["/resources/", "/metrics/", "/api/"]
            .iter()
            .any(|path| route.path.starts_with(path)),
    };
    !is_bounded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_who_is_not_narrowed_has_nothing_listed() {
        let listed = || -> Vec<Entry> { unreachable!("all resources are in the scope") };
        let scope = Scope::default();
        assert_eq!(scope.among(listed), None);
        assert_eq!(scope.check_name("orders", listed), Ok(()));
        let request = Request::Status(Box::default());
        assert_eq!(scope.check_request(&request, listed), Ok(()));
    }
}
