//! Linking of drafts with the rest of the project: names, refs, meanings.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use watershed_dialect::{ENGINE, Words as _};
use watershed_proto::{LocalFiles, ModelSpec, ModelTest};

use super::{
    Group,
    claims::{Claim, Claims},
    dangling::Dangling,
    given::not_given,
    outputs::{Outputs, other_writer},
    relations::{Part, Relations},
    uses::uses,
};
use crate::{
    diagnostics::{At, Code, Diagnostic, DiagnosticResource, Finding, Nearby, Related, Role},
    draft::{Body, Draft, Purpose, SqlBlock},
    resource::{Fingerprint, Health, Kind, Resource, ResourceKey, ResourceRef, Spec, meaning},
    sql::{Outcome, SqlAnalysis, TokenKind, Tokens, digest, store_of, tokens},
    template::NEUTRAL,
};

/// The result of linking a group.
#[derive(Default)]
pub(super) struct Linked {
    pub(super) resources: Vec<Resource>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Refs to resources that don't exist, by the resource that holds them.
    pub(super) dangling: Vec<(ResourceKey, Vec<Dangling>)>,
    /// Each model's part in `relationships` tests.
    pub(super) relations: Vec<(ResourceKey, Part)>,
}

impl Group {
    /// Reports SQL of the group that the engine's parser rejects, and marks the drafts with such SQL as broken.
    pub(super) fn judge(&mut self) {
        let mut found = Vec::new();
        for (draft, analyses) in self.compiled.drafts.iter().zip(&self.analyses) {
            for (block, analyses) in draft.blocks.iter().zip(analyses) {
                // A unit test holds the model's query, of which was complained already.
                if block.purpose == Purpose::UnitTest && !found.is_empty() {
                    continue;
                }
                found.extend(complaint(block, analyses).or_else(|| not_given(draft, block, analyses)));
            }
        }
        if found.is_empty() {
            self.tell_unknown_inputs();
            return;
        }
        // One broken file makes both of no use. Whoever has only the other one open must learn why nothing is built of
        // it.
        let roles: BTreeSet<Role> = found.iter().map(|finding| finding.at.role).collect();
        found
            .into_iter()
            .for_each(|finding| self.compiled.findings.push(finding));
        if let (Some(_), Some(_), 1) = (&self.sql, &self.yaml, roles.len()) {
            let other = if roles.contains(&Role::Sql) {
                Role::Yaml
            } else {
                Role::Sql
            };
            let message = "not used because of an error in the file that belongs to it";
            self.compiled
                .findings
                .add(At::start(other), Code::CompanionError, message);
        }
        // The drafts stay, as broken ones: their names are still declared, so nothing is deleted and what reads them waits.
        self.compiled
            .drafts
            .iter_mut()
            .for_each(|draft| draft.body = Body::Broken);
        self.analyses.clear();
    }

    /// Reports each piece of SQL whose input files are known only at run time.
    fn tell_unknown_inputs(&mut self) {
        let mut found = Vec::new();
        for (draft, analyses) in self.compiled.drafts.iter().zip(&self.analyses) {
            let blocks = draft.blocks.iter().zip(analyses);
            let main = blocks.filter(|(block, _)| block.purpose == Purpose::Main);
            found.extend(main.filter_map(|(block, analyses)| unknown_input(block, analyses)));
        }
        found
            .into_iter()
            .for_each(|finding| self.compiled.findings.push(finding));
    }

    pub(super) fn path(&self, role: Role) -> Option<&String> {
        match role {
            Role::Sql => self.sql.as_ref().or(self.yaml.as_ref()),
            Role::Yaml => self.yaml.as_ref().or(self.sql.as_ref()),
            Role::SecondYaml => self.second_yaml.as_ref(),
            Role::Manifest => None,
        }
    }
}

/// Returns the finding for SQL that reads files not named in its text.
fn unknown_input(block: &SqlBlock, analyses: &[Arc<SqlAnalysis>]) -> Option<Finding> {
    let function = analyses.iter().find_map(|analysis| analysis.untold.first())?;
    let call = tokens(&block.text)
        .into_iter()
        .find(|token| token.kind == TokenKind::Word && token.text.eq_ignore_ascii_case(function));
    let at = match call {
        Some(call) => block.place.token(&block.text, call.range.start),
        None => crate::draft::block::first_line(&block.text, &block.place),
    };
    Some(Finding {
        at,
        code: Code::UnknownInput,
        message: format!("what `{function}` reads is known only when it runs: a change of it is not noticed"),
        hint: Some("write the path or pattern as one text, relative to the project".to_owned()),
        related: Vec::new(),
    })
}

