//! The program in front of a person: its output on a terminal of so many columns.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use crate::sandbox::{Sandbox, assert_kept, sample};

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
        // Two lines of the head, three rules, the rows that the screen has room for beside notes and prompt.
        let notes = 120_usize.div_ceil(usize::from(width));
        assert_eq!(table.len(), 40 - 1 - notes, "{said}");
        assert!(said.lines().count() < 40, "{said}");
        assert!(
            said.lines().all(|line| line.width() <= usize::from(width)),
            "{said}"
        );
        assert!(
            table.iter().all(|line| line.width() <= usize::from(width)),
            "{said}"
        );
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let rows = table.len() - 5;
        assert!(
            said.contains(&format!("{rows} of 50 rows: `--limit N` shows more; ")),
            "{said}"
        );
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

/// A project whose names are longer than a line has room for, with sources, and files that declare no rows.
fn long_names() -> Sandbox {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("data/orders.csv", "id,amount\n1,5\n2,7\n"),
        (
            "sources/orders.yaml",
            "type: source\nconnector: local_file\npath: data/orders.csv\n",
        ),
        (
            "models/orders_of_the_last_year_by_customer_and_country.sql",
            "-- @materialize: true\nSELECT * FROM orders\n",
        ),
        (
            "metrics/amounts.yaml",
            "version: 1\ntype: metrics_view\nmodel: orders_of_the_last_year_by_customer_and_country\n\
             dimensions: [{column: id, label: The id}]\nmeasures: [{name: amount, expression: sum(amount)}]\n",
        ),
    ]);
    for at in 0..5 {
        project.write(
            &format!("themes/theme_{at}.yaml"),
            "type: theme\ncolors: {primary: blue}\n",
        );
    }
    project
}

#[test]
fn durations_are_whole_on_a_terminal_and_a_run_counts_once() {
    let project = long_names();
    for width in WIDTHS {
        if project.is_known() {
            project.forget();
        }
        let said = on_terminal(&project, width, &["run", "--no-progress"]);
        let told: Vec<&str> = said.lines().filter(|line| line.contains(" of 8 ")).collect();
        assert_eq!(told.len(), 8, "{said}");
        for (at, line) in told.iter().enumerate() {
            assert!(
                line.trim_start().starts_with(&format!("{} of 8", at + 1)),
                "{said}"
            );
            assert!(line.trim_end().ends_with('s') && !line.ends_with('…'), "{said}");
        }
    }
    project.remove("models/orders_of_the_last_year_by_customer_and_country.sql");
    project.remove("metrics/amounts.yaml");
    project.remove("themes/theme_0.yaml");
    let said = on_terminal(&project, 80, &["run", "--no-progress"]);
    let of: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split(" of ").nth(1)?.split(' ').next())
        .collect();
    assert!(!of.is_empty() && of.iter().all(|all| *all == of[0]), "{said}");
}

#[test]
fn a_status_counts_what_has_nothing_to_tell_and_lists_it_when_asked() {
    let project = long_names();
    project.run(0);
    let said = on_terminal(&project, 80, &["status"]);
    assert!(
        said.contains("1 metrics view and 5 themes: ok (`--all` lists them)"),
        "{said}"
    );
    assert!(!said.contains("theme_1") && said.contains("  2 rows"), "{said}");
    for arguments in [
        &["status", "--all"][..],
        &["status", "-v"],
        &["status", "theme_1", "theme_2", "theme_3", "theme_4"],
    ] {
        let said = on_terminal(&project, 80, arguments);
        assert!(said.contains("theme_1") && !said.contains("lists them"), "{said}");
    }
}

