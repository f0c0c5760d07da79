//! Renames of every kind: moved away, written in another case, swapped, in a chain, and with the texts that name them
//! edited along; while `start` goes on and between runs. None of them builds anything or makes anything anew.

use std::fs;

use serde_json::{Value, json};

use crate::going::Going;
use crate::sandbox::Sandbox;

/// A kind, where a file of it stands (`{n}` for its name), and what it says (`{v}` for what tells it from others).
const KINDS: [(&str, &str, &str); 11] = [
    (
        "model",
        "sources/src_{n}.yaml",
        "type: source\nconnector: local_file\npath: data/{v}.csv\n",
    ),
    (
        "model",
        "models/tab_{n}.sql",
        "-- @materialize: true\nSELECT {v} AS v, uuid() AS build\n",
    ),
    ("model", "models/look_{n}.sql", "SELECT {v} AS v FROM base\n"),
    (
        "model",
        "models/tested_{n}.yaml",
        "type: model\nmaterialize: true\nsql: SELECT {v} AS v\ntests: [{name: small, assert: v < 10}]\n",
    ),
    (
        "metrics_view",
        "metrics/{n}.yaml",
        "version: 1\ntype: metrics_view\nmodel: base\nmeasures: [{name: m{v}, expression: count(*)}]\n",
    ),
    (
        "explore",
        "explores/{n}.yaml",
        "type: explore\nmetrics_view: sales\ndescription: number {v}\n",
    ),
    (
        "canvas",
        "canvases/{n}.yaml",
        "type: canvas\nmax_width: {v}\nrows: [{items: [{kpi: {metrics_view: sales, measure: n, width: {v}}}]}]\n",
    ),
    (
        "component",
        "components/{n}.yaml",
        "type: component\nkpi: {metrics_view: sales, measure: n, width: {v}}\n",
    ),
    (
        "theme",
        "themes/{n}.yaml",
        "type: theme\ncolors: {primary: '#00000{v}'}\n",
    ),
    (
        "connector",
        "connectors/{n}.yaml",
        "type: connector\ndriver: snowflake\ndsn: kept_{v}\n",
    ),
    (
        "migration",
        "migrations/{n}.yaml",
        "type: migration\nversion: 1\nsql: CREATE TABLE made_{v} (x INTEGER)\n",
    ),
];
/// Resources of each kind in the beginning; a canvas brings a component along.
const NAMES: [&str; 3] = ["one", "two", "three"];
/// Resources that follow when one of each kind is renamed.
const MOVED: usize = KINDS.len() + 1;

/// Renames of one kind's files, each with the number of resources that have another name afterwards.
const STEPS: [(&[(&str, &str)], usize); 4] = [
    (&[("one", "four")], 1),
    (&[("four", "FOUR")], 1),
    (&[("FOUR", "two"), ("two", "FOUR")], 2),
    (&[("three", "five"), ("two", "three")], 2),
];

fn project() -> Sandbox {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "models/base.sql",
            "-- @materialize: true\nSELECT 1 AS x, uuid() AS build\n",
        ),
        (
            "models/reader.sql",
            "-- @materialize: true\nSELECT x, uuid() AS build FROM base\n",
        ),
        (
            "metrics/sales.yaml",
            "version: 1\ntype: metrics_view\nmodel: base\nmeasures: [{name: n, expression: count(*)}]\n",
        ),
        ("explores/board.yaml", "type: explore\nmetrics_view: sales\n"),
    ]);
    for (at, name) in NAMES.iter().enumerate() {
        let number = (at + 1).to_string();
        project.write(&format!("data/{number}.csv"), "x\n1\n");
        for (_, path, text) in KINDS {
            project.write(&path.replace("{n}", name), &text.replace("{v}", &number));
        }
    }
    project
}

/// Moves files of all kinds as one: git's lock is held meanwhile.
fn step(project: &Sandbox, moves: &[(&str, &str)]) {
    at_once(project, || {
        for (_, path, _) in KINDS {
            let away = |name: &str| format!("{}.away", path.replace("{n}", name));
            for (from, _) in moves {
                project.rename(&path.replace("{n}", from), &away(from));
            }
            for (from, to) in moves {
                project.rename(&away(from), &path.replace("{n}", to));
            }
        }
    });
}

