//! The record beside an output, written in the transaction that makes it.
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

/// Identity of what a build made: two outputs with one build id hold the same.
///
/// A table gets a fresh one with every build that replaced it. A view's is derived from its definition and from
/// what it reads, so making it again changes nothing for those that read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId(pub Uuid);

/// Fingerprint of a definition: SQL as the engine's tree, inputs as ordinals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// Version of the rules that made it; fingerprints of different versions do not compare.
    pub version: String,
    /// The fingerprint.
    pub digest: [u8; 16],
}

/// The shape of an output in the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A view: a name for its SQL.
    View,
    /// A table: rows of its own.
    Table,
}

/// The input that a ref of a model stood for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Name of the output that it read.
    pub table: String,
    /// The build that it read.
    pub build: BuildId,
    /// Its columns, if they are known.
    pub columns: Option<Columns>,
}

/// A local file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSeen {
    /// Path relative to the project.
    pub path: String,
    /// Modification time, nanoseconds since the epoch.
    pub modified_ns: i64,
    /// Size in bytes.
    pub size: u64,
    /// Hash of the content; none if the file changed while it was read.
    pub content: Option<[u8; 32]>,
    /// The time at which time and size were looked at, nanoseconds since the epoch.
    pub seen_at_ns: i64,
}

/// The number of refreshes that were asked for, or answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refreshes {
    /// Plain ones.
    pub plain: u64,
    /// Full ones.
    pub full: u64,
}

/// The record beside an output.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The build that it stands for.
    pub build: BuildId,
    /// The build that its tag names: another one for a view that was left as it was when what it reads was built again.
    pub tagged: BuildId,
    /// Its columns, if they are known.
    pub columns: Option<Columns>,
    /// The place at which it lies.
    pub location: Location,
    /// View or table.
    pub shape: Shape,
    /// Fingerprint of the definition that made it.
    pub meaning: Meaning,
    /// The spec that made it, as bytes: fingerprinted anew by later versions. Empty in the catalog's copy.
    pub definition: Vec<u8>,
    /// The inputs of its refs, in the order of the ordinals.
    pub inputs: Vec<Input>,
    /// The local files that it read, sorted by path.
    pub files: Vec<FileSeen>,
    /// The traces of migrations and connectors in the engine that it read.
    pub made: Reads,
    /// The refreshes that it answered.
    pub answered: Refreshes,
    /// The full ones among those and before that let an edit through: what was built before them is as good as it was.
    pub approvals: u64,
    /// The tests that it passed: [`Tests::digest`](super::data_tests::Tests) of the spec that had them run.
    pub tests: Vec<u8>,
    /// The results of the tests when they were last run. Empty in the engine's copy.
    pub results: Vec<TestResult>,
    /// Number of rows; none for a view.
    pub rows: Option<u64>,
    /// The time at which the last build began, milliseconds since the epoch.
    pub built_at_ms: i64,
    /// The time that it took, milliseconds.
    pub took_ms: u64,
    /// The time that all builds of the present rows took, milliseconds.
    pub total_ms: u64,
    /// It was built as an incremental model.
    pub incremental: bool,
    /// Builds that put rows into the table since it was made.
    pub steps: u64,
    /// Its partitions; none for a model without any.
    pub partitions: Option<PartitionCounts>,
    /// The statements after the build are to be run still, or failed.
    pub unfinished: bool,
    /// The build read the last good output of something that had failed.
    pub stale_input: bool,
    /// The time at which its stores were asked last and had nothing new, milliseconds since the epoch; 0: not since the build.
    pub asked_at_ms: i64,
    /// The first row of the state's query after the last build; none if there is no such query, or no row.
    pub state: Option<MapValue>,
    /// A fingerprint of the schedule's times when it was last looked at; empty if that is not known.
    pub schedule: String,
    /// The time from which it counts, if that is none of a build: it was edited then, or a clock was found to have been ahead;
    /// milliseconds since the epoch, else 0.
    pub counts_from_ms: i64,
}

impl Record {
    /// Reads what [`Record::encode`] wrote; none if the bytes are anything else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Self::from_state(&ModelState::decode(bytes).ok()?)
    }

    /// The bytes to be kept in the engine.
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

    /// Reads a model's state; none if it speaks of no output.
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

    /// The state that the catalog keeps of it: all but the definition.
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

/// The connector that holds all outputs so far.
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
    /// One that was never there before.
    #[must_use]
    pub fn fresh() -> Self {
        Self(Uuid::now_v7())
    }

    /// Reads a build id; none if the text is anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::try_parse(text).ok().map(Self)
    }

    /// The build id of a view: the same for the same definition over the same builds and files, except that a refresh
    /// that somebody asked for gives it another, so that what reads it is built again.
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

/// The columns of a view, which follow from its SQL and from the columns of what it reads; none if those are not known.
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
    /// Reads a fingerprint; none if it has not 16 bytes.
    #[must_use]
    pub fn from_proto(print: &Fingerprint) -> Option<Self> {
        let digest = print.digest.as_slice().try_into().ok()?;
        Some(Self {
            version: print.version.clone(),
            digest,
        })
    }

    /// As specs and states carry it.
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
