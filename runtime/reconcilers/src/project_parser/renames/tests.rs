use super::*;

fn model(name: &str, meaning: &str, refs: &[&str]) -> Candidate {
    at(name, meaning, refs, &format!("models/{name}.sql"))
}

fn at(name: &str, meaning: &str, refs: &[&str], path: &str) -> Candidate {
    Candidate {
        kind: "model".into(),
        name: name.into(),
        meaning: meaning.into(),
        refs: refs.iter().map(|name| ("model".into(), (*name).into())).collect(),
        paths: vec![path.into()],
    }
}

/// The renames as `from>to`, and that they are the same whatever the order of the inputs.
fn renames(before: &[Candidate], after: &[Candidate]) -> Vec<String> {
    let told = |before: &[Candidate], after: &[Candidate]| {
        let pairs = pair(before, after);
        let mut told = pairs
            .iter()
            .map(|pair| format!("{}>{}", before[pair.before].name, after[pair.after].name))
            .collect::<Vec<_>>();
        told.sort();
        told
    };
    let reversed = |list: &[Candidate]| list.iter().rev().cloned().collect::<Vec<_>>();
    let found = told(before, after);
    assert_eq!(
        found,
        told(&reversed(before), &reversed(after)),
        "the order of the inputs decides"
    );
    found
}

#[test]
fn one_gone_and_one_added_of_equal_meaning_is_a_rename() {
    assert_eq!(
        renames(&[model("a", "1", &["x"])], &[model("b", "1", &["x"])]),
        ["a>b"]
    );
}

#[test]
fn another_meaning_other_refs_or_another_kind_is_no_rename() {
    let before = [model("a", "1", &["x"])];
    let mut other_kind = model("b", "1", &["x"]);
    other_kind.kind = "explore".into();
    for after in [
        model("b", "2", &["x"]),
        model("b", "1", &["y"]),
        model("b", "1", &[]),
        other_kind,
    ] {
        assert_eq!(renames(&before, &[after]), [""; 0]);
    }
}

#[test]
fn every_kind_is_renamed() {
    let explore = |name: &str| Candidate {
        kind: "explore".into(),
        ..model(name, "1", &[])
    };
    assert_eq!(renames(&[explore("a")], &[explore("b")]), ["a>b"]);
}

#[test]
fn a_ref_to_a_resource_renamed_at_the_same_time_counts_as_equal() {
    let before = [
        model("a", "1", &[]),
        model("b", "2", &["a"]),
        model("c", "3", &["b", "a"]),
    ];
    let after = [
        model("a2", "1", &[]),
        model("b2", "2", &["a2"]),
        model("c2", "3", &["b2", "a2"]),
    ];
    assert_eq!(renames(&before, &after), ["a>a2", "b>b2", "c>c2"]);
}

#[test]
fn refs_compare_without_regard_to_case() {
    assert_eq!(
        renames(&[model("a", "1", &["X"])], &[model("b", "1", &["x"])]),
        ["a>b"]
    );
}

#[test]
fn among_several_an_equal_file_stem_decides() {
    let before = [at("a", "1", &[], "old/p.sql"), at("b", "1", &[], "old/q.sql")];
    let after = [at("c", "1", &[], "new/q.sql"), at("d", "1", &[], "new/p.sql")];
    assert_eq!(renames(&before, &after), ["a>d", "b>c"]);
}

#[test]
fn among_several_without_equal_stems_the_smallest_path_decides() {
    let before = [model("a", "1", &[]), model("b", "1", &[])];
    let after = [model("y", "1", &[]), model("x", "1", &[]), model("z", "1", &[])];
    assert_eq!(renames(&before, &after), ["a>x", "b>y"]);
}

#[test]
fn a_swap_of_two_definitions_is_two_renames() {
    let before = [model("a", "1", &[]), model("b", "2", &[])];
    let after = [model("a", "2", &[]), model("b", "1", &[])];
    assert_eq!(renames(&before, &after), ["a>b", "b>a"]);
}

#[test]
fn a_chain_of_names_is_a_chain_of_renames() {
    let before = [model("a", "1", &[]), model("b", "2", &[])];
    let after = [model("b", "1", &[]), model("c", "2", &[])];
    assert_eq!(renames(&before, &after), ["a>b", "b>c"]);
}

#[test]
fn a_name_that_is_written_over_is_an_edit() {
    let before = [model("a", "1", &[]), model("b", "2", &[])];
    assert_eq!(renames(&before, &[model("b", "1", &[])]), [""; 0]);
}

#[test]
fn a_name_that_is_copied_away_and_edited_is_an_edit_and_a_new_resource() {
    let after = [model("a", "2", &[]), model("b", "1", &[])];
    assert_eq!(renames(&[model("a", "1", &[])], &after), [""; 0]);
}

#[test]
fn what_only_matched_because_of_a_move_that_is_none_is_none_either() {
    // `a` is written over `b`, so the reader of `a` that now reads `b` reads something else.
    let before = [
        model("a", "1", &[]),
        model("b", "2", &[]),
        model("r", "3", &["a"]),
        model("s", "4", &["r"]),
    ];
    let after = [
        model("b", "1", &[]),
        model("r2", "3", &["b"]),
        model("s2", "4", &["r2"]),
    ];
    assert_eq!(renames(&before, &after), [""; 0]);
}

#[test]
fn a_resource_that_only_follows_a_renamed_ref_keeps_its_name() {
    let before = [
        model("a", "1", &[]),
        model("r", "3", &["a"]),
        model("gone", "3", &["a"]),
    ];
    let after = [
        model("z", "1", &[]),
        model("r", "3", &["z"]),
        model("new", "3", &["z"]),
    ];
    assert_eq!(renames(&before, &after), ["a>z", "gone>new"]);
}

#[test]
fn resources_that_refer_to_each_other_are_compared_as_they_stand() {
    let before = [
        model("a", "1", &["b"]),
        model("b", "2", &["a"]),
        model("c", "3", &["c"]),
    ];
    let after = [
        model("x", "1", &["b"]),
        model("b", "2", &["x"]),
        model("d", "3", &["c"]),
    ];
    assert_eq!(renames(&before, &after)[..1], ["a>x"]);
}

#[test]
fn many_equal_resources_are_paired_in_near_linear_time() {
    let of = |prefix: &str| {
        (0..20_000)
            .map(|n| model(&format!("{prefix}{n:05}"), "1", &[]))
            .collect::<Vec<_>>()
    };
    assert_eq!(pair(&of("a"), &of("b")).len(), 20_000);
}

#[test]
fn a_deep_chain_is_paired_in_near_linear_time() {
    let of = |prefix: &str| {
        let named = |n: u32| format!("{prefix}{n:05}");
        let reads = |n: u32| if n == 0 { vec![] } else { vec![named(n - 1)] };
        (0..20_000_u32)
            .map(|n| {
                model(
                    &named(n),
                    &n.to_string(),
                    &reads(n).iter().map(String::as_str).collect::<Vec<_>>(),
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(pair(&of("a"), &of("b")).len(), 20_000);
}
