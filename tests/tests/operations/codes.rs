//! Wrong requests: one code each, through the socket and through the methods of an instance.

use serde_json::{Value, json};
use watershed::api::Request;
use watershed::api::operations::{Info, TABLE};
use watershed::metrics::Query;
use watershed::{AnswerFile, Code, Problem, Source, Viewer};

use crate::attacks::put;
use crate::cases::case;
use crate::project::Place;

/// A name that nothing has.
const NOBODY: &str = "nobody";

/// Returns the code of an operation whose first text is one that nothing has for a name; none if it takes no text.
fn code_of_nobody(name: &str) -> Option<Code> {
    match name {
        "run" | "engine" | "status" | "validate" | "plan" | "graph" | "instances" | "stats"
        | "prometheus" | "trash-list" | "trash-empty" | "check" | "doctor" | "repair" | "gc" => None,
        // A statement.
        "query" => Some(Code::ProjectError),
        // A file without a form, a query, a moment, a stage, an event.
        "export" | "metrics" | "alert-test" | "set" | "event" => Some(Code::BadArgument),
        // A folder that is not there, and a folder that this process has.
        "backup" => Some(Code::BadArgument),
        "restore" => Some(Code::HeldElsewhere),
        _ => Some(Code::UnknownName),
    }
}

/// Requests that are wrong in another way than by a name.
fn others() -> Vec<(&'static str, Value, Code)> {
    let run = json!({"variables": {}, "fail_fast": false, "warn_error": false, "all": false});
    vec![
        (
            "partitions",
            json!({"name": "tested", "errored": false, "limit": 10}),
            Code::WrongState,
        ),
        (
            "scale",
            json!({"names": ["model/late"], "replicas": 2}),
            Code::WrongState,
        ),
        (
            "scale",
            json!({"names": ["steady"], "replicas": 2_000_000}),
            Code::BadArgument,
        ),
        (
            "snooze",
            json!({"name": "model/late", "until_ms": null}),
            Code::WrongState,
        ),
        (
            "snooze",
            json!({"name": "alert/bad", "until_ms": 1}),
            Code::BadArgument,
        ),
        (
            "set",
            json!({"name": "model/late", "desired": "active"}),
            Code::WrongState,
        ),
        ("pause", json!({"names": ["late"]}), Code::AmbiguousName),
        (
            "status",
            json!({"names": [], "selection": {"select": ["nobody:x"], "exclude": []}, "all": false}),
            Code::BadArgument,
        ),
        (
            "query",
            json!({"sql": "DROP TABLE late", "limit": null, "timeout_ms": null}),
            Code::ProjectError,
        ),
        ("compile", json!({"name": "steady"}), Code::ProjectError),
        (
            "refresh",
            json!({"names": ["model/late"], "full": false, "downstream": false, "partitions": {"keys": ["x"]}, "run": run}),
            Code::WrongState,
        ),
    ]
}

fn line(name: &str) -> &'static Info {
    TABLE.iter().find(|line| line.name == name).expect("a line")
}

fn read(line: &Info, input: &Value) -> Request {
    serde_json::from_value(json!({ line.name: input }))
        .unwrap_or_else(|error| panic!("{}: {error}", line.name))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_request_has_one_code_through_the_socket_and_through_an_instance() {
    let place = Place::new(&[]);
    let owner = place.owned().await;
    let mut wrong = others();
    for line in TABLE {
        let mut input = case(line).0;
        let code = code_of_nobody(line.name);
        assert_eq!(put(&mut input, NOBODY), code.is_some(), "{}", line.name);
        wrong.extend(code.map(|code| (line.name, input, code)));
    }
    for (name, input, code) in wrong {
        let request = read(line(name), &input);
        let through_socket = owner.ask(&request).await.end().map_err(|problem| problem.code);
        let through_method = owner
            .instance
            .answer(request)
            .await
            .map_err(|problem| problem.code);
        assert_eq!(through_socket.err(), Some(code), "{name}: {input}");
        assert_eq!(through_method.err(), Some(code), "{name}: {input}");
    }
    owner.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_with_arguments_of_their_own_refuse_with_the_codes_of_the_socket() {
    let place = Place::new(&[]);
    let owner = place.owned().await;
    let socket = async |name: &str, input: Value| {
        owner
            .ask(&read(line(name), &input))
            .await
            .end()
            .expect_err("a problem")
            .code
    };
    let with = |name: &str, key: &str, value: Value| {
        let mut input = case(line(name)).0;
        input[key] = value;
        input
    };
    fn code<T>(answer: Result<T, Problem>) -> Code {
        answer.map(|_| ()).expect_err("a problem").code
    }
    let (instance, now) = (&owner.instance, "2024-06-01T00:00:00Z".parse().expect("a time"));

    for query in [
        json!({"metrics_view": NOBODY, "measures": ["flights"]}),
        json!({"metrics_view": "delays", "measures": [NOBODY]}),
    ] {
        let typed = Query::from_json(&query).expect("a query");
        let told = code(instance.metrics(&typed, &Viewer::Owner, now).await);
        assert_eq!(told, socket("metrics", with("metrics", "query", query)).await);
        assert_ne!(told, Code::Defect);
    }
    let none = serde_json::Map::new;
    // No value of SQL.
    let strange = serde_json::Map::from_iter([("origin".to_owned(), json!({"a": [1]}))]);
    assert_eq!(
        code(instance.call(NOBODY, none(), &Viewer::Owner, now, 10).await),
        socket("call", with("call", "api", json!(NOBODY))).await
    );
    assert_eq!(
        code(
            instance
                .call("by_origin", strange.clone(), &Viewer::Owner, now, 10)
                .await
        ),
        socket("call", with("call", "args", json!(strange))).await
    );
    assert_eq!(
        code(instance.logs(NOBODY, 10).await),
        socket("logs", with("logs", "name", json!(NOBODY))).await
    );
    assert_eq!(
        code(instance.reconcile(NOBODY).await),
        socket("reconcile", with("reconcile", "names", json!([NOBODY]))).await
    );
    // A form of file that nobody knows, and a file that is there.
    let args = none();
    let source = || Source::Call {
        api: "by_origin",
        args: &args,
    };
    let to = |file: &str| AnswerFile {
        file: place.root().join(file),
        ..AnswerFile::default()
    };
    let export = |file: &str| {
        json!({"rows": {"of": "model/late"}, "limit": null, "timeout_ms": null,
        "file": place.root().join(file), "force": false})
    };
    for file in ["rows.strange", "watershed.yaml"] {
        assert_eq!(
            code(instance.export(source(), &Viewer::Owner, now, &to(file)).await),
            socket("export", export(file)).await,
            "{file}"
        );
    }
    owner.close().await;
}
