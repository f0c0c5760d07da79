//! Metrics views as queries see them, with the types of their fields.

use watershed_schedule::Grain;

/// A metrics view: the fields that a query may name, and its calendar.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// The name by which queries refer to the view.
    pub name: String,
    /// The parts of the table's name.
    pub table: Vec<String>,
    /// The known columns of the table; queries of rows also show those that are no dimensions.
    pub columns: Vec<String>,
    /// The expression for the time up to which the data is complete; none for the latest time.
    pub watermark: Option<String>,
    /// The first day of weeks, 1 for Monday to 7 for Sunday; 0 if unset.
    pub first_day_of_week: u32,
    /// The first month of years, 1 to 12; 0 if unset.
    pub first_month_of_year: u32,
    /// The default time dimension of ranges; empty if there is none.
    pub time_dimension: String,
    /// The smallest grain that times may be cut to; none for no limit.
    pub smallest_time_grain: Option<Grain>,
    /// The dimensions, in the order of the file.
    pub dimensions: Vec<Dimension>,
    /// The measures, in the order of the file.
    pub measures: Vec<Measure>,
}

/// A dimension that a view defines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dimension {
    /// The name of the dimension, unique among all fields in any case.
    pub name: String,
    /// The display name; empty if it equals the name.
    pub display_name: String,
    /// The type of the values; for an unnested list, the type of its elements.
    pub data_type: DataType,
    /// The type as the engine writes it.
    pub engine_type: String,
    /// The source of the dimension's values.
    pub source: Source,
    /// The lookup table that translates the values, if there is one.
    pub lookup: Option<Lookup>,
    /// The smallest grain of this dimension; none for the view's limit.
    pub smallest_time_grain: Option<Grain>,
    /// True if each element of a list counts as a value.
    pub unnest: bool,
    /// The links of the values, if there are any.
    pub uri: Option<Uri>,
    /// True if the viewer may not see the dimension.
    pub hidden: bool,
}

/// The source of a dimension's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A column of the view's table.
    Column(String),
    /// An expression over the table's columns.
    Expression(String),
}

/// A table that translates values; of several translations for a key, the smallest is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// The parts of the lookup table's name.
    pub table: Vec<String>,
    /// The column that values are looked up in.
    pub key: String,
    /// The column with the translations.
    pub value: String,
    /// The expression for missing translations; none for NULL.
    pub default: Option<String>,
}

/// The links of a dimension's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uri {
    /// The values themselves are links.
    Value,
    /// An expression over the table's columns yields the links.
    Expression(String),
}

/// A measure that a view defines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Measure {
    /// The name of the measure, unique among all fields in any case.
    pub name: String,
    /// The display name; empty if it equals the name.
    pub display_name: String,
    /// The type of the measure's values.
    pub data_type: DataType,
    /// The type as the engine writes it.
    pub engine_type: String,
    /// The expression: over the table's columns if the measure is simple, else over the required measures.
    pub expression: String,
    /// The dimensions of the smaller groups that the measure aggregates over, if any.
    pub per: Vec<Selector>,
    /// The window of neighbouring groups that the measure is computed over, if any.
    pub window: Option<Window>,
    /// The expression that replaces missing values, if any.
    pub treat_nulls_as: Option<String>,
    /// The way in which the measure is computed.
    pub kind: MeasureKind,
    /// The names of the measures that the expression uses.
    pub requires: Vec<String>,
    /// The dimensions that a query must group by, in the order of the measure's window.
    pub order: Vec<Selector>,
    /// True if the viewer may not see the measure; other measures may still require it.
    pub hidden: bool,
}

/// The window of neighbouring groups that a measure is computed over, ordered by [`Measure::order`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Window {
    /// True if each combination of the other dimensions has a window of its own.
    pub partition: bool,
    /// The frame of the window, as in SQL; empty for the engine's default.
    pub frame: String,
}

/// The way in which a measure is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MeasureKind {
    /// An aggregate over the rows of a group.
    #[default]
    Simple,
    /// An expression over other measures of the same group.
    Derived,
    /// An aggregate over the values of another measure in smaller groups.
    Per,
    /// An expression over other measures of base and comparison.
    TimeComparison,
    /// An expression over neighbouring groups.
    Window,
}

/// A dimension to group by, with the grain to which its times are truncated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// The name of the dimension to group by.
    pub name: String,
    /// The grain of times; none for the values themselves.
    pub grain: Option<Grain>,
}

/// The type of a field's values, as far as literals are checked against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DataType {
    /// Texts, and enums, which are compared as texts.
    Text,
    /// Integers, decimals and floating-point numbers.
    Number,
    /// Truth values.
    Boolean,
    /// Dates without a time.
    Date,
    /// Timestamps without a zone, taken as UTC.
    Timestamp,
    /// Timestamps with a zone, which denote instants.
    Instant,
    /// Any other type, such as lists, structs, intervals and bytes.
    #[default]
    Other,
}

impl Default for Source {
    fn default() -> Self {
        Self::Column(String::new())
    }
}

impl DataType {
    /// Returns the type of a DuckDB type name, such as `VARCHAR`, `DECIMAL(18,3)` or `TIMESTAMP WITH TIME ZONE`.
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

    /// Returns true for the types whose values can be cut to a grain.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Date | Self::Timestamp | Self::Instant)
    }

    /// Returns the word for the type in messages.
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

    /// Returns the index of a dimension, by its name in any case.
    pub(crate) fn dimension_index(&self, name: &str) -> Option<usize> {
        self.dimensions
            .iter()
            .position(|dimension| same(&dimension.name, name))
    }

    /// Returns the index of a measure, by its name in any case.
    pub(crate) fn measure_index(&self, name: &str) -> Option<usize> {
        self.measures.iter().position(|measure| same(&measure.name, name))
    }

    /// Returns the smallest grain of a time dimension, given its own limit, the view's and its type; none for other
    /// types.
    pub(crate) fn smallest_grain(&self, dimension: &Dimension) -> Option<Grain> {
        let of_type = (dimension.data_type == DataType::Date).then_some(Grain::Day);
        let bounds = [dimension.smallest_time_grain, self.smallest_time_grain, of_type];
        bounds.into_iter().flatten().max()
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

    /// Returns the names of all dimensions and measures.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        let dimensions = self.dimensions.iter().map(|dimension| dimension.name.as_str());
        dimensions.chain(self.measures.iter().map(|measure| measure.name.as_str()))
    }
}

/// Returns true if two names are equal in any case.
pub(crate) fn same(left: &str, right: &str) -> bool {
    left == right || left.to_lowercase() == right.to_lowercase()
}
