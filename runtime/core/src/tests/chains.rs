//! Tests of causal chains, which say why an invocation runs.

use std::time::Duration;

use crate::testing::{Bench, target};
use crate::{
    CHAIN_MAX, Call, Edit, Error, KindOptions, Limits, OnOwned, Reason, RetryPolicy, Returned, Update,
};

fn say(name: &str, reason: &Reason) -> String {
    let key = crate::Key::new("k", name);
    let told = reason.chain(&key).into_iter().map(|link| {
        let cut = match link.omitted {
            0 => String::new(),
            omitted => format!("({omitted}) "),
        };
        let origin = link
            .reason
            .origin
            .as_deref()
            .map(|origin| format!(" in {origin}"));
        format!(
            "{cut}{} {}{}",
            link.key.name,
            link.reason.trigger,
            origin.unwrap_or_default()
        )
    });
    told.collect::<Vec<_>>().join(", ")
}

fn told(bench: &Bench, name: &str) -> String {
    say(name, &bench.running(name).reason)
}

fn spec_of(name: &str, text: &str, file: &str) -> Edit {
    let spec = Some((text.as_bytes().into(), 1));
    let update = Update {
        spec,
        ..Update::default()
    };
    Edit::update(target_key(name), update).with_origin(file)
}

fn target_key(name: &str) -> crate::Key {
    crate::Key::new("k", name)
}

#[test]
fn a_child_runs_because_of_the_file_behind_the_edit_of_its_parent() {
    let mut bench = Bench::new();
    bench.settled(&[("parser", &[]), ("x", &[]), ("y", &["x"]), ("z", &["y"])]);
    bench.input(crate::Input::Call {
        id: crate::CallId(900),
        by: None,
        call: Call::Nudge(target("parser")),
    });
    let by = bench.running("parser").invocation;
    let edit = Call::Apply(spec_of("x", "new", "models/x.sql").into());
    bench.call_by(Some(by), edit);
    bench.finish("parser");
    assert_eq!(told(&bench, "x"), "parser nudge, x edited in models/x.sql");
    bench.finish("x");
    assert_eq!(
        told(&bench, "y"),
        "parser nudge, x edited in models/x.sql, y parent"
    );
    bench.finish("y");
    let z = "parser nudge, x edited in models/x.sql, y parent, z parent";
    assert_eq!(told(&bench, "z"), z);
    bench.finish("z");
    let last = bench.row("z").last_run.clone().unwrap();
    assert_eq!(say("z", &last.reason), z);
}

#[test]
fn what_refers_to_a_new_resource_names_the_file_that_declared_it() {
    let mut bench = Bench::new();
    bench.settled(&[("y", &["x"])]);
    let new = bench.new_resource("x", &[]);
    bench.apply(vec![Edit::create(new).with_origin("models/x.sql")]);
    bench.finish("x");
    assert_eq!(told(&bench, "y"), "x created in models/x.sql, y ref_changed");
}

#[test]
fn a_request_and_an_edit_in_the_name_of_a_caller_name_the_caller() {
    let by = |call: Call| Call::By {
        origin: "ada over HTTP".into(),
        call: Box::new(call),
    };
    let mut bench = Bench::new();
    bench.settled(&[("x", &[]), ("y", &["x"])]);
    bench.call(by(Call::Reconcile(target("x"))));
    assert_eq!(told(&bench, "x"), "x requested in ada over HTTP");
    bench.finish("x");
    assert_eq!(told(&bench, "y"), "x requested in ada over HTTP, y parent");
    bench.finish("y");
    bench.call(by(Call::Apply(vec![spec_of("x", "2", "models/x.sql")].into())));
    assert_eq!(told(&bench, "x"), "x edited in models/x.sql");
    bench.finish("x");
    bench.finish("y");
    bench.call(by(Call::Apply(vec![Edit::delete(target_key("y"))].into())));
    assert_eq!(told(&bench, "y"), "y deleted in ada over HTTP");
}

#[test]
fn a_deleted_resource_and_its_former_children_name_the_edit() {
    let mut bench = Bench::new();
    bench.settled(&[("x", &[]), ("y", &["x"])]);
    bench.apply(vec![Edit::delete(target_key("x")).with_origin("models/x.sql")]);
    assert_eq!(told(&bench, "x"), "x deleted in models/x.sql");
    bench.finish("x");
    assert_eq!(told(&bench, "y"), "y ref_changed");
}

#[test]
fn a_rename_and_the_run_after_it_name_the_edit() {
    let mut bench = Bench::new();
    bench.settled(&[("x", &[])]);
    bench.apply(vec![
        Edit::rename(target_key("x"), "w").with_origin("models/w.sql"),
    ]);
    assert_eq!(told(&bench, "w"), "w renamed in models/w.sql");
    bench.finish("w");
    assert_eq!(told(&bench, "w"), "w renamed in models/w.sql");
}

