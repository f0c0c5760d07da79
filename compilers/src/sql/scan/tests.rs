//! Tables, files and meanings of statements that are known by their tokens alone.

use super::*;

fn tables(sql: &str) -> Vec<String> {
    analyse(sql).tables.into_iter().map(|table| table.name).collect()
}

#[test]
fn tables_are_found_where_a_tree_is_missing() {
    assert_eq!(tables("PIVOT sales ON city USING sum(amount)"), ["sales"]);
    assert_eq!(
        tables("WITH t AS (SELECT * FROM a, main.b x) PIVOT t ON c USING sum(d)"),
        ["a", "b"]
    );
    assert_eq!(
        tables("FROM (PIVOT a ON b) JOIN \"C d\" USING (x) WHERE y IN (SELECT z FROM e)"),
        ["a", "C d", "e"]
    );
    assert_eq!(
        tables("SELECT extract(year FROM x) FROM a WHERE b IS DISTINCT FROM c, d"),
        ["a"]
    );
    assert_eq!(
        tables("SELECT 1 FROM a JOIN b ON a.x = b.x, c ORDER BY d, e"),
        ["a", "b", "c"]
    );
}

#[test]
fn ctes_are_seen_where_the_engine_sees_them() {
    for (sql, expected) in [
        (
            "WITH sales AS (SELECT * FROM sales) PIVOT sales ON k USING sum(n)",
            "sales",
        ),
        (
            "WITH Sales AS (SELECT * FROM SALES) PIVOT \"sales\" ON k",
            "SALES",
        ),
        ("WITH a AS (FROM b), b AS (FROM a) PIVOT b ON k", "b"),
        ("WITH RECURSIVE a AS (FROM b UNION FROM a) PIVOT a ON k", "b"),
        ("WITH RECURSIVE a AS (FROM a) PIVOT a ON k", "a"),
        ("PIVOT (WITH a AS (FROM b) FROM a) ON k", "b"),
        ("FROM (PIVOT (WITH a AS (FROM b) FROM a) ON k), a", "b a"),
        (
            "WITH a AS (WITH b AS (FROM c) FROM b, a) PIVOT (FROM a, b) ON k",
            "c a b",
        ),
        ("WITH a AS (FROM x) PIVOT (FROM main.a, a) ON k", "x a"),
        ("WITH a AS (FROM x) FROM a; PIVOT a ON k", "x a"),
    ] {
        assert_eq!(tables(sql).join(" "), expected, "{sql}");
    }
}

#[test]
fn statements_of_other_forms_name_the_tables_that_they_read() {
    for (sql, expected) in [
        ("UNPIVOT a ON b INTO NAME c VALUE d", "a"),
        ("SUMMARIZE a", "a"),
        ("DESCRIBE TABLE a", "a"),
        ("SELECT * FROM (SUMMARIZE a), (DESCRIBE b)", "a b"),
        ("TABLE a UNION ALL TABLE b", "a b"),
        ("CREATE TABLE x AS TABLE a", "a"),
        ("INSERT INTO x SELECT * FROM a", "a"),
        ("COPY a (b, c) TO 'd.csv'", "a"),
        ("COPY (FROM a) TO 'd.csv'", "a"),
        ("COPY a FROM 'd.csv'", ""),
        ("MERGE INTO x USING a ON x.b = a.b WHEN MATCHED THEN DELETE", "a"),
        ("PIVOT a ON k USING sum(n)", "a"),
        ("SELECT * FROM b JOIN c USING (d)", "b c"),
        ("FROM o: a, p : b", "a b"),
    ] {
        assert_eq!(tables(sql).join(" "), expected, "{sql}");
    }
}

#[test]
fn files_are_found_where_a_tree_is_missing() {
    let found = analyse("PIVOT (FROM read_csv(['a.csv', 'b.csv'], header = true), 'c.parquet') ON x");
    assert_eq!(found.files, ["a.csv", "b.csv", "c.parquet"]);
    for (read, files) in [
        ("read_csv(\"data/d.csv\")", "data/d.csv"),
        ("read_csv(d.csv)", "d.csv"),
        ("read_csv([\"a.csv\", 'b.csv'])", "a.csv b.csv"),
        ("read_csv('a.csv'::VARCHAR, header = true)", "a.csv"),
        ("read_csv(['a.csv'::TEXT, 'b.csv']::VARCHAR[])", "a.csv b.csv"),
        ("\"a.csv\"", "a.csv"),
    ] {
        let found = analyse(&format!("PIVOT (FROM {read}) ON x"));
        assert_eq!(
            (found.files.join(" ").as_str(), found.untold.len()),
            (files, 0),
            "{read}"
        );
    }
    for read in [
        "read_csv('a' || b)",
        "read_csv(f('a'))",
        "read_csv(['a', b || 'c'])",
        "read_csv(current_date)",
    ] {
        let found = analyse(&format!("PIVOT (FROM {read}) ON x"));
        assert_eq!((found.files.len(), found.untold.len()), (0, 1), "{read}");
    }
}

#[test]
fn comments_and_blanks_are_no_meaning_and_tables_are_numbers() {
    let print = |sql| analyse(sql).fingerprint;
    assert_eq!(print("PIVOT a ON b"), print("PIVOT  other -- c\n ON b;"));
    assert_ne!(print("PIVOT a ON b"), print("PIVOT a ON c"));
}
