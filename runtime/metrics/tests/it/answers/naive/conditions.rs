//! Q5 and Q6: conditions on rows and groups.

use std::cmp::Ordering;

use watershed_metrics::query::{Filter, Literal, Operator, Subquery};
use watershed_metrics::{DataType, Query};

use super::{Context, Key, Level, Naive, TAG};
use crate::answers::cell::Cell;

impl<'w> Naive<'w> {
    /// Q5: a condition on rows.
    pub(super) fn row_condition(&self, filter: &Filter, context: &Context<'w>) -> Option<bool> {
        self.condition(filter, &|name| {
            let dimension = self.dimension(name);
            match (dimension, context.element) {
                (TAG, None) => Operands::Elements(Self::elements(context.row)),
                _ => Operands::One(self.value(context, dimension)),
            }
        })
    }

    pub(super) fn group_condition(&self, filter: &Filter, level: &Level<'w>, key: &Key) -> Option<bool> {
        self.condition(filter, &|name| {
            let measures = &self.world.view.measures;
            if let Some(index) = measures.iter().position(|measure| measure.name == name) {
                return Operands::One(self.of(level, key, 0, index));
            }
            if let Some(place) = self
                .query
                .measures
                .iter()
                .position(|measure| measure.name == name)
            {
                return Operands::One(self.computed(level, key, place));
            }
            let place = self
                .query
                .dimensions
                .iter()
                .position(|dimension| dimension.name == name);
            Operands::One(key[place.expect("a column")].clone())
        })
    }

    fn condition(&self, filter: &Filter, operands: &dyn Fn(&str) -> Operands) -> Option<bool> {
        let Filter::Condition { op, operands: parts } = filter else {
            return match filter {
                Filter::Value(Literal::Boolean(flag)) => Some(*flag),
                Filter::Name(name) => match operands(name) {
                    Operands::One(Cell::Bool(flag)) => Some(flag),
                    _ => None,
                },
                _ => None,
            };
        };
        let results = || parts.iter().map(|part| self.condition(part, operands));
        match op {
            Operator::And => Some(results().all(|result| result == Some(true))),
            Operator::Or => Some(results().any(|result| result == Some(true))),
            Operator::Not => Some(results().next().expect("a condition") != Some(true)),
            op => {
                let Some(Filter::Name(name)) = parts.first() else {
                    return None;
                };
                let data_type = self.type_of(name);
                let holds =
                    |op: Operator, cell: &Cell| self.holds(op, cell, &parts[1..], data_type, operands);
                Some(match operands(name) {
                    Operands::One(cell) => holds(*op, &cell),
                    Operands::Elements(cells) => match positive(*op) {
                        same if same == *op => cells.iter().any(|cell| holds(*op, cell)),
                        other => !cells.iter().any(|cell| holds(other, cell)),
                    },
                })
            }
        }
    }

    fn type_of(&self, name: &str) -> DataType {
        let dimension = self
            .world
            .view
            .dimensions
            .iter()
            .find(|dimension| dimension.name == name);
        dimension.map_or(DataType::Number, |dimension| dimension.data_type)
    }