/// Returns the parser's finding for a block's SQL. In templates, only errors that occur in every rendering count.
fn complaint(block: &SqlBlock, analyses: &[Arc<SqlAnalysis>]) -> Option<Finding> {
    for (statement, analysis) in block.statements.iter().zip(analyses) {
        let is_metrics_sql = block.tables == Kind::MetricsView;
        // An inexact variant stands for a template whose values are known in the run alone. It may fail to parse where no
        // run does.
        if is_metrics_sql || statement.variant.as_ref().is_some_and(|variant| !variant.exact) {
            continue;
        }
        if analysis.outcome() == Outcome::Invalid {
            let at = match (analysis.error_at, &statement.variant) {
                (Some(offset), Some(variant)) => {
                    let byte = variant.origin(&block.text, usize::try_from(offset).unwrap_or(usize::MAX));
                    block.place.token(&block.text, byte)
                }
                (Some(offset), None) => {
                    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
                    // The engine parsed the prefix in front of the text, and that stands in no file.
                    let offset = offset.saturating_sub(block.prefix.chars().count());
                    let byte = block
                        .text
                        .char_indices()
                        .nth(offset)
                        .map_or(block.text.len(), |(at, _)| at);
                    block.place.token(&block.text, byte)
                }
                (None, _) => crate::draft::block::first_line(&block.text, &block.place),
            };
            let message = analysis.message.clone();
            return Some(Finding {
                at,
                code: Code::SqlSyntax,
                message,
                hint: crate::draft::habits::hint(&block.text),
                related: Vec::new(),
            });
        }
        // The rest is about statements that make a table. These only have to be SQL.
        if matches!(block.purpose, Purpose::Query | Purpose::Condition) {
            continue;
        }
        if let Some(word) = statement_word(&statement.text).filter(|_| analysis.outcome() == Outcome::Scanned)
        {
            let at = crate::draft::block::first_line(&block.text, &block.place);
            let message = format!("a model must be a SELECT; this statement begins with {word}");
            let hint = Some("write the SELECT alone: the table is made by the model".to_owned());
            return Some(Finding {
                at,
                code: Code::NotAQuery,
                message,
                hint,
                related: Vec::new(),
            });
        }
        if analysis.statements > 1 {
            let at = crate::draft::block::first_line(&block.text, &block.place);
            let message = format!(
                "the SQL holds {} statements, and a model is one query",
                analysis.statements
            );
            let hint = Some("put the others into models of their own, or into `pre_exec`".to_owned());
            return Some(Finding {
                at,
                code: Code::SeveralStatements,
                message,
                hint,
                related: Vec::new(),
            });
        }
    }
    None
}

/// Returns the first word of a statement that yields no rows; none for other statements.
fn statement_word(sql: &str) -> Option<String> {
    let first = Tokens::from_sql(sql).find(|token| token.kind != TokenKind::Comment)?;
    let word = first.text.to_uppercase();
    (first.kind == TokenKind::Word && ENGINE.yields_no_rows(&word)).then_some(word)
}

/// Returns the names of the connectors that a model reads from, writes to or exports to.
fn connectors(spec: &ModelSpec) -> impl Iterator<Item = &str> {
    let files = spec.export.as_ref().map(|export| export.connector.as_str());
    let blocks = spec.partitions.iter().chain(&spec.incremental_state);
    let blocks = blocks.filter_map(|block| {
        let properties = block.properties.as_ref()?;
        // The objects of a pattern are reached by the connector that bears the name of their store.
        let store = || properties.str("path").and_then(store_of);
        properties.str("connector").or_else(store)
    });
    [spec.input_connector.as_str(), spec.output_connector.as_str()]
        .into_iter()
        .chain(files)
        .chain(blocks)
        .filter(|name| !name.is_empty())
}

/// Returns the resources to which names in a group may refer.
pub(super) fn reads(group: &Group) -> BTreeSet<ResourceKey> {
    let mut names = BTreeSet::new();
    for (draft, analyses) in group.compiled.drafts.iter().zip(analyses_of(group)) {
        if let Some(spec) = draft.model() {
            names.extend(connectors(spec).map(|name| ResourceKey::new(Kind::Connector, name)));
        }
        let used = draft.connectors.iter();
        names.extend(used.map(|name| ResourceKey::new(Kind::Connector, name)));
        let used = uses(draft, analyses).into_iter();
        for one in used {
            // Whether or not they are declared: the group is linked again when one of these names is won or lost.
            names.extend(one.kinds().iter().map(|kind| ResourceKey::new(*kind, one.name)));
        }
    }
    names
}

