//! The parts of a SELECT over a view: expressions of fields become columns of the answer, and conditions those of filters.

use serde_json::{Value, json};

use super::Fields;
use crate::condition::{children, literal, text};

/// Aggregates that mean a measure's own value, which is aggregated already.
const OF_MEASURE: [&str; 8] = [
    "sum",
    "avg",
    "min",
    "max",
    "any_value",
    "measure",
    "aggregate",
    "agg",
];

/// Types in which a dimension has as many values as before.
const LOSSLESS: [&str; 4] = ["VARCHAR", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "DATE"];

/// A dimension of the metrics query.
#[derive(Debug, Clone, PartialEq)]
struct Dimension {
    /// Name of its column in the answer.
    column: String,
    /// Its form in the query.
    asked: Value,
}

/// The expressions of a SELECT over a view, and what they ask of the view.
pub(super) struct Rewrite<'a> {
    fields: &'a Fields,
    /// Name of the table in the statement.
    table: String,
    /// Names of the selected columns.
    aliases: Vec<String>,
    is_aggregate: &'a dyn Fn(&str) -> bool,
    /// True if the statement says its groups.
    is_grouped: bool,
    dimensions: Vec<Dimension>,
    measures: Vec<String>,
}

impl<'a> Rewrite<'a> {
    pub(super) fn new(
        fields: &'a Fields,
        table: String,
        aliases: Vec<String>,
        is_aggregate: &'a dyn Fn(&str) -> bool,
    ) -> Self {
        Self {
            fields,
            table,
            aliases,
            is_aggregate,
            is_grouped: false,
            dimensions: Vec::new(),
            measures: Vec::new(),
        }
    }

    /// Takes the groups of the statement for the query's dimensions.
    ///
    /// # Errors
    /// A group that is no dimension.
    pub(super) fn group(&mut self, groups: &[Value]) -> Result<(), String> {
        for group in groups {
            let mut inner = group;
            let dimension = loop {
                match self.dimension(inner) {
                    Some((dimension, _)) => break dimension,
                    None if is_cast(inner, &LOSSLESS) => inner = &inner["child"],
                    None => return Err(self.no_group(group)),
                }
            };
            self.add(dimension);
        }
        self.is_grouped = !groups.is_empty();
        Ok(())
    }

    fn no_group(&self, group: &Value) -> String {
        match self.column(group) {
            Some(name) if !self.fields.has(&name) => self.fields.unknown(&name),
            Some(name) => format!("`{name}` is a measure, and groups are dimensions"),
            None => "groups are dimensions, and times cut by `date_trunc`".to_owned(),
        }
    }

    fn add(&mut self, dimension: Dimension) {
        if !self.dimensions.contains(&dimension) {
            self.dimensions.push(dimension);
        }
    }

    /// Returns the name that a reference has in the view's table; none for anything else.
    fn column(&self, expression: &Value) -> Option<String> {
        if text(expression, "type") != "COLUMN_REF" {
            return None;
        }
        let names = expression["column_names"].as_array()?;
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        let is = |name: &str, own: &str| name.eq_ignore_ascii_case(own);
        match names.as_slice() {
            [name] => Some((*name).to_owned()),
            [table, name] if is(table, &self.table) => Some((*name).to_owned()),
            [schema, table, name] if is(schema, "metrics") && is(table, &self.fields.view) => {
                Some((*name).to_owned())
            }
            _ => None,
        }
    }

    /// Returns the dimension that an expression is; true if its cast stays around the column.
    fn dimension(&self, expression: &Value) -> Option<(Dimension, bool)> {
        if let Some(name) = self.column(expression) {
            let name = self.fields.dimension(&name)?;
            let plain = Dimension {
                column: name.to_owned(),
                asked: json!(name),
            };
            return Some((plain, false));
        }
        let floor = |name: &str, grain: &str| {
            let column = format!("{name} by {grain}");
            let asked =
                json!({"name": column, "compute": {"time_floor": {"dimension": name, "grain": grain}}});
            Dimension { column, asked }
        };
        if text(expression, "type") == "FUNCTION"
            && text(expression, "function_name").eq_ignore_ascii_case("date_trunc")
        {
            let [grain, time] = children(expression) else {
                return None;
            };
            let mut time = time;
            while is_cast(time, &LOSSLESS[1..3]) {
                time = &time["child"];
            }
            let grain = literal(grain).ok()?.as_str()?.to_ascii_lowercase();
            let name = self.column(time)?;
            return Some((floor(self.fields.dimension(&name)?, &grain), false));
        }
        if is_cast(expression, &["DATE"]) {
            let name = self.column(&expression["child"])?;
            return Some((floor(self.fields.dimension(&name)?, "day"), true));
        }
        None
    }

