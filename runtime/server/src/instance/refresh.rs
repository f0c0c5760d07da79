//! Refreshes of resources, each done once even if its file was edited too.

use std::collections::BTreeSet;

use futures::future::join_all;
use watershed_api::documents::Time;
use watershed_controller::history::Trigger;
use watershed_controller::resource::Target;
use watershed_controller::{Handle, Refresh, Request, RequestError, Uid};
use watershed_reconcilers::{model, report};

use super::Instance;
use super::order::{parents_first, with_dependents};
use super::settle::{Halt, settle};
use super::stop::Control;
use super::wish::{Reach, Which, Wish};
use crate::report::{Entry, names};
use crate::selection::{Evaluate as _, States};

/// Refreshes that were requested before the project's files were parsed.
#[derive(Default)]
pub(super) struct Early {
    uids: BTreeSet<Uid>,
    requests: Vec<Result<Request, RequestError>>,
    /// The resources in the catalog at that time, if known.
    known: Option<BTreeSet<Uid>>,
}

impl Early {
    /// Returns true if a resource is refreshed already: it was requested, or this command builds it for the first time.
    fn covers(&self, entry: &Entry) -> bool {
        let is_new = self
            .known
            .as_ref()
            .is_some_and(|known| !known.contains(&entry.row.uid));
        self.uids.contains(&entry.row.uid) || is_new && entry.row.kind.as_str() == model::KIND
    }
}

/// Requests a refresh of resources in the catalog before anything runs, so that the work of an edit answers it too.
///
/// Names that the files alone know are left for later.
///
/// Where a command goes on whose work another process did, what that has asked for is stored: it is done, or is being
/// done, and asking once more would repeat it.
pub(super) async fn begin_early(
    instance: &Instance,
    wish: &Wish,
    control: &Control,
    goes_on_since: Option<Time>,
) -> Early {
    let (Wish::Refresh(which, how, reach), Control::Own(_)) = (wish, control) else {
        return Early::default();
    };
    let entries = &instance.found.entries;
    let uids = match which {
        Which::Named(typed) => names::resolve_all(entries, typed).ok(),
        // What has failed or is modified is known once all is up to date.
        Which::Selected(selection) => selection
            .among(entries, States::Unknown)
            .ok()
            .flatten()
            .map(|chosen| chosen.into_iter().collect()),
    };
    let uids = reached(entries, uids.unwrap_or_default(), *reach);
    instance.choice.chosen.add(uids.iter().copied());
    let mut open = uids.clone();
    let asked = stored_requests(&instance.found.entries, goes_on_since);
    open.retain(|uid| !asked.contains(uid));
    Early {
        requests: request_refreshes(instance.controller(), &open, *how).await,
        uids: uids.into_iter().collect(),
        known: Some(entries.iter().map(|entry| entry.row.uid).collect()),
    }
}

/// Refreshes resources by their current names, and waits for the earlier requests too.
pub(super) async fn carry_out(
    instance: &Instance,
    which: &Which,
    how: Refresh,
    reach: Reach,
    early: Early,
) -> Result<(), Halt> {
    let uids = match which {
        Which::Named(typed) => instance.named(typed)?,
        Which::Selected(selection) => {
            let chosen = selection.among(&instance.entries(), States::Known)?;
            let chosen = chosen.unwrap_or_default();
            instance.choice.chosen.add(chosen.iter().copied());
            instance.uids(|entry| chosen.contains(&entry.row.uid))
        }
    };
    let entries = instance.entries();
    let covered = entries.iter().filter(|entry| early.covers(entry));
    let covered: BTreeSet<Uid> = covered.map(|entry| entry.row.uid).collect();
    let mut left = reached(&entries, uids, reach);
    left.retain(|uid| !covered.contains(uid));
    let requests = request_refreshes(instance.controller(), &left, how).await;
    settle(early.requests.into_iter().chain(requests).collect()).await?;
    Ok(())
}

/// Returns the resources with a stored refresh request from `since` on; empty without a time.
pub(super) fn stored_requests(entries: &[Entry], since: Option<Time>) -> BTreeSet<Uid> {
    let of = |since| requested_since(entries, since).collect();
    since.map(of).unwrap_or_default()
}

async fn request_refreshes(
    handle: &Handle,
    uids: &[Uid],
    how: Refresh,
) -> Vec<Result<Request, RequestError>> {
    let asked = uids.iter().map(|uid| handle.refresh(Target::Uid(*uid), how));
    join_all(asked).await
}

/// Returns the resources with a refresh request from `since` on: no completed run has seen it, or a later one has.
fn requested_since(entries: &[Entry], since: Time) -> impl Iterator<Item = Uid> {
    let is_asked = move |entry: &&Entry| {
        let row = &entry.row;
        let run = row.last_run.as_ref();
        let has_seen = run.is_some_and(|run| {
            let seen = run.seen.as_ref();
            seen.is_some_and(|seen| seen.refreshes == row.refreshes)
        });
        let began_since = || {
            run.is_some_and(|run| {
                run.started_at.0 >= since.millis() && run.reason.trigger == Trigger::Refresh
            })
        };
        row.refreshes != Default::default() && (!has_seen || began_since())
    };
    entries.iter().filter(is_asked).map(|entry| entry.row.uid)
}

/// Returns the resources that a refresh of `uids` reaches. Reports downstream are left out.
fn reached(entries: &[Entry], uids: Vec<Uid>, reach: Reach) -> Vec<Uid> {
    match reach {
        Reach::Named => uids,
        Reach::Downstream => {
            let named: BTreeSet<Uid> = uids.iter().copied().collect();
            let is_report = |entry: &&Entry| entry.row.kind.as_str() == report::KIND;
            let reports = entries.iter().filter(is_report).map(|entry| entry.row.uid);
            // A refresh sends a report, which nobody expects of one that they did not name.
            let sent: BTreeSet<Uid> = reports.filter(|uid| !named.contains(uid)).collect();
            let mut all = with_dependents(entries, uids);
            all.retain(|uid| !sent.contains(uid));
            parents_first(entries, all)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{entry, model};
    use watershed_core::Row;

    #[test]
    fn a_refresh_downstream_sends_no_report_but_those_that_were_named() {
        let report = |name: &str| Row {
            kind: report::KIND.into(),
            ..model(name, &["orders"])
        };
        let (orders, totals, weekly) = (
            model("orders", &[]),
            model("totals", &["orders"]),
            report("weekly"),
        );
        let (orders_uid, totals_uid, weekly_uid) = (orders.uid, totals.uid, weekly.uid);
        let entries = [orders, totals, weekly].map(entry);
        let reached = |uids: &[Uid]| reached(&entries, uids.to_vec(), Reach::Downstream);
        assert_eq!(reached(&[orders_uid]), [orders_uid, totals_uid]);
        let all = reached(&[orders_uid, weekly_uid]);
        assert!(all.len() == 3 && all.contains(&weekly_uid), "{all:?}");
    }
}
