//! Policies: layers of rules against a naive reading, and hidden fields wherever a query names them.

use proptest::prelude::*;
use watershed_metrics::policy::{Effect, Fields, Layer, Rule, Truth};
use watershed_metrics::query::Code;
use watershed_metrics::{Policy, Query, check};

use crate::queries::view;

const NAMES: [&str; 4] = ["origin", "airline", "flights", "delay"];

fn fields() -> impl Strategy<Value = Fields> {
    prop_oneof![
        1 => Just(Fields::All),
        4 => prop::sample::subsequence(NAMES.to_vec(), 0..=3)
            .prop_map(|names| Fields::Named(names.into_iter().map(str::to_uppercase).collect())),
    ]
}

fn rule() -> impl Strategy<Value = Rule> {
    let effect = prop_oneof![
        Just(Effect::AllowAccess),
        Just(Effect::DenyAccess),
        fields().prop_map(Effect::AllowFields),
        fields().prop_map(Effect::DenyFields),
        (0..5_u8).prop_map(|number| Effect::FilterRows(format!("seats > {number}"))),
    ];
    let condition = prop::sample::select(vec![Truth::True, Truth::False, Truth::Null]);
    (condition, effect).prop_map(|(condition, effect)| Rule { condition, effect })
}

fn layers() -> impl Strategy<Value = Vec<Layer>> {
    let layer = prop::collection::vec(rule(), 0..6).prop_map(|rules| Layer { rules });
    prop::collection::vec(layer, 0..4)
}

/// Q14 and Q16, read literally for one field of one layer; `None` asks for access.
fn naive(layer: &Layer, field: Option<&str>) -> bool {
    let about = |fields: &Fields| match (fields, field) {
        (_, None) => false,
        (Fields::All, _) => true,
        (Fields::Named(names), Some(field)) => names.iter().any(|name| name.eq_ignore_ascii_case(field)),
    };
    let is_field_rule = |rule: &&Rule| matches!(rule.effect, Effect::AllowFields(_) | Effect::DenyFields(_));
    let bound = match field {
        None => !layer.rules.is_empty(),
        Some(_) => layer.rules.iter().any(|rule| is_field_rule(&rule)),
    };
    let mut allowed = !bound;
    for rule in &layer.rules {
        allowed |= match (&rule.effect, rule.condition) {
            (Effect::AllowAccess, Truth::True) => field.is_none(),
            (Effect::AllowFields(fields), Truth::True) => about(fields),
            _ => false,
        };
    }
    for rule in &layer.rules {
        allowed &= match (&rule.effect, rule.condition) {
            (_, Truth::False) => true,
            (Effect::DenyAccess, _) => field.is_some(),
            (Effect::DenyFields(fields), _) => !about(fields),
            _ => true,
        };
    }
    allowed
}

proptest! {
    /// Q14, Q15: what all layers show is shown, and nothing else.
    #[test]
    fn layers_show_what_each_of_them_shows(layers in layers()) {
        let policy = Policy::of(&layers);
        let access = layers.iter().all(|layer| naive(layer, None));
        prop_assert_eq!(policy.has_access(), access);
        for name in NAMES {
            let expected = access && layers.iter().all(|layer| naive(layer, Some(name)));
            prop_assert_eq!(policy.shows(name), expected, "{}", name);
        }
        let filters: Vec<String> = layers
            .iter()
            .flat_map(|layer| &layer.rules)
            .filter(|rule| rule.condition != Truth::False)
            .filter_map(|rule| match &rule.effect {
                Effect::FilterRows(sql) => Some(sql.clone()),
                _ => None,
            })
            .collect();
        prop_assert_eq!(policy.row_filters(), filters.as_slice());
    }

    /// Q15: a further layer opens nothing.
    #[test]
    fn a_further_layer_opens_nothing(layers in layers(), more in layers()) {
        let before = Policy::of(&layers);
        let after = Policy::of(&[layers, more].concat());
        prop_assert!(before.has_access() || !after.has_access());
        for name in NAMES {
            prop_assert!(before.shows(name) || !after.shows(name));
        }
        prop_assert!(after.row_filters().starts_with(before.row_filters()));
    }
}

fn rule_of(condition: Truth, effect: Effect) -> Rule {
    Rule { condition, effect }
}

fn named(name: &str) -> Fields {
    Fields::Named(vec![name.to_owned()])
}

fn open() -> Rule {
    rule_of(Truth::True, Effect::AllowAccess)
}

/// Q15: an `include` of a child does not open what its parent closed.
#[test]
fn a_childs_include_does_not_open_what_its_parent_closed() {
    let parent = Layer {
        rules: vec![
            open(),
            rule_of(Truth::True, Effect::AllowFields(named("flights"))),
        ],
    };
    let child = Layer {
        rules: vec![open(), rule_of(Truth::True, Effect::AllowFields(Fields::All))],
    };
    let policy = Policy::of(&[parent, child]);
    assert!(policy.shows("Flights"));
    assert!(!policy.shows("delay"));
}

/// Q14: a field rule that does not apply hides all the same what none allows.
#[test]
fn a_field_rule_that_does_not_apply_hides_what_none_allows() {
    let policy = Policy::of(&[Layer {
        rules: vec![open(), rule_of(Truth::False, Effect::AllowFields(named("delay")))],
    }]);
    assert!(policy.has_access() && policy.binds_fields());
    assert!(NAMES.iter().all(|name| !policy.shows(name)));
}

