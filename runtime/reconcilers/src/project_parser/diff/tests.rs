mod watching;

use std::collections::BTreeMap;

use uuid::Uuid;
use watershed_compilers::{Fingerprint, Kind, ResourceRef};
use watershed_core::{Change, Intents, Refreshes, Revision, SpecVersion, StateVersion, Target, Timestamp};
use watershed_proto::{ModelSpec, SqlSource};

use super::*;

const PARSER: Uid = Uid(Uuid::from_u128(1000));

fn fingerprint(text: &str) -> Fingerprint {
    let mut digest = [0; 16];
    digest[..text.len()].copy_from_slice(text.as_bytes());
    Fingerprint {
        version: "1".into(),
        digest,
    }
}

/// A model whose meaning is `meaning` and whose text is that and a comment.
fn model(name: &str, meaning: &str, inputs: &[&str]) -> Resource {
    commented(name, meaning, inputs, "")
}

fn commented(name: &str, meaning: &str, inputs: &[&str], comment: &str) -> Resource {
    let meaning_print = fingerprint(meaning);
    let spec = ModelSpec {
        sql: Some(SqlSource {
            text: format!("{meaning}{comment}"),
            ..SqlSource::default()
        }),
        meaning: Some(meaning_print.to_proto()),
        inputs: inputs.iter().map(|name| (*name).to_owned()).collect(),
        ..ModelSpec::default()
    };
    Resource {
        kind: Kind::Model,
        name: name.into(),
        refs: inputs
            .iter()
            .map(|name| ResourceRef {
                kind: Kind::Model,
                name: (*name).into(),
                required: None,
            })
            .collect(),
        paths: vec![format!("models/{name}.sql")],
        tags: vec![],
        spec: Spec::Model(Box::new(spec)),
        meaning: meaning_print,
        health: Health::Ok,
        cycle: None,
    }
}

fn broken(name: &str) -> Resource {
    Resource {
        spec: Spec::None,
        health: Health::Broken,
        ..model(name, "", &[])
    }
}

fn with_paths(resource: Resource, paths: &[&str]) -> Resource {
    Resource {
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        ..resource
    }
}

/// A catalog made by applying diffs, as the controller would.
#[derive(Default)]
struct Catalog {
    rows: BTreeMap<u128, Arc<Row>>,
    next: u128,
}

impl Catalog {
    fn of(resources: &[Resource]) -> Self {
        let mut catalog = Self::default();
        catalog.parse(resources, &[]);
        catalog
    }

    fn diff(&self, resources: &[Resource], broken: &[&str]) -> Diff {
        let finding = |path: &&str| Diagnostic {
            severity: Severity::Error.into(),
            code: "sql-syntax".into(),
            path: (*path).to_owned(),
            line: 3,
            message: "half typed".into(),
            ..Diagnostic::default()
        };
        let diagnostics = broken.iter().map(finding).collect::<Vec<_>>();
        let parsed = Parsed {
            resources: resources.iter().collect(),
            broken_paths: broken.iter().copied().collect(),
            diagnostics: &diagnostics,
        };
        let rows = self.rows.values().cloned().collect::<Vec<_>>();
        let mut next = self.next;
        Diff::new(&parsed, &rows, PARSER, || {
            next += 1;
            Uid(Uuid::from_u128(next))
        })
    }

    /// Applies a parse; returns what it did, in words, sorted.
    fn parse(&mut self, resources: &[Resource], broken: &[&str]) -> Vec<String> {
        let diff = self.diff(resources, broken);
        let mut told = diff
            .batch
            .edits
            .iter()
            .map(|edit| self.told(edit))
            .collect::<Vec<_>>();
        told.sort();
        for edit in diff.batch.edits {
            self.apply(edit);
        }
        told
    }

    fn row(&self, target: &Target) -> &Row {
        let Target::Uid(uid) = target else {
            panic!("edits of rows name them by uid")
        };
        &self.rows[&uid.0.as_u128()]
    }

