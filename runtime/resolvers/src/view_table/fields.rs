//! The columns of a view's table.

use watershed_compilers::nearest_name;
use watershed_dialect::{ENGINE, Quoting as _};

/// The fields of a metrics view that a viewer sees, as columns of its table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    /// Name of the view.
    pub view: String,
    /// Names of the dimensions.
    pub dimensions: Vec<String>,
    /// Names of the measures.
    pub measures: Vec<String>,
}

impl Fields {
    /// Returns the dimension of a name, in any case.
    pub(super) fn dimension(&self, name: &str) -> Option<&str> {
        found(&self.dimensions, name)
    }

    /// Returns the measure of a name, in any case.
    pub(super) fn measure(&self, name: &str) -> Option<&str> {
        found(&self.measures, name)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.dimension(name).is_some() || self.measure(name).is_some()
    }

    /// Returns the message about a name that no field has.
    pub(super) fn unknown(&self, name: &str) -> String {
        let all = self.dimensions.iter().chain(&self.measures).map(String::as_str);
        let near = nearest_name(name, all).map_or_else(String::new, |near| format!("; `{near}` is one"));
        format!("`{name}` is no field of `{}`{near}", self.view)
    }

    /// Returns the hint that shows a statement which works.
    pub(super) fn hint(&self) -> String {
        let view = quoted(&self.view);
        let fields = [self.dimensions.first(), self.measures.first()];
        match fields.map(|field| field.map(|name| quoted(name))) {
            [Some(dimension), Some(measure)] => {
                format!("write `SELECT {dimension}, sum({measure}) FROM metrics.{view} GROUP BY {dimension}`")
            }
            [Some(field), None] | [None, Some(field)] => {
                format!("write `SELECT {field} FROM metrics.{view}`")
            }
            [None, None] => "you may see no field of the view".to_owned(),
        }
    }
}

fn found<'a>(names: &'a [String], name: &str) -> Option<&'a str> {
    let mut all = names.iter().map(String::as_str);
    all.find(|own| own.eq_ignore_ascii_case(name))
}

/// Returns a name as people write it in SQL: quoted where that is needed.
fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name
            .chars()
            .all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '_');
    match is_plain {
        true => name.to_owned(),
        false => ENGINE.name(name),
    }
}
