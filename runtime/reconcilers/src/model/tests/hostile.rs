//! Values that no author wrote, in every place where a model's templates put them into SQL.

use std::collections::BTreeMap;

use watershed_compilers::Scope;
use watershed_dialect::{ENGINE, Quoting as _};
use watershed_proto::{
    DataResolver, IncrementalOutput, IncrementalStrategy, MapValue, ModelSpec, SqlSource, Value,
};

use super::world::{World, table};
use crate::model::{hooks, partitions, source, state, statement};

/// Pieces of which values are made that end a text, a statement, a comment or a template.
const PIECES: [&str; 22] = [
    "'",
    "''",
    "\"",
    "\\",
    "\\'",
    "$$",
    "$q$",
    "--",
    "/*",
    "*/",
    ";",
    "\n",
    "\t",
    "{{",
    "}}",
    "{{ .partition.x }}",
    "é",
    "\u{2019}",
    "\u{202E}",
    ") UNION ALL SELECT 666 --",
    " OR TRUE ",
    "%",
];

/// Returns values of up to five pieces, each time the same.
fn hostile(count: usize) -> Vec<String> {
    let mut seed = 0x9E37_79B9_u64;
    let mut next = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let mut values: Vec<String> = PIECES.iter().map(|piece| format!("x{piece}")).collect();
    values.extend((values.len()..count).map(|number| {
        let pieces: String = (0..=next(4)).map(|_| PIECES[next(PIECES.len())]).collect();
        // The number keeps them apart.
        format!("{pieces}{number}")
    }));
    values
}

/// A statement that yields the values as `x`.
fn rows_of(values: &[String]) -> String {
    let rows: Vec<String> = values
        .iter()
        .map(|value| format!("({})", ENGINE.text(value)))
        .collect();
    format!("select x from (values {}) as v(x)", rows.join(", "))
}

fn sql(text: &str) -> SqlSource {
    SqlSource {
        text: text.into(),
        templated: true,
        ..SqlSource::default()
    }
}

fn properties<const N: usize>(all: [(&str, Value); N]) -> MapValue {
    let fields = all.map(|(name, value)| (name.to_owned(), value));
    MapValue {
        fields: fields.into(),
    }
}

