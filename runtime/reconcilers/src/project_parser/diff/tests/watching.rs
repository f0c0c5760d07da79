//! Alerts and reports of how resources stand.

use super::*;

/// An alert or report with a question.
fn asking(kind: Kind, name: &str, resolver: &str, api: &str) -> Resource {
    let fields = BTreeMap::from([("api".to_owned(), watershed_proto::Value::from(api))]);
    let data = Some(watershed_proto::DataResolver {
        resolver: resolver.to_owned(),
        properties: Some(watershed_proto::MapValue { fields }),
    });
    let meaning = Some(fingerprint(name).to_proto());
    let spec = match kind {
        Kind::Alert => Spec::Alert(Box::new(watershed_proto::AlertSpec {
            data,
            meaning,
            ..Default::default()
        })),
        Kind::Report => Spec::Report(Box::new(watershed_proto::ReportSpec {
            data,
            ..Default::default()
        })),
        _ => Spec::Api(Box::new(watershed_proto::ApiSpec {
            data,
            ..Default::default()
        })),
    };
    Resource {
        kind,
        spec,
        ..model(name, name, &[])
    }
}

#[test]
fn what_reports_how_resources_stand_reads_all_others_and_none_that_reads_it() {
    let waits = Resource {
        refs: vec![ResourceRef {
            kind: Kind::Alert,
            name: "Failed".into(),
            required: None,
        }],
        ..model("after", "3", &[])
    };
    let project = [
        model("a", "1", &[]),
        model("b", "2", &["a"]),
        waits,
        model("after_that", "4", &["after"]),
        asking(Kind::Alert, "failed", "resource_status", ""),
        asking(Kind::Report, "weekly", "api", "outer"),
        asking(Kind::Api, "outer", "api", "statuses"),
        asking(Kind::Api, "statuses", "resource_status", ""),
        asking(Kind::Alert, "plain", "sql", ""),
    ];
    let mut catalog = Catalog::of(&project);
    let refs = |catalog: &Catalog, name: &str| {
        let row = catalog
            .rows
            .values()
            .find(|row| row.name.as_str() == name)
            .unwrap();
        let names = row.refs.iter().map(|to| to.name.as_str().to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    let all = ["a", "b", "outer", "plain", "statuses"];
    assert_eq!(refs(&catalog, "failed"), all);
    assert_eq!(refs(&catalog, "weekly"), all);
    assert_eq!(refs(&catalog, "plain"), Vec::<String>::new());
    assert_eq!(catalog.parse(&project, &[]), NOTHING);
    // What comes and goes is read and forgotten.
    let mut more = project.to_vec();
    more.push(model("c", "5", &[]));
    assert_eq!(
        catalog.parse(&more, &[]),
        ["create c", "update failed spec+refs", "update weekly spec+refs"]
    );
    // So is one whose file does not compile.
    catalog.parse(&more[1..], &["models/a.sql"]);
    assert_eq!(
        refs(&catalog, "failed"),
        ["a", "b", "c", "outer", "plain", "statuses"]
    );
    // A new name is the same alert.
    let mut renamed = project.to_vec();
    renamed[4].name = "broken".into();
    renamed[2].refs[0].name = "broken".into();
    let edits = catalog.parse(&renamed, &[]);
    assert!(edits.contains(&"rename failed broken".to_owned()), "{edits:?}");
}
