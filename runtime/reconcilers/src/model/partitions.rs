//! The list of a model's partitions, and the choice of which to build.
//!
//! A partition is a row of a query, or a file or folder, on this machine or in a store. Its key is a digest of the row, its watermark says how
//! fresh it is: another watermark than at its last build has it built again. Files are known by time and size; only
//! where these do not settle it is their content hashed, so that a file that was merely touched builds nothing. Objects are known by
//! the versions that their store tells.

mod grouped;
mod stamp;

use std::{collections::BTreeMap, path::Path};

use watershed_compilers::{Dialect, RenderError, Scope, render_sql, render_text, sql::is_pattern};
use watershed_core::Error;
use watershed_drivers::files::FileNow;
use watershed_drivers::objects::{Driver, Location};
use watershed_drivers::olap::{NamedRow, Partition, PartitionPhase, PartitionRun};
use watershed_proto::{MapValue, ModelSpec, Value, value::Kind};
use watershed_resolvers::files::{By, Group, Grouping, folder_of};

pub(super) use grouped::with_files;
pub(super) use stamp::{Stamped, as_one_file, restamp};

use super::{failure, state};

/// The largest number of partitions of a model.
pub(super) const MAX_PARTITIONS: usize = 100_000;

/// A listed partition, with its data and files.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) partition: Partition,
    /// The partition's row, as templates see it.
    pub(super) data: BTreeMap<String, Value>,
    /// The files of the partition; empty if it is a row of a query.
    pub(super) files: Vec<FileNow>,
}

/// The source that partitions are listed from.
pub(super) enum Source {
    /// A query of which each row is a partition.
    Query(String),
    /// Local files, grouped into partitions.
    Files(Grouping),
    /// Objects in a store, with their grouping and the name of the connector.
    Objects(Grouping, String),
}

impl Source {
    /// Returns the source that a spec names, with templates executed.
    ///
    /// # Errors
    /// When a template can't be executed, or partitions are listed in a way that is not supported.
    pub(super) fn from_spec(spec: &ModelSpec, scope: &Scope) -> Result<Self, Error> {
        let block = spec.partitions.clone().unwrap_or_default();
        let properties = block.properties.unwrap_or_default();
        let text = |key: &str, render: fn(&str, &Scope) -> Result<String, RenderError>| {
            let text = render(properties.str(key).unwrap_or_default(), scope);
            text.map_err(|error| failure::from_render(&error))
        };
        match block.resolver.as_str() {
            "sql" => Ok(Self::Query(text("sql", engine_sql)?)),
            "glob" => {
                let pattern = text("path", render_text)?;
                let is_local = spec
                    .local_files
                    .iter()
                    .any(|files| files.partitions && files.pattern == pattern);
                let connector = properties.str("connector").unwrap_or(&spec.input_connector);
                let location = Location::parse(&pattern).filter(|it| it.driver != Driver::Https);
                if !is_local && location.is_none() {
                    return Err(failure::remote_partitions(&pattern));
                }
                let grouping = Grouping {
                    pattern,
                    by: By::named(properties.str("partition").unwrap_or_default()),
                    rollup: properties.get("rollup_files").and_then(Value::as_bool) == Some(true),
                    transform: properties.str("transform_sql").map(str::to_owned),
                };
                Ok(match location {
                    Some(_) => Self::Objects(grouping, connector.to_owned()),
                    None => Self::Files(grouping),
                })
            }
            other => Err(failure::unknown_partition_resolver(other)),
        }
    }
}

impl From<Group> for Listed {
    fn from(group: Group) -> Self {
        listed(group.data, None, group.files)
    }
}

impl Listed {
    /// Returns the paths in the partition's row that exist but would be read as patterns: listed paths, and paths below
    /// `root`, the project's folder. Blocks.
    pub(super) fn literal_paths(&self, root: &Path) -> Vec<String> {
        let is_listed = |text: &str| {
            let mut listed = self.files.iter().map(|file| file.path.as_str());
            listed.any(|path| path == text || folder_of(path) == text)
        };
        let is_there = |text: &str| !text.contains("://") && root.join(text).exists();
        let texts = self.data.values().flat_map(|value| match value.as_list() {
            Some(items) => items.iter().filter_map(Value::as_str).collect(),
            None => Vec::from_iter(value.as_str()),
        });
        let literal = texts.filter(|text| is_pattern(text) && (is_listed(text) || is_there(text)));
        literal.map(str::to_owned).collect()
    }
}

