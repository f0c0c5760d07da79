//! The page of numbers for Prometheus: of the HTTP API, and of the controllers of all instances.

use std::collections::BTreeMap;

use watershed_api::operations::{Operation as _, ops};
use watershed_api::request::NoInput;
use watershed_api::{Answer, Code, Problem};

use super::service::Service;

/// The beginning of families of single resources, which are shown where they are asked for.
const OF_RESOURCES: &str = "watershed_resource_";

/// Reads the query of the page: true for families of single resources too.
///
/// # Errors
/// `bad-argument`, for all but `resources=1`.
pub(super) fn asks_for_resources(query: Option<&str>) -> Result<bool, Problem> {
    match query {
        None | Some("" | "resources=0") => Ok(false),
        Some("resources=1") => Ok(true),
        Some(other) => Err(Problem::new(
            Code::BadArgument,
            format!("`{other}` is no question of this path"),
        )
        .hint("`resources=1` adds families of single resources")),
    }
}

/// The families of several pages, each told once.
#[derive(Default)]
struct Families(BTreeMap<String, Family>);

#[derive(Default)]
struct Family {
    /// The lines that describe the family.
    about: Vec<String>,
    samples: Vec<String>,
}

impl Families {
    /// Adds the page of an instance, whose samples get a label with the instance's name.
    fn add(&mut self, instance: &str, page: &str, has_resources: bool) {
        // As for other families: quotes in names of embedders are escaped as JSON does.
        let label = format!("instance={}", serde_json::Value::from(instance));
        let mut name = String::new();
        for line in page.lines() {
            if let Some(about) = line.strip_prefix("# ") {
                name = about.split(' ').nth(1).unwrap_or_default().to_owned();
                if has_resources || !name.starts_with(OF_RESOURCES) {
                    let about = &mut self.0.entry(name.clone()).or_default().about;
                    if !about.iter().any(|known| known == line) && about.len() < 2 {
                        about.push(line.to_owned());
                    }
                }
                continue;
            }
            // A sample stands below the lines of its family.
            let Some(family) = self.0.get_mut(&name) else {
                continue;
            };
            let sample = match line.split_once('{') {
                Some((name, rest)) => format!("{name}{{{label},{rest}"),
                None => line.replacen(' ', &format!("{{{label}}} "), 1),
            };
            family.samples.push(sample);
        }
    }

    fn write(&self) -> String {
        let lines = self
            .0
            .values()
            .flat_map(|family| family.about.iter().chain(&family.samples));
        lines.fold(String::new(), |page, line| page + line + "\n")
    }
}

/// Returns the numbers of the controllers of all open instances.
pub(super) async fn controllers(service: &Service, has_resources: bool) -> String {
    let mut families = Families::default();
    for (name, _) in service.all() {
        let Ok(open) = service.find(&name) else { continue };
        let request = ops::Prometheus::request(NoInput {});
        // An instance that is about to close has no numbers.
        if let Ok(Answer::Prometheus(page)) = open.instance.answer(request).await {
            families.add(&name, &page.0, has_resources);
        }
    }
    families.write()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_api30_families_are_told_once_and_single_resources_where_they_are_asked_for() {
        let page = "# HELP watershed_up It runs.\n# TYPE watershed_up gauge\nwatershed_up{project=\"a\"} 1\n\
                    # HELP watershed_resource_failed One.\n# TYPE watershed_resource_failed gauge\nwatershed_resource_failed{name=\"x{\"} 1\n";
        let both = |has_resources| {
            let mut families = Families::default();
            families.add("one", page, has_resources);
            families.add("t\"wo", page, has_resources);
            families.write()
        };
        let plain = both(false);
        assert_eq!(plain.matches("# TYPE watershed_up gauge").count(), 1);
        assert!(
            plain.contains("watershed_up{instance=\"one\",project=\"a\"} 1"),
            "{plain}"
        );
        assert!(
            plain.contains("watershed_up{instance=\"t\\\"wo\",project=\"a\"} 1"),
            "{plain}"
        );
        assert!(!plain.contains("watershed_resource_"), "{plain}");
        assert_eq!(
            both(true).matches("watershed_resource_failed{instance").count(),
            2
        );
        assert!(asks_for_resources(Some("resources=1")).is_ok_and(|asked| asked));
        assert!(asks_for_resources(Some("resource=1")).is_err());
    }
}
