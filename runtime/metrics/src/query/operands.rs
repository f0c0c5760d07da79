//! Checks of the operands of filters: allowed names, and values of their types.

use watershed_schedule::jiff::Timestamp;
use watershed_schedule::jiff::civil::{Date, DateTime};

use super::error::{At, Code, QueryError};
use super::filter::{Filter, Literal, Operator, Subquery};
use super::names;
use super::{ComputedMeasure, Limits, Query};
use crate::view::{DataType, View, same};

/// A checker of all filters of a query, which counts their values.
pub(super) struct Operands<'q> {
    query: &'q Query,
    view: &'q View,
    values: usize,
}

/// The scope of a filter, which decides what fields it may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Rows, so that only dimensions may be named.
    Rows,
    /// Groups, so that any field or computed column may be named.
    Groups,
}

impl<'q> Operands<'q> {
    /// Creates the checker for the filters of a query.
    pub(super) fn new(query: &'q Query, view: &'q View) -> Self {
        Self {
            query,
            view,
            values: 0,
        }
    }

    /// Checks a filter on rows.
    pub(super) fn rows(&mut self, filter: &Filter, at: &At<'_>) -> Result<(), QueryError> {
        self.condition(filter, Scope::Rows, at)
    }

    /// Checks a filter on groups.
    pub(super) fn groups(&mut self, filter: &Filter, at: &At<'_>) -> Result<(), QueryError> {
        self.condition(filter, Scope::Groups, at)
    }

    /// Checks a filter that must be a condition, true or false.
    fn condition(&mut self, filter: &Filter, scope: Scope, at: &At<'_>) -> Result<(), QueryError> {
        match filter {
            Filter::Condition { op, operands } => self.operation(*op, operands, scope, at),
            Filter::Value(Literal::Boolean(_)) => Ok(()),
            Filter::Name(name) => match self.type_of(name, scope, &at.key("name"))? {
                DataType::Boolean => Ok(()),
                _ => Err(at.error(
                    Code::MixedTypes,
                    format!("\"{name}\" is neither true nor false by itself"),
                )),
            },
            Filter::Value(_) | Filter::Subquery(_) => {
                Err(at.error(Code::MixedTypes, "a condition is needed here"))
            }
        }
    }

    fn operation(
        &mut self,
        op: Operator,
        operands: &[Filter],
        scope: Scope,
        at: &At<'_>,
    ) -> Result<(), QueryError> {
        let at = at.key("cond");
        let list = at.key("exprs");
        if op.is_logical() {
            if op == Operator::Not && operands.len() != 1 {
                return Err(list.error(Code::WrongType, "`not` takes one condition"));
            }
            for (index, operand) in operands.iter().enumerate() {
                self.condition(operand, scope, &list.item(index))?;
            }
            return Ok(());
        }
        let (Some(first), rest) = (operands.first(), operands.get(1..).unwrap_or_default()) else {
            return Err(list.error(Code::WrongType, "a field is needed first"));
        };
        let Filter::Name(name) = first else {
            return Err(list.item(0).error(Code::WrongType, "a field is needed first"));
        };
        let data_type = self.type_of(name, scope, &list.item(0).key("name"))?;
        let several = matches!(op, Operator::In | Operator::Nin);
        if !several && rest.len() != 1 {
            return Err(list.error(Code::WrongType, "a field and one value are needed"));
        }
        for (index, operand) in rest.iter().enumerate() {
            self.operand(op, operand, data_type, scope, &list.item(index + 1))?;
        }
        Ok(())
    }

    fn operand(
        &mut self,
        op: Operator,
        operand: &Filter,
        data_type: DataType,
        scope: Scope,
        at: &At<'_>,
    ) -> Result<(), QueryError> {
        let several = matches!(op, Operator::In | Operator::Nin);
        match operand {
            Filter::Value(value) if op.is_pattern() => match value {
                Literal::Text(_) | Literal::Null => self.count(1, at),
                _ => Err(at.key("val").error(Code::MixedTypes, "a pattern is text")),
            },
            Filter::Value(Literal::List(values)) if several => {
                self.count(values.len(), at)?;
                let at = at.key("val");
                let mut values = values.iter().enumerate();
                values.try_for_each(|(index, value)| fits(value, data_type, &at.item(index)))
            }
            Filter::Value(value) => {
                self.count(1, at)?;
                fits(value, data_type, &at.key("val"))
            }
            Filter::Subquery(subquery) if several => {
                let found = self.subquery(subquery, &at.key("subquery"))?;
                mixed(data_type, found, at)
            }
            Filter::Name(name) if !several && !op.is_pattern() => {
                let found = self.type_of(name, scope, &at.key("name"))?;
                mixed(data_type, found, at)
            }
            _ => Err(at.error(Code::WrongType, "a value is needed here")),
        }
    }

