//! The types of unquoted scalars.

use super::node::Data;

/// Returns the value of an unquoted scalar: null, a boolean, a number or a text. Integers beyond 64 bits and dates stay
/// texts.
pub(super) fn resolve(text: &str) -> Data {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Data::Null,
        "true" | "True" | "TRUE" => return Data::Bool(true),
        "false" | "False" | "FALSE" => return Data::Bool(false),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Data::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Data::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Data::Float(f64::NAN),
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Data::String(text.to_owned());
    }
    if let Some(int) = whole_number(text) {
        return Data::Int(int);
    }
    match text.parse::<f64>() {
        Ok(float) if is_decimal(text) => Data::Float(float),
        _ => Data::String(text.to_owned()),
    }
}

fn whole_number(text: &str) -> Option<i64> {
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    let (sign, rest) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits.strip_prefix('+').unwrap_or(&digits)),
    };
    let radix = |prefix: &str, radix: u32| {
        let digits = rest.strip_prefix(prefix)?;
        i64::from_str_radix(&format!("{sign}{digits}"), radix).ok()
    };
    if !rest.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    radix("0x", 16)
        .or_else(|| radix("0o", 8))
        .or_else(|| radix("0b", 2))
        .or_else(|| {
            rest.chars()
                .all(|c| c.is_ascii_digit())
                .then(|| format!("{sign}{rest}").parse().ok())
                .flatten()
        })
}

/// Returns true if a text is a decimal number in YAML: digits, at most one point, an exponent.
fn is_decimal(text: &str) -> bool {
    let fraction = text.contains(['.', 'e', 'E']);
    fraction
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_become_what_a_person_means() {
        let shown = |text| match resolve(text) {
            Data::Null => "null".to_owned(),
            Data::Bool(value) => format!("bool {value}"),
            Data::Int(value) => format!("int {value}"),
            Data::Float(value) => format!("float {value}"),
            Data::String(value) => format!("text {value}"),
            Data::List(_) | Data::Map(_) => "no scalar".to_owned(),
        };
        let read = [
            "", "~", "true", "yes", "1", "-0x1F", "1_000", "1.5", "1e3", ".5", "-", "1.2.3",
        ];
        let meant = [
            "null",
            "null",
            "bool true",
            "text yes",
            "int 1",
            "int -31",
            "int 1000",
            "float 1.5",
            "float 1000",
            "float 0.5",
            "text -",
            "text 1.2.3",
        ];
        assert_eq!(read.map(shown), meant);
        assert_eq!(shown("2024-01-31"), "text 2024-01-31");
        assert_eq!(shown("99999999999999999999"), "text 99999999999999999999");
    }
}
