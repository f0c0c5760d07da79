//! Managed resources in files, end to end: commands and calls, parts, events, failures, deletes and kills.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use crate::going::Going;
use crate::sandbox::{Said, Sandbox};

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// `thing.sh NAME WORD`: a thing is a file that holds its stage. What is called is noted; `fail-NAME-WORD` holds the
/// message of a failure, `wait-NAME-WORD` an answer.
const THING: &str = r#"
name=$1; word=$2; mkdir -p things; cat > "call-$name-$word"
case $word in
observe) printf '{"stage": "%s"}' "$(cat "things/$name" 2>/dev/null || echo absent)"; exit;;
esac
echo "$name $word" >> called
if [ -e "fail-$name-$word" ]; then cat "fail-$name-$word" >&2; exit 1; fi
if [ -e "wait-$name-$word" ]; then cat "wait-$name-$word"; rm "wait-$name-$word"; exit; fi
if [ "$word" = gone ]; then rm -f "things/$name"; else echo "$word" > "things/$name"; fi
"#;

/// Defaults by which a file of a managed resource says little more than what is desired.
const MANIFEST: &str = r#"
managed:
  stages: [absent, prepared, active, gone]
  early: prepared
  desired: active
  observe: {command: [sh, thing.sh, "{{ .self.name }}", observe]}
  steps:
    prepared: {command: [sh, thing.sh, "{{ .self.name }}", prepared], attempts: 2, base: 10ms}
    active: {command: [sh, thing.sh, "{{ .self.name }}", active], attempts: 2, base: 10ms}
    gone: {command: [sh, thing.sh, "{{ .self.name }}", gone], attempts: 2, base: 10ms}
"#;

fn project(files: &[(&str, &str)]) -> Sandbox {
    let mut all = vec![("watershed.yaml", MANIFEST), ("thing.sh", THING)];
    all.extend_from_slice(files);
    Sandbox::with(&all)
}

#[track_caller]
fn ends(said: &Said, code: i32) {
    assert_eq!(said.code, Some(code), "{}\n{}", said.stdout, said.stderr);
}

#[track_caller]
fn says(said: &Said, words: &str) {
    let text = format!("{}{}", said.stdout, said.stderr);
    assert!(text.contains(words), "{words}: {text}");
}

/// The result of a resource, as `status` tells it.
fn result(project: &Sandbox, name: &str) -> Value {
    let document = project.call(&["status", name, "--json"]).json();
    document["resources"][0]["result"].clone()
}

