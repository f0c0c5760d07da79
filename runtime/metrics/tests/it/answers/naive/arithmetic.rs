//! Aggregates and operations on numbers, NULL included.

use std::collections::BTreeMap;

use super::Context;
use crate::answers::cell::Cell;
use crate::answers::world::{Aggregate, Function, Operation};

pub(super) fn count(number: usize) -> Cell {
    Cell::Number(number as f64)
}

pub(super) fn simple(aggregate: Aggregate, members: &[Context<'_>]) -> Cell {
    let values = |column: usize| {
        let cells = members.iter().filter_map(|context| context.row[column].number());
        cells.collect::<Vec<f64>>()
    };
    match aggregate {
        Aggregate::Rows => count(members.len()),
        Aggregate::Sum(column) => total(&values(column)),
        Aggregate::Min(column) => values(column)
            .into_iter()
            .reduce(f64::min)
            .map_or(Cell::Null, Cell::Number),
        Aggregate::Mean(column) => {
            let values = values(column);
            match total(&values) {
                Cell::Number(sum) => Cell::Number(sum / values.len() as f64),
                other => other,
            }
        }
        Aggregate::Values(column) => {
            let mut found: BTreeMap<String, ()> = BTreeMap::new();
            for context in members {
                if !context.row[column].is_null() {
                    found.insert(context.row[column].shown(), ());
                }
            }
            count(found.len())
        }
    }
}

pub(super) fn total(values: &[f64]) -> Cell {
    if values.is_empty() {
        return Cell::Null;
    }
    Cell::Number(values.iter().sum())
}

pub(super) fn over(function: Function, cells: &[Cell]) -> Cell {
    let values: Vec<f64> = cells.iter().filter_map(Cell::number).collect();
    match function {
        Function::Sum => total(&values),
        Function::Max => values
            .into_iter()
            .reduce(f64::max)
            .map_or(Cell::Null, Cell::Number),
        Function::Count => count(values.len()),
        Function::Rows => count(cells.len()),
    }
}

pub(super) fn apply(operation: Operation, a: &Cell, b: &Cell) -> Cell {
    let (Cell::Number(a), Cell::Number(b)) = (a, b) else {
        return Cell::Null;
    };
    Cell::Number(match operation {
        Operation::Plus => a + b,
        Operation::Minus => a - b,
        Operation::Divided => a / b,
    })
}

/// The share of a difference in the value that it is a difference to, with the difference's sign.
pub(super) fn relative(delta: &Cell, compared: &Cell) -> Cell {
    match compared {
        Cell::Number(number) => share(delta, &Cell::Number(number.abs())),
        _ => Cell::Null,
    }
}

pub(super) fn share(part: &Cell, whole: &Cell) -> Cell {
    match apply(Operation::Divided, part, whole) {
        Cell::Number(number) if number.is_finite() => Cell::Number(number),
        _ => Cell::Null,
    }
}