    /// Returns the measure that an expression is: by its name, or in an aggregate that means the same.
    fn measure(&self, expression: &Value) -> Result<Option<String>, String> {
        if let Some(name) = self.column(expression) {
            return Ok(self.fields.measure(&name).map(str::to_owned));
        }
        let function = text(expression, "function_name").to_ascii_lowercase();
        let is_function = text(expression, "class") == "FUNCTION";
        if !is_function
            || expression["is_operator"] == true
            || !(self.is_aggregate)(&function) && !OF_MEASURE.contains(&function.as_str())
        {
            return Ok(None);
        }
        let of = match children(expression) {
            [one] => self.column(one),
            _ => None,
        };
        let measure = of.as_deref().and_then(|name| self.fields.measure(name));
        let is_plain = expression["filter"].is_null() && expression["distinct"] != true;
        match measure {
            Some(measure) if is_plain && OF_MEASURE.contains(&function.as_str()) => {
                Ok(Some(measure.to_owned()))
            }
            Some(measure) => Err(format!(
                "`{measure}` is an aggregate already: write `sum({measure})`"
            )),
            None => match of.filter(|name| !self.fields.has(name)) {
                Some(name) => Err(self.fields.unknown(&name)),
                None => Err(format!(
                    "`{}` needs rows, and a metrics view has measures: {}",
                    function.trim_end_matches("_star"),
                    listed(&self.fields.measures),
                )),
            },
        }
    }

    /// Makes an expression one of the answer's columns.
    ///
    /// # Errors
    /// What is no field, stands in no group, or needs the view's rows.
    pub(super) fn of_answer(&mut self, expression: &mut Value) -> Result<(), String> {
        self.walk(expression, false)
    }

    /// Makes an expression that may name selected columns one of the answer's columns.
    ///
    /// # Errors
    /// As [`of_answer`](Self::of_answer).
    pub(super) fn of_answer_or_alias(&mut self, expression: &mut Value) -> Result<(), String> {
        if let Some([Value::String(name)]) = expression["column_names"].as_array().map(Vec::as_slice)
            && self.is_alias(name)
        {
            return Ok(());
        }
        self.walk(expression, true)
    }

    fn walk(&mut self, expression: &mut Value, has_aliases: bool) -> Result<(), String> {
        match expression {
            Value::Array(all) => {
                return all.iter_mut().try_for_each(|one| self.walk(one, has_aliases));
            }
            Value::Object(_) => {}
            _ => return Ok(()),
        }
        if let Some((dimension, is_cast)) = self.dimension(expression) {
            if self.is_grouped && !self.dimensions.contains(&dimension) {
                return Err(format!("`{}` has to stand in GROUP BY", dimension.column));
            }
            let column = dimension.column.clone();
            self.add(dimension);
            let place = if is_cast {
                &mut expression["child"]
            } else {
                expression
            };
            self.put(place, &column);
            return Ok(());
        }
        if let Some(measure) = self.measure(expression)? {
            if !self.measures.contains(&measure) {
                self.measures.push(measure.clone());
            }
            self.put(expression, &measure);
            return Ok(());
        }
        match text(expression, "class") {
            "COLUMN_REF" => {
                let name = self.column(expression);
                let name = name.unwrap_or_else(|| written(expression));
                return match has_aliases && self.is_alias(&name) {
                    true => Ok(()),
                    false => Err(self.fields.unknown(&name)),
                };
            }
            "WINDOW" => {
                return Err(
                    "a metrics view has no rows for a window: put its answer into a subquery".to_owned(),
                );
            }
            "SUBQUERY" => {
                return Err("a SELECT over a metrics view has no SELECT in its expressions".to_owned());
            }
            "STAR" => return Err("a metrics view counts no rows: its measures do".to_owned()),
            _ => {}
        }
        let Value::Object(parts) = expression else {
            return Ok(());
        };
        parts
            .values_mut()
            .try_for_each(|part| self.walk(part, has_aliases))
    }

    fn is_alias(&self, name: &str) -> bool {
        self.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    }

    /// Puts a reference to a column of the answer at a place.
    fn put(&self, place: &mut Value, column: &str) {
        let alias = text(place, "alias").to_owned();
        *place = json!({
            "class": "COLUMN_REF", "type": "COLUMN_REF", "alias": alias, "query_location": 0,
            "column_names": [self.table, column],
        });
    }

