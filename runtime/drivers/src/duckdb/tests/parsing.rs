//! Tests of the parser.

use crate::duckdb::Parser;

#[test]
fn each_statement_has_its_document_in_order() {
    let parser = Parser::new();
    let statements: Vec<_> = (0..1_000).map(|n| format!("select {n} from table_{n}")).collect();
    let statements: Vec<_> = statements.iter().map(String::as_str).collect();
    let documents = parser.documents(&statements).unwrap();
    assert_eq!(documents.len(), statements.len());
    for (n, document) in documents.iter().enumerate() {
        assert!(
            document.contains(&format!("\"table_name\":\"table_{n}\"")),
            "{document}"
        );
    }
    assert!(parser.documents(&[]).unwrap().is_empty());
}

#[test]
fn what_is_wrong_is_in_the_document() {
    let documents = Parser::new()
        .documents(&["select 1 frm x y", "drop table x", "select 1"])
        .unwrap();
    let read = |at: usize| serde_json::from_str::<serde_json::Value>(&documents[at]).unwrap();
    assert_eq!(read(0)["position"], "13");
    assert_eq!(read(1)["error_type"], "not implemented");
    assert_eq!(read(2)["error"], false);
}

#[test]
fn the_version_names_the_engine() {
    assert!(
        Parser::version().starts_with("duckdb v1."),
        "{}",
        Parser::version()
    );
}
