//! Jobs and services, end to end: real processes below a real parent, killed and found again.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::going::Going;
use crate::processes::{kill, pids, until};
use crate::sandbox::{Said, Sandbox};

/// A service that writes its number and waits, of two copies.
const SERVICE: &str = "type: service
run: |
  echo \"begun $LABEL\"; exec sleep 100000
environment: {LABEL: first}
replicas: 2
stop: {grace: 1s}
";

/// A job that writes a file.
const JOB: &str = "type: job
run: |
  mkdir -p out && echo 'k,v' > out/rows.csv && echo '1,10' >> out/rows.csv && echo done >> out/runs
";

const MODEL: &str = "type: model
materialize: true
refs: [import]
sql: SELECT k, v FROM read_csv('out/rows.csv')
";

fn project() -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("programs/api.yaml", SERVICE),
        ("programs/import.yaml", JOB),
        ("models/rows.yaml", MODEL),
    ])
}

#[track_caller]
fn ends(said: &Said, code: i32) {
    assert_eq!(said.code, Some(code), "{}\n{}", said.stdout, said.stderr);
}

/// The replicas of a service, as `status` tells them.
fn replicas(project: &Sandbox, name: &str) -> Vec<Value> {
    let document = project.call(&["status", name, "--json"]).json();
    let replicas = &document["resources"][0]["result"]["replicas"];
    replicas.as_array().cloned().unwrap_or_default()
}

/// The stages of the replicas of `api`.
fn stages(project: &Sandbox) -> Vec<String> {
    let replicas = replicas(project, "api");
    replicas
        .iter()
        .map(|one| one["stage"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn a_run_starts_what_is_needed_and_leaves_no_process() {
    let project = project();
    let done = project.run(0);
    assert_eq!(done["rows"], "built");
    assert_eq!(pids(&project), BTreeSet::new());
    assert_eq!(
        project.query("SELECT v FROM rows")["rows"],
        serde_json::json!([[10]])
    );
    let done = project.run(0);
    assert!(
        !done.contains_key("rows") && !done.contains_key("import"),
        "{done:?}"
    );
    let runs = || fs::read_to_string(project.path().join("out/runs")).unwrap();
    assert_eq!(runs(), "done\n", "a finished run is not repeated");

    ends(&project.call(&["refresh", "import"]), 0);
    assert_eq!(runs(), "done\ndone\n");
    assert_eq!(pids(&project), BTreeSet::new());
}

#[test]
fn a_run_for_a_job_alone_starts_no_service() {
    let project = project();
    ends(&project.call(&["run", "--select", "import"]), 0);
    let starts = fs::read_dir(project.path().join(".watershed/dev/programs"));
    assert_eq!(starts.expect("the job wrote something").count(), 1);
}

#[test]
fn a_failed_job_says_how_it_ended_and_what_reads_it_is_not_built() {
    let project = project();
    project.write("programs/import.yaml", "type: job\nrun: echo oh no >&2; exit 3\n");
    let said = project.call(&["run"]);
    ends(&said, 1);
    assert!(
        said.stderr.contains("exited") || said.stdout.contains("exited"),
        "{}",
        said.stdout
    );
    let logs = project.call(&["logs", "import"]);
    assert_eq!(logs.stdout, "import | oh no\n", "{}", logs.stderr);
    project.write("programs/import.yaml", JOB);
    project.run(0);
    assert_eq!(pids(&project), BTreeSet::new());
}

#[test]
fn a_replica_that_is_killed_starts_again_and_a_program_that_is_killed_finds_its_processes() {
    let project = project();
    project.edit(
        "programs/api.yaml",
        "replicas: 2\n",
        "replicas: 2\nrestart: {base: 100ms}\n",
    );
    let start = Going::settled(&project);
    until("both are ready", || stages(&project) == ["ready", "ready"]);
    let first = pids(&project);
    assert_eq!(first.len(), 2);
    kill(*first.first().unwrap());
    until("another one took its place", || {
        pids(&project).len() == 2 && pids(&project) != first && stages(&project) == ["ready", "ready"]
    });
    let second = pids(&project);

    start.kill();
    assert_eq!(pids(&project), second, "they go on");
    kill(*second.last().unwrap());
    let start = Going::settled(&project);
    until("both are ready again", || stages(&project) == ["ready", "ready"]);
    let third = pids(&project);
    assert_eq!(third.len(), 2, "no second process");
    assert_eq!(
        third.intersection(&second).count(),
        1,
        "the living one was adopted"
    );

    project.remove("programs/api.yaml");
    until("nothing is left of a deleted service", || {
        pids(&project).is_empty()
    });
    start.stop();
}

#[test]
fn a_person_scales_restarts_and_rolls_back_a_service() {
    let project = project();
    let start = Going::settled(&project);
    until("both are ready", || stages(&project) == ["ready", "ready"]);
    let scaled = project.call(&["scale", "api", "3"]);
    ends(&scaled, 0);
    assert!(scaled.stdout.contains("2 -> 3 (file: 2;"), "{}", scaled.stdout);
    until("three run", || stages(&project) == ["ready", "ready", "ready"]);
    project.edit("programs/api.yaml", "LABEL: first", "LABEL: second");
    until("the new release runs", || {
        let found = replicas(&project, "api");
        found.len() == 3
            && found
                .iter()
                .all(|one| one["release"] == 2 && one["stage"] == "ready")
    });
    ends(&project.call(&["scale", "api", "file"]), 0);
    until("two run", || stages(&project) == ["ready", "ready"]);
    let before = pids(&project);
    ends(&project.call(&["restart", "api", "--now"]), 0);
    until("others run", || {
        stages(&project) == ["ready", "ready"] && pids(&project).is_disjoint(&before)
    });
    let rolled_back = project.call(&["rollback", "api"]);
    ends(&rolled_back, 0);
    assert!(rolled_back.stdout.contains("2 -> 1"), "{}", rolled_back.stdout);
    until("the first release is back", || {
        let found = replicas(&project, "api");
        found.len() == 2
            && found
                .iter()
                .all(|one| one["release"] == 1 && one["stage"] == "ready")
    });
    let status = project.call(&["status", "api"]).stdout;
    assert!(
        status.contains("2 of 2 ready, rolled back to release 1"),
        "{status}"
    );
    let logs = project.call(&["logs", "api", "--json"]).json();
    let lines = logs["output"].as_array().unwrap();
    assert!(
        !lines.is_empty() && lines.iter().all(|line| line["text"] == "begun first"),
        "{logs}"
    );
    ends(&project.call(&["rollback", "api", "--to", "77"]), 2);
    ends(&project.call(&["scale", "import", "2"]), 2);
    start.stop();
    assert_eq!(pids(&project).len(), 2, "they outlive the program");
    let stats = project.call(&["stats", "--json"]).json();
    assert!(stats["settled"].get("unsupported").is_none(), "{stats}");

    let stored = project.call(&["scale", "api", "0"]);
    ends(&stored, 0);
    assert!(
        stored.stdout.contains("it takes effect when the project runs"),
        "{}",
        stored.stdout
    );
    ends(&project.call(&["restart", "api"]), 3);
    let start = Going::settled(&project);
    until("none run", || pids(&project).is_empty());
    start.stop();
}

#[test]
fn a_crashing_service_waits_longer_each_time_and_then_for_a_person() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "programs/api.yaml",
            "type: service\nrun: exit 3\nrestart: {base: 10ms, attempts: 3}\n",
        ),
    ]);
    let said = project.call(&["run"]);
    ends(&said, 1);
    let document = project.call(&["status", "api", "--json"]).json();
    let error = &document["resources"][0]["error"];
    assert_eq!(error["code"], "crash-loop", "{document}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("replica 0 of service/api exited 3 times in a row, last with code 3 after"),
        "{message}"
    );
    let explained = project.call(&["explain", "api"]);
    assert!(
        explained.stdout.contains("watershed retry"),
        "{}",
        explained.stdout
    );
}

