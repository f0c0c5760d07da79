//! Tests of the guard with the engine's own parser.

use std::collections::BTreeSet;

use watershed_drivers::duckdb::Parser;
use watershed_drivers::olap::{Parser as _, Vocabulary};

use super::*;

struct Bench {
    parser: Parser,
    vocabulary: Vocabulary,
    outputs: BTreeSet<String>,
    macros: BTreeSet<String>,
}

impl Bench {
    fn new() -> Self {
        let parser = Parser::new();
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Self {
            vocabulary: parser.vocabulary().unwrap(),
            parser,
            outputs: names(&["orders", "visits", "odd name", "late.csv"]),
            macros: names(&["mine", "upper", "user"]),
        }
    }

    fn judge(&self, sql: &str) -> Result<(), Refused> {
        let document = self.parser.documents(&[sql]).unwrap().remove(0);
        let allowed = Allowed {
            outputs: &self.outputs,
            functions: &self.vocabulary.functions,
            macros: &self.macros,
            types: &self.vocabulary.types,
            database: "shop",
        };
        guard(&Tree::from_document(document), allowed)
    }
}

#[test]
fn s_api24_what_reads_outputs_alone_passes() {
    let bench = Bench::new();
    for sql in [
        "SELECT 1",
        "FROM orders",
        "TABLE orders",
        "VALUES (1), (2)",
        "SELECT * FROM main.orders JOIN shop.main.visits USING (id)",
        "SELECT * FROM ORDERS, \"odd name\" o(x, y)",
        "WITH a AS (SELECT * FROM orders), b AS (FROM a) SELECT * FROM b, a",
        "WITH orders AS (SELECT * FROM orders) SELECT * FROM orders",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) SELECT * FROM t",
        "WITH RECURSIVE t(n) USING KEY (n) AS (SELECT 1 UNION SELECT n + 1 FROM t WHERE n < 9) SELECT * FROM t",
        "SELECT * EXCLUDE (a) REPLACE (b + 1 AS b) RENAME (c AS d) FROM orders",
        "SELECT COLUMNS(c -> c LIKE 'a%'), COLUMNS('x'), coalesce(*COLUMNS(*)) FROM orders",
        "SELECT list_transform([1, 2], x -> x + 1), [x + 1 FOR x IN [1] IF x > 0], list_reduce([1], lambda x, y: x + y)",
        "SELECT sum(a) FILTER (WHERE a > 1), string_agg(b, ',' ORDER BY a DESC), count(DISTINCT a), count(*) FROM orders",
        "SELECT row_number() OVER (PARTITION BY a ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM orders",
        "SELECT lag(a, 1, 2 IGNORE NULLS) OVER w, rank() OVER w FROM orders WINDOW w AS (ORDER BY a)",
        "SELECT DISTINCT ON (a) a FROM orders GROUP BY GROUPING SETS ((a), ()) LIMIT 10% OFFSET 3",
        "SELECT a, grouping(a) FROM orders GROUP BY ROLLUP (a) HAVING a > 1 QUALIFY row_number() OVER () = 1",
        "SELECT * FROM orders ORDER BY (SELECT max(a) FROM visits) LIMIT (SELECT count(*) FROM visits)",
        "SELECT a FROM orders UNION ALL BY NAME SELECT 1 EXCEPT SELECT 2 INTERSECT SELECT 3",
        "SELECT * FROM orders POSITIONAL JOIN visits ASOF JOIN visits v ON v.a > orders.a",
        "SELECT * FROM orders SEMI JOIN visits USING (a), LATERAL (SELECT orders.a)",
        "SELECT * FROM (PIVOT orders ON a IN (1, 2) USING sum(b) GROUP BY c)",
        "SELECT * FROM orders UNPIVOT INCLUDE NULLS (v FOR n IN (a, b AS 'z'))",
        "SELECT * FROM orders TABLESAMPLE reservoir(10 ROWS) REPEATABLE (3)",
        "SELECT * FROM orders USING SAMPLE 10%",
        "SELECT * FROM range(3) WITH ORDINALITY, generate_series(1, 2), unnest([1, 2])",
        "SELECT unnest({'a': 1}, recursive := true), struct_pack(a := 1), MAP {'a': 1}, [1, 2][1:2]",
        "DESCRIBE orders",
        "SUMMARIZE orders",
        "SUMMARIZE SELECT * FROM orders",
        "SHOW orders",
        "FROM (DESCRIBE orders)",
        "SELECT $1, $2, a IN (SELECT 1), a = ANY (SELECT 2), EXISTS (FROM visits), ARRAY(SELECT 3) FROM orders",
        "SELECT $name",
        "SELECT now(), today(), random(), uuid(), gen_random_uuid(), current_date, current_timestamp",
        "SELECT nullif(1, 2), list_append([1], 2), split_part('a', 'b', 1), date_add(DATE '2020-01-01', INTERVAL 1 DAY)",
        "SELECT a::DECIMAL(3, 1), a::INT[], a::STRUCT(x INT, y VARCHAR[]), a::MAP(INT, INT), a::UNION(n INT), TRY_CAST(a AS JSON)",
        "SELECT a COLLATE nocase, EXTRACT(year FROM a), a AT TIME ZONE 'UTC', trim(BOTH 'x' FROM a), position('a' IN b) FROM orders",
        "SELECT a.lower(), a.b.lower(), system.main.lower(a), (o).a, o FROM orders o",
        "SELECT a::ENUM('x', 'y'), 'read_csv(''a'')', \"read_text\" FROM orders",
        "SELECT CASE a WHEN 1 THEN 2 ELSE 3 END, a BETWEEN 1 AND 2, a IS NOT DISTINCT FROM b, TRY(a) FROM orders",
        "SELECT a, #1 FROM orders GROUP BY ALL ORDER BY ALL",
    ] {
        assert_eq!(bench.judge(sql), Ok(()), "{sql}");
    }
}

