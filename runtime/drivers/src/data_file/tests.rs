use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

use super::*;

fn file(content: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(content).unwrap();
    file
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn blank(content: &[u8], form: Form) -> bool {
    is_blank(file(content).path(), form).unwrap()
}

#[test]
fn a_file_without_a_value_or_a_name_is_blank() {
    let zeros = vec![0; 200_000];
    for nothing in [
        b"".as_slice(),
        b"\n",
        b"\r\n \t\n",
        &zeros,
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf\r\n",
        b"\xff\xfe\r\0\n\0",
    ] {
        for form in [Form::Csv, Form::Json, Form::Binary] {
            assert!(blank(nothing, form), "{form:?} {:?}", nothing.get(..20));
            assert!(
                blank(&gzip(nothing), form),
                "{form:?} gzip {:?}",
                nothing.get(..20)
            );
        }
    }
    assert!(blank(b",,\n;;\n\"\",\"\"\n", Form::Csv));
    for nothing in ["[]", "[ ]\n", "{}", "{}\n{}\n", "[{}, null]", "null"] {
        assert!(blank(nothing.as_bytes(), Form::Json), "{nothing}");
        assert!(!blank(nothing.as_bytes(), Form::Binary), "{nothing}");
    }
}

#[test]
fn a_header_alone_and_a_value_alone_are_not_blank() {
    for something in ["id\n", "id,v", "5", "\n\n0\n", "#"] {
        assert!(!blank(something.as_bytes(), Form::Csv), "{something}");
        assert!(!blank(&gzip(something.as_bytes()), Form::Csv), "{something}");
    }
    for something in ["{\"a\": null}", "[0]", "[true]", "\"\"", "{\"\": {}}"] {
        assert!(!blank(something.as_bytes(), Form::Json), "{something}");
    }
    let mut late = vec![b' '; 100_000];
    late.extend(b"1");
    assert!(!blank(&late, Form::Csv));
}

#[test]
fn a_gzip_file_that_is_cut_off_can_not_be_read() {
    let whole = gzip(&vec![b'\n'; 10_000]);
    let cut = file(whole.get(..15).unwrap());
    assert!(is_blank(cut.path(), Form::Csv).is_err());
}

fn flaw_in(content: &[u8], form: Form) -> Option<Flaw> {
    flaw(file(content).path(), form, MOST_LEVELS).unwrap()
}

#[test]
fn levels_are_counted_outside_of_texts() {
    let deeper = |text: &str, most| {
        let found = flaw(file(text.as_bytes()).path(), Form::Json, most).unwrap();
        found == Some(Flaw::TooDeep)
    };
    let nested = |levels: usize| format!("{}1{}", "{\"a\":[".repeat(levels / 2), "]}".repeat(levels / 2));
    assert!(!deeper(&nested(100), 100));
    assert!(deeper(&nested(100), 99));
    assert!(deeper(&nested(100_000), MOST_LEVELS));
    let rows = "{\"a\": [1]}\n".repeat(10_000);
    assert!(!deeper(&rows, 2), "levels of one row are none of the next");
    assert!(!deeper("{\"a\": \"[[[[ \\\" [[[[ \"}", 1));
    assert!(deeper(&format!("{{\"open: 1\n{}", nested(10)), 9));
}

#[test]
fn an_array_without_an_end_is_cut_off_on_its_last_line() {
    for (text, line) in [
        ("[{\"a\": 1},", 1),
        ("[{\"a\": 1},\n{\"a\": 2},\n", 3),
        ("\u{feff}\n[", 2),
        ("[{\"a\": \"]\"}, ", 1),
        ("[[1, 2], [3", 1),
    ] {
        let cut_off = Some(Flaw::CutOff(Some(line)));
        assert_eq!(flaw_in(text.as_bytes(), Form::Json), cut_off, "{text}");
    }
    for whole in [
        "[{\"a\": 1}]\n",
        "{\"a\": 1}\n{\"a\": [1]}",
        "[1]\n[2]",
        "[\"[\"]",
        "",
    ] {
        assert_eq!(flaw_in(whole.as_bytes(), Form::Json), None, "{whole}");
    }
}

#[test]
fn what_was_compressed_is_cut_off_wherever_its_end_is_missing() {
    let rows: String = (0..20_000)
        .map(|n| format!("{n},{}\n", n * 7_919 % 10_007))
        .collect();
    let zstd = [
        // A frame of one block of four bytes, and a checksum.
        &[
            0x28, 0xb5, 0x2f, 0xfd, 0x24, 4, 0x21, 0, 0, b'a', b'\n', b'1', b'\n',
        ][..],
        &[1, 2, 3, 4],
        // A frame that holds no data.
        &[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9],
        // A frame of a block of one byte many times and a last block.
        &[
            0x28, 0xb5, 0x2f, 0xfd, 0, 0x58, 0x22, 0, 0, b'x', 0x09, 0, 0, b'y',
        ],
    ]
    .concat();
    for (whole, frames) in [(gzip(rows.as_bytes()), vec![]), (zstd, vec![17, 27])] {
        assert_eq!(flaw_in(&whole, Form::Csv), None);
        for length in (20..whole.len())
            .step_by(whole.len() / 16 + 1)
            .chain([whole.len() - 1])
        {
            let expected = (!frames.contains(&length)).then_some(Flaw::CutOff(None));
            let cut = whole.get(..length).unwrap();
            assert_eq!(flaw_in(cut, Form::Csv), expected, "{length} of {}", whole.len());
        }
    }
    assert_eq!(flaw_in(&gzip(b"[1,"), Form::Json), Some(Flaw::CutOff(Some(1))));
    let of_other_form = [0x28, 0xb5, 0x2f, 0xfd, 0x24, 4, 0x27, 0, 0, b'a'];
    assert_eq!(
        flaw_in(&of_other_form, Form::Csv),
        None,
        "the engine tells what it is"
    );
}

#[test]
fn the_mark_of_big_endian_is_told_of_texts() {
    let marked = b"\xfe\xff\0a\0\n";
    assert_eq!(flaw_in(marked, Form::Csv), Some(Flaw::Utf16BigEndian));
    assert_eq!(flaw_in(marked, Form::Binary), None);
    assert_eq!(flaw_in(b"\xff\xfea\0\n\0", Form::Csv), None);
}

#[test]
fn forms_follow_from_the_ending() {
    for (path, form) in [
        ("data/a.CSV", Some(Form::Csv)),
        ("a.tsv.gz", Some(Form::Csv)),
        ("a.ndjson.zst", Some(Form::Json)),
        ("a.b/c.parquet", Some(Form::Binary)),
        ("VERSION", None),
    ] {
        assert_eq!(Form::from_path(path), form, "{path}");
    }
}

#[test]
fn quotes_count_where_a_value_begins_with_one_among_the_first_rows() {
    let look = |text: &str, rows| beginning(file(text.as_bytes()).path(), rows, b",;|\t").unwrap();
    for quoted in [
        "a,b\n\"x\",y\n",
        "\"a\",b\n",
        "a; \"b\"\n",
        "a,b\n'x','y'\n",
        "a,'b, c'",
        "a\t'it''s'\n",
    ] {
        assert_eq!(look(quoted, 10), Beginning::Quoted, "{quoted:?}");
    }
    for plain in [
        "a,b\nx,y\n",
        "size\n5\" pipe\n",
        "town,n\n's-Hertogenbosch,1\n'tis,2\n",
        "a,rock 'n' roll\n",
        "",
    ] {
        assert_eq!(look(plain, 10), Beginning::Plain, "{plain:?}");
    }
    let late = format!("a,b\n{}\"x\",y\n", "1,2\n".repeat(9));
    assert_eq!(look(&late, 10), Beginning::Plain);
    assert_eq!(look(&late, 11), Beginning::Quoted);
    let pieces = format!("{}\n\"x\",y\n", "a".repeat(100_000));
    assert_eq!(look(&pieces, 10), Beginning::Quoted);
}

#[test]
fn what_is_written_in_another_way_is_told() {
    let look = |content: &[u8]| beginning(file(content).path(), 10, b",").unwrap();
    assert_eq!(look(b"\xff\xfea\0,\0b\0\n\0"), Beginning::Utf16);
    assert_eq!(look(&gzip(b"a,b\n\"x\",y\n")), Beginning::Quoted);
    assert_eq!(look(&[0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3]), Beginning::Unknown);
    assert_eq!(look(b"\xef\xbb\xbf\"a\",b\n"), Beginning::Quoted);
}

#[test]
fn a_row_that_does_not_fit_is_found_by_its_line() {
    let found = |content: &str| {
        let row = uneven(file(content.as_bytes()).path()).unwrap();
        row.map(|row| (row.line, row.expected, row.found))
    };
    let good = "id,name,amount\n1,a,2\n2,b,3\n3,\"c, \"\"d\"\"\",4\n";
    for (content, row) in [
        (format!("{good}4,e, f,5\n"), (5, 3, 4)),
        (format!("{good}4,e"), (5, 3, 2)),
        (format!("{good}\n4,\"x\ny\",5\n6,7\n8,z,9\n"), (8, 3, 2)),
        ("id;v\n1;1,5\n2;2,5\n3;4;1,5\n".to_owned(), (4, 2, 3)),
    ] {
        assert_eq!(found(&content), Some(row), "{content}");
    }
    for content in [
        good,
        "",
        "id;v\n1;1,5\n2;2\n",
        // One more that is empty and the last.
        "a,b\n1,2,\n3,4\n",
        "a,b\r\n1,2,\r\n3,4\r\n",
        // A title, a single column of texts, comments, other quotes, something without an end.
        "Sales\n\na,b\n1,2\n3,4\n",
        "text\na, b\nc\nd, e, f\n",
        "note, or text\na\nb, c, d\ne\n",
        "a,b\n1,2\n3,4\n# 5,6,7\n",
        "a,b\n1,2\n3,4\n'5,6',7\n",
        "a,b\n1,2\n3,4\n\"5,6\n",
    ] {
        assert_eq!(found(content), None, "{content}");
    }
}
