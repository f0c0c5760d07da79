//! Most of a project that goes at once while a program goes on.

use crate::going::{Going, Round};
use crate::sandbox::Sandbox;

/// The models that go.
const GOING: usize = 7;

fn project() -> Sandbox {
    let sandbox = Sandbox::with(&[("watershed.yaml", ""), ("models/stays.sql", "SELECT 1 AS x\n")]);
    for place in 0..GOING {
        let text = format!("-- @materialize: true\nSELECT {place} AS x\n");
        sandbox.write(&format!("models/many/m{place}.sql"), &text);
    }
    sandbox
}

/// The events up to the end of the drop of all that goes.
fn dropped(start: &mut Going) -> Vec<serde_json::Value> {
    let mut events = Vec::new();
    loop {
        let Round { events: more } = start.round();
        events.extend(more);
        let drops = events.iter().filter(|event| event["work"] == "dropped").count();
        if drops == GOING {
            return events;
        }
    }
}

#[test]
fn what_removes_most_models_is_told_before_anything_goes() {
    let project = project();
    let mut start = Going::settled(&project);
    std::fs::remove_dir_all(project.path().join("models/many")).expect("the folder is there");
    let events = dropped(&mut start);
    let place = |is: &dyn Fn(&serde_json::Value) -> bool| events.iter().position(is).expect("it is told");
    let told = place(&|event| event["code"] == "many-removed");
    let first = place(&|event| event["work"] == "dropped");
    assert!(told < first, "{events:?}");
    assert_eq!(events[told]["severity"], "warning");
    // The files come back, and the tables with them.
    for place in 0..GOING {
        let text = format!("-- @materialize: true\nSELECT {place} AS x\n");
        project.write(&format!("models/many/m{place}.sql"), &text);
    }
    start.until_done(&["m0:restored", "m6:restored"]);
    start.stop();
}

#[test]
fn what_goes_and_comes_back_within_a_second_was_never_gone() {
    let project = project();
    let mut start = Going::settled(&project);
    let (here, away) = (
        project.path().join("models/many"),
        project.path().with_extension("away"),
    );
    std::fs::rename(&here, &away).expect("the folder can be moved");
    std::fs::rename(&away, &here).expect("and moved back");
    project.edit("models/stays.sql", "1", "2");
    let mut done = String::new();
    while !done.contains("stays:built") {
        done = format!("{done} {}", start.round().done());
    }
    assert!(!done.contains("dropped") && !done.contains("restored"), "{done}");
    start.stop();
}