#[test]
fn s_api24_what_reads_or_writes_anything_else_is_refused() {
    let bench = Bench::new();
    let whole = [
        "SELECT * FROM strangers",
        "SELECT * FROM other.orders",
        "SELECT * FROM other.main.orders",
        "SELECT * FROM shop.other.orders",
        "SELECT * FROM 'secret.csv'",
        "SELECT * FROM \"secret.csv\"",
        "SELECT * FROM 'late.csv'",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM 'https://example.org/x'",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM ReAd_CsV('a.csv')",
        "SELECT * FROM glob('*')",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM query_table('strangers')",
        "SELECT * FROM histogram('strangers', 'a')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_secrets",
        "SELECT * FROM pragma_database_size()",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM pg_catalog.pg_class",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM mine()",
        "SELECT * FROM which_secret('a', 'b')",
        "SELECT * FROM json_execute_serialized_sql('{}')",
        "SELECT write_log('x')",
        "SELECT current_setting('threads')",
        "SELECT main.current_setting('threads')",
        "SELECT 'threads'.current_setting()",
        "SELECT getvariable('x')",
        "SELECT getenv('HOME')",
        "SELECT sleep_ms(1)",
        "SELECT pg_sleep(1)",
        "SELECT nextval('s')",
        "SELECT currval('s')",
        "SELECT json_serialize_plan('SELECT 1')",
        "SELECT current_query()",
        "SELECT txid_current()",
        "SELECT pg_get_viewdef(1)",
        "SELECT get_block_size('shop')",
        "SELECT format_type(1, 2)",
        "SELECT mine(1)",
        "SELECT upper('a')",
        "SELECT user",
        "SELECT stats(1)",
        "SELECT a::mood FROM orders",
        "SELECT a::other.mood FROM orders",
        "SELECT a::STRUCT(x mood) FROM orders",
        "SELECT * FROM orders AT (VERSION => 3)",
        "SHOW TABLES",
        "SHOW ALL TABLES",
        "SHOW DATABASES",
        "SHOW TABLES FROM other",
        "SHOW variables",
        "SHOW",
        "DESCRIBE strangers",
        "SUMMARIZE 'secret.csv'",
        "FROM (SHOW TABLES)",
        "WITH RECURSIVE \"secret.csv\" AS (FROM \"secret.csv\" UNION ALL FROM \"secret.csv\") FROM \"secret.csv\"",
        "WITH RECURSIVE strangers AS (FROM strangers UNION ALL FROM strangers) FROM strangers",
        "WITH a AS (FROM strangers), strangers AS (SELECT 1) SELECT * FROM a",
        "SELECT * FROM (WITH strangers AS (SELECT 1) FROM strangers), strangers",
        "WITH \"\u{212a}\" AS (SELECT 1) SELECT * FROM k",
        "WITH strangers AS (SELECT 1) SELECT * FROM main.strangers",
        "SELECT 1; SELECT 2",
        "",
        "EXPLAIN SELECT 1",
        "EXPLAIN ANALYZE SELECT 1",
        "CREATE TABLE x AS SELECT 1",
        "INSERT INTO orders VALUES (1)",
        "UPDATE orders SET a = 1",
        "DELETE FROM orders",
        "DROP TABLE orders",
        "ATTACH 'x.db'",
        "COPY orders TO 'x.csv'",
        "COPY (SELECT 1) TO 'x.csv'",
        "EXPORT DATABASE 'x'",
        "IMPORT DATABASE 'x'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "PRAGMA database_list",
        "CALL duckdb_settings()",
        "CHECKPOINT",
        "BEGIN",
        "USE other",
        "VACUUM",
        "EXECUTE x",
        "PREPARE x AS SELECT 1",
        "PIVOT orders ON a USING sum(b)",
    ];
    for sql in whole {
        assert!(bench.judge(sql).is_err(), "{sql}");
    }
}

