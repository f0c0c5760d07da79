mod moves;
mod stale;
mod stores;
mod views;

use uuid::Uuid;

use watershed_drivers::{files::FileNow, olap::Location};

use super::*;

const NOW: i64 = 1_000_000_000_000;

fn build(n: u128) -> BuildId {
    BuildId(Uuid::from_u128(n))
}

fn meaning(version: &str, byte: u8) -> Meaning {
    Meaning {
        version: version.into(),
        digest: [byte; 16],
    }
}

fn input(table: &str, n: u128) -> Input {
    Input {
        table: table.into(),
        build: build(n),
        columns: None,
    }
}

fn seen(path: &str, modified_ns: i64, content: u8) -> FileSeen {
    FileSeen {
        path: path.into(),
        modified_ns,
        size: 10,
        content: Some([content; 32]),
        seen_at_ns: NOW,
    }
}

fn now(path: &str, modified_ns: i64, content: Option<u8>) -> FileNow {
    FileNow {
        path: path.into(),
        modified_ns,
        size: 10,
        content: content.map(|byte| [byte; 32]),
    }
}

/// A macro of a version.
fn made(version: u8) -> BTreeMap<String, Version> {
    BTreeMap::from([("dollars".to_owned(), [version; 16])])
}

/// A model that is as it should be, to be disturbed by each test.
struct Case {
    table: &'static str,
    shape: Shape,
    meaning: Meaning,
    inputs: Vec<Input>,
    files: Vec<FileNow>,
    asked_store: bool,
    text_alone: bool,
    made: BTreeMap<String, Version>,
    asked: Refreshes,
    triggers: Triggers,
    incremental: bool,
    on_edit: OnEdit,
    record: Record,
    refingerprinted: Option<Meaning>,
    known_output: Option<(&'static str, Shape, BuildId)>,
}

impl Case {
    fn settled(shape: Shape) -> Self {
        let inputs = vec![input("a", 11), input("b", 12)];
        let record = Record {
            build: build(7),
            tagged: build(7),
            columns: None,
            location: Location::named("m"),
            shape,
            meaning: meaning("1", 5),
            definition: b"select".to_vec(),
            inputs: inputs.clone(),
            files: vec![seen("x.csv", 5, 1), seen("y.csv", 6, 2)],
            made: watershed_outputs::traces::Reads {
                inputs: made(1),
                files: Vec::new(),
            },
            answered: Refreshes { plain: 2, full: 1 },
            approvals: 0,
            tests: Vec::new(),
            results: Vec::new(),
            rows: Some(3),
            built_at_ms: 1,
            took_ms: 2,
            total_ms: 2,
            incremental: false,
            steps: 0,
            partitions: None,
            unfinished: false,
            stale_input: false,
            asked_at_ms: 0,
            schedule: String::new(),
            counts_from_ms: 0,
            state: None,
        };
        Self {
            table: "m",
            shape,
            meaning: meaning("1", 5),
            inputs,
            files: vec![now("x.csv", 5, None), now("y.csv", 6, None)],
            made: made(1),
            asked: Refreshes { plain: 2, full: 1 },
            triggers: Triggers {
                inputs: true,
                files: true,
                due: false,
            },
            incremental: false,
            on_edit: OnEdit::Reset,
            asked_store: false,
            text_alone: false,
            record,
            refingerprinted: None,
            known_output: Some(("m", shape, build(7))),
        }
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            table: self.table,
            shape: self.shape,
            meaning: &self.meaning,
            inputs: &self.inputs,
            files: &self.files,
            made: &self.made,
            asked: self.asked,
            triggers: self.triggers,
            incremental: self.incremental,
            left: false,
            asked_store: self.asked_store,
            text_alone: self.text_alone,
            on_edit: self.on_edit,
            protected: self.on_edit == OnEdit::Hold,
        }
    }

    fn output(&self) -> Output<'_> {
        let object = match self.known_output {
            None => Object::Missing,
            Some((table, shape, build)) => Object::Present { table, shape, build },
        };
        Output {
            record: &self.record,
            refingerprinted: self.refingerprinted.as_ref(),
            object,
        }
    }

    fn plan(&self) -> Decision {
        plan(&self.wanted(), &ExistingOutput::Own(self.output()))
    }

    fn plan_as_orphan(&self) -> Decision {
        plan(&self.wanted(), &ExistingOutput::Orphan(self.output()))
    }
}

fn both(disturb: impl Fn(&mut Case)) -> [Decision; 2] {
    [Shape::Table, Shape::View].map(|shape| {
        let mut case = Case::settled(shape);
        disturb(&mut case);
        case.plan()
    })
}

fn built(reason: BuildReason) -> [Decision; 2] {
    [Decision::Build(reason.clone()), Decision::Build(reason)]
}

