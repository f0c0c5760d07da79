//! Project-wide inputs of all groups: the manifest, the file limit, the variables.

use std::collections::{BTreeMap, BTreeSet};

use super::{Project, Source, Trust, work::Work};
use crate::{
    diagnostics::{At, Code, Diagnostic, Finding, Findings, Related, Role, Span},
    draft::{Manifest, reads},
    engine::{Engine, Need},
    file::{EnvFile, FileEvent, FileProblem, MANIFESTS},
    read::{env_file, manifest, problem},
    text::Text,
};

impl Project {
    pub(super) fn settle_manifest(&mut self, work: &mut Work) {
        let present: Vec<&str> = MANIFESTS
            .into_iter()
            .filter(|path| self.files.content(path).is_some())
            .collect();
        let unreadable = MANIFESTS
            .into_iter()
            .find_map(|path| Some((path, self.files.get(path)?.err()?.clone())));
        let mut findings = Findings::default();
        let mut path = present
            .first()
            .copied()
            .or(unreadable.as_ref().map(|(path, _)| *path))
            .unwrap_or("watershed.yaml");
        let mut others: Vec<String> = Vec::new();
        let read = match (present.as_slice(), &unreadable) {
            ([one], None) => self.read_manifest(one, &mut findings),
            // Told once the files are counted.
            ([], None) => None,
            ([], Some((_, problem))) => {
                let (code, message) = problem::finding(problem);
                findings.add(At::start(Role::Manifest), code, message);
                None
            }
            // None of them is used: which one was meant can't be told, and the wrong one could delete what the other
            // declares.
            (several, other) => {
                path = several.last().copied().unwrap_or(path);
                let names: Vec<&str> = several
                    .iter()
                    .copied()
                    .chain(other.as_ref().map(|(path, _)| *path))
                    .collect();
                let message = format!("the project has several manifests: `{}`", names.join("`, `"));
                let at = At::start(Role::Manifest);
                findings.add_with_hint(at, Code::ManifestTwice, message, "keep one of them");
                others = names.iter().map(|name| (*name).to_owned()).collect();
                others.retain(|other| other != path);
                None
            }
        };
        let was_whole = self.is_manifest_whole();
        self.manifest_trust = Some(match (&read, present.is_empty() && unreadable.is_none()) {
            (Some(_), _) => Trust::Whole,
            (None, true) => Trust::ManifestMissing,
            (None, false) => Trust::ManifestBroken,
        });
        let mut found: Vec<Diagnostic> = findings
            .iter()
            .map(|finding| finding.in_file(path, None))
            .collect();
        let related = others.into_iter().map(|path| Related {
            path,
            span: Span::START,
            message: "another manifest".to_owned(),
        });
        if let Some(first) = found.first_mut() {
            first.related.extend(related);
        }
        let is_moved = path != self.manifest_path;
        path.clone_into(&mut self.manifest_path);
        self.report(Source::Project, found, work);
        if is_moved || was_whole != self.is_manifest_whole() {
            // Which variables are set is another thing to know, and so is where findings about the defaults stand.
            self.touch_all(work);
        }
        self.use_manifest(read.unwrap_or_default(), work);
    }

    /// Returns the engine that models are built in, if known.
    pub(super) fn engine(&self) -> Option<&Engine> {
        let name = self.olap_connector();
        let driver = self.drivers.get(name).map_or(name, String::as_str);
        self.options.engines.iter().find(|engine| engine.driver == driver)
    }

    /// Reports settings of the manifest that need a part which the chosen engine lacks.
    pub(super) fn settle_engine(&mut self, work: &mut Work) {
        let Manifest {
            olap_connector_at,
            trash_at,
            ..
        } = self.manifest;
        let needs = [(Need::Builds, olap_connector_at), (Need::Trash, trash_at)];
        let mut findings = Findings::default();
        if let Some(engine) = self.engine() {
            for (need, at) in needs {
                if let Some(at) = at {
                    engine.refuse(need, at, &mut findings);
                }
            }
        }
        let found = findings
            .iter()
            .map(|finding| finding.in_file(&self.manifest_path, None));
        let found = found.collect();
        self.report(Source::Engine, found, work);
    }

    /// Returns true if the manifest was read without errors, so that all variables are known.
    pub(super) fn is_manifest_whole(&self) -> bool {
        self.manifest_trust == Some(Trust::Whole)
    }

    fn read_manifest(&self, path: &str, findings: &mut Findings) -> Option<Manifest> {
        let bytes = self.files.content(path)?;
        if bytes.len() > FileEvent::MAX_BYTES {
            let message = format!(
                "the file has {} bytes, more than {}",
                bytes.len(),
                FileEvent::MAX_BYTES
            );
            findings.add(At::start(Role::Manifest), Code::FileTooLarge, message);
            return None;
        }
        match Text::read(bytes) {
            Ok(text) => manifest::read(&text, &self.options.environment, findings),
            Err(span) => {
                findings.add(
                    At {
                        role: Role::Manifest,
                        span,
                    },
                    Code::NotUtf8,
                    "the file is not UTF-8 text",
                );
                None
            }
        }
    }

