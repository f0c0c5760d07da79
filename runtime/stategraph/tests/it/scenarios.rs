//! Scenarios as data: `testdata/stategraph/*.txt`.
//!
//! A scenario is a title and steps. `given` puts items into the current graph, `intend` replaces the
//! intended graph (`intend nothing` takes it away), `external` puts external items there and `gone` takes
//! them away. `fail`, `background` say how the next operation of that kind on that item goes, `end` ends
//! one in the background, `cancel` cancels one, `wait` lets milliseconds pass, `back` sets the clock back by
//! some, `crash` forgets what is under way, `found` and `lost` say what `observe` will find, `unsure` lets the
//! next `needs_recreate` fail.
//! `call` converges; the lines after it are what is expected: `>` operations in order, `!` what is held and
//! why, `=` the graph after the call. An item is `type/name v[/k] [@group] [: need; need]`; one of type `e`
//! is external. A need is `target[|target]` with `>=n` for a condition on `v`, `recreate`, `order`, `vanish`.
//! `WATERSHED_BLESS=1` rewrites what is expected.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::path::PathBuf;

use serde_json::{Value as Json, json};
use watershed_stategraph::{
    Dependency, Effect, Extent, Graph, Input, Item, Observed, Operation, OperationId, Operations, Operator,
    Options, Planner, Predicate, Ref, Timestamp, Types,
};

use crate::worlds::{needs_recreate, r, types};

/// Deviation of the next operation on an item from immediate success.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Fails,
    Background,
}

struct Stage {
    types: Types<Json>,
    current: Graph<Json>,
    intended: Option<Graph<Json>>,
    operations: Operations<Json>,
    manners: BTreeMap<(String, Ref), Manner>,
    found: BTreeMap<Ref, Option<Json>>,
    unsure: BTreeSet<Ref>,
    pending: Vec<Input<Json>>,
    now: Timestamp,
}

impl Stage {
    fn new() -> Self {
        Self {
            types: types(),
            current: Graph::new("g"),
            intended: Some(Graph::new("g")),
            operations: Operations::default(),
            manners: BTreeMap::new(),
            found: BTreeMap::new(),
            unsure: BTreeSet::new(),
            pending: Vec::new(),
            now: Timestamp(1_000),
        }
    }

    fn on(&self, reference: &Ref) -> OperationId {
        let found = self
            .operations
            .iter()
            .find(|(_, running)| running.reference() == reference);
        found
            .unwrap_or_else(|| panic!("nothing is under way on {reference}"))
            .0
    }

    fn call(&mut self, extent: &Extent) -> Vec<String> {
        let options = Options {
            limit: 1,
            ..Options::default()
        };
        let mut planner = match Planner::new(
            &self.types,
            &mut self.current,
            &mut self.operations,
            self.intended.as_ref(),
            extent,
            options,
        ) {
            Ok(planner) => planner,
            Err(error) => return vec![format!("  ! error: {error}")],
        };
        let mut lines = Vec::new();
        let mut inputs: VecDeque<Input<Json>> = std::mem::take(&mut self.pending).into();
        inputs.push_back(Input::Begin);
        while let Some(input) = inputs.pop_front() {
            for effect in planner.step(self.now, input) {
                match effect {
                    Effect::Start(start) => {
                        let (id, reference) = (start.id, start.reference.clone());
                        lines.push(format!("  > {} {reference}: {}", start.operation, start.reason));
                        inputs.push_back(
                            match self.manners.remove(&(start.operation.to_string(), reference)) {
                                None => Input::Ended { id, result: Ok(()) },
                                Some(Manner::Fails) => Input::Ended {
                                    id,
                                    result: Err("no luck".into()),
                                },
                                Some(Manner::Background) => Input::Background { id },
                            },
                        );
                    }
                    Effect::Ask { reference, old, new } => {
                        let answer = match self.unsure.remove(&reference) {
                            true => Err("cannot tell".to_owned()),
                            false => Ok(needs_recreate(old.value(), new.value())),
                        };
                        inputs.push_back(Input::Answered { reference, answer });
                    }
                    Effect::Observe { reference, known } => {
                        lines.push(format!("  > observe {reference}"));
                        let found = match self.found.remove(&reference) {
                            None => Observed::Present(known.value().clone()),
                            Some(Some(value)) => Observed::Present(value),
                            Some(None) => Observed::Absent,
                        };
                        inputs.push_back(Input::Observed { reference, found });
                    }
                    Effect::Cancel { .. } | Effect::Done => {}
                }
            }
        }
        let (log, status) = planner.into_report();
        lines.extend(status.cycles.iter().map(|cycle| format!("  ! cycle {cycle:?}")));
        lines.extend(
            status
                .held
                .iter()
                .map(|(reference, held)| format!("  ! {reference}: {held}")),
        );
        lines.extend(
            status
                .failed
                .iter()
                .map(|(reference, operation, error)| format!("  ! {operation} {reference} failed: {error}")),
        );
        lines.extend(
            status
                .displaced
                .iter()
                .map(|reference| format!("  ! displaced {reference}")),
        );
        lines.extend(status.next.map(|next| match next.0.saturating_sub(self.now.0) {
            0 => "  ! next call at once".to_owned(),
            ms => format!("  ! next call in {ms} ms"),
        }));
        lines.extend(log.notes.iter().map(|note| format!("  ! note: {note}")));
        lines.extend(self.current.items().map(|item| show(item, &self.current)));
        lines
    }
}

