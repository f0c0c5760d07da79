//! Costs of changes, and their effects on tables, one kind of change at a time.

use std::fs;

use serde_json::json;

use crate::sandbox::Sandbox;

/// A small shop: a source, a view on it, two tables, a view on one of them.
const SHOP: &[(&str, &str)] = &[
    ("watershed.yaml", ""),
    (
        "data/orders.csv",
        "day,customer,amount\n2024-03-01,7,20\n2024-03-01,8,5\n2024-03-02,7,12\n",
    ),
    (
        "sources/orders.yaml",
        "type: source\nconnector: local_file\npath: data/orders.csv\n",
    ),
    (
        "models/paid.sql",
        "SELECT day, customer, amount FROM orders WHERE amount > 0\n",
    ),
    (
        "models/daily.sql",
        "-- @materialize: true\nSELECT day, sum(amount)::INTEGER AS amount FROM paid GROUP BY day\n",
    ),
    (
        "models/customers.sql",
        "-- @materialize: true\nSELECT customer, count(*)::INTEGER AS orders FROM paid GROUP BY 1\n",
    ),
    (
        "models/best_day.sql",
        "SELECT day FROM daily ORDER BY amount DESC LIMIT 1\n",
    ),
];

const ALL_BUILT: &str = "best_day:built customers:built daily:built orders:built paid:built";

/// A shop that was built once.
fn shop() -> Sandbox {
    let shop = Sandbox::with(SHOP);
    assert_eq!(shop.done(0), ALL_BUILT);
    shop
}

#[test]
fn an_unchanged_project_costs_nothing_and_leaves_the_engine_alone() {
    let shop = shop();
    let before = fs::metadata(shop.engine_file())
        .and_then(|file| file.modified())
        .expect("the file is there");
    assert_eq!(shop.done(0), "");
    let after = fs::metadata(shop.engine_file())
        .and_then(|file| file.modified())
        .expect("the file is there");
    assert_eq!(before, after);
}

#[test]
fn comments_layout_and_the_order_of_keys_are_no_change() {
    let shop = shop();
    shop.write(
        "models/paid.sql",
        "-- Paid orders.\nselect day,\n  customer, /* who */ amount\nfrom ORDERS where amount > 0",
    );
    shop.write(
        "sources/orders.yaml",
        "# Orders.\npath: 'data/orders.csv'\nconnector: local_file\ntype: source\n",
    );
    assert_eq!(shop.done(0), "");
}

#[test]
fn an_edit_in_the_middle_builds_it_and_what_reads_it() {
    let shop = shop();
    shop.edit("models/daily.sql", "sum(amount)", "sum(amount * 2)");
    assert_eq!(shop.done(0), "daily:built");
    assert_eq!(shop.query("SELECT max(amount) FROM daily")["rows"], json!([[50]]));
    // The view over it is left as it is, unless its columns may be others.
    assert_eq!(
        shop.query("SELECT count(*)::INTEGER FROM best_day")["rows"],
        json!([[1]])
    );
    shop.edit("models/daily.sql", "::INTEGER AS amount", "::DOUBLE AS amount");
    assert_eq!(shop.done(0), "best_day:built daily:built");
}

#[test]
fn a_table_that_was_dropped_by_hand_is_built_again() {
    let shop = shop();
    shop.engine().run("DROP TABLE daily");
    assert!(shop.done(0).contains("daily:built"));
    assert_eq!(
        shop.query("SELECT count(*)::INTEGER FROM daily")["rows"],
        json!([[2]])
    );
    assert_eq!(shop.done(0), "");
}

#[test]
fn a_data_file_counts_by_its_content() {
    let shop = shop();
    let csv = SHOP[1].1;
    shop.write("data/orders.csv", csv);
    assert_eq!(shop.done(0), "", "touched");
    shop.write("data/orders.csv", &format!("{csv}2024-03-03,9,80\n"));
    assert_eq!(
        shop.done(0),
        "customers:built daily:built orders:built",
        "changed"
    );
    assert_eq!(
        shop.query("SELECT day::VARCHAR FROM best_day")["rows"],
        json!([["2024-03-03"]])
    );
}

