//! Builds after changes of a project's files.

use super::site::Site;

/// A table on a file, a view on it, a table on that.
const SHOP: &[(&str, &str)] = &[
    ("rill.yaml", ""),
    ("data/orders.csv", "customer,amount\n7,20\n8,5\n"),
    (
        "sources/orders.yaml",
        "type: source\nconnector: local_file\npath: data/orders.csv\n",
    ),
    (
        "models/paid.sql",
        "SELECT customer, amount FROM orders WHERE amount > 0\n",
    ),
    (
        "models/total.sql",
        "-- @materialize: true\nSELECT sum(amount)::INTEGER AS amount FROM paid\n",
    ),
];

const ALL: [&str; 3] = ["built orders", "built paid", "built total"];
const NOTHING: [&str; 0] = [];

async fn shop() -> Site {
    let mut shop = Site::new(SHOP);
    assert_eq!(shop.run().await.works, ALL);
    shop
}

#[tokio::test]
async fn an_unchanged_project_builds_nothing_and_opens_nothing() {
    let mut shop = shop().await;
    assert_eq!(shop.rows("select amount from total").await, ["25"]);
    let ran = shop.run().await;
    assert_eq!(ran.works, NOTHING);
    assert!(!ran.opened_engine);
}

#[tokio::test]
async fn comments_build_nothing() {
    let mut shop = shop().await;
    shop.write(
        "models/paid.sql",
        "-- why\nselect customer,\n amount from orders where amount > 0",
    );
    shop.write(
        "sources/orders.yaml",
        "# why\npath: data/orders.csv\nconnector: local_file\ntype: source\n",
    );
    let ran = shop.run().await;
    assert_eq!(ran.works, NOTHING);
    assert!(!ran.opened_engine);
}

#[tokio::test]
async fn an_edit_builds_it_and_what_reads_it() {
    let mut shop = shop().await;
    shop.write(
        "models/paid.sql",
        "SELECT customer, amount FROM orders WHERE amount > 10\n",
    );
    assert_eq!(shop.run().await.works, ["built paid", "built total"]);
    assert_eq!(shop.rows("select amount from total").await, ["20"]);
}

#[tokio::test]
async fn a_data_file_counts_by_its_content() {
    let mut shop = shop().await;
    shop.write("data/orders.csv", SHOP[1].1);
    assert_eq!(shop.run().await.works, NOTHING);
    shop.write("data/orders.csv", "customer,amount\n7,21\n");
    // The view between them is left as it is.
    assert_eq!(shop.run().await.works, ["built orders", "built total"]);
    assert_eq!(shop.rows("select amount from total").await, ["21"]);
}

#[tokio::test]
async fn a_renamed_source_is_renamed_and_no_table_is_built() {
    let mut shop = shop().await;
    shop.rename("sources/orders.yaml", "sources/sales.yaml");
    shop.write(
        "models/paid.sql",
        "SELECT customer, amount FROM sales WHERE amount > 0\n",
    );
    assert_eq!(shop.run().await.works, ["built paid"]);
    assert_eq!(shop.objects().await, "paid sales total");
    assert_eq!(shop.rows("select amount from total").await, ["25"]);
    assert_eq!(shop.run().await.works, NOTHING);
}

#[tokio::test]
async fn swapped_files_swap_tables_without_a_build() {
    let mut site = Site::new(&[
        ("rill.yaml", ""),
        ("models/a.sql", "-- @materialize: true\nselect 'first' as x"),
        ("models/b.sql", "-- @materialize: true\nselect 'second' as x"),
    ]);
    site.run().await;
    site.rename("models/a.sql", "models/c.tmp");
    site.rename("models/b.sql", "models/a.sql");
    site.rename("models/c.tmp", "models/b.sql");
    assert_eq!(site.run().await.works, NOTHING);
    assert_eq!(site.rows("select a.x, b.x from a, b").await, ["second|first"]);
    assert_eq!(site.objects().await, "a b");
}

#[tokio::test]
async fn a_deleted_file_drops_its_table() {
    let mut shop = shop().await;
    shop.remove("models/total.sql");
    let ran = shop.run().await;
    assert_eq!(ran.names(), "orders paid");
    assert_eq!(shop.objects().await, "orders paid");
}

#[tokio::test]
async fn a_lost_catalog_builds_nothing_and_drops_what_no_file_declares() {
    let mut shop = shop().await;
    shop.lose_catalog();
    shop.remove("models/total.sql");
    assert_eq!(shop.run().await.works, NOTHING);
    assert_eq!(shop.objects().await, "orders paid");
    let ran = shop.run().await;
    assert_eq!(ran.works, NOTHING);
    assert!(!ran.opened_engine);
}

#[tokio::test]
async fn a_lost_catalog_and_a_broken_manifest_drop_nothing() {
    let mut shop = shop().await;
    shop.lose_catalog();
    shop.write("rill.yaml", "{");
    assert_eq!(shop.run().await.works, NOTHING);
    assert_eq!(shop.objects().await, "orders paid total");
    shop.write("rill.yaml", "");
    assert_eq!(shop.run().await.works, NOTHING);
}

#[tokio::test]
async fn a_table_dropped_by_hand_is_built_again() {
    let mut shop = shop().await;
    shop.by_hand("drop table total");
    assert_eq!(shop.run().await.works, ["built total"]);
}

#[tokio::test]
async fn a_variable_builds_what_reads_it() {
    let mut site = Site::new(&[
        ("rill.yaml", "env:\n  limit: 1\n"),
        (
            "models/a.sql",
            "-- @materialize: true\nselect {{ .env.limit }} as x",
        ),
        ("models/b.sql", "-- @materialize: true\nselect 1 as x"),
    ]);
    assert_eq!(site.run().await.works, ["built a", "built b"]);
    site.set_variable("limit", "5");
    assert_eq!(site.run().await.works, ["built a"]);
    assert_eq!(site.rows("select x from a").await, ["5"]);
}
