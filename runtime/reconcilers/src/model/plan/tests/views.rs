//! Views whose inputs were built again.

use super::*;
use crate::model::columns::Columns;

fn with_columns(table: &str, n: u128, columns: u8) -> Input {
    Input {
        columns: Columns::from_bytes(&[columns; 16]),
        ..input(table, n)
    }
}

/// A view that is nothing but its text, over inputs whose columns are known; the second of them was built again.
fn over_other_rows() -> Case {
    let mut case = Case::settled(Shape::View);
    case.text_alone = true;
    case.files.clear();
    case.record.files.clear();
    case.record.inputs = vec![with_columns("a", 11, 1), with_columns("b", 12, 2)];
    case.inputs = vec![with_columns("a", 11, 1), with_columns("b", 13, 2)];
    case
}

#[test]
fn a_view_is_left_as_it_is_where_its_inputs_have_the_columns_that_they_had() {
    assert_eq!(over_other_rows().plan(), Decision::Follow(1));
}

#[test]
fn a_view_is_made_again_where_what_it_reads_may_fit_no_more_or_more_is_done_than_to_make_it() {
    let disturb: [fn(&mut Case); 6] = [
        |case| case.inputs[1] = with_columns("b", 13, 3),
        |case| case.inputs[1].columns = None,
        |case| case.record.inputs[0].columns = None,
        |case| case.text_alone = false,
        |case| {
            case.record.files = vec![seen("x.csv", 5, 1)];
            case.files = vec![now("x.csv", 5, None)];
        },
        |case| case.known_output = Some(("other", Shape::View, build(7))),
    ];
    for (number, disturb) in disturb.into_iter().enumerate() {
        let mut case = over_other_rows();
        disturb(&mut case);
        let made = Decision::MakeViewAgain(Again::InputChanged(1));
        assert_eq!(case.plan(), made, "case {number}");
    }
}

#[test]
fn what_else_changed_counts_more() {
    let mut case = over_other_rows();
    case.inputs[0].table = "renamed".into();
    let replaced = Decision::MakeViewAgain(Again::InputReplaced(1));
    assert_eq!(case.plan(), replaced, "its text names what is not there");
    let mut case = over_other_rows();
    case.meaning = meaning("1", 6);
    assert_eq!(case.plan(), Decision::Build(BuildReason::DefinitionChanged));
    let mut case = over_other_rows();
    case.asked.plain += 1;
    assert_eq!(case.plan(), Decision::Build(BuildReason::Refresh));
    let mut case = over_other_rows();
    case.made = made(2);
    assert_eq!(case.plan(), Decision::MakeViewAgain(Again::MadeChanged));
    let mut case = over_other_rows();
    case.meaning = meaning("1", 6);
    case.on_edit = OnEdit::Keep;
    assert_eq!(case.plan(), Decision::MakeViewAgain(Again::InputChanged(1)));
}

#[test]
fn a_view_that_was_left_as_it_is_stands_by_its_tag() {
    let mut case = over_other_rows();
    case.inputs = case.record.inputs.clone();
    case.record.build = build(8);
    assert_eq!(
        case.plan(),
        Decision::Nothing,
        "its tag names the build that made it"
    );
    case.known_output = Some(("m", Shape::View, build(8)));
    assert_eq!(case.plan(), Decision::Build(BuildReason::Replaced));
}
