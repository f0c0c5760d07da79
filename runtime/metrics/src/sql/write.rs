//! Conversion of statement trees to text, with brackets around every composed expression.

use std::fmt::Write as _;

use watershed_dialect::Dialect;

use super::tree::{Constant, Expr, Infix, JoinKind, Order, Relation, Select};

/// Returns the text of a statement in a dialect.
pub(crate) fn write(select: &Select, dialect: &dyn Dialect) -> String {
    write_with_places(select, dialect).0
}

/// Returns the text of a statement, and the byte offsets of the authors' texts in it, in order.
pub(crate) fn write_with_places(select: &Select, dialect: &dyn Dialect) -> (String, Vec<usize>) {
    let mut writer = Writer {
        dialect,
        out: String::new(),
        places: Vec::new(),
    };
    writer.select(select);
    (writer.out, writer.places)
}

struct Writer<'d> {
    dialect: &'d dyn Dialect,
    out: String,
    /// The byte offsets of the authors' texts.
    places: Vec<usize>,
}

impl Writer<'_> {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn name(&mut self, name: &str) {
        self.dialect.put_name(name, &mut self.out);
    }

    fn separated<T>(&mut self, items: &[T], separator: &str, mut each: impl FnMut(&mut Self, &T)) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.push(separator);
            }
            each(self, item);
        }
    }

    fn select(&mut self, select: &Select) {
        if !select.with.is_empty() {
            self.push("WITH ");
            self.separated(&select.with, ",\n", |writer, (name, inner)| {
                writer.name(name);
                writer.push(" AS ");
                // A scan reads the columns that it needs where the engine may look through the names.
                let plain = inner.group_by == 0 && !inner.distinct && inner.star;
                writer.push(if plain { "NOT MATERIALIZED (\n" } else { "(\n" });
                writer.select(inner);
                writer.push("\n)");
            });
            self.push("\n");
        }
        self.body(select);
        for more in &select.union {
            self.push("\nUNION ALL\n");
            self.body(more);
        }
        self.order(&select.order, "\nORDER BY ");
        // Writing to a string can't fail.
        if let Some(limit) = select.limit {
            let _ = write!(self.out, "\nLIMIT {limit}");
        }
        if select.offset > 0 {
            let _ = write!(self.out, "\nOFFSET {}", select.offset);
        }
    }

    fn body(&mut self, select: &Select) {
        self.push("SELECT ");
        if let Some(on) = &select.distinct_on {
            self.push("DISTINCT ON (");
            self.expr(on);
            self.push(") ");
        } else if select.distinct {
            self.push("DISTINCT ");
        }
        if select.star {
            self.push(if select.columns.is_empty() { "*" } else { "*, " });
        }
        self.separated(&select.columns, ", ", |writer, (value, name)| {
            writer.expr(value);
            writer.push(" AS ");
            writer.name(name);
        });
        if let Some(from) = &select.from {
            self.push("\nFROM ");
            self.relation(from);
        }
        if let Some(filter) = &select.filter {
            self.push("\nWHERE ");
            self.expr(filter);
        }
        if select.group_by > 0 {
            self.push("\nGROUP BY ");
            let columns: Vec<usize> = (1..=select.group_by).collect();
            self.separated(&columns, ", ", |writer, column| {
                let _ = write!(writer.out, "{column}");
            });
        }
    }

    fn relation(&mut self, relation: &Relation) {
        match relation {
            Relation::Named(parts) => self.separated(parts, ".", |writer, part| writer.name(part)),
            Relation::Select(select, name) => {
                self.push("(");
                self.select(select);
                self.push(") AS ");
                self.name(name);
            }
            Relation::Rows(rows, name, columns) => {
                self.push("(VALUES ");
                self.separated(rows, ", ", |writer, row| {
                    writer.push("(");
                    writer.list(row);
                    writer.push(")");
                });
                self.push(") AS ");
                self.name(name);
                self.push("(");
                self.separated(columns, ", ", |writer, column| writer.name(column));
                self.push(")");
            }
            Relation::Joined(first, joins) => {
                self.relation(first);
                for join in joins {
                    self.push(match join.kind {
                        JoinKind::Inner => "\nJOIN ",
                        JoinKind::Left => "\nLEFT JOIN ",
                        JoinKind::Full => "\nFULL JOIN ",
                        JoinKind::Cross => "\nCROSS JOIN ",
                    });
                    self.relation(&join.relation);
                    if let Some(on) = &join.on {
                        self.push(" ON ");
                        self.expr(on);
                    }
                }
            }
        }
    }

    fn order(&mut self, order: &[Order], before: &str) {
        if order.is_empty() {
            return;
        }
        self.push(before);
        self.separated(order, ", ", |writer, order| {
            writer.expr(&order.by);
            writer.push(if order.descending { " DESC" } else { " ASC" });
            writer.push(" NULLS LAST");
        });
    }

    fn list(&mut self, items: &[Expr]) {
        self.separated(items, ", ", Self::expr);
    }

    /// Writes an author's text on lines of its own, so that a trailing comment ends.
    fn foreign(&mut self, text: &str) {
        self.push("(\n");
        self.places.push(self.out.len());
        self.push(text);
        self.push("\n)");
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Column(relation, name) => {
                if let Some(relation) = relation {
                    self.name(relation);
                    self.push(".");
                }
                self.name(name);
            }
            Expr::Foreign(text) => self.foreign(text),
            Expr::Constant(constant) => self.constant(constant),
            Expr::Call(name, arguments) => {
                self.push(name);
                self.push("(");
                self.list(arguments);
                self.push(")");
            }
            Expr::Distinct(name, argument) => {
                self.push(name);
                self.push("(DISTINCT ");
                self.expr(argument);
                self.push(")");
            }
            Expr::CountAll => self.push("count(*)"),
            Expr::Infix(operator, operands) => {
                self.push("(");
                self.separated(operands, operator.text(), Self::expr);
                self.push(")");
            }
            Expr::IsNull(operand, is) => self.postfix(operand, if *is { " IS NULL" } else { " IS NOT NULL" }),
            Expr::IsNotTrue(operand) => self.postfix(operand, " IS NOT TRUE"),
            Expr::Case(cases, otherwise) => self.case(cases, otherwise.as_deref()),
            Expr::Cast(operand, data_type) => {
                self.push("CAST(");
                self.expr(operand);
                self.push(" AS ");
                self.dialect.put_type(*data_type, &mut self.out);
                self.push(")");
            }
            Expr::Among(..) | Expr::InSelect(..) | Expr::Exists(_) => self.membership(expr),
            Expr::Scalar(select) => {
                self.push("(");
                self.select(select);
                self.push(")");
            }
            Expr::List(items) => {
                self.push("[");
                self.list(items);
                self.push("]");
            }
            Expr::Struct(fields) => {
                self.push("struct_pack(");
                self.separated(fields, ", ", |writer, (name, value)| {
                    writer.name(name);
                    writer.push(" := ");
                    writer.expr(value);
                });
                self.push(")");
            }
            Expr::Elements(list, parameter, condition) => {
                self.push("list_filter(");
                self.expr(list);
                self.push(", lambda ");
                self.name(parameter);
                self.push(": ");
                self.expr(condition);
                self.push(")");
            }
            Expr::Over { .. } | Expr::Rank(..) | Expr::Gathered(..) | Expr::Opaque(_) => self.window(expr),
        }
    }

    fn postfix(&mut self, operand: &Expr, text: &str) {
        self.push("(");
        self.expr(operand);
        self.push(text);
        self.push(")");
    }

    fn case(&mut self, cases: &[(Expr, Expr)], otherwise: Option<&Expr>) {
        self.push("CASE");
        for (condition, then) in cases {
            self.push(" WHEN ");
            self.expr(condition);
            self.push(" THEN ");
            self.expr(then);
        }
        if let Some(otherwise) = otherwise {
            self.push(" ELSE ");
            self.expr(otherwise);
        }
        self.push(" END");
    }

    fn membership(&mut self, expr: &Expr) {
        self.push("(");
        match expr {
            Expr::Among(operand, values, is) => {
                self.expr(operand);
                self.push(if *is { " IN (" } else { " NOT IN (" });
                self.list(values);
            }
            Expr::InSelect(operand, select) => {
                self.expr(operand);
                self.push(" IN (");
                self.select(select);
            }
            Expr::Exists(select) => {
                self.push("EXISTS (");
                self.select(select);
            }
            _ => {}
        }
        self.push("))");
    }

    fn window(&mut self, expr: &Expr) {
        match expr {
            Expr::Over {
                function,
                partition,
                order,
                frame,
            } => {
                // Not bracketed: `OVER` follows a call.
                self.push("\n");
                self.places.push(self.out.len());
                self.push(function);
                self.push("\n OVER (");
                if !partition.is_empty() {
                    self.push("PARTITION BY ");
                    self.list(partition);
                }
                self.order(order, " ORDER BY ");
                self.push("\n");
                self.push(frame);
                self.push("\n)");
            }
            Expr::Rank(function, order) => {
                self.push(function);
                self.push("() OVER (");
                self.order(order, "ORDER BY ");
                self.push(")");
            }
            Expr::Gathered(value, by) => {
                self.push("list(");
                self.expr(value);
                self.push(") OVER (PARTITION BY ");
                self.expr(by);
                self.push(")");
            }
            // Rows stream through a window that looks at none but their own.
            Expr::Opaque(value) => {
                self.push("lag(");
                self.expr(value);
                self.push(", 0) OVER ()");
            }
            _ => {}
        }
    }

    fn constant(&mut self, constant: &Constant) {
        match constant {
            Constant::Null => self.push("NULL"),
            Constant::Boolean(true) => self.push("TRUE"),
            Constant::Boolean(false) => self.push("FALSE"),
            Constant::Integer(number) => {
                let _ = write!(self.out, "{number}");
            }
            Constant::Text(text) => self.dialect.put_text(text, &mut self.out),
            Constant::Typed(text, data_type) => self.dialect.put_constant(text, *data_type, &mut self.out),
        }
    }
}

impl Infix {
    fn text(self) -> &'static str {
        match self {
            Self::And => " AND ",
            Self::Or => " OR ",
            Self::Equal => " = ",
            Self::NotEqual => " <> ",
            Self::Less => " < ",
            Self::LessOrEqual => " <= ",
            Self::Greater => " > ",
            Self::GreaterOrEqual => " >= ",
            Self::Same => " IS NOT DISTINCT FROM ",
            Self::Like => " LIKE ",
            Self::Ilike => " ILIKE ",
            Self::Plus => " + ",
            Self::Minus => " - ",
            Self::Divided => " / ",
        }
    }
}