    fn told(&self, edit: &Edit) -> String {
        match &edit.change {
            Change::Create(new) | Change::Apply(new) => format!("create {}", new.name),
            Change::Rename(name) => format!("rename {} {name}", self.row(&edit.target).name),
            Change::Delete | Change::ForceDelete => format!("delete {}", self.row(&edit.target).name),
            Change::Update(update) => {
                let columns = [
                    update.spec.is_some().then_some("spec"),
                    update.refs.is_some().then_some("refs"),
                    update.paths.is_some().then_some("paths"),
                    update.labels.is_some().then_some("labels"),
                    update.retry.is_some().then_some("retry"),
                ];
                let columns = columns.into_iter().flatten().collect::<Vec<_>>().join("+");
                format!("update {} {columns}", self.row(&edit.target).name)
            }
        }
    }

    fn apply(&mut self, edit: Edit) {
        if let Change::Create(new) | Change::Apply(new) = edit.change {
            self.next = self.next.max(new.uid.0.as_u128());
            self.rows.insert(new.uid.0.as_u128(), Arc::new(row(*new)));
            return;
        }
        let mut row = self.row(&edit.target).clone();
        let uid = row.uid.0.as_u128();
        match edit.change {
            Change::Rename(name) => row.name = name,
            Change::Update(update) => {
                row.spec = update.spec.map_or(row.spec, |(spec, _)| spec);
                row.refs = update.refs.unwrap_or(row.refs);
                row.paths = update.paths.unwrap_or(row.paths);
                row.labels = update.labels.unwrap_or(row.labels);
                row.retry = update.retry.map_or(row.retry, |retry| retry.map(Arc::new));
            }
            _ => {
                self.rows.remove(&uid);
                return;
            }
        }
        self.rows.insert(uid, Arc::new(row));
    }

    fn edit_row(&mut self, name: &str, change: impl FnOnce(&mut Row)) {
        let row = self
            .rows
            .values_mut()
            .find(|row| row.name.as_str() == name)
            .unwrap();
        change(Arc::make_mut(row));
    }

    fn spec(&self, name: &str) -> ModelSpec {
        let row = self.rows.values().find(|row| row.name.as_str() == name).unwrap();
        ModelSpec::decode(row.spec.as_ref()).unwrap()
    }
}

