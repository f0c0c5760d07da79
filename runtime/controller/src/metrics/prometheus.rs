//! The Prometheus text format.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// A page of metrics in the Prometheus text format, each with the page's labels; names begin with `watershed_`.
///
/// ```
/// use watershed_controller::stats::Page;
///
/// let mut page = Page::new(&[("shop", "north")]);
/// page.gauge("carts", "Open carts.", 7);
/// page.seconds("wait_seconds", "The longest wait.", 1_500_000);
/// page.family("carts_by_age", "Open carts by age.", &[(vec![("age", "old")], 2)]);
/// let text = page.into_text();
/// assert!(text.contains("watershed_carts{shop=\"north\"} 7\n"));
/// assert!(text.contains("watershed_wait_seconds{shop=\"north\"} 1.500\n"));
/// assert!(text.ends_with("watershed_carts_by_age{shop=\"north\",age=\"old\"} 2\n"));
/// ```
///
/// Of several sets of labels, each family is described once:
///
/// ```
/// use watershed_controller::stats::Page;
///
/// let mut page = Page::default();
/// for shop in ["north", "south"] {
///     page.set_labels(&[("shop", shop)]);
///     page.gauge("carts", "Open carts.", 7);
/// }
/// let samples = "watershed_carts{shop=\"north\"} 7\nwatershed_carts{shop=\"south\"} 7\n";
/// assert!(page.into_text().ends_with(&format!("# TYPE watershed_carts gauge\n{samples}")));
/// ```
#[derive(Debug, Default)]
pub struct Page {
    labels: String,
    families: Vec<Family>,
    /// Index of the family that samples are added to.
    current: usize,
}

/// The samples of one name.
#[derive(Debug)]
struct Family {
    name: String,
    text: String,
}

impl Page {
    /// Creates an empty page with these labels.
    pub fn new(labels: &[(&str, &str)]) -> Self {
        Self {
            labels: listed(labels),
            ..Self::default()
        }
    }

    /// Gives these labels to the samples that follow, in the place of those before.
    pub fn set_labels(&mut self, labels: &[(&str, &str)]) {
        self.labels = listed(labels);
    }

    /// Adds a gauge: a number that rises and falls.
    pub fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "gauge");
        self.sample("", value);
    }

    /// Adds a counter: a number that only rises.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "counter");
        self.sample("", value);
    }

    /// Adds a time or a duration in seconds, given in microseconds.
    pub fn seconds(&mut self, name: &str, help: &str, micros: u64) {
        self.head(name, help, "gauge");
        self.sample("", seconds(micros));
    }

    /// Adds a metric with one number per value of a label.
    pub fn by(&mut self, name: &str, help: &str, label: &str, values: &BTreeMap<String, u64>) {
        let samples: Vec<_> = values
            .iter()
            .map(|(word, value)| (vec![(label, word.as_str())], *value))
            .collect();
        self.family(name, help, &samples);
    }

    /// Adds a metric with one number per set of labels.
    pub fn family(&mut self, name: &str, help: &str, samples: &[(Vec<(&str, &str)>, impl Display)]) {
        self.head(name, help, "gauge");
        for (labels, value) in samples {
            self.sample(&listed(labels), value);
        }
    }

    /// Ends the page and returns it in the Prometheus text format.
    pub fn into_text(self) -> String {
        self.families.into_iter().map(|family| family.text).collect()
    }

    fn head(&mut self, name: &str, help: &str, sort: &str) {
        let found = self.families.iter().position(|family| family.name == name);
        self.current = found.unwrap_or(self.families.len());
        if found.is_none() {
            self.families.push(Family {
                name: name.to_owned(),
                text: format!("# HELP watershed_{name} {help}\n# TYPE watershed_{name} {sort}\n"),
            });
        }
    }

    fn sample(&mut self, label: &str, value: impl Display) {
        let Some(Family { name, text }) = self.families.get_mut(self.current) else {
            return;
        };
        // Writing to a string does not fail.
        let _ = match (self.labels.as_str(), label) {
            ("", "") => writeln!(text, "watershed_{name} {value}"),
            ("", labels) | (labels, "") => writeln!(text, "watershed_{name}{{{labels}}} {value}"),
            (labels, label) => writeln!(text, "watershed_{name}{{{labels},{label}}} {value}"),
        };
    }
}

/// Formats microseconds as seconds with three digits, as a value of [`Page::family`].
pub fn seconds(micros: u64) -> String {
    format!("{}.{:03}", micros / 1_000_000, micros % 1_000_000 / 1_000)
}

fn listed(labels: &[(&str, &str)]) -> String {
    let labels: Vec<String> = labels
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
        .collect();
    labels.join(",")
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_of_several_sets_of_labels_are_told_once() {
        let mut page = Page::default();
        for instance in ["one", "t\"wo"] {
            page.set_labels(&[("instance", instance), ("project", "a")]);
            page.gauge("up", "It runs.", 1);
            page.family("failed", "One.", &[(vec![("name", "x{")], 1)]);
        }
        let text = page.into_text();
        assert_eq!(text.matches("# TYPE watershed_up gauge").count(), 1);
        for sample in [
            "watershed_up{instance=\"one\",project=\"a\"} 1\n",
            "watershed_up{instance=\"t\\\"wo\",project=\"a\"} 1\n",
        ] {
            assert!(text.contains(sample), "{text}");
        }
        assert_eq!(text.matches("watershed_failed{instance").count(), 2);
    }
}