    fn use_manifest(&mut self, manifest: Manifest, work: &mut Work) {
        let ignored = self.files.ignore(&manifest.ignore_paths);
        let before = std::mem::replace(&mut self.manifest, manifest);
        let now = &self.manifest;
        let same = before.models == now.models
            && before.sources == now.sources
            && before.declared == now.declared
            && before.theme == now.theme
            && before.olap_connector == now.olap_connector
            && before.connectors == now.connectors;
        if before.connectors != now.connectors {
            self.drivers = self.connector_drivers();
        }
        if ignored || !same {
            self.touch_all(work);
        }
        if ignored {
            work.env_files.extend(self.env_files.keys().cloned());
            work.env_files
                .extend(self.files.paths().filter(|path| is_env(path)).map(str::to_owned));
        }
    }

    pub(super) fn settle_limit(&mut self, work: &mut Work) {
        let found = if self.files.over_limit() {
            let message = format!(
                "the project has {} files, more than {}",
                self.files.count(),
                Project::MAX_FILES
            );
            let hint = "leave folders out with `ignore_paths` in the manifest";
            let at = At::start(Role::Manifest);
            let (message, hint) = (message, Some(hint.to_owned()));
            let finding = Finding {
                at,
                code: Code::TooManyFiles,
                message,
                hint,
                related: Vec::new(),
            };
            vec![finding.in_file(&self.manifest_path, None)]
        } else {
            Vec::new()
        };
        self.report(Source::Group(String::new()), found, work);
        self.settle_missing_manifest(work);
    }

    /// Reports a missing manifest, unless there are too many files, as it may be among the unlisted ones.
    fn settle_missing_manifest(&mut self, work: &mut Work) {
        if self.manifest_trust != Some(Trust::ManifestMissing) {
            return;
        }
        let mut findings = Findings::default();
        if !self.files.over_limit() {
            let message =
                "the project has no manifest: neither `rill.yaml` nor `watershed.yaml` is at its root";
            let hint = "an empty `watershed.yaml` will do";
            findings.add_with_hint(At::start(Role::Manifest), Code::ManifestMissing, message, hint);
        }
        let path = self.manifest_path.clone();
        let found = findings.iter().map(|finding| finding.in_file(&path, None));
        self.report(Source::Project, found.collect(), work);
    }

    /// Reads the changed `.env` files, and marks the groups that read a variable whose value changed.
    pub(super) fn settle_variables(&mut self, work: &mut Work) {
        for path in std::mem::take(&mut work.env_files) {
            self.read_env(&path, work);
        }
        let variables = self.resolve_variables();
        let before = std::mem::replace(&mut self.variables, variables);
        if before == self.variables {
            return;
        }
        let differs = |name: &&String| before.get(*name) != self.variables.get(*name);
        let names: BTreeSet<&String> = before
            .keys()
            .chain(self.variables.keys())
            .filter(differs)
            .collect();
        // Groups that read no variable that differs keep what was compiled, whatever else stands in the files.
        for (key, group) in &self.groups {
            let used = &group.compiled.variables;
            let affected = names.iter().any(|name| used.iter().any(|used| reads(used, name)));
            if affected || group.compiled.any_variable {
                work.groups.insert(key.clone());
            }
        }
    }

    fn read_env(&mut self, path: &str, work: &mut Work) {
        let mut findings = Findings::default();
        let read = match self.files.get(path) {
            None => None,
            Some(Ok(bytes)) if bytes.len() > FileEvent::MAX_BYTES => {
                let (code, message) = problem::finding(&FileProblem::TooLarge(bytes.len() as u64));
                findings.add(At::start(Role::Yaml), code, message);
                Some(BTreeMap::new())
            }
            Some(Ok(bytes)) => match Text::read(bytes) {
                Ok(text) => Some(env_file::read(&text, &mut findings)),
                Err(span) => {
                    findings.add(
                        At {
                            role: Role::Yaml,
                            span,
                        },
                        Code::NotUtf8,
                        "the file is not UTF-8 text",
                    );
                    Some(BTreeMap::new())
                }
            },
            Some(Err(problem)) => {
                let (code, message) = problem::finding(problem);
                findings.add(At::start(Role::Yaml), code, message);
                Some(BTreeMap::new())
            }
        };
        match read {
            Some(variables) => drop(self.env_files.insert(path.to_owned(), variables)),
            None => drop(self.env_files.remove(path)),
        }
        let found = findings
            .iter()
            .map(|finding| finding.in_file(path, None))
            .collect();
        self.report(Source::Env(path.to_owned()), found, work);
    }

    /// Returns all variables, each overridden in the order manifest, `.env`, `.NAME.env`, options.
    fn resolve_variables(&self) -> BTreeMap<String, String> {
        let mut variables = self.manifest.variables.clone();
        let of = |wanted: fn(&EnvFile, &str) -> bool| {
            let environment = &self.options.environment;
            self.env_files.iter().filter(move |(path, _)| {
                EnvFile::from_path(path).is_some_and(|kind| wanted(&kind, environment))
            })
        };
        for (_, values) in of(|kind, _| *kind == EnvFile::Plain) {
            variables.extend(values.clone());
        }
        for (_, values) in of(|kind, environment| matches!(kind, EnvFile::Of(name) if name == environment)) {
            variables.extend(values.clone());
        }
        variables.extend(self.options.variables.clone());
        variables
    }
}

fn is_env(path: &str) -> bool {
    EnvFile::from_path(path).is_some()
}
