//! The record beside an output, written in the transaction that builds it.
//!
//! The record is what proves that an output is still what would be built. The catalog's copy of it (a model's
//! state) may be older after a crash; the engine's wins. Both are written as a [`ModelState`]; what can't be read as
//! one is no proof, so the output is built again.

use std::{collections::BTreeMap, fmt, iter};

use uuid::Uuid;
use watershed_drivers::olap::Location;
use watershed_outputs::{digest::digest, traces::Reads};
use watershed_proto::{
    Fingerprint, LocalFileState, MapValue, Message, ModelState, OutputKind, PartitionCounts, TestResult,
};

use super::columns::Columns;

/// The identity of a built content: outputs with the same build id hold the same rows.
///
/// A table gets a fresh one with every build that replaced it. A view's is derived from its definition and from
/// what it reads, so making it again changes nothing for those that read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId(pub Uuid);

/// The fingerprint of a definition: SQL by its parse tree, inputs by ordinal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// The version of the fingerprint's rules; fingerprints of different versions can't be compared.
    pub version: String,
    /// The 128-bit hash of the model's meaning.
    pub digest: [u8; 16],
}

/// The shape of an output in the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A view, which names a query.
    View,
    /// A table, which stores rows.
    Table,
}

/// An input of a model, as a build read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The name of the output that was read.
    pub table: String,
    /// The build that was read.
    pub build: BuildId,
    /// The digest of the input's columns, if known.
    pub columns: Option<Columns>,
}

/// A local file, as a build read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSeen {
    /// The path relative to the project.
    pub path: String,
    /// The modification time, in nanoseconds since the epoch.
    pub modified_ns: i64,
    /// The size of the file in bytes.
    pub size: u64,
    /// The hash of the content; none if the file changed while it was read.
    pub content: Option<[u8; 32]>,
    /// The time of inspection, in nanoseconds since the epoch.
    pub seen_at_ns: i64,
}

/// Counts of refreshes that were requested or answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refreshes {
    /// The number of plain refreshes.
    pub plain: u64,
    /// The number of full refreshes.
    pub full: u64,
}

impl Refreshes {
    /// Returns the later of two counts, which only grow.
    pub(super) fn or_later(self, other: Self) -> Self {
        Self {
            plain: self.plain.max(other.plain),
            full: self.full.max(other.full),
        }
    }
}

/// The record of an output's build.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The build whose content the output holds.
    pub build: BuildId,
    /// The build that the object's tag names; older than `build` for a view that was left unchanged when inputs were
    /// built again.
    pub tagged: BuildId,
    /// The digest of the output's columns, if known.
    pub columns: Option<Columns>,
    /// The location of the output in the engine.
    pub location: Location,
    /// The shape of the output: a view or a table.
    pub shape: Shape,
    /// The fingerprint of the definition that was built.
    pub meaning: Meaning,
    /// The encoded spec that was built, for fingerprints by later versions; empty in the catalog's copy.
    pub definition: Vec<u8>,
    /// The inputs of the refs, in the order of their ordinals.
    pub inputs: Vec<Input>,
    /// The local files that the build read, sorted by path.
    pub files: Vec<FileSeen>,
    /// The objects of migrations and connectors that the build read.
    pub made: Reads,
    /// The refreshes that are answered by the build.
    pub answered: Refreshes,
    /// The number of answered full refreshes that only approved an edit, so that earlier rows stay valid.
    pub approvals: u64,
    /// The digest of the tests that the rows passed, as in [`Tests::digest`](super::data_tests::Tests).
    pub tests: Vec<u8>,
    /// The results of the last run of the tests; empty in the engine's copy.
    pub results: Vec<TestResult>,
    /// The number of rows; none for a view.
    pub rows: Option<u64>,
    /// The start of the last build, in milliseconds since the epoch.
    pub built_at_ms: i64,
    /// The duration of the last build, in milliseconds.
    pub took_ms: u64,
    /// The duration of all builds of the present rows, in milliseconds.
    pub total_ms: u64,
    /// True if the output was built as an incremental model.
    pub incremental: bool,
    /// The number of builds that added rows since the table was created.
    pub steps: u64,
    /// The counts of partitions; none for a model without partitions.
    pub partitions: Option<PartitionCounts>,
    /// True if the statements after the build failed or have not run.
    pub unfinished: bool,
    /// True if the build read the last good output of a failed ref.
    pub stale_input: bool,
    /// The time of the last check that found stores unchanged, in milliseconds since the epoch; 0 if there was none
    /// since the build.
    pub asked_at_ms: i64,
    /// The first row of the state query after the last build; none without such a query or a row.
    pub state: Option<MapValue>,
    /// The fingerprint of the schedule's times when last checked; empty if unknown.
    pub schedule: String,
    /// The time from which the schedule counts if that is not a build, since it was edited or a clock was ahead, in
    /// milliseconds since the epoch; else 0.
    pub counts_from_ms: i64,
}

