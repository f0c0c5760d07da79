//! Conversion of filters to SQL conditions (Q5).

use std::collections::BTreeSet;

use super::PlanError;
use super::literal::Operand;
use crate::query::{Filter, Literal, Operator, Subquery};
use crate::sql::{Expr, Infix, Relation, Select};

/// A resolver of the fields and subqueries in a filter.
pub(super) trait Fields {
    /// Returns the field to which a name in a filter refers.
    fn field(&mut self, name: &str) -> Result<Field, PlanError>;

    /// Adds a subquery to the plan; returns its name and the name of its only column.
    fn set(&mut self, subquery: &Subquery) -> Result<(String, String), PlanError>;
}

/// The field that a name means in a filter.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Field {
    /// A single value per row.
    Value(Operand),
    /// A list, of which an element must match, or for negative operators none (Q5). The operand has the type of an
    /// element and stands for the parameter.
    Elements {
        list: Expr,
        parameter: String,
        element: Operand,
    },
}

/// Returns the condition of a filter; it may be NULL, which counts as false.
pub(super) fn condition(filter: &Filter, fields: &mut dyn Fields) -> Result<Expr, PlanError> {
    match filter {
        Filter::Value(Literal::Boolean(true)) => Ok(Expr::TRUE),
        Filter::Value(_) | Filter::Subquery(_) => Ok(Expr::FALSE),
        Filter::Name(name) => Ok(match fields.field(name)? {
            Field::Value(operand) => operand.value,
            Field::Elements {
                list,
                parameter,
                element,
            } => some(list, parameter, element.value),
        }),
        Filter::Condition { op, operands } if op.is_logical() => logical(*op, operands, fields),
        Filter::Condition { op, operands } => comparison(*op, operands, fields),
    }
}

fn logical(op: Operator, operands: &[Filter], fields: &mut dyn Fields) -> Result<Expr, PlanError> {
    let mut conditions = Vec::new();
    for operand in operands {
        conditions.push(condition(operand, fields)?);
    }
    Ok(match op {
        Operator::And => Expr::all(conditions),
        Operator::Or => Expr::any(conditions),
        _ => Expr::any(conditions).untrue(),
    })
}

fn comparison(op: Operator, operands: &[Filter], fields: &mut dyn Fields) -> Result<Expr, PlanError> {
    let (Some(Filter::Name(name)), rest) = (operands.first(), operands.get(1..).unwrap_or_default()) else {
        return Ok(Expr::FALSE);
    };
    let field = fields.field(name)?;
    let positive = positive(op);
    let found = match field {
        Field::Value(operand) if matches!(op, Operator::In | Operator::Nin) => {
            let found = membership(&operand, rest, fields)?;
            return Ok(if op == Operator::Nin {
                found.untrue()
            } else {
                found
            });
        }
        Field::Value(operand) => return single(op, &operand, rest, fields),
        Field::Elements {
            list,
            parameter,
            element,
        } => match positive {
            Operator::In => {
                let sets = rest
                    .iter()
                    .filter(|operand| matches!(operand, Filter::Subquery(_)));
                let mut parts = Vec::new();
                for set in sets {
                    parts.push(overlap(&list, set, fields)?);
                }
                let values = element.among(&literals(rest));
                if values != Expr::FALSE {
                    parts.push(some(list, parameter, values));
                }
                Expr::any(parts)
            }
            _ => {
                let one = single(positive, &element, rest, fields)?;
                some(list, parameter, one)
            }
        },
    };
    Ok(if positive == op { found } else { found.untrue() })
}

/// Returns the operator that a negative operator negates; others are unchanged.
fn positive(op: Operator) -> Operator {
    match op {
        Operator::Neq => Operator::Eq,
        Operator::Nlike => Operator::Like,
        Operator::Nilike => Operator::Ilike,
        Operator::Nin => Operator::In,
        op => op,
    }
}

fn single(
    op: Operator,
    operand: &Operand,
    rest: &[Filter],
    fields: &mut dyn Fields,
) -> Result<Expr, PlanError> {
    match rest.first() {
        Some(Filter::Value(literal)) => Ok(operand.compare(op, literal)),
        Some(Filter::Name(name)) => match fields.field(name)? {
            Field::Value(other) => Ok(operand.compare_field(op, &other)),
            Field::Elements { .. } => Err(PlanError::lists_compared(name)),
        },
        _ => Ok(Expr::FALSE),
    }
}

/// Returns all literal values of an `in` or `nin`.
fn literals(rest: &[Filter]) -> Vec<&Literal> {
    let mut found = Vec::new();
    for operand in rest {
        match operand {
            Filter::Value(Literal::List(values)) => found.extend(values),
            Filter::Value(literal) => found.push(literal),
            _ => {}
        }
    }
    found
}

/// Returns the condition that a value is in lists or subqueries; NULL matches only NULL.
fn membership(operand: &Operand, rest: &[Filter], fields: &mut dyn Fields) -> Result<Expr, PlanError> {
    let mut parts = Vec::new();
    let values = operand.among(&literals(rest));
    if values != Expr::FALSE {
        parts.push(values);
    }
    for filter in rest {
        if let Filter::Subquery(subquery) = filter {
            let (set, column) = fields.set(subquery)?;
            let column = Expr::column(column);
            let missing = Select::from(Relation::named(&set))
                .column(Expr::TRUE, "found")
                .only(column.clone().missing());
            let present = Select::from(Relation::named(&set))
                .column(column.clone(), "value")
                .only(column.present());
            parts.push(Expr::when(
                operand.value.clone().missing(),
                Expr::Exists(Box::new(missing)),
                Expr::InSelect(Box::new(operand.value.clone()), Box::new(present)),
            ));
        }
    }
    Ok(Expr::any(parts))
}

/// Returns the condition that an element of a list is among the values of a subquery.
fn overlap(list: &Expr, filter: &Filter, fields: &mut dyn Fields) -> Result<Expr, PlanError> {
    let Filter::Subquery(subquery) = filter else {
        return Ok(Expr::FALSE);
    };
    let (set, column) = fields.set(subquery)?;
    let column = Expr::column(column);
    let values = Select::from(Relation::named(&set))
        .column(Expr::Call("list", vec![column.clone()]), "values")
        .only(column.clone().present());
    let missing = Select::from(Relation::named(&set))
        .column(Expr::TRUE, "found")
        .only(column.missing());
    let shared = Expr::Call("list_has_any", vec![list.clone(), Expr::Scalar(Box::new(values))]);
    // Of a list that has NULL, fewer elements are counted than it is long.
    let count = |name| Expr::Call(name, vec![list.clone()]);
    let has_null = count("len").infix(Infix::Greater, count("list_count"));
    Ok(Expr::any(vec![
        shared,
        Expr::all(vec![has_null, Expr::Exists(Box::new(missing))]),
    ]))
}

fn some(list: Expr, parameter: String, condition: Expr) -> Expr {
    let found = Expr::Elements(Box::new(list), parameter, Box::new(condition));
    let none = Expr::Constant(crate::sql::Constant::Integer(0));
    Expr::Call("len", vec![found]).infix(Infix::Greater, none)
}

/// Collects the names in a filter, apart from those inside subqueries.
pub(super) fn names<'f>(filter: &'f Filter, found: &mut BTreeSet<&'f str>) {
    match filter {
        Filter::Name(name) => {
            found.insert(name);
        }
        Filter::Condition { operands, .. } => operands.iter().for_each(|operand| names(operand, found)),
        Filter::Value(_) | Filter::Subquery(_) => {}
    }
}
