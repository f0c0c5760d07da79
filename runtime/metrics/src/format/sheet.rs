//! Number format codes of spreadsheets.

use super::Locale;
use super::pattern::{Notation, Pattern, Symbol};
use super::preset::Preset;

/// Returns the format code of a preset. Sheets can't choose letters for thousands, so large numbers are grouped
/// instead.
pub(super) fn of_preset(preset: Preset) -> Option<String> {
    match preset {
        Preset::Plain | Preset::Milliseconds => None,
        Preset::Humanize => Some("[>=100]#,##0;[<=-100]-#,##0;General".to_owned()),
        Preset::Currency('€') => Some("[$€-2]#,##0.00".to_owned()),
        Preset::Currency(_) => Some("[$$-409]#,##0.00".to_owned()),
        Preset::Percentage => Some("0.0%".to_owned()),
    }
}

/// Returns the format code of a pattern; none if sheets have no equivalent.
pub(super) fn of_pattern(pattern: &Pattern, locale: &Locale) -> Option<String> {
    let whole = if pattern.group { "#,##0" } else { "0" };
    let digits = pattern.precision.unwrap_or(6);
    let (number, end) = match pattern.notation {
        Notation::Fixed => (with_digits(whole, digits), ""),
        Notation::Integer => (whole.to_owned(), ""),
        Notation::Percent => (with_digits(whole, digits), "%"),
        Notation::Exponent => (with_digits("0", digits), "E+00"),
        _ => return None,
    };
    let [before, after] = match pattern.symbol {
        Symbol::Currency => [quoted(&locale.currency[0]), quoted(&locale.currency[1])],
        Symbol::None | Symbol::Base => [String::new(), String::new()],
    };
    Some(format!("{before}{number}{end}{after}"))
}

fn with_digits(whole: &str, digits: usize) -> String {
    match digits {
        0 => whole.to_owned(),
        digits => format!("{whole}.{}", "0".repeat(digits)),
    }
}

/// Returns a text in quotes, to be shown literally by sheets.
fn quoted(text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!("\"{}\"", text.replace('"', "")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;

    #[test]
    fn formats_have_codes_in_sheets() {
        let preset = |name: &str| Format::preset(name).and_then(|format| format.sheet_code());
        let d3 = |pattern: &str| Format::d3(pattern).ok().and_then(|format| format.sheet_code());
        assert_eq!(preset("percentage").as_deref(), Some("0.0%"));
        assert_eq!(preset("currency_usd").as_deref(), Some("[$$-409]#,##0.00"));
        assert_eq!(preset("none"), None);
        for (pattern, code) in [
            (",.2f", Some("#,##0.00")),
            ("$,.2f", Some("\"$\"#,##0.00")),
            (".1%", Some("0.0%")),
            ("d", Some("0")),
            (".3s", None),
        ] {
            assert_eq!(d3(pattern).as_deref(), code, "{pattern}");
        }
    }
}