    fn holds(
        &self,
        op: Operator,
        cell: &Cell,
        rest: &[Filter],
        data_type: DataType,
        operands: &dyn Fn(&str) -> Operands,
    ) -> bool {
        if matches!(op, Operator::In | Operator::Nin) {
            let mut found = false;
            for part in rest {
                found |= match part {
                    Filter::Value(Literal::List(values)) => {
                        values.iter().any(|value| literal(value, data_type) == *cell)
                    }
                    Filter::Value(value) => literal(value, data_type) == *cell,
                    Filter::Subquery(subquery) => self.set(subquery).contains(cell),
                    _ => false,
                };
            }
            return found == (op == Operator::In);
        }
        let other = match &rest[0] {
            Filter::Value(Literal::Null) => match op {
                Operator::Eq => return cell.is_null(),
                Operator::Neq => return !cell.is_null(),
                _ => Cell::Null,
            },
            Filter::Value(value) if op.is_pattern() => literal(value, DataType::Text),
            Filter::Value(value) => literal(value, data_type),
            Filter::Name(name) => match operands(name) {
                Operands::One(cell) => cell,
                Operands::Elements(_) => Cell::Null,
            },
            _ => Cell::Null,
        };
        if op.is_pattern() {
            let found = match (&as_text(cell), &other) {
                (Some(text), Cell::Text(pattern)) => {
                    let fold = matches!(op, Operator::Ilike | Operator::Nilike);
                    let (text, pattern) = if fold {
                        (text.to_lowercase(), pattern.to_lowercase())
                    } else {
                        (text.clone(), pattern.clone())
                    };
                    like(&text, &pattern)
                }
                _ => false,
            };
            return found == matches!(op, Operator::Like | Operator::Ilike);
        }
        let Some(order) = cell.compare(&other) else {
            return false;
        };
        match op {
            Operator::Eq => order == Ordering::Equal,
            Operator::Neq => order != Ordering::Equal,
            Operator::Lt => order == Ordering::Less,
            Operator::Lte => order != Ordering::Greater,
            Operator::Gt => order == Ordering::Greater,
            _ => order != Ordering::Less,
        }
    }

    /// Q5: the values of a dimension in groups that meet conditions, in the query's ranges.
    fn set(&self, subquery: &Subquery) -> Vec<Cell> {
        let mut query = Query::of("view");
        query.dimensions = vec![watershed_metrics::query::Dimension::named(&subquery.dimension)];
        query.r#where = subquery.r#where.clone();
        query.having = subquery.having.clone();
        let inner = Naive {
            world: self.world,
            rows: self.rows.clone(),
            query: &query,
            clock: self.clock.clone(),
            base: self.base,
            comparison: self.comparison,
        };
        inner.answer().into_iter().map(|mut row| row.remove(0)).collect()
    }
}

enum Operands {
    One(Cell),
    Elements(Vec<Cell>),
}

fn positive(op: Operator) -> Operator {
    match op {
        Operator::Neq => Operator::Eq,
        Operator::Nlike => Operator::Like,
        Operator::Nilike => Operator::Ilike,
        Operator::Nin => Operator::In,
        op => op,
    }
}

/// Q6: a literal in the dimension's type.
fn literal(literal: &Literal, data_type: DataType) -> Cell {
    match (literal, data_type) {
        (Literal::Boolean(flag), _) => Cell::Bool(*flag),
        (Literal::Number(number), _) => Cell::Number(number.as_f64().expect("a number")),
        (Literal::Text(text), DataType::Date) => Cell::Day(text.parse().expect("a day")),
        (Literal::Text(text), DataType::Timestamp | DataType::Instant) => {
            let time: watershed_metrics::jiff::Timestamp = text.parse().expect("a time");
            Cell::Time(time.as_microsecond())
        }
        (Literal::Text(text), _) => Cell::text(text),
        _ => Cell::Null,
    }
}

fn as_text(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Null => None,
        Cell::Text(text) => Some(text.clone()),
        Cell::Number(number) if number.fract() == 0.0 => Some(format!("{number}")),
        other => Some(other.shown()),
    }
}

/// `%` stands for any text, `_` for one character.
fn like(text: &str, pattern: &str) -> bool {
    let Some(first) = pattern.chars().next() else {
        return text.is_empty();
    };
    let rest = &pattern[first.len_utf8()..];
    match first {
        '%' => text
            .char_indices()
            .map(|(at, _)| at)
            .chain([text.len()])
            .any(|at| like(&text[at..], rest)),
        _ => {
            let mut chars = text.chars();
            chars
                .next()
                .is_some_and(|found| (first == '_' || found == first) && like(chars.as_str(), rest))
        }
    }
}
