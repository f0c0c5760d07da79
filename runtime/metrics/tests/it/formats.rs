//! Formats of numbers, by tables.

use proptest::prelude::*;
use watershed_metrics::format::{Format, Locale};

fn d3(pattern: &str, number: f64) -> String {
    Format::d3(pattern).expect("a pattern").apply(number)
}

/// Q21: the notations of d3-format, its signs, groups, widths and precisions.
#[test]
fn d3_patterns_write_what_d3_writes() {
    for (pattern, number, expected) in [
        ("", 42.0, "42"),
        ("", 0.1, "0.1"),
        ("", 1e21, "1e+21"),
        ("", 0.000_001_5, "0.0000015"),
        ("", 1.5e-7, "1.5e-7"),
        (".3", 0.006_7, "0.0067"),
        (".2", 42.0, "42"),
        (".1", 42.0, "4e+1"),
        (".0%", 0.123, "12%"),
        ("($.2f", -3.5, "($3.50)"),
        ("+20", 42.0, "                 +42"),
        (".^20", 42.0, ".........42........."),
        (".2s", 42e6, "42M"),
        ("#x", 48_879.0, "0xbeef"),
        (",.2r", 4_223.0, "4,200"),
        ("d", 3.7, "4"),
        (",d", 1_234_567.0, "1,234,567"),
        (",.2f", -1_234.567, "\u{2212}1,234.57"),
        ("$,.2f", 1_234.5, "$1,234.50"),
        ("e", 1_234.0, "1.234000e+3"),
        (".0e", 0.0, "0e+0"),
        ("g", 0.000_000_1, "1.00000e-7"),
        (".3g", 1_234.0, "1.23e+3"),
        ("~g", 42.0, "42"),
        (".4~f", 1.5, "1.5"),
        ("~e", 1_500.0, "1.5e+3"),
        ("n", 12_345.0, "12,345.0"),
        ("p", 0.25, "25.0000%"),
        (".1p", 0.123, "10%"),
        ("s", 0.0, "0.00000"),
        ("s", 1.0, "1.00000"),
        (".3s", 0.001_5, "1.50m"),
        (".3s", 999.9, "1.00k"),
        (".1s", 1e30, "1000000Y"),
        ("~s", 1_500.0, "1.5k"),
        ("08d", -42.0, "\u{2212}0000042"),
        ("010,d", 1_234.0, "00,001,234"),
        ("<6d", 42.0, "42    "),
        ("*=6d", -42.0, "\u{2212}***42"),
        (" d", 42.0, " 42"),
        ("b", 10.0, "1010"),
        ("o", 8.0, "10"),
        ("X", 255.0, "FF"),
        ("f", f64::INFINITY, "Infinity"),
        ("f", f64::NEG_INFINITY, "\u{2212}Infinity"),
        ("f", f64::NAN, "-"),
        (".0f", -0.2, "0"),
        ("+.0f", -0.2, "\u{2212}0"),
        ("+.0f", 0.0, "+0"),
        ("", 0.1 + 0.2, "0.3"),
        ("", 1_234_567_890_123_456.0, "1.23456789012e+15"),
        (".0f", 0.5, "1"),
        (".0f", 2.5, "3"),
        (".2f", 0.125, "0.13"),
        (".1f", 0.15, "0.1"),
        (".2r", 12.5, "13"),
        (".2f", 1.005, "1.00"),
        (".0e", 2.5, "3e+0"),
    ] {
        assert_eq!(d3(pattern, number), expected, "{pattern} of {number}");
    }
}

#[test]
fn what_is_no_pattern_is_refused() {
    for text in [
        "y",
        ",.f",
        "f2",
        ".2ff",
        "101d",
        ".101f",
        "99999999999999999999d",
        "é",
        "..2f",
        "$$d",
    ] {
        assert!(Format::d3(text).is_err(), "{text}");
    }
}

/// Q21: a locale's signs.
#[test]
fn a_locale_has_signs_and_groups_of_its_own() {
    let locale = Locale {
        decimal: ",".to_owned(),
        thousands: ".".to_owned(),
        grouping: vec![3, 2],
        currency: [String::new(), " €".to_owned()],
        percent: " %".to_owned(),
        minus: "-".to_owned(),
    };
    let write = |pattern: &str, number: f64| {
        Format::d3_in(pattern, locale.clone())
            .expect("a pattern")
            .apply(number)
    };
    assert_eq!(write("$,.2f", -12_345_678.9), "-1.23.45.678,90 €");
    assert_eq!(write(".1%", 0.123), "12,3 %");
    let none = Locale {
        grouping: Vec::new(),
        ..Locale::default()
    };
    assert_eq!(
        Format::d3_in(",d", none).expect("a pattern").apply(12_345.0),
        "12345"
    );
}

/// Q21: the presets of the project format.
#[test]
fn presets_write_numbers_for_people() {
    for (preset, number, expected) in [
        ("none", 1_234_567.5, "1234567.5"),
        ("none", -0.25, "-0.25"),
        ("humanize", 0.0, "0"),
        ("humanize", 7.0, "7"),
        ("humanize", 999.94, "999.9"),
        ("humanize", 999.96, "1k"),
        ("humanize", 1_234.0, "1.2k"),
        ("humanize", -1_234_567.0, "-1.2M"),
        ("humanize", 999_960.0, "1M"),
        ("humanize", 2.5e9, "2.5B"),
        ("humanize", 1e15, "1000T"),
        ("humanize", 0.012_3, "0.012"),
        ("humanize", 1.5e-8, "1.5e-8"),
        ("currency_usd", 12.3, "$12.30"),
        ("currency_usd", -1_500.0, "-$1.5k"),
        ("currency_usd", 999.996, "$1k"),
        ("currency_eur", 1_500_000.0, "€1.5M"),
        ("percentage", -2.4e-15, "0%"),
        ("percentage", 0.123_4, "12.3%"),
        ("percentage", 1.0, "100%"),
        ("interval_ms", 500.0, "500 ms"),
        ("interval_ms", 1_500.0, "1.5 s"),
        ("interval_ms", 90_000.0, "1.5 m"),
        ("interval_ms", 7_200_000.0, "2 h"),
        ("interval_ms", -86_400_000.0, "-1 d"),
        ("humanize", f64::NEG_INFINITY, "-∞"),
        ("humanize", f64::NAN, "-"),
    ] {
        let format = Format::preset(preset).expect("a preset");
        assert_eq!(format.apply(number), expected, "{preset} of {number}");
    }
    assert_eq!(Format::preset("humanise"), None);
}

proptest! {
    #[test]
    fn no_pattern_and_no_number_panics(pattern in "[<>^=*0]{0,2}[-+ (]?[$#]?0?[0-9]{0,2},?(\\.[0-9]{1,2})?~?[a-zX%]?", number: f64) {
        if let Ok(format) = Format::d3(&pattern) {
            prop_assert!(format.apply(number).len() < 1_000);
        }
        for preset in ["none", "humanize", "currency_usd", "percentage", "interval_ms"] {
            prop_assert!(!Format::preset(preset).expect("a preset").apply(number).is_empty());
        }
    }

    #[test]
    fn groups_and_zeros_change_no_digit(number in -1e15..1e15_f64, precision in 0..4_usize) {
        let plain = d3(&format!(".{precision}f"), number);
        let grouped = d3(&format!(",.{precision}f"), number);
        prop_assert_eq!(grouped.replace(',', ""), plain);
    }
}
