//! Sources that read objects of a store.

use super::*;

#[test]
fn a_store_that_was_asked_and_has_nothing_new_answers_a_refresh() {
    let decide = |edit: &dyn Fn(&mut Case)| {
        let mut case = Case::settled(Shape::Table);
        case.asked_store = true;
        case.asked.plain += 1;
        edit(&mut case);
        case.plan()
    };
    assert_eq!(decide(&|_| ()), Decision::Unchanged);
    let changed = decide(&|case| case.files[0] = now("x.csv", 9, Some(9)));
    assert_eq!(changed, Decision::Build(BuildReason::FileChanged("x.csv".into())));
    let full = decide(&|case| case.asked.full += 1);
    assert_eq!(full, Decision::Build(BuildReason::FullRefresh));
    let edited = decide(&|case| case.meaning = meaning("1", 6));
    assert_eq!(edited, Decision::Build(BuildReason::Refresh));
}

#[test]
fn an_object_is_the_one_that_was_read_by_its_version_alone() {
    let mut case = Case::settled(Shape::Table);
    case.asked_store = true;
    case.triggers.due = true;
    let same_time = |path: &str, version: u8| now(path, 5, Some(version));
    case.record.files = vec![seen("s3://b/x", 5, 1)];
    case.files = vec![same_time("s3://b/x", 1)];
    assert_eq!(case.plan(), Decision::Unchanged);
    case.files = vec![same_time("s3://b/x", 2)];
    assert_eq!(
        case.plan(),
        Decision::Build(BuildReason::FileChanged("s3://b/x".into()))
    );
}