/// Renders SQL for the engine, whatever database the model reads.
fn engine_sql(text: &str, scope: &Scope) -> Result<String, RenderError> {
    render_sql(text, scope, Dialect::Engine)
}

/// Makes a partition from a row. The watermark's column is left out of the data.
pub(super) fn from_row(row: NamedRow, watermark_field: &str) -> Listed {
    let MapValue { fields: mut data } = state::map(row);
    let watermark = data
        .remove(watermark_field)
        .filter(|value| !value.is_null())
        .map(|value| text_of(&value));
    listed(data, watermark, Vec::new())
}

fn listed(data: BTreeMap<String, Value>, watermark: Option<String>, files: Vec<FileNow>) -> Listed {
    let fields = MapValue { fields: data };
    let json = serde_json::Value::from(&fields).to_string();
    let digest = blake3::derive_key("watershed 2026 key of a partition", json.as_bytes());
    let key = hex(&digest);
    Listed {
        partition: Partition {
            key,
            data: json,
            watermark,
        },
        data: fields.fields,
        files,
    }
}

/// Returns the first half of a digest in hexadecimal digits.
fn hex(digest: &[u8; 32]) -> String {
    blake3::Hash::from_bytes(*digest).to_hex().as_str()[..32].to_owned()
}

/// Returns the text of a scalar, without quotes.
fn text_of(value: &Value) -> String {
    match &value.kind {
        Some(Kind::String(text)) => text.clone(),
        _ => serde_json::Value::from(value).to_string(),
    }
}

/// Leaves one partition per key, the last of several.
pub(super) fn distinct(all: Vec<Listed>) -> Vec<Listed> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut distinct: Vec<Listed> = Vec::with_capacity(all.len());
    for one in all {
        match places
            .get(&one.partition.key)
            .and_then(|at| distinct.get_mut(*at))
        {
            Some(earlier) => *earlier = one,
            None => {
                places.insert(one.partition.key.clone(), distinct.len());
                distinct.push(one);
            }
        }
    }
    distinct
}

/// Returns the partition of a note, for a partition that is no longer listed.
pub(super) fn from_note(note: &PartitionRun) -> Listed {
    let data = serde_json::from_str::<serde_json::Value>(&note.partition.data).unwrap_or_default();
    let data = Value::from(data).as_map().cloned().unwrap_or_default();
    Listed {
        partition: note.partition.clone(),
        data,
        files: Vec::new(),
    }
}

/// Notes about the runs of a model's partitions, by key.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) by_key: BTreeMap<String, PartitionRun>,
    /// The number of the next partition run.
    pub(super) next: u64,
}

impl Notes {
    pub(super) fn new(runs: Vec<PartitionRun>) -> Self {
        let next = runs.iter().map(|run| run.number.saturating_add(1)).max();
        Self {
            next: next.unwrap_or_default(),
            by_key: runs
                .into_iter()
                .map(|run| (run.partition.key.clone(), run))
                .collect(),
        }
    }

    /// Returns the note about a partition whose rows are present: in the given stage, or with `adds` in the output.
    pub(super) fn counting(&self, key: &str, stage: &str, adds: bool) -> Option<&PartitionRun> {
        self.by_key.get(key).filter(|run| match run.phase {
            PartitionPhase::Staged => run.stage == stage,
            PartitionPhase::Done => adds,
            PartitionPhase::Failed | PartitionPhase::Asked | PartitionPhase::Gone => false,
        })
    }

    /// Returns the notes of partitions that a person asked to build.
    pub(super) fn asked(&self) -> Vec<&PartitionRun> {
        let all = self.by_key.values();
        all.filter(|run| run.phase == PartitionPhase::Asked).collect()
    }
}