#[test]
fn the_owner_sees_everything() {
    let policy = Policy::open();
    assert!(policy.has_access() && !policy.binds_fields() && policy.row_filters().is_empty());
    assert_eq!(policy.visible(view()), view());
}

/// Hides `airline` and `delay`, and all but the time dimension with `all`.
fn refusal(inner: &str, all: bool) -> Option<Code> {
    let denied = if all {
        Fields::All
    } else {
        Fields::Named(vec!["AIRLINE".to_owned(), "Delay".to_owned()])
    };
    let policy = Policy::of(&[Layer {
        rules: vec![
            open(),
            rule_of(Truth::True, Effect::AllowFields(Fields::All)),
            rule_of(Truth::Null, Effect::DenyFields(denied)),
        ],
    }]);
    let query: Result<Query, _> = format!(r#"{{"metrics_view": "departures", {inner}}}"#).parse();
    let error = query
        .and_then(|query| check(&query, &policy.visible(view())))
        .err()?;
    let hint = error.hint.unwrap_or_default();
    assert!(!hint.contains("airline") && !hint.contains("delay"), "{hint}");
    Some(error.code)
}

/// Q14: a hidden field is refused wherever a query names it.
#[test]
fn a_hidden_field_is_refused_wherever_it_is_named() {
    let eq = |name: &str, value: &str| {
        format!(r#"{{"cond": {{"op": "eq", "exprs": [{{"name": "{name}"}}, {{"val": {value}}}]}}}}"#)
    };
    let airline = eq("airline", r#""UA""#);
    let delay = eq("delay", "1");
    let computed = |compute: &str| {
        format!(
            r#""measures": [{{"name": "n", "compute": {compute}}}], "time_range": "7D",
            "comparison_time_range": {{"offset": "-1P"}}"#
        )
    };
    let subquery = |keys: &str| {
        format!(
            r#""measures": ["flights"], "where": {{"cond": {{"op": "nin", "exprs": [{{"name": "origin"}},
            {{"subquery": {{{keys}}}}}]}}}}"#
        )
    };
    for inner in [
        r#""dimensions": ["airline"]"#.to_owned(),
        r#""dimensions": ["AIRLINE"]"#.to_owned(),
        r#""measures": ["delay"]"#.to_owned(),
        r#""measures": ["airline"]"#.to_owned(),
        r#""dimensions": ["delay"]"#.to_owned(),
        format!(r#""measures": ["flights"], "where": {airline}"#),
        format!(r#""measures": ["flights"], "where": {{"cond": {{"op": "not", "exprs": [{airline}]}}}}"#),
        format!(r#""measures": ["flights"], "having": {delay}"#),
        format!(r#""measures": ["flights"], "having": {airline}"#),
        format!(r#""measures": ["flights"], "spine": {{"where": {airline}}}"#),
        computed(r#"{"count_distinct": {"dimension": "airline"}}"#),
        computed(r#"{"comparison_value": {"measure": "delay"}}"#),
        computed(r#"{"comparison_delta": {"measure": "delay"}}"#),
        computed(r#"{"comparison_ratio": {"measure": "delay"}}"#),
        computed(r#"{"percent_of_total": {"measure": "delay"}}"#),
        computed(r#"{"uri": {"dimension": "airline"}}"#),
        subquery(r#""dimension": "airline", "measures": ["flights"]"#),
        subquery(r#""dimension": "origin", "measures": ["delay"]"#),
        subquery(&format!(r#""dimension": "origin", "where": {airline}"#)),
        subquery(&format!(r#""dimension": "origin", "having": {delay}"#)),
        format!(r#""rows": true, "where": {airline}"#),
    ] {
        assert_eq!(refusal(&inner, false), Some(Code::NotAllowed), "{inner}");
    }
    // Neither is a column of the answer, so neither can be sorted by.
    for sort in ["delay", "airline"] {
        let inner = format!(r#""measures": ["flights"], "sort": ["{sort}"]"#);
        assert_eq!(refusal(&inner, false), Some(Code::UnknownField));
    }
    assert_eq!(
        refusal(r#""measures": ["flight"], "dimensions": ["airlin"]"#, false),
        Some(Code::UnknownField)
    );
    assert_eq!(
        refusal(r#""measures": ["flights"], "dimensions": ["origin"]"#, false),
        None
    );
}

/// Q14: the time dimension is never hidden; Q3: what a visible measure requires may be.
#[test]
fn the_time_dimension_is_never_hidden_and_requirements_may_be() {
    assert_eq!(
        refusal(r#""dimensions": [{"name": "at", "grain": "day"}]"#, true),
        None
    );
    assert_eq!(
        refusal(r#""measures": ["flights"]"#, true),
        Some(Code::NotAllowed)
    );
    let policy = Policy::of(&[Layer {
        rules: vec![open(), rule_of(Truth::True, Effect::AllowFields(named("share")))],
    }]);
    let query: Query = r#"{"metrics_view": "departures", "measures": ["share"],
        "dimensions": [{"name": "at", "grain": "day"}]}"#
        .parse()
        .expect("a query");
    assert_eq!(check(&query, &policy.visible(view())), Ok(()));
}
