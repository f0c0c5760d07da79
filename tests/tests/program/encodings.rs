//! CSV files in encodings of other systems.

use serde_json::json;

use crate::sandbox::Sandbox;

#[test]
fn a_file_of_an_office_program_is_read_in_its_encoding() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "sources/shops.yaml",
            "type: source\nconnector: local_file\npath: data/*.csv\nencoding: windows-1252\n",
        ),
    ]);
    let write = |file: &str, bytes: &[u8]| {
        let folder = project.path().join("data");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(file), bytes).expect("a file");
    };
    write("a.csv", b"id;name;price\n1;Caf\xe9;\x80 5\n");
    write("b.csv", b"id;name;price\n2;M\xfcller;\x80 6\n");
    project.run(0);
    let rows = "SELECT name, price FROM shops ORDER BY id";
    assert_eq!(
        project.query(rows)["rows"],
        json!([["Café", "€ 5"], ["Müller", "€ 6"]])
    );
    assert!(project.run(0).is_empty(), "nothing is left to do");
    // A row that can't be read is told by the file that people have.
    project.edit("sources/shops.yaml", "encoding", "types: {id: INTEGER}\nencoding");
    write("b.csv", b"id;name;price\nzw\xf6lf;M\xfcller;\x80 6\n");
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("data/b.csv:2"), "{}", said.stderr);
    assert!(!said.stderr.contains("decoded-"), "{}", said.stderr);
    assert_eq!(project.query("SELECT count(*) FROM shops")["rows"], json!([[2]]));
    project.edit("sources/shops.yaml", "windows-1252", "shift_jis");
    write("b.csv", b"id;name;price\n2;\xff;3\n");
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("encoding-unsupported"), "{}", said.stderr);
    assert!(said.stderr.contains("data/a.csv:2"), "{}", said.stderr);
}

#[test]
fn a_column_that_becomes_text_is_told_with_the_value_that_made_it_one() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "sources/days.yaml",
            "type: source\nconnector: local_file\npath: data/days.csv\n",
        ),
        ("data/days.csv", "day,n\n2024-01-01,1\n2024-01-02,2\n"),
    ]);
    let said = project.call(&["run"]);
    assert!(!said.stderr.contains("is text now"), "{}", said.stderr);
    project.write("data/days.csv", "day,n\n2024-01-01,1\nsoon,2\n");
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let told = format!("{}{}", said.stdout, said.stderr);
    assert!(
        told.contains("\"day\" of days is text now, and was DATE because of \"soon\""),
        "{told}"
    );
    let said = project.call(&["run"]);
    assert!(!said.stderr.contains("is text now"), "{}", said.stderr);
}
