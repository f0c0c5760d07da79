//! The arguments of an API that its templates read.

use std::collections::{BTreeMap, BTreeSet};

use gotmpl::parse::{Expr, PipeNode};

use super::{Template, facts, literal};

/// The arguments of a call that templates read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    /// Arguments by name; true if the value is written and has no fallback, so that it is required.
    names: BTreeMap<String, bool>,
    /// Arguments whose values are fixed, so that callers can't give them.
    fixed: BTreeSet<String>,
    /// True if arguments are read in a way that does not show their names.
    any: bool,
}

impl Arguments {
    /// Adds the arguments that a template reads in any branch. An invalid template counts as reading any argument; it
    /// fails when executed.
    pub fn add(&mut self, text: &str) {
        if !super::is_template(text) {
            return;
        }
        match Template::read(text) {
            Ok(template) => facts::each_pipe(&template, &mut |pipe, is_written| {
                self.pipe(pipe, is_written && !literal::has_fallback(pipe));
            }),
            Err(_) => self.any = true,
        }
    }

    /// Adds the arguments of another set.
    pub fn extend(&mut self, other: Self) {
        self.any |= other.any;
        self.fixed.extend(other.fixed);
        for (name, is_needed) in other.names {
            *self.names.entry(name).or_default() |= is_needed;
        }
    }

    /// Marks an argument as fixed instead of given by the caller.
    pub fn fix(&mut self, name: &str) {
        self.names.remove(name);
        self.fixed.insert(name.to_owned());
    }

    /// Returns true if an argument may be read, or is fixed.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.any || self.names.contains_key(name) || self.fixed.contains(name)
    }

    /// Returns the names of the arguments that are read.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// Returns the names of the arguments that are required.
    pub fn needed(&self) -> impl Iterator<Item = &str> {
        let needed = self.names.iter().filter(|(_, is_needed)| **is_needed);
        needed.map(|(name, _)| name.as_str())
    }

    fn pipe(&mut self, pipe: &PipeNode, is_needed: bool) {
        for command in &pipe.commands {
            let named = facts::indexed(command).filter(|(path, ..)| path[..] == ["args"]);
            if let Some((_, name, _)) = named {
                self.read(name, is_needed);
            }
            let known = if named.is_some() { 3 } else { 0 };
            let is_call = command.args.len() > 1;
            for expression in command.args.iter().skip(known) {
                self.expression(expression, is_needed, is_call);
            }
        }
    }

    fn expression(&mut self, expression: &Expr, is_needed: bool, is_operand: bool) {
        match expression {
            Expr::Pipe(_, nested) => self.pipe(nested, is_needed),
            Expr::Chain(_, inner, _) => self.expression(inner, is_needed, is_operand),
            Expr::Field(_, path) => self.path(path.iter().map(AsRef::as_ref), is_needed),
            // A function that is given everything may read any of it.
            Expr::Dot(_) if is_operand => self.any = true,
            Expr::Variable(_, variable, path) if variable == "$" => match path.is_empty() {
                true => self.any |= is_operand,
                false => self.path(path.iter().map(AsRef::as_ref), is_needed),
            },
            _ => {}
        }
    }

    fn path<'p>(&mut self, mut path: impl Iterator<Item = &'p str>, is_needed: bool) {
        match (path.next(), path.next()) {
            (Some("args"), Some(name)) => self.read(name, is_needed),
            (Some("args"), None) => self.any = true,
            _ => {}
        }
    }

    fn read(&mut self, name: &str, is_needed: bool) {
        *self.names.entry(name.to_owned()).or_default() |= is_needed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Arguments {
        let mut found = Arguments::default();
        found.add(text);
        found
    }

    #[test]
    fn arguments_are_found_in_every_branch_and_need_a_value_unless_one_stands_for_them() {
        let found = of(
            "{{ if .args.a }}{{ .args.b | default 1 }}{{ else }}{{ (upper .args.c) }}{{ end }}{{ index .args \"d\" }}
             {{ range .user.groups }}{{ $.args.e }}{{ end }}{{ .args.f }}{{ .args.f | default 2 }}",
        );
        assert_eq!(found.names().collect::<Vec<_>>(), ["a", "b", "c", "d", "e", "f"]);
        assert_eq!(found.needed().collect::<Vec<_>>(), ["c", "d", "e", "f"]);
        assert!(!found.has("g"));
    }

    #[test]
    fn a_part_of_an_argument_is_read_of_it() {
        for text in [
            "{{ .args.a.b }}",
            "{{ (index .args \"a\").b }}",
            "{{ (.args.a).b }}",
        ] {
            assert_eq!(of(text).names().collect::<Vec<_>>(), ["a"], "{text}");
        }
    }

    #[test]
    fn an_argument_that_is_fixed_is_neither_needed_nor_unknown() {
        let mut inner = of("{{ .args.a }}{{ .args.b }}");
        inner.fix("a");
        let mut all = of("{{ .args.c }}");
        all.extend(inner);
        assert_eq!(all.needed().collect::<Vec<_>>(), ["b", "c"]);
        assert!(all.has("a") && !all.has("d"));
    }

    #[test]
    fn whoever_reads_all_arguments_may_read_any() {
        for text in [
            "{{ range .args }}{{ . }}{{ end }}",
            "{{ $all := .args }}",
            "{{ (get . \"args\").g }}",
            "{{ toJson $ }}",
        ] {
            assert!(Template::read(text).is_ok(), "{text}");
            assert!(of(text).has("g"), "{text}");
        }
        assert!(of("{{ .args").has("g"), "it is no template");
        assert!(!of("args.g").has("g"));
    }
}