    /// Returns a condition of WHERE as filters have it: names without their table, and constants that are plain.
    ///
    /// # Errors
    /// A condition about a measure, or about what is no field.
    pub(super) fn condition(&self, mut condition: Value) -> Result<Value, String> {
        self.plain(&mut condition)?;
        Ok(condition)
    }

    fn plain(&self, part: &mut Value) -> Result<(), String> {
        if let Value::Array(all) = part {
            return all.iter_mut().try_for_each(|one| self.plain(one));
        }
        if text(part, "class") == "COLUMN_REF" {
            let name = self.column(part).unwrap_or_else(|| written(part));
            let Some(own) = self.fields.dimension(&name) else {
                return Err(match self.fields.measure(&name) {
                    Some(name) => format!("`{name}` is a measure: HAVING filters by measures"),
                    None => self.fields.unknown(&name),
                });
            };
            part["column_names"] = json!([own]);
            return Ok(());
        }
        // A time of which the format is told is written as the engine writes times.
        if ["to_timestamp", "to_date"].contains(&text(part, "function_name").to_ascii_lowercase().as_str())
            && let [time, format] = children(part)
            && literal(format)
                .is_ok_and(|format| format.as_str().is_some_and(|it| it.starts_with("YYYY-MM-DD")))
        {
            *part = time.clone();
            return Ok(());
        }
        let Value::Object(parts) = &mut *part else {
            return Ok(());
        };
        parts.values_mut().try_for_each(|part| self.plain(part))?;
        let is_compared = text(part, "class") == "COMPARISON";
        let side = |key: &str| (text(&part[key], "type") == "COLUMN_REF").then(|| part[key].clone());
        let is_null = |key: &str| literal(&part[key]) == Ok(Value::Null);
        let of_null = side("left")
            .filter(|_| is_null("right"))
            .or(side("right").filter(|_| is_null("left")));
        if let Some(field) = of_null.filter(|_| is_compared) {
            // As in SQL, nothing equals NULL.
            let test = |kind: &str| json!({"class": "OPERATOR", "type": kind, "alias": "", "query_location": 0, "children": [field]});
            *part = json!({
                "class": "CONJUNCTION", "type": "CONJUNCTION_AND", "alias": "", "query_location": 0,
                "children": [test("OPERATOR_IS_NULL"), test("OPERATOR_IS_NOT_NULL")],
            });
        }
        Ok(())
    }

    /// Returns the metrics query, without its conditions.
    ///
    /// # Errors
    /// A statement that asks for no field.
    pub(super) fn query(&self) -> Result<Value, String> {
        if self.dimensions.is_empty() && self.measures.is_empty() {
            return Err(format!("it asks for no field of `{}`", self.fields.view));
        }
        let dimensions: Vec<&Value> = self.dimensions.iter().map(|one| &one.asked).collect();
        Ok(json!({
            "metrics_view": self.fields.view, "dimensions": dimensions, "measures": self.measures,
        }))
    }
}

/// Returns true if an expression reads a column.
pub(super) fn reads_column(expression: &Value) -> bool {
    match expression {
        Value::Array(all) => all.iter().any(reads_column),
        Value::Object(parts) => {
            ["COLUMN_REF", "SUBQUERY"].contains(&text(expression, "class"))
                || parts.values().any(reads_column)
        }
        _ => false,
    }
}

/// Returns the name that Postgres gives a selected expression: that of a field or a function, also under a cast.
pub(super) fn natural_name(expression: &Value) -> String {
    match text(expression, "class") {
        "COLUMN_REF" => expression["column_names"]
            .as_array()
            .and_then(|names| names.last()?.as_str())
            .unwrap_or_default()
            .to_owned(),
        "FUNCTION" if expression["is_operator"] != true => text(expression, "function_name").to_owned(),
        "CAST" => natural_name(&expression["child"]),
        _ => String::new(),
    }
}

fn is_cast(expression: &Value, types: &[&str]) -> bool {
    text(expression, "class") == "CAST" && types.contains(&text(&expression["cast_type"], "id"))
}

fn written(column: &Value) -> String {
    let names = column["column_names"].as_array().into_iter().flatten();
    names.filter_map(Value::as_str).collect::<Vec<_>>().join(".")
}

/// Returns a few names for a message.
fn listed(names: &[String]) -> String {
    const MOST: usize = 5;
    let few: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    match few.is_empty() {
        true => "you may see none".to_owned(),
        false => few.join(", "),
    }
}
