//! Rows of data that can't be read: told in one line, at their own place.

use crate::sandbox::Sandbox;

/// A source whose last row does not fit the type that was found in the rows before it.
fn late() -> Sandbox {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "sources/late.yaml",
            "type: source\nconnector: local_file\npath: data/late.csv\n",
        ),
    ]);
    let rows: String = (0..30_000).map(|n| format!("{n},a{n}\n")).collect();
    project.write("data/late.csv", &format!("n,s\n{rows}oops,b\n"));
    project
}

#[test]
fn a_row_that_can_not_be_read_is_told_with_its_reason_file_and_line() {
    let project = late();
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1));
    let reason = "Could not convert string \"oops\" to 'BIGINT' in column \"n\"";
    assert!(said.stdout.contains(reason), "{}", said.stdout);
    assert!(said.stderr.contains("--> data/late.csv:30002"), "{}", said.stderr);
    assert!(
        said.stderr.lines().all(|line| line.len() < 200),
        "{}",
        said.stderr
    );
    assert!(!said.stderr.contains("Auto-Detected"), "{}", said.stderr);
    let document = project.call(&["status", "--json"]).json();
    let error = &document["resources"][0]["error"];
    assert_eq!(error["message"], reason);
    assert_eq!(error["at"]["path"], "data/late.csv");
    assert_eq!(error["at"]["line"], 30_002);
    let all = project.call(&["run", "-v"]);
    assert!(all.stderr.contains("Auto-Detected"), "{}", all.stderr);
}

#[test]
fn the_options_that_the_hint_names_help_and_are_no_warning() {
    for option in ["types: {n: VARCHAR}", "ignore_errors: true"] {
        let project = late();
        let source = format!("type: source\nconnector: local_file\npath: data/late.csv\n{option}\n");
        project.write("sources/late.yaml", &source);
        let said = project.call(&["run"]);
        assert_eq!(
            (said.code, said.stderr.as_str()),
            (Some(0), ""),
            "{option}: {}",
            said.stdout
        );
    }
}

#[test]
fn a_row_with_a_value_too_many_does_not_cost_the_others() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "sources/o.yaml",
            "type: source\nconnector: local_file\npath: data/o.csv\n",
        ),
        (
            "models/m.sql",
            "-- @materialize: true\nSELECT count(*) AS n FROM 'data/o.csv'\n",
        ),
    ]);
    let good: String = (0..1_000).map(|n| format!("{n},a{n},{n}.5\n")).collect();
    project.write("data/o.csv", &format!("id,name,amount\n{good}"));
    project.run(0);
    for bad in ["1001,Smith, John,3.5\n", "1001,Smith\n"] {
        project.write("data/o.csv", &format!("id,name,amount\n{good}{bad}"));
        let said = project.call(&["run"]);
        assert_eq!(said.code, Some(1), "{}", said.stdout);
        assert!(said.stderr.contains("--> data/o.csv:1002"), "{}", said.stderr);
        for query in ["SELECT count(*) FROM o", "SELECT n FROM m"] {
            assert_eq!(
                project.query(query)["rows"],
                serde_json::json!([[1_000]]),
                "{query}"
            );
        }
    }
    project.write(
        "sources/o.yaml",
        "type: source\nconnector: local_file\npath: data/o.csv\nnull_padding: true\n",
    );
    project.write("models/m.sql", "SELECT count(*) AS n FROM o\n");
    project.run(0);
    assert_eq!(
        project.query("SELECT n FROM m")["rows"],
        serde_json::json!([[1_001]])
    );
}

#[test]
fn a_relationship_to_a_column_that_is_not_there_holds_for_no_row() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/customers.sql", "SELECT 7 AS id\n"),
        ("models/orders.sql", "SELECT 1 AS id, 99 AS customer_id\n"),
        (
            "models/orders.yaml",
            "tests: [{relationships: {column: customer_id, to: customers}}]\n",
        ),
    ]);
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(
        said.stderr
            .contains("Referenced column \"customer_id\" not found in FROM clause!"),
        "{}",
        said.stderr
    );
}

#[test]
fn a_query_that_meets_such_a_row_says_where_it_is() {
    let project = late();
    project.write("models/all.sql", "SELECT * FROM read_csv('data/late.csv')\n");
    let said = project.call(&["run", "--json"]);
    assert_eq!(said.code, Some(1));
    let said = project.call(&["query", "SELECT count(n) FROM \"all\""]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(said.stderr.contains("data/late.csv:30002"), "{}", said.stderr);
}

#[test]
fn guesses_about_a_file_that_may_as_well_be_wrong_are_told_until_its_source_says() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("data/dates.csv", "id,day\n1,02/06/2024\n2,03/07/2024\n"),
        ("data/sure.csv", "id,day,name\n1,13/06/2024,x\n"),
    ]);
    let source = |name: &str, options: &str| {
        let text = format!("type: source\nconnector: local_file\npath: data/{name}.csv\n{options}");
        sandbox.write(&format!("sources/{name}.yaml"), &text);
    };
    for name in ["dates", "sure"] {
        source(name, "");
    }
    sandbox.run(0);
    let told = |name: &str| sandbox.call(&["logs", name]).stdout;
    assert!(told("dates").contains("%d/%m/%Y"), "{}", told("dates"));
    assert!(told("dates").contains("`dateformat`"), "{}", told("dates"));
    assert!(!told("sure").contains("`dateformat`"), "{}", told("sure"));
    assert!(!told("sure").contains("`header"), "{}", told("sure"));
    source("dates", "dateformat: \"%m/%d/%Y\"\n");
    sandbox.run(0);
    let month = sandbox.rows("SELECT month(min(day))::INTEGER AS month FROM dates");
    assert_eq!(month, serde_json::json!([[2]]));
}
