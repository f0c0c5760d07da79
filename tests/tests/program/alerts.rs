//! Alerts end to end: evaluated, told once to a file and a webhook, and not forgotten when the program dies.

use std::fs;

use jiff::Timestamp;
use serde_json::Value;

use crate::receiver::Receiver;
use crate::sandbox::Sandbox;

/// A secret that is in no output and no file but `.env`.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Commits of a run after which the program dies, counted from each start.
const VISITS: u32 = 6;

const ALERT: &str = "type: alert
display_name: Late departures
refresh: {ref_update: true}
data: {sql: 'SELECT flight, delay FROM late ORDER BY 1'}
on_recover: true
notify: {webhook: ops, file: archive}
";

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn project(receiver: &Receiver) -> Sandbox {
    let hook = format!(
        "type: connector\ndriver: webhook\nurl: {}\nsecret: '{{{{ .env.HOOK_SECRET }}}}'\n",
        receiver.url()
    );
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (".env", &format!("HOOK_SECRET={SECRET}\n")),
        ("connectors/ops.yaml", &hook),
        (
            "connectors/archive.yaml",
            "type: connector\ndriver: file\npath: told\n",
        ),
        ("alerts/late.yaml", ALERT),
    ]);
    fs::create_dir(project.path().join("told")).expect("a folder can be made");
    late(&project, &[("UA1", 70)]);
    project
}

/// Writes the model that the alert reads.
pub(crate) fn late(project: &Sandbox, rows: &[(&str, u32)]) {
    let values: Vec<String> = rows
        .iter()
        .map(|(flight, delay)| format!("SELECT '{flight}' AS flight, {delay} AS delay"))
        .collect();
    let none = "SELECT '' AS flight, 0 AS delay WHERE false".to_owned();
    let sql = match values.is_empty() {
        true => none,
        false => values.join(" UNION ALL "),
    };
    project.write("models/late.sql", &format!("-- @materialize: true\n{sql}\n"));
}

/// The titles of the messages in the folder of the connector `archive`.
pub(crate) fn archived(project: &Sandbox) -> Vec<String> {
    let folder = fs::read_dir(project.path().join("told")).expect("the folder is there");
    let mut titles: Vec<(Timestamp, String)> = folder
        .map(|entry| {
            let path = entry.expect("it can be listed").path();
            let text = fs::read(path).expect("it can be read");
            let message: Value = serde_json::from_slice(&text).expect("it is JSON");
            // As text, a moment without fractions of a second would come behind those with some.
            let moment = self::text(&message["moment"]).parse().expect("it is a time");
            (moment, self::text(&message["title"]))
        })
        .collect();
    titles.sort();
    titles.into_iter().map(|(_, title)| title).collect()
}

fn verdict(project: &Sandbox) -> Value {
    let document = project.call(&["status", "alert/late", "--json"]);
    let document = document.json();
    let resources = document["resources"].as_array().cloned().unwrap_or_default();
    let alert = resources.into_iter().find(|one| one["kind"] == "alert");
    alert.expect("the alert is listed")["result"].clone()
}