fn stage(project: &Sandbox, name: &str) -> String {
    result(project, name)["stage"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// The steps that were taken, in their order.
fn called(project: &Sandbox) -> Vec<String> {
    let text = fs::read_to_string(project.path().join("called")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn event(project: &Sandbox, id: &str, kind: &str, subject: &str) -> Said {
    let event = json!({"specversion": "1.0", "id": id, "source": "/tests", "type": kind, "subject": subject});
    project.write("event.json", &event.to_string());
    project.call(&["event", "event.json"])
}

/// Waits until something holds that no event tells: processes of others come and go by themselves.
#[track_caller]
#[expect(
    clippy::disallowed_methods,
    reason = "what is waited for is outside of the program"
)]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The processes of the pods of the sample, those that live.
fn pods(project: &Sandbox) -> Vec<i32> {
    let Ok(folders) = fs::read_dir(project.path().join("pods")) else {
        return Vec::new();
    };
    let pid = |entry: fs::DirEntry| {
        fs::read_to_string(entry.path().join("pid"))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    let pids: Vec<i32> = folders.flatten().filter_map(pid).collect();
    pids.into_iter().filter(|pid| lives(*pid)).collect()
}

fn lives(pid: i32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let pid = Pid::from_raw(pid).expect("a pid");
    test_kill_process(pid).is_ok() && !state.contains(") Z ")
}

#[test]
fn a_confined_project_makes_no_calls_and_says_so_at_once() {
    let project = project(&[("managed/box.yaml", "type: managed\n")]);
    let started = Instant::now();
    let said = project.call(&["run", "--sandbox", "--json"]);
    ends(&said, 1);
    assert_eq!(
        said.json()["resources"][0]["error"]["code"],
        "outside-sandbox",
        "{}",
        said.stdout
    );
    assert!(
        said.json()["resources"][0]["error"]["retryable"] == false,
        "{}",
        said.stdout
    );
    assert!(started.elapsed() < LONG / 4, "it is not tried again");
    assert_eq!(called(&project), Vec::<String>::new());
}

#[test]
fn the_lab_comes_up_in_order_rests_and_goes_down_when_that_is_desired() {
    let lab = Sandbox::from_project("lab");
    lab.run(0);
    let monday = result(&lab, "monday");
    assert_eq!(monday["stage"], "active");
    let parts = monday["parts"].as_array().expect("it has parts");
    let told: Vec<_> = parts
        .iter()
        .map(|part| (&part["name"], &part["order"], &part["stage"]))
        .collect();
    let active = &json!("active");
    assert_eq!(
        told,
        [
            (&json!("shell"), &json!(1), active),
            (&json!("web"), &json!(2), active)
        ]
    );
    let processes = pods(&lab);
    assert_eq!(processes.len(), 3);
    // A window is nothing that a run waits for.
    let tuesday = result(&lab, "tuesday");
    assert_eq!(
        (&tuesday["stage"], &tuesday["window"]["phase"]),
        (&json!("absent"), &json!("before"))
    );
    let status = lab.call(&["status", "monday"]);
    for words in [
        "managed/monday  active",
        "PART   ORDER  STAGE   GOAL",
        "shell  1      active  active",
        "web    2      active",
    ] {
        assert!(status.stdout.contains(words), "{words}: {}", status.stdout);
    }

    assert_eq!(lab.done(0), "", "nothing is left to do");
    assert_eq!(pods(&lab), processes);

    let refused = lab.call(&["set", "monday.web", "desired=gone"]);
    ends(&refused, 2);
    assert!(
        refused.stderr.contains("is a part of") && refused.stderr.contains("monday"),
        "{}",
        refused.stderr
    );
    ends(&lab.call(&["set", "monday", "desired=finished"]), 2);
    ends(&lab.call(&["set", "monday", "wanted=gone"]), 2);
    let set = lab.call(&["set", "monday", "desired=gone"]);
    ends(&set, 0);
    assert!(
        set.stdout
            .contains("managed/monday  desired active -> gone (until its file changes it)"),
        "{}",
        set.stdout
    );
    lab.run(0);
    assert_eq!(stage(&lab, "monday"), "gone");
    assert_eq!(pods(&lab), [] as [i32; 0]);
    assert!(processes.iter().all(|pid| !lives(*pid)));
    // An edit of something else leaves it so; one of what is desired does not.
    lab.edit("sessions/monday.yaml", "image: desk", "image: table");
    lab.run(0);
    assert_eq!(stage(&lab, "monday"), "gone");
    lab.edit(
        "sessions/monday.yaml",
        "desired: active\nrefs",
        "desired: prepared\nrefs",
    );
    lab.run(0);
    assert_eq!(stage(&lab, "monday"), "prepared");

    lab.remove("sessions/monday.yaml");
    lab.run(0);
    assert!(fs::read_dir(lab.path().join("pods")).map_or(0, Iterator::count) == 0);
    ends(&lab.call(&["status", "monday"]), 2);
}

#[test]
fn while_it_goes_on_events_count_once_and_what_vanishes_comes_back() {
    let lab = Sandbox::from_project("lab");
    let going = Going::settled(&lab);
    until("the session is active", || stage(&lab, "monday") == "active");
    let pids = pods(&lab);
    assert_eq!(pids.len(), 3);
    rustix::process::kill_process(
        Pid::from_raw(pids[0]).expect("a pid"),
        rustix::process::Signal::KILL,
    )
    .expect("it lives");
    ends(
        &lab.call(&["reconcile", "monday", "monday.shell", "monday.web"]),
        0,
    );
    until("the pod is back", || pods(&lab).len() == 3);

    let told = event(&lab, "1", "lab.other", "monday");
    ends(&told, 0);
    assert_eq!(told.stdout, "no resource is meant by it\n");
    let told = event(&lab, "1", "lab.submitted", "monday");
    ends(&told, 0);
    assert!(told.stdout.starts_with("told  managed/monday"), "{}", told.stdout);
    until("the session is gone", || {
        stage(&lab, "monday") == "gone" && pods(&lab).is_empty()
    });
    assert_eq!(result(&lab, "monday")["event"], "/tests 1");
    // By hand, to what the file says all the time: the event's wish is over, and the same event counts no more.
    let set = lab.call(&["set", "monday", "desired=active"]);
    assert!(set.stdout.contains("desired gone -> active"), "{}", set.stdout);
    until("the session is back", || stage(&lab, "monday") == "active");
    let again = event(&lab, "1", "lab.submitted", "monday");
    ends(&again, 0);
    says(&again, "it had come before");
    ends(&lab.call(&["reconcile", "monday"]), 0);
    assert_eq!(stage(&lab, "monday"), "active");

    ends(&lab.call(&["set", "monday", "desired=gone"]), 0);
    until("the session is gone", || pods(&lab).is_empty());
    going.stop();
}

#[test]
fn an_event_is_taken_in_while_nothing_runs_and_a_bad_one_is_refused() {
    let project = project(&[(
        "a.yaml",
        "type: managed\non_events: [{type: \"done.*\", desired: prepared}]\n",
    )]);
    project.run(0);
    project.write(
        "event.json",
        "{\"specversion\": \"1.0\", \"id\": \"1\", \"type\": \"done.x\"}",
    );
    let refused = project.call(&["event", "event.json"]);
    ends(&refused, 2);
    assert!(refused.stderr.contains("\"source\""), "{}", refused.stderr);
    ends(&project.call(&["event", "nothing.json"]), 2);
    let told = event(&project, "1", "done.x", "a");
    ends(&told, 0);
    assert!(
        told.stdout.contains("it takes effect when the project runs"),
        "{}",
        told.stdout
    );
    assert_eq!(stage(&project, "a"), "active");
    project.run(0);
    assert_eq!(stage(&project, "a"), "prepared");
}

#[test]
fn a_step_that_waits_is_completed_by_its_event() {
    let project = project(&[("a.yaml", "type: managed\n")]);
    project.write(
        "wait-a-active",
        r#"{"await": {"type": "engine.result", "until": "2099-01-01T00:00:00Z"}}"#,
    );
    let going = Going::start(&project);
    until("it waits", || {
        result(&project, "a")["step"]["waits_for_event"] == "engine.result"
    });
    project.write("things/a", "active");
    let told = event(&project, "7", "engine.result", "a");
    assert!(told.stdout.contains("managed/a"), "{}", told.stdout);
    until("it goes on", || stage(&project, "a") == "active");
    assert_eq!(called(&project), ["a prepared", "a active"]);
    drop(going);
}

#[test]
fn a_failing_step_says_why_and_is_tried_again_by_hand_alone() {
    let project = project(&[("a.yaml", "type: managed\n")]);
    project.write("fail-a-active", "no such image");
    let said = project.call(&["run"]);
    ends(&said, 1);
    says(&said, "active: exit 1: no such image");
    assert_eq!(called(&project), ["a prepared", "a active", "a active"]);
    let failure = &result(&project, "a")["failure"];
    assert_eq!(failure["code"], "step-failed");
    let why = project.call(&["explain", "a"]);
    assert!(why.stdout.contains("no such image"), "{}", why.stdout);
    ends(&project.call(&["run"]), 1);
    assert_eq!(called(&project).len(), 3, "a failure stays");
    project.remove("fail-a-active");
    ends(&project.call(&["retry", "a"]), 0);
    assert_eq!(stage(&project, "a"), "active");
    ends(&project.call(&["refresh", "a"]), 0);
    let steps = called(&project);
    assert_eq!(
        steps.iter().filter(|step| *step == "a active").count(),
        4,
        "{steps:?}"
    );
    let history = project.call(&["history", "a"]);
    assert!(
        history.stdout.contains("failed") && history.stdout.contains("built"),
        "{}",
        history.stdout
    );
}

/// An owner of two parts, the second of which waits for the first.
fn owner(meaning: &str) -> Sandbox {
    let owner = format!(
        "type: managed\non_part_failure: {meaning}\nparts:\n  - {{name: x, order: 1}}\n  - {{name: y, order: 1}}\n"
    );
    project(&[("a.yaml", &owner)])
}

#[test]
fn a_failed_part_takes_all_down_where_the_owner_aborts() {
    let project = owner("abort");
    project.write("fail-a.y-active", "broken");
    ends(&project.call(&["run"]), 1);
    let owner = result(&project, "a");
    assert_eq!(owner["failure"]["code"], "part-failed");
    let message = owner["failure"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("a.y") && message.contains("broken"), "{message}");
    let why = project.call(&["explain", "a"]);
    assert!(why.stdout.contains("a.y"), "{}", why.stdout);
    assert!(
        !project.path().join("things/a.x").exists(),
        "the other part is gone too"
    );
    project.remove("fail-a.y-active");
    ends(&project.call(&["retry", "a", "a.y"]), 0);
    assert_eq!(stage(&project, "a"), "active");
}

#[test]
fn a_failed_part_leaves_the_others_alone_where_the_owner_continues() {
    let project = owner("continue");
    project.write("fail-a.y-active", "broken");
    ends(&project.call(&["run"]), 1);
    let parts = result(&project, "a")["parts"].clone();
    assert_eq!(
        (&parts[0]["stage"], &parts[1]["stage"]),
        (&json!("active"), &json!("prepared"))
    );
    assert_eq!(parts[1]["failure"]["code"], "step-failed");
    assert_eq!(result(&project, "a")["degraded_by"], json!(["y"]));
    says(&project.call(&["status", "a"]), "degraded by y");
    says(
        &project.call(&["explain", "a"]),
        "its part \"a.y\" has failed: active: exit 1: broken",
    );
    project.remove("fail-a.y-active");
    ends(&project.call(&["retry", "a.y"]), 0);
    assert_eq!(stage(&project, "a.y"), "active");
    project.run(0);
}

/// A part that needs what its owner and the other part do not.
#[test]
fn a_part_waits_for_what_it_needs_and_the_others_go_on() {
    let owner =
        "type: managed\non_part_failure: continue\nparts:\n  - {name: x}\n  - {name: y, refs: [disk]}\n";
    let project = project(&[("a.yaml", owner), ("disk.yaml", "type: managed\n")]);
    project.write("fail-disk-active", "no disk");
    ends(&project.call(&["run"]), 1);
    assert_eq!(stage(&project, "a.x"), "active");
    assert_ne!(stage(&project, "a.y"), "active");
    project.remove("fail-disk-active");
    ends(&project.call(&["retry", "disk"]), 0);
    project.run(0);
    assert_eq!(stage(&project, "a.y"), "active");
    assert_eq!(stage(&project, "a"), "active");
}

/// M17: what belongs to nothing is told of, once, and left alone.
#[test]
fn what_is_found_outside_and_belongs_to_no_resource_is_told_and_left_alone() {
    let manifest = format!("{MANIFEST}managers: {{at_once: 3, discover: {{command: [sh, list.sh]}}}}\n");
    let project = project(&[("a.yaml", "type: managed\n")]);
    project.write("watershed.yaml", &manifest);
    project.run(0);
    let shown = project.call(&["show", "a", "--json"]);
    let called: Value =
        serde_json::from_str(&fs::read_to_string(project.path().join("call-a-observe")).unwrap_or_default())
            .unwrap_or_default();
    let uid = called["resource"]["uid"].as_str().unwrap_or_default().to_owned();
    assert!(!uid.is_empty(), "{}", shown.stdout);
    let list = format!(r#"echo '[{{"name": "mine", "uid": "{uid}"}}, {{"name": "stray"}}]'"#);
    project.write("list.sh", &list);
    let mut going = Command::new(env!("CARGO_BIN_EXE_watershed-under-test"))
        .arg("start")
        .current_dir(project.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started");
    let said = BufReader::new(going.stderr.take().expect("it has an error output"));
    let told = said
        .lines()
        .map_while(Result::ok)
        .find(|line| line.contains("belongs to"));
    let told = told.unwrap_or_default();
    assert!(told.contains("`stray` belongs to no managed resource"), "{told}");
    going.kill().expect("it runs");
    going.wait().expect("it ends");
}

#[test]
fn a_program_that_was_killed_half_way_goes_on_where_it_was() {
    let project = project(&[(
        "a.yaml",
        "type: managed
steps:
  prepared: {command: [sh, thing.sh, a, prepared]}
  active:
    - {name: one, command: [sh, -c, \"echo a one >> called\"]}
    - {name: two, command: [sh, -c, \"echo a two >> called; test -e go || sleep 100; echo active > things/a\"]}
  gone: {command: [sh, thing.sh, a, gone]}
",
    )]);
    let going = Going::start(&project);
    until("the second action runs", || {
        called(&project).contains(&"a two".to_owned())
    });
    going.kill();
    project.write("go", "");
    project.run(0);
    assert_eq!(stage(&project, "a"), "active");
    assert_eq!(
        called(&project),
        ["a prepared", "a one", "a two", "a two"],
        "what is finished is not repeated"
    );
    assert_eq!(project.done(0), "");
}

#[test]
fn a_command_sees_no_secret_but_those_that_it_is_given_and_nobody_else_sees_them() {
    let project = project(&[
        (".env", "TOKEN=correcthorsebattery\n"),
        (
            "a.yaml",
            "type: managed
steps:
  prepared: {command: [sh, -c, \"echo $KEY > seen; echo failed with $KEY >&2; exit 1\"], environment: {KEY: \"{{ .env.TOKEN }}\"}, attempts: 1}
  active: {command: [sh, thing.sh, a, active]}
  gone: {command: [sh, thing.sh, a, gone]}
",
        ),
    ]);
    let said = project.call(&["run"]);
    ends(&said, 1);
    let seen = fs::read_to_string(project.path().join("seen")).expect("the command ran");
    assert_eq!(seen, "correcthorsebattery\n");
    let shown = project.call(&["show", "a", "--json"]);
    for text in [&said.stdout, &said.stderr, &shown.stdout] {
        assert!(!text.contains("correcthorse"), "{text}");
    }
    assert!(shown.stdout.contains(".env.TOKEN"), "{}", shown.stdout);
}

#[test]
fn a_resource_whose_file_comes_back_while_it_is_torn_down_starts_over() {
    let file = "type: managed\n";
    let project = project(&[("a.yaml", file)]);
    project.run(0);
    let first = fs::read_to_string(project.path().join("call-a-active")).expect("it was called");
    project.remove("a.yaml");
    project.run(0);
    assert!(!project.path().join("things/a").exists());
    project.write("a.yaml", file);
    project.run(0);
    assert_eq!(stage(&project, "a"), "active");
    let second = fs::read_to_string(project.path().join("call-a-active")).expect("it was called");
    let uid =
        |call: &str| serde_json::from_str::<Value>(call).expect("a call is JSON")["resource"]["uid"].clone();
    assert_ne!(uid(&first), uid(&second), "it is another resource");
}

#[test]
fn what_can_not_be_taken_down_is_told_until_it_is() {
    let project = project(&[("a.yaml", "type: managed\n")]);
    project.run(0);
    project.write("fail-a-gone", "it is stuck");
    project.remove("a.yaml");
    let said = project.call(&["run"]);
    ends(&said, 1);
    says(&said, "gone: exit 1: it is stuck");
    let status = project.call(&["status"]);
    assert!(status.stdout.contains("it is stuck"), "{}", status.stdout);
    project.remove("fail-a-gone");
    ends(&project.call(&["retry", "managed_teardown/a"]), 0);
    assert!(!project.path().join("things/a").exists());
    assert!(project.call(&["status"]).stdout.contains("has no resources"));
}

#[test]
fn a_window_says_when_it_is_there_and_a_run_waits_for_none() {
    let booked = |start: &str, end: &str| format!("type: managed\nwindow: {{start: {start}, end: {end}}}\n");
    let project = project(&[
        ("past.yaml", &booked("2020-01-01T09:00", "2020-01-01T11:00")),
        ("now.yaml", &booked("2020-01-01T09:00", "2099-01-01T11:00")),
        ("later.yaml", &booked("2099-01-01T09:00", "2099-01-01T11:00")),
    ]);
    project.run(0);
    assert_eq!(called(&project), ["now prepared", "now active"]);
    let seen = ["past", "now", "later"].map(|name| {
        let result = result(&project, name);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!("{} {}", text(&result["stage"]), text(&result["window"]["phase"]))
    });
    assert_eq!(seen, ["gone expired", "active active", "absent before"]);
    let shown = project.call(&["show", "past", "--json"]);
    let change = &shown.json()["state"]["transitions"][0];
    assert_eq!(change["reason"], "missed");
    assert_ne!(change["run"], "");
    for command in ["status", "show", "history"] {
        says(&project.call(&[command, "past"]), "missed");
    }
    says(&project.call(&["show", "now"]), "prepared -> active");
    let status = project.call(&["status", "now"]);
    assert!(
        status
            .stdout
            .contains("managed/now  active   window active, ends in"),
        "{}",
        status.stdout
    );
    assert_eq!(project.done(0), "", "nothing is left to do");

    // What is booked may end later, and not earlier: then it stays as it was accepted.
    project.edit("now.yaml", "2099-01-01T11:00", "2098-01-01T11:00");
    let said = project.call(&["run"]);
    ends(&said, 1);
    says(&said, "may only be moved to a later time");
    project.edit("now.yaml", "2098-01-01T11:00", "2099-06-01T11:00");
    project.run(0);
    assert_eq!(called(&project).len(), 2);
}