#[test]
fn the_sample_of_services_runs() {
    if std::process::Command::new("python3")
        .arg("--version")
        .output()
        .is_err()
    {
        println!("skipped: the sample needs python3");
        return;
    }
    let project = Sandbox::from_project("services");
    project.run(0);
    let rows = project.query("SELECT currency FROM latest_rates ORDER BY 1");
    assert_eq!(rows["rows"], serde_json::json!([["NOK"], ["USD"]]));
    assert_eq!(pids(&project), BTreeSet::new());
    let done = project.run(0);
    let built: Vec<&String> = done.keys().filter(|name| *name != "api").collect();
    assert!(built.is_empty(), "{done:?}");
}

/// W11: what is left of a release that is taken back says why, long after its replicas are removed.
#[test]
fn a_release_that_is_taken_back_leaves_its_failure_and_its_output() {
    let service = |run: &str| {
        format!(
            "type: service\nrun: {run}\nchecks: [{{command: [\"true\"], interval: 1s, min_healthy_time: 0s}}]\n\
             rollout: {{deadline: 2s}}\nrestart: {{base: 1s}}\n"
        )
    };
    let old = service("echo old; exec sleep 100000");
    let project = Sandbox::with(&[("watershed.yaml", ""), ("services/api.yaml", &old)]);
    let start = Going::settled(&project);
    let logs = || project.call(&["logs", "api"]).stdout;
    project.write("services/api.yaml", &service("echo the cause; exit 42"));
    until("it is taken back", || {
        logs() == "api.0 | old\napi (release 2) | the cause\n"
    });
    let said = project.call(&["explain", "api"]).stdout;
    assert!(
        said.contains(
            "keeps its old release: release 2 made no progress in time: replica 1 of service/api exited"
        ),
        "{said}"
    );
    assert!(said.contains("code 42"), "{said}");
    project.write("services/api.yaml", &old);
    until("nothing of it is left", || logs() == "api.0 | old\n");
    start.stop();
}

