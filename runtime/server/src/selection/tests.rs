use std::collections::BTreeMap;
use std::sync::Arc;

use watershed_core::{Row, SpecVersion};
use watershed_proto::{Message as _, ModelSpec};

use super::*;
use crate::report::fixture::{entry, failed, model};

fn tagged(row: Row, tags: &str) -> Row {
    let labels = BTreeMap::from([(Arc::from("tags"), Arc::from(tags))]);
    Row {
        labels: Arc::new(labels),
        ..row
    }
}

/// A chain raw <- staged <- daily <- report beside `other`, and a metrics view of the name of a model.
fn entries() -> Vec<Entry> {
    let view = Row {
        kind: "metrics_view".into(),
        uid: model("another", &[]).uid,
        paths: [Arc::from("metrics/daily.yaml")].into(),
        ..model("daily", &["daily"])
    };
    let edited = Row {
        spec_version: SpecVersion(2),
        ..model("report", &["daily"])
    };
    let staged = Row {
        paths: [Arc::from("models/staging/staged.sql")].into(),
        ..model("staged", &["raw"])
    };
    let source = ModelSpec {
        defined_as_source: true,
        ..ModelSpec::default()
    };
    let raw = Row {
        spec: source.encode_to_vec().into(),
        ..model("raw", &[])
    };
    [
        raw,
        tagged(staged, "nightly,core"),
        tagged(model("daily", &["staged"]), "core"),
        edited,
        failed(model("other", &[])),
        view,
    ]
    .into_iter()
    .map(entry)
    .collect()
}

fn chosen(select: &[&str], exclude: &[&str]) -> String {
    let entries = entries();
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let selection = Selection {
        select: owned(select),
        exclude: owned(exclude),
    };
    match selection.among(&entries, States::Known) {
        Ok(Some(uids)) => {
            let named = entries.iter().filter(|entry| uids.contains(&entry.row.uid));
            let named = named.map(|entry| match entry.row.kind.as_str() {
                "model" => entry.row.name.to_string(),
                _ => entry.row.key().to_string(),
            });
            named.collect::<Vec<_>>().join(" ")
        }
        Ok(None) => "everything".to_owned(),
        Err(refusal) => format!("{} ({})", refusal.message, refusal.hint.unwrap_or_default()),
    }
}

#[test]
fn a_name_is_all_resources_of_that_name_unless_its_kind_is_said() {
    assert_eq!(chosen(&["daily"], &[]), "daily metrics_view/daily");
    assert_eq!(chosen(&["model/DAILY"], &[]), "daily");
    assert_eq!(chosen(&["*ed"], &[]), "staged");
    assert_eq!(chosen(&[], &[]), "everything");
}

#[test]
fn plus_signs_reach_up_and_down_as_far_as_they_say() {
    assert_eq!(chosen(&["+model/daily"], &[]), "raw staged daily");
    assert_eq!(
        chosen(&["staged+"], &[]),
        "staged daily report metrics_view/daily"
    );
    assert_eq!(
        chosen(&["+staged+"], &[]),
        "raw staged daily report metrics_view/daily"
    );
    assert_eq!(chosen(&["1+model/daily"], &[]), "staged daily");
    assert_eq!(chosen(&["raw+2"], &[]), "raw staged daily");
    assert_eq!(chosen(&["1+staged+1"], &[]), "raw staged daily");
    assert_eq!(chosen(&["@report"], &[]), "raw staged daily report");
}

#[test]
fn terms_are_united_and_commas_intersect() {
    assert_eq!(chosen(&["raw other"], &[]), "raw other");
    assert_eq!(chosen(&["raw", "other"], &[]), "raw other");
    assert_eq!(chosen(&["tag:core,tag:nightly"], &[]), "staged");
    assert_eq!(chosen(&["staged+,path:models"], &[]), "staged daily report");
    assert_eq!(chosen(&["tag:core"], &["tag:nightly"]), "daily");
    assert_eq!(chosen(&[], &["staged+"]), "raw other");
}

#[test]
fn tags_kinds_paths_and_states_choose() {
    assert_eq!(chosen(&["tag:core"], &[]), "staged daily");
    assert_eq!(chosen(&["kind:metrics-view"], &[]), "metrics_view/daily");
    assert_eq!(chosen(&["kind:source"], &[]), "raw");
    assert_eq!(chosen(&["kind:model"], &[]), "staged daily report other");
    assert_eq!(chosen(&["source/raw"], &[]), "raw");
    assert_eq!(chosen(&["model/raw"], &[]), "raw");
    assert_eq!(chosen(&["path:models/staging/"], &[]), "staged");
    assert_eq!(chosen(&["path:models/staging/*.sql"], &[]), "staged");
    assert_eq!(chosen(&["models/staging"], &[]), "staged");
    assert_eq!(chosen(&["./models/raw.sql"], &[]), "raw");
    assert_eq!(chosen(&["state:failed"], &[]), "other");
    assert_eq!(chosen(&["state:modified"], &[]), "report");
    assert_eq!(
        chosen(&["state:failed,raw"], &[]),
        "",
        "nothing stands so, which is no mistake"
    );
}

#[test]
fn a_criterion_that_matches_nothing_is_an_error_with_the_nearest_name() {
    let message = chosen(&["stagd+"], &[]);
    assert_eq!(message, "there is no resource `stagd` (did you mean `staged`?)");
    assert!(chosen(&["raw"], &["stagd"]).contains("did you mean `staged`?"));
    assert!(chosen(&["tag:cor"], &[]).contains("did you mean `tag:core`?"));
    assert!(chosen(&["kind:modle"], &[]).contains("did you mean `kind:model`?"));
    assert!(chosen(&["path:models/stagin"], &[]).contains("did you mean `path:models/staging`?"));
    assert!(chosen(&["raw,other"], &[]).starts_with("the selection leaves no resource"));
}

#[test]
fn an_option_that_can_not_be_read_says_why() {
    assert!(chosen(&["state:fialed"], &[]).contains("`state:failed` and `state:modified`"));
    assert!(chosen(&["tags:core"], &[]).contains("did you mean `tag:core`?"));
    assert!(chosen(&["tag:"], &[]).contains("nothing stands behind the colon"));
    assert!(chosen(&["raw,"], &[]).contains("it names nothing"));
    assert!(chosen(&["+"], &[]).contains("it names nothing"));
    assert!(chosen(&[" "], &[]).contains("it is empty"));
    assert!(chosen(&["@raw+"], &[]).contains("both ways already"));
    assert!(chosen(&["path:[a"], &[]).contains("is no pattern"));
}

#[test]
fn states_are_not_known_without_a_catalog() {
    let selection = Selection {
        select: vec!["state:failed".to_owned()],
        exclude: Vec::new(),
    };
    assert!(selection.among(&entries(), States::Unknown).is_err());
}