fn at_once(project: &Sandbox, edit: impl FnOnce()) {
    let git = project.path().join(".git");
    fs::create_dir_all(&git).expect("a folder can be made");
    fs::write(git.join("index.lock"), "").expect("a file can be written");
    edit();
    fs::remove_file(git.join("index.lock")).expect("a file can be removed");
}

/// Names of what is built, changed, taken.
fn changes(created: usize, renamed: usize) -> Value {
    json!({"created": created, "updated": 0, "renamed": renamed, "deleted": 0})
}

/// The owner of the rows of each table, by the builds that made them.
fn builds(project: &Sandbox, names: &[&str]) -> Vec<Value> {
    let read =
        |name: &&str| project.query(&format!("SELECT v, build::VARCHAR FROM tab_{name}"))["rows"].clone();
    names.iter().map(read).collect()
}

/// Runs that a resource has had in its life.
fn runs(project: &Sandbox, (kind, path, _): (&str, &str, &str), name: &str) -> u64 {
    let file = path.rsplit('/').next().unwrap_or_default();
    let stem = file.split('.').next().unwrap_or_default();
    let named = format!("{kind}/{}", stem.replace("{n}", name));
    let status = project.call(&["status", &named, "--json"]).json();
    let runs = status["resources"][0]["runs_total"].as_u64();
    runs.unwrap_or_else(|| panic!("{named} is there: {status}"))
}

fn run(project: &Sandbox) -> Value {
    let said = project.call(&["run", "--json", "--wait", "60s"]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.stderr, said.stdout);
    said.json()
}

fn assert_nothing_built(document: &Value) {
    for resource in document["resources"].as_array().expect("it lists resources") {
        let work = resource["work"].as_str().unwrap_or_default();
        assert!(!["built", "dropped"].contains(&work), "{resource}");
    }
}

#[test]
fn between_runs_every_kind_follows_its_file() {
    let project = project();
    run(&project);
    let [one, two, three] = builds(&project, &NAMES).try_into().expect("three of them");
    for (moves, moved) in STEPS {
        step(&project, moves);
        let document = run(&project);
        assert_eq!(
            document["summary"]["changes"],
            changes(0, moved * MOVED),
            "{moves:?}: {}",
            document["summary"]["removed"]
        );
        assert_nothing_built(&document);
    }
    assert_eq!(builds(&project, &["three", "FOUR", "five"]), [one, two, three]);
    assert_eq!(project.done(0), "");
}

#[test]
fn live_every_kind_follows_its_file() {
    let project = project();
    run(&project);
    let [one, two, three] = builds(&project, &NAMES).try_into().expect("three of them");
    let start = Going::settled(&project);
    let before = KINDS.map(|kind| NAMES.map(|name| runs(&project, kind, name)));
    for (moves, _) in STEPS {
        step(&project, moves);
        assert_nothing_built(&run(&project));
    }
    // Each life went on: a resource that is made anew begins to count anew.
    for (kind, before) in KINDS.into_iter().zip(before) {
        for ((name, renames), before) in [("three", 4), ("FOUR", 1), ("five", 1)].into_iter().zip(before) {
            let now = runs(&project, kind, name);
            assert!(
                now >= before + renames,
                "{} {name}: {before} runs, then {now}",
                kind.0
            );
        }
    }
    start.stop();
    assert_eq!(builds(&project, &["three", "FOUR", "five"]), [one, two, three]);
    assert_eq!(project.done(0), "");
}