impl Record {
    /// Decodes the bytes of [`Record::encode`]; none if they are invalid.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Self::from_state(&ModelState::decode(bytes).ok()?)
    }

    /// Returns the bytes that the engine stores.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let definition = self.definition.clone();
        ModelState {
            definition,
            test_results: Vec::new(),
            ..self.to_state()
        }
        .encode_to_vec()
    }

    /// Reads the record from a model's state; none if the state records no output.
    #[must_use]
    pub fn from_state(state: &ModelState) -> Option<Self> {
        let shape = match state.result_kind() {
            OutputKind::Table => Shape::Table,
            OutputKind::View => Shape::View,
            OutputKind::Unspecified => return None,
        };
        let build = BuildId::parse(&state.build_id)?;
        Some(Self {
            build,
            tagged: match state.tagged_build_id.is_empty() {
                true => build,
                false => BuildId::parse(&state.tagged_build_id)?,
            },
            columns: Columns::from_bytes(&state.columns),
            location: Location {
                schema: Some(state.result_schema.clone()).filter(|schema| !schema.is_empty()),
                name: state.result_table.clone(),
            },
            shape,
            meaning: Meaning::from_proto(state.output_meaning.as_ref()?)?,
            definition: state.definition.clone(),
            inputs: inputs(state)?,
            files: files(&state.local_files),
            made: made(state),
            answered: Refreshes {
                plain: state.answered_refresh,
                full: state.answered_full_refresh,
            },
            approvals: state.approvals,
            tests: state.passed_tests.clone(),
            results: state.test_results.clone(),
            rows: state.rows,
            built_at_ms: state.refreshed_on_ms,
            took_ms: state.latest_execution_duration_ms,
            total_ms: state.total_execution_duration_ms,
            incremental: state.incremental,
            steps: state.steps,
            partitions: state.partitions,
            unfinished: state.unfinished,
            stale_input: state.stale_input,
            asked_at_ms: state.stores_asked_on_ms,
            state: state.incremental_state.clone(),
            schedule: state.schedule.clone(),
            counts_from_ms: state.schedule_counts_from_ms,
        })
    }

    /// Returns the state that the catalog stores, which lacks the definition.
    #[must_use]
    pub fn to_state(&self) -> ModelState {
        let kind = match self.shape {
            Shape::Table => OutputKind::Table,
            Shape::View => OutputKind::View,
        };
        ModelState {
            result_connector: CONNECTOR.to_owned(),
            result_table: self.location.name.clone(),
            result_schema: self.location.schema.clone().unwrap_or_default(),
            // Known to the catalog alone: what lies beside a record lies where it does.
            result_home: String::new(),
            result_kind: kind.into(),
            build_id: self.build.to_string(),
            tagged_build_id: match self.tagged == self.build {
                true => String::new(),
                false => self.tagged.to_string(),
            },
            columns: Columns::to_bytes(self.columns),
            input_columns: self
                .inputs
                .iter()
                .map(|input| Columns::to_bytes(input.columns))
                .collect(),
            output_meaning: Some(self.meaning.to_proto()),
            input_builds: self.inputs.iter().map(|input| input.build.to_string()).collect(),
            local_files: self.files.iter().map(file_state).collect(),
            answered_refresh: self.answered.plain,
            answered_full_refresh: self.answered.full,
            approvals: self.approvals,
            refreshed_on_ms: self.built_at_ms,
            latest_execution_duration_ms: self.took_ms,
            total_execution_duration_ms: self.total_ms,
            rows: self.rows,
            input_tables: self.inputs.iter().map(|input| input.table.clone()).collect(),
            definition: Vec::new(),
            passed_tests: self.tests.clone(),
            test_results: self.results.clone(),
            made_inputs: self
                .made
                .inputs
                .iter()
                .map(|(name, version)| (name.clone(), version.to_vec()))
                .collect(),
            made_files: self.made.files.clone(),
            incremental_state: self.state.clone(),
            incremental: self.incremental,
            steps: self.steps,
            partitions: self.partitions,
            unfinished: self.unfinished,
            stale_input: self.stale_input,
            stores_asked_on_ms: self.asked_at_ms,
            schedule: self.schedule.clone(),
            schedule_counts_from_ms: self.counts_from_ms,
            // The run that writes the state adds it.
            export: None,
        }
    }
}

