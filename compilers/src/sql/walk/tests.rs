use super::*;
use crate::sql::{SqlError, SqlPlace};

fn tree(statement: &str) -> Tree {
    let document = format!(r#"{{"error":false,"statements":[{{"node":{statement},"named_param_map":[]}}]}}"#);
    Tree::from_document(document).expect("a tree")
}

fn select(columns: &str, from: &str) -> String {
    format!(
        r#"{{"type":"SELECT_NODE","cte_map":{{"map":[]}},"select_list":[{columns}],"from_table":{from}}}"#
    )
}

fn table(name: &str, alias: &str, location: u64) -> String {
    format!(
        r#"{{"type":"BASE_TABLE","alias":"{alias}","query_location":{location},"schema_name":"","table_name":"{name}","catalog_name":""}}"#
    )
}

fn column(path: &str) -> String {
    format!(r#"{{"class":"COLUMN_REF","type":"COLUMN_REF","alias":"","column_names":[{path}]}}"#)
}

fn print(statement: &str) -> Vec<u8> {
    analyse(&tree(statement)).expect("walks").fingerprint
}

#[test]
fn positions_and_names_of_tables_are_no_meaning() {
    let of = |name: &str, at| {
        print(&select(
            &column(&format!(r#""{name}","x""#)),
            &table(name, "", at),
        ))
    };
    assert_eq!(of("a", 1), of("b", 77));
    let aliased = |name: &str, alias| print(&select(&column(r#""t","x""#), &table(name, alias, 0)));
    assert_eq!(aliased("a", "t"), aliased("b", "t"));
    assert_ne!(aliased("a", "t"), aliased("a", "u"));
}

#[test]
fn tables_are_listed_once_and_in_order() {
    let join = format!(
        r#"{{"type":"JOIN","left":{},"right":{}}}"#,
        table("B", "", 0),
        table("b", "c", 9)
    );
    let found = analyse(&tree(&select("", &join))).expect("walks");
    let names: Vec<_> = found.tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["B"]);
}

/// Threads of servers have 2 MiB of stack: the deepest document that is walked takes half of that.
#[test]
fn the_deepest_document_fits_a_small_stack_and_deeper_ones_are_not_walked() {
    let nested = |depth: usize| {
        let inner = format!("{}1{}", r#"{"children":["#.repeat(depth), "]}".repeat(depth));
        tree(&select(&inner, &table("a", "", 0)))
    };
    let (fits, deeper) = (nested(MAX_DEPTH / 2 - 3), nested(MAX_DEPTH));
    let walk = move || (analyse(&fits).is_some(), analyse(&deeper).is_none());
    let thread = std::thread::Builder::new()
        .stack_size(1024 * 1024)
        .spawn(walk)
        .expect("a thread");
    assert_eq!(thread.join().expect("no overflow"), (true, true));
}

#[test]
fn refusals_of_the_engine_are_read() {
    let refused = |document: &str| Tree::from_document(document.to_owned()).expect_err("refused");
    assert_eq!(
        refused(r#"{"error":true,"error_type":"parser","error_message":"no","position":"7"}"#),
        SqlError::Syntax {
            message: "no".into(),
            place: SqlPlace::Char(7)
        }
    );
    assert!(matches!(
        refused(r#"{"error":true,"error_type":"not implemented","error_message":"Only SELECT"}"#),
        SqlError::NotSerialisable { .. }
    ));
    assert!(matches!(refused("nonsense"), SqlError::NotSerialisable { .. }));
}
