//! A metrics view as a query sees it: its fields with their types.

use watershed_schedule::Grain;

/// A metrics view: the fields that a query may name, and its calendar.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// Its name.
    pub name: String,
    /// The dimension that ranges are about unless a query says another; empty for none.
    pub time_dimension: String,
    /// The smallest grain that times are cut to, if it is bound.
    pub smallest_time_grain: Option<Grain>,
    /// The dimensions, in the order of the file.
    pub dimensions: Vec<Dimension>,
    /// The measures, in the order of the file.
    pub measures: Vec<Measure>,
}

/// A dimension of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dimension {
    /// Its name, unique among the fields in any case.
    pub name: String,
    /// The type of its values; of an unnested one, of the elements.
    pub data_type: DataType,
    /// The smallest grain of its times, if it is bound more than the view's.
    pub smallest_time_grain: Option<Grain>,
    /// Each element of a list counts on its own.
    pub unnest: bool,
    /// Its values have links.
    pub uri: bool,
    /// The viewer may not see it.
    pub hidden: bool,
}

/// A measure of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// Its name, unique among the fields in any case.
    pub name: String,
    /// The type of its values.
    pub data_type: DataType,
    /// The kind of its computation.
    pub kind: MeasureKind,
    /// The measures that its expression uses.
    pub requires: Vec<String>,
    /// The dimensions that it needs in a query, in the order of its window.
    pub order: Vec<Selector>,
    /// The viewer may not see it; what other measures require may be hidden.
    pub hidden: bool,
}

/// The kinds of measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasureKind {
    /// An aggregate over the rows of a group.
    Simple,
    /// An expression over other measures of the same group.
    Derived,
    /// An aggregate over the values of smaller groups.
    Per,
    /// An expression over other measures, now and in the comparison.
    TimeComparison,
    /// An expression over neighbouring groups.
    Window,
}

/// A dimension, for times with a grain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// The dimension's name.
    pub name: String,
    /// The grain, or none for the values themselves.
    pub grain: Option<Grain>,
}

/// Types of values, as far as literals are checked against them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataType {
    /// Text, and enums.
    Text,
    /// Whole numbers, decimals and floating-point numbers.
    Number,
    /// Truth.
    Boolean,
    /// A day.
    Date,
    /// A time that is taken to be universal time.
    Timestamp,
    /// An instant.
    Instant,
    /// Anything else: lists, structs, intervals, bytes.
    Other,
}

impl DataType {
    /// Returns the type for the name that DuckDB gives it: `VARCHAR`, `DECIMAL(18,3)`, `TIMESTAMP WITH TIME ZONE`.
    pub fn of(engine_name: &str) -> Self {
        let name = engine_name.trim().to_ascii_uppercase();
        if name.ends_with(']') {
            return Self::Other;
        }
        let word = name.split('(').next().unwrap_or_default().trim();
        match word {
            "VARCHAR" | "UUID" | "ENUM" | "TEXT" => Self::Text,
            "TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT" | "HUGEINT" | "UTINYINT" | "USMALLINT"
            | "UINTEGER" | "UBIGINT" | "UHUGEINT" | "DECIMAL" | "FLOAT" | "DOUBLE" => Self::Number,
            "BOOLEAN" => Self::Boolean,
            "DATE" => Self::Date,
            "TIMESTAMP" | "TIMESTAMP_S" | "TIMESTAMP_MS" | "TIMESTAMP_NS" => Self::Timestamp,
            "TIMESTAMP WITH TIME ZONE" | "TIMESTAMPTZ" => Self::Instant,
            _ => Self::Other,
        }
    }

    /// Returns true for what can be cut to a grain.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Date | Self::Timestamp | Self::Instant)
    }

    /// Returns the word for it in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Date => "a day",
            Self::Timestamp | Self::Instant => "a time",
            Self::Other => "of a type that is not compared",
        }
    }
}

impl View {
    /// Finds a dimension by its name, in any case.
    pub fn dimension(&self, name: &str) -> Option<&Dimension> {
        self.dimensions
            .iter()
            .find(|dimension| same(&dimension.name, name))
    }

    /// Finds a measure by its name, in any case.
    pub fn measure(&self, name: &str) -> Option<&Measure> {
        self.measures.iter().find(|measure| same(&measure.name, name))
    }

    /// Returns the names of the dimensions that the viewer may see.
    pub(crate) fn visible_dimensions(&self) -> impl Iterator<Item = &str> {
        let visible = self.dimensions.iter().filter(|dimension| !dimension.hidden);
        visible.map(|dimension| dimension.name.as_str())
    }

    /// Returns the names of the measures that the viewer may see.
    pub(crate) fn visible_measures(&self) -> impl Iterator<Item = &str> {
        let visible = self.measures.iter().filter(|measure| !measure.hidden);
        visible.map(|measure| measure.name.as_str())
    }

    /// Returns the names of all fields.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        let dimensions = self.dimensions.iter().map(|dimension| dimension.name.as_str());
        dimensions.chain(self.measures.iter().map(|measure| measure.name.as_str()))
    }
}

/// Returns true if two names are the same name, in any case.
pub(crate) fn same(left: &str, right: &str) -> bool {
    left == right || left.to_lowercase() == right.to_lowercase()
}
