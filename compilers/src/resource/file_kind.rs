//! The kinds that files declare, of which sources are one.

use super::kind::{self, Kind};

/// The kind that a file declares. Sources become models but are read by rules of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A source, which becomes a model.
    Source,
    /// A resource of any other kind.
    Kind(Kind),
}

impl FileKind {
    /// Returns the kind of the resulting resource.
    pub(crate) fn kind(self) -> Kind {
        match self {
            FileKind::Source => Kind::Model,
            FileKind::Kind(kind) => kind,
        }
    }

    /// Parses a kind as files write it, in any case.
    pub(crate) fn read(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "source" => Some(FileKind::Source),
            word => kind::from_word(word).map(FileKind::Kind),
        }
    }

    /// Infers the kind from the folder and extension of the files.
    pub(crate) fn infer(first_path: &str, has_sql: bool) -> Option<Self> {
        let folder = first_path.split_once('/').map(|(folder, _)| folder);
        match folder {
            Some("sources") => Some(FileKind::Source),
            Some("models") => Some(FileKind::Kind(Kind::Model)),
            Some("dashboards") => Some(FileKind::Kind(Kind::MetricsView)),
            Some("connectors") => Some(FileKind::Kind(Kind::Connector)),
            Some("evals") => Some(FileKind::Kind(Kind::AiEval)),
            _ if first_path == "init.sql" => Some(FileKind::Kind(Kind::Migration)),
            _ if has_sql => Some(FileKind::Kind(Kind::Model)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_whole_names() {
        assert_eq!(
            FileKind::infer("models/a.yaml", false),
            Some(FileKind::Kind(Kind::Model))
        );
        assert_eq!(FileKind::infer("models_old/a.yaml", false), None);
        assert_eq!(
            FileKind::infer("x/sources/a.sql", true),
            Some(FileKind::Kind(Kind::Model))
        );
        assert_eq!(FileKind::infer("sources/b/a.yaml", false), Some(FileKind::Source));
        assert_eq!(
            FileKind::infer("init.sql", true),
            Some(FileKind::Kind(Kind::Migration))
        );
        assert_eq!(FileKind::infer("a.yaml", false), None);
    }

    #[test]
    fn every_kind_can_be_written() {
        for kind in Kind::ALL {
            assert_eq!(FileKind::read(kind.as_str()), Some(FileKind::Kind(kind)));
        }
        assert_eq!(
            FileKind::read(" MetricsView "),
            Some(FileKind::Kind(Kind::MetricsView))
        );
        assert_eq!(FileKind::read("eval"), Some(FileKind::Kind(Kind::AiEval)));
    }
}