#[test]
fn an_output_that_is_as_it_should_be_is_left_alone() {
    assert_eq!(both(|_| ()), [Decision::Nothing, Decision::Nothing]);
}

#[test]
fn what_was_never_built_is_built() {
    let case = Case::settled(Shape::Table);
    assert_eq!(
        plan(&case.wanted(), &ExistingOutput::Nothing),
        Decision::Build(BuildReason::NeverBuilt)
    );
}

#[test]
fn an_output_dropped_by_hand_is_built_again() {
    assert_eq!(both(|case| case.known_output = None), built(BuildReason::Dropped));
}

#[test]
fn an_object_of_another_build_is_built_over() {
    assert_eq!(
        both(|case| case.known_output = Some(("m", case.shape, build(8)))),
        built(BuildReason::Replaced)
    );
}

#[test]
fn an_object_of_another_shape_than_recorded_is_built_over() {
    let mut case = Case::settled(Shape::Table);
    case.known_output = Some(("m", Shape::View, build(7)));
    assert_eq!(case.plan(), Decision::Build(BuildReason::Replaced));
}

#[test]
fn a_refresh_that_no_build_answered_builds() {
    assert_eq!(both(|case| case.asked.plain = 3), built(BuildReason::Refresh));
    assert_eq!(both(|case| case.asked.full = 2), built(BuildReason::FullRefresh));
}

#[test]
fn a_change_of_definition_builds() {
    assert_eq!(
        both(|case| case.meaning = meaning("1", 6)),
        built(BuildReason::DefinitionChanged)
    );
}

#[test]
fn a_change_between_view_and_table_builds() {
    for (was, is) in [(Shape::View, Shape::Table), (Shape::Table, Shape::View)] {
        let mut case = Case::settled(was);
        case.shape = is;
        assert_eq!(case.plan(), Decision::Build(BuildReason::ShapeChanged));
    }
}

#[test]
fn a_new_fingerprint_version_builds_nothing_when_the_recorded_text_means_the_same() {
    let upgraded = both(|case| {
        case.meaning = meaning("2", 9);
        case.refingerprinted = Some(meaning("2", 9));
    });
    assert_eq!(upgraded, [Decision::Nothing, Decision::Nothing]);
}

#[test]
fn a_new_fingerprint_version_builds_when_the_recorded_text_means_something_else() {
    let edited = both(|case| {
        case.meaning = meaning("2", 9);
        case.refingerprinted = Some(meaning("2", 8));
    });
    assert_eq!(edited, built(BuildReason::DefinitionChanged));
}

#[test]
fn a_new_fingerprint_version_builds_when_the_recorded_text_is_lost() {
    // Equal digests of different versions prove nothing.
    assert_eq!(
        both(|case| case.meaning = meaning("2", 5)),
        built(BuildReason::DefinitionChanged)
    );
}

#[test]
fn an_input_that_was_built_again_builds_a_table_and_makes_a_view_again() {
    let decisions = both(|case| case.inputs[1] = input("b", 13));
    assert_eq!(
        decisions,
        [
            Decision::Build(BuildReason::InputChanged(1)),
            Decision::MakeViewAgain(Again::InputChanged(1))
        ]
    );
}

#[test]
fn an_input_that_came_or_went_counts_as_changed() {
    for disturb in [
        |case: &mut Case| drop(case.inputs.pop()),
        |case: &mut Case| case.inputs.push(input("c", 13)),
    ] {
        let [table, view] = both(disturb);
        assert!(
            matches!(table, Decision::Build(BuildReason::InputChanged(_))),
            "{table:?}"
        );
        assert!(
            matches!(view, Decision::MakeViewAgain(Again::InputChanged(_))),
            "{view:?}"
        );
    }
}

#[test]
fn a_renamed_input_rebuilds_no_table_and_makes_a_view_again() {
    let decisions = both(|case| case.inputs[0] = input("renamed", 11));
    assert_eq!(
        decisions,
        [Decision::Nothing, Decision::MakeViewAgain(Again::InputRenamed)]
    );
}

#[test]
fn an_output_under_another_name_is_renamed() {
    let decisions = both(|case| case.table = "n");
    assert_eq!(decisions, [(); 2].map(|()| Decision::Rename { from: "m".into() }));
}

#[test]
fn a_change_of_case_alone_is_a_rename() {
    assert_eq!(
        both(|case| case.table = "M")[0],
        Decision::Rename { from: "m".into() }
    );
}

#[test]
fn an_output_that_is_built_anyway_is_not_renamed_first() {
    let decisions = both(|case| {
        case.table = "n";
        case.meaning = meaning("1", 6);
    });
    assert_eq!(decisions, built(BuildReason::DefinitionChanged));
}

