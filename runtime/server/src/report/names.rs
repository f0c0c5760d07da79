//! Resolution of typed names to resources.

use watershed_api::documents::ResourceName;
use watershed_api::{Code, Problem};
use watershed_core::{Key, Name, Uid};

use super::hints::nearest;
use super::{Entry, kinds};

/// Finds the resource named by `name` or `kind/name`.
///
/// # Errors
/// When nothing or several things are called so; the hint lists them.
pub(crate) fn resolve<'a>(entries: &'a [Entry], typed: &str) -> Result<&'a Entry, Problem> {
    let live = || entries.iter().filter(|entry| !entry.row.intents.is_deleted());
    if let Some((kind, name)) = typed.split_once('/') {
        // Sources are models that are declared another way.
        let kind = if kind.eq_ignore_ascii_case("source") {
            "model".to_owned()
        } else {
            kind.to_lowercase()
        };
        let key = Key::new(kind.as_str(), name);
        let found = live().find(|entry| entry.row.key() == key);
        if let Some(found) = found {
            return Ok(found);
        }
    }
    let wanted = Name::new(typed);
    let found: Vec<&Entry> = live().filter(|entry| entry.row.name == wanted).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err(unknown(typed, live().collect())),
        several => {
            let keys = several.iter().map(|entry| entry.row.key());
            let list: Vec<String> = keys.clone().map(|key| format!("`{key}`")).collect();
            let message = format!("several resources are called `{typed}`");
            Err(Problem {
                candidates: keys
                    .map(|key| ResourceName::new(key.kind.as_str(), key.name.as_str()))
                    .collect(),
                ..Problem::new(Code::AmbiguousName, message)
                    .hint(format!("say which one: {}", list.join(", ")))
            })
        }
    }
}

/// Finds the resource as [`resolve`] does; of several of a name, the model, which has the rows and the SQL. A metrics view may
/// have the name of its model.
///
/// # Errors
/// As [`resolve`].
pub(crate) fn resolve_model<'a>(entries: &'a [Entry], typed: &str) -> Result<&'a Entry, Problem> {
    let key = Key::new(kinds::MODEL, typed);
    let is_it = |entry: &&Entry| !entry.row.intents.is_deleted() && entry.row.key() == key;
    entries
        .iter()
        .find(is_it)
        .map_or_else(|| resolve(entries, typed), Ok)
}

/// Finds the resources with the typed names.
///
/// # Errors
/// As [`resolve`], for the first name that is wrong.
pub(crate) fn resolve_all(entries: &[Entry], typed: &[String]) -> Result<Vec<Uid>, Problem> {
    let found = typed.iter().map(|name| Ok(resolve(entries, name)?.row.uid));
    found.collect()
}

/// Finds the resource as [`resolve`] does, among resources under deletion too.
///
/// # Errors
/// As [`resolve`].
pub(crate) fn resolve_with_deleted<'a>(entries: &'a [Entry], typed: &str) -> Result<&'a Entry, Problem> {
    resolve(entries, typed).or_else(|refusal| {
        let is_it = |entry: &&Entry| {
            let key = entry.row.key();
            let typed_key = typed.split_once('/').map(|(kind, name)| Key::new(kind, name));
            entry.row.intents.is_deleted() && (entry.row.name == Name::new(typed) || typed_key == Some(key))
        };
        entries.iter().find(is_it).ok_or(refusal)
    })
}

/// Most names of a kind in a hint.
const MOST_NAMES: usize = 8;

fn unknown(typed: &str, live: Vec<&Entry>) -> Problem {
    let refusal = Problem::new(Code::UnknownName, format!("there is no resource `{typed}`"));
    let Some((kind, plain)) = typed.split_once('/') else {
        let names = live.iter().map(|entry| entry.row.name.as_str());
        return refusal.hint(match nearest(typed, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`watershed status` lists the resources".to_owned(),
        });
    };
    let of_kind = |entry: &&&Entry| entry.row.kind.as_str().eq_ignore_ascii_case(kind);
    let names: Vec<String> = live
        .iter()
        .filter(of_kind)
        .map(|entry| entry.row.name.to_string())
        .collect();
    // A name of the kind that was asked for comes before one of another.
    let all = live.iter().map(|entry| entry.row.name.as_str());
    let near = nearest(plain, names.iter().map(String::as_str)).or_else(|| nearest(plain, all));
    let other = live.iter().find(|entry| entry.row.name == Name::new(plain));
    refusal.hint(match (other, near) {
        (Some(other), _) => format!("`{plain}` is of the kind `{}`", other.row.kind),
        (None, Some(near)) => format!("did you mean `{near}`?"),
        (None, None) if names.is_empty() || names.len() > MOST_NAMES => {
            "`watershed status` lists the resources".to_owned()
        }
        (None, None) => format!("one of: `{}`", names.join("`, `")),
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{entry, model};
    use super::*;
    use watershed_core::Row;

    fn entries() -> Vec<Entry> {
        let view = Row {
            kind: "metrics_view".into(),
            uid: model("other", &[]).uid,
            ..model("flights", &[])
        };
        [model("flights", &[]), view, model("Carriers", &[])]
            .into_iter()
            .map(entry)
            .collect()
    }

    fn found(typed: &str) -> String {
        resolve(&entries(), typed)
            .map(|entry| entry.row.key().to_string())
            .unwrap_or_else(|refusal| format!("{} ({})", refusal.message, refusal.hint.unwrap_or_default()))
    }

    #[test]
    fn a_name_is_found_in_any_case_and_sources_are_models() {
        assert_eq!(found("carriers"), "model/Carriers");
        assert_eq!(found("source/CARRIERS"), "model/Carriers");
        assert_eq!(found("metrics_view/flights"), "metrics_view/flights");
    }

    #[test]
    fn a_name_of_several_kinds_is_an_error_that_lists_them() {
        let said = found("flights");
        assert!(said.contains("`model/flights`, `metrics_view/flights`"), "{said}");
    }

    #[test]
    fn where_rows_are_meant_a_name_of_several_kinds_is_the_models() {
        let entries = entries();
        let found = |typed: &str| resolve_model(&entries, typed).map(|entry| entry.row.key().to_string());
        assert_eq!(found("Flights").unwrap(), "model/flights");
        assert_eq!(found("metrics_view/flights").unwrap(), "metrics_view/flights");
        assert!(found("zzz").is_err());
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest() {
        assert!(found("carier").contains("did you mean `Carriers`?"));
        assert!(found("model/carier").contains("did you mean `Carriers`?"));
        assert!(found("zzz").contains("watershed status"));
        assert!(found("metrics_view/zzz").contains("one of: `flights`"));
        assert!(found("metrics_view/carriers").contains("`carriers` is of the kind `model`"));
    }
}
