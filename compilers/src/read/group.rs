//! Compilation of the files of one stem to drafts.

use watershed_proto::ModelSpec;

use crate::{
    blocks::refs,
    diagnostics::{At, Code, Findings, Role},
    draft::{
        Body, Compiled, Context, Draft, Purpose, RawRef, SqlBlock, SqlText, TextPlace, Uses,
        block::read_template,
    },
    file::FileProblem,
    kinds::{self, COMMON, PARSER},
    read::{annotations, problem},
    resource::{FileKind, Kind, Spec, WORDS},
    template::{Facts, is_template},
    text::{Span, Text, names, words},
    yaml::{self, Data, Fields, Map, Node, overlay},
};

/// The content of a file, or the reason why it can't be read.
pub(crate) type Content<'a> = Result<&'a [u8], &'a FileProblem>;

/// The files of one stem, the path without its extension.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupFiles<'a> {
    pub(crate) stem: &'a str,
    pub(crate) sql: Option<(&'a str, Content<'a>)>,
    pub(crate) yaml: Option<(&'a str, Content<'a>)>,
    /// True if there is a `.yml` file beside a `.yaml` file.
    pub(crate) second_yaml: bool,
}

impl GroupFiles<'_> {
    fn first_path(&self) -> &str {
        let (sql, yaml) = (self.sql.map(|file| file.0), self.yaml.map(|file| file.0));
        sql.into_iter().chain(yaml).min().unwrap_or(self.stem)
    }
}

/// Compiles the files of one stem.
pub(crate) fn compile(files: &GroupFiles<'_>, context: &Context<'_>) -> Compiled {
    let mut group = Group {
        files,
        context,
        findings: Findings::default(),
        uses: Uses::default(),
        connector: None,
        nameless: false,
    };
    if files.second_yaml {
        let message = "another YAML file of this name is read; this one is not";
        let (second, first) = (At::start(Role::SecondYaml), At::start(Role::Yaml));
        group
            .findings
            .add_second(second, Some(first), Code::YamlTwice, message, None);
    }
    let mut drafts = group.drafts();
    if group.findings.has_errors() {
        group.blame_companion();
        drafts.truncate(usize::from(!group.nameless));
        drafts.iter_mut().for_each(Draft::break_off);
    }
    let mut variables = group.uses.variables;
    variables.extend(group.uses.decisive);
    Compiled {
        drafts,
        findings: group.findings,
        variables,
        any_variable: group.uses.any_variable,
        connector: group.connector,
    }
}

struct Group<'a> {
    files: &'a GroupFiles<'a>,
    context: &'a Context<'a>,
    findings: Findings,
    uses: Uses,
    connector: Option<(String, String)>,
    /// True if the declaration has no usable name.
    nameless: bool,
}

/// The settings of a resource, by layer.
struct Settings {
    /// Settings of the YAML file.
    file: Map,
    at: At,
    /// Overrides of the environment in the YAML file.
    over: Map,
    /// Settings in the SQL.
    annotations: Map,
    sql: Option<SqlText>,
    templating: bool,
}