    fn subquery(&mut self, subquery: &Subquery, at: &At<'_>) -> Result<DataType, QueryError> {
        let dimension = names::dimension(self.view, &subquery.dimension, &at.key("dimension"))?;
        let list = at.key("measures");
        for (index, name) in subquery.measures.iter().enumerate() {
            names::measure(self.view, name, &list.item(index))?;
        }
        if let Some(filter) = &subquery.r#where {
            self.condition(filter, Scope::Rows, &at.key("where"))?;
        }
        if let Some(filter) = &subquery.having {
            self.condition(filter, Scope::Groups, &at.key("having"))?;
        }
        Ok(dimension.data_type)
    }

    /// Returns the type of the field or column that a name means.
    fn type_of(&self, name: &str, scope: Scope, at: &At<'_>) -> Result<DataType, QueryError> {
        if scope == Scope::Rows || self.view.dimension(name).is_some() {
            return Ok(names::dimension(self.view, name, at)?.data_type);
        }
        if self.view.measure(name).is_some() {
            return Ok(names::measure(self.view, name, at)?.data_type);
        }
        let mut dimensions = self.query.dimensions.iter();
        if let Some(cut) = dimensions.find(|dimension| same(&dimension.name, name)) {
            let found = self.view.dimension(&cut.of);
            return Ok(found.map_or(DataType::Other, |found| found.data_type));
        }
        let mut measures = self.query.measures.iter();
        let computed = measures.find(|measure| same(&measure.name, name));
        match computed.and_then(|measure| measure.compute.as_ref()) {
            Some(ComputedMeasure::Uri(_)) => Ok(DataType::Text),
            Some(ComputedMeasure::ComparisonTime(name)) => {
                let found = self.view.dimension(name);
                Ok(found.map_or(DataType::Other, |found| found.data_type))
            }
            Some(ComputedMeasure::ComparisonValue(name)) => {
                let found = self.view.measure(name);
                Ok(found.map_or(DataType::Number, |found| found.data_type))
            }
            Some(_) => Ok(DataType::Number),
            None => {
                let message = format!("unknown field \"{name}\"");
                let known = self.view.visible_dimensions().chain(self.view.visible_measures());
                let names = self.query.measures.iter().map(|measure| measure.name.as_str());
                Err(at.unknown(Code::UnknownField, message, name, known.chain(names)))
            }
        }
    }

    fn count(&mut self, values: usize, at: &At<'_>) -> Result<(), QueryError> {
        self.values += values;
        if self.values > Limits::VALUES {
            let message = format!("filters have at most {} values", Limits::VALUES);
            return Err(at.error(Code::TooLarge, message));
        }
        Ok(())
    }
}

/// Checks that a literal has a type, or is null.
fn fits(value: &Literal, data_type: DataType, at: &At<'_>) -> Result<(), QueryError> {
    let fits = match (data_type, value) {
        (_, Literal::Null)
        | (DataType::Text, Literal::Text(_))
        | (DataType::Number, Literal::Number(_))
        | (DataType::Boolean, Literal::Boolean(_)) => true,
        (DataType::Date, Literal::Text(text)) => text.parse::<Date>().is_ok(),
        (DataType::Timestamp | DataType::Instant, Literal::Text(text)) => {
            text.parse::<Timestamp>().is_ok()
                || text.parse::<DateTime>().is_ok()
                || text.parse::<Date>().is_ok()
        }
        _ => false,
    };
    if fits {
        return Ok(());
    }
    let message = match value {
        Literal::List(_) => "a list stands only in `in` and `nin`".to_owned(),
        Literal::Text(text) => format!("\"{text}\" is compared with what is {}", data_type.word()),
        Literal::Number(number) => format!("{number} is compared with what is {}", data_type.word()),
        Literal::Boolean(flag) => format!("{flag} is compared with what is {}", data_type.word()),
        Literal::Null => String::new(),
    };
    Err(at.error(Code::MixedTypes, message))
}

/// Checks that two fields have comparable types.
fn mixed(left: DataType, right: DataType, at: &At<'_>) -> Result<(), QueryError> {
    if left == right && left != DataType::Other {
        return Ok(());
    }
    let message = format!(
        "what is {} is compared with what is {}",
        left.word(),
        right.word()
    );
    Err(at.error(Code::MixedTypes, message))
}