fn show(item: &Item<Json>, graph: &Graph<Json>) -> String {
    let k = item.value()["k"]
        .as_i64()
        .filter(|k| *k != 0)
        .map_or(String::new(), |k| format!("/{k}"));
    let state = if item.is_external() {
        "external".to_owned()
    } else {
        item.state().to_string()
    };
    let group = graph.group_of(item.reference()).filter(|path| !path.is_root());
    let group = group.map_or_else(String::new, |path| format!(" @{path}"));
    format!("  = {} {}{k}{group} {state}", item.reference(), item.value()["v"])
}

fn value(text: &str) -> Json {
    let (v, k) = text.split_once('/').unwrap_or((text, "0"));
    json!({"v": v.parse::<i64>().unwrap(), "k": k.parse::<i64>().unwrap()})
}

fn need(text: &str) -> Dependency {
    let mut words = text.split_whitespace();
    let mut targets = words.next().unwrap().split('|').map(r);
    let first = targets.next().unwrap();
    let rest: Vec<Ref> = targets.collect();
    let need = if rest.is_empty() {
        Dependency::on(first)
    } else {
        Dependency::any_of(first, rest)
    };
    words.fold(need, |need, word| match word {
        "recreate" => need.recreate_when_modified(),
        "order" => need.order_only(),
        "vanish" => need.deleted_with_external(),
        condition => {
            let least: i64 = condition
                .strip_prefix(">=")
                .unwrap_or_else(|| panic!("`{condition}`?"))
                .parse()
                .unwrap();
            need.when(Predicate::field("v", Operator::Ge, json!(least)))
        }
    })
}

fn insert(graph: &mut Graph<Json>, line: &str) {
    let (head, needs) = line.split_once(" : ").unwrap_or((line, ""));
    let words: Vec<&str> = head.split_whitespace().collect();
    let needs = needs
        .split(';')
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(need)
        .collect();
    let item = match r(words[0]) {
        reference if reference.type_name() == "e" => Item::external(reference, value(words[1])),
        reference => Item::new(reference, value(words[1])),
    };
    let item = item.with_dependencies(needs);
    let group = words.get(2).map_or("", |group| group.trim_start_matches('@'));
    graph.insert_at(group, item).unwrap();
}

