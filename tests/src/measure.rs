//! Output of benchmarks: one line for each figure, as text or as JSON.

use std::time::{Duration, Instant};

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Operations per second; more is better.
    PerSecond,
    /// Seconds; less is better.
    Seconds,
    /// Milliseconds; less is better.
    Milliseconds,
    /// Microseconds; less is better.
    Microseconds,
    /// Millions of operations per second; more is better.
    MillionsPerSecond,
    /// Bytes; less is better.
    Bytes,
    /// Kibibytes; less is better.
    Kibibytes,
    /// Megabytes; less is better.
    Megabytes,
    /// Things that are counted; fewer is better.
    Number,
    /// The ratio of two figures of the same run.
    Ratio,
}

impl Unit {
    fn as_str(self) -> &'static str {
        match self {
            Unit::PerSecond => "1/s",
            Unit::Seconds => "s",
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "us",
            Unit::MillionsPerSecond => "M/s",
            Unit::Bytes => "B",
            Unit::Kibibytes => "KiB",
            Unit::Megabytes => "MB",
            Unit::Number => "",
            Unit::Ratio => "x",
        }
    }
}

/// A printer of figures, as text or as JSON.
#[derive(Debug)]
pub struct Report {
    json: bool,
    only: Option<String>,
    exactly: bool,
}

impl Report {
    /// Reads the arguments: `--json`, and either `--only NAME` for one figure or a part of the names of several.
    ///
    /// What `cargo bench` adds is passed over.
    pub fn from_args() -> Self {
        let mut report = Self {
            json: false,
            only: None,
            exactly: false,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--only" => {
                    report.only = arguments.next();
                    report.exactly = true;
                }
                "--json" => report.json = true,
                other if other.starts_with('-') => {}
                other => report.only = Some(other.to_owned()),
            }
        }
        report
    }

    /// Returns true if the figure is selected by the arguments.
    pub fn wants(&self, name: &str) -> bool {
        let is_it = |only: &String| {
            if self.exactly {
                name == only
            } else {
                name.contains(only)
            }
        };
        self.only.as_ref().is_none_or(is_it)
    }

    /// Prints the median of some samples.
    #[allow(clippy::print_stdout, reason = "this is what a benchmark is for")]
    pub fn print(&self, name: &str, unit: Unit, mut samples: Vec<f64>) {
        samples.sort_by(f64::total_cmp);
        let value = samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN);
        let (unit, count, peak) = (unit.as_str(), samples.len(), peak_rss_mb());
        if self.json {
            println!(
                r#"{{"name":"{name}","value":{value:.3},"unit":"{unit}","samples":{count},"peak_rss_mb":{peak}}}"#
            );
        } else {
            println!("{name:<24} {value:>14.3} {unit:<4} ({count} samples, peak {peak} MB)");
        }
    }
}

/// Returns the duration of some work, with its result.
pub fn time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let started = Instant::now();
    let result = work();
    (started.elapsed(), result)
}

/// Returns the peak memory of this process, in megabytes; 0 where the system does not report it.
pub fn peak_rss_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1024
}