#[test]
fn retries_say_what_the_failed_run_was_for_and_owners_which_run_failed() {
    let retry = RetryPolicy::Backoff {
        base: Duration::from_secs(1),
        cap: Duration::from_secs(1),
        attempts: 3,
        reset_after: Duration::ZERO,
    };
    let options = KindOptions {
        retry,
        on_owned: OnOwned::Exhausted,
        ..KindOptions::new("k")
    };
    let mut bench = Bench::with(vec![options], Limits::default());
    bench.settled(&[("owner", &[])]);
    let mut owned = bench.new_resource("owned", &[]);
    owned.owner = Some(bench.row("owner").uid);
    bench.apply(vec![Edit::create(owned).with_origin("a.yaml")]);
    let flaky = || Returned::Failed(Error::transient("flaky", "it did not work this time"));
    for _ in 0..2 {
        bench.returns("owned", flaky());
        bench.pass(Duration::from_secs(1));
        assert_eq!(told(&bench, "owned"), "owned created in a.yaml, owned retry");
    }
    bench.returns("owned", flaky());
    assert_eq!(
        told(&bench, "owner"),
        "owned created in a.yaml, owned retry, owner recovered"
    );
}

#[test]
fn a_request_from_inside_says_why_the_one_that_asks_runs() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &[])]);
    bench.edit_spec("a", "new");
    let by = bench.running("a").invocation;
    bench.call_by(Some(by), Call::Reconcile(target("b")));
    assert_eq!(told(&bench, "b"), "a edited, b requested");
}

#[test]
fn a_chain_of_any_length_is_told_in_a_few_links() {
    let names: Vec<String> = (0..60).map(|index| format!("n{index:02}")).collect();
    let parents: Vec<Vec<&str>> = (0..60)
        .map(|index: usize| {
            index
                .checked_sub(1)
                .map(|above| names[above].as_str())
                .into_iter()
                .collect()
        })
        .collect();
    let chain: Vec<(&str, &[&str])> = names
        .iter()
        .zip(&parents)
        .map(|(name, parents)| (name.as_str(), parents.as_slice()))
        .collect();
    let mut bench = Bench::new();
    bench.settled(&chain);
    bench.apply(vec![spec_of("n00", "new", "models/n00.sql")]);
    for (index, name) in names.iter().enumerate() {
        let reason = bench.running(name).reason;
        let key = crate::Key::new("k", name.as_str());
        let links = reason.chain(&key);
        let omitted: u32 = links.iter().map(|link| link.omitted).sum();
        assert!(links.len() <= CHAIN_MAX);
        assert_eq!(links.len() + omitted as usize, index + 1);
        assert_eq!(links[0].reason.origin.as_deref(), Some("models/n00.sql"));
        bench.finish(name);
    }
}

#[test]
fn what_a_start_asked_for_is_told_of_an_edit_above_it() {
    let mut bench = Bench::new();
    bench.settled(&[("parser", &[]), ("x", &["parser"]), ("y", &["x"]), ("z", &["y"])]);
    bench.settled(&[("runs", &[]), ("below", &["runs"]), ("other", &["parser"])]);
    bench.restart();
    bench.apply(vec![
        spec_of("x", "new", "models/x.sql"),
        spec_of("runs", "new", "models/runs.sql"),
    ]);
    bench.finish("runs");
    bench.finish("runs");
    assert_eq!(
        told(&bench, "below"),
        "runs edited in models/runs.sql, below parent"
    );
    assert_eq!(told(&bench, "parser"), "parser start");
    bench.finish("parser");
    assert_eq!(told(&bench, "other"), "other start");
    bench.finish("x");
    bench.finish("y");
    assert_eq!(told(&bench, "z"), "x edited in models/x.sql, y parent, z parent");
}

#[test]
fn an_edit_made_by_what_the_start_asked_for_is_told_below_as_well() {
    let mut bench = Bench::new();
    bench.settled(&[("parser", &[]), ("x", &["parser"]), ("y", &["x"])]);
    bench.restart();
    let by = bench.running("parser").invocation;
    let edit = Call::Apply(spec_of("x", "new", "models/x.sql").into());
    bench.call_by(Some(by), edit);
    bench.finish("parser");
    bench.finish("x");
    assert_eq!(
        told(&bench, "y"),
        "parser start, x edited in models/x.sql, y parent"
    );
}

#[test]
fn what_is_on_a_cycle_is_told_once() {
    let mut bench = Bench::new();
    bench.settled(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
    bench.edit_refs("b", &["a", "c"]);
    bench.restart();
    bench.reconcile("a");
    bench.edit_spec("c", "new");
    bench.finish_all();
    assert!(bench.is_idle());
}
