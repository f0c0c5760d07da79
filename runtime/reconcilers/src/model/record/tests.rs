use super::*;

pub(in crate::model) fn record() -> Record {
    Record {
        build: BuildId(Uuid::from_u128(7)),
        tagged: BuildId(Uuid::from_u128(6)),
        columns: Columns::from_bytes(&[3; 16]),
        location: Location::named("m"),
        shape: Shape::Table,
        meaning: Meaning {
            version: "1".into(),
            digest: [5; 16],
        },
        definition: vec![1, 2, 3],
        inputs: vec![Input {
            table: "a".into(),
            build: BuildId(Uuid::from_u128(8)),
            columns: Columns::from_bytes(&[2; 16]),
        }],
        files: vec![FileSeen {
            path: "x.csv".into(),
            modified_ns: -1,
            size: 3,
            content: Some([9; 32]),
            seen_at_ns: 4,
        }],
        made: Reads {
            inputs: BTreeMap::from([("dollars".into(), [4; 16])]),
            files: vec!["data/*.csv".into()],
        },
        answered: Refreshes { plain: 1, full: 2 },
        approvals: 1,
        tests: vec![7],
        results: Vec::new(),
        rows: Some(3),
        built_at_ms: 5,
        took_ms: 6,
        total_ms: 8,
        incremental: true,
        steps: 2,
        partitions: Some(PartitionCounts { done: 3, failed: 1 }),
        unfinished: true,
        stale_input: true,
        asked_at_ms: 9,
        schedule: "times".to_owned(),
        counts_from_ms: 10,
        state: Some(MapValue {
            fields: BTreeMap::from([("top".into(), 3_i64.into())]),
        }),
    }
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let unhashed = FileSeen {
        content: None,
        ..record().files.remove(0)
    };
    for record in [
        record(),
        Record {
            shape: Shape::View,
            rows: None,
            files: vec![unhashed],
            ..record()
        },
    ] {
        assert_eq!(Record::decode(&record.encode()), Some(record));
    }
}

#[test]
fn a_record_says_where_its_output_lies() {
    let location = Location {
        schema: Some("mart".into()),
        name: "daily".into(),
    };
    let in_mart = Record { location, ..record() };
    assert_eq!(Record::decode(&in_mart.encode()), Some(in_mart));
}

/// Records stand in engines' files, beside outputs that are not to be built because the program is another.
#[test]
fn a_stored_record_is_read_and_would_be_written_as_it_stands() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/engines/record.bin");
    if std::env::var_os("WATERSHED_BLESS").is_some() {
        std::fs::write(file, record().encode()).unwrap();
    }
    let stored = std::fs::read(file).unwrap();
    assert_eq!(Record::decode(&stored), Some(record()));
    assert_eq!(record().encode(), stored);
}

#[test]
fn the_catalogs_copy_leaves_out_the_definition() {
    let copy = Record::from_state(&record().to_state()).unwrap();
    assert_eq!(
        copy,
        Record {
            definition: vec![],
            ..record()
        }
    );
}

#[test]
fn what_is_no_record_is_none() {
    assert_eq!(Record::decode(b""), None);
    assert_eq!(Record::decode(b"\xff\xff"), None);
    let cut = ModelState {
        input_tables: vec![],
        ..record().to_state()
    };
    assert_eq!(Record::from_state(&cut), None, "inputs without their tables");
}

#[test]
fn a_views_build_id_depends_on_definition_inputs_and_files_and_not_on_names() {
    let Record {
        meaning,
        inputs,
        files,
        made,
        answered,
        ..
    } = record();
    let id = BuildId::for_view(&meaning, &inputs, &files, &made, answered);
    assert_eq!(id, BuildId::for_view(&meaning, &inputs, &files, &made, answered));
    let renamed = [Input {
        table: "other".into(),
        ..inputs[0].clone()
    }];
    assert_eq!(id, BuildId::for_view(&meaning, &renamed, &files, &made, answered));
    let rebuilt = [Input {
        build: BuildId(Uuid::from_u128(9)),
        ..inputs[0].clone()
    }];
    assert_ne!(id, BuildId::for_view(&meaning, &rebuilt, &files, &made, answered));
    let edited = Meaning {
        digest: [6; 16],
        ..meaning.clone()
    };
    assert_ne!(id, BuildId::for_view(&edited, &inputs, &files, &made, answered));
    let mut changed = files.clone();
    changed[0].content = Some([8; 32]);
    assert_ne!(
        id,
        BuildId::for_view(&meaning, &inputs, &changed, &made, answered)
    );
    changed[0] = FileSeen {
        modified_ns: 99,
        ..files[0].clone()
    };
    assert_eq!(
        id,
        BuildId::for_view(&meaning, &inputs, &changed, &made, answered),
        "a touched file is the same file"
    );
    let mut other = made.clone();
    other.inputs.insert("dollars".into(), [5; 16]);
    assert_ne!(id, BuildId::for_view(&meaning, &inputs, &files, &other, answered));
    let refreshed = Refreshes {
        plain: answered.plain + 1,
        ..answered
    };
    assert_ne!(id, BuildId::for_view(&meaning, &inputs, &files, &made, refreshed));
}

#[test]
fn the_columns_of_a_view_follow_from_its_sql_and_from_the_columns_of_what_it_reads() {
    let Record {
        meaning,
        inputs,
        files,
        made,
        ..
    } = record();
    let of = |meaning: &Meaning, inputs: &[Input]| columns_of_view(meaning, inputs, &files, &made);
    assert_eq!(of(&meaning, &inputs), of(&meaning, &inputs));
    assert!(of(&meaning, &inputs).is_some());
    let rebuilt = [Input {
        table: "other".into(),
        build: BuildId(Uuid::from_u128(9)),
        ..inputs[0].clone()
    }];
    assert_eq!(of(&meaning, &inputs), of(&meaning, &rebuilt));
    let with = |columns| {
        [Input {
            columns,
            ..inputs[0].clone()
        }]
    };
    assert_ne!(
        of(&meaning, &inputs),
        of(&meaning, &with(Columns::from_bytes(&[9; 16])))
    );
    assert_eq!(of(&meaning, &with(None)), None);
    let edited = Meaning {
        digest: [6; 16],
        ..meaning.clone()
    };
    assert_ne!(of(&meaning, &inputs), of(&edited, &inputs));
    let unhashed = [FileSeen {
        content: None,
        ..files[0].clone()
    }];
    assert_eq!(columns_of_view(&meaning, &inputs, &unhashed, &made), None);
    let none = Reads::default();
    assert_ne!(
        columns_of_view(&meaning, &inputs, &files, &none),
        of(&meaning, &inputs)
    );
}