#[test]
fn readers_whose_texts_are_edited_along_are_not_built() {
    let project = project();
    run(&project);
    let build = |name: &str| project.query(&format!("SELECT build::VARCHAR FROM {name}"))["rows"].clone();
    let (base, reader) = (build("base"), build("reader"));
    at_once(&project, || {
        project.rename("models/base.sql", "models/ground.sql");
        project.rename("metrics/sales.yaml", "metrics/turnover.yaml");
        for (_, path, text) in KINDS {
            for (at, name) in NAMES.iter().enumerate() {
                let text = text.replace("{v}", &(at + 1).to_string());
                let text = text.replace("base", "ground").replace("sales", "turnover");
                project.write(&path.replace("{n}", name), &text);
            }
        }
        project.edit("models/reader.sql", "base", "ground");
        project.edit("metrics/turnover.yaml", "base", "ground");
        project.edit("explores/board.yaml", "sales", "turnover");
    });
    let document = run(&project);
    let changes = &document["summary"]["changes"];
    assert_eq!(
        (&changes["created"], &changes["renamed"], &changes["deleted"]),
        (&json!(0), &json!(2), &json!(0)),
        "{}",
        document["summary"]["removed"]
    );
    let looks = |name: &str| name.starts_with("look_");
    for resource in document["resources"].as_array().expect("it lists resources") {
        let name = resource["name"].as_str().unwrap_or_default();
        // A view holds names: it is made again, which costs nothing and reads nothing.
        let built = resource["work"] == "built";
        assert!(!built || looks(name), "{resource}");
    }
    assert_eq!((build("ground"), build("reader")), (base, reader));
    assert_eq!(project.done(0), "");
}

#[test]
fn files_that_are_renamed_or_trade_their_names_keep_their_parts() {
    // A thing outside has the mark of its resource, as names change.
    let script = r#"
uid=$(sed 's/.*"resource": *{\([^}]*\).*/\1/; s/.*"uid": *"\([^"]*\)".*/\1/')
mkdir -p things
case $1 in
observe) if [ -e "things/$uid" ]; then echo '{"stage": "active"}'; else echo '{"stage": "absent"}'; fi ;;
up) : > "things/$uid"; echo "$2 up" >> called ;;
down) rm -f "things/$uid"; echo "$2 down" >> called ;;
esac
"#;
    let file = |word: &str| {
        format!(
            "type: managed\nstages: [absent, active, gone]\ndesired: active\n\
             observe: {{command: [sh, thing.sh, observe]}}\nsteps:\n  \
             active: {{command: [sh, thing.sh, up, {word}]}}\n  \
             gone: {{command: [sh, thing.sh, down, {word}]}}\nparts:\n  \
             - {{name: a, parts: [{{name: x}}]}}\n"
        )
    };
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("thing.sh", script),
        ("o.yaml", &file("o")),
        ("q.yaml", &file("q")),
    ]);
    project.run(0);
    let called = || fs::read_to_string(project.path().join("called")).expect("steps were taken");
    let before = called();
    assert_eq!(before.lines().count(), 6, "{before}");
    let stage = |name: &str| {
        let document = project.call(&["status", name, "--json"]).json();
        document["resources"][0]["result"]["stage"].clone()
    };
    let rename = |from: &str, to: &str| {
        fs::rename(project.path().join(from), project.path().join(to)).expect("it is there");
    };
    rename("o.yaml", "p.yaml");
    project.run(0);
    assert_eq!(["p.a", "p.a.x", "q.a"].map(stage), ["active"; 3].map(Value::from));
    for (from, to) in [("p.yaml", "t"), ("q.yaml", "p.yaml"), ("t", "q.yaml")] {
        rename(from, to);
    }
    project.run(0);
    assert_eq!(["q.a", "q.a.x", "p.a"].map(stage), ["active"; 3].map(Value::from));
    assert_eq!(called(), before, "nothing is done outside");
}

#[test]
fn tests_of_a_renamed_model_look_at_its_table_of_now() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("data/a.csv", "d,n\n1,5\n"),
        (
            "models/daily.yaml",
            "type: model\nmaterialize: true\nsql: SELECT d, sum(n) AS n FROM read_csv('data/a.csv') GROUP BY 1\n\
             tests: [{unique: d}, {name: positive, assert: n > 0}]\n",
        ),
    ]);
    project.run(0);
    project.rename("models/daily.yaml", "models/by_day.yaml");
    assert_eq!(project.done(0), "by_day:renamed");
    project.write("data/a.csv", "d,n\n1,5\n2,6\n");
    assert_eq!(project.done(0), "by_day:built");
}