/// The connector of the engine that holds all outputs.
const CONNECTOR: &str = "duckdb";

fn inputs(state: &ModelState) -> Option<Vec<Input>> {
    // Older states have no columns.
    let columns = state.input_columns.iter().map(|bytes| Columns::from_bytes(bytes));
    let columns = columns.chain(iter::repeat(None));
    let pairs = state.input_tables.iter().zip(&state.input_builds);
    let inputs = pairs.zip(columns).map(|((table, build), columns)| {
        Some(Input {
            table: table.clone(),
            build: BuildId::parse(build)?,
            columns,
        })
    });
    let inputs = inputs.collect::<Option<Vec<_>>>()?;
    (inputs.len() == state.input_builds.len()).then_some(inputs)
}

fn files(files: &BTreeMap<String, LocalFileState>) -> Vec<FileSeen> {
    let seen = files.iter().map(|(path, file)| FileSeen {
        path: path.clone(),
        modified_ns: file.modified_ns,
        size: file.size,
        content: file.digest.as_slice().try_into().ok(),
        seen_at_ns: file.seen_at_ns,
    });
    seen.collect()
}

fn made(state: &ModelState) -> Reads {
    let inputs = state.made_inputs.iter().map(|(name, version)| {
        // A version of another length is none that anything has, so the output is built again.
        let version = version.as_slice().try_into().unwrap_or_default();
        (name.clone(), version)
    });
    Reads {
        inputs: inputs.collect(),
        files: state.made_files.clone(),
    }
}

fn file_state(file: &FileSeen) -> (String, LocalFileState) {
    let state = LocalFileState {
        size: file.size,
        modified_ns: file.modified_ns,
        digest: file.content.map(|digest| digest.to_vec()).unwrap_or_default(),
        seen_at_ns: file.seen_at_ns,
        ..LocalFileState::default()
    };
    (file.path.clone(), state)
}

impl BuildId {
    /// Returns a new, unique build id.
    #[must_use]
    pub fn fresh() -> Self {
        Self(Uuid::now_v7())
    }

    /// Parses a build id; none if the text is not a UUID.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::try_parse(text).ok().map(Self)
    }

    /// Returns the build id of a view, derived from its definition, the builds and files it reads, and the answered
    /// refreshes, so that a requested refresh also rebuilds dependents.
    #[must_use]
    pub fn for_view(
        meaning: &Meaning,
        inputs: &[Input],
        files: &[FileSeen],
        made: &Reads,
        answered: Refreshes,
    ) -> Self {
        let (plain, full) = (answered.plain.to_le_bytes(), answered.full.to_le_bytes());
        let mut parts = vec![meaning.version.as_bytes(), meaning.digest.as_slice()];
        parts.extend(inputs.iter().map(|input| input.build.0.as_bytes().as_slice()));
        for file in files {
            let content = file.content.as_ref().map_or(&[][..], |digest| digest.as_slice());
            parts.extend([file.path.as_bytes(), content]);
        }
        for (name, version) in &made.inputs {
            parts.extend([name.as_bytes(), version.as_slice()]);
        }
        parts.extend([plain.as_slice(), full.as_slice()]);
        let bytes = digest("watershed 2026 build id of a view", parts);
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }
}

/// Returns the digest of a view's columns, derived from its SQL and the columns of its inputs; none if those are
/// unknown.
#[must_use]
pub fn columns_of_view(
    meaning: &Meaning,
    inputs: &[Input],
    files: &[FileSeen],
    made: &Reads,
) -> Option<Columns> {
    let mut parts = vec![meaning.version.as_bytes(), meaning.digest.as_slice()];
    for input in inputs {
        parts.push(input.columns.as_ref()?.as_bytes());
    }
    for file in files {
        parts.extend([file.path.as_bytes(), file.content.as_ref()?.as_slice()]);
    }
    for (name, version) in &made.inputs {
        parts.extend([name.as_bytes(), version.as_slice()]);
    }
    Some(Columns::following(parts))
}

impl Meaning {
    /// Reads a fingerprint from a message; none if it does not have 16 bytes.
    #[must_use]
    pub fn from_proto(print: &Fingerprint) -> Option<Self> {
        let digest = print.digest.as_slice().try_into().ok()?;
        Some(Self {
            version: print.version.clone(),
            digest,
        })
    }

    /// Returns the fingerprint as the message that specs and states carry.
    #[must_use]
    pub fn to_proto(&self) -> Fingerprint {
        Fingerprint {
            version: self.version.clone(),
            digest: self.digest.to_vec(),
        }
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
pub(super) mod tests;