fn row(new: NewResource) -> Row {
    Row {
        uid: new.uid,
        kind: new.kind,
        name: new.name,
        refs: new.refs,
        owner: new.owner,
        paths: new.paths,
        labels: new.labels,
        intents: Intents::default(),
        revision: Revision(1),
        spec_version: SpecVersion(1),
        state_version: StateVersion(0),
        error: None,
        unready: None,
        next_reconcile: None,
        attempts: 0,
        retry: new.retry.map(Arc::new),
        paused: false,
        hidden: new.hidden,
        refreshes: Refreshes::default(),
        created_at: Timestamp::default(),
        updated_at: Timestamp::default(),
        spec_format: new.spec_format,
        state_format: 0,
        runs_total: 0,
        last_run: None,
        last_success: None,
        spec: new.spec,
        state: None,
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn an_unchanged_project_edits_nothing() {
    let project = [model("a", "1", &[]), model("b", "2", &["a"])];
    let mut catalog = Catalog::default();
    assert_eq!(catalog.parse(&project, &[]), ["create a", "create b"]);
    assert_eq!(catalog.parse(&project, &[]), NOTHING);
}

#[test]
fn a_comment_edits_nothing_and_a_meaning_edits_the_spec() {
    let mut catalog = Catalog::of(&[model("a", "1", &[])]);
    assert_eq!(
        catalog.parse(&[commented("a", "1", &[], " -- why")], &[]),
        NOTHING
    );
    assert_eq!(catalog.parse(&[model("a", "2", &[])], &[]), ["update a spec"]);
}

#[test]
fn a_comment_in_a_failed_model_edits_its_spec_so_that_places_are_right() {
    let mut catalog = Catalog::of(&[model("a", "1", &[])]);
    catalog.edit_row("a", |row| {
        row.error = Some(Arc::new(watershed_core::Error::permanent("x", "y")))
    });
    assert_eq!(
        catalog.parse(&[commented("a", "1", &[], " -- why")], &[]),
        ["update a spec"]
    );
}

#[test]
fn moved_files_and_tags_are_told_without_touching_the_spec() {
    let mut catalog = Catalog::of(&[model("a", "1", &[])]);
    let moved = with_paths(model("a", "1", &[]), &["models/deep/a.sql"]);
    assert_eq!(
        catalog.parse(std::slice::from_ref(&moved), &[]),
        ["update a paths"]
    );
    let tagged = Resource {
        tags: vec!["x".into()],
        ..moved
    };
    assert_eq!(catalog.parse(&[tagged], &[]), ["update a labels"]);
}

#[test]
fn a_file_that_is_gone_deletes_what_it_declared() {
    let mut catalog = Catalog::of(&[model("a", "1", &[]), model("b", "2", &[])]);
    assert_eq!(catalog.parse(&[model("b", "2", &[])], &[]), ["delete a"]);
}

#[test]
fn a_renamed_file_renames_and_its_readers_follow() {
    let mut catalog = Catalog::of(&[model("a", "1", &[]), model("r", "2", &["a"])]);
    let renamed = [model("b", "1", &[]), model("r", "2", &["b"])];
    assert_eq!(
        catalog.parse(&renamed, &[]),
        ["rename a b", "update a paths", "update r spec+refs"]
    );
    assert_eq!(catalog.parse(&renamed, &[]), NOTHING);
}

#[test]
fn another_case_of_a_name_is_a_rename() {
    let mut catalog = Catalog::of(&[model("orders", "1", &[]), model("r", "2", &["orders"])]);
    let renamed = [
        with_paths(model("Orders", "1", &[]), &["models/orders.sql"]),
        model("r", "2", &["orders"]),
    ];
    assert_eq!(catalog.parse(&renamed, &[]), ["rename orders Orders"]);
}

#[test]
fn swapped_files_swap_names() {
    let mut catalog = Catalog::of(&[model("a", "1", &[]), model("b", "2", &[])]);
    let swapped = [model("a", "2", &[]), model("b", "1", &[])];
    assert_eq!(
        catalog.parse(&swapped, &[]),
        ["rename a b", "rename b a", "update a paths", "update b paths"]
    );
    assert_eq!(catalog.parse(&swapped, &[]), NOTHING);
}

#[test]
fn a_model_that_does_not_compile_keeps_its_spec_and_carries_the_finding() {
    let mut catalog = Catalog::of(&[model("a", "1", &["x"]), model("b", "2", &["a"])]);
    let half_typed = [broken("a"), model("b", "2", &["a"])];
    assert_eq!(catalog.parse(&half_typed, &["models/a.sql"]), ["update a spec"]);
    let spec = catalog.spec("a");
    assert_eq!(spec.sql.unwrap().text, "1");
    let fault = spec.fault.unwrap();
    assert_eq!(
        (fault.code.as_str(), fault.path.as_str(), fault.line),
        ("sql-syntax", "models/a.sql", 3)
    );
    assert_eq!(catalog.parse(&half_typed, &["models/a.sql"]), NOTHING);
    assert_eq!(
        catalog.parse(&[model("a", "1", &["x"]), model("b", "2", &["a"])], &[]),
        ["update a spec"]
    );
    assert_eq!(catalog.spec("a").fault, None);
}

#[test]
fn a_new_model_that_does_not_compile_is_there_with_its_finding() {
    let mut catalog = Catalog::default();
    assert_eq!(catalog.parse(&[broken("a")], &["models/a.sql"]), ["create a"]);
    assert!(catalog.spec("a").fault.is_some());
}

#[test]
fn what_a_broken_file_declared_before_is_kept_whatever_it_seems_to_declare_now() {
    let named = with_paths(model("custom", "1", &[]), &["models/a.yaml"]);
    let mut catalog = Catalog::of(std::slice::from_ref(&named));
    let guess = with_paths(broken("a"), &["models/a.yaml"]);
    assert_eq!(
        catalog.parse(&[guess], &["models/a.yaml"]),
        ["update custom spec"]
    );
    assert_eq!(catalog.parse(&[], &["models/a.yaml"]), NOTHING);
    assert_eq!(catalog.parse(&[named], &[]), ["update custom spec"]);
}

#[test]
fn what_reads_a_kept_resource_goes_on_reading_it() {
    let named = with_paths(model("custom", "1", &[]), &["models/a.yaml"]);
    let mut catalog = Catalog::of(&[named.clone(), model("r", "from custom", &["custom"])]);
    // To the files alone, `custom` is nobody's.
    let reader = model("r", "from custom", &[]);
    catalog.parse(&[reader, model("other", "from customs", &[])], &["models/a.yaml"]);
    let refs = |name: &str| {
        catalog
            .rows
            .values()
            .find(|row| row.name.as_str() == name)
            .unwrap()
            .refs
            .len()
    };
    assert_eq!((refs("r"), refs("other")), (1, 0));
}

#[test]
fn a_file_that_compiles_without_a_resource_deletes_it() {
    let mut catalog = Catalog::of(&[with_paths(model("a", "1", &[]), &["x.yaml"])]);
    let other = Resource {
        kind: Kind::Explore,
        spec: Spec::None,
        ..with_paths(model("a", "1", &[]), &["x.yaml"])
    };
    assert_eq!(catalog.parse(&[other], &[]), ["create a", "delete a"]);
}

#[test]
fn the_winner_of_a_collision_stays_the_winner_while_its_file_does_not_compile() {
    let winner = with_paths(model("a", "1", &[]), &["models/1.yaml"]);
    let loser = with_paths(model("a", "2", &[]), &["models/2.yaml"]);
    let mut catalog = Catalog::of(&[winner]);
    let diff = catalog.diff(std::slice::from_ref(&loser), &["models/1.yaml"]);
    assert_eq!(diff.findings[0].code, "name-collision");
    assert_eq!(diff.findings[0].path, "models/2.yaml");
    assert_eq!(
        catalog.parse(std::slice::from_ref(&loser), &["models/1.yaml"]),
        ["update a spec"]
    );
    assert_eq!(catalog.spec("a").sql.unwrap().text, "1");
    // When it is gone, the next takes over.
    assert_eq!(catalog.parse(&[loser], &[]), ["update a spec+paths"]);
}

#[test]
fn a_smaller_path_wins_over_a_broken_file() {
    let mut catalog = Catalog::of(&[with_paths(model("a", "1", &[]), &["models/2.yaml"])]);
    let smaller = with_paths(model("a", "2", &[]), &["models/1.yaml"]);
    assert_eq!(
        catalog.parse(&[smaller], &["models/2.yaml"]),
        ["update a spec+paths"]
    );
}

#[test]
fn a_name_of_somebody_else_is_a_finding_and_the_rest_is_applied() {
    let mut catalog = Catalog::of(&[model("theirs", "1", &[])]);
    catalog.edit_row("theirs", |row| row.owner = None);
    let project = [model("theirs", "2", &[]), model("ours", "3", &[])];
    let diff = catalog.diff(&project, &[]);
    assert_eq!(
        (diff.findings[0].code.as_str(), diff.findings[0].path.as_str()),
        ("name-taken", "models/theirs.sql")
    );
    assert_eq!(catalog.parse(&project, &[]), ["create ours"]);
}

#[test]
fn resources_of_somebody_else_and_deleted_ones_are_left_alone() {
    let mut catalog = Catalog::of(&[model("theirs", "1", &[]), model("gone", "2", &[])]);
    catalog.edit_row("theirs", |row| row.owner = None);
    catalog.edit_row("gone", |row| {
        row.intents.deletion = Some(watershed_core::Deletion {
            at: Timestamp::default(),
            revision: watershed_core::Revision::default(),
        });
    });
    assert_eq!(catalog.parse(&[], &[]), NOTHING);
}

#[test]
fn a_policy_for_retries_is_told_beside_the_spec() {
    let patient = |attempts| {
        let mut resource = model("a", "1", &[]);
        if let Spec::Model(spec) = &mut resource.spec {
            spec.retry = Some(watershed_proto::Retry {
                attempts: Some(attempts),
                ..watershed_proto::Retry::default()
            });
        }
        resource
    };
    let attempts = |catalog: &Catalog| match catalog.rows.values().next().unwrap().retry.as_deref() {
        Some(RetryPolicy::Backoff { attempts, .. }) => Some(*attempts),
        _ => None,
    };
    let mut catalog = Catalog::of(&[patient(4)]);
    assert_eq!(attempts(&catalog), Some(4));
    assert_eq!(catalog.parse(&[patient(4)], &[]), NOTHING);
    assert_eq!(catalog.parse(&[patient(6)], &[]), ["update a retry"]);
    // A file that does not compile keeps what it said.
    catalog.parse(&[broken("a")], &["models/a.sql"]);
    assert_eq!(attempts(&catalog), Some(6));
    assert_eq!(
        catalog.parse(&[model("a", "1", &[])], &[]),
        ["update a spec+retry"]
    );
    assert_eq!(attempts(&catalog), None);
    // So it is in a catalog of a version that knew no policies.
    catalog.parse(&[patient(4)], &[]);
    catalog.edit_row("a", |row| row.retry = None);
    assert_eq!(catalog.parse(&[patient(4)], &[]), ["update a retry"]);
}

/// A managed resource whose meaning is `meaning`.
fn managed_one(name: &str, meaning: &str) -> Resource {
    let print = fingerprint(meaning);
    let spec = watershed_proto::ManagedSpec {
        desired: "active".into(),
        meaning: Some(print.to_proto()),
        ..watershed_proto::ManagedSpec::default()
    };
    Resource {
        kind: Kind::Managed,
        paths: vec![format!("managed/{name}.yaml")],
        spec: Spec::Managed(Box::new(spec)),
        meaning: print,
        ..model(name, "", &[])
    }
}

/// Parts are rows of their owner, which no file declares.
fn add_part(catalog: &mut Catalog, owner: &str, name: &str) {
    let owner = catalog.rows.values().find(|row| row.name.as_str() == owner);
    let owner = owner.map(|row| row.uid);
    catalog.next += 1;
    let uid = Uid(Uuid::from_u128(catalog.next));
    let new = NewResource {
        owner,
        ..NewResource::new(uid, Kind::Managed.as_str(), name, Vec::new())
    };
    catalog.rows.insert(catalog.next, Arc::new(row(new)));
}

#[test]
fn parts_are_renamed_with_their_owners_also_where_those_trade_names() {
    let mut catalog = Catalog::of(&[managed_one("a", "1"), managed_one("b", "2")]);
    for (owner, name) in [("a", "a.x"), ("a.x", "a.x.y"), ("b", "b.x"), ("b", "other")] {
        add_part(&mut catalog, owner, name);
    }
    let swapped = [managed_one("a", "2"), managed_one("b", "1")];
    assert_eq!(
        catalog.parse(&swapped, &[]),
        [
            "rename a b",
            "rename a.x b.x",
            "rename a.x.y b.x.y",
            "rename b a",
            "rename b.x a.x",
            "update a paths",
            "update b paths"
        ]
    );
    assert_eq!(catalog.parse(&swapped, &[]), NOTHING);
}
