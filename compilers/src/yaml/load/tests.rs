use super::*;

fn read(text: &str) -> Result<Loaded, Box<Finding>> {
    load(&Text::new(text), Role::Yaml)
}

fn json(text: &str) -> String {
    let loaded = read(text).unwrap_or_else(|finding| panic!("{text:?}: {finding:?}"));
    serde_json::Value::from(&loaded.root.to_value()).to_string()
}

fn refused(text: &str) -> (Code, u32, u32) {
    let finding = read(text).expect_err(text);
    (finding.code, finding.at.span.line, finding.at.span.column)
}

#[test]
fn scalars_collections_and_empty_files_are_read() {
    assert_eq!(
        json("a: 1\nb: [x, 'y', 1.5]\nc: {d: true}\n"),
        r#"{"a":1,"b":["x","y",1.5],"c":{"d":true}}"#
    );
    assert_eq!(json(""), "null");
    assert_eq!(json("# only a comment\n"), "null");
    assert_eq!(json("a: 1\r\nb: 2\r\n"), r#"{"a":1,"b":2}"#);
    assert_eq!(json("a: !!str 5"), r#"{"a":"5"}"#);
}

#[test]
fn aliases_and_merge_keys_are_resolved() {
    assert_eq!(
        json("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\nc: *a\n"),
        r#"{"a":{"x":1,"y":2},"b":{"x":1,"y":3},"c":{"x":1,"y":2}}"#
    );
}

#[test]
fn templates_without_quotes_are_text() {
    assert_eq!(json("a: {{ .env.x }}\nb: 1"), r#"{"a":"{{ .env.x }}","b":1}"#);
    assert_eq!(json("a: {{ .env.x }}/b # c\n"), r#"{"a":"{{ .env.x }}/b"}"#);
    assert_eq!(json("a: [{{ .x }}, b]\n"), r#"{"a":["{{ .x }}","b"]}"#);
    assert_eq!(
        json("- {{ ref \"x\" }}\n- {{ \"a: b\" | quote }}\n"),
        r#"["{{ ref \"x\" }}","{{ \"a: b\" | quote }}"]"#
    );
    assert_eq!(
        json("sql: |\n  a: {{ .x }}\n  b\n"),
        r#"{"sql":"a: {{ .x }}\nb\n"}"#
    );
    assert_eq!(json("a: x{{ .y }}"), r#"{"a":"x{{ .y }}"}"#);
    let loaded = read("a: {{ .env.x }}").expect("reads");
    let spans: Vec<_> = loaded
        .findings
        .iter()
        .map(|f| (f.code, f.at.span.column, f.at.span.end_column))
        .collect();
    assert_eq!(spans, [(Code::UnquotedTemplate, 4, 16)]);
}

#[test]
fn what_is_not_yaml_has_a_place() {
    assert_eq!(refused("a: 1\nb:\n\tc: 2\n"), (Code::YamlTab, 3, 1));
    assert_eq!(refused("a: 1\na: 2\n"), (Code::DuplicateKey, 2, 1));
    assert_eq!(refused("a: b: c\n"), (Code::YamlSyntax, 1, 5));
    assert_eq!(refused("a: *x\n"), (Code::YamlSyntax, 1, 4));
    assert_eq!(refused("a: {{ .x\n").0, Code::YamlSyntax);
}

#[test]
fn nesting_and_aliases_are_bounded() {
    assert_eq!(refused(&"[".repeat(100)).0, Code::YamlLimit);
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let below = level - 1;
        bomb += &format!(
            "a{level}: &a{level} [{}]\n",
            vec![format!("*a{below}"); 10].join(", ")
        );
    }
    assert_eq!(refused(&bomb).0, Code::YamlLimit);
}

#[test]
fn the_deepest_nesting_survives_the_messages() {
    use watershed_proto::{MapValue, Message};
    let deep = format!("{}1{}", "{a: ".repeat(MAX_DEPTH), "}".repeat(MAX_DEPTH));
    let value = read(&deep).expect("within the bound").root.to_value();
    let fields = value.as_map().cloned().unwrap_or_default();
    let spec = watershed_proto::ModelSpec {
        input_properties: Some(MapValue { fields }),
        ..Default::default()
    };
    let bytes = spec.encode_to_vec();
    assert_eq!(
        watershed_proto::ModelSpec::decode(bytes.as_slice()).expect("decodes"),
        spec
    );
}

#[test]
fn a_second_document_is_not_read_and_said() {
    let loaded = read("---\na: 1\n---\nb: 2\n").expect("reads");
    assert_eq!(
        loaded
            .findings
            .iter()
            .map(|f| (f.code, f.at.span.line))
            .collect::<Vec<_>>(),
        [(Code::SeveralDocuments, 4)]
    );
    assert!(read("---\na: 1\n---\n").expect("reads").findings.is_empty());
}

#[test]
fn block_scalars_say_where_their_text_begins() {
    let loaded = read("sql: |\n  SELECT 1\n").expect("reads");
    let Data::Map(map) = loaded.root.data else {
        panic!("a mapping")
    };
    let sql = &map.get("sql").expect("sql").value;
    assert_eq!(
        (sql.style, sql.at.span.line, sql.at.span.column),
        (Style::Literal, 2, 3)
    );
}

#[test]
fn a_comment_in_joined_lines_is_found_where_it_begins() {
    let found = |text: &str| -> Vec<(u32, u32, u32)> {
        let loaded = read(text).unwrap_or_else(|finding| panic!("{text:?}: {finding:?}"));
        let findings = loaded.findings.iter();
        let comments = findings.filter(|found| found.code == Code::CommentJoined);
        let place = |found: &Finding| (found.at.span.line, found.at.span.column, found.at.span.end_column);
        comments.map(place).collect()
    };
    for text in [
        "sql: >\n  SELECT 1 -- one\n  WHERE true\n",
        "a: 1\nb:\n  - transform_sql: >-\n      -- all\n      SELECT 1\n",
        "sql: SELECT 1 -- é\n  WHERE true\n",
        "sql: \"SELECT 1 -- one\n  WHERE true\"\n",
        "pre_exec: >\n  SET x = 1 --\n  ;\n",
    ] {
        assert_eq!(found(text).len(), 1, "{text:?}");
    }
    assert_eq!(found("sql: >\n  SELECT 1 -- é ne\n  WHERE true\n"), [(2, 12, 19)]);
    for text in [
        "sql: |\n  SELECT 1 -- one\n  WHERE true\n",
        "sql: >\n  SELECT 1\n  -- the end\n",
        "sql: >\n  SELECT 1 /* one */\n  WHERE true\n",
        "sql: >\n  SELECT '--' AS a,\n  2 AS b\n",
        "sql: >\n  SELECT 1 -- one\n\n  WHERE true\n",
        "sql: SELECT 1 -- one\n",
        "description: >\n  This -- or\n  that\n",
    ] {
        assert!(found(text).is_empty(), "{text:?}");
    }
}
