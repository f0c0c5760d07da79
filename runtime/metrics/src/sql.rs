//! SQL statements as typed trees, and their conversion to text.
//!
//! Names, constants and types are nodes; only the writer quotes. The single foreign text is [`Expr::Foreign`], an
//! expression of a view's author, which the writer brackets on lines of its own (Q18).

mod tree;
mod write;

pub(crate) use tree::{Constant, Expr, Infix, JoinKind, Order, Relation, Select};
pub(crate) use write::{write, write_with_places};
