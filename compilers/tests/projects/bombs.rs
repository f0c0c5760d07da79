//! Files that are made to take all time, memory or stack: each ends soon, as a finding or as what it says.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use watershed_compilers::{FileEvent, Options, Project, editor};

use crate::{engine::Engine, report::report};

/// The longest that a processor may work at one, without optimisation.
const LONGEST: Duration = Duration::from_secs(20);
/// The stack of a thread of a program that embeds the compiler.
const STACK: usize = 2 << 20;

/// The time that this thread has had of a processor, which a busy machine makes no longer; where the system does not tell,
/// the time that has passed.
fn worked(begun: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|told| told.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| begun.elapsed(), Duration::from_nanos)
}

/// Compiles a file on a thread of ordinary size; returns the codes of its findings.
fn codes(path: &str, content: String) -> Vec<&'static str> {
    let path = path.to_owned();
    let work = move || {
        let begun = Instant::now();
        let mut project = Project::new(Options::default());
        let event = |path: &str, content: &str| FileEvent::Written {
            path: path.to_owned(),
            content: Arc::from(content.as_bytes()),
        };
        project.apply([event("rill.yaml", ""), event(&path, &content)], &Engine::new());
        let _ = report(&project);
        let _ = editor::complete(&project, &path, &content, 1, 40);
        let _ = editor::complete(&project, &path, &content, u32::MAX, u32::MAX);
        let _ = project.references_in(&path);
        let shown: String = content.chars().take(60).collect();
        let worked = worked(begun);
        assert!(worked < LONGEST, "{shown} took {worked:?}");
        project
            .diagnostics()
            .iter()
            .map(|found| found.code.as_str())
            .collect()
    };
    let thread = thread::Builder::new().stack_size(STACK).spawn(work);
    thread.expect("a thread").join().expect("no panic")
}

/// As much of a text as a file may hold; a third of that in an ordinary run, where what is quadratic shows as well.
fn full(piece: &str) -> String {
    let share = if std::env::var_os("WATERSHED_PROOF").is_some() {
        1
    } else {
        3
    };
    piece.repeat((FileEvent::MAX_BYTES - 200) / piece.len() / share)
}

#[test]
fn yaml_that_nests_or_repeats_without_end_is_refused() {
    let refused = |content: String| {
        let found = codes("models/a.yaml", content.clone());
        assert!(!found.is_empty(), "{}", content.get(..60).unwrap_or_default());
    };
    for piece in [
        "[",
        "{",
        "{a: ",
        "- ",
        "? ",
        "[[],",
        "&a ",
        "!!a ",
        "'",
        "\"",
        "\\",
        "- - ",
        "a: &a [*a]\n",
        "%YAML 1.2\n",
    ] {
        refused(full(piece));
    }
    let mut lines = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..60 {
        let below = level - 1;
        lines += &format!(
            "a{level}: &a{level} [{}]\n",
            vec![format!("*a{below}"); 10].join(", ")
        );
    }
    assert_eq!(codes("models/a.yaml", lines), ["yaml-limit"]);
    let nested: String = (0..360)
        .map(|depth| format!("{}a:\n", " ".repeat(depth)))
        .collect();
    assert_eq!(codes("models/a.yaml", nested), ["yaml-limit"]);
}

#[test]
fn keys_without_number_are_told_in_number() {
    let keys: String = (0..9_000).map(|at| format!("key_{at}: 1\n")).collect();
    assert!(codes("x/a.yaml", format!("type: explore\nmetrics_view: a\n{keys}")).len() < 20_000);
    let measures: String = (0..3_000)
        .map(|at| format!("  - {{name: m, expression: count(*), x{at}: 1}}\n"))
        .collect();
    codes(
        "x/a.yaml",
        format!("type: metrics_view\nversion: 1\nmodel: a\nmeasures:\n{measures}"),
    );
}