#[test]
fn s_api24_what_is_forbidden_stands_nowhere_in_a_statement() {
    let bench = Bench::new();
    let expressions = [
        "write_log('x')",
        "(SELECT 1 FROM strangers)",
        "mine(1)",
        "(FROM 'secret.csv')",
        "(1)::mood",
    ];
    let places = [
        "SELECT {}",
        "SELECT a FROM orders WHERE {} = 1",
        "SELECT a FROM orders GROUP BY {}",
        "SELECT count(*) FROM orders HAVING {} = 1",
        "SELECT a FROM orders QUALIFY row_number() OVER (ORDER BY {}) = 1",
        "SELECT a FROM orders ORDER BY {}",
        "SELECT a FROM orders LIMIT {}",
        "SELECT a FROM orders OFFSET {}",
        "SELECT DISTINCT ON ({}) a FROM orders",
        "SELECT CASE {} WHEN 1 THEN 2 END",
        "SELECT CASE WHEN true THEN {} ELSE 1 END",
        "SELECT CASE WHEN true THEN 1 ELSE {} END",
        "SELECT lower({})",
        "SELECT lower(lower(lower({})))",
        "SELECT [1, {}]",
        "SELECT {'a': {}}",
        "SELECT MAP {1: {}}",
        "SELECT [1][{}]",
        "SELECT a BETWEEN 1 AND {} FROM orders",
        "SELECT a IN (1, {}) FROM orders",
        "SELECT CAST({} AS VARCHAR)",
        "SELECT {} COLLATE nocase",
        "SELECT list_transform([1], x -> {})",
        "SELECT COLUMNS(c -> {} = 1) FROM orders",
        "SELECT * REPLACE ({} AS a) FROM orders",
        "SELECT sum(a) FILTER (WHERE {} = 1) FROM orders",
        "SELECT string_agg(a, ',' ORDER BY {}) FROM orders",
        "SELECT sum(a) OVER (PARTITION BY {}) FROM orders",
        "SELECT sum(a) OVER (ORDER BY a ROWS BETWEEN {} PRECEDING AND CURRENT ROW) FROM orders",
        "SELECT lag(a, 1, {}) OVER () FROM orders",
        "SELECT * FROM orders JOIN visits ON {} = 1",
        "SELECT * FROM range({})",
        "SELECT * FROM unnest([{}])",
        "SELECT * FROM (VALUES ({}))",
        "SELECT * FROM (SELECT {})",
        "SELECT * FROM orders, LATERAL (SELECT {})",
        "SELECT (SELECT (SELECT {}))",
        "SELECT EXISTS (SELECT {})",
        "SELECT a = ANY (SELECT {}) FROM orders",
        "SELECT 1 UNION ALL SELECT {}",
        "SELECT 1 EXCEPT SELECT {}",
        "WITH a AS (SELECT {}) SELECT 1",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT {} FROM t) SELECT * FROM t",
        "SELECT * FROM (PIVOT orders ON a IN (1) USING sum({}))",
        "SELECT * FROM (PIVOT (SELECT {} AS a) ON a IN (1) USING sum(b))",
        "DESCRIBE SELECT {}",
        "SUMMARIZE SELECT {}",
        "FROM (DESCRIBE SELECT {})",
        "SELECT TRY({})",
        "SELECT struct_pack(a := {})",
    ];
    for place in places {
        let fine = place.replacen("{}", "1", 1);
        for expression in expressions {
            // A brace of a struct is no place.
            let sql = match place.rfind("{}") {
                Some(at) => format!("{}{expression}{}", &place[..at], &place[at + 2..]),
                None => fine.clone(),
            };
            assert!(bench.judge(&sql).is_err(), "{sql}");
        }
    }
}

