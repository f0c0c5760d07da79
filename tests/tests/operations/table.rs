//! Every line of the table: its role, its document, and the same answer wherever the project is.

use std::collections::BTreeSet;

use serde_json::Value;
use watershed::api::operations::{Info, Manner, Role, TABLE};
use watershed::documents::schemas;
use watershed::{Code, Problem};

use crate::cases::{Agreement, case, request};
use crate::project::{Place, STEADY, Told, ask_at_rest};

/// Operations whose answer is no document, and why.
const WITHOUT_DOCUMENT: &[(&str, &str)] = &[
    ("prometheus", "a page in the text format of Prometheus"),
    (
        "query",
        "rows are sent before the end, and whoever asked makes `watershed.query/1` of them",
    ),
];

/// A built project that nobody runs: its model `gone` lies in the trash, and its service is of a second release.
async fn project() -> Place {
    let place = Place::new(&[]);
    place.owned().await.close().await;
    std::fs::remove_file(place.root().join("models/gone.sql")).expect("it is there");
    place.write("programs/steady.yaml", &STEADY.replace("begun", "begun anew"));
    place.owned().await.close().await;
    place
}

/// The answers to one request: of an owner, and of the same folder at rest.
struct Both {
    line: &'static Info,
    live: Told,
    still: Told,
}

