//! Checks of invocations: one per name and path, present inputs, abandoned ones, and limits.

use std::collections::{HashMap, HashSet};

use super::Findings;
use super::Parts;
use crate::graph::resource::{Cancelled, Running};
use crate::schedule::decision::{Decider, Decision};
use crate::types::index::{NameId, Slot};
use crate::{Phase, Settled};

impl Parts<'_> {
    fn regular_runs(&self) -> impl Iterator<Item = (Slot, &Running)> {
        let run =
            |(slot, it): (Slot, &'_ crate::graph::resource::Resource)| Some((slot, it.run()?.invocation()));
        let slots: Vec<Slot> = self.graph.iter().filter_map(run).map(|(slot, _)| slot).collect();
        slots
            .into_iter()
            .filter_map(|slot| Some((slot, self.graph[slot].run()?)))
            .filter(|(_, run)| run.phase() == Phase::Reconcile && run.cancelled() == Cancelled::No)
    }

    /// Checks that the known invocations are exactly those of the stages and the abandoned ones, with at most one under
    /// each name.
    pub(super) fn check_one_run_per_name(&self, findings: &mut Findings) {
        let mut unreturned = 0;
        let mut under: HashMap<NameId, Slot> = HashMap::new();
        for (slot, resource) in self.graph.iter() {
            findings.ensure_of(self.graph, slot, !resource.is_concluding(), || {
                "has an end that was never decided".into()
            });
            if let Some(run) = resource.unreturned() {
                unreturned += 1;
                let known = self.graph.run(run.invocation()) == Some(slot);
                findings.ensure_of(self.graph, slot, known, || {
                    format!("{:?} is lost", run.invocation())
                });
                for name in run.under().iter() {
                    let other = under.insert(name, slot).filter(|other| *other != slot);
                    findings.ensure_of(self.graph, slot, other.is_none(), || {
                        let other = other.map(|other| self.graph[other].row().key().to_string());
                        format!("runs under one name with {other:?}")
                    });
                }
            }
        }
        findings.ensure(unreturned == self.graph.runs().count(), || {
            format!(
                "{} invocations are known, not {unreturned}",
                self.graph.runs().count()
            )
        });
    }

    /// Checks that nothing else runs below a running resource.
    pub(super) fn check_one_run_per_path(&self, findings: &mut Findings) {
        let running: HashSet<Slot> = self.regular_runs().map(|(slot, _)| slot).collect();
        let mut seen = HashSet::new();
        let mut open: Vec<Slot> = running
            .iter()
            .flat_map(|slot| self.graph.children(*slot))
            .collect();
        while let Some(slot) = open.pop() {
            if seen.insert(slot) {
                findings.ensure_of(self.graph, slot, !running.contains(&slot), || {
                    "runs below another that runs".into()
                });
                open.extend(self.graph.children(slot));
            }
        }
    }

    /// Checks that every running, uncancelled invocation has seen the present spec and refresh counters and, unless it
    /// runs again, its present parents.
    pub(super) fn check_runs_see_the_present(&self, findings: &mut Findings) {
        for (slot, run) in self.regular_runs() {
            let (resource, Some(seen)) = (&self.graph[slot], run.seen()) else {
                findings.ensure_of(self.graph, slot, false, || "runs and sees nothing".into());
                continue;
            };
            let row = resource.row();
            let fresh = seen.spec_version == row.spec_version && seen.refreshes == row.refreshes;
            findings.ensure_of(self.graph, slot, fresh, || {
                format!(
                    "runs on spec version {}, not {}",
                    seen.spec_version, row.spec_version
                )
            });
            // Refs of `exists` are no edges: a target that changes requests nothing, so the run need not have seen it.
            let same = |(link, (seen, now)): (
                &crate::graph::resource::BoundRef,
                (&crate::ObservedRef, crate::ObservedRef),
            )| { !link.is_edge() || seen.target == now.target };
            let views = seen.refs.iter().zip(self.graph.refs_now(slot));
            let steady = run.rerun().is_some() || resource.links().iter().zip(views).all(same);
            findings.ensure_of(self.graph, slot, steady, || {
                "sees a ref that has changed since".into()
            });
        }
    }

    /// Checks that abandoned invocations are counted, and that each resource that one keeps out names an invocation
    /// that has not returned.
    pub(super) fn check_abandoned_aside(&self, findings: &mut Findings) {
        let mut abandoned = HashMap::new();
        for (slot, resource) in self.graph.iter() {
            if let Some(run) = resource.abandoned() {
                abandoned.insert(run.invocation(), slot);
                findings.ensure_of(self.graph, slot, run.cancelled() != Cancelled::No, || {
                    format!("{:?} is abandoned and not cancelled", run.invocation())
                });
            }
        }
        findings.ensure(abandoned.len() == self.graph.abandoned(), || {
            format!("{} abandoned, not {}", self.graph.abandoned(), abandoned.len())
        });
        for (slot, resource) in self.graph.iter() {
            if let Some(Settled::Abandoned { invocation, .. }) = resource.settled() {
                findings.ensure_of(self.graph, slot, abandoned.contains_key(invocation), || {
                    format!("waits for {invocation:?}, which has returned")
                });
            }
        }
    }

    /// Checks that limits hold, and that no ready resource could start now.
    pub(super) fn check_concurrency_limits(&self, findings: &mut Findings) {
        findings.ensure(self.graph.active() <= self.scheduler.concurrency(), || {
            format!(
                "{} invocations, at most {}",
                self.graph.active(),
                self.scheduler.concurrency()
            )
        });
        self.check_concurrency(findings);
        if !self.serves || !self.graph.agenda().is_empty() {
            return;
        }
        let listed: HashSet<(Phase, Slot)> = self.scheduler.concurrency_limits().ready_entries().collect();
        for (slot, resource) in self.graph.iter() {
            let Decision::Start(phase) =
                Decider::new(self.graph, self.timers, self.journal.durable()).of(slot)
            else {
                continue;
            };
            let in_use = self.graph.user_of_its_names(slot).is_some();
            let ready = resource.ready() == Some(phase) && listed.contains(&(phase, slot));
            findings.ensure_of(self.graph, slot, ready || in_use, || {
                "may start and stands in no queue".into()
            });
            let first = self.graph.options(slot).is_some_and(|options| options.first);
            let free = self.graph.active() < self.scheduler.concurrency()
                && self.scheduler.concurrency_limits().has_room(resource.kind())
                && self.scheduler.phase_may_start(self.barrier, phase, first);
            findings.ensure_of(self.graph, slot, in_use || !free, || {
                "could start and has not".into()
            });
        }
    }

    /// Checks the counts of running invocations of kinds and pools.
    fn check_concurrency(&self, findings: &mut Findings) {
        let mut of_kind = HashMap::new();
        let mut in_pool = HashMap::new();
        for (_, resource) in self.graph.iter() {
            let pool = self.scheduler.concurrency_limits().pool_of(resource.kind());
            if resource.is_running() {
                *of_kind.entry(resource.kind()).or_insert(0) += 1;
            }
            let keeps = resource.abandoned().is_some() && pool.is_some_and(|pool| pool.is_exclusive());
            if let Some(pool) = pool.filter(|_| resource.is_running() || keeps) {
                *in_pool.entry(pool.name().clone()).or_insert(0) += 1;
            }
        }
        let limits = self.scheduler.concurrency_limits();
        for kind in self.graph.kinds().ids() {
            let (entry, runs) = (
                &self.graph.kinds()[kind],
                of_kind.get(&kind).copied().unwrap_or(0),
            );
            findings.ensure(limits.running(kind) == runs, || {
                let running = limits.running(kind);
                format!(
                    "{running} invocations of {} are counted, not {runs}",
                    entry.kind()
                )
            });
            let limit = entry.options().and_then(|options| options.concurrency);
            findings.ensure(limit.is_none_or(|limit| runs <= limit), || {
                format!("{runs} invocations of {}", entry.kind())
            });
        }
        for pool in self.scheduler.concurrency_limits().pools() {
            let runs = in_pool.get(pool.name()).copied().unwrap_or(0);
            findings.ensure(pool.running() == runs && runs <= pool.limit(), || {
                format!("{} in pool {}, counted {}", runs, pool.name(), pool.running())
            });
        }
    }
}
