//! Types of columns, parsed from the engine's text form.
//!
//! `fit` says whether a type holds all values of another, and which type holds those of two.

mod fit;

use std::fmt;

use watershed_dialect::{DuckDb, Quoting as _};

pub(super) use fit::{Fit, common, fit};

/// The deepest nesting of a parsed type. Deeper types only equal themselves.
const DEEPEST: usize = 64;

/// The parsed type of a column, compared structurally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ColumnType {
    /// The type of a bare NULL.
    Null,
    Boolean,
    Integer(Integer),
    Float,
    Double,
    Decimal {
        width: u8,
        scale: u8,
    },
    Text,
    Json,
    Enum(Vec<String>),
    Date,
    Time,
    Timestamp(Tick),
    List(Box<ColumnType>),
    Array(Box<ColumnType>, u64),
    Struct(Vec<Field>),
    /// A structure with unnamed fields.
    Tuple(Vec<ColumnType>),
    Map(Box<ColumnType>, Box<ColumnType>),
    Union(Vec<Field>),
    /// Any other type, by its text.
    Other(String),
}

/// A fixed-width integer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Integer {
    signed: bool,
    bits: u32,
}

/// The unit of a time type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tick {
    Second,
    Milli,
    Micro,
    Nano,
}

/// A named field of a structure or union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    name: String,
    column_type: ColumnType,
}

impl Field {
    fn is(&self, other: &Self) -> bool {
        self.name.eq_ignore_ascii_case(&other.name)
    }
}

impl ColumnType {
    /// Parses a type. A text that can't be parsed is a type by itself.
    pub(super) fn parse(text: &str) -> Self {
        let mut reader = Reader { rest: text.trim() };
        match reader.read_type(DEEPEST) {
            Some(read) if reader.rest.is_empty() => read,
            _ => Self::Other(text.trim().to_owned()),
        }
    }

    fn plain(name: &str) -> Self {
        let integer = |signed, bits| Self::Integer(Integer { signed, bits });
        match name {
            "\"NULL\"" | "NULL" => Self::Null,
            "BOOLEAN" => Self::Boolean,
            "TINYINT" => integer(true, 8),
            "SMALLINT" => integer(true, 16),
            "INTEGER" => integer(true, 32),
            "BIGINT" => integer(true, 64),
            "HUGEINT" => integer(true, 128),
            "UTINYINT" => integer(false, 8),
            "USMALLINT" => integer(false, 16),
            "UINTEGER" => integer(false, 32),
            "UBIGINT" => integer(false, 64),
            "UHUGEINT" => integer(false, 128),
            "FLOAT" => Self::Float,
            "DOUBLE" => Self::Double,
            "VARCHAR" => Self::Text,
            "JSON" => Self::Json,
            "DATE" => Self::Date,
            "TIME" => Self::Time,
            "TIMESTAMP_S" => Self::Timestamp(Tick::Second),
            "TIMESTAMP_MS" => Self::Timestamp(Tick::Milli),
            "TIMESTAMP" => Self::Timestamp(Tick::Micro),
            "TIMESTAMP_NS" => Self::Timestamp(Tick::Nano),
            other => Self::Other(other.to_owned()),
        }
    }
}

