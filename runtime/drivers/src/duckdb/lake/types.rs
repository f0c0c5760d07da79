//! Types that lakes lack, and those that stand for them.

/// Prefixes of types that a lake does not have, alone or inside another type.
const UNKNOWN: [&str; 4] = ["ENUM(", "UNION(", "BIT", "BIGNUM"];

/// The form in which a lake holds the values of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::duckdb) enum Held {
    /// The type itself.
    Same,
    /// Another type, which keeps the values.
    As(String),
    /// Not at all.
    No,
}

/// Returns the form in which a lake holds the values of a type. Files have neither enumerations nor arrays of a fixed size.
pub(in crate::duckdb) fn held(data_type: &str) -> Held {
    if data_type.starts_with("ENUM(") && !data_type.ends_with(']') {
        return Held::As("VARCHAR".to_owned());
    }
    let array = data_type.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
    if let Some((item, length)) = array.filter(|(_, length)| !length.is_empty()) {
        let is_plain = length.bytes().all(|byte| byte.is_ascii_digit()) && held(item) == Held::Same;
        return match is_plain {
            true => Held::As(format!("{item}[]")),
            false => Held::No,
        };
    }
    let has = |unknown: &&str| data_type.starts_with(*unknown) || data_type.contains(&format!(" {unknown}"));
    match UNKNOWN.iter().any(has) {
        true => Held::No,
        false => Held::Same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lake_takes_lists_for_arrays_and_texts_for_enumerations() {
        for (data_type, form) in [
            ("HUGEINT", Held::Same),
            ("STRUCT(a INTEGER, b VARCHAR[])", Held::Same),
            ("ENUM('a', 'b')", Held::As("VARCHAR".into())),
            ("INTEGER[3]", Held::As("INTEGER[]".into())),
            ("INTEGER[3][2]", Held::No),
            ("ENUM('a')[]", Held::No),
            ("STRUCT(a ENUM('x'))", Held::No),
            ("MAP(VARCHAR, UNION(a INTEGER))", Held::No),
            ("BIT", Held::No),
        ] {
            assert_eq!(held(data_type), form, "{data_type}");
        }
    }
}