#[test]
fn a_file_that_begins_to_match_a_pattern_is_read() {
    let shop = shop();
    shop.edit("sources/orders.yaml", "orders.csv", "orders*.csv");
    assert_eq!(shop.run(0).get("orders").map(String::as_str), Some("built"));
    shop.write("data/orders_april.csv", "day,customer,amount\n2024-04-01,9,80\n");
    assert_eq!(shop.run(0).get("orders").map(String::as_str), Some("built"));
    assert_eq!(
        shop.query("SELECT count(*)::INTEGER FROM orders")["rows"],
        json!([[4]])
    );
    shop.remove("data/orders_april.csv");
    assert_eq!(shop.run(0).get("orders").map(String::as_str), Some("restored"));
    assert_eq!(
        shop.query("SELECT count(*)::INTEGER FROM orders")["rows"],
        json!([[3]])
    );
}

#[test]
fn a_deleted_file_drops_its_table_and_nothing_else() {
    let shop = shop();
    shop.remove("models/customers.sql");
    shop.run(0);
    assert_eq!(tables(&shop), "best_day daily orders paid");
    assert_eq!(shop.done(0), "");
}

#[test]
fn a_renamed_file_renames_its_table() {
    let shop = shop();
    shop.rename("models/customers.sql", "models/People.sql");
    assert_eq!(shop.done(0), "People:renamed");
    assert_eq!(tables(&shop), "People best_day daily orders paid");
    shop.rename("models/People.sql", "models/people.sql");
    shop.run(0);
    assert_eq!(tables(&shop), "best_day daily orders paid people");
    assert_eq!(shop.done(0), "");
}

#[test]
fn a_rename_in_the_middle_rebuilds_no_table() {
    let shop = shop();
    shop.rename("models/paid.sql", "models/settled.sql");
    shop.edit("models/daily.sql", "FROM paid", "FROM settled");
    shop.edit("models/customers.sql", "FROM paid", "FROM settled");
    let done = shop.run(0);
    assert!(
        !done.contains_key("daily") && !done.contains_key("customers"),
        "{done:?}"
    );
    assert_eq!(tables(&shop), "best_day customers daily orders settled");
    assert_eq!(shop.done(0), "");
}

#[test]
fn two_models_that_swap_their_names_keep_their_rows() {
    let shop = shop();
    shop.rename("models/daily.sql", "models/x");
    shop.rename("models/customers.sql", "models/daily.sql");
    shop.rename("models/x", "models/customers.sql");
    shop.edit("models/best_day.sql", "daily", "customers");
    shop.run(0);
    assert_eq!(
        shop.query("SELECT sum(orders)::INTEGER FROM daily")["rows"],
        json!([[3]])
    );
    assert_eq!(
        shop.query("SELECT max(amount) FROM customers")["rows"],
        json!([[25]])
    );
    assert_eq!(
        shop.query("SELECT day::VARCHAR FROM best_day")["rows"],
        json!([["2024-03-01"]])
    );
    assert_eq!(shop.done(0), "");
}

#[test]
fn a_view_becomes_a_table_and_a_view_again() {
    let shop = shop();
    let view = SHOP[3].1;
    for (text, kind) in [
        (format!("-- @materialize: true\n{view}"), "BASE TABLE"),
        (view.to_owned(), "VIEW"),
    ] {
        shop.write("models/paid.sql", &text);
        assert_eq!(shop.run(0).get("paid").map(String::as_str), Some("built"));
        let sql = "SELECT table_type FROM information_schema.tables WHERE table_name = 'paid'";
        assert_eq!(shop.engine().lines(sql), [kind]);
        assert_eq!(shop.done(0), "");
    }
}