fn analyses_of(group: &Group) -> impl Iterator<Item = &[Vec<Arc<SqlAnalysis>>]> {
    group
        .analyses
        .iter()
        .map(Vec::as_slice)
        .chain(std::iter::repeat(&[] as &[_]))
}

/// Links the drafts of a group: returns the resources whose names the group owns, and all findings about its files.
pub(super) fn link(
    key: &str,
    groups: &BTreeMap<String, Group>,
    (claims, outputs, relations): (&Claims, &Outputs, &Relations),
    version: &Arc<str>,
    manifest_path: &str,
) -> Linked {
    let Some(group) = groups.get(key) else {
        return Linked::default();
    };
    // What a loser says is not about the winner of its name.
    let is_winner = |name: &ResourceKey| claims.winner(name).is_some_and(|winner| winner.group == key);
    let first = group.compiled.drafts.first();
    let about = first
        .map(|draft| DiagnosticResource {
            key: ResourceKey::new(draft.kind, &draft.name),
            name: draft.name.clone(),
        })
        .filter(|about| is_winner(&about.key));
    let mut linked = Linked::default();
    for finding in group.compiled.findings.iter() {
        // Defaults stand in the manifest: what is wrong with them is told there, once.
        let found = match group.path(finding.at.role) {
            Some(path) => finding.in_files(path, about.as_ref(), |role| group.path(role).map(String::as_str)),
            None => finding.in_file(manifest_path, None),
        };
        linked.diagnostics.push(found);
    }
    for (index, (draft, analyses)) in group.compiled.drafts.iter().zip(analyses_of(group)).enumerate() {
        let name = ResourceKey::new(draft.kind, &draft.name);
        match claims.winner(&name) {
            Some(winner) if winner.group == key && winner.draft == index => {
                let moved = relations.moved_to(&name, groups, claims);
                let (mut made, part) = resource(draft, analyses, group, (claims, relations, moved), version);
                linked.relations.push((name.clone(), part));
                if let Some(found) = other_writer(draft, group, groups, (claims, outputs)) {
                    // What it last said stays, and nothing is built of it: the table is another model's.
                    made = broken(made, version);
                    linked.diagnostics.push(found);
                }
                linked.resources.push(made);
                let dangling = dangling(draft, analyses, group, claims);
                linked.dangling.push((name, dangling));
            }
            // An implied resource gives way silently: that is how an explicit one replaces it.
            Some(winner) if !draft.implicit => {
                let first = groups.get(&winner.group);
                linked.diagnostics.extend(collision(draft, group, winner, first));
            }
            _ => {}
        }
    }
    linked
}

/// Lists the refs of a draft to resources that no file declares.
fn dangling(
    draft: &Draft,
    analyses: &[Vec<Arc<SqlAnalysis>>],
    group: &Group,
    claims: &Claims,
) -> Vec<Dangling> {
    let mut found = Vec::new();
    for one in uses(draft, analyses) {
        let Some(at) = one.expected else { continue };
        let kind = one.kind(claims);
        if !claims.exists(&ResourceKey::new(kind, one.name)) {
            found.push(Dangling {
                kind,
                name: one.name.to_owned(),
                path: group.path(at.role).cloned().unwrap_or_default(),
                at,
                is_template: one.kind.is_none(),
            });
        }
    }
    found
}

fn collision(draft: &Draft, group: &Group, winner: &Claim, first: Option<&Group>) -> Vec<Diagnostic> {
    let at_name = group.path(draft.name_at.role);
    let related = first.and_then(|first| {
        let at = first.compiled.drafts.get(winner.draft)?.name_at;
        Some(Related {
            path: first.path(at.role)?.clone(),
            span: at.span,
            message: Nearby::first(at).message.to_owned(),
        })
    });
    let tell = |path: &String| {
        let at = if Some(path) == at_name {
            draft.name_at
        } else {
            At::start(draft.name_at.role)
        };
        let message = format!(
            "name collision: another {} is also named \"{}\"",
            draft.kind, draft.name
        );
        let hint = Some(format!(
            "already declared in `{}`; rename one of them",
            winner.path
        ));
        let code = Code::NameCollision;
        let mut found = Finding {
            at,
            code,
            message,
            hint,
            related: Vec::new(),
        }
        .in_file(path, None);
        found.related.extend(related.clone());
        found
    };
    // In every file of the group, for a person may have any one of them open.
    group.paths().iter().map(tell).collect()
}

