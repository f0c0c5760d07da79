//! Tests of S1 (graphs are stored and compared) and S13 (graphs and transitions as pictures and data).

use serde_json::{Value as Json, json};
use watershed_stategraph::{Dependency, Diagram, Graph, Item, ItemChange, Operator, Predicate};

use crate::worlds::{Drawing, draw, r, refs, rng, types};

fn graphs() -> (Graph<Json>, Graph<Json>) {
    let mut current = Graph::new("shop");
    current.add_group("tables", "what is stored");
    current
        .insert_at("tables", Item::new(r("t/orders"), json!({"v": 1})))
        .unwrap();
    current
        .insert(Item::external(r("e/disk"), json!({"v": 1})))
        .unwrap();
    let mut intended = Graph::new("shop");
    let up = Predicate::field("v", Operator::Ge, json!(2));
    let orders = Item::new(r("t/orders"), json!({"v": 2})).needs(Dependency::on(r("e/disk")).when(up));
    intended.insert_at("tables", orders).unwrap();
    let view = Item::new(r("t/view"), json!({"v": 1}));
    intended
        .insert_at("tables/views", view.needs(Dependency::on(r("t/lost"))))
        .unwrap();
    (current, intended)
}

#[test]
fn s13_dot_has_clusters_red_edges_and_dashed_targets() {
    let (current, intended) = graphs();
    let dot = Diagram::transition(&current, &intended, &types()).dot();
    assert!(dot.contains("subgraph \"cluster_tables\""), "{dot}");
    assert!(dot.contains("label=\"tables: what is stored\""), "{dot}");
    assert!(
        dot.contains("\"t/orders\" -> \"e/disk\" [color=red, label=\"v >= 2\"]"),
        "{dot}"
    );
    assert!(dot.contains("style=dashed"), "{dot}");
}

#[test]
fn s13_mermaid_numbers_items_and_marks_edges() {
    let (current, intended) = graphs();
    let mermaid = Diagram::transition(&current, &intended, &types()).mermaid();
    assert!(mermaid.starts_with("flowchart LR\n"), "{mermaid}");
    assert!(mermaid.contains("linkStyle 0,1 stroke:red"), "{mermaid}");
    assert!(mermaid.contains("subgraph g_tables_views"), "{mermaid}");
}

#[test]
fn s13_json_and_text_say_what_will_happen() {
    let (current, intended) = graphs();
    let picture = Diagram::transition(&current, &intended, &types());
    let looks: Vec<_> = picture.json().items.into_iter().map(|item| item.look).collect();
    assert_eq!(looks, ["external", "missing", "to modify", "to create"]);
    let expected = "shop\n    e/disk (created)\n  ? t/lost (missing)\n  tables/\n    ~ t/orders (created)\n        \
                    needs e/disk (v >= 2), unsatisfied\n    views/\n      + t/view (to create)\n          \
                    needs t/lost, unsatisfied\n";
    assert_eq!(picture.text(), expected);
    assert!(
        Diagram::from_graph(&current, &types())
            .text()
            .contains("t/orders (created)")
    );
}

#[test]
fn s1_a_graph_survives_storing_and_equal_graphs_have_equal_bytes() {
    for seed in 0..200 {
        let mut rng = rng(seed);
        let drawing = Drawing {
            items: 12,
            features: true,
        };
        let refs = refs(&mut rng, &drawing);
        let graph = draw(&mut rng, &refs, &drawing);
        let stored = serde_json::to_string(&graph).unwrap();
        let loaded: Graph<Json> = serde_json::from_str(&stored).unwrap();
        assert_eq!(loaded, graph);
        assert_eq!(serde_json::to_string(&loaded).unwrap(), stored);
        assert_eq!(loaded.fingerprint(), graph.fingerprint());
        assert!(loaded.diff(&graph).is_empty());
    }
}

#[test]
fn a_difference_names_values_dependencies_and_moves() {
    let (current, intended) = graphs();
    let changes = current.diff(&intended);
    assert_eq!(
        changes.to_string(),
        "- e/disk\n~ t/orders: value, dependencies\n+ t/view\n"
    );
    let mut moved = current.clone();
    moved.move_to(&r("t/orders"), "archive").unwrap();
    let change = ItemChange::Changed {
        value: false,
        needs: false,
        moved_to: Some("archive".into()),
    };
    assert_eq!(current.diff(&moved).items, [(r("t/orders"), change)]);
}

#[test]
fn a_group_and_an_item_are_graphs_too() {
    let (_, intended) = graphs();
    assert_eq!(intended.subgraph("tables").len(), 2);
    assert_eq!(intended.subgraph("tables/views").len(), 1);
    assert_eq!(intended.item_graph(&r("t/view")).len(), 1);
}
