//! Disks that are full, files that are damaged, room that is given back.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{Said, Sandbox};

/// A small model, and one of some 8 MB that can't be compressed.
fn project() -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/small.sql", "-- @materialize: true\nSELECT 7 AS x"),
        (
            "models/huge.sql",
            "-- @materialize: true\nSELECT hash(i) AS a, hash(i + 1) AS b FROM range(500000) t(i)",
        ),
    ])
}

/// Runs the program with a bound on the size of each file, which a write meets as it meets a full disk.
fn run_bounded(sandbox: &Sandbox, blocks: u32) -> Said {
    call_bounded(sandbox, blocks, &["run"])
}

/// As [`run_bounded`], with other arguments.
fn call_bounded(sandbox: &Sandbox, blocks: u32, arguments: &[&str]) -> Said {
    let program = sandbox.command(&[]);
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut bounded = Command::new("sh");
    bounded
        .args(["-c", &script])
        .arg(program.get_program())
        .args(arguments);
    for (key, value) in program.get_envs() {
        match value {
            Some(value) => bounded.env(key, value),
            None => bounded.env_remove(key),
        };
    }
    let output: Output = bounded
        .current_dir(sandbox.path())
        .output()
        .expect("a shell can be started");
    output.into()
}

fn assert_said_full(said: &Said, took: Duration, story: &str) {
    assert!(matches!(said.code, Some(1 | 3)), "{story}: {said:?}");
    assert!(!said.stdout.contains('✓'), "{story}: {}", said.stdout);
    let text = format!("{}{}", said.stdout, said.stderr);
    assert!(text.contains("full"), "{story}: {text}");
    assert!(text.contains("free of"), "the volume is named, {story}: {text}");
    assert!(!text.contains("transaction"), "{story}: {text}");
    assert!(took < Duration::from_secs(20), "{story}: {took:?}");
}

/// Returns the bounds at which a run is tried, in blocks of 512 bytes: a sample, or with `WATERSHED_PROOF=all` one for
/// each page of the catalog and the engine's file that a run of the small project writes.
fn bounds(sample: &[u32], all: std::ops::Range<u32>) -> Vec<u32> {
    /// Blocks in a page of the catalog, the smaller of the two sizes.
    const PAGE: usize = 8;
    if std::env::var("WATERSHED_PROOF").as_deref() == Ok("all") {
        all.step_by(PAGE).collect()
    } else {
        sample.to_vec()
    }
}

#[test]
fn a_disk_that_is_full_at_any_point_is_said_at_once_and_costs_nothing_else() {
    // From too little for an empty catalog to too little for the large model.
    for blocks in bounds(&[1, 65, 100, 180, 240, 400, 600, 2_000, 8_000], 1..1_600) {
        let sandbox = project();
        let begun = Instant::now();
        let said = run_bounded(&sandbox, blocks);
        let story = format!("{blocks} blocks");
        if blocks == 1 {
            assert_eq!(said.code, Some(3), "{story}: {said:?}");
        } else {
            assert_said_full(&said, begun.elapsed(), &story);
        }
        sandbox.expect_run(0, &story);
        assert_eq!(
            sandbox.query("SELECT count(*) FROM huge")["rows"][0][0],
            500_000,
            "{story}"
        );
        assert_eq!(sandbox.query("SELECT x FROM small")["rows"][0][0], 7, "{story}");
        assert!(sandbox.expect_run(0, &story).is_empty(), "{story}");
    }
}

/// The bound is below the size that files have by now, so that each write beyond it fails.
#[test]
fn a_disk_that_is_full_at_any_point_of_a_rebuild_keeps_the_last_good_tables() {
    let sandbox = project();
    sandbox.expect_run(0, "the first run");
    for (round, blocks) in bounds(&[100, 240, 600, 8_000], 1..1_600).into_iter().enumerate() {
        let story = format!("{blocks} blocks");
        let x = 8 + round;
        sandbox.write(
            "models/small.sql",
            &format!("-- @materialize: true\nSELECT {x} AS x"),
        );
        let rows = 500_001 + round;
        sandbox.write(
            "models/huge.sql",
            &format!("-- @materialize: true\nSELECT hash(i) AS a, hash(i + 1) AS b FROM range({rows}) t(i)"),
        );
        let begun = Instant::now();
        let said = run_bounded(&sandbox, blocks);
        assert_said_full(&said, begun.elapsed(), &story);
        let before = sandbox.query("SELECT count(*) FROM huge")["rows"][0][0].clone();
        assert_eq!(before, rows - 1, "the last good table, {story}");
        sandbox.expect_run(0, &story);
        assert_eq!(
            sandbox.query("SELECT count(*) FROM huge")["rows"][0][0],
            rows,
            "{story}"
        );
        assert_eq!(sandbox.query("SELECT x FROM small")["rows"][0][0], x, "{story}");
        assert!(sandbox.expect_run(0, &story).is_empty(), "{story}");
    }
}