/// N1, N3, N5, N6.
#[test]
fn people_are_told_once_and_again_only_after_a_recovery() {
    let receiver = Receiver::start();
    let project = project(&receiver);
    let failed = "Late departures: 1 row".to_owned();
    project.run(0);
    assert_eq!(receiver.titles(), std::slice::from_ref(&failed));
    assert_eq!(archived(&project), std::slice::from_ref(&failed));
    assert_eq!(verdict(&project)["verdict"], "fail");
    project.run(0);
    late(&project, &[("UA1", 70), ("UA2", 80)]);
    project.run(0);
    assert_eq!(receiver.titles().len(), 1, "the same verdict is not told again");
    late(&project, &[]);
    project.run(0);
    late(&project, &[("UA3", 90)]);
    project.run(0);
    let recovered = "Late departures: has recovered".to_owned();
    let story = [failed.clone(), recovered, failed];
    assert_eq!(receiver.titles(), story);
    assert_eq!(archived(&project), story);
    let said = project.call(&["show", "alert/late", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(verdict(&project)["history"].as_array().map(Vec::len), Some(4));
}

/// N6, N7: the program dies after each step, and every message arrives, by its key never twice in the folder.
#[test]
fn a_message_that_is_due_arrives_whenever_the_program_dies() {
    let receiver = Receiver::start();
    let project = project(&receiver);
    let mut deaths = 0;
    for point in watershed_controller::store::CRASH_POINTS {
        for visits in 0..VISITS {
            deaths += u32::from(project.dies_at(point, visits));
        }
    }
    assert!(deaths > 0, "the points are passed");
    project.run(0);
    assert_eq!(archived(&project), ["Late departures: 1 row"]);
    let got = receiver.got();
    let mut keys: Vec<&String> = got.iter().map(|(key, _)| key).collect();
    assert!(!keys.is_empty());
    keys.dedup();
    assert_eq!(keys.len(), 1, "each repetition has the key of the first: {got:?}");
}

/// N8.
#[test]
fn what_was_refused_for_good_is_sent_by_retry() {
    let receiver = Receiver::start();
    receiver.answer("410 Gone");
    let project = project(&receiver);
    project.run(0);
    assert!(receiver.titles().is_empty());
    assert_eq!(
        archived(&project).len(),
        1,
        "one receiver keeps no other from being told"
    );
    let status = project.call(&["status", "--all", "--json"]).json();
    let resources = status["resources"]
        .as_array()
        .expect("resources are listed")
        .iter();
    let dead: Vec<&Value> = resources
        .filter(|one| one["kind"] == "notification" && one["health"] == "failed")
        .collect();
    let [dead] = dead.as_slice() else {
        panic!("one message is dead: {status}");
    };
    assert_eq!(dead["error"]["code"], "delivery-failed");
    assert!(
        dead["next_run_at"].is_null(),
        "nothing sends it again by itself: {dead}"
    );
    let glance = || project.call(&["status"]).stdout;
    assert!(glance().contains("fail, 1 message not delivered"), "{}", glance());
    for command in [&["status", "--all"][..], &["run", "--all"]] {
        let said = project.call(command);
        assert_eq!(said.code, Some(0), "no command fails for it: {}", said.stdout);
    }
    receiver.answer("204 No Content");
    let name = format!("notification/{}", text(&dead["name"]));
    let said = project.call(&["retry", &name]);
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    assert_eq!(receiver.titles(), ["Late departures: 1 row"]);
    assert!(glance().contains("fail, told "), "{}", glance());
}

/// Events and counters tell of evaluations, and of messages that arrived or were given up.
#[test]
fn events_and_stats_tell_of_evaluations_and_messages() {
    let receiver = Receiver::start();
    receiver.answer("410 Gone");
    let project = project(&receiver);
    let said = project.call(&["run", "--format", "jsonl"]);
    assert!(!said.stdout.contains("/hook"), "addresses are secrets");
    let events: Vec<Value> = said
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is an event"))
        .collect();
    let of = |kind: &str| -> Vec<&Value> { events.iter().filter(|event| event["event"] == kind).collect() };
    let [evaluated] = of("alert_evaluated")[..] else {
        panic!("it was evaluated once: {}", said.stdout);
    };
    assert_eq!(evaluated["resource"]["name"], "late");
    assert_eq!(evaluated["verdict"], "fail");
    assert_eq!(evaluated["told"].as_array().map(Vec::len), Some(2));
    let [delivered] = of("notification_delivered")[..] else {
        panic!("one message arrived: {}", said.stdout);
    };
    assert_eq!(delivered["receiver"], "connector \"archive\"");
    assert_eq!(delivered["title"], "Late departures: 1 row");
    let [dead] = of("notification_dead")[..] else {
        panic!("one message was given up: {}", said.stdout);
    };
    assert_eq!(dead["attempts"], 1);
    let stats = project.call(&["stats", "--json"]).json();
    assert_eq!(stats["alerts"], serde_json::json!({"fail": 1}));
    assert_eq!(
        stats["notifications"],
        serde_json::json!({"dead": 1, "delivered": 1})
    );
    let again = project.call(&["run", "--format", "jsonl"]).stdout;
    assert!(
        !again.contains("alert_evaluated") && !again.contains("notification_d"),
        "{again}"
    );
}

/// N8, N9: who runs the project sees that a message waits, and is not left to think that it went out.
#[test]
fn a_message_that_waits_for_its_next_attempt_is_told_with_the_reason() {
    let receiver = Receiver::start();
    receiver.answer("503 Service Unavailable");
    let project = project(&receiver);
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let line = |word: &str| {
        said.stdout
            .lines()
            .find(|line| line.trim_start().starts_with(word))
    };
    let delayed = line("delayed").unwrap_or_else(|| panic!("{}", said.stdout));
    for text in ["message", "Late departures: 1 row", "503", "next attempt in"] {
        assert!(delayed.contains(text), "{delayed}");
    }
    assert!(
        line("sent").is_some_and(|line| line.contains("archive")),
        "{}",
        said.stdout
    );
    let events = project.call(&["run", "--format", "jsonl"]).stdout;
    assert!(
        !events.contains("notification_delayed"),
        "it is told once: {events}"
    );
}

/// N3: receivers are not told the engine's words, which may quote rows; who runs the project is.
#[test]
fn the_owner_is_told_why_a_question_has_no_answer() {
    let receiver = Receiver::start();
    let project = project(&receiver);
    project.edit("alerts/late.yaml", "on_recover: true", "on_error: true");
    project.edit(
        "alerts/late.yaml",
        "SELECT flight, delay",
        "SELECT CAST(flight AS INTEGER)",
    );
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(
        said.stderr.contains("Could not convert string 'UA1'"),
        "{}",
        said.stderr
    );
    let told = receiver.titles().join("\n");
    assert!(told.contains("can't be checked"), "{told}");
    assert!(
        !told.contains("UA1") && !archived(&project).concat().contains("UA1"),
        "{told}"
    );
}

#[test]
fn no_file_and_no_output_holds_the_secret_of_a_connector() {
    let receiver = Receiver::start();
    receiver.answer("500 Internal Server Error");
    let project = project(&receiver);
    let said = project.call(&["run", "--json", "-v"]);
    assert!(!said.stdout.contains(SECRET) && !said.stderr.contains(SECRET));
    let mut folders = vec![project.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder is there") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != ".env") {
                let bytes = fs::read(&path).unwrap_or_default();
                let holds = bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
                assert!(!holds, "{}", path.display());
            }
        }
    }
}