impl Group<'_> {
    fn drafts(&mut self) -> Vec<Draft> {
        let inferred = FileKind::infer(self.files.first_path(), self.files.sql.is_some());
        let Some(settings) = self.settings() else {
            // What can't be read still has the name and kind that its path gives.
            return inferred.map(|kind| self.broken(kind)).into_iter().collect();
        };
        if self.is_schema_file(&settings) {
            return Vec::new();
        }
        let Some((kind, legacy_connector)) = self.kind(&settings, inferred) else {
            return inferred.map(|kind| self.broken(kind)).into_iter().collect();
        };
        self.declare(kind, legacy_connector, settings)
    }

    /// Returns true if the file is a dbt schema file that describes several models, and reports that.
    fn is_schema_file(&mut self, settings: &Settings) -> bool {
        let file = &settings.file;
        let version = file.get("version").and_then(|entry| entry.value.scalar_text());
        let lists = ["models", "sources", "seeds", "snapshots"];
        let list = lists
            .iter()
            .filter_map(|key| file.get(*key))
            .find(|entry| matches!(entry.value.data, Data::List(_)));
        let (Some(list), Some("2"), None) = (list, version.as_deref(), &settings.sql) else {
            return false;
        };
        let message = "one file for several models is not read: each model has its own";
        let hint = "write `tests:` and `description:` of a model into `NAME.yaml` beside its `NAME.sql`; \
                    a source is a file of its own below `sources/`";
        self.findings
            .add_with_hint(list.key_at, Code::NoKind, message, hint);
        true
    }

    fn broken(&mut self, kind: FileKind) -> Draft {
        self.nameless = names::problem(base_name(self.files.stem)).is_some();
        Draft {
            body: Body::Broken,
            ..Draft::new(kind.kind(), base_name(self.files.stem).to_owned(), self.start())
        }
    }

    fn start(&self) -> At {
        At::start(if self.files.sql.is_some() {
            Role::Sql
        } else {
            Role::Yaml
        })
    }

    /// Reports the file beside one with an error, as neither is used.
    fn blame_companion(&mut self) {
        if self.files.sql.is_none() || self.files.yaml.is_none() {
            return;
        }
        let in_role = |role| {
            self.findings.iter().any(|finding| {
                finding.at.role == role && finding.code.severity() == crate::diagnostics::Severity::Error
            })
        };
        let message = "not used because of an error in the file that belongs to it";
        match (in_role(Role::Sql), in_role(Role::Yaml)) {
            (true, false) => self
                .findings
                .add(At::start(Role::Yaml), Code::CompanionError, message),
            (false, true) => self
                .findings
                .add(At::start(Role::Sql), Code::CompanionError, message),
            _ => {}
        }
    }

    fn text<'t>(&mut self, content: Content<'t>, role: Role) -> Option<Text<'t>> {
        let (code, message) = match content {
            Ok(bytes) if bytes.len() > crate::file::FileEvent::MAX_BYTES => {
                problem::finding(&FileProblem::TooLarge(bytes.len() as u64))
            }
            Ok(bytes) => match Text::read(bytes) {
                Ok(text) => return Some(text),
                Err(span) => {
                    let at = At { role, span };
                    self.findings.add(at, Code::NotUtf8, "the file is not UTF-8 text");
                    return None;
                }
            },
            Err(problem) => problem::finding(problem),
        };
        self.findings.add(At::start(role), code, message);
        None
    }

    /// Reads the settings from the files; none if a file can't be read.
    fn settings(&mut self) -> Option<Settings> {
        let yaml = match self.files.yaml {
            Some((_, content)) => {
                let text = self.text(content, Role::Yaml);
                text.and_then(|text| self.yaml(&text))
            }
            None => Some((Map::new(), self.start())),
        };
        let sql_file = match self.files.sql {
            Some((_, content)) => self.text(content, Role::Sql).map(Some),
            None => Some(None),
        };
        let ((mut file, at), sql_file) = (yaml?, sql_file?);
        let templating = self.templating(&mut file);
        let over = self.overrides(&mut file);
        let sql = self.sql(&mut file, &over, sql_file.as_ref(), templating)?;
        let annotations = self.annotations(sql.as_ref())?;
        Some(Settings {
            file,
            at,
            over,
            annotations,
            sql,
            templating,
        })
    }

    fn yaml(&mut self, text: &Text<'_>) -> Option<(Map, At)> {
        match yaml::load(text, Role::Yaml) {
            Ok(loaded) => {
                loaded
                    .findings
                    .into_iter()
                    .for_each(|finding| self.findings.push(finding));
                match loaded.root.data {
                    Data::Map(map) => Some((map, At::start(Role::Yaml))),
                    Data::Null => Some((Map::new(), At::start(Role::Yaml))),
                    other => {
                        let message = format!("the file is a mapping of settings, not {}", other.type_name());
                        self.findings.add(loaded.root.at, Code::WrongType, message);
                        None
                    }
                }
            }
            Err(finding) => {
                self.findings.push(*finding);
                None
            }
        }
    }

    fn templating(&mut self, file: &mut Map) -> bool {
        let Some(entry) = file.remove("parser") else {
            return true;
        };
        let Data::Map(map) = entry.value.data else {
            let message = format!("\"parser\" takes a mapping, not {}", entry.value.data.type_name());
            self.findings.add(entry.value.at, Code::WrongType, message);
            return true;
        };
        let mut fields = Fields::new(map, entry.key_at, &mut self.findings);
        let templating = fields.bool("templating").unwrap_or(true);
        fields.finish(&PARSER);
        templating
    }

    /// Takes the overrides of the environment, from `environment_overrides`, the deprecated `env`, and `dev` or `prod`.
    fn overrides(&mut self, file: &mut Map) -> Map {
        let mut over = Map::new();
        if let Some(entry) = file.get("env") {
            let hint = "use `environment_overrides`";
            let message = "key \"env\" is deprecated";
            self.findings
                .add_with_hint(entry.key_at, Code::DeprecatedKey, message, hint);
        }
        for key in ["env", "environment_overrides"] {
            let Some(all) = self.map(file, key) else { continue };
            for (name, entry) in all {
                if entry.value.is_null() {
                    continue;
                }
                let Data::Map(map) = &entry.value.data else {
                    let message = format!("\"{name}\" takes a mapping, not {}", entry.value.data.type_name());
                    self.findings.add(entry.value.at, Code::WrongType, message);
                    continue;
                };
                if name == self.context.environment {
                    overlay(&mut over, map);
                }
            }
        }
        for key in ["dev", "prod"] {
            if let Some(map) = self.map(file, key).filter(|_| key == self.context.environment) {
                overlay(&mut over, &map);
            }
        }
        over
    }

    fn map(&mut self, file: &mut Map, key: &str) -> Option<Map> {
        let entry = file.remove(key).filter(|entry| !entry.value.is_null())?;
        match entry.value.data {
            Data::Map(map) => Some(map),
            other => {
                let message = format!("\"{key}\" takes a mapping, not {}", other.type_name());
                self.findings.add(entry.value.at, Code::WrongType, message);
                None
            }
        }
    }

    /// Returns the resource's SQL, from the overrides, the YAML file or the SQL file.
    fn sql(
        &mut self,
        file: &mut Map,
        over: &Map,
        sql_file: Option<&Text<'_>>,
        templating: bool,
    ) -> Option<Option<SqlText>> {
        let own = file.remove("sql").filter(|entry| !entry.value.is_null());
        if let (Some(entry), Some(_)) = (&own, sql_file) {
            let message = "SQL is given both here and in a `.sql` file of the same name";
            let file = At::start(Role::Sql);
            self.findings
                .add_second(entry.key_at, Some(file), Code::SqlTwice, message, None);
            return None;
        }
        let node = over
            .get("sql")
            .map(|entry| entry.value.clone())
            .or(own.map(|entry| entry.value));
        if let Some(node) = node {
            let Some(text) = node.scalar_text() else {
                let message = format!("\"sql\" takes text, not {}", node.data.type_name());
                self.findings.add(node.at, Code::WrongType, message);
                return None;
            };
            let place = TextPlace::from_node(&node);
            return Some(Some(SqlText {
                text: text.trim().to_owned(),
                place,
                templating,
                is_indented: is_indented(&text),
            }));
        }
        let Some(text) = sql_file else { return Some(None) };
        let start = text.str().len() - text.str().trim_start().len();
        let place = TextPlace::from_file(text, start);
        Some(Some(SqlText {
            text: text.str().trim().to_owned(),
            place,
            templating,
            is_indented: is_indented(text.str()),
        }))
    }

    /// Reads the settings in the SQL; none if its template has errors.
    fn annotations(&mut self, sql: Option<&SqlText>) -> Option<Map> {
        let Some(sql) = sql.filter(|sql| sql.templating) else {
            return Some(Map::new());
        };
        let place = |span: Span| sql.place.at(span);
        let mut found = annotations::read(&sql.text, sql.is_indented, place, &mut self.findings);
        if is_template(&sql.text) {
            let template = read_template(&sql.text, &sql.place, &mut self.findings)?;
            let facts = Facts::from_template(&template);
            let tokens = sql.place.tokens(&sql.text);
            let place = |offset| tokens.at(offset);
            let configs = annotations::read_configs(&facts.configs, place, &mut self.findings);
            overlay(&mut found, &configs);
        }
        Some(found)
    }

    /// Returns the kind, and the connector that `type` names in old files under `/sources`.
    fn kind(&mut self, settings: &Settings, inferred: Option<FileKind>) -> Option<(FileKind, Option<Node>)> {
        for (map, lenient) in [(&settings.annotations, false), (&settings.file, true)] {
            for key in ["type", "kind"] {
                let Some(entry) = map.get(key).filter(|entry| !entry.value.is_null()) else {
                    continue;
                };
                let text = entry.value.scalar_text().unwrap_or_default();
                if text.trim().is_empty() {
                    continue;
                }
                if let Some(kind) = FileKind::read(&text) {
                    return Some((kind, None));
                }
                if lenient && key == "type" && self.files.first_path().starts_with("sources/") {
                    return Some((FileKind::Source, Some(entry.value.clone())));
                }
                let message = format!("invalid resource type \"{text}\"");
                let hint = match names::nearest(&text.to_lowercase(), WORDS) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("one of `{}`", WORDS.join("`, `")),
                };
                self.findings
                    .add_with_hint(entry.value.at, Code::UnknownKind, message, hint);
                return None;
            }
        }
        if inferred.is_none() {
            let (message, hint) = match base_name(self.files.stem) {
                "dbt_project" => (
                    "the file is one of dbt",
                    "`docs/from-dbt.md` says what each part becomes; `ignore_paths` in the manifest leaves the file out",
                ),
                "rill" | "watershed" => (
                    "a project stands inside this project",
                    "list its folder under `ignore_paths` in the manifest, or move it out",
                ),
                _ => (
                    "the file does not say what it declares, and its folder does not tell",
                    "for example, add `type: model`",
                ),
            };
            self.findings
                .add_with_hint(self.start(), Code::NoKind, message, hint);
        }
        let is_below_tests = self.files.first_path().to_ascii_lowercase().starts_with("tests/");
        if is_below_tests && inferred == Some(FileKind::Kind(Kind::Model)) {
            let message = "a SQL file in the folder `tests` makes a model, and tests nothing";
            let hint = "a test stands with its model: `tests: [{sql: SELECT ...}]` fails on rows; `-- @type: model` says \
                        that a model is meant";
            self.findings
                .add_with_hint(self.start(), Code::TestAsModel, message, hint);
        }
        Some((inferred?, None))
    }

    fn declare(&mut self, kind: FileKind, legacy_connector: Option<Node>, settings: Settings) -> Vec<Draft> {
        let mut map = match kind {
            FileKind::Source => self.context.manifest.sources.clone(),
            FileKind::Kind(Kind::Model) => self.context.manifest.models.clone(),
            FileKind::Kind(kind) => self.context.manifest.defaults_of(kind),
        };
        let files = settings.file.keys().chain(settings.annotations.keys());
        let own_keys = files.cloned().collect();
        for layer in [&settings.file, &settings.annotations, &settings.over] {
            overlay(&mut map, layer);
        }
        map.remove("sql");
        map.remove("parser");
        if let Some(node) = legacy_connector {
            map.entry("connector".to_owned()).or_insert(yaml::Entry {
                key_at: node.at,
                value: node,
            });
        }
        kinds::inert::tell(kind, &map, &mut self.findings);
        let common = self.common(&mut map, settings.at);
        let draft = Draft {
            tags: common.tags,
            refs: common.refs,
            ..Draft::new(kind.kind(), common.name, common.name_at)
        };
        if kind == FileKind::Kind(Kind::Connector) {
            let driver = map.get("driver").and_then(|entry| entry.value.scalar_text());
            self.connector = driver.map(|driver| (draft.name.clone(), driver));
        }
        let name = draft.name.clone();
        let reader = kinds::Reader {
            context: self.context,
            fields: Fields::new(map, settings.at, &mut self.findings),
            about: kinds::About {
                name: &name,
                is_source: kind == FileKind::Source,
                version: common.version,
                display_name: common.display_name,
                sql: settings.sql,
                refs: draft.refs.iter().map(|to| to.name.clone()).collect(),
                templating: settings.templating,
                own_keys,
            },
            uses: Uses::default(),
            blocks: Vec::new(),
        };
        let (mut drafts, uses) = kinds::read(kind.kind(), draft, reader);
        self.uses = uses;
        drafts.iter_mut().for_each(|draft| self.fill_path(draft));
        drafts
    }

    /// Sets the path of the file that contains the SQL in a spec.
    fn fill_path(&self, draft: &mut Draft) {
        let Body::Spec(spec) = &mut draft.body else { return };
        if let Spec::Model(spec) = spec.as_mut() {
            self.fill_paths_of_hooks(spec, &draft.blocks);
        }
        let sql = match spec.as_mut() {
            Spec::Model(spec) => spec.sql.as_mut(),
            Spec::Migration(spec) => spec.sql.as_mut(),
            _ => None,
        };
        let path = match self.files.sql.or(self.files.yaml) {
            // SQL of YAML has the environment's or the file's own key `sql`.
            Some((path, _)) => path,
            None => return,
        };
        if let Some(sql) = sql {
            let role = draft.blocks.iter().find(|block| block.purpose == Purpose::Main);
            let in_yaml = role.is_some_and(|block| block.place.role() == Role::Yaml);
            let path = if in_yaml {
                self.files.yaml.map_or(path, |file| file.0)
            } else {
                path
            };
            path.clone_into(&mut sql.path);
        }
    }

    /// Sets the paths of hooks, except those from the manifest's defaults.
    fn fill_paths_of_hooks(&self, spec: &mut ModelSpec, blocks: &[SqlBlock]) {
        let hooks = spec
            .init_queries
            .iter_mut()
            .chain(&mut spec.pre_exec)
            .chain(&mut spec.post_exec);
        for source in hooks {
            let is_it = |block: &&SqlBlock| block.purpose == Purpose::Around && block.text == source.text;
            let file = match blocks.iter().find(is_it).map(|block| block.place.role()) {
                Some(Role::Sql) => self.files.sql,
                Some(Role::Yaml) => self.files.yaml,
                _ => None,
            };
            if let Some((path, _)) = file {
                path.clone_into(&mut source.path);
            }
        }
    }

    fn common(&mut self, map: &mut Map, at: At) -> Common {
        let start = self.start();
        let mut fields = Fields::new(std::mem::take(map), at, &mut self.findings);
        fields.deprecations(&COMMON);
        fields.take("type");
        fields.take("kind");
        let version = fields.count("version").unwrap_or_default();
        let named = fields.text_node("name");
        let name_at = named.as_ref().map_or(start, |node| node.at);
        let mut name = match named.as_ref().and_then(Node::scalar_text) {
            Some(name) if !name.is_empty() => name,
            _ => base_name(self.files.stem).to_owned(),
        };
        if let Some(space) = fields.text("namespace").filter(|space| !space.is_empty()) {
            name = format!("{space}:{name}");
        }
        let tags = fields.texts("tags").unwrap_or_default();
        let tags = tags.iter().flat_map(|text| words(text)).collect();
        let display_name = fields.text("display_name").unwrap_or_default();
        let refs = fields
            .take("refs")
            .map(|entry| refs::read(&entry.value, fields.findings()))
            .unwrap_or_default();
        *map = fields.rest();
        if let Some(problem) = names::problem(&name) {
            self.findings.add(name_at, Code::InvalidName, problem);
            self.nameless = true;
        }
        Common {
            name,
            name_at,
            tags,
            refs,
            version,
            display_name,
        }
    }
}

/// The settings that resources of all kinds have.
struct Common {
    name: String,
    name_at: At,
    tags: Vec<String>,
    refs: Vec<RawRef>,
    version: u32,
    display_name: String,
}

/// Returns the last part of a path.
pub(crate) fn base_name(stem: &str) -> &str {
    stem.rsplit('/').next().unwrap_or(stem)
}

/// Returns true if blanks precede the first word of a text on its line.
fn is_indented(text: &str) -> bool {
    let blank = text
        .get(..text.len() - text.trim_start().len())
        .unwrap_or_default();
    !blank.is_empty() && !blank.ends_with('\n')
}