/// A small volume; none where mounting is not allowed.
pub(crate) struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    pub(crate) fn mount(at: &'a Path, size: &str) -> Option<Self> {
        fs::create_dir_all(at).expect("a folder can be made");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(at)
            .output();
        mounted
            .is_ok_and(|output| output.status.success())
            .then_some(Self(at))
    }

    /// Makes room.
    fn grow(&self) {
        let grown = Command::new("mount")
            .args(["-o", "remount,size=200m"])
            .arg(self.0)
            .output();
        assert!(
            grown.is_ok_and(|output| output.status.success()),
            "the volume can grow"
        );
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).output();
    }
}

#[test]
fn a_full_volume_is_named_with_the_room_that_is_missing() {
    let sandbox = project();
    let state = sandbox.path().join(".watershed");
    let Some(disk) = SmallDisk::mount(&state, "6m") else {
        println!("mounting is not allowed here; a bound on the size of files stands for a full disk");
        return;
    };
    for story in ["the first run", "the second run"] {
        let begun = Instant::now();
        let said = sandbox.call(&["run"]);
        assert_said_full(&said, begun.elapsed(), story);
        let text = format!("{}{}", said.stdout, said.stderr);
        assert!(
            text.contains(&format!("`{}`", state.display())),
            "{story}: {text}"
        );
    }
    disk.grow();
    sandbox.expect_run(0, "with room again");
    assert_eq!(sandbox.query("SELECT count(*) FROM huge")["rows"][0][0], 500_000);
    drop(disk);
}

#[test]
fn a_full_disk_is_the_reason_that_is_told_afterwards() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/small.sql", "-- @materialize: true\nSELECT 7 AS x"),
    ]);
    let state = sandbox.path().join(".watershed");
    let Some(disk) = SmallDisk::mount(&state, "40m") else {
        println!("mounting is not allowed here");
        return;
    };
    sandbox.expect_run(0, "with room");
    let huge = "-- @materialize: true\nSELECT hash(i) AS a, hash(i + 1) AS b FROM range(5000000) t(i)";
    sandbox.write("models/huge.sql", huge);
    assert_eq!(sandbox.call(&["run"]).code, Some(3));
    let reason = "because the disk of the state folder is full";
    for command in [&["explain", "huge"][..], &["history"]] {
        let said = sandbox.call(command);
        assert!(said.stdout.contains(reason), "{command:?}: {said:?}");
    }
    let status = sandbox.call(&["status"]);
    assert_eq!(status.code, Some(3), "{status:?}");
    assert!(status.stdout.contains(reason), "{status:?}");
    let history = sandbox.call(&["history", "--json"]).json();
    let message = history["ended_early"]["message"].as_str();
    assert!(
        message.is_some_and(|text| text.contains(&format!("`{}`", state.display()))),
        "{history}"
    );
    disk.grow();
    sandbox.expect_run(0, "with room again");
    assert_eq!(sandbox.call(&["status"]).code, Some(0));
    for command in [&["explain", "huge"][..], &["history"]] {
        let said = sandbox.call(command);
        assert!(!said.stdout.contains(reason), "{command:?}: {said:?}");
    }
    drop(disk);
}

/// A project with a report of some 8 MB on nothing that takes room, in each form of files.
fn reporting() -> Sandbox {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "models/huge.sql",
            "SELECT hash(i) AS a, hash(i + 1) AS b FROM range(200000) t(i)",
        ),
        (
            "connectors/archive.yaml",
            "type: connector\ndriver: file\npath: told\n",
        ),
    ]);
    for form in FORMS {
        let report = format!(
            "type: report\ndata: {{sql: SELECT * FROM huge}}\nexport: {{format: {form}}}\nnotify: {{file: archive}}\n"
        );
        sandbox.write(&format!("reports/{form}.yaml"), &report);
    }
    sandbox.run(0);
    sandbox
}

/// The forms of a report's file.
const FORMS: [&str; 3] = ["csv", "parquet", "xlsx"];