#[test]
fn a_half_typed_model_keeps_its_table_until_it_is_mended() {
    let shop = shop();
    let good = SHOP[4].1;
    shop.write("models/daily.sql", "-- @materialize: true\nSELECT day, sum(amo");
    assert_eq!(shop.done(1), "");
    assert_eq!(
        shop.query("SELECT count(*)::INTEGER FROM daily")["rows"],
        json!([[2]]),
        "the last good table"
    );
    shop.write("models/daily.sql", good);
    assert_eq!(shop.done(0), "", "the same as before");
    shop.write("models/daily.sql", "-- @materialize: true\nSELECT day, sum(amo");
    shop.run(1);
    shop.write(
        "models/daily.sql",
        &good.replace("sum(amount)::INTEGER", "max(amount)"),
    );
    assert_eq!(shop.done(0), "best_day:built daily:built");
}

#[test]
fn a_table_that_a_person_made_survives_every_model_of_its_name() {
    let shop = shop();
    shop.engine().run("CREATE TABLE mine AS SELECT 42 AS answer");
    let is_there = |when| {
        assert_eq!(
            shop.query("SELECT answer FROM mine")["rows"],
            json!([[42]]),
            "{when}"
        )
    };
    shop.write("models/mine.sql", "SELECT 1 AS one");
    let said = shop.call(&["run"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("mine"), "{}", said.stderr);
    is_there("created");
    shop.write("models/mine.sql", "-- @materialize: true\nSELECT 2 AS two");
    shop.run(1);
    is_there("edited");
    shop.rename("models/mine.sql", "models/yours.sql");
    shop.run(0);
    is_there("renamed away");
    shop.rename("models/yours.sql", "models/mine.sql");
    shop.run(1);
    is_there("renamed onto");
    shop.remove("models/mine.sql");
    shop.run(0);
    is_there("deleted");
}

#[test]
fn nothing_is_deleted_because_something_cannot_be_read() {
    let shop = shop();
    let everything = tables(&shop);
    shop.remove("watershed.yaml");
    let said = shop.call(&["run", "."]);
    assert_ne!(said.code, Some(0), "no manifest: {}", said.stderr);
    assert_eq!(tables(&shop), everything);
    shop.write("watershed.yaml", "display_name: [");
    shop.remove("models/customers.sql");
    assert_eq!(shop.call(&["run"]).code, Some(1), "a broken manifest");
    assert_eq!(tables(&shop), everything);
    shop.write("watershed.yaml", "");
    shop.run(0);
    assert_eq!(tables(&shop), "best_day daily orders paid");
}

#[test]
fn odd_names_work_or_are_refused_in_words() {
    let shop = shop();
    let names = [
        "two words",
        "select",
        "Größe",
        "日本",
        "it's",
        "say \"hi\"",
        "x; drop table daily",
        "-dash",
        "1st",
    ];
    for name in names {
        shop.write(
            &format!("models/{name}.sql"),
            "-- @materialize: true\nSELECT 1 AS one",
        );
    }
    let said = shop.call(&["run", "--json"]);
    let document = said.json();
    for name in names {
        let path = format!("models/{name}.sql");
        let of_path = |list: &str, key: &str| {
            let all = document[list].as_array().into_iter().flatten();
            all.filter(|entry| entry[key].to_string().contains(&json!(path).to_string()))
                .count()
        };
        let refused = of_path("diagnostics", "path") > 0;
        if !refused {
            let quoted = name.replace('"', "\"\"");
            let rows = shop.query(&format!("SELECT one FROM \"{quoted}\""));
            assert_eq!(rows["rows"], json!([[1]]), "{name}");
            assert_eq!(of_path("resources", "paths"), 1, "{name}");
        }
    }
    assert_eq!(
        shop.query("SELECT count(*)::INTEGER FROM daily")["rows"],
        json!([[2]])
    );
    assert_eq!(shop.done(said.code.unwrap_or_default()), "");
}

/// The names of the tables and views in the engine, ordered, upper case first.
fn tables(shop: &Sandbox) -> String {
    let sql = "SELECT coalesce(string_agg(table_name, ' ' ORDER BY table_name), '')
               FROM information_schema.tables
               WHERE table_schema = 'main' AND NOT starts_with(table_name, '_watershed_trash_')";
    shop.engine().lines(sql).remove(0)
}