/// W19: lines have no times; what is older than a time is known by what the parent of the processes has noted.
#[test]
fn logs_since_a_time_leave_out_what_was_written_before() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "services/api.yaml",
            "type: service\nrun: |\n  echo old; while ! test -f go; do sleep 0.05; done; echo new; exec sleep 100000\n",
        ),
    ]);
    let logs = |since: &str| {
        let said = project.call(&["logs", "api", "--since", since]);
        ends(&said, 0);
        said.stdout
    };
    let start = Going::settled(&project);
    until("it writes", || logs("1h") == "api.0 | old\n");
    until("that is past", || logs("0s").is_empty());
    let between = jiff::Timestamp::now().to_string();
    project.write("go", "");
    until("it writes more", || logs("1h") == "api.0 | old\napi.0 | new\n");
    assert_eq!(logs(&between), "api.0 | new\n");
    until("all of it is past", || logs("0s").is_empty());
    assert_eq!(logs(&between), "api.0 | new\n");
    assert_eq!(logs("2020-01-01"), "api.0 | old\napi.0 | new\n");
    ends(&project.call(&["logs", "api", "--since", "yesterday"]), 2);

    let runs = |since: &str| {
        let document = project
            .call(&["logs", "api", "--runs", "--json", "--since", since])
            .json();
        document["lines"].as_array().map_or(0, Vec::len)
    };
    assert!(runs("1h") > 0);
    assert_eq!(runs(&jiff::Timestamp::now().to_string()), 0);
    start.kill();
    assert_eq!(logs(&between), "api.0 | new\n", "at rest it is the same");
}

/// W15: what becomes of programs is told as it happens, once.
#[test]
fn transitions_are_events_of_what_goes_on() {
    let project = project();
    project.edit(
        "programs/api.yaml",
        "replicas: 2\n",
        "replicas: 1\nrestart: {base: 10ms}\n",
    );
    let mut start = Going::start(&project);
    let mut reach = |name: &str, to: &str, reason: &str| {
        let mut told = Vec::new();
        loop {
            let event = start.next();
            if event["event"] != "transition" || event["resource"]["name"] != name {
                continue;
            }
            told.push(format!("{} {}", event["to"], event["reason"]).replace('"', ""));
            if event["to"] == to && event["reason"] == reason {
                return told;
            }
        }
    };
    assert_eq!(
        reach("api.0", "running", "ready"),
        ["starting start", "running ready"]
    );
    kill(*pids(&project).first().expect("it runs"));
    assert_eq!(
        reach("api.0", "running", "ready"),
        ["backing_off exited", "starting start", "running ready"]
    );
    start.stop();
}

/// W8: a look that builds nothing may note the time of a young file, which is no news to anybody.
#[test]
fn a_job_that_reads_a_model_runs_once_while_nothing_is_built() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/m.sql", "SELECT * FROM 'x.csv'"),
        ("jobs/j.yaml", "type: job\nrefs: [m]\nrun: echo ran >> ran\n"),
        ("x.csv", "k,v\n1,10\n"),
    ]);
    let ran = || {
        fs::read_to_string(project.path().join("ran"))
            .unwrap()
            .lines()
            .count()
    };
    for _ in 0..3 {
        project.run(0);
        assert_eq!(ran(), 1);
    }
    project.write("x.csv", "k,v\n1,10\n2,20\n");
    project.run(0);
    assert_eq!(ran(), 2, "another build is another run");
}

/// W5: what a person has mended starts again, whether somebody runs the project or not.
#[test]
fn a_retry_starts_the_failed_copies_of_a_service_and_waits_for_them() {
    const FRAGILE: &str =
        "type: service\nrun: test -e ok && exec sleep 100000; exit 1\nrestart: {base: 10ms, attempts: 2}\n";
    let project = Sandbox::with(&[("watershed.yaml", ""), ("services/api.yaml", FRAGILE)]);
    ends(&project.call(&["run"]), 1);
    ends(&project.call(&["retry", "api"]), 1);
    let starts = |project: &Sandbox| {
        let document = project.call(&["history", "api", "--json"]).json();
        let told = document["transitions"].as_array().cloned().unwrap_or_default();
        told.iter().filter(|one| one["reason"] == "start").count()
    };
    assert_eq!(starts(&project), 4, "it was tried again");
    project.write("ok", "");
    ends(&project.call(&["retry", "api"]), 0);

    project.remove("ok");
    project.edit("services/api.yaml", "attempts: 2", "attempts: 1");
    let start = Going::settled(&project);
    until("it has failed", || stages(&project) == ["failed"]);
    ends(&project.call(&["retry", "api"]), 1);
    project.write("ok", "");
    ends(&project.call(&["retry", "api"]), 0);
    assert_eq!(stages(&project), ["ready"]);
    start.stop();
}

