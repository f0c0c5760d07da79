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
    /// JSON behind a byte with its version; for parameters alone.
    Jsonb,
    /// A duration; for parameters alone.
    Interval,
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

/// Types of parameters: the number in Postgres, that of its arrays, the form, and the engine's name.
const PARAMETERS: [(u32, u32, Form, &str); 20] = [
    (16, 1000, Form::Bool, "BOOLEAN"),
    (17, 1001, Form::Bytes, "BLOB"),
    (20, 1016, Form::Int8, "BIGINT"),
    (21, 1005, Form::Int2, "SMALLINT"),
    (23, 1007, Form::Int4, "INTEGER"),
    (26, 1028, Form::Int4, "BIGINT"),
    (25, 1009, Form::Text, "VARCHAR"),
    (19, 1003, Form::Text, "VARCHAR"),
    (1042, 1014, Form::Text, "VARCHAR"),
    (1043, 1015, Form::Text, "VARCHAR"),
    (114, 199, Form::Text, "VARCHAR"),
    (3802, 3807, Form::Jsonb, "VARCHAR"),
    (700, 1021, Form::Float4, "FLOAT"),
    (701, 1022, Form::Float8, "DOUBLE"),
    (1082, 1182, Form::Date, "DATE"),
    (1083, 1183, Form::Time, "TIME"),
    (1114, 1115, Form::Timestamp, "TIMESTAMP"),
    (1184, 1185, Form::Instant, "TIMESTAMPTZ"),
    (1186, 1187, Form::Interval, "INTERVAL"),
    (2950, 2951, Form::Uuid, "UUID"),
];
/// Numbers of the type of numbers without a bound, and of its arrays.
pub(crate) const NUMERIC: (u32, u32) = (1700, 1231);

/// Returns form and engine's name of a parameter's type; none if it is not offered. Numbers without a bound have no engine's
/// name of their own.
pub(crate) fn parameter(oid: u32) -> Option<(Form, Option<&'static str>)> {
    match oid {
        // Whoever sends no type leaves it to the engine.
        0 | 705 => Some((Form::Text, None)),
        _ if oid == NUMERIC.0 => Some((Form::Numeric, None)),
        _ => {
            let found = PARAMETERS.iter().find(|(own, ..)| *own == oid);
            found.map(|(_, _, form, engine)| (*form, Some(*engine)))
        }
    }
}

/// Names of types to which statements cast parameters, in lower case, where they are others than the engine's.
const NAMES: [(&str, u32); 11] = [
    ("int", 23),
    ("int2", 21),
    ("int4", 23),
    ("int8", 20),
    ("float4", 700),
    ("float8", 701),
    ("real", 700),
    ("bool", 16),
    ("text", 25),
    ("bytea", 17),
    ("oid", 26),
];

/// Returns the type of a parameter that is cast to a type of this name; none for one that is not offered.
pub(crate) fn by_name(name: &str) -> Option<u32> {
    let own = NAMES.iter().find(|(own, _)| name.eq_ignore_ascii_case(own));
    let number = ["numeric", "decimal"]
        .iter()
        .any(|own| name.eq_ignore_ascii_case(own));
    let mut all = PARAMETERS.iter();
    own.map(|(_, oid)| *oid)
        .or(number.then_some(NUMERIC.0))
        .or_else(|| {
            all.find(|(.., engine)| name.eq_ignore_ascii_case(engine))
                .map(|(own, ..)| *own)
        })
}

/// Returns the type of the elements of arrays that are offered as parameters.
pub(crate) fn element_of(array: u32) -> Option<u32> {
    let mut all = PARAMETERS
        .iter()
        .map(|(own, arrays, ..)| (*own, *arrays))
        .chain([NUMERIC]);
    all.find(|(_, arrays)| *arrays == array).map(|(own, _)| own)
}

/// Returns the type of arrays of an element; none if it is not offered.
pub(crate) fn array_of(element: u32) -> Option<u32> {
    let mut all = PARAMETERS
        .iter()
        .map(|(own, arrays, ..)| (*own, *arrays))
        .chain([NUMERIC]);
    all.find(|(own, _)| *own == element).map(|(_, arrays)| arrays)
}

/// Returns the type that clients are told for a parameter of a type of the engine; none for those whose values go as texts, which
/// the engine reads.
pub(crate) fn of_parameter(engine: &str) -> Option<u32> {
    if let Some(element) = engine.strip_suffix("[]") {
        return of_parameter(element)
            .or((element == "VARCHAR").then_some(TEXT.oid))
            .and_then(array_of);
    }
    match of(engine) {
        _ if engine == "INTERVAL" => Some(1186),
        Type {
            form: Form::Text | Form::Json,
            ..
        } => None,
        known => Some(known.oid),
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

    #[test]
    fn s_api27_parameters_have_the_types_of_what_they_stand_beside() {
        for (engine, oid) in [
            ("INTEGER", Some(23)),
            ("TINYINT", Some(21)),
            ("DECIMAL(18,3)", Some(1700)),
            ("TIMESTAMP_NS", Some(1114)),
            ("INTERVAL", Some(1186)),
            ("VARCHAR", None),
            ("ENUM('a', 'b')", None),
            ("STRUCT(a INTEGER)", None),
            ("BIGINT[]", Some(1016)),
            ("VARCHAR[]", Some(1009)),
            ("DECIMAL(9,2)[]", Some(1231)),
            ("BIGINT[][]", None),
        ] {
            assert_eq!(of_parameter(engine), oid, "{engine}");
            if let Some(oid) = oid {
                assert!(
                    parameter(oid).or_else(|| parameter(element_of(oid)?)).is_some(),
                    "{engine}"
                );
            }
        }
    }
}
