//! A project in layers: each model reads one to three of the layer above, by plain names. Beside some models stand
//! metrics views and explores, and some models are YAML themselves.

use std::fmt::Write as _;

use rand::{Rng as _, SeedableRng as _, rngs::SmallRng, seq::SliceRandom as _};

const LAYERS: usize = 6;

/// The files of a project of that many models alone, and the two that every project has.
pub(crate) fn models(count: usize) -> Vec<(String, String)> {
    mixed(count, 0)
}

/// The files of a project, of which some are YAML in each hundred.
pub(crate) fn mixed(count: usize, yaml_percent: usize) -> Vec<(String, String)> {
    let mut rng = SmallRng::seed_from_u64(7);
    let mut files = vec![
        (
            "rill.yaml".to_owned(),
            "display_name: Generated project\nolap_connector: duckdb\n".to_owned(),
        ),
        (
            "sources/raw_events.yaml".to_owned(),
            "type: source\nconnector: local_file\npath: data/events.csv\n".to_owned(),
        ),
    ];
    let dashboards = count * yaml_percent / 200;
    let models = count - dashboards * 2;
    let mut above = vec!["raw_events".to_owned()];
    let mut made = 0;
    for layer in 0..LAYERS {
        let size = models / LAYERS + usize::from(layer < models % LAYERS);
        let mut names = Vec::with_capacity(size);
        for _ in 0..size {
            made += 1;
            let name = format!("m{}_{made:05}", layer + 1);
            let mut refs = above.clone();
            refs.partial_shuffle(&mut rng, 3);
            let refs = &refs[refs.len().saturating_sub(rng.random_range(1..=3))..];
            files.push(model(&name, &sql(refs, made), made, yaml_percent));
            if made <= dashboards {
                files.push(metrics_view(&name, made));
                files.push(explore(&name));
            }
            names.push(name);
        }
        above = names;
    }
    files
}

fn model(name: &str, sql: &str, made: usize, yaml_percent: usize) -> (String, String) {
    if yaml_percent > 0 && made.is_multiple_of(10) {
        let sql = sql.replace('\n', "\n  ");
        let text = format!("type: model\nmaterialize: true\nsql: |\n  {}\n", sql.trim_end());
        return (format!("models/{name}.yaml"), text);
    }
    let head = if made % 5 < 2 {
        "-- @materialize: true\n"
    } else {
        ""
    };
    (format!("models/{name}.sql"), format!("{head}{sql}"))
}

fn metrics_view(name: &str, salt: usize) -> (String, String) {
    let mut text = format!(
        "version: 1\ntype: metrics_view\nmodel: {name}\ntimeseries: day\ndimensions:\n  - column: bucket\nmeasures:\n"
    );
    for measure in 0..4 {
        let _ = write!(
            text,
            "  - name: measure_{measure}\n    display_name: Measure {measure}\n    expression: sum(amount + {salt})\n"
        );
    }
    (format!("metrics/{name}_metrics.yaml"), text)
}

fn explore(name: &str) -> (String, String) {
    let text = format!("type: explore\nmetrics_view: {name}_metrics\nmeasures: '*'\ndimensions: [bucket]\n");
    (format!("explores/{name}_explore.yaml"), text)
}

fn sql(refs: &[String], salt: usize) -> String {
    match refs {
        [one] => format!(
            "WITH ranked AS (\n    SELECT *, row_number() OVER (PARTITION BY bucket ORDER BY amount DESC, day) AS place\n    \
             FROM {one}\n)\nSELECT bucket, day, (amount + {salt})::BIGINT AS amount, events\nFROM ranked\nWHERE place <= 25\n"
        ),
        [one, two] => format!(
            "SELECT a.bucket, a.day,\n       (coalesce(a.amount - b.amount, a.amount) % 1000003 + {salt})::BIGINT AS amount,\n       \
             greatest(a.events, coalesce(b.events, 0)) AS events\nFROM {one} AS a\nLEFT JOIN {two} AS b ON b.bucket = a.bucket \
             AND b.day = a.day\n"
        ),
        several => {
            let parts: Vec<_> = several
                .iter()
                .map(|name| format!("SELECT bucket, day, amount, events FROM {name}"))
                .collect();
            format!(
                "WITH everything AS (\n    {}\n)\nSELECT bucket, day, (sum(amount) % 1000003 + {salt})::BIGINT AS amount, \
                 max(events) AS events\nFROM everything\nGROUP BY bucket, day\n",
                parts.join("\n    UNION ALL ")
            )
        }
    }
}