/// Formats the type as SQL declares it.
impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let integer = |Integer { signed, bits }: &Integer| {
            let prefix = if *signed { "" } else { "U" };
            let name = match bits {
                8 => "TINYINT",
                16 => "SMALLINT",
                32 => "INTEGER",
                64 => "BIGINT",
                _ => "HUGEINT",
            };
            format!("{prefix}{name}")
        };
        let list = |items: Vec<String>| items.join(", ");
        let fields = |fields: &[Field]| {
            let fields = fields.iter();
            list(
                fields
                    .map(|it| format!("{} {}", DuckDb.name(&it.name), it.column_type))
                    .collect(),
            )
        };
        match self {
            // As a table that is made of it has it.
            Self::Null => f.write_str("INTEGER"),
            Self::Boolean => f.write_str("BOOLEAN"),
            Self::Integer(it) => f.write_str(&integer(it)),
            Self::Float => f.write_str("FLOAT"),
            Self::Double => f.write_str("DOUBLE"),
            Self::Decimal { width, scale } => write!(f, "DECIMAL({width},{scale})"),
            Self::Text => f.write_str("VARCHAR"),
            Self::Json => f.write_str("JSON"),
            Self::Enum(values) => {
                let values = values.iter().map(|value| DuckDb.text(value)).collect();
                write!(f, "ENUM({})", list(values))
            }
            Self::Date => f.write_str("DATE"),
            Self::Time => f.write_str("TIME"),
            Self::Timestamp(Tick::Second) => f.write_str("TIMESTAMP_S"),
            Self::Timestamp(Tick::Milli) => f.write_str("TIMESTAMP_MS"),
            Self::Timestamp(Tick::Micro) => f.write_str("TIMESTAMP"),
            Self::Timestamp(Tick::Nano) => f.write_str("TIMESTAMP_NS"),
            Self::List(item) => write!(f, "{item}[]"),
            Self::Array(item, length) => write!(f, "{item}[{length}]"),
            Self::Struct(those) => write!(f, "STRUCT({})", fields(those)),
            Self::Tuple(those) => {
                write!(
                    f,
                    "STRUCT({})",
                    list(those.iter().map(ToString::to_string).collect())
                )
            }
            Self::Map(key, value) => write!(f, "MAP({key}, {value})"),
            Self::Union(those) => write!(f, "UNION({})", fields(those)),
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// A recursive parser of types, whose methods return `None` for unknown syntax.
struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn read_type(&mut self, depth: usize) -> Option<ColumnType> {
        let depth = depth.checked_sub(1)?;
        let mut read = self.read_item(depth)?;
        while self.takes("[") {
            read = match self.take_while(|c| c.is_ascii_digit()) {
                "" => ColumnType::List(Box::new(read)),
                length => ColumnType::Array(Box::new(read), length.parse().ok()?),
            };
            if !self.takes("]") {
                return None;
            }
        }
        Some(read)
    }

    fn read_item(&mut self, depth: usize) -> Option<ColumnType> {
        if let Some(rest) = self.rest.strip_prefix("\"NULL\"") {
            self.rest = rest;
            return Some(ColumnType::Null);
        }
        if self.takes("DECIMAL(") {
            let width = self.take_while(|c| c.is_ascii_digit()).parse().ok()?;
            let scale = self.then(",")?.take_while(|c| c.is_ascii_digit()).parse().ok()?;
            self.then(")")?;
            return Some(ColumnType::Decimal { width, scale });
        }
        if self.takes("ENUM(") {
            return Some(ColumnType::Enum(
                self.read_list(|reader| reader.read_quoted('\''))?,
            ));
        }
        if self.takes("UNION(") {
            return Some(ColumnType::Union(
                self.read_list(|reader| reader.read_field(depth))?,
            ));
        }
        if self.takes("MAP(") {
            let key = Box::new(self.read_type(depth)?);
            let value = Box::new(self.then(", ")?.read_type(depth)?);
            self.then(")")?;
            return Some(ColumnType::Map(key, value));
        }
        if self.takes("STRUCT(") {
            let start = self.rest;
            if let Some(fields) = self.read_list(|reader| reader.read_field(depth)) {
                return Some(ColumnType::Struct(fields));
            }
            self.rest = start;
            return Some(ColumnType::Tuple(
                self.read_list(|reader| reader.read_type(depth))?,
            ));
        }
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        // The only types of several words.
        let zoned = matches!(name, "TIMESTAMP" | "TIME") && self.takes(" WITH TIME ZONE");
        match (name.is_empty(), zoned) {
            (true, _) => None,
            (_, true) => Some(ColumnType::Other(format!("{name} WITH TIME ZONE"))),
            (_, false) => Some(ColumnType::plain(name)),
        }
    }

    /// Parses a field such as `a INTEGER`.
    fn read_field(&mut self, depth: usize) -> Option<Field> {
        let name = match self.rest.starts_with('"') {
            true => self.read_quoted('"')?,
            false => self.take_while(|c| c.is_alphanumeric() || c == '_').to_owned(),
        };
        let column_type = self.then(" ")?.read_type(depth)?;
        Some(Field { name, column_type })
    }

    /// Parses a quoted text, in which a doubled quote stands for one.
    fn read_quoted(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        self.rest = self.rest.strip_prefix(quote)?;
        loop {
            let end = self.rest.find(quote)?;
            text.push_str(self.rest.get(..end)?);
            self.rest = self.rest.get(end + 1..)?;
            match self.rest.strip_prefix(quote) {
                Some(rest) => {
                    text.push(quote);
                    self.rest = rest;
                }
                None => return Some(text),
            }
        }
    }

    /// Parses a comma-separated list up to the closing bracket.
    fn read_list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        loop {
            items.push(read(self)?);
            if !self.takes(", ") {
                self.then(")")?;
                return Some(items);
            }
        }
    }

    fn takes(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn then(&mut self, text: &str) -> Option<&mut Self> {
        self.takes(text).then_some(self)
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_read_and_written_as_the_engine_does() {
        for text in [
            "BIGINT",
            "UHUGEINT",
            "DECIMAL(6,1)[]",
            "TIMESTAMP WITH TIME ZONE[2]",
            "ENUM('a', 'it''s', 'b, c)')",
            r#"STRUCT("a b" STRUCT("x""y" INTEGER[3][])[], "n" MAP(VARCHAR, UNION("k" DATE, "l" TIME)))"#,
            "STRUCT(INTEGER, VARCHAR)",
            "GEOMETRY('OGC:CRS84')",
            "BIGNUM",
        ] {
            assert_eq!(ColumnType::parse(text).to_string(), text);
        }
        let plain = r#"STRUCT(a INTEGER, "B" DOUBLE)"#;
        let written = r#"STRUCT("a" INTEGER, "B" DOUBLE)"#;
        assert_eq!(ColumnType::parse(plain).to_string(), written);
    }

    #[test]
    fn what_is_not_understood_is_a_type_of_its_own() {
        let deep = format!("INTEGER{}", "[]".repeat(3));
        assert!(matches!(ColumnType::parse(&deep), ColumnType::List(_)));
        let nested = format!("{}INTEGER{}", "MAP(DATE, ".repeat(200), ")".repeat(200));
        for text in [
            "",
            "STRUCT(",
            "ENUM('a",
            "DECIMAL(6)",
            "INTEGER]",
            nested.as_str(),
        ] {
            assert_eq!(ColumnType::parse(text), ColumnType::Other(text.to_owned()));
        }
    }
}