#[test]
fn a_touched_file_with_the_same_content_builds_nothing() {
    let decisions = both(|case| case.files[0] = now("x.csv", 99, Some(1)));
    assert_eq!(decisions, [Decision::Nothing, Decision::Nothing]);
}

#[test]
fn a_file_with_other_content_builds() {
    let decisions = both(|case| case.files[1] = now("y.csv", 99, Some(9)));
    assert_eq!(decisions, built(BuildReason::FileChanged("y.csv".into())));
}

#[test]
fn a_file_that_came_or_went_builds() {
    let gone = both(|case| drop(case.files.remove(0)));
    assert_eq!(gone, built(BuildReason::FileChanged("x.csv".into())));
    let came = both(|case| case.files.push(now("z.csv", 1, None)));
    assert_eq!(came, built(BuildReason::FileChanged("z.csv".into())));
    let all_gone = both(|case| case.files.clear());
    assert_eq!(all_gone, built(BuildReason::FileChanged("x.csv".into())));
}

#[test]
fn a_file_whose_content_was_not_recorded_builds() {
    let decisions = both(|case| {
        case.record.files[0].content = None;
        case.files[0].content = Some([1; 32]);
    });
    assert_eq!(decisions, built(BuildReason::FileChanged("x.csv".into())));
}

#[test]
fn only_files_that_time_and_size_do_not_prove_are_hashed() {
    let then = [seen("a", 5, 1), seen("b", 5, 1), seen("c", 5, 1)];
    let mut files = [now("a", 5, None), now("b", 6, None), now("c", 5, None)];
    files[2].size = 11;
    assert_eq!(unproven(&then, &files), [1, 2]);
    assert_eq!(
        unproven(&then, &files[..2]),
        [] as [usize; 0],
        "another set of files is a build anyway"
    );
}

#[test]
fn a_file_looked_at_right_after_it_changed_is_not_proven() {
    let recent = NOW - CLOCK_GRAIN_NS / 2;
    assert_eq!(unproven(&[seen("a", recent, 1)], &[now("a", recent, None)]), [0]);
    let settled = NOW - 2 * CLOCK_GRAIN_NS;
    assert_eq!(
        unproven(&[seen("a", settled, 1)], &[now("a", settled, None)]),
        [] as [usize; 0]
    );
}

#[test]
fn an_output_of_a_lost_catalog_that_fits_is_adopted() {
    for shape in [Shape::Table, Shape::View] {
        let mut case = Case::settled(shape);
        // A new catalog counts refreshes from zero.
        case.asked = Refreshes::default();
        assert_eq!(case.plan_as_orphan(), Decision::Adopt);
    }
}

#[test]
fn an_output_of_a_lost_catalog_that_does_not_fit_is_built_over() {
    type Disturbance = fn(&mut Case);
    let disturbances: [(Disturbance, BuildReason); 6] = [
        (|case| case.known_output = None, BuildReason::Dropped),
        (
            |case| case.meaning = meaning("1", 6),
            BuildReason::DefinitionChanged,
        ),
        (|case| case.shape = Shape::View, BuildReason::ShapeChanged),
        (
            |case| case.inputs[0] = input("a", 99),
            BuildReason::InputChanged(0),
        ),
        (
            |case| case.files[0] = now("x.csv", 9, Some(9)),
            BuildReason::FileChanged("x.csv".into()),
        ),
        (|case| case.table = "n", BuildReason::NeverBuilt),
    ];
    for (disturb, reason) in disturbances {
        let mut case = Case::settled(Shape::Table);
        disturb(&mut case);
        assert_eq!(case.plan_as_orphan(), Decision::Build(reason));
    }
}

#[test]
fn an_orphaned_view_over_a_renamed_input_is_built_over() {
    let mut case = Case::settled(Shape::View);
    case.inputs[0] = input("renamed", 11);
    assert_eq!(
        case.plan_as_orphan(),
        Decision::Build(BuildReason::DefinitionChanged)
    );
}

#[test]
fn the_decision_is_the_same_when_asked_twice() {
    let case = Case::settled(Shape::View);
    assert_eq!(case.plan(), case.plan());
}

#[test]
fn another_version_of_what_a_migration_made_is_another_input() {
    for (now, table) in [(made(2), true), (BTreeMap::new(), true), (made(2), false)] {
        let shape = if table { Shape::Table } else { Shape::View };
        let mut case = Case::settled(shape);
        assert_eq!(
            plan(&case.wanted(), &ExistingOutput::Own(case.output())),
            Decision::Nothing
        );
        case.made = now;
        let expected = if table {
            Decision::Build(BuildReason::MadeChanged("dollars".into()))
        } else {
            Decision::MakeViewAgain(Again::MadeChanged)
        };
        assert_eq!(
            plan(&case.wanted(), &ExistingOutput::Own(case.output())),
            expected
        );
        let orphan = plan(&case.wanted(), &ExistingOutput::Orphan(case.output()));
        assert_eq!(
            orphan,
            Decision::Build(BuildReason::MadeChanged("dollars".into()))
        );
    }
}

