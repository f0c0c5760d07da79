//! Outputs that were made in another place than that which models are built in now.

use super::*;

/// Returns the decision about an output in another place.
fn moved(protected: bool, disturb: impl Fn(&mut Case)) -> Decision {
    let mut case = Case::settled(Shape::Table);
    case.known_output = None;
    disturb(&mut case);
    let wanted = Wanted {
        protected,
        ..case.wanted()
    };
    let output = Output {
        object: Object::Elsewhere,
        ..case.output()
    };
    plan(&wanted, &ExistingOutput::Own(output))
}

#[test]
fn what_stands_in_another_place_is_built_unless_its_rows_are_protected() {
    let build = Decision::Build(BuildReason::Moved);
    assert_eq!(moved(false, |_| ()), build);
    assert_eq!(moved(true, |_| ()), Decision::Hold(BuildReason::Moved));
    let edited = |case: &mut Case| case.meaning = meaning("1", 6);
    assert_eq!(moved(true, edited), Decision::Hold(BuildReason::Moved));
    let patched = |case: &mut Case| case.on_edit = OnEdit::Keep;
    assert_eq!(
        moved(true, patched),
        Decision::Hold(BuildReason::Moved),
        "an edit keeps rows, and there are none"
    );
    let refreshed = |case: &mut Case| case.asked.plain += 1;
    assert_eq!(moved(true, refreshed), Decision::Hold(BuildReason::Moved));
    let approved = |case: &mut Case| case.asked.full += 1;
    assert_eq!(moved(true, approved), build, "a person has approved it");
}

#[test]
fn a_move_is_no_edit_of_the_model() {
    assert!(!is_for_edit(&moved(false, |_| ())));
}
