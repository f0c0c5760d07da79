//! Handlers: a function for each operation of the table in `watershed-api`.
//!
//! A handler gets the place, the caller, the input and the sender of replies; it returns the final answer or a
//! problem. Operations that differ in a word share a file.

mod alert_test;
mod backup;
mod call;
mod care;
mod check;
mod compile;
mod engine;
mod explain;
pub(crate) mod export;
mod graph;
mod history;
mod instances;
pub(crate) mod logs;
mod managed;
mod metrics;
pub(crate) mod metrics_answer;
mod operate;
mod output;
pub(crate) mod partitions;
mod plan;
pub(crate) mod query;
mod run;
mod services;
mod show;
pub(crate) mod stats;
mod status;
mod test;
mod trash;
mod validate;

pub(crate) use self::logs::logs;
pub(crate) use alert_test::alert_test;
pub(crate) use backup::{backup, restore};
pub(crate) use call::{call, call_api, prepare_api, report};
pub(crate) use care::{doctor, gc, repair};
pub(crate) use check::check;
pub(crate) use compile::compile;
pub(crate) use engine::engine;
pub(crate) use explain::explain;
pub(crate) use export::{export, problem_for as export_problem};
pub(crate) use graph::graph;
pub(crate) use history::history;
pub(crate) use instances::instances;
pub(crate) use managed::{event, set, snooze};
pub(crate) use metrics::{front, metrics, metrics_bounds};
pub(crate) use operate::{cancel, pause, resume};
pub(crate) use partitions::partitions;
pub(crate) use plan::plan;
pub(crate) use query::query;
pub(crate) use run::{approve, reconcile, refresh, retry, run};
pub(crate) use services::{restart, rollback, scale};
pub(crate) use show::show;
pub(crate) use stats::{prometheus, stats};
pub(crate) use status::status;
pub(crate) use test::test;
pub(crate) use trash::{trash_empty, trash_list, trash_restore};
pub(crate) use validate::validate;
