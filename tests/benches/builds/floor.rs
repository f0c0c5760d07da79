//! The floor: the same statements on raw connections of the same engine, each as soon as what it reads is there. The clock
//! runs from opening the file until it is closed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use watershed_drivers::duckdb::ByHand;
use watershed_tests::measure::time;

use crate::mix::{Mix, SOURCE};

/// Connections of the floor.
const CONNECTIONS: usize = 2;

/// Builds a whole project into a new file.
pub(crate) fn cold(file: &Path, project: &Path, mix: &Mix) -> Duration {
    let _ = fs::remove_file(file);
    let data = project.join("data/events.csv");
    let source = format!(
        "CREATE TABLE {SOURCE} AS SELECT * FROM read_csv('{}')",
        data.display()
    );
    build(file, Some(&source), mix, &(0..mix.0.len()).collect::<Vec<_>>())
}

/// Builds some models again, in the file that the cold build made.
pub(crate) fn edited(file: &Path, mix: &Mix, places: &[usize]) -> Duration {
    build(file, None, mix, places)
}

/// The state of the statements.
struct Board {
    left: Vec<usize>,
    running: BTreeSet<usize>,
}

fn build(file: &Path, first: Option<&str>, mix: &Mix, places: &[usize]) -> Duration {
    let statements: Vec<String> = mix
        .0
        .iter()
        .map(|model| {
            let kind = if model.is_table { "TABLE" } else { "VIEW" };
            format!("CREATE OR REPLACE {kind} {} AS {}", model.name, model.sql())
        })
        .collect();
    let reads: Vec<Vec<usize>> = reads(mix);
    let (took, ()) = time(|| {
        let engine = ByHand::open(file);
        if let Some(first) = first {
            engine.run(first);
        }
        let board = Mutex::new(Board {
            left: places.to_vec(),
            running: BTreeSet::new(),
        });
        let changed = Condvar::new();
        std::thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                let connection = engine.beside();
                let (board, changed, reads, statements) = (&board, &changed, &reads, &statements);
                scope.spawn(move || work(&connection, board, changed, reads, statements));
            }
        });
    });
    took
}

fn work(
    connection: &ByHand,
    board: &Mutex<Board>,
    changed: &Condvar,
    reads: &[Vec<usize>],
    statements: &[String],
) {
    let mut state = board.lock().expect("nobody panicked");
    loop {
        let is_ready = |place: &usize| {
            !reads[*place]
                .iter()
                .any(|read| state.running.contains(read) || state.left.contains(read))
        };
        // Those before it come first in the list, so a look at its beginning finds one soon.
        let ready = state.left.iter().position(is_ready);
        match ready {
            Some(at) => {
                let place = state.left.remove(at);
                state.running.insert(place);
                drop(state);
                connection.run(&statements[place]);
                state = board.lock().expect("nobody panicked");
                state.running.remove(&place);
                changed.notify_all();
            }
            None if state.left.is_empty() => return,
            None => state = changed.wait(state).expect("nobody panicked"),
        }
    }
}

/// The places that each model reads.
fn reads(mix: &Mix) -> Vec<Vec<usize>> {
    let places: std::collections::BTreeMap<&str, usize> = mix
        .0
        .iter()
        .enumerate()
        .map(|(place, model)| (model.name.as_str(), place))
        .collect();
    let of = |names: &[String]| {
        names
            .iter()
            .filter_map(|name| places.get(name.as_str()).copied())
            .collect()
    };
    mix.0.iter().map(|model| of(&model.reads)).collect()
}