/// Runs the steps of a scenario file, and returns the file as it should be.
fn play(text: &str) -> String {
    let mut out = String::new();
    let mut stage = Stage::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        writeln!(out, "{line}").unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let block = |lines: &mut std::iter::Peekable<std::str::Lines<'_>>, out: &mut String| {
            let mut found = Vec::new();
            while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
                writeln!(out, "{line}").unwrap();
                found.push(line.trim().to_owned());
            }
            found
        };
        match words.as_slice() {
            ["scenario:", ..] => stage = Stage::new(),
            ["intend", "nothing"] => stage.intended = None,
            ["intend"] => {
                let mut graph = Graph::new("g");
                block(&mut lines, &mut out)
                    .iter()
                    .for_each(|line| insert(&mut graph, line));
                stage.intended = Some(graph);
            }
            ["given"] => block(&mut lines, &mut out)
                .iter()
                .for_each(|line| insert(&mut stage.current, line)),
            ["external", reference, v] => stage.current.put(Item::external(r(reference), value(v))).unwrap(),
            ["gone", reference] => drop(stage.current.remove(&r(reference))),
            ["fail", operation, reference] => {
                stage
                    .manners
                    .insert(((*operation).to_owned(), alias(reference)), Manner::Fails);
            }
            ["background", operation, reference] => {
                stage
                    .manners
                    .insert(((*operation).to_owned(), alias(reference)), Manner::Background);
            }
            ["end", reference, how] => {
                let result = if *how == "well" {
                    Ok(())
                } else {
                    Err("ended badly".to_owned())
                };
                stage.pending.push(Input::Ended {
                    id: stage.on(&alias(reference)),
                    result,
                });
            }
            ["cancel", reference] => stage.pending.push(Input::Cancel(vec![stage.on(&r(reference))])),
            ["cancel"] => {
                let all = stage.operations.iter().map(|(id, _)| id).collect();
                stage.pending.push(Input::Cancel(all));
            }
            ["wait", ms] => stage.now = stage.now.after_ms(ms.parse().unwrap()),
            ["crash"] => stage.operations = Operations::default(),
            ["back", ms] => stage.now.0 -= ms.parse::<u64>().unwrap(),
            ["doubt", reference] => stage.current.mark_unknown(&r(reference)).unwrap(),
            ["found", reference, v] => drop(stage.found.insert(r(reference), Some(value(v)))),
            ["unsure", reference] => drop(stage.unsure.insert(r(reference))),
            ["lost", reference] => drop(stage.found.insert(r(reference), None)),
            ["call", extent @ ..] => {
                let extent = match extent {
                    [] => Extent::Everything,
                    ["group", path] => Extent::Group((*path).into()),
                    ["item", reference] => Extent::Item(r(reference)),
                    ["changed", refs @ ..] => {
                        Extent::Changed(refs.iter().map(|one| r(one)).collect::<BTreeSet<_>>())
                    }
                    other => panic!("call {other:?}?"),
                };
                while lines.next_if(|line| line.starts_with("  ")).is_some() {}
                for line in stage.call(&extent) {
                    writeln!(out, "{line}").unwrap();
                }
            }
            [] => {}
            [word, ..] if word.starts_with('#') => {}
            other => panic!("{other:?}?"),
        }
    }
    out
}

fn alias(text: &str) -> Ref {
    text.strip_suffix("#next")
        .map_or_else(|| r(text), |base| r(base).alias())
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/stategraph")
}

#[test]
fn s1_to_s12_every_scenario_goes_as_written() {
    let mut count = 0;
    let mut differing = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        count += text.lines().filter(|line| line.starts_with("scenario:")).count();
        let played = play(&text);
        if std::env::var_os("WATERSHED_BLESS").is_some() {
            std::fs::write(&path, played).unwrap();
        } else if let Some((found, expected)) = played
            .lines()
            .zip(text.lines())
            .find(|(found, expected)| found != expected)
        {
            differing.push(format!(
                "{}\nexpected {expected}\nfound    {found}",
                path.display()
            ));
        } else if played != text {
            differing.push(format!("{}: one ends early", path.display()));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert!(count >= 60, "there are {count} scenarios");
}

#[test]
fn an_operation_is_shown_by_its_verb() {
    assert_eq!(Operation::Create.to_string(), "create");
}
