//! A metrics view as a query sees it: its fields with their types.

use watershed_schedule::Grain;

/// A metrics view: the fields that a query may name, and its calendar.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct View {
    /// Its name.
    pub name: String,
    /// The parts of its table's name.
    pub table: Vec<String>,
    /// The table's columns, as far as they are known; `rows` shows those that are no dimensions, too.
    pub columns: Vec<String>,
    /// The expression up to which the data is complete, if it is not the latest time.
    pub watermark: Option<String>,
    /// The first day of weeks, 1 for Monday to 7 for Sunday; 0 when not said.
    pub first_day_of_week: u32,
    /// The first month of years, 1 to 12; 0 when not said.
    pub first_month_of_year: u32,
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dimension {
    /// Its name, unique among the fields in any case.
    pub name: String,
    /// Its name for people; empty for its name.
    pub display_name: String,
    /// The type of its values; of an unnested one, of the elements.
    pub data_type: DataType,
    /// That type as the engine writes it.
    pub engine_type: String,
    /// The source of its values.
    pub source: Source,
    /// The table that translates its values.
    pub lookup: Option<Lookup>,
    /// The smallest grain of its times, if it is bound more than the view's.
    pub smallest_time_grain: Option<Grain>,
    /// Each element of a list counts on its own.
    pub unnest: bool,
    /// The links of its values, if they have any.
    pub uri: Option<Uri>,
    /// The viewer may not see it.
    pub hidden: bool,
}

/// The source of a dimension's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A column of the table.
    Column(String),
    /// An expression over the table's columns.
    Expression(String),
}

/// A table that translates values: the smallest value of each key counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// The parts of the table's name.
    pub table: Vec<String>,
    /// Its column that values are found in.
    pub key: String,
    /// Its column that is shown.
    pub value: String,
    /// An expression for what is not found; none for NULL.
    pub default: Option<String>,
}

/// The links of a dimension's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uri {
    /// The values are links themselves.
    Value,
    /// An expression over the table's columns.
    Expression(String),
}

/// A measure of a view.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Measure {
    /// Its name, unique among the fields in any case.
    pub name: String,
    /// Its name for people; empty for its name.
    pub display_name: String,
    /// The type of its values.
    pub data_type: DataType,
    /// That type as the engine writes it.
    pub engine_type: String,
    /// The computation: over the table's columns if it is simple, else over the measures that it requires.
    pub expression: String,
    /// The dimensions of the smaller groups, for one that is aggregated over them.
    pub per: Vec<Selector>,
    /// The neighbours, for one that is computed over them.
    pub window: Option<Window>,
    /// An expression for missing values.
    pub treat_nulls_as: Option<String>,
    /// The kind of its computation.
    pub kind: MeasureKind,
    /// The measures that its expression uses.
    pub requires: Vec<String>,
    /// The dimensions that it needs in a query, in the order of its window.
    pub order: Vec<Selector>,
    /// The viewer may not see it; what other measures require may be hidden.
    pub hidden: bool,
}

/// Neighbouring groups that a measure is computed over, ordered by [`Measure::order`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Window {
    /// Apart for each combination of the other dimensions.
    pub partition: bool,
    /// The neighbours, as SQL writes frames; empty for the engine's default.
    pub frame: String,
}

/// The kinds of measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MeasureKind {
    /// An aggregate over the rows of a group.
    #[default]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
    #[default]
    Other,
}

impl Default for Source {
    fn default() -> Self {
        Self::Column(String::new())
    }
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

    /// Finds the place of a dimension.
    pub(crate) fn dimension_index(&self, name: &str) -> Option<usize> {
        self.dimensions
            .iter()
            .position(|dimension| same(&dimension.name, name))
    }

    /// Finds the place of a measure.
    pub(crate) fn measure_index(&self, name: &str) -> Option<usize> {
        self.measures.iter().position(|measure| same(&measure.name, name))
    }

    /// Returns the smallest grain of a time dimension, by its own bound, the view's and its type.
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