/// Returns the resource, marked as broken and without a spec.
fn broken(made: Resource, version: &Arc<str>) -> Resource {
    Resource {
        spec: Spec::None,
        meaning: nothing(made.kind, version),
        health: Health::Broken,
        ..made
    }
}

/// The resolved refs of a draft, with the tests and relations that follow from them.
struct Bound {
    refs: BTreeSet<ResourceRef>,
    /// Names of the models among the refs, in the order of first use.
    inputs: Vec<String>,
    /// Tests of earlier models that run with this one.
    tests: Vec<ModelTest>,
    part: Part,
}

/// Resolves the names that a draft uses, and adds the refs of tests that were moved to the draft.
fn bound(
    draft: &Draft,
    analyses: &[Vec<Arc<SqlAnalysis>>],
    (claims, relations, moved): (&Claims, &Relations, Vec<(String, Vec<ModelTest>)>),
) -> Bound {
    let own = ResourceKey::new(draft.kind, &draft.name);
    let mut refs: BTreeSet<ResourceRef> = BTreeSet::new();
    let mut inputs: Vec<String> = Vec::new();
    let (mut part, mut hard) = (Part::default(), BTreeSet::new());
    for one in uses(draft, analyses) {
        let kind = one.kind(claims);
        let target = ResourceKey::new(kind, one.name);
        // A name in SQL may be that of a table which no file declares; it is a ref only if something is declared by it.
        // A `ref()` is one whatever is there.
        let bound = one.kind.is_some() || (one.binds && (one.expected.is_some() || claims.exists(&target)));
        if !bound || (one.own_look && target == own) {
            continue;
        }
        if one.is_related {
            part.tested_against.insert(target.clone());
            if relations.is_late(&own, &target) {
                continue;
            }
        } else {
            hard.insert(target);
        }
        let reference = ResourceRef {
            kind,
            name: one.name.to_owned(),
            required: one.required,
        };
        let fresh = !refs.contains(&reference);
        // A condition that is written beats one that follows from a mere mention, whichever comes first.
        if fresh || one.required.is_some() {
            refs.replace(reference);
        }
        // In the order of first use: in the fingerprint inputs are ordinals, so that the rename of one is no change.
        if fresh && kind == Kind::Model {
            inputs.push(one.name.to_owned());
        }
    }
    let (mut tests, mut earlier) = (Vec::new(), BTreeSet::new());
    for (name, moved) in moved {
        let reference = ResourceRef {
            kind: Kind::Model,
            name: name.clone(),
            required: None,
        };
        earlier.insert(reference.key());
        if refs.insert(reference) {
            inputs.push(name);
        }
        tests.extend(moved);
    }
    part.tested_against.retain(|target| !hard.contains(target));
    let soft = part.tested_against.union(&earlier);
    part.soft = soft.filter(|target| !hard.contains(*target)).cloned().collect();
    Bound {
        refs,
        inputs,
        tests,
        part,
    }
}

fn resource(
    draft: &Draft,
    analyses: &[Vec<Arc<SqlAnalysis>>],
    group: &Group,
    (claims, relations, moved): (&Claims, &Relations, Vec<(String, Vec<ModelTest>)>),
    version: &Arc<str>,
) -> (Resource, Part) {
    let Bound {
        mut refs,
        inputs,
        tests,
        part,
    } = bound(draft, analyses, (claims, relations, moved));
    let mut made = Resource {
        kind: draft.kind,
        name: draft.name.clone(),
        refs: Vec::new(),
        paths: group.paths(),
        tags: draft.tags.clone(),
        spec: Spec::None,
        meaning: nothing(draft.kind, version),
        health: Health::Ok,
        cycle: None,
    };
    let spec = match &draft.body {
        // Its refs stay, so that what it reads is still built first when it is mended; its last spec is kept by the
        // catalog.
        Body::Broken => {
            made.health = Health::Broken;
            made.refs = refs.into_iter().collect();
            return (made, part);
        }
        Body::Unsupported => None,
        Body::Spec(spec) => Some(spec),
    };
    if !draft.kind.is_supported() {
        made.health = Health::Unsupported;
    }
    let mut bind = |names: &mut dyn Iterator<Item = &str>| {
        let bound = names.filter(|name| claims.exists(&ResourceKey::new(Kind::Connector, name)));
        refs.extend(bound.map(|name| ResourceRef {
            kind: Kind::Connector,
            name: name.to_owned(),
            required: None,
        }));
    };
    match draft.model() {
        Some(spec) => bind(&mut connectors(spec)),
        // A metrics view on a model leaves the connector to that model.
        None if draft.kind == Kind::MetricsView && !inputs.is_empty() => {}
        None => bind(&mut draft.connectors.iter().map(String::as_str)),
    }
    made.refs = refs.into_iter().collect();
    match spec.map(Box::as_ref) {
        Some(Spec::Model(spec)) => {
            let mut spec = spec.clone();
            spec.tests = relations.tests(draft, &spec, tests);
            spec.inputs = inputs;
            specify(&mut made, *spec, &draft.blocks, analyses, version);
        }
        Some(spec) => declare(&mut made, spec),
        None => {}
    }
    (made, part)
}