/// A service with a readiness check, whose releases come up unless their label is bad.
const CHECKED: &str = "type: service
run: test \"$LABEL\" != bad || exit 9; exec sleep 100000
environment: {LABEL: first}
stop: {grace: 1s}
restart: {base: 100ms, attempts: 3}
checks:
  - {command: [test, -f, up], readiness: true, interval: 100ms, min_healthy_time: 0s}
rollout: {deadline: 10m}
";

/// W11: a release that does not come up is told with the reason, while the one before it serves.
#[test]
fn a_release_that_does_not_come_up_says_why_and_is_none_to_go_back_to() {
    let project = Sandbox::with(&[("watershed.yaml", ""), ("up", ""), ("services/api.yaml", CHECKED)]);
    let start = Going::settled(&project);
    until("it is ready", || stages(&project) == ["ready"]);
    project.edit("services/api.yaml", "LABEL: first", "LABEL: bad");
    let told = "release 2 is not coming up: replica 1 of service/api exited 3 times in a row";
    let error = || {
        let document = project.call(&["status", "api", "--json"]).json();
        let message = document["resources"][0]["error"]["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        (document["exit_code"].clone(), message)
    };
    until("status says why", || {
        let (code, message) = error();
        code == 1 && message.starts_with(told)
    });
    let explained = project.call(&["explain", "api"]).stdout;
    assert!(
        explained
            .replace("\n          ", "")
            .contains("release 2 is not coming up"),
        "{explained}"
    );
    let all = project.call(&["explain", "--json"]).json();
    assert_eq!(
        all["causes"].as_array().map(Vec::len),
        Some(1),
        "one trouble is one cause: {all}"
    );
    ends(&project.call(&["rollback", "api"]), 0);
    until("the release before serves alone", || {
        let found = replicas(&project, "api");
        found.len() == 1 && found[0]["release"] == 1 && found[0]["stage"] == "ready"
    });
    start.stop();
}

/// W16: the command ends when the new copies are ready, and says after how long.
#[test]
fn a_restart_ends_when_the_new_copies_are_ready() {
    let project = project();
    let start = Going::settled(&project);
    until("both are ready", || stages(&project) == ["ready", "ready"]);
    let before = pids(&project);
    let said = project.call(&["restart", "api"]);
    ends(&said, 0);
    assert!(
        said.stdout.contains("2 replicas, ready after "),
        "{}",
        said.stdout
    );
    until("the old ones are gone", || {
        let now = pids(&project);
        now.len() == 2 && now.is_disjoint(&before) && stages(&project) == ["ready", "ready"]
    });
    start.stop();
}

/// W13: a refresh that is asked for is stored, so whoever goes on asks for nothing twice.
#[test]
fn a_refresh_whose_process_is_killed_runs_its_job_once() {
    const WAITS: &str =
        "type: job\nrun: echo begun >> began; while ! test -f go; do sleep 0.05; done; echo ended >> ended\n";
    let project = Sandbox::with(&[("watershed.yaml", ""), ("go", ""), ("jobs/j.yaml", WAITS)]);
    let start = Going::settled(&project);
    project.remove("go");
    let lines =
        |file: &str| fs::read_to_string(project.path().join(file)).map_or(0, |text| text.lines().count());
    assert_eq!((lines("began"), lines("ended")), (1, 1));
    std::thread::scope(|scope| {
        let refresh = scope.spawn(|| project.call(&["refresh", "j"]));
        until("it runs again", || lines("began") == 2);
        start.kill();
        project.write("go", "");
        ends(&refresh.join().unwrap(), 0);
    });
    assert_eq!((lines("began"), lines("ended")), (2, 2));
}

#[test]
fn a_program_finds_the_addresses_of_what_it_refers_to_in_a_variable_and_in_a_file() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "programs/api.yaml",
            "type: service\nrun: exec sleep 100000\nports: [{name: PORT}]\nreplicas: 2\n",
        ),
        (
            "programs/look.yaml",
            "type: job\nrefs: [api]\nrun: 'echo \"$API_PORT\" > seen; cat \"$API_PORT_FILE\" >> seen'\n",
        ),
    ]);
    ends(&project.call(&["run"]), 0);
    let seen = fs::read_to_string(project.path().join("seen")).expect("the job has run");
    let lines: Vec<&str> = seen.lines().collect();
    assert!(lines[0].matches("127.0.0.1:").count() == 2, "{seen}");
    assert_eq!(lines, [lines[0], lines[0]], "{seen}");
}
