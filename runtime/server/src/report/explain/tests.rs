//! Tests of explanations, on made-up catalogs.

use super::super::fixture::{blocked, entry, failed, model};
use super::*;

fn project() -> Project {
    Project {
        name: "p".into(),
        root: "/p".into(),
        environment: "dev".into(),
    }
}

fn causes(entries: &[Entry], name: Option<&str>) -> Vec<RootCause> {
    let project = project();
    let inquiry = Inquiry::new(&project, entries, Life::AtRest);
    let about = name.map(|name| {
        let found = entries.iter().find(|entry| entry.row.name.as_str() == name);
        found.expect("it is there")
    });
    inquiry.answer(about, &Explanations::default()).causes
}

/// A failed root with so many below it, in a chain.
fn chain(length: usize) -> Vec<Entry> {
    let mut entries = vec![entry(failed(model("root", &[])))];
    let mut above = "root".to_owned();
    for number in 0..length {
        let name = format!("m{number:03}");
        entries.push(entry(blocked(model(&name, &[&above]), &above)));
        above = name;
    }
    entries
}

#[test]
fn one_failure_above_500_is_one_cause() {
    let entries = chain(500);
    for name in [None, Some("m000"), Some("m499"), Some("root")] {
        let causes = causes(&entries, name);
        assert_eq!(causes.len(), 1, "{name:?}");
        assert_eq!(
            (causes[0].code, causes[0].keeps_back),
            (Blocker::Failed, 500),
            "{name:?}"
        );
        assert_eq!(causes[0].resource.name, "root");
        assert_eq!(
            causes[0].error.as_ref().map(|error| error.code.as_str()),
            Some("unknown-column")
        );
    }
}

#[test]
fn what_keeps_most_back_is_told_first() {
    let mut entries = chain(3);
    entries.push(entry(failed(model("alone", &[]))));
    let told = causes(&entries, None);
    let names: Vec<&str> = told.iter().map(|cause| cause.resource.name.as_str()).collect();
    assert_eq!(names, ["root", "alone"]);
}

#[test]
fn what_is_not_declared_is_a_cause_of_its_own() {
    let entries = [entry(blocked(model("a", &["gone"]), "gone"))];
    for name in [None, Some("a")] {
        let told = causes(&entries, name);
        assert_eq!(told.len(), 1);
        assert_eq!(
            (told[0].code, told[0].resource.name.as_str()),
            (Blocker::MissingRef, "gone")
        );
    }
}

#[test]
fn a_paused_resource_says_how_it_goes_on_also_when_it_has_failed() {
    let row = watershed_core::Row {
        paused: true,
        ..failed(model("a", &[]))
    };
    let told = causes(&[entry(row)], Some("a"));
    assert_eq!(told[0].code, Blocker::Paused);
    assert_eq!(
        told[0].hint.as_deref(),
        Some("`watershed resume model/a` lets it go on")
    );
    assert!(told[0].error.is_some());
}

#[test]
fn what_is_well_has_one_cause_and_a_project_that_is_well_has_none() {
    let entries = [entry(model("a", &[]))];
    assert_eq!(causes(&entries, Some("a"))[0].code, Blocker::Idle);
    assert_eq!(causes(&entries, None), []);
}

#[test]
fn a_controller_that_is_full_is_told_with_what_waits_for_it() {
    let mut waiting = entry(model("a", &["root"]));
    waiting.status.stage = Stage::Pending;
    let subject = |name: &str| Subject {
        uid: model(name, &[]).uid,
        key: Key::new("model", name),
    };
    let said = Explanation {
        subject: subject("a"),
        stage: Stage::Pending,
        reason: None,
        waits_for: Some(subject("root")),
        because: watershed_core::Blocker::ControllerFull(2),
        blocked_by: Vec::new(),
        next_reconcile: None,
        attempts: 0,
        retry: watershed_core::RetryPolicy::Never,
    };
    let entries = [waiting];
    let project = project();
    let inquiry = Inquiry::new(&project, &entries, Life::Live);
    let uid = entries[0].row.uid;
    assert_eq!(inquiry.to_ask(Some(&entries[0])), [uid]);
    let told = inquiry.answer(Some(&entries[0]), &Explanations::from([(uid, said)]));
    assert_eq!(
        (told.causes[0].code, told.causes[0].resource.name.as_str()),
        (Blocker::ControllerFull, "root")
    );
}