/// Sets the spec and the fingerprint of a resource of a kind other than model.
fn declare(made: &mut Resource, spec: &Spec) {
    let meaning = meaning::fingerprint_declared(spec, &made.refs);
    made.spec = spec.clone();
    made.spec.set_meaning(meaning.to_proto());
    made.meaning = meaning;
}

/// Returns the fingerprint of a resource without a spec.
fn nothing(kind: Kind, version: &Arc<str>) -> Fingerprint {
    let mut hasher = blake3::Hasher::new();
    hasher.update(kind.as_str().as_bytes());
    Fingerprint {
        version: Arc::clone(version),
        digest: digest(&hasher),
    }
}

/// Returns the functions, types and tables other than models that a model's SQL uses.
fn uses_of(read: &[&SqlAnalysis], bound: &BTreeSet<String>) -> Vec<String> {
    let names = read.iter().flat_map(|analysis| analysis.names.iter().cloned());
    let tables = read
        .iter()
        .flat_map(|analysis| &analysis.tables)
        .map(|table| table.name.to_lowercase())
        // The table of a model is an input, with the version of its rows; the others may be what a migration left.
        .filter(|table| !bound.contains(table));
    let all: BTreeSet<String> = names.chain(tables).collect();
    all.into_iter().collect()
}

fn specify(
    made: &mut Resource,
    mut spec: ModelSpec,
    blocks: &[SqlBlock],
    analyses: &[Vec<Arc<SqlAnalysis>>],
    version: &Arc<str>,
) {
    let mut known: BTreeMap<String, ()> = spec
        .local_files
        .iter()
        .map(|files| (files.pattern.clone(), ()))
        .collect();
    // A quoted name such as "a.csv" may be a model's or a file's. As the model is declared, it is the model's.
    let bound: BTreeSet<String> = spec.inputs.iter().map(|name| name.to_lowercase()).collect();
    let invalidate_on_change = !matches!(
        spec.input_properties.as_ref().and_then(|all| all.get("invalidate_on_change")),
        Some(value) if value.as_bool() == Some(false) || value.as_str() == Some("false")
    );
    let read = blocks
        .iter()
        .zip(analyses)
        .filter(|(block, _)| block.purpose == Purpose::Main);
    let read: Vec<&SqlAnalysis> = read.flat_map(|(_, all)| all).map(AsRef::as_ref).collect();
    spec.uses = uses_of(&read, &bound);
    // A path that a template completes in the run names no file yet.
    let named = read.iter().flat_map(|analysis| &analysis.files);
    for pattern in named.filter(|pattern| !pattern.contains(NEUTRAL)) {
        if !bound.contains(&pattern.to_lowercase()) && known.insert(pattern.clone(), ()).is_none() {
            spec.local_files.push(LocalFiles {
                pattern: pattern.clone(),
                invalidate_on_change,
                partitions: false,
            });
        }
    }
    // The parse tree of a text without templates is that of what runs. Of others the text and its values are compared.
    let plain = blocks
        .iter()
        .zip(analyses)
        .find(|(block, _)| block.purpose == Purpose::Main)
        .and_then(|(_, analyses)| analyses.first())
        .filter(|_| spec.sql.as_ref().is_some_and(|sql| sql.engine && !sql.templated));
    let meanings =
        meaning::fingerprint_spec(&made.name, &spec, Arc::clone(version), plain.map(AsRef::as_ref));
    spec.meaning = Some(meanings.whole.to_proto());
    spec.output_meaning = Some(meanings.output.to_proto());
    made.meaning = meanings.whole;
    made.spec = Spec::Model(Box::new(spec));
}