#[test]
fn s_api24_each_function_that_is_not_known_as_pure_is_refused() {
    let bench = Bench::new();
    for function in [
        "current_setting",
        "getvariable",
        "getenv",
        "sleep_ms",
        "pg_sleep",
        "write_log",
        "nextval",
        "currval",
        "current_query",
        "current_connection_id",
        "current_transaction_id",
        "setseed",
        "error",
        "stats",
        "json_serialize_plan",
        "pg_get_viewdef",
        "pg_get_constraintdef",
        "get_block_size",
        "format_type",
        "current_schemas",
        "in_search_path",
        "txid_current",
        "read_csv",
        "glob",
        "query",
        "query_table",
    ] {
        assert!(!bench.vocabulary.functions.contains(function), "{function}");
    }
    for function in [
        "lower",
        "sum",
        "row_number",
        "list_append",
        "nullif",
        "now",
        "uuid",
        "unnest",
        "lag",
        "grouping",
    ] {
        assert!(bench.vocabulary.functions.contains(function), "{function}");
    }
    assert!(bench.vocabulary.functions.len() > 500);
}

#[test]
fn s_api24_a_refusal_has_the_first_forbidden_part_and_its_place() {
    let bench = Bench::new();
    let refusal = bench
        .judge("SELECT a,\n  write_log('x') FROM strangers")
        .unwrap_err();
    assert_eq!(refusal.what, "the function `write_log`");
    assert_eq!(refusal.at, Some(12));
    let refusal = bench.judge("SELECT 'é', a FROM strangers").unwrap_err();
    assert_eq!(refusal.at, Some(20));
    let hint = |sql: &str| {
        bench
            .judge(sql)
            .unwrap_err()
            .hint
            .unwrap_or_default()
            .into_owned()
    };
    assert!(hint("SELECT * FROM Ordres").starts_with("did you mean `orders`?"));
    for far in ["SELECT * FROM nowhere", "SELECT * FROM other.main.order_"] {
        assert!(hint(far).starts_with("`SHOW TABLES`"), "{far}");
    }
}

#[test]
fn s_api24_an_unknown_part_of_a_tree_is_refused() {
    let bench = Bench::new();
    let document = bench
        .parser
        .documents(&["SELECT 1 FROM orders"])
        .unwrap()
        .remove(0);
    let judge = |document: String| {
        let allowed = Allowed {
            outputs: &bench.outputs,
            functions: &bench.vocabulary.functions,
            macros: &bench.macros,
            types: &bench.vocabulary.types,
            database: "shop",
        };
        guard(&Tree::from_document(document), allowed)
    };
    assert_eq!(judge(document.clone()), Ok(()));
    for (known, unknown) in [
        ("\"qualify\":null", "\"qualify\":null,\"new_clause\":{}"),
        ("BASE_TABLE", "NEW_TABLE"),
        ("SELECT_NODE", "NEW_NODE"),
        ("\"CONSTANT\"", "\"NEW_CLASS\""),
        ("\"at_clause\":null", "\"at_clause\":{\"unit\":\"VERSION\"}"),
        ("\"sample\":null", "\"sample\":{\"query\":{}}"),
    ] {
        let changed = document.replacen(known, unknown, 1);
        assert_ne!(changed, document, "{known}");
        assert!(judge(changed).is_err(), "{unknown}");
    }
    let deep = format!(
        "SELECT {}1{}",
        "(".repeat(200) + &"lower(".repeat(300),
        ")".repeat(500)
    );
    assert!(bench.judge(&deep).is_err());
}