#[test]
fn sources_are_called_so_wherever_people_are_told_of_them() {
    let project = long_names();
    project.run(0);
    project.write(
        "sources/orders.yaml",
        "type: source\nconnector: local_file\npath: data/none.csv\n",
    );
    let ran = project.call(&["run"]);
    assert!(ran.stdout.contains("by source/orders"), "{}", ran.stdout);
    for arguments in [
        &["explain"][..],
        &["explain", "orders"],
        &["explain", "amounts"],
        &["logs", "orders_of_the_last_year_by_customer_and_country"],
        &["history"],
        &["graph"],
        &["status"],
    ] {
        let said = project.call(arguments).stdout;
        assert!(
            !said.contains("model/orders\n")
                && !said.contains("model/orders:")
                && !said.contains("model  orders "),
            "{said}"
        );
        assert!(said.contains("source"), "{arguments:?}: {said}");
    }
    let document = project.call(&["explain", "orders", "--json"]).json();
    assert_eq!(
        document["resource"]["kind"], "model",
        "documents stay as they are"
    );
}

#[test]
fn a_note_is_told_by_the_run_that_reads_the_edit_and_wherever_more_is_asked_for() {
    let project = long_names();
    let notes = |arguments: &[&str]| {
        let said = project.call(arguments);
        said.stderr.matches("key \"label\"").count()
    };
    assert_eq!([notes(&["run"]), notes(&["run"])], [1, 0]);
    assert_eq!([notes(&["run", "-v"]), notes(&["validate"])], [1, 1]);
    project.write("themes/theme_9.yaml", "type: theme\ncolors: {primary: red}\n");
    assert_eq!(notes(&["run"]), 0, "another file is no edit of this one");
    let view = fs::read_to_string(project.path().join("metrics/amounts.yaml")).expect("the file can be read");
    project.write("metrics/amounts.yaml", &view.replace("The id", "An id"));
    assert_eq!(notes(&["run"]), 1);
}

#[test]
fn help_groups_commands_and_says_where_to_read_on() {
    let project = Sandbox::with(&[]);
    for width in [80, 120] {
        let file = sample("").join(format!("../help/{width}.txt"));
        assert_kept(&file, &on_terminal(&project, width, &["-h"]));
    }
    let same = project.call(&["help", "run"]).stdout;
    assert_eq!(same, project.call(&["run", "--help"]).stdout);
    let own = project.call(&["run", "-h"]).stdout;
    assert!(
        own.contains("--metrics-file") && !own.contains("--memory-limit"),
        "{own}"
    );
    assert!(own.contains("`--help` lists"), "{own}");
}

#[test]
fn folders_of_dbt_and_rill_are_known_for_what_they_are() {
    let folder = Sandbox::with(&[("shop/dbt_project.yml", "name: shop\n"), ("old/rill.yaml", "")]);
    for (arguments, wanted) in [
        (&["init", "shop"][..], "holds a project of dbt"),
        (&["run", "shop"], "docs/from-dbt.md"),
        (&["init", "old"], "`watershed run` builds it as it is"),
    ] {
        let said = folder.call(arguments);
        assert_eq!(said.code, Some(2), "{}", said.stderr);
        assert!(said.stderr.contains(wanted), "{}", said.stderr);
    }
    assert!(!folder.path().join("shop/watershed.yaml").exists());
}

#[test]
fn a_start_tells_a_mended_thing_once_and_that_it_ended() {
    let project = wide();
    let mut start = project.command(&["start"]);
    let mut start = start
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started");
    let mut told = BufReader::new(start.stdout.take().expect("it is piped")).lines();
    let mut until = |wanted: &str| {
        let mut all = String::new();
        while !all.contains(wanted) {
            let line = told.next().expect("there is more").expect("lines are text");
            all.push_str(&line);
            all.push('\n');
        }
        all
    };
    until("up to date");
    project.edit("models/trips.sql", "FROM range", "FROM rnage");
    until("1 error");
    project.edit("models/trips.sql", "FROM rnage", "FROM range");
    let mended = until("up to date");
    assert_eq!(
        mended.matches("fixed").count() + mended.matches("built").count(),
        1,
        "{mended}"
    );
    kill_process(Pid::from_child(&start), Signal::INT).expect("it can be signalled");
    let mut said = String::new();
    let stderr = start.stderr.take().expect("it is piped");
    BufReader::new(stderr)
        .read_to_string(&mut said)
        .expect("it is text");
    assert!(said.trim_end().ends_with("ended"), "{said}");
    assert_eq!(start.wait().expect("it ends").code(), Some(130));
}
