//! Builds of a mix of models, beside the floor of the same statements.

use std::path::Path;
use std::time::Duration;

use watershed_tests::measure::{Report, Unit};

use crate::{floor, mix::Mix, program};

/// The models that differ between two branches.
const DIFFER: usize = 200;

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The figures of projects of one size.
pub(crate) fn measure(report: &Report, models: usize, name: &str, samples: usize) {
    let figure = |figure: &str| figure.replace("1k", name);
    let wanted = [
        "cold_1k_over_floor2",
        "noop_1k_ms",
        "noop_1k_asked_ms",
        "leaf_1k_above_floor_ms",
        "mid_1k_above_floor_ms",
        "switch_back_1k_ms",
        "plan_1k_ms",
    ];
    if !wanted.iter().any(|wanted| report.wants(&figure(wanted))) {
        return;
    }
    let temp = tempfile::tempdir().expect("a folder");
    let (project, file) = (temp.path().join("project"), temp.path().join("floor.duckdb"));
    let mut mix = Mix::new(models);
    mix.write(&project);
    let bench = Bench {
        report,
        project: &project,
        file: &file,
        samples,
    };

    let rounds = if report.wants(&figure("cold_1k_over_floor2")) {
        samples
    } else {
        1
    };
    let mut ratios = Vec::new();
    for _ in 0..rounds {
        let floor = floor::cold(&file, &project, &mix);
        program::set_state_aside(&project);
        ratios.push(program::call(&project, &["run"]).as_secs_f64() / floor.as_secs_f64());
    }
    if report.wants(&figure("cold_1k_over_floor2")) {
        report.print(&figure("cold_1k_over_floor2"), Unit::Ratio, ratios);
    }
    bench.each(&figure("noop_1k_ms"), || ms(program::call(&project, &["run"])));
    if models > 1_000 {
        return;
    }
    let (leaf, mid) = (mix.leaf(), mix.mid());
    bench.edits(&figure("leaf_1k_above_floor_ms"), &mut mix, leaf);
    bench.edits(&figure("mid_1k_above_floor_ms"), &mut mix, mid);
    bench.plans(&figure("plan_1k_ms"), &mut mix, mid);
    if report.wants(&figure("noop_1k_asked_ms")) {
        let _started = program::Started::new(&project);
        bench.each(&figure("noop_1k_asked_ms"), || {
            ms(program::call(&project, &["run"]))
        });
    }
    bench.switches(&figure("switch_back_1k_ms"), &mix);
}

struct Bench<'a> {
    report: &'a Report,
    project: &'a Path,
    file: &'a Path,
    samples: usize,
}

impl Bench<'_> {
    fn each(&self, name: &str, mut once: impl FnMut() -> f64) {
        if self.report.wants(name) {
            let all = (0..self.samples).map(|_| once()).collect();
            self.report.print(name, Unit::Milliseconds, all);
        }
    }

    /// One edit, less the time that the engine alone needs for what is built.
    fn edits(&self, name: &str, mix: &mut Mix, place: usize) {
        let below = mix.below(place);
        // Views above what was edited stand as they are.
        let tables = |mix: &Mix| below.iter().filter(|place| mix.0[**place].is_table).count();
        self.each(name, || {
            mix.0[place].edit();
            mix.write_model(self.project, place);
            let (took, built) = program::run(self.project);
            assert!(built >= tables(mix), "{built} were built");
            ms(took) - ms(floor::edited(self.file, mix, &below))
        });
    }

    fn plans(&self, name: &str, mix: &mut Mix, place: usize) {
        if self.report.wants(name) {
            mix.0[place].edit();
            mix.write_model(self.project, place);
        }
        self.each(name, || ms(program::call(self.project, &["plan"])));
    }

    /// Another branch, and back to the one before: nothing is built.
    fn switches(&self, name: &str, mix: &Mix) {
        if !self.report.wants(name) {
            return;
        }
        program::run(self.project);
        let mut other = mix.clone();
        let step = mix.0.len() / DIFFER;
        let differ: Vec<usize> = (0..DIFFER).map(|nth| nth * step).collect();
        for place in &differ {
            other.0[*place].edit();
        }
        self.each(name, || {
            differ
                .iter()
                .for_each(|place| other.write_model(self.project, *place));
            let (_, built) = program::run(self.project);
            assert!(built >= differ.len() || built == 0, "{built} were built");
            differ
                .iter()
                .for_each(|place| mix.write_model(self.project, *place));
            let (took, built) = program::run(self.project);
            assert_eq!(built, 0, "all of it comes out of the trash");
            ms(took)
        });
    }
}

/// The memory of a cold build beyond that of the engine with the same statements.
pub(crate) fn memory(report: &Report, samples: usize) {
    const NAME: &str = "rss_above_engine_mb";
    if !report.wants(NAME) {
        return;
    }
    let temp = tempfile::tempdir().expect("a folder");
    let project = temp.path().join("project");
    Mix::new(1_000).write(&project);
    let once = |_| {
        program::set_state_aside(&project);
        let whole = program::peak_mb(program::command(&project, &["run"]));
        let mut alone = std::process::Command::new(std::env::current_exe().expect("this program"));
        alone.arg(crate::CHILD).arg(&project);
        whole - program::peak_mb(alone)
    };
    report.print(NAME, Unit::Megabytes, (0..samples).map(once).collect());
}

/// The engine alone, in a process of its own.
pub(crate) fn child(project: &Path) {
    let temp = tempfile::tempdir().expect("a folder");
    floor::cold(&temp.path().join("floor.duckdb"), project, &Mix::new(1_000));
}