/// The files in a folder, names and sizes; none if it is not there.
fn files(folder: &Path) -> Vec<(String, u64)> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let file = |entry: fs::DirEntry| {
        let size = entry.metadata().map_or(0, |about| about.len());
        (entry.file_name().to_string_lossy().into_owned(), size)
    };
    entries.map(|entry| file(entry.expect("an entry"))).collect()
}

/// N10: what could not be made for want of room is said, leaves nothing, and is made and sent by the next run.
fn assert_made_with_room_again(
    sandbox: &Sandbox,
    form: &str,
    without: impl Fn(&[&str]) -> Said,
    grow: impl Fn(),
) {
    let exports = sandbox.path().join(".watershed/dev/exports");
    let told = sandbox.path().join("told");
    let (before, told_before) = (files(&exports), files(&told).len());
    let said = without(&["report", "run", form, "--send"]);
    assert_eq!(said.code, Some(1), "{form}: {said:?}");
    let text = format!("{}{}", said.stdout, said.stderr);
    assert!(
        text.contains("the disk is full") && text.contains("free of"),
        "{form}: {text}"
    );
    assert_eq!(files(&exports), before, "{form}: nothing is left");
    assert_eq!(files(&told).len(), told_before, "{form}: nobody is told");
    grow();
    sandbox.expect_run(0, form);
    assert_eq!(
        files(&told).len(),
        told_before + 1,
        "{form}: it is sent once there is room"
    );
    let mut new = files(&exports);
    new.retain(|file| !before.contains(file));
    assert!(
        matches!(&new[..], [(name, bytes)] if name.ends_with(form) && *bytes > 3_000_000),
        "{form}: {new:?}"
    );
    sandbox.expect_run(0, form);
    assert_eq!(files(&told).len(), told_before + 1, "{form}: and once");
}

#[test]
fn a_report_for_which_there_is_no_room_is_made_when_there_is() {
    let sandbox = reporting();
    for form in FORMS {
        let bounded = |arguments: &[&str]| call_bounded(&sandbox, 4_000, arguments);
        assert_made_with_room_again(&sandbox, form, bounded, || ());
    }
}

#[test]
fn a_report_on_a_full_volume_is_made_when_it_has_grown() {
    for form in FORMS {
        let sandbox = reporting();
        let exports = sandbox.path().join(".watershed/dev/exports");
        let Some(disk) = SmallDisk::mount(&exports, "2m") else {
            println!("mounting is not allowed here; a bound on the size of files stands for a full disk");
            return;
        };
        assert_made_with_room_again(
            &sandbox,
            form,
            |arguments| sandbox.call(arguments),
            || disk.grow(),
        );
        drop(disk);
    }
}

