//! The table of types: the engine's, with the types of Postgres that clients are told.

/// A form of values in the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Bool,
    Int2,
    Int4,
    Int8,
    Numeric,
    Float4,
    Float8,
    Date,
    Time,
    Timestamp,
    Instant,
    Text,
    Bytes,
    Uuid,
    Json,
}

/// A type of Postgres.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Type {
    pub(crate) form: Form,
    /// Number of the type in the catalog of Postgres.
    pub(crate) oid: u32,
    /// Bytes of a value; -1 for a type of varying length.
    pub(crate) size: i16,
    /// Precision and scale, as Postgres writes both into one number; -1 without.
    pub(crate) modifier: i32,
}

/// A type as clients are told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientType {
    /// Number of the type in the catalog of Postgres.
    pub oid: u32,
    /// Bytes of a value; -1 for a type of varying length.
    pub size: i16,
    /// Precision and scale, as Postgres writes both into one number; -1 without.
    pub modifier: i32,
}

/// Returns the type that clients are told for a type of the engine.
pub fn client_type(engine: &str) -> ClientType {
    let Type {
        oid, size, modifier, ..
    } = of(engine);
    ClientType { oid, size, modifier }
}

/// The type of texts.
pub(crate) const TEXT: Type = plain(Form::Text, 25, -1);

const fn plain(form: Form, oid: u32, size: i16) -> Type {
    Type {
        form,
        oid,
        size,
        modifier: -1,
    }
}

/// Names of the engine with their types. What is not listed is nested and told as JSON, or else a text: intervals, times with
/// an offset, enums, bit strings.
const TABLE: [(&str, Type); 26] = [
    ("BOOLEAN", plain(Form::Bool, 16, 1)),
    ("TINYINT", plain(Form::Int2, 21, 2)),
    ("UTINYINT", plain(Form::Int2, 21, 2)),
    ("SMALLINT", plain(Form::Int2, 21, 2)),
    ("USMALLINT", plain(Form::Int4, 23, 4)),
    ("INTEGER", plain(Form::Int4, 23, 4)),
    ("UINTEGER", plain(Form::Int8, 20, 8)),
    ("BIGINT", plain(Form::Int8, 20, 8)),
    ("UBIGINT", plain(Form::Numeric, 1700, -1)),
    ("HUGEINT", plain(Form::Numeric, 1700, -1)),
    ("UHUGEINT", plain(Form::Numeric, 1700, -1)),
    ("BIGNUM", plain(Form::Numeric, 1700, -1)),
    ("FLOAT", plain(Form::Float4, 700, 4)),
    ("DOUBLE", plain(Form::Float8, 701, 8)),
    ("DATE", plain(Form::Date, 1082, 4)),
    ("TIME", plain(Form::Time, 1083, 8)),
    ("TIME_NS", plain(Form::Time, 1083, 8)),
    ("TIMESTAMP", plain(Form::Timestamp, 1114, 8)),
    ("TIMESTAMP_S", plain(Form::Timestamp, 1114, 8)),
    ("TIMESTAMP_MS", plain(Form::Timestamp, 1114, 8)),
    ("TIMESTAMP_NS", plain(Form::Timestamp, 1114, 8)),
    ("TIMESTAMP WITH TIME ZONE", plain(Form::Instant, 1184, 8)),
    ("VARCHAR", TEXT),
    ("BLOB", plain(Form::Bytes, 17, -1)),
    ("UUID", plain(Form::Uuid, 2950, 16)),
    ("JSON", plain(Form::Json, 114, -1)),
];

/// Returns the type that clients are told for a type of the engine.
pub(crate) fn of(engine: &str) -> Type {
    if let Some((_, known)) = TABLE.iter().find(|(name, _)| *name == engine) {
        return *known;
    }
    let is_nested = engine.ends_with(']')
        || ["STRUCT(", "MAP(", "UNION("]
            .iter()
            .any(|it| engine.starts_with(it));
    if is_nested {
        return plain(Form::Json, 114, -1);
    }
    let Some(digits) = engine
        .strip_prefix("DECIMAL(")
        .and_then(|rest| rest.strip_suffix(')'))
    else {
        return TEXT;
    };
    let numbers = digits.split_once(',');
    let number = |text: &str| text.trim().parse::<i32>().ok();
    let modifier =
        numbers.and_then(|(precision, scale)| Some((number(precision)? << 16 | number(scale)?) + 4));
    Type {
        modifier: modifier.unwrap_or(-1),
        ..plain(Form::Numeric, 1700, -1)
    }
}

/// Types of parameters: the number in Postgres, the form, and the engine's name.
const PARAMETERS: [(u32, Form, &str); 18] = [
    (16, Form::Bool, "BOOLEAN"),
    (17, Form::Bytes, "BLOB"),
    (20, Form::Int8, "BIGINT"),
    (21, Form::Int2, "SMALLINT"),
    (23, Form::Int4, "INTEGER"),
    (26, Form::Int8, "BIGINT"),
    (25, Form::Text, "VARCHAR"),
    (19, Form::Text, "VARCHAR"),
    (1042, Form::Text, "VARCHAR"),
    (1043, Form::Text, "VARCHAR"),
    (114, Form::Text, "VARCHAR"),
    (700, Form::Float4, "FLOAT"),
    (701, Form::Float8, "DOUBLE"),
    (1082, Form::Date, "DATE"),
    (1083, Form::Time, "TIME"),
    (1114, Form::Timestamp, "TIMESTAMP"),
    (1184, Form::Instant, "TIMESTAMPTZ"),
    (2950, Form::Uuid, "UUID"),
];

/// Returns form and engine's name of a parameter's type; none if it is not offered. Numbers without a bound have no engine's
/// name of their own.
pub(crate) fn parameter(oid: u32) -> Option<(Form, Option<&'static str>)> {
    match oid {
        // Whoever sends no type leaves it to the engine.
        0 | 705 => Some((Form::Text, None)),
        1700 => Some((Form::Numeric, None)),
        _ => {
            let found = PARAMETERS.iter().find(|(own, ..)| *own == oid);
            found.map(|(_, form, engine)| (*form, Some(*engine)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_api27_types_have_the_numbers_of_postgres() {
        for (engine, oid, modifier) in [
            ("BIGINT", 20, -1),
            ("HUGEINT", 1700, -1),
            ("DECIMAL(18,3)", 1700, (18 << 16 | 3) + 4),
            ("INTEGER[]", 114, -1),
            ("INTEGER[3]", 114, -1),
            ("STRUCT(a INTEGER)", 114, -1),
            ("MAP(VARCHAR, INTEGER)", 114, -1),
            ("ENUM('a', 'b')", 25, -1),
            ("INTERVAL", 25, -1),
        ] {
            let found = of(engine);
            assert_eq!((found.oid, found.modifier), (oid, modifier), "{engine}");
        }
    }
}
