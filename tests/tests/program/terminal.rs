//! The program in front of a person: its output on a terminal of so many columns.

use std::fs::File;
use std::io::{self, Read as _};
use std::process::Stdio;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use crate::sandbox::Sandbox;

/// Widths that people have: a narrow pane, the usual window, half of a large screen.
const WIDTHS: [u16; 3] = [60, 80, 120];

/// Calls the program on a terminal of `width` columns and returns what stands there at its end, without colours.
fn on_terminal(project: &Sandbox, width: u16, arguments: &[&str]) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal can be opened");
    grantpt(&master).expect("the terminal is ours");
    unlockpt(&master).expect("the terminal can be unlocked");
    let name = ptsname(&master, Vec::new()).expect("the terminal has a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    let slave = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).expect("the terminal can be opened");
    let size = Winsize {
        ws_row: 40,
        ws_col: width,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&slave, size).expect("a terminal has a size");
    let slave = File::from(slave);
    let mut command = project.command(arguments);
    command.env_remove("COLUMNS").env("TERM", "xterm");
    command.stdout(Stdio::from(slave.try_clone().expect("it can be shared")));
    let mut child = command
        .stderr(Stdio::from(slave))
        .spawn()
        .expect("the program can be started");
    // The command holds the terminal's other end open: the reader would wait for it.
    drop(command);
    let said = read_to_end(File::from(master)).expect("the terminal can be read");
    child.wait().expect("the program ends");
    said.replace("\r\n", "\n")
}

/// Reads until the last program on the terminal has ended, which Linux tells as an error.
fn read_to_end(mut master: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        match master.read(&mut part) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&part[..count]),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn lines_of_table(said: &str) -> Vec<&str> {
    said.lines()
        .filter(|line| line.starts_with(['│', '┌', '╞', '└']))
        .collect()
}

/// Twelve columns of the kinds that people have, and fifty rows.
fn wide() -> Sandbox {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "models/trips.sql",
            "-- @materialize: true\n\
             SELECT n AS id, DATE '2013-02-06' + n::INTEGER AS day, 'carrier ' || n AS carrier,\n\
             \x20 CASE n % 3 WHEN 0 THEN NULL WHEN 1 THEN 'NULL' ELSE 'late' END AS remark,\n\
             \x20 n * 1000000007 AS a, n * 2 AS b, n / 7 AS share, n::DECIMAL(18, 3) AS price,\n\
             \x20 TIMESTAMP '2013-02-06 05:17:00' AS left_at, 'a place with a long name' AS origin,\n\
             \x20 'another place with a long name' AS destination, n > 3 AS is_late\n\
             FROM range(50) t(n) ORDER BY n\n",
        ),
    ]);
    project.run(0);
    project
}

#[test]
fn a_wide_table_fits_the_terminal_and_says_how_many_columns_it_leaves_out() {
    let project = wide();
    for width in WIDTHS {
        let said = on_terminal(&project, width, &["show", "trips"]);
        let table = lines_of_table(&said);
        // Two lines of the head, three rules, the rows of a screen.
        assert_eq!(table.len(), 2 + 3 + 40, "{said}");
        assert!(
            table.iter().all(|line| line.width() <= usize::from(width)),
            "{said}"
        );
        assert!(said.contains("40 rows, and there are more"), "{said}");
        assert!(
            said.contains("of 12 columns left out: `--vertical` shows them"),
            "{said}"
        );
        assert!(table[1].starts_with("│ ") && table[1].contains(" id "), "{said}");
        assert!(table[2].contains("bigint") && table[2].contains("…"), "{said}");
        assert!(table[4].contains(" 2013-02-06 "), "{said}");
    }
}

#[test]
fn null_on_a_terminal_is_not_the_text_null() {
    let project = wide();
    let said = on_terminal(
        &project,
        80,
        &["query", "SELECT remark FROM trips ORDER BY id LIMIT 2"],
    );
    let table = lines_of_table(&said);
    assert_eq!(&table[4..6], ["│ NULL    │", "│ 'NULL'  │"], "{said}");
    let coloured = on_terminal(&project, 80, &["query", "SELECT NULL AS n", "--color", "always"]);
    assert!(coloured.contains("\u{1b}[2mNULL"), "{coloured:?}");
}

#[test]
fn one_value_a_line_shows_all_columns_whole() {
    let project = wide();
    let said = on_terminal(&project, 60, &["show", "trips", "--vertical", "--limit", "2"]);
    assert!(
        said.starts_with("row 1\n  id           0\n  day          2013-02-06\n"),
        "{said}"
    );
    assert!(
        said.contains("\n  destination  another place with a long name\n"),
        "{said}"
    );
    assert_eq!(said.matches("row 2\n").count(), 1, "{said}");
    let piped = project.call(&["query", "FROM trips LIMIT 2", "--format", "vertical"]);
    assert_eq!(piped.stdout.lines().count(), 26, "{}", piped.stdout);
    let both = project.call(&["show", "trips", "--vertical", "--json"]);
    assert_eq!(both.code, Some(2), "{}", both.stderr);
}

#[test]
fn what_is_piped_does_not_depend_on_a_terminal() {
    let project = wide();
    let said = project.call(&["query", "FROM trips"]);
    let table = lines_of_table(&said.stdout);
    assert_eq!(table.len(), 1 + 3 + 50, "{}", said.stdout);
    assert!(
        table[1].contains(" destination ") && !said.stdout.contains("bigint"),
        "{}",
        said.stdout
    );
    let first = project.call(&["show", "trips"]);
    assert_eq!(
        lines_of_table(&first.stdout).len(),
        1 + 3 + 10,
        "{}",
        first.stdout
    );
    assert_eq!(
        project.query("SELECT count(*) FROM (FROM trips)")["rows"],
        json!([[50]])
    );
}

#[test]
fn lists_fit_the_terminal() {
    let project = wide();
    project.write(
        "models/broken.sql",
        "SELECT a_column_that_nobody_has_ever_declared FROM trips\n",
    );
    project.run(1);
    for width in WIDTHS {
        for arguments in [&["status"][..], &["history"], &["run"], &["explain", "broken"]] {
            let said = on_terminal(&project, width, arguments);
            let drawn = said
                .lines()
                .filter(|line| !line.contains('\u{1b}') && !is_finding(line));
            let long: Vec<&str> = drawn.filter(|line| line.width() > usize::from(width)).collect();
            assert!(long.is_empty(), "{width} {arguments:?}: {long:?}");
        }
    }
}

/// Returns true for lines that quote a file or name a place in it, which are not cut.
fn is_finding(line: &str) -> bool {
    line.contains(" | ") || line.starts_with("error[") || line.trim_start().starts_with("= hint")
}