impl Both {
    /// Returns what is wrong with the answers.
    fn trouble(&self, places: &[&Place]) -> Option<String> {
        let (live, still) = (self.live.end(), self.still.end());
        let agreed = match (case(self.line).1, &live, &still) {
            (Agreement::Same(keys), _, _) => {
                let [live, still] = [&live, &still].map(|end| plain(end, places, keys));
                (live == still)
                    .then_some(())
                    .ok_or_else(|| difference(&live, &still))
            }
            (Agreement::Unattended, Ok(_), Err(problem)) if problem.code == Code::Unattended => Ok(()),
            (Agreement::Nothing(code), Err(problem), Err(other))
                if (problem.code, other.code) == (code, Code::Unattended) =>
            {
                return None;
            }
            (Agreement::OwnerRefused(code), Err(problem), Ok(_)) if problem.code == code => Ok(()),
            other => Err(format!("{other:?}")),
        };
        let fits = |_| match live.or(still) {
            Ok(end) => document(self.line.name, end),
            Err(problem) => Err(format!("nobody answers: {problem:?}")),
        };
        let trouble = agreed.and_then(fits).err()?;
        Some(format!("{}: {trouble}", self.line.name))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_and_the_same_folder_at_rest_answer_alike() {
    let place = project().await;
    let (looks, changes): (Vec<&Info>, Vec<&Info>) =
        TABLE.iter().partition(|line| line.manner == Manner::Reads);
    let mut troubles = Vec::new();

    let owner = place.owned().await;
    let mut live = Vec::new();
    for line in &looks {
        live.push(owner.ask(&request(line, &place)).await);
    }
    owner.close().await;
    for (line, live) in looks.into_iter().zip(live) {
        let still = ask_at_rest(&place.at_rest(), request(line, &place)).await;
        troubles.extend(Both { line, live, still }.trouble(&[&place]));
    }

    // The same is done to two folders.
    let other = place.copied();
    let owner = place.owned().await;
    let is_unattended = |agreement| matches!(agreement, Agreement::Unattended | Agreement::Nothing(_));
    // What an owner alone does comes last: until then both are alike.
    let (last, first): (Vec<&Info>, Vec<&Info>) =
        changes.into_iter().partition(|line| is_unattended(case(line).1));
    for line in first.into_iter().chain(last) {
        let live = owner.ask(&request(line, &place)).await;
        let still = ask_at_rest(&other.at_rest(), request(line, &other)).await;
        troubles.extend(Both { line, live, still }.trouble(&[&place, &other]));
    }
    owner.close().await;
    assert!(troubles.is_empty(), "{}", troubles.join("\n"));
}

/// Sees that the end of an answer is a document whose schema is kept.
fn document(name: &str, mut end: Value) -> Result<(), String> {
    if WITHOUT_DOCUMENT.iter().any(|(listed, _)| *listed == name) {
        return match end.get("schema") {
            None => Ok(()),
            Some(_) => Err("it has a document, and is listed as one without".to_owned()),
        };
    }
    for wrapped in ["document", "resource"] {
        if end.get("schema").is_none()
            && let Some(inner) = end.get_mut(wrapped)
        {
            end = inner.take();
        }
    }
    let named = end["schema"].as_str().unwrap_or_default().to_owned();
    let found = schemas()
        .into_iter()
        .find(|(schema, _)| named == format!("watershed.{schema}/1"));
    let schema = found.ok_or_else(|| format!("no schema of `{named}`: {end}"))?.1;
    let keys = |part: &str| -> BTreeSet<String> {
        match schema.get(part) {
            Some(Value::Object(fields)) => fields.keys().cloned().collect(),
            Some(Value::Array(names)) => names
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            _ => BTreeSet::new(),
        }
    };
    let told: BTreeSet<String> = end
        .as_object()
        .into_iter()
        .flat_map(|fields| fields.keys().cloned())
        .collect();
    let (known, needed) = (keys("properties"), keys("required"));
    match told.is_subset(&known) && needed.is_subset(&told) {
        true => Ok(()),
        false => Err(format!("{told:?} does not fit {known:?}")),
    }
}

/// The end of an answer without what differs from place to place.
fn plain(end: &Result<Value, Problem>, places: &[&Place], without: &[&str]) -> Value {
    let mut end = match end {
        Ok(end) => end.clone(),
        Err(problem) => serde_json::to_value(problem).expect("a problem is JSON"),
    };
    for place in places {
        remove(&mut end, without, &place.root().display().to_string());
    }
    end
}

fn remove(value: &mut Value, without: &[&str], folder: &str) {
    match value {
        // A page is lines, which are named by the names of their numbers.
        Value::String(text) if text.contains("# HELP") => {
            let is_told = |line: &&str| !without.iter().any(|name| line.contains(name));
            *text = text.lines().filter(is_told).collect::<Vec<_>>().join("\n");
        }
        Value::String(text) => *text = text.replace(folder, "ROOT"),
        Value::Array(values) => values.iter_mut().for_each(|value| remove(value, without, folder)),
        Value::Object(fields) => {
            fields.retain(|key, _| !without.contains(&key.as_str()));
            fields
                .values_mut()
                .for_each(|value| remove(value, without, folder));
        }
        _ => {}
    }
}

/// Names the keys at which two documents differ, with both values.
fn difference(live: &Value, still: &Value) -> String {
    fn walk(at: &str, live: &Value, still: &Value, found: &mut Vec<String>) {
        match (live, still) {
            (Value::Object(a), Value::Object(b)) => {
                for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                    let of = |fields: &serde_json::Map<String, Value>| {
                        fields.get(key).cloned().unwrap_or_default()
                    };
                    walk(&format!("{at}/{key}"), &of(a), &of(b), found);
                }
            }
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                for (index, (a, b)) in a.iter().zip(b).enumerate() {
                    walk(&format!("{at}/{index}"), a, b, found);
                }
            }
            (Value::String(a), Value::String(b)) if a.contains('\n') => {
                let missing = |of: &str, other: &str| -> Vec<String> {
                    of.lines()
                        .filter(|line| !other.lines().any(|it| it == *line))
                        .map(str::to_owned)
                        .collect()
                };
                found.push(format!(
                    "{at}: live {:?}, at rest {:?}",
                    missing(a, b),
                    missing(b, a)
                ));
            }
            _ if live != still => found.push(format!("{at}: live {live}, at rest {still}")),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk("", live, still, &mut found);
    found.join("\n  ")
}

#[test]
fn what_changes_something_is_for_more_than_readers() {
    for line in TABLE {
        let reads = matches!(line.role, Role::Read | Role::Query);
        assert!(!(reads && line.manner == Manner::Works), "{}", line.name);
    }
}