/// The same for an incremental table.
fn incremental(on_edit: OnEdit) -> Case {
    Case {
        incremental: true,
        on_edit,
        ..Case::settled(Shape::Table)
    }
}

#[test]
fn new_data_adds_to_the_rows_of_an_incremental_model() {
    type Disturb = fn(&mut Case);
    let disturbed: [(Disturb, BuildReason); 5] = [
        (|case| case.asked.plain += 1, BuildReason::Refresh),
        (|case| case.triggers.due = true, BuildReason::Scheduled),
        (
            |case| case.files[0] = now("x.csv", 9, Some(9)),
            BuildReason::FileChanged("x.csv".into()),
        ),
        (
            |case| case.made = made(2),
            BuildReason::MadeChanged("dollars".into()),
        ),
        (
            |case| case.inputs[1] = input("b", 99),
            BuildReason::InputChanged(1),
        ),
    ];
    for (disturb, reason) in disturbed {
        let mut case = incremental(OnEdit::Hold);
        disturb(&mut case);
        assert_eq!(case.plan(), Decision::Add(reason.clone()));
        case.incremental = false;
        assert_eq!(case.plan(), Decision::Build(reason));
    }
}

#[test]
fn an_edit_resets_holds_or_keeps_the_rows() {
    let edited = |on_edit| {
        let mut case = incremental(on_edit);
        case.meaning = meaning("1", 6);
        case
    };
    assert_eq!(
        edited(OnEdit::Reset).plan(),
        Decision::Build(BuildReason::DefinitionChanged)
    );
    assert_eq!(
        edited(OnEdit::Hold).plan(),
        Decision::Hold(BuildReason::DefinitionChanged)
    );
    assert_eq!(edited(OnEdit::Keep).plan(), Decision::Accept);
    for on_edit in [OnEdit::Reset, OnEdit::Hold, OnEdit::Keep] {
        let mut case = edited(on_edit);
        case.asked.full += 1;
        assert_eq!(
            case.plan(),
            Decision::Build(BuildReason::FullRefresh),
            "{on_edit:?}"
        );
        case.asked = case.record.answered;
        case.known_output = None;
        assert_eq!(case.plan(), Decision::Build(BuildReason::Dropped), "{on_edit:?}");
    }
}

#[test]
fn new_data_comes_by_a_kept_edit_and_waits_for_a_held_one() {
    let edited = |on_edit| {
        let mut case = incremental(on_edit);
        case.meaning = meaning("1", 6);
        case.inputs[0] = input("a", 99);
        case.asked.plain += 1;
        case
    };
    assert_eq!(edited(OnEdit::Keep).plan(), Decision::Add(BuildReason::Refresh));
    assert_eq!(
        edited(OnEdit::Hold).plan(),
        Decision::Hold(BuildReason::DefinitionChanged)
    );
    assert_eq!(
        edited(OnEdit::Reset).plan(),
        Decision::Build(BuildReason::Refresh)
    );
}

#[test]
fn what_a_model_does_not_follow_is_no_reason_but_a_view_is_made_again() {
    for shape in [Shape::Table, Shape::View] {
        let mut case = Case::settled(shape);
        case.triggers.inputs = false;
        case.inputs[1] = input("b", 99);
        let expected = match shape {
            Shape::Table => Decision::Nothing,
            Shape::View => Decision::MakeViewAgain(Again::InputChanged(1)),
        };
        assert_eq!(case.plan(), expected);
    }
    let mut case = Case::settled(Shape::Table);
    case.triggers.files = false;
    case.files[0] = now("x.csv", 9, Some(9));
    assert_eq!(case.plan(), Decision::Nothing);
    case.asked.plain += 1;
    assert_eq!(case.plan(), Decision::Build(BuildReason::Refresh));
}

#[test]
fn rows_of_a_lost_catalog_are_taken_over_before_new_ones_are_added() {
    let mut case = incremental(OnEdit::Hold);
    case.inputs[0] = input("a", 99);
    assert_eq!(case.plan_as_orphan(), Decision::Adopt);
    case.meaning = meaning("1", 6);
    assert_eq!(
        case.plan_as_orphan(),
        Decision::Hold(BuildReason::DefinitionChanged)
    );
    case.on_edit = OnEdit::Reset;
    assert_eq!(
        case.plan_as_orphan(),
        Decision::Build(BuildReason::DefinitionChanged)
    );
}
