//! Settings of the engine that a project states, read from the catalog at the start and from the files at each parse.

use std::time::Duration;

use watershed_compilers::Project;
use watershed_core::Row;
use watershed_drivers::engines::ENGINES;
use watershed_drivers::olap::{Guarantees, Part, Session, TrashLimits};
use watershed_proto::{Message, ProjectParserState};

use crate::access::Surroundings;
use crate::secrets::Secrets;
use crate::sessions;
use crate::traces::Version;

/// Kind of the resource that parses a project's files and stores their settings.
pub const PARSER: &str = "project_parser";

/// Returns the engines that a project may choose, in the compiler's form.
#[must_use]
pub fn engines() -> Vec<watershed_compilers::engine::Engine> {
    let offer = |engine: &Guarantees| {
        let has = |part: &str| match part {
            "builds" => engine.builds,
            part => Part::ALL
                .iter()
                .any(|one| one.as_str() == part && engine.has(*one)),
        };
        watershed_compilers::engine::Engine::new(engine.driver, has)
    };
    ENGINES.iter().map(offer).collect()
}

/// Settings of the engine that a project states.
#[derive(Debug)]
pub struct EngineSettings {
    /// Statements for the start of connections, one entry per connector, each with its version.
    pub sessions: Vec<(Session, Version)>,
    /// Limits on size and age of the trash.
    pub trash: TrashLimits,
    /// True if the engine may install extensions where its process permits.
    pub installs: bool,
}

impl EngineSettings {
    /// Returns the settings of the last parse from rows of the catalog. Before the first parse, the defaults apply.
    pub fn from_rows<'a>(
        rows: impl Iterator<Item = &'a Row> + Clone,
        around: Surroundings<'_>,
        secrets: &Secrets,
    ) -> Self {
        let parser = rows.clone().find(|row| row.kind.as_str() == PARSER);
        let state = parser.and_then(|row| ProjectParserState::decode(row.state.as_deref()?).ok());
        let state = state.unwrap_or_default();
        let usual = TrashLimits::default();
        Self {
            sessions: sessions::sessions_of_rows(rows, around, secrets),
            trash: TrashLimits {
                bytes: state.trash_bytes.unwrap_or(usual.bytes),
                keep: state.trash_keep_ms.map_or(usual.keep, Duration::from_millis),
            },
            installs: state.extensions_installed.unwrap_or(true),
        }
    }

    /// Returns the settings in a project's files, with the statements of its connectors.
    #[must_use]
    pub fn from_project(project: &Project, sessions: Vec<(Session, Version)>) -> Self {
        Self {
            sessions,
            trash: trash_limits(project),
            installs: project.installs_extensions(),
        }
    }

    /// Stores the settings that no connector's row holds in the parser's state.
    pub fn keep_in(&self, state: &mut ProjectParserState) {
        state.trash_bytes = Some(self.trash.bytes);
        state.trash_keep_ms = u64::try_from(self.trash.keep.as_millis()).ok();
        state.extensions_installed = Some(self.installs);
    }
}

/// Returns the limits of the trash in a project's manifest, or the defaults.
#[must_use]
pub fn trash_limits(project: &Project) -> TrashLimits {
    let (said, usual) = (project.trash(), TrashLimits::default());
    TrashLimits {
        bytes: said.size_bytes.unwrap_or(usual.bytes),
        keep: said
            .keep_seconds
            .map_or(usual.keep, |seconds| Duration::from_secs(seconds.into())),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use watershed_core::Uid;

    use super::*;

    fn read(state: Option<&ProjectParserState>) -> EngineSettings {
        let mut row = Row::new(Uid(uuid::Uuid::nil()), PARSER, "project");
        row.state = state.map(|state| Arc::from(state.encode_to_vec()));
        let around = Surroundings {
            environment: "dev",
            root: Path::new("/project"),
            is_confined: false,
        };
        EngineSettings::from_rows([&row].into_iter(), around, &Secrets::default())
    }

    #[test]
    fn the_settings_of_the_last_parse_are_known_before_the_next_one() {
        let settings = EngineSettings {
            sessions: Vec::new(),
            trash: TrashLimits {
                bytes: 7,
                keep: Duration::from_millis(1_500),
            },
            installs: false,
        };
        let mut state = ProjectParserState::default();
        settings.keep_in(&mut state);
        let found = read(Some(&state));
        assert_eq!((found.trash, found.installs), (settings.trash, false));
    }

    #[test]
    fn without_a_parse_the_settings_are_the_usual_ones() {
        for found in [read(None), read(Some(&ProjectParserState::default()))] {
            assert_eq!((found.trash, found.installs), (TrashLimits::default(), true));
        }
    }
}