#[test]
fn sql_that_nests_without_end_is_refused_or_read() {
    let depth = 20_000;
    for content in [
        format!("SELECT {}1{}", "(".repeat(depth), ")".repeat(depth)),
        format!("SELECT {}1", "- ".repeat(depth)),
        format!("SELECT {}1{}", "abs(".repeat(depth), ")".repeat(depth)),
        format!("SELECT 1 WHERE {}", full("1 = 1 AND ") + "1 = 1"),
        format!("SELECT {}1", full("1 + ")),
        format!("{}1{}", "SELECT (".repeat(depth / 2), ")".repeat(depth / 2)),
        full("SELECT 1 UNION ALL ") + "SELECT 1",
        format!("SELECT * FROM {}", full("a JOIN ") + "a"),
        format!("SELECT {}1", full("CASE WHEN ")),
        full("WITH a AS ("),
        full("/*"),
        full("'"),
        full("$$"),
        full(";"),
        full("-- @a.b: 1\n"),
        full("-- @a: {a: [\n"),
        format!("-- @{}: 1\nSELECT 1", "a.".repeat(50_000)),
    ] {
        codes("models/a.sql", content);
    }
}

#[test]
fn templates_that_nest_without_end_are_refused_or_rendered() {
    for content in [
        full("{{"),
        full("{{ if true }}"),
        full("{{ if true }}a{{ end }}"),
        format!(
            "{}SELECT 1{}",
            "{{ if dev }}".repeat(4_000),
            "{{ end }}".repeat(4_000)
        ),
        format!("SELECT {{{{ {}1{} }}}}", "(".repeat(20_000), ")".repeat(20_000)),
        format!("SELECT {{{{ {}1 }}}}", full("not ")),
        format!("SELECT {{{{ 1 {} }}}}", full("| quote ")),
        "SELECT {{ range until 999999999 }}{{ range until 999999999 }}x{{ end }}{{ end }}".to_owned(),
        "{{ define \"t\" }}{{ template \"t\" . }}{{ template \"t\" . }}{{ end }}{{ template \"t\" . }}"
            .to_owned(),
        "SELECT {{ repeat 999999999 (repeat 999999999 \"x\") }}".to_owned(),
        format!("SELECT {}1", full("{{ ref \"a\" }}, ")),
        format!("SELECT {}1", full("{{ .env.a }},\n")),
        format!("SELECT 1 FROM a{}", full(", {{ ref \"b\" }}\n")),
        format!("SELECT {}", full("{{ if .env.a }}1,{{ else }}2,{{ end }}")),
    ] {
        codes("models/a.sql", content.clone());
        codes(
            "models/b.yaml",
            format!("type: model\nsql: |\n  {}\n", content.replace('\n', "\n  ")),
        );
    }
}

#[test]
fn paths_that_nobody_would_give_are_names_like_others() {
    let mut project = Project::new(Options::default());
    let paths = [
        "rill.yaml",
        "models/../../etc/a.sql",
        "models/..sql",
        "models/.sql",
        "models/a\u{0}b.sql",
        "models/\u{202e}lqs.a.sql",
        "models/a b\tc\nd.sql",
        "models/\u{feff}.yaml",
        "//models//x.sql",
        "./models/y.sql",
        "models/",
        "",
        ".",
        "..",
        "models/\"; DROP TABLE a; --.sql",
    ];
    let events = paths.map(|path| FileEvent::Written {
        path: path.to_owned(),
        content: Arc::from("SELECT 1 AS a".as_bytes()),
    });
    project.apply(events.into_iter().skip(1), &Engine::new());
    let long = format!("{}.sql", "a/".repeat(50_000));
    let content = Arc::from("SELECT 1".as_bytes());
    project.apply([FileEvent::Written { path: long, content }], &Engine::new());
    let _ = report(&project);
    for path in paths {
        let _ = editor::complete(&project, path, "SELECT * FROM ", 1, 15);
        let _ = project.references_in(path);
    }
    // Names that nothing can be called are told.
    let told: Vec<_> = project
        .diagnostics()
        .iter()
        .map(|found| found.path.as_str())
        .collect();
    assert!(told.contains(&"models/a\u{0}b.sql"), "{told:?}");
}