/// A way from a template to the SQL that is sent.
type Place = (&'static str, fn(&ModelSpec, &Scope) -> String);

/// The places of a model whose templates see its partition and its state, with `TEMPLATE` in each.
fn places(template: &str) -> (ModelSpec, [Place; 8]) {
    let resolver = |resolver: &str| DataResolver {
        resolver: resolver.into(),
        properties: Some(properties([("sql", template.into())])),
    };
    let option = properties([("filename", template.into())]).fields;
    let spec = ModelSpec {
        input_connector: "duckdb".into(),
        sql: Some(sql(template)),
        incremental_state: Some(resolver("sql")),
        partitions: Some(resolver("sql")),
        init_queries: vec![sql(template)],
        pre_exec: vec![sql(template)],
        post_exec: vec![sql(template)],
        output_properties: Some(properties([("order_by", template.into())])),
        input_properties: Some(properties([
            ("path", "x.csv".into()),
            ("duckdb", Value::from(option)),
        ])),
        ..ModelSpec::default()
    };
    let places: [Place; 8] = [
        ("the statement", |spec, scope| {
            statement::sql_in(spec, scope, &[""; 0]).expect("rendered")
        }),
        ("the state", |spec, scope| {
            state::query(spec, scope).expect("rendered").expect("a state").sql
        }),
        (
            "the list of partitions",
            |spec, scope| match partitions::Source::from_spec(spec, scope) {
                Ok(partitions::Source::Query(sql)) => sql,
                _ => panic!("partitions are listed by a query"),
            },
        ),
        ("init_queries", |spec, scope| {
            hooks::hooks(spec, scope, &[]).expect("rendered").before.remove(0)
        }),
        ("pre_exec", |spec, scope| {
            hooks::hooks(spec, scope, &[]).expect("rendered").before.remove(1)
        }),
        ("post_exec", |spec, scope| {
            hooks::hooks(spec, scope, &[]).expect("rendered").after.remove(0)
        }),
        ("the order of rows", |spec, scope| {
            let order = hooks::order_by(spec, scope, &[]).expect("rendered");
            order.expect("an order")
        }),
        ("an option of the reader", |spec, scope| {
            let files = ModelSpec {
                input_connector: "local_file".into(),
                ..spec.clone()
            };
            let sent = source::sql(&files, scope).expect("rendered");
            let option = sent.strip_prefix("SELECT * FROM read_csv('x.csv', \"filename\" = ");
            option
                .and_then(|rest| rest.strip_suffix(')'))
                .expect(&sent)
                .to_owned()
        }),
    ];
    (spec, places)
}

#[test]
fn a_value_is_one_text_in_every_place_of_a_model() {
    for template in [
        "'{{ .partition.x }}'",
        "'{{ .state.x }}'",
        "{{ .self.state.x | squote }}",
    ] {
        let (spec, places) = places(template);
        for value in hostile(60) {
            let row = BTreeMap::from([("x".to_owned(), Value::from(value.as_str()))]);
            let scope = Scope {
                partition: row.clone(),
                state: row,
                ..Scope::default()
            };
            for (place, render) in places {
                assert_eq!(
                    render(&spec, &scope),
                    ENGINE.text(&value),
                    "{place} of {template}"
                );
            }
        }
    }
}

#[tokio::test]
async fn partitions_and_states_of_hostile_values_are_built_and_stay_values() {
    let mut world = World::new().await;
    let values = hostile(60);
    world.declare("a", &table(&rows_of(&values), &[])).await;
    let text = "select '{{ .partition.x }}' as x, {{ .partition.x | squote }} as y, \
                {{ if incremental }}'{{ .state.x }}'{{ else }}''{{ end }} as last from a limit 1";
    let model = table(text, &["a"])
        .partitions("select x from a")
        .state("select max(x) as x from a");
    let overwrite = IncrementalOutput {
        strategy: IncrementalStrategy::PartitionOverwrite.into(),
        ..IncrementalOutput::default()
    };
    let model = model.incremental(overwrite);
    world.declare("m", &model).await;
    assert_eq!(world.works().await, ["built a", "built m"]);
    let counted = "select count(*), count(distinct m.x), count(*) filter (m.x = m.y) from m join a using (x)";
    let all = values.len();
    assert_eq!(world.rows(counted).await, [format!("{all}|{all}|{all}")]);
    let more: Vec<String> = hostile(80).into_iter().chain(["~'last".to_owned()]).collect();
    world.declare("a", &table(&rows_of(&more), &[])).await;
    assert_eq!(world.works().await, ["built a", "built m"]);
    let all = more.len();
    assert_eq!(world.rows(counted).await, [format!("{all}|{all}|{all}")]);
    let last = "select count(*) > 0, count(*) filter (last not in (select x from a)) from m where last <> ''";
    assert_eq!(
        world.rows(last).await,
        ["true|0"],
        "the state of before is a value as well"
    );
}

#[tokio::test]
async fn files_with_hostile_names_are_read_as_partitions() {
    let mut world = World::new().await;
    let names = [
        "x') UNION ALL SELECT 666 --",
        "o'brien",
        "a\"b",
        "$$",
        "{{ .partition.path }}",
        "{{",
        "a;b",
        "a\nb",
        "--",
        "größe \u{202E}",
    ];
    for (number, name) in names.iter().enumerate() {
        world.write(&format!("in/{name}.csv"), &format!("n\n{number}\n"));
    }
    let text =
        "select n, '{{ .partition.uri }}' as uri from read_csv('{{ .partition.path }}', header = true)";
    world
        .declare("m", &table(text, &[]).partition_files("in/*.csv"))
        .await;
    assert_eq!(world.works().await, ["built m"]);
    for (number, name) in names.iter().enumerate() {
        let uri = ENGINE.text(&format!("in/{name}.csv"));
        let found = world.rows(&format!("select n from m where uri = {uri}")).await;
        assert_eq!(found, [number.to_string()], "{name}");
    }
    assert_eq!(
        world.rows("select count(*) from m").await,
        [names.len().to_string()]
    );
}