#[test]
fn room_that_a_dropped_model_took_is_given_back_and_nothing_else_changes() {
    let sandbox = project();
    sandbox.write("data/a.csv", "n\n1\n2\n");
    sandbox.write(
        "sources/a.yaml",
        "type: source\nconnector: local_file\npath: data/a.csv\n",
    );
    sandbox.write("models/view.sql", "SELECT x + 1 AS y FROM small");
    sandbox.write(
        "init.sql",
        "CREATE OR REPLACE MACRO twice(n) AS n * 2; CREATE OR REPLACE TABLE rates AS SELECT 2.5 AS rate;",
    );
    sandbox.run(0);
    sandbox.remove("models/huge.sql");
    sandbox.run(0);
    assert_eq!(sandbox.call(&["trash", "empty", "--yes"]).code, Some(0));
    let before = sandbox.tables();
    let size = || {
        fs::metadata(sandbox.engine_file())
            .expect("the file is there")
            .len()
    };
    let large = size();
    let said = sandbox.call(&["gc", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let document = said.json();
    assert_eq!(document["schema"], "watershed.gc/1");
    assert_eq!(document["engine_bytes_after"], size());
    assert!(size() * 2 < large, "{large} bytes before, {} after", size());
    assert_eq!(sandbox.tables(), before);
    assert_eq!(
        sandbox.query("SELECT twice(rate) FROM rates")["rows"][0][0].to_string(),
        "\"5.0\""
    );
    assert!(sandbox.run(0).is_empty(), "nothing is to be built after it");
    let again = sandbox.call(&["gc"]);
    assert!(
        again.stdout.contains("too little of it is free"),
        "{}",
        again.stdout
    );
}

#[test]
fn a_damaged_engine_file_is_one_error_and_is_repaired_by_building_anew() {
    let sandbox = project();
    sandbox.run(0);
    let before = sandbox.tables().len();
    let file = fs::File::options().write(true).open(sandbox.engine_file());
    file.and_then(|file| file.set_len(4_096))
        .expect("the file can be cut");

    let run = sandbox.call(&["run"]);
    assert_eq!(run.code, Some(4), "{run:?}");
    assert_eq!(run.stderr.matches("error").count(), 1, "{}", run.stderr);
    assert!(run.stderr.contains("damaged"), "{}", run.stderr);
    assert!(run.stderr.contains("watershed doctor --repair"), "{}", run.stderr);
    assert_eq!(sandbox.call(&["query", "SELECT 1"]).code, Some(4));

    let found = sandbox.call(&["doctor", "--json"]);
    assert_eq!(found.code, Some(4), "{}", found.stderr);
    let document = found.json();
    assert_eq!(document["schema"], "watershed.doctor/1");
    assert_eq!(document["checks"][2]["what"], "engine");
    assert_eq!(
        document["checks"][2]["findings"].as_array().map(Vec::len),
        Some(1)
    );
    assert_eq!(
        document["checks"][1]["findings"].as_array().map(Vec::len),
        Some(0)
    );

    let repaired = sandbox.call(&["doctor", "--repair", "--json"]);
    assert_eq!(repaired.code, Some(0), "{}", repaired.stderr);
    let aside = repaired.json()["repaired"][0]["to"].as_str().map(str::to_owned);
    assert!(Path::new(&aside.expect("it says where the file is")).exists());
    assert_eq!(sandbox.done(0), "huge:built small:built");
    assert_eq!(sandbox.tables().len(), before);
    assert_eq!(sandbox.call(&["doctor"]).code, Some(0));
}

#[test]
fn a_damaged_block_is_found_by_reading_everything() {
    let sandbox = project();
    sandbox.run(0);
    assert_eq!(sandbox.call(&["doctor"]).code, Some(0));
    let mut file = fs::File::options()
        .write(true)
        .open(sandbox.engine_file())
        .expect("the file can be opened");
    let middle = file.metadata().expect("the file is there").len() / 2;
    file.seek(SeekFrom::Start(middle)).expect("the file has a middle");
    file.write_all(&[0xa5; 4_096]).expect("the file can be written");
    drop(file);
    let found = sandbox.call(&["doctor"]);
    assert_eq!(found.code, Some(4), "{found:?}");
    assert_eq!(sandbox.call(&["doctor", "--repair"]).code, Some(0));
    sandbox.expect_run(0, "everything anew");
    assert_eq!(sandbox.query("SELECT count(*) FROM huge")["rows"][0][0], 500_000);
}

#[test]
fn a_damaged_catalog_is_set_aside_and_what_was_built_is_adopted() {
    let sandbox = project();
    sandbox.run(0);
    let catalog = sandbox.path().join(".watershed/dev/catalog.db");
    fs::write(&catalog, vec![0x5a; 20_000]).expect("the catalog can be spoiled");
    assert_eq!(sandbox.call(&["run"]).code, Some(4));
    let repaired = sandbox.call(&["doctor", "--repair"]);
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    assert!(sandbox.run(0).is_empty(), "what stands in the engine is adopted");
    assert_eq!(sandbox.query("SELECT x FROM small")["rows"][0][0], 7);
}

#[test]
fn a_start_on_a_full_disk_goes_on_by_itself_when_there_is_room() {
    let sandbox = project();
    let state = sandbox.path().join(".watershed");
    let Some(disk) = SmallDisk::mount(&state, "6m") else {
        println!("mounting is not allowed here");
        return;
    };
    let mut start = sandbox.command(&["start"]);
    let start = start.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut start = start.expect("the program can be started");
    let mut told = BufReader::new(start.stderr.take().expect("it is piped")).lines();
    let mut until = |wanted: &str| {
        let is_it = |line: &io::Result<String>| line.as_ref().is_ok_and(|line| line.contains(wanted));
        assert!(told.any(|line| is_it(&line)), "it ended before `{wanted}`");
    };
    until("the disk of the state folder is full");
    until("goes on by itself");
    disk.grow();
    until("watching the files");
    assert_eq!(sandbox.query("SELECT count(*) FROM huge")["rows"][0][0], 500_000);
    kill_process(Pid::from_child(&start), Signal::INT).expect("it can be signalled");
    assert_eq!(start.wait().expect("it ends").code(), Some(130));
    drop(disk);
}
