//! The generated documentation of the HTTP API's paths.

use std::fmt::Write as _;

use schemars::{Schema, SchemaGenerator};

use super::access::SERVICE_PATHS;
use super::openapi::{own_parameters, parameters, properties};
use super::routes::{Does, Offer, Own, ROUTES, Route, Words};

/// Returns the generated part of `docs/api.md`: a table of all paths, and an example with `curl` for each.
pub fn page() -> String {
    let mut page = String::from("| path | does | role | answers with |\n|---|---|---|---|\n");
    for route in ROUTES {
        let _ = writeln!(
            page,
            "| `{} {}` | {}. | `{}` | {} |",
            route.method.name(),
            shown(route),
            route.summary,
            role(route),
            answer(route)
        );
    }
    page.push_str("\n## Paths of the service\n\n| path | does | needs | answers with |\n|---|---|---|---|\n");
    for path in SERVICE_PATHS {
        let (method, summary) = (path.method.name(), path.summary);
        let (access, status) = (path.access, path.status);
        let _ = writeln!(
            page,
            "| `{method} {}` | {summary}. | {access} | {status} |",
            path.path
        );
    }
    page.push_str("\n## What each path takes\n");
    for route in ROUTES {
        let words = words(route);
        if words.is_empty() {
            continue;
        }
        let place = match (route.words(), &route.does) {
            (Words::Query, _) | (_, Does::Own(_)) => "query",
            (Words::Body, _) => "body",
        };
        let _ = write!(
            page,
            "\n### {} {}\n\n| {place} | |\n|---|---|\n",
            route.method.name(),
            shown(route)
        );
        for (name, description) in words {
            let _ = writeln!(page, "| `{name}` | {description} |");
        }
    }
    for path in SERVICE_PATHS {
        let place = if path.form.is_some() { "body" } else { "query" };
        let words = path.form.map(properties_of).unwrap_or_default();
        let query = path.query.iter();
        let words: Vec<(String, String)> = query
            .map(|(name, meaning)| ((*name).to_owned(), (*meaning).to_owned()))
            .chain(words)
            .collect();
        if words.is_empty() {
            continue;
        }
        let _ = write!(
            page,
            "\n### {} {}\n\n| {place} | |\n|---|---|\n",
            path.method.name(),
            path.path
        );
        for (name, description) in words {
            let _ = writeln!(page, "| `{name}` | {description} |");
        }
    }
    page
}

fn properties_of(form: fn(&mut SchemaGenerator) -> Schema) -> Vec<(String, String)> {
    let words = properties(form).into_iter();
    words
        .map(|(name, schema)| {
            (
                name,
                schema["description"].as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

fn shown(route: &Route) -> String {
    route.path.replace("{*", "{")
}

fn role(route: &Route) -> String {
    let role = serde_json::to_value(route.role).unwrap_or_default();
    role.as_str().unwrap_or_default().to_owned()
}

/// Returns the parameters of a path's query or body, each with its meaning.
fn words(route: &Route) -> Vec<(String, String)> {
    let of_offer = |offer: &Offer| {
        let words = parameters(offer).into_iter();
        let mut words: Vec<(String, String)> = words
            .map(|(name, schema)| {
                (
                    name,
                    schema["description"].as_str().unwrap_or_default().to_owned(),
                )
            })
            .collect();
        if matches!(route.does, Does::Selected(_)) {
            let selected = [
                ("select", "The resources that are meant; all if there is none."),
                ("exclude", "The ones that are left out of those."),
                (
                    "confirm",
                    "The number of resources that would be touched, as the answer without this key says.",
                ),
            ];
            words.extend(selected.map(|(name, meaning)| (name.to_owned(), meaning.to_owned())));
        }
        words
    };
    match &route.does {
        Does::Own(own) => {
            let named = own_parameters(*own).into_iter();
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            named
                .map(|it| (text(&it["name"]), text(&it["description"])))
                .collect()
        }
        Does::Answers(offer)
        | Does::Starts(offer)
        | Does::Selected(offer)
        | Does::Follows(offer)
        | Does::Rows(offer) => of_offer(offer),
    }
}

fn answer(route: &Route) -> &'static str {
    match route.does {
        Does::Own(Own::Events) => "202",
        Does::Own(Own::Revoke) => "204",
        Does::Answers(_) | Does::Own(_) | Does::Rows(_) => "200",
        Does::Starts(_) => "202 and the id of a request",
        Does::Follows(_) => "200, or a stream",
        Does::Selected(_) => "200 with what it would touch; with `confirm` as the path of one resource",
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const BEGIN: &str = "<!-- generated: paths -->\n";
    const END: &str = "<!-- end -->";

    /// Compares the generated texts with the files in the repository, or writes the files if `WATERSHED_BLESS` is set.
    #[test]
    fn the_page_and_the_openapi_document_in_the_repository_are_those_of_the_table() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let kept = std::fs::read_to_string(docs.join("api.md")).unwrap();
        let (before, rest) = kept.split_once(BEGIN).expect("the page has a generated part");
        let (_, after) = rest.split_once(END).expect("the generated part has an end");
        let page = format!("{before}{BEGIN}{}{END}{after}", page());
        let openapi = serde_json::to_string_pretty(&super::super::openapi::document()).unwrap() + "\n";
        for (name, text) in [("api.md", page), ("openapi.json", openapi)] {
            let file = docs.join(name);
            if std::env::var_os("WATERSHED_BLESS").is_some() {
                std::fs::write(&file, text).unwrap();
                continue;
            }
            let kept = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(
                text == kept,
                "{} differs; WATERSHED_BLESS=1 accepts it",
                file.display()
            );
        }
    }
}
