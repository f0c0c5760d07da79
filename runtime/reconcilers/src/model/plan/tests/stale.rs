//! Models that read what has failed.

use super::*;

#[test]
fn while_what_it_reads_has_failed_its_own_edit_alone_is_a_reason() {
    let mut case = Case::settled(Shape::Table);
    case.triggers = Triggers::NONE;
    case.inputs = vec![input("a", 21), input("b", 12)];
    assert!(!is_for_edit(&case.plan()));
    case.record.unfinished = true;
    assert!(!is_for_edit(&case.plan()));
    case.meaning = meaning("1", 6);
    assert!(is_for_edit(&case.plan()));
    case.on_edit = OnEdit::Hold;
    assert!(!is_for_edit(&case.plan()), "rows are held");
    case.on_edit = OnEdit::Reset;
    case.known_output = None;
    assert!(!is_for_edit(&case.plan()), "dropped by hand");
}

#[test]
fn what_was_built_from_stale_rows_follows_its_inputs_whatever_its_triggers() {
    let mut case = Case::settled(Shape::Table);
    case.triggers.inputs = false;
    case.inputs = vec![input("a", 21), input("b", 12)];
    assert_eq!(case.plan(), Decision::Nothing);
    case.record.stale_input = true;
    assert_eq!(case.plan(), Decision::Build(BuildReason::InputChanged(0)));
}
